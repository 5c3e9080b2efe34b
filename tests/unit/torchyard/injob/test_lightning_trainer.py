from types import SimpleNamespace

import pytest

from torchyard.injob import lightning_trainer


@pytest.mark.parametrize(("world_size", "ranks", "told"), [(1, 1, False), (2, 2, False), (1, 2, True)])
def test_ranks_that_each_train_a_copy_are_told_how_to_join(
    world_size: int, ranks: int, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(ranks))
    words = lightning_trainer.trains_alone(SimpleNamespace(world_size=world_size), ranks)
    assert (words is not None) == told
    assert "Trainer(devices=2)" in (words or "Trainer(devices=2)")
