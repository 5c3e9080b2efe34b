"""The only writer of states.

Every function takes the caller's write transaction, checks the table in `torchyard.states`, changes rows by
compare-and-set on state and version, and writes its event in the same transaction. A `Conflict` means that nothing
may be committed: leave the ``with db.write()`` block by letting it pass. Who must hear of a change is recorded in the
transaction's `UnitOfWork`, and hears of it after the commit.
"""

from service.lifecycle.exceptions import Conflict, Unknown
from service.lifecycle.finish import declare_dead, finish, settle
from service.lifecycle.gang import prepared
from service.lifecycle.job_notes import take_notes
from service.lifecycle.limits import (
    JOINED,
    UNJOINED,
    clear_hung,
    give_up,
    mark_hung,
    request_dump,
    tell_idle,
    tell_joining,
)
from service.lifecycle.many import change_waiting, lock_waiting
from service.lifecycle.notes import Note
from service.lifecycle.orders import orders_for
from service.lifecycle.outages import QUARANTINED, out_of_use, record_device_outage, record_node_outages
from service.lifecycle.preemption import abandon_preemption, put_back, request_preemption
from service.lifecycle.reach import set_elsewhere, set_reachable, set_unreachable
from service.lifecycle.rows import CLAIMED, LIVE, lock_attempt, lock_job
from service.lifecycle.start import adopt, assign, claim, mark_running, void
from service.lifecycle.stop import cancel_waiting, hold, release_hold, request_checkpoint, request_stop
from service.lifecycle.transitions import change_job, insert_event, move_attempt, move_job

__all__ = [
    "CLAIMED",
    "JOINED",
    "LIVE",
    "QUARANTINED",
    "UNJOINED",
    "Conflict",
    "Note",
    "Unknown",
    "abandon_preemption",
    "adopt",
    "assign",
    "cancel_waiting",
    "change_job",
    "change_waiting",
    "claim",
    "clear_hung",
    "declare_dead",
    "finish",
    "give_up",
    "hold",
    "insert_event",
    "lock_attempt",
    "lock_job",
    "lock_waiting",
    "mark_hung",
    "mark_running",
    "move_attempt",
    "move_job",
    "orders_for",
    "out_of_use",
    "prepared",
    "put_back",
    "record_device_outage",
    "record_node_outages",
    "release_hold",
    "request_checkpoint",
    "request_dump",
    "request_preemption",
    "request_stop",
    "set_elsewhere",
    "set_reachable",
    "set_unreachable",
    "settle",
    "take_notes",
    "tell_idle",
    "tell_joining",
    "void",
]
