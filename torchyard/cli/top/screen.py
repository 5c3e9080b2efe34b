"""The full screen: draws pictures, follows the keys, and leaves the terminal as it was."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from rich.console import Group
from rich.live import Live

from torchyard.cli import common
from torchyard.cli.top import view
from torchyard.cli.top.feed import Feed
from torchyard.cli.top.keys import Keys, unbuffered
from torchyard.cli.top.snapshot import BoxSnapshot, Selection

#: Seconds until a new picture or another size of the terminal is seen.
LOOK_S = 0.2
STEPS = {"up": -1, "down": 1}


def possible() -> bool:
    """True where there is a terminal to draw on and to read keys from."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not common.console().is_dumb_terminal


def print_once(snapshot: BoxSnapshot) -> None:
    """Print one picture, as long as it needs."""
    choice = Selection().among(snapshot.rows)
    for line in view.whole(snapshot, choice, width=common.console().width):
        common.put(line)


def show(feed: Feed) -> None:
    """Show the pictures of a feed until the person leaves."""
    with feed:
        while _until_left(feed) == "suspend":
            os.kill(0, signal.SIGTSTP)


def _until_left(feed: Feed) -> str:
    console, keys, drawn = common.console(), Keys(), None
    screen = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    try:
        with _ended_by_signals(), unbuffered(), screen:
            while True:
                snapshot, away, size = feed.snapshot, feed.away, console.size
                feed.choice = feed.choice.among(snapshot.rows)
                picture = (id(snapshot), away, size, feed.choice)
                if picture != drawn:
                    lines = view.picture(snapshot, feed.choice, away=away, width=size.width, height=size.height)
                    screen.update(Group(*lines), refresh=True)
                    drawn = picture
                for key in keys.read(LOOK_S):
                    if key not in STEPS:
                        return key
                    feed.choice = feed.choice.moved(snapshot.rows, STEPS[key])
    except KeyboardInterrupt:
        return "leave"


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Signals that would end the process at once leave the screen first."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
