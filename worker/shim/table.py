"""The process table, and signals that cannot reach the wrong process."""

import errno
import os
import signal


class Process:
    """One line of the process table, as ``/proc/<pid>/stat`` has it; raises OSError when there is none."""

    def __init__(self, pid: int) -> None:
        with open(f"/proc/{pid}/stat", "rb") as file:
            before, _, after = file.read().rpartition(b")")
        fields = after.split()
        self.pid = pid
        self.name = before.partition(b"(")[2].decode(errors="replace")
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        #: Clock ticks of CPU time, its own without its children's.
        self.cpu_ticks = int(fields[11]) + int(fields[12])
        #: Clock ticks from boot to the start of the process.
        self.start_ticks = int(fields[19])
        self.resident_pages = int(fields[21])

    @property
    def key(self) -> tuple[int, int]:
        """The pid and start time, which no other process of this boot has."""
        return self.pid, self.start_ticks

    @property
    def dead(self) -> bool:
        """Return whether it only waits to be reaped."""
        return self.state in "ZX"

    def command_line(self) -> list[str]:
        """Its arguments; empty when it is gone."""
        try:
            with open(f"/proc/{self.pid}/cmdline", "rb") as file:
                return file.read().decode(errors="replace").split("\0")
        except OSError:
            return []

    def environment(self) -> list[bytes]:
        """``NAME=value`` as the process was started with; empty when it is gone or another user's."""
        try:
            with open(f"/proc/{self.pid}/environ", "rb") as file:
                return file.read().split(b"\0")
        except OSError:
            return []

    def same(self) -> bool:
        """Return whether the pid is still this process's."""
        try:
            return Process(self.pid).key == self.key
        except OSError:
            return False

    def send(self, number: int) -> bool:
        """Signals this very process, never one that got its pid since; False when it is gone."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except OSError as error:
            # Before Linux 5.3 there are no pidfds.
            return error.errno == errno.ENOSYS and self.same() and _kill(self.pid, number)
        try:
            if not self.same():
                return False
            signal.pidfd_send_signal(descriptor, number)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True


def _kill(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


def find(pid: int) -> Process | None:
    """The process with this id, if there is one."""
    try:
        return Process(pid)
    except OSError:
        return None


def everyone() -> list[Process]:
    """The whole table."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in map(find, pids) if process is not None]


def below(processes: list[Process], root: int) -> list[Process]:
    """The living processes below one."""
    children: dict[int, list[Process]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    found, parents = [], [root]
    while parents:
        heirs = children.get(parents.pop(), [])
        found += heirs
        parents += [process.pid for process in heirs]
    return [process for process in found if not process.dead]


def descendants(root: int) -> list[Process]:
    """The living processes below one, as of now."""
    return below(everyone(), root)


def boot_id() -> str:
    """Return the id of this boot."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
