"""Processes that a test starts, found by a mark in their environment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = "TORCHYARD_TEST_ID"


def marked(mark: str) -> list[tuple[int, str]]:
    """Process id and command line of every other process that inherited the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append((int(entry.name), (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
        except OSError:
            continue
    return found


@contextmanager
def unmarked() -> Iterator[None]:
    """What is started here belongs to the whole run, not to the current test."""
    mark = os.environ.pop(MARK, None)
    try:
        yield
    finally:
        if mark is not None:
            os.environ[MARK] = mark
