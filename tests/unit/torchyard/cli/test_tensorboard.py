from pathlib import Path
from typing import Any

import pytest

from torchyard import api
from torchyard.cli.tensorboard import JobMirror
from torchyard.states import JobState


class Service:
    """One job, with its curve and its files, as the client brings them."""

    def __init__(self, state: JobState, *outputs: api.Output) -> None:
        self.state = state
        self.files = outputs
        self.points: list[tuple[int, float, api.Number]] = [(0, 1.0, 0.5)]
        self.reset = True

    def job(self, _job: str) -> Any:
        return api.Job.model_construct(id="job-1", number=7, name="mnist", state=self.state)

    def outputs(self, _job: str) -> list[api.Output]:
        return list(self.files)

    def download_output(self, _job: str, output: api.Output, folder: Path) -> Path:
        target = folder / output.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        return target

    def metrics(self, _job: str, *, since: str | None, all_points: bool) -> api.Metrics:
        assert all_points
        points = self.points if self.reset or since is None else self.points[int(since) :]
        series = [api.Series(name="loss", rank=0, points=points)]
        return api.Metrics(series=series, cursor=str(len(self.points)), reset=self.reset)


def event_file(state: Any = "stored") -> api.Output:
    return api.Output(name="runs/a/events.out.tfevents.1.box.5.0", size=1, sha256="0" * 64, state=state)


def refreshed(service: Any, root: Path) -> JobMirror:
    shown = JobMirror(service, service.job("7"), root)
    shown.refresh()
    return shown


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root).parent) for path in root.rglob("*") if path.is_file())


def test_a_job_that_has_ended_is_shown_by_its_own_files(tmp_path: Path) -> None:
    refreshed(Service(JobState.SUCCEEDED, event_file()), tmp_path)
    assert files(tmp_path) == ["7-mnist/runs/a"]


@pytest.mark.parametrize("state", ["arriving", "on-node", "deleted"])
def test_files_that_are_not_in_the_store_leave_the_metrics(state: str, tmp_path: Path) -> None:
    refreshed(Service(JobState.SUCCEEDED, event_file(state)), tmp_path)
    assert files(tmp_path) == ["7-mnist"]


def test_a_job_that_runs_is_followed_and_a_new_attempt_replaces_what_was_shown(tmp_path: Path) -> None:
    service = Service(JobState.RUNNING)
    shown = refreshed(service, tmp_path)
    (path,) = (path for path in tmp_path.rglob("*") if path.is_file())
    before = path.stat().st_size
    service.points.append((1, 2.0, "nan"))
    service.reset = False
    shown.refresh()
    assert path.stat().st_size > before
    service.reset = True
    shown.refresh()
    assert files(tmp_path) == ["7-mnist.1"]
    service.state = JobState.SUCCEEDED
    shown.refresh()
    shown.refresh()
    assert files(tmp_path) == ["7-mnist.2"], "the end was read once"
