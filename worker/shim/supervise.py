"""The shim's life: start the job, stay with it, end what it leaves, write the result."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterable

from worker.shim import joining, limits, table, verdict
from worker.shim.files import (
    DISK_FULL,
    NO_SPACE,
    CommandFile,
    Json,
    ResultFile,
    full,
    names_in,
    now_us,
    say,
    steady_us,
    write_whole,
)
from worker.shim.fork import GUARD, IGNORED, JobProcess, OwnChild, ProgramStartError, become_subreaper, prefer_to_kill
from worker.shim.stop import PendingStop

#: Seconds between two looks at the command file.
POLL_S = 0.2
SWEEP_S = 0.02
#: A process that outlives SIGKILL this long hangs in the kernel.
UNKILLABLE_S = 60.0
#: Init tells all processes of a machine that goes down at once to end (SIGTERM), and kills what is left 90 s later.
GOING_DOWN_S = 120.0


#: Makes the first process of the job of a launch.
StartJob = Callable[[Json], JobProcess]


class Shim:
    """One attempt. `launch` is what the worker wrote (`worker.launching.record.launch_record`)."""

    def __init__(self, launch: Json, start_job: StartJob = OwnChild, begun_us: int = 0) -> None:
        self.launch = launch
        #: When this process began to be the shim, by the steady clock.
        self.begun_us = begun_us or steady_us()
        self.start_job = start_job
        self.paths: dict[str, str] = launch["paths"]
        self.torchrun: bool = launch["torchrun"]
        self.ranks = verdict.ranks_of(launch)
        self.owners: set[int | None] = {os.getuid(), launch["uid"]}
        self.result_file = ResultFile(self.paths["result"], len(self.ranks))
        self.commands = CommandFile(self.paths["command"])
        self.stop = PendingStop()
        self.asked_us: int | None = None
        #: Of the control file; grows with everything the ranks are asked.
        self.serial = 0
        #: Serial of the order for a checkpoint that was passed on last.
        self.answered: int | None = None
        #: The job's first process, once there is one.
        self.job: JobProcess
        self.main = 0
        self.status: int | None = None
        self.started_us: int | None = None
        #: The same moment on the steady clock.
        self.started_steady_us = 0
        self.ended_us: int | None = None
        #: Monotonic end of the time limit.
        self.limit = float("inf")
        self.terminated: set[tuple[int, int]] = set()
        self.killed = False
        #: Monotonic time of a SIGTERM to this process, which only a machine that goes down has a reason to send.
        self.told_to_end: float | None = None
        #: Wait status and end of processes that lost their parents and ended before the main process.
        self.orphans: dict[int, tuple[int, int]] = {}
        self.message: str | None = None
        self.join_watch = joining.JoinWatch(launch, time.monotonic())
        self.memory = limits.MemoryWatch(launch["limits"])
        #: Why it was ended here, by name.
        self.fingerprint: str | None = None

    def run(self, ready: int) -> None:
        """The whole life; `ready` is closed once the first instruction has run or never will."""
        self.obey(time.monotonic())
        if self.stop:
            self.write({"kind": "killed", "message": "stopped before it started"})
            return
        problem = self.begin()
        os.close(ready)
        if problem is not None:
            self.kill_the_rest()
            self.write(problem)
            return
        self.stay()
        self.share_the_grace()
        self.kill_the_rest()
        self.look_at_limits(time.monotonic())
        self.write(self.judge())

    def begin(self) -> Json | None:
        """Start the job; the result, if it cannot be started."""
        self.job = self.start_job(self.launch)
        self.main = self.job.pid
        try:
            started_us, self.started_steady_us = self.job.record(self.paths["shim"], self.begun_us)
        except OSError as error:
            self.job.abandon()
            return {"kind": "lost", "message": DISK_FULL} if error.errno in NO_SPACE else self.unusable(error)
        self.limit = time.monotonic() + (self.launch["time_limit_s"] or float("inf"))
        try:
            self.job.go()
        except ProgramStartError as error:
            os.unlink(self.paths["shim"])
            return self.unusable(error)
        self.started_us = started_us
        return None

    def unusable(self, error: Exception) -> Json:
        return {"kind": "unusable", "message": f"cannot start {self.launch['argv'][0]}: {error}"}

    def stay(self) -> None:
        """Until the main process has ended or the grace has."""
        while self.status is None and not self.killed:
            self.job.wait(POLL_S)
            self.reap()
            if self.status is None:
                self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Commands, the time limit, and the end of the grace."""
        self.obey(now)
        if now >= self.limit:
            self.limit = float("inf")
            self.message = f"the time limit of {self.launch['time_limit_s']} s has passed"
            self.ask("timeout", self.launch["grace_s"], now)
        self.look_at_limits(now)
        if not self.stop:
            self.look_for_ranks(now)
            return
        if now >= self.stop.deadline:
            self.killed = True
        elif not self.stop.announced or (now >= self.stop.patient_until and not self.polled()):
            self.terminate()

    def look_for_ranks(self, now: float) -> None:
        """End a start in which no rank can ever meet another: it would wait for half an hour."""
        if now < self.join_watch.due:
            return
        found = self.join_watch.look(self.main, [each.pid for each in self.wrappers()], now)
        if found is not None:
            self.fail(found, "none of its ranks has met another, and none ever will")

    def look_at_limits(self, now: float) -> None:
        """End a job that has held more memory than it may, also one that goes on although the kernel has killed a part
        of it, and one that only multiplies.
        """
        record = self.launch["limits"]
        too_much = self.memory.too_much(self.job.root, now) or limits.process_limit(record, limits.BOMB)
        if too_much is not None:
            self.fail(*too_much)

    def fail(self, fingerprint: str, message: str) -> None:
        """End the job at once, for a reason that is known by name; the first such reason counts."""
        if self.fingerprint is None:
            self.fingerprint, self.message, self.killed = fingerprint, message, True
            say(message)

    def obey(self, now: float) -> None:
        """Do what the agent wrote last."""
        command: Json = self.commands.new() or {}
        action = command.get("action")
        if action == "checkpoint" and not self.stop and command.get("serial") != self.answered:
            self.answered = command.get("serial")
            self.serial += 1
            self.announce("checkpoint")
        elif action == "fail":
            self.fail(command["fingerprint"], command["message"])
        elif action in {"stop", "kill"}:
            grace_s = 0.0 if action == "kill" else float(command["grace_s"])
            self.ask(command.get("reason") or "cancel", grace_s, now)

    def ask(self, reason: str, grace_s: float, now: float) -> None:
        self.asked_us = self.asked_us or self.now_us()
        if self.stop.ask(reason, grace_s, now, self.launch["patience_s"]):
            say(f"stopping ({reason}) within {grace_s} s")
            self.serial += 1
            self.stop.announced = self.announce("stop")

    def announce(self, action: str) -> bool:
        """Write the file that the ranks poll; False when the disk is full."""
        content: Json = {"action": action, "serial": self.serial, "reason": self.stop.reason}
        if action == "stop":
            content["grace_s"] = round(max(0.0, self.stop.deadline - time.monotonic()), 1)
        try:
            write_whole(self.paths["control"], content, mode=0o644)
        except OSError as error:
            say(f"cannot write the control file: {error}")
            return False
        return True

    def polled(self) -> bool:
        """Return whether the job looks at the control file."""
        return any(name.startswith("polled-") for name in names_in(self.paths["marks"]))

    def terminate(self) -> None:
        """SIGTERM once to each rank, also to one that starts late; not to torchrun, whose own 30 s beat our grace."""
        targets = self.wrappers() if self.torchrun else []
        if not targets and not self.terminated:
            targets = [self.job.process]
        self.tell(targets)

    def tell(self, targets: list[table.Process]) -> None:
        for process in targets:
            if process.key not in self.terminated:
                self.terminated.add(process.key)
                process.send(signal.SIGTERM)

    def wrappers(self) -> list[table.Process]:
        """The rank wrappers, without a child that one has forked and not yet turned into the job's program."""
        program = self.launch["rank_program"]
        below = table.descendants(self.main)
        # Else the pid may have been another's: only a child of the shim's own keeps it until it is collected.
        below = below if self.job.process.same() else []
        found = [each for each in below if program in each.command_line()[:5]]
        pids = {each.pid for each in found}
        return [each for each in found if each.parent not in pids]

    def reap(self) -> bool:
        """Collect the dead; True when nothing is left to wait for."""
        for pid, status in self.job.collect():
            if pid == self.main:
                self.status, self.ended_us = status, self.now_us()
            elif self.status is None:
                self.orphans[pid] = (status, self.now_us())
        return self.job.over

    def share_the_grace(self) -> None:
        """Signal also what the SIGTERM to a single program left behind; it has the rest of the grace."""
        if not self.terminated or self.torchrun:
            return
        while time.monotonic() < self.stop.deadline and not self.reap():
            self.tell(self.job.living())
            self.job.wait(POLL_S)
            self.obey(time.monotonic())

    def kill_the_rest(self) -> None:
        """Nothing that the job forked outlives it."""
        deadline = time.monotonic() + UNKILLABLE_S
        while not self.reap():
            left = self.job.living()
            for process in left:
                process.send(signal.SIGKILL)
            if left and time.monotonic() > deadline:
                names = ", ".join(f"{each.pid} ({each.name}, state {each.state})" for each in left)
                self.message = f"processes that outlive SIGKILL still hold their GPUs: {names}"
                return
            self.job.wait(SWEEP_S)

    def judge(self) -> Json:
        """The result of a job that ran."""
        code, number = verdict.exit_of(self.status)
        exits = self.exits(code, number)
        mute = self.terminated or self.killed
        if self.fingerprint is not None:
            return {"kind": "killed", "fingerprint": self.fingerprint, "message": self.message}
        if self.went_down():
            return {"kind": "lost", "message": "its node ended all processes, as at a shutdown"}
        failure = verdict.first_failure(exits, self.asked_us if mute else None)
        failed_rank = failure.rank if failure else None
        if failure is not None:
            code, number = failure.exit_code, failure.signal
        # Whatever it failed by follows from that: the kernel refuses without a word.
        reached = limits.process_limit(self.launch["limits"], 1) if code and not mute else None
        fingerprint, message = reached or (None, self.message)
        return {
            "kind": "killed" if self.killed else "exited",
            "exit_code": code,
            "signal": number,
            "terminated": bool(self.terminated),
            "stopped_at_step": verdict.stopped_at_step(self.paths["outcome"], self.owners),
            "unsaved": verdict.unsaved(self.paths["outcome"], self.owners),
            "unsaved_parts": verdict.unsaved_parts(self.paths["outcome"], self.owners),
            "ranks": [each._asdict() for each in exits],
            "failed_rank": failed_rank,
            "fingerprint": fingerprint,
            "message": message,
        }

    def note_told_to_end(self, *_: object) -> None:
        """Handle SIGTERM: stay until there is a result, as without it."""
        self.told_to_end = time.monotonic()

    def went_down(self) -> bool:
        """Return whether the job ended because its machine goes down: its processes were told so together with this."""
        told = self.told_to_end is not None and time.monotonic() - self.told_to_end < GOING_DOWN_S
        return told and self.status != 0 and not self.stop

    def now_us(self) -> int:
        """The wall clock as it was set when the job began: durations are true whatever is done to it meanwhile."""
        return now_us() if self.started_us is None else self.moment(steady_us())

    def moment(self, at_us: int) -> int:
        """A moment of the steady clock by that clock."""
        return (self.started_us or 0) + at_us - self.started_steady_us

    def exits(self, code: int | None, number: int | None) -> list[verdict.Exit]:
        if self.torchrun:
            known = (self.paths["marks"], self.ranks, self.owners)
            return [*verdict.marked_exits(*known, self.moment), *verdict.killed_exits(*known, self.orphans)]
        return [verdict.Exit(self.ranks.start, code, number, self.ended_us or self.now_us())]

    def write(self, result: Json) -> None:
        self.memory.close()
        common = {
            "memory_peak": self.memory.peak,
            "stop": self.stop.reason,
            "started_us": self.started_us,
            "ended_us": self.ended_us or self.now_us(),
            "disk_full": full(self.launch["output"]),
            "held_us": steady_us() - self.launch.get("claimed_steady_us", self.started_steady_us),
        }
        self.result_file.write(common | result)


def _daemonize() -> int:
    """Fork; return in the child, with the descriptor whose closing lets the parent go."""
    wait, ready = os.pipe()
    if os.fork():
        os.close(ready)
        os.read(wait, 1)
        os._exit(0)
    os.close(wait)
    return ready


def _read_secrets() -> dict[str, str]:
    """Read the values of the job's secrets from the input, which is empty from then on.

    ValueError if the worker was killed while it wrote them: then nothing of the job has run.
    """
    with open(0, "rb", closefd=False) as pipe:
        secrets: dict[str, str] = json.loads(pipe.read())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return secrets


def main(arguments: list[str]) -> None:
    """``<launch.json> <descriptor>…``."""
    settle(arguments[1:])
    stay_with(arguments[0], _daemonize())


def settle(descriptors: Iterable[str | int]) -> None:
    """Keep the descriptors from what is executed, and let nothing but a result end this process."""
    for descriptor in descriptors:
        os.set_inheritable(int(descriptor), False)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])


def stay_with(launch: str, ready: int, start_job: StartJob = OwnChild) -> None:
    """Be the shim of the attempt with this ``launch.json``; `ready` is closed once the job has begun or never will."""
    begun_us = steady_us()
    become_subreaper()
    prefer_to_kill(GUARD)
    with open(launch, "rb") as file:
        content = json.loads(file.read())
    if content["secrets"]:
        content["env"].update(_read_secrets())
    shim = Shim(content, start_job, begun_us)
    signal.signal(signal.SIGTERM, shim.note_told_to_end)
    shim.run(ready)
