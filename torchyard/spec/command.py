"""Commands, their launcher and their environment."""

import re
import shlex
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from torchyard.spec.base import word
from torchyard.translatable import TranslatableText

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Names that belong to the launcher; a spec that sets them would escape its allocation.
RESERVED_ENV = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "NODE_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
    }
)
#: What only a shell understands; a command is started without one.
SHELL_WORDS = frozenset({"&&", "||", "|", ";", "&", ">", ">>", "<", "2>", "2>&1"})
#: Bytes of one word, and of the words and variables together, that Linux starts a program with: MAX_ARG_STRLEN is 128
#: KiB with the final NUL, and all together have a quarter of the usual 8 MiB of stack. Half of that is left to what
#: the launcher adds.
MAX_WORD = 128 * 1024 - 1
MAX_WORDS_BYTES = 2**20
MAX_WORDS = 16_384
#: Each word costs its NUL and a pointer, too.
_WORD_COST = 9


class Launcher(StrEnum):
    """The program that starts the command."""

    #: Found out from the command and its code when the job is submitted; what is stored is one of the others.
    AUTO = "auto"
    #: One process per GPU under ``torchrun``.
    TORCHRUN = "torchrun"
    #: The same for scripts that take their number as an argument, ``--local_rank`` or ``--local-rank``, whichever they
    #: declare: as ``python -m torch.distributed.launch`` started them.
    LAUNCH = "launch"
    #: One Python process.
    PYTHON = "python"
    #: Any program, as it is.
    NONE = "none"

    @property
    def ranked(self) -> bool:
        """Return whether it starts one process per GPU; that holds of what is not found out yet, too."""
        return self in {Launcher.AUTO, Launcher.TORCHRUN, Launcher.LAUNCH}


def _words(given: Any) -> Any:
    """The words of a command; one string is split as a shell would, which then does nothing else for it."""
    if isinstance(given, str):
        try:
            given = shlex.split(given)
        except ValueError as error:
            raise ValueError(
                TranslatableText(
                    "command-quotes",
                    "{given!r} cannot be split into words ({error}): write a list, [program, argument]",
                    given=given,
                    error=str(error),
                )
            ) from None
        if shells := SHELL_WORDS.intersection(given):
            raise ValueError(
                TranslatableText(
                    "shell-words", "no shell reads {word} here: write [sh, -c, 'all of it in quotes']", word=min(shells)
                )
            )
    return [word(each) for each in given] if isinstance(given, list | tuple) else given


def size_on_stack(words: Iterable[str]) -> int:
    """Return the bytes that words need when the kernel starts a program with them."""
    return sum(len(each.encode(errors="surrogatepass")) + _WORD_COST for each in words)


def _startable(command: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what the kernel would start no program with; the words are a list in a file then."""
    if len(command) > MAX_WORDS:
        raise ValueError(
            TranslatableText(
                "many-words",
                "{count} words are more than the {most} that a program is started with: write them to a file in the "
                "code folder and give its name",
                count=len(command),
                most=MAX_WORDS,
            )
        )
    if any(size_on_stack([each]) - _WORD_COST > MAX_WORD for each in command):
        raise ValueError(
            TranslatableText(
                "long-word",
                "a word is longer than the {most} bytes that the kernel takes: write them to a file in the code "
                "folder and give its name",
                most=MAX_WORD,
            )
        )
    if (size := size_on_stack(command)) > MAX_WORDS_BYTES:
        raise ValueError(
            TranslatableText(
                "long-command",
                "the words need {size} bytes of the {most} that a program is started with: write them to a file in "
                "the code folder and give its name",
                size=size,
                most=MAX_WORDS_BYTES,
            )
        )
    return command


def _variables(given: Any) -> Any:
    return {name: word(value) for name, value in given.items()} if isinstance(given, dict) else given


Command = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    AfterValidator(_startable),
    BeforeValidator(_words, json_schema_input_type=tuple[str | float | bool, ...] | str),
]
Environment = Annotated[
    dict[str, str],
    Field(max_length=256),
    BeforeValidator(_variables, json_schema_input_type=dict[str, str | float | bool]),
]
