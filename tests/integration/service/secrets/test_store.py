"""Secrets are set, listed and removed over real HTTP, encrypted in either database, and survive a new key."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.fernet import Fernet
from sqlalchemy import MetaData, select

from service.db.models import Audit, Secret
from service.secrets import store
from service.secrets.key_file import KeyFile, KeyFileError
from tests.support.live import Live
from tests.support.problems import kind

API = "/api/v1"
VALUE = "k-0123456789abcdef"


def put(client: httpx.Client, name: str, value: str = VALUE, project: str | None = None) -> httpx.Response:
    path = f"/projects/{project}/secrets/{name}" if project else f"/secrets/{name}"
    return client.put(API + path, json={"value": value})


def listed(client: httpx.Client) -> list[tuple[str, str | None]]:
    answer = client.get(f"{API}/secrets")
    assert answer.status_code == 200
    return [(each["name"], each["project"]) for each in answer.json()]


def person(live: Live, name: str, *scopes: str) -> httpx.Client:
    live.client.post(f"{API}/users", json={"name": name})
    asked = {"name": "test", "scopes": list(scopes or ("submit",)), "user": name}
    return live.as_token(live.client.post(f"{API}/tokens", json=asked).json()["secret"])


def encrypted(live: Live) -> list[str]:
    with live.context.db.read() as tx:
        return list(tx.scalars(select(Secret.encrypted).order_by(Secret.name)))


def everything(live: Live) -> str:
    """All that is in the database, as text."""
    tables = MetaData()
    with live.context.db.read() as tx:
        tables.reflect(tx)
        return "\n".join(repr(tuple(row)) for table in tables.sorted_tables for row in tx.execute(select(table)))


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_a_value_goes_in_and_never_comes_out(live_service: Live) -> None:
    client = live_service.client
    made = put(client, "WANDB_API_KEY")
    assert made.status_code == 200
    assert made.json().keys() == {"name", "project", "set_by", "created_at", "changed_at", "used_at", "used_by"}
    again = put(client, "WANDB_API_KEY", VALUE + "2").json()
    assert again["created_at"] == made.json()["created_at"] < again["changed_at"]
    assert listed(client) == [("WANDB_API_KEY", None)]
    (stored,) = encrypted(live_service)
    assert live_service.context.secret_keys.decrypt(stored) == VALUE + "2"
    answers = [client.get(API + path).text for path in ("/secrets", "/audit", "/settings", "/projects")]
    assert VALUE not in "".join([made.text, *answers, everything(live_service)])
    assert live_service.context.secret_keys.path == live_service.home / "service" / "secrets.key"
    assert client.delete(f"{API}/secrets/WANDB_API_KEY").status_code == 204
    assert kind(client.delete(f"{API}/secrets/WANDB_API_KEY")) == (404, "not-found")
    with live_service.context.db.read() as tx:
        told = select(Audit.action, Audit.subject, Audit.data).where(Audit.action.startswith("secret."))
        rows = tx.execute(told.order_by(Audit.id))
        assert [tuple(row) for row in rows] == [
            ("secret.set", "WANDB_API_KEY", {}),
            ("secret.set", "WANDB_API_KEY", {}),
            ("secret.remove", "WANDB_API_KEY", {}),
        ]


def test_everybody_has_their_own_and_those_of_their_projects(live_service: Live) -> None:
    admin = live_service.client
    admin.post(f"{API}/projects", json={"name": "vision"})
    with person(live_service, "ada") as ada, person(live_service, "eve") as eve:
        admin.put(f"{API}/projects/vision/members/ada")
        assert put(ada, "OWN_KEY").status_code == 200
        assert kind(put(ada, "SHARED_KEY", project="vision")) == (403, "forbidden")
        assert put(admin, "SHARED_KEY", project="vision").json()["project"] == "vision"
        assert kind(put(admin, "SHARED_KEY", project="nowhere")) == (404, "not-found")
        assert listed(ada) == [("OWN_KEY", None), ("SHARED_KEY", "vision")]
        assert listed(eve) == []
        assert listed(admin) == [("SHARED_KEY", "vision")]
        assert kind(eve.delete(f"{API}/secrets/OWN_KEY")) == (404, "not-found")
        assert kind(eve.delete(f"{API}/projects/vision/secrets/SHARED_KEY")) == (403, "forbidden")
        assert admin.delete(f"{API}/projects/vision/secrets/SHARED_KEY").status_code == 204
        assert listed(ada) == [("OWN_KEY", None)]
    with person(live_service, "ada", "read") as reader:
        assert listed(reader) == [("OWN_KEY", None)]
        assert kind(put(reader, "OWN_KEY")) == (403, "forbidden")


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("PATH", {"value": VALUE}, "PATH is set by the launcher"),
        ("RANK", {"value": VALUE}, "RANK is set by the launcher"),
        ("TORCHYARD_TOKEN", {"value": VALUE}, "is set by the launcher"),
        ("a-b", {"value": VALUE}, "not a name for an environment variable"),
        ("KEY", {"value": ""}, "text that is not empty"),
        ("KEY", {"value": f"{VALUE}\0"}, "without NUL"),
        ("KEY", {"value": VALUE * 10_000}, "at most 64 KiB"),
        ("KEY", {"value": [VALUE]}, "is sent as text"),
        ("KEY", {"value": VALUE, "valu": VALUE}, "unknown field"),
        ("KEY", {"valu": VALUE}, "is sent as text"),
        ("KEY", VALUE, "is sent as text"),
    ],
)
def test_what_cannot_be_a_secret_is_refused_without_repeating_it(
    live_service: Live, name: str, body: Any, words: str
) -> None:
    refused = live_service.client.put(f"{API}/secrets/{name}", json=body)
    assert kind(refused) == (422, "invalid-request")
    assert words in refused.text
    assert VALUE not in refused.text


def test_a_new_key_takes_the_place_of_the_old_one(live_service: Live) -> None:
    for name in ("ONE_KEY", "TWO_KEY"):
        put(live_service.client, name)
    keys = live_service.context.secret_keys
    before, old = encrypted(live_service), keys.path.read_text()
    assert store.rotate(live_service.context.db, keys) == 2
    assert set(encrypted(live_service)).isdisjoint(before)
    assert {keys.decrypt(each) for each in encrypted(live_service)} == {VALUE}
    keys.path.write_text(old)
    with pytest.raises(KeyFileError):
        keys.decrypt(encrypted(live_service)[0])


def test_a_rotation_that_was_interrupted_is_run_again(live_service: Live) -> None:
    put(live_service.client, "ONE_KEY")
    keys = live_service.context.secret_keys
    keys.add_newest()
    put(live_service.client, "TWO_KEY")
    assert store.rotate(live_service.context.db, keys) == 2
    assert len(keys.path.read_text().split()) == 1
    assert {keys.decrypt(each) for each in encrypted(live_service)} == {VALUE}


def test_a_lost_or_wrong_key_is_said_and_never_replaced(live_service: Live, caplog: pytest.LogCaptureFixture) -> None:
    put(live_service.client, "ONE_KEY")
    keys = live_service.context.secret_keys
    right = keys.path.read_text()
    keys.path.unlink()
    _refused(live_service, keys, "is gone", caplog)
    assert not keys.path.exists()
    keys.path.write_bytes(Fernet.generate_key())
    keys.path.chmod(0o600)
    _refused(live_service, keys, "holds another key", caplog)
    keys.path.write_text(right)
    assert put(live_service.client, "TWO_KEY").status_code == 200


def _refused(live: Live, keys: KeyFile, words: str, caplog: pytest.LogCaptureFixture) -> None:
    refused = put(live.client, "TWO_KEY")
    assert kind(refused) == (409, "conflict")
    with pytest.raises(KeyFileError):
        store.rotate(live.context.db, keys)
    caplog.clear()
    store.report_unreadable(live.context.db, keys)
    for told in (refused.json()["detail"], caplog.text):
        assert f"The key file {keys.path} of the secrets {words}" in told
    assert len(encrypted(live)) == 1


def test_no_secret_needs_no_key(live_service: Live, caplog: pytest.LogCaptureFixture) -> None:
    store.report_unreadable(live_service.context.db, KeyFile(Path("/nowhere/at/all")))
    assert "key file" not in caplog.text
