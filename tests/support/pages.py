"""Code blocks of a documentation page, and how Python blocks are run.

The words behind a fence's language say what a block is: ``python`` runs in one process, ``python on 2 ranks`` in two
that are joined over gloo; ``wrong`` marks what should not be done; of ``raising ValueError`` the block's last comment
is the message; ``noted`` is a script whose submission answers with a note, and is not run.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    page: str
    #: Line of its fence.
    line: int
    language: str
    words: tuple[str, ...]
    code: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def __str__(self) -> str:
        return f"line-{self.line}"

    @property
    def ranks(self) -> int:
        return int(self.words[self.words.index("on") + 1]) if "on" in self.words else 1

    @property
    def raises(self) -> str | None:
        """Name of the exception that it ends with."""
        return self.words[self.words.index("raising") + 1] if "raising" in self.words else None

    @property
    def message(self) -> str:
        """What its last comment says."""
        return self.code.rstrip().rpartition("# ")[2]

    @property
    def follows(self) -> bool:
        """Whether `attach` follows its training."""
        return "torchyard.attach(" in self.code

    def has(self, word: str) -> bool:
        return word in self.words


def blocks(path: Path) -> list[Block]:
    """All of a page, in order."""
    text = path.read_text()
    return [
        Block(
            page=path.name,
            line=text.count("\n", 0, found.start()) + 1,
            language=found[1],
            words=tuple(found[2].split()),
            code=found[3],
        )
        for found in _FENCE.finditer(text)
    ]


def run(setting: Block, given: Sequence[Block]) -> None:
    """Runs blocks one after the other, each in names of its own; a rank calls it.

    The first that does not end as it says ends the rank: the others could not go on together.
    """
    import torch.distributed as dist

    for block in given:
        _run(setting, block)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def _run(setting: Block, block: Block) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    _execute(setting, names)
    try:
        _execute(block, names)
    except Exception as error:
        if type(error).__name__ != block.raises or block.message not in str(error):
            raise
    else:
        assert block.raises is None, f"{block.place} raises nothing"


def _execute(block: Block, names: dict[str, Any]) -> None:
    # The traceback names the page and its lines.
    exec(compile("\n" * block.line + block.code, block.place, "exec"), names)
