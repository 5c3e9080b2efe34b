"""The home page: who has which device, and what is to come."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import insert, select, update

from service.db.models import Allocation, Attempt, Device, Node
from service.queue.attention import IDLE_MINUTES
from tests.e2e.dashboard.lived_in import begin_session
from tests.e2e.dashboard.test_trust import signed_in
from tests.e2e.dashboard.windows import Windows
from tests.support.live import Live
from tests.support.scripted import GIB, Agent
from torchyard import home

pytestmark = pytest.mark.browser
AT_HOME = pytest.mark.usefixtures("home")
Submit = Callable[..., dict[str, Any]]
RUNS, MOVES = 400, 60
#: Collects what changes in the lanes, apart from the tip.
WATCH_LANES = """() => {
  window.changed = [];
  const tip = (node) => node.closest?.(".lane-tip") ?? node.parentElement?.closest(".lane-tip");
  new MutationObserver((records) => {
    for (const { target, addedNodes, removedNodes } of records) {
      const nodes = [...addedNodes, ...removedNodes];
      const told = tip(target) || (nodes.length > 0 && nodes.every((node) => node.className === "lane-tip"));
      if (!told) window.changed.push(target.className || target.nodeName);
    }
  }).observe(document.querySelector(".lanes"), { subtree: true, childList: true, attributes: true });
}"""


def test_lanes_show_past_present_and_future(page: Page, submit: Submit, node: Agent, live_service: Live) -> None:
    submit(name="done", resources={"gpus": 2})
    node.start().end()
    running = submit(name="running", resources={"gpus": 4}, time_limit="2h")
    node.start()
    submit(name="next", time_limit="1h")
    begins = datetime.now(UTC) + timedelta(minutes=30)
    span = {"starts_at": begins.isoformat(), "ends_at": (begins + timedelta(minutes=30)).isoformat()}
    reserved = {"name": "demo", "gpus": 1, "users": [running["user"]], **span}
    live_service.client.post("/api/v1/reservations", json=reserved).raise_for_status()
    page.goto("/")
    lanes = page.get_by_role("group", name="GPU ")
    expect(lanes).to_have_count(4)
    bars = lanes.first.get_by_role("link")
    expect(bars.nth(1)).to_have_accessible_name(re.compile(f"^{running['number']} running, {running['user']}, "))
    expect(page.get_by_role("link", name="next, ")).to_have_attribute("data-kind", "expected")
    expect(page.get_by_role("group", name="Reserved on any node")).to_contain_text("demo · 1")
    expect(page.get_by_role("list", name="People")).to_contain_text(running["user"])
    bars.nth(1).hover(position={"x": 1, "y": 5})
    expect(page.locator(".lane-tip")).to_contain_text("ends about")
    # Arrow keys walk along a lane and from lane to lane, and what has the focus is told.
    page.get_by_role("button", name="1 h", exact=True).click()
    bars.first.focus()
    page.keyboard.press("ArrowRight")
    expect(bars.nth(1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(lanes.nth(1).get_by_role("link").last).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=r"running")).to_be_visible()


@AT_HOME
def test_mine_and_what_needs_attention(page: Page, submit: Submit, node: Agent) -> None:
    mine = page.get_by_role("region", name="Mine")
    attention = page.get_by_role("region", name="Needs attention")
    expect(mine).to_contain_text("Your jobs stand here")
    expect(attention).to_contain_text("Nothing.")
    submit(name="broken", max_retries=0)
    traceback = "Traceback (most recent call last):\n  File \"train.py\", line 3\nKeyError: 'labels'"
    node.start().end(exit_code=1, failed_rank=0, traceback=traceback)
    submit(name="running", resources={"gpus": 4}, time_limit="2h")
    node.start().report([1, 2, 3], total_steps=9, train__loss="nan")
    submit(name="next", time_limit="1h")
    node.offenders = ["process 4242 of root computes on GPU 3 without a job"]
    node.orders()
    expect(mine.get_by_role("listitem")).to_have_count(3)
    running, waiting, ended = mine.get_by_role("listitem").all()
    expect(running).to_contain_text("33 %")
    expect(waiting).to_contain_text("starts about")
    expect(ended).to_contain_text("failed")
    expect(attention).to_contain_text("process 4242 of root computes")
    expect(attention).to_contain_text("train/loss is nan")
    expect(attention).to_contain_text("KeyError: 'labels'")
    # What has the focus keeps it when something above it is over; a page that comes into sight reads anew.
    attention.get_by_role("link", name="broken").focus()
    node.offenders = []
    node.orders()
    page.evaluate("dispatchEvent(new Event('visibilitychange'))")
    expect(attention).not_to_contain_text("process 4242")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="broken")).to_be_visible()


def test_a_run_that_hangs_idle_and_a_broken_silent_full_node_are_marked(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    submit(name="stuck", resources={"gpus": 4})
    stuck = node.start()
    ctx = live_service.context
    now = ctx.now_us()
    for minute in range(IDLE_MINUTES):
        values = {f"gpu.{index}.utilization": 0.0 for index in range(4)}
        node.sample(values, stuck, ago_s=60 * minute)  # the newest is no minute old yet when the page reads
    with ctx.db.write() as tx:
        tx.execute(update(Attempt).values(hung_us=now, started_us=now - 3_600_000_000))
        tx.execute(update(Node).values(disk_floor=2000 * GIB))
        why = "in quarantine: Xid 79 at 2026-11-25 18:00:03 UTC, then `yard nodes --return box:3`"
        tx.execute(update(Device).where(Device.index == 3).values(unusable=why))
    page.goto("/")
    attention = page.get_by_role("region", name="Needs attention")
    expect(attention.locator("[data-kind=hung]")).to_contain_text("stuck")
    expect(attention.locator("[data-kind=idle]")).to_contain_text(f"has used no GPU for {IDLE_MINUTES} minutes")
    expect(attention.locator("[data-kind=disk-low]")).to_contain_text("no job starts there below 2")
    expect(attention.locator("[data-kind=device-unusable]")).to_contain_text("GPU 3 is out of use")
    unusable = page.locator('.lane-closed[data-kind="unusable"]')
    expect(unusable).to_have_count(1)
    expect(unusable.locator("code")).to_have_text("yard nodes --return box:3")
    expect(unusable).not_to_contain_text(re.compile("UTC|`"))
    expect(unusable).to_have_css("background-image", re.compile("repeating-linear-gradient"))
    expect(page.get_by_role("list", name="People")).to_contain_text("quarantine, unreachable")
    page.get_by_role("link", name="The box").click()
    expect(page.locator(".machine")).not_to_have_attribute("data-stale", "true")
    broken = page.locator(".device[data-status=unusable]")
    expect(broken).to_contain_text("Xid 79")
    expect(broken.get_by_role("link")).to_contain_text("stuck")  # what is on it is told all the same
    with ctx.db.write() as tx:
        tx.execute(update(Node).values(unreachable=True))
        tx.execute(update(Device).values(unusable=None))
    page.reload()
    # What was measured before a node fell silent is not shown as of now.
    expect(page.locator(".machine[data-stale=true], .gauges[data-stale=true]")).to_have_count(5)
    page.goto("/")
    expect(attention.locator("[data-kind=node-silent]")).to_contain_text("is silent")
    silent = page.locator('.lane-closed[data-kind="unreachable"]')
    expect(silent).to_have_count(4)
    expect(silent.first).to_have_css("background-image", re.compile("repeating-linear-gradient"))


@pytest.fixture
def clocked(windows: Windows, live_service: Live) -> Iterator[Page]:
    """A signed-in page with a clock that can be set, which stays with a window: no other test has this one."""
    with windows.window("clocked", live_service.url) as window:
        begin_session(window.page, live_service)
        window.page.clock.install()
        yield window.page
        said = [*window.errors.said]
    assert said == []


def test_lanes_follow_and_mark_what_is_out_of_use(
    clocked: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    page = clocked
    page.goto("/")
    lanes = page.get_by_role("group", name="GPU ")
    expect(lanes).to_have_count(4)
    submit(name="resnet")
    node.start()
    page.clock.fast_forward(15_000)  # when lanes are read again
    expect(lanes.get_by_role("link", name="resnet")).to_have_count(1)
    free = lanes.get_by_role("img", name="free, idle: ")
    expect(free).to_have_count(3)
    free.last.hover()
    expect(page.locator(".lane-tip")).to_contain_text("idle: no job waits")
    drain = f"/api/v1/nodes/{home.node_name()}/drain"
    live_service.client.post(drain, json={"message": "new fan"}).raise_for_status()
    page.clock.fast_forward(15_000)
    closed = page.locator('.lane-closed[data-kind="draining"]')
    expect(closed).to_have_count(4)
    expect(closed.first).to_have_accessible_name(re.compile("^draining, .*now .*, new fan$"))
    expect(free).to_have_count(0)
    live_service.client.post(f"/api/v1/nodes/{home.node_name()}/resume").raise_for_status()
    page.clock.fast_forward(15_000)
    over = page.locator('.lane-outage[data-kind="drain"]')
    expect(over).to_have_count(4)  # what is over is marked where it was
    expect(over.first).to_have_accessible_name(re.compile("^draining, .*, new fan$"))
    expect(closed).to_have_count(0)
    expect(page.get_by_role("list", name="People")).to_contain_text("draining, maintenance")


@AT_HOME
def test_below_each_lane_is_how_busy_its_device_was(page: Page, node: Agent) -> None:
    for ago_s in (1200, 2, 0):
        node.sample({"gpu.0.utilization": 87.0, "gpu.0.memory_used": 40.0 * GIB}, ago_s=ago_s)
    page.get_by_role("button", name="1 h", exact=True).click()
    strip = page.get_by_role("img", name="Use of GPU ")
    expect(strip).to_have_count(1)  # of the others nothing is known
    expect(strip).to_have_accessible_name("Use of GPU 0: GPU busy 87 %, memory 50 % held")
    busy = strip.locator(".lane-busy")
    expect(busy).to_have_attribute("d", re.compile("^M[^M]+M[^M]+$"))  # with a gap
    first = re.match(r"M([\d.]+) 100.*?H([\d.]+)", busy.get_attribute("d") or "")
    assert first is not None
    middle = (float(first[1]) + float(first[2])) / 200  # the newest part may be too narrow to be met
    for words in ("Your jobs stand here", "Nothing. Runs that hang"):  # once read, they move the lanes below them
        expect(page.get_by_text(words)).to_be_visible()
    strip.hover(position={"x": strip.evaluate("strip => strip.getBoundingClientRect().width") * middle, "y": 4})
    expect(page.locator(".lane-tip")).to_contain_text("GPU busy 87 %")


def test_a_job_that_is_not_shown_is_no_link(browser: Browser, live_service: Live, submit: Submit, node: Agent) -> None:
    live_service.client.patch("/api/v1/projects/default", json={"visibility": "private"}).raise_for_status()
    submit(name="secret")
    node.start()
    waiting = submit(name="secret-too", resources={"gpus": 4})
    live_service.client.post("/api/v1/users", json={"name": "eve"}).raise_for_status()
    asked = {"name": "laptop", "user": "eve", "scopes": ["read"]}
    token = live_service.client.post("/api/v1/tokens", json=asked).raise_for_status().json()["secret"]
    with signed_in(browser, live_service.url, token) as page:
        bar = page.get_by_role("img", name=f"1 (not shown), {waiting['user']}")
        expect(bar).to_have_count(1)
        expect(bar).to_have_text("")
        expect(page.get_by_role("group", name="GPU ").get_by_role("link")).to_have_count(0)
        page.get_by_role("link", name="The box").click()
        expect(page.locator(".car")).to_contain_text("(not shown)")
        expect(page.locator("a.car")).to_have_count(0)
        queue = page.get_by_role("region", name="Queue")
        expect(queue).to_contain_text("(not shown)")
        expect(queue.get_by_role("link")).to_have_count(0)
        expect(page.locator("main")).not_to_contain_text("secret")


def test_the_lanes_of_a_busy_day_are_smooth(page: Page, submit: Submit, node: Agent, live_service: Live) -> None:
    """400 runs on each of four devices: a pointer that moves over them changes nothing but what it tells."""
    job = submit(name="short")
    node.start().end()
    now = live_service.context.now_us()
    step = 23 * 3600 * 1_000_000 // RUNS
    with live_service.context.db.write() as tx:
        device = tx.execute(select(Device.__table__)).all()
        tx.execute(
            insert(Attempt),
            [
                {"id": f"att-{n}", "job_id": job["id"], "number": n, "state": "succeeded", "created_us": now}
                for n in range(2, RUNS + 2)
            ],
        )
        tx.execute(
            insert(Allocation),
            [
                {
                    "attempt_id": f"att-{n}",
                    "node": each.node,
                    "uuid": each.uuid,
                    "index": each.index,
                    "live": False,
                    "created_us": now - n * step,
                    "released_us": now - n * step + step * 9 // 10,
                }
                for n in range(2, RUNS + 2)
                for each in device
            ],
        )
    page.goto("/")
    page.get_by_role("button", name="24 h", exact=True).click()
    bars = page.locator("a.lane-bar")
    expect(bars).to_have_count(4 * RUNS + 1)
    box = page.locator(".lane-track").nth(1).bounding_box()
    assert box is not None
    page.evaluate(WATCH_LANES)
    for n in range(MOVES):
        page.mouse.move(box["x"] + box["width"] * 0.75 * n / MOVES, box["y"] + 10)
    expect(page.locator(".lane-tip")).to_contain_text("short")
    assert page.evaluate("window.changed") == []
