import pytest

from service.db.records.spec import StoredSpec, StoredSweep
from torchyard.spec import JobSpec, Launcher

SPEC = {"command": ["python", "t.py"], "launcher": "torchrun", "resources": {"nodes": 2, "gpus": 4}, "time_limit": "1m"}


def test_a_stored_spec_tells_what_its_model_tells() -> None:
    model = JobSpec.model_validate({**SPEC, "after": ["job-1"], "max_retries": 2, "checkpoint": {"keep_last": 5}})
    stored = StoredSpec(model.model_dump(mode="json"))
    assert stored.model() == model
    assert (stored.nodes, stored.gpus, stored.total_gpus) == (2, 4, 8)
    assert stored.launcher is Launcher.TORCHRUN
    assert stored.command == ["python", "t.py"]
    assert stored.time_limit_us == 60_000_000
    assert (stored.after, stored.checkpoint) == (model.after, model.checkpoint)
    assert (stored.grace_s, stored.max_retries, stored.carry) == (model.grace, 2, True)
    assert (stored.restartable, stored.preemptible) == (False, None)


def test_an_earlier_versions_spec_has_defaults() -> None:
    stored = StoredSpec({})
    assert (stored.nodes, stored.gpus, stored.gpu_share) == (1, 1, None)
    assert (stored.recipe, stored.backend, stored.command, stored.launcher) == (None, None, None, None)
    assert (stored.code, stored.live, stored.after, stored.time_limit_us) == (None, None, None, None)
    assert (stored.grace_s, stored.max_retries, stored.carry) == (60, 0, True)


def test_a_spec_that_breaks_todays_rules_is_readable_and_no_model() -> None:
    stored = StoredSpec({"name": "one", "resources": {"gpus": 2}, "no_longer": True})
    assert stored.gpus == 2
    with pytest.raises(ValueError, match="no_longer"):
        stored.model()


def test_a_stored_sweep_tells_its_caps() -> None:
    stored = StoredSweep({"running": 3, "pause_after": 2, "stop": {"metric": "loss", "first": 10}})
    assert (stored.running, stored.pause_after) == (3, 2)
    assert stored.stop is not None
    assert (stored.stop.metric, stored.stop.mode) == ("loss", "min")
    assert (StoredSweep({}).running, StoredSweep({}).pause_after, StoredSweep({}).stop) == (None, 0, None)
