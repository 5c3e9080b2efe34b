"""A moment of the box as lines of text; pure functions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from torchyard.api import Job, Node, QueueEntry
from torchyard.cli import format as shown
from torchyard.cli import loglines
from torchyard.cli.box import device_row
from torchyard.cli.format import status
from torchyard.cli.terminal import Part, joined, styled
from torchyard.cli.top.feed import MOST_JOBS
from torchyard.cli.top.snapshot import BoxSnapshot, LogTail, Row, Selection, job_id
from torchyard.quantities import format_duration, format_size

#: Lines of the log in a printed picture.
PRINTED_LINES = 20
#: Columns of a device: kind and index, name, memory, use; the rest is its jobs and their users.
DEVICE = (7, 14, 22, 4)
#: Columns of a job: mark, number, user, state, GPUs, time; the rest is its name and how far it is.
JOB = (1, 5, 9, 11, 4, 8)
#: Part of the rest that a device's jobs, and a job's name, have.
DEVICE_JOBS, JOB_NAME = 0.65, 0.42
AWAY = Style(color="bright_black", bold=False)


@dataclass(frozen=True, kw_only=True)
class BoxLine:
    """A line of the box; what is `free` goes first where room is short."""

    text: Text
    free: bool = False


def picture(snapshot: BoxSnapshot, choice: Selection, *, away: bool, width: int, height: int) -> list[Text]:
    """Exactly as many lines as the terminal has; grey while the service is away."""
    rows, box = snapshot.rows, _box(snapshot.nodes, snapshot, width)
    room = max(0, height - 2)
    cards = min(len(box), max(2, room * 9 // 20))
    listed = min(len(rows) + 1, max(3, room - cards - max(6, room // 3)))
    first = _first(choice.place, len(rows), listed - 1)
    part = rows[first : first + listed - 1]
    body = [*_fit(box, cards), *_jobs(part, snapshot, choice, width)]
    body += _log(snapshot, choice, max(0, room - len(body)))
    body = [*body[:room], *[Text()] * (room - len(body))]
    if away:
        body = [_grey(line) for line in body]
    lines = [_header(snapshot, away=away), *body, _footer(first, len(part), len(rows))]
    return [_cut(line, width) for line in lines[:height]]


def whole(snapshot: BoxSnapshot, choice: Selection, *, width: int) -> list[Text]:
    """All lines, for a reader without a screen."""
    box = [line.text for line in _box(snapshot.nodes, snapshot, width)]
    jobs = _jobs(snapshot.rows, snapshot, Selection(), width)
    lines = [_header(snapshot, away=False), *box, *jobs, *_log(snapshot, choice, PRINTED_LINES)]
    for line in lines:
        line.rstrip()
    return lines


def _header(snapshot: BoxSnapshot, *, away: bool) -> Text:
    moment = snapshot.at.astimezone()
    if away:
        return joined([("yard top", "bold"), "  ", (f"reconnecting, data from {moment:%H:%M}", "bold red")])
    counts = f"{_count(len(snapshot.jobs))} running, {_count(len(snapshot.rows) - len(snapshot.jobs))} waiting"
    return joined([("yard top", "bold"), f"  {counts}  ", (f"{moment:%H:%M:%S}", "dim")])


def _count(number: int) -> str:
    return f"{number}+" if number >= MOST_JOBS else str(number)


def _footer(first: int, listed: int, count: int) -> Text:
    place = f"   jobs {first + 1}-{first + listed} of {count}" if listed < count else ""
    return styled(f"up/down choose a job   q leave{place}", "dim")


# The box


def _box(nodes: Sequence[Node], snapshot: BoxSnapshot, width: int) -> list[BoxLine]:
    if not nodes:
        return [BoxLine(text=styled("no node has registered: `yard up`, or `yard nodes --invite NODE`", "yellow"))]
    return [line for node in nodes for line in _node(node, snapshot, width)]


def _node(node: Node, snapshot: BoxSnapshot, width: int) -> Iterable[BoxLine]:
    gone = node.state == "unreachable"
    work = " for maintenance" if node.maintenance else ""
    seen = f", seen {shown.ago(node.last_seen_at, snapshot.at)}" if gone else ""
    facts = f"  {shown.capacity(node)}, {format_size(node.disk_free)} of disk free"
    state = (f"{node.state}{work}{seen}", shown.STYLES.get(node.state, "red"))
    yield BoxLine(text=joined([(node.name, "bold"), " ", state, "" if gone else facts]))
    idle = {index: each.message for each in snapshot.idle if each.node == node.name for index in each.devices}
    for device in node.devices:
        kind, name, memory, use, *held = device_row(device)
        measured = ("", "") if gone else (memory, use)  # what was true minutes ago is not known now
        why = None if device.holders else idle.get(device.index)
        last = _two(held, width, DEVICE, DEVICE_JOBS) if why is None else _rest(f"idle: {why}", width, DEVICE)
        cells = _cells((kind, name, *measured), DEVICE) + last
        yield BoxLine(text=_row(cells), free=not device.holders and device.unusable is None)
    for offender in node.offenders:
        yield BoxLine(text=styled(offender, "red"))


def _fit(lines: Sequence[BoxLine], height: int) -> list[Text]:
    """Lines of devices, as many as there is room for, those of free devices last."""
    if len(lines) <= height:
        return [line.text for line in lines]
    kept = sorted(sorted(range(len(lines)), key=lambda at: lines[at].free)[: height - 1])
    left = [line for at, line in enumerate(lines) if at not in kept]
    free = sum(line.free for line in left)
    return [*(lines[at].text for at in kept), styled(f"and {len(left)} more, {free} of them free", "dim")]


# The jobs


def _jobs(rows: Sequence[Row], snapshot: BoxSnapshot, choice: Selection, width: int) -> list[Text]:
    heading = _columns(("", "JOB", "USER", "STATE", "GPUS", "TIME"), "NAME", "", width)
    heading.stylize("dim")
    return [heading, *(_job(row, snapshot, choice, width) for row in rows)]


def _job(row: Row, snapshot: BoxSnapshot, choice: Selection, width: int) -> Text:
    state, time, told = _running(row, snapshot) if isinstance(row, Job) else _waiting(row, snapshot)
    chosen = choice.job == job_id(row)
    cells = (">" if chosen else "", str(row.number), row.user, state, str(row.gpus), time)
    line = _columns(cells, row.name, told, width)
    if chosen:
        line.stylize("reverse")
    elif isinstance(row, QueueEntry):
        line.stylize("dim")
    return line


def _columns(fixed: Iterable[Part], name: str, told: Part, width: int) -> Text:
    mark, number, *others = _cells(fixed, JOB)
    shown_name, shown_told = _two((name, told), width, JOB, JOB_NAME)
    return _row((mark, number, shown_name, *others, shown_told))


def _running(job: Job, snapshot: BoxSnapshot) -> tuple[Text, str, Text]:
    return shown.state(job), shown.elapsed(job, snapshot.at), status(job)


def _waiting(entry: QueueEntry, snapshot: BoxSnapshot) -> tuple[Text, str, Text]:
    state = styled("held" if entry.held else "queued", shown.STYLES["queued"])
    return state, _starts(entry, snapshot), styled(shown.message(entry.reason), "")


def _starts(entry: QueueEntry, snapshot: BoxSnapshot) -> str:
    if entry.expected_start_at is None:
        return ""
    return f"in {format_duration(max(60.0, (entry.expected_start_at - snapshot.at).total_seconds() // 60 * 60))}"


def _first(place: int, count: int, room: int) -> int:
    """The first row of a window with the chosen one about in the middle."""
    return max(0, min(place - room // 2, count - room))


# The log


def _log(snapshot: BoxSnapshot, choice: Selection, height: int) -> list[Text]:
    """A heading and the last lines of the chosen job's log, or what it waits for."""
    row = snapshot.rows[choice.place] if choice.job is not None else None
    if row is None:
        return [styled("no jobs: `yard run -- python train.py` submits one", "dim")]
    name = f"{row.number} {row.name}"
    if isinstance(row, Job):
        where = f", on {shown.devices(row.devices)}" if row.devices else ""
        heading = styled(f"log of {name}, rank 0{where}  {shown.latest(row.latest)}", "")
        told = _end(snapshot.log, row.id)
    else:
        heading, told = styled(f"job {name} waits", ""), [shown.message(row.reason)]
    heading.stylize("bold")
    last = told[len(told) - min(len(told), max(0, height - 1)) :]
    return [heading, *(styled(line, "") for line in last)]


def _end(log: LogTail | None, job: str) -> list[str]:
    if log is None or log.job != job:
        return ["…"]
    readable = log.data.decode(errors="replace").encode()
    return list(loglines.lines([readable])) or ["nothing is in it yet"]


# Lines


def _row(cells: Iterable[Text]) -> Text:
    return joined(cells, between=" ")


def _cells(values: Iterable[Part], widths: Iterable[int]) -> list[Text]:
    return [_cell(value, width) for value, width in zip(values, widths, strict=True)]


def _two(values: Iterable[Part], width: int, taken: Sequence[int], share: float) -> list[Text]:
    """The last two cells, which share what the others leave."""
    rest = max(8, width - sum(taken) - len(taken) - 1)
    first = int(rest * share)
    return _cells(values, (first, rest - first))


def _rest(value: str, width: int, taken: Sequence[int]) -> list[Text]:
    """The last cell, which has what the others leave."""
    return [_cell((value, "dim"), max(8, width - sum(taken) - len(taken)))]


def _cell(value: Part, width: int) -> Text:
    return _cut(joined([value]), width, pad=True)


def _cut(text: Text, width: int, *, pad: bool = False) -> Text:
    """One line of at most so many columns."""
    cut = text.copy()
    cut.plain = cut.plain.rstrip("\n").translate({ord("\n"): " "})
    cut.expand_tabs(8)
    cut.truncate(width, overflow="ellipsis", pad=pad)
    cut.no_wrap, cut.overflow = True, "crop"
    return cut


def _grey(line: Text) -> Text:
    grey = line.copy()
    grey.stylize(AWAY)
    return grey
