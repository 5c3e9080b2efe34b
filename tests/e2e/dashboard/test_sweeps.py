"""Sweeps: one row of the list, and a page that compares trials."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import visit
from tests.support.brushes import brush
from tests.support.live import Live
from tests.support.scripted import Agent

pytestmark = pytest.mark.browser
Submit = Callable[..., dict[str, Any]]
COMMAND = ["train.py", "--lr", "{lr}"]
#: Begin to draw along an axis as soon as the address is changed, and note whether that brush ever goes.
DRAW_NEXT = """strip => {
    const replace = history.replaceState;
    strip.point = (type, part) => {
        const { left, top, width, height } = strip.getBoundingClientRect();
        const at = { clientX: left + width / 2, clientY: top + (1 - part) * height };
        strip.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, button: 0, ...at }));
    };
    strip.gone = 0;
    const went = ({ removedNodes }) => [...removedNodes].some(node => node.matches?.(".parallel-brush"));
    new MutationObserver(changes => { strip.gone += changes.filter(went).length; }).observe(strip, { childList: true });
    history.replaceState = function (...change) {
        history.replaceState = replace;
        replace.apply(this, change);
        strip.point("pointerdown", 0.4);
        strip.point("pointermove", 1);
    };
}"""


def test_a_sweep_is_one_row_that_opens_to_its_trials(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    submit(name="alone")
    node.start()
    rates = [0.3, 0.1, 0.2, 0.4]
    sweep = submit(name="rates", command=COMMAND, sweep={"parameters": {"lr": rates}, "running": 1})
    for accuracy in (0.5, 0.9, 0.7):
        attempt = node.start()
        attempt.report([1], val__accuracy=accuracy)
        attempt.end()
    node.start()
    page.goto("/")
    page.get_by_label("Group by").select_option("sweep")
    expect(page.locator(".line-title")).to_have_text([re.compile("rates 4 jobs"), re.compile("No sweep 1 job")])
    page.get_by_role("link", name="Open sweep rates").click()
    page.wait_for_url(f"**/sweeps/{sweep['number']}")
    expect(page.locator(".state-counts").first).to_have_text("3 succeeded1 running")
    page.wait_for_url(f"**/sweeps/{sweep['number']}")
    trials = page.locator("table.trials tbody tr")
    expect(trials).to_have_count(4)
    page.get_by_label("Metric").select_option("val/accuracy")
    page.get_by_role("button", name="High is good").click()
    expect(page.locator(".best-trial")).to_contain_text("val/accuracy 0.9")
    expect(trials.locator(".value")).to_have_text(["0.9000", "0.7000", "0.5000", "\u2013"])
    expect(page.locator(".scatter .dot")).to_have_count(4)
    expect(page.get_by_role("region", name="What matters")).to_contain_text("Not enough trials")
    page.get_by_role("button", name="lr", exact=True).click()
    expect(trials.locator("td:first-child")).to_have_text(["2", "3", "1", "4"])
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel all its jobs").click()
    expect(page.locator(".state-counts")).to_contain_text("1 stopping")
    trials.first.get_by_role("link").click()
    facts = page.locator(".facts")
    expect(facts).to_contain_text("rates")
    expect(facts).to_contain_text("no. 2 of 4")
    expect(facts.locator("div").filter(has_text="lr")).to_contain_text("0.1")
    facts.get_by_role("link", name="rates").click()
    page.wait_for_url(f"**/sweeps/{sweep['number']}")


@pytest.mark.usefixtures("lived_in")
def test_brushes_select_in_every_view_and_stay_in_the_address(page: Page, submit: Submit, node: Agent) -> None:
    rates = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    spread = {"parameters": {"lr": rates}, "running": 1}
    sweep = submit(name="rates", command=COMMAND, sweep=spread)
    for accuracy in (0.5, 0.9, 0.7, 0.6, 0.8):
        attempt = node.start()
        attempt.report([1, 2], val__accuracy=accuracy)
        attempt.end()
    node.start().end(exit_code=1)
    visit(page, f"/sweeps/{sweep['number']}?metric=val/accuracy&mode=max")
    status, trials = page.locator(".selection [role=status]"), page.locator("table.trials tbody tr")
    expect(status).to_have_text("6 trials")
    expect(page.locator(".trial-key")).to_contain_text("1 failed")
    expect(page.locator(".trial-key")).to_contain_text("1 without val/accuracy")
    # A brush that is drawn before the address has the last one stays.
    accuracy_axis = page.locator("[data-axis='metric:val/accuracy']")
    accuracy_axis.evaluate(DRAW_NEXT)
    brush(page, "parameter:lr", 0.15, 1)
    page.wait_for_url(re.compile("brush=.*lr"))
    expect(status).to_have_text("3 of 6 trials selected")
    accuracy_axis.evaluate("strip => strip.point('pointerup', 1)")
    page.wait_for_url(re.compile("brush=.*accuracy"))
    expect(status).to_have_text("3 of 6 trials selected")
    assert accuracy_axis.evaluate("strip => strip.gone") == 0
    expect(trials.locator("td:first-child")).to_have_text(["2", "5", "3"])
    expect(page.locator(".scatter .dot[data-out]")).to_have_count(3)
    curves = page.get_by_role("region", name="Curves of the selected trials")
    curves.scroll_into_view_if_needed()
    expect(curves.get_by_role("group", name="Chart of val/accuracy of 3 runs")).to_be_visible()
    page.reload()
    expect(status).to_have_text("3 of 6 trials selected")
    # A click on the axis removes its brush.
    page.locator("[data-axis='parameter:lr']").click(position={"x": 18, "y": 230})
    expect(status).to_have_text("3 of 6 trials selected")
    expect(page.get_by_role("button", name="lr: ")).to_be_hidden()
    most = page.get_by_role("slider", name="Most val/accuracy")
    most.press("ArrowDown")
    most.press("ArrowDown")
    expect(status).to_have_text("2 of 6 trials selected")
    most.press("Escape")
    expect(status).to_have_text("6 trials")
    page.get_by_role("button", name="none of val/accuracy").click()
    expect(trials).to_have_count(1)
    expect(trials).to_contain_text("failed")


@pytest.mark.usefixtures("lived_in")
def test_a_paused_sweep_says_why_and_is_resumed(page: Page, submit: Submit, node: Agent) -> None:
    grid = {"parameters": {"lr": [0.1, 0.2, 0.3]}, "running": 1, "pause_after": 1}
    sweep = submit(name="broken", command=COMMAND, sweep=grid)
    node.start().end(exit_code=1)
    visit(page, f"/sweeps/{sweep['number']}")
    paused = page.get_by_role("region", name="Paused")
    expect(paused).to_contain_text("the first trial failed")
    page.get_by_role("button", name="Hold").click()
    expect(page.locator(".facts")).to_contain_text("Held2")
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_role("button", name="Release")).to_be_hidden()
    paused.get_by_role("button", name="Resume the sweep").click()
    expect(paused).to_be_hidden()
    node.start()
    expect(page.locator(".state-counts")).to_contain_text("1 running")


@pytest.mark.usefixtures("lived_in")
def test_a_paused_sweep_that_is_cancelled_is_shown_as_cancelled(page: Page, submit: Submit, node: Agent) -> None:
    grid = {"parameters": {"lr": [0.1, 0.2, 0.3]}, "running": 1, "pause_after": 1}
    sweep = submit(name="broken", command=COMMAND, sweep=grid)
    node.start().end(exit_code=1)
    visit(page, f"/sweeps/{sweep['number']}")
    paused = page.get_by_role("region", name="Paused")
    expect(paused).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel all its jobs").click()
    expect(paused).to_be_hidden()
    expect(page.locator(".state-counts")).to_have_text("2 cancelled1 failed")
