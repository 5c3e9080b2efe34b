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
    join: Annotated[
        str | None, typer.Option(metavar="URL", help="As root: install the worker of a node alone, for this service.")
    ] = None,
    join_token: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="With --join: the invitation (`yard nodes --invite`).")
    ] = None,
    name: Annotated[str | None, typer.Option(help="With --join: the node's name; else this machine's.")] = None,
) -> None:
    """Install this machine for systemd: accounts, folders, settings and units; then says how to start them.

    As root: service and Redis as an account of their own, the worker as root, which starts jobs as their owners'
    accounts. Else your own stack, without root. Settings that are there stay; `yard doctor` verifies all of it.
    """
    from torchyard.stack import install as installation

    extras.require("install", "worker" if join else "box")
    made = _node(join, name) if join else plan()
    for step in installation.steps(made):
        common.line(step)
    if dry_run:
        for unit in made.units:
            common.line(f"\n# {unit.path}\n{unit.text}", end="")
        return
    if join and join_token:
        _join(join, join_token, name)
    installation.apply(made)
    if said := installation.verified(made.units):
        common.warn(said)
    common.note(f"start it: {made.start}")


def _node(url: str, name: str | None) -> "Plan":
    from torchyard.stack import install as installation

    if os.geteuid() != 0:
        raise typer.BadParameter("--join installs for the whole machine: as root (`sudo yard install --join …`)")
    return installation.node(Path(sys.executable), url, name=name)


def _join(url: str, invitation: str, name: str | None) -> None:
    from torchyard import home
    from torchyard.client import joining
    from torchyard.stack.install import NODE_TOKEN

    node = name or home.node_name()
    if joining.join(url, invitation, node, NODE_TOKEN):
        common.note(f"joined as node {node}; its token is in {NODE_TOKEN}")


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
    return installation.of_machine(python, server)
