"""Routes that node agents call. A node token is bound to its node and reaches that node's attempts only."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends, Query, Request, Response
from fastapi.routing import APIRoute

from service import ingest, lifecycle
from service.api.answers import answer
from service.api.auth import context, requires
from service.api.downloads import download
from service.api.problems import MEDIA_TYPE, body
from service.api.routes.router import api_router
from service.artifacts import blobs, checkpoints, node_access, outputs
from service.attempts import memory
from service.context import Context
from service.errors import OffsetAheadError, ProblemError, TooLargeError, not_found
from service.identity.callers import Caller
from service.infra.dispatch import node_key_prefix
from service.nodes import reports
from torchyard import wire
from torchyard.ids import AttemptId
from torchyard.spec import MAX_NODES

MAX_LOG_BATCH = 2**20
#: Protocol versions that are spoken: this one and the one before.
SPOKEN = (wire.PROTOCOL - 1, wire.PROTOCOL)


async def protocol(request: Request) -> None:
    """Refuse an agent whose protocol is not spoken here."""
    version = request.headers.get(wire.PROTOCOL_HEADER, "none")
    if version not in map(str, SPOKEN):
        raise ProblemError(
            "protocol-mismatch",
            f"The agent speaks protocol {version[:20]}, this service {wire.PROTOCOL}: upgrade the older of the two.",
        )


async def node_name(caller: Caller = requires("node")) -> str:
    """The node that the caller's token belongs to."""
    if caller.node is None:
        raise ProblemError("forbidden", "This token belongs to no node: make one with `yard token create --node NAME`.")
    return caller.node


async def content(request: Request) -> bytes:
    """The raw body."""
    return await request.body()


# Workers of another version may send more.
router = api_router("agent", "/agent", include_in_schema=False, dependencies=[Depends(protocol)], route_class=APIRoute)
Ctx = Annotated[Context, Depends(context)]
Node = Annotated[str, Depends(node_name)]
Body = Annotated[bytes, Depends(content)]
NOTHING = 204


@contextmanager
def _refusals() -> Iterator[None]:
    """Refused changes of state as problems."""
    try:
        yield
    except lifecycle.Unknown as error:
        raise ProblemError("not-found", str(error)) from error
    except lifecycle.Conflict as error:
        raise ProblemError("conflict", str(error)) from error


@router.post("/register")
def register(message: wire.Register, ctx: Ctx, node: Node, caller: Caller = requires("node")) -> Response:
    """A worker has started."""
    if message.node != node:
        raise ProblemError("forbidden", f"This token is node {node}'s, not {message.node[:80]}'s: use the node's own.")
    with _refusals():
        reports.register(ctx.db, ctx.now_us(), message, ctx.settings.heartbeat_s)
    return answer(
        wire.Registered(
            installation=ctx.installation,
            broker_url=ctx.broker_accounts.url(node, caller.token_id),
            broker_key_prefix=node_key_prefix(ctx.installation, node),
            heartbeat_s=ctx.settings.heartbeat_s,
            inbox=str(ctx.store.inbox),
            inbox_probe=ctx.store.probe,
            disk_floor=ctx.settings.disk_floor,
        )
    )


@router.post("/heartbeat")
def heartbeat(message: wire.Heartbeat, ctx: Ctx, node: Node) -> Response:
    """A worker is alive; answered by its orders."""
    with ctx.db.with_reserve(), _refusals():
        return answer(reports.heartbeat(ctx.db, ctx.now_us(), node, message))


@router.get("/attempts/{attempt_id}")
def launch(attempt_id: AttemptId, ctx: Ctx, node: Node) -> Response:
    """All that is needed to start an attempt."""
    with _refusals():
        return answer(reports.launch(ctx.db, node, attempt_id))


@router.post("/attempts/{attempt_id}/claim")
def claim(attempt_id: AttemptId, message: wire.Claim, ctx: Ctx, node: Node) -> Response:
    """The node takes the attempt; answered by all that is needed to start it."""
    memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    with _refusals():
        return answer(reports.claim(ctx.db, ctx.now_us(), node, attempt_id, message))


@router.post("/attempts/{attempt_id}/secrets")
def secrets(attempt_id: AttemptId, message: wire.Claim, ctx: Ctx, node: Node) -> Response:
    """The node is about to start the attempt, and gets the values of its secrets."""
    found = reports.secrets(ctx.db, ctx.secret_keys, ctx.now_us(), node, attempt_id, message)
    return answer(found, headers={"Cache-Control": "no-store"})


@router.post("/attempts/{attempt_id}/prepared")
def prepared(attempt_id: AttemptId, message: wire.Prepared, ctx: Ctx, node: Node) -> Response:
    """The node's part of an attempt on several nodes could start; answered by whether all could."""
    memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    with _refusals():
        return answer(reports.prepared(ctx.db, ctx.now_us(), node, attempt_id, message))


@router.post("/attempts/{attempt_id}/running", status_code=NOTHING)
def running(attempt_id: AttemptId, message: wire.Started, ctx: Ctx, node: Node) -> None:
    """The job's first instruction ran."""
    attempt = memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    with _refusals():
        reports.running(ctx.db, ctx.estimator, ctx.now_us(), attempt, message)


@router.post("/attempts/{attempt_id}/result")
def result(attempt_id: AttemptId, message: wire.Result, ctx: Ctx, node: Node) -> Response:
    """The attempt is over; answered as by `settled` where it says that nothing is left to bring."""
    attempt = memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    with ctx.db.with_reserve(), _refusals():
        found = reports.result(ctx.db, ctx.estimator, ctx.now_us(), node, attempt, message)
    return Response(status_code=NOTHING) if found is None else answer(found)


@router.post("/attempts/{attempt_id}/start", status_code=NOTHING)
def take_start(attempt_id: AttemptId, message: wire.NodeStart, ctx: Ctx, node: Node) -> None:
    """Take what is known of the attempt's start by now."""
    memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    reports.take_start(ctx.db, ctx.now_us(), attempt_id, message)


@router.post("/attempts/{attempt_id}/stacks", status_code=NOTHING)
def take_stacks(attempt_id: AttemptId, message: wire.StackDump, ctx: Ctx, node: Node) -> None:
    """Take what the attempt's processes on the node do."""
    attempt = memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    with _refusals():
        reports.take_stacks(ctx.db, ctx.now_us(), node, attempt, message)


@router.post("/attempts/{attempt_id}/notes", status_code=NOTHING)
def take_notes(attempt_id: AttemptId, message: wire.JobNotes, ctx: Ctx, node: Node) -> None:
    """Take what the in-job part tells the job's owner."""
    memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    with _refusals():
        reports.take_notes(ctx.db, ctx.now_us(), attempt_id, message)


@router.post("/attempts/{attempt_id}/environment")
def take_environment(attempt_id: AttemptId, message: wire.EnvironmentReport, ctx: Ctx, node: Node) -> Response:
    """Take what is installed for the attempt on its first node; answered by whether the content is missing."""
    _check_node_rank(memory.of_node(ctx.db, ctx.memory, attempt_id, node), 0, node)
    return answer(reports.take_environment(ctx.db, ctx.now_us(), attempt_id, message))


@router.post("/attempts/{attempt_id}/settled")
def settled(attempt_id: AttemptId, ctx: Ctx, node: Node) -> Response:
    """The node has sent everything of the attempt and forgets it; answered by whether its files are wanted there."""
    memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    with _refusals():
        return answer(reports.settled(ctx.db, ctx.now_us(), node, attempt_id))


@router.post("/attempts/{attempt_id}/logs")
def logs(
    attempt_id: AttemptId,
    data: Body,
    ctx: Ctx,
    node: Node,
    rank: Annotated[int, Query(ge=-MAX_NODES, lt=2**31)],
    offset: Annotated[int, Query(ge=0, lt=2**62)],
    dropped: Annotated[int, Query(ge=0, lt=2**62)] = 0,
) -> Response:
    """Bytes of a rank's log."""
    if len(data) > MAX_LOG_BATCH:
        raise TooLargeError(MAX_LOG_BATCH)
    attempt = memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    if rank < 0:
        _check_node_rank(attempt, -1 - rank, node)
    chunk = ingest.ReceivedLog(rank=rank, offset=offset, data=data, dropped=dropped)
    try:
        return answer(ingest.append(ctx.db, ctx.store, ctx.memory, ctx.now_us, attempt, chunk))
    except OffsetAheadError as error:
        return _out_of_step(error)


@router.post("/attempts/{attempt_id}/metrics")
def metrics(attempt_id: AttemptId, data: Body, ctx: Ctx, node: Node) -> Response:
    """Records of a process's metrics file."""
    attempt = memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    batch = ingest.parse(data)
    _check_node_rank(attempt, batch.node_rank, node)
    try:
        return answer(ingest.record(ctx.db, ctx.memory, attempt, batch))
    except OffsetAheadError as error:
        return _out_of_step(error)


def _check_node_rank(attempt: memory.AttemptIdentity, node_rank: int, node: str) -> None:
    if attempt.nodes[node_rank : node_rank + 1] != (node,):
        raise ProblemError("forbidden", f"Node rank {node_rank} of attempt {attempt.id} is not on node {node}.")


def _out_of_step(error: OffsetAheadError) -> Response:
    """The problem, with the mark to go on from."""
    return Response(json.dumps({**body(error), "offset": error.mark}), 409, media_type=MEDIA_TYPE)


@router.post("/samples", status_code=NOTHING)
def samples(message: wire.SampleBatch, ctx: Ctx, node: Node) -> None:
    """Telemetry of the node and its jobs."""
    ingest.sample(ctx.db, ctx.memory, node, message, ctx.now_us())


@router.post("/attempts/{attempt_id}/checkpoints")
def checkpoint(attempt_id: AttemptId, message: wire.CheckpointReport, ctx: Ctx, node: Node) -> Response:
    """A checkpoint is committed, or its hashes are known."""
    attempt = memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    return answer(checkpoints.report(ctx.db, ctx.store, attempt, message, node, ctx.now_us()))


@router.post("/attempts/{attempt_id}/outputs")
def output(attempt_id: AttemptId, message: wire.OutputReport, ctx: Ctx, node: Node) -> Response:
    """Take a list of what the job has written."""
    attempt = memory.of_node(ctx.db, ctx.memory, attempt_id, node)
    return answer(outputs.report(ctx.db, ctx.store, attempt, message, node))


@router.get("/blobs/{sha256}")
def blob(sha256: str, request: Request, ctx: Ctx, node: Node) -> Response:
    """Content of a blob: code, checkpoints and files that an attempt of the node starts from."""
    node_access.check(ctx.db, node, sha256)
    if not ctx.store.has(sha256):
        raise not_found("blob", sha256)
    return download(request, ctx.store, sha256, sha256)


@router.put("/blobs/{sha256}", status_code=NOTHING, dependencies=[Depends(node_name)])
async def upload(sha256: str, request: Request, ctx: Ctx) -> None:
    """A streamed blob; its hash is checked."""
    await blobs.receive(ctx.db, ctx.store, request.stream(), sha256, now_us=ctx.now_us)


@router.post("/blobs/{sha256}", status_code=NOTHING, dependencies=[Depends(node_name)])
def placed(sha256: str, message: wire.Placed, ctx: Ctx) -> None:
    """A file lies in the inbox; its hash is checked and it is taken over."""
    blobs.take_over(ctx.db, ctx.store, message.placed, sha256, message.size, ctx.now_us(), linked=message.linked)
