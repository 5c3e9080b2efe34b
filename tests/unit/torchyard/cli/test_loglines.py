import re

import pytest

from torchyard.cli import loglines


@pytest.mark.parametrize(
    ("pieces", "folded"),
    [
        ([b"one\ntw", b"o\nend"], ["one\n", "two\n", "end"]),
        ([b" 10%\r 5", b"0%\r10", b"0%\r", b"\nx\r\n"], ["100%\n", "x\n"]),
        ([b"\r1%", b"\r2%"], ["2%"]),
        ([b"\xff\n"], ["\udcff\n"]),
        ([], []),
    ],
)
def test_lines_are_whole_and_progress_bars_folded(pieces: list[bytes], folded: list[str]) -> None:
    assert list(loglines.lines(pieces)) == folded
    assert "".join(loglines.lines(pieces, raw=True)).encode(errors="surrogateescape") == b"".join(pieces)


def test_a_progress_bar_of_hours_is_not_kept_in_memory() -> None:
    assert list(loglines.lines(b"\r%8d" % n for n in range(200_000))) == ["  199999"]


@pytest.mark.parametrize("raw", [False, True])
def test_a_line_without_end_is_not_kept_in_memory(raw: bool) -> None:
    piece, count = b"x" * 2**16, 256
    found = list(loglines.lines((piece for _ in range(count)), raw=raw))
    assert max(map(len, found)) <= loglines.LONGEST + len(piece)
    assert "".join(found).encode() == piece * count


def test_lines_are_chosen_by_pattern_then_by_number() -> None:
    found = ["loss 1\n", "x\n", "\x1b[31mlo\x1b[0mss 2\n", "loss 3\n"]
    assert list(loglines.chosen(found, re.compile("^loss"), None)) == [found[0], *found[2:]]
    assert list(loglines.chosen(found, re.compile("^loss"), 2)) == found[2:]
    assert list(loglines.chosen(found, None, 0)) == []
