"""Base of all nouns of a recipe."""

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

from pydantic import BeforeValidator, ConfigDict, Field

from torchyard.described import Described
from torchyard.translatable import Param, TranslatableText

Fraction = Annotated[float, Field(ge=0, lt=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Decay = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
#: ``module:function`` of the job's own code: only its form is looked at here, it is imported in the job alone.
Target = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", max_length=200)]


class RecipeOptions(Described):
    """Base of every noun: immutable, and unknown keys are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


def named(*kinds: type[RecipeOptions], synonyms: Mapping[str, str] | None = None) -> BeforeValidator:
    """Accept a bare name for one of `kinds`, and explain a wrong one in one sentence.

    `synonyms`: the name here of what others call by another one, in small letters without punctuation.
    """
    names = [str(kind.model_fields["name"].default) for kind in kinds]

    def expand(value: Any) -> Any:
        if isinstance(value, RecipeOptions):
            return value
        given = {"name": value} if isinstance(value, str) else value
        if not isinstance(given, dict):
            raise ValueError(
                TranslatableText(
                    "noun-form",
                    "give a name ({names}), or {{name: {first}, option: value}}",
                    names=tuple(names),
                    first=names[0],
                )
            )
        if "name" not in given:
            raise ValueError(
                TranslatableText("noun-name", "its name is missing: add name: {others} or {last}", **_one_of(names))
            )
        if given["name"] not in names:
            raise ValueError(_unknown(str(given["name"]), names, synonyms or {}))
        return given

    return BeforeValidator(expand, json_schema_input_type=_either_form(kinds))


def _either_form(kinds: tuple[type[RecipeOptions], ...]) -> Any:
    """The type that the JSON Schema shows: a bare name where no option is required, or the options."""
    bare = tuple(kind.model_fields["name"].default for kind in kinds if not _requires(kind))
    return Union[(Literal[bare], *kinds)] if bare else Union[kinds]  # noqa: UP007 (made from a list)


def _requires(kind: type[RecipeOptions]) -> bool:
    return any(field.is_required() for field in kind.model_fields.values())


def _unknown(name: str, names: list[str], synonyms: Mapping[str, str]) -> TranslatableText:
    meant = {**{_plain(each): each for each in names}, **synonyms}
    near = difflib.get_close_matches(name, names, n=1)
    suggested = meant.get(_plain(name)) or (near[0] if near else None)
    if suggested:
        return TranslatableText(
            "similar-noun",
            "{name!r} is not known here: choose {others} or {last}. Did you mean {suggested}?",
            name=name,
            suggested=suggested,
            **_one_of(names),
        )
    return TranslatableText(
        "unknown-noun", "{name!r} is not known here: choose {others} or {last}.", name=name, **_one_of(names)
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _one_of(names: list[str]) -> dict[str, Param]:
    return {"others": tuple(names[:-1]), "last": names[-1]}
