from torchyard.client.calls import body_of
from torchyard.spec import JobSpec


def test_what_nobody_has_set_is_not_sent_to_a_service_that_may_not_know_it() -> None:
    spec = JobSpec.model_validate({"command": ["true"], "launcher": "none", "resources": {"gpus": 0}})
    assert sorted(body_of(spec)) == ["command", "launcher", "resources"]
    assert JobSpec.model_validate(body_of(spec)) == spec
    assert body_of({"command": ["true"]}) == {"command": ["true"]}
