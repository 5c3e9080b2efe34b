"""Run by two ranks: what they agree on, written to ``agreed-<rank>.json``."""

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

import torchyard
from torchyard.injob.exceptions import OtherRankError

RANK = int(os.environ["RANK"])
ATTEMPT = Path(os.environ["TORCHYARD_ATTEMPT_DIR"])


def ask(action: str, serial: int) -> None:
    if RANK == 0:
        temporary = ATTEMPT / "asked"
        temporary.write_text(json.dumps({"action": action, "serial": serial}))
        temporary.replace(ATTEMPT / "control.json")


def steps_until_asked(first: int) -> int:
    """Goes on, rank 1 slower than rank 0, until the ranks are asked to checkpoint."""
    for step in range(first, first + 100_000):
        time.sleep(0.0002 * (1 + RANK))
        if torchyard.should_checkpoint():
            return step
    raise AssertionError("never asked")


def failing_checkpoint(step: int, failing_rank: int) -> str:
    try:
        with torchyard.checkpoint(step=step) as folder:
            (folder / f"rank-{RANK}").write_text("half")
            if failing_rank == RANK:
                raise ValueError("this rank fails")
    except (ValueError, OtherRankError) as error:
        return type(error).__name__
    return "committed"


def unwritable_checkpoint(step: int) -> str:
    """Rank 0 cannot make the folder, because a file is in the way."""
    if RANK == 0:
        (ATTEMPT / "job/checkpoints").rename(ATTEMPT / "job/aside")
        (ATTEMPT / "job/checkpoints").write_text("in the way")
    try:
        with torchyard.checkpoint(step=step):
            return "entered"
    except (OSError, OtherRankError) as error:
        return type(error).__name__
    finally:
        if RANK == 0:
            (ATTEMPT / "job/checkpoints").unlink()
            (ATTEMPT / "job/aside").rename(ATTEMPT / "job/checkpoints")


def main() -> None:
    for _ in range(3 * RANK):  # as often as each likes: they have nobody to agree with yet
        assert not torchyard.should_checkpoint()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    agreed: dict[str, object] = {}
    for _ in range(1000):
        assert not torchyard.should_checkpoint()
    began = time.monotonic()
    ask("checkpoint", 1)
    step = agreed["checkpoint"] = steps_until_asked(1000)
    agreed["seen_after"] = time.monotonic() - began
    with torchyard.checkpoint(step=step, metrics={"rank": RANK}) as folder:
        (folder / f"rank-{RANK}").write_text("whole")
    agreed["failed_on_1"] = failing_checkpoint(step + 1, failing_rank=1)
    agreed["failed_on_0"] = failing_checkpoint(step + 2, failing_rank=0)
    agreed["unwritable"] = unwritable_checkpoint(step + 3)
    ask("stop", 2)
    step = agreed["stop"] = steps_until_asked(step + 4)
    Path(f"agreed-{RANK}.json").write_text(json.dumps(agreed))
    with torchyard.checkpoint(step=step) as folder:
        (folder / f"rank-{RANK}").write_text("last")
    raise AssertionError("a stop leaves")


if __name__ == "__main__":
    main()
