"""Multi-GPU training as many tutorials start it: one process per device by `mp.spawn`, at a port of its own choice."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817 (as everybody writes it)


def setup(rank: int, world_size: int, port: str) -> None:
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def main(rank: int, world_size: int, port: str) -> None:
    setup(rank, world_size, port)
    model = DDP(torch.nn.Linear(4, 1))
    loss = model(torch.ones(2, 4)).sum()
    loss.backward()
    total = torch.ones(1)
    dist.all_reduce(total)
    print(f"rank {rank} of {world_size} has met {int(total)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = int(sys.argv[1]) if len(sys.argv) > 1 else torch.cuda.device_count()
    with socket.socket() as held:  # the tutorials take 12355; tests share their machine
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("localhost", 0))
        mp.spawn(main, args=(world_size, str(held.getsockname()[1])), nprocs=world_size, join=True)
