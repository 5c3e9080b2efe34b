"""The cursor that fits a loader."""

from __future__ import annotations

from typing import Any

from torchyard.injob.batches import Batches
from torchyard.injob.cursor import Cursor, StatefulCursor


def of(loader: Any) -> Cursor:
    """The cursor for a loader, from the most exact to none."""
    if _tells_its_place(loader):
        return StatefulCursor(loader)
    # A DataLoader, or one of Accelerate's around it; but not the one that deals batches out from rank 0.
    if hasattr(loader, "_index_sampler") and not hasattr(loader, "_fetch_batches"):
        return Batches(loader)
    return Cursor(loader)


def _tells_its_place(loader: Any) -> bool:
    """Return whether it has a state, by asking for it: Accelerate's loader has the method, none without torchdata."""
    if not (hasattr(loader, "state_dict") and hasattr(loader, "load_state_dict")):
        return False
    try:
        loader.state_dict()
    except Exception:  # noqa: BLE001 (whatever it is, it would be that at the first checkpoint, too)
        return False
    return True
