"""Wake-ups between two services on a real PostgreSQL."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from sqlalchemy import text

from service.db.engine import Database
from service.infra.hub import ANY
from service.infra.relay import CHANNEL, Relay
from tests.support import postgres
from tests.support.wait import until


@dataclass
class Heard:
    """What one service has heard of the others."""

    topics: list[str] = field(default_factory=list)

    def hear(self, topics: frozenset[str]) -> None:
        self.topics += sorted(topics)


@pytest.fixture
def url(postgres_server: postgres.Server) -> Iterator[str]:
    with postgres_server.database() as made:
        yield made


def test_what_one_tells_the_others_hear_once(url: str) -> None:
    one, other = Heard(), Heard()
    with Relay(url, one.hear) as first, Relay(url, other.hear) as second:
        first.tell("job:1", "jobs")
        until(lambda: other.topics == ["job:1", "jobs"])
        second.tell("queue")
        until(lambda: one.topics == ["queue"])
    assert other.topics == ["job:1", "jobs"]


def test_a_fault_in_what_is_done_on_hearing_ends_no_hearing(url: str, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[frozenset[str]] = []

    def hear(topics: frozenset[str]) -> None:
        heard.append(topics)
        if "job:1" in topics:
            raise RuntimeError("this one is not understood")

    with Relay(url, Heard().hear) as first, Relay(url, hear):
        first.tell("job:1")
        until(lambda: frozenset({ANY}) in heard, what="the service on a new connection")
        first.tell("job:2")
        until(lambda: frozenset({"job:2"}) in heard)
    assert "this one is not understood" in caplog.text


def test_after_a_lost_connection_anything_may_have_changed_and_nothing_is_kept_back(url: str) -> None:
    one, other, db = Heard(), Heard(), Database(url)
    with ExitStack() as stack:
        stack.callback(db.dispose)
        first = stack.enter_context(Relay(url, one.hear))
        stack.enter_context(Relay(url, other.hear))
        first.tell("job:1")
        until(lambda: other.topics == ["job:1"])
        with db.write() as tx:
            tx.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                    "AND (query LIKE :listening OR query LIKE 'SELECT pg_notify%')"
                ),
                {"listening": f"LISTEN {CHANNEL}"},
            )
        first.tell("job:2")
        until(lambda: ANY in one.topics and ANY in other.topics, what="both services on new connections")
        first.tell("job:3")
        until(lambda: "job:3" in other.topics)
