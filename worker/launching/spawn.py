"""Start of an attempt's shim, in the first way that works; one that does not has done nothing.

1. A job of the worker's own account: a fork server with PyTorch (`warm`) forks the shim, and that the job.
2. The worker's server of shims (`shims`) forks the shim. A job of another account is then forked by a reaper, if a fork
   server of that account has forked one; any other is executed.
3. The shim is executed, and executes the job.
"""

import json
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchyard.injob import layout
from torchyard.wire import PreloadedModules
from worker import shim
from worker.attempts.folder import AttemptFolder
from worker.attempts.starts import ColdReason
from worker.launching import warm
from worker.launching.shims import ShimServer

SHIM = Path(shim.__file__).parent / "__main__.py"


@dataclass(frozen=True, kw_only=True)
class ShimStarter:
    """The ways in which a worker starts shims; `fork_servers` and `shims` are None where that way is off."""

    python: Path
    environment: Mapping[str, str]
    fork_servers: warm.ForkServers | None
    shims: ShimServer | None

    def start(
        self, folder: AttemptFolder, record: Mapping[str, Any], held: list[int], secrets: Mapping[str, str]
    ) -> ColdReason | None:
        """Start the shim, which reads the secrets from its input, and wait until it has let the job go.

        Return why the job was not forked from a fork server.
        """
        launch = folder.at(layout.LAUNCH)
        told = json.dumps(dict(secrets)).encode() if secrets else None
        reaper, cold_reason = None, warm.OFF
        with (folder.at(layout.LOGS) / layout.LAUNCHER_LOG).open("ab") as log, ExitStack() as stack:
            if self.fork_servers is not None and record["uid"] is None:
                reason = self.fork_servers.start(record, launch, log.fileno(), held, told)
                if reason is None:
                    return None
                cold_reason = reason
            elif self.fork_servers is not None:
                forked = warm.SILENT if self.shims is None else self.fork_servers.fork_reaper(record)
                if isinstance(forked, ColdReason):
                    cold_reason = forked
                else:
                    reaper, cold_reason = stack.enter_context(forked), warm.REFUSED
            if self.shims is not None and self.shims.launch(launch, log.fileno(), held, told, reaper):
                return cold_reason if reaper is None or _is_executed(folder) else None
            subprocess.Popen(
                [str(self.python), "-I", "-S", str(SHIM), str(launch), *map(str, held)],
                stdin=subprocess.DEVNULL if told is None else subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                env=self.environment,
                pass_fds=held,
                start_new_session=True,
            ).communicate(told)
        return cold_reason

    def preloaded(self, record: Mapping[str, Any]) -> PreloadedModules | None:
        """Return what the fork server of this launch has loaded besides PyTorch."""
        return None if self.fork_servers is None else self.fork_servers.preloaded(record)


def _is_executed(folder: AttemptFolder) -> bool:
    found = folder.read_shim()
    return found is not None and not found.forked
