"""A script that `accelerate launch` starts: its ranks meet and add up."""

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
total = accelerator.reduce(torch.ones(1))
print(f"rank {accelerator.process_index} of {accelerator.num_processes} has met {int(total)}", flush=True)
accelerator.end_training()
