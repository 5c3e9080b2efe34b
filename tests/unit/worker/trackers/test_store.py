from pathlib import Path

from torchyard.injob import layout
from worker.attempts.folder import AttemptFolder
from worker.trackers import store

RUN = "0123456789abcdef" * 2


def test_a_store_of_an_earlier_attempt_becomes_one_of_this(tmp_path: Path) -> None:
    folder = AttemptFolder(tmp_path, "att-2")
    place = folder.at(layout.MLFLOW_STORE)
    run = place / "0" / RUN
    run.mkdir(parents=True)
    old = "file:///home/attempts/att-1/job/output/mlruns"
    (place / "0" / "meta.yaml").write_text(f"artifact_location: {old}/0\nname: Default\n")
    (run / "meta.yaml").write_text(f"artifact_uri: {old}/0/{RUN}/artifacts\nrun_name: {old}x\n")
    store.mend(folder)
    assert (place / "0" / "meta.yaml").read_text() == f"artifact_location: {place.as_uri()}/0\nname: Default\n"
    assert (run / "meta.yaml").read_text() == f"artifact_uri: {place.as_uri()}/0/{RUN}/artifacts\nrun_name: {old}x\n"
    assert sorted(each.name for each in run.iterdir()) == ["artifacts", "meta.yaml", "metrics", "params", "tags"]
    assert [each.name for each in (place / "0").iterdir() if each.is_dir()] == [RUN]


def test_no_store_is_no_store(tmp_path: Path) -> None:
    store.mend(AttemptFolder(tmp_path, "att-2"))
    assert list(tmp_path.iterdir()) == []
