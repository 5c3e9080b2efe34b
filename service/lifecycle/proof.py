"""Proof of death: when a heartbeat shows that an attempt's processes are gone. Pure; no database, no clock.

An attempt may be started again only when nothing of it can still run, so silence proves nothing. A heartbeat does,
for an attempt that is missing from its inventory (taken after a sweep of the process table by attempt id), if

1. the inventory was begun after the attempt was claimed. Clocks of two machines cannot tell that, and a delayed
   heartbeat may arrive long after a newer one, so beats do: every answer of the service carries a number, every
   heartbeat the number of the newest answer that had arrived before its inventory was begun, and a claim is stored
   with the number of that moment. The node makes an attempt's folder before it claims. If the heartbeat's number is
   greater than the claim's, the order was: folder, claim, answer, inventory; and
2. the inventory could see the attempt: it comes from the same node id, home id and PID namespace; or the node was
   booted since, which no process survives.

Numbers beyond those given out (the database was restored from a backup) prove nothing.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from torchyard.ids import AttemptId
from torchyard.wire import Identity

REBOOTED = "its node was booted again"
SWEPT = "its node looked for its processes and found none"


@dataclass(frozen=True, kw_only=True)
class Claimed:
    """An attempt without a result, and the node's identity and beat when it was claimed."""

    attempt: AttemptId
    identity: Identity
    beat: int


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """Contents of one heartbeat; `given` is the newest beat that the service had given out before it."""

    identity: Identity
    attempts: Collection[AttemptId]
    beat: int | None
    given: int


def dead(claimed: Iterable[Claimed], inventory: Inventory) -> dict[AttemptId, str]:
    """Return the attempts that the inventory proves dead, each with the proof in words."""
    proofs = {c.attempt: _proof(c, inventory) for c in claimed}
    return {attempt: proof for attempt, proof in proofs.items() if proof}


def out_of_sight(claimed: Iterable[Claimed], inventory: Inventory) -> list[AttemptId]:
    """Return the attempts that the inventory should show and does not, without proof that they are dead.

    The node's name is used from another machine, home or container now.
    """
    return [c.attempt for c in claimed if _missing(c, inventory) and not _proof(c, inventory)]


def _missing(claimed: Claimed, inventory: Inventory) -> bool:
    return claimed.attempt not in inventory.attempts and _begun_after(claimed, inventory)


def _proof(claimed: Claimed, inventory: Inventory) -> str | None:
    if not _missing(claimed, inventory):
        return None
    then, now = claimed.identity, inventory.identity
    if then.node_id != now.node_id:
        return None
    if then.boot_id != now.boot_id:
        return REBOOTED
    same_view = (then.home_id, then.pid_namespace) == (now.home_id, now.pid_namespace)
    return SWEPT if same_view else None


def _begun_after(claimed: Claimed, inventory: Inventory) -> bool:
    return inventory.beat is not None and claimed.beat < inventory.beat <= inventory.given
