"""Telling the owners of processes from outside of the queue that they hold somebody's GPU; never waits for anybody."""

import logging
import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import partial
from typing import Final

import psutil

from worker.background import Spawn
from worker.devices.offenders import Offender

#: Seconds that a terminal and the administrator's command may take.
TIMEOUT_S: Final = 30.0

logger = logging.getLogger(__name__)


class OwnerNotifier:
    """Tells each owner once of each process, in the background: at their terminals, and by the administrator's command.

    `spawn` runs a function there. The command is a line for the shell, with ``TORCHYARD_OWNER``, ``TORCHYARD_NODE``,
    ``TORCHYARD_GPU``, ``TORCHYARD_PID`` and ``TORCHYARD_MESSAGE`` in its environment.
    """

    def __init__(self, node: str, command: str | None, spawn: Spawn) -> None:
        self._node = node
        self.command = command
        self._spawn = spawn
        self._told: set[tuple[str, int, int]] = set()

    def see(self, offenders: Iterable[Offender]) -> None:
        """Take note of who is there now; what has gone is forgotten."""
        there = {(each.uuid, each.pid, each.since_us): each for each in offenders if each.stray}
        self._told &= there.keys()
        for key, offender in there.items():
            if key not in self._told:
                self._told.add(key)
                self._spawn(partial(self._tell, offender))

    def _tell(self, offender: Offender) -> None:
        message = f"TorchYard on {self._node}: {offender}. Jobs may wait for it: end it if you no longer need it."
        logger.info("told %s: %s", offender.user, message)
        program = shutil.which("write")
        for terminal in _terminals(offender.user) if program else ():
            _run([str(program), offender.user, terminal], f"{message}\n", {})
        if self.command:
            about = {"OWNER": offender.user, "NODE": self._node, "GPU": offender.uuid, "PID": str(offender.pid)}
            variables = {f"TORCHYARD_{name}": value for name, value in {**about, "MESSAGE": message}.items()}
            _run(["sh", "-c", self.command], "", variables)


def _terminals(user: str) -> list[str]:
    """Return the terminals at which somebody is logged in."""
    return [each.terminal for each in psutil.users() if each.name == user and each.terminal]


def _run(command: list[str], given: str, variables: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command,
            input=given,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        logger.warning("an owner was not told: %s", error)
        return
    if done.returncode:
        logger.warning("an owner was not told: %s ended with %d: %s", command[0], done.returncode, done.stderr.strip())
