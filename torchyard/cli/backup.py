"""``backup`` and ``restore``: the service's database and files, to and from another place."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from torchyard.cli import common, extras


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(backup)
    app.command()(restore)


def backup(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DIR", help="Archive (.tar, .tar.gz, .tgz), or a folder, which is brought up to date."
        ),
    ],
    with_keys: Annotated[
        bool, typer.Option("--with-keys", help="Take the keys of stored secrets in; keep the backup as safe as them.")
    ] = False,
    json: common.Json = False,
) -> None:
    """Copy database, files of jobs, logs and settings while everything runs; on the service's machine, as its account.

    A folder on the store's own disk costs no space for files of jobs, which are linked, and protects against mistakes;
    one on another disk protects against the loss of this one.
    """
    extras.require("backup", "service")
    _run("create", target, {"--with-keys": with_keys, "--json": json})


def restore(
    source: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="What `yard backup` has made.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Move what is there aside, where the home is not empty.")
    ] = False,
    json: common.Json = False,
) -> None:
    """Put a backup in the place of this home's service, which must not run; its tables are brought up to date.

    Jobs that ran when the backup was made go on from their newest checkpoints, as after a crash.
    """
    extras.require("restore", "service")
    _run("restore", source, {"--replace": replace, "--json": json})


def _run(command: str, path: Path, flags: dict[str, bool]) -> None:
    # -P: a folder named `service` where the person happens to be is not ours.
    words = [sys.executable, "-P", "-m", "service.backup", command, *(flag for flag, on in flags.items() if on)]
    code = subprocess.run([*words, "--", str(path)], check=False).returncode
    if code:
        raise typer.Exit(code)
