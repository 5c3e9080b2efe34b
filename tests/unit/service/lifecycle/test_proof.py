"""When a heartbeat proves that an attempt is dead, and when it does not."""

from typing import Any

import pytest

from service.lifecycle.proof import REBOOTED, SWEPT, Claimed, Inventory, dead
from torchyard.wire import Identity

HERE = Identity(node_id="machine", home_id="home", boot_id="boot-1", pid_namespace="pid-1")


def other(**changes: str) -> Identity:
    return HERE.model_copy(update=changes)


def proof(**changes: Any) -> str | None:
    """The proof for an attempt claimed at beat 5, by an inventory without it, begun after beat 6."""
    claimed = Claimed(attempt="att-1", identity=HERE, beat=5)
    fields = {"identity": HERE, "attempts": frozenset(), "beat": 6, "given": 7} | changes
    return dead([claimed], Inventory(**fields)).get("att-1")


def test_a_sweep_that_found_nothing() -> None:
    assert proof() == SWEPT


def test_a_reboot_needs_neither_home_nor_namespace() -> None:
    rebooted = other(boot_id="boot-2", home_id="another", pid_namespace="pid-2")
    assert proof(identity=rebooted) == REBOOTED


def test_what_is_in_the_inventory_is_not_dead() -> None:
    assert proof(attempts={"att-1"}) is None
    assert proof(attempts={"att-1"}, identity=other(boot_id="boot-2")) is None


@pytest.mark.parametrize("change", ["node_id", "home_id", "pid_namespace"])
def test_an_inventory_that_could_not_see_it(change: str) -> None:
    assert proof(identity=other(**{change: "another"})) is None


def test_another_machine_under_the_same_name_proves_nothing_by_its_boot_id() -> None:
    assert proof(identity=other(node_id="another", boot_id="boot-2")) is None


@pytest.mark.parametrize("beat", [None, 0, 4, 5])
def test_an_inventory_that_may_be_older_than_the_claim(beat: int | None) -> None:
    assert proof(beat=beat) is None
    assert proof(beat=beat, identity=other(boot_id="boot-2")) is None


def test_a_beat_that_was_never_given() -> None:
    assert proof(beat=8) is None
