"""``/policy``, ``/quotas``, ``/usage`` and ``/reservations``: how the box is shared, and by whom it was used."""

from datetime import date
from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from service.accounting import policy_settings, quotas, usage_report
from service.api.answers import CSV_RESPONSE, answer, not_modified
from service.api.auth import context, requires
from service.api.routes.filters import Format
from service.api.routes.router import api_router
from service.context import Context
from service.db.records.accounting import AccountKind
from service.identity.callers import Caller
from service.infra.etags import etag
from service.nodes import reservations
from service.queue import what_if as what_ifs
from torchyard.api import sharing
from torchyard.api.sharing import By
from torchyard.spec.policy import Policy

router = api_router("sharing")
Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
Admin = Annotated[Caller, requires("admin")]
Kind = Annotated[AccountKind, Path(description="Whose quotas.")]
AccountPath = Annotated[str, Path(description="Name of the user or project, or ``*``.")]


@router.get("/policy", response_model=Policy, dependencies=[requires("read")])
def show_policy(request: Request, ctx: Ctx) -> Response:
    """Show the policy that the scheduler follows."""
    policy = policy_settings.get_policy(ctx.db)
    tag = etag(policy)
    return not_modified(request, tag) or answer(policy, tag=tag)


@router.put("/policy", response_model=Policy)
def set_policy(policy: Policy, caller: Admin, ctx: Ctx) -> Response:
    """Set the whole policy. Fields that are absent get their defaults."""
    policy_settings.change_policy(ctx.db, caller, policy, ctx.now_us())
    return answer(policy)


@router.post("/policy/what-if", response_model=sharing.WhatIfAnswer, dependencies=[requires("admin")])
def what_if(asked: sharing.WhatIf, ctx: Ctx) -> Response:
    """Try a policy on what has run. The jobs that came in the last weeks and have ended are played with the policy that
    holds and with this one, for a minute at most and for one caller at a time. Nothing is set.
    """
    return answer(what_ifs.play(ctx.db, asked, ctx.now_us()))


@router.get("/quotas", response_model=list[sharing.Quota])
def list_quotas(caller: Reader, ctx: Ctx) -> Response:
    """List quotas and how people stand. One's own and the projects'; everybody's for administrators."""
    return answer(quotas.quotas(ctx.db, caller, ctx.now_us()))


@router.put("/quotas/{kind}/{name}", response_model=sharing.Quota)
def set_quota(kind: Kind, name: AccountPath, values: sharing.QuotaValues, caller: Admin, ctx: Ctx) -> Response:
    """Set quotas of a user or project. Of the name ``*``, everybody's default."""
    return answer(quotas.set_quota(ctx.db, caller, kind, name, values, ctx.now_us()))


@router.get("/usage", response_model=sharing.UsageReport, dependencies=[requires("read")], responses=CSV_RESPONSE)
def show_usage(
    ctx: Ctx,
    since: Annotated[date | None, Query(alias="from", description="The first day (UTC).")] = None,
    until: Annotated[date | None, Query(alias="to", description="The last day; by default today.")] = None,
    by: Annotated[By, Query(description="What the rows are by.")] = "user",
    format: Format = "json",  # noqa: A002  the parameter's name
) -> Response:
    """Report GPU-hours by user, project or day. Of four weeks unless `from` says more; with what runs."""
    now = ctx.now_us()
    found = usage_report.report(ctx.db, usage_report.days(since, until, now), by, now)
    if format == "json":
        return answer(found)
    return Response(usage_report.as_csv(found), media_type="text/csv; charset=utf-8")


@router.get("/usage/digest", response_model=sharing.Digest, dependencies=[requires("read")])
def show_digest(
    ctx: Ctx, week: Annotated[str | None, Query(description="ISO week, such as 2026-W47; else the last one.")] = None
) -> Response:
    """Report one week of the box. Who used it, what was wasted, how full it was, how long people waited."""
    now = ctx.now_us()
    return answer(usage_report.digest(ctx.db, *usage_report.week(week, now), now))


@router.get("/reservations", response_model=list[sharing.Reservation], dependencies=[requires("read")])
def list_reservations(
    ctx: Ctx, past: Annotated[bool, Query(alias="all", description="Also those that are over.")] = False
) -> Response:
    """List reservations that hold now or later, by their start. `all` with those that are over."""
    return answer(reservations.list_reservations(ctx.db, ctx.now_us(), past=past))


@router.post("/reservations", status_code=201, response_model=sharing.Reservation)
def create_reservation(new: sharing.NewReservation, caller: Admin, ctx: Ctx) -> Response:
    """Reserve nodes or GPUs for users and projects, or for a maintenance."""
    return answer(reservations.create(ctx.db, caller, new, ctx.now_us()), status=201)


@router.put("/reservations/{reservation}", response_model=sharing.Reservation)
def change_reservation(
    reservation: Annotated[str, Path(description="Id of the reservation.")],
    new: sharing.NewReservation,
    caller: Admin,
    ctx: Ctx,
) -> Response:
    """Change a reservation that is not over. All of it is given anew; one that has begun may keep its start."""
    return answer(reservations.change(ctx.db, caller, reservation, new, ctx.now_us()))


@router.delete("/reservations/{reservation}", status_code=204)
def cancel_reservation(
    reservation: Annotated[str, Path(description="Id of the reservation.")], caller: Admin, ctx: Ctx
) -> None:
    """Cancel a reservation. A maintenance ends."""
    reservations.cancel(ctx.db, caller, reservation, ctx.now_us())
