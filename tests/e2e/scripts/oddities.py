"""Not-a-number losses, bytes that are no text, and a last line without an end."""

import math
import sys

import torchyard

for step, loss in enumerate([1.0, math.nan, math.inf, -math.inf, 0.5]):
    torchyard.report(step=step, loss=loss)
sys.stdout.buffer.write(bytes(range(256)) + b"\n" + b"a line without an end")
sys.stdout.flush()
