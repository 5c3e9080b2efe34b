"""The page of a refused sign-in: for browsers alone, with nothing of theirs taken as markup."""

import pytest
from fastapi import Request

from service.api import sign_in_page
from service.errors import ProblemError


def request(accept: str) -> Request:
    return Request({"type": "http", "headers": [(b"accept", accept.encode())]})


def test_a_program_gets_the_problem_and_a_browser_a_page() -> None:
    refusal = ProblemError("forbidden", "ask for `yard users add <ada>`")
    with pytest.raises(ProblemError):
        sign_in_page.refuse(request("*/*"), refusal, ["ada"], None)
    page = sign_in_page.refuse(request("text/html,*/*"), refusal, ["<i>ada</i>"], None)
    text = bytes(page.body).decode()
    assert page.status_code == 403
    assert "<dd>&lt;i&gt;ada&lt;/i&gt;</dd>" in text
    assert "<code>yard users add &lt;ada&gt;</code>" in text
    assert "an administrator of this box" in text
