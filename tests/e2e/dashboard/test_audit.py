"""The audit: what was changed and what was refused, filtered, and as a table."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.live import Live

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in")]


@pytest.mark.usefixtures("home")
def test_an_administrator_sees_changes_and_refusals(page: Page, live_service: Live) -> None:
    live_service.client.post("/api/v1/users", json={"name": "ada"})
    live_service.anonymous.post("/api/v1/jobs", json={})
    page.get_by_role("link", name="Audit").click()
    made = page.get_by_role("row").filter(has_text=re.compile(r"user\.create.*ada"))
    expect(made).to_contain_text("127.0.0.1")
    expect(made).to_contain_text("done")
    page.get_by_role("button", name="Refused").click()
    expect(page.get_by_role("row").filter(has_text="job.submit")).to_contain_text("refused (401)")
    expect(made).to_have_count(0)
    page.get_by_label("User").fill("nobody")
    expect(page.get_by_text("Nothing that fits was changed or refused.")).to_be_visible()
    page.get_by_label("User").fill("(unknown)")
    expect(page.get_by_role("row").filter(has_text="job.submit")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert "(unknown),127.0.0.1,job.submit" in download.value.path().read_text()


def test_others_are_not_led_there(stranger: Page, live_service: Live) -> None:
    live_service.client.post("/api/v1/users", json={"name": "vera", "role": "viewer"})
    made = live_service.client.post("/api/v1/tokens", json={"name": "t", "scopes": ["read"], "user": "vera"}).json()
    with live_service.as_token(made["secret"]) as viewer:
        code = viewer.post("/api/v1/session/codes").json()["code"]
    stranger.goto(f"/#login={code}")
    expect(stranger.get_by_role("heading", name="Jobs")).to_be_visible()
    expect(stranger.get_by_role("link", name="Audit")).to_have_count(0)
    stranger.goto("/audit")
    expect(stranger.get_by_text("Administrators see here")).to_be_visible()
