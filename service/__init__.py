"""The control plane: API, scheduler, dispatch, ingest."""

import sys

# httpx would import a command line of its own, with click, rich and pygments: 5 MB in a program that stays.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
