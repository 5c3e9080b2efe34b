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

#: The trainer; then where and of what type the outputs of its layers were, in which layout, and the card's peak.
RECIPE = """
import sys, torch
from torch.nn.modules.module import register_module_forward_hook
from trainer import command

seen = set()

def look(module, given, output):
    if not torch.is_tensor(output) or torch.compiler.is_compiling():
        return
    seen.update((output.device.type, str(output.dtype).removeprefix("torch.")))
    if output.dim() == 4:
        last = output.is_contiguous(memory_format=torch.channels_last) and not output.is_contiguous()
        seen.add("NHWC" if last else "NCHW")

register_module_forward_hook(look)
command.main()
if torch.cuda.is_available():
    seen.add("tf32" if torch.backends.cuda.matmul.allow_tf32 else "no-tf32")
    print("peak", torch.cuda.max_memory_allocated() >> 20, "MiB")
print("seen", *sorted(seen), flush=True)
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

#: 200 steps on the device, each loss in all its bits; goes on from where it was stopped.
RESUME = """
import os, time
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch, torchyard
torch.use_deterministic_algorithms(True)
torch.manual_seed(3)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Dropout(0.2), torch.nn.Linear(128, 10)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(torch.randn(1600, 64), batch_size=32, shuffle=True)
run = torchyard.attach(model=model, optimizer=optimizer, loader=loader)
step = int(run.step)
for epoch in run.epochs(4):
    for batch in loader:
        loss = model(batch.to(device)).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", step, float(loss).hex(), flush=True)
        step += 1
        run.report(loss=loss, total_steps=200)
        time.sleep(0.05)
"""

#: Holds as much memory as it is told, and computes a little until it is ended.
SHARE = """
import os, time, torch
if torch.cuda.is_available():
    held = torch.empty(int(os.environ["HOLD"]), dtype=torch.uint8, device="cuda")
print("holds", os.environ["HOLD"], flush=True)
while True:
    time.sleep(0.2)
"""

#: Keeps the device at work for 30 s.
BUSY = """
import time, torch
device = "cuda" if torch.cuda.is_available() else "cpu"
many = torch.randn(4096, 4096, device=device) if device == "cuda" else torch.randn(256, 256)
end = time.monotonic() + 30
while time.monotonic() < end:
    for _ in range(20):
        many = (many @ many).clamp(-1, 1)
    if device == "cuda":
        torch.cuda.synchronize()
"""

#: Has a device and does nothing with it.
LAZY = """
import time, torch
held = torch.ones(8, device="cuda" if torch.cuda.is_available() else "cpu")
time.sleep(300)
"""

#: Computes and heeds no request to stop.
DEAF = """
import signal, torch
for each in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(each, signal.SIG_IGN)
device = "cuda" if torch.cuda.is_available() else "cpu"
held = torch.empty(2**32 if device == "cuda" else 1, dtype=torch.uint8, device=device)
many = torch.randn(256, 256, device=device)
print("holds", held.numel(), flush=True)
while True:
    many = (many @ many).clamp(-1, 1)
"""

#: Reads past the end of a tensor, which the kernel checks.
ASSERTION = """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
row = torch.arange(4, device=device)
print(row[torch.tensor([99], device=device)].sum().item())
"""

#: How many cards CUDA sees that nobody hides from it, and whether the first one's file can be opened.
LOOK = """
import os
if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
    del os.environ["CUDA_VISIBLE_DEVICES"]
import torch
count = torch.cuda.device_count() if torch.cuda.is_available() else 0
try:
    os.close(os.open("/dev/nvidia0", os.O_RDWR))
    opened = "opened"
except PermissionError:
    opened = "refused"
except FileNotFoundError:
    opened = "missing"
print("sees", count, opened, flush=True)
"""

#: Says when its first DDP step has ended.
FIRST_STEP = """
import time, torch, torch.distributed as dist
cuda = torch.cuda.is_available()
device = torch.device("cuda", 0) if cuda else torch.device("cpu")
dist.init_process_group("nccl" if cuda else "gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(8, 64, device=device)).square().mean()
loss.backward()
optimizer.step()
loss.item()
print("first", time.time(), flush=True)
dist.destroy_process_group()
"""

#: A save in the background, while the weights that it saves change: what is stored are those of the save.
SNAPSHOT = """
import os, pathlib, torch, torchyard
device = "cuda" if torch.cuda.is_available() else "cpu"
width = 4096 if device == "cuda" else 256
torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(4))).to(device)
run = torchyard.attach(model=model, asynchronous=True)
run.advance()
saved = {name: each.detach().cpu().clone() for name, each in model.state_dict().items()}
run.save()
with torch.no_grad():
    for _ in range(50):
        for each in model.parameters():
            each.mul_(1.5)
run.finish()
(place,) = pathlib.Path(os.environ["TORCHYARD_ATTEMPT_DIR"]).glob("job/checkpoints/*/model.pt")
stored = torch.load(place, weights_only=True, map_location="cpu")
changed = all(not torch.equal(each.cpu(), saved[name]) for name, each in model.state_dict().items())
equal = stored.keys() == saved.keys() and all(torch.equal(stored[name], each) for name, each in saved.items())
print("stored", device, "changed since" if changed else "unchanged", "equal" if equal else "different", flush=True)
"""

#: Takes 2 GiB of the card, tells so, and then more than its share.
CAPPED = """
import torch, torchyard
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(8, 8).to(device)
torchyard.attach(model=model)
held = [torch.empty(2**31, dtype=torch.uint8, device=device)]
print("holds", held[0].numel(), flush=True)
held.append(torch.empty(2**33, dtype=torch.uint8, device=device))
print("took", "more", flush=True)
"""
