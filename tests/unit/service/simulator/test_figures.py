import re
from pathlib import Path

import pytest

from service.simulator.figures import course, plot
from service.simulator.trace import Cluster
from tests.support.traces import job, run

CLUSTER = Cluster(nodes=1, gpus=2)


def test_queue_and_use_over_time() -> None:
    done = run("fifo", [job(0, 100, gpus=2), job(0, 50), job(25, 50)], gpus=2)
    found = course(done, CLUSTER, points=6)
    assert found.hours == pytest.approx([x / 3600 for x in (12.5, 37.5, 62.5, 87.5, 112.5, 137.5)])
    assert found.queue == pytest.approx([1, 2, 2, 2, 0, 0])
    assert found.held == pytest.approx([1, 1, 1, 1, 1, 1])


def test_what_happens_within_a_point_is_averaged() -> None:
    found = course(run("fifo", [job(0, 30), job(0, 60)], gpus=2), CLUSTER, points=1)
    assert found.held == pytest.approx([0.75])


def test_jobs_that_take_no_time_can_be_drawn(tmp_path: Path) -> None:
    found = course(run("fifo", [job(5, 0)], gpus=2), CLUSTER)
    assert found.held.max() == 0
    plot([("fifo", found)], tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_names_policies_and_units(tmp_path: Path) -> None:
    done = run("fair", [job(0, 100, gpus=2), job(0, 50)], gpus=2)
    plot([("fair", course(done, CLUSTER))], tmp_path / "plot.svg")
    drawn = (tmp_path / "plot.svg").read_text()
    labels = re.findall(r"<!-- (.+?) -->", drawn)
    assert {"jobs waiting", "GPUs held, %", "hours since the first submission", "fair"} <= set(labels)
