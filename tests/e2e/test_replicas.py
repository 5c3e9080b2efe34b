"""Two services on one PostgreSQL, Redis and storage folder: both serve, one leads, and its death costs nothing."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from service.api import sse
from tests.support import live, postgres, processes, redis
from tests.support.wait import until

pytestmark = [pytest.mark.e2e]

#: Seconds in which a change has come, on a busy machine: sooner than by the next look of a stream that nobody wakes.
SOON_S = 12

API = "/api/v1"
TALK = """
import pathlib, sys, time, torchyard
step, gate = 0, pathlib.Path(sys.argv[1])
while not gate.exists():
    print(f"step {step}", flush=True)
    torchyard.report(step=step, loss=1.0)
    step += 1
    time.sleep(0.05)
print(f"steps: {step}", flush=True)
"""


@dataclass(frozen=True)
class Replica:
    """One service, and its administrator's client."""

    process: "subprocess.Popen[str]"
    client: httpx.Client
    home: Path

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        return self.client.get(API + path, **arguments).raise_for_status()

    def submit(self, *command: str, **changes: object) -> str:
        spec = {"name": "replicated", "launcher": "none", "command": list(command), **changes}
        return str(self.client.post(f"{API}/jobs", json=spec).raise_for_status().json()["id"])

    def leads(self) -> bool:
        return "torchyard_leads 1.0" in self.client.get("/metrics").text

    def state(self, job: str) -> str:
        return str(self.get(f"/jobs/{job}").json()["state"])


class Reader:
    """Server-sent events, read in a thread until the block ends: each line with the moment when it came."""

    def __init__(self, replica: Replica, path: str) -> None:
        self.lines: list[tuple[float, str]] = []
        self._client = live.connect(str(replica.client.base_url), replica.client.headers["Authorization"].split()[1])
        self._path = path
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # the service may have ended it
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self._client.close()
        assert not self._thread.is_alive()

    def _read(self) -> None:
        with suppress(httpx.HTTPError), self._client.stream("GET", API + self._path) as answer:
            self._socket: socket.socket = answer.extensions["network_stream"].get_extra_info("socket")
            for line in answer.iter_lines():
                self.lines.append((time.monotonic(), line))

    def first(self, text: str) -> float:
        """The moment of the first line that holds a text, once there is one."""
        return until(lambda: [at for at, line in list(self.lines) if text in line], what=f"{text!r} at {self._path}")[0]


@dataclass(frozen=True)
class Stores:
    """What replicas share."""

    database: str
    broker: str
    data: Path


@contextmanager
def _replica(stores: Stores, home: Path) -> Iterator[Replica]:
    home.mkdir()
    shared: dict[str, Any] = {
        "TORCHYARD_DATA": str(stores.data),
        "TORCHYARD_REDIS_URL": stores.broker,
        "TORCHYARD_HEARTBEAT_S": "1",
    }
    with live.process(stores.database, home, **shared) as (process, url):
        client = live.connect(url, (home / "admin.token").read_text().strip())
        with client:
            yield Replica(process, client, home)


@contextmanager
def _worker(replica: Replica, home: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "worker", "--name", "box", "--join", str(replica.client.base_url)]
    token = replica.client.post(f"{API}/tokens", json={"name": "box", "scopes": ["node"], "node": "box"}).json()
    (home / "token").write_text(token["secret"])
    command += ["--home", str(home), "--token-file", str(home / "token"), "--cpu-slots", "2"]
    environment = {**os.environ, "TORCHYARD_ONE_TRUST_DOMAIN": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready box\n"
            yield
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def stores(postgres_server: postgres.Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """A real PostgreSQL and Redis, and a folder."""
    with ExitStack() as stack:
        stack.enter_context(processes.unmarked())
        short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ty-", dir="/tmp")))
        broker = stack.enter_context(redis.serve(short))
        database = stack.enter_context(postgres_server.database(migrated=True))
        yield Stores(database, broker.url, tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def replicas(stores: Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Replica, Replica]]:
    """The leader and another, to which the node belongs."""
    folder = tmp_path_factory.mktemp("replicas")
    (folder / "worker").mkdir()
    with processes.unmarked(), _replica(stores, folder / "a") as leader:
        until(leader.leads, what="a leader")
        with _replica(stores, folder / "b") as other, _worker(other, folder / "worker"):
            yield leader, other


def test_each_shows_at_once_what_the_other_has_changed(replicas: tuple[Replica, Replica]) -> None:
    leader, other = replicas
    assert not other.leads()
    before = other.get("/jobs").headers["ETag"]
    leader.client.put(f"{API}/pause", json={"message": "to look at what waits"}).raise_for_status()
    with Reader(other, "/live?topic=jobs") as stream:
        stream.first("stream")
        submitted = time.monotonic()
        job = leader.submit("true")
        assert stream.first(job) - submitted < SOON_S < sse.PING_S
        again = other.get("/jobs", headers={"If-None-Match": before})
        assert (again.status_code, [each["id"] for each in again.json()["items"]]) == (200, [job])
        match = {"If-Match": leader.get(f"/jobs/{job}").headers["ETag"]}
        leader.client.patch(f"{API}/jobs/{job}", json={"name": "renamed"}, headers=match).raise_for_status()
        assert other.get(f"/jobs/{job}").json()["name"] == "renamed"
        stream.first('"renamed"')
    other.client.post(f"{API}/jobs/{job}/cancel").raise_for_status()
    assert leader.state(job) == "cancelled"
    other.client.delete(f"{API}/pause").raise_for_status()


def test_a_session_of_one_counts_at_the_other_until_it_ends(replicas: tuple[Replica, Replica]) -> None:
    leader, other = (str(each.client.base_url) for each in replicas)
    token = (replicas[0].home / "admin.token").read_text().strip()
    with live.connect(leader, None) as browser:
        browser.post(f"{API}/session", json={"token": token}, headers={"Origin": leader}).raise_for_status()
        address = f"{other}{API}/jobs"
        assert browser.get(address).status_code == 200
        browser.delete(f"{other}{API}/session", headers={"Origin": other}).raise_for_status()
        until(lambda: browser.get(f"{API}/jobs").status_code == 401, seconds=SOON_S, what="the end of the session")


def test_a_sign_in_link_of_one_counts_at_the_other_and_once(replicas: tuple[Replica, Replica]) -> None:
    leader, other = replicas
    code = leader.client.post(f"{API}/session/codes").raise_for_status().json()["code"]
    answers = []
    for replica in (other, leader, other):
        url = str(replica.client.base_url)
        with live.connect(url, None) as browser:
            answers.append(browser.post(f"{API}/session", json={"code": code}, headers={"Origin": url}).status_code)
            if len(answers) == 1:
                assert browser.get(f"{API}/jobs").status_code == 200
    assert answers == [201, 401, 401]


def test_the_leaders_death_is_taken_over_and_costs_nothing(replicas: tuple[Replica, Replica], tmp_path: Path) -> None:
    leader, other = replicas
    gate = tmp_path / "gate"
    long = leader.submit(sys.executable, "-c", TALK, str(gate))
    # Its node talks to the other service: what the leader tells of it has come by the database.
    with (
        Reader(leader, f"/jobs/{long}/logs/stream") as log,
        Reader(leader, f"/live?topic=metrics:{long}:") as live_stream,
    ):
        log.first("step 5")
        live_stream.first("loss")
    leader.process.kill()
    killed = time.monotonic()
    short = other.submit("true")
    until(lambda: other.state(short) != "queued", what="a start by the other service")
    assert time.monotonic() - killed < SOON_S
    gate.touch()
    for job in (long, short):
        until(lambda job=job: other.state(job) == "succeeded", what="the end of a job")  # type: ignore[misc]
    steps = int(until(lambda: _log(other, long), what="the whole log").split()[-1])
    assert _log(other, long) == "".join(f"step {step}\n" for step in range(steps)) + f"steps: {steps}\n"
    assert other.get(f"/jobs/{long}").json()["attempt"] == 1
    points = until(lambda: _points(other, long, steps), what="every point")
    assert [step for step, *_ in points] == list(range(steps))


def test_a_leader_that_says_nothing_loses_the_lead(
    replicas: tuple[Replica, Replica], stores: Stores, tmp_path: Path
) -> None:
    """As one does whose machine or network is gone: its connections stay open."""
    _, leader = replicas
    with _replica(stores, tmp_path / "c") as other:
        assert (leader.leads(), other.leads()) == (True, False)
        leader.process.send_signal(signal.SIGSTOP)
        try:
            until(other.leads, seconds=20, what="the other service's lead")
        finally:
            leader.process.send_signal(signal.SIGCONT)
        until(lambda: not leader.leads(), what="that the first one knows")
        assert other.leads()


def _log(replica: Replica, job: str) -> str:
    """The whole log; empty until its last line has come."""
    text = replica.get(f"/jobs/{job}/logs").text
    return text if "steps: " in text else ""


def _points(replica: Replica, job: str, count: int) -> list[list[float]]:
    series = replica.get(f"/jobs/{job}/metrics?max_points=100000").json()["series"]
    points = [point for each in series if each["name"] == "loss" for point in each["points"]]
    return points if len(points) >= count else []
