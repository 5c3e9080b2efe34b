"""The state of units by systemd, where it runs the machine."""

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

#: There while systemd is the machine's init.
BOOTED: Final = Path("/run/systemd/system")
#: A unit that has begun within these seconds, after so many restarts, will end again.
RECENT_S, RESTARTS = 60.0, 3
_PROPERTIES: Final = ("Id", "ActiveState", "NRestarts", "ActiveEnterTimestampMonotonic")


def findings(units: Sequence[str], *, own: bool = False) -> Iterator[str]:
    """Yield which units do not run, each with where to read why; those of this account's own systemd if `own`.

    Yields nothing where systemd does not run the machine or does not answer.
    """
    program = shutil.which("systemctl")
    if program is None or not BOOTED.is_dir():
        return
    systemctl = [program, *(["--user"] if own else [])]
    shown = [*systemctl, "show", f"--property={','.join(_PROPERTIES)}", *units]
    done = subprocess.run(shown, capture_output=True, text=True, check=False)
    if done.returncode:
        return
    user = " --user" if own else ""
    for block in done.stdout.strip().split("\n\n"):
        unit = dict(line.partition("=")[::2] for line in block.splitlines())
        name = unit.get("Id", "")
        why = f"`journalctl{user} -u {name}` says why"
        if unit.get("ActiveState") != "active":
            yield f"{name} does not run ({unit.get('ActiveState')}): `systemctl{user} start {name}`; {why}"
        elif (restarts := int(unit["NRestarts"])) >= RESTARTS and _age_s(unit) < RECENT_S:
            yield f"{name} ends again and again (started {restarts} times anew, last {_age_s(unit):.0f} s ago): {why}"


def _age_s(unit: dict[str, str]) -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC) - int(unit["ActiveEnterTimestampMonotonic"]) / 1e6
