"""A service, a node and a page that the tests of a module share.

To start a service and to load a page cost a test a second of CPU, most of what a test costs. A test says by
``usefixtures("lived_in")`` that it minds nothing that others have left: jobs that have ended, users, and numbers that
have been given.
"""

from dataclasses import dataclass

from playwright.sync_api import Page

from tests.e2e.dashboard.windows import DESKTOP, Errors
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import Agent
from tests.support.wait import until
from torchyard.states import JobState

_OPEN = [state for state in JobState if state not in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)]


@dataclass(frozen=True)
class LivedIn:
    """What is shared; `page` is signed in as the administrator and shows nothing between two tests."""

    service: Live
    node: Agent
    page: Page
    errors: Errors

    def tidy(self) -> None:
        """Leave no job open, and the page as it was at first."""
        for tab in self.page.context.pages[1:]:
            tab.close()
        self.page.unroute_all(behavior="ignoreErrors")  # what is still being answered is not for the next test
        self.page.mouse.move(0, 0)
        self.page.keyboard.press("Escape")
        visit(self.page, "/nowhere")
        self.page.set_viewport_size(DESKTOP)
        self.page.emulate_media(color_scheme="light")
        self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        for job in self._open_jobs():
            self.service.client.post(f"/api/v1/jobs/{job}/cancel").raise_for_status()
        for attempt in [*self.node.attempts.values()]:
            attempt.end(exit_code=1)
        until(lambda: not self._open_jobs(), what="an end of all jobs")
        said = [*self.errors.said]
        self.errors.said.clear()
        assert said == []

    def _open_jobs(self) -> list[str]:
        self.node.orders()
        listed = self.service.client.get("/api/v1/jobs", params={"state": _OPEN, "limit": 200}).raise_for_status()
        return [job["id"] for job in listed.json()["items"]]


def begin_session(page: Page, service: Live) -> None:
    """Sign the browser of a page in, which loads nothing."""
    answer = page.request.post("/api/v1/session", data={"token": service.admin_token})
    assert answer.ok, answer.text()
