from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Connection, Select, String, create_engine, literal, null, select
from sqlalchemy.exc import NoResultFound

import service
from service.db.models import (
    Account,
    Attempt,
    Base,
    Checkpoint,
    Device,
    Event,
    Group,
    Job,
    Member,
    Node,
    Reservation,
    Token,
    User,
)
from service.db.records.accounting import AccountRecord
from service.db.records.artifacts import CheckpointRecord
from service.db.records.attempts import AttemptRecord, MemberRecord
from service.db.records.identity import TokenRecord, UserRecord
from service.db.records.jobs import EventRecord, GroupRecord, JobRecord
from service.db.records.nodes import DeviceRecord, NodeRecord, ReservationRecord
from service.db.records.record import Record
from service.db.records.spec import StoredSpec
from torchyard.api import JobError
from torchyard.states import JobState

WHOLE: dict[type[Record], type[Base]] = {
    AccountRecord: Account,
    AttemptRecord: Attempt,
    CheckpointRecord: Checkpoint,
    DeviceRecord: Device,
    EventRecord: Event,
    GroupRecord: Group,
    JobRecord: Job,
    MemberRecord: Member,
    NodeRecord: Node,
    ReservationRecord: Reservation,
    TokenRecord: Token,
    UserRecord: User,
}
STATE = literal("running", String).label("state")
ERROR = literal({"cause": "oom", "message": "no memory"}, JSON).label("error")
SPEC = literal({"name": "one"}, JSON).label("spec")
TAGS = literal(["a", "b"], JSON).label("tags")
INDEX = literal(7).label("index")
_SERVICE = Path(service.__file__).parent


@dataclass(frozen=True, slots=True)
class Example(Record):
    index: int
    state: JobState
    error: JobError | None
    spec: StoredSpec
    tags: tuple[str, ...]


@pytest.fixture
def tx() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.mark.parametrize(("record", "table"), WHOLE.items(), ids=lambda kind: kind.__name__)
def test_a_whole_record_has_the_columns_of_its_table(record: Any, table: type[Base]) -> None:
    assert [field.name for field in fields(record)] == [column.name for column in table.__table__.columns]


def test_columns_are_read_by_name_and_made_what_the_field_says(tx: Connection) -> None:
    found = Example.one(tx.execute(select(SPEC, TAGS, STATE, INDEX, ERROR)))
    assert found == Example(
        index=7,
        state=JobState.RUNNING,
        error=JobError(cause="oom", message="no memory"),
        spec=StoredSpec({"name": "one"}),
        tags=("a", "b"),
    )
    assert type(found.state) is JobState


def test_null_stays_none_and_further_columns_are_left_out(tx: Connection) -> None:
    query = select(SPEC, TAGS, STATE, INDEX, null().label("error"), literal(1).label("further"))
    assert Example.one(tx.execute(query)).error is None


def test_a_missing_column_is_named(tx: Connection) -> None:
    with pytest.raises(TypeError, match="Example needs the columns state, tags"):
        Example.all(tx.execute(select(INDEX, ERROR, SPEC)))


def test_a_record_is_frozen(tx: Connection) -> None:
    found: Any = Example.one(tx.execute(select(SPEC, TAGS, STATE, INDEX, ERROR)))
    with pytest.raises(FrozenInstanceError):
        found.index = 8


def test_rows_come_in_order_and_none_is_no_row(tx: Connection) -> None:
    one: Select[Any] = select(SPEC, TAGS, STATE, INDEX, ERROR)
    both = one.union_all(select(SPEC, TAGS, STATE, literal(8).label("index"), ERROR))
    assert [each.index for each in Example.each(tx.execute(both))] == [7, 8]
    assert [each.index for each in Example.all(tx.execute(both))] == [7, 8]
    first = Example.first(tx.execute(one))
    assert first is not None
    assert first.index == 7
    assert Example.first(tx.execute(one.where(literal(1) == 2))) is None
    with pytest.raises(NoResultFound):
        Example.one(tx.execute(one.where(literal(1) == 2)))


def test_the_columns_of_a_record_are_its_tables_and_the_labelled_ones() -> None:
    @dataclass(frozen=True, slots=True)
    class Named(Record):
        id: str
        user: str
        state: JobState

    user = literal("ada").label("user")
    assert Named.columns(Job, user) == [Job.id, user, Job.state]


def test_rows_of_any_type_are_known_to_the_database_package_alone() -> None:
    packages = [each for each in _SERVICE.iterdir() if each.is_dir() and each.name != "dashboard"]
    modules = {package.name: [path.read_text() for path in package.rglob("*.py")] for package in packages}
    assert {name for name, texts in modules.items() if any("Row[Any]" in text for text in texts)} == {"db"}
