"""A training script in the manner of PyTorch's ImageNet example: options say how the ranks meet, and who starts them.

What starts it may be `mp.spawn` in it, torchrun (``--dist-url env://``) or mpirun; each tells the rank in its own way.
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--multiprocessing-distributed", action="store_true")
    parser.add_argument("--world-size", type=int, default=-1)
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--dist-url", default="env://")
    parser.add_argument("--devices", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    args = options()
    if args.dist_url == "env://" and args.world_size == -1:
        args.world_size = int(os.environ["WORLD_SIZE"])
    if args.world_size == -1:
        args.world_size = int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1"))
    if args.multiprocessing_distributed:
        args.world_size = args.devices * args.world_size
        mp.spawn(worker, nprocs=args.devices, args=(args.devices, args))
    else:
        worker(0, args.devices, args)


def worker(device: int, devices: int, args: argparse.Namespace) -> None:
    if args.dist_url == "env://" and args.rank == -1:
        args.rank = int(os.environ["RANK"])
    if args.rank == -1:
        args.rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    if args.multiprocessing_distributed:
        args.rank = args.rank * devices + device
    dist.init_process_group("gloo", init_method=args.dist_url, world_size=args.world_size, rank=args.rank)
    met = torch.ones(1)
    dist.all_reduce(met)
    Path(f"met-{args.rank}").write_text(f"{int(met.item())} of {args.world_size}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
