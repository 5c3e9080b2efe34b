"""Parts that are loaded when they are shown: one that fails is tried again, and missed in so many words."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.e2e.dashboard.test_accessibility import faults
from tests.support.browser import hold
from tests.support.live import Live

pytestmark = pytest.mark.browser
JOBS = re.compile(r"/assets/Jobs-[^/]+\.js")
PALETTE = re.compile(r"/assets/Palette-[^/]+\.js")
HELP = re.compile(r"/assets/Help-[^/]+\.js")
JOB_PAGE = re.compile(r"/assets/JobPage-[^/]+\.(js|css)")
PAGES_STYLES = re.compile(r"/assets/pages-[^/]+\.css")
HOME_PAGE = re.compile(r"/$")


@pytest.fixture
def page(browser: Browser, live_service: Live) -> Iterator[Page]:
    """A signed-in page, whose console may say what could not be loaded."""
    context = browser.new_context(base_url=live_service.url)
    answer = context.request.post("/api/v1/session", data={"token": live_service.admin_token})
    assert answer.ok, answer.text()
    yield context.new_page()
    context.close()


def abort_first(page: Page, pattern: re.Pattern[str]) -> list[str]:
    """Abort the first request for each file; the list is of all that were asked for."""
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if asked.count(route.request.url) > 1:
            route.continue_()
        else:
            route.abort()

    page.route(pattern, answer)
    return asked


def test_part_that_fails_once_is_loaded_again(page: Page, submit: Callable[..., dict[str, Any]]) -> None:
    submit(name="resnet")
    asked = [abort_first(page, JOBS), abort_first(page, JOB_PAGE)]
    page.goto("/")
    page.get_by_role("link", name="1 resnet").click()
    expect(page.get_by_role("heading", name="resnet")).to_be_visible()
    assert all(len(files) > len(set(files)) > 0 for files in asked)
    (styles,) = {file for file in asked[1] if file.endswith(".css")}
    rules = "(href) => Array.from(document.styleSheets).find((sheet) => sheet.href === href)?.cssRules.length"
    assert page.evaluate(rules, styles) > 0  # styles that failed have a sheet too, which is empty


def test_slow_styles_outlast_the_failure_of_another_part(page: Page, submit: Callable[..., dict[str, Any]]) -> None:
    submit(name="resnet")
    asked = abort_first(page, JOB_PAGE)
    slow = hold(page, PAGES_STYLES)
    page.goto("/")
    with page.expect_request(lambda request: request.url.endswith(".css") and request.url in asked, timeout=60_000):
        page.get_by_role("link", name="1 resnet").click()
    expect(page.get_by_role("progressbar", name="Loading")).to_be_visible()
    slow[0].continue_()
    expect(page.get_by_role("heading", name="resnet")).to_be_visible()
    expect(page.get_by_role("progressbar", name="Loading")).to_have_count(0)


def test_what_a_page_waits_for_is_told_in_a_while(page: Page) -> None:
    slow = hold(page, "**/openapi.json")
    with page.expect_request("**/openapi.json"):
        page.goto("/submit")
    expect(page.get_by_role("progressbar", name="Loading")).to_be_visible()
    assert faults(page) == []
    slow[0].continue_()
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    expect(page.get_by_role("progressbar", name="Loading")).to_have_count(0)


def test_part_that_cannot_be_loaded_is_told_with_a_way_to_reload(page: Page) -> None:
    for pattern in (JOBS, PALETTE):
        page.route(pattern, lambda route: route.abort())
    page.goto("/")
    missing = page.get_by_role("main").get_by_role("alert")
    expect(missing).to_have_text("This part of the page could not be loaded.Reload")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    expect(palette.get_by_role("alert")).to_be_in_viewport()
    assert faults(page) == []
    page.keyboard.press("Escape")
    expect(palette).to_have_count(0)
    page.unroute(JOBS)
    missing.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_keys_are_the_palettes_or_the_helps_while_it_is_loaded(
    page: Page, submit: Callable[..., dict[str, Any]]
) -> None:
    submit(name="gb-resnet")
    slow = hold(page, PALETTE, HELP)
    page.goto("/")
    expect(page.get_by_role("link", name="1 gb-resnet")).to_be_visible()
    with page.expect_request(PALETTE):
        page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    # Alone, these keys lead to another page.
    page.keyboard.type("gb")
    expect(palette.get_by_role("textbox")).to_have_value("gb")
    slow.pop().continue_()
    expect(palette.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("-res")
    expect(palette.get_by_role("combobox")).to_have_value("gb-res")
    expect(palette.get_by_role("option", name="gb-resnet", selected=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="gb-resnet")).to_be_visible()
    with page.expect_request(HELP):
        page.keyboard.press("?")
    page.keyboard.type("gb")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys.get_by_role("button", name="Close")).to_be_focused()
    slow.pop().continue_()
    expect(keys).to_contain_text("Open the command palette")
    assert faults(page) == []
    page.keyboard.press("Enter")
    expect(keys).to_have_count(0)
    expect(page.get_by_role("heading", name="gb-resnet")).to_be_visible()


def test_enter_counts_while_the_palette_is_loaded(page: Page, submit: Callable[..., dict[str, Any]]) -> None:
    submit(name="gb-resnet")
    slow = hold(page, PALETTE)
    page.goto("/")
    expect(page.get_by_role("link", name="1 gb-resnet")).to_be_visible()
    with page.expect_request(PALETTE):
        page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    page.keyboard.type("re")
    palette.get_by_role("textbox").dispatch_event("keydown", {"key": "Enter", "isComposing": True})
    page.keyboard.type("sn")
    page.keyboard.press("Enter")
    expect(palette.get_by_role("textbox")).to_have_value("resn")
    slow[0].continue_()
    expect(page.get_by_role("heading", name="gb-resnet")).to_be_visible()
    expect(palette).to_have_count(0)


def test_page_of_a_version_that_is_gone_is_told_so(page: Page, submit: Callable[..., dict[str, Any]]) -> None:
    submit(name="resnet")
    page.goto("/")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    newer = '<script type="module" crossorigin src="/assets/index-newer.js"></script>'
    page.route(HOME_PAGE, lambda route: route.fulfill(content_type="text/html", body=newer))
    page.route(JOB_PAGE, lambda route: route.fulfill(status=404))
    page.get_by_role("link", name="1 resnet").click()
    expect(page.get_by_role("alert")).to_contain_text("TorchYard was updated.")
    page.unroute_all()
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", name="resnet")).to_be_visible()
