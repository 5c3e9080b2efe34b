"""The option by which a script for ``torch.distributed.launch`` is told its number on the node.

Source: https://docs.pytorch.org/docs/stable/distributed.html#launch-utility: torch before 2.0 passed ``--local_rank``,
later versions pass ``--local-rank``.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from torchyard.analysis.commands import python_program
from torchyard.analysis.scripts import facts, source

#: What today's torch passes; for scripts that do not tell.
DEFAULT = "--local-rank"


def option(arguments: Sequence[str], cwd: Path) -> str | None:
    """The option for a command's Python arguments; None when its script takes its number from the environment."""
    program = python_program(arguments)
    return declared(_text(cwd / program.script) if program.script else _module_text(program.module, cwd))


def declared(text: str) -> str | None:
    """The spelling that a script declares; None if it declares none and reads LOCAL_RANK, else `DEFAULT`."""
    script = source.parse("", text)
    if script is None:
        return DEFAULT
    return facts.local_rank_option(script) or (None if facts.reads_local_rank(script) else DEFAULT)


def _module_text(name: str | None, cwd: Path) -> str:
    if not name:
        return ""
    place = cwd.joinpath(*name.split("."))
    return _text(place.with_suffix(".py")) or _text(place / "__main__.py")


def _text(path: Path) -> str:
    """Return a script's text; nothing of what is no file, which the user of a `live` folder may have put there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        status = os.fstat(descriptor)
        known = stat.S_ISREG(status.st_mode) and status.st_size <= source.MAX_BYTES
        return os.read(descriptor, source.MAX_BYTES).decode(errors="replace") if known else ""
    except OSError:
        return ""
    finally:
        os.close(descriptor)
