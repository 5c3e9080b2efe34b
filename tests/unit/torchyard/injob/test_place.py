"""Which rank makes and commits the folder of a checkpoint."""

import pytest

import torchyard
from tests.support.attempt import AttemptFolder
from torchyard.injob import layout, place


@pytest.mark.parametrize(
    ("rank", "local_rank", "leads"),
    [("0", "0", True), ("1", "1", False), ("2", "0", True), ("3", "1", False), ("1", None, False)],
)
def test_the_first_rank_of_each_node_leads(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch, rank: str, local_rank: str | None, leads: bool
) -> None:
    monkeypatch.setenv("RANK", rank)
    if local_rank is not None:
        monkeypatch.setenv("LOCAL_RANK", local_rank)
    assert place.leads() is leads


def test_ranks_that_a_script_has_started_itself_inherit_words_that_are_not_theirs(
    folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setattr(place, "rank", lambda: 3)
    assert not place.leads()


def test_off_the_queue_nodes_may_share_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(layout.ATTEMPT_DIR, raising=False)
    place.current.cache_clear()
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert not place.leads()
    place.current.cache_clear()


def test_a_node_whose_ranks_wrote_nothing_commits_that(folder: AttemptFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("LOCAL_RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    with torchyard.checkpoint(step=3) as target:
        assert target.is_dir()
    (committed,) = folder.checkpoints()
    assert [path.name for path in committed.iterdir()] == [layout.MANIFEST]
