"""Jobs, sweeps, and what they leave."""

from collections.abc import Mapping

from pydantic import BaseModel

from service.api.examples.moments import at
from torchyard import api
from torchyard.spec import JobSpec, Priority
from torchyard.states import AttemptState, JobState
from torchyard.translatable import TranslatableText
from torchyard.wire import DeviceKind, Environment, FileRef, Frame, PreloadedModules, ProcessStack, ThreadStack

JOB_ID = "job-01jd6z3k8w5r2m9q4t7v0x1y2z"
GROUP_ID = "grp-01jd6z3k8w5r2m9q4t7v0x1y30"
CHECKPOINT_ID = "ckpt-01jd6z3k8w5r2m9q4t7v0x1y31"
ATTEMPT_ID = "att-01jd6z3k8w5r2m9q4t7v0x1y32"
SNAPSHOT_ID = "snap-01jd6z3k8w5r2m9q4t7v0x1y33"
LINK_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqb2IifQ.c2lnbmF0dXJl"  # noqa: S105
SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

COMMAND = JobSpec.model_validate(
    {
        "name": "resnet",
        "project": "vision",
        "command": ["train.py", "--lr", "0.1"],
        "code": SNAPSHOT_ID,
        "resources": {"gpus": 2},
        "time_limit": "4h",
    }
)
#: Bodies of submissions, by what they show.
SPECS: Mapping[str, JobSpec] = {
    "command": COMMAND,
    "recipe": JobSpec.model_validate({"recipe": {"model": "digits_cnn", "data": "digits", "epochs": 3}}),
    "sweep": JobSpec.model_validate(
        {
            "name": "rates",
            "recipe": {"optim": {"name": "adam", "lr": 0.001}},
            "sweep": {"parameters": {"lr": [0.01, 0.001]}},
        }
    ),
}

DEVICES = [api.HeldDevice(node="box", uuid=f"GPU-{index}", index=index, kind=DeviceKind.GPU) for index in (0, 1)]
JOB = api.Job(
    id=JOB_ID,
    number=42,
    name="resnet",
    user="ada",
    project="vision",
    state=JobState.RUNNING,
    held=False,
    priority=Priority.NORMAL,
    tags=["baseline"],
    version=7,
    created_at=at("9:00"),
    started_at=at("9:02"),
    running_since=at("9:02"),
    ended_at=None,
    attempt=1,
    gpus=2,
    devices=DEVICES,
    progress=api.Progress(step=1200, total_steps=5000, eta_s=3800.0),
    latest={"train/loss": 0.42, "val/accuracy": 0.91},
    stop=None,
    error=None,
    storage=api.Storage(checkpoints=104_857_600, outputs=2048, logs=65_536),
    rerun_of=None,
    resumed_from=None,
    spec=COMMAND.model_dump(mode="json", exclude_unset=True),
)
_WAITING = JOB.model_copy(
    update={
        "state": JobState.QUEUED,
        "started_at": None,
        "running_since": None,
        "attempt": 0,
        "devices": [],
        "progress": None,
        "latest": {},
        "storage": api.Storage(checkpoints=0, outputs=0, logs=0),
        "version": 1,
    }
)
_ENDED = {"devices": [], "ended_at": at("9:30"), "ran_s": 1680, "running_since": None, "version": 9}
GROUP = api.Group(
    id=GROUP_ID,
    number=50,
    name="rates",
    user="ada",
    project="vision",
    created_at=at("9:00"),
    ended_at=None,
    size=2,
    sweep={"parameters": {"lr": [0.01, 0.001]}},
    paused=None,
    held=0,
    states={JobState.RUNNING: 1, JobState.QUEUED: 1},
    stopped_early=0,
    metric="val/loss",
    mode="min",
    best=None,
)
#: Jobs and sweeps as certain operations leave them.
ANSWERS: Mapping[str, BaseModel] = {
    "jobs_submit_job": _WAITING,
    "jobs_hold_job": _WAITING.model_copy(update={"held": True, "version": 2}),
    "jobs_release_job": _WAITING.model_copy(update={"version": 3}),
    "jobs_cancel_job": JOB.model_copy(update={**_ENDED, "state": JobState.CANCELLED}),
    "jobs_discard_job": JOB.model_copy(
        update={
            **_ENDED,
            "state": JobState.SUCCEEDED,
            "discarded_at": at("10:00"),
            "storage": api.Storage(checkpoints=0, outputs=0, logs=0),
        }
    ),
    "jobs_rerun_job": _WAITING.model_copy(
        update={"number": 43, "rerun_of": JOB_ID, "resumed_from": CHECKPOINT_ID},
    ),
    "groups_cancel_group": GROUP.model_copy(update={"ended_at": at("9:30"), "states": {JobState.CANCELLED: 2}}),
    "groups_hold_group": GROUP.model_copy(update={"held": 1}),
}

_TOO_SMALL = TranslatableText("at-least", "{given} is too small: the least is {ge}", given="-1", ge=0)
PROBLEM = api.Problem(
    type="https://torchyard.dev/problems/invalid-request",
    title="The request is not valid",
    status=422,
    detail=f"resources.gpus: {_TOO_SMALL}",
    errors=[api.FieldProblem(field="resources.gpus", message=_TOO_SMALL)],
)
#: Bytes of a file of code.
FILE = "import torch\n"
#: Answers without a model.
TEXTS: Mapping[str, Mapping[str, str]] = {
    "checkpoints_file": {"application/octet-stream": "the bytes of model.pt"},
    "outputs_file": {"application/octet-stream": "the bytes of samples/0001.png"},
    "snapshots_file": {"application/octet-stream": FILE},
}
MODELS: tuple[BaseModel, ...] = (
    JOB,
    GROUP,
    api.JobChanges(priority=Priority.HIGH, tags=["baseline", "paper"]),
    api.Rerun(from_checkpoint="latest", changes={"time_limit": "8h"}),
    api.JobCounts(states={JobState.QUEUED: 3, JobState.RUNNING: 2, JobState.SUCCEEDED: 120}, most=10_000),
    api.NewSharedLink(expires_in=7 * 86_400),
    api.SharedLink(
        url=f"https://gpu.example.org/shared/{LINK_TOKEN}", token=LINK_TOKEN, expires_at=at("9:00").replace(year=2027)
    ),
    api.SharedLinks(expires_at=at("9:00").replace(year=2027)),
    api.SharedRun(
        **{name: getattr(JOB, name) for name in api.SharedRun.model_fields if name != "owner"}, owner=JOB.user
    ),
    api.Facet(value="vision", title="vision", states={JobState.RUNNING: 2, JobState.SUCCEEDED: 80}),
    api.Event(
        seq=3,
        at=at("9:02"),
        kind="started",
        state=JobState.RUNNING,
        attempt=1,
        actor=None,
        message="runs on box",
        data={},
    ),
    api.Attempt(
        id=ATTEMPT_ID,
        number=1,
        state=AttemptState.RUNNING,
        node="box",
        members=[api.Member(node="box", node_rank=0, first_rank=0, last_rank=1, ended_at=None, settled=False)],
        devices=DEVICES,
        created_at=at("9:01"),
        claimed_at=at("9:01"),
        started_at=at("9:02"),
        ended_at=None,
        resumed_from_step=None,
        exit_code=None,
        signal=None,
        error=None,
        dropped_log_bytes=0,
        dropped_records=0,
        settled=False,
    ),
    api.StartTiming(
        attempt=1,
        begun_at=at("9:00"),
        stages=[
            api.StartStage(name=api.StartStageName.REQUEST, at_ms=0.0, ms=6.2),
            api.StartStage(name=api.StartStageName.QUEUE, at_ms=6.2, ms=4.1),
        ],
        warm=True,
        cold_reason=None,
        cold_code=None,
        cold_params={},
        preloaded=PreloadedModules(packages=["transformers", "tokenizers"], modules=412, seconds=2.3),
        clock_skew_ms=0.3,
        clock_skew_error_ms=0.2,
    ),
    api.Checkpoint(
        id=CHECKPOINT_ID,
        job=JOB_ID,
        attempt=1,
        step=1000,
        state="stored",
        best=True,
        pinned=False,
        created_at=at("9:20"),
        size=104_857_600,
        metrics={"val/accuracy": 0.91},
        files=[api.CheckpointFileInfo(name="model.pt", size=104_857_600, sha256=SHA256)],
    ),
    api.Output(name="samples/0001.png", size=2048, sha256=SHA256, node="box", attempt=1),
    FileRef(path="train.py", size=1800, sha256=SHA256),
    api.NewSnapshot(files=[FileRef(path="train.py", size=1800, sha256=SHA256)]),
    api.PruneSnapshots(discarded=True),
    api.RemovedCode(snapshots=2, size=3_500_000),
    api.MissingBlobs(id=SNAPSHOT_ID, missing=[SHA256], committed=False),
    api.JobEnvironment(
        attempt=1,
        environment=Environment(
            interpreter="/home/ada/venv/bin/python",
            python="3.11.9",
            packages={"numpy": "2.1.0", "torch": "2.13.0+cu126"},
        ),
    ),
    api.Stacks(
        attempt=1,
        node="box",
        node_rank=0,
        serial=1,
        at=at("9:25"),
        summary="rank 0 is in all_reduce, called from train.py:88",
        processes=[
            ProcessStack(
                pid=4711,
                rank=0,
                main=True,
                command="python train.py",
                threads=[
                    ThreadStack(name="MainThread", frames=[Frame(function="step", file="/job/code/train.py", line=88)])
                ],
                collective="all_reduce",
                place="train.py:88",
            )
        ],
        left_out=0,
    ),
)
