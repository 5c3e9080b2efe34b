"""Ranks that say who they are, sum their gradients, check that all hold the same, and go on until they are stopped.

They do without DistributedDataParallel and an optimizer, which load for two seconds in each rank.
"""

import os
import sys
import time

import torch
import torch.distributed as dist

import torchyard

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GLOO_SOCKET_IFNAME", "MASTER_ADDR")


def same_everywhere(model):
    mine = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    all_of_them = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(all_of_them, mine)
    return all(torch.equal(mine, other) for other in all_of_them)


def main():
    print(" ".join(os.environ[name] for name in NAMES), flush=True)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = torch.nn.Linear(8, 2)
    for parameter in model.parameters():
        dist.broadcast(parameter.detach(), src=0)
    folder, first = torchyard.restore(), 0
    if folder is not None:
        assert sorted(path.name for path in folder.glob("rank-*")) == [f"rank-{n}.pt" for n in range(4)]
        saved = torch.load(folder / "state.pt")
        model.load_state_dict(saved["model"])
        first = saved["step"]
    for step in range(first + 1, 1_000_000):
        model.zero_grad()
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.data -= 0.01 * parameter.grad
        if step == first + 3:
            assert same_everywhere(model)
            print(f"from {first}: same parameters", flush=True)
        torchyard.report(step=step, loss=loss)
        if torchyard.should_checkpoint():
            with torchyard.checkpoint(step=step) as target:
                if rank == 0:
                    torch.save({"model": model.state_dict(), "step": step}, target / "state.pt")
                torch.save(torch.get_rng_state(), target / f"rank-{rank}.pt")
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
