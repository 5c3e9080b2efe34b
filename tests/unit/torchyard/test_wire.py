"""Messages between node and service, as a peer of the version before reads them."""

from typing import Any

import pytest
from pydantic import ValidationError

from torchyard import wire
from torchyard.spec import JobSpec
from torchyard.wire import Launch

SPECS: list[dict[str, Any]] = [
    {"command": ["train.py"], "launcher": "torchrun"},
    {"command": ["train.py"], "launcher": "python", "env": {"A": "1"}, "resources": {"gpus": 0, "cpus": 2}},
    {"recipe": {"model": "digits_cnn", "data": "digits", "strategy": "ddp"}, "checkpoint": {"keep_last": 3}},
    {"command": ["x"], "launcher": "none", "carry": False, "link": ["data"], "link_root": "/srv"},
]


def launch(spec: dict[str, Any]) -> Launch:
    values = {"attempt": "a", "job": "j", "number": 1, "user": "ann", "unix_user": None, "node_rank": 0, "devices": []}
    return Launch(spec=JobSpec.model_validate(spec), code=None, restore=None, **values)


def test_a_node_is_told_of_the_fields_alone_that_a_job_sets() -> None:
    sent = launch(SPECS[1]).model_dump(mode="json")["spec"]
    assert sent == {**SPECS[1]}


@pytest.mark.parametrize("spec", SPECS)
def test_a_launch_is_read_as_it_was_sent(spec: dict[str, Any]) -> None:
    sent = launch(spec)
    assert Launch.model_validate_json(sent.model_dump_json()) == sent


@pytest.mark.parametrize("parts", [None, 7, ["late"], [{"code": "late"}], {"message": "x"}])
def test_a_result_is_read_whatever_its_job_left_of_sentences(parts: object) -> None:
    given = {"kind": "exited", "ended_us": 1, "unsaved": "no space", "unsaved_parts": parts}
    read = wire.Result.model_validate(given)
    assert (read.unsaved, read.unsaved_parts) == ("no space", [])


def test_what_no_database_holds_is_refused_or_read_as_something_that_it_does() -> None:
    with pytest.raises(ValidationError):
        wire.Result.model_validate({"kind": "exited", "ended_us": 2**63})
    sample = wire.Sample.model_validate({"time_us": 1, "attempt": "\ud800", "values": {}})
    assert sample.attempt == "?"
    for mode in (-1, 2**63):
        assert not wire.FileRef(path="a", size=1, sha256="", mode=mode).is_link
