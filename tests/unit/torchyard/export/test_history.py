import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from service.simulator import reservations
from service.simulator.trace import SECOND, Cluster, parse
from tests.support.resources import job
from torchyard.api import Attempt, Job, Progress, Project, Storage
from torchyard.api.sharing import Reservation
from torchyard.client.client import Client
from torchyard.export import history
from torchyard.states import AttemptState, JobState

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: It had a checkpoint, which is deleted.
SAVED = Storage(checkpoints=0, outputs=0, logs=0, saved=True)


def at(minutes: float) -> datetime:
    return BEGIN + timedelta(minutes=minutes)


class Box:
    """Answers like the client of a box with these jobs, the newest first."""

    def __init__(
        self,
        *jobs: Job,
        spells: tuple[tuple[float | None, float], ...] = (),
        put_back: int = 0,
        forbidden: str | None = None,
    ) -> None:
        self._jobs, self._spells, self._put_back = jobs, spells, put_back
        self._forbidden = forbidden

    def jobs(self, *, state: list[str]) -> Iterator[Job]:
        return (each for each in self._jobs if each.state.value in state)

    def attempts(self, job: str) -> list[Attempt]:
        found = [attempt(job, begin, end) for begin, end in self._spells]
        return [each.model_copy(update={"put_back": at < self._put_back}) for at, each in enumerate(found)]

    def projects(self) -> list[Project]:
        return [
            Project(name=name, created_at=BEGIN, restarts=name != self._forbidden) for name in ("default", "vision")
        ]


def attempt(owner: str, begin: float | None, end: float) -> Attempt:
    fields = dict.fromkeys(Attempt.model_fields)
    given: dict[str, Any] = {
        "id": f"{owner}-attempt", "number": 1, "state": AttemptState.PREEMPTED, "node": "a", "members": [],
        "devices": [], "created_at": at(0), "started_at": None if begin is None else at(begin), "ended_at": at(end),
        "dropped_log_bytes": 0, "dropped_records": 0, "settled": True, "put_back": False,
    }  # fmt: skip
    return Attempt.model_validate(fields | given)


def rows(box: Box) -> list[history.TraceRow]:
    return list(history.rows(cast("Client", box)))


def ended(**changes: Any) -> Job:
    fields = {"state": JobState.SUCCEEDED, "created_at": BEGIN, "started_at": at(5), "ended_at": at(65), "attempt": 1}
    return job(**{**fields, **changes})


def test_a_job_that_ran_once() -> None:
    (row,) = rows(Box(ended(gpus=4, user="bob", project="vision", priority="high")))
    assert row == history.TraceRow(
        submit_time=BEGIN.timestamp(),
        duration=3600,
        num_gpus=4,
        user="bob",
        project="vision",
        priority="high",
        stoppable=0,
        restartable=0,
        reports=0,
    )


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({"storage": SAVED}, (1, 0, 0, 1)),
        ({"storage": SAVED, "spec": {"preemptible": False}}, (0, 0, 0, 1)),
        ({"spec": {"restartable": True}}, (1, 2, 0, 0)),
        ({"storage": SAVED, "spec": {"restartable": True}}, (1, 2, 0, 1)),
        ({"progress": Progress(step=9, total_steps=10, eta_s=None)}, (0, 0, 1, 1)),
        ({"progress": Progress(step=9, total_steps=None, eta_s=None)}, (0, 0, 0, 1)),
    ],
)
def test_what_a_job_allowed_and_told(changes: dict[str, Any], flags: tuple[int, ...]) -> None:
    (row,) = rows(Box(ended(**changes)))
    assert (row.stoppable, row.restartable, row.reports, row.resumes) == flags


def test_running_times_of_several_attempts_are_added() -> None:
    (row,) = rows(Box(ended(attempt=3), spells=((5, 10), (None, 20), (30, 65))))
    assert row.duration == 40 * 60


def test_trials_that_were_thrown_away_are_not_its_duration() -> None:
    (row,) = rows(Box(ended(attempt=3), spells=((5, 6), (10, 11), (30, 65)), put_back=2))
    assert row.duration == 35 * 60
    assert rows(Box(ended(state=JobState.CANCELLED), spells=((5, 6),), put_back=1)) == []


@pytest.mark.parametrize(("said", "free", "forbidden"), [("auto", 1, 0), (True, 2, 2), (False, 0, 0)])
def test_who_may_start_over_is_as_the_project_has_it(said: object, free: int, forbidden: int) -> None:
    one = ended(project="vision", spec={"recipe": {}, "restartable": said})
    found = [row.restartable for box in (Box(one), Box(one, forbidden="vision")) for row in rows(box)]
    assert found == [free, forbidden]


def test_what_never_held_a_gpu_is_left_out() -> None:
    running = ended(state=JobState.RUNNING, ended_at=None)
    assert rows(Box(ended(gpus=0), ended(attempt=0, started_at=None), ended(started_at=None), running)) == []


def test_what_is_written_is_a_trace() -> None:
    file = io.StringIO(newline="")
    found = rows(Box(ended(created_at=at(1), user='"b", c'), ended(state=JobState.FAILED)))
    history.write(found, file)
    first, second = parse(io.StringIO(file.getvalue()))
    assert (first.submit_us, first.user) == (round(BEGIN.timestamp()) * SECOND, "ada")
    assert (second.submit_us, second.user, second.duration_us) == (
        first.submit_us + 60 * SECOND,
        '"b", c',
        3600 * SECOND,
    )


def test_a_share_is_told_in_bytes() -> None:
    (row,) = rows(Box(ended(spec={"resources": {"gpus": 1, "gpu_share": "10GiB"}})))
    assert row.gpu_share == 10 * 2**30


def reserved(**changes: Any) -> Reservation:
    fields = {
        "id": "res", "name": "demo", "state": "over", "users": ["ada", "bob"], "projects": [], "maintenance": False,
        "nodes": [], "gpus": 9, "starts_at": at(10), "ends_at": at(20), "created_by": "root", "created_at": at(1),
    }  # fmt: skip
    return Reservation.model_validate(fields | changes)


def test_reservations_are_written_for_the_nodes_that_stand_for_the_boxs() -> None:
    names = history.numbered({"a": 2, "b": 4, "c": 4}, 2)
    assert names == ["b", "c"]
    works = {"maintenance": True, "users": [], "gpus": None}
    given = [
        reserved(cancelled_at=at(15)),
        reserved(nodes=["c", "a"], starts_at=at(5), **works),
        reserved(nodes=["a"], **works),
    ]
    file = io.StringIO(newline="")
    history.write_reservations(history.reservation_rows(given, names, 8), file)
    first, second = reservations.parse(io.StringIO(file.getvalue()), Cluster(nodes=2, gpus=4))
    assert (first.info.nodes, first.info.maintenance, first.info.gpus) == ({"node1"}, True, None)
    assert (second.info.gpus, second.info.users) == (8, {"ada", "bob"})
    assert (second.made_us, second.over_us) == tuple(round(at(when).timestamp() * SECOND) for when in (1, 15))
