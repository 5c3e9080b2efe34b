import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchyard import wire
from worker.exceptions import OutOfStepError, RequestRefusedError
from worker.forward import metrics
from worker.forward.metrics import MetricForwarder, parse, split

STREAM = "rank-3-77-123.jsonl"


class Sink:
    """Stores metrics as the service does; `poison` is a step that it never takes."""

    def __init__(self, poison: int | None = None) -> None:
        self.mark = 0
        self.records: list[tuple[int, wire.MetricRecord]] = []
        self.skipped = 0
        self.batches: list[wire.MetricBatch] = []
        self.poison = poison

    def metrics(self, attempt: str, batch: wire.MetricBatch) -> int:
        self.batches.append(batch)
        if any(record.step == self.poison for _, record in batch.records):
            raise RequestRefusedError(422, {}, "POST metrics")
        if batch.offset > self.mark:
            raise OutOfStepError(self.mark, {}, "POST metrics")
        if batch.end > self.mark:
            self.records += batch.records
            self.skipped += batch.skipped
            self.mark = batch.end
        return self.mark


def line(number: int, **changes: object) -> bytes:
    return json.dumps({"n": number, "step": number, "t": 5, "v": {"loss": 0.5}} | changes).encode() + b"\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job" / "metrics").mkdir(parents=True)
    return tmp_path


def write(folder: Path, data: bytes, name: str = STREAM) -> None:
    with (folder / "job" / "metrics" / name).open("ab") as file:
        file.write(data)


def forwarder(folder: Path, sink: Sink, *, fresh: bool = True) -> MetricForwarder:
    return MetricForwarder(sink, "att-1", folder, node_rank=0, owner=os.getuid(), fresh=fresh)


def drain(forwarder: MetricForwarder, *, ended: bool = False) -> None:
    while forwarder.pump(ended=ended):
        pass


def test_records_carry_stream_rank_and_offsets(folder: Path) -> None:
    sink = Sink()
    write(folder, line(0) + line(1, total=9))
    drain(forwarder(folder, sink))
    (batch,) = sink.batches
    assert (batch.stream, batch.rank, batch.offset, batch.end) == (STREAM, 3, 0, len(line(0) + line(1, total=9)))
    assert [number for number, _ in batch.records] == [0, 1]
    assert batch.records[1][1].total_steps == 9


def test_a_torn_line_waits_for_its_end(folder: Path) -> None:
    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, line(0) + line(1)[:10])
    drain(pump)
    assert len(sink.records) == 1
    write(folder, line(1)[10:])
    drain(pump)
    assert [number for number, _ in sink.records] == [0, 1]
    assert sink.skipped == 0


def test_a_line_that_stays_torn_is_counted_at_the_end(folder: Path) -> None:
    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, line(0) + b'{"n": 1, "st')
    drain(pump, ended=True)
    assert (len(sink.records), sink.skipped, pump.skipped) == (1, 1, 1)


def test_bad_lines_are_counted_and_passed_over(folder: Path) -> None:
    sink = Sink()
    write(folder, b"\n" + b"[1]\n" + line(0) + b"\xff\xfe\n" + line(1, v={}) + line(2))
    drain(forwarder(folder, sink))
    assert [number for number, _ in sink.records] == [0, 2]
    assert sink.skipped == 4


def test_the_line_that_the_service_refuses_is_found_and_skipped(folder: Path) -> None:
    sink = Sink(poison=37)
    write(folder, b"".join(map(line, range(100))))
    drain(forwarder(folder, sink), ended=True)
    assert [number for number, _ in sink.records] == [n for n in range(100) if n != 37]
    assert sink.skipped == 1


def test_batches_are_bounded(folder: Path) -> None:
    sink = Sink()
    count = 2 * metrics.MAX_RECORDS + 5
    write(folder, b"".join(map(line, range(count))))
    drain(forwarder(folder, sink))
    assert [number for number, _ in sink.records] == list(range(count))
    assert max(len(batch.records) for batch in sink.batches) <= metrics.MAX_RECORDS


def test_it_tells_how_many_records_the_process_took(folder: Path) -> None:
    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, line(0) + line(1) + line(7))
    write(folder, b"%020d" % 30, STREAM.replace(".jsonl", ".taken"))
    drain(pump)
    assert [batch.taken for batch in sink.batches] == [8]
    drain(pump, ended=True)
    assert [batch.taken for batch in sink.batches] == [8, 30], "once it has ended, those behind the last line too"
    drain(pump, ended=True)
    assert len(sink.batches) == 2


def test_a_count_that_cannot_be_read_holds_nothing_up(folder: Path) -> None:
    for number, text in enumerate((b"", b"many")):
        sink = Sink()
        write(folder, line(0), f"rank-{number}-1-1.jsonl")
        write(folder, text, f"rank-{number}-1-1.taken")
        drain(forwarder(folder, sink), ended=True)
    (folder / "job" / "metrics" / "rank-5-1-1.taken").symlink_to("/etc/passwd")
    write(folder, line(0), "rank-5-1-1.jsonl")
    drain(forwarder(folder, sink), ended=True)
    assert sink.batches[-1].taken == 1


def test_a_line_longer_than_any_metric_is_passed_over(folder: Path) -> None:
    sink = Sink()
    write(folder, b"x" * (3 * metrics.READ) + b"\n" + line(0))
    drain(forwarder(folder, sink))
    assert [number for number, _ in sink.records] == [0]


def test_a_new_worker_asks_for_the_mark_and_counts_nothing_twice(folder: Path) -> None:
    sink = Sink()
    write(folder, b"bad\n" + line(0))
    drain(forwarder(folder, sink))
    write(folder, line(1))
    drain(forwarder(folder, sink, fresh=False))
    assert [number for number, _ in sink.records] == [0, 1]
    assert sink.skipped == 1


def test_a_service_that_lost_records_gets_them_again(folder: Path) -> None:
    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, line(0))
    drain(pump)
    sink.mark, sink.records = 0, []
    write(folder, line(1))
    drain(pump)
    assert [number for number, _ in sink.records] == [0, 1]


def test_links_pipes_and_strangers_files_are_left_alone(folder: Path, tmp_path: Path) -> None:
    place = folder / "job" / "metrics"
    (tmp_path / "secret").write_bytes(line(7))
    (place / "rank-0-1-1.jsonl").symlink_to(tmp_path / "secret")
    os.mkfifo(place / "rank-1-1-1.jsonl")
    write(folder, line(0))
    sink = Sink()
    drain(forwarder(folder, sink))
    assert [number for number, _ in sink.records] == [0]
    strangers = MetricForwarder(sink, "att-1", folder, node_rank=0, owner=os.getuid() + 1, fresh=True)
    drain(strangers)
    assert len(sink.records) == 1


def test_a_folder_that_is_a_link_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / STREAM).write_bytes(line(0))
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "metrics").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        forwarder(tmp_path, Sink()).pump(ended=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [("NaN", "nan"), ("-Infinity", "-inf"), ('"inf"', "inf"), ("1e999", "inf"), ("3", 3.0), ("-0.5", -0.5)],
)
def test_values_that_are_taken(text: str, value: object) -> None:
    found = parse(b'{"n": 0, "step": 1, "t": 2, "v": {"x": %s}}' % text.encode())
    assert found is not None
    assert found[1].values == {"x": value}


@pytest.mark.parametrize(
    "changes",
    [
        {"n": -1},
        {"n": True},
        {"step": 2**63},
        {"t": 1.5},
        {"v": {"x": True}},
        {"v": {"x": "1.5"}},
        {"v": {"x": 10**400}},
        {"v": {"": 1}},
        {"v": {"a\0b": 1}},
        {"v": {"\ud800": 1}},
        {"v": {"x" * 256: 1}},
        {"v": [1]},
        {"total": "many"},
    ],
)
def test_values_that_are_refused(changes: dict[str, object]) -> None:
    assert parse(line(0, **changes)) is None


def test_a_name_may_be_as_long_as_the_service_takes() -> None:
    name = "x" * 255
    parsed = parse(line(0, v={name: 1}))
    assert parsed is not None
    assert parsed[1].values == {name: 1}


@given(st.binary(max_size=200), st.integers(0, 200), st.booleans())
def test_nothing_a_job_writes_stops_the_reader(garbage: bytes, cut: int, ended: bool) -> None:
    data = line(0) + garbage + b"\n" + line(1)[: len(line(1)) - cut % 10]
    found = split(data, ended=ended)
    assert 0 < found.length <= len(data)
    assert found.records[0][0] == 0
    if ended:
        assert found.length == len(data)


def test_a_worker_out_of_descriptors_loses_no_metric(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> bytes:
        raise OSError(errno.EMFILE, "too many open files")

    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, line(0))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", exhausted)
        with pytest.raises(OSError, match="too many"):
            pump.pump(ended=False)
    drain(pump)
    assert len(sink.batches) == 1
