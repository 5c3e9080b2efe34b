"""A worker whose Redis gives it an account of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.infra.broker_accounts import BrokerAccounts
from service.infra.dispatch import node_key_prefix
from tests.support import redis
from tests.support.worker import NAME, Yard, yard
from torchyard.network.login import with_login

PASSWORD = "the service's"


@pytest.fixture
def box(tmp_path: Path, short_tmp: Path) -> Iterator[Yard]:
    with yard(tmp_path, short_tmp) as made:
        (short_tmp / "own").mkdir()
        yield made


def register(box: Yard, server: redis.Server) -> str:
    """The service's answer to a registration; returns the node's own URL of Redis."""
    box.broker, box.fake.prefix = server, node_key_prefix("yard-1", NAME)
    box.fake.broker_url = BrokerAccounts(server.url, "yard-1", "secret").url(NAME, "tok-1")
    return box.fake.broker_url


def test_it_takes_launches_by_its_own_account_and_after_redis_has_forgotten_it_too(box: Yard, short_tmp: Path) -> None:
    with redis.serve(short_tmp / "own", PASSWORD) as server:
        register(box, server)
        box.start()
        attempt = box.fake.assign(["true"])
        box.send(attempt)
        assert box.settled(attempt).exit_code == 0
    with redis.serve(short_tmp / "own", PASSWORD) as server:
        register(box, server)
        attempt = box.fake.assign(["true"])
        box.send(attempt)
        assert box.settled(attempt).exit_code == 0


def test_its_own_setting_says_where_redis_is_and_the_service_as_whom(box: Yard, short_tmp: Path) -> None:
    with redis.serve(short_tmp / "own", PASSWORD) as server:
        url = register(box, server)
        box.environment["TORCHYARD_REDIS_URL"] = with_login(url, "")
        box.fake.broker_url = url.replace(str(server.socket), "/elsewhere.sock")
        box.start()
        attempt = box.fake.assign(["true"])
        box.send(attempt)
        assert box.settled(attempt).exit_code == 0
