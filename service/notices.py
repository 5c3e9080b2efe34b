"""Notices of the administrators: the pause of the queue, and the announcement. Each survives restarts."""

from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, select

from service.db import upsert
from service.db.engine import Database
from service.db.models import Installation
from service.db.unit_of_work import UnitOfWork
from service.identity import audit
from service.identity.callers import Caller
from service.infra import times
from service.infra.times import moment
from torchyard import api

PAUSE, ANNOUNCEMENT = "pause", "announcement"
_STORED: Select[Any] = select(Installation.value).where(Installation.key == bindparam("key"))


def get_notices(db: Database, now: int) -> api.Notices:
    """Return what everybody should know now."""
    with db.read() as tx:
        return _notices(tx, now)


def pause(db: Database, caller: Caller, new: api.NewPause, now: int) -> api.Notices:
    """Let no job start until `resume`; those that run go on. Of a pause that holds, the message is set anew."""
    with db.unit_of_work(now) as unit:
        held = _get(unit.tx, PAUSE)
        since = moment(now) if held is None else api.Pause.model_validate_json(held).since
        paused = api.Pause(message=new.message, user=caller.name, since=since)
        _set(unit.tx, PAUSE, paused.model_dump_json())
        audit.record(unit.tx, caller, "queue.pause", "queue", now, message=new.message)
        _tell(unit)
        return _notices(unit.tx, now)


def resume(db: Database, caller: Caller, now: int) -> api.Notices:
    """Let jobs start again; it is no error if they may already."""
    with db.unit_of_work(now) as unit:
        if _clear(unit.tx, PAUSE):
            audit.record(unit.tx, caller, "queue.resume", "queue", now)
        _tell(unit)
        return _notices(unit.tx, now)


def announce(db: Database, caller: Caller, new: api.NewAnnouncement, now: int) -> api.Notices:
    """Tell everybody something, in place of what they were told before."""
    told = api.Announcement(message=new.message, user=caller.name, since=moment(now), until=new.until)
    with db.unit_of_work(now) as unit:
        _set(unit.tx, ANNOUNCEMENT, told.model_dump_json())
        data = new.model_dump(mode="json", exclude_none=True)
        audit.record(unit.tx, caller, "announcement.set", "announcement", now, **data)
        _tell(unit)
        return _notices(unit.tx, now)


def withdraw(db: Database, caller: Caller, now: int) -> api.Notices:
    """Take the announcement away; it is no error if there is none."""
    with db.unit_of_work(now) as unit:
        if _clear(unit.tx, ANNOUNCEMENT):
            audit.record(unit.tx, caller, "announcement.clear", "announcement", now)
        _tell(unit)
        return _notices(unit.tx, now)


def pause_words(tx: Connection) -> str:
    """Return why no job starts, in words; empty while jobs may."""
    stored = _get(tx, PAUSE)
    if stored is None:
        return ""
    paused = api.Pause.model_validate_json(stored)
    why = f": {paused.message}" if paused.message else ""
    return f"the queue is paused by {paused.user} since {times.words(paused.since)}{why}"


def pause_params(tx: Connection) -> dict[str, str]:
    """Return what `pause_words` is made of, as parameters of a reason; empty while jobs may start."""
    stored = _get(tx, PAUSE)
    if stored is None:
        return {}
    paused = api.Pause.model_validate_json(stored)
    return {"user": paused.user, "since": times.words(paused.since), "said": paused.message or ""}


def _notices(tx: Connection, now: int) -> api.Notices:
    paused, told = _get(tx, PAUSE), _get(tx, ANNOUNCEMENT)
    announcement = None if told is None else api.Announcement.model_validate_json(told)
    if announcement is not None and announcement.until is not None and announcement.until <= moment(now):
        announcement = None
    return api.Notices(
        pause=None if paused is None else api.Pause.model_validate_json(paused), announcement=announcement
    )


def _tell(unit: UnitOfWork) -> None:
    unit.tell("notices")
    unit.tell("queue")
    unit.wake_scheduler()


def _get(tx: Connection, key: str) -> str | None:
    value: str | None = tx.scalar(_STORED, {"key": key})
    return value


def _set(tx: Connection, key: str, value: str) -> None:
    row = upsert.insert(tx, Installation).values(key=key, value=value)
    tx.execute(row.on_conflict_do_update(index_elements=["key"], set_={"value": value}))


def _clear(tx: Connection, key: str) -> bool:
    return bool(tx.execute(delete(Installation).where(Installation.key == key)).rowcount)
