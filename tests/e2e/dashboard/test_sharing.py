"""How the box is shared: usage, shares and quotas, reservations, policy, and what the box shows of it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import delete, insert, select

from service.accounting import usage
from service.api import publisher
from service.db.models import Forecast, OwnerUsage, Usage, User
from tests.support import box
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import Agent
from torchyard import home
from torchyard.ids import now_us

pytestmark = pytest.mark.browser
Submit = Callable[..., dict[str, Any]]
DAY_US = 86_400 * 1_000_000


def use(live: Live, **hours: float) -> None:
    """Charges GPU-hours of today to the administrator."""
    with live.context.db.write() as tx:
        user = tx.scalars(select(User.id).where(User.name == home.account_name())).one()
        for table in (Usage, OwnerUsage):
            tx.execute(delete(table))
        for kind, spent in hours.items():
            values = {"day": now_us() // DAY_US, "user_id": user, "project": "default", "kind": kind}
            usage.add(tx, [{**values, "gpu_us": round(spent * 3.6e9), "stoppable_us": 0}])


@pytest.mark.usefixtures("lived_in", "home")
def test_usage_tells_what_became_of_the_hours(page: Page, live_service: Live) -> None:
    use(live_service, useful=6, idle=3, failed=1)
    page.get_by_role("link", name="Sharing").click()
    usage = page.get_by_role("region", name="Usage")
    bar = usage.get_by_role("img")
    expect(bar).to_have_attribute("aria-label", "6.0 GPU-hours useful, 3.0 GPU-hours idle, 1.0 GPU-hours failed")
    expect(usage.locator(".usage-total")).to_have_text("10.0 h")
    expect(usage).to_contain_text("0 % of what was held could have been shared")
    usage.get_by_role("button", name="Projects").click()
    expect(usage.locator(".usage-of")).to_have_text("default")
    with page.expect_download() as download:
        usage.get_by_role("link", name="CSV").click()
    assert "default,6.0000,3.0000,1.0000,0.0000,10.0000" in download.value.path().read_text()
    usage.get_by_role("button", name="The week before").click()
    last = datetime.now(UTC) - timedelta(days=7)
    expect(usage.locator(".week")).to_contain_text(f"{last:%G-W%V}")
    expect(usage).to_contain_text("Nobody held a GPU.")


def test_a_policy_is_tried_on_what_has_run(page: Page, live_service: Live, node: Agent) -> None:
    db, came_us = live_service.context.db, now_us() - 3 * 86_400_000_000
    for name in ("ada", "bob"):
        box.add_user(db, name)
    long = box.add_ended(db, 4, came_us=came_us, ran_s=36_000)
    box.add_checkpoint(db, long, 1)
    box.add_ended(db, came_us=came_us + 3_600_000_000, ran_s=360, user="user-bob")
    page.goto("/sharing")
    page.get_by_role("button", name="What if").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="First come").click()
    dialog.get_by_label("Preemption", exact=False).first.uncheck()
    dialog.get_by_label("Time slice").fill("")
    dialog.get_by_label("Jobs of").select_option("the last week")
    dialog.get_by_role("button", name="Play").click()
    came = dialog.get_by_role("region", name="What came of it")
    expect(came).to_contain_text("2 jobs on 4 GPUs")
    bob = came.get_by_role("row", name="bob")
    expect(bob.get_by_role("cell").last).to_have_text("9h 00m")
    expect(bob.get_by_role("cell").first).not_to_have_text("9h 00m")
    expect(came.get_by_role("row", name="Jobs stopped for others").get_by_role("cell").last).to_have_text("0")
    shown = live_service.client.get("/api/v1/policy").json()
    assert (shown["order"], shown["time_slice"]) == ("fair", 60), "nothing is set"


@pytest.mark.usefixtures("lived_in")
def test_an_administrator_sets_quotas_and_policy(page: Page, live_service: Live) -> None:
    visit(page, "/sharing")
    name = live_service.client.get("/api/v1/settings").json()["user"]["name"]
    page.get_by_role("button", name=f"Edit quotas of user {name}").click()
    page.get_by_label("GPUs at once").fill("3")
    page.get_by_label("Weight").fill("2.5")
    page.get_by_role("button", name="Save").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))
    expect(row).to_contain_text("0 of 3")
    expect(row).to_contain_text("2.5")
    policy = page.get_by_role("region", name="Policy")
    policy.get_by_role("button", name="Edit").click()
    page.get_by_label("Usage halves after").fill("nonsense")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    page.get_by_label("Usage halves after").fill("3d")
    page.get_by_label("Time slice").fill("")
    page.get_by_label("Preemption", exact=False).first.uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(policy).to_contain_text("Usage halves after3d")
    stored = live_service.client.get("/api/v1/policy").json()
    assert (stored["half_life"], stored["time_slice"], stored["preemption"]) == (3 * 86400, None, False)


@pytest.mark.usefixtures("lived_in")
def test_who_is_no_administrator_reads(stranger: Page, live_service: Live) -> None:
    admin = live_service.client
    admin.post("/api/v1/users", json={"name": "mira"}).raise_for_status()
    asked = {"name": "browser", "scopes": ["read", "submit"], "user": "mira"}
    token = admin.post("/api/v1/tokens", json=asked).raise_for_status().json()["secret"]
    stranger.goto("/sharing")
    stranger.get_by_label("Token").fill(token)
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("rowheader", name="mira")).to_be_visible()
    expect(stranger.get_by_role("region", name="Policy")).to_contain_text("Backfill")
    for name in ("Edit", "Reserve"):
        expect(stranger.get_by_role("button", name=name)).to_have_count(0)


@pytest.mark.usefixtures("lived_in")
def test_a_reservation_is_made_shown_on_the_box_and_given_back(
    page: Page, node: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(publisher.EVERY_S, "nodes", 0.25)  # pages are told of the node twice
    visit(page, "/sharing")
    expect(page.get_by_role("region", name="Reservations")).to_contain_text("Nothing is reserved.")
    page.get_by_role("button", name="Reserve").click()
    page.get_by_label("Name").fill("driver update")
    page.get_by_role("button", name="Maintenance").click()
    page.get_by_label("Whole nodes").fill("nowhere")
    page.get_by_label("To", exact=True).fill((datetime.now() + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M"))
    page.get_by_role("button", name="Reserve it").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("nowhere")
    visit(page, "/box")
    name = page.locator(".node h2").inner_text()
    visit(page, "/sharing")
    page.get_by_role("button", name="Reserve").click()
    page.get_by_label("Name").fill("driver update")
    page.get_by_role("button", name="Maintenance").click()
    page.get_by_label("Whole nodes").fill(name)
    page.get_by_label("To", exact=True).fill((datetime.now() + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M"))
    page.get_by_role("button", name="Reserve it").click()
    reservations = page.get_by_role("region", name="Reservations")
    expect(reservations).to_contain_text(f"Node {name} out of use")
    page.get_by_role("link", name="The box").click()
    node.orders()
    expect(page.get_by_role("region", name="Reserved")).to_contain_text("driver update")
    expect(page.locator(".node-notice")).to_contain_text("Drains for the maintenance driver update")
    page.get_by_role("link", name="Sharing").click()
    page.get_by_role("button", name="Cancel reservation driver update").click()
    page.get_by_role("button", name="Cancel the reservation").click()
    expect(reservations).to_contain_text("Nothing is reserved.")


@pytest.mark.usefixtures("lived_in")
def test_the_calendar_shows_and_changes_what_is_reserved(page: Page, node: Agent, live_service: Live) -> None:
    begins = datetime.now(UTC) + timedelta(days=1)
    span = {"starts_at": begins.isoformat(), "ends_at": (begins + timedelta(days=2)).isoformat()}
    asked = {"name": "new disks", "maintenance": True, "nodes": [home.node_name()], **span}
    live_service.client.post("/api/v1/reservations", json=asked).raise_for_status()
    page.goto("/calendar")
    row = page.get_by_role("group", name=f"Node {home.node_name()}")
    bar = row.get_by_role("button", name="Change new disks")
    bar.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Whole nodes")).to_have_value(home.node_name())
    dialog.get_by_label("Name").fill("newer disks")
    page.get_by_role("button", name="Change it").click()
    expect(row).to_contain_text("newer disks")
    kept = live_service.client.get("/api/v1/reservations").json()[0]
    assert kept["starts_at"].startswith(begins.isoformat()[:19])
    page.get_by_role("button", name="A week later").click()
    page.get_by_role("button", name="Reserve on ").last.click()
    expect(dialog.get_by_label("From")).not_to_have_value("")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="This week").click()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(row).to_be_hidden()
    page.get_by_role("button", name="Cancel reservation newer disks").click()
    page.get_by_role("button", name="Cancel the reservation").click()
    expect(page.locator("main")).to_contain_text("Nothing is reserved in these two weeks.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.usefixtures("lived_in", "home")
def test_forecasts_are_judged(page: Page, submit: Submit, node: Agent, live_service: Live) -> None:
    job = submit(name="done")
    node.start().end()
    expect(page.get_by_role("row").filter(has_text="done")).to_contain_text("succeeded")
    values = {"key": "p/u/k", "source": "limit", "made_us": now_us(), "ended_us": now_us(), "actual_us": 60_000_000}
    points = {f"{raw}{name}_us": 75_000_000 for name in ("p10", "p50", "p90") for raw in ("", "raw_")}
    with live_service.context.db.write() as tx:
        tx.execute(delete(Forecast))
        tx.execute(insert(Forecast).values(job_id=job["id"], **values, **points))
    visit(page, "/sharing")
    row = page.get_by_role("row").filter(has_text="The time limit")
    expect(row.get_by_role("img").nth(1)).to_have_attribute("aria-label", "100 %, ideally 50 %")
    expect(row).to_contain_text("25 %")


def test_the_box_tells_of_labels_offenders_sharers_and_starts(page: Page, submit: Submit, node: Agent) -> None:
    node.offenders = ["pid 71 of eve computes on GPU 3, which the queue has given to nobody"]
    node.register(labels=["nvlink-pool"])
    for name in ("left", "right"):
        submit(name=name, resources={"gpus": 1, "gpu_share": "20GiB"}, time_limit="1h")
        node.start()
    submit(name="all-of-it", resources={"gpus": 4}, time_limit="1h")
    page.goto("/box")
    expect(page.locator(".labels")).to_have_text("nvlink-pool")
    expect(page.locator(".offender")).to_have_text(
        "Pid 71 of eve computes on GPU 3, which the queue has given to nobody"
    )
    shared = page.locator(".device").filter(has_text="left")
    expect(shared.locator(".car")).to_contain_text(["left20.0 GiB", "right20.0 GiB"])
    waiting = page.locator(".queue li").filter(has_text="all-of-it")
    expect(waiting).to_contain_text("held by job 1")
    expect(waiting.locator(".queue-when")).to_contain_text("starts about")
