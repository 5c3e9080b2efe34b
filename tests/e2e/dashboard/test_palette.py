"""Everything by keyboard: the command palette, the help, and the keys that lead to pages."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.dashboard.test_accessibility import faults
from tests.support.scripted import Agent

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in", "home")]
Submit = Callable[..., dict[str, Any]]


def test_jobs_pages_and_actions_are_found_by_name(page: Page, submit: Submit, node: Agent) -> None:
    submit(name="holder", resources={"gpus": 4})
    node.start()
    job = submit(name="digits-ddp")
    submit(name="other")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    expect(palette.get_by_role("combobox")).to_be_focused()
    assert faults(page) == []
    page.keyboard.type("digits")
    expect(palette.get_by_role("option", name="digits-ddp", selected=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/jobs/{job['number']}$"))
    expect(palette).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(palette.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("hold this")
    expect(palette.get_by_role("option", name="Hold this job", selected=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Release")).to_be_visible()
    expect(palette).to_have_count(0)
    page.keyboard.press("Control+k")
    expect(palette.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("cancel")
    palette.get_by_role("option", name="Cancel this job").click()
    palette.get_by_role("option", name=f"Cancel job {job['number']} for good").click()
    expect(page.get_by_role("button", name="Rerun")).to_be_visible()
    expect(page.get_by_text("cancelled").first).to_be_visible()


def test_enter_counts_while_jobs_are_looked_up(page: Page, submit: Submit) -> None:
    job = submit(name="vit-small")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    page.keyboard.type("vit")
    found = palette.get_by_role("option", name="vit-small", selected=True)
    expect(found).to_be_visible()
    page.route("**/api/v1/jobs?q=*", lambda _: None)  # unanswered
    with page.expect_request("**/api/v1/jobs?q=vit-s*"):
        page.keyboard.type("-s")
    expect(found).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/jobs/{job['number']}$"))
    expect(palette).to_have_count(0)
    page.unroute("**/api/v1/jobs?q=*")
    page.goto("/")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("small")
    page.keyboard.press("Enter")  # before it has been asked for
    expect(palette).to_have_count(0)
    expect(page.get_by_role("heading", name="vit-small")).to_be_visible()


def test_a_search_that_fails_does_not_look_like_one_that_finds_nothing(page: Page) -> None:
    refusal = {"title": "Invalid request", "status": 422, "detail": "q: too long"}
    page.route("**/api/v1/jobs?q=*", lambda route: route.fulfill(status=422, json=refusal))
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    palette.get_by_role("combobox").fill("qqqq")
    expect(palette.get_by_role("alert")).to_have_text("q: too long")
    page.unroute("**/api/v1/jobs?q=*")
    palette.get_by_role("combobox").fill("qqqqq")
    expect(palette.get_by_text("Nothing has this name.")).to_be_visible()
    expect(palette.get_by_role("alert")).to_have_count(0)
    box = palette.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(5, 5)
    page.mouse.up()
    expect(palette.get_by_role("combobox")).to_have_value("qqqqq")
    page.mouse.click(5, 5)
    expect(palette).to_have_count(0)


def test_keys_lead_to_pages_and_are_told(page: Page) -> None:
    page.keyboard.press("g")
    page.keyboard.press("b")
    expect(page).to_have_url(re.compile("/box$"))
    page.keyboard.press("g")
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile("/submit$"))
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Open the command palette")
    assert faults(page) == []
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    page.get_by_role("button", name="Search jobs, pages and actions").click()
    expect(page.get_by_role("dialog", name="Commands").get_by_role("combobox")).to_be_focused()
    page.keyboard.type("shar")
    expect(page.get_by_role("option", name="Sharing", selected=True)).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/sharing$"))
