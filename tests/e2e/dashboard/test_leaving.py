"""What one changes on a page stays there: whoever leaves is not taken back, and the next address has nothing of it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import hold
from tests.support.live import Live
from tests.support.scripted import Agent

pytestmark = pytest.mark.browser
NEXT_PAGE = re.compile(r"/assets/BoxPage-[^/]+\.js")
#: Timers that were set before have rung: some changes rest for a quarter of a second before the address has them.
RUNG = "() => new Promise((done) => setTimeout(done, 300))"


def test_what_is_changed_while_another_page_is_loaded_is_not_written_to_its_address(
    page: Page, submit: Callable[..., dict[str, Any]], node: Agent, live_service: Live
) -> None:
    sweep = submit(name="rates", command=["t", "{lr}"], sweep={"parameters": {"lr": [1, 2]}})
    for _ in range(2):
        node.start().report(range(3), loss=1.0)
    one, other = (job["number"] for job in live_service.client.get("/api/v1/jobs").raise_for_status().json()["items"])
    slow = hold(page, NEXT_PAGE)
    search = page.get_by_role("combobox", name="Search")
    logarithmic, high = (page.get_by_role("button", name=name, exact=True) for name in ("Log", "High is good"))
    for path, change in (
        ("/", lambda: search.fill("nothing")),
        (f"/jobs/{one}/charts", logarithmic.click),
        (f"/compare?jobs={one},{other}", logarithmic.click),
        (f"/sweeps/{sweep['number']}", high.click),
    ):
        page.goto(path)
        with page.expect_request(NEXT_PAGE):
            page.get_by_role("link", name="The box").click()
        change()
        page.evaluate(RUNG)
        slow.pop().continue_()
        expect(page.get_by_role("heading", name="The box")).to_be_visible()
        expect(page).to_have_url(re.compile("/box$"))
