"""Warm starts: fork servers for the environments that jobs have, and shims that are forked from them.

A server stands for one interpreter, its options and the whole environment that it was started with, but for what
differs from one attempt to the next and is not read by anything that a server imports.
"""

import hashlib
import json
import logging
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from torchyard.ids import AttemptId
from torchyard.spec import Resources
from torchyard.wire import ColdCode, PreloadedModules
from worker import forkserver, shim
from worker.attempts.folder import AttemptFolder
from worker.attempts.starts import ColdReason
from worker.exceptions import UnusableError
from worker.forkserver import packages, preload, program, title
from worker.launching.learnt import LearntModules, read_report
from worker.launching.shims import request
from worker.limits.node import NodeLimits, end_groups
from worker.shim.reaper_child import READY

logger = logging.getLogger(__name__)

MAIN: Final = Path(forkserver.__file__).parent / "__main__.py"
DROP: Final = Path(shim.__file__).parent / "drop.py"
_ELASTIC: Final = str(Path(shim.__file__).parent / "elastic.py")
#: Seconds after a start from nothing until its server is made: the start itself needs the cores first.
DELAY_S: Final = 10.0
#: Seconds that a server may take to load, and to answer.
LOAD_S, ANSWER_S = 120.0, 5.0
#: Seconds after which a server that nobody has used ends.
IDLE_S: Final = 1800.0
#: Seconds until an interpreter that cannot be shared is tried again.
UNFIT_S: Final = 3600.0
#: Main memory of a server of another account, and seconds in which what it leaves ends.
MEMORY, END_S = 8 << 30, 2.0
#: Bytes of what a server tells when it has loaded, and characters of why it could not.
TOLD, WORDS = 4 << 20, 300
#: Part of the node's memory that servers may hold together; and part that must be free for them to stay at all.
BUDGET, FREE = 0.1, 0.05
TRIM_S: Final = 30.0
#: Why a start was none from a fork server, as the job's owner is told.
OFF: Final = ColdReason(code=ColdCode.OFF, message="warm start is off on this node (TORCHYARD_WARM_START)")
NOT_YET: Final = ColdReason(
    code=ColdCode.NOT_YET, message="no fork server had this environment yet; one is made for the jobs to come"
)
SILENT: Final = ColdReason(code=ColdCode.SILENT, message="the fork server did not answer")
REFUSED: Final = ColdReason(
    code=ColdCode.REFUSED, message="what the fork server has forked could not be used (the launcher's log says why)"
)
_COMMAND_LINE: Final = ColdReason(
    code=ColdCode.COMMAND_LINE, message="its command line is not one that a fork server can run"
)
#: Why a launch is executed whatever its command line is.
_ALWAYS: Final[Mapping[ColdCode, str]] = {
    ColdCode.SPEC: "its spec says warm_start: false",
    ColdCode.OWN_NETWORK: "it runs as another account than the worker and has a network of its own",
    ColdCode.NO_CGROUPS: "it runs as another account than the worker, on a node without cgroups to hold its processes "
    "together",
    ColdCode.SEVERAL_NODES: "it runs on several nodes",
    ColdCode.BARE_COMMAND: "launcher: none starts its command as it is",
}


@dataclass(frozen=True, kw_only=True)
class JobAccount:
    """A UNIX account other than the worker's."""

    uid: int
    gid: int
    groups: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ServerKey:
    """Interpreter, options, environment and account, by which programs can be forked from one server."""

    interpreter: str
    options: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    account: JobAccount | None = None
    """None: the worker's own."""

    @property
    def digest(self) -> str:
        """A name for it, from which nothing of the environment can be read."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def never_warm(launch: Mapping[str, Any]) -> ColdReason:
    """Return why a launch without a key is always executed."""
    code = _executed_always(launch)
    return _COMMAND_LINE if code is None else ColdReason(code=code, message=_ALWAYS[code])


def _executed_always(launch: Mapping[str, Any]) -> ColdCode | None:
    """Return why a launch is executed whatever its command line is; None if that decides."""
    words = launch["argv"]
    if not launch["warm_start"]:
        return ColdCode.SPEC
    # A process that the shim has not forked can be moved into cgroups, into a network namespace it cannot.
    if launch["uid"] is not None and launch["isolated"]:
        return ColdCode.OWN_NETWORK
    if launch["uid"] is not None and not launch["limits"]["groups"]:
        return ColdCode.NO_CGROUPS
    if launch["torchrun"] and words[1] != _ELASTIC:
        return ColdCode.SEVERAL_NODES
    if not Path(words[0]).is_absolute():
        return ColdCode.BARE_COMMAND
    return None


def key_of(launch: Mapping[str, Any]) -> ServerKey | None:
    """Return the key for a ``launch.json``, which has no values of secrets; None for what is always executed."""
    if _executed_always(launch) is not None:
        return None
    words = launch["argv"]
    ranked = words[words.index("--") + 1 :] if launch["torchrun"] else words
    options = []
    for word in ranked[1:]:
        if word not in program.OPTIONS:
            break
        options.append(word)
    if program.parse(ranked, words[0], options) is None:
        return None
    kept = {name: value for name, value in launch["env"].items() if not _is_own(name, value)}
    return ServerKey(
        interpreter=words[0],
        options=tuple(options),
        environment=tuple(sorted(kept.items())),
        account=_account(launch),
    )


def _account(launch: Mapping[str, Any]) -> JobAccount | None:
    if launch["uid"] is None:
        return None
    return JobAccount(uid=launch["uid"], gid=launch["gid"], groups=tuple(launch["groups"]))


def _is_own(name: str, value: str) -> bool:
    # What asks for GPUs when it is imported must find what the job finds: none, or some. If some, it opens the driver's
    # files, and the server is unfit.
    which = name == "CUDA_VISIBLE_DEVICES" and value != ""
    return which or name in preload.OWN or name.startswith(preload.OWN_PREFIX)


@dataclass(kw_only=True)
class _ForkServer:
    process: subprocess.Popen[bytes]
    requests: socket.socket
    told: Mapping[str, Any]
    used: float
    learnt: frozenset[str] = frozenset()
    """The modules that it was to load besides."""
    preloaded: PreloadedModules | None = None
    """Those that it has loaded."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Its groups, if it runs as another account than the worker."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fork_reaper(self) -> socket.socket | None:
        """Fork a reaper; return the end of a socket that leads to it, for a shim. Raises OSError.

        It has looked for changed packages itself: what a server of another account tells is not to be believed.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            with theirs, self.lock:
                socket.send_fds(self.requests, [b'{"reaper": true}'], [theirs.fileno()], socket.MSG_DONTWAIT)
            ours.settimeout(ANSWER_S)
            ready = ours.recv(len(READY), socket.MSG_PEEK) == READY
            ours.settimeout(None)
        except BaseException:
            ours.close()
            raise
        if not ready:
            ours.close()
        return ours if ready else None

    def changed(self) -> bool:
        """Return whether a package of its interpreter was installed, updated or removed."""
        return packages.changed(self.told)

    def memory(self) -> int:
        """Bytes that are in memory because of it."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:")), 0)

    def end(self) -> None:
        """Let it end; what it has forked for jobs goes on."""
        self.requests.close()
        self.process.kill()
        self.process.wait()
        if not end_groups(self.limits, END_S):
            logger.warning("processes of a fork server outlive SIGKILL in %s", self.limits["groups"])


@dataclass(kw_only=True)
class ForkServers:
    """The fork servers of one worker. Every method may be called from any thread."""

    log: Path
    """File of what those of the worker's own account say."""
    limits: NodeLimits = field(default_factory=NodeLimits)
    """What servers of other accounts may use of the node: they run what these have installed."""
    learnt: LearntModules = field(default_factory=LearntModules)
    """What jobs have imported."""
    clock: Callable[[], float] = time.monotonic
    budget: int = field(default_factory=lambda: int(BUDGET * _memory("MemTotal")))
    _servers: dict[ServerKey, _ForkServer] = field(default_factory=dict, repr=False)
    _wanted: dict[ServerKey, float] = field(default_factory=dict, repr=False)
    """Keys for which a server is made, or could not be, with the time until which that holds."""
    _unfit: dict[ServerKey, ColdReason] = field(default_factory=dict, repr=False)
    """Why an interpreter cannot be shared, as long as its key is wanted."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _closed: threading.Event = field(default_factory=threading.Event, repr=False)

    def start(
        self, record: Mapping[str, Any], launch: Path, log: int, held: Sequence[int], told: bytes | None = None
    ) -> ColdReason | None:
        """Fork the shim of the attempt with this ``launch.json`` as `launch` does; else return why not, and see to it
        that the next of its environment can be.
        """
        key = key_of(record)
        if key is None:
            return never_warm(record)
        had = self.has(key)
        if had and self.launch(key, launch, log, held, told):
            return None
        return self._cold(key, had=had)

    def fork_reaper(self, record: Mapping[str, Any]) -> socket.socket | ColdReason:
        """Have a reaper forked for the shim of the attempt with this ``launch.json``, which runs as another account
        than the worker; else return why not, and see to it that one can be for the next of its environment.
        """
        key = key_of(record)
        if key is None:
            return never_warm(record)
        server, reaper = self._of(key), None
        if server is not None:
            try:
                reaper = server.fork_reaper()
                if reaper is None:  # as it answers when its packages have changed
                    self.learnt.forgive(key.digest)
            except OSError as error:
                logger.warning("a fork server of the account %s does not answer: %s", record["uid"], error)
            if reaper is None:
                self._retire(key, server)
        return reaper if reaper is not None else self._cold(key, had=server is not None)

    def _cold(self, key: ServerKey, *, had: bool) -> ColdReason:
        """Return why a start was cold, and have a server made for the next."""
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

    def _of(self, key: ServerKey) -> _ForkServer | None:
        with self._lock:
            server = self._servers.get(key)
        if server is None:
            return None
        changed = server.changed()
        if changed:
            self.learnt.forgive(key.digest)
        if changed or server.process.poll() is not None:
            self._retire(key, server)
            return None
        server.used = self.clock()
        return server

    def has(self, key: ServerKey) -> bool:
        """Return whether there is a server for a key."""
        return self._of(key) is not None

    def preloaded(self, record: Mapping[str, Any]) -> PreloadedModules | None:
        """Return what an attempt that was forked from a server found loaded besides PyTorch."""
        key = key_of(record)
        with self._lock:
            server = self._servers.get(key) if key else None
        return server.preloaded if server else None

    def learn(self, record: Mapping[str, Any], folder: AttemptFolder, owner: int) -> None:
        """Have the next jobs of its environment find loaded what an attempt that has ended has imported.

        Its server is made anew a little later, if there is one that lacks any of that.
        """
        key = key_of(record)
        if key is None:
            return
        self.learnt.take(key.digest, read_report(folder, owner))
        with self._lock:
            server = self._servers.get(key)
        if server is not None and not server.learnt.issuperset(self.learnt.wanted(key.digest)):
            self.want(key, anew=True)

    def want(self, key: ServerKey, delay: float = DELAY_S, *, anew: bool = False) -> None:
        """Make a server for a key a little later, unless it cannot be shared or there is one; `anew`: also then."""
        now = self.clock()
        with self._lock:
            self._wanted = {each: until for each, until in self._wanted.items() if until > now}
            self._unfit = {each: why for each, why in self._unfit.items() if each in self._wanted}
            if (key in self._servers and not anew) or key in self._wanted:
                return
            self._wanted[key] = now + UNFIT_S
        timer = threading.Timer(delay, self.make, [key])
        timer.daemon = True
        timer.start()

    def make(self, key: ServerKey) -> bool:
        """Make a server now; False if its interpreter cannot be shared, or after `close`."""
        if self._closed.is_set():
            return False
        names = self.learnt.wanted(key.digest)
        try:
            made = self._started(key, names)
        except (OSError, ValueError, UnusableError) as error:
            if names:
                self.learnt.strike(
                    key.digest, dict.fromkeys(names, f"no server could be made with what was learnt: {error}")
                )
                return self.make(key)
            logger.warning("%s gets no fork server: %s", key.interpreter, error)
            with self._lock:
                message = f"its interpreter cannot be shared: {error}"
                self._unfit[key] = ColdReason(code=ColdCode.UNFIT, message=message, said=str(error))
            return False
        with self._lock:
            before = self._servers.get(key)
            needed = not self._closed.is_set() and (before is None or made.learnt != before.learnt)
            if needed:
                self._servers[key] = made
                self._unfit.pop(key, None)
            self._wanted.pop(key, None)
        if not needed:  # any more: all have ended, or another was made meanwhile
            made.end()
            return not self._closed.is_set()
        if before is not None:
            with before.lock:
                before.end()
        logger.info("jobs of %s start warm from now on", key.interpreter)
        self.trim()
        return True

    def _started(self, key: ServerKey, names: Sequence[str]) -> _ForkServer:
        """Start a server and wait until it has loaded, these modules besides; raises ValueError with the reason when
        it cannot serve.
        """
        ours, theirs = socket.socketpair()
        limits: Mapping[str, Any] = {}
        with theirs:
            command = [key.interpreter, *key.options, str(MAIN), " ".join(key.options), str(theirs.fileno())]
            command.append(" " * title.COMMAND_SPACE)
            environment = {title.RESERVED: " " * title.ENVIRONMENT_SPACE} | dict(key.environment)
            if key.account is None:
                process = self._executed(command, environment, [theirs.fileno()])
            else:
                # With no GPU: each is another's here.
                name = AttemptId(f"server-{secrets.token_hex(6)}")
                limits = self.limits.create(name, Resources(gpus=0, memory=MEMORY))
                process = _dropped(command, environment, theirs.fileno(), key.account, limits["groups"])
        server = _ForkServer(process=process, requests=ours, told={}, used=self.clock(), limits=limits)
        server.learnt = frozenset(names)
        try:
            ours.settimeout(LOAD_S)
            with suppress(BrokenPipeError):  # it has ended, as its silence tells next
                ours.sendall(json.dumps(names).encode() + b"\n")
            with ours.makefile("rb") as answers:
                told = json.loads(answers.readline(TOLD) or b'{"unfit": "it ended while it loaded"}')
            ours.settimeout(None)
            if "unfit" in told:
                raise ValueError(str(told["unfit"])[:WORDS])
            # A server of another account looks for changed packages itself, and root looks at nothing that it names.
            if not isinstance(told, dict):
                raise TypeError
            self._take_struck(key, names, told)
            server.preloaded = _preloaded(told.get("preloaded"), names)
            if names and server.memory() > self.budget:
                raise ValueError("it takes more memory than all servers may")
            server.told = told if key.account is None else {"folders": [], "files": [], "stamps": []}
        except BaseException as error:
            server.end()
            if isinstance(error, (TypeError, RecursionError)):
                raise ValueError("it does not answer as it should") from error
            raise
        return server

    def _take_struck(self, key: ServerKey, names: Sequence[str], told: Mapping[str, Any]) -> None:
        """Strike off what a server did not load, and say so."""
        if not names:
            return
        self.learnt.strike(key.digest, told.get("struck"))
        struck, found = self.learnt.struck(key.digest), _preloaded(told.get("preloaded"), names)
        if found is not None:
            logger.info("%s: %d modules are loaded ahead, as jobs have imported them", key.interpreter, found.modules)
        for name in (name for name in names if name in struck):
            logger.info("%s: %s is not loaded ahead: %s", key.interpreter, name, struck[name])

    def _executed(
        self, command: list[str], environment: Mapping[str, str], descriptors: list[int]
    ) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment,
                pass_fds=descriptors,
                start_new_session=True,
            )

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

    def _retire(self, key: ServerKey, server: _ForkServer) -> None:
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


def _preloaded(told: Any, names: Sequence[str]) -> PreloadedModules | None:
    """Return what a server says that it has loaded; None if that is nothing, or nothing that it was to load."""
    try:
        found = PreloadedModules.model_validate(told)
    except ValueError:
        return None
    tops = {name.partition(".")[0] for name in names}
    return found if found.packages and tops.issuperset(found.packages) else None


def _dropped(
    command: list[str], environment: Mapping[str, str], end: int, account: JobAccount, groups: list[str]
) -> subprocess.Popen[bytes]:
    """Execute a command as another account, in these groups. What it says goes nowhere: it could fill the disk."""
    wanted = os.memfd_create("server")
    try:
        who = [account.uid, account.gid, list(account.groups)]
        content = {"groups": groups, "account": who, "argv": command, "env": environment}
        with open(wanted, "wb", closefd=False) as file:
            file.write(json.dumps(content).encode())
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(DROP), str(wanted)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            pass_fds=[end, wanted],
            start_new_session=True,
        )
    finally:
        os.close(wanted)


def _memory(name: str) -> int:
    """Bytes of main memory, by a name of ``/proc/meminfo``."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))
