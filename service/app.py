"""The application: its parts are made here, once, and live as long as it does."""

import importlib
import importlib.util
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from fastapi import FastAPI

from service import bootstrap, openapi, problems
from service.auth import Tokens
from service.context import Context
from service.db.engine import Database
from service.dispatch import Dispatcher, key_prefix
from service.guard import Guard
from service.hub import Hub
from service.pages import Pages
from service.routes import health
from service.settings import Settings
from service.store import BlobStore

NAMES = (
    "jobs",
    "people",
    "session",
    "agent",
    "logs",
    "metrics",
    "checkpoints",
    "snapshots",
    "outputs",
    "nodes",
    "queue",
)
#: Threads that answer requests; fewer than the database's connections, so that none waits for one.
THREADS = 24


def _routers() -> list[Any]:
    found = [name for name in NAMES if importlib.util.find_spec(f"service.routes.{name}")]
    return [importlib.import_module(f"service.routes.{name}").router for name in found]


def bare() -> FastAPI:
    """All routes and their description, without a database: what ``openapi.json`` is made of."""
    app = FastAPI(
        title="TorchYard",
        version=version("torchyard"),
        description="A training job queue for teams that share a GPU box.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        generate_unique_id_function=openapi.operation_id,
    )
    app.include_router(health.router)
    for router in _routers():
        app.include_router(router, prefix="/api/v1")
    problems.install(app)
    app.router.default = Pages()
    described: list[dict[str, Any]] = []

    def describe() -> dict[str, Any]:
        if not described:
            described.append(openapi.describe(app))
        return described[0]

    app.openapi = describe  # type: ignore[method-assign]  # how FastAPI wants it replaced
    return app


def create_app(settings: Settings) -> FastAPI:
    """The service: brings its database to the newest schema, makes what lacks, and answers once its lifespan runs."""
    bootstrap.migrate(settings.database_url)
    db = Database(settings.database_url)
    installation = bootstrap.prepare(db)
    wake = threading.Event()
    app = bare()
    app.state.context = Context(
        settings=settings,
        db=db,
        hub=Hub(),
        store=BlobStore(settings.artifacts),
        dispatcher=Dispatcher(settings.broker_url, key_prefix(installation)),
        installation=installation,
        wake_scheduler=wake.set,
    )
    app.state.tokens = Tokens(db, app.state.context.now_us, app.state.context.monotonic)
    app.add_middleware(Guard, settings=settings)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    ctx: Context = app.state.context
    with ExitStack() as stack:
        stack.callback(ctx.db.dispose)
        stack.enter_context(ctx.dispatcher)
        stack.callback(ctx.hub.close)
        yield
