import base64
import json

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from service.identity.link_tokens import Link, LinkTokens
from torchyard.ids import JobId

TOKENS = LinkTokens("the installation's secret")
LINK = Link(JobId("job-1"), 3)


def encoded(claims: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def test_a_link_is_read_as_it_was_signed_until_it_expires() -> None:
    for link in (LINK, Link(JobId("job-2"), 0, "user-1")):
        token = TOKENS.sign(link, 1000)
        assert TOKENS.read(token, 999) == link
        assert TOKENS.read(token, 1001) is None


def test_a_link_of_before_names_nobody() -> None:
    claims = {"sub": "job-1", "serial": 3, "exp": 1000}
    assert TOKENS.read(jwt.encode({"alg": "HS256"}, claims, TOKENS._key()), 1) == LINK


def test_another_installation_reads_nothing() -> None:
    assert LinkTokens("another secret").read(TOKENS.sign(LINK, 1000), 1) is None


@pytest.mark.parametrize("part", [0, 1, 2])
def test_no_part_can_be_changed(part: int) -> None:
    parts = TOKENS.sign(LINK, 1000).split(".")
    for place in range(len(parts[part]) - 1):  # of the last character some bits mean nothing
        changed = "A" if parts[part][place] != "A" else "B"
        tampered = parts[part][:place] + changed + parts[part][place + 1 :]
        assert TOKENS.read(".".join([*parts[:part], tampered, *parts[part + 1 :]]), 1) is None, place


def test_what_says_more_than_was_signed_is_refused() -> None:
    _, _, signature = TOKENS.sign(LINK, 1000).split(".")
    claims = {"sub": "job-2", "serial": 3, "exp": 2000}
    secret = OctKey.import_key("the installation's secret".ljust(32))
    forged = [
        f"{encoded({'alg': 'none'})}.{encoded(claims)}.",
        f"{encoded({'alg': 'none'})}.{encoded(claims)}.{signature}",
        f"{encoded({'alg': 'HS256'})}.{encoded(claims)}.{signature}",
        jwt.encode({"alg": "HS512"}, claims, secret, algorithms=["HS512"]),
        *("", ".", "..", "a.b.c", "%00", "ü.ü.ü", "x" * 100_000),
    ]
    assert [token for token in forged if TOKENS.read(token, 1) is not None] == []


def test_a_token_that_lacks_a_claim_counts_for_nothing() -> None:
    key = TOKENS._key()
    for claims in ({"sub": "job-1", "serial": 3}, {"sub": "job-1", "serial": 3, "exp": "x"}, {"exp": 1000}):
        assert TOKENS.read(jwt.encode({"alg": "HS256"}, claims, key), 1) is None
