"""Serving of the application until it is told to end."""

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvloop
from fastapi import FastAPI

from service.api import sign_in_socket
from service.api.reload import publish, reload
from service.api.server import Server, address, bind
from service.settings import ServiceSettings
from service.tls import Certificate
from torchyard import home


def run(app: FastAPI, settings: ServiceSettings) -> None:
    """Serve until SIGINT or SIGTERM; SIGHUP reads the settings anew. OSError if an address is taken."""
    uvloop.run(_serve(app, settings))


async def _serve(app: FastAPI, settings: ServiceSettings) -> None:
    async with _listening(app, settings) as (server, listening):
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, server.stop)
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload, app)
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if server.started:
            # What the start has made stays for good: to look through its 200,000 objects holds everybody up for 0.1 s.
            gc.freeze()
            gc.enable()
            url = address(listening)
            publish(settings)
            home.write_address(url)
            with sign_in_socket.serving(app, url):
                print(f"ready {url}", flush=True)  # noqa: T201  what `yard up` and the tests wait for
                await serving
        await serving
    home.remove_address()


@asynccontextmanager
async def _listening(app: FastAPI, settings: ServiceSettings) -> AsyncIterator[tuple[Server, socket.socket]]:
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
