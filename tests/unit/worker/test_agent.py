"""The agent as a state machine over a folder of attempts and a service in memory."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchyard import wire
from torchyard.injob import layout
from worker.agent import RENEW_S, Agent, Machine, remove
from worker.attempts import unsent
from worker.attempts.folder import AttemptFolder
from worker.attempts.starts import Heard
from worker.control import registration
from worker.control.accounts import UnixAccounts
from worker.exceptions import RequestRefusedError, UnavailableError
from worker.forward.blobs import BlobSender
from worker.forward.tools import FollowerTools
from worker.monitoring import inventory

IDENTITY = wire.Identity(node_id="n", home_id="h", boot_id="b", pid_namespace="p")


class World:
    """A node whose attempts are started by making their folders."""

    def __init__(self, attempts: Path) -> None:
        self.attempts = attempts
        self.orders = wire.Orders(assigned=[], orders=[], beat=1)
        self.heartbeats: list[wire.Heartbeat] = []
        self.error: Exception | None = None
        self.registrations = 0
        self.now = 0.0
        self.starts: list[str] = []
        self.threads: list[Callable[[], None]] = []
        self.start_error: Exception | None = None
        self.dumped: list[int] = []
        self.told: list[tuple[str, int]] = []
        self.away = False
        self.no_threads = False
        service: Any = self
        tools = FollowerTools(
            service=service,
            blobs=BlobSender(service),
            watch=lambda *_: service,
            finalize_lost=lambda _: None,
            changed=lambda: None,
            spawn=self.spawn,
            now=lambda: self.now,
        )
        node = Machine(
            identity=IDENTITY,
            attempts=attempts,
            devices=list,
            scan=lambda: inventory.scan(attempts),
            disk_free=lambda: registration.disk_free(attempts) and 5,
            start=self.start,
            dump=self.dump,
            accounts=UnixAccounts(lambda name: name == "ada", lambda look: look(), lambda: self.now),
        )
        self.agent = Agent(node, self, self.register, tools)

    def spawn(self, function: Callable[[], None]) -> None:
        if self.no_threads:
            raise RuntimeError("can't start new thread")
        self.threads.append(function)

    def start(self, attempt: str, _: Heard) -> None:
        self.starts.append(attempt)
        if self.start_error:
            raise self.start_error

    def register(self) -> wire.Registered:
        self.registrations += 1
        return wire.Registered(
            installation="i", broker_url="", broker_key_prefix="", heartbeat_s=5, inbox="", inbox_probe=""
        )

    def heartbeat(self, message: wire.Heartbeat) -> wire.Orders:
        if self.error:
            raise self.error
        self.heartbeats.append(message)
        return self.orders

    def dump(self, _: AttemptFolder, serial: int) -> wire.StackDump:
        self.dumped.append(serial)
        return wire.StackDump(serial=serial, at_us=0, processes=[])

    def outputs(self, attempt: str, report: wire.OutputReport) -> wire.Missing:
        return wire.Missing(missing=[])

    def stacks(self, attempt: str, dump: wire.StackDump) -> None:
        if self.away:
            raise UnavailableError
        self.told.append((attempt, dump.serial))

    def hold(self, attempt: str, *, started: bool) -> AttemptFolder:
        folder = AttemptFolder(self.attempts, attempt)
        folder.create()
        if started:
            folder.mark_started()
        return folder

    def run_threads(self) -> None:
        while self.threads:
            self.threads.pop(0)()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_heartbeat_carries_the_inventory_and_the_beat_of_the_answer_before(world: World) -> None:
    world.hold("att-1", started=False)
    assert world.agent.step() == 5
    assert world.agent.step() == 5
    first, second = world.heartbeats
    assert [report.attempt for report in first.attempts] == ["att-1"]
    assert first.attempts[0].phase is wire.Phase.PREPARING
    assert (first.beat, second.beat) == (None, 1)
    assert (first.identity, first.disk_free) == (IDENTITY, 5)
    assert world.registrations == 1


def test_as_whom_jobs_can_run_is_told_at_once_when_it_is_asked(world: World) -> None:
    world.orders = wire.Orders(assigned=[], orders=[], accounts=["ada", "ghost"])
    assert [world.agent.step() for _ in range(3)] == [0, 5, 5]
    assert [each.accounts for each in world.heartbeats] == [{}, *[{"ada": True, "ghost": False}] * 2]


def test_an_attempt_is_started_once_however_often_it_is_named(world: World) -> None:
    world.orders = wire.Orders(assigned=["att-1", "att-1"], orders=[])
    for _ in range(3):
        world.agent.launch("att-1")
        world.agent.step()
    world.run_threads()
    assert world.starts == ["att-1"]


def test_a_start_that_failed_is_tried_again_when_it_is_named_again(world: World) -> None:
    world.start_error = UnavailableError()
    world.agent.launch("att-1")
    world.run_threads()
    world.agent.launch("att-1")
    world.run_threads()
    assert world.starts == ["att-1", "att-1"]


def test_an_unexpected_failure_of_a_start_is_survived(world: World) -> None:
    world.start_error = RuntimeError("bug")
    world.agent.launch("att-1")
    world.run_threads()
    world.agent.launch("att-1")
    world.run_threads()
    assert len(world.starts) == 2


def test_what_found_no_thread_is_looked_after_with_the_next_heartbeat(world: World) -> None:
    world.hold("att-2", started=False)
    world.orders = wire.Orders(assigned=["att-1"], orders=[], dumps=[wire.DumpOrder(attempt="att-3", serial=1)])
    world.no_threads = True
    assert world.agent.step() == 5
    world.no_threads = False
    world.agent.step()
    world.run_threads()
    assert (world.starts, world.dumped) == (["att-2", "att-1"], [1])


def test_what_was_claimed_but_not_started_is_started_by_the_next_worker(world: World) -> None:
    world.hold("att-1", started=False)
    world.agent.adopt()
    world.run_threads()
    assert world.starts == ["att-1"]


def test_what_was_settled_since_the_inventory_is_not_started_again(world: World) -> None:
    folder = world.hold("att-1", started=False)
    world.agent.adopt()
    remove(folder)
    world.run_threads()
    assert world.starts == []


def test_a_folder_of_which_not_all_was_sent_is_moved_aside(tmp_path: Path) -> None:
    world = World(tmp_path / "attempts")
    folder = world.hold("att-1", started=True)
    unsent.mark(folder)
    world.orders = wire.Orders(assigned=[], orders=[], forget=["att-1"])
    world.agent.step()
    assert not folder.path.exists()
    assert (tmp_path / "unsent/att-1/started").exists()


def test_a_message_with_a_strange_id_is_passed_over(world: World) -> None:
    world.agent.launch("../../etc")
    assert not world.threads


def test_an_order_is_written_once(world: World) -> None:
    folder = world.hold("att-1", started=True)
    order = wire.AttemptOrder(attempt="att-1", action=wire.Action.STOP, serial=3, reason="preempt", grace_s=9)
    world.orders = wire.Orders(assigned=[], orders=[order])
    world.agent.step()
    command = folder.at("yard/command.json")
    assert json.loads(command.read_text()) == order.model_dump(mode="json")
    before = command.stat().st_ino
    world.agent.step()
    assert command.stat().st_ino == before
    world.orders = wire.Orders(assigned=[], orders=[order.model_copy(update={"serial": 4})])
    world.agent.step()
    assert json.loads(command.read_text())["serial"] == 4


def test_an_order_to_run_or_for_a_stranger_writes_nothing(world: World) -> None:
    folder = world.hold("att-1", started=True)
    run = wire.AttemptOrder(attempt="att-1", action=wire.Action.RUN)
    stop = wire.AttemptOrder(attempt="att-2", action=wire.Action.STOP)
    world.orders = wire.Orders(assigned=[], orders=[run, stop])
    world.agent.step()
    assert not folder.at("yard/command.json").exists()
    assert not (world.attempts / "att-2").exists()


def test_what_is_forgotten_is_removed_unless_it_lives(world: World) -> None:
    dead, living = world.hold("att-1", started=False), world.hold("att-2", started=False)
    assert living.try_lock() is not None
    world.orders = wire.Orders(assigned=[], orders=[], forget=["att-1", "att-2", "att-3"])
    world.agent.step()
    assert not dead.path.exists()
    assert living.path.exists()


def test_what_cannot_be_removed_keeps_no_other_order_from_being_obeyed(world: World) -> None:
    stuck, other = world.hold("att-1", started=False), world.hold("att-2", started=False)
    stuck.at(layout.LOCK).mkdir()  # as on a disk that takes no writes, its lock cannot be opened
    world.orders = wire.Orders(assigned=[], orders=[], forget=["att-1", "att-2"])
    assert world.agent.step() == 5
    assert stuck.path.exists()
    assert not other.path.exists()


def test_while_the_folder_of_attempts_is_away_nothing_is_told_of_them(world: World) -> None:
    away = world.attempts.rename(world.attempts.with_name("away"))
    waits = [world.agent.step() for _ in range(10)]
    assert not world.heartbeats
    assert waits[-1] >= 2.5
    away.rename(world.attempts)
    assert world.agent.step() == 5


def test_the_service_may_be_away(world: World) -> None:
    world.error = UnavailableError()
    assert world.agent.step() <= 0.2
    waits = [world.agent.step() for _ in range(10)]
    assert 2.5 <= waits[-1] <= 5
    world.error = None
    assert world.agent.step() == 5
    assert world.heartbeats


def test_a_service_that_may_have_been_restarted_is_asked_again(world: World) -> None:
    world.agent.step()
    world.now = RENEW_S - 1
    world.agent.step()
    assert world.registrations == 1
    world.now = RENEW_S
    world.agent.step()
    assert world.registrations == 2


def test_a_service_that_does_not_know_the_node_is_told_again(world: World) -> None:
    world.agent.step()
    world.error = RequestRefusedError(404, {}, "POST heartbeat")
    world.agent.step()
    world.error = None
    world.agent.step()
    assert world.registrations == 2


def test_nothing_is_started_after_the_stop(world: World) -> None:
    world.agent.stop()
    world.agent.launch("att-1")
    assert not world.threads


def test_stacks_are_read_once_for_each_serial_and_again_only_if_they_could_not_be_sent(world: World) -> None:
    for serial, away in ((1, True), (1, False), (1, False), (2, False)):
        world.orders = wire.Orders(assigned=[], orders=[], dumps=[wire.DumpOrder(attempt="att-1", serial=serial)])
        world.away = away
        world.agent.step()
        world.run_threads()
    assert world.dumped == [1, 1, 2]
    assert world.told == [("att-1", 1), ("att-1", 2)]
