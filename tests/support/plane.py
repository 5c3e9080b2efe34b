"""What a node sends, against a running service: rows of a job and its attempts, and the node's own client."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from sqlalchemy import insert, select, update

from service.context import Context
from service.db.models import Attempt, Job, Member, Node, Project, User
from tests.support.live import Live
from torchyard import home, wire
from torchyard.ids import new_id
from torchyard.spec import JobSpec


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class Seeded:
    """A job with one attempt."""

    job: str
    attempt: str
    number: int


class Plane:
    """Rows that the scheduler would make, and the requests of the node that has them."""

    def __init__(self, live: Live, node: httpx.Client) -> None:
        self.live = live
        self.ctx: Context = live.context
        self.node = node
        self._numbers = iter(range(1, 1000))
        with self.ctx.db.write() as tx:
            tx.execute(insert(Node).values(**_node(home.node_name())))
            tx.execute(insert(Node).values(**_node("elsewhere")))
            self._user = tx.scalar(select(User.id).order_by(User.created_us).limit(1))
            if tx.scalar(select(Project.name).where(Project.name == "default")) is None:
                tx.execute(insert(Project).values(name="default", created_us=1))

    def job(
        self, *, state: str = "running", node: str | None = None, restore: str | None = None, **spec: Any
    ) -> Seeded:
        """A job in a state, with one attempt in the same."""
        job_id, number = new_id("job"), next(self._numbers)
        work: dict[str, Any] = {"command": ["train.py"], **spec}
        with self.ctx.db.write() as tx:
            tx.execute(
                insert(Job).values(
                    id=job_id,
                    number=number + 1000,
                    name="job",
                    user_id=self._user,
                    project="default",
                    state=state,
                    priority=1,
                    spec=JobSpec.model_validate(work).model_dump(mode="json"),
                    code=work.get("code"),
                    tags=[],
                    attempt=0,
                    restore_checkpoint=restore,
                    created_us=1,
                    queued_us=1,
                )
            )
        return self.attempt(job_id, state=state, node=node, restore=restore)

    def attempt(
        self,
        job_id: str,
        *,
        state: str = "running",
        resumed_from_step: int | None = None,
        node: str | None = None,
        restore: str | None = None,
    ) -> Seeded:
        """The job's next attempt."""
        attempt_id = new_id("att")
        with self.ctx.db.write() as tx:
            number = (tx.scalar(select(Job.attempt).where(Job.id == job_id)) or 0) + 1
            tx.execute(update(Job).where(Job.id == job_id).values(attempt=number))
            tx.execute(
                insert(Attempt).values(
                    id=attempt_id,
                    job_id=job_id,
                    number=number,
                    state=state,
                    restore_checkpoint=restore,
                    resumed_from_step=resumed_from_step,
                    created_us=1,
                    claimed_us=1,
                )
            )
            tx.execute(insert(Member).values(attempt_id=attempt_id, node_rank=0, node=node or home.node_name()))
        return Seeded(job_id, attempt_id, number)

    def set_state(self, seeded: Seeded, state: str, *, settled: bool = False) -> None:
        """Moves job and attempt without asking anybody."""
        with self.ctx.db.write() as tx:
            tx.execute(update(Job).where(Job.id == seeded.job).values(state=state))
            tx.execute(update(Attempt).where(Attempt.id == seeded.attempt).values(state=state))
            tx.execute(update(Member).where(Member.attempt_id == seeded.attempt).values(settled=settled))
        self.ctx.hub.notify(f"job:{seeded.job}")

    def post(self, seeded: Seeded, what: str, message: wire.Message) -> httpx.Response:
        """A message of the node about the attempt."""
        return self.node.post(f"/api/v1/agent/attempts/{seeded.attempt}/{what}", content=message.model_dump_json())

    def log(self, seeded: Seeded, offset: int, data: bytes, *, rank: int = 0, dropped: int = 0) -> httpx.Response:
        """Bytes of a rank's log."""
        params = {"rank": rank, "offset": offset, "dropped": dropped}
        return self.node.post(f"/api/v1/agent/attempts/{seeded.attempt}/logs", params=params, content=data)

    def put(self, data: bytes) -> httpx.Response:
        """Uploads a blob."""
        return self.node.put(f"/api/v1/agent/blobs/{sha256(data)}", content=data)

    def checkpoint(self, seeded: Seeded, step: int, files: dict[str, bytes], **metrics: Any) -> wire.CheckpointAnswer:
        """Commits a checkpoint and stores it: report, hashes, blobs, hashes again."""
        self.report(seeded, step, files, hashed=False, **metrics)
        answer = self.report(seeded, step, files, **metrics)
        for data in files.values():
            if sha256(data) in answer.missing:
                assert self.put(data).status_code == 204
        return self.report(seeded, step, files, **metrics)

    def report(
        self, seeded: Seeded, step: int, files: dict[str, bytes], *, hashed: bool = True, **metrics: Any
    ) -> wire.CheckpointAnswer:
        """One report of a checkpoint."""
        message = wire.CheckpointReport(
            name=f"step-{step:09d}",
            step=step,
            created_us=step,
            metrics=metrics,
            files=[
                wire.CheckpointFile(path=path, size=len(data), sha256=sha256(data) if hashed else None)
                for path, data in files.items()
            ],
        )
        response = self.post(seeded, "checkpoints", message)
        assert response.status_code == 200, response.text
        return wire.CheckpointAnswer.model_validate_json(response.content)

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        """A request of the administrator."""
        return self.live.client.get(f"/api/v1{path}", **arguments)


def batch(
    start: int,
    steps: Sequence[int],
    *,
    rank: int = 0,
    stream: str = "rank-0-1-1",
    offset: int | None = None,
    end: int | None = None,
    skipped: int = 0,
    total_steps: int | None = None,
    **values: Any,
) -> wire.MetricBatch:
    """Lines `start`… of a metrics file, ten bytes each: at every step, each value (or its function of the step)."""
    records = [
        (
            start + n,
            wire.MetricRecord(
                step=step,
                time_us=1_000_000 * (start + n),
                values={name: value(step) if callable(value) else value for name, value in values.items()},
                total_steps=total_steps,
            ),
        )
        for n, step in enumerate(steps)
    ]
    return wire.MetricBatch(
        node_rank=0,
        stream=stream,
        rank=rank,
        offset=10 * start if offset is None else offset,
        end=10 * (start + len(steps)) if end is None else end,
        records=records,
        skipped=skipped,
    )


def _node(name: str) -> dict[str, Any]:
    identity = {"node_id": name, "home_id": "home", "boot_id": "boot", "pid_namespace": "1"}
    return {"name": name, **identity, "hostname": name, "version": "1", "runs_as_root": False, "cpus": 2} | {
        "memory": 2**30,
        "registered_us": 1,
    }


@contextmanager
def plane(live: Live) -> Iterator[Plane]:
    """The data plane of a running service, as its embedded node and its administrator see it."""
    with live.as_token(live.node_token) as node:
        node.headers[wire.PROTOCOL_HEADER] = str(wire.PROTOCOL)
        node.headers["Content-Type"] = "application/json"
        yield Plane(live, node)
