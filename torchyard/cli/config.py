"""``config``: the settings of service and worker."""

import importlib
import json as json_
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from torchyard.cli import common, extras

if TYPE_CHECKING:
    from torchyard.stack.doctor import Floors, Stores

#: Seconds that a program may take to read its settings.
RELOAD_S = 10.0


def register(app: typer.Typer) -> None:
    """Add the commands."""
    config = typer.Typer(no_args_is_help=True, help="Check the settings, and have service and worker read them anew.")
    config.command()(check)
    config.command()(reload)
    app.add_typer(config, name="config")


def check(json: common.Json = False) -> None:
    """Check settings file and variables: unknown names, wrong values, contradictions, files that lie open.

    Says which settings differ from those that service and worker of this machine run with, and whether a reload or a
    restart has them count. Exits with 1 if there is a finding.
    """
    from torchyard import settingsfile

    found = findings()
    waiting = {} if found else pending()
    if json:
        common.print_json({"file": str(settingsfile.path() or ""), "findings": found, "pending": waiting})
    else:
        common.note(f"settings file: {settingsfile.path() or 'none'}")
        for each in found:
            common.line(each)
        for program, when in waiting.items():
            for name in when["reload"]:
                common.line(f"{program}.{name}: the {program} runs with another value: `yard config reload`")
            for name in when["restart"]:
                common.line(f"{program}.{name}: the {program} runs with another value until it is restarted")
        common.note(f"{len(found)} to mend" if found else "nothing to mend")
    if found:
        raise typer.Exit(1)


def findings() -> list[str]:
    """Return what is wrong with the settings of this machine's service and worker, as far as they are installed."""
    from torchyard import settingsfile

    return list(dict.fromkeys(each for extra in settingsfile.SECTIONS for each in _findings(extra)))


def service_settings(options: Mapping[str, Any]) -> Any:
    """Return the settings that a service of this process would start with; raise StartError if one cannot be read."""
    from torchyard.exceptions import StartError

    try:
        return _settings("service").read().model_copy(update=dict(options))
    except (OSError, ValueError) as error:
        raise StartError(str(error)) from error


def stores() -> "Stores | None":
    """Return where the service of this machine keeps what it stores; None if it is not installed, or its settings
    cannot be read.
    """
    from torchyard.exceptions import MissingExtraError
    from torchyard.stack.doctor import Stores

    try:
        extras.require("config", "service")
        found = _settings("service").ServiceSettings.from_environment()
    except (MissingExtraError, ValueError):
        return None
    return Stores(found.data, found.secret_key)


def starts_redis() -> bool:
    """Return whether the stack of this machine starts a Redis of its own, as no setting names another; False if the
    service is not installed, or its settings cannot be read.
    """
    from torchyard.exceptions import MissingExtraError

    try:
        extras.require("config", "service")
        return "redis_url" not in _settings("service").read().model_fields_set
    except (MissingExtraError, ValueError):
        return False


def floors() -> "Floors":
    """Return how much disk service and worker of this machine keep free, by their settings as far as they can be
    read.
    """
    from torchyard.stack.doctor import Floors

    service, worker = _floor("service"), _floor("worker")
    service = Floors().service if service is None else service
    return Floors(service, service if worker is None else worker)


def _floor(extra: str) -> int | None:
    from torchyard.exceptions import MissingExtraError

    try:
        extras.require("config", extra)
        floor: int | None = _settings(extra).read().disk_floor
    except (MissingExtraError, ValueError):
        return None
    return floor


def pending() -> dict[str, dict[str, list[str]]]:
    """Return the settings that running programs of this machine have otherwise: those that a reload has count, and
    those that need a restart. A program whose settings this account may not see is told of and left out.
    """
    from torchyard import settings_in_use

    found = {}
    for program, pid, folder in _running():
        try:
            changes = settings_in_use.pending(folder, _settings(program).read())
        except PermissionError:
            common.note(f"what the {program} (process {pid}) runs with is another account's to know: run this as root")
        except FileNotFoundError:
            common.note(f"what the {program} (process {pid}) runs with is not known: it is older, or just starting")
        except LookupError as other:
            common.note(f"the {program} (process {pid}) reads {other.args[0]}: set TORCHYARD_SETTINGS as it has it")
        else:
            found[program] = {"reload": changes.at_once, "restart": changes.restart}
    return found


def _findings(extra: str) -> Iterator[str]:
    from torchyard.exceptions import MissingExtraError

    try:
        extras.require("config", extra)
    except MissingExtraError:
        return
    yield from _settings(extra).problems()


def _settings(extra: str) -> Any:
    # Loaded by its name: the core is installed without service and worker, and imports nothing of them.
    return importlib.import_module(f"{extra}.settings")


def reload(json: common.Json = False) -> None:
    """Have service and worker of this machine read their settings anew.

    Says which settings count now, and which need a restart. Other workers do so by SIGHUP.
    """
    from torchyard import home
    from torchyard.exceptions import NotRunningError

    running = list(_running())
    if not running:
        raise NotRunningError.here()
    outcomes = {}
    for program, pid, folder in running:
        outcomes[program] = reloaded(program, pid, folder / home.RELOAD_FILE)
    if json:
        common.print_json(outcomes)
        return
    for program, outcome in outcomes.items():
        common.line(f"{program}: changed: {', '.join(outcome['changed']) or 'nothing'}")
        if outcome["restart"]:
            common.line(f"{program}: counts after a restart: {', '.join(outcome['restart'])}")
        if "problem" in outcome:
            common.line(f"{program}: {outcome['problem']}")


def _running() -> Iterator[tuple[str, int, Path]]:
    """Yield service and worker of this machine as far as they run: process id, and folder of the outcome."""
    from torchyard import home

    known = home.read_address()
    if known is not None and Path(f"/proc/{known['pid']}").exists():
        yield "service", int(known["pid"]), home.root()
    worker = home.worker_pid()
    if worker is not None:
        yield "worker", worker, home.worker_folder()


def reloaded(program: str, pid: int, file: Path) -> dict[str, Any]:
    """Return what came of a reload; raise TorchYardError if nothing did."""
    from torchyard.exceptions import TorchYardError

    try:
        file.unlink(missing_ok=True)
        os.kill(pid, signal.SIGHUP)
    except PermissionError as error:
        raise TorchYardError(f"the {program} (process {pid}) is another account's: run this as root") from error
    except ProcessLookupError as error:
        raise TorchYardError(f"the {program} (process {pid}) has just ended: it reads them when it starts") from error
    deadline = time.monotonic() + RELOAD_S
    while not file.exists():
        if time.monotonic() > deadline:
            raise TorchYardError(f"the {program} (process {pid}) has not answered: see its log")
        time.sleep(0.05)
    outcome: dict[str, Any] = json_.loads(file.read_text())
    if "error" in outcome:
        raise TorchYardError(f"the settings of the {program} stay as they were:\n{outcome['error']}")
    return outcome
