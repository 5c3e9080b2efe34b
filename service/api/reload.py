"""Settings that are read anew while the service runs (SIGHUP, `yard config reload`)."""

import json
import logging
from datetime import UTC, datetime

from fastapi import FastAPI

from service.api.sign_in_socket import SignInSocket
from service.context import Context
from service.settings import ServiceSettings
from torchyard import home, settings_in_use

_log = logging.getLogger(__name__)


def reload(app: FastAPI) -> None:
    """Read the settings anew: what can count at once does; the rest is named. Wrong ones change nothing."""
    ctx: Context = app.state.context
    outcome: dict[str, object] = {"at": datetime.now(UTC).isoformat()}
    try:
        fresh = ServiceSettings.from_environment(ctx.settings.options)
    except ValueError as error:
        _log.error("the settings stay as they were: %s", error)
        outcome["error"] = str(error)
    else:
        changes = ctx.settings.take_over(fresh)
        ctx.store.floor = ctx.settings.disk_floor
        ctx.loader.set_disk_floor(ctx.settings.disk_floor)
        app.state.tokens.set_visibility(ctx.settings.visibility)
        ctx.wake_scheduler()
        publish(ctx.settings)
        _log.info("settings read anew: changed: %s", ", ".join(changes.at_once) or "none")
        if changes.restart:
            _log.warning("not taken up before a restart: %s", ", ".join(changes.restart))
        outcome |= {"changed": changes.at_once, "restart": changes.restart}
        socket: SignInSocket | None = app.state.sign_in_socket
        if socket is not None and (problem := socket.follow_settings()) is not None:
            outcome["problem"] = problem
    home.write_private(home.root() / home.RELOAD_FILE, json.dumps(outcome))


def publish(settings: ServiceSettings) -> None:
    """Let `yard config check` know what the service has."""
    settings_in_use.publish(home.root(), settings.given, settings.options)
