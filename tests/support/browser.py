"""A real Chromium: the one on PATH, else Playwright's own."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from tests.support import processes

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Nothing that reaches out, and nothing that needs a desktop.
ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # A window's own panels, which take as long to load as a page does; and what else would reach out or change pages,
    # since these words replace those of Playwright's own.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,HttpsUpgrades,LensOverlay,"
    "MediaRouter,OptimizationHints,PaintHolding,DestroyProfileOnBrowserClose,AvoidUnnecessaryBeforeUnloadCheckSync",
)
#: Addresses are watched by the dashboard, whoever changes them.
_GO = "path => history.pushState({}, '', path)"
DASHBOARD = Path(__file__).parents[2] / "service" / "dashboard" / "dist" / "index.html"


def executable() -> str | None:
    """Path of an installed Chromium; None leaves the choice to Playwright."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A running browser. Close it before anything else of this thread needs an event loop."""
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()
    with processes.unmarked(), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=[*ARGUMENTS, *sandbox])
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a folder."""
    assert DASHBOARD.is_file(), "the dashboard is not built: run `make dashboard`"
    with chromium() as running:
        yield running


def visit(page: Page, path: str) -> None:
    """Go to another page of the dashboard as a link leads there: a tenth of what it costs to load all anew.

    The way goes through an address that has no page, so that nothing of the last one is taken for the next.
    """
    lost = page.get_by_role("heading", name="No such page")
    page.evaluate(_GO, "/nowhere")
    expect(lost).to_be_visible()
    if path != "/nowhere":
        page.evaluate(_GO, path)
        expect(lost).to_be_hidden()


def hold(page: Page, *patterns: str | re.Pattern[str], times: int | None = None) -> list[Route]:
    """Hold requests back, the first few of each pattern or all; return those that are held, to which more come."""
    held: list[Route] = []

    def keep(route: Route) -> None:  # `held.append` tells Playwright no parameters
        held.append(route)

    for pattern in patterns:
        page.route(pattern, keep, times=times)
    return held
