"""Reports of what a job has written, in pieces that the service takes."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from torchyard import wire
from torchyard.wire import Root
from worker.attempts.tree import JobFile, Key

Item = TypeVar("Item")

#: Files in one report.
AT_ONCE: Final = 5_000


def pieces(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The items, as many at a time as one report holds."""
    return (items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE))


def stored(files: Sequence[tuple[JobFile, str]], *, saved: bool) -> wire.OutputReport:
    """Files that the store is to have, with their hashes."""
    output = [_ref(found, sha256) for found, sha256 in files if found.root is Root.OUTPUT]
    others = [_written(found, sha256) for found, sha256 in files if found.root is not Root.OUTPUT]
    return wire.OutputReport(files=output, written=others, saved=saved)


def staying(files: Sequence[JobFile], kept: str) -> wire.OutputReport:
    """Files that stay on the node, below the folder `kept`."""
    return wire.OutputReport(files=[], written=[_written(found, "", on_node=True) for found in files], kept=kept)


def _ref(found: JobFile, sha256: str) -> wire.FileRef:
    return wire.FileRef(path=found.path, size=found.size, sha256=sha256, mode=found.mode)


def _written(found: JobFile, sha256: str, *, on_node: bool = False) -> wire.WrittenFile:
    return wire.WrittenFile(
        path=found.path, size=found.size, sha256=sha256, mode=found.mode, root=found.root, on_node=on_node
    )


def halved(report: wire.OutputReport) -> list[wire.OutputReport]:
    """Return reports of the same files, each with fewer; none of a report that has one file."""
    parts = {name: part for name in ("files", "written", "deleted") if (part := getattr(report, name))}
    empty = report.model_copy(update={"files": [], "written": [], "deleted": []})
    if len(parts) > 1:
        return [empty.model_copy(update={name: part}) for name, part in parts.items()]
    return [
        empty.model_copy(update={name: half})
        for name, part in parts.items()
        if len(part) > 1
        for half in (part[: len(part) // 2], part[len(part) // 2 :])
    ]


def keys(report: wire.OutputReport) -> list[Key]:
    """The files of a report."""
    return [
        *((Root.OUTPUT, file.path) for file in report.files),
        *((file.root, file.path) for file in report.written),
        *((place.root, place.path) for place in report.deleted),
    ]
