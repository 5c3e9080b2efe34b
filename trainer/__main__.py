"""``python -m trainer``: the manual is in `trainer.command`."""

import gc
import sys

# What the imports make stays to the end: to look for garbage in it, then and at the end, takes half as long again.
gc.disable()

from trainer import command  # noqa: E402
from trainer.exceptions import SpawnError  # noqa: E402

gc.freeze()
gc.enable()

if __name__ == "__main__":
    try:
        command.main()
    except SpawnError as failed:
        print(failed, file=sys.stderr)  # noqa: T201 (it is a command)
        sys.exit(failed.code)
