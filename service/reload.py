"""Settings that are read anew while the service runs (SIGHUP, `yard config reload`)."""

import json
import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from fastapi import FastAPI

from service.context import Context
from service.settings import ServiceSettings
from torchyard import home

#: Settings that a command's option may have changed.
_OPTIONS: Final = ("host", "port", "behind_proxy", "tls_cert", "tls_key")

_log = logging.getLogger(__name__)


def reload(app: FastAPI) -> None:
    """Read the settings anew: what can count at once does; the rest is named. Wrong ones change nothing."""
    ctx: Context = app.state.context
    outcome: dict[str, object] = {"at": datetime.now(UTC).isoformat()}
    try:
        fresh = ServiceSettings.from_environment()
    except ValueError as error:
        _log.error("the settings stay as they were: %s", error)
        outcome["error"] = str(error)
    else:
        options = {name: getattr(ctx.settings, name) for name in _OPTIONS}
        changed, restart = ctx.settings.take_over(replace(fresh, **options))
        ctx.store.floor = ctx.settings.disk_floor
        ctx.loader.set_disk_floor(ctx.settings.disk_floor)
        app.state.tokens.set_visibility(ctx.settings.visibility)
        ctx.wake_scheduler()
        _log.info("settings read anew: changed %s; need a restart: %s", changed or "none", restart or "none")
        outcome |= {"changed": changed, "restart": restart}
    home.write_private(home.root() / home.RELOAD_FILE, json.dumps(outcome))
