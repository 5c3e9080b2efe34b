"""The policy that this installation has chosen; without a choice, the defaults."""

import logging
from functools import lru_cache

from pydantic import ValidationError
from sqlalchemy import Connection, select

from service.db import upsert
from service.db.engine import Database
from service.db.models import Installation
from service.errors import field_problem
from service.identity import audit
from service.identity.callers import Caller
from torchyard.spec.policy import Order, Policy
from torchyard.translatable import TranslatableText

KEY = "policy"
#: They know how long jobs will take, which nobody does here.
ORACLES = frozenset({Order.SJF, Order.SRTF})

_log = logging.getLogger(__name__)

_STORED = select(Installation.value).where(Installation.key == KEY)


def current_policy(tx: Connection) -> Policy:
    """Return the policy as it is stored now."""
    stored = tx.scalar(_STORED)
    return Policy() if stored is None else _read(stored)


def get_policy(db: Database) -> Policy:
    """Return the policy that the scheduler follows."""
    with db.read() as tx:
        return current_policy(tx)


def change_policy(db: Database, caller: Caller, policy: Policy, now: int) -> None:
    """Set the policy, as `set_policy` does, and have the scheduler follow it at once."""
    with db.unit_of_work(now) as unit:
        set_policy(unit.tx, policy)
        values = policy.model_dump(mode="json", exclude_defaults=True)
        audit.record(unit.tx, caller, "policy.set", "policy", now, **values)
        unit.wake_scheduler()


@lru_cache(maxsize=4)
def _read(stored: str) -> Policy:
    try:
        return Policy.model_validate_json(stored)
    except ValidationError as error:  # written by another version: scheduling must go on
        _log.warning("the stored policy is not read here, the defaults count until it is set again: %s", error)
        return Policy()


def set_policy(tx: Connection, policy: Policy) -> None:
    """Store a policy; ``invalid-request`` for an order that needs to see the future."""
    check(policy)
    value = policy.model_dump_json()
    row = upsert.insert(tx, Installation).values(key=KEY, value=value)
    tx.execute(row.on_conflict_do_update(index_elements=["key"], set_={"value": value}))


def check(policy: Policy) -> None:
    """Refuse a policy whose order needs to see the future, with ``invalid-request``."""
    if policy.order in ORACLES:
        raise field_problem(
            "order",
            TranslatableText(
                "policy-oracle",
                "{order} is an oracle, for `yard simulate` alone: take one of {usable}",
                order=policy.order.value,
                usable=tuple(order.value for order in Order if order not in ORACLES),
            ),
        )
