"""The training of ddp_snapshot.py as many tutorials start it: by `mp.spawn`, at a port of its own choice."""

import os
import socket

import torch.distributed as dist
import torch.multiprocessing as mp
from ddp_snapshot import arguments, train


def main(rank, world_size, port, options):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    train(options)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    processes = int(os.environ["PROCESSES"])
    with socket.socket() as held:  # the tutorials take 12355; tests share their machine
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("localhost", 0))
        mp.spawn(main, args=(processes, str(held.getsockname()[1]), arguments()), nprocs=processes)
