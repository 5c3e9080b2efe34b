import math
from pathlib import Path

import pytest

from service.scheduler.model.jobs import ReservationInfo
from service.simulator.exceptions import TraceError
from service.simulator.reservations import ReservationCalendar, TraceReservation, parse, read
from service.simulator.trace import SECOND, Cluster

HEAD = "start_time,end_time,nodes,gpus,users,projects,maintenance,made_time,cancel_time"
BOX = Cluster(nodes=2, gpus=4)


def lines(*rows: str) -> list[str]:
    return [f"{each}\n" for each in (HEAD, *rows)]


def test_reservations_are_read_by_their_starts() -> None:
    first, second = parse(lines("100,200,,3,ada; bob,vision,,,", "50,90,0;1,,,,1,10,80"), BOX)
    assert first == TraceReservation(
        info=ReservationInfo(
            id="line 3",
            name="line 3",
            starts_us=50 * SECOND,
            ends_us=90 * SECOND,
            maintenance=True,
            nodes=frozenset({"node0", "node1"}),
        ),
        made_us=10 * SECOND,
        over_us=80 * SECOND,
    )
    assert (second.info.gpus, second.info.users, second.info.projects) == (3, {"ada", "bob"}, {"vision"})
    assert (second.made_us, second.over_us) == (None, 200 * SECOND)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("now,200,,1,ada,,,,", "line 2, start_time: 'now' is not a number of seconds"),
        ("100,100,,1,ada,,,,", "line 2, end_time: '100' is not later than start_time"),
        ("100,200,,1,,,,,", "line 2, users: name users or projects, or else write 1 in maintenance"),
        ("100,200,0,,ada,,1,,", "line 2, users: name users or projects, or else write 1 in maintenance"),
        ("100,200,,,ada,,,,", "line 2, nodes: give either gpus or nodes"),
        ("100,200,0,1,ada,,,,", "line 2, nodes: give either gpus or nodes"),
        ("100,200,,1,,,1,,", "line 2, nodes: name the nodes of the maintenance, without gpus"),
        ("100,200,0;2,,ada,,,,", "line 2, nodes: there is no node '2': there is 0 to 1 (--nodes)"),
        ("100,200,,9,ada,,,,", "line 2, gpus: '9' is not a number of GPUs from 1 to 8"),
        ("100,200,0,,,,yes,,", "line 2, maintenance: 'yes' is neither 0 nor 1"),
        ("100,200,,1,ada,,,soon,", "line 2, made_time: 'soon' is not a number of seconds"),
    ],
)
def test_errors_name_file_line_column_and_mend(row: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "reserved.csv"
    path.write_text("".join(lines(row)))
    with pytest.raises(TraceError) as refused:
        read(path, BOX)
    assert str(refused.value) == f"{path}: {message}"


def test_a_file_that_is_missing_or_without_its_columns_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nowhere\.csv: cannot be read"):
        read(tmp_path / "nowhere.csv", BOX)
    with pytest.raises(TraceError, match=r"line 1: no column end_time; the first line names the columns"):
        parse(["start_time\n"], BOX)


def test_time_passes_from_moment_to_moment() -> None:
    calendar = ReservationCalendar(parse(lines("100,200,1,,,,1,10,"), BOX), lead_us=30 * SECOND)
    moments = []
    while calendar.next_us < math.inf:
        now_us = int(calendar.next_us)
        assert calendar.pass_to(now_us)
        moments.append((now_us // SECOND, len(calendar.known(now_us)), list(calendar.drained(now_us))))
    assert moments == [(10, 1, []), (70, 1, ["node1"]), (100, 1, ["node1"]), (200, 0, [])]
    assert not calendar.pass_to(300 * SECOND)
