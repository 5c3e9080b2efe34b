"""What the dashboard tells of runs that hang, are preempted, or waste what they hold."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import delete, insert, select

from service import lifecycle
from service.db.models import Attempt, Job, WastedUsage
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import Agent
from torchyard.ids import now_us
from torchyard.states import StopReason
from torchyard.wire import Action, Frame, ProcessStack, StackDump, ThreadStack

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in")]
Submit = Callable[..., dict[str, Any]]
DAY_US = 86_400 * 1_000_000
HOUR_US = 3_600 * 1_000_000


def test_a_run_that_hangs_says_so_and_shows_its_stacks(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    job = submit(name="stuck", resources={"gpus": 2}, hang={"action": "show"})
    attempt = node.start()
    visit(page, f"/jobs/{job['number']}")
    expect(page.locator(".job-title")).to_contain_text("running")
    context = live_service.context
    with context.db.write() as tx:
        lifecycle.mark_hung(tx, attempt.id, now_us(), "hangs: no step for 7m, where it may take 5m", now_us())
    context.hub.notify(f"job:{job['id']}")
    stacks = page.get_by_role("region", name="Stacks")
    expect(stacks).to_contain_text("The run makes no step any more: it is taken for hanging.")
    expect(stacks).to_contain_text("Its stacks are on the way.")
    expect(page.get_by_role("region", name="Events")).to_contain_text("no step for 7m")
    [order] = node.orders().dumps
    frames = [Frame(function="exchange", file="train.py", line=31)]
    does: tuple[dict[str, str], ...] = ({"collective": "all_reduce", "place": "train.py:31"}, {"doing": "data loading"})
    ranks = [
        ProcessStack(pid=40 + rank, rank=rank, main=True, command="t", threads=[ThreadStack(frames=frames)], **what)
        for rank, what in enumerate(does)
    ]
    dump = StackDump(serial=order.serial, at_us=now_us(), processes=ranks)
    node.send("POST", f"attempts/{attempt.id}/stacks", content=dump.model_dump_json())
    expect(stacks).to_contain_text("Rank 0 waits in all_reduce (train.py:31); rank 1 is in data loading")
    expect(stacks).not_to_contain_text("on the way")
    with context.db.write() as tx:
        lifecycle.clear_hung(tx, attempt.id, now_us())
    context.hub.notify(f"job:{job['id']}")
    expect(stacks).not_to_contain_text("hanging")
    expect(stacks).to_contain_text("Rank 0 waits in all_reduce")


def test_wastes_are_listed_with_the_jobs_and_the_mend(
    page: Page, submit: Submit, node: Agent, live_service: Live
) -> None:
    day, numbers = now_us() // DAY_US, []
    for kind, hours in (("failed", 5), ("idle", 3), ("lost", 2), ("useful", 9)):
        job = submit(name=kind)
        numbers.append(job["number"])
        node.start().end()
        with live_service.context.db.write() as tx:
            tx.execute(delete(WastedUsage).where(WastedUsage.number.not_in(numbers[:-1])))
            wasted = {"day": day, "kind": kind, "number": job["number"], "gpu_us": hours * HOUR_US}
            user_id = tx.scalar(select(Job.user_id).where(Job.id == job["id"]))
            if kind != "useful":
                tx.execute(insert(WastedUsage).values(**wasted, user_id=user_id))
    visit(page, "/sharing")
    wastes = page.get_by_role("region", name="Biggest wastes")
    expect(wastes.locator(".waste-hours")).to_have_text(["5.0 h failed", "3.0 h idle", "2.0 h lost"])
    expect(wastes.get_by_role("listitem").first).to_contain_text("1 job of")
    expect(wastes.locator(".waste-jobs")).to_have_text([str(number) for number in numbers[:3]])
    wastes.get_by_role("link", name=str(numbers[1]), exact=True).click()
    expect(page.get_by_role("heading", name="idle")).to_be_visible()


def test_the_story_of_a_preempted_job(page: Page, submit: Submit, node: Agent, live_service: Live) -> None:
    policy = live_service.client.get("/api/v1/policy")
    changed = {**policy.json(), "min_run": 0}
    live_service.client.put("/api/v1/policy", json=changed, headers={"If-Match": policy.headers["ETag"]})
    old = submit(name="patient", resources={"gpus": 4}, priority="low")
    first = node.start()
    first.checkpoint(10, {"state.pt": b"ten"})
    visit(page, f"/jobs/{old['number']}")
    title, why, events = page.locator(".job-title"), page.get_by_role("region", name="Why"), page.locator(".events")
    expect(title).to_contain_text("running")
    new = submit(name="newcomer", resources={"gpus": 4}, priority="urgent")
    node.ordered(Action.CHECKPOINT)
    expect(why).to_contain_text(f"Saves its work, to be preempted for job {new['number']}")
    expect(events).to_contain_text("which is of a higher class: asked to write a checkpoint first")
    why.get_by_role("link").filter(has_text="newcomer").click()
    expect(page.get_by_role("heading", name="newcomer")).to_be_visible()
    expect(why).to_contain_text("waits for a preemption")
    expect(why).to_contain_text("saves its work, due by")
    expect(why).to_contain_text("Starts about")
    first.checkpoint(20, {"state.pt": b"twenty"})
    node.ordered(Action.STOP)
    first.end(stop=StopReason.PREEMPT, stopped_at_step=20)
    second = node.start()
    expect(title).to_contain_text("running")
    visit(page, f"/jobs/{old['number']}")
    expect(title).to_contain_text("queued")
    expect(why).to_contain_text(f"What happened to it before: preempted for job {new['number']}")
    expect(why.get_by_role("link").filter(has_text="newcomer")).to_be_visible()
    second.end()
    node.start()
    expect(title).to_contain_text("running")
    expect(why).to_contain_text("; it first started on")
    states = page.get_by_role("list", name="States").locator(".timeline-state")
    of_these = states.filter(has_text=re.compile("^(running|stopping|queued)$"))
    expect(of_these).to_have_text(["queued", "running", "stopping", "queued", "running"])
    with live_service.context.db.read() as tx:
        began = select(Attempt.resumed_from_step).where(Attempt.job_id == old["id"]).order_by(Attempt.number)
        assert list(tx.scalars(began)) == [None, 20]
