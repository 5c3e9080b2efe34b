"""Rendezvous: how ranks find each other, and which library carries their tensors.

Sources: https://docs.pytorch.org/docs/stable/distributed.html (initialization, backends).
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch
import torch.distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous as torch_rendezvous

from torchyard.injob import layout
from torchyard.recipe import Recipe
from trainer.exceptions import RecipeError

_BOTH = "cpu:gloo,cuda:nccl"


@dataclass(frozen=True, kw_only=True)
class Rendezvous:
    """Address at which ranks find each other, with backend and time-out."""

    #: ``env://``, ``tcp://host:port`` or ``file:///path``.
    url: str = "env://"
    #: As in a recipe.
    backend: str = "auto"
    #: How long a collective operation waits for the slowest rank.
    timeout: timedelta = timedelta(minutes=10)


#: As the launcher says.
BY_ENVIRONMENT = Rendezvous()


def rendezvous_for(recipe: Recipe, environment: Mapping[str, str], url: str | None = None) -> Rendezvous:
    """Return the rendezvous that a recipe asks for; `url` is one given by hand, and wins.

    Raises RecipeError where this machine or launch cannot have it.
    """
    return Rendezvous(
        url=_checked(url) if url else _url(recipe.rendezvous, environment),
        backend=recipe.backend,
        timeout=timedelta(seconds=recipe.timeout),
    )


def backend(choice: str, *, gpus: bool) -> str:
    """Return the name that `init_process_group` takes; raises RecipeError for what machine or torch do not have."""
    if choice == "mpi":
        if not dist.is_mpi_available():
            raise RecipeError("backend mpi: this torch was built without MPI: take backend: auto, or a torch with it")
        return "mpi"
    if choice == "nccl" and not gpus:
        raise RecipeError("backend nccl: this process sees no GPU: take backend: auto or gloo, or a node with GPUs")
    return _BOTH if gpus and choice != "gloo" else "gloo"


def open_store(rendezvous: Rendezvous, rank: int, size: int) -> Store | None:
    """Open the store by which ranks find each other; None when this process is alone and nobody is to come.

    Raises RecipeError when nobody said where the others are.
    """
    if rendezvous.url == "env://" and "MASTER_ADDR" not in os.environ:
        if size > 1:
            raise RecipeError("WORLD_SIZE is set but MASTER_ADDR is not: start with torchrun, or --rendezvous")
        return None
    _refuse_leftover(rendezvous)
    store: Store
    store, _, _ = next(torch_rendezvous(rendezvous.url, rank, size, timeout=rendezvous.timeout))
    return store


def initialise(rendezvous: Rendezvous, store: Store | None, rank: int, size: int, **options: Any) -> None:
    """Call `init_process_group` with what the rendezvous says; `options` go there too."""
    name = backend(rendezvous.backend, gpus=torch.cuda.device_count() > 0)
    if name == "mpi":
        # mpirun has numbered the processes already.
        dist.init_process_group("mpi", timeout=rendezvous.timeout)
        return
    if store is None:
        store = HashStore()
    # The launcher's agent keeps keys of its own in the same store.
    own = PrefixStore("trainer", store)
    dist.init_process_group(name, store=own, rank=rank, world_size=size, timeout=rendezvous.timeout, **options)


def _url(choice: str, environment: Mapping[str, str]) -> str:
    if choice == "env" or "MASTER_ADDR" not in environment:
        return "env://"
    if choice == "tcp":
        return f"tcp://{_bracketed(environment['MASTER_ADDR'])}:{environment['MASTER_PORT']}"
    if environment.get("LOCAL_WORLD_SIZE") != environment.get("WORLD_SIZE"):
        raise RecipeError("rendezvous file needs a folder that all nodes share: take rendezvous: env or tcp")
    # Each attempt has a folder of its own: what an earlier one left is never met.
    folder = environment.get(layout.ATTEMPT_DIR)
    if folder is None:
        raise RecipeError("rendezvous file needs a fresh path off the queue: give --rendezvous file:///path")
    return f"file://{folder}/{layout.RENDEZVOUS}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "tcp" and parts.hostname and parts.port:
        return url
    if parts.scheme == "file" and not parts.netloc and parts.path:
        return url
    if url == "env://":
        return url
    raise RecipeError(f"--rendezvous {url}: give env://, tcp://host:port or file:///fresh/path")


def _refuse_leftover(rendezvous: Rendezvous) -> None:
    """Refuse a file older than any rank would wait: it is of another run, whose ranks may be dead."""
    if not rendezvous.url.startswith("file://"):
        return
    path = Path(urlsplit(rendezvous.url).path)
    if path.exists() and time.time() - path.stat().st_mtime > rendezvous.timeout.total_seconds():
        raise RecipeError(f"{path} is left of an earlier run: remove it, or give --rendezvous a fresh path")
