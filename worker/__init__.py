"""The programs of a node: its agent, the shims of its jobs, the servers that jobs are forked from."""

import sys

# httpx would import a command line of its own, with click, rich and pygments: 5 MB in a program that stays.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
