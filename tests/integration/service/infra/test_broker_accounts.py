"""Accounts of nodes on a real Redis."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from service.infra.broker_accounts import BrokerAccounts
from service.infra.dispatch import Dispatcher, node_key_prefix
from tests.support import redis, wait

INSTALLATION = "yard-1"


@pytest.fixture
def server(short_tmp: Path) -> Iterator[redis.Server]:
    with redis.serve(short_tmp, "sec/ret") as server:
        yield server


def accounts(server: redis.Server) -> BrokerAccounts:
    return BrokerAccounts(server.url, INSTALLATION, "secret")


def key(node: str) -> str:
    """The list that a node's messages wait in."""
    return f"{node_key_prefix(INSTALLATION, node)}node.{node}"


def filled(server: redis.Server, *nodes: str) -> None:
    """Put a message into each node's queue, as the service does."""
    with Dispatcher(server.url, INSTALLATION) as dispatcher:
        for node in nodes:
            dispatcher.launch(node, f"att-{node}")
        wait.until(lambda: dispatcher.sent == len(nodes), what="the messages")


#: What a node must not be able to do with the queue of another, by its key.
HOSTILE: tuple[tuple[Any, ...], ...] = (
    ("LRANGE", "{}", 0, -1),
    ("BRPOP", "{}", 1),
    ("LPUSH", "{}", "planted"),
    ("DEL", "{}"),
    ("RENAME", "{}", "{}x"),
    ("SMEMBERS", "{}"),
    ("EVAL", "return redis.call('LRANGE', ARGV[1], 0, -1)", 0, "{}"),
    ("EVAL", "return redis.call('LPUSH', KEYS[1], 'planted')", 1, "{}"),
    ("COPY", "{}", "{}x"),
    ("SORT", "{}"),
)
#: Nor anything of the server, whatever the keys.
ADMINISTRATIVE: tuple[tuple[Any, ...], ...] = (
    ("KEYS", "*"),
    ("SCAN", 0),
    ("RANDOMKEY",),
    ("CONFIG", "SET", "dir", "/tmp"),
    ("CONFIG", "GET", "requirepass"),
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("ACL", "LIST"),
    ("ACL", "SETUSER", "default", "nopass"),
    ("MONITOR",),
    ("CLIENT", "LIST"),
    ("SHUTDOWN",),
    ("REPLICAOF", "localhost", "1"),
    ("MODULE", "LIST"),
    ("SCRIPT", "FLUSH"),
    ("PUBLISH", "channel", "x"),
    ("SUBSCRIBE", "channel"),
)


@pytest.mark.parametrize("other", ["other", "bo", "box2", "box:x", "b*"])
def test_a_node_reaches_its_own_queue_and_no_others(server: redis.Server, other: str) -> None:
    filled(server, "box", other)
    url = accounts(server).url("box", "tok-box")
    assert "sec%2Fret" not in url
    with server.client_of(url) as node:
        for command in HOSTILE:
            with pytest.raises(ResponseError, match=r"no permissions|can't access"):
                node.execute_command(*(word.format(key(other)) if isinstance(word, str) else word for word in command))
        with server.client() as administrator:
            assert administrator.llen(key(other)) == 1
        assert node.llen(key("box")) == 1
        assert node.brpop([key("box")], 1) is not None


@pytest.mark.parametrize("command", ADMINISTRATIVE, ids=lambda command: " ".join(map(str, command)))
def test_a_node_administers_nothing(server: redis.Server, command: tuple[Any, ...]) -> None:
    with server.client_of(accounts(server).url("box", "tok-box")) as node, pytest.raises(NoPermissionError):
        node.execute_command(*command)


def test_a_name_of_a_node_is_no_pattern(server: redis.Server) -> None:
    filled(server, "box")
    with server.client_of(accounts(server).url("*", "tok-1")) as node, pytest.raises(NoPermissionError):
        node.lrange(key("box"), 0, -1)


def test_the_account_is_the_same_after_a_restart_and_another_for_another_token(server: redis.Server) -> None:
    url = accounts(server).url("box", "tok-1")
    assert accounts(server).url("box", "tok-1") == url
    assert accounts(server).url("box", "tok-2") != url
    assert BrokerAccounts(server.url, INSTALLATION, "another").url("box", "tok-1") != url


def test_a_redis_that_was_restarted_is_told_again(short_tmp: Path) -> None:
    with redis.serve(short_tmp, "secret") as server:
        made = accounts(server)
        url = made.url("box", "tok-1")
    assert made.url("box", "tok-1") == url, "it cannot be asked now, and nothing else is known"
    with redis.serve(short_tmp, "secret") as server, server.client_of(url) as node:
        with pytest.raises(AuthenticationError):
            node.ping()
        assert made.url("box", "tok-1") == url
        assert node.ping()


def test_the_end_of_a_token_is_the_end_of_its_account_and_connections(server: redis.Server) -> None:
    made = accounts(server)
    other = BrokerAccounts(server.url, "yard-2", "secret")
    urls = [made.url("box", "tok-1"), made.url("far", "tok-2"), other.url("box", "tok-3")]
    clients = [server.client_of(url) for url in urls]
    assert all(client.ping() for client in clients)
    made.keep(["tok-2"])
    with pytest.raises(AuthenticationError):
        clients[0].ping()
    assert all(client.ping() for client in clients[1:])
    for client in clients:
        client.close()


def test_a_redis_that_is_not_ours_to_administer_is_shared_and_that_is_said(
    server: redis.Server, caplog: pytest.LogCaptureFixture
) -> None:
    with server.client() as administrator:
        administrator.execute_command("ACL", "SETUSER", "svc", "on", ">pw", "~*", "+@all", "-acl")
    url = f"redis+socket://svc:pw@{server.socket}"
    made = BrokerAccounts(url, INSTALLATION, "secret")
    with caplog.at_level(logging.WARNING):
        assert [made.url("box", "tok-1"), made.url("box", "tok-1")] == [url, url]
    (said,) = caplog.messages
    assert said.startswith("Redis lets the service make no accounts for nodes (")
    assert said.endswith("all nodes get the service's own password, and may read and write each other's queues")
    made.keep([])


def test_a_redis_without_a_password_has_no_accounts(short_tmp: Path) -> None:
    with redis.serve(short_tmp) as server:
        made = accounts(server)
        assert made.url("box", "tok-1") == server.url
        assert made.shared == "Redis asks for no password"
        with server.client() as administrator:
            assert administrator.execute_command("ACL", "USERS") == [b"default"]
