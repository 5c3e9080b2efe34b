"""``config``: the settings of service and worker."""

import importlib
import json as json_
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import typer

from torchyard.cli import common, extras

#: Seconds that the service may take to read its settings.
RELOAD_S = 10.0


def register(app: typer.Typer) -> None:
    """Add the commands."""
    config = typer.Typer(no_args_is_help=True, help="Check the settings, and have the service read them anew.")
    config.command()(check)
    config.command()(reload)
    app.add_typer(config, name="config")


def check(json: common.Json = False) -> None:
    """Check settings file and variables: unknown names, wrong values, contradictions, files that lie open.

    Exits with 1 if there is a finding.
    """
    from torchyard import settingsfile

    found = findings()
    if json:
        common.print_json({"file": str(settingsfile.path() or ""), "findings": found})
    else:
        common.note(f"settings file: {settingsfile.path() or 'none'}")
        for each in found:
            common.line(each)
        common.note(f"{len(found)} to mend" if found else "nothing to mend")
    if found:
        raise typer.Exit(1)


def findings() -> list[str]:
    """Return what is wrong with the settings of this machine's service and worker, as far as they are installed."""
    from torchyard import settingsfile

    return list(dict.fromkeys(each for extra in settingsfile.SECTIONS for each in _findings(extra)))


def _findings(extra: str) -> Iterator[str]:
    from torchyard.exceptions import MissingExtraError

    try:
        extras.require("config", extra)
    except MissingExtraError:
        return
    # Loaded by its name: the core is installed without service and worker, and imports nothing of them.
    yield from importlib.import_module(f"{extra}.settings").problems()


def reload(json: common.Json = False) -> None:
    """Have this machine's service read its settings anew; says which count now, and which need a restart."""
    from torchyard import home
    from torchyard.exceptions import NotRunningError, TorchYardError

    known = home.read_address()
    if known is None or not Path(f"/proc/{known['pid']}").exists():
        raise NotRunningError
    file = home.root() / "reload.json"
    file.unlink(missing_ok=True)
    os.kill(int(known["pid"]), signal.SIGHUP)
    deadline = time.monotonic() + RELOAD_S
    while not file.exists():
        if time.monotonic() > deadline:
            raise TorchYardError(f"the service (process {known['pid']}) has not answered: see its log")
        time.sleep(0.05)
    outcome = json_.loads(file.read_text())
    if "error" in outcome:
        raise TorchYardError(f"the settings stay as they were:\n{outcome['error']}")
    if json:
        common.print_json(outcome)
        return
    common.line(f"changed: {', '.join(outcome['changed']) or 'nothing'}")
    if outcome["restart"]:
        common.line(f"counts after a restart: {', '.join(outcome['restart'])}")
