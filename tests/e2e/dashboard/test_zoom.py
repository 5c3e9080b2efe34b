"""A chart tells the truth at every zoom: bands that hold all points, and the points themselves once they fit."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from tests.support.browser import visit
from tests.support.scripted import Agent
from tests.support.wait import until

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in")]
Submit = Callable[..., dict[str, Any]]
STEPS = 20_000
SPIKE = 12_345


def _loss(step: int) -> float:
    return 9.0 if step == SPIKE else float(step % 2)


def _drag(page: Page, figure: Locator, start: float, end: float) -> None:
    """Zooms to a part of what is shown, from 0 to 1."""
    box = figure.locator(".u-over").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * start, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, y, steps=5)
    page.mouse.up()


def _step(figure: Locator) -> int:
    at = figure.locator(".chart-at")
    expect(at).to_have_text(re.compile("^step "))
    return int(re.sub(r"\D", "", at.inner_text()))


def _is_detail(request: Request) -> bool:
    return "/metrics?" in request.url and "start=" in request.url


@pytest.mark.parametrize("scale", ["Linear", "Log"])
def test_a_zoom_reads_its_part_and_shows_every_point_once_they_fit(
    page: Page, submit: Submit, node: Agent, scale: str
) -> None:
    job = submit(name="noisy")
    attempt = node.start()
    attempt.report(range(STEPS), loss=_loss, val__loss=2.0)
    visit(page, f"/jobs/{job['number']}/charts")
    page.get_by_role("button", name=scale, exact=True).click()
    figure = page.locator("figure.chart").filter(has=page.get_by_text("loss", exact=True))
    over, lines = figure.locator(".u-over"), figure.locator("li")
    over.hover()
    expect(figure.locator(".chart-at")).to_contain_text(" to ")
    expect(lines).to_have_text(["loss 0.5000 (0 to 1)", "val/loss 2"])

    with page.expect_request(_is_detail):
        _drag(page, figure, SPIKE / STEPS - 0.1, SPIKE / STEPS + 0.1)
    over.hover()
    expect(lines.first).to_contain_text("to 1)")
    before = figure.locator(".chart-at").inner_text()
    with page.expect_request(_is_detail):
        _drag(page, figure, 0.45, 0.55)
    page.mouse.move(0, 0)
    over.hover()
    expect(figure.locator(".chart-at")).not_to_have_text(before)
    _step(figure)
    box = over.bounding_box()
    assert box is not None
    seen = set()
    for place in range(40, 60):
        before = figure.locator(".chart-at").inner_text()
        page.mouse.move(box["x"] + box["width"] * place / 100, box["y"] + 20)
        expect(figure.locator(".chart-at")).not_to_have_text(before)
        step = _step(figure)
        expected = {9.0: "9", 1.0: "1", 0.0: "0"}[_loss(step)]
        if scale == "Linear" or expected != "0":
            expect(lines.first).to_have_text(f"loss {expected}")
        seen.add(step)
    assert len(seen) > 15

    attempt.report(range(STEPS, STEPS + 2), loss=4.0, val__loss=2.0)
    page.mouse.move(0, 0)
    expect(lines.first).to_have_text("loss 4")
    over.hover()
    until(lambda: abs(_step(figure) - SPIKE) < 400, what="the zoom, which new points keep")
    over.dblclick()
    expect(figure.locator(".chart-at")).to_contain_text(" to ")
