"""The way from root to a fork server of another account: into its groups, out of root's account, and into its program.

Run as ``python -I -S drop.py <descriptor>`` by the worker's interpreter, in an empty environment: that of the program
lies in the file of the descriptor, and is the account's, whose LD_PRELOAD must not be root's.
"""

import json
import os
import sys

if __name__ == "__main__":
    sys.path.append(__file__.rpartition("/worker/")[0])

from worker.shim import cgroups
from worker.shim.fork import drop_privileges


def main(arguments: list[str]) -> None:
    """``<descriptor of a file with groups, account, argv and env>``."""
    with open(int(arguments[0]), "rb") as file:
        file.seek(0)
        wanted = json.loads(file.read())
    cgroups.enter(wanted["groups"])
    drop_privileges(*wanted["account"])
    os.execve(wanted["argv"][0], wanted["argv"], wanted["env"])


if __name__ == "__main__":
    main(sys.argv[1:])
