"""Where the lines of logs begin."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.telemetry import log_lines
from service.telemetry.logs import LogView
from torchyard.ids import AttemptId

LINES = st.lists(st.integers(0, 60), max_size=20).map(lambda lengths: b"\n".join(b"x" * length for length in lengths))


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Blocks and reads so small that lines go over their borders."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LEAST_BLOCK": 8, "_REGULAR": 16, "_READ": 37}.items():
            patch.setattr(log_lines, name, value)
        yield


@given(LINES, st.lists(st.integers(0, 400), max_size=4, unique=True))
def test_blocks_begin_lines_and_know_how_many_are_before(data: bytes, noted: list[int]) -> None:
    seen = LogView(attempt_id=AttemptId("att-1"), attempt=1, size=len(data), final=True, settled=True)
    times = [(offset, float(offset)) for offset in sorted(noted)]
    index = log_lines.index(lambda offset, limit: data[offset : offset + limit], seen, 0, times)
    assert index.lines == len(data.splitlines())
    assert [block.offset for block in index.blocks][:1] == ([0] if data else [])
    for block in index.blocks:
        assert block.offset == 0 or data[block.offset - 1 : block.offset] == b"\n"
        assert block.line == data.count(b"\n", 0, block.offset)
        assert block.time == max((at for offset, at in times if offset <= block.offset), default=None)
    assert len({block.offset for block in index.blocks}) == len(index.blocks)
    ends = [*(block.offset for block in index.blocks[1:]), len(data)][: len(index.blocks)]
    assert all(end - block.offset <= 2 * 16 + 61 for block, end in zip(index.blocks, ends, strict=True))
