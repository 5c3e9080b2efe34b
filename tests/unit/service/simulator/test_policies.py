from pathlib import Path

import pytest

from service.simulator.policies import PRESETS, named, title
from torchyard.exceptions import PolicyError
from torchyard.spec.policy import Order, Policy


def test_oracles_are_called_so() -> None:
    assert [title(name, policy) for name, policy in PRESETS.items()] == [
        "fifo", "fifo-backfill", "sjf (oracle)", "srtf (oracle)", "las", "fair",
    ]  # fmt: skip


def test_fair_is_the_policy_of_a_new_box() -> None:
    assert named("fair") == Policy()


def test_a_file_is_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text("order: srtf\nhalf_life: 1d\n")
    assert named(str(path)) == Policy(order=Order.SRTF, half_life=86400)
    assert title(str(path), named(str(path))) == f"{path} (oracle)"


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(PolicyError, match=r"no policy 'lottery': write fifo, fifo-backfill, sjf, srtf, las, fair, or"):
        named("lottery")
    with pytest.raises(PolicyError, match=r"nowhere\.yaml cannot be read"):
        named("nowhere.yaml")
