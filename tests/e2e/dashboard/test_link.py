"""A public link: made on the job's page, opened by somebody who is not signed in, and revoked."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.dashboard.test_accessibility import faults
from tests.support.live import Live
from tests.support.scripted import Agent

pytestmark = pytest.mark.browser


def test_a_link_is_made_opened_elsewhere_and_revoked(
    page: Page, browser: Browser, submit: Callable[..., dict[str, Any]], node: Agent, live_service: Live
) -> None:
    job = submit(name="resnet", command=["hush.py"])
    attempt = node.start()
    attempt.report(range(50), total_steps=100, train__loss=lambda step: 1 / (1 + step), val__accuracy=0.91)
    page.goto(f"/jobs/{job['number']}")
    expect(page.get_by_role("button", name="Edit", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Share a link…")).to_have_count(0)
    live_service.context.settings.shared_links = True
    page.reload()
    page.get_by_role("button", name="Share a link…").click()
    dialog = page.get_by_role("dialog", name=f"Share job {job['number']}")
    dialog.get_by_label("It counts for").select_option("30 days")
    dialog.get_by_role("button", name="Make a link").click()
    url = dialog.locator("code").inner_text()
    expect(dialog).to_contain_text("There are links to this job, the last until")
    assert faults(page) == []

    context = browser.new_context(base_url=live_service.url, viewport={"width": 390, "height": 844})
    guest = context.new_page()
    asked: list[str] = []
    guest.on("request", lambda request: asked.append(request.url))
    guest.goto(url)
    expect(guest.get_by_role("heading", name="resnet")).to_be_visible()
    expect(guest.get_by_role("group", name="Chart of train/loss")).to_be_visible()
    expect(guest.locator(".highlights")).to_contain_text("highest 0.91")
    expect(guest.get_by_role("link")).to_have_count(0)
    assert "hush" not in guest.content()
    for theme in ("light", "dark"):
        guest.emulate_media(color_scheme=theme)
        assert faults(guest) == []
        assert guest.evaluate("document.documentElement.scrollWidth") <= 390
    assert [each for each in asked if "/api/" in each and "/api/v1/shared/" not in each] == []

    dialog.get_by_role("button", name="Revoke all").click()
    expect(dialog.get_by_role("status")).to_have_text("No link to this job counts any more.")
    guest.reload()
    expect(guest.get_by_role("heading", name="This link shows nothing (any more)")).to_be_visible()
    assert faults(guest) == []
    context.close()
