"""People, tokens, secrets and projects: what administrators change, and what others see of it."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import insert, select

from service.db.models import Secret, SecretUse
from tests.support.browser import hold, visit
from tests.support.live import Live
from tests.support.scripted import Agent
from tests.support.wait import until

pytestmark = pytest.mark.browser
Submit = Callable[..., dict[str, Any]]


def sign_in(page: Page, live: Live, name: str, at: str = "/") -> None:
    """Signs the page in as another user, by a link that the administrator makes."""
    code = live.client.post(f"/api/v1/users/{name}/sign-in-codes").raise_for_status().json()["code"]
    page.goto(f"{at}#login={code}")
    expect(page.get_by_role("link", name=name)).to_be_visible()


def row(page: Page, name: str) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name))


@pytest.mark.usefixtures("home")
def test_a_sign_in_link_asks_whoever_is_signed_in(page: Page, live_service: Live) -> None:
    own = live_service.client.get("/api/v1/settings").json()["user"]["name"]
    live_service.client.post("/api/v1/users", json={"name": "ada"}).raise_for_status()
    code = live_service.client.post("/api/v1/users/ada/sign-in-codes").raise_for_status().json()["code"]
    page.goto(f"/#login={code}")
    page.get_by_role("button", name=f"Stay {own}").click()
    expect(page.get_by_text("this link signs in anew")).to_have_count(0)
    assert "login" not in page.url
    expect(page.get_by_role("link", name=own)).to_be_visible()
    page.goto(f"/jobs#login={code}")
    page.get_by_role("button", name="Sign in by the link").click()
    expect(page.get_by_role("link", name="ada")).to_be_visible()
    assert "login" not in page.url
    page.goto(f"/jobs#login={code}")
    page.get_by_role("button", name="Sign in by the link").click()
    expect(page.get_by_role("alert")).to_contain_text("used up")
    expect(page.get_by_role("button", name="Stay ada")).to_be_visible()


@pytest.mark.usefixtures("lived_in", "home")
def test_an_administrator_looks_after_people(page: Page, submit: Submit, node: Agent, live_service: Live) -> None:
    page.get_by_role("link", name="People").click()
    page.get_by_role("button", name="Add a user").click()
    page.get_by_label("Name").fill("ada")
    page.get_by_label("UNIX account").fill("ada")
    page.get_by_role("button", name="Add", exact=True).click()
    ada = row(page, "ada")
    expect(ada).to_contain_text("member")
    expect(ada).to_contain_text("never")
    page.get_by_role("button", name="Change ada").click()
    page.get_by_label("Role").select_option("viewer")
    page.get_by_role("button", name="Save").click()
    expect(ada).to_contain_text("viewer")
    page.get_by_role("button", name="Make a sign-in link for ada").click()
    page.get_by_role("button", name="Make the link").click()
    link = page.get_by_role("dialog").locator("code").inner_text()
    page.mouse.click(5, 5)
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_text(link)).to_have_count(0)
    opened = live_service.anonymous.post("/api/v1/session", json={"code": link.partition("#login=")[2]})
    assert opened.json()["name"] == "ada"
    page.get_by_role("button", name="Block ada").click()
    expect(page.get_by_role("dialog")).to_contain_text("There are no jobs that run or wait.")
    page.get_by_role("button", name="Block", exact=True).click()
    expect(ada).to_contain_text("blocked")
    page.get_by_role("button", name="Let in ada").click()
    page.get_by_role("button", name="Let in", exact=True).click()
    expect(page.get_by_role("button", name="Block ada")).to_be_visible()
    own = live_service.client.get("/api/v1/settings").json()["user"]["name"]
    submit(name="mine")
    node.start()
    page.reload()
    expect(row(page, own)).to_contain_text("you")
    expect(row(page, own).locator('[data-label="GPUs now"]')).to_have_text("1")
    expect(page.get_by_role("button", name=f"Block {own}")).to_have_count(0)


@pytest.mark.usefixtures("lived_in")
def test_tokens_and_secrets_are_ones_own(stranger: Page, submit: Submit, live_service: Live) -> None:
    page = stranger
    live_service.client.post("/api/v1/users", json={"name": "bea"}).raise_for_status()
    sign_in(page, live_service, "bea")
    expect(page.get_by_role("link", name="People")).to_have_count(0)
    page.get_by_role("link", name="bea").click()
    page.get_by_role("button", name="New token").click()
    expect(page.get_by_label("It may").locator("option")).to_have_count(2)
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Make it").click()
    first = page.get_by_role("dialog").locator("code").inner_text()
    assert first.startswith("ty_")
    page.get_by_role("button", name="Done").click()
    assert first not in page.content()
    page.get_by_role("button", name="Rotate laptop").click()
    page.get_by_role("button", name="Rotate", exact=True).click()
    second = page.get_by_role("dialog").locator("code").inner_text()
    page.get_by_role("button", name="Done").click()
    with live_service.as_token(first) as old, live_service.as_token(second) as new:
        assert (old.get("/api/v1/jobs").status_code, new.get("/api/v1/jobs").status_code) == (401, 200)
        page.get_by_role("button", name="Revoke laptop").click()
        page.get_by_role("button", name="Revoke", exact=True).click()
        expect(row(page, "laptop")).to_have_count(0)
        assert new.get("/api/v1/jobs").status_code == 401
    page.get_by_role("button", name="New secret").click()
    page.get_by_label("Name").fill("WANDB_API_KEY")
    page.get_by_label("Value").fill("hush-hush")
    page.get_by_role("button", name="Set it").click()
    expect(row(page, "WANDB_API_KEY")).to_contain_text("bea")
    expect(row(page, "WANDB_API_KEY")).to_contain_text("never")
    job = submit(name="logs-there")
    with live_service.context.db.write() as tx:
        tx.execute(insert(SecretUse).values(secret_id=select(Secret.id).scalar_subquery(), job_id=job["id"], used_us=1))
    page.reload()
    expect(row(page, "WANDB_API_KEY").get_by_role("link", name=str(job["number"]))).to_be_visible()
    assert "hush-hush" not in page.content()
    page.get_by_role("button", name="Replace WANDB_API_KEY").click()
    expect(page.get_by_label("Value")).to_have_value("")
    page.get_by_label("Value").fill("anew")
    page.get_by_role("button", name="Replace", exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Delete WANDB_API_KEY").click()
    page.get_by_role("button", name="Delete for good").click()
    expect(row(page, "WANDB_API_KEY")).to_have_count(0)


@pytest.mark.usefixtures("lived_in", "home")
def test_a_project_has_members_access_quotas_secrets_and_accounts(page: Page, live_service: Live) -> None:
    live_service.client.post("/api/v1/users", json={"name": "cleo"}).raise_for_status()
    page.get_by_role("link", name="Projects").click()
    page.get_by_role("button", name="New project").click()
    page.get_by_label("Name").fill("vision")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("link", name="vision").click()
    held = hold(page, "**/api/v1/projects/vision", times=1)
    with page.expect_request("**/api/v1/projects/vision"):
        page.get_by_label("Who submits").select_option("members")
    page.get_by_label("Jobs are read by").select_option("everyone")
    expect(page.get_by_label("Jobs are read by")).to_have_value("everyone")
    expect(page.get_by_label("Who submits")).to_have_value("members")
    held[0].continue_()
    page.get_by_label("Jobs start over").select_option("off")
    page.get_by_role("button", name="Add a member").click()
    page.get_by_label("User").select_option("cleo")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_label("Role of cleo").select_option("administrator")
    quotas = page.get_by_role("region", name="Quotas")
    quotas.get_by_role("button", name="Edit").click()
    page.get_by_label("Storage").fill("2TiB")
    page.get_by_role("button", name="Save").click()
    expect(quotas).to_contain_text("0 B of 2.0 TiB")
    quotas.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Storage")).to_have_value("2TiB")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New service account").click()
    page.get_by_label("Name").fill("ci")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="New token for ci").click()
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Make it").click()
    secret = page.get_by_role("dialog").locator("code").inner_text()
    page.get_by_role("button", name="Done").click()
    expect(row(page, "nightly")).to_be_visible()
    with live_service.as_token(secret) as program:
        assert program.get("/api/v1/settings").json()["user"]["name"] == "ci"

    def stored() -> tuple[Any, ...]:
        found = {each["name"]: each for each in live_service.client.get("/api/v1/projects").json()}["vision"]
        return found["submitters"], found["visibility"], found["restarts"], found["roles"].get("cleo")

    until(lambda: stored() == ("members", "everyone", False, "administrator"), what="each choice")


@pytest.mark.usefixtures("lived_in")
def test_each_role_is_shown_as_chosen_until_it_is_refused(page: Page, live_service: Live) -> None:
    for name in ("fay", "gus"):
        live_service.client.post("/api/v1/users", json={"name": name}).raise_for_status()
        live_service.client.put(f"/api/v1/projects/default/members/{name}").raise_for_status()
    visit(page, "/projects/default")
    fay, gus = page.get_by_label("Role of fay"), page.get_by_label("Role of gus")
    held = hold(page, "**/members/fay")
    with page.expect_request("**/members/fay"):
        fay.select_option("administrator")
    gus.select_option("administrator")
    for role in (fay, gus):
        expect(role).to_have_value("administrator")
    held[0].fulfill(status=409, json={"title": "Conflict", "status": 409, "detail": "not her"})
    expect(row(page, "fay").get_by_role("alert")).to_have_text("not her")
    expect(fay).to_have_value("member")
    expect(row(page, "gus").get_by_role("alert")).to_have_count(0)
    expect(gus).to_have_value("administrator")


@pytest.mark.usefixtures("lived_in")
def test_others_read_a_project_and_its_administrators_change_it(stranger: Page, live_service: Live) -> None:
    client = live_service.client
    for name in ("dora", "eve"):
        client.post("/api/v1/users", json={"name": name}).raise_for_status()
    client.put("/api/v1/projects/default/members/dora", json={"role": "administrator"}).raise_for_status()
    sign_in(stranger, live_service, "eve")
    stranger.goto("/projects/default")
    expect(stranger.get_by_role("region", name="Members")).to_contain_text("administrator")
    expect(stranger.get_by_role("button", name=re.compile("Add|Edit|New|Remove"))).to_have_count(0)
    expect(stranger.get_by_label("Who submits")).to_have_count(0)
    visit(stranger, "/people")
    expect(stranger.get_by_text("Administrators see here")).to_be_visible()
    stranger.get_by_role("button", name="Sign out").click()
    expect(stranger.get_by_label("Token")).to_be_visible()
    sign_in(stranger, live_service, "dora", at="/people")  # where it is already: nothing is loaded anew
    visit(stranger, "/projects/default")
    stranger.get_by_role("button", name="Add a member").click()
    stranger.get_by_label("User").select_option("eve")
    stranger.get_by_role("button", name="Add", exact=True).click()
    stranger.get_by_role("button", name="Remove eve").click()
    expect(stranger.get_by_role("dialog")).to_contain_text("Jobs that wait or run go on.")
    stranger.get_by_role("button", name="Remove", exact=True).click()
    expect(stranger.get_by_role("button", name="Remove eve")).to_have_count(0)
    expect(stranger.get_by_role("button", name=re.compile("Edit|New"))).to_have_count(0)
    expect(stranger.locator(".notice")).to_have_count(0)


@pytest.mark.usefixtures("lived_in", "home")
def test_an_administrator_pauses_and_announces(page: Page, live_service: Live) -> None:
    page.get_by_role("link", name="The box").click()
    page.get_by_role("button", name="Pause the queue").click()
    page.get_by_label("Why").fill("replacing a fan")
    page.get_by_role("button", name="Pause", exact=True).click()
    banner = page.locator(".announcement")
    expect(banner).to_contain_text("The queue is paused by")
    expect(banner).to_contain_text("replacing a fan")
    page.get_by_role("button", name="Announce").click()
    page.get_by_label("Announcement").fill("maintenance at 18:00")
    page.get_by_role("button", name="Announce", exact=True).last.click()
    expect(page.get_by_text("maintenance at 18:00")).to_be_visible()
    told = live_service.client.get("/api/v1/notices").json()
    assert (told["pause"]["message"], told["announcement"]["message"]) == ("replacing a fan", "maintenance at 18:00")
    page.get_by_role("button", name="Resume the queue").click()
    page.get_by_role("button", name="Withdraw it").click()
    expect(banner).to_have_count(0)
    assert live_service.client.get("/api/v1/notices").json() == {"pause": None, "announcement": None}
