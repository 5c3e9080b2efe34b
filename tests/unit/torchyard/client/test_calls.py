from torchyard.client.calls import _because, body_of
from torchyard.spec import JobSpec
from torchyard.translatable import TranslatableText


def test_what_nobody_has_set_is_not_sent_to_a_service_that_may_not_know_it() -> None:
    spec = JobSpec.model_validate({"command": ["true"], "launcher": "none", "resources": {"gpus": 0}})
    assert sorted(body_of(spec)) == ["command", "launcher", "resources"]
    assert JobSpec.model_validate(body_of(spec)) == spec
    assert body_of({"command": ["true"]}) == {"command": ["true"]}


def test_a_reason_is_sent_by_the_names_that_every_service_knows() -> None:
    reason = TranslatableText("starts-itself", "{subject} starts them with {how}", subject="t.py:2", how="spawn")
    assert _because(reason) == {
        "launcher_reason": "t.py:2 starts them with spawn",
        "launcher_reason_code": "starts-itself",
        "launcher_reason_subject": "t.py:2",
    }
    assert _because("the user says so") == {"launcher_reason": "the user says so"}
    assert _because("") == {}
