"""A job that reports and prints at a steady pace, and can be stopped and continued.

usage: steady.py STEPS [SECONDS_PER_STEP]
"""

import json
import sys
import time

import torchyard

steps, pace = int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.02
folder = torchyard.restore()
first = json.loads((folder / "state.json").read_text())["step"] + 1 if folder else 0
print(f"starting at step {first}", flush=True)
for step in range(first, steps):
    time.sleep(pace)
    print(f"step {step}", flush=True)
    torchyard.report(step=step, total_steps=steps, loss=1.0 / (step + 1))
    if torchyard.should_checkpoint():
        with torchyard.checkpoint(step=step, metrics={"loss": 1.0 / (step + 1)}) as target:
            (target / "state.json").write_text(json.dumps({"step": step}))
print("done", flush=True)
