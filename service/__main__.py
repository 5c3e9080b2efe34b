"""``python -m service``: serves until it is told to end. ``python -m service openapi`` prints the API's description.

``python -m service rotate-secrets`` encrypts all secrets anew with a new key; the service may run meanwhile.
"""

import argparse
import asyncio
import ipaddress
import logging
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

import uvloop

from service.api import openapi
from service.app import bare, create_app
from service.bootstrap import NewerSchemaError
from service.db.engine import Database
from service.errors import ProblemError
from service.secrets import store
from service.secrets.key_file import KeyFile
from service.server import Server, address, bind
from service.settings import Settings
from torchyard import home


def _arguments(argv: Sequence[str], defaults: Settings) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m service", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["serve", "openapi", "rotate-secrets"], default="serve")
    parser.add_argument("--host", default=defaults.host)
    parser.add_argument("--port", type=int, default=defaults.port, help="0 takes a free port")
    parser.add_argument(
        "--behind-proxy", action="store_true", default=defaults.behind_proxy, help="a proxy in front ends TLS"
    )
    return parser.parse_args(argv)


def _rotate_secrets(settings: Settings) -> int:
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


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def _serve(settings: Settings) -> None:
    listening = bind(settings.host, settings.port)
    server = Server(create_app(settings))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
    serving = asyncio.create_task(server.serve([listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if server.started:
        url = address(listening)
        home.write_address(url)
        print(f"ready {url}", flush=True)  # noqa: T201  what `yard up` and the tests wait for
    await serving
    home.address_file().unlink(missing_ok=True)


def main(argv: Sequence[str]) -> int:
    """Exit code of the process."""
    try:
        given = Settings.from_environment()
    except ValueError as error:
        print(f"The service cannot start: {error}", file=sys.stderr)  # noqa: T201
        return 2
    arguments = _arguments(argv, given)
    if arguments.command == "openapi":
        sys.stdout.write(openapi.text(bare()))
        return 0
    if arguments.command == "rotate-secrets":
        return _rotate_secrets(given)
    if not is_loopback(arguments.host) and not arguments.behind_proxy:
        print(  # noqa: T201
            f"Binding {arguments.host} would send tokens unencrypted: bind 127.0.0.1, or put a proxy that ends TLS in "
            "front and give --behind-proxy (TORCHYARD_BEHIND_PROXY=1).",
            file=sys.stderr,
        )
        return 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    settings = replace(given, host=arguments.host, port=arguments.port, behind_proxy=arguments.behind_proxy)
    try:
        uvloop.run(_serve(settings))
    except (NewerSchemaError, OSError) as error:
        print(f"The service cannot start: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
