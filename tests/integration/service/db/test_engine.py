import threading

import psycopg
import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import DBAPIError

from service.db.engine import Database
from service.db.models import Base, Project
from tests.support.postgres import Server


def test_a_failed_transaction_leaves_nothing(db: Database) -> None:
    def insert_and_fail() -> None:
        with db.write() as tx:
            tx.execute(insert(Project).values(name="vision", created_us=1))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        insert_and_fail()
    with db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(Project)) == 0


def test_many_writers_lose_nothing(db: Database) -> None:
    def write(worker: int) -> None:
        for n in range(20):
            with db.write() as tx:
                tx.execute(insert(Project).values(name=f"{worker}-{n}", created_us=1))

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(Project)) == 160


def test_a_reader_sees_one_moment(db: Database) -> None:
    def count() -> int:
        return tx.scalar(select(func.count()).select_from(Project)) or 0

    with db.read() as tx:
        assert count() == 0
        with db.write() as writer:
            writer.execute(insert(Project).values(name="vision", created_us=1))
        assert count() == 0
    with db.read() as tx:
        assert count() == 1


def test_one_after_the_other_uses_one_connection(db: Database) -> None:
    """Each that was ever used keeps two megabytes of pages."""
    with db.read(), db.read(), db.read():
        pass
    used = set()
    for _ in range(5):
        with db.read() as tx:
            used.add(tx.connection.dbapi_connection)
    assert len(used) == 1


def test_a_reader_cannot_write_on_postgresql(postgres_server: Server) -> None:
    with postgres_server.database() as url:
        database = Database(url)
        Base.metadata.create_all(database.engine)
        with database.read() as tx, pytest.raises(DBAPIError, match="read-only"):
            tx.execute(insert(Project).values(name="vision", created_us=1))
        database.dispose()


def test_both_ends_of_a_connection_to_postgresql_notice_that_the_other_is_gone(postgres_server: Server) -> None:
    with postgres_server.database() as url:
        database = Database(f"{url}&connect_timeout=9" if "?" in url else f"{url}?connect_timeout=9")
        with database.read() as tx:
            used = tx.connection.driver_connection
            assert isinstance(used, psycopg.Connection)
            ours = used.info.get_parameters()
            query = "SELECT name FROM pg_settings WHERE source = 'session' AND name LIKE 'tcp_%' ORDER BY name"
            session = tx.scalars(text(query)).all()
        database.dispose()
    names = ("connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
    assert [ours[name] for name in names] == ["9", "4", "2", "3", "10000"]
    expected = ["tcp_keepalives_count", "tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_user_timeout"]
    assert session == expected
