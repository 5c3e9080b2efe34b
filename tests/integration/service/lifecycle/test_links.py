"""The rate between two nodes: from a run's metric to the advice for the next job that wants both."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import insert, update

from service import lifecycle
from service.db.engine import Database
from service.db.models import Job, MetricSeries, NodeLink
from service.jobs import fit
from service.lifecycle import links
from tests.support import box
from tests.support.box import NOW
from tests.support.live import serve, yard_home  # noqa: F401  fixtures
from torchyard.network import speed
from torchyard.spec import JobSpec

TWO = JobSpec.model_validate({"command": ["true"], "resources": {"gpus": 3, "nodes": 2}})
ONE = JobSpec.model_validate({"command": ["true"], "resources": {"gpus": 3}})
SLOW = "the network between a and b moved 900 MB/s at 2023-11-14 22:13 UTC: each 100 MB"


@pytest.fixture
def nodes(db: Database) -> tuple[str, ...]:
    """Of four GPUs each, but for one that has a single one."""
    box.add_people(db)
    for name, devices in {"a": 4, "b": 4, "c": 4, "small": 1}.items():
        box.add_node(db, name, devices)
    return "a", "b", "c", "small"


def run(db: Database, at: int, nodes: Sequence[str], rate: float | None) -> None:
    """A job with a GPU of each node reports a rate, and all of it has come to the service."""
    job = box.add_job(db, 1, resources={"nodes": len(nodes)})
    attempt = box.spread(db, job, {node: [f"{node}-gpu-{at}"] for node in nodes})
    last = {"name": speed.METRIC, "last_value": rate, "last_special": int(rate is None), "last_time_us": NOW + at}
    own = {"job_id": job, "attempt_id": attempt, "attempt": 1, "stream": "rank-0", "rank": 0}
    with db.write() as tx:
        tx.execute(insert(MetricSeries).values(**last, **own))
        for node in nodes:
            lifecycle.settle(tx, attempt, node)


def known(db: Database, nodes: tuple[str, ...]) -> list[links.MeasuredLink]:
    with db.read() as tx:
        return links.between(tx, nodes)


def test_the_last_run_on_two_nodes_counts(db: Database, nodes: tuple[str, ...]) -> None:
    run(db, 0, "ba", 2e9)
    run(db, 1, "ab", 9e8)
    run(db, 2, "ab", None)  # infinite, or not a number
    assert known(db, nodes) == [links.MeasuredLink(a="a", b="b", rate=9e8, measured_us=NOW + 1)]
    run(db, 3, "ac", 5e8)
    assert [(link.a, link.b) for link in known(db, nodes)] == [("a", "c"), ("a", "b")]


def test_one_node_and_three_tell_of_no_pair(db: Database, nodes: tuple[str, ...]) -> None:
    run(db, 0, "a", 2e9)
    run(db, 1, "abc", 2e9)
    assert known(db, nodes) == []


def test_who_wants_several_nodes_is_told(db: Database, nodes: tuple[str, ...]) -> None:
    with db.read() as tx:
        assert fit.check(tx, TWO) == []
    run(db, 0, "ab", 9e8)
    with db.read() as tx:
        (note,) = fit.check(tx, TWO)
        assert note.message.startswith(SLOW)
        assert note.message.endswith(speed.MENDS)
        assert fit.check(tx, ONE) == []


def test_who_waits_for_several_nodes_is_told(serve: Callable[..., Any]) -> None:  # noqa: F811
    with serve() as live:
        box.add_ada(live.context.db)
        for name in ("a", "b"):
            box.add_node(live.context.db, name, last_seen_us=live.context.now_us())
        with live.context.db.write() as tx:
            tx.execute(insert(NodeLink).values(a="a", b="b", bytes_per_s=9e8, measured_us=NOW))
            job = box.insert_job(tx, 2, resources={"nodes": 2})
            tx.execute(update(Job).where(Job.id == job).values(held=True))
        reasons = live.client.get(f"/api/v1/jobs/{job}/why").raise_for_status().json()["reasons"]
    assert [reason["code"] for reason in reasons] == ["held", "advice"]
    assert reasons[1]["message"].startswith(SLOW)


def test_only_pairs_that_could_run_the_job_count(db: Database, nodes: tuple[str, ...]) -> None:
    run(db, 0, ("a", "small"), 1e6)
    with db.read() as tx:
        assert fit.check(tx, TWO) == []
