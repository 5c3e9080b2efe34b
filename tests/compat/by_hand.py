"""What users run by hand, without the queue, in forks of a process that has their packages loaded."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

FORKS = Path(__file__).with_name("forks.py")
#: Sums depend on the number of threads.
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class ByHand:
    """`folder` keeps what the programs print."""

    server: "subprocess.Popen[str]"
    folder: Path
    _numbers: Iterator[int] = field(default_factory=count)
    _ended: dict[int, list[int]] = field(default_factory=dict)

    def __call__(self, folder: Path, script: Path | str, *words: str, **options: Any) -> str:
        """What a script prints that ends well, on both streams."""
        with self.running(folder, script, *words, **options) as output:
            pass
        return output.read_text()

    @contextmanager
    def running(
        self,
        folder: Path,
        script: Path | str,
        *words: str,
        load: Sequence[str] = (),
        ranks: int = 0,
        path: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Path]:
        """Run a script in a folder, as `torchrun` does where `ranks` are given; the end of the `with` waits for it.

        The packages to `load` stay loaded for others. Yields the file into which it prints.
        """
        number = next(self._numbers)
        output = self.folder / f"{number}.txt"
        given = {"PATH": os.environ["PATH"], "HOME": str(folder), **ONE_THREAD, **(environment or {})}
        request = {
            "number": number,
            "load": load,
            "ranks": ranks,
            "folder": str(folder),
            "output": str(output),
            "words": [str(script), *words],
            "path": [str(each) for each in path],
            "environment": given,
        }
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        pid = self._answer("pid", number)
        try:
            yield output
            codes = self._ended.pop(number, None) or self._answer("codes", number)
            assert set(codes) == {0}, f"{codes}: {output.read_text()}"
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            raise

    def _answer(self, name: str, number: int) -> Any:
        """The next answer of this name to a request; ends of others are kept for them."""
        assert self.server.stdout is not None
        for line in self.server.stdout:
            answer = json.loads(line)
            if answer["number"] == number and name in answer:
                return answer[name]
            self._ended[answer["number"]] = answer["codes"]
        raise AssertionError(f"the server has ended: {(self.folder / 'errors.txt').read_text()}")


@contextmanager
def serve(environment: Path, folder: Path) -> Iterator[ByHand]:
    """Fork programs in a user's environment, until the end of the `with`."""
    command = [str(environment / "bin" / "python"), "-u", str(FORKS)]
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "CUDA_VISIBLE_DEVICES": "", **ONE_THREAD}
    with (
        (folder / "errors.txt").open("w") as errors,
        subprocess.Popen(
            command, cwd=folder, env=clean, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as server,
    ):
        yield ByHand(server, folder)
    assert server.returncode == 0
