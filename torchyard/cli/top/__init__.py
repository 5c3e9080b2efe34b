"""``top``: the box live in a terminal."""

import typer

from torchyard.cli import common


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(top)


def top() -> None:
    """Watch the box: its devices and who holds them, the jobs, and the log of the chosen one.

    Up and down (or k and j) choose a job, q leaves. Into a pipe one picture is printed.
    """
    from torchyard.cli.top import screen
    from torchyard.cli.top.feed import Feed, look
    from torchyard.cli.top.snapshot import Selection

    client = common.connect()
    first = look(client, Selection())
    if screen.possible():
        screen.show(Feed(client, first))
    else:
        with client:
            screen.print_once(first)
