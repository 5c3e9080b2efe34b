"""How long a save holds the training up, written at once or in the background, of the same model to the same disk."""

import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

import torchyard
from trainer.distributed.process_group import joined

SAVES = 5
#: 40 million parameters: with Adam's two moments 480 MB.
WIDTH, LAYERS = 2048, 10


def stalls(*, asynchronous: bool) -> list[float]:
    """Milliseconds of each save, after one that is not counted: it allocates the buffers."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(2, WIDTH)).sum().backward()
    optimizer.step()
    run = torchyard.attach(model=model, optimizer=optimizer, asynchronous=asynchronous)
    measured = []
    for _ in range(SAVES + 1):
        run.advance()
        torch.distributed.barrier()
        began = time.perf_counter()
        run.save()
        measured.append((time.perf_counter() - began) * 1000)
        run.finish()
    return measured[1:]


def measure() -> dict[str, float]:
    apart = statistics.median(stalls(asynchronous=True))
    at_once = statistics.median(stalls(asynchronous=False))
    return {"synchronous": at_once, "asynchronous": apart, "stall": apart / at_once * 100}


def main() -> None:
    with joined() as world:
        result = measure()
    if world.leads:
        Path(sys.argv[1]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
