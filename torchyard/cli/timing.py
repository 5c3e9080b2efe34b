"""The start of an attempt as bars, one a stage, each where it lay in the whole (``show --timing``)."""

from collections.abc import Iterator
from typing import NamedTuple

from torchyard.api import StartTiming
from torchyard.cli import common
from torchyard.wire import PreloadedModules

#: Characters of the whole.
WIDTH = 40
#: Packages that were loaded ahead and are named.
NAMED = 5
#: An eighth more of a character each.
_EIGHTHS = " ▏▎▍▌▋▊▉█"


class StageLine(NamedTuple):
    """One stage: its name, its bar, milliseconds and its share of the whole."""

    name: str
    bar: str
    ms: str
    share: str


def put(start: StartTiming) -> None:
    """Print the start of an attempt."""
    common.put((f"attempt {start.attempt}", "bold"), f"  {_total(start)}", (f"  {how(start)}", "dim"))
    if start.preloaded is not None:
        common.put((f"  {loaded(start.preloaded)}", "dim"))
    for line in lines(start):
        common.put((f"  {line.name:<14}", "dim"), f"{line.ms:>10}  {line.share:>5}  ", (line.bar, "cyan"))
    if start.clock_skew_ms:
        common.put((f"  {skew(start)}", "dim"))


def how(start: StartTiming) -> str:
    """Tell whether it was warm or cold, and why."""
    if start.warm is None:
        return ""
    word = "warm" if start.warm else "cold"
    return f"{word} start: {start.cold_reason}" if start.cold_reason else f"{word} start"


def loaded(found: PreloadedModules) -> str:
    """Tell what was loaded ahead, and what that saves."""
    named, rest = found.packages[:NAMED], len(found.packages) - NAMED
    names = ", ".join([*named, f"{rest} more"] if rest > 0 else named)
    modules = "1 module" if found.modules == 1 else f"{found.modules:,} modules"
    return f"loaded ahead: {names} ({modules}, whose import took {found.seconds:,.1f} s)"


def skew(start: StartTiming) -> str:
    """Tell how far the node's clock was set right."""
    ahead = start.clock_skew_ms or 0.0
    side = "ahead of" if ahead > 0 else "behind"
    return f"the node's clock is {abs(ahead):.1f} ms {side} the service's (± {start.clock_skew_error_ms:.1f} ms)"


def lines(start: StartTiming) -> Iterator[StageLine]:
    """Yield a line for each stage."""
    whole = _whole(start) or 1.0
    for stage in start.stages:
        bar = bar_of(stage.at_ms / whole, stage.ms / whole)
        yield StageLine(stage.name.value, bar, _ms(stage.ms), f"{100 * stage.ms / whole:.0f} %")


def bar_of(begin: float, share: float, width: int = WIDTH) -> str:
    """Return a bar that begins at a part of the width and takes a share of it; never nothing."""
    first = min(int(begin * width), width - 1)
    whole, rest = divmod(max(round(share * width * 8), 1), 8)
    return (" " * first + "█" * whole + _EIGHTHS[rest]).rstrip()


def _whole(start: StartTiming) -> float:
    return start.stages[-1].at_ms + start.stages[-1].ms if start.stages else 0.0


def _total(start: StartTiming) -> str:
    last = start.stages[-1].name.value if start.stages else "request"
    return f"{_ms(_whole(start))} from the {start.stages[0].name.value if start.stages else last} to: {last}"


def _ms(ms: float) -> str:
    return f"{ms:,.1f} ms" if ms < 100 else f"{ms:,.0f} ms"
