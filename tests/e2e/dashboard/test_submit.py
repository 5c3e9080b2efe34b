"""A job submitted from the dashboard: by a form, by YAML, and by running one again with edits."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.dashboard.test_trust import signed_in
from tests.support.browser import visit
from tests.support.live import Live
from tests.support.scripted import Agent

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("lived_in")]
Submit = Callable[..., dict[str, Any]]


def yaml(page: Page) -> Locator:
    return page.get_by_label("Spec as YAML")


def plan(page: Page) -> Locator:
    """What would become of the job if it were submitted now."""
    return page.get_by_role("region", name="If it is submitted now")


def made(page: Page, service: Live) -> dict[str, Any]:
    """The job whose page is shown."""
    number = urlsplit(page.url).path.split("/")[2]
    return dict(service.client.get(f"/api/v1/jobs/{number}").raise_for_status().json())


def opened(page: Page) -> None:
    """The page of a new job, from the list of jobs."""
    page.get_by_role("link", name="New job").click()
    expect(page.get_by_role("heading", name="New job")).to_be_visible()
    expect(yaml(page)).to_have_value(re.compile("command: python train.py"))


@pytest.mark.usefixtures("home")
def test_a_job_is_submitted_by_the_form(page: Page, node: Agent, live_service: Live) -> None:
    opened(page)
    page.get_by_label("Name", exact=True).fill("by-form")
    page.get_by_label("GPUs", exact=True).fill("2")
    page.get_by_label("Priority", exact=True).select_option("high")
    page.get_by_label("Tags", exact=True).fill("baseline\nlong")
    page.get_by_text("Limits and retries").click()
    page.get_by_label("Time limit", exact=True).fill("4h")
    expect(yaml(page)).to_have_value(
        re.compile(r"name: by-form\n.*\n  gpus: 2\npriority: high\n.*time_limit: 4h", re.DOTALL)
    )
    expect(plan(page)).to_contain_text("GPU 0, 1")
    expect(plan(page)).to_contain_text("Start")
    page.get_by_role("button", name="Submit the job").click()
    expect(page.get_by_role("heading", name="by-form")).to_be_visible()
    job = made(page, live_service)
    assert job["spec"]["command"] == ["python", "train.py"]
    assert (job["spec"]["time_limit"], job["priority"], job["tags"]) == (4 * 3600, "high", ["baseline", "long"])


@pytest.mark.usefixtures("home")
def test_a_job_is_submitted_by_yaml_and_mistakes_are_told_where_they_are(
    page: Page, node: Agent, live_service: Live
) -> None:
    opened(page)
    yaml(page).fill("# mine\nname: by-yaml\ncommand: [train.py\nresources: {gpus: 9}\n")
    expect(page.get_by_text("nothing that was typed is lost")).to_contain_text(re.compile(r"Line \d"))
    expect(page.get_by_label("Name", exact=True)).to_be_disabled()
    expect(yaml(page)).to_have_value(re.compile("# mine\nname: by-yaml"))
    yaml(page).fill("# mine\nname: by-yaml\ncommand: [train.py]\nresources: {gpus: 9}\nmax_retries: -1\n")
    expect(page.get_by_label("Name", exact=True)).to_have_value("by-yaml")
    page.get_by_role("list", name="Problems").get_by_role("button", name="max_retries").click()
    retries = page.get_by_label("Max retries", exact=True)
    expect(retries).to_be_focused()
    expect(retries).to_have_attribute("aria-invalid", "true")
    expect(retries).to_have_accessible_description(re.compile("-1 is too small: the least is 0"))
    retries.fill("1")
    gpus = page.get_by_label("GPUs", exact=True)
    expect(gpus).to_have_accessible_description(re.compile("has 4 GPUs, the job needs 9"))
    expect(page.get_by_role("button", name="Submit the job")).to_be_disabled()
    gpus.fill("1")
    expect(plan(page)).to_contain_text("Place in the queue")
    expect(yaml(page)).to_have_value(re.compile("^# mine\n"))
    page.get_by_role("button", name="Submit the job").click()
    expect(page.get_by_role("heading", name="by-yaml")).to_be_visible()
    assert made(page, live_service)["spec"]["max_retries"] == 1


@pytest.mark.usefixtures("home")
def test_the_built_in_trainer_and_a_sweep_of_it(page: Page, node: Agent) -> None:
    opened(page)
    page.get_by_role("button", name="The built-in trainer").click()
    page.get_by_label("Optim", exact=True).select_option("sgd")
    page.get_by_label("Learning rate", exact=True).fill("0.05")
    expect(yaml(page)).to_have_value(re.compile("name: sgd\n +lr: 0.05"))
    page.get_by_text("Other jobs and sweeps").click()
    page.get_by_label("Parameters", exact=True).fill("lr: [0.1, 0.2]")
    expect(plan(page)).to_contain_text("2 trials")
    page.get_by_role("button", name="A command").click()
    expect(yaml(page)).to_have_value(re.compile("command: python train.py"))
    page.get_by_role("button", name="The built-in trainer").click()
    expect(plan(page)).to_contain_text("2 trials")
    page.get_by_role("button", name="Submit the job").click()
    expect(page).to_have_url(re.compile(r"/sweeps/\d+$"))


def test_a_job_is_run_again_with_edits(page: Page, node: Agent, live_service: Live, submit: Submit) -> None:
    first = submit(name="first", resources={"gpus": 4}, time_limit="2h", env={"LR": "0.1"})
    submit(name="ahead", resources={"gpus": 4}, time_limit="1h")
    node.start()
    visit(page, f"/jobs/{first['number']}")
    page.get_by_role("link", name="Rerun with edits").click()
    expect(page.get_by_role("heading", name=f"Rerun job {first['number']} with edits")).to_be_visible()
    expect(yaml(page)).to_have_value(re.compile("LR: "))
    changes = page.get_by_role("region", name=f"Changed since job {first['number']}")
    expect(changes).to_contain_text("The spec is that of")
    page.get_by_label("Name", exact=True).fill("second")
    expect(changes.get_by_role("definition")).to_have_text(["first second"])
    page.get_by_label("GPUs", exact=True).fill("2")
    page.get_by_text("Code and environment").click()
    page.get_by_label("Env", exact=True).fill("")
    expect(changes.get_by_role("definition")).to_have_text(["0.1 not set", "first second", "4 2"])
    expect(plan(page)).to_contain_text(re.compile("Start.*about", re.DOTALL))
    page.get_by_role("button", name="Submit the job").click()
    expect(page.get_by_text("the job before")).to_be_visible()
    page.get_by_role("tab", name="Spec").click()
    expect(changes.locator("dt")).to_have_text(["env.LR", "name", "resources.gpus"])
    again = made(page, live_service)
    assert (again["rerun_of"], again["spec"]["resources"]["gpus"], again["spec"]["env"]) == (first["id"], 2, {})
    assert again["spec"]["time_limit"] == 7200


@pytest.mark.usefixtures("home")
def test_the_palette_leads_to_it(page: Page) -> None:
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Commands")
    expect(palette.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("submit a job")
    option = palette.get_by_role("option", name="Submit a job")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New job")).to_be_visible()


def test_who_may_submit_nothing_is_offered_nothing(browser: Browser, live_service: Live, submit: Submit) -> None:
    job = submit()
    request = {"name": "reads", "scopes": ["read"]}
    token = live_service.client.post("/api/v1/tokens", json=request).raise_for_status().json()["secret"]
    with signed_in(browser, live_service.url, token) as page:
        expect(page.get_by_role("link", name="New job")).to_have_count(0)
        visit(page, f"/jobs/{job['number']}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("link", name="Rerun with edits")).to_have_count(0)
        page.goto("/submit")
        expect(page.get_by_text("You may look at jobs, but submit none")).to_be_visible()
        expect(yaml(page)).to_have_count(0)


@pytest.mark.usefixtures("home")
def test_it_fits_a_phone(page: Page, node: Agent) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page)
    page.get_by_label("GPUs", exact=True).fill("9")
    expect(page.get_by_role("list", name="Problems")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.get_by_role("button", name="Submit the job")).to_be_in_viewport(ratio=1)
