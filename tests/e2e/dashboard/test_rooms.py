"""Sign-in, the list of jobs, and the box."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import update

from service.db.models import Node
from tests.e2e.dashboard.lived_in import begin_session
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import GIB, Agent, agent
from torchyard.wire import DeviceKind

pytestmark = pytest.mark.browser
Submit = Callable[..., dict[str, Any]]

#: How long each animation goes on altogether, in ms.
ANIMATED = "() => document.getAnimations().map(each => each.effect.getComputedTiming().endTime)"


@pytest.mark.usefixtures("lived_in")
def test_a_token_signs_in_and_out(stranger: Page, live_service: Live) -> None:
    stranger.goto("/box")
    stranger.get_by_label("Token").fill("ty_wrong")
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("alert")).to_contain_text("unknown")
    stranger.get_by_label("Token").fill(live_service.admin_token)
    stranger.get_by_role("button", name="Sign in").click()
    expect(stranger.get_by_role("heading", name="The box")).to_be_visible()
    stranger.get_by_role("button", name="Sign out").click()
    expect(stranger.get_by_label("Token")).to_be_visible()
    assert stranger.context.cookies() == []


@pytest.mark.usefixtures("lived_in")
def test_a_session_that_ends_elsewhere_asks_to_sign_in(stranger: Page, live_service: Live) -> None:
    page = stranger
    begin_session(page, live_service)
    page.goto("/")
    expect(page.get_by_role("region", name="Jobs")).to_be_visible()
    page.get_by_role("combobox", name="Search").focus()
    page.context.clear_cookies()
    page.keyboard.type("anything")  # asks the service, unless the page has asked by itself and the field is gone
    expect(page.get_by_label("Token")).to_be_visible()


@pytest.mark.usefixtures("lived_in")
def test_a_sign_in_link_leaves_no_code_in_the_address(stranger: Page, live_service: Live) -> None:
    code = live_service.client.post("/api/v1/session/codes").raise_for_status().json()["code"]
    stranger.goto(f"/#login={code}")
    expect(stranger.get_by_role("heading", name="Jobs")).to_be_visible()
    assert "login" not in stranger.url


@pytest.mark.usefixtures("home")
def test_an_empty_yard_says_how_to_begin_and_fits_a_phone(page: Page, submit: Submit) -> None:
    jobs = page.get_by_role("region", name="Jobs")
    expect(jobs.get_by_text("yard run --gpus 1 -- python train.py")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("heading", name="No node has joined")).to_be_visible()
    expect(page.get_by_role("heading", name="Nothing has been submitted yet")).to_be_visible()
    page.wait_for_function("document.documentElement.scrollWidth <= 390")
    submit(name="first-light")
    expect(page.get_by_role("link", name="first-light", exact=True)).to_be_visible()
    expect(page.get_by_text("Nothing has been submitted yet")).to_be_hidden()


@pytest.mark.usefixtures("lived_in", "home")
def test_the_list_follows_what_happens(page: Page, submit: Submit, node: Agent) -> None:
    expect(page.get_by_role("group", name="State")).to_be_visible()
    job = submit(name="resnet")
    row = page.get_by_role("row").filter(has_text="resnet")
    expect(row).to_contain_text("assigned")
    attempt = node.start()
    expect(row).to_contain_text("running")
    attempt.report([1, 2, 3, 5], total_steps=10, val__accuracy=0.75, train__loss="nan")
    expect(row).to_contain_text("50 %")
    # What moves for ever costs a page that is left open a fifth of a core.
    assert all(lasting < 10_000 for lasting in page.evaluate(ANIMATED))
    expect(row).to_contain_text("0.75")
    expect(row).to_contain_text("nan")
    attempt.end()
    expect(row).to_contain_text("succeeded")
    expect(row).to_contain_text(str(job["number"]))
    expect(page.get_by_role("button", name=re.compile(r"^(Done|Succeeded) \d"))).to_be_visible()


@pytest.mark.usefixtures("home")
def test_filters_live_in_the_address_and_the_keyboard_walks_along_what_is_left(
    page: Page, submit: Submit, live_service: Live
) -> None:
    submit(name="alpha", tags=["baseline"])
    live_service.client.post("/api/v1/projects", json={"name": "vision"})
    submit(name="beta", project="vision")
    gone = submit(name="gamma")
    live_service.client.post(f"/api/v1/jobs/{gone['id']}/cancel").raise_for_status()
    names = page.locator("a.job-name")
    expect(names).to_have_count(3)
    page.get_by_role("button", name="Cancelled 1").click()
    expect(names).to_have_text(["gamma"])
    page.reload()
    expect(names).to_have_text(["gamma"])
    page.get_by_role("button", name="All 3").click()
    page.get_by_role("button", name="vision").click()
    expect(names).to_have_text(["beta"])
    page.wait_for_url(re.compile("q=project%3Avision"))
    page.get_by_role("combobox", name="Search").fill("")
    expect(names).to_have_count(3)
    page.get_by_role("heading", name="Jobs").click()
    page.keyboard.press("/")
    page.keyboard.type("alph")
    expect(names).to_have_text(["alpha"])
    page.get_by_role("combobox", name="Search").fill("nothing like it")
    page.get_by_role("button", name="Show all jobs").click()
    expect(names).to_have_count(3)
    page.get_by_role("button", name="baseline").click()
    expect(names).to_have_text(["alpha"])
    page.get_by_role("combobox", name="Search").fill("")
    expect(names).to_have_text(["alpha", "beta", "gamma"])
    page.get_by_role("table", name="Jobs").focus()
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="alpha", exact=True)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="gamma", exact=True)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="beta")).to_be_visible()


@pytest.mark.usefixtures("lived_in", "home")
def test_the_box_shows_who_holds_what(page: Page, submit: Submit, node: Agent, live_service: Live) -> None:
    holder = submit(name="holder", resources={"gpus": 2})
    node.start()
    submit(name="waiter", resources={"gpus": 4})
    node.sample({"gpu.0.utilization": 87.0, "gpu.0.memory_used": 40.0 * GIB, "cpu.percent": 12.0}, ago_s=2)
    node.sample({"gpu.0.utilization": 91.0, "gpu.0.memory_used": 40.0 * GIB, "cpu.percent": 12.0})
    page.get_by_role("link", name="The box").click()
    devices = page.locator(".device")
    expect(devices).to_have_count(4)
    for index in (0, 1):
        expect(devices.nth(index)).to_contain_text("holder")
        expect(devices.nth(index)).to_contain_text(holder["user"])
    expect(devices.nth(2)).to_contain_text("free")
    expect(devices.nth(0)).to_contain_text("91 %")
    expect(devices.nth(0)).to_contain_text("40.0 GiB of 80.0 GiB")
    expect(devices.nth(0).locator("svg.spark path").first).to_be_attached()
    expect(page.get_by_role("region", name="Queue")).to_contain_text("waiter")
    with live_service.context.db.write() as tx:
        tx.execute(update(Node).values(unreachable=True))
    visit(page, "/nowhere")
    page.get_by_role("link", name="The box").click()
    expect(devices.nth(2)).to_contain_text("no job has it")  # nothing starts there
    node.orders()
    devices.nth(0).get_by_role("link").click()
    expect(page.get_by_role("heading", name="holder")).to_be_visible()


@pytest.mark.usefixtures("home")
def test_a_box_without_gpus_speaks_of_its_cpu_slots(page: Page, submit: Submit, live_service: Live) -> None:
    with agent(live_service, devices=2, kind=DeviceKind.CPU_SLOT) as node:
        holder = submit(name="holder", resources={"gpus": 2})
        waiter = submit(name="waiter", resources={"gpus": 2})
        node.start().report([1], total_steps=9)
        main = page.locator("main")
        for path, words in (
            ("/", "CPU slots"),
            (f"/jobs/{holder['number']}", "CPU slots 0, 1"),
            (f"/jobs/{waiter['number']}", "2 CPU slots"),
            ("/box", "2 CPU slots"),
            ("/sharing", "CPU slots now"),
        ):
            visit(page, path)
            expect(main).to_contain_text(words)
            expect(main).not_to_contain_text("GPU")


@pytest.mark.usefixtures("lived_in", "home")
def test_an_administrator_drains_and_resumes(page: Page, submit: Submit, node: Agent) -> None:
    page.get_by_role("link", name="The box").click()
    page.get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog", name="Drain")
    dialog.get_by_label("Why").fill("new fan, back at 18:00")
    dialog.get_by_role("button", name="Drain").click()
    expect(dialog).to_be_hidden()
    expect(page.locator(".node-state")).to_have_text("draining")
    expect(page.locator(".node-notice")).to_have_text("Drains: new fan, back at 18:00")
    waiter = submit(name="waiter")
    visit(page, f"/jobs/{waiter['number']}")
    expect(page.locator("main")).to_contain_text(
        "takes no new jobs until an administrator resumes it (new fan, back at 18:00)"
    )
    visit(page, "/box")
    node.orders()
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".node-state")).to_have_text("online")


@pytest.mark.usefixtures("lived_in")
def test_the_theme_is_remembered(page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Use the light theme").click()
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
