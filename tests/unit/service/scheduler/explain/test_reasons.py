"""Each reason in words, and with the jobs that it is about."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scheduler.explain.blockers import Blocker, blockers
from service.scheduler.explain.names import Awaited, Names, Title
from service.scheduler.explain.reasons import mentioned, reasons
from service.scheduler.model.jobs import IneligibleReason, ReservationInfo, TenantAccount
from service.scheduler.model.nodes import ClosedReason, LowDisk, Slot
from service.scheduler.model.state import SchedulerState
from tests.support.sharing import GIB, HOUR, MINUTE, NOW, node, runs, state, waits
from torchyard.api import Reason, ReasonCode
from torchyard.spec.policy import Policy
from torchyard.states import JobState

CALM = Policy(preemption=False, time_slice=None)
NAMES = Names(jobs={f"j{n}": Title(number=n, user="bob") for n in range(100)}, users={"ada": "Ada"})
FULL = ("a0", "a1", "a2", "a3")


def told(
    made: SchedulerState, job: str = "j1", names: Names = NAMES, policy: Policy = CALM, starts_us: int | None = None
) -> list[Reason]:
    return reasons(made, job, blockers(made, job, NOW, policy), names, NOW, starts_us)


def first(made: SchedulerState, **more: Any) -> Reason:
    return told(made, **more)[0]


@pytest.mark.parametrize(
    ("ineligible", "code", "words"),
    [
        (IneligibleReason.HELD, "held", "is held: release it to let it start"),
        (IneligibleReason.SAVING, "saving", "the checkpoint of its last attempt is still being stored"),
        (
            IneligibleReason.PAUSED,
            "paused",
            "its sweep is paused (all failed alike): resume it to let its trials start",
        ),
        (IneligibleReason.SECRET, "secret", "there is no secret HF_TOKEN"),
        (IneligibleReason.DEPENDENCY, "dependency", "waits for the success of job 7 (bob), which runs"),
    ],
)
def test_what_keeps_it_from_being_considered(ineligible: IneligibleReason, code: str, words: str) -> None:
    names = replace(
        NAMES,
        paused="all failed alike",
        missing=Reason(code="secret", message="there is no secret HF_TOKEN"),
        need="success of all",
        awaited=[Awaited(job="j7", title=Title(number=7, user="bob"), state="running")],
    )
    found = first(state(waits(1, ineligible=ineligible)), names=names)
    assert (found.code, found.message) == (code, words)
    assert found.jobs == (["j7"] if ineligible is IneligibleReason.DEPENDENCY else [])


def test_a_pause_comes_before_all_else() -> None:
    made = state(waits(1, ineligible=IneligibleReason.HELD), waits(2))
    made.paused = "the queue is paused by ada since 2026-11-25 18:00 UTC: replacing a fan"
    assert [each.code for each in told(made)] == ["queue-paused", "held"]
    assert [each.code for each in told(made, "j2")] == ["queue-paused"], "it would start otherwise"
    names = replace(NAMES, pause={"user": "ada"})
    assert (first(made).message, first(made, names=names).params) == (made.paused, {"user": "ada"})


def test_nodes_that_there_are_not() -> None:
    assert first(state(waits(1), nodes=())).code == "no-nodes"
    found = first(state(waits(1, 9)))
    assert (found.code, found.message) == ("never-fits", "node a has 4 GPUs, the job needs 9")
    assert found.params == {"node": "a", "lack": "slots", "found": 4, "needed": 9, "unit": "gpu"}


def test_why_nobody_gives_way_to_it() -> None:
    full = runs(2, *FULL, preemptible=True)
    assert first(state(replace(waits(1), pinned=True), full), policy=Policy(preemption=False)).message.endswith(
        "; this job is not preemptible itself (preemptible: false), so it gets no time slices"
    )
    calm = replace(full, preemptible=False)
    assert "preemptible" not in first(state(replace(waits(1), pinned=True), calm)).message


def test_it_starts_or_room_is_made() -> None:
    assert first(state(waits(1))).code == "starting"
    weak = runs(2, *FULL, priority=0, preemptible=True)
    found = first(state(waits(1, priority=3), weak), policy=Policy())
    assert (found.code, found.jobs) == ("making-room", ["j2"])
    assert found.message == "waits for a preemption: job 2 (bob) saves its work and is then preempted"
    unsaved = first(state(waits(1, priority=3), replace(weak, starts_over=True)), policy=Policy())
    assert unsaved.message == "waits for a preemption: job 2 (bob) goes back to start over"
    due = replace(weak, preempted_for="j1", due_us=NOW + 5 * MINUTE)
    (found,) = told(state(waits(1), due), policy=Policy(), starts_us=NOW + 2 * MINUTE)
    assert (
        found.message
        == "waits for a preemption: job 2 (bob) saves its work, due by 2023-11-14 22:19 UTC, and is then preempted"
    )
    assert found.until is not None
    assert found.until.timestamp() == NOW / 1e6 + 120
    cancelled = runs(2, "a0", "a1", preempted_for="j1", stops=True)
    others = [runs(number, f"a{number - 1}", preempted_for="j1") for number in (3, 4)]
    found = first(state(waits(1, 4), cancelled, *others))
    assert found.message == (
        "waits for a preemption: job 2 (bob) is being stopped; "
        "job 3 (bob), job 4 (bob) save their work and are then preempted"
    )


def test_quotas_say_who_uses_them() -> None:
    users = {"ada": TenantAccount(max_gpus=2)}
    made = state(waits(1), runs(2, "a0", user="ada", minutes=90), runs(3, "a1", user="ada", minutes=30), users=users)
    found = first(made)
    assert (found.code, found.jobs) == ("quota", ["j2", "j3"])
    assert found.message == "the quota of user Ada is 2 GPUs at once, which job 2 (bob), job 3 (bob) use"
    assert found.until is not None
    assert found.until.timestamp() == NOW / 1e6 + 1800
    projects = {"vision": TenantAccount(max_gpus=1)}
    assert (
        "the quota of project vision is 1 GPU at once"
        in first(state(waits(1), runs(2, "a0"), projects=projects)).message
    )
    spent = first(state(waits(1), users={"ada": TenantAccount(week_left_us=0)}))
    assert spent.message == "user Ada has used up the GPU-hours that are theirs in seven days"


def test_a_sweep_at_its_cap() -> None:
    made = state(waits(1, group="s"), runs(2, "a0", group="s"), caps={"s": 1})
    found = first(made)
    assert (found.code, found.jobs) == ("sweep-cap", ["j2"])
    assert found.message == "its sweep may run 1 at once, and job 2 (bob) does"


def test_who_holds_the_gpus_and_until_when() -> None:
    found = first(state(waits(1, 2), runs(2, "a0", "a1", minutes=30), runs(3, "a2", minutes=90), nodes=(node(gpus=3),)))
    assert (found.code, found.jobs) == ("gpus", ["j2", "j3"])
    assert found.message.startswith(
        "node a has 0 GPUs free and the job needs 2; the rest is held by job 2 (bob), job 3 (bob); enough is"
    )
    assert found.until is not None
    assert found.until.timestamp() == NOW / 1e6 + 1800, "once the shorter one is over"
    assert first(state(waits(1), runs(2, *FULL, minutes=None))).until is None


def test_messages_are_given_in_parts_for_other_languages() -> None:
    made = state(waits(1, 2), runs(5, *FULL))
    short, fixed = told(made)
    bob = {"jobs": [{"number": 5, "user": "bob"}], "more": 0}
    kind = {"unit": "gpu", "type": "", "memory": "", "unusable": []}
    gpus = {"node": "a", "free": 0, "needed": 2, "preempted": False, "pinned": False}
    assert (short.code, short.params) == ("gpus", {**gpus, **kind, **bob})
    assert (fixed.code, fixed.params) == (
        "unstoppable",
        {"recipes": False, "scripts": True, "restartable": True, **bob},
    )


def test_who_cannot_be_stopped_and_what_would_make_it_so() -> None:
    fixed, pinned, flexible = runs(2, "a0"), runs(3, "a1", pinned=True), runs(4, "a2", preemptible=True)
    found = told(state(waits(1, 3), fixed, pinned, flexible, nodes=(node(gpus=3),)))
    assert [reason.code for reason in found] == ["gpus", "unstoppable"]
    assert found[1].jobs == ["j2"]
    words = "job 2 (bob) has written no checkpoint that was verified, so it cannot be stopped for others: "
    assert found[1].message.startswith(words)
    assert "torchyard.attach(model=model, optimizer=optimizer, loader=loader)" in found[1].message
    assert "restartable: true" in found[1].message
    allowed = told(state(waits(1, 3), replace(fixed, restarts_allowed=True), pinned, flexible, nodes=(node(gpus=3),)))
    assert "restartable" not in allowed[1].message, "by `auto` it could start over already, and its trial is over"
    assert allowed[1].params["restartable"] is False
    assert [
        reason.code
        for reason in told(state(waits(1), replace(flexible, placements=fixed.placements), nodes=(node(gpus=1),)))
    ] == ["gpus"]


def test_room_that_is_made_before_the_others_are_over() -> None:
    soon = NOW + 2 * MINUTE
    found = first(state(waits(1), runs(2, *FULL, preemptible=True)), starts_us=soon)
    assert found.message.endswith(
        "; enough is expected to be free at about 2023-11-14 22:16 UTC, when others are preempted for it"
    )
    assert found.until is not None
    assert found.until.timestamp() == soon / 1e6
    assert first(state(waits(1), runs(2, *FULL)), starts_us=soon).message.endswith("at about 2023-11-14 23:14 UTC")


def test_sorts_of_gpus() -> None:
    found = first(state(waits(1, gpu_memory_min=80 * GIB, gpu_type="a100"), runs(2, *FULL)))
    assert "0 GPUs of type a100 with at least 80.0 GiB free and the job needs 1" in found.message
    shared = first(state(waits(1, gpu_share=60 * GIB), runs(2, "a0", gpu_share=30 * GIB), nodes=(node(gpus=1),)))
    assert "0 GPUs with 60.0 GiB of memory to share free and the job needs 1" in shared.message


def test_cores_and_memory() -> None:
    busy = runs(2, "a0")
    busy = replace(busy, resources=replace(busy.resources, cpus=30, memory=200 * GIB))
    assert (
        "2 CPU cores free and the job needs 4; the rest is held by job 2 (bob)"
        in first(state(waits(1, cpus=4), busy)).message
    )
    found = first(state(waits(1, memory=100 * GIB), busy))
    assert "56.0 GiB of memory free and the job needs 100.0 GiB" in found.message


def test_closed_nodes_and_unusable_gpus() -> None:
    broken = replace(
        node("d", 1), slots=(Slot(uuid="d0", index=0, memory=80 * GIB, unusable="owned by another stack"),)
    )
    nodes = (
        node("a", closed=ClosedReason.UNREACHABLE),
        replace(node("b", closed=ClosedReason.DISK_FLOOR), low_disk=LowDisk("0.4 GiB", "1.0 GiB")),
        node("c", closed=ClosedReason.DRAINING),
        broken,
    )
    found = told(state(waits(1), nodes=nodes))
    assert [each.code for each in found] == ["unusable", "disk-floor", "draining", "unreachable"]
    assert found[0].message == "node d: GPU 0 cannot be used (owned by another stack)"
    assert found[1].message == "node b has 0.4 GiB of disk free: no job starts there below 1.0 GiB, so free some"
    assert found[1].params == {"node": "b", "free": "0.4 GiB", "least": "1.0 GiB"}
    assert found[2].message == "node c is draining: it takes no new jobs until an administrator resumes it"
    assert found[2].until is None


def test_why_a_node_drains_is_told_in_the_administrators_words() -> None:
    closed = replace(node("c", closed=ClosedReason.DRAINING), drain_message="new fan, back at 18:00")
    found = first(state(waits(1), nodes=(closed,)))
    assert found.message.endswith("until an administrator resumes it (new fan, back at 18:00)")


def test_a_gpu_that_cannot_be_used_is_named_beside_those_that_others_hold() -> None:
    held = "process 7 of eve holds it"
    told = {"code": "awaited", "message": held, "params": {"pid": 7}}
    squatted = Slot(uuid="d1", index=1, memory=80 * GIB, unusable=held, finding=told)
    half = replace(node("a", 1), slots=(*node("a", 1).slots, squatted))
    found = first(state(waits(1, gpus=1), runs(2, "a", "a0"), nodes=(half,)))
    assert found.code == "gpus"
    assert found.message.endswith("; GPU 1 cannot be used (process 7 of eve holds it)")
    assert found.params["unusable"] == [{"index": 1, "said": held, "finding": told}]


def test_until_when_a_node_is_under_maintenance() -> None:
    closed = replace(node("c", closed=ClosedReason.DRAINING), maintenance="m")
    end = NOW + HOUR + 40_000_000
    disks = ReservationInfo(
        id="m", name="disks", maintenance=True, nodes=frozenset("c"), starts_us=NOW - HOUR, ends_us=end
    )
    found = first(state(waits(1), nodes=(closed,), reservations=(disks,)))
    assert found.until is not None
    assert found.until.timestamp() == NOW / 1e6 + 3660
    assert found.message == "node c takes no new jobs before its maintenance ends at 2023-11-14 23:14 UTC"


def test_a_worker_that_is_too_old() -> None:
    nodes = (replace(node("a"), knows_shares=False), node("b"))
    made = state(waits(1, gpu_share=GIB), runs(2, *(f"b{n}" for n in range(4))), nodes=nodes)
    holds, old, _ = told(made)
    assert (holds.code, old.code) == ("gpus", "outdated")
    assert (
        old.message
        == "needs a worker that knows shared GPUs: node a runs an older one, until an administrator upgrades it"
    )
    assert first(state(waits(1), nodes=nodes)).code == "starting", "for whole GPUs it will do"
    nodes = (replace(node("a"), knows_secrets=False),)
    found = first(state(waits(1, secrets=True), nodes=nodes))
    assert (found.code, found.message) == (
        "outdated",
        "needs a worker that knows secrets: node a runs an older one, until an administrator upgrades it",
    )
    found = first(state(waits(1, cold=True), nodes=(replace(node("a"), knows_warm_start=False),)))
    assert (found.code, found.message) == (
        "outdated",
        "needs a worker that knows warm_start: node a runs an older one, until an administrator upgrades it",
    )


def test_who_comes_first() -> None:
    first_, second = waits(0, 4, priority=2), waits(1, minutes=600)
    found = first(state(first_, second, runs(2, "a0")))
    assert (found.code, found.jobs) == ("behind", ["j0"])
    assert found.message == (
        "what is free on node a is kept for job 0 (bob), which comes first, and can start at about 2023-11-15 00:14 "
        "UTC: a job whose time_limit ends before that may start there"
    )
    given = first(state(first_, second))
    assert given.message == "what is free on node a goes to job 0 (bob), which comes first"


def test_of_jobs_of_unknown_length_the_first_comes_first() -> None:
    made = state(waits(0, 4, minutes=None), waits(1, minutes=None), runs(2, "a0", limit_us=HOUR))
    found = first(made)
    assert found.message.startswith(
        "what is free on node a is kept for job 0 (bob), which comes first, and can start at "
    )
    assert found.message.endswith(": a job whose time_limit ends before that may start there")
    assert found.until is not None


def test_reservations() -> None:
    late = 40_000_000  # in the minute that is told, as lists of reservations do
    times = {"starts_us": NOW - HOUR + late, "ends_us": NOW + HOUR + late}
    reserved = ReservationInfo(id="r", name="demo day", users=frozenset({"eve"}), **times)  # type: ignore[arg-type]
    found = first(state(waits(1), reservations=(reserved,)))
    assert found.code == "reserved"
    assert found.message == "node a is reserved from 2023-11-14 21:14 UTC to 2023-11-14 23:14 UTC (demo day)"
    some = replace(reserved, gpus=3)
    found = first(state(waits(1, 2), reservations=(some,)))
    assert (
        found.message
        == "node a is reserved in part from 2023-11-14 21:14 UTC to 2023-11-14 23:14 UTC (demo day, 3 GPUs)"
    )
    assert found.until is not None
    assert found.until.timestamp() == NOW / 1e6 + 3660
    upkeep = ReservationInfo(id="r", name="new fans", maintenance=True, **times)  # type: ignore[arg-type]
    assert "out of use for maintenance" in first(state(waits(1), reservations=(upkeep,))).message


def test_several_nodes_at_the_same_time() -> None:
    found = told(state(waits(1, 2, nodes=2), runs(2, "a0"), nodes=(node("a", 2), node("b", 2))))
    assert found[0].message == "needs 2 nodes at the same time, and 1 has enough free now"
    assert "gpus" in [each.code for each in found]
    three = (node("a", 2), node("b", 2), node("c", 2))
    found = told(state(waits(1, 2, nodes=3), runs(2, "a0"), nodes=three))
    assert found[0].message == "needs 3 nodes at the same time, and 2 have enough free now"


def test_long_lists_of_holders_are_cut() -> None:
    made = state(waits(1, 8), *(runs(n, f"a{n - 10}") for n in range(10, 18)), nodes=(node(gpus=8),))
    found = first(made)
    assert "job 14 (bob) and 3 more" in found.message
    assert len(found.jobs) == 8
    assert mentioned(made, "j1", blockers(made, "j1", NOW, CALM)) == ["j10", "j11", "j12", "j13", "j14"]


def test_a_cpu_node_has_slots() -> None:
    slots = replace(node(gpus=1), slots=(Slot(uuid="a0", index=0, memory=0, kind="cpu"),))
    assert "0 CPU slots free and the job needs 1" in first(state(waits(1), runs(2, "a0"), nodes=(slots,))).message


held = st.lists(st.sampled_from(["a0", "a1", "a2", "a3", "b0", "b1"]), unique=True, max_size=6)
queued = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=5)
obstacles = st.sampled_from(list(IneligibleReason)) | st.none()


@given(held, queued, obstacles, st.booleans())
def test_every_job_has_a_reason_whatever_stands_in_its_way(
    devices: list[str], jobs: list[tuple[int, int, int]], ineligible: IneligibleReason | None, closed: bool
) -> None:
    made = state(
        *(waits(n, g, priority=p, nodes=many) for n, (g, p, many) in enumerate(jobs)),
        waits(50, ineligible=ineligible),
        *(runs(n, device) for n, device in enumerate(devices, 60)),
        nodes=(node("a", closed=ClosedReason.DRAINING if closed else None), node("b", 2)),
        users={"ada": TenantAccount(max_gpus=4)},
    )
    for job in made.waiting:
        found: list[Blocker] = blockers(made, job, NOW, Policy())
        assert all(each.message for each in reasons(made, job, found, NAMES, NOW))
        assert found


def test_a_node_without_gpus_is_no_help_to_nccl() -> None:
    slots = tuple(Slot(uuid=f"a{n}", index=n, memory=0, kind="cpu", name="CPU") for n in range(4))
    nodes = (replace(node("a"), slots=slots), node("b", gpus=2))
    made = state(runs(9, "b0", "b1"), waits(1, gpus_alone=True), waits(2), nodes=nodes)
    assert [
        (reason.code, reason.message.partition(";")[0]) for reason in told(made) if reason.code != "unstoppable"
    ] == [
        ("gpus", "node b has 0 GPUs free and the job needs 1"),
        ("no-gpus", "node a has no GPUs, and NCCL needs them"),
    ]
    assert first(made, job="j2").code == "starting"


def test_every_code_of_a_reason_is_known() -> None:
    """Codes stand in the source as literals, but for those that are values of a state or of an obstacle."""
    sources = [file.read_text() for file in Path("service").rglob("*.py") if "examples" not in file.parts]
    literal = {code for text in sources for code in re.findall(r'\bReason\(\s*code="([a-z-]+)"', text)}
    states = {state.value for state in JobState} - {JobState.QUEUED, JobState.FAILED}
    of_values = {
        *IneligibleReason,
        *ClosedReason,
        *states,
        "gpus",
        "cpus",
        "memory",
        "sweep-cap",
        "quota",
        "not-joined",
    }
    assert literal | {str(code) for code in of_values} == set(ReasonCode)
