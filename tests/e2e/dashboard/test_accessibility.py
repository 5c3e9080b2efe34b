"""No page has a serious fault that axe-core finds, in either theme, or goes beyond a phone, with data in all panels."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.e2e.dashboard.test_sharing import use
from tests.e2e.dashboard.windows import DESKTOP
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import GIB, Agent
from tests.support.wait import until

pytestmark = pytest.mark.browser
Submit = Callable[..., dict[str, Any]]
AXE = Path(__file__).parents[3] / "service" / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
TABS = ("charts", "log", "checkpoints", "machine", "spec")
GRAVE = {"serious", "critical"}
ADMINISTRATION = ["/audit", "/people", "/account", "/projects", "/projects/default"]
#: Pages that axe judges on a phone too.
AT_A_TOUCH = {"/", "/jobs/1", "/box", "/sharing", "/calendar", "/submit"}
#: A narrow one.
PHONE = ViewportSize(width=360, height=780)
LONG = "that-is-rather-long-for-a-telephone"
#: Faults with the places that have them; what fades in is judged as it stays, and what is folded as it unfolds.
FAULTS = """async (rules) => {
    document.querySelectorAll("details").forEach(each => { each.open = true; });
    document.getAnimations().forEach(each => each.finish());
    const options = rules ? { runOnly: { type: "rule", values: rules } } : {};
    const found = await axe.run(document, { resultTypes: ["violations"], ...options });
    return found.violations.map(({ id, impact, nodes }) => ({
        id, impact, places: nodes.map(node => `${node.target} ${node.any.map(each => each.message).join(" ")}`),
    }));
}"""
#: Whether a page is in a theme; one without scripts has no word for it.
SHOWN = "theme => [undefined, theme].includes(document.documentElement.dataset.theme)"
DARK = "matchMedia('(prefers-color-scheme: dark)').matches"
#: The width of a page once it has been laid out anew.
WIDTH = """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() =>
    done(document.documentElement.scrollWidth))))"""
#: Rules that look at colours: what else there is, a page has in both themes.
COLOURS = ["color-contrast", "link-in-text-block"]
TRACEBACK = "\n".join(["Traceback (most recent call last):", *['  File "train.py", line 88'] * 60, "ValueError: boom"])


def faults(page: Page, rules: list[str] | None = None) -> list[dict[str, Any]]:
    """Grave faults of the page as it is, by all rules or by these."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text())
    found: list[dict[str, Any]] = page.evaluate(FAULTS, rules)
    return [fault for fault in found if fault["impact"] in GRAVE]


def faults_in_both_themes(page: Page) -> list[dict[str, Any]]:
    """Faults in the theme that the page has, and those of its colours in the other, which it has then."""
    found = faults(page)
    other: Literal["dark", "light"] = "light" if page.evaluate(DARK) else "dark"
    with_theme(page, other)
    return found + [{"theme": other, **fault} for fault in faults(page, COLOURS)]


def with_theme(page: Page, theme: Literal["dark", "light"]) -> None:
    page.emulate_media(color_scheme=theme)
    until(lambda: page.evaluate(SHOWN, theme), what=f"the {theme} theme")


@pytest.fixture
def paths(submit: Submit, node: Agent, live_service: Live) -> list[str]:
    """Pages of a service on which something of everything has happened."""
    use(live_service, useful=6, idle=3, failed=1, lost=0.4)
    post = live_service.client.post
    submit(name="broken", tags=["baseline"], max_retries=0)
    node.start().end(exit_code=1, failed_rank=0, traceback=TRACEBACK)
    done = submit(name="done")
    first = node.start()
    first.report(range(50), total_steps=50, train__loss=lambda step: 1 / (1 + step), val__accuracy=0.91)
    first.checkpoint(50, {"model.pt": b"x" * 2000}, val__accuracy=0.91)
    first.output({"plots/loss.png": b"png", "notes.txt": b"hello"})
    first.write("epoch 1 loss 0.5\n" * 200 + "x" * 4000)
    first.end()
    gone = submit(name="gone")
    post(f"/api/v1/jobs/{gone['id']}/cancel").raise_for_status()
    sweep = submit(
        name=f"rates-{LONG}", command=["train.py", "{lr}"], sweep={"parameters": {"lr": [0.1, 0.2]}, "running": 1}
    )
    trial = node.start()
    trial.report([1], val__accuracy=0.5)
    trial.end()
    node.start().report([1, 2], total_steps=9, val__accuracy=0.7)
    running = submit(name=f"running-{LONG}", resources={"gpus": 2}, time_limit="2h", tags=["long"])
    second = node.start()
    second.report(range(30), total_steps=90, train__loss=0.3, val__loss="nan")
    for ago_s in (4, 2, 0):
        values = {"gpu.1.utilization": 87.0, "gpu.1.memory_used": 40.0 * GIB, "cpu.percent": 12.0}
        node.sample({**values, "memory.used": 90.0 * GIB}, second, ago_s=ago_s)
    waiting = submit(name="waiting", resources={"gpus": 4}, time_limit="1h")
    later = submit(name="later", after={"jobs": [str(waiting["number"])]})
    begins = datetime.now(UTC) + timedelta(days=1)
    span = {"starts_at": begins.isoformat(), "ends_at": (begins + timedelta(hours=2)).isoformat()}
    post(
        "/api/v1/reservations", json={"name": "demo day", "nodes": [], "gpus": 1, "users": [done["user"]], **span}
    ).raise_for_status()
    post("/api/v1/users", json={"name": "ada"}).raise_for_status()
    post("/api/v1/users", json={"name": "ci", "project": "default"}).raise_for_status()
    live_service.client.put("/api/v1/projects/default/members/ada").raise_for_status()
    for path in ("/api/v1/secrets/KEY", "/api/v1/projects/default/secrets/KEY"):
        live_service.client.put(path, json={"value": "hush"}).raise_for_status()
    node.offenders = ["process 4242 of root computes on GPU 3 without a job"]
    node.orders()
    jobs = [
        f"/jobs/{number}"
        for number in (1, done["number"], gone["number"], running["number"], waiting["number"], later["number"])
    ]
    tabs = [f"/jobs/{number}/{tab}" for number in (done["number"], running["number"]) for tab in TABS]
    pages = [
        "/box",
        "/sharing",
        "/calendar",
        *ADMINISTRATION,
        "/compare?jobs=1,2,3",
        "/submit",
        "/submit?from=2",
        "/nowhere",
    ]
    return ["/", *jobs, *tabs, f"/sweeps/{sweep['number']}", *pages]


def opened(page: Page, path: str) -> None:
    """Go to a page, and wait until all of it is there."""
    visit(page, path)
    expect(page.get_by_role("heading").first).to_be_visible()
    expect(page.get_by_text("…", exact=True)).to_have_count(0)


@pytest.mark.timeout(600)
def test_no_page_has_a_serious_fault_or_goes_beyond_a_phone(page: Page, paths: list[str]) -> None:
    page.goto("/projects")
    expect(page.get_by_role("link", name="REST API")).to_have_attribute("href", "/docs")
    with_theme(page, "light")
    found, wide = {}, {}
    for path in paths:
        opened(page, path)
        found[path] = faults_in_both_themes(page)
        page.set_viewport_size(PHONE)
        if path in AT_A_TOUCH:
            found[f"{path} on a phone"] = faults(page)
        width = page.evaluate(WIDTH)
        if width > PHONE["width"]:
            wide[path] = width
        page.set_viewport_size(DESKTOP)
    for path, button in (
        ("/jobs/1", "Rerun"),
        ("/sharing", "Reserve"),
        ("/sharing", "What if"),
        ("/people", "Add a user"),
    ):
        visit(page, path)
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        found[f"{path} {button}"] = faults_in_both_themes(page)
        page.keyboard.press("Escape")
    page.set_viewport_size(PHONE)
    visit(page, "/")
    page.get_by_role("button", name="Menu").click()
    expect(page.get_by_role("menuitem", name="Audit")).to_be_visible()
    found["menu"] = faults(page)
    assert page.locator(".top").evaluate("bar => bar.offsetHeight") < 64  # one row
    page.get_by_role("menuitem", name="Sharing").click()
    expect(page.get_by_role("heading", name="Sharing")).to_be_visible()
    page.set_viewport_size(DESKTOP)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    found["sign-in"] = faults_in_both_themes(page)
    page.goto("/api/v1/session/oidc")
    expect(page.get_by_role("heading", name="You are not signed in")).to_be_visible()
    found["sign-in refused"] = faults_in_both_themes(page)
    assert wide == {}, "pages that go beyond the screen"
    assert not any(found.values()), json.dumps({path: each for path, each in found.items() if each}, indent=1)
