"""The table of jobs: what is in view of many, searches, groups, columns, views, and actions on several jobs at once."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from sqlalchemy import func, insert, literal, select

from service.db.models import Job
from tests.e2e.dashboard.test_trust import signed_in
from tests.support.browser import hold, visit
from tests.support.live import Live
from tests.support.scripted import Agent

pytestmark = pytest.mark.browser
AT_HOME = pytest.mark.usefixtures("home")
Submit = Callable[..., dict[str, Any]]
#: Jobs that are counted at once, all of them, and the height of a row.
REACH, MANY, ROW = 20_000, 20_040, 32


#: Click what is clicked, and keep the page busy for longer than typing may pause.
CLICK_SLOWLY = "button => { button.click(); for (const end = Date.now() + 500; Date.now() < end; ); }"
#: Click two columns before the page can draw the first.
CLICK_BOTH = """(menu, names) => [...menu.querySelectorAll("[role=menuitemcheckbox]")]
    .filter(item => names.includes(item.textContent.replace("✓", "").trim())).forEach(item => item.click())"""
#: Type into the search and click an item in the same moment, and keep the page busy until the typed words are due.
TYPE_AND_CLICK = f"""item => {{
    const input = document.querySelector("input[type=search]");
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, "alpha");
    input.dispatchEvent(new Event("input", {{ bubbles: true }}));
    ({CLICK_SLOWLY})(item);
}}"""


@AT_HOME
def test_what_runs_stands_before_what_waits_and_has_ended(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    gone = submit(name="gone")
    live_service.client.post(f"/api/v1/jobs/{gone['id']}/cancel").raise_for_status()
    submit(name="running", resources={"gpus": 4})
    node.start().report([1, 2], total_steps=4, val__accuracy=lambda step: 0.97 - step / 100)
    submit(name="later")
    submit(name="first", priority="high")
    names = page.locator("a.job-name")
    expect(names).to_have_text(["running", "first", "later", "gone"])
    expect(page.locator(".place")).to_have_text(["1", "2"])
    search = page.get_by_role("combobox", name="Search")
    search.fill("val/accuracy > 0.9")
    expect(names).to_have_text(["running"])
    page.get_by_label("Order").select_option("largest val/accuracy first")
    page.wait_for_url(re.compile("order=-max"))
    search.fill("min:val/accuracy > 0.955")
    expect(names).to_have_count(0)
    search.fill("max:val/accuracy > 0.955")
    expect(names).to_have_text(["running"])
    # What is clicked while one types changes what was typed, also where the page draws slowly.
    search.fill("run")
    page.get_by_role("button", name=re.compile("^Waiting")).evaluate(CLICK_SLOWLY)
    expect(search).to_have_value("run state:waiting")
    expect(names).to_have_count(0)
    search.fill("state:nonsense")
    expect(page.locator(".complaint")).to_contain_text("nonsense is no state")
    # Suggestions are walked through and taken by the keyboard. Typing goes on behind them even where frames come late.
    page.evaluate("() => { window.requestAnimationFrame = (draw) => setTimeout(draw, 200) }")
    search.fill("st")
    search.press("ArrowDown")
    search.dispatch_event("keydown", {"key": "Enter", "isComposing": True})  # ends what an input method composes
    expect(search).to_have_value("st")
    search.press("Enter")
    expect(search).to_have_value("state:")
    search.press_sequentially("canc", delay=100)
    expect(page.get_by_role("listbox").get_by_role("option")).to_have_text(["cancelled"])
    search.press("Tab")
    expect(names).to_have_text(["gone"])
    page.wait_for_url(re.compile(r"q=state"))
    page.reload()
    expect(names).to_have_text(["gone"])


@AT_HOME
def test_orders_groups_columns_and_views(page: Page, submit: Submit, live_service: Live) -> None:
    live_service.client.post("/api/v1/projects", json={"name": "vision"}).raise_for_status()
    submit(name="beta", project="vision")
    alpha = submit(name="alpha", tags=["baseline"])
    submit(name="rates", command=["t", "{lr}"], sweep={"parameters": {"lr": [1, 2]}})
    names = page.locator("a.job-name")
    expect(names).to_have_count(4)
    search, head = page.get_by_role("combobox", name="Search"), page.get_by_role("columnheader", name="Job")
    head.get_by_role("button").click()
    expect(names).to_have_text(["alpha", "beta", re.compile("rates"), re.compile("rates")])
    expect(head).to_have_attribute("aria-sort", "ascending")
    head.get_by_role("button").click()
    expect(names.last).to_have_text("alpha")
    page.wait_for_url(re.compile("order=-name"))
    search.fill("sweep:rates")
    expect(names).to_have_text([re.compile("rates"), re.compile("rates")])
    visit(page, "/")
    expect(names).to_have_count(4)
    heads = page.locator(".line-title")
    for by, titles in (
        ("user", [f"{alpha['user']} 4 jobs"]),
        ("project", ["default 3 jobs", "vision 1 job"]),
        ("tag", ["No tag 3 jobs", "baseline 1 job"]),
    ):
        page.get_by_label("Group by").select_option(by)
        expect(heads).to_have_count(len(titles))
        for title in titles:
            expect(heads.filter(has_text=title)).to_have_count(1)
    # What the parts of one kind are is not shown as those of another.
    search.fill("tag:baseline")
    expect(heads).to_have_text([re.compile("baseline 1 job")])
    slow = hold(page, "**/jobs/facets?*by=project*", times=1)
    with page.expect_request("**/jobs/facets?*by=project*"):
        page.get_by_label("Group by").select_option("project")
    expect(page.get_by_label("Group by")).to_have_value("project")
    expect(heads).to_have_count(0)
    slow[0].continue_()
    expect(heads).to_have_text([re.compile("default 1 job")])
    search.fill("")
    page.get_by_label("Group by").select_option("sweep")
    expect(heads).to_have_text([re.compile("No sweep 2 jobs"), re.compile(r"\d+ rates 2 jobs")])
    expect(names).to_have_count(0)
    heads.last.get_by_role("button").click()
    expect(names).to_have_text(["rates-2", "rates-1"])
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menu").evaluate(CLICK_BOTH, ["Project", "Tags"])
    expect(page.get_by_role("menuitemcheckbox", name="Tags")).not_to_be_checked()
    page.keyboard.press("Escape")
    for column, count in (("Project", 0), ("Tags", 0), ("User", 1)):
        expect(page.get_by_role("columnheader", name=column)).to_have_count(count)
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Save this view").click()
    page.get_by_role("textbox", name="Name").fill("my sweeps")
    page.get_by_role("button", name="Save it").click()
    page.get_by_label("Group by").select_option("")
    expect(names).to_have_count(4)
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="my sweeps").first.evaluate(TYPE_AND_CLICK)
    expect(heads).to_have_count(2)
    expect(search).to_have_value("")
    expect(page.get_by_role("columnheader", name="Project")).to_have_count(0)


@AT_HOME
def test_several_jobs_are_tagged_and_cancelled_at_once(page: Page, submit: Submit, live_service: Live) -> None:
    for number in range(6):
        submit(name=f"job-{number}")
    ticks = page.get_by_label(re.compile(r"Tick job \d"))
    expect(ticks).to_have_count(6)
    ticks.nth(0).click()
    ticks.nth(3).click(modifiers=["Shift"])
    bar = page.get_by_role("group", name="Ticked jobs")
    expect(bar).to_contain_text("4 jobs ticked")
    expect(bar.get_by_role("link", name="Compare")).to_have_attribute("href", re.compile(r"/compare\?jobs=\d+,\d+"))
    bar.get_by_role("button", name="Tag 4").click()
    page.get_by_label("Tag", exact=True).fill("doomed")
    page.get_by_role("button", name="Add the tag").click()
    told = page.locator(".bulk-told")
    expect(told).to_contain_text("4 tagged doomed")
    expect(page.locator(".line .tag")).to_have_text(["doomed"] * 4)
    told.get_by_role("button", name="Undo").click()
    expect(page.locator(".line .tag")).to_have_count(0)
    bar.get_by_label(re.compile("Priority of 4")).select_option("high")
    expect(told).to_contain_text("4 now high")
    bar.get_by_role("button", name="Cancel 4").click()
    expect(page.get_by_role("dialog").get_by_role("button", name="Back")).to_be_focused()
    page.get_by_role("dialog").get_by_role("button", name="Cancel 4 jobs").click()
    expect(told).to_contain_text("4 cancelled")
    expect(bar.get_by_role("button", name="Cancel")).to_have_count(0)
    # Clicked twice, also where timers come late, they are submitted once.
    page.evaluate("() => { const later = setTimeout; window.setTimeout = (call, ms) => later(call, ms + 500) }")
    bar.get_by_role("button", name="Rerun 4").dblclick()
    expect(told).to_contain_text("4 submitted again")
    expect(page.locator("a.job-name")).to_have_count(10)
    assert len(live_service.client.get("/api/v1/jobs").json()["items"]) == 10


@AT_HOME
def test_what_is_under_way_stays_with_its_job_while_others_come_above_it(page: Page, submit: Submit) -> None:
    first = ["job-a", "job-b", "job-c"]
    for name in first:
        submit(name=name)
    names = page.locator("a.job-name")
    expect(names).to_have_text(first)
    rows = page.locator(".line[data-state]")
    rows.filter(has_text="job-a").get_by_role("checkbox").click()
    names.filter(has_text="job-b").focus()
    submit(name="high", priority="high")
    expect(names).to_have_text(["high", *first])
    expect(names.filter(has_text="job-b")).to_be_focused()
    rows.filter(has_text="job-c").get_by_role("checkbox").click(modifiers=["Shift"])
    ticked = page.locator(".line[data-ticked] a.job-name")
    expect(ticked).to_have_text(first)
    # A click that began on one job does not end on another.
    box = rows.first.get_by_role("checkbox").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    submit(name="urgent", priority="urgent")
    expect(names).to_have_text(["urgent", "high", *first])
    page.mouse.up()
    rows.filter(has_text="job-a").get_by_role("checkbox").click()
    expect(ticked).to_have_text(["job-b", "job-c"])


def test_who_may_change_nothing_is_offered_nothing(browser: Browser, live_service: Live, submit: Submit) -> None:
    submit(name="theirs")
    live_service.client.post("/api/v1/users", json={"name": "eve"}).raise_for_status()
    live_service.client.put("/api/v1/projects/default/members/eve").raise_for_status()
    asked = {"name": "laptop", "user": "eve", "scopes": ["read"]}
    token = live_service.client.post("/api/v1/tokens", json=asked).raise_for_status().json()["secret"]
    with signed_in(browser, live_service.url, token) as page:
        page.get_by_label(re.compile("^Tick job")).click()
        bar = page.get_by_role("group", name="Ticked jobs")
        expect(bar).to_contain_text("1 job ticked")
        expect(bar.get_by_role("button")).to_have_text(["Untick all"])
        expect(bar.get_by_role("combobox")).to_have_count(0)


def test_only_what_is_in_view_of_many_jobs_is_drawn(page: Page, live_service: Live, submit: Submit) -> None:
    first = submit(name="first")
    live_service.client.post(f"/api/v1/jobs/{first['id']}/cancel").raise_for_status()
    jobs, numbers = Job.__table__, select(literal(2).label("number")).cte("numbers", recursive=True)
    numbers = numbers.union_all(select(numbers.c.number + 1).where(numbers.c.number < MANY))
    own = {
        "id": func.printf("job-%09d", numbers.c.number),
        "number": numbers.c.number,
        "name": func.printf("n%d", numbers.c.number),
    }
    copies = select(*(own.get(column.name, column) for column in jobs.c)).join_from(jobs, numbers, jobs.c.number == 1)
    with live_service.context.db.write() as tx:
        tx.execute(insert(Job).from_select([column.name for column in jobs.c], copies))
    page.goto("/")
    names = page.locator("a.job-name")
    expect(names.first).to_have_text(f"n{MANY}")
    frame = page.get_by_role("table", name="Jobs")
    expect(page.locator(".line-head .faint")).to_have_text("20,000+ jobs")
    # The titles, a head, and a line that leads on.
    expect(frame).to_have_attribute("aria-rowcount", str(REACH + 3))
    for share in (0.5, 1):
        frame.evaluate(f"frame => {{ frame.scrollTop = frame.scrollHeight * {share} }}")
        expect(page.locator(".line[data-unread]")).to_have_count(0)
        assert page.locator(".line").count() < 80
    # Near the end of what was counted it goes on by itself, without a gap.
    expect(frame).to_have_attribute("aria-rowcount", str(MANY + 2))
    expect(page.locator(".line-head")).to_have_count(0)
    frame.evaluate(f"frame => {{ frame.scrollTop = {(REACH - 4) * ROW} }}")
    expect(page.locator("a.job-name", has_text=f"n{MANY - REACH + 1}")).to_have_count(1)
    expect(page.locator("a.job-name", has_text=f"n{MANY - REACH}")).to_have_count(1)
    frame.evaluate("frame => { frame.scrollTop = frame.scrollHeight }")
    expect(names.last).to_have_text("first")
    frame.evaluate("frame => { frame.scrollTop = 0 }")
    expect(page.locator(".line-head .faint")).to_have_text(f"{MANY:,} jobs")


@AT_HOME
def test_it_fits_a_phone(page: Page, submit: Submit) -> None:
    submit(name="a-name-that-is-rather-long-for-a-phone-and-goes-on-and-on")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("columnheader")).to_have_text(["Ticked", "Job", "State"])
    # Lanes are laid out anew once the width has changed.
    page.wait_for_function("document.documentElement.scrollWidth <= 390")
    # A filter leaves it where it is scrolled to.
    page.set_viewport_size({"width": 390, "height": 300})
    waiting = page.get_by_role("group", name="State").get_by_role("button", name=re.compile("^Waiting"))
    waiting.click()
    expect(waiting).to_have_attribute("aria-pressed", "true")
    expect(page.locator("a.job-name")).to_have_count(1)
    assert page.evaluate("scrollY") > 0
