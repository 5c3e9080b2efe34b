"""What ranks do that `trainer.distributed.spawn` starts: each loads this module anew, and so nothing that is large."""

import os
import signal
from pathlib import Path

from tests.support.wait import until


def fail(folder: str) -> None:
    """Rank 1 raises once rank 0 waits for a signal."""
    rank = int(os.environ["RANK"])
    own = Path(folder, f"own-{rank}")
    own.write_text(str(os.getpid()))
    own.rename(own.with_name(f"pid-{rank}"))  # whole once it is there
    if rank == 0:
        signal.pause()
    until(lambda: Path(folder, "pid-0").exists(), what="rank 0")
    raise ValueError("boom")


def stay(folder: str) -> None:
    """Every rank stays, and rank 0 ignores SIGTERM."""
    if os.environ["RANK"] == "0":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(folder, str(os.getpid())).touch()
    while True:
        signal.pause()
