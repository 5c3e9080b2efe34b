"""The application: its parts are made here, once, and live as long as it does."""

import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from fastapi import FastAPI

from service import bootstrap
from service.api import openapi, problems
from service.api.audited import Audited
from service.api.middleware import RequestGuard
from service.api.open_streams import OpenStreams
from service.api.publisher import Publisher
from service.api.routes import (
    agent,
    checkpoints,
    environments,
    groups,
    health,
    jobs,
    live,
    logs,
    metrics,
    nodes,
    notices,
    outputs,
    people,
    queue,
    secrets,
    session,
    shared,
    sharing,
    snapshots,
    stacks,
)
from service.api.static import DashboardFiles
from service.context import Context
from service.controllers import background
from service.db import schema
from service.db.engine import Database
from service.estimation.forecasts import Estimator
from service.identity import refusals
from service.identity.callers import Tokens
from service.identity.link_tokens import LinkTokens
from service.identity.provider_calls import ProviderCalls
from service.identity.refusals import Refusals
from service.identity.sign_in_limits import PUBLIC_LINKS, SignInLimits
from service.infra.broker_accounts import BrokerAccounts
from service.infra.dispatch import Dispatcher
from service.infra.effects import Effects
from service.infra.hub import ANY, Hub
from service.infra.observability import Counted, Counters
from service.infra.relay import SCHEDULER, TOKENS, Relay
from service.infra.shared_reads import SharedReads
from service.scheduler_cache.load import Loader
from service.secrets import store as secret_store
from service.settings import ServiceSettings
from service.storage.store import BlobStore
from service.telemetry.spans import SpanExporter

#: Tried in this order for each request: what is called most comes first.
ROUTERS = (
    jobs.router,
    agent.router,
    logs.router,
    live.router,
    metrics.router,
    checkpoints.router,
    outputs.router,
    groups.router,
    snapshots.router,
    stacks.router,
    environments.router,
    queue.router,
    nodes.router,
    people.router,
    secrets.router,
    sharing.router,
    shared.router,
    notices.router,
    session.router,
    health.router,
)
#: Threads that answer requests; fewer than the database's connections, so that none waits for one.
THREADS = 24


def bare() -> FastAPI:
    """All routes and their description, without a database: what ``openapi.json`` is made of."""
    app = FastAPI(
        title="TorchYard",
        version=version("torchyard"),
        description="A training job queue for teams that share a GPU box.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        routes=[route for router in ROUTERS for route in router.routes],
    )
    problems.install(app)
    app.router.default = DashboardFiles()
    described: list[dict[str, Any]] = []

    def describe() -> dict[str, Any]:
        if not described:
            described.append(openapi.describe(app))
        return described[0]

    app.openapi = describe  # type: ignore[method-assign]  # how FastAPI wants it replaced
    return app


def create_app(settings: ServiceSettings) -> FastAPI:
    """The service: brings its database to the newest schema, makes what lacks, and answers once its lifespan runs."""
    schema.migrate(settings.database_url)
    db = Database(settings.database_url)
    installation = bootstrap.prepare(db)
    woken = threading.Event()
    app = bare()
    estimator = Estimator()
    counters, dispatcher = Counters(), Dispatcher(settings.broker_url, installation)
    store = BlobStore(settings.artifacts, settings.disk_floor)
    ctx = Context(
        settings=settings,
        db=db,
        hub=Hub(),
        store=store,
        dispatcher=dispatcher,
        installation=installation,
        broker_accounts=BrokerAccounts(settings.broker_url, installation, bootstrap.secret_key(db)),
        loader=Loader(settings.disk_floor, estimator, store.free),
        estimator=estimator,
        wake_scheduler=woken.set,
        reads=SharedReads(db.version),
    )
    spans = SpanExporter(settings.otlp_endpoint, db) if settings.otlp_endpoint else None
    app.state.relay = relay = None if db.is_sqlite else Relay(settings.database_url, lambda topics: _heard(app, topics))
    tell_others = relay.tell if relay else None
    trace, count = spans.put if spans else None, ctx.stored_points.add
    db.on_commit(Effects(ctx.hub, dispatcher, woken.set, trace, tell_others, count).fire)
    counters.watch(db, dispatcher)
    app.state.context, app.state.woken, app.state.counters, app.state.spans = ctx, woken, counters, spans
    forgotten = partial(relay.tell, TOKENS) if relay else lambda: None
    app.state.tokens = Tokens(db, ctx.now_us, ctx.monotonic, settings.visibility, forgotten)
    app.state.publisher = Publisher(ctx)
    secret_store.report_unreadable(db, ctx.secret_keys)
    app.state.open_streams = OpenStreams(settings.streams_per_user)
    app.state.sign_in_limits = SignInLimits(ctx.monotonic)
    app.state.provider_calls = ProviderCalls()
    app.state.link_limits = SignInLimits(ctx.monotonic, PUBLIC_LINKS)
    app.state.link_tokens = LinkTokens(bootstrap.secret_key(db))
    app.state.refusals = Refusals(ctx.monotonic)
    app.state.sign_in_socket = None  # made with the address of the service (`sign_in_socket.serving`)
    app.add_middleware(RequestGuard, settings=settings)
    app.add_middleware(Audited, context=ctx, refused=app.state.refusals)
    app.add_middleware(Counted, counters=counters)
    return app


def _heard(app: FastAPI, topics: frozenset[str]) -> None:
    """Take up what other services on the database have changed."""
    app.state.context.hub.notify(*topics)
    if not topics.isdisjoint({SCHEDULER, ANY}):
        app.state.woken.set()
    if not topics.isdisjoint({TOKENS, ANY}):
        app.state.tokens.drop()


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    ctx: Context = app.state.context
    with ExitStack() as stack:
        stack.callback(ctx.db.dispose)
        stack.enter_context(ctx.db.reserving())
        stack.callback(refusals.flush, ctx.db, app.state.refusals)
        stack.enter_context(ctx.dispatcher)
        if app.state.relay is not None:
            stack.enter_context(app.state.relay)
        if app.state.spans is not None:
            stack.enter_context(app.state.spans)
        stack.enter_context(background.running(ctx, app.state.woken, app.state.counters))
        stack.callback(ctx.hub.close)
        yield
