"""``sweep``: the jobs of a sweep as one."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from torchyard.cli import common
from torchyard.cli.terminal import joined, styled

if TYPE_CHECKING:
    from rich.text import Text

    from torchyard.api import Group, Job
    from torchyard.client.client import Client

SweepRef = Annotated[str, typer.Argument(metavar="SWEEP", help="A sweep's number or id.")]
Metric = Annotated[str | None, typer.Option(help="What trials are compared by; default the sweep's own metric.")]
Mode = Annotated[Literal["min", "max"] | None, typer.Option(help="Whether small or large values are good.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    sweep = typer.Typer(help="Show and change sweeps: many jobs as one.", no_args_is_help=True, rich_markup_mode=None)
    for command in (ls, show, cancel, hold, release, resume):
        sweep.command()(command)
    app.add_typer(sweep, name="sweep")


def ls(
    user: Annotated[str | None, typer.Option("--user", "-u", help="Only this user's sweeps.")] = None,
    project: Annotated[str | None, typer.Option(help="Only this project's sweeps.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many, the newest.", min=1)] = 30,
    json: common.Json = False,
) -> None:
    """List sweeps, the newest first."""
    with common.connect() as client:
        found = list(client.sweeps(limit=limit, user=user, project=project))
    if json:
        common.print_json(found)
        return
    if not found:
        common.note("no sweeps: `yard submit` a spec with `sweep`")
        return
    with common.table("SWEEP", "NAME", "USER", "TRIALS", "") as table:
        for group in found:
            table.add_row(str(group.number), group.name, group.user, str(group.size), standing(group))


def standing(group: "Group") -> "Text":
    """Number of trials in each state, in colours, and a word if the sweep is paused."""
    from torchyard.cli.format import STYLES

    parts = [styled(f"{count} {state.value}", STYLES.get(state.value, "")) for state, count in group.states.items()]
    if group.stopped_early:
        parts.append(styled(f"{group.stopped_early} of them stopped early", "dim"))
    if group.held:
        parts.append(styled(f"{group.held} held", ""))
    if group.paused:
        parts.append(styled("paused", "bold red"))
    return joined(parts, between=", ")


def show(
    sweep: SweepRef,
    metric: Metric = None,
    mode: Mode = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Trials that are shown at most.", min=1)] = 30,
    json: common.Json = False,
) -> None:
    """Show a sweep and its trials, the best first."""
    with common.connect() as client:
        group = client.sweep(sweep, metric=metric, mode=mode)
        compared = group.metric is not None
        trials = list(client.trials(sweep, best_first=compared, metric=metric, mode=mode, limit=limit))
    if json:
        common.print_json(
            {**group.model_dump(mode="json"), "trials": [each.model_dump(mode="json") for each in trials]}
        )
        return
    _print_facts(group)
    _print_trials(group, trials)


def _print_facts(group: "Group") -> None:
    common.put((f"{group.number}  {group.name}", "bold"), "  ", (group.id, "dim"), f"  {group.user}, {group.project}")
    common.put(f"{group.size} trials: ", standing(group))
    if group.paused:
        common.put((f"paused: {group.paused}", "red"), f" (yard sweep resume {group.number})")
    if group.metric:
        common.put((f"compared by the {group.mode} of {group.metric}", "dim"))


def _print_trials(group: "Group", trials: "Sequence[Job]") -> None:
    from torchyard.cli import format as shown

    names = list(group.sweep["parameters"])
    metric = [group.metric] if group.metric else []
    with common.table("JOB", "STATE", *names, *metric, "") as table:
        for job in trials:
            values = [str((job.parameters or {}).get(name, "")) for name in names]
            value = (
                [shown.number(job.latest[group.metric]) if group.metric in job.latest else ""] if group.metric else []
            )
            table.add_row(str(job.number), shown.state(job), *values, *value, shown.status(job))
    if len(trials) < group.size:
        common.note(f"{group.size - len(trials)} more: --limit shows more of them")


def cancel(sweep: SweepRef, json: common.Json = False) -> None:
    """Stop all trials for good."""
    _act(json, lambda client: client.cancel_sweep(sweep))


def hold(sweep: SweepRef, json: common.Json = False) -> None:
    """Keep the trials that wait from starting."""
    _act(json, lambda client: client.hold_sweep(sweep))


def release(sweep: SweepRef, json: common.Json = False) -> None:
    """Let the trials that are held start."""
    _act(json, lambda client: client.release_sweep(sweep))


def resume(sweep: SweepRef, json: common.Json = False) -> None:
    """Let a sweep go on that was paused because its first trials failed alike."""
    _act(json, lambda client: client.resume_sweep(sweep))


def _act(json: bool, act: "Callable[[Client], Group]") -> None:
    with common.connect() as client:
        group = act(client)
    if json:
        common.print_json(group)
    else:
        common.put(f"sweep {group.number}: ", standing(group))


def exists(client: "Client", sweep: str) -> bool:
    """Return whether a number or id is a sweep's."""
    from torchyard.exceptions import NotFoundError

    try:
        client.sweep(sweep)
    except NotFoundError:
        return False
    return True


def wait_and_tell(client: "Client", sweep: str, *, timeout_s: float | None, json: bool) -> NoReturn:
    """Wait for a sweep's end, show it and exit with its code."""
    from torchyard.exceptions import TorchYardError

    try:
        group = client.wait_sweep(sweep, timeout_s=timeout_s)
    except TimeoutError as error:
        raise TorchYardError(str(error)) from error
    if json:
        common.print_json(group)
    else:
        common.put(f"sweep {group.number}: ", standing(group))
    raise typer.Exit(exit_code(group))


def exit_code(group: "Group") -> int:
    """1 if a trial has failed, 130 if one was cancelled, 0 if all succeeded or were stopped early."""
    states = {state.value: count for state, count in group.states.items()}
    if states.get("failed"):
        return 1
    return 130 if states.get("cancelled", 0) > group.stopped_early else 0
