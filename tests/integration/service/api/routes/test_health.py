"""Health, and what is answered while the database is away."""

from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from tests.support.live import Live, running, settings_for
from tests.support.postgres import Server
from tests.support.problems import kind
from tests.support.wait import until


def test_it_lives_and_is_ready(live_service: Live) -> None:
    assert live_service.anonymous.get("/healthz").json() == {"status": "ok"}
    assert live_service.anonymous.get("/readyz").json() == {"status": "ready"}


def execute(url: str, *statements: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def test_a_database_that_is_away_is_said_and_comes_back(postgres_server: Server, yard_home: Path) -> None:
    with postgres_server.database() as url, running(settings_for(url, yard_home)) as live:
        name = make_url(url).database
        execute(
            postgres_server.url,
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
        )
        assert live.anonymous.get("/healthz").status_code == 200
        for path in ("/api/v1/jobs", "/readyz"):
            answer = live.client.get(path)
            assert kind(answer) == (503, "unavailable")
            assert answer.headers["retry-after"]
        execute(postgres_server.url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        until(lambda: live.client.get("/readyz").status_code == 200)
        assert live.client.get("/api/v1/jobs").json()["items"] == []
