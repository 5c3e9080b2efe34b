"""Where lines of logs are found, and which of them hold some words."""

from typing import Any

import pytest
from sqlalchemy import insert

from service.db.models import LogTime
from service.telemetry import log_lines, logs
from tests.support.plane import Plane, Seeded
from torchyard.ids import JobId


def get(plane: Plane, seeded: Seeded, what: str, **params: Any) -> Any:
    answer = plane.get(f"/jobs/{seeded.job}/logs/{what}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_index_says_where_lines_begin(data_plane: Plane) -> None:
    seeded = data_plane.job()
    text = b"".join(b"line %d\n" % number for number in range(20_000)) + b"open"
    data_plane.log(seeded, 0, text)
    body = get(data_plane, seeded, "index")
    assert (body["lines"], body["size"], body["attempt"]) == (20_001, len(text), 1)
    assert len(body["blocks"]) > 3
    for block in body["blocks"]:
        assert text[: block["offset"]].count(b"\n") == block["line"]
        assert block["offset"] == 0 or text[block["offset"] - 1 : block["offset"]] == b"\n"
        assert block["time"] is not None
    last = body["blocks"][-1]
    rest = get(data_plane, seeded, "index", start=last["offset"])
    assert rest["lines"] == body["lines"] - last["line"]
    assert rest["blocks"][0] == {**last, "line": 0}


def test_blocks_begin_where_times_were_noted(data_plane: Plane) -> None:
    seeded = data_plane.job()
    text = b"x" * 99 + b"\n"
    data_plane.log(seeded, 0, text * 100)
    with data_plane.ctx.db.write() as tx:
        rows = [{"attempt_id": seeded.attempt, "rank": 0, "offset": at, "time_us": at * 10**6} for at in (2000, 5050)]
        tx.execute(insert(LogTime), rows)
    blocks = get(data_plane, seeded, "index")["blocks"]
    assert [(block["offset"], block["line"]) for block in blocks] == [(0, 0), (2000, 20), (5100, 51)]
    assert [block["time"] for block in blocks][1:] == [2000, 5050]
    seen = logs.current(data_plane.ctx.db, JobId(seeded.job), 0)
    for start, noted in ((0, [0, 2000, 5050]), (1999, [0, 2000, 5050]), (2000, [2000, 5050]), (9000, [5050])):
        assert [at for at, _ in log_lines.times(data_plane.ctx.db, seen, 0, start)] == noted
    assert get(data_plane, seeded, "index", start=9000)["blocks"][0]["time"] == 5050


def test_an_empty_log_has_no_lines(data_plane: Plane) -> None:
    seeded = data_plane.job()
    assert get(data_plane, seeded, "index") == {"attempt": 1, "size": 0, "lines": 0, "blocks": []}
    assert get(data_plane, seeded, "search", q="x")["count"] == 0


def test_words_are_found_with_what_stands_around(data_plane: Plane) -> None:
    seeded = data_plane.job()
    text = "one\ntwo\nLoss is NaN\nfour\nfive\nsix\nnan again nan\n"
    data_plane.log(seeded, 0, text.encode())
    body = get(data_plane, seeded, "search", q="nan", context=1)
    assert (body["count"], body["next"]) == (2, None)
    assert body["matches"] == [
        {"line": 2, "offset": 8, "text": "Loss is NaN", "before": ["two"], "after": ["four"]},
        {"line": 6, "offset": 34, "text": "nan again nan", "before": ["six"], "after": []},
    ]
    assert [each["line"] for each in get(data_plane, seeded, "search", q="nan", case=True)["matches"]] == [6]
    few = get(data_plane, seeded, "search", q="o", limit=1)
    assert (few["count"], len(few["matches"])) == (4, 1)
    assert get(data_plane, seeded, "search", q="not there")["matches"] == []
    assert data_plane.get(f"/jobs/{seeded.job}/logs/search").status_code == 422


def test_errors_are_found(data_plane: Plane) -> None:
    seeded = data_plane.job()
    data_plane.log(seeded, 0, b"fine\nTraceback (most recent call last):\n  x\nValueError: boom\nno error: here\n")
    assert [each["line"] for each in get(data_plane, seeded, "search", errors=True)["matches"]] == [1, 3]


def test_a_long_log_is_searched_in_parts(data_plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "SEARCH_BYTES", 10_000)
    monkeypatch.setattr(log_lines, "_READ", 1_000)
    seeded = data_plane.job()
    text = b"".join(b"line %d\n" % number for number in range(5_000))
    data_plane.log(seeded, 0, text)
    offset = line = 0
    found: list[int] = []
    answers = 0
    while offset is not None:
        body = get(data_plane, seeded, "search", q="99", offset=offset, line=line, limit=5_000)
        found += [each["line"] for each in body["matches"]]
        offset, line = body["next"], body["line"]
        answers += 1
    assert found == [number for number in range(5_000) if "99" in str(number)]
    assert (answers > 3, line) == (True, 5_000)


def test_a_log_that_grows_is_searched_on_from_its_last_line(data_plane: Plane) -> None:
    seeded = data_plane.job()
    written, offset, line = b"", 0, 0
    for text, lines, goes_on in (
        (b"fine\nValueErr", [], (1, 5)),
        (b"or: boom", [1], (1, 5)),
        (b"\nfine\nKeyError: x\n", [1, 3], (4, 39)),
        (b"", [], (4, 39)),
    ):
        if text:
            data_plane.log(seeded, len(written), text)
        written += text
        body = get(data_plane, seeded, "search", errors=True, offset=offset, line=line)
        assert [each["line"] for each in body["matches"]] == lines
        offset, line = body["line_offset"], body["line"]
        assert (body["next"], line, offset) == (None, *goes_on)
        assert written[:offset].count(b"\n") == line


def test_a_whole_log_is_saved(data_plane: Plane) -> None:
    seeded = data_plane.job()
    text = b"some words\n" * 500_000
    for at in range(0, len(text), 2**20):
        data_plane.log(seeded, at, text[at : at + 2**20])
    answer = data_plane.get(f"/jobs/{seeded.job}/logs/file")
    assert answer.content == text
    assert answer.headers["content-disposition"] == 'attachment; filename="attempt-1-rank-0.log"'
