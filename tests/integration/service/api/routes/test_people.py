"""Users, tokens, projects, sessions and the guard, over real HTTP on both databases."""

import stat
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from sqlalchemy import select, update

from service.api.auth import cookie_name
from service.db.models import Audit, Token, User
from service.identity import callers
from service.identity.sign_in_limits import GLOBALLY, PER_ADDRESS, WINDOW_S
from tests.support.live import Live, connect
from tests.support.problems import kind
from tests.support.specs import spec
from torchyard import home

API = "/api/v1"


def token(live: Live, *scopes: str, **fields: Any) -> dict[str, Any]:
    answer = live.client.post(f"{API}/tokens", json={"name": "test", "scopes": list(scopes), **fields})
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return dict(answer.json())


def test_without_a_token_nothing_is_told(live_service: Live) -> None:
    for headers in ({}, {"Authorization": "Bearer ty_wrong"}, {"Authorization": "Basic eDp5"}):
        for method, path in (("GET", "/jobs"), ("POST", "/jobs"), ("GET", "/settings"), ("POST", "/tokens")):
            answer = live_service.anonymous.request(method, API + path, headers=headers, json=spec())
            assert kind(answer) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"


def test_scopes_are_kept(live_service: Live) -> None:
    secret = token(live_service, "read")["secret"]
    assert secret.startswith("ty_")
    assert len(secret) > 40
    with live_service.as_token(secret) as reader:
        assert reader.get(f"{API}/jobs").status_code == 200
        assert kind(reader.post(f"{API}/jobs", json=spec())) == (403, "forbidden")
        assert kind(reader.post(f"{API}/users", json={"name": "eve"})) == (403, "forbidden")
        assert kind(reader.post(f"{API}/tokens", json={"name": "x", "scopes": ["submit"]})) == (403, "forbidden")
        assert kind(reader.get(f"{API}/audit")) == (403, "forbidden")
        assert kind(reader.get(f"{API}/tokens", params={"all": "true"})) == (403, "forbidden")
    with live_service.as_token(live_service.node_token) as node:
        assert kind(node.get(f"{API}/jobs")) == (403, "forbidden")
        assert kind(node.post(f"{API}/tokens", json={"name": "x", "scopes": ["read"]})) == (403, "forbidden")
    assert live_service.client.get(f"{API}/jobs").json()["items"] == []


def test_users_have_tokens_of_their_own(live_service: Live) -> None:
    made = live_service.client.post(f"{API}/users", json={"name": "ada", "unix_user": "ada"})
    assert (made.status_code, made.json()["unix_user"]) == (201, "ada")
    assert kind(live_service.client.post(f"{API}/users", json={"name": "ada"})) == (409, "conflict")
    assert "ada" in [user["name"] for user in live_service.client.get(f"{API}/users").json()]
    ada = token(live_service, "submit", user="ada")
    live_service.client.put(f"{API}/projects/default/members/ada")
    too_much = {"name": "x", "scopes": ["admin"], "user": "ada"}
    assert kind(live_service.client.post(f"{API}/tokens", json=too_much)) == (403, "forbidden")
    with live_service.as_token(ada["secret"]) as client:
        settings = client.get(f"{API}/settings").json()
        assert (settings["user"]["name"], settings["scopes"]) == ("ada", ["read", "submit"])
        job = client.post(f"{API}/jobs", json=spec()).json()
        assert job["user"] == "ada"
        assert [t["id"] for t in client.get(f"{API}/tokens").json()] == [ada["id"]]
        other = live_service.client.post(f"{API}/jobs", json=spec()).json()
        for action in ("cancel", "hold", "checkpoint"):
            assert kind(client.post(f"{API}/jobs/{other['id']}/{action}")) == (403, "forbidden")
        urgent = client.post(f"{API}/jobs", json=spec(priority="urgent"))
        assert kind(urgent) == (403, "forbidden")
        assert urgent.json()["errors"][0]["field"] == "priority"
        nowhere = client.post(f"{API}/jobs", json=spec(project="nowhere"))
        assert nowhere.json()["errors"][0]["field"] == "project"
        assert kind(client.delete(f"{API}/tokens/{token(live_service, 'read')['id']}")) == (404, "not-found")
        assert client.post(f"{API}/jobs/{other['id']}/rerun").json()["user"] == "ada"
    assert live_service.client.post(f"{API}/jobs/{job['id']}/cancel").json()["state"] == "cancelled"


def test_a_revoked_token_ends_at_once(live_service: Live) -> None:
    made = token(live_service, "read")
    with live_service.as_token(made["secret"]) as client:
        assert client.get(f"{API}/jobs").status_code == 200
        assert live_service.client.delete(f"{API}/tokens/{made['id']}").status_code == 204
        assert kind(client.get(f"{API}/jobs")) == (401, "unauthorized")
    assert kind(live_service.client.delete(f"{API}/tokens/{made['id']}")) == (404, "not-found")
    with live_service.context.db.read() as tx:
        assert made["secret"] not in str(tx.execute(select(Token.__table__)).all())
        assert {"token.create", "token.revoke"} <= set(tx.scalars(select(Audit.action)))
    entries = live_service.client.get(f"{API}/audit", params={"limit": 1}).json()
    assert entries["items"][0]["action"] == "token.revoke"
    rest = live_service.client.get(f"{API}/audit", params={"cursor": entries["next"]}).json()
    assert rest["items"][0]["action"] == "token.create"


def test_an_expired_token_ends(live_service: Live) -> None:
    made = token(live_service, "read", expires_in="1h")
    with live_service.as_token(made["secret"]) as client:
        assert client.get(f"{API}/jobs").status_code == 200
        with live_service.context.db.write() as tx:
            tx.execute(update(Token).where(Token.id == made["id"]).values(expires_us=1))
        live_service.app.state.tokens.forget()
        assert kind(client.get(f"{API}/jobs")) == (401, "unauthorized")
    assert kind(live_service.client.post(f"{API}/tokens", json={"name": "x", "scopes": ["read"], "expires_in": 0})) == (
        422,
        "invalid-request",
    )


def test_the_last_use_is_written_rarely(live_service: Live) -> None:
    made = token(live_service, "read")
    digest = callers.hash_secret(made["secret"])
    tokens = live_service.app.state.tokens
    seen = []
    for _ in range(2):
        tokens.forget()
        assert tokens.find(digest)
        with live_service.context.db.read() as tx:
            seen.append(tx.scalar(select(Token.last_used_us).where(Token.id == made["id"])))
    assert seen[0] is not None
    assert seen[0] == seen[1]


def test_tokens_of_nodes(live_service: Live) -> None:
    made = token(live_service, "node", node="box-2")
    assert (made["node"], made["scopes"]) == ("box-2", ["node"])
    for wrong in ({"scopes": ["node"]}, {"scopes": ["node", "read"], "node": "x"}, {"scopes": ["read"], "node": "x"}):
        answer = live_service.client.post(f"{API}/tokens", json={"name": "x", **wrong})
        assert kind(answer) == (422, "invalid-request")
    assert kind(live_service.client.post(f"{API}/tokens", json={"name": "x", "scopes": ["root"]}))[0] == 422


def set_user(live: Live, name: str, **changes: Any) -> httpx.Response:
    return live.client.patch(f"{API}/users/{name}", json=changes)


def test_nobody_is_given_root(live_service: Live) -> None:
    """Whose jobs run as root are administrators of the machine; the account of the first start is what it is."""
    refused = live_service.client.post(f"{API}/users", json={"name": "eve", "unix_user": "root"})
    assert kind(refused) == (422, "invalid-request")
    assert "unix_user: no jobs run as root for somebody" in refused.json()["detail"]
    live_service.client.post(f"{API}/users", json={"name": "eve", "unix_user": "eve"})
    assert kind(set_user(live_service, "eve", unix_user="root")) == (422, "invalid-request")
    accounts = {each["name"]: each["unix_user"] for each in live_service.client.get(f"{API}/users").json()}
    assert accounts["eve"] == "eve"


def test_users_are_changed(live_service: Live) -> None:
    live_service.client.post(f"{API}/users", json={"name": "ada"})
    made = set_user(live_service, "ada", admin=True, unix_user="ada")
    assert (made.status_code, made.json()["admin"], made.json()["unix_user"]) == (200, True, "ada")
    admin = token(live_service, "admin", user="ada")
    reader = token(live_service, "read", user="ada")
    with live_service.as_token(admin["secret"]) as client, live_service.as_token(reader["secret"]) as reading:
        assert client.get(f"{API}/audit").status_code == 200
        left = set_user(live_service, "ada", admin=False).json()
        assert (left["admin"], left["unix_user"]) == (False, "ada")
        assert kind(client.get(f"{API}/audit")) == (401, "unauthorized"), "tokens that may too much end"
        assert reading.get(f"{API}/jobs").status_code == 200
    assert set_user(live_service, "ada", unix_user=None).json()["unix_user"] is None
    assert kind(set_user(live_service, "nobody", admin=True)) == (404, "not-found")
    for wrong in ({"unix_user": "Root!"}, {"id": "x"}, {"active": "perhaps"}, {"admin": None}):
        assert kind(set_user(live_service, "ada", **wrong)) == (422, "invalid-request")


def test_who_leaves_reaches_nothing_and_leaves_jobs(live_service: Live) -> None:
    live_service.client.post(f"{API}/users", json={"name": "ada"})
    secret = token(live_service, "submit", user="ada")["secret"]
    with live_service.as_token(secret) as client, connect(live_service.url, None) as browser:
        job = client.post(f"{API}/jobs", json=spec()).json()
        sign_in(live_service, browser, token=secret)
        code = client.post(f"{API}/session/codes").json()["code"]
        with browser.stream("GET", f"{API}/stream") as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": ping"
            assert live_service.client.delete(f"{API}/users/ada").status_code == 204
            live_service.client.post(f"{API}/jobs", json=spec())
            assert not [line for line in lines if line.startswith("event")], "nothing is told any more"
        assert kind(client.get(f"{API}/jobs")) == (401, "unauthorized")
        assert kind(browser.get(f"{API}/jobs")) == (401, "unauthorized")
        assert kind(sign_in(live_service, browser, code=code)) == (401, "unauthorized")
    assert live_service.client.get(f"{API}/jobs/{job['id']}").json()["user"] == "ada"
    refused = live_service.client.post(f"{API}/tokens", json={"name": "x", "scopes": ["read"], "user": "ada"})
    assert refused.json()["errors"][0]["field"] == "user"
    assert [user["active"] for user in live_service.client.get(f"{API}/users").json() if user["name"] == "ada"] == [
        False
    ]
    assert live_service.client.delete(f"{API}/users/ada").status_code == 204
    assert set_user(live_service, "ada", active=True).json()["active"] is True
    with live_service.as_token(secret) as client:
        assert kind(client.get(f"{API}/jobs")) == (401, "unauthorized"), "old tokens stay ended"
    with live_service.as_token(token(live_service, "submit", user="ada")["secret"]) as client:
        assert client.get(f"{API}/jobs").status_code == 200


def test_somebody_stays_to_administrate_and_nodes_go_on(live_service: Live) -> None:
    first = live_service.client.get(f"{API}/settings").json()["user"]["name"]
    for change in ({"admin": False}, {"active": False}):
        assert kind(set_user(live_service, first, **change)) == (409, "conflict")
    assert kind(live_service.client.delete(f"{API}/users/{first}")) == (409, "conflict")
    live_service.client.post(f"{API}/users", json={"name": "ada", "admin": True})
    secret = token(live_service, "admin", user="ada")["secret"]
    assert live_service.client.delete(f"{API}/users/{first}").status_code == 204
    assert kind(live_service.client.get(f"{API}/jobs")) == (401, "unauthorized")
    with live_service.as_token(secret) as ada, live_service.as_token(live_service.node_token) as node:
        assert kind(ada.delete(f"{API}/users/ada")) == (409, "conflict")
        assert kind(node.get(f"{API}/jobs")) == (403, "forbidden"), "a node's token is not its maker's own"
        assert "ada" in [each["user"] for each in ada.get(f"{API}/tokens").json() if each["node"]]


def test_two_administrators_cannot_remove_each_other_at_the_same_time(live_service: Live) -> None:
    first = live_service.client.get(f"{API}/settings").json()["user"]["name"]
    live_service.client.post(f"{API}/users", json={"name": "ada", "admin": True})
    secret = token(live_service, "admin", user="ada")["secret"]
    with live_service.as_token(secret) as ada, ThreadPoolExecutor(2) as threads:
        ends = [(ada, first), (live_service.client, "ada")]
        answers = list(threads.map(lambda end: end[0].delete(f"{API}/users/{end[1]}").status_code, ends))
        assert answers.count(204) == 1
        assert set(answers) <= {204, 401, 409}
    with live_service.context.db.read() as tx:
        assert (
            len(list(tx.scalars(select(User.id).where(User.role == "administrator", User.deactivated_us.is_(None)))))
            == 1
        )


def test_projects(live_service: Live) -> None:
    assert live_service.client.post(f"{API}/projects", json={"name": "vision"}).status_code == 201
    assert kind(live_service.client.post(f"{API}/projects", json={"name": "vision"})) == (409, "conflict")
    assert kind(live_service.client.post(f"{API}/projects", json={"name": "../x"}))[0] == 422
    assert live_service.client.post(f"{API}/jobs", json=spec(project="nlp")).json()["project"] == "nlp"
    names = [project["name"] for project in live_service.client.get(f"{API}/projects").json()]
    assert names == ["default", "nlp", "vision"]


def sign_in(live: Live, browser: httpx.Client, **body: str) -> httpx.Response:
    return browser.post(f"{API}/session", json=body, headers={"Origin": live.url})


def test_the_dashboard_signs_in_with_a_token_and_out(live_service: Live) -> None:
    name = cookie_name(live_service.context.installation)
    with connect(live_service.url, None) as browser:
        answer = sign_in(live_service, browser, token=live_service.admin_token)
        assert answer.status_code == 201
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(name)
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert live_service.admin_token not in cookie
        assert browser.get(f"{API}/jobs").status_code == 200
        origin = {"Origin": live_service.url}
        assert browser.post(f"{API}/jobs", json=spec(), headers=origin).status_code == 201
        kept = browser.cookies[name]
        assert browser.delete(f"{API}/session", headers=origin).status_code == 204
        assert name not in browser.cookies
        browser.cookies.set(name, kept)
        assert kind(browser.get(f"{API}/jobs")) == (401, "unauthorized")
    assert live_service.client.get(f"{API}/jobs").status_code == 200


def test_another_sites_page_changes_nothing(live_service: Live) -> None:
    with connect(live_service.url, None) as browser:
        sign_in(live_service, browser, token=live_service.admin_token)
        for headers in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
            answer = browser.post(f"{API}/jobs", json=spec(), headers=headers)
            assert kind(answer) == (403, "forbidden")
        assert browser.get(f"{API}/jobs").json()["items"] == []


def test_a_code_signs_in_once(live_service: Live) -> None:
    made = live_service.client.post(f"{API}/session/codes")
    assert made.status_code == 201
    code = made.json()["code"]
    with connect(live_service.url, None) as browser:
        assert sign_in(live_service, browser, code=code).status_code == 201
        assert browser.get(f"{API}/settings").status_code == 200
    with connect(live_service.url, None) as browser:
        assert kind(sign_in(live_service, browser, code=code)) == (401, "unauthorized")
        assert kind(sign_in(live_service, browser, token="ty_wrong")) == (401, "unauthorized")
        assert kind(sign_in(live_service, browser)) == (422, "invalid-request")
        assert kind(sign_in(live_service, browser, token=live_service.node_token)) == (403, "forbidden")
    assert kind(live_service.anonymous.post(f"{API}/session/codes")) == (401, "unauthorized")


def test_guesses_are_slowed_and_right_secrets_never_are(live_service: Live) -> None:
    code = live_service.client.post(f"{API}/session/codes").json()["code"]
    for number in range(GLOBALLY):  # of a stranger with many addresses, who guesses from this one, too
        live_service.app.state.sign_in_limits.begin(f"10.0.0.{number}")
    with connect(live_service.url, None) as browser:
        for guess in ({"code": "guess"}, {"token": "ty_guess"}) * PER_ADDRESS:
            slowed = sign_in(live_service, browser, **guess)
        assert kind(slowed) == (429, "too-many-requests")
        assert 1 <= int(slowed.headers["retry-after"]) <= WINDOW_S
        assert sign_in(live_service, browser, token=live_service.admin_token).status_code == 201
        assert sign_in(live_service, browser, code=code).status_code == 201
        assert kind(sign_in(live_service, browser, code=code)) == (429, "too-many-requests"), "it counts once"
        assert sign_in(live_service, browser, token=live_service.admin_token).status_code == 201
    assert live_service.client.get(f"{API}/jobs").status_code == 200


def test_what_opens_no_session_is_no_guess(live_service: Live) -> None:
    with connect(live_service.url, None) as browser:
        for _ in range(PER_ADDRESS + 1):
            assert kind(sign_in(live_service, browser, token=live_service.node_token)) == (403, "forbidden")
            assert kind(sign_in(live_service, browser)) == (422, "invalid-request")
        assert kind(sign_in(live_service, browser, code="guess")) == (401, "unauthorized")


def test_a_revoked_token_takes_its_sessions_along(live_service: Live) -> None:
    made = token(live_service, "read")
    with connect(live_service.url, None) as browser:
        sign_in(live_service, browser, token=made["secret"])
        assert browser.get(f"{API}/jobs").status_code == 200
        live_service.client.delete(f"{API}/tokens/{made['id']}")
        assert kind(browser.get(f"{API}/jobs")) == (401, "unauthorized")


def test_strange_hosts_are_refused(live_service: Live) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost@evil.example"):
        answer = live_service.anonymous.get("/healthz", headers={"Host": host})
        assert kind(answer) == (421, "unknown-host"), host
    port = live_service.url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"[::1]:{port}", "LOCALHOST"):
        assert live_service.anonymous.get("/healthz", headers={"Host": host}).status_code == 200


def test_every_answer_has_security_headers(live_service: Live) -> None:
    for path in ("/", "/healthz", f"{API}/jobs", f"{API}/nothing", "/openapi.json"):
        headers = live_service.anonymous.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
    assert live_service.client.get(f"{API}/jobs").headers["cache-control"] == "private, no-cache"


def test_unknown_paths_and_methods_are_problems(live_service: Live) -> None:
    assert kind(live_service.client.get(f"{API}/nothing")) == (404, "not-found")
    assert kind(live_service.client.post(f"{API}/nothing")) == (404, "not-found")
    assert kind(live_service.client.delete(f"{API}/jobs")) == (405, "method-not-allowed")
    assert kind(live_service.client.post("/")) == (404, "not-found")
    broken = live_service.client.post(f"{API}/users", content="{", headers={"Content-Type": "application/json"})
    assert kind(broken) == (422, "invalid-request")
    missing = live_service.client.post(f"{API}/users", json={})
    assert missing.json()["errors"] == [
        {"field": "name", "message": "required, but absent: add it", "code": "missing", "params": {}}
    ]
    unknown = live_service.client.post(f"{API}/users", json={"name": "x", "admn": True})
    assert unknown.json()["errors"][0]["field"] == "admn"


def test_metrics_and_description(live_service: Live) -> None:
    assert "torchyard_" in live_service.client.get("/metrics").text
    assert kind(live_service.anonymous.get("/metrics")) == (401, "unauthorized")
    assert live_service.anonymous.get("/openapi.json").json()["openapi"].startswith("3.1")


def test_a_token_is_rotated(live_service: Live) -> None:
    """The new one counts at once; the old one ends at once, or after the grace, with the sessions that it opened."""
    old = token(live_service, "read", expires_in="30d")
    with live_service.as_token(old["secret"]) as client, connect(live_service.url, None) as browser:
        sign_in(live_service, browser, token=old["secret"])
        answer = client.post(f"{API}/tokens/{old['id']}/rotate", json={"grace": "1h"})
        assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
        new = answer.json()
        assert {new[name] == old[name] for name in ("name", "user", "scopes", "node")} == {True}
        assert new["expires_at"] == old["expires_at"], "a token makes none that outlives it"
        assert client.get(f"{API}/jobs").status_code == browser.get(f"{API}/jobs").status_code == 200
        live_service.app.state.tokens.forget()
        now = live_service.context.now_us()
        with live_service.context.db.read() as tx:
            left = set(
                tx.scalars(select(Token.expires_us).where((Token.id == old["id"]) | (Token.parent_id == old["id"])))
            )
        assert len(left) == 1
        assert now < left.pop() <= now + 3600 * 1_000_000
        with live_service.context.db.write() as tx:  # the hour passes
            ended = update(Token).where((Token.id == old["id"]) | (Token.parent_id == old["id"]))
            tx.execute(ended.values(expires_us=now))
        live_service.app.state.tokens.forget()
        assert kind(client.get(f"{API}/jobs")) == (401, "unauthorized")
        assert kind(browser.get(f"{API}/jobs")) == (401, "unauthorized")
    with live_service.as_token(new["secret"]) as client:
        assert client.get(f"{API}/jobs").status_code == 200
        newest = live_service.client.post(f"{API}/tokens/{new['id']}/rotate").json()
        assert newest["expires_at"] > new["expires_at"], "as long as before, from now on"
        assert kind(client.get(f"{API}/jobs")) == (401, "unauthorized")
    assert kind(live_service.client.post(f"{API}/tokens/{new['id']}/rotate")) == (404, "not-found")
    with live_service.as_token(newest["secret"]) as client:
        mine = live_service.client.get(f"{API}/tokens").json()[0]["id"]
        assert kind(client.post(f"{API}/tokens/{mine}/rotate")) == (403, "forbidden"), "one that may more"


def test_the_files_of_the_home_follow_a_rotation(live_service: Live) -> None:
    for name, file in (("administrator", home.admin_token_file()), ("embedded worker", home.node_token_file())):
        with live_service.as_token(home.admin_token_file().read_text().strip()) as client:
            old = next(each for each in client.get(f"{API}/tokens").json() if each["name"] == name)
            secret = client.post(f"{API}/tokens/{old['id']}/rotate").json()["secret"]
        assert file.read_text().strip() == secret
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_session_is_not_rotated(live_service: Live) -> None:
    with connect(live_service.url, None) as browser:
        sign_in(live_service, browser, token=live_service.admin_token)
        (session,) = [each["id"] for each in browser.get(f"{API}/tokens").json() if each["name"] == "dashboard session"]
        answer = browser.post(f"{API}/tokens/{session}/rotate", headers={"Origin": live_service.url})
        assert kind(answer) == (409, "not-acceptable-state")


def test_a_link_signs_somebody_in_once(live_service: Live) -> None:
    for body in ({"name": "ada"}, {"name": "ci", "project": "default"}):
        live_service.client.post(f"{API}/users", json=body).raise_for_status()
    assert kind(live_service.client.post(f"{API}/users/ci/sign-in-codes")) == (409, "conflict")
    assert kind(live_service.client.post(f"{API}/users/nobody/sign-in-codes")) == (404, "not-found")
    path = f"{API}/users/ada/sign-in-codes"
    made = live_service.client.post(path)
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    with connect(live_service.url, None) as browser:
        origin = {"Origin": live_service.url}
        opened = browser.post(f"{API}/session", json={"code": made.json()["code"]}, headers=origin)
        assert (opened.status_code, opened.json()["name"]) == (201, "ada")
        again = live_service.anonymous.post(f"{API}/session", json={"code": made.json()["code"]})
        assert kind(again) == (401, "unauthorized")
        settings = browser.get(f"{API}/settings").json()
        assert (settings["user"]["name"], settings["scopes"]) == ("ada", ["read", "submit"])
        assert kind(browser.post(path, headers=origin)) == (403, "forbidden")
        listed = browser.get(f"{API}/tokens").json()
        names = [(each["name"], each["session"]) for each in listed]
        assert names == [("sign-in link", False), ("dashboard session", True)]
        assert browser.delete(f"{API}/tokens/{listed[0]['id']}", headers=origin).status_code == 204
        assert kind(browser.get(f"{API}/settings")) == (401, "unauthorized"), "the session ends with its link's token"
    waiting = live_service.client.post(path).json()["code"]
    set_user(live_service, "ada", active=False)
    assert kind(live_service.anonymous.post(f"{API}/session", json={"code": waiting})) == (401, "unauthorized")
    assert kind(live_service.client.post(path)) == (422, "invalid-request")
    told = live_service.client.get(f"{API}/audit", params={"action": "token.create"}).json()["items"]
    assert told[0]["data"]["user"] == "ada"


def test_administrators_see_when_somebody_was_last_seen(live_service: Live) -> None:
    for name in ("ada", "eve"):
        live_service.client.post(f"{API}/users", json={"name": name})
    with live_service.as_token(token(live_service, "submit", user="ada")["secret"]) as ada:
        listed = ada.get(f"{API}/users").json()
        assert {each["last_seen_at"] for each in listed} == {None}
    seen = {each["name"]: each["last_seen_at"] for each in live_service.client.get(f"{API}/users").json()}
    assert seen["eve"] is None
    assert seen["ada"] is not None
