from base64 import urlsafe_b64decode

from service.identity.callers import expand, hash_secret, new_secret
from service.identity.sessions import CODE_S, LINK_S, MAX_CODES, Codes


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_code_counts_once() -> None:
    codes = Codes(Clock())
    code = codes.make("user-1", "tok-1")
    assert codes.take(code) == "tok-1"
    assert codes.take(code) is None
    assert codes.take("other") is None


def test_codes_cannot_be_guessed() -> None:
    codes = Codes(Clock())
    made = {codes.make("user-1", "tok-1") for _ in range(100)}
    assert len(made) == 100
    assert {len(urlsafe_b64decode(code)) for code in made} == {24}


def test_a_code_counts_for_five_minutes() -> None:
    clock = Clock()
    codes = Codes(clock)
    early, late = codes.make("user-1", "tok-1"), codes.make("user-1", "tok-1")
    clock.now = CODE_S - 1
    assert codes.take(early) == "tok-1"
    clock.now = CODE_S + 1
    assert codes.take(late) is None


def test_a_code_for_somebody_else_counts_longer() -> None:
    clock = Clock()
    codes = Codes(clock)
    code = codes.make("user-1", "tok-1", LINK_S)
    clock.now = LINK_S - 1
    assert codes.take(code) == "tok-1"


def test_a_flood_of_codes_voids_the_flooders_oldest_and_nobody_elses() -> None:
    codes = Codes(Clock())
    others = codes.make("user-ada", "tok-ada")
    flood = [codes.make("user-eve", "tok-eve") for _ in range(1000)]
    assert codes.take(others) == "tok-ada"
    assert codes.take(codes.make("user-bob", "tok-bob")) == "tok-bob"
    assert [codes.take(code) for code in flood[-MAX_CODES - 1 :]] == [None, *["tok-eve"] * MAX_CODES]


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
