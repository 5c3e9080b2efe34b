"""``secrets``: set, list and remove values that jobs get and nobody reads."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common

if TYPE_CHECKING:
    from torchyard import api

SecretName = Annotated[str, typer.Argument(metavar="NAME", help="The variable that jobs get, such as WANDB_API_KEY.")]
Project = Annotated[str | None, typer.Option(help="Of this project, for its members, instead of your own.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    secrets = typer.Typer(
        help="Set, list and remove keys and passwords for jobs; a spec names them: `secrets: [WANDB_API_KEY]`.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    secrets.command("set")(change)
    secrets.command("ls")(ls)
    secrets.command("rm")(rm)
    app.add_typer(secrets, name="secrets")


def change(name: SecretName, project: Project = None, json: common.Json = False) -> None:
    """Set a secret. The value is asked for without echo, or read from standard input: never typed as an argument."""
    value = _value(name)
    with common.connect() as client:
        made = client.set_secret(name, value, project=project)
    if json:
        common.print_json(made)
    else:
        common.note(
            f"{_whose(project)} {name} is set; a job gets it by `secrets: [{name}]`, or yard run --secret {name}"
        )


def ls(json: common.Json = False) -> None:
    """List your own secrets and those of your projects; nobody sees the values again."""
    with common.connect() as client:
        found = client.secrets()
    if json:
        common.print_json(found)
        return
    with common.table("NAME", "OF", "SET BY", "CHANGED", "LAST USED") as table:
        for secret in found:
            scope = f"project {secret.project}" if secret.project else "you"
            table.add_row(secret.name, scope, secret.set_by, f"{secret.changed_at:%Y-%m-%d}", _used(secret))


def _used(secret: "api.Secret") -> str:
    return f"{secret.used_at:%Y-%m-%d} by job {secret.used_by[0]}" if secret.used_at else "-"


def rm(name: SecretName, project: Project = None) -> None:
    """Remove a secret. Jobs that name it wait until it is set again; those that run keep what they have."""
    with common.connect() as client:
        client.remove_secret(name, project=project)
    common.note(f"{_whose(project)} {name} is removed; jobs that name it do not start before it is set again")


def _value(name: str) -> str:
    """Return what is typed or piped; the line end of a pipe, as `echo` writes it, is no part of it."""
    if sys.stdin.isatty():
        return str(typer.prompt(f"Value of {name} (not shown)", hide_input=True, err=True))
    from torchyard.exceptions import SpecError

    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise SpecError(
            f"the value is not UTF-8 text: encode it, such as `base64 FILE | yard secrets set {name}`, and let the job "
            "decode it"
        ) from error


def _whose(project: str | None) -> str:
    return f"project {project}'s secret" if project else "your secret"
