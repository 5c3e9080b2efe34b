"""Boxes that several of these tests start from, on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.db.engine import Database
from tests.support import box
from tests.support.parts import Parts, parts


@pytest.fixture
def yard(db: Database, tmp_path: Path) -> Iterator[Parts]:
    """The service's parts over people and the node `box` as it comes."""
    box.add_people(db)
    box.add_node(db)
    with parts(db, tmp_path) as made:
        yield made


@pytest.fixture
def made(db: Database, tmp_path: Path) -> Iterator[Parts]:
    """The same with four GPUs, for sweeps."""
    box.add_people(db)
    box.add_node(db, devices=4)
    with parts(db, tmp_path) as made:
        yield made
