"""Modules that earlier jobs have imported, loaded for those to come.

A module cannot be unloaded again. So each is imported by a forked child first, which tells what it leaves that later
processes must not share; only one that leaves nothing is imported here.
"""

import importlib
import importlib.util
import logging
import multiprocessing
import os
import signal
import site
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

#: Variables that each attempt has its own of: a server must not have any, so nothing that it loads may look at them.
OWN = frozenset(
    {
        *("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"),
        *("NCCL_SOCKET_IFNAME", "MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID", "TRACKIO_DIR", "WANDB_RUN_ID", "WANDB_RESUME"),
    }
)
OWN_PREFIX = "TORCHYARD_"
#: Those of a rank and its GPUs, likewise.
_RANKS = frozenset(
    {
        *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE"),
        *("ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES"),
    }
)
_RANKS_PREFIX = "TORCHELASTIC_"
#: Seconds that the import of one module may take, and those of all together, trials included.
MODULE_S, TOTAL_S = 20, 60.0
#: Characters of why a module is not loaded.
WORDS = 200


class NotSharedError(Exception):
    """A module is not loaded for others, for this reason."""


class Preload:
    """The learnt modules, loaded into this process as far as forked processes can share them."""

    def __init__(self) -> None:
        #: Why modules were not loaded, by name.
        self.struck: dict[str, str] = {}
        #: Variables that were looked up meanwhile: a program that sets one would be too late.
        self.variables: set[str] = set()
        #: How many modules there are more than before.
        self.count = 0
        #: Packages that were loaded, in order, and the seconds that it took to import them here.
        self.packages: dict[str, None] = {}
        self.seconds = 0.0

    def load(self, names: Iterable[str], seconds: float = TOTAL_S) -> None:
        """Load these modules in their order; those that there is no time for are left to the jobs."""
        until, before = time.monotonic() + seconds, len(sys.modules)
        for name in names:
            if name in sys.modules or any(parent in self.struck for parent in parents(name)):
                continue
            if time.monotonic() > until:
                break
            try:
                self._load(name)
            except NotSharedError as refused:
                self.struck[name] = str(refused)[:WORDS]
        self.count = len(sys.modules) - before

    def _load(self, name: str) -> None:
        _check_installed(name.partition(".")[0])
        _try(name)
        begin = time.monotonic()
        with recorded_environment() as looked_up:
            importlib.import_module(name)
        self.seconds += time.monotonic() - begin
        self.packages.setdefault(name.partition(".")[0])
        self.variables |= looked_up

    def told(self) -> dict[str, Any]:
        """Return what the worker is told of it (`torchyard.wire.PreloadedModules`)."""
        return {"packages": list(self.packages), "modules": self.count, "seconds": round(self.seconds, 3)}


def parents(name: str) -> Iterator[str]:
    """Yield the packages that a module is in, the outermost first."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _check_installed(top: str) -> None:
    """Raise NotSharedError unless the package comes from site-packages, wherever else the search path leads."""
    folders = _site_packages()
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError) as error:
        raise NotSharedError(f"it is not found: {error}") from error
    if spec is None:
        raise NotSharedError("it is not installed")
    places = [spec.origin] if spec.has_location else [*(spec.submodule_search_locations or [])]
    if not places or not all(str(place).startswith(folders) for place in places):
        raise NotSharedError("it is not from site-packages")


def _site_packages() -> tuple[str, ...]:
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    found = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages(), *user]
    return tuple({os.path.join(folder, "") for folder in found})


def _try(name: str) -> None:
    """Import a module in a forked child; raise NotSharedError with what is wrong with it, if anything is."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.setpgid(0, 0)
        signal.alarm(MODULE_S)
        os.write(write, _problem(name).encode(errors="replace")[: WORDS * 4])
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):  # what it has started, if anything
        os.killpg(child, signal.SIGKILL)
    words = os.read(read, WORDS * 4)
    os.close(read)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        raise NotSharedError(f"its import takes more than {MODULE_S} s")
    if status:
        raise NotSharedError(f"its import ends the process (status {status})")
    if words:
        raise NotSharedError(words.decode(errors="replace"))


def _problem(name: str) -> str:
    """Import a module here; return what is wrong with that, or nothing."""
    before, opened = state(), open_files()
    try:
        with recorded_environment() as looked_up:
            importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 (it may do anything)
        return f"its import fails: {type(error).__name__}: {error}"
    return next(_left(before, opened, looked_up), "")


def _left(before: Mapping[str, object], opened: set[str], looked_up: set[str]) -> Iterator[str]:
    """Yield what an import has left here that later processes must not share."""
    kept = sorted(open_files() - opened)
    if kept:
        yield f"it keeps {kept[0]} open"
    if starts_processes():
        yield "it starts processes"
    if status := _status_of_fork():
        yield f"a process that is forked after its import ends (status {status})"
    # OpenBLAS ends its threads before a fork, and starts new ones when there is work: they do no harm.
    if threads() > 1:
        yield "it starts threads"
    changed = [what for what, value in state().items() if value != before[what]]
    if changed:
        yield f"it changes {changed[0]}"
    own = sorted(filter(_is_own, looked_up))
    if own:
        yield f"it looks at {own[0]}, which each attempt has its own of"


def _is_own(name: str) -> bool:
    return name in OWN or name in _RANKS or name.startswith((OWN_PREFIX, _RANKS_PREFIX))


def state() -> dict[str, object]:
    """Return what a module may change for the whole process, by what it is called; jobs that never import it would
    find it changed.
    """
    torch: Any = sys.modules.get("torch")
    handlers = [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())]
    found: dict[str, object] = {
        "variables of the environment": dict(os.environ),
        "the working folder": os.getcwd(),
        "the module search path": list(sys.path),
        "what is done with exceptions": (sys.excepthook, sys.unraisablehook),
        "signal handlers": handlers,
        "the standard streams": (sys.stdin, sys.stdout, sys.stderr),
        "the root logger": (logging.root.level, list(logging.root.handlers)),
        "how processes are started": multiprocessing.get_start_method(allow_none=True),
        "limits of recursion": sys.getrecursionlimit(),
    }
    if torch is not None:
        found["CUDA's context"] = torch.cuda.is_initialized()
        found["defaults of torch"] = (torch.get_default_dtype(), torch.is_grad_enabled())
    return found


def open_files() -> set[str]:
    """Return what this process has open, an epoll as one of them."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that by which the folder was read
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return found


def starts_processes() -> bool:
    """Return whether this process has children."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def threads() -> int:
    """Return how many threads this process has."""
    return len(os.listdir("/proc/self/task"))


def forked_threads() -> int:
    """Return how many threads this process has once it has been forked."""
    _status_of_fork()
    return threads()


def _status_of_fork() -> int:
    """Fork a child that ends at once; return how it has: other than with 0 where what is called at a fork fails."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.waitpid(child, 0)[1]


class _Recorded(dict[bytes, bytes]):
    """The variables behind `os.environ`, which keep the names that were looked up."""

    def __init__(self, content: Mapping[bytes, bytes]) -> None:
        super().__init__(content)
        self.names: set[bytes] = set()

    def __getitem__(self, name: bytes) -> bytes:
        self.names.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, bytes):
            self.names.add(name)
        return super().__contains__(name)


@contextmanager
def recorded_environment() -> Iterator[set[str]]:
    """Fill a set with the names of the variables that are looked up meanwhile; what C code reads is not seen."""
    environ: Any = os.environ
    names: set[str] = set()
    plain, recorded = environ._data, _Recorded(environ._data)
    environ._data = os.environb._data = recorded  # type: ignore[attr-defined]
    try:
        yield names
    finally:
        names |= {os.fsdecode(name) for name in recorded.names}
        plain.clear()
        plain.update(recorded)
        environ._data = os.environb._data = plain  # type: ignore[attr-defined]
