"""The dashboard as a person sees it: a real browser, the real service, and a node that does what the test says."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.dashboard.lived_in import LivedIn, begin_session
from tests.e2e.dashboard.windows import Windows
from tests.support import live, memory, scripted
from tests.support.browser import browser, visit  # noqa: F401  fixture
from tests.support.live import Live, serve, yard_home  # noqa: F401  fixtures

expect.set_options(timeout=60_000)


@pytest.fixture
def database_url(database_folder: Path, migrated_file: Path) -> str:
    """One kind of database is enough here: the API is tested on both."""
    return f"sqlite:///{shutil.copy(migrated_file, database_folder / 'test.db')}"


@pytest.fixture(scope="package")
def windows(browser: Browser) -> Iterator[Windows]:  # noqa: F811
    """What the browser keeps from one test to the next."""
    made = Windows(browser)
    yield made
    made.close()


@pytest.fixture(scope="module")
def lived_in(windows: Windows, migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivedIn]:
    """What the tests of a module share that ask for it; they get it by the names of the fixtures below."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir=memory.place()) as folder:
        patch.setenv("TORCHYARD_HOME", str(home))
        url = f"sqlite:///{shutil.copy(migrated_file, folder)}"

        def serve(**changes: Any) -> AbstractContextManager[Live]:
            return live.running(live.settings_for(url, home, **changes))

        with (
            windows.served("lived in", serve) as service,
            scripted.agent(service) as agent,
            windows.window("lived in", service.url) as window,
        ):
            begin_session(window.page, service)
            window.page.goto("/nowhere")
            yield LivedIn(service, agent, window.page, window.errors)


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> Iterator[LivedIn | None]:
    """What the test shares with others, if it does."""
    found: LivedIn | None = request.getfixturevalue("lived_in") if "lived_in" in request.fixturenames else None
    yield found
    if found is not None:
        found.tidy()


@pytest.fixture
def live_service(request: pytest.FixtureRequest, shared: LivedIn | None) -> Iterator[Live]:
    """The service of the module's tests, or a new one."""
    if shared is not None:
        yield shared.service
        return
    windows: Windows = request.getfixturevalue("windows")
    with windows.served("of a test", request.getfixturevalue("serve")) as service:
        yield service


@pytest.fixture
def node(live_service: Live, shared: LivedIn | None) -> Iterator[scripted.Agent]:
    """A node with four GPUs."""
    if shared is not None:
        yield shared.node
        return
    with scripted.agent(live_service) as agent:
        yield agent


@pytest.fixture
def stranger(windows: Windows, live_service: Live) -> Iterator[Page]:
    """A page of somebody who is not signed in; an error in its scripts fails the test."""
    with windows.window("stranger", live_service.url) as window:
        yield window.page
        said = [*window.errors.said]
    assert said == []


@pytest.fixture
def page(request: pytest.FixtureRequest, live_service: Live, shared: LivedIn | None) -> Page:
    """The page of an administrator who is signed in; a new one has opened nothing yet."""
    if shared is not None:
        return shared.page
    stranger: Page = request.getfixturevalue("stranger")
    begin_session(stranger, live_service)
    return stranger


@pytest.fixture
def home(page: Page, shared: LivedIn | None) -> Page:
    """The same page, at home; a test that begins there uses it."""
    if shared is None:
        page.goto("/")
    else:
        visit(page, "/")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    return page


@pytest.fixture
def submit(live_service: Live) -> Callable[..., dict[str, Any]]:
    """Submits a job over REST."""

    def post(**spec: Any) -> dict[str, Any]:
        whole = {"command": ["train.py"], "resources": {"gpus": 1}, **spec}
        return dict(live_service.client.post("/api/v1/jobs", json=whole).raise_for_status().json())

    return post
