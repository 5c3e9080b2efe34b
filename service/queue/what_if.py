"""A change of the policy, played over the jobs that came in the last weeks and have ended.

The simulator runs in processes of its own, for a minute at most and for one caller at a time: it uses processors that
service and jobs need.
"""

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from service.accounting import accounts, policy_settings
from service.accounting.policy_settings import current_policy
from service.accounting.usage import SAVES
from service.db.engine import Database
from service.db.models import Attempt, Device, Job, Project, User
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from service.errors import ProblemError, field_problem
from service.jobs.present import PRIORITIES, put_back_attempts
from service.nodes import reservations
from torchyard.api.sharing import Entitlement, PolicyOutcome, UserOutcome, WhatIf, WhatIfAnswer
from torchyard.export import history
from torchyard.export.history import ReservationRow, TraceRow
from torchyard.files import policies
from torchyard.spec.policy import Policy
from torchyard.states import JOB_FINAL
from torchyard.translatable import TranslatableText

LONGEST_S = 60
#: The newest of more jobs are played.
MOST_JOBS = 20_000
_WEEK_US = 7 * 86_400 * 1_000_000

_log = logging.getLogger(__name__)
#: Held while one is played.
_turn = threading.Lock()


@dataclass(frozen=True, slots=True)
class _EndedJob(Record):
    """A job that has ended, and how long its attempts ran."""

    created_us: int
    user: str
    project: str
    priority: int
    spec: StoredSpec
    total_steps: int | None
    held_us: int
    saves: bool
    project_restarts: bool


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """Jobs and nodes over which the policies are played, quotas, reservations, and the policy that holds now."""

    jobs: Sequence[TraceRow]
    nodes: int
    gpus: int
    #: Of the largest GPU, in bytes.
    gpu_memory: int
    reservations: Sequence[ReservationRow]
    quotas: Mapping[str, Mapping[str, Mapping[str, float]]]
    before: Policy

    @property
    def fitting(self) -> Sequence[TraceRow]:
        """The jobs that could run at all on these nodes."""
        return [
            job
            for job in self.jobs
            if ceil(job.num_gpus / self.gpus) <= self.nodes and job.gpu_share <= self.gpu_memory
        ]


def play(db: Database, asked: WhatIf, now: int) -> WhatIfAnswer:
    """Play the policy that holds and the one that is asked about, and return what came of both.

    ``invalid-request`` for a policy that could not be set, and if there is nothing to play; ``unavailable`` while
    another is played, or where it takes too long.
    """
    policy_settings.check(asked.policy)
    with db.read() as tx:
        setting = _setting(tx, now - asked.weeks * _WEEK_US, now)
    if not setting.fitting:
        raise field_problem(
            "weeks",
            TranslatableText(
                "what-if-nothing",
                "no job with GPUs that came in the last {weeks} weeks and fits on the nodes has ended: take more",
                weeks=asked.weeks,
            ),
        )
    if not _turn.acquire(blocking=False):
        raise ProblemError(
            "unavailable",
            TranslatableText("what-if-busy", "Another change is played at the moment: try again in a minute."),
        )
    try:
        before, after = _simulate(setting, asked)
    finally:
        _turn.release()
    return _answer(setting, before, after)


def _setting(tx: Connection, since_us: int, now: int) -> _Setting:
    query = select(Device.node, func.count().label("devices"), func.max(Device.memory).label("memory"))
    box = tx.execute(query.where(Device.present).group_by(Device.node)).all()
    devices = {row.node: row.devices for row in box}
    gpus = max(devices.values(), default=1)
    nodes = ceil(sum(devices.values()) / gpus)
    reserved = reservations.ever_since(tx, since_us, now)
    return _Setting(
        jobs=_jobs(tx, since_us),
        nodes=nodes,
        gpus=gpus,
        gpu_memory=max((row.memory for row in box), default=0),
        reservations=list(history.reservation_rows(reserved, history.numbered(devices, nodes), nodes * gpus)),
        quotas=_quotas(tx),
        before=current_policy(tx),
    )


def _jobs(tx: Connection, since_us: int) -> list[TraceRow]:
    ran = (
        select(Attempt.job_id, func.sum(Attempt.ended_us - Attempt.started_us).label("held_us"))
        .where(Attempt.ended_us > Attempt.started_us, Attempt.id.not_in(put_back_attempts()))
        .group_by(Attempt.job_id)
        .subquery()
    )
    allowed = Project.restarts.label("project_restarts")
    query = (
        select(*_EndedJob.columns(Job, User.name.label("user"), ran.c.held_us, SAVES, allowed))
        .join(User, User.id == Job.user_id)
        .join(Project, Project.name == Job.project)
        .join(ran, ran.c.job_id == Job.id)
        .where(Job.state.in_(list(JOB_FINAL)), Job.created_us >= since_us)
        .order_by(Job.number.desc())
        .limit(MOST_JOBS)
    )
    return [_row(job) for job in _EndedJob.each(tx.execute(query)) if job.spec.gpus]


def _row(job: _EndedJob) -> TraceRow:
    return TraceRow(
        submit_time=job.created_us / 1e6,
        duration=int(job.held_us) / 1e6,
        num_gpus=job.spec.total_gpus,
        user=job.user,
        project=job.project,
        priority=PRIORITIES[job.priority].value,
        **history.flags(job.spec.data, saves=job.saves, restarts=job.project_restarts, total_steps=job.total_steps),
        gpu_share=job.spec.gpu_share or 0,
    )


def _quotas(tx: Connection) -> dict[str, dict[str, dict[str, float]]]:
    """Return weights and quotas by name, as the simulator reads them."""
    names = {row.id: row.name for row in tx.execute(select(User.id, User.name))}
    found: dict[str, dict[str, dict[str, float]]] = {"users": {}, "projects": {}}
    for (kind, key), record in accounts.stored(tx).items():
        own = {limit: value for limit in Entitlement.model_fields if (value := getattr(record, limit)) is not None}
        if own:
            found[f"{kind}s"][names.get(key, key) if kind == "user" else key] = own
    return found


def _simulate(setting: _Setting, asked: WhatIf) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="yard-what-if-") as folder:
        trace, quotas, reserved = (Path(folder, name) for name in ("trace.csv", "quotas.yaml", "reserved.csv"))
        with trace.open("w", newline="") as file:
            history.write(setting.fitting, file)
        with reserved.open("w", newline="") as file:
            history.write_reservations(setting.reservations, file)
        quotas.write_text(json.dumps(setting.quotas))
        command = [sys.executable, "-P", "-m", "service.simulator", str(trace), "--json", "--by-user"]
        command += ["--gpus", str(setting.gpus), "--nodes", str(setting.nodes), "--quotas", str(quotas)]
        command += ["--gpu-memory", str(setting.gpu_memory), "--reservations", str(reserved)]
        for name, policy in (("before", setting.before), ("after", asked.policy)):
            path = Path(folder, f"{name}.yaml")
            path.write_text(policies.write(policy))
            command += ["--policy", str(path)]
        return list(json.loads(_output(command)).values())


def _output(command: Sequence[str]) -> str:
    """Return what the command prints; it and its processes are killed if it takes too long."""
    with subprocess.Popen(
        ["nice", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, errors = process.communicate(timeout=LONGEST_S)
        except subprocess.TimeoutExpired as slow:
            os.killpg(process.pid, signal.SIGKILL)
            words = TranslatableText(
                "what-if-long", "weeks: to play them takes longer than {longest} s: take fewer.", longest=LONGEST_S
            )
            raise ProblemError("unavailable", words) from slow
    if process.returncode:
        _log.error("the simulator failed: %s", errors)
        raise ProblemError(
            "internal", TranslatableText("simulator-failed", "The simulator failed: see the service's log.")
        )
    return out


def _answer(setting: _Setting, before: Mapping[str, Any], after: Mapping[str, Any]) -> WhatIfAnswer:
    counts = Counter(job.user for job in setting.fitting)
    return WhatIfAnswer(
        jobs=len(setting.fitting),
        left_out=len(setting.jobs) - len(setting.fitting),
        nodes=setting.nodes,
        gpus=setting.gpus,
        before=_outcome(before),
        after=_outcome(after),
        users=[
            UserOutcome(
                user=user,
                jobs=counts[user],
                mean_wait_before_s=had["mean_wait"],
                mean_wait_after_s=after["users"][user]["mean_wait"],
            )
            for user, had in sorted(before["users"].items())
        ],
    )


def _outcome(found: Mapping[str, Any]) -> PolicyOutcome:
    return PolicyOutcome(
        mean_wait_s=found["mean_wait"],
        mean_jct_s=found["mean_jct"],
        p99_jct_s=found["p99_jct"],
        utilization=found["utilization"],
        avoidable_idle=found["avoidable_idle"],
        kept_idle=found["kept_idle"],
        reserved_idle=found["reserved_idle"],
        jain=found["jain"],
        preemptions=found["preemptions"],
        restarts=found["restarts"],
    )
