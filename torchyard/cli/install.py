"""``install``: accounts, folders, settings and units of this machine, for systemd."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common, extras

if TYPE_CHECKING:
    from torchyard.stack.install import Plan


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(install)


def install(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be made.")] = False,
) -> None:
    """Install this machine for systemd: accounts, folders, settings and units; then says how to start them.

    As root: service and Redis as an account of their own, the worker as root, which starts jobs as their owners'
    accounts. Else your own stack, without root. Settings that are there stay; `yard doctor` verifies all of it.
    """
    from torchyard.stack import install as installation

    extras.require("install", "box")
    made = plan()
    for step in installation.steps(made):
        common.line(step)
    if dry_run:
        for unit in made.units:
            common.line(f"\n# {unit.path}\n{unit.text}", end="")
        return
    installation.apply(made)
    if said := installation.verified(made.units):
        common.warn(said)
    common.note(f"start it: {made.start}")


def plan() -> "Plan":
    """The installation that this account would make."""
    from torchyard import home
    from torchyard.exceptions import NoRedisError
    from torchyard.stack import install as installation
    from torchyard.stack import redis

    python = Path(sys.executable)
    if os.geteuid() != 0:
        config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        return installation.person(python, home.root(), config / "systemd" / "user")
    try:
        server = redis.find_executable()
    except NoRedisError:
        server = "/usr/bin/redis-server"
    return installation.machine(python, server)
