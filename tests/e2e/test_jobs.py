"""Jobs of all kinds through the whole stack: Redis, Celery, service, worker, shim."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import SCRIPTS
from tests.support import processes, results, wait
from tests.support.stack import Stack, worker_folder
from torchyard.api import Job
from torchyard.cli import jobs
from torchyard.states import JobState

pytestmark = pytest.mark.e2e


def _script(name: str, *words: object, **spec: Any) -> dict[str, Any]:
    return {
        "name": name.removesuffix(".py"),
        "launcher": "python",
        "python": sys.executable,
        "live": str(SCRIPTS),
        "command": [name, *map(str, words)],
        **spec,
    }


def _running(yard: Stack, job: Job) -> Job:
    return wait.until(
        lambda: shown if (shown := yard.client.job(job.id)).state is JobState.RUNNING else None, what="a running job"
    )


def _step(yard: Stack, job: Job) -> int:
    progress = yard.client.job(job.id).progress
    return progress.step if progress is not None else 0


def test_any_program_runs_and_its_exit_code_is_kept(yard: Stack) -> None:
    job = yard.client.submit({"launcher": "none", "command": ["sh", "-c", "echo over here; exit 7"]})
    ended = results.settled(yard.client, job.id)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert ended.error.exit_code == 7
    assert yard.log(job) == b"over here\n"


def test_a_rank_that_raises_is_named_with_its_own_traceback(yard: Stack) -> None:
    job = yard.client.submit(_script("raises.py", launcher="torchrun", resources={"gpus": 2}))
    ended = yard.client.wait(job.id)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert ended.error.rank == 1
    assert ended.error.exit_code == 1
    assert ended.error.traceback is not None
    assert ended.error.traceback.startswith("Traceback (most recent call last)")
    assert ended.error.traceback.rstrip().endswith("LookupError: the seventh batch is missing")
    assert "torch.distributed" not in ended.error.traceback
    attempt = yard.client.attempts(job.id)[-1].id
    wait.until(lambda: not processes.of_attempt(attempt), what="an empty process table")


def test_cancel_saves_then_stops_and_a_rerun_continues_at_its_step(yard: Stack) -> None:
    job = yard.client.submit(_script("steady.py", 30_000, "0.01"))
    wait.until(lambda: b"step 50\n" in yard.log(job), what="step 50")
    attempt = yard.client.attempts(job.id)[-1].id
    yard.client.cancel(job.id)
    ended = yard.client.wait(job.id)
    assert ended.state is JobState.CANCELLED
    assert not processes.of_attempt(attempt)

    (saved,) = wait.until(
        lambda: [c for c in yard.client.checkpoints(job.id) if c.state == "stored"], what="a stored checkpoint"
    )
    wait.until(lambda: f"stopped at step {saved.step}".encode() in yard.log(job), what="its last line")

    again = yard.client.rerun(job.id)
    wait.until(lambda: b"starting at step" in yard.log(again), what="the rerun's first line")
    assert yard.log(again).startswith(f"starting at step {saved.step + 1}\n".encode())
    wait.until(lambda: yard.client.metrics(again.id).series, what="points")
    point = yard.client.metrics(again.id).series[0].points[0]
    assert point[0] == saved.step + 1
    assert point[2] == pytest.approx(1.0 / (saved.step + 2))
    yard.client.cancel(again.id)
    assert yard.client.wait(again.id).state is JobState.CANCELLED


def test_a_script_that_never_asks_gets_a_signal_and_nothing_is_left(yard: Stack) -> None:
    program = "trap 'echo told to stop; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    job = yard.client.submit({"launcher": "none", "command": ["sh", "-c", program]})
    wait.until(lambda: b"ready" in yard.log(job), what="its first line")
    attempt = yard.client.attempts(job.id)[-1].id
    yard.client.cancel(job.id)
    assert yard.client.wait(job.id).state in (JobState.CANCELLED, JobState.SUCCEEDED)
    wait.until(lambda: b"told to stop" in yard.log(job), what="the script's last words")
    assert not processes.of_attempt(attempt)


def test_what_ignores_every_signal_is_killed_at_the_end_of_the_grace(yard: Stack) -> None:
    program = "trap '' TERM INT HUP; (trap '' TERM; setsid sleep 600 & ); echo ready; while :; do sleep 0.05; done"
    job = yard.client.submit({"launcher": "none", "command": ["sh", "-c", program], "grace": 1})
    wait.until(lambda: b"ready" in yard.log(job), what="its first line")
    attempt = yard.client.attempts(job.id)[-1].id
    yard.client.cancel(job.id)
    assert yard.client.wait(job.id).state is JobState.CANCELLED
    assert not processes.of_attempt(attempt)


def test_a_queued_job_is_cancelled_at_once(yard: Stack) -> None:
    holder = yard.client.submit({"launcher": "none", "command": ["sleep", "600"], "resources": {"gpus": 2}})
    _running(yard, holder)
    waiting = yard.client.submit({"launcher": "none", "command": ["true"], "resources": {"gpus": 2}})
    why = yard.client.why(waiting.id)
    assert why.position == 1
    assert any(holder.id in reason.jobs for reason in why.reasons)
    assert yard.client.cancel(waiting.id).state is JobState.CANCELLED
    yard.client.cancel(holder.id)
    yard.client.wait(holder.id)


def test_odd_numbers_and_bytes_are_stored_right(yard: Stack) -> None:
    job = yard.client.submit(_script("oddities.py"))
    assert results.settled(yard.client, job.id).state is JobState.SUCCEEDED
    assert yard.log(job) == bytes(range(256)) + b"\n" + b"a line without an end"
    series = yard.client.metrics(job.id).series
    assert [point[2] for point in series[0].points] == [1.0, "nan", "inf", "-inf", 0.5]


def test_a_hundred_megabytes_of_log_block_nothing(yard: Stack) -> None:
    loud = yard.client.submit(
        {"launcher": "none", "command": ["sh", "-c", "head -c 100000000 /dev/zero | tr '\\0' x; sleep 1"]}
    )
    quiet = yard.client.submit(_script("steady.py", 20))
    assert yard.client.wait(quiet.id).state is JobState.SUCCEEDED
    assert yard.client.wait(loud.id).state is JobState.SUCCEEDED
    wait.until(lambda: yard.client.job(loud.id).storage.logs == 100_000_000, seconds=180, what="the whole log")


def test_a_time_limit_stops_the_job(yard: Stack) -> None:
    job = yard.client.submit(_script("steady.py", 30_000, "0.01", time_limit=10))
    ended = yard.client.wait(job.id)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert ended.error.cause == "time-limit"
    wait.until(lambda: yard.client.checkpoints(job.id), what="the checkpoint it stopped with")


def test_what_lies_in_the_output_folder_can_be_pulled(yard: Stack, tmp_path: Path) -> None:
    program = 'cd "$TORCHYARD_OUTPUT_DIR" && mkdir a && echo 42 > a/b.txt'
    job = yard.client.submit({"launcher": "none", "command": ["sh", "-c", program]})
    assert yard.client.wait(job.id).state is JobState.SUCCEEDED
    wait.until(lambda: yard.client.outputs(job.id), what="outputs")
    done = yard.yard("pull", str(job.number), str(tmp_path / "here"))
    assert done.returncode == 0, done.stderr
    assert [path.read_text() for path in (tmp_path / "here").rglob("b.txt")] == ["42\n"]


def test_a_launch_message_delivered_five_times_is_one_run(yard: Stack, tmp_path: Path) -> None:
    count, gate = tmp_path / "count", tmp_path / "gate"
    program = f"echo x >> {count}; while [ ! -e {gate} ]; do sleep 0.1; done"
    job = yard.client.submit({"launcher": "none", "command": ["sh", "-c", program]})
    _running(yard, job)
    _send_launches(yard, yard.client.attempts(job.id)[-1].id, times=5)
    gate.touch()
    assert yard.client.wait(job.id).state is JobState.SUCCEEDED
    assert count.read_text() == "x\n"
    assert len(yard.client.attempts(job.id)) == 1


def _send_launches(yard: Stack, attempt: str, times: int) -> None:
    from celery import Celery

    from torchyard.wire import LAUNCH_TASK, node_queue

    registration = json.loads((worker_folder(yard.home) / "registration.json").read_text())
    app = Celery(broker=registration["broker_url"])
    app.conf.broker_transport_options = {"global_keyprefix": registration["broker_key_prefix"]}
    with app.connection_for_write() as connection:
        for _ in range(times):
            app.send_task(LAUNCH_TASK, [attempt], queue=node_queue(yard.client.nodes()[0].name), connection=connection)
    app.close()


def test_a_killed_shim_leaves_nothing_and_the_job_is_tried_again(yard: Stack) -> None:
    job = yard.client.submit({"launcher": "none", "command": ["sh", "-c", "sleep 600 & sleep 600"]})
    _running(yard, job)
    shim = json.loads((yard.attempt_folder(job.id) / "yard" / "shim.json").read_text())["pid"]
    attempt = yard.client.attempts(job.id)[-1].id
    psutil.Process(shim).send_signal(signal.SIGKILL)
    wait.until(lambda: len(yard.client.attempts(job.id)) == 2, seconds=180, what="the second try")
    assert not processes.of_attempt(attempt)
    requeued = next(event for event in yard.client.events(job.id) if event.kind == "requeued")
    assert "not its own fault: try 1 of 3" in requeued.message
    yard.client.cancel(job.id)
    assert yard.client.wait(job.id).state is JobState.CANCELLED


def test_a_job_goes_on_in_an_environment_that_has_nothing_of_ours(yard: Stack, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    job = yard.client.submit(_script("steady.py", 30, python=str(tmp_path / "venv")))
    assert results.settled(yard.client, job.id).state is JobState.SUCCEEDED
    series = yard.client.metrics(job.id).series
    assert [(step, value) for step, _, value in series[0].points] == [(n, 1.0 / (n + 1)) for n in range(30)]


def test_a_training_that_cannot_be_saved_goes_on_and_its_stop_says_so(
    yard: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = yard.client.submit(_script("unsavable.py", checkpoint={"every": 1}))
    unsaved = wait.until(lambda: yard.client.job(job.id).unsaved, what="a checkpoint that failed")
    assert "this optimizer has no state to give" in unsaved
    step = _step(yard, job)
    wait.until(lambda: _step(yard, job) > step, what="further steps")

    monkeypatch.setenv("TORCHYARD_HOME", str(yard.home))
    monkeypatch.setattr(jobs, "STOPPED_S", 60.0)  # on a busy machine the job may save for longer than a person waits
    jobs.cancel([str(job.number)])
    told = capsys.readouterr().err
    ended = yard.client.wait(job.id)
    assert (ended.state, yard.client.checkpoints(job.id)) == (JobState.CANCELLED, [])
    why = "nothing was saved, because "
    message = list(yard.client.events(job.id))[-1].message
    assert why in message
    assert "this optimizer has no state to give" in message
    assert told == f"job {job.number}: {message}\n"
