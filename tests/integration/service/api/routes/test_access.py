"""Who reaches which route: every route of the application, with every kind of token that must not reach it."""

import re
from collections.abc import Iterator

import httpx
from fastapi.routing import APIRoute
from sqlalchemy import update

from service.api.auth import cookie_name
from service.app import bare
from service.db.models import Token
from tests.support.live import Live, connect
from tests.support.problems import kind

API = "/api/v1"
#: What anybody reaches: whether the service lives, its description, and the way in.
OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("POST", f"{API}/session")}
#: The way in by a provider; none is set here.
OPEN |= {("GET", f"{API}/session/{word}") for word in ("ways", "oidc", "oidc/callback")}
#: What a public link shows to whoever has it; no token of a person is asked for.
OPEN |= {("GET", f"{API}/shared/x"), ("GET", f"{API}/shared/x/metrics")}
#: What a token with the scope read changes: nothing but what its own user's tokens, sessions and streams are.
OWN = {("POST", f"{API}/tokens"), ("DELETE", f"{API}/tokens/x"), ("DELETE", f"{API}/session")}
OWN |= {("POST", f"{API}/tokens/x/rotate"), ("POST", f"{API}/session/codes"), ("PUT", f"{API}/live/x")}
#: What an invitation is for, whoever has a role.
JOIN = ("POST", f"{API}/nodes")
ADMIN = {("POST", f"{API}/users"), ("POST", f"{API}/projects"), ("GET", f"{API}/audit")}
ADMIN |= {("POST", f"{API}/nodes/x/{word}") for word in ("drain", "resume", "declare-dead", "devices/x/return")}
ADMIN |= {("POST", f"{API}/nodes/x/invitations")}
ADMIN |= {("PATCH", f"{API}/users/x"), ("DELETE", f"{API}/users/x"), ("PUT", f"{API}/policy")}
ADMIN |= {("PUT", f"{API}/quotas/x/x"), ("POST", f"{API}/reservations"), ("DELETE", f"{API}/reservations/x")}
ADMIN |= {("PUT", f"{API}/reservations/x")}
ADMIN |= {
    ("PATCH", f"{API}/projects/x"),
    ("POST", f"{API}/users/x/sign-in-codes"),
    ("PUT", f"{API}/projects/x/members/x"),
    ("DELETE", f"{API}/projects/x/members/x"),
    *((method, f"{API}/{what}") for method in ("PUT", "DELETE") for what in ("pause", "announcement")),
}


def routes() -> Iterator[tuple[str, str]]:
    """Method and path of every route, with ``x`` for each parameter."""
    for route in bare().routes:
        if isinstance(route, APIRoute):
            for method in route.methods or ():
                yield method, re.sub(r"{[^}]*}", "x", route.path)


ROUTES = sorted(routes())


def ask(client: httpx.Client, method: str, path: str) -> httpx.Response:
    """A request whose body every route can read as JSON, so that who asks is what decides."""
    content = b"{}" if method in {"POST", "PATCH", "PUT"} else None
    headers = {"Content-Type": "application/json", "TorchYard-Protocol": "1"}
    return client.request(method, path, content=content, headers=headers)


def make(live: Live, *scopes: str, **fields: str) -> tuple[str, str]:
    """Id and secret of a new token."""
    answer = live.client.post(f"{API}/tokens", json={"name": "test", "scopes": list(scopes), **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], answer.json()["secret"]


def test_the_routes_are_found() -> None:
    assert len(ROUTES) > 50
    assert set(ROUTES) >= OPEN | OWN | ADMIN


def test_secrets_that_do_not_count_reach_nothing(live_service: Live) -> None:
    revoked_id, revoked = make(live_service, "admin")
    expired_id, expired = make(live_service, "admin")
    node_id, node = make(live_service, "node", node="gone")
    for token_id in (revoked_id, node_id):
        assert live_service.client.delete(f"{API}/tokens/{token_id}").status_code == 204
    with live_service.context.db.write() as tx:
        tx.execute(update(Token).where(Token.id == expired_id).values(expires_us=1))
    for secret in (None, "ty_wrong", live_service.admin_token[:-1], revoked, expired, node):
        with connect(live_service.url, secret) as client:
            for method, path in ROUTES:
                if (method, path) not in OPEN:
                    assert kind(ask(client, method, path)) == (401, "unauthorized"), (method, path)


def test_a_cookie_that_does_not_count_reaches_nothing(live_service: Live) -> None:
    with connect(live_service.url, None) as client:
        client.cookies.set(cookie_name(live_service.context.installation), "ty_wrong")
        client.headers["Origin"] = live_service.url
        for method, path in ROUTES:
            if (method, path) not in OPEN:
                assert kind(ask(client, method, path)) == (401, "unauthorized"), (method, path)


def test_a_cookie_does_not_count_beside_another_way_to_sign_in(live_service: Live) -> None:
    with connect(live_service.url, None) as browser:
        origin = {"Origin": live_service.url}
        opened = browser.post(f"{API}/session", json={"token": live_service.admin_token}, headers=origin)
        assert opened.status_code == 201
        basic = {"Authorization": "Basic eDp5"}
        assert kind(browser.post(f"{API}/projects", json={"name": "x"}, headers=basic)) == (401, "unauthorized")


def test_nodes_reach_their_own_routes_alone(live_service: Live) -> None:
    with live_service.as_token(live_service.node_token) as node:
        for method, path in ROUTES:
            if not path.startswith(f"{API}/agent/") and (method, path) not in OPEN:
                assert kind(ask(node, method, path)) == (403, "forbidden"), (method, path)


def test_people_do_not_reach_the_routes_of_nodes(live_service: Live) -> None:
    for method, path in ROUTES:
        if path.startswith(f"{API}/agent/"):
            assert kind(ask(live_service.client, method, path)) == (403, "forbidden"), (method, path)


def test_a_reader_changes_nothing(live_service: Live) -> None:
    _, secret = make(live_service, "read")
    with live_service.as_token(secret) as reader:
        for method, path in ROUTES:
            if method != "GET" and (method, path) not in OPEN | OWN:
                assert kind(ask(reader, method, path)) == (403, "forbidden"), (method, path)


def add_user(live: Live, name: str, **fields: str) -> str:
    """Secret of a token of a new user, which may all that a member's may."""
    answer = live.client.post(f"{API}/users", json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    return make(live, "submit", user=name)[1]


def test_a_viewer_changes_nothing_and_is_told_the_role(live_service: Live) -> None:
    with live_service.as_token(add_user(live_service, "vera", role="viewer")) as viewer:
        for method, path in ROUTES:
            changes = method != "GET" and not path.startswith(f"{API}/agent/") and (method, path) != JOIN
            if (changes or (method, path) in ADMIN) and (method, path) not in OPEN | OWN:
                answer = ask(viewer, method, path)
                assert kind(answer) == (403, "forbidden"), (method, path)
                assert "vera has the role viewer" in answer.json()["detail"], (method, path)
                assert "yard users set vera --role member" in answer.json()["detail"]


def test_a_service_account_makes_no_tokens_and_opens_no_session(live_service: Live) -> None:
    secret = add_user(live_service, "ci", project="default")
    with live_service.as_token(secret) as account:
        for path, body in (("/tokens", {"name": "x", "scopes": ["read"]}), ("/session/codes", None)):
            answer = account.post(API + path, json=body)
            assert kind(answer) == (403, "forbidden"), path
            assert "ci is a service account" in answer.json()["detail"]
    answer = live_service.anonymous.post(f"{API}/session", json={"token": secret})
    assert kind(answer) == (403, "forbidden")
    for method, path in sorted(ADMIN):
        with live_service.as_token(secret) as account:
            assert kind(ask(account, method, path)) == (403, "forbidden"), (method, path)


def test_administration_needs_the_scope(live_service: Live) -> None:
    _, secret = make(live_service, "submit")
    with live_service.as_token(secret) as client:
        for method, path in sorted(ADMIN):
            assert kind(ask(client, method, path)) == (403, "forbidden"), (method, path)


def test_a_token_makes_none_that_outlives_it(live_service: Live) -> None:
    answer = live_service.client.post(f"{API}/tokens", json={"name": "x", "scopes": ["read"], "expires_in": "1h"})
    with live_service.as_token(answer.json()["secret"]) as client:
        for wish in ({}, {"expires_in": "30d"}):
            made = client.post(f"{API}/tokens", json={"name": "y", "scopes": ["read"], **wish}).json()
            assert made["expires_at"] == answer.json()["expires_at"]
        sooner = client.post(f"{API}/tokens", json={"name": "y", "scopes": ["read"], "expires_in": "1m"}).json()
        assert sooner["expires_at"] < made["expires_at"]


def test_a_token_ends_no_mightier_one(live_service: Live) -> None:
    mightier, _ = make(live_service, "submit")
    own, secret = make(live_service, "read")
    with live_service.as_token(secret) as reader:
        assert kind(reader.delete(f"{API}/tokens/{mightier}")) == (403, "forbidden")
        assert reader.delete(f"{API}/tokens/{own}").status_code == 204
        assert kind(reader.get(f"{API}/jobs")) == (401, "unauthorized")
