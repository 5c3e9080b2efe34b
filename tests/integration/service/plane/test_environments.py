"""What is installed for jobs, from the node to the reader."""

import hashlib

from sqlalchemy import func, select

from service.db.models import Environment
from tests.support.plane import Plane, Seeded
from tests.support.problems import kind
from torchyard import wire
from torchyard.client.client import Client

TORCH = wire.Environment(interpreter="/v/bin/python", python="3.11.9", packages={"torch": "2.13.0"})
NUMPY = TORCH.model_copy(update={"packages": {"numpy": "2.1"}})


def report(environment: wire.Environment, *, whole: bool) -> wire.EnvironmentReport:
    content = environment.model_dump_json()
    sha256 = hashlib.sha256(content.encode()).hexdigest()
    return wire.EnvironmentReport(sha256=sha256, content=content if whole else None)


def tell(plane: Plane, seeded: Seeded, environment: wire.Environment, *, whole: bool = False) -> bool:
    answer = plane.post(seeded, "environment", report(environment, whole=whole))
    assert answer.status_code == 200, answer.text
    return wire.EnvironmentAnswer.model_validate_json(answer.content).missing


def test_what_many_jobs_have_in_common_is_stored_once(data_plane: Plane) -> None:
    one, other = data_plane.job(), data_plane.job()
    assert tell(data_plane, one, TORCH)
    assert not tell(data_plane, one, TORCH, whole=True)
    assert not tell(data_plane, other, TORCH)
    with data_plane.ctx.db.read() as tx:
        assert tx.scalar(select(func.count()).select_from(Environment)) == 1
    with Client(data_plane.live.url, data_plane.live.admin_token) as client:
        for seeded in (one, other):
            found = client.environment(seeded.job)
            assert (found.attempt, found.environment) == (1, TORCH)


def test_each_attempt_keeps_its_first_and_the_newest_is_shown(data_plane: Plane) -> None:
    seeded = data_plane.job()
    with Client(data_plane.live.url, data_plane.live.admin_token) as client:
        assert client.environment(seeded.job).environment is None
        tell(data_plane, seeded, TORCH, whole=True)
        tell(data_plane, seeded, NUMPY, whole=True)
        assert client.environment(seeded.job).environment == TORCH
        tell(data_plane, data_plane.attempt(seeded.job), NUMPY, whole=True)
        shown = [client.environment(seeded.job, attempt) for attempt in (None, 1, 2, 3)]
    assert [found.environment for found in shown] == [NUMPY, TORCH, NUMPY, None]
    tag = data_plane.get(f"/jobs/{seeded.job}/environment").headers["etag"]
    again = data_plane.get(f"/jobs/{seeded.job}/environment", headers={"If-None-Match": tag})
    assert again.status_code == 304


def test_what_is_no_environment_is_refused(data_plane: Plane) -> None:
    seeded = data_plane.job()
    text = "{}"
    empty = wire.EnvironmentReport(sha256=hashlib.sha256(text.encode()).hexdigest(), content=text)
    assert kind(data_plane.post(seeded, "environment", empty)) == (422, "invalid-request")
    mixed = report(TORCH, whole=True).model_copy(update={"sha256": "0" * 64})
    assert kind(data_plane.post(seeded, "environment", mixed)) == (422, "invalid-request")
    large = TORCH.model_copy(update={"error": "x" * wire.MAX_ENVIRONMENT})
    assert kind(data_plane.post(seeded, "environment", report(large, whole=True))) == (413, "payload-too-large")
    elsewhere = data_plane.job(node="elsewhere")
    assert data_plane.post(elsewhere, "environment", report(TORCH, whole=False)).status_code in {403, 404}
