"""``python -m service``: serves until it is told to end. ``python -m service openapi`` prints the API's description.

``python -m service rotate-secrets`` encrypts all secrets anew with a new key; the service may run meanwhile.
SIGHUP reads the settings anew.
"""

import argparse
import gc
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError

# Nothing here may import the application: its import takes as long as the migrations that run meanwhile.
from service.db import schema
from service.db.engine import Database
from service.db.sole_service import SecondServiceError, sole_service
from service.errors import DISK_FULL, ProblemError, of_database
from service.settings import ServiceSettings, is_loopback
from service.tls import problem
from torchyard.errnos import NO_SPACE


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
    from service.secrets import store
    from service.secrets.key_file import KeyFile

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


def main(argv: Sequence[str]) -> int:
    """Exit code of the process."""
    try:
        given = ServiceSettings.from_environment()
    except ValueError as error:
        print(f"The service cannot start: {error}", file=sys.stderr)  # noqa: T201
        return 2
    arguments = _arguments(argv, given)
    if arguments.command == "openapi":
        from service.api import openapi
        from service.app import bare

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
    gc.disable()  # what the start makes stays: to look through it for garbage meanwhile takes a fifth of its time
    try:
        with sole_service(settings.database_url):
            with schema.migrating(settings.database_url):
                from service.api import serve
                from service.app import create_app
            serve.run(create_app(settings), settings)
    except (schema.NewerSchemaError, SecondServiceError) as error:
        return _cannot_start(str(error))
    except OSError as error:
        return _cannot_start(f"{DISK_FULL} ({settings.data})" if error.errno in NO_SPACE else str(error))
    except OperationalError as error:
        if of_database(error).kind != "insufficient-storage":
            raise
        return _cannot_start(f"{DISK_FULL} ({make_url(settings.database_url).render_as_string()})")
    return 0


def _cannot_start(reason: str) -> int:
    print(f"The service cannot start: {reason}", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
