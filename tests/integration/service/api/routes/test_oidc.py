"""Sign-in by OpenID Connect against a real provider, and words of a provider that must not count."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey

from service.errors import ProblemError
from service.identity import oidc
from service.identity.oidc import OidcClient
from service.identity.oidc_attempts import OidcAttempt
from service.identity.provider_calls import MAX_CALLS
from service.identity.sign_in_limits import PER_ADDRESS
from tests.support import processes
from tests.support.live import Live, connect
from tests.support.problems import kind
from tests.support.wait import until
from torchyard.api import PREFIX
from torchyard.network import ports


@dataclass
class Provider:
    url: str

    def set_user(self, sub: str, **claims: Any) -> None:
        httpx.put(f"{self.url}/users/{sub}", json=claims, trust_env=False).raise_for_status()

    def approve(self, address: str, sub: str) -> str:
        """What the browser is led back to once somebody has signed in there."""
        answer = httpx.post(address, data={"sub": sub}, trust_env=False)
        assert answer.status_code in (302, 303), answer.text
        return answer.headers["location"]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """One for all tests: each says who its users are."""
    with ports.held("127.0.0.1") as port, _served(port) as provider:
        yield provider


@contextmanager
def _served(port: int) -> Iterator[Provider]:
    words = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce=true"]
    with processes.unmarked():
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/.well-known/openid-configuration", trust_env=False).is_success
        except httpx.TransportError:
            return False

    try:
        until(answers)
        yield Provider(url)
    finally:
        child.terminate()
        child.wait(30)


@pytest.fixture
def desk(serve: Callable[..., Any], provider: Provider, tmp_path: Path) -> Callable[..., Any]:
    secret = tmp_path / "client.secret"
    secret.write_text("hush\n")
    return lambda **settings: serve(oidc_issuer=provider.url, oidc_secret_file=secret, **settings)


def begin(browser: httpx.Client) -> str:
    there = browser.get(f"{PREFIX}/session/oidc")
    assert there.status_code == 302, there.text
    return str(there.headers["location"])


def sign_in(live: Live, provider: Provider, browser: httpx.Client, sub: str) -> httpx.Response:
    back = provider.approve(begin(browser), sub)
    assert back.startswith(live.url)
    return browser.get(back)


def test_a_user_signs_in_and_out(desk: Callable[..., Any], provider: Provider) -> None:
    provider.set_user("17", preferred_username="ada", name="Ada")
    with desk() as live, connect(live.url, None) as browser:
        assert browser.get(f"{PREFIX}/session/ways").json() == {"oidc": provider.url}
        refused = sign_in(live, provider, browser, "17")
        assert kind(refused) == (403, "forbidden")
        assert "yard users add ada" in refused.json()["detail"]
        live.client.post(f"{PREFIX}/users", json={"name": "ada"})
        home = sign_in(live, provider, browser, "17")
        assert (home.status_code, home.headers["location"]) == (302, "/")
        settings = browser.get(f"{PREFIX}/settings").json()
        assert (settings["user"]["name"], settings["scopes"]) == ("ada", ["read", "submit"])
        live.client.patch(f"{PREFIX}/users/ada", json={"active": False})
        assert kind(browser.get(f"{PREFIX}/settings")) == (401, "unauthorized")
        assert kind(sign_in(live, provider, browser, "17")) == (403, "forbidden")
        live.client.patch(f"{PREFIX}/users/ada", json={"active": True, "admin": True})
        assert sign_in(live, provider, browser, "17").status_code == 302
        assert "admin" in browser.get(f"{PREFIX}/settings").json()["scopes"]
        cookies = dict(browser.cookies)
        assert browser.delete(f"{PREFIX}/session", headers={"Origin": live.url}).status_code == 204
        browser.cookies.update(cookies)
        assert kind(browser.get(f"{PREFIX}/settings")) == (401, "unauthorized"), "the session has ended"
        told = live.client.get(f"{PREFIX}/audit", params={"action": "session.open"}).json()["items"]
        assert [(each["user"], each["status"], each["address"]) for each in told] == [
            ("ada", None, "127.0.0.1"),
            ("ada", None, "127.0.0.1"),
            ("(unknown)", 403, "127.0.0.1"),
        ]


def test_members_are_made_where_the_administrator_says_so(desk: Callable[..., Any], provider: Provider) -> None:
    provider.set_user("17", email="ada@example.org", nickname="ada", preferred_username="root")
    with desk(oidc_create=True, oidc_claim="nickname") as live, connect(live.url, None) as browser:
        assert sign_in(live, provider, browser, "17").status_code == 302
        assert browser.get(f"{PREFIX}/settings").json()["user"]["role"] == "member"
    with desk(oidc_claim="email") as live, connect(live.url, None) as browser:
        refused = sign_in(live, provider, browser, "17")
        assert kind(refused) == (403, "forbidden")
        assert "TORCHYARD_OIDC_CLAIM" in refused.json()["detail"]


def test_a_role_follows_the_provider_s_groups(desk: Callable[..., Any], provider: Provider) -> None:
    mapping = (("leads", "administrator"), ("ml", "member"), ("guests", "viewer"))
    with desk(oidc_create=True, oidc_roles=mapping) as live, connect(live.url, None) as browser:

        def role(*groups: str) -> str:
            provider.set_user("17", preferred_username="ada", groups=[*groups])
            assert sign_in(live, provider, browser, "17").status_code == 302
            return str(browser.get(f"{PREFIX}/settings").json()["user"]["role"])

        assert role("guests") == "viewer"
        assert role("guests", "others", "leads", "ml") == "administrator"
        admin = browser.post(
            f"{PREFIX}/tokens", json={"name": "t", "scopes": ["admin"]}, headers={"Origin": live.url}
        ).json()["secret"]
        assert role("ml") == "member"
        with live.as_token(admin) as lost:
            assert kind(lost.get(f"{PREFIX}/settings")) == (401, "unauthorized"), "a right that is lost"
        for groups in (["others"], [], "others", 7, None):
            provider.set_user("17", preferred_username="ada", groups=groups)
            refused = sign_in(live, provider, browser, "17")
            assert kind(refused) == (403, "forbidden"), groups
            assert "None of your groups" in refused.json()["detail"]
        told = live.client.get(f"{PREFIX}/audit", params={"action": "user.change"}).json()["items"]
        assert [each["data"] for each in told] == [
            {"role": "member", "by": "sign-in"},
            {"role": "administrator", "by": "sign-in"},
        ]


def test_the_only_administrator_stays_one(desk: Callable[..., Any], provider: Provider) -> None:
    with desk(oidc_roles=(("ml", "member"),)) as live, connect(live.url, None) as browser:
        name = live.client.get(f"{PREFIX}/settings").json()["user"]["name"]
        provider.set_user("1", preferred_username=name, groups="ml")
        assert sign_in(live, provider, browser, "1").status_code == 302
        assert browser.get(f"{PREFIX}/settings").json()["user"]["role"] == "administrator"
        assert live.client.get(f"{PREFIX}/audit").status_code == 200


def test_a_browser_gets_a_refusal_as_a_page(desk: Callable[..., Any], provider: Provider) -> None:
    provider.set_user("17", preferred_username="ada", name="Ada <b>L.</b>", email="ada@example.org")
    with desk(oidc_contact="gpu-help@example.org") as live, connect(live.url, None) as browser:
        browser.headers["Accept"] = "text/html,application/xhtml+xml,*/*;q=0.8"
        refused = sign_in(live, provider, browser, "17")
        assert (refused.status_code, refused.headers["content-type"]) == (403, "text/html; charset=utf-8")
        assert "ada · Ada &lt;b&gt;L.&lt;/b&gt; · ada@example.org" in refused.text
        assert "<code>yard users add ada</code>" in refused.text
        assert "gpu-help@example.org" in refused.text
        foreign = browser.get(f"{PREFIX}/session/oidc/callback", params={"state": "x", "code": "y"})
        assert foreign.status_code == 401
        assert "not begun in this browser" in foreign.text
        assert "You are</dt>" not in foreign.text
        told = live.client.get(f"{PREFIX}/audit", params={"action": "session.open"}).json()["items"]
        assert [each["status"] for each in told] == [401, 403]


def test_a_sign_in_counts_once_and_in_its_own_browser(desk: Callable[..., Any], provider: Provider) -> None:
    provider.set_user("17", preferred_username="ada")
    with desk() as live, connect(live.url, None) as browser, connect(live.url, None) as victim:
        live.client.post(f"{PREFIX}/users", json={"name": "ada"})
        back = provider.approve(begin(browser), "17")
        begin(victim)
        assert kind(victim.get(back)) == (401, "unauthorized"), "of another browser"
        assert browser.get(back).status_code == 302
        assert kind(browser.get(back)) == (401, "unauthorized"), "twice"
        query = parse_qs(urlsplit(begin(browser)).query)
        assert query["code_challenge_method"] == ["S256"]
        forged = {"state": query["state"][0], "code": "forged"}
        assert kind(browser.get(f"{PREFIX}/session/oidc/callback", params=forged)) == (401, "unauthorized")
        assert kind(browser.get(f"{PREFIX}/session/oidc/callback")) == (401, "unauthorized")


def test_a_sign_in_ends_at_another_service_than_it_began(desk: Callable[..., Any], provider: Provider) -> None:
    provider.set_user("17", preferred_username="ada")
    with desk() as live, desk() as other, connect(live.url, None) as browser:
        live.client.post(f"{PREFIX}/users", json={"name": "ada"})
        back = provider.approve(begin(browser), "17")
        there = httpx.URL(back).copy_with(port=httpx.URL(other.url).port)
        balanced = {"Host": httpx.URL(live.url).netloc.decode()}  # both are reached by one address
        assert browser.get(there, headers=balanced).status_code == 302
        assert browser.get(f"{PREFIX}/settings").json()["user"]["name"] == "ada"
        assert kind(browser.get(back)) == (401, "unauthorized"), "it counts once"


def test_what_others_guess_keeps_nobody_out(desk: Callable[..., Any], provider: Provider) -> None:
    provider.set_user("17", preferred_username="ada")
    with desk() as live, connect(live.url, None) as browser, connect(live.url, None) as stranger:
        live.client.post(f"{PREFIX}/users", json={"name": "ada"})
        for _ in range(PER_ADDRESS + 1):  # of a stranger at this address
            forged = {"state": parse_qs(urlsplit(begin(stranger)).query)["state"][0], "code": "forged"}
            refused = stranger.get(f"{PREFIX}/session/oidc/callback", params=forged)
            assert kind(refused) == (401, "unauthorized"), "each of its own sign-ins is used up"
        for _ in range(PER_ADDRESS + 1):
            stranger.post(f"{PREFIX}/session", json={"token": "ty_guess"})
            guess = stranger.get(f"{PREFIX}/session/oidc/callback", params={"state": "guess", "code": "guess"})
            assert kind(guess) == (401, "unauthorized")
        assert sign_in(live, provider, browser, "17").status_code == 302


def test_a_sign_in_waits_for_a_provider_that_many_ask(desk: Callable[..., Any], provider: Provider) -> None:
    provider.set_user("17", preferred_username="ada")
    with desk() as live, connect(live.url, None) as browser, ExitStack() as asking:
        live.client.post(f"{PREFIX}/users", json={"name": "ada"})
        back = provider.approve(begin(browser), "17")
        for number in range(MAX_CALLS):
            asking.enter_context(live.app.state.provider_calls.calling(f"192.0.2.{number}"))
        for refused in (browser.get(back), browser.get(f"{PREFIX}/session/oidc")):
            assert kind(refused) == (503, "unavailable")
            assert refused.headers["Retry-After"] == "1"
        asking.close()
        assert browser.get(back).status_code == 302, "and is not used up by that"


def test_a_provider_that_is_away_or_another_one_is_said(serve: Callable[..., Any], provider: Provider) -> None:
    with serve(oidc_issuer=f"{provider.url}/") as live:
        answer = live.anonymous.get(f"{PREFIX}/session/oidc")
        assert kind(answer) == (503, "unavailable")
        assert "set TORCHYARD_OIDC_ISSUER to that" in answer.json()["detail"]
    with serve(oidc_issuer="http://127.0.0.1:9") as live:
        page = live.anonymous.get(f"{PREFIX}/session/oidc", headers={"Accept": "text/html"})
        assert (page.status_code, "You are not signed in" in page.text) == (503, True)
        assert kind(live.anonymous.get(f"{PREFIX}/session/oidc")) == (503, "unavailable")
    with serve() as live:
        assert kind(live.anonymous.get(f"{PREFIX}/session/oidc")) == (404, "not-found")
        assert live.anonymous.get(f"{PREFIX}/session/ways").json() == {"oidc": None}


ATTEMPT = OidcAttempt(state="s", nonce="n", verifier="v")
CLIENT = OidcClient(issuer="https://login.example", client_id="yard", client_secret="hush")


def word(key: Any, algorithm: str = "RS256", **changes: Any) -> str:
    said = {"iss": CLIENT.issuer, "aud": "yard", "sub": "17", "nonce": "n", "exp": int(time.time()) + 300} | changes
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode({"alg": algorithm, "kid": "k"}, said, key, algorithms=[algorithm])


def test_only_what_the_provider_signed_for_this_sign_in_counts() -> None:
    own, other = (RSAKey.generate_key(2048, {"kid": "k"}, private=True) for _ in range(2))
    keys: Any = KeySet([own]).as_dict(private=False)
    assert oidc.verified(CLIENT, ATTEMPT, word(own), keys)["sub"] == "17"
    assert oidc.verified(CLIENT, ATTEMPT, word(own, aud=["yard", "x"], azp="yard"), keys)["sub"] == "17"
    shared = OctKey.import_key("hush" * 16, {"kid": "k"})
    wrong = [word(other), word(shared, "HS256"), "", "a.b.c"]
    wrong += [
        word(own, **{name: value}) for name, value in (("iss", "https://evil.example"), ("aud", "x"), ("nonce", "m"))
    ]
    wrong += [word(own, **{name: None}) for name in ("iss", "aud", "sub", "nonce", "exp")]
    wrong += [
        word(own, exp=int(time.time()) - 600),
        word(own, aud=["yard", "x"]),
        word(own, aud=["yard", "x"], azp="x"),
    ]
    for each in wrong:
        with pytest.raises(ProblemError, match="Sign-in refused"):
            oidc.verified(CLIENT, ATTEMPT, each, keys)
