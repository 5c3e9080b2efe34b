"""A client library that lives in an environment of its own: a process there takes commands as lines of JSON."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers.processes import Processes

CLIENTS = Path(__file__).with_name("clients")


class Bridge:
    """The process; a call costs about a tenth of a millisecond more than in it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        return self._ask("submit", list(command), slots)

    def wait(self, job: str) -> None:
        self._ask("wait", job)

    def _ask(self, *words: object) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> str:
        """Return what comes back; raises RuntimeError when the process has ended or says that it failed."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("its client ended")
        told: dict[str, str] = json.loads(line)
        if "error" in told:
            raise RuntimeError(told["error"])
        return told["answer"]


@contextmanager
def bridge(processes: Processes, python: Path, client: str, *words: str) -> Iterator[Bridge]:
    """Run ``clients/<client>.py`` until left."""
    with (processes.folder / f"{client}.out").open("ab") as out:
        process = subprocess.Popen(
            [str(python), str(CLIENTS / f"{client}.py"), *words], cwd=processes.folder, env=processes.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, text=True,
        )  # fmt: skip
    found = Bridge(process)
    try:
        found.answer()
        yield found
    finally:
        process.communicate()
