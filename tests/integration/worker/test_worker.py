"""The worker as a process: real Celery on a real Redis, real shims, and a service that can be away."""

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import disks, opened_cards, redis
from tests.support.wait import until
from tests.support.worker import Yard, yard
from torchyard import home, wire
from torchyard.cli import config
from torchyard.exceptions import NotRunningError, TorchYardError
from torchyard.stack import doctor
from worker.monitoring import inventory

PYTHON = [sys.executable, "-I", "-S", "-u", "-c"]
#: Writes lines and metrics, some of them not finite, one torn; ends when the file `go` in its folder appears.
TALKER = """
import os, sys, time
folder = os.environ["TORCHYARD_ATTEMPT_DIR"]
with open(folder + "/job/metrics/rank-0-1-1.jsonl", "ab", 0) as out:
    n = 0
    while not os.path.exists(folder + "/job/go") or n < 50:
        value = '"nan"' if n % 10 == 3 else n / 7
        out.write(b'{"n": %d, "step": %d, "t": %d, "v": {"loss": %s}}\\n' % (n, n, n, str(value).encode()))
        sys.stdout.buffer.write(b"line %d \\xff\\x00\\n" % n)
        n += 1
        time.sleep(0.005)
    out.write(b'{"n": 99999, "st')
print("wrote", n)
"""


@pytest.fixture
def box(tmp_path: Path, short_tmp: Path) -> Iterator[Yard]:
    with yard(tmp_path, short_tmp) as made:
        yield made


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """One that has been started, for all tests that change nothing but attempts of their own."""
    with (
        tempfile.TemporaryDirectory(prefix="ty-", dir="/tmp") as short,
        yard(tmp_path_factory.mktemp("yard"), Path(short)) as made,
    ):
        made.start()
        yield made


def go(box: Yard, attempt: str) -> None:
    (box.attempts / attempt / "job" / "go").touch()


def check_talker(box: Yard, attempt: str) -> None:
    """Every line and every metric of the talker, exactly once."""
    lines = box.fake.log(attempt).split(b"\n")
    count = int(lines[-2].split()[1])
    assert lines[:-2] == [b"line %d \xff\x00" % n for n in range(count)]
    assert box.fake.numbers(attempt) == list(range(count))
    assert box.fake.skipped[attempt, "rank-0-1-1.jsonl"] == 1
    records = box.fake.records[attempt, "rank-0-1-1.jsonl"]
    assert records[3][1].values == {"loss": "nan"}


def test_a_message_that_comes_five_times_runs_once(box: Yard) -> None:
    box.start()
    attempt = box.fake.assign(["sh", "-c", "echo ran"])
    box.send(attempt, times=5)
    result = box.settled(attempt)
    assert (result.kind, result.exit_code) == (wire.ResultKind.EXITED, 0)
    assert box.fake.log(attempt) == b"ran\n"
    until(lambda: not list(box.attempts.iterdir()), what="the removal of the folder")
    assert box.stop() == 0


def test_the_start_is_told_from_the_message_to_the_first_instruction(started: Yard) -> None:
    attempt = started.fake.assign(["true"])
    started.send(attempt)
    result = started.settled(attempt)
    start = result.start or started.fake.starts[attempt]
    assert start.published_us is not None
    assert start.published_us <= start.heard_us
    names = ("claiming", "claimed", "prepared", "shim", "started")
    assert [start.marks[wire.StartMark(name)] for name in names] == sorted(start.marks.values())
    assert (start.warm, start.cold_reason) == (False, "warm start is off on this node (TORCHYARD_WARM_START)")


def test_what_is_installed_is_told(started: Yard, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (site,) = (tmp_path / "venv/lib").glob("python3.*/site-packages")
    (site / "Some_Thing-1.2.dist-info").mkdir()
    talker = ["python", "-I", "-S", "-u", "-c", TALKER]
    attempt = started.fake.assign(talker, launcher="python", python=str(tmp_path / "venv"))
    started.send(attempt)
    found = until(lambda: started.fake.environments.get(attempt), what="the environment")
    go(started, attempt)
    started.settled(attempt)
    assert found.interpreter == str(tmp_path / "venv/bin/python")
    assert found.python == platform.python_version()
    assert (found.packages, found.error) == ({"some-thing": "1.2"}, None)


def test_what_a_killed_program_leaves_among_its_temporary_files_goes_with_the_run(started: Yard) -> None:
    left = "import os, tempfile; print(tempfile.mkdtemp(), flush=True); os.kill(os.getpid(), 9)"
    attempt = started.fake.assign(["python", "-c", left], launcher="torchrun")
    started.send(attempt)
    assert started.settled(attempt).exit_code != 0
    made = Path(started.fake.log(attempt).decode().split()[0])
    assert made.parent.name.startswith("torchyard-")
    until(lambda: not list(started.attempts.iterdir()), what="the removal of the folder")
    assert not made.parent.exists()


def test_an_import_error_is_recognised_with_its_own_words(started: Yard) -> None:
    attempt = started.fake.assign([*PYTHON, "print('step 1')\nraise ModuleNotFoundError('my own text')"])
    started.send(attempt)
    result = started.settled(attempt)
    assert (result.exit_code, result.fingerprint, result.subject) == (1, "import-error", "my own text")
    assert (result.traceback or "").endswith("ModuleNotFoundError: my own text")


def test_a_node_says_why_its_kernel_enforces_nothing(box: Yard) -> None:
    box.environment["TORCHYARD_CGROUPS"] = "0"
    box.start()
    why = "TORCHYARD_CGROUPS=0 switches cgroups off"
    told = box.fake.registered[-1]
    assert told.unenforced_finding is not None
    assert (told.unenforced, told.unenforced_finding.message) == (why, why)
    assert doctor.words(box.home.parent, box.home)[-1] == f"limits of jobs are not enforced by the kernel: {why}"


def test_an_assigned_attempt_starts_without_any_message(box: Yard) -> None:
    box.start()
    attempt = box.fake.assign(["true"])
    box.fake.assigned.append(attempt)
    assert box.settled(attempt).exit_code == 0


def test_redis_may_be_killed_and_started_again(tmp_path: Path, short_tmp: Path) -> None:
    with yard(tmp_path, short_tmp) as box:
        box.start()
        box.broker.process.kill()
        box.broker.process.wait()
        with redis.serve(short_tmp):
            attempt = box.fake.assign(["true"])
            box.send(attempt)
            assert box.settled(attempt).exit_code == 0


@pytest.mark.parametrize("why", ["killed", "full"])
def test_the_agent_works_while_redis_is_down(tmp_path: Path, short_tmp: Path, why: str) -> None:
    with yard(tmp_path, short_tmp) as box:
        if why == "full":
            with box.broker.client() as client:
                client.config_set("maxmemory", 1)
        else:
            box.broker.process.kill()
            box.broker.process.wait()
        box.start(ready=False)
        attempt = box.fake.assign(["true"])
        box.fake.assigned.append(attempt)
        assert box.settled(attempt).exit_code == 0
        assert box.process is not None
        assert config.reloaded("worker", box.process.pid, box.home / home.RELOAD_FILE)["changed"] == []
        again = box.fake.assign(["true"])
        box.fake.assigned.append(again)
        assert box.settled(again).exit_code == 0
        assert box.process.poll() is None


def test_settings_are_read_anew_while_the_service_is_waited_for(box: Yard) -> None:
    box.live.halt()
    box.errors = box.home.parent / "worker.log"
    box.start(ready=False)
    assert box.process is not None
    until(lambda: "waiting for the service" in (box.errors or box.home).read_text(), what="the wait for the service")
    assert config.reloaded("worker", box.process.pid, box.home / home.RELOAD_FILE)["changed"] == []
    box.live.resume()
    assert box.process.stdout is not None
    assert box.process.stdout.readline().startswith("ready")


def test_nothing_is_missing_or_doubled_when_the_service_goes_away(box: Yard) -> None:
    box.start()
    attempt = box.fake.assign([*PYTHON, TALKER])
    box.send(attempt)
    until(lambda: len(box.fake.numbers(attempt)) > 20)
    box.live.halt()
    go(box, attempt)
    until((box.attempts / attempt / "yard" / "result.json").exists)
    box.live.resume()
    assert box.settled(attempt).exit_code == 0
    check_talker(box, attempt)


def test_nothing_is_doubled_when_answers_are_lost(box: Yard) -> None:
    box.start()
    words = ("claim", "running", "logs", "metrics", "result", "settled")
    box.fake.lose_reply = dict.fromkeys(words, 1)
    attempt = box.fake.assign([*PYTHON, TALKER])
    box.fake.assigned.append(attempt)
    until(lambda: len(box.fake.numbers(attempt)) > 20)
    go(box, attempt)
    assert box.settled(attempt).exit_code == 0
    check_talker(box, attempt)
    until(lambda: not any(box.fake.lose_reply.values()), what="the loss of the last answer")


def test_a_killed_worker_takes_its_attempts_up_again(box: Yard) -> None:
    box.start()
    attempt = box.fake.assign([*PYTHON, TALKER])
    box.send(attempt)
    until(lambda: len(box.fake.numbers(attempt)) > 20)
    box.kill()
    assert inventory.scan(box.attempts)[0].phase is wire.Phase.RUNNING
    box.start()
    until(lambda: any(report.attempt == attempt for beat in box.fake.heartbeats[-1:] for report in beat.attempts))
    seen = len(box.fake.numbers(attempt))
    until(lambda: len(box.fake.numbers(attempt)) > seen + 20)
    go(box, attempt)
    assert box.settled(attempt).exit_code == 0
    check_talker(box, attempt)


def test_an_attempt_that_ended_without_a_worker_is_reported_by_the_next(box: Yard) -> None:
    box.start()
    attempt = box.fake.assign([*PYTHON, TALKER])
    box.send(attempt)
    until(lambda: len(box.fake.numbers(attempt)) > 5)
    box.kill()
    go(box, attempt)
    until(lambda: inventory.scan(box.attempts)[0].phase is wire.Phase.ENDED)
    box.live.halt()
    box.start()
    box.live.resume()
    assert box.settled(attempt).exit_code == 0
    check_talker(box, attempt)


def test_a_shim_that_is_killed_is_reported_lost(started: Yard) -> None:
    attempt = started.fake.assign(["sleep", "60"])
    started.send(attempt)
    until(lambda: attempt in started.fake.running)
    record = json.loads((started.attempts / attempt / "yard" / "shim.json").read_text())
    os.kill(record["pid"], signal.SIGKILL)
    assert started.settled(attempt).kind is wire.ResultKind.LOST


def test_a_stop_reaches_the_shim_at_a_nudge(box: Yard) -> None:
    box.fake.heartbeat_s = 60
    box.start()
    attempt = box.fake.assign(["sleep", "60"])
    box.send(attempt)
    until(lambda: attempt in box.fake.running)
    box.fake.orders[attempt] = wire.AttemptOrder(
        attempt=attempt, action=wire.Action.STOP, serial=1, reason="cancel", grace_s=60
    )
    box.nudge()
    result = box.settled(attempt)
    assert result.stop == "cancel"


def test_a_failing_rank_is_quoted(started: Yard) -> None:
    program = "print('hello'); raise ValueError('no such digit')"
    attempt = started.fake.assign([*PYTHON, program])
    started.send(attempt)
    result = started.settled(attempt)
    assert result.exit_code == 1
    assert result.traceback is not None
    assert result.traceback.startswith("Traceback (most recent call last):")
    assert result.traceback.endswith("ValueError: no such digit")


def test_a_flood_of_log_does_not_hold_up_metrics(box: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    box.start()
    flood = (
        "import os, time\n"
        "folder = os.environ['TORCHYARD_ATTEMPT_DIR']\n"
        "while not os.path.exists(folder + '/job/flood'): time.sleep(0.01)\n"
        "block = os.urandom(2**20)\n"
        "for _ in range(100): os.write(1, block)\n"
        "with open(folder + '/job/metrics/rank-0-1-1.jsonl', 'w') as out:\n"
        '    out.write(\'{"n": 0, "step": 0, "t": 0, "v": {"loss": Infinity}}\\n\')\n'
        "open(folder + '/job/flooded', 'w').close()\n"
        "while not os.path.exists(folder + '/job/go'): time.sleep(0.01)\n"
    )
    attempt = box.fake.assign([*PYTHON, flood], log_limit=60 * 2**20)
    add_metrics, came_before = box.fake.add_metrics, list[int]()

    def noted(owner: str, batch: wire.MetricBatch) -> bool:
        came_before.append(len(box.fake.log(owner)))
        return add_metrics(owner, batch)

    monkeypatch.setattr(box.fake, "add_metrics", noted)
    box.send(attempt)
    until(lambda: attempt in box.fake.running)
    box.live.halt()
    folder = box.attempts / attempt / "job"
    (folder / "flood").touch()
    until((folder / "flooded").exists, what="all that it writes")
    box.live.resume()
    until(lambda: box.fake.numbers(attempt))
    assert came_before[0] < 50 * 2**20
    go(box, attempt)
    result = box.settled(attempt)
    assert len(box.fake.log(attempt)) == 60 * 2**20
    assert box.fake.dropped[attempt, 0] == 40 * 2**20
    assert result.exit_code == 0


def test_a_service_that_names_another_redis_is_followed(tmp_path: Path, short_tmp: Path) -> None:
    with yard(tmp_path, short_tmp) as box:
        box.start()
        (short_tmp / "other").mkdir()
        with redis.serve(short_tmp / "other") as other:
            box.fake.broker_url = other.url
            box.broker = other
            box.fake.known = False
            attempt = box.fake.assign(["true"])
            assert box.process is not None
            assert box.process.stdout is not None
            assert box.process.stdout.readline() == "ready box\n"
            box.send(attempt)
            assert box.settled(attempt).exit_code == 0


def test_checkpoints_and_outputs_are_stored(box: Yard) -> None:
    store = box.home.parent / "inbox"
    store.mkdir()
    (store / wire.INBOX_PROBE).write_text("another file system")
    box.fake.inbox, box.fake.inbox_probe = str(store), "not what lies there"
    box.fake.disk_floor = 7 * 2**20
    box.start()
    program = (
        "import os, json\n"
        "folder = os.environ['TORCHYARD_ATTEMPT_DIR'] + '/job/checkpoints/step-000000007'\n"
        "os.makedirs(folder)\n"
        "open(folder + '/state.pt', 'wb').write(b'weights')\n"
        "files = [{'path': 'state.pt', 'size': 7}]\n"
        "manifest = {'step': 7, 'created_us': 1, 'metrics': {'loss': 'nan'}, 'files': files}\n"
        "open(folder + '/manifest.json', 'w').write(json.dumps(manifest))\n"
        "out = os.environ['TORCHYARD_OUTPUT_DIR']\n"
        "os.makedirs(out + '/plots')\n"
        "open(out + '/plots/floor.txt', 'w').write(os.environ['TORCHYARD_DISK_FLOOR'])\n"
        "os.symlink('/etc/passwd', out + '/stolen')\n"
    )
    attempt = box.fake.assign([*PYTHON, program])
    box.send(attempt)
    box.settled(attempt)
    assert box.fake.stored == {(attempt, "step-000000007")}
    assert [file.path for file in box.fake.outputs[attempt]] == ["plots/floor.txt"]
    assert set(box.fake.blobs.values()) == {b"weights", str(7 * 2**20).encode()}


def test_files_that_the_next_attempt_awaits_stay_until_the_service_forgets_them(box: Yard) -> None:
    box.start()
    attempt = box.fake.assign(["sh", "-c", "echo step > snapshot.pt; mkdir ../marks/x"])
    box.fake.awaited.add(attempt)
    box.send(attempt)
    box.settled(attempt)
    kept = box.home / "retained" / attempt
    until((kept / "job/code/snapshot.pt").exists, what="the file to be retained")
    until(lambda: box.fake.heartbeats[-1].retained == [attempt], what="the word of it")
    until(lambda: box.fake.heartbeats[-1].attempts == [], what="an inventory without it")
    assert sorted(path.name for path in kept.rglob("*")) == ["code", "job", "output", "snapshot.pt"]
    box.fake.forget.append(attempt)
    until(lambda: not kept.exists(), what="its removal")


def test_a_second_worker_of_the_same_home_is_refused(box: Yard) -> None:
    box.start()
    first, box.process = box.process, None
    box.start(ready=False)
    assert box.process is not None
    assert box.process.wait(60) == 2
    assert box.process.stdout is not None
    box.process.stdout.close()
    box.process = first


def test_a_job_that_fills_the_disk_can_be_stopped_and_all_it_wrote_arrives(tmp_path: Path, short_tmp: Path) -> None:
    fill = f"dd if=/dev/zero of=full bs=64k 2>/dev/null; touch {tmp_path}/full"
    with disks.small(tmp_path / "disk", 8) as disk, yard(disk, short_tmp) as box:
        box.start()
        attempt = box.fake.assign(["sh", "-c", f"echo before; {fill}; sleep 600"])
        box.send(attempt)
        until((tmp_path / "full").exists, what="a full disk")
        box.kill()
        box.start()
        stop = {"attempt": attempt, "action": "stop", "serial": 1, "reason": "cancel", "grace_s": 60}
        box.fake.orders[attempt] = wire.AttemptOrder.model_validate(stop)
        result = box.settled(attempt)
        assert (result.kind, result.stop, result.terminated) == (wire.ResultKind.EXITED, "cancel", True)
        assert box.fake.log(attempt) == b"before\n"
        until(lambda: not list(box.attempts.iterdir()), what="the removal of the folder")


def test_who_begins_to_use_a_gpu_that_is_not_theirs_is_told_before_the_next_heartbeat(
    box: Yard, tmp_path: Path
) -> None:
    cards = opened_cards.make(tmp_path, 1)
    box.environment = {"PYTHONPATH": cards.python_path}
    box.fake.heartbeat_s = 3600
    box.start()
    until(lambda: box.fake.heartbeats, what="the first heartbeat")
    with subprocess.Popen(["sh", "-c", f"exec 3< {cards.file(0, 1024)}; exec sleep 600"]) as stray:
        try:
            until(lambda: f"process {stray.pid}" in str(box.fake.heartbeats[-1].offenders), what="its name")
            (found,) = box.fake.heartbeats[-1].offender_findings
            assert (found.code, found.params["pid"]) == ("on-free-gpu", stray.pid)
        finally:
            stray.kill()


def test_of_a_user_s_jobs_that_fill_the_disk_together_the_growing_one_ends(box: Yard) -> None:
    box.environment = {"TORCHYARD_USER_DISK_LIMIT": "4MiB"}
    box.start()
    wait = 'until [ -e "$TORCHYARD_ATTEMPT_DIR/job/go" ]; do sleep 0.1; done'
    small = box.fake.assign(["sh", "-c", f"head -c 1000000 /dev/zero > file; {wait}"])
    others = box.fake.assign(["sh", "-c", f"head -c 3000000 /dev/zero > file; {wait}"], user="bob")
    growing = box.fake.assign(["sh", "-c", "while head -c 100000 /dev/zero; do sleep 0.1; done > file"])
    for attempt in (small, others, growing):
        box.send(attempt)
    ended = str(box.settled(growing))
    assert "the running jobs of ada took" in ended
    assert "may take 4.0 MiB (TORCHYARD_USER_DISK_LIMIT)" in ended
    for attempt in (small, others):
        go(box, attempt)
        assert box.settled(attempt).exit_code == 0


def test_settings_are_read_anew_without_a_restart(
    box: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("worker: {labels: [old]}\n")
    box.environment = {"TORCHYARD_SETTINGS": str(file)}
    monkeypatch.setattr(home, "worker_folder", lambda: box.home)
    monkeypatch.setenv("TORCHYARD_HOME", str(tmp_path / "no-service"))
    monkeypatch.setenv("TORCHYARD_SETTINGS", str(file))
    with pytest.raises(NotRunningError):
        config.reload()
    box.start()
    assert box.process is not None
    running = box.process.pid
    assert box.fake.registered[-1].labels == ["old"]

    file.write_text("worker: {labels: [new], process_limit: 99, disk_limit: 1MiB}\n")
    assert config.pending() == {"worker": {"reload": ["labels", "disk_limit"], "restart": ["process_limit"]}}
    config.reload()
    assert (
        capsys.readouterr().out
        == "worker: changed: labels, disk_limit\nworker: counts after a restart: process_limit\n"
    )
    assert config.pending() == {"worker": {"reload": [], "restart": ["process_limit"]}}
    until(lambda: box.fake.registered[-1].labels == ["new"], what="the new labels")
    attempt = box.fake.assign(["sh", "-c", "head -c 2000000 /dev/zero > big; sleep 60"])
    box.send(attempt)
    assert "of disk, and a job may take 1.0 MiB" in str(box.settled(attempt))

    file.write_text("worker: {lables: [newer]}\n")
    with pytest.raises(TorchYardError, match=r"stay as they were:\n.*did you mean labels\?"):
        config.reload()
    assert (home.worker_pid(), box.process.pid, box.process.poll()) == (running, running, None)
    assert (box.stop(), home.worker_pid()) == (0, None)
