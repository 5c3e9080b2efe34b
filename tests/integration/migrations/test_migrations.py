"""The migrations make exactly what the models say, on both databases, and can be taken back."""

import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.util import CommandError
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    create_engine,
    inspect,
    text,
)
from sqlalchemy.pool import NullPool

from service.db import engine as db_engine
from service.db import schema as schemas
from service.db.models import Base
from service.db.schema import NewerSchemaError, migrate
from tests.support import postgres
from tests.support.wait import until

ROOT = Path(__file__).parents[3]


#: What migrations 0026 and 0039 make, besides the models: databases tell too little of indexes on expressions.
UNMODELLED = ("job_names", "ix_jobs_name_trigrams", "ix_jobs_id_bytes", "ix_jobs_lower_name", "ix_jobs_ran_us")


def modelled(name: str | None, *_: Any) -> bool:
    return not (name or "").startswith(UNMODELLED)


def tables(url: str) -> set[str]:
    engine = create_engine(url)
    names = set(inspect(engine).get_table_names())
    engine.dispose()
    return names


@pytest.fixture
def database_url(empty_database_url: str) -> str:
    """These tests make the tables themselves."""
    return empty_database_url


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_models_and_migrated_schema_are_the_same(database_url: str) -> None:
    migrate(database_url)
    engine = create_engine(database_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_name": modelled})
        differences = compare_metadata(context, Base.metadata)
    engine.dispose()
    assert differences == []


def test_checks_partial_indexes_and_keys_are_the_same(tmp_path: Path) -> None:
    """What autogenerate does not compare: the whole text of every table, which SQLite keeps."""
    database_url = f"sqlite:///{tmp_path / 'x.db'}"
    migrate(database_url)
    declared = create_engine("sqlite://")
    Base.metadata.create_all(declared)
    migrated = create_engine(database_url)
    query = text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name != 'alembic_version'")

    def parts(sql: str) -> set[str]:
        """Columns and constraints, in whatever order: a column that came later stands behind the constraints."""
        head, _, rest = sql.partition("(")
        body, _, tail = rest.rpartition(")")
        split = [head, tail, *re.split(r",(?![^()]*\))", body)]
        return {re.sub(r"\s+", " ", part).strip() for part in split}

    found = []
    for engine in (declared, migrated):
        with engine.connect() as connection:
            found.append({name: parts(sql) for name, sql in connection.execute(query) if modelled(name)})
        engine.dispose()
    assert found[0] == found[1]


def test_up_and_down_and_up_again(database_url: str) -> None:
    migrate(database_url)
    assert set(Base.metadata.tables) <= tables(database_url)
    migrate(database_url, "base")
    assert tables(database_url) <= {"alembic_version"}
    migrate(database_url)
    migrate(database_url)
    assert set(Base.metadata.tables) <= tables(database_url)


def downgrade(url: str, revision: str) -> None:
    """As somebody does it by hand."""
    config = Config()
    config.set_main_option("script_location", str(ROOT / "migrations"))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.downgrade(config, revision)


def schema(engine: Engine) -> MetaData:
    found = MetaData()
    found.reflect(engine, only=modelled)
    found.remove(found.tables["alembic_version"])
    return found


def value(column: Column[Any], number: int) -> Any:
    """Another one for each number, in all columns."""
    for key in column.foreign_keys:
        return value(key.column, number) if key.column is not column else None
    if column.name == "gpu_time":  # is read by 0030
        return {"20000": {"useful": number}}
    of = {Boolean: number % 2 == 1, JSON: {"n": [number, "ä"]}, Integer: number, Float: number / 2}
    of[LargeBinary] = f"{column.name}-{number}".encode()
    return next((found for sort, found in of.items() if isinstance(column.type, sort)), f"{column.name}-{number}")


#: What must be so: an ended attempt's devices are free and a live one's are not.
_ENDED = {"live": False, "node": "name-1"}
_LIVE = {"live": True, "released_us": None, "node": "name-2"}
_SPECIAL = {
    "allocations": [_ENDED, _LIVE],
    "device_use": [{"capacity": 9, "used": 9}] * 2,
    "secrets": [{"project": None}, {"user_id": None}],
    "tokens": [{"parent_id": None}] * 2,
}


def fill(engine: Engine, known: MetaData) -> None:
    """Two rows in each table that `known` lacks; in those that it has, what is new in the rows that are there."""
    with engine.begin() as connection:
        for table in schema(engine).sorted_tables:
            if table.name not in known.tables:
                rows = [{column.name: value(column, number) for column in table.c} for number in (1, 2)]
                special = _SPECIAL.get(table.name, [{}] * 2)
                connection.execute(table.delete())
                connection.execute(table.insert(), [row | own for row, own in zip(rows, special, strict=True)])
                continue
            new = [column for column in table.c if column.name not in known.tables[table.name].c]
            key = next(iter(table.primary_key.columns))
            for number in (1, 2) if new else ():
                changed = {column.name: value(column, number) for column in new}
                connection.execute(table.update().where(key == value(key, number)).values(changed))


def content(engine: Engine, of: MetaData) -> dict[str, list[Any]]:
    """All rows of these tables, as far as they have these columns."""
    with engine.connect() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(table.select())), key=repr)
            for table in of.sorted_tables
        }


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """The database of the test, at whatever revision."""
    engine = create_engine(database_url, poolclass=NullPool)
    yield engine
    engine.dispose()


def test_rows_survive_the_way_up_and_down_and_up_again(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0002")
    before = schema(engine)
    fill(engine, MetaData())
    rows = content(engine, before)
    assert {len(found) for found in rows.values()} == {2}
    migrate(database_url, "0003")
    assert content(engine, before) == rows
    with engine.connect() as connection:
        assert connection.execute(text("SELECT node, used FROM device_use")).all() == [("name-2", 2)]
        assert connection.execute(text("SELECT eligible_us FROM jobs ORDER BY number")).all() == [(1,), (2,)]
    fill(engine, before)
    assert content(engine, before) == rows
    downgrade(database_url, "0002")
    assert content(engine, before) == rows
    assert {name: set(table.c.keys()) for name, table in schema(engine).tables.items()} == {
        name: set(table.c.keys()) for name, table in before.tables.items()
    }
    migrate(database_url, "0003")
    assert content(engine, before) == rows


def test_output_files_keep_their_names_and_the_first_node_goes_back_alone(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0004")
    fill(engine, MetaData())
    with engine.begin() as connection:
        connection.execute(text("UPDATE outputs SET node_rank = NULL WHERE path = 'path-1'"))
    before = schema(engine)
    files = content(engine, before)["outputs"]
    migrate(database_url, "0005")
    query = text("SELECT path, root, node_rank, state, mode FROM outputs ORDER BY path")
    with engine.begin() as connection:
        assert [tuple(row) for row in connection.execute(query)] == [
            ("path-1", "output", 0, "stored", 0o644),
            ("path-2", "output", 2, "stored", 0o644),
        ]
        outputs = schema(engine).tables["outputs"]
        second = connection.execute(outputs.select().where(outputs.c.path == "path-2")).one()._mapping
        for other in ({"node_rank": 3}, {"root": "code"}, {"path": "x", "state": "on-node"}):
            connection.execute(outputs.insert().values(**{**second, **other}))
    downgrade(database_url, "0004")
    with engine.begin() as connection:
        connection.execute(text("UPDATE outputs SET node_rank = NULL WHERE path = 'path-1'"))
    assert content(engine, before)["outputs"] == files


def test_a_shared_gpu_is_in_the_way_of_a_downgrade(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0002")
    fill(engine, MetaData())
    migrate(database_url, "0003")
    shared = "UPDATE allocations SET live = {}, released_us = {}, share = 1, node = 'box', uuid = 'gpu'"
    with engine.begin() as connection:
        connection.execute(text(shared.format("true", "NULL")))
    everything = schema(engine)
    rows = content(engine, everything)
    with pytest.raises(CommandError, match=r"jobs 1, 2 on GPU gpu of node box\. Nothing was changed\. Wait until"):
        downgrade(database_url, "0002")
    assert content(engine, everything) == rows
    with engine.begin() as connection:
        connection.execute(text(shared.format("false", "7") + " WHERE attempt_id = 'id-1'"))
    downgrade(database_url, "0002")


def test_administrators_and_members_keep_what_they_may(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0012")
    fill(engine, MetaData())  # the first user is an administrator
    migrate(database_url, "0013")
    with engine.connect() as connection:
        roles = connection.execute(text("SELECT role, project FROM users ORDER BY name")).all()
        assert roles == [("administrator", None), ("member", None)]
        assert set(connection.execute(text("SELECT role FROM project_members")).scalars()) == {"member"}
    downgrade(database_url, "0012")
    with engine.connect() as connection:
        assert [bool(each) for each in connection.execute(text("SELECT admin FROM users ORDER BY name")).scalars()] == [
            True,
            False,
        ]
    migrate(database_url)


def test_usage_tells_what_could_have_been_shared(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0029")
    fill(engine, MetaData())
    known = schema(engine).tables
    with engine.begin() as connection:
        connection.execute(known["checkpoints"].update().values(job_id="id-2"))
        connection.execute(known["attempts"].update().values(job_id="id-1", gpu_time={"1": {"lost": 3, "idle": 4}}))
    told = {}
    for preemptible, restartable in product((True, False, None), (True, False)):
        with engine.begin() as connection:
            spec = {"preemptible": preemptible, "restartable": restartable}
            connection.execute(known["jobs"].update().values(spec=spec, project="name-1", user_id="id-1"))
            of = {"day": 1, "user_id": "id-1", "project": "name-1"}
            connection.execute(known["usage"].delete())
            kinds = [of | {"kind": kind, "gpu_us": 9} for kind in ("idle", "useful")]
            connection.execute(known["usage"].insert(), kinds)
        migrate(database_url, "0030")
        with engine.connect() as connection:
            query = text("SELECT kind, stoppable_us FROM usage ORDER BY kind")
            told[preemptible, restartable] = [tuple(row) for row in connection.execute(query)]
        downgrade(database_url, "0029")
    shared, whole = [("idle", 8), ("useful", 0)], [("idle", 0), ("useful", 0)]
    assert told == {
        (True, True): shared,
        (True, False): shared,
        (False, True): whole,
        (False, False): whole,
        (None, True): shared,
        (None, False): whole,
    }


def test_outages_that_hold_at_the_upgrade_begin_with_it(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0032")
    fill(engine, MetaData())
    known = schema(engine).tables
    with engine.begin() as connection:
        devices, nodes = known["devices"], known["nodes"]
        connection.execute(nodes.update().values(draining=True, maintenance=None, unreachable=False))
        second = nodes.update().where(nodes.c.name == "name-2")
        connection.execute(second.values(maintenance="id-1", unreachable=True))
        for uuid, unusable in (("uuid-1", "in quarantine: Xid 79"), ("uuid-2", "stuck")):
            connection.execute(devices.update().where(devices.c.uuid == uuid).values(unusable=unusable))
    before = time.time_ns() // 1000
    migrate(database_url, "0033")
    query = "SELECT kind, node, uuid, reason, ended_us FROM outages ORDER BY kind"
    with engine.connect() as connection:
        found = connection.execute(text(query)).all()
        began = set(connection.execute(text("SELECT started_us FROM outages")).scalars())
    assert found == [
        ("drain", "name-1", None, "drain_message-1", None),
        ("maintenance", "name-2", None, "name-1", None),
        ("quarantine", "name-1", "uuid-1", "Xid 79", None),
        ("unreachable", "name-2", None, "", None),
    ]
    assert len(began) == 1
    assert before <= began.pop() <= time.time_ns() // 1000
    downgrade(database_url, "0032")
    assert "outages" not in tables(database_url)


def test_what_nodes_keep_from_jobs_is_told_apart_from_quarantines(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0033")
    fill(engine, MetaData())
    devices = schema(engine).tables["devices"]
    with engine.begin() as connection:
        for uuid, unusable in (("uuid-1", "in quarantine: Xid 79"), ("uuid-2", "stuck")):
            connection.execute(devices.update().where(devices.c.uuid == uuid).values(unusable=unusable))
    migrate(database_url, "0034")
    with engine.connect() as connection:
        found = connection.execute(text("SELECT reported_unusable FROM devices ORDER BY uuid")).scalars().all()
    assert found == [None, "stuck"]


def test_stored_bytes_are_those_of_the_files_that_are_there(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0035")
    fill(engine, MetaData())
    known = schema(engine).tables
    with engine.begin() as connection:
        connection.execute(known["jobs"].update().values(project="name-1"))
        connection.execute(known["checkpoints"].update().values(job_id="id-1", state="stored", size=10))
        connection.execute(
            known["checkpoints"].update().where(known["checkpoints"].c.id == "id-2").values(state="deleted")
        )
        connection.execute(known["outputs"].update().values(state="on-node"))
        first = connection.execute(known["outputs"].select().limit(1)).one()._mapping
        kept = {**first, "job_id": "id-2", "path": "kept", "size": 200, "state": "stored"}
        connection.execute(known["outputs"].insert(), [kept])
        connection.execute(known["attempts"].update().values(job_id="id-1"))
        connection.execute(known["log_streams"].update().values(size=1000))
        owners = {row.id: row.user_id for row in connection.execute(text("SELECT id, user_id FROM jobs"))}
    migrate(database_url, "0036")
    with engine.connect() as connection:
        found = connection.execute(text("SELECT user_id, project, size FROM stored_bytes ORDER BY size")).all()
    assert found == [(owners["id-2"], "name-1", 200), (owners["id-1"], "name-1", 10 + 2 * 1000)]


def test_what_ended_attempts_wasted_is_known_by_day(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0036")
    fill(engine, MetaData())
    known = schema(engine).tables
    spent = {"7": {"useful": 5, "idle": 2}, "8": {"lost": 3, "failed": 0}}
    with engine.begin() as connection:
        connection.execute(known["jobs"].update().values(user_id="id-1"))
        connection.execute(known["attempts"].update().values(job_id="id-2", gpu_time=spent))
    migrate(database_url, "0037")
    with engine.connect() as connection:
        found = connection.execute(
            text("SELECT day, kind, number, user_id, gpu_us FROM wasted_usage ORDER BY day")
        ).all()
    assert found == [(7, "idle", 2, "id-1", 4), (8, "lost", 2, "id-1", 6)]


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_what_users_and_projects_have_used_is_summed_up(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0041")
    fill(engine, MetaData())
    known = schema(engine).tables
    names = ("day", "user_id", "project", "kind", "gpu_us", "stoppable_us")
    rows = [
        (7, "id-1", "name-1", "idle", 1, 1),
        (7, "id-1", "name-2", "idle", 2, 0),
        (7, "id-2", "name-2", "idle", 4, 4),
        (7, "id-2", "name-2", "lost", 8, 0),
        (8, "id-1", "name-1", "idle", 16, 0),
    ]
    with engine.begin() as connection:
        connection.execute(known["usage"].delete())
        connection.execute(known["usage"].insert(), [dict(zip(names, row, strict=True)) for row in rows])
    migrate(database_url, "0042")
    with engine.connect() as connection:
        query = "SELECT owner_kind, day, owner, kind, gpu_us, stoppable_us FROM owner_usage ORDER BY 1, 2, 3, 4"
        found = connection.execute(text(query)).all()
    assert found == [
        ("project", 7, "name-1", "idle", 1, 1),
        ("project", 7, "name-2", "idle", 6, 4),
        ("project", 7, "name-2", "lost", 8, 0),
        ("project", 8, "name-1", "idle", 16, 0),
        ("user", 7, "id-1", "idle", 3, 1),
        ("user", 7, "id-2", "idle", 4, 4),
        ("user", 7, "id-2", "lost", 8, 0),
        ("user", 8, "id-1", "idle", 16, 0),
    ]


def found_by(engine: Engine, words: str) -> list[int]:
    """Numbers of jobs by the trigrams of their names."""
    query = {
        "sqlite": "SELECT rowid FROM job_names WHERE job_names MATCH :words ORDER BY rowid",
        "postgresql": "SELECT number FROM jobs WHERE name_trigrams(name) @> name_trigrams(:words) ORDER BY number",
    }[engine.name]
    with engine.connect() as connection:
        return list(connection.execute(text(query), {"words": words}).scalars())


def test_names_of_earlier_jobs_have_trigrams(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0025")
    fill(engine, MetaData())
    migrate(database_url, "0026")
    assert found_by(engine, "ame") == [1, 2]
    with engine.begin() as connection:
        connection.execute(text("UPDATE jobs SET name = 'Other' WHERE number = 2"))
        jobs = schema(engine).tables["jobs"]
        first = connection.execute(jobs.select().where(jobs.c.number == 1)).one()._mapping
        connection.execute(jobs.insert(), [{**first, "id": f"id-{number}", "number": number} for number in (3, 4)])
        connection.execute(jobs.delete().where(jobs.c.number == 3))
    assert found_by(engine, "ame") == [1, 4]
    assert found_by(engine, "the") == [2]
    downgrade(database_url, "0025")
    assert schema(engine).tables.keys() == {name for name in tables(database_url) if name != "alembic_version"}
    migrate(database_url)
    assert found_by(engine, "the") == [2]


def test_an_sqlite_without_trigrams_is_refused_with_the_mend(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    migrate(url, "0025")
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        bare = connection.connection.driver_connection
        assert isinstance(bare, sqlite3.Connection)
        refused = sqlite3.SQLITE_CREATE_VTABLE
        bare.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action == refused else sqlite3.SQLITE_OK)
        config = Config()
        config.set_main_option("script_location", str(ROOT / "migrations"))
        config.attributes["connection"] = connection
        with pytest.raises(RuntimeError, match=r"lacks FTS5: take another Python, or PostgreSQL"):
            command.upgrade(config, "head")


def test_two_services_that_start_together_migrate_once(database_url: str) -> None:
    errors: list[BaseException] = []

    def start() -> None:
        try:
            migrate(database_url)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(Base.metadata.tables) <= tables(database_url)


#: Whether somebody has waited for an advisory lock for longer than a transaction may wait in the test below.
WAITED = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'
AND clock_timestamp() - query_start > interval '0.3 s'"""


def test_a_service_waits_as_long_as_another_migrates(
    postgres_server: postgres.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (db_engine, schemas):
        monkeypatch.setattr(module, "WAIT_S", 0.05)
    with postgres_server.database() as url, ThreadPoolExecutor(1) as pool:
        engine = create_engine(url, poolclass=NullPool)

        def waited() -> int | None:
            with engine.connect() as other:
                return other.scalar(text(WAITED))

        with engine.begin() as holder:
            holder.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": schemas._MIGRATION_LOCK})
            migrated = pool.submit(migrate, url)
            until(lambda: migrated.done() or waited(), what="a service that waits")
        migrated.result(60)
        assert set(Base.metadata.tables) <= tables(url)


def test_a_newer_schema_is_refused_with_the_mend(database_url: str) -> None:
    migrate(database_url)
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(NewerSchemaError, match="install that version"):
        migrate(database_url)


def test_a_plain_url_works_for_people_who_write_migrations(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    ini = tmp_path / "alembic.ini"
    ini.write_text((ROOT / "alembic.ini").read_text().replace("sqlite:///torchyard.db", url))
    command = [sys.executable, "-m", "alembic", "-c", str(ini), "upgrade", "head"]
    plain = {**os.environ, "LC_ALL": "C"}  # by which alembic reads the file
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=plain)
    assert set(Base.metadata.tables) <= tables(url)
    sql = subprocess.run([*command, "--sql"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "CREATE TABLE jobs" in sql


@pytest.mark.parametrize("resumed", [3, None])
def test_earlier_metrics_have_their_smallest_and_largest_value(
    database_url: str, engine: Engine, resumed: int | None
) -> None:
    migrate(database_url, "0034")
    fill(engine, MetaData())
    known = schema(engine).tables
    points = [(1, 1, 5.0), (1, 2, 0.2), (1, 3, None), (1, 4, -9.0), (2, 4, 0.25), (2, 5, 0.5), (4, 1, -99.0)]
    with engine.begin() as connection:
        attempts, series = known["attempts"], known["metric_series"]
        connection.execute(attempts.update().values(job_id="id-1"))
        connection.execute(attempts.update().where(attempts.c.id == "id-2").values(resumed_from_step=resumed))
        connection.execute(known["metric_points"].delete())
        connection.execute(series.delete())
        of = {"job_id": "id-1", "rank": 0, "name": "loss", "stream": "0", "last_special": 0, "last_step": 4}
        rows = [{**of, "id": n, "attempt_id": f"id-{n}", "attempt": n, "last_value": 0.5} for n in (1, 2)]
        without_points = {**rows[0], "id": 3, "name": "lr", "last_value": 7.0}
        by_a_tracker = {**rows[0], "id": 4, "stream": "wandb-rank-0"}
        connection.execute(series.insert(), [*rows, without_points, by_a_tracker])
        steps = [{"series_id": n, "seq": step, "step": step, "time_us": 1, "value": value} for n, step, value in points]
        connection.execute(
            known["metric_points"].insert(), [{**row, "special": int(row["value"] is None)} for row in steps]
        )
    migrate(database_url, "0035")
    with engine.connect() as connection:
        found = connection.execute(text("SELECT id, min_value, max_value FROM metric_series ORDER BY id")).all()
    assert [tuple(row) for row in found] == [(1, -9.0, 5.0), (2, 0.2, 5.0), (3, 7.0, 7.0), (4, -99.0, -99.0)]
    downgrade(database_url, "0034")


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_earlier_series_that_may_be_long_are_to_be_rolled_up(database_url: str, engine: Engine) -> None:
    migrate(database_url, "0039")
    fill(engine, MetaData())
    known = schema(engine).tables
    lines = {1: (0, 4095), 2: (5, 9000), 3: (-5, 9000)}
    with engine.begin() as connection:
        series = connection.execute(known["metric_series"].select()).mappings().first()
        connection.execute(known["metric_points"].delete())
        connection.execute(known["metric_series"].delete())
        rows = [{**(series or {}), "id": each, "name": str(each)} for each in (*lines, 4)]
        connection.execute(known["metric_series"].insert(), rows)
        points = [{"series_id": each, "seq": seq} for each, ends in lines.items() for seq in ends]
        rest = {"step": 0, "time_us": 0, "value": 0.5, "special": 0}
        connection.execute(known["metric_points"].insert(), [{**point, **rest} for point in points])
    migrate(database_url, "0040")
    with engine.connect() as connection:
        found = connection.execute(text("SELECT id, rolled_seq, unrolled FROM metric_series ORDER BY id")).all()
    assert [tuple(row) for row in found] == [(1, -1, 0), (2, -1, 8995), (3, -1, 0), (4, -1, 0)]
    downgrade(database_url, "0039")
