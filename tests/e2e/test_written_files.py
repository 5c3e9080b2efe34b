"""Scripts that write into their working folder, as people's do: nothing is lost, and they go on where they were."""

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import processes, results, stack, wait
from tests.support.stack import Stack
from torchyard.api import Job
from torchyard.spec.policy import Policy
from torchyard.states import AttemptState, JobState

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
#: Trains ten epochs, and knows nothing of the queue: it goes on from its own snapshot.
SCRIPT = """
import os, pathlib, sys, time
epoch = int(open("snapshot.pt").read()) if os.path.exists("snapshot.pt") else 0
print("from", epoch, flush=True)
for name in ("runs/a", "out", "../data"):
    os.makedirs(name, exist_ok=True)
pathlib.Path("../data/x").write_text("downloaded")
while epoch < 10:
    epoch += 1
    pathlib.Path("snapshot.tmp").write_text(str(epoch))
    os.replace("snapshot.tmp", "snapshot.pt")
    pathlib.Path("runs/a/events").write_text("scalar " * epoch)
    pathlib.Path("config.yaml").write_text("lr: 2\\n")
    if epoch == 4 and sys.argv[1] == "wait":
        print("four", flush=True)
        time.sleep(600)
    if epoch in (4, 7) and sys.argv[1] == "crash" and not os.path.exists(f"../data/crashed-{epoch}"):
        pathlib.Path(f"../data/crashed-{epoch}").touch()
        sys.exit("crashed")
pathlib.Path("out/model.pt").write_text("model" * 1000)
"""

#: Saves by our checkpoints, and fails as `init_process_group("file://init")` does when it finds an old file there.
OURS = """
import os, sys, time, torchyard
if os.path.exists("init"):
    sys.exit("a stale rendezvous file")
open("init", "w").close()
last = torchyard.restore()
for step in range(100000):
    torchyard.report(step=step, loss=0.0)
    if torchyard.should_checkpoint():
        with torchyard.checkpoint(step=step) as folder:
            (folder / "state").write_text("x")
    if last and step > 5:
        break
    time.sleep(0.02)
"""


#: Trains for 30 s and tells so on a bar, as tqdm draws one; saves nothing before the end.
BAR = """
import os, pathlib, sys, time
pathlib.Path(f"begun-{os.environ.get('TORCHYARD_ATTEMPT_ID', '')}").touch()
weight, pace = 1, float(sys.argv[1])
for step in range(1, 61):
    weight = weight * 6364136223846793005 % 2**64 + 1
    time.sleep(pace)
    print(f"\\r{step * 100 // 60}%|###   | {step}/60 [00:10<00:20,  2.00it/s]", end="", file=sys.stderr, flush=True)
pathlib.Path("model.bin").write_bytes(weight.to_bytes(8, "big"))
"""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack that takes 10 KiB of an attempt's files, and looks for them twice a second."""
    limits = {"TORCHYARD_OUTPUT_LIMIT": "10KiB", "TORCHYARD_OUTPUT_EVERY_S": "0.5"}
    with processes.unmarked(), stack.running(tmp_path_factory.mktemp("home"), **limits) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "config.yaml").write_text("lr: 1\n")
    return folder


def run(
    yard: Stack, project: Path, *words: str, mode: str = "go", detach: bool = False
) -> subprocess.CompletedProcess[str]:
    more = ("--detach",) if detach else ()
    command = ("run", "--gpus", "1", "--launcher", "python", *more, *words, "--", "python", "train.py", mode)
    done = yard.yard(*command, cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def newest(yard: Stack) -> Job:
    return next(iter(yard.client.jobs()))


def settled(yard: Stack, job: Job) -> Job:
    return results.settled(yard.client, job.id, seconds=120)


def names(yard: Stack, job: Job) -> dict[tuple[str, str], str]:
    return {(each.root, each.name): each.state for each in yard.client.outputs(job.id, every=True)}


LEFT: dict[tuple[str, str], str] = {
    ("code", "snapshot.pt"): "stored",
    ("code", "runs/a/events"): "stored",
    ("code", "out/model.pt"): "stored",
    ("code", "config.yaml"): "stored",
    ("job", "data/x"): "stored",
}


def test_what_a_script_writes_is_kept_listed_and_put_in_its_place(yard: Stack, project: Path) -> None:
    done = run(yard, project)
    job = newest(yard)
    assert f"kept 5 files, 5.0 KiB: yard pull {job.number}\n" in done.stderr
    assert names(yard, job) == LEFT
    told = yard.yard("outputs", str(job.number)).stdout
    assert "working folder: 4 files" in told
    assert "beside the working folder: 1 file, 10 B" in told
    assert yard.yard("outputs", "--follow", str(job.number)).stdout.count("\n") == 5

    here = yard.yard("pull", "--to", str(project), str(job.number))
    assert here.returncode == 0, here.stderr
    assert (project / "snapshot.pt").read_text() == "10"
    assert (project / "config.yaml").read_text() == "lr: 2\n"
    assert (project.parent / "data/x").read_text() == "downloaded"

    # What the user has changed since is not overwritten; the rest comes.
    (project / "config.yaml").write_text("lr: 3, my own\n")
    (project / "out/model.pt").unlink()
    again = yard.yard("pull", "--to", str(project), str(job.number))
    assert again.returncode == 1
    assert "config.yaml is not written: differs from what the job was submitted with" in again.stderr
    assert (project / "config.yaml").read_text() == "lr: 3, my own\n"
    assert (project / "out/model.pt").exists()

    plain = yard.yard("pull", str(job.number), str(project.parent / "pulled"))
    assert plain.returncode == 0, plain.stderr
    assert (project.parent / "pulled/code/out/model.pt").exists()
    assert (project.parent / "pulled/data/x").exists()


def log(yard: Stack, job: Job) -> str:
    return yard.log(job).decode()


def test_a_cancelled_job_that_is_rerun_goes_on_from_its_own_snapshot(yard: Stack, project: Path) -> None:
    run(yard, project, mode="wait", detach=True)
    job = newest(yard)
    wait.until(lambda: "four" in log(yard, job), seconds=60, what="the fourth epoch")
    # It has not ended, and would be lost with its node: what is still has come.
    wait.until(lambda: ("code", "snapshot.pt") in names(yard, job), seconds=60, what="a first upload")
    yard.client.cancel(job.id)
    assert settled(yard, job).state is JobState.CANCELLED
    changed = {"command": ["python", "train.py", "go"]}
    again = yard.client.rerun(job.id, changes=changed)
    assert settled(yard, again).state is JobState.SUCCEEDED
    assert log(yard, again) == "from 4\n"
    assert names(yard, again) == LEFT
    assert "begins with 4 files" in b"".join(yard.client.logs(again.id, rank=-1)).decode()

    anew = yard.client.rerun(job.id, from_checkpoint=None, changes=changed)
    assert settled(yard, anew).state is JobState.SUCCEEDED
    assert log(yard, anew) == "from 0\n"


def test_a_job_that_crashes_goes_on_when_it_is_tried_again(yard: Stack, project: Path) -> None:
    run(yard, project, "--retries", "2", mode="crash")
    job = newest(yard)
    assert settled(yard, job).state is JobState.SUCCEEDED
    first, second, third = yard.client.attempts(job.id)
    assert (second.carried_from, third.carried_from) == (first.id, second.id)
    assert log(yard, job) == "from 7\n"
    assert names(yard, job) == LEFT | {("job", f"data/crashed-{epoch}"): "stored" for epoch in (4, 7)}


def test_a_job_that_is_preempted_goes_on_from_its_own_snapshot_without_fetching_it(yard: Stack, project: Path) -> None:
    yard.client.set_policy(Policy(min_run=0))
    (project / "job.yaml").write_text(
        "code: .\nlauncher: python\ncommand: [train.py, wait]\nrestartable: true\npriority: low\nresources: {gpus: 1}\n"
    )
    done = yard.yard("submit", "job.yaml", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    job = newest(yard)
    wait.until(lambda: "four" in log(yard, job), seconds=60, what="the fourth epoch")
    urgent = {"priority": "urgent", "launcher": "none", "command": ["true"], "resources": {"gpus": 2}}
    assert yard.client.wait(yard.client.submit(urgent).id, timeout_s=120).state is JobState.SUCCEEDED
    assert settled(yard, job).state is JobState.SUCCEEDED
    first, second = yard.client.attempts(job.id)
    assert (first.state, second.carried_from) == (AttemptState.PREEMPTED, first.id)
    assert log(yard, job) == "from 4\n"
    assert names(yard, job) == LEFT
    told = b"".join(yard.client.logs(job.id, rank=-1)).decode()
    assert "begins with 4 files" in told
    assert ", 4 of them found on this node" in told
    left = stack.worker_folder(yard.home) / "retained" / first.id
    wait.until(lambda: not left.exists(), what="the removal of what the first attempt left")


def test_a_file_that_kills_the_next_attempt_does_so_once(yard: Stack) -> None:
    program = "test -e init && { echo stale; exit 1; }; touch init; "
    job = yard.client.submit({"launcher": "none", "command": ["sh", "-c", program + "echo made; sleep 600"]})
    wait.until(lambda: log(yard, job) == "made\n", seconds=60, what="the file")
    yard.client.cancel(job.id)
    settled(yard, job)
    again = yard.client.rerun(job.id, changes={"command": ["sh", "-c", program]})
    assert settled(yard, again).state is JobState.SUCCEEDED
    first, second = yard.client.attempts(again.id)
    assert first.carried_from is not None
    assert second.carried_from is None
    told = [event.message for event in yard.client.events(again.id) if event.kind == "requeued"]
    assert "no retry is spent" in told[0]


def test_what_is_too_much_stays_on_its_node_until_it_is_asked_for(yard: Stack, tmp_path: Path) -> None:
    program = "head -c 20000 /dev/zero > huge.pt; echo small > small.txt"
    job = yard.client.submit({"launcher": "none", "command": ["sh", "-c", program], "resources": {"gpus": 0}})
    assert settled(yard, job).state is JobState.SUCCEEDED
    assert names(yard, job) == {("code", "huge.pt"): "on-node", ("code", "small.txt"): "stored"}
    (huge,) = (each for each in yard.client.outputs(job.id, every=True) if each.state == "on-node")
    assert huge.place is not None
    assert Path(huge.place).stat().st_size == 20_000
    assert "yard pull --kept" in yard.yard("outputs", str(job.number)).stderr

    less = yard.yard("pull", "--to", str(tmp_path / "a"), str(job.number))
    assert f"is on node {huge.node}, {huge.place}" in less.stderr
    pulled = yard.yard("pull", "--kept", "--to", str(tmp_path / "a"), str(job.number))
    assert pulled.returncode == 0, pulled.stderr
    assert (tmp_path / "a/huge.pt").read_bytes() == bytes(20_000)
    wait.until(lambda: not Path(huge.place or "").exists(), what="the node's copy to go")


def test_a_discarded_job_leaves_nothing_on_its_node(yard: Stack) -> None:
    spec: dict[str, Any] = {"launcher": "none", "command": ["sh", "-c", "head -c 20000 /dev/zero > huge.pt"]}
    job = yard.client.submit(spec)
    settled(yard, job)
    (huge,) = yard.client.outputs(job.id, every=True)
    assert Path(huge.place or "").exists()
    done = yard.yard("discard", "--yes", str(job.number))
    assert done.returncode == 0, done.stderr
    wait.until(lambda: not Path(huge.place or "").exists(), what="the node's copy to go")


def test_a_live_job_keeps_its_files_where_they_are(yard: Stack, project: Path) -> None:
    done = run(yard, project, "--live")
    job = newest(yard)
    assert "kept" not in done.stderr
    assert (project / "out/model.pt").exists()
    assert names(yard, job) == {}
    assert "live: the job writes in its own folder" in yard.yard("outputs", str(job.number)).stderr
    assert b"live: files stay where the job wrote them" in b"".join(yard.client.logs(job.id, rank=-1))


def test_a_job_that_restores_our_checkpoint_begins_with_what_it_was_submitted_with(yard: Stack, project: Path) -> None:
    (project / "train.py").write_text(OURS)
    run(yard, project, detach=True)
    job = newest(yard)
    wait.until(lambda: yard.client.metrics(job.id).series, seconds=60, what="a step")
    wait.until(lambda: ("code", "init") in names(yard, job), seconds=60, what="the upload of the stale file")
    yard.client.cancel(job.id)
    settled(yard, job)
    wait.until(lambda: any(each.state == "stored" for each in yard.client.checkpoints(job.id)), what="a checkpoint")
    again = yard.client.rerun(job.id)
    assert settled(yard, again).state is JobState.SUCCEEDED
    (attempt,) = yard.client.attempts(again.id)
    assert (attempt.carried_from, attempt.resumed_from_step is not None) == (None, True)


#: A slot that is kept is empty for no longer while somebody may be tried there.
SHORT_TRIAL_S = 12


@pytest.fixture
def short_trials(yard: Stack) -> Iterator[None]:
    yard.client.set_policy(Policy(time_slice=SHORT_TRIAL_S, min_run=1, preemption_cost=0))
    yield
    yard.client.set_policy(Policy())


@pytest.mark.usefixtures("short_trials")
def test_a_plain_script_is_tried_put_back_and_ends_as_if_nothing_had_been(yard: Stack, project: Path) -> None:
    (project / "bar.py").write_text(BAR)
    undisturbed = project.parent / "undisturbed"
    undisturbed.mkdir()
    subprocess.run([sys.executable, project / "bar.py", "0"], cwd=undisturbed, check=True, capture_output=True)
    command = ("run", "--gpus", "1", "--launcher", "python", "--", "python", "bar.py", "0.5")
    with subprocess.Popen(
        [*stack.YARD, *command], cwd=project, env=yard.environment, stdout=subprocess.DEVNULL
    ) as follower:
        found = lambda: [each for each in yard.client.jobs() if each.name == "project-bar" and each.progress]  # noqa: E731
        (job,) = wait.until(found, seconds=60, what="its first step")
        # By the API, as it must wait before the trial is over, and a command takes seconds on a busy machine. What may
        # not be stopped itself has nobody put back.
        wide = {"launcher": "none", "command": ["true"], "resources": {"gpus": 2}, "restartable": True}
        other = yard.client.submit(wide)
        assert yard.client.wait(other.id, timeout_s=90).state is JobState.SUCCEEDED
        assert settled(yard, job).state is JobState.SUCCEEDED
        assert follower.wait(60) == 0
    first, second = yard.client.attempts(job.id)
    assert (first.state, second.carried_from) == (AttemptState.PREEMPTED, None)
    written = {name for _, name in names(yard, job)}
    assert len([name for name in written if name.startswith("begun-")]) == 1
    (model,) = [each for each in yard.client.outputs(job.id) if each.name == "model.bin"]
    assert model.sha256 == hashlib.sha256((undisturbed / "model.bin").read_bytes()).hexdigest()
    assert "put-back" in {event.kind for event in yard.client.events(job.id)}


@pytest.mark.usefixtures("short_trials")
def test_a_slot_kept_for_a_wide_job_is_not_empty_while_a_short_one_waits(yard: Stack, project: Path) -> None:
    whole = {"launcher": "none", "command": ["sleep", "600"], "resources": {"gpus": 1}}
    holder = yard.client.submit({**whole, "preemptible": False})
    wait.until(lambda: yard.client.job(holder.id).state is JobState.RUNNING, seconds=60, what="the holder")
    wide = yard.client.submit({**whole, "command": ["true"], "resources": {"gpus": 2}, "priority": "high"})
    (project / "brief.py").write_text("pass")
    done = yard.yard("run", "--gpus", "1", "--launcher", "python", "--", "python", "brief.py", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    brief = newest(yard)
    assert brief.name.endswith("brief")
    (attempt,) = yard.client.attempts(brief.id)
    # When it was given the slot: how long its program then takes to begin is a matter of the machine's.
    assert (attempt.created_at - brief.created_at).total_seconds() <= SHORT_TRIAL_S
    assert yard.client.job(wide.id).state is JobState.QUEUED
    assert yard.client.job(holder.id).state is JobState.RUNNING
    for job in (wide, holder):  # the other way round the wide one would start, and might be over first
        yard.client.cancel(job.id)
        settled(yard, job)
