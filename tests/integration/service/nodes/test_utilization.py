"""How busy all devices were; on both databases."""

from typing import Any

from sqlalchemy import event, insert, update

from service.db.models import Device, Sample
from service.nodes.utilization import BUCKETS, SAMPLES, TimeBuckets, samples
from tests.support import box
from tests.support.recorded_context import RecordedContext
from torchyard import api
from torchyard.wire import DeviceKind

SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US


def sample(yard: RecordedContext, *ago_s: float, node: str = "box", attempt: str = "", **values: float) -> None:
    named = {name.replace("__", "."): value for name, value in values.items()}
    with yard.ctx.db.write() as tx:
        for each in ago_s:
            at = yard.clock.us - round(each * SECOND_US)
            tx.execute(insert(Sample).values(node=node, attempt_id=attempt, time_us=at, values=named))


def load(yard: RecordedContext, hours: int = 1) -> api.Utilization:
    return yard.ctx.utilization.load(yard.ctx.db, yard.clock.us, hours)


def known(values: list[int | None]) -> dict[int, int]:
    return {at: value for at, value in enumerate(values) if value is not None}


def test_each_device_has_its_own_and_a_hole_is_a_hole(yard: RecordedContext) -> None:
    sample(yard, 1800, gpu__0__utilization=0.0, gpu__0__memory_used=0.0, gpu__1__utilization=100.0)
    sample(yard, 0, gpu__0__utilization=80.0, cpu__percent=5.0)
    sample(yard, 1200, attempt="a", gpu__0__utilization=1.0)
    found = load(yard)
    first, second = found.devices
    assert (first.node, first.of_node, found.bucket_s) == ("box", False, 20)
    assert list(known(first.utilization).values()) == [0, 80]
    assert list(known(second.utilization).values()) == [100]
    assert known(first.utilization).keys() - known(second.utilization).keys() == {BUCKETS}
    assert list(known(first.memory).values()) == [0]
    assert known(second.memory) == {}


def test_a_slot_shows_its_node_as_it_is(yard: RecordedContext) -> None:
    box.add_node(yard.ctx.db, "slots", devices=2, memory=200)
    with yard.ctx.db.write() as tx:
        tx.execute(update(Device).where(Device.node == "slots").values(kind=DeviceKind.CPU_SLOT))
    sample(yard, 0, node="slots", cpu__percent=25.0, memory__used=50.0)
    slots = [each for each in load(yard).devices if each.node == "slots"]
    assert [each.of_node for each in slots] == [True, True]
    assert [known(each.utilization) for each in slots] == [{BUCKETS: 25}] * 2
    assert [known(each.memory) for each in slots] == [{BUCKETS: 25}] * 2


def test_a_day_is_read_in_a_few_samples_and_once_for_all_who_look(yard: RecordedContext) -> None:
    sample(yard, *range(0, 24 * 3600, 20), gpu__0__utilization=50.0)
    statements: list[Any] = []
    event.listen(yard.ctx.db.engine, "before_cursor_execute", lambda *asked: statements.append(asked[2]))
    first = load(yard, 24).devices[0]
    assert set(first.utilization[1:]) == {50}
    asked = len(statements)
    assert load(yard, 24).devices[0] is first
    assert len(statements) == asked
    yard.clock.us += HOUR_US
    assert load(yard, 24).devices[0].utilization[-2:] == [None, None]
    with yard.ctx.db.read() as tx:
        assert BUCKETS < len(samples(tx, "box", TimeBuckets.until(yard.clock.us, 24))) <= (BUCKETS + 1) * SAMPLES
