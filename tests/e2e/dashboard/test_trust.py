"""What a page must not do: show old data as new, take unknown for zero, or offer what will be refused."""

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support import live, scripted
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import Agent

pytestmark = pytest.mark.browser
OUTAGE = "The service does not answer: reconnecting"


@contextmanager
def signed_in(browser: Browser, url: str, token: str, path: str = "/") -> Iterator[Page]:
    """A page of the dashboard, seen by whose token it is."""
    context = browser.new_context(base_url=url)
    page = context.new_page()
    answer = page.request.post("/api/v1/session", data={"token": token})
    assert answer.ok, answer.text()
    page.goto(path)
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    yield page
    context.close()


def test_a_stopped_service_is_told_and_what_it_said_is_greyed(
    browser: Browser, database_url: str, yard_home: Path
) -> None:
    with live.process(database_url, yard_home) as (service, url):
        token = (yard_home / "admin.token").read_text().strip()
        node_token = (yard_home / "node.token").read_text().strip()
        with live.connect(url, token) as client, scripted.connected(url, node_token) as node:
            for name in ("digits", "resnet"):
                spec = {"name": name, "command": ["train.py"], "resources": {"gpus": 4}}
                client.post("/api/v1/jobs", json=spec).raise_for_status()
            node.start()
        with signed_in(browser, url, token) as page:
            expect(page.get_by_role("button", name="Waiting 1", exact=True)).to_be_visible()
            job = page.context.new_page()
            job.goto("/jobs/1")
            state = job.locator("main .chip").first
            expect(state).to_have_text("running")
            pages = (page, job)
            service.send_signal(signal.SIGSTOP)
            try:
                for each in pages:
                    expect(told(each)).to_contain_text("What is shown is from")
                    expect(each.locator("main")).to_have_attribute("data-stale", "true")
                    expect(each.locator("main")).to_have_css("opacity", "0.6")
                    expect(each.locator("main")).to_have_css("filter", "grayscale(1)")  # no green
                expect(state.locator("i")).to_have_css("animation-name", "none")
            finally:
                service.send_signal(signal.SIGCONT)
            for each in pages:
                expect(told(each)).to_be_hidden()
                expect(each.locator("main")).not_to_have_attribute("data-stale", "true")
                expect(each.locator("main")).to_have_css("filter", "none")


def told(page: Page) -> Locator:
    return page.get_by_role("status").filter(has_text=OUTAGE)


def test_what_was_never_answered_is_unknown_and_not_zero(page: Page, submit: Callable[..., dict[str, Any]]) -> None:
    submit(name="resnet")
    for unanswered in ("jobs/counts", "queue"):
        page.route(f"**/api/v1/{unanswered}*", lambda route: None)
    page.goto("/")
    expect(page.get_by_role("link", name="1 resnet")).to_be_visible()
    expect(page.get_by_role("group", name="State").get_by_role("button").first).to_have_text("All \N{EN DASH}")
    page.get_by_role("link", name="The box").click()
    expect(page.get_by_role("region", name="Queue")).to_contain_text("\N{EN DASH}")
    expect(page.get_by_text("Nobody waits.")).to_be_hidden()


@pytest.mark.usefixtures("home")
def test_a_job_that_starts_leaves_the_waiting_before_a_list_is_read_again(
    page: Page, submit: Callable[..., dict[str, Any]], node: Agent
) -> None:
    submit(name="first", resources={"gpus": 4})
    first = node.start()
    submit(name="resnet", resources={"gpus": 4})
    submit(name="later", resources={"gpus": 4})
    table, mine = page.get_by_role("table", name="Jobs"), page.get_by_role("region", name="Mine")
    for place in (table, mine):
        for name in ("first", "resnet", "later"):
            expect(place.get_by_role("link", name=name)).to_be_visible()
    unanswered = re.compile(r"/api/v1/jobs(/counts)?\?")
    page.route(unanswered, lambda route: None)
    with page.expect_request(lambda request: "state=running" in request.url):
        first.end()
    for place in (table, mine):
        for name in ("first", "resnet"):
            expect(place.get_by_role("link", name=name)).to_have_count(0)
        expect(place.get_by_role("link", name="later")).to_be_visible()
    page.unroute(unanswered)
    for rows in (table.get_by_role("row"), mine.get_by_role("listitem")):
        expect(rows.filter(has_text="first")).to_contain_text("succeeded")
        expect(rows.filter(has_text="resnet")).to_contain_text("assigned")


def test_who_may_not_change_a_job_is_offered_nothing_that_is_refused(
    browser: Browser, live_service: Live, submit: Callable[..., dict[str, Any]]
) -> None:
    job = submit(name="resnet")
    live_service.client.post("/api/v1/users", json={"name": "ben"}).raise_for_status()
    live_service.client.put("/api/v1/projects/default/members/ben").raise_for_status()
    asked = {"name": "laptop", "user": "ben", "scopes": ["read", "submit"]}
    token = live_service.client.post("/api/v1/tokens", json=asked).raise_for_status().json()["secret"]
    with signed_in(browser, live_service.url, token, f"/jobs/{job['number']}") as page:
        expect(page.get_by_role("button", name="Rerun")).to_be_visible()
        expect(page.get_by_role("button", name="Cancel")).to_be_hidden()
        expect(page.get_by_role("button", name="Edit")).to_be_hidden()
        expect(page.get_by_role("button", name="Hold")).to_be_hidden()


@pytest.mark.usefixtures("lived_in", "home")
def test_a_tab_is_named_after_the_job_and_its_state(page: Page, submit: Callable[..., dict[str, Any]]) -> None:
    job = submit(name="digits-ddp")
    expect(page).to_have_title("Home · TorchYard")
    visit(page, f"/jobs/{job['number']}")
    expect(page).to_have_title(f"… {job['number']} digits-ddp · TorchYard")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the job").click()
    expect(page).to_have_title(f"\N{EN DASH} {job['number']} digits-ddp · TorchYard")
