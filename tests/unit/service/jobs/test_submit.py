from service.jobs.submit import hang_note
from torchyard.spec import JobSpec


def test_a_rule_for_hanging_asks_for_reported_steps() -> None:
    own = JobSpec.model_validate({"command": ["train.py"], "hang": {"after": 60}})
    found = hang_note(own)
    assert found is not None
    assert "torchyard.report(" in found.message
    trainer = JobSpec.model_validate({"recipe": {"model": "digits_cnn"}, "hang": {"after": 60}})
    assert hang_note(trainer) is None
    assert hang_note(JobSpec.model_validate({"command": ["train.py"]})) is None
