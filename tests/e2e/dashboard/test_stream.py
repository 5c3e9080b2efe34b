"""One stream for all tabs of a browser: it tells them what changes, and hardly anything is asked for."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.dashboard.test_trust import signed_in
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import Agent
from tests.support.wait import until

pytestmark = pytest.mark.browser
Submit = Callable[..., dict[str, Any]]
#: More than the connections that a browser opens to a service.
TABS = 7
HIDDEN = """Object.defineProperty(document, "hidden", { get: () => true });
Object.defineProperty(document, "visibilityState", { get: () => "hidden" });"""


def _streams(live: Live) -> list[Any]:
    return list(live.app.state.publisher._subscribers.values())


def _topics(live: Live) -> set[str]:
    return {topic for stream in _streams(live) for topic in stream.topics}


def _counted(page: Page) -> list[str]:
    """The requests to the API from now on, once there has been none for a while."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    before = -1
    while before != len(asked):
        before = len(asked)
        page.wait_for_timeout(1_500)
    asked.clear()
    return asked


def _most(seconds: float) -> float:
    """Requests that a page may send in a time: 30 a minute."""
    return 2 + seconds / 2


def test_seven_tabs_share_one_stream_and_hidden_ones_keep_their_titles(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    job = submit(name="digits")
    attempt = node.start()
    attempt.report(range(10), loss=2.0)
    context: BrowserContext = page.context
    page.goto(f"/jobs/{job['number']}/charts")
    tabs = [context.new_page() for _ in range(TABS - 1)]
    for tab in tabs:
        tab.add_init_script(HIDDEN)
        tab.goto(f"/jobs/{job['number']}/charts")
    for tab in [page, *tabs]:
        expect(tab).to_have_title(f"\N{BLACK RIGHT-POINTING TRIANGLE} {job['number']} digits · TorchYard")
        expect(tab.locator("figure.chart").first).to_contain_text("loss 2")
    until(lambda: any(topic.startswith("metrics:") for topic in _topics(live_service)))
    assert len(_streams(live_service)) == 1
    assert len([topic for topic in _topics(live_service) if topic.startswith("metrics:")]) == 1, "only one is looked at"
    attempt.report(range(10, 20), loss=1.0)
    expect(page.locator("figure.chart").first).to_contain_text("loss 1")
    attempt.end(exit_code=1)
    for tab in [page, *tabs]:
        expect(tab).to_have_title(f"\N{BALLOT X} {job['number']} digits · TorchYard")
    for tab in [page, *tabs]:
        tab.close()
    until(lambda: not _streams(live_service))


@pytest.mark.usefixtures("lived_in")
def test_a_running_job_is_followed_with_hardly_a_request(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    job = submit(name="digits")
    attempt = node.start()
    attempt.report([0], total_steps=1000, loss=0.0)
    attempt.write("begins\n")
    visit(page, f"/jobs/{job['number']}/charts")
    figure = page.locator("figure.chart").first
    expect(figure).to_contain_text("loss")
    until(lambda: {topic.partition(":")[0] for topic in _topics(live_service)} >= {"job", "metrics"})
    asked = _counted(page)
    began = time.monotonic()
    for step in range(1, 61):
        attempt.report([step], total_steps=1000, loss=lambda step: step / 10)
        attempt.write(f"step {step}\n")
        page.wait_for_timeout(50)
    expect(figure).to_contain_text("loss 6")
    expect(page.locator(".track-words").first).to_contain_text("6 %")
    assert len(asked) <= _most(time.monotonic() - began), asked


@pytest.mark.usefixtures("lived_in")
def test_idle_pages_ask_for_hardly_anything(page: Page, submit: Submit, node: Agent, live_service: Live) -> None:
    submit(name="done")
    node.start().end()
    for address, topic in (("/box", "nodes"), ("/", "jobs")):
        visit(page, address)
        until(lambda topic=topic: topic in _topics(live_service))  # type: ignore[misc]
        asked = _counted(page)
        began = time.monotonic()
        for _ in range(30):
            node.sample({"cpu.percent": 5.0})
            page.wait_for_timeout(200)
        assert len(asked) <= _most(time.monotonic() - began), asked


def test_a_revoked_token_ends_the_stream_and_the_session(browser: Browser, live_service: Live, submit: Submit) -> None:
    job = submit(name="resnet")
    live_service.client.post("/api/v1/users", json={"name": "ben"}).raise_for_status()
    live_service.client.put(f"/api/v1/projects/{job['project']}/members/ben").raise_for_status()
    asked = {"name": "laptop", "user": "ben", "scopes": ["read"]}
    token = live_service.client.post("/api/v1/tokens", json=asked).raise_for_status().json()
    with signed_in(browser, live_service.url, token["secret"], f"/jobs/{job['number']}") as page:
        until(lambda: f"job:{job['id']}" in _topics(live_service))
        live_service.client.delete(f"/api/v1/tokens/{token['id']}").raise_for_status()
        until(lambda: not _streams(live_service))
        expect(page.get_by_label("Token")).to_be_visible()
