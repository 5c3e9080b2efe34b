"""Base of the REST API's models, and pages of lists."""

from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, ConfigDict, Field

from torchyard.described import Described
from torchyard.numbers import NonFinite
from torchyard.translatable import TranslatableText

#: Where the API lies; the next version would lie beside it.
PREFIX = "/api/v1"
Item = TypeVar("Item")
Number = float | NonFinite


def _storable(text: str) -> str:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(TranslatableText("nul", "must not contain NUL or lone surrogates"))
    return text


#: What databases can hold.
Text = Annotated[str, AfterValidator(_storable)]


class Resource(Described):
    model_config = ConfigDict(frozen=True)


class Page(Resource, Generic[Item]):
    """One page of a list; `next` is the cursor of the one after, absent on the last."""

    items: list[Item] = Field(description="The page's items.")
    next: str | None = Field(default=None, description="`cursor` of the next page; null on the last.")
