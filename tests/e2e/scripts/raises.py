"""Two ranks; rank 1 raises after a moment, rank 0 waits for it for ever."""

import os
import time

if os.environ["RANK"] == "1":
    time.sleep(0.5)
    raise LookupError("the seventh batch is missing")
time.sleep(600)
