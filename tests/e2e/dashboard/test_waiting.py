"""What a job's page says of waiting: who is in the way, what would help, and what a run does that hangs."""

import re
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.dashboard.lived_in import begin_session
from tests.support.browser import hold, visit
from tests.support.live import Live
from tests.support.scripted import Agent
from torchyard.ids import now_us
from torchyard.wire import Frame, ProcessStack, StackDump, ThreadStack

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in")]
Submit = Callable[..., dict[str, Any]]


def test_a_waiting_job_names_who_is_in_the_way_and_what_would_start_it(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    holder = submit(name="holder", resources={"gpus": 3}, time_limit="2h")
    node.start()
    waiter = submit(name="waiter", resources={"gpus": 2}, time_limit="1h")
    later = submit(name="later", after={"jobs": [str(waiter["number"])]})
    visit(page, f"/jobs/{waiter['number']}")
    why = page.get_by_role("region", name="Why")
    in_the_way = why.get_by_role("link").filter(has_text="holder")
    expect(in_the_way).to_contain_text(f"{holder['number']}holder{holder['user']}")
    told = live_service.client.get(f"/api/v1/jobs/{waiter['id']}/why").raise_for_status().json()
    assert None not in (told["expected_start_at"], told["reasons"][0]["until"])
    expect(why).to_contain_text("Starts about")
    expect(why).to_contain_text("In the way")
    assert "enough is expected to be free" in told["summary"]
    for again in ("enough is expected to be free", "until about"):
        expect(why).not_to_contain_text(again)
    change = why.locator(".alternatives li").filter(has_text="1 GPU instead of 2")
    expect(change.locator(".alternative-when")).to_have_text("now")
    expect(change.locator("code")).to_have_text(
        f"yard cancel {waiter['number']} && yard rerun {waiter['number']} --set resources.gpus=1"
    )
    in_the_way.click()
    expect(page.get_by_role("region", name="Why")).to_contain_text("Ends about")
    visit(page, f"/jobs/{later['number']}")
    expect(page.locator(".job-title")).to_contain_text("blocked")
    expect(page.get_by_role("region", name="Why").get_by_role("link").filter(has_text="waiter")).to_be_visible()


def test_reasons_that_could_not_be_read_anew_say_so(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    submit(name="holder", resources={"gpus": 4})
    node.start()
    waiter = submit(name="waiter")
    path = f"/api/v1/jobs/{waiter['id']}"
    refusal = {"title": "Forbidden", "status": 403, "detail": "not for you any more"}
    refused = threading.Event()

    def answer(route: Route) -> None:
        # Read first: an answer that was under way as refusals begin may have the hold, and is refused too.
        found = route.fetch()
        if refused.is_set():
            route.fulfill(status=403, json=refusal)
        else:
            route.fulfill(response=found)

    page.route("**/why", answer)
    visit(page, f"/jobs/{waiter['number']}")
    why = page.get_by_role("region", name="Why")
    expect(why).to_contain_text("In the way")
    refused.set()
    live_service.client.post(f"{path}/hold").raise_for_status()
    told = why.get_by_role("alert")
    expect(told).to_contain_text(re.compile(r"is from \d.*, and could not be read anew: not for you any more"))
    expect(why).to_contain_text("In the way")  # what was read last stays
    refused.clear()
    live_service.client.post(f"{path}/release").raise_for_status()
    expect(told).to_have_count(0)


def test_every_time_is_told_by_the_viewers_clock(
    stranger: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    page = stranger
    begin_session(page, live_service)
    page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    submit(name="holder", resources={"gpus": 3}, time_limit="2h")
    node.start()
    waiter = submit(name="waiter", resources={"gpus": 2}, time_limit="1h")
    page.goto(f"/jobs/{waiter['number']}")
    told = live_service.client.get(f"/api/v1/jobs/{waiter['id']}/why").raise_for_status().json()
    there = datetime.fromisoformat(told["expected_start_at"]).astimezone(ZoneInfo("Asia/Tokyo"))
    start = page.get_by_role("region", name="Why").locator("time").first
    expect(start).to_have_text(re.compile(rf"(?:\w+ )?{there:%H:%M}"))
    expect(start).to_have_attribute("title", re.compile(r"Japan Standard Time$"))
    expect(page.locator("main")).not_to_contain_text("UTC")
    page.get_by_role("link", name="The box").click()
    expect(page.locator(".queue-when time").first).to_have_text(re.compile(rf"(?:\w+ )?{there:%H:%M}"))
    for again in ("UTC", "enough is expected to be free"):
        expect(page.get_by_role("region", name="Queue")).not_to_contain_text(again)


def test_the_why_box_fits_a_phone(page: Page, submit: Submit, node: Agent) -> None:
    submit(name="a-holder-with-a-rather-long-name-for-a-phone", resources={"gpus": 4})
    node.start()
    waiter = submit(name="waiter")
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, f"/jobs/{waiter['number']}")
    why = page.get_by_role("region", name="Why")
    expect(why.get_by_role("link").filter(has_text="a-holder")).to_be_visible()
    inside = "box => [...box.querySelectorAll('*')].every((each) => each.getBoundingClientRect().right <= innerWidth)"
    assert why.evaluate(inside)


def test_stacks_say_what_each_rank_does(page: Page, submit: Submit, node: Agent) -> None:
    job = submit(name="stuck", resources={"gpus": 2})
    attempt = node.start()
    visit(page, f"/jobs/{job['number']}")
    page.get_by_role("button", name="Dump stacks").click()
    expect(page.locator(".events")).to_contain_text("stacks-requested")
    [order] = node.orders().dumps
    frames = [Frame(function="train", file="train.py", line=88)]
    processes = [
        ProcessStack(
            pid=40 + rank, rank=rank, main=True, command="python train.py", threads=[ThreadStack(frames=frames)], **what
        )
        for rank, what in enumerate(({"collective": "all_reduce", "place": "train.py:88"}, {"doing": "data loading"}))
    ]
    dump = StackDump(serial=order.serial, at_us=now_us(), processes=processes)
    node.send("POST", f"attempts/{attempt.id}/stacks", content=dump.model_dump_json())
    stacks = page.get_by_role("region", name="Stacks")
    expect(stacks).to_contain_text("Rank 0 waits in all_reduce (train.py:88); rank 1 is in data loading")
    expect(stacks.get_by_text("train.py:88").last).to_be_hidden()
    stacks.locator("summary").filter(has_text="rank 0").click()
    expect(stacks.locator(".stack-thread").first).to_contain_text("train train.py:88")
    stacks.get_by_role("button", name="Dump now").click()
    expect(page.locator(".events").get_by_text("stacks-requested")).to_have_count(2)


def test_a_long_history_is_read_page_by_page(page: Page, submit: Submit, node: Agent, live_service: Live) -> None:
    submit(name="holder", resources={"gpus": 4})
    node.start()
    job = submit(name="restless")
    for _ in range(102):
        for action in ("hold", "release"):
            live_service.client.post(f"/api/v1/jobs/{job['id']}/{action}").raise_for_status()
    visit(page, f"/jobs/{job['number']}")
    events = page.get_by_role("region", name="Events")
    expect(events.get_by_role("listitem")).to_have_count(200)
    hold(page, "**/events?cursor=*", times=1)
    with page.expect_request("**/events?cursor=*"):
        events.get_by_role("button", name="Load more").click()
    # The list is read anew before the next page has come.
    with page.expect_request("**/events"):
        live_service.client.post(f"/api/v1/jobs/{job['id']}/hold").raise_for_status()
    expect(events.get_by_role("listitem")).to_have_count(206)
    expect(events.get_by_role("button", name="Load more")).to_be_hidden()
