"""The dashboard as a person sees it: a real browser, the real service, and a node that does what the test says."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.support import scripted
from tests.support.browser import browser  # noqa: F401  fixture
from tests.support.live import Live, live_service, serve, yard_home  # noqa: F401  fixtures

#: What a browser says of a refusal that the dashboard handles.
EXPECTED = "the server responded with a status of"
#: What a page is shown at unless a test says otherwise.
DESKTOP = ViewportSize(width=1440, height=900)
expect.set_options(timeout=60_000)


@pytest.fixture
def database_url(database_folder: Path, migrated_file: Path) -> str:
    """One kind of database is enough here: the API is tested on both."""
    return f"sqlite:///{shutil.copy(migrated_file, database_folder / 'test.db')}"


@pytest.fixture
def node(live_service: Live) -> Iterator[scripted.Agent]:  # noqa: F811
    """A node with four GPUs."""
    with scripted.agent(live_service) as agent:
        yield agent


@pytest.fixture
def stranger(browser: Browser, live_service: Live) -> Iterator[Page]:  # noqa: F811
    """A page of somebody who is not signed in; an error in its scripts fails the test."""
    context = browser.new_context(base_url=live_service.url, accept_downloads=True, viewport=DESKTOP)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    yield page
    context.close()
    assert [error for error in errors if EXPECTED not in error] == []


@pytest.fixture
def page(stranger: Page, live_service: Live) -> Page:  # noqa: F811
    """The page of an administrator who is signed in and has opened nothing yet."""
    answer = stranger.request.post("/api/v1/session", data={"token": live_service.admin_token})
    assert answer.ok, answer.text()
    return stranger


@pytest.fixture
def home(page: Page) -> Page:
    """The same page, at home; a test that begins there uses it."""
    page.goto("/")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    return page


@pytest.fixture
def submit(live_service: Live) -> Callable[..., dict[str, Any]]:  # noqa: F811
    """Submits a job over REST."""

    def post(**spec: Any) -> dict[str, Any]:
        whole = {"command": ["train.py"], "resources": {"gpus": 1}, **spec}
        return dict(live_service.client.post("/api/v1/jobs", json=whole).raise_for_status().json())

    return post
