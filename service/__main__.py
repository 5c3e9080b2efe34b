"""``python -m service``: serves until it is told to end. ``python -m service openapi`` prints the API's description.

``python -m service rotate-secrets`` encrypts all secrets anew with a new key; the service may run meanwhile.
SIGHUP reads the settings anew.
"""

import argparse
import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from fastapi import FastAPI

from service.api import openapi, sign_in_socket
from service.api.reload import publish, reload
from service.api.server import Server, address, bind
from service.app import bare, create_app
from service.db import schema
from service.db.engine import Database
from service.db.sole_service import SecondServiceError, sole_service
from service.errors import ProblemError
from service.secrets import store
from service.secrets.key_file import KeyFile
from service.settings import ServiceSettings, is_loopback
from service.tls import Certificate, problem
from torchyard import home


def _arguments(argv: Sequence[str], defaults: ServiceSettings) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m service", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["serve", "openapi", "rotate-secrets"], default="serve")
    parser.add_argument("--host", default=defaults.host)
    parser.add_argument("--port", type=int, default=defaults.port, help="0 takes a free port")
    parser.add_argument("--tls-cert", type=Path, default=defaults.tls_cert, metavar="FILE", help="certificate, PEM")
    parser.add_argument(
        "--tls-key", type=Path, default=defaults.tls_key, metavar="FILE", help="its key, PEM, mode 0600"
    )
    parser.add_argument(
        "--behind-proxy", action="store_true", default=defaults.behind_proxy, help="a proxy in front ends TLS"
    )
    return parser.parse_args(argv)


def _rotate_secrets(settings: ServiceSettings) -> int:
    keys, db = KeyFile(settings.secret_key), Database(settings.database_url)
    try:
        count = store.rotate(db, keys)
    except ProblemError as error:
        print(error.detail, file=sys.stderr)  # noqa: T201
        return 1
    finally:
        db.dispose()
    print(f"{count} secrets are encrypted with a new key now, which is in {keys.path}")  # noqa: T201
    return 0


async def _serve(settings: ServiceSettings) -> None:
    app = create_app(settings)
    async with _listening(settings, app) as (server, listening):
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, server.stop)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload, app)
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            url = address(listening)
            publish(settings)
            home.write_address(url)
            with sign_in_socket.serving(app, url):
                print(f"ready {url}", flush=True)  # noqa: T201  what `yard up` and the tests wait for
                await serving
        await serving
    home.remove_address()


@asynccontextmanager
async def _listening(settings: ServiceSettings, app: FastAPI) -> AsyncIterator[tuple[Server, socket.socket]]:
    """Yield the server for programs on this machine and its socket; beside it, with a certificate, others reach TLS."""
    if settings.tls_cert is None or settings.tls_key is None:
        yield Server(app), bind(settings.host, settings.port)
        return
    certificate = Certificate(settings.tls_cert, settings.tls_key)
    public = bind(settings.host, settings.port)
    outside = Server(app, certificate, lifespan=False)
    tasks = [asyncio.create_task(outside.serve([public])), asyncio.create_task(certificate.watch())]
    print(f"TLS {address(public, 'https')}", file=sys.stderr, flush=True)  # noqa: T201
    try:
        yield Server(app), bind("127.0.0.1", settings.local_port)
    finally:
        outside.stop()
        tasks[1].cancel()
        await tasks[0]


def main(argv: Sequence[str]) -> int:
    """Exit code of the process."""
    try:
        given = ServiceSettings.from_environment()
    except ValueError as error:
        print(f"The service cannot start: {error}", file=sys.stderr)  # noqa: T201
        return 2
    arguments = _arguments(argv, given)
    if arguments.command == "openapi":
        sys.stdout.write(openapi.text(bare()))
        return 0
    if arguments.command == "rotate-secrets":
        return _rotate_secrets(given)
    said = {name: getattr(arguments, name) for name in ("host", "port", "behind_proxy", "tls_cert", "tls_key")}
    options = {name: value for name, value in said.items() if value != getattr(given, name)}
    return _run(ServiceSettings.from_environment(options))


def _run(settings: ServiceSettings) -> int:
    if not is_loopback(settings.host) and not settings.behind_proxy and settings.tls_cert is None:
        print(  # noqa: T201
            f"Binding {settings.host} would send tokens unencrypted: bind 127.0.0.1, give --tls-cert and --tls-key, or "
            "put a proxy that ends TLS in front and give --behind-proxy (TORCHYARD_BEHIND_PROXY=1).",
            file=sys.stderr,
        )
        return 2
    if (wrong := problem(settings.tls_cert, settings.tls_key)) is not None:
        print(f"The service cannot start: {wrong}", file=sys.stderr)  # noqa: T201
        return 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        with sole_service(settings.database_url):
            schema.migrate_in_child(settings.database_url)
            uvloop.run(_serve(settings))
    except (schema.NewerSchemaError, SecondServiceError, OSError) as error:
        print(f"The service cannot start: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
