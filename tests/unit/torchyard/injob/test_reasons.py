"""Reasons are plain English wherever text is taken, and know what they are made of."""

import pytest

from torchyard.injob.exceptions import EmptyCheckpointError
from torchyard.injob.reasons import TEMPLATES, CheckpointReason, known, of_error, parts


def test_a_reason_is_text_with_a_code() -> None:
    ranks = CheckpointReason("new-streams", ranks=2)
    assert (ranks, type(str(ranks))) == ("there were 2 ranks: random streams are new ones", str)
    own = {"message": "no space", "code": None, "params": {}}
    told = {"message": str(ranks), "code": "new-streams", "params": {"ranks": 2}}
    assert parts([ranks, "no space"]) == {"parts": [told, own]}
    assert parts(["no space"]) == {}
    assert parts([CheckpointReason("not-written", error="x" * 2000, free=1)]) == {}


@pytest.mark.parametrize("code", [code for code, text in TEMPLATES.items() if "{" not in text])
def test_what_a_checkpoint_has_kept_as_text_is_known_again(code: str) -> None:
    again = known(TEMPLATES[code])
    assert isinstance(again, CheckpointReason)
    assert again.code == code


def test_other_texts_stay_as_they_are() -> None:
    assert type(known("a text of a version to come")) is str
    assert of_error(EmptyCheckpointError()) == TEMPLATES["empty"]
    error = ValueError("wrong")
    assert of_error(error) is error
