"""``outputs``, and what ``run`` says of a job's files at its end."""

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common, terminal

if TYPE_CHECKING:
    from torchyard.api import Job, Output
    from torchyard.client.client import Client

#: Seconds between looks at a tree that grows.
LOOK_S = 2.0
#: Seconds that the end of `run` waits for the last files.
SETTLE_S = 10.0
HEADINGS = {"code": "working folder", "job": "beside the working folder", "output": "TORCHYARD_OUTPUT_DIR"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(outputs)


def outputs(
    job: common.JobRef,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show files as they come, until the job's end.")
    ] = False,
    json: common.Json = False,
) -> None:
    """List the files that a job has written: a tree with sizes, by node where there are several.

    While it runs, files appear once they have been still for a minute or so.
    """
    with common.connect() as client:
        if follow:
            _follow(client, job, json=json)
            return
        found, told = client.outputs(job, every=True), client.job(job)
    if json:
        common.print_json(found)
        return
    for line in tree(found):
        common.line(line)
    if told.spec.get("live"):
        common.note("live: the job writes in its own folder; only files in TORCHYARD_OUTPUT_DIR are kept by the queue")
    if not found:
        common.note("no files yet" if told.ended_at is None else "the job has left no files")
    elif waiting := sum(each.state == "on-node" for each in found):
        common.note(
            f"{waiting} on their node: `yard pull --kept {told.number}` brings them, `yard discard` removes them"
        )


def tree(files: "Iterable[Output]") -> Iterator[str]:
    """Lines of a listing: one heading for each folder of each node, then the files below their own folders."""
    groups: dict[tuple[int, str], list[Output]] = {}
    for file in files:
        groups.setdefault((file.node_rank, file.root), []).append(file)
    several = len({rank for rank, _ in groups}) > 1
    for (rank, root), members in sorted(groups.items()):
        node = f", node {members[0].node} (rank {rank})" if several else ""
        yield f"{HEADINGS[root]}{node}: {summary(members)}"
        yield from _below(members, depth=1)


def _below(files: "list[Output]", depth: int, prefix: str = "") -> Iterator[str]:
    folders: dict[str, list[Output]] = {}
    for file in sorted(files, key=lambda file: file.name):
        head, slash, _ = file.name[len(prefix) :].partition("/")
        folders.setdefault(head + slash, []).append(file)
    for name, members in folders.items():
        line = f"{'  ' * depth}{terminal.clean(name)}"
        if name.endswith("/"):
            yield f"{line:<44} {summary(members)}"
            yield from _below(members, depth + 1, prefix + name)
        else:
            yield f"{line:<44} {_state(members[0])}"


def _state(file: "Output") -> str:
    from torchyard.quantities import format_size

    where = {
        "stored": "",
        "arriving": "  arriving",
        "on-node": f"  on node {file.node}: {file.place}{' (asked for)' if file.wanted else ''}",
        "deleted": "removed by the job",
    }[file.state]
    return where if file.state == "deleted" else f"{format_size(file.size)}{where}"


def summary(files: "Iterable[Output]") -> str:
    """Number of files, and their bytes."""
    from torchyard.quantities import format_size

    there = [file for file in files if file.state != "deleted"]
    return f"{len(there)} file{'' if len(there) == 1 else 's'}, {format_size(sum(file.size for file in there))}"


def _follow(client: "Client", job: str, *, json: bool) -> None:
    seen: dict[tuple[int, str, str], tuple[str, str, int]] = {}
    while True:
        over = _settled(client, job)
        for file in client.outputs(job, every=True):
            key, state = (file.node_rank, file.root, file.name), (file.state, file.sha256, file.size)
            if seen.get(key) != state:
                seen[key] = state
                if json:
                    common.print_json_line(file)
                else:
                    common.line(f"{path(file):<44} {_state(file)}")
        if over:
            return
        time.sleep(LOOK_S)


def path(file: "Output") -> str:
    """A file's path as the program names it."""
    before = {"code": "", "job": "../", "output": "$TORCHYARD_OUTPUT_DIR/"}[file.root]
    return f"{before}{terminal.clean(file.name)}" + (f" (node rank {file.node_rank})" if file.node_rank else "")


def _settled(client: "Client", job: str) -> bool:
    """Return whether the job has ended and all its files are here or listed."""
    return client.job(job).ended_at is not None and all(attempt.settled for attempt in client.attempts(job))


def wait_settled(client: "Client", job: str, seconds: float) -> bool:
    """Wait until a job has ended and all its files are here or listed; False if that takes longer."""
    deadline = time.monotonic() + seconds
    while not (settled := _settled(client, job)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return settled


def tell_end(client: "Client", job: "Job") -> None:
    """Tell what was kept of a job that has ended, and what was lost; nothing where nobody answers."""
    from torchyard.exceptions import TorchYardError

    try:
        _tell(client, job)
    except TorchYardError as error:
        common.note(f"what was kept is not known now: {error}")


def _tell(client: "Client", job: "Job") -> None:
    from torchyard.cli.format import lost

    settled = wait_settled(client, job.id, SETTLE_S)
    found = [file for file in client.outputs(job.id, every=True) if file.state != "deleted"]
    if missing := lost(client.attempts(job.id)):
        common.warn(f"{missing} are missing: the log limit or a full disk dropped them")
    if not settled:
        common.note(f"files of the job still arrive: `yard outputs {job.number}` shows them")
    elif found:
        left = sum(file.state == "on-node" for file in found)
        more = f" ({left} on their node: `yard outputs {job.number}`)" if left else ""
        common.note(f"kept {summary(found)}: yard pull {job.number}{more}")
