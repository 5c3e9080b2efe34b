"""``/policy``, ``/quotas``, ``/usage`` and ``/reservations``: how the box is shared, and by whom it was used."""

from datetime import date
from typing import Annotated, Literal

from fastapi import Depends, Query, Request, Response

from service.accounting import policy_settings, quotas, usage_report
from service.api.answers import CSV_RESPONSE, answer, not_modified
from service.api.auth import context, requires
from service.api.routes.router import api_router
from service.context import Context
from service.db.records.accounting import AccountKind
from service.identity.callers import Caller
from service.infra.etags import etag
from service.nodes import reservations
from torchyard.api import sharing
from torchyard.api.sharing import By
from torchyard.spec.policy import Policy

router = api_router("sharing")
Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
Admin = Annotated[Caller, requires("admin")]


@router.get("/policy", response_model=Policy, dependencies=[requires("read")])
def show_policy(request: Request, ctx: Ctx) -> Response:
    """The policy that the scheduler follows."""
    policy = policy_settings.get_policy(ctx.db)
    tag = etag(policy)
    return not_modified(request, tag) or answer(policy, tag=tag)


@router.put("/policy", response_model=Policy)
def set_policy(policy: Policy, caller: Admin, ctx: Ctx) -> Response:
    """Sets the whole policy: fields that are absent get their defaults."""
    policy_settings.change_policy(ctx.db, caller, policy, ctx.now_us())
    return answer(policy)


@router.get("/quotas", response_model=list[sharing.Quota])
def list_quotas(caller: Reader, ctx: Ctx) -> Response:
    """Quotas and how people stand: one's own and the projects'; everybody's for administrators."""
    return answer(quotas.quotas(ctx.db, caller, ctx.now_us()))


@router.put("/quotas/{kind}/{name}", response_model=sharing.Quota)
def set_quota(kind: AccountKind, name: str, values: sharing.QuotaValues, caller: Admin, ctx: Ctx) -> Response:
    """Sets quotas of a user or project, or of the name ``*``, everybody's default."""
    return answer(quotas.set_quota(ctx.db, caller, kind, name, values, ctx.now_us()))


@router.get("/usage", response_model=sharing.UsageReport, dependencies=[requires("read")], responses=CSV_RESPONSE)
def show_usage(
    ctx: Ctx,
    since: Annotated[date | None, Query(alias="from", description="The first day (UTC).")] = None,
    until: Annotated[date | None, Query(alias="to", description="The last day; by default today.")] = None,
    by: By = "user",
    format: Literal["json", "csv"] = "json",  # noqa: A002  the parameter's name
) -> Response:
    """GPU-hours by user, project or day, of four weeks unless `from` says more; with what runs."""
    now = ctx.now_us()
    found = usage_report.report(ctx.db, usage_report.days(since, until, now), by, now)
    if format == "json":
        return answer(found)
    return Response(usage_report.as_csv(found), media_type="text/csv; charset=utf-8")


@router.get("/usage/digest", response_model=sharing.Digest, dependencies=[requires("read")])
def show_digest(
    ctx: Ctx, week: Annotated[str | None, Query(description="ISO week, such as 2026-W47; else the last one.")] = None
) -> Response:
    """One week of the box: who used it, what was wasted and the mend, how full it was, how long people waited."""
    now = ctx.now_us()
    return answer(usage_report.digest(ctx.db, *usage_report.week(week, now), now))


@router.get("/reservations", response_model=list[sharing.Reservation], dependencies=[requires("read")])
def list_reservations(ctx: Ctx, past: Annotated[bool, Query(alias="all")] = False) -> Response:
    """Reservations that hold now or later, by their start; `all` with those that are over."""
    return answer(reservations.list_reservations(ctx.db, ctx.now_us(), past=past))


@router.post("/reservations", status_code=201, response_model=sharing.Reservation)
def create_reservation(new: sharing.NewReservation, caller: Admin, ctx: Ctx) -> Response:
    """Keeps nodes or GPUs for users and projects, or takes nodes out of use for a maintenance."""
    return answer(reservations.create(ctx.db, caller, new, ctx.now_us()), status=201)


@router.delete("/reservations/{reservation}", status_code=204)
def cancel_reservation(reservation: str, caller: Admin, ctx: Ctx) -> None:
    """Gives back what is reserved; a maintenance ends."""
    reservations.cancel(ctx.db, caller, reservation, ctx.now_us())
