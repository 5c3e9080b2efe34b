import pytest

from service.errors import ProblemError
from service.identity.callers import expand, hash_secret, new_secret
from service.identity.sessions import CODE_S, MAX_CODES, Codes


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_code_counts_once() -> None:
    codes = Codes(Clock())
    code = codes.make("tok-1")
    assert codes.take(code) == "tok-1"
    assert codes.take(code) is None
    assert codes.take("other") is None


def test_a_code_counts_for_five_minutes() -> None:
    clock = Clock()
    codes = Codes(clock)
    early, late = codes.make("tok-1"), codes.make("tok-1")
    clock.now = CODE_S - 1
    assert codes.take(early) == "tok-1"
    clock.now = CODE_S + 1
    assert codes.take(late) is None


def test_codes_that_nobody_takes_are_bounded() -> None:
    clock = Clock()
    codes = Codes(clock)
    for _ in range(MAX_CODES):
        codes.make("tok-1")
    with pytest.raises(ProblemError):
        codes.make("tok-1")
    clock.now = CODE_S + 1
    assert codes.make("tok-1")


def test_scopes_imply_lesser_ones_and_nodes_none() -> None:
    assert expand(["admin"]) == {"admin", "submit", "read"}
    assert expand(["submit"]) == {"submit", "read"}
    assert expand(["node"]) == {"node"}
    assert expand(["unknown"]) == set()


def test_secrets_are_long_and_never_the_same() -> None:
    first, second = new_secret(), new_secret()
    assert first != second
    assert first.startswith("ty_")
    assert len(first) >= 43
    assert len(hash_secret(first)) == 64
