import errno
import os
from pathlib import Path

import pytest

from worker.exceptions import OutOfStepError, UnavailableError
from worker.forward import logs
from worker.forward.logs import LogForwarder


class Sink:
    """Stores logs as the service does."""

    def __init__(self) -> None:
        self.stored: dict[int, bytearray] = {}
        self.dropped: dict[int, int] = {}
        self.calls: list[tuple[int, int, int]] = []
        self.away = False

    def log(self, attempt: str, rank: int, offset: int, data: bytes, dropped: int) -> int:
        if self.away:
            raise UnavailableError
        self.calls.append((rank, offset, len(data)))
        stored = self.stored.setdefault(rank, bytearray())
        if offset > len(stored):
            raise OutOfStepError(len(stored), {}, "POST logs")
        stored += data[len(stored) - offset :]
        self.dropped[rank] = dropped
        return len(stored)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


def forwarder(folder: Path, sink: Sink, *, limit: int = 2**30, fresh: bool = True) -> LogForwarder:
    return LogForwarder(sink, "att-1", folder, limit=limit, fresh=fresh)


def write(folder: Path, data: bytes, name: str = "rank-0.log") -> None:
    with (folder / "logs" / name).open("ab") as file:
        file.write(data)


def drain(forwarder: LogForwarder) -> None:
    while forwarder.pump():
        pass


def test_bytes_arrive_once_and_in_order(folder: Path) -> None:
    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, b"one\xff\n")
    drain(pump)
    write(folder, b"\x00two")
    drain(pump)
    assert bytes(sink.stored[0]) == b"one\xff\n\x00two"
    assert len(sink.calls) == 2


def test_an_idle_or_empty_log_costs_no_request(folder: Path) -> None:
    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, b"")
    write(folder, b"x", "launcher.log")
    write(folder, b"x", "core.12")
    for _ in range(3):
        assert not pump.pump()
    assert sink.calls == [(-1, 0, 1)]


def test_logs_take_turns(folder: Path) -> None:
    sink = Sink()
    write(folder, bytes(3 * logs.BATCH))
    write(folder, b"short", "rank-1.log")
    pump = forwarder(folder, sink)
    assert pump.pump()
    assert sink.calls == [(0, 0, logs.BATCH), (1, 0, 5)]


def test_a_new_worker_asks_for_the_mark_first(folder: Path) -> None:
    sink = Sink()
    sink.stored[0] = bytearray(b"already ")
    write(folder, b"already there")
    drain(forwarder(folder, sink, fresh=False))
    assert sink.calls == [(0, 0, 0), (0, 8, 5)]
    assert bytes(sink.stored[0]) == b"already there"


def test_a_service_that_lost_bytes_gets_them_again(folder: Path) -> None:
    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, b"abc")
    drain(pump)
    del sink.stored[0][1:]
    write(folder, b"def")
    drain(pump)
    assert bytes(sink.stored[0]) == b"abcdef"


def test_what_lies_beyond_the_limit_is_dropped_and_counted(folder: Path) -> None:
    sink = Sink()
    pump = forwarder(folder, sink, limit=4)
    write(folder, b"123456")
    drain(pump)
    write(folder, b"789")
    drain(pump)
    assert bytes(sink.stored[0]) == b"1234"
    assert sink.dropped[0] == pump.dropped == 5


def test_what_is_not_sent_yet_stays_though_the_log_is_past_its_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BATCH", "PUNCH_ABOVE", "PUNCH_STEP", "KEEP_TAIL"):
        monkeypatch.setattr(logs, name, 4096)
    sink, limit, end = Sink(), 10 * 4096, b"x" * 4096
    sink.away = True
    pump = forwarder(folder, sink, limit=limit)
    write(folder, b"x" * 4 * limit)
    with pytest.raises(UnavailableError):
        pump.pump()
    sent, beyond = b"x" * limit, bytes(3 * limit - 4096)
    assert (folder / "logs" / "rank-0.log").read_bytes() == sent + beyond + end
    sink.away = False
    drain(pump)
    assert sink.stored[0] == sent
    assert (folder / "logs" / "rank-0.log").read_bytes() == bytes(limit - 4096) + end + beyond + end


def test_nothing_is_lost_while_the_service_is_away(folder: Path) -> None:
    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, b"abc")
    sink.away = True
    with pytest.raises(UnavailableError):
        pump.pump()
    sink.away = False
    drain(pump)
    assert bytes(sink.stored[0]) == b"abc"


def test_strange_logs_are_left_out_and_hold_up_no_other(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "logs" / "rank-0.log").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / "logs" / "rank-1.log")
    write(folder, b"good", "rank-2.log")
    sink = Sink()
    drain(forwarder(folder, sink))
    assert sink.stored == {2: b"good"}


def test_a_disk_that_fails_for_a_moment_costs_no_byte(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Sink()
    pump = forwarder(folder, sink)
    write(folder, b"abc")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", _no_descriptors_left)
        with pytest.raises(OSError, match="too many"):
            pump.pump()
    drain(pump)
    assert sink.stored == {0: b"abc"}


def _no_descriptors_left(*_: object) -> bytes:
    raise OSError(errno.EMFILE, "too many open files")


def test_a_large_log_gives_its_blocks_back_and_keeps_its_size_and_end(folder: Path) -> None:
    size = logs.PUNCH_ABOVE + 8 * logs.BATCH
    path = folder / "logs" / "rank-0.log"
    path.write_bytes(b"x" * size)
    sink = Sink()
    drain(forwarder(folder, sink))
    assert sink.stored[0] == b"x" * size
    status = path.stat()
    assert status.st_size == size
    assert status.st_blocks * 512 <= logs.KEEP_TAIL + logs.PUNCH_STEP + 2**16
    assert path.read_bytes()[-logs.KEEP_TAIL :] == b"x" * logs.KEEP_TAIL


@pytest.mark.parametrize(
    ("name", "rank"), [("rank-12.log", 12), ("launcher.log", -1), ("rank-x.log", None), ("rank-1.log.gz", None)]
)
def test_names_of_logs(name: str, rank: int | None) -> None:
    assert logs.rank_of(name) == rank
