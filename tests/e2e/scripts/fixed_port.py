"""Ranks that torchrun has started, and a port that the script has fixed: nobody listens there."""

import os
import sys

import torch.distributed as dist

os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = sys.argv[1]
dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
