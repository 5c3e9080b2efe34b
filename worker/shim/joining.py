"""Detection of ranks that have met on one node, by the kernel's own tables: the program itself is not touched.

A rank that has joined a process group holds a connection to another rank, or to the store that torchrun's agent keeps.
Ranks that look for a store which nobody opened try again and again, each time with a new socket, for half an hour and
without a word.
"""

import contextlib
import os
from collections.abc import Iterable, Sequence

from worker.shim import table
from worker.shim.files import Json, now_us, say, write_whole

#: Seconds between two looks, and seconds after which it is told that no rank has joined a process group.
EVERY_S, PATIENCE_S = 2.0, 60.0
#: Names in `torchyard.failures.fingerprints`, which cannot be imported here.
OWN_PROCESSES, NO_STORE = "own-processes", "no-store"
UNJOINED = (
    "after a minute none of the {} ranks has joined a process group. If the script never does, each of them trains a "
    "copy of its own: cancel it, and say launcher: python (yard run: --launcher python) for one process with all GPUs"
)

#: Tables of sockets below ``/proc/<pid>/net``; a socket that none of them lists is not connected.
_TABLES = ("tcp", "tcp6", "udp", "udp6", "unix", "netlink", "raw", "raw6", "packet", "icmp", "icmp6")
_ESTABLISHED = "01"
#: So many refused sockets of one process are a search; a library that tries once or twice is none.
REFUSED = 5


class Sockets:
    """The sockets of one network namespace."""

    def __init__(self, pid: int) -> None:
        #: All that are listed, by inode.
        self.listed: set[int] = set()
        #: Inodes of connections by their two ends.
        self.connections: dict[tuple[str, str], int] = {}
        for name in _TABLES:
            for row in _rows(f"/proc/{pid}/net/{name}"):
                self._add(name, row)

    def _add(self, name: str, row: list[str]) -> None:
        # The inode has no fixed column: of netlink and packet it is the last, of unix the seventh.
        column = 6 if name == "unix" else len(row) - 1 if name in {"netlink", "packet"} else 9
        if len(row) > column and row[column].isdigit():
            self.listed.add(int(row[column]))
            if name.startswith("tcp") and row[3] == _ESTABLISHED:
                self.connections[row[1], row[2]] = int(row[column])


def _rows(path: str) -> list[list[str]]:
    try:
        with open(path) as file:
            return [line.split() for line in file.readlines()[1:]]
    except OSError:
        return []


def sockets_of(pid: int) -> set[int]:
    """Inodes of a process's sockets; empty when it is gone or may not be looked at."""
    found: set[int] = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            target = _link(f"/proc/{pid}/fd/{name}")
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    except OSError:
        return found
    return found


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


class RankConnections:
    """Connections of the ranks since they were started. Each look is one reading of the process table."""

    def __init__(self) -> None:
        self.joined = False
        #: Refused sockets by process.
        self._refused: dict[tuple[int, int], set[int]] = {}
        #: Of each rank the processes below its wrapper, the program itself first.
        self._trees: list[list[table.Process]] = []

    def look(self, agent: int, wrappers: Iterable[int]) -> None:
        """Look at the ranks below these wrappers, and at the agent that started them."""
        everyone = table.everyone()
        self._trees = [table.below(everyone, wrapper) for wrapper in wrappers]
        sockets = Sockets(agent)
        owners = dict.fromkeys(sockets_of(agent), -1)
        for rank, tree in enumerate(self._trees):
            for process in tree:
                held = sockets_of(process.pid)
                owners.update(dict.fromkeys(held, rank))
                self._refused.setdefault(process.key, set()).update(held - sockets.listed)
        self.joined = self.joined or _met(sockets, owners)

    @property
    def lost(self) -> bool:
        """Return whether each rank looks for a store that nobody has opened, so that none of them will ever come."""
        return not self.joined and bool(self._trees) and all(any(map(self._seeks, tree)) for tree in self._trees)

    @property
    def own_processes(self) -> bool:
        """Return whether it is processes that the ranks have started, not the ranks themselves, that look for one."""
        return not any(tree and self._seeks(tree[0]) for tree in self._trees)

    def _seeks(self, process: table.Process) -> bool:
        return len(self._refused.get(process.key, ())) >= REFUSED


def _met(sockets: Sockets, owners: dict[int, int]) -> bool:
    for (local, remote), inode in sockets.connections.items():
        here, there = owners.get(inode), owners.get(sockets.connections.get((remote, local), 0))
        if here is not None and there is not None and here != there:
            return True
    return False


class JoinWatch:
    """Watches the ranks until they have met; nothing where none are expected to."""

    def __init__(self, launch: Json, now: float) -> None:
        self._expected: int = launch.get("meets", 0)
        self._here: int = launch.get("local_world_size", 0)
        self._mark: str = launch["paths"].get("unjoined", "")
        self._ranks = RankConnections()
        self._told = False
        self._tell_at = now + PATIENCE_S
        #: Monotonic time of the next look.
        self.due = now if self._expected else float("inf")

    def look(self, agent: int, wrappers: Sequence[int], now: float) -> str | None:
        """A look at all ranks, once they are there; the name of the failure when they can never meet."""
        self.due = now + EVERY_S
        if len(wrappers) < self._here:
            return None
        self._ranks.look(agent, wrappers)
        if self._ranks.joined:
            self._joined()
        elif self._ranks.lost:
            return OWN_PROCESSES if self._ranks.own_processes else NO_STORE
        elif self._expected > 1 and now >= self._tell_at and not self._told:
            self._unjoined()
        return None

    def _unjoined(self) -> None:
        self._told = True
        say(UNJOINED.format(self._expected))
        with contextlib.suppress(OSError):  # the log has it
            write_whole(self._mark, {"since_us": now_us()})

    def _joined(self) -> None:
        self.due = float("inf")
        if self._told:
            say("the ranks have met")
            with contextlib.suppress(OSError):
                os.unlink(self._mark)
