"""Commands that the kernel would start no program with are refused before anything waits for a GPU."""

import subprocess

import pytest
from pydantic import ValidationError

from torchyard.spec import JobSpec
from torchyard.spec.command import MAX_WORD, MAX_WORDS


def errors(*command: str) -> list[tuple[str, str]]:
    try:
        JobSpec(command=command)
    except ValidationError as error:
        return [(".".join(map(str, each["loc"])), each["msg"]) for each in error.errors()]
    return []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["a"] * 200_000, "200000 words are more than"),
        (["a", "b" * (MAX_WORD + 1)], "a word is longer than"),
        (["a", "\u00fc" * (MAX_WORD // 2 + 1)], "a word is longer than"),
        (["a" * 100_000] * 11, "the words need"),
    ],
)
def test_what_cannot_be_started_is_refused_with_the_field_and_the_mend(command: list[str], words: str) -> None:
    ((field, message),) = errors(*command)
    assert field == "command"
    assert words in message
    assert "write them to a file" in message


@pytest.mark.parametrize("rest", [["x"] * (MAX_WORDS - 1), ["y" * MAX_WORD] * 7])
def test_what_is_taken_the_kernel_starts(rest: list[str]) -> None:
    command = ["true", *rest]
    assert errors(*command) == []
    assert subprocess.run(command, check=False).returncode == 0
