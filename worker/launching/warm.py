"""Warm starts: fork servers for the environments that jobs have, and shims that are forked from them.

A server stands for one interpreter, its options and the whole environment that it was started with, but for what
differs from one attempt to the next and is not read by anything that a server imports.
"""

import json
import logging
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from worker import forkserver, shim
from worker.forkserver import packages, program, title
from worker.launching.shims import request

logger = logging.getLogger(__name__)

MAIN: Final = Path(forkserver.__file__).parent / "__main__.py"
_ELASTIC: Final = str(Path(shim.__file__).parent / "elastic.py")
#: Variables that each attempt has its own of: none of them is read by what a server imports.
_OWN: Final = frozenset(
    {
        *("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME"),
        *("NCCL_SOCKET_IFNAME", "MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID", "TRACKIO_DIR", "WANDB_RUN_ID", "WANDB_RESUME"),
    }
)
_OWN_PREFIX: Final = "TORCHYARD_"
#: Seconds after a start from nothing until its server is made: the start itself needs the cores first.
DELAY_S: Final = 10.0
#: Seconds that a server may take to load, and to answer.
LOAD_S, ANSWER_S = 120.0, 5.0
#: Seconds after which a server that nobody has used ends.
IDLE_S: Final = 1800.0
#: Seconds until an interpreter that cannot be shared is tried again.
UNFIT_S: Final = 3600.0
#: Part of the node's memory that servers may hold together; and part that must be free for them to stay at all.
BUDGET, FREE = 0.1, 0.05
TRIM_S: Final = 30.0
#: Why a start was none from a fork server, as the job's owner is told.
OFF: Final = "warm start is off on this node (TORCHYARD_WARM_START)"
NOT_YET: Final = "no fork server had this environment yet; one is made for the jobs to come"
SILENT: Final = "the fork server did not answer"


@dataclass(frozen=True, kw_only=True)
class ServerKey:
    """Interpreter, options and environment, by which programs can be forked from one server."""

    interpreter: str
    options: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


def never_warm(launch: Mapping[str, Any]) -> str:
    """Return why a launch without a key is always executed."""
    words = launch["argv"]
    if not launch["warm_start"]:
        return "its spec says warm_start: false"
    if launch["uid"] is not None:
        return "it runs as another account than the worker"
    if launch["torchrun"] and words[1] != _ELASTIC:
        return "it runs on several nodes"
    if not Path(words[0]).is_absolute():
        return "launcher: none starts its command as it is"
    return "its command line is not one that a fork server can run"


def key_of(launch: Mapping[str, Any]) -> ServerKey | None:
    """Return the key for a ``launch.json``, which has no values of secrets; None for what is always executed."""
    words = launch["argv"]
    if not launch["warm_start"] or launch["uid"] is not None:
        return None
    if not Path(words[0]).is_absolute() or (launch["torchrun"] and words[1] != _ELASTIC):
        return None
    ranked = words[words.index("--") + 1 :] if launch["torchrun"] else words
    options = []
    for word in ranked[1:]:
        if word not in program.OPTIONS:
            break
        options.append(word)
    if program.parse(ranked, words[0], options) is None:
        return None
    kept = {name: value for name, value in launch["env"].items() if not _is_own(name, value)}
    return ServerKey(interpreter=words[0], options=tuple(options), environment=tuple(sorted(kept.items())))


def _is_own(name: str, value: str) -> bool:
    # What asks for GPUs when it is imported must find what the job finds: none, or some. If some, it opens the driver's
    # files, and the server is unfit.
    which = name == "CUDA_VISIBLE_DEVICES" and value != ""
    return which or name in _OWN or name.startswith(_OWN_PREFIX)


@dataclass(kw_only=True)
class _Server:
    process: subprocess.Popen[bytes]
    requests: socket.socket
    told: Mapping[str, Any]
    used: float
    lock: threading.Lock = field(default_factory=threading.Lock)

    def changed(self) -> bool:
        """Return whether a package of its interpreter was installed, updated or removed."""
        files = self.told["files"]
        now = [*packages.stamps(self.told["folders"], []), *packages.stamps([], files)]
        return bool([list(stamp) for stamp in now] != self.told["stamps"])

    def memory(self) -> int:
        """Bytes that are in memory because of it."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:")), 0)

    def end(self) -> None:
        """Let it end; what it has forked goes on."""
        self.requests.close()
        self.process.kill()
        self.process.wait()


@dataclass(kw_only=True)
class ForkServers:
    """The fork servers of one worker. Every method may be called from any thread."""

    log: Path
    """File of what they say."""
    clock: Callable[[], float] = time.monotonic
    budget: int = field(default_factory=lambda: int(BUDGET * _memory("MemTotal")))
    _servers: dict[ServerKey, _Server] = field(default_factory=dict, repr=False)
    _wanted: dict[ServerKey, float] = field(default_factory=dict, repr=False)
    """Keys for which a server is made, or could not be, with the time until which that holds."""
    _unfit: dict[ServerKey, str] = field(default_factory=dict, repr=False)
    """Why an interpreter cannot be shared."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _closed: threading.Event = field(default_factory=threading.Event, repr=False)

    def start(
        self, record: Mapping[str, Any], launch: Path, log: int, held: Sequence[int], told: bytes | None = None
    ) -> str | None:
        """Fork the shim of the attempt with this ``launch.json`` as `launch` does; else return why not, and see to it
        that the next of its environment can be.
        """
        key = key_of(record)
        if key is None:
            return never_warm(record)
        had = self.has(key)
        if had and self.launch(key, launch, log, held, told):
            return None
        self.want(key)
        with self._lock:
            unfit = self._unfit.get(key)
        return SILENT if had else unfit or NOT_YET

    def launch(self, key: ServerKey, launch: Path, log: int, held: Sequence[int], told: bytes | None = None) -> bool:
        """Fork the shim of an attempt, with its log and the descriptors that it holds; return when the job has begun.

        It reads from its input what it is told.

        False, and nothing has been done, when there is no server or it does not answer.
        """
        server = self._of(key)
        if server is None:
            return False
        try:
            begun = request(server.requests, launch, log, held, told, lock=server.lock, answer_s=ANSWER_S)
        except OSError as error:
            logger.warning("a fork server does not answer: %s", error)
            begun = False
        if not begun:
            self._retire(key, server)
        return begun

    def _of(self, key: ServerKey) -> _Server | None:
        with self._lock:
            server = self._servers.get(key)
        if server is None:
            return None
        if server.process.poll() is not None or server.changed():
            self._retire(key, server)
            return None
        server.used = self.clock()
        return server

    def has(self, key: ServerKey) -> bool:
        """Return whether there is a server for a key."""
        return self._of(key) is not None

    def want(self, key: ServerKey, delay: float = DELAY_S) -> None:
        """Make a server for a key a little later, unless there is one or it cannot be shared."""
        with self._lock:
            if key in self._servers or self._wanted.get(key, 0.0) > self.clock():
                return
            self._wanted[key] = self.clock() + UNFIT_S
        timer = threading.Timer(delay, self.make, [key])
        timer.daemon = True
        timer.start()

    def make(self, key: ServerKey) -> bool:
        """Make a server now; False if its interpreter cannot be shared, or after `close`."""
        if self._closed.is_set():
            return False
        try:
            made = self._started(key)
        except (OSError, ValueError) as error:
            logger.warning("%s gets no fork server: %s", key.interpreter, error)
            with self._lock:
                self._unfit[key] = f"its interpreter cannot be shared: {error}"
            return False
        with self._lock:
            needed = not self._closed.is_set() and key not in self._servers
            if needed:
                self._servers[key] = made
                self._unfit.pop(key, None)
            self._wanted.pop(key, None)
        if not needed:  # any more: all have ended, or another was made meanwhile
            made.end()
            return not self._closed.is_set()
        logger.info("jobs of %s start warm from now on", key.interpreter)
        self.trim()
        return True

    def _started(self, key: ServerKey) -> _Server:
        """Start a server and wait until it has loaded; raises ValueError with the reason when it cannot serve."""
        ours, theirs = socket.socketpair()
        command = [key.interpreter, *key.options, str(MAIN), " ".join(key.options), str(theirs.fileno())]
        reserved = {title.RESERVED: " " * title.ENVIRONMENT_SPACE}
        with theirs, self.log.open("ab") as log:
            process = subprocess.Popen(
                [*command, " " * title.COMMAND_SPACE],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=reserved | dict(key.environment),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        server = _Server(process=process, requests=ours, told={}, used=self.clock())
        try:
            ours.settimeout(LOAD_S)
            with ours.makefile("rb") as answers:
                server.told = json.loads(answers.readline() or b'{"unfit": "it ended while it loaded"}')
            ours.settimeout(None)
            if "unfit" in server.told:
                raise ValueError(server.told["unfit"])
        except BaseException:
            server.end()
            raise
        return server

    def trim(self) -> None:
        """End servers that are idle, and the least recently used as long as they hold too much memory."""
        with self._lock:
            by_use = sorted(self._servers.items(), key=lambda item: item[1].used)
        held = sum(server.memory() for _, server in by_use)
        short = _memory("MemAvailable") < FREE * _memory("MemTotal")
        for key, server in by_use:
            if short or held > self.budget or self.clock() - server.used > IDLE_S or server.process.poll() is not None:
                held -= server.memory()
                self._retire(key, server)

    def _retire(self, key: ServerKey, server: _Server) -> None:
        with self._lock:
            if self._servers.get(key) is server:
                del self._servers[key]
        server.end()

    def stay_trim(self, stopped: threading.Event) -> None:
        """Trim again and again until the worker stops, and end all servers then."""
        while not stopped.wait(TRIM_S):
            self.trim()
        self.close()

    def close(self) -> None:
        """End all servers, for good: one that is being made ends once it is there."""
        self._closed.set()
        self.end()

    def end(self) -> None:
        """End all servers; others can be made."""
        with self._lock:
            servers = list(self._servers.items())
        for key, server in servers:
            self._retire(key, server)


def _memory(name: str) -> int:
    """Bytes of main memory, by a name of ``/proc/meminfo``."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))
