"""Messages for people that other languages have words for, too."""

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, Self

Param = str | int | tuple[str, ...]


class TranslatableText(str):
    """An English message that knows what it is made of: `code` stands for the sentence, `params` are put into it.

    It is text wherever text is taken; the API sends its code and its params beside it. A param may be a message with
    words of its own. `python -m scripts.messages` collects codes and templates for the translators, so both are written
    out where they are used.
    """

    __slots__ = ("code", "params")

    code: str
    params: Mapping[str, Param]

    def __new__(cls, code: str, template: str, /, **params: Param) -> Self:
        shown = {name: ", ".join(value) if isinstance(value, tuple) else value for name, value in params.items()}
        made = super().__new__(cls, template.format_map(shown))
        made.code = code
        made.params = params
        return made


def parts(message: str) -> dict[str, Any]:
    """Return `code` and `params` of a message; the code of plain text is None."""
    if not isinstance(message, TranslatableText):
        return {"code": None, "params": {}}
    params = {
        name: {"message": str(value), **parts(value)} if isinstance(value, TranslatableText) else value
        for name, value in message.params.items()
    }
    return {"code": message.code, "params": params}


def joined(sentences: Sequence[str]) -> str:
    """Return sentences as one message; by halves, since each is a message within the other and many nest deep."""
    if len(sentences) < 2:
        return next(iter(sentences), "")
    half = len(sentences) // 2
    first, second = joined(sentences[:half]), joined(sentences[half:])
    return TranslatableText("sentences", "{first}; {second}", first=first, second=second)


def of_error(error: Exception) -> str:
    """Return the message that an exception was made with, whose text alone `str` gives."""
    return next((each for each in error.args if isinstance(each, TranslatableText)), None) or str(error)


def placeholders(template: str) -> set[str]:
    """Return the names of what is put into a template."""
    return {name for _, name, _, _ in Formatter().parse(template) if name}
