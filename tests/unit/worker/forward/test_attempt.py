"""The follower as a state machine: a clock that the test turns, a service in memory, a folder on disk."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from torchyard import wire
from worker.attempts import tree, unsent
from worker.attempts.folder import AttemptFolder, ShimRecord
from worker.exceptions import RequestRefusedError, UnavailableError
from worker.forward import attempt as attempts
from worker.forward import streams
from worker.forward.attempt import Follower
from worker.forward.blobs import BlobSender
from worker.forward.tools import FollowerTools


class Service:
    """Takes everything and notes the order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.errors: dict[str, Exception] = {}
        self.log_bytes: dict[int, bytes] = {}
        self.results: list[wire.Result] = []
        self.starts: list[wire.NodeStart] = []
        self.output_paths: list[str] = []
        self.blobs: set[str] = set()
        #: It takes a result that settles.
        self.settles = True

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.errors:
            raise self.errors[name]

    def running(self, attempt: str, started_us: int, start: wire.NodeStart | None = None) -> None:
        self._called("running")

    def start(self, attempt: str, start: wire.NodeStart) -> None:
        self._called("start")
        self.starts.append(start)

    def result(self, attempt: str, result: wire.Result) -> wire.Settled | None:
        self._called("result")
        self.results.append(result)
        return wire.Settled(awaited=True) if result.settled and self.settles else None

    def notes(self, attempt: str, notes: wire.JobNotes) -> None:
        self._called("notes")

    def environment(self, attempt: str, told: wire.EnvironmentReport) -> bool:
        self._called("environment")
        return False

    def settled(self, attempt: str) -> bool:
        self._called("settled")
        return False

    def log(self, attempt: str, rank: int, offset: int, data: bytes, dropped: int) -> int:
        self._called("log")
        self.log_bytes[rank] = self.log_bytes.get(rank, b"")[:offset] + data
        return offset + len(data)

    def metrics(self, attempt: str, batch: wire.MetricBatch) -> int:
        self._called("metrics")
        return batch.end

    def checkpoint(self, attempt: str, report: wire.CheckpointReport) -> wire.CheckpointAnswer:
        self._called("checkpoint")
        return wire.CheckpointAnswer(checkpoint="ckpt-1", missing=[])

    def outputs(self, attempt: str, report: wire.OutputReport) -> wire.Missing:
        self._called("outputs")
        self.output_paths = [file.path for file in report.files]
        return wire.Missing(missing=sorted({file.sha256 for file in report.files} - self.blobs))

    def blob_placed(self, sha256: str, name: str, size: int, *, linked: bool = False) -> None:
        raise AssertionError

    def upload_blob(self, sha256: str, size: int, content: Iterator[bytes]) -> None:
        self._called("blob")
        list(content)
        self.blobs.add(sha256)


class Watch:
    def __init__(self) -> None:
        self.ended = False
        self.said: bytes | None = None

    def wait(self, seconds: float) -> bool:
        return self.ended

    def close(self) -> None:
        pass


class World:
    """One attempt, its folder, and everything around it."""

    def __init__(self, root: Path) -> None:
        self.service = Service()
        self.shim = Watch()
        self.now = 0.0
        self.finalized: list[str] = []
        #: How often a lost attempt's end cannot be written.
        self.stuck = 0
        self.learnt: list[tuple[object, AttemptFolder, int]] = []
        self.learnt_fault: Exception | None = None
        self.background: list[Callable[[], None]] = []
        self.folder = AttemptFolder(root / "attempts", "att-1")
        self.folder.create()
        for name in ("logs", "job/metrics", "job/checkpoints", "job/output"):
            self.folder.at(name).mkdir(parents=True)
        self.folder.write_launch({"log_limit": 1000, "node_rank": 0})
        self.folder.mark_started()

    def follower(self, *, disk_limit: int | None = None) -> Follower:
        tools = FollowerTools(
            service=self.service,
            blobs=BlobSender(self.service),
            watch=lambda *_: self.shim,
            finalize_lost=self.finalize_lost,
            changed=lambda: None,
            spawn=self.background.append,
            now=lambda: self.now,
            disk_limit=lambda: disk_limit,
            learn=self.learn,
        )
        return Follower(self.folder, tools, fresh=True)

    def learn(self, launch: object, folder: AttemptFolder, owner: int) -> None:
        if self.learnt_fault is not None:
            raise self.learnt_fault
        self.learnt.append((launch, folder, owner))

    def finalize_lost(self, attempt: str) -> None:
        self.finalized.append(attempt)
        if self.stuck:
            self.stuck -= 1
            raise OSError(errno.EROFS, "Read-only file system", attempt)
        self.folder.write_result(wire.Result(kind=wire.ResultKind.LOST, ended_us=9))

    def speak(self) -> None:
        """The shim has let the job go."""
        record = ShimRecord(pid=1, start_ticks=1, boot_id="b", child_pid=2, started_us=5)
        (self.folder.at("yard") / "shim.json").write_text(json.dumps(record.__dict__))

    def end(self, **fields: object) -> None:
        """The shim has written the result and left."""
        result = {"kind": "exited", "exit_code": 0, "started_us": 5, "ended_us": 6} | fields
        self.folder.write_result(wire.Result.model_validate(result))
        self.shim.ended = True

    def write(self, name: str, data: bytes) -> None:
        with self.folder.at(name).open("ab") as file:
            file.write(data)

    def run(self, follower: Follower, *, until: str | None = None, steps: int = 100) -> None:
        """Steps until a request is made or everything is settled; time passes as the follower asks."""
        for _ in range(steps):
            pause = follower.step()
            if pause is None or (until is not None and until in self.service.calls):
                return
            self.now += max(pause, 0.001)
            while self.background:
                self.background.pop(0)()
        raise AssertionError(f"no {until or 'end'} after {steps} steps: {self.service.calls}")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_short_job_takes_few_requests(world: World) -> None:
    world.speak()
    world.end()
    world.run(world.follower())
    assert world.service.calls == ["result", "settled"]


@pytest.mark.parametrize("settles", [True, False])
def test_a_job_that_leaves_nothing_is_settled_by_its_result(world: World, *, settles: bool) -> None:
    """A service of the version before is told by itself."""
    tree.write(world.folder.path, tree.BaselineManifest())
    world.speak()
    world.write("logs/rank-0.log", b"hello")
    world.end()
    world.service.settles = settles
    follower = world.follower()
    world.run(follower)
    assert world.service.calls == ["log", "result"] + ["settled"] * (not settles)
    assert follower.awaited is settles


@pytest.mark.parametrize("what", ["file", "gone", "live", "running", "log", "many"])
def test_a_result_settles_nothing_while_something_is_left(world: World, what: str) -> None:
    snapshot = {(wire.Root.CODE, "train.py"): "0" * 64} if what == "gone" else {}
    if what == "many":
        snapshot = {(wire.Root.CODE, f"{number}.py"): "0" * 64 for number in range(1000)}
    tree.write(world.folder.path, tree.BaselineManifest(live=what == "live", snapshot=snapshot))
    if what == "file":
        world.write("job/output/file", b"output")
    if what == "log":
        world.write("logs/rank-0.log", b"hello")
        world.service.errors["log"] = UnavailableError()
    world.speak()
    follower = world.follower()
    if what == "running":
        world.run(follower, until="running")
    world.end()
    world.run(follower, until="result")
    assert not world.service.results[0].settled
    world.service.errors.clear()
    world.run(follower)
    assert world.service.calls[-1] == "settled"


def test_a_result_is_sent_as_it_is_told_and_the_folder_waits_for_the_shim(world: World) -> None:
    """It has told its result, and brings it to the disk."""
    follower = world.follower()
    world.speak()
    world.run(follower, until="running")
    world.shim.said = b'{"kind": "exited", "exit_code": 3, "started_us": 5, "ended_us": 6}\n'
    with pytest.raises(AssertionError):
        world.run(follower)
    assert world.service.calls == ["running", "result", "settled"]
    assert world.service.results[0].exit_code == 3
    world.shim.ended = True
    assert follower.step() is None
    assert world.finalized == []


def test_words_that_are_no_result_are_passed_over(world: World) -> None:
    follower = world.follower()
    world.speak()
    world.shim.said = b"3\n"
    world.run(follower, until="running")
    assert "result" not in world.service.calls
    world.end()
    world.run(follower)
    assert world.service.results[0].exit_code == 0


def test_the_streams_come_before_the_result_and_the_outputs_after(world: World) -> None:
    world.speak()
    world.write("logs/rank-0.log", b"hello")
    world.write("job/metrics/rank-0-1-1.jsonl", b'{"n":0,"step":0,"t":0,"v":{"a":1}}\n')
    world.write("job/output/file", b"output")
    world.end()
    world.run(world.follower())
    assert world.service.calls == ["metrics", "log", "result", "outputs", "blob", "outputs", "settled"]


def test_running_is_told_once_and_streams_flow_meanwhile(world: World) -> None:
    follower = world.follower()
    world.speak()
    world.run(follower, until="running")
    world.write("logs/rank-0.log", b"hello")
    world.run(follower, until="log")
    world.end()
    world.run(follower)
    assert world.service.calls == ["running", "log", "result", "settled"]


def test_an_attempt_is_learnt_from_once_when_it_has_ended(world: World) -> None:
    follower = world.follower()
    world.speak()
    world.run(follower, until="running")
    assert world.learnt == []
    world.end()
    world.run(follower)
    assert world.learnt == [({"log_limit": 1000, "node_rank": 0}, world.folder, os.getuid())]


def test_what_is_installed_is_told_once_and_does_not_hold_up_the_result(world: World) -> None:
    launch = {"python": "/none/bin/python", "argv": ["true"], "env": {}, "torchrun": False}
    world.folder.write_launch(launch | {"uid": None, "gid": None, "groups": None})
    follower = world.follower()
    world.speak()
    world.run(follower, until="running")
    world.end()
    world.run(follower)
    assert world.service.calls == ["running", "result", "environment", "settled"]


def test_a_job_that_takes_too_much_disk_is_to_fail(world: World) -> None:
    world.folder.make_temporary()
    follower = world.follower(disk_limit=1 << 20)
    world.speak()
    world.write("job/output/file", b"x" * (2 << 20))
    world.run(follower, until="running")
    while world.background:
        world.background.pop(0)()
    command = world.folder.read_command() or {}
    assert (command["action"], command["fingerprint"]) == ("fail", "disk-limit")


def test_a_stream_that_hangs_does_not_hold_up_the_result(world: World) -> None:
    world.speak()
    world.write("logs/rank-0.log", b"hello")
    world.service.errors["log"] = UnavailableError()
    world.end()
    follower = world.follower()
    world.run(follower, until="result")
    assert attempts.DRAIN_S <= world.now < attempts.DRAIN_S + 1
    del world.service.errors["log"]
    world.run(follower)
    assert world.service.log_bytes == {0: b"hello"}
    assert world.service.calls[-2:] == ["log", "settled"]


@pytest.mark.parametrize("what", ["metrics", "log", "outputs"])
def test_a_fault_of_ours_does_not_keep_the_next_attempt_waiting(world: World, what: str) -> None:
    """What it kept from the service stays on the node, and the job's owner is told where."""
    world.speak()
    world.write("logs/rank-0.log", b"hello")
    world.write("job/metrics/rank-0-1-1.jsonl", b'{"n":0,"step":0,"t":0,"v":{"a":1}}\n')
    world.write("job/output/file", b"output")
    world.service.errors[what] = KeyError("a fault")
    world.end()
    world.run(world.follower())
    assert streams.FAULTY_S <= world.now < streams.FAULTY_S + 120
    assert world.service.calls[-1] == "settled"
    assert unsent.keep(world.folder)
    said = (world.folder.attempts.parent / "unsent/att-1/logs/launcher.log").read_text()
    stream = {"log": "logs"}.get(what, what)
    assert f"not all of its {stream} came to the service, for a fault in TorchYard ('a fault')" in said
    assert said.count("\n") == 1


def test_what_fails_after_a_fault_of_ours_is_waited_for(world: World) -> None:
    world.speak()
    world.write("logs/rank-0.log", b"hello")
    world.service.errors["log"] = KeyError("a fault")
    follower = world.follower()
    world.end()
    world.run(follower, until="result")
    world.service.errors["log"] = UnavailableError()
    while world.now < 2 * streams.FAULTY_S:
        with pytest.raises(AssertionError):
            world.run(follower, steps=10)
    del world.service.errors["log"]
    world.run(follower)
    assert world.service.log_bytes == {0: b"hello"}
    assert not unsent.keep(world.folder)


def test_a_result_that_cannot_be_described_is_told_all_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(*_: object, **__: object) -> wire.Result:
        raise KeyError("a fault")

    monkeypatch.setattr(attempts.results, "complete", describe)
    world.speak()
    world.end(exit_code=3)
    world.run(world.follower())
    assert world.service.calls == ["result", "settled"]
    assert world.service.results[0].exit_code == 3


def test_a_fault_in_what_is_learnt_keeps_nothing(world: World) -> None:
    world.learnt_fault = KeyError("a fault")
    world.speak()
    world.end()
    world.run(world.follower())
    assert world.service.calls == ["result", "settled"]


def test_the_result_is_sent_until_it_is_taken(world: World) -> None:
    world.speak()
    world.end()
    world.service.errors["result"] = UnavailableError()
    follower = world.follower()
    with pytest.raises(AssertionError):
        world.run(follower, steps=30)
    assert "settled" not in world.service.calls
    del world.service.errors["result"]
    world.run(follower)
    assert len(world.service.results) == 1


@pytest.mark.parametrize("status", [409, 410])
def test_a_result_that_nobody_wants_still_brings_the_rest(world: World, status: int) -> None:
    world.speak()
    world.end()
    world.service.errors["result"] = RequestRefusedError(status, {}, "POST result")
    world.run(world.follower())
    assert world.service.calls[-1] == "settled"


def test_a_dead_shim_is_finalized(world: World) -> None:
    world.speak()
    follower = world.follower()
    world.run(follower, until="running")
    world.shim.ended = True
    world.run(follower)
    assert world.finalized == ["att-1"]
    assert world.service.results[0].kind is wire.ResultKind.LOST


def test_a_disk_that_takes_no_writes_is_told_once(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Follower, "_wait", lambda *_: None)
    world.speak()
    world.shim.ended, world.stuck = True, 3
    assert world.follower().run()
    assert world.finalized == ["att-1"] * 4
    (record,) = [each for each in caplog.records if "Read-only file system" in each.message]
    assert record.exc_info is None


def test_a_shim_that_died_before_its_first_word_is_finalized(world: World) -> None:
    world.run(world.follower(), steps=1000)
    assert world.finalized == ["att-1"]
    assert world.service.calls == ["result", "settled"]


def test_an_attempt_that_could_not_be_prepared_is_reported(world: World) -> None:
    world.end(kind="unusable", exit_code=None, message="no such Python")
    world.run(world.follower())
    assert world.service.calls == ["result", "settled"]


def test_a_new_checkpoint_is_known_before_the_result(world: World) -> None:
    world.speak()
    place = world.folder.at("job/checkpoints") / "step-000000003"
    place.mkdir()
    (place / "manifest.json").write_text('{"step": 3, "created_us": 1, "files": []}')
    world.end()
    world.run(world.follower())
    assert world.service.calls == ["checkpoint", "checkpoint", "result", "settled"]


def test_what_is_left_out_is_said_in_the_launchers_log(world: World) -> None:
    world.speak()
    world.write("job/output/file", b"x")
    world.service.errors["blob"] = RequestRefusedError(413, {}, "PUT blobs")
    world.end()
    world.run(world.follower())
    assert b"torchyard: 1 file (1 B) is too much for the store" in world.service.log_bytes[-1]
    assert world.service.calls[-2:] == ["log", "settled"]


def test_a_stopped_follower_lets_go(world: World) -> None:
    world.speak()
    follower = world.follower()
    follower.stop()
    assert not follower.run()
    assert not world.service.calls


def test_a_folder_that_was_taken_away_ends_the_follower(world: World) -> None:
    follower = world.follower()
    world.folder.remove()
    assert not follower.run()
