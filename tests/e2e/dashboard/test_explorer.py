"""The explorer of the REST API: all operations with their examples, and requests that are sent with one's session."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.dashboard.lived_in import begin_session
from tests.e2e.dashboard.test_accessibility import PHONE, faults
from tests.support.live import Live

pytestmark = pytest.mark.browser
Submit = Callable[..., dict[str, Any]]


def test_every_operation_is_listed_and_a_request_is_sent_with_the_session(
    stranger: Page, live_service: Live, submit: Submit
) -> None:
    paths = live_service.client.get("/openapi.json").raise_for_status().json()["paths"]
    stranger.goto("/docs")
    expect(stranger.locator(".opblock")).to_have_count(sum(map(len, paths.values())))
    stranger.set_viewport_size(PHONE)
    assert stranger.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert faults(stranger) == []
    submission = stranger.locator("#operations-jobs-jobs_submit_job")
    submission.locator(".opblock-summary").click()
    expect(submission.get_by_text("Submit a job, or a sweep of many").first).to_be_visible()
    expect(submission.locator(".opblock-section-request-body").get_by_text("train.py")).to_be_visible()
    submission.locator(".opblock-section-request-body .examples-select-element").select_option("sweep")
    expect(submission.locator(".opblock-section-request-body").get_by_text("rates")).to_be_visible()

    submit(name="tried")
    begin_session(stranger, live_service)
    operation = stranger.locator("#operations-jobs-jobs_list_jobs")
    operation.locator(".opblock-summary").click()
    operation.get_by_role("button", name="Try it out").click()
    operation.get_by_role("button", name="Execute").click()
    answer = operation.locator(".live-responses-table")
    expect(answer.locator(".response-col_status").last).to_contain_text("200")
    expect(answer.get_by_text("tried").first).to_be_visible()
