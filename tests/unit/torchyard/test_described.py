from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from torchyard import described
from torchyard.described import Described


class Base(Described):
    model_config = ConfigDict(frozen=True)

    first: int = 0
    """Said below,
    on two lines."""
    plain: int = 0


class Below(Base):
    own: int = Field(default=0, description="Said by the field.")
    """Not this."""
    named: int = Field(default=0, alias="other")
    """Of one with another name."""
    typed: Annotated[int, WithJsonSchema({"type": "integer", "description": "Said by the type."})] = 0
    """Said of this very field."""


class Around(BaseModel):
    inner: Below


def words(kind: type[BaseModel]) -> dict[str, str | None]:
    schema = kind.model_json_schema()
    shown = schema.get("$defs", {}).get("Below", schema)["properties"]
    return {name: each.get("description") for name, each in shown.items()}


def test_fields_are_described_by_themselves_else_below_else_by_their_type() -> None:
    assert words(Below) == {
        "first": "Said below,\non two lines.",
        "plain": None,
        "own": "Said by the field.",
        "other": "Of one with another name.",
        "typed": "Said of this very field.",
    }


def test_a_model_within_another_is_described_too() -> None:
    assert words(Around) == words(Below)


def test_no_source_is_read_before_a_schema_is_made() -> None:
    described._of_module.cache_clear()
    Below(first=1)
    assert described._of_module.cache_info().currsize == 0
