"""Commands, their launcher and their environment."""

import re
import shlex
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from torchyard.spec.base import word

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


class Launcher(StrEnum):
    """How the command is started."""

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
                f"{given!r} cannot be split into words ({error}): write a list, [program, argument]"
            ) from None
        if shells := SHELL_WORDS.intersection(given):
            raise ValueError(f"no shell reads {min(shells)} here: write [sh, -c, 'all of it in quotes']")
    return [word(each) for each in given] if isinstance(given, list | tuple) else given


def _variables(given: Any) -> Any:
    return {name: word(value) for name, value in given.items()} if isinstance(given, dict) else given


Command = Annotated[
    tuple[str, ...],
    Field(min_length=1),
    BeforeValidator(_words, json_schema_input_type=tuple[str | float | bool, ...] | str),
]
Environment = Annotated[
    dict[str, str],
    Field(max_length=256),
    BeforeValidator(_variables, json_schema_input_type=dict[str, str | float | bool]),
]
