"""``/jobs``: submit, find, follow and change."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from service import lifecycle
from service.api.answers import answer, known_tags, not_modified, tagged
from service.api.auth import context, current, requires
from service.api.middleware import RECEIVED
from service.api.openapi import reference
from service.api.routes.filters import AnyState, Cursor, InSweep, Limit, Listed
from service.api.routes.refs import JobPath
from service.api.routes.router import api_router
from service.artifacts import discard
from service.context import Context
from service.db import idempotency
from service.db.records.jobs import JobVersion
from service.errors import field_problem
from service.identity.callers import Caller
from service.infra.etags import Tagged
from service.infra.etags import etag as make_etag
from service.jobs import body, change, find, ordering, queries, sizing, submit
from service.jobs.submission import LauncherReasonParts, Submission
from service.queue import planned_start, waiting_jobs
from torchyard import api
from torchyard.analysis import launchers
from torchyard.spec import JobSpec
from torchyard.translatable import TranslatableText

router = api_router("jobs", "/jobs")

Ctx = Annotated[Context, Depends(context)]
Reader = Annotated[Caller, requires("read")]
Submitter = Annotated[Caller, requires("submit")]
Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", description="Your own id of this request: sent again it submits nothing twice."),
]
Reason = Annotated[
    str, Query(max_length=1000, description="Why the client chose the spec's launcher; the job's history shows it")
]
ReasonCode = Annotated[
    str,
    Query(
        max_length=40,
        description="Code of that reason, such as `no-torch`, for words in another language",
        json_schema_extra={"x-extensible-enum": list(launchers.LauncherReasonCode)},
    ),
]
ReasonSubject = Annotated[
    str, Query(max_length=1000, description="What that reason names, such as the line that starts processes")
]
OFFSET = f"How many jobs of the list to pass over, at most {find.MAX_OFFSET:,}: from there on the cursor leads."
MAX_WAIT_S = 60.0
#: An end that nobody announces (of a job that can never start, since one that it waits for has failed) is seen so late.
LOOK_S = 5.0

_SPEC_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            media: {"schema": reference(JobSpec.__name__)} for media in ("application/json", "application/yaml")
        },
    }
}


async def raw_body(request: Request, caller: Submitter) -> bytes:
    """The body, read once the caller is known."""
    del caller
    return await request.body()


DryRun = Annotated[bool, Query(description="Only check it, and store nothing.")]
_CHECKED: dict[int | str, dict[str, Any]] = {200: {"model": api.DryRun, "description": "Checked alone, by `dry_run`"}}


@router.post("", status_code=201, response_model=api.Job | api.Group, responses=_CHECKED, openapi_extra=_SPEC_BODY)
def submit_job(
    request: Request,
    raw: Annotated[bytes, Depends(raw_body)],
    caller: Submitter,
    ctx: Ctx,
    dry_run: DryRun = False,
    launcher_reason: Reason = "",
    launcher_reason_code: ReasonCode = "",
    launcher_reason_subject: ReasonSubject = "",
    idempotency_key: Key = None,
) -> Response:
    """Submit a job, or a sweep of many. With `sweep` the answer is a `Group`, and Location is below ``/groups``.

    With `dry_run` it is only checked, and told where and when it would start (200, a `DryRun`). Either all jobs of a
    sweep are stored, or none is. `after` names jobs that exist and that the caller may read, so no two can wait for
    each other.
    """
    data, sized = sizing.resolve_gpus(ctx.db, caller, body.parse(raw, request.headers.get("content-type", "")))
    spec = body.check(data)
    keyed = _idempotent(idempotency_key, b"submit", raw)
    reason = LauncherReasonParts(*map(_printable, (launcher_reason, launcher_reason_code, launcher_reason_subject)))
    received_us = request.scope.get(RECEIVED)
    submission = Submission(
        caller=caller,
        spec=spec,
        launcher_reason=reason if reason.words else None,
        advice=sized,
        received_us=received_us,
        **keyed,
    )
    if dry_run:
        return _checked(ctx, submission)
    return _created(submit.submit(ctx.db, ctx.store, ctx.now_us, submission))


def _printable(text: str) -> str:
    return "".join(filter(str.isprintable, text))


def _idempotent(key: str | None, *parts: bytes) -> dict[str, Any]:
    if idempotency.check(key) is None:
        return {}
    return {"key": key, "fingerprint": idempotency.fingerprint(*parts)}


def _checked(ctx: Context, submission: Submission) -> Response:
    checked, first = submit.check(ctx.db, ctx.store, submission)
    planned = planned_start.DryRunJob(submission.caller, first, submission.restore_checkpoint)
    start = planned_start.forecast(ctx.db, ctx.loader, ctx.estimator, ctx.now_us(), planned)
    return answer(checked.model_copy(update={"start": start}))


def _created(submitted: submit.Submitted) -> Response:
    where = "jobs" if isinstance(submitted.made, api.Job) else "groups"
    headers = {"Location": f"/api/v1/{where}/{submitted.made.id}"}
    if not submitted.new:
        headers["Idempotency-Replayed"] = "true"
    return answer(submitted.made, tag=submitted.tag, status=201, headers=headers)


@router.get("", response_model=api.Page[api.Job])
async def list_jobs(
    request: Request,
    caller: Reader,
    ctx: Ctx,
    filters: Listed,
    group: InSweep = None,
    trials: Annotated[bool, Query(description="Whether trials of sweeps are listed.")] = True,
    refs: Annotated[str, Query(max_length=10_000, description="Only these: numbers or ids, with commas")] = "",
    cursor: Cursor = None,
    limit: Limit = 50,
    offset: Annotated[int, Query(ge=0, description=OFFSET)] = 0,
    order: Annotated[
        str,
        Query(
            max_length=300,
            description="`newest`, `oldest` or `queue`: the jobs that wait alone, by their places in the queue, which "
            "it tells. Or a column: `name`, `user`, `priority` or `duration`, the time since the first start. Or the "
            "newest, largest or smallest value of a metric: `metric:NAME`, `max:NAME` or `min:NAME`; jobs without it "
            "come last. The smallest value comes first, and with a minus (`-max:val/accuracy`) the largest.",
        ),
    ] = "newest",
) -> Response:
    """List the jobs that the caller may read, the newest first. Several states or tags are alternatives, and an empty
    tag is none. `group` shows the trials of one sweep alone, ``trials=false`` none of any sweep. Of a search that many
    jobs meet, a page looks at the next ones alone: it may have few jobs, or none, and still a `next`.
    """
    if offset > find.MAX_OFFSET:
        mend = TranslatableText(
            "list-offset",
            "can pass over {most} jobs at most: go on with a page's cursor, or ask for jobs `before` one",
            most=f"{find.MAX_OFFSET:,}",
        )
        raise field_problem("offset", mend)
    named = [ref for ref in map(str.strip, refs.split(",")) if ref]
    narrowed, known = replace(filters, group=group, trials=trials, refs=named), known_tags(request)
    part = find.Span(limit=limit, cursor=cursor, offset=offset)
    if order == "queue":
        return tagged(
            await run_in_threadpool(waiting_jobs.page, ctx.db, ctx.loader, ctx.now_us(), caller, narrowed, part, known)
        )
    if order in ("newest", "oldest"):
        part = replace(part, order="oldest" if order == "oldest" else "newest")
        read = partial(queries.page, ctx.db, ctx.written, caller, narrowed, part)
        return await _read_together(ctx, caller, request, read)
    by = ordering.parse(order)
    return tagged(
        await run_in_threadpool(queries.ordered_page, ctx.db, caller, narrowed, part, by, ctx.now_us(), known)
    )


async def _read_together(ctx: Context, caller: Caller, request: Request, read: Callable[[], Tagged[bytes]]) -> Response:
    """Answer what depends on nothing but the address and what the caller may read."""
    key = (request.url.path, request.scope["query_string"], caller.user_id, caller.admin, caller.projects)
    found = await ctx.reads.get(key, read)
    return not_modified(request, found.tag) or answer(found.body or b"", tag=found.tag)


@router.get("/counts", response_model=api.JobCounts)
def count_jobs(
    request: Request,
    caller: Reader,
    ctx: Ctx,
    filters: AnyState,
    group: InSweep = None,
    most: Annotated[
        int,
        Query(ge=1, description=f"How many jobs of a state to count at most, up to {find.MAX_OFFSET:,}."),
    ] = find.MOST,
) -> Response:
    """Count the jobs of a list by state. Of a search that many jobs meet only the newest are looked at; `more` names
    the states of which there may be more than told.
    """
    most = min(most, find.MAX_OFFSET)
    found = queries.counts(ctx.db, caller, replace(filters, group=group), most)
    counted = api.JobCounts(states=found.states, most=most, more=list(found.more))
    etag = make_etag(counted)
    return not_modified(request, etag) or answer(counted, tag=etag)


@router.get("/facets", response_model=list[api.Facet])
def list_facets(
    request: Request,
    caller: Reader,
    ctx: Ctx,
    filters: Listed,
    by: Annotated[api.FacetKind, Query(description="What jobs are counted by.")],
    group: InSweep = None,
) -> Response:
    """Count the jobs of a list by user, project, sweep or tag. The largest come first, at most 500, each with its jobs
    by state. Of each state the newest 500 jobs are counted: where the values have so many together, there may be more.
    """
    found = queries.facets(ctx.db, caller, replace(filters, group=group), by)
    etag = make_etag(by, found)
    return not_modified(request, etag) or answer(found, tag=etag)


@router.get("/{job_id}", response_model=api.Job)
async def show_job(
    request: Request,
    job_id: JobPath,
    caller: Reader,
    ctx: Ctx,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_S, description="Seconds to wait for the job's end.")] = 0,
) -> Response:
    """Show a job by id or number. `wait` seconds for its end before answering."""
    if wait:
        await _ended(ctx, caller, job_id, wait)
        caller = await current(request)  # as their rights are by now
    return await _read_together(ctx, caller, request, partial(queries.job, ctx.db, ctx.written, caller, job_id))


async def _ended(ctx: Context, caller: Caller, job_id: JobPath, wait: float) -> None:
    """Returns at the job's end, after `wait` seconds, or when the service ends."""
    found = (await run_in_threadpool(queries.find_owner, ctx.db, caller, job_id)).id
    deadline = ctx.monotonic() + wait
    async with ctx.hub.listen(f"job:{found}", f"metrics:{found}") as listener:
        while not await run_in_threadpool(queries.is_over, ctx.db, caller, found):
            left = deadline - ctx.monotonic()
            if left <= 0 or listener.closing:
                return
            await listener.wait(min(left, LOOK_S))


def _presented(ctx: Context, caller: Caller, found: JobVersion, status: int = 200) -> Response:
    return tagged(queries.changed(ctx.db, caller, found), status)


@router.patch("/{job_id}", response_model=api.Job)
def change_job(
    job_id: JobPath,
    changes: api.JobChanges,
    caller: Submitter,
    ctx: Ctx,
    if_match: Annotated[str | None, Header(description="ETag of the job that is changed.")] = None,
) -> Response:
    """Change name, tags, priority or time limit of a job. Needs If-Match with the job's ETag."""
    return _presented(ctx, caller, change.patch(ctx.db, ctx.now_us, caller, job_id, if_match, changes))


@router.post("/{job_id}/cancel", response_model=api.Job)
def cancel_job(job_id: JobPath, caller: Submitter, ctx: Ctx) -> Response:
    """Cancel a job. It stops for good, after it has saved its work; asking twice is fine."""
    with ctx.db.with_reserve():
        return _presented(ctx, caller, change.act(ctx.db, ctx.now_us, caller, job_id, change.cancel))


@router.post("/{job_id}/hold", response_model=api.Job)
def hold_job(job_id: JobPath, caller: Submitter, ctx: Ctx) -> Response:
    """Hold a queued job, so that it does not start."""
    return _presented(ctx, caller, change.act(ctx.db, ctx.now_us, caller, job_id, lifecycle.hold))


@router.post("/{job_id}/release", response_model=api.Job)
def release_job(job_id: JobPath, caller: Submitter, ctx: Ctx) -> Response:
    """Release a held job, so that it starts."""
    return _presented(ctx, caller, change.act(ctx.db, ctx.now_us, caller, job_id, lifecycle.release_hold))


@router.post("/{job_id}/checkpoint", status_code=202, response_model=api.Job)
def checkpoint_job(job_id: JobPath, caller: Submitter, ctx: Ctx) -> Response:
    """Ask a running job to write a checkpoint now."""
    return _presented(
        ctx, caller, change.act(ctx.db, ctx.now_us, caller, job_id, lifecycle.request_checkpoint), status=202
    )


@router.post("/{job_id}/discard", response_model=api.Job)
def discard_job(job_id: JobPath, caller: Submitter, ctx: Ctx) -> Response:
    """Discard the logs, metrics, checkpoints and outputs of a job that has ended. Its spec, code, events, GPU time and
    last metrics stay, so it can be run again. Asking twice is fine.
    """
    with ctx.db.with_reserve():
        return _presented(ctx, caller, discard.discard(ctx.db, ctx.store, ctx.now_us, caller, job_id))


@router.post("/{job_id}/rerun", status_code=201, response_model=api.Job, responses=_CHECKED)
def rerun_job(
    request: Request,
    job_id: JobPath,
    caller: Submitter,
    ctx: Ctx,
    rerun: api.Rerun | None = None,
    dry_run: DryRun = False,
    idempotency_key: Key = None,
) -> Response:
    """Submit the spec of a job again as a new job. It begins with a checkpoint if asked.

    With `dry_run` it is only checked, and told where and when it would start (200, a `DryRun`).
    """
    asked = rerun or api.Rerun()
    body.check_values(dict(asked))
    keyed = _idempotent(idempotency_key, b"rerun", job_id.encode(), asked.model_dump_json().encode())
    submission = change.prepare_rerun(ctx.db, caller, job_id, asked, keyed)
    if dry_run:
        return _checked(ctx, submission)
    submission = replace(submission, received_us=request.scope.get(RECEIVED))
    return _created(submit.submit(ctx.db, ctx.store, ctx.now_us, submission))


@router.get("/{job_id}/events", response_model=api.Page[api.Event])
def list_events(
    request: Request, job_id: JobPath, caller: Reader, ctx: Ctx, cursor: Cursor = None, limit: Limit = 200
) -> Response:
    """List what happened to a job, the oldest first."""
    return tagged(queries.events(ctx.db, caller, job_id, cursor, limit, known_tags(request)))


@router.get("/{job_id}/attempts", response_model=list[api.Attempt])
def list_attempts(request: Request, job_id: JobPath, caller: Reader, ctx: Ctx) -> Response:
    """List the attempts of a job, the first one first."""
    return tagged(queries.attempts(ctx.db, caller, job_id, known_tags(request)))


@router.get("/{job_id}/timing", response_model=list[api.StartTiming])
def list_timing(job_id: JobPath, caller: Reader, ctx: Ctx) -> Response:
    """Show how the start of each attempt went. Stage by stage, from the request to the first step as far as it is
    known.
    """
    return answer(queries.timing(ctx.db, caller, job_id))
