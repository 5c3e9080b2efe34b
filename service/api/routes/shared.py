"""Public links to jobs: how they are made and revoked, and what whoever has one sees without signing in."""

from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.api.answers import answer, known_tags, tagged
from service.api.auth import context, requires
from service.api.routes.metrics import AskedMetrics
from service.api.routes.refs import JobPath, JobRef
from service.api.routes.router import api_router
from service.context import Context
from service.errors import ProblemError
from service.identity.callers import Caller
from service.identity.link_tokens import Link, LinkTokens
from service.identity.sign_in_limits import SignInLimits
from service.infra.times import moment
from service.jobs import shared_links
from service.telemetry import metrics
from torchyard import api
from torchyard.ids import JobId
from torchyard.translatable import TranslatableText

router = api_router("shared links")

Ctx = Annotated[Context, Depends(context)]
Submitter = Annotated[Caller, requires("submit")]
TokenPath = Annotated[str, Path(description="Token of the link: the last part of its address.")]

#: Everything that does not open looks the same: what expired or was revoked tells a stranger nothing.
_NOT_THERE = TranslatableText(
    "link-over", "There is nothing at this link (any more): ask whoever gave it to you for a new one."
)


@router.get("/jobs/{job_id}/link", response_model=api.SharedLinks)
def show_links(job_id: JobRef, ctx: Ctx) -> Response:
    """Show until when there are public links to a job."""
    if not ctx.settings.shared_links:
        return answer(api.SharedLinks(expires_at=None))
    return answer(shared_links.status(ctx.db, ctx.now_us, job_id, ctx.settings.visibility))


@router.post("/jobs/{job_id}/link", status_code=201, response_model=api.SharedLink)
def share_job(
    request: Request, job_id: JobPath, caller: Submitter, ctx: Ctx, asked: api.NewSharedLink | None = None
) -> Response:
    """Make a public link to a job. Whoever has it sees name, owner, state, times and metrics without signing in, until
    it expires or is revoked, or you are deactivated. Only where the administrator has set `shared_links`, and never in
    a private project.
    """
    if not ctx.settings.shared_links:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "no-public-links",
                "There are no public links here: an administrator allows them with TORCHYARD_SHARED_LINKS=1 "
                "(shared_links in the settings file).",
            ),
        )
    wanted = asked or api.NewSharedLink()
    link, expires_s = shared_links.share(ctx.db, ctx.now_us, caller, job_id, wanted.expires_in, ctx.settings.visibility)
    token = _tokens(request).sign(link, expires_s)
    url = f"{str(request.base_url).rstrip('/')}/shared/{token}"
    return answer(api.SharedLink(url=url, token=token, expires_at=moment(expires_s * 1_000_000)), status=201)


@router.delete("/jobs/{job_id}/link", status_code=204)
def revoke_links(job_id: JobPath, caller: Submitter, ctx: Ctx) -> None:
    """Revoke all public links to a job."""
    shared_links.revoke(ctx.db, ctx.now_us, caller, job_id)


def find_linked(token: TokenPath, request: Request, ctx: Ctx) -> JobId:
    """Return the job of a link; ``not-found``, and slower with each, for a token that opens none.

    A link that opens is never slowed: its signature cannot be guessed, so what others try at the same time, from the
    same address too, is no reason to keep its readers out.
    """
    link = _read(request, ctx, token)
    if link is not None and shared_links.is_open(ctx.db, link, ctx.settings.visibility):
        return link.job
    limits: SignInLimits = request.app.state.link_limits
    limits.begin(request.client.host if request.client else "")
    raise ProblemError("not-found", _NOT_THERE)


LinkedJob = Annotated[JobId, Depends(find_linked)]


def _read(request: Request, ctx: Context, token: str) -> Link | None:
    return _tokens(request).read(token, ctx.now_us() // 1_000_000) if ctx.settings.shared_links else None


def _tokens(request: Request) -> LinkTokens:
    found: LinkTokens = request.app.state.link_tokens
    return found


@router.get("/shared/{token}", response_model=api.SharedRun)
def show_run(job_id: LinkedJob, ctx: Ctx) -> Response:
    """Show the job of a public link. Anybody who has the link may ask."""
    return answer(shared_links.run(ctx.db, job_id))


@router.get("/shared/{token}/metrics", response_model=api.Metrics)
def show_metrics(request: Request, job_id: LinkedJob, ctx: Ctx, query: AskedMetrics) -> Response:
    """Read the metrics of a public link's job, as its own are read. Anybody who has the link may ask."""
    return tagged(metrics.of_job(ctx.db, job_id, query, known_tags(request)))
