import pytest

from service.scheduler.explain.idle_time import IdleTime
from service.simulator.metrics import measure, standings
from service.simulator.report import PolicyResult, duration, plain, table, worst
from service.simulator.trace import Cluster
from tests.support.traces import job, run

KEYS = [
    "mean_jct", "p50_jct", "p99_jct", "mean_wait", "p99_wait",
    "utilization", "makespan", "jain", "preemptions", "gpu_seconds_lost", "restarts", "mean_slowdown",
    "avoidable_idle", "kept_idle", "reserved_idle",
]  # fmt: skip


def result(policy: str, *, first_gpus: int = 2, users: tuple[str, str] = ("ada", "bob")) -> PolicyResult:
    cluster = Cluster(nodes=1, gpus=2)
    jobs = [job(0, 7200, gpus=first_gpus, user=users[0]), job(0, 7200, gpus=2, user=users[1])]
    done = run(policy, jobs, gpus=2)
    stood = standings(done, cluster)
    return PolicyResult(title=policy, metrics=measure(done, cluster, stood, IdleTime()), standings=stood)


def test_one_policy_is_one_object_of_its_figures() -> None:
    assert list(plain([result("fifo")])) == KEYS


def test_several_policies_are_objects_by_name() -> None:
    found = plain([result("fifo"), result("fair")])
    assert {name: list(figures) for name, figures in found.items()} == {"fifo": KEYS, "fair": KEYS}


def test_the_table_has_a_row_for_each_policy_in_columns() -> None:
    head, *lines = table([result("fifo"), result("fifo-backfill")]).splitlines()
    assert head.split()[0] == "policy"
    assert [line.split()[0] for line in lines] == ["fifo", "fifo-backfill"]
    assert {len(line) for line in lines} == {len(head)}
    assert "3h 00m" in lines[0]


def test_who_fell_behind_most_is_named() -> None:
    assert worst(result("fifo")) == "fifo: bob got 67 % of the 6.0 GPU-hours they were entitled to"


def test_who_is_alone_falls_behind_nobody() -> None:
    alone = result("fifo", first_gpus=1, users=("ada", "ada"))
    assert alone.standings[0].satisfaction < 0.995
    assert worst(alone) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1m 00s"),
        (61, "1m 01s"),
        (3599.6, "1h 00m"),
        (3 * 3600 + 300, "3h 05m"),
        (200_000, "2d 7h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
