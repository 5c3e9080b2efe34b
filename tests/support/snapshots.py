"""Snapshots of code, uploaded as a client does it."""

import httpx

from tests.support.plane import sha256
from torchyard.api import PREFIX


def snapshot(client: httpx.Client, data: bytes, *, name: str = "train.py") -> str:
    """A committed snapshot of one file."""
    manifest = {"files": [{"path": name, "size": len(data), "sha256": sha256(data)}]}
    made = str(client.post(f"{PREFIX}/snapshots", json=manifest).raise_for_status().json()["id"])
    client.put(f"{PREFIX}/snapshots/{made}/blobs/{sha256(data)}", content=data).raise_for_status()
    client.post(f"{PREFIX}/snapshots/{made}/commit").raise_for_status()
    return made
