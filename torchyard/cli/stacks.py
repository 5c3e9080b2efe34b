"""``stacks``: what a run's processes do."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from torchyard.cli import common, terminal

if TYPE_CHECKING:
    from torchyard.api import Stacks
    from torchyard.client.client import Client
    from torchyard.wire import ProcessStack

#: Seconds that stacks asked for may take: a heartbeat, and a few seconds for each process.
PATIENCE_S = 60.0
PAUSE_S = 0.5


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(stacks)


def stacks(
    job: common.JobRef,
    now: Annotated[bool, typer.Option("--now", help="Ask a running job, instead of showing the last.")] = False,
    full: Annotated[bool, typer.Option("--all", help="Also threads and processes beside the ranks' own.")] = False,
    json: common.Json = False,
) -> None:
    """Show where a run's ranks stand: the stacks taken when it seemed to hang, or now."""
    with common.connect() as client:
        found = _ask(client, job) if now else client.stacks(job)
    newest = [each for each in found if each.serial == found[0].serial]
    if json:
        common.print_json(newest)
    elif newest:
        for each in newest:
            _print(each, full)
    else:
        common.note("no stacks yet: `yard stacks --now JOB` asks a running job")


def _ask(client: "Client", job: str) -> list["Stacks"]:
    """Wait for stacks newer than the last, of all nodes of the job."""
    before = client.stacks(job)
    last = (before[0].attempt, before[0].serial) if before else (0, 0)
    parts = max(1, len({device.node for device in client.ask_for_stacks(job).devices}))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = client.stacks(job)
        new = [each for each in found if (each.attempt, each.serial) > last]
        if len(new) >= parts or time.monotonic() > deadline:
            return new
        time.sleep(PAUSE_S)


def _print(each: "Stacks", full: bool) -> None:
    from torchyard.cli.format import counted

    common.put((each.node, "bold"), f" {each.at:%Y-%m-%d %H:%M:%S} {each.summary}")
    for process in each.processes:
        if process.main or full:
            _print_process(process, full)
    if each.left_out:
        common.note(f"{counted(each.left_out, 'more process is', 'more processes are')} left out")


def _print_process(process: "ProcessStack", full: bool) -> None:
    common.put(
        (f"\nrank {process.rank}", "cyan"), f" process {process.pid} ", (terminal.clean(process.command)[:100], "dim")
    )
    if process.error:
        common.put((f"  {process.error}", "red"))
    for thread in process.threads if full else process.threads[:1]:
        common.put((f"  thread {thread.name or ''}", "dim"))
        for frame in thread.frames:
            line = f":{frame.line}" if frame.line else ""
            common.put((f"    {frame.function} ({frame.file}{line})", "dim" if frame.native else ""))
