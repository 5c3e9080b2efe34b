"""Weights in the order of a live queue: over REST, with the service's own scheduler and a node that does as told."""

from typing import Any

from sqlalchemy import insert, select

from service.db.models import Account, Attempt, User
from tests.support.live import Live
from tests.support.scripted import Agent, agent
from tests.support.specs import spec
from tests.support.wait import until

API = "/api/v1"
PEOPLE = ("ada", "bob")
USAGE_S = 10 * 3600.0


def add_people(live: Live) -> dict[str, str]:
    """Two users who have had as much as each other; their tokens."""
    tokens = {}
    for name in PEOPLE:
        live.client.post(f"{API}/users", json={"name": name}).raise_for_status()
        asked = {"name": "t", "scopes": ["submit"], "user": name}
        tokens[name] = live.client.post(f"{API}/tokens", json=asked).raise_for_status().json()["secret"]
    had = {"kind": "user", "usage": USAGE_S, "usage_us": live.context.now_us()}
    with live.context.db.write() as tx:
        ids = tx.scalars(select(User.id).where(User.name.in_(PEOPLE))).all()
        tx.execute(insert(Account), [had | {"name": user_id} for user_id in ids])
    return tokens


def submit(live: Live, token: str) -> str:
    with live.as_token(token) as client:
        job = client.post(f"{API}/jobs", json=spec(resources={"gpus": 1})).raise_for_status().json()
    return str(job["id"])


def weigh(live: Live, **weights: float) -> None:
    for name, weight in weights.items():
        live.client.put(f"{API}/quotas/user/{name}", json={"weight": weight}).raise_for_status()


def queue(live: Live) -> list[Any]:
    return [each["job"] for each in live.client.get(f"{API}/queue").raise_for_status().json()["items"]]


def next_of(live: Live, node: Agent) -> str:
    """Ends what runs; the job that is started instead."""
    for attempt in list(node.attempts.values()):
        attempt.end()
    started = node.start()
    with live.context.db.read() as tx:
        return str(tx.scalar(select(Attempt.job_id).where(Attempt.id == started.id)))


def test_the_heavier_user_goes_first_and_a_changed_weight_counts_at_the_next_pass(live_service: Live) -> None:
    """No job has run before: those that are tried first are tried by the shares of their users."""
    live = live_service
    tokens = add_people(live)
    weigh(live, ada=1, bob=4)
    with agent(live, devices=1) as node:
        submit(live, live.admin_token)
        node.start()
        of_ada, of_bob = submit(live, tokens["ada"]), submit(live, tokens["bob"])
        until(lambda: queue(live) == [of_bob, of_ada])
        assert next_of(live, node) == of_bob
        again = submit(live, tokens["bob"])
        until(lambda: queue(live) == [again, of_ada])
        weigh(live, ada=9)
        until(lambda: queue(live) == [of_ada, again])
        assert next_of(live, node) == of_ada
        assert next_of(live, node) == again


def test_of_equals_the_first_goes_first(live_service: Live) -> None:
    live = live_service
    tokens = add_people(live)
    with agent(live, devices=1) as node:
        submit(live, live.admin_token)
        node.start()
        of_ada, of_bob = submit(live, tokens["ada"]), submit(live, tokens["bob"])
        until(lambda: queue(live) == [of_ada, of_bob])
        assert next_of(live, node) == of_ada
