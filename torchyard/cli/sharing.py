"""``policy``, ``quota``, ``usage``, ``reserve`` and ``reservations``: how the box is shared."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from torchyard.cli import common, moments
from torchyard.cli.terminal import styled

if TYPE_CHECKING:
    from datetime import datetime

    from torchyard.api.sharing import Digest, Hours, Quota, QuotaValues, Reservation, UsageRow
    from torchyard.client.client import Client

KINDS = ("useful", "idle", "failed", "lost", "total")
LIMITS = ("weight", "max_gpus", "max_gpu_hours", "max_queued", "max_storage")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    policy = typer.Typer(help="Show or set the policy of the scheduler.", no_args_is_help=True, rich_markup_mode=None)
    policy.command("show")(show_policy)
    policy.command("set")(set_policy)
    app.add_typer(policy, name="policy")
    quota = typer.Typer(help="List or set quotas and weights.", no_args_is_help=True, rich_markup_mode=None)
    quota.command("ls")(list_quotas)
    quota.command("set")(set_quota)
    app.add_typer(quota, name="quota")
    for command in (usage, reserve, reservations):
        app.command()(command)


def show_policy(json: common.Json = False) -> None:
    """Print the policy, as a file that `yard policy set` takes."""
    from torchyard.files import policies

    with common.connect() as client:
        found = client.policy()
    if json:
        common.print_json(found)
    else:
        common.line(policies.write(found), end="")


def set_policy(file: Annotated[Path, typer.Argument(help="YAML; absent fields get their defaults.")]) -> None:
    """Set the whole policy (administrators)."""
    from torchyard.files import policies

    policy = policies.read(file)
    with common.connect() as client:
        client.set_policy(policy)
    common.note("the policy is set; the scheduler follows it from now on")


def list_quotas(json: common.Json = False) -> None:
    """List quotas and how people stand; `*` is everybody's default."""
    with common.connect() as client:
        found = client.quotas()
    if json:
        common.print_json(found)
        return

    columns = ("", "NAME", "WEIGHT", "SHARE", "USED", "GPUS", "GPU-HOURS (7 DAYS)", "QUEUED", "STORED")
    with common.table(*columns) as table:
        for quota in found:
            table.add_row(*_quota_row(quota))


def _quota_row(quota: "Quota") -> tuple[str, ...]:
    now, counts = quota.standing, quota.effective
    weight = "1" if counts.weight is None else f"{counts.weight:g}"
    if now is None:
        return quota.kind, "*", weight, "", "", *(_of("", limit) for limit in _limits(counts)), _stored(quota)
    had = (f"{now.gpus:g}", _hours(now.gpu_hours), str(now.queued))
    shown = (_of(value, limit) for value, limit in zip(had, _limits(counts), strict=True))
    return quota.kind, quota.name, weight, f"{now.share:.0%}", f"{now.used:.0%}", *shown, _stored(quota)


def _stored(quota: "Quota") -> str:
    """``1.2 TiB of 2.0 TiB (code 31 MiB)``: held in the store, of what may be, and the code in it."""
    from torchyard.quantities import format_size

    now, most = quota.standing, quota.effective.max_storage
    held = "" if now is None else format_size(now.storage)
    code = f" (code {format_size(now.code)})" if now is not None and now.code else ""
    return f"{held if most is None else f'{held} of {format_size(most)}'.strip()}{code}"


def _limits(values: "QuotaValues") -> tuple[float | None, ...]:
    return values.max_gpus, values.max_gpu_hours, values.max_queued


def _of(value: str, limit: float | None) -> str:
    return value if limit is None else f"{value} of {limit:g}".strip()


def set_quota(
    kind: Annotated[Literal["user", "project"], typer.Argument(help="user or project.")],
    name: Annotated[str, typer.Argument(help="Whose; '*' for everybody who has no value of their own.")],
    weight: Annotated[str | None, typer.Option(help="Share of a full box, compared with others (1).")] = None,
    max_gpus: Annotated[
        str | None, typer.Option(help="GPUs at the same time; part of a shared one counts as one.")
    ] = None,
    max_gpu_hours: Annotated[str | None, typer.Option(help="GPU-hours in any seven days.")] = None,
    max_queued: Annotated[str | None, typer.Option(help="Jobs that wait.")] = None,
    max_storage: Annotated[
        str | None, typer.Option(help="Bytes in the store with which no more jobs are taken, such as 2TiB.")
    ] = None,
    json: common.Json = False,
) -> None:
    """Set quotas (administrators); `none` takes a value away."""
    from torchyard.api.sharing import QuotaValues

    given = dict(zip(LIMITS, (weight, max_gpus, max_gpu_hours, max_queued, max_storage), strict=True))
    values = {limit: None if text == "none" else text for limit, text in given.items() if text is not None}
    with common.connect() as client:
        made = client.set_quota(kind, name, common.checked(QuotaValues, values))
    if json:
        common.print_json(made)
    else:
        words = [_limit_words(limit, value) for limit, value in made.own.model_dump().items() if value is not None]
        common.note(f"{made.kind} {made.name}: {', '.join(words) or 'no values of their own'}")


def _limit_words(limit: str, value: float) -> str:
    from torchyard.quantities import format_size

    return f"{limit} {format_size(round(value)) if limit == 'max_storage' else format(value, 'g')}"


def usage(
    weeks: Annotated[int, typer.Option(help="So many weeks that end today.", min=1, max=520)] = 4,
    by: Annotated[Literal["user", "project", "day"], typer.Option(help="user, project or day.")] = "user",
    csv: Annotated[bool, typer.Option("--csv", help="Print a table for programs.")] = False,
    digest: Annotated[bool, typer.Option("--digest", help="The digest of a week: the last, or --week.")] = False,
    week: Annotated[str | None, typer.Option(help="Of the digest, such as 2026-W47.")] = None,
    json: common.Json = False,
) -> None:
    """Show who used how many GPU-hours, and what became of them.

    Days are those of UTC, by the service's clock.

    STOPPABLE is the part that could have been shared: of jobs that could be stopped for others and go on later.
    """
    from datetime import timedelta

    with common.connect() as client:
        if digest or week:
            found = client.usage_digest(week)
            common.print_json(found) if json else _print_digest(found)
            return
        since = common.service_now(client).date() - timedelta(days=7 * weeks - 1)
        if csv:
            common.line(client.usage_csv(since=since, by=by), end="")
        else:
            report = client.usage(since=since, by=by)
            common.print_json(report) if json else _print_hours(by, report.rows, report.total)


def _print_hours(by: str, rows: "Iterable[UsageRow]", total: "Hours | None" = None) -> None:

    with common.table(by.upper(), *(kind.upper() for kind in KINDS), "STOPPABLE") as table:
        for row in rows:
            table.add_row(row.of, *_cells(row))
        if total is not None:
            table.add_row(styled("all", "bold"), *_cells(total))


def _cells(hours: "Hours") -> list[str]:
    part = f"{hours.stoppable / hours.total:.0%}" if hours.total else ""
    return [*(_hours(getattr(hours, kind)) for kind in KINDS), part]


def _hours(value: float) -> str:
    """``0.0012``, ``12.3``: a first short job is not nothing."""
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _print_digest(found: "Digest") -> None:
    from torchyard.quantities import format_duration

    common.put((found.week, "bold"), f"  {found.since} to {found.until}, in GPU-hours")
    _print_hours("user", found.users, found.total)
    _print_hours("project", found.projects)
    if found.held is not None:
        common.put(f"{found.held:.0%} of {_hours(found.capacity)} GPU-hours were held, {found.useful:.0%} useful")
    if found.mean_wait_s is not None:
        wait = format_duration(found.mean_wait_s)
        common.put(f"jobs that started: {found.started}, after {wait} of waiting in the mean")
    for waste in found.wastes:
        common.put((waste.message, "yellow"))


def reserve(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    user: Annotated[list[str] | None, typer.Option(help="Whose jobs may use it; may be repeated.")] = None,
    project: Annotated[list[str] | None, typer.Option(help="Projects that may use it; may be repeated.")] = None,
    maintenance: Annotated[
        bool, typer.Option("--maintenance", help="Nobody may: the nodes drain before and take jobs again after it.")
    ] = False,
    node: Annotated[list[str] | None, typer.Option(help="A whole node; may be repeated.")] = None,
    gpus: Annotated[
        int | None, typer.Option(help="So many GPUs of any nodes (CPU slots where no node has GPUs).")
    ] = None,
    start: Annotated[str | None, typer.Option("--from", help="Such as 2026-11-23T09:00, local time; else now.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Such as 2026-11-23T18:00, local time.")] = None,
    length: Annotated[str | None, typer.Option("--for", help="Instead of --to, such as 8h.")] = None,
    json: common.Json = False,
) -> None:
    """Reserve nodes or GPUs for people, or for maintenance (administrators)."""
    from torchyard.api.sharing import NewReservation

    given: dict[str, Any] = {
        "name": name,
        "users": user or (),
        "projects": project or (),
        "maintenance": maintenance,
        "nodes": node or (),
        "gpus": gpus,
    }
    with common.connect() as client:
        interval = _interval(client, start, end, length)
        made = client.reserve(common.checked(NewReservation, {**given, **interval}))
    if json:
        common.print_json(made)
    else:
        common.line(made.id)


def _interval(client: "Client", start: str | None, end: str | None, length: str | None) -> "dict[str, datetime | None]":
    from datetime import timedelta

    from torchyard.exceptions import SpecError
    from torchyard.quantities import parse_duration

    if (end is None) == (length is None):
        raise SpecError("give either --to or --for")
    starts_at = None if start is None else moments.moment("--from", start)
    if end is not None:
        return {"starts_at": starts_at, "ends_at": moments.moment("--to", end)}
    try:
        seconds = parse_duration(length)
    except ValueError as error:
        raise SpecError(f"--for: {error}") from error
    begin = starts_at or common.service_now(client)
    try:
        return {"starts_at": starts_at, "ends_at": begin + timedelta(seconds=seconds)}
    except OverflowError as error:
        raise SpecError(
            f"--for {length}: from {begin:%Y-%m-%d} on it would end after the year {begin.max.year}, the last that "
            "there is: give a shorter time, or an earlier --from"
        ) from error


def reservations(
    everything: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    cancel: Annotated[str | None, typer.Option(metavar="ID", help="Give this one back (administrators).")] = None,
    json: common.Json = False,
) -> None:
    """List the reservations to come."""
    with common.connect() as client:
        if cancel:
            client.cancel_reservation(cancel)
        found = client.reservations(past=everything)
        word = "GPU" if json else _reserved_word(client, found)
    if json:
        common.print_json(found)
        return
    if not found:
        common.note("no reservations: `yard reserve NAME --user WHO --gpus N --for 8h` makes one")
        return
    with common.table("ID", "NAME", "STATE", "FOR", "WHAT", "FROM", "TO") as table:
        for each in found:
            whom = "maintenance" if each.maintenance else _listed([*each.users, *each.projects])
            what = f"{each.gpus} {word}{'s' if each.gpus > 1 else ''}" if each.gpus else _listed(each.nodes)
            span = [f"{at.astimezone():%Y-%m-%d %H:%M}" for at in (each.starts_at, each.ends_at)]
            table.add_row(each.id, each.name, each.state, whom, what, *span)


def _reserved_word(client: "Client", found: "Iterable[Reservation]") -> str:
    """Return what a number of `gpus` stands for here: GPUs, or CPU slots where no node has any."""
    if not any(each.gpus for each in found):
        return "GPU"
    kinds = {device.kind.value for node in client.nodes() for device in node.devices}
    return "CPU slot" if kinds == {"cpu"} else "GPU"


def _listed(names: Sequence[str]) -> str:
    return " ".join(names)
