"""The publisher against a real Redis."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.infra import dispatch
from service.infra.dispatch import Dispatcher
from tests.support import redis, wait
from torchyard.wire import LAUNCH_TASK, NUDGE_TASK

INSTALLATION = "inst-1"


@pytest.fixture(params=[None, "secret"], ids=["open", "password"])
def server(request: pytest.FixtureRequest, short_tmp: Path) -> Iterator[redis.Server]:
    with redis.serve(short_tmp, request.param) as server:
        yield server


def received(server: redis.Server, node: str) -> list[tuple[str, list[str]]]:
    """Task and arguments of every message in the node's queue, oldest first."""
    with server.client() as client:
        messages = [
            json.loads(raw)
            for raw in client.lrange(f"{dispatch.node_key_prefix(INSTALLATION, node)}node.{node}", 0, -1)
        ]
    bodies = [json.loads(base64.b64decode(m["body"])) for m in reversed(messages)]
    return [(m["headers"]["task"], body[0]) for m, body in zip(reversed(messages), bodies, strict=True)]


def test_messages_arrive_in_order_and_doubles_are_sent_once(server: redis.Server) -> None:
    dispatcher = Dispatcher(server.url, INSTALLATION)
    for attempt in ("att-1", "att-2", "att-1"):
        dispatcher.launch("box", attempt)
    dispatcher.nudge("box")
    dispatcher.nudge("other")
    with dispatcher:
        wait.until(lambda: dispatcher.sent == 4)
    assert received(server, "box") == [(LAUNCH_TASK, ["att-1"]), (LAUNCH_TASK, ["att-2"]), (NUDGE_TASK, [])]
    assert received(server, "other") == [(NUDGE_TASK, [])]


def test_a_message_leaves_at_once(server: redis.Server) -> None:
    with Dispatcher(server.url, INSTALLATION) as dispatcher:
        dispatcher.launch("box", "warm-up")
        wait.until(lambda: dispatcher.sent == 1)
        started = time.monotonic()
        dispatcher.launch("box", "att-1")
        wait.until(lambda: dispatcher.sent == 2)
        assert time.monotonic() - started < 10


def test_it_goes_on_when_redis_comes_back(short_tmp: Path) -> None:
    url = f"redis+socket://{short_tmp}/redis.sock"
    with Dispatcher(url, INSTALLATION) as dispatcher:
        dispatcher.launch("box", "lost")
        wait.until(lambda: dispatcher.failed == 1)
        with redis.serve(short_tmp) as server:
            dispatcher.launch("box", "first")
            wait.until(lambda: dispatcher.sent == 1)
            server.process.kill()
        dispatcher.launch("box", "lost too")
        wait.until(lambda: dispatcher.failed == 2)
        with redis.serve(short_tmp) as server:
            dispatcher.launch("box", "second")
            wait.until(lambda: dispatcher.sent == 2)
            assert received(server, "box") == [(LAUNCH_TASK, ["second"])]


def test_a_redis_that_hangs_blocks_nobody_and_is_not_queued_up_for() -> None:
    with redis.black_hole() as url, Dispatcher(url, INSTALLATION) as dispatcher:
        started = time.monotonic()
        for number in range(dispatch.MAX_WAITING + 500):
            dispatcher.launch("box", f"att-{number}")
        assert time.monotonic() - started < 30
        wait.until(lambda: dispatcher.failed >= dispatch.MAX_WAITING, seconds=60)
        assert dispatcher.sent == 0
