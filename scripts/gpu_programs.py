"""Programs that steps run as jobs or beside them, as text. Each prints what the step looks for."""

#: Holds memory of the GPU until it is killed.
HOLD = """
import os, sys, torch
held = torch.empty({bytes}, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("held", torch.cuda.get_device_properties(0).uuid, torch.cuda.device_count(), flush=True)
sys.stdin.read()
"""

#: One step on the job's device, in two ranks or one.
TRAIN = """
import os, torch, torch.distributed as dist
device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
dist.init_process_group("gloo")
torch.manual_seed(1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(8, 64, device=device)).square().mean()
loss.backward()
optimizer.step()
os.write(1, f"trained {dist.get_world_size()} {device.type} {loss.item():.4f}{os.linesep}".encode())
dist.barrier()
dist.destroy_process_group()
"""

#: More than any card has.
TOO_MUCH = """
import torch
held = [torch.empty(2**32, dtype=torch.uint8, device="cuda") for _ in range(10_000)]
"""

#: Milliseconds that a save holds the training up, at once and in the background.
STALL = """
import statistics, time, torch, torchyard
device = "cuda" if torch.cuda.is_available() else "cpu"
width, layers = (2048, 10) if device == "cuda" else (256, 4)

def stalls(asynchronous):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers))).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(2, width, device=device)).sum().backward()
    optimizer.step()
    run = torchyard.attach(model=model, optimizer=optimizer, asynchronous=asynchronous)
    found = []
    for _ in range(4):
        run.advance()
        began = time.perf_counter()
        run.save()
        found.append((time.perf_counter() - began) * 1000)
        run.finish()
    return statistics.median(found[1:])

print("stall", f"{stalls(False):.1f} ms at once, {stalls(True):.1f} ms in the background", flush=True)
"""

#: `report` with scalars on the device; any wait for the GPU is an error.
REPORT = """
import time, torch, torchyard
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
value = torch.ones((), device=device)
torchyard.report(loss=value)
calls = 2000
if cuda:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
began = time.perf_counter()
for _ in range(calls):
    torchyard.report(loss=value)
took = (time.perf_counter() - began) / calls * 1e6
if cuda:
    torch.cuda.set_sync_debug_mode("default")
print("report", f"{took:.1f} us a call, no wait for the device", flush=True)
"""
