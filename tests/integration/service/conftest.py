"""Boxes that several of these tests start from, on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.db.engine import Database
from tests.support import box
from tests.support.recorded_context import RecordedContext, recorded_context


@pytest.fixture
def yard(db: Database, tmp_path: Path) -> Iterator[RecordedContext]:
    """The service's parts over people and the node `box` as it comes."""
    box.add_people(db)
    box.add_node(db)
    with recorded_context(db, tmp_path) as made:
        yield made


@pytest.fixture
def made(db: Database, tmp_path: Path) -> Iterator[RecordedContext]:
    """The same with four GPUs, for sweeps."""
    box.add_people(db)
    box.add_node(db, devices=4)
    with recorded_context(db, tmp_path) as made:
        yield made
