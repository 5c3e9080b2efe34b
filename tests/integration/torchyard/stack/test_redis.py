import subprocess
from pathlib import Path

import kombu
import pytest
import redis as client

from tests.support.wait import until
from torchyard.exceptions import NoRedisError
from torchyard.stack import redis


def test_it_answers_on_its_socket_only(short_tmp: Path) -> None:
    server = redis.embedded(short_tmp / "home")
    assert not server.answers()
    process = subprocess.Popen(server.command(), stdout=subprocess.DEVNULL)
    try:
        until(server.answers, what="Redis")
        assert server.socket.parent.stat().st_mode & 0o777 == 0o700
        assert server.socket.stat().st_mode & 0o777 == 0o700
        with client.Redis.from_url(server.client_url) as connection:
            assert connection.config_get("port") == {"port": "0"}
            assert connection.config_get("save") == {"save": ""}
        with kombu.Connection(server.broker_url) as connection, connection.SimpleQueue("q") as queue:
            queue.put({"n": 1})
            message = queue.get(timeout=60)
            assert message.payload == {"n": 1}
            message.ack()
    finally:
        process.terminate()
        process.wait(60)


def test_sockets_of_earlier_servers_are_cleared_away(short_tmp: Path) -> None:
    stale = redis.runtime_folder(short_tmp / "home") / "old.sock"
    stale.touch()
    first = redis.embedded(short_tmp / "home")
    assert not stale.exists()
    assert redis.embedded(short_tmp / "home").socket != first.socket


def test_sockets_lie_in_the_home_unless_its_path_is_too_long(short_tmp: Path) -> None:
    assert redis.embedded(short_tmp / "home").socket.parent == short_tmp / "home" / "run"
    far = redis.embedded(short_tmp / ("x" * 100)).socket
    assert len(str(far)) <= redis.LONGEST_SOCKET_PATH
    assert far.parent.parent == Path("/tmp")
    far.parent.rmdir()


def test_a_server_on_path_comes_first_then_the_bundled_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "redis-server"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert redis.find_executable() == str(own)
    own.unlink()
    bundled = redis._bundled()
    if bundled is not None:
        assert redis.find_executable() == bundled
    monkeypatch.setattr(redis, "_bundled", lambda: None)
    with pytest.raises(NoRedisError, match="apt-get install redis-server"):
        redis.find_executable()
