"""A job's page changes what the service takes of a job that waits or runs."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.dashboard.test_accessibility import faults
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import Agent

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in")]
Submit = Callable[..., dict[str, Any]]


def _opened(page: Page, job: dict[str, Any]) -> Locator:
    visit(page, f"/jobs/{job['number']}")
    page.get_by_role("button", name="Edit", exact=True).click()
    return page.get_by_role("dialog", name=f"Edit job {job['number']}")


def test_a_waiting_job_is_edited_and_complaints_stand_at_their_fields(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    submit(name="holder", resources={"gpus": 4})
    node.start()
    job = submit(name="resnet", tags=["a"], time_limit="4h")
    dialog = _opened(page, job)
    limit, name = dialog.get_by_label("Time limit"), dialog.get_by_label("Name")
    expect(limit).to_have_value("4h")
    limit.fill("4 fortnights")
    name.fill("res net")
    dialog.get_by_role("button", name="Save").click()
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(dialog.get_by_role("alert").first).to_contain_text('"res net" is not a name')
    name.fill("vit")
    dialog.get_by_role("button", name="Save").click()
    expect(limit).to_have_accessible_description(re.compile("write seconds, or 90s"))
    expect(name).to_have_attribute("aria-invalid", "false")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert faults(page) == []
    limit.fill("90m")
    dialog.get_by_label("Priority").select_option("high")
    dialog.get_by_label("Tags").fill("b, long run")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("heading", name="vit")).to_be_visible()
    shown = live_service.client.get(f"/api/v1/jobs/{job['id']}").raise_for_status().json()
    assert (shown["name"], shown["priority"], shown["tags"]) == ("vit", "high", ["b", "long run"])
    assert shown["spec"]["time_limit"] == 90 * 60


def test_a_running_job_keeps_its_time_limit(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="resnet", time_limit="4h")
    node.start()
    dialog = _opened(page, job)
    expect(dialog.get_by_label("Time limit")).to_be_disabled()
    dialog.get_by_label("Priority").select_option("low")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".facts")).to_contain_text("low")


def test_what_others_change_meanwhile_is_told_and_stays(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    submit(name="holder", resources={"gpus": 4})
    node.start()
    job = submit(name="resnet")
    dialog = _opened(page, job)
    dialog.get_by_label("Name").fill("vit")
    path = f"/api/v1/jobs/{job['id']}"
    seen = {"If-Match": live_service.client.get(path).headers["ETag"]}
    live_service.client.patch(path, json={"priority": "high"}, headers=seen).raise_for_status()
    expect(page.locator(".facts")).to_contain_text("high")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator(".notice")).to_contain_text(
        "The job has changed since you opened this: its priority is high now."
    )
    expect(dialog.get_by_label("Priority")).to_have_value("high")
    expect(dialog.get_by_label("Name")).to_have_value("vit")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    shown = live_service.client.get(path).raise_for_status().json()
    assert (shown["name"], shown["priority"]) == ("vit", "high")
