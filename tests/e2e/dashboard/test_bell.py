"""The bell tells what has become of one's jobs, and once a browser, if one wants, by its own notifications."""

import re
from collections.abc import Callable
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.dashboard.test_accessibility import faults, with_theme
from tests.e2e.dashboard.test_stream import HIDDEN
from tests.support.scripted import Agent

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("home")]
Submit = Callable[..., dict[str, Any]]
#: Keeps the titles of the notifications that a tab shows.
KEEP = """globalThis.notified = [];
globalThis.Notification = class extends Notification {
    constructor(title, options) { super(title, options); notified.push(title); }
};"""
WANTED = "Notify me through the browser"


def test_the_bell_counts_and_lists_what_has_become_of_jobs_and_of_a_run_that_hangs(
    page: Page, submit: Submit, node: Agent
) -> None:
    bell = page.get_by_role("button", name="Notifications")
    bell.click()
    panel = page.get_by_role("dialog", name="Notifications")
    expect(panel).to_contain_text("Nothing yet.")
    page.keyboard.press("Escape")
    broken = submit(name="broken", max_retries=0)
    attempt = node.start()
    expect(bell).to_have_accessible_name("Notifications, 1 unread")
    traceback = "Traceback (most recent call last):\n  File \"train.py\", line 3\nKeyError: 'labels'"
    attempt.end(exit_code=1, failed_rank=0, traceback=traceback)
    submit(name="good")
    node.start().end()
    submit(name="long")
    node.start()
    expect(bell).to_have_accessible_name("Notifications, 3 unread")
    for name, state in (("broken", "failed"), ("good", "succeeded")):  # the ends may be told after the last start
        expect(page.get_by_role("row").filter(has_text=name)).to_contain_text(state)
    bell.click()
    items = panel.get_by_role("listitem")
    expect(items).to_have_text(
        [re.compile("Your turn.*3 long"), re.compile("Done.*2 good"), re.compile("Failed.*broken")]
    )
    expect(items.last).to_contain_text("KeyError: 'labels'")
    expect(bell).to_have_accessible_name("Notifications")
    sizes: dict[Literal["light", "dark"], tuple[int, int]] = {"light": (1440, 900), "dark": (390, 844)}
    for theme, size in sizes.items():
        with_theme(page, theme)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        expect(panel).to_be_in_viewport(ratio=1)
        assert faults(page) == []
    panel.get_by_role("link", name="broken").click()
    expect(page).to_have_url(re.compile(f"/jobs/{broken['number']}$"))
    expect(panel).to_be_hidden()
    page.reload()
    expect(bell).to_have_accessible_name("Notifications")
    bell.click()
    expect(items).to_have_count(3)
    expect(panel.get_by_text("unread")).to_have_count(0)
    submit(name="stuck", hang={"after": "1s", "action": "show"})
    node.start().report(range(3), loss=1.0)
    expect(items.first).to_contain_text("Hangs")
    expect(items.first).to_contain_text("stuck")
    # What comes while the list is open is marked as new in it, and is read with it.
    expect(items.first).to_contain_text("unread")
    expect(bell).to_have_accessible_name("Notifications")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(bell).to_have_accessible_name("Notifications")


def test_a_browser_out_of_sight_notifies_once_and_only_if_it_is_wanted(page: Page, submit: Submit, node: Agent) -> None:
    page.context.grant_permissions(["notifications"])
    hidden = [page.context.new_page() for _ in range(2)]
    for tab in hidden:
        tab.add_init_script(KEEP)
        tab.add_init_script(HIDDEN)
        tab.goto("/box")
        expect(tab.get_by_role("button", name="Notifications")).to_be_visible()

    def finish(name: str, *tabs: Page) -> list[str]:
        submit(name=name)
        attempt = node.start()
        for tab in tabs:
            expect(tab.get_by_role("button", name="Notifications, 1 unread")).to_be_visible()
        attempt.end(exit_code=1)
        for tab in tabs:
            tab.get_by_role("button", name="Notifications").click()
            expect(tab.get_by_role("dialog", name="Notifications").get_by_role("listitem").first).to_contain_text(
                "Failed"
            )
            tab.keyboard.press("Escape")
        for tab in tabs:  # what came while a list was open has been seen there
            expect(tab.get_by_role("button", name="Notifications", exact=True)).to_be_visible()
        return [title for tab in hidden for title in tab.evaluate("notified")]

    assert finish("unwanted", *hidden) == []
    page.get_by_role("button", name="Notifications").click()
    expect(page.get_by_label(WANTED)).not_to_be_checked()
    page.get_by_label(WANTED).click()
    for tab in (page, *hidden):
        if tab is not page:
            tab.get_by_role("button", name="Notifications").click()
        expect(tab.get_by_label(WANTED)).to_be_checked()
        tab.keyboard.press("Escape")
    assert finish("in-sight", *hidden) == [], "the first tab is in sight"
    page.close()
    assert finish("wanted", *hidden) == ["3 wanted has started", "3 wanted failed"]
