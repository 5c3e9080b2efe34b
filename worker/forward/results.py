"""Results: how the attempt ended, with the failing rank's own words."""

import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from torchyard import wire
from torchyard.failures import fingerprints, recognition
from torchyard.ids import now_us
from torchyard.injob import layout
from worker.attempts import opening
from worker.shim import files, table

#: Bytes of the log's end that are searched, and bytes of it that go into the result.
TAIL: Final = 256 * 1024
MAX_TRACEBACK: Final = 16 * 1024
LAST_LINES: Final = 20
#: Lines at the end that are searched for a known failure: stacks of C++ are long.
LAST_SEARCHED: Final = 200

_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_HEADER: Final = "Traceback (most recent call last):"
#: torch.distributed puts the rank before each line of an uncaught exception.
_PREFIX: Final = re.compile(r"\[rank\d+\]:\s?")
#: What precedes the traceback of a process that `torch.multiprocessing` has started.
_OF_CHILD: Final = re.compile(
    r"torch\.multiprocessing\.spawn\.Process(?:Raised|Exited)Exception\b|Process (?:\w+Process|Process)-\d+:$"
)
#: An exception by which torch.distributed tells that ranks cannot meet.
_DISTRIBUTED: Final = re.compile(r"torch\.distributed\.Dist\w*Error\b")
#: Exceptions by which a launcher tells that what it had started has failed: `torchrun` in a script of the user's, and
#: `accelerate launch`.
_OF_LAUNCHER: Final = re.compile(
    r"torch\.distributed\.elastic\.multiprocessing\.errors\.ChildFailedError:|subprocess\.CalledProcessError: "
)
#: The rank, and how it ended, that torchrun names as the first that failed.
_ROOT_CAUSE: Final = re.compile(
    r"^Root Cause .*\n(?:.*\n){1,8}? *rank +: (\d+) .*\n *exitcode +: (-?\d+)", re.MULTILINE
)
_CHAINED: Final = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)

logger = logging.getLogger(__name__)


def complete(
    result: wire.Result,
    folder: Path,
    *,
    dropped_bytes: int,
    dropped_records: int,
    first_rank: int = 0,
    ranked: bool = False,
    tracker_runs: Mapping[str, list[str]] | None = None,
) -> wire.Result:
    """The shim's result with what only the agent knows: traceback, trackers' runs, and what it had to drop.

    `ranked`: a launcher has started one process per device.
    """
    log = log_of_failure(result, folder, first_rank)
    known = recognise(log) if log else None
    if log and ranked and _of_own_processes(log, known):
        known = recognition.RecognisedFailure(name=fingerprints.OWN_PROCESSES)
    unsaid = fingerprints.DISK_FULL if _speechless(result, log) else None
    return result.model_copy(
        update={
            "traceback": extract(log) if log else None,
            "fingerprint": result.fingerprint or (known.name if known else unsaid),
            "subject": known.subject if known else None,
            "dropped_log_bytes": result.dropped_log_bytes + dropped_bytes,
            "dropped_records": result.dropped_records + dropped_records,
            "tracker_runs": tracker_runs,
        }
    )


def _of_own_processes(log: str, known: recognition.RecognisedFailure | None) -> bool:
    """Return whether processes that a rank has started failed to meet: those of each rank have the same numbers."""
    unmet = known is not None and known.name in {fingerprints.LOST_RANK, fingerprints.ADDRESS_IN_USE}
    lines = [_plain(line) for line in _lines(log)]
    unmet = unmet or any(map(_DISTRIBUTED.match, lines[_last_traceback(lines)]))
    return unmet and any(map(_OF_CHILD.match, lines))


def _speechless(result: wire.Result, log: str | None) -> bool:
    """Return whether a process failed on a full disk and its log has no reason: a `print` that fails ends a program,
    and what it says of that cannot be written either.
    """
    failed = bool(result.exit_code) and result.stop is None and result.kind is wire.ResultKind.EXITED
    return failed and result.disk_full and (log is None or _HEADER not in log)


def moment(result: wire.Result, launch: dict[str, Any]) -> dict[str, int]:
    """Return when the node tells of the result, by its own clock, and how long it has held the devices."""
    claimed = launch.get("claimed_steady_us")
    if claimed is None or launch.get("boot_id") != table.boot_id():
        return {"sent_us": now_us()}
    held_us = files.steady_us() - claimed
    ended = result.held_us
    return {"held_us": held_us, "sent_us": now_us() if ended is None else result.ended_us + held_us - ended}


def blame(result: wire.Result, xid: int | None) -> wire.Result:
    """The result, with a failure put down to the fault that a GPU of the attempt has had."""
    failed = result.exit_code != 0 or result.failed_rank is not None
    if xid is None or not failed or result.stop is not None or result.kind is not wire.ResultKind.EXITED:
        return result
    return result.model_copy(update={"fingerprint": fingerprints.GPU_FAULT, "subject": f"Xid {xid}"})


def log_of_failure(result: wire.Result, folder: Path, first_rank: int = 0) -> str | None:
    """The end of the failing rank's log; None for a success, a stop that was asked for, or when no process ran."""
    failed = result.exit_code != 0 or result.failed_rank is not None
    if not failed or result.stop is not None or result.kind in {wire.ResultKind.UNUSABLE, wire.ResultKind.LOST}:
        return None
    rank = layout.rank_log(first_rank if result.failed_rank is None else result.failed_rank)
    own, launchers = (_tail(folder / layout.LOGS / name) for name in (rank, layout.LAUNCHER_LOG))
    # Where no rank has failed, torchrun itself has.
    if not own.strip() or (result.failed_rank is None and _HEADER in _lines(launchers)):
        own = launchers
    return own if own.strip() else None


def extract(text: str) -> str:
    """The last traceback of a log with those it is chained to, else the last lines; at most `MAX_TRACEBACK` bytes.

    A launcher's own comes last and gives no reason: it is that of the process which has failed.
    """
    lines = _of_failed_process(_lines(text))
    block = [_plain(line) for line in lines[_last_traceback(lines)]] or _last_lines(lines)
    return "\n".join(block).encode()[-MAX_TRACEBACK:].decode(errors="ignore")


def recognise(text: str) -> recognition.RecognisedFailure | None:
    """The failure that a log ends with: by what was said after its last traceback (as NCCL's watchdog does, from C++),
    else by that. What an earlier traceback says was mended by the job itself.
    """
    lines = [_plain(line) for line in _of_failed_process(_lines(text))]
    block = _last_traceback(lines)
    after = lines[block.stop :][-LAST_SEARCHED:]
    return recognition.recognise("\n".join(after)) or recognition.recognise("\n".join(lines[block]))


def _lines(text: str) -> list[str]:
    return [line.rsplit("\r", 1)[-1].rstrip() for line in clean(text).replace("\r\n", "\n").split("\n")]


def clean(text: str) -> str:
    """Without terminal sequences and other control characters (NUL is refused by PostgreSQL)."""
    text = _ANSI.sub("", text)
    return "".join(character for character in text if character in "\n\t\r" or character >= " ")


def _of_failed_process(lines: list[str]) -> list[str]:
    """Return the lines without a launcher's traceback, and without other ranks' where it names the one that failed
    first; all of them where no launcher speaks last, or where the process had no traceback, as one that was killed.
    """
    block = _last_traceback(lines)
    raised = next((number for number in range(block.start, block.stop) if _OF_LAUNCHER.match(lines[number])), None)
    if raised is None:
        return lines
    before = lines[: block.start]
    root = _ROOT_CAUSE.search("\n".join(lines[raised:]))
    if root:
        of_others = re.compile(rf"\[rank(?!{root[1]}\])\d+\]:|[IWE]\d{{4}} [^\]]*torch/distributed/elastic/")
        before = [line for line in before if not of_others.match(line)]
        told = int(root[2]) > 0 and _last_traceback(before) != slice(0, 0)
    else:
        # Without a summary only what stands right before belongs to it: an earlier one was mended by the job itself.
        told = _last_traceback(before).stop == len(before) > 0
    return before if told else lines


def _last_traceback(lines: list[str]) -> slice:
    """Return its lines; an empty slice at the beginning if there is none."""
    headers = [number for number, line in enumerate(lines) if _plain(line) == _HEADER]
    if not headers:
        return slice(0, 0)
    first = last = headers.pop()
    while headers and _is_chained(lines[headers[-1] : first]):
        first = headers.pop()
    return slice(first, _end_of_block(lines, last))


def _is_chained(between: list[str]) -> bool:
    said = [plain for line in between if (plain := _plain(line))]
    return bool(said) and said[-1] in _CHAINED


def _end_of_block(lines: list[str], header: int) -> int:
    """Number of the line after the exception: its message ends at an empty line or where the rank's prefix ends."""
    prefixed = _PREFIX.match(lines[header]) is not None
    in_message = False
    for number in range(header + 1, len(lines)):
        line = lines[number]
        plain = _plain(line)
        if (prefixed and not _PREFIX.match(line)) or (in_message and not plain):
            return number
        in_message = in_message or bool(plain and not plain[0].isspace())
    return len(lines)


def _plain(line: str) -> str:
    return _PREFIX.sub("", line, count=1) if _PREFIX.match(line) else line


def _last_lines(lines: list[str]) -> list[str]:
    return [line for line in lines if line][-LAST_LINES:]


def _tail(path: Path) -> str:
    try:
        with opening.plain(path) as descriptor:
            size = os.fstat(descriptor).st_size
            return os.pread(descriptor, TAIL, max(0, size - TAIL)).decode(errors="replace")
    except OSError as error:
        logger.debug("%s has no tail: %s", path, error)
        return ""
