"""Answers that tell of a problem (RFC 9457)."""

import httpx

from torchyard import problems


def kind(answer: httpx.Response) -> tuple[int, str]:
    """Status and kind of the problem; fails for an answer of another sort."""
    assert answer.headers["content-type"] == "application/problem+json", (answer.request.url, answer.text)
    name = str(answer.json()["type"]).removeprefix(problems.BASE)
    assert name in problems.KINDS
    assert answer.json()["detail"]
    return answer.status_code, name
