"""GPUs beside processes from outside of the queue: what is free counts, and who holds much keeps jobs off."""

from typing import Any

import pytest

from torchyard.wire import Device, DeviceKind
from worker.devices.foreign import ForeignProcesses
from worker.devices.offenders import Offender

GIB = 2**30
CARD = Device(uuid="GPU-a", index=0, kind=DeviceKind.GPU, name="H200", memory=80 * GIB)
WHO = "process 7 (python) of eve, started 2025-11-25 18:00 UTC,"


def process(memory: int | None, **changes: Any) -> Offender:
    fields: dict[str, Any] = {"uuid": "GPU-a", "pid": 7, "user": "eve", "name": "python", "holders": ()}
    return Offender(**(fields | {"since_us": 1_764_093_603_500_000, "memory": memory} | changes))


def beside(*offenders: Offender, device: Device = CARD, **said: Any) -> Device:
    (found,) = ForeignProcesses(**said).apply([device], offenders)
    return found


def test_a_card_alone_stays_as_it_is() -> None:
    assert beside() == CARD
    assert beside(process(GIB, uuid="GPU-b")) == CARD


@pytest.mark.parametrize("policy", ["use", "wait", "exclude"])
def test_a_stray_process_costs_its_memory_and_blocks_nothing(policy: str) -> None:
    found = beside(process(600 * 2**20), policy=policy)
    assert (found.foreign_memory, found.unusable, found.fault) == (768 * 2**20, None, None)


def test_much_memory_keeps_jobs_off_as_the_policy_says() -> None:
    much = process(20 * GIB)
    used, waits, excluded = (beside(much, policy=policy) for policy in ("use", "wait", "exclude"))
    assert {each.foreign_memory for each in (used, waits, excluded)} == {20 * GIB}
    assert (used.unusable, used.fault) == (None, None)
    held = "holds about 20.0 GiB of it from outside of the queue: jobs wait until that has ended"
    assert waits.unusable == f"{WHO} {held}"
    assert (excluded.unusable, excluded.fault) == (None, f"{WHO} is not of the queue: end it")
    assert [[(each.code, each.message) for each in found.findings] for found in (used, waits, excluded)] == [
        [],
        [("awaited", waits.unusable)],
        [("excluded", excluded.fault)],
    ]
    who = {"pid": 7, "name": "python", "user": "eve", "started": "2025-11-25 18:00 UTC"}
    assert waits.findings[0].params == {**who, "others": 0, "held": "20.0 GiB"}
    assert excluded.findings[0].params == who
    assert beside(much, tolerated=30 * GIB).unusable is None


def test_several_count_together_and_the_largest_is_named() -> None:
    found = beside(process(700 * 2**20), process(800 * 2**20, pid=8, user="bob"))
    assert found.foreign_memory == 1536 * 2**20
    assert "process 8 (python) of bob" in str(found.unusable)
    assert "and 1 more process hold about 1.5 GiB" in str(found.unusable)


def test_what_the_driver_does_not_tell_counts_as_all() -> None:
    found = beside(process(None))
    assert found.foreign_memory == CARD.memory
    assert found.unusable is not None


def test_a_card_that_jobs_hold_is_not_taken_from_them() -> None:
    found = beside(process(20 * GIB, holders=("att-1",)))
    assert (found.foreign_memory, found.unusable) == (20 * GIB, None)


def test_what_keeps_a_card_already_is_not_replaced_and_leftovers_are_left() -> None:
    assert beside(process(20 * GIB), device=CARD.model_copy(update={"unusable": "x"})).unusable == "x"
    assert beside(process(20 * GIB, leftover="att-9")) == CARD
