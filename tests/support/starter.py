"""``python -m tests.support.starter ROOT ATTEMPT WHERE``: starts an attempt and is killed on the way.

WHERE is where SIGKILL strikes: claiming, claim, prepared (told, and not to go yet), go, started, forked, or never.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.node import Box, FolderControl
from torchyard.wire import Go, Launch, Prepared


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingControl(FolderControl):
    """Answers, and the starter is dead before it can read the answer."""

    where = "never"

    def claim(self, attempt: str, nonce: str) -> Launch | None:
        if self.where == "claiming":
            die()
        answer = super().claim(attempt, nonce)
        if self.where == "claim":
            die()
        return answer

    def prepared(self, attempt: str, where: Prepared) -> Go | None:
        answer = super().prepared(attempt, where)
        if self.where == ("go" if answer is not None and answer.go else "prepared"):
            die()
        return answer


class DyingPopen(subprocess.Popen[bytes]):
    """The starter does not survive its own fork."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        die()


def main(root: Path, attempt: str, where: str) -> None:
    control = DyingControl(root / "control")
    control.where = where

    def locks(_: Sequence[str]) -> list[int]:
        if where == "started":
            die()
        return []

    if where == "forked":
        subprocess.Popen = DyingPopen  # type: ignore[misc]
    Box(root, control=control, lock_descriptors=locks).launcher.start(attempt)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
