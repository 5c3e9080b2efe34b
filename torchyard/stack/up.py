"""``yard up``: Redis, service and worker of one box, from one command."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from torchyard import home
from torchyard.client.client import Client
from torchyard.exceptions import PortTakenError, RefusedError, StartError, TorchYardError, UnreachableError
from torchyard.network import ports
from torchyard.stack import access, filesystem, instance, jobs, redis
from torchyard.stack.supervise import SupervisedProgram, Supervisor

DEFAULT_PORT = 8765
START_S = 90.0
#: Seconds that the whole of a running stack may take to end, without waiting for jobs.
END_S = 45.0


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """Options of ``yard up``; `port` 0 takes a free one."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    cpu_slots: int | None = None
    stop_jobs: bool = False
    behind_proxy: bool = False
    tls_cert: Path | None = None
    tls_key: Path | None = None
    local_port: int = 0
    redis_url: str | None = None
    """None: the stack starts a Redis of its own."""


def run(options: StackOptions) -> None:
    """Run the stack in the foreground until SIGINT or SIGTERM.

    Prints ``ready URL`` on stdout once a job can be accepted; everything else goes to stderr.
    """
    try:
        _run(options, home.root())
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "" if error.filename else f" ({home.root()})"
        raise StartError(f"the stack cannot go on: {error}{where}") from error


def _run(options: StackOptions, root: Path) -> None:
    filesystem.refuse_network(root)
    lock = instance.Instance(root)
    lock.acquire()
    supervisor, held = Supervisor(), ExitStack()
    try:
        port = _hold(held, options.host, options.port)
        local = _hold(held, "127.0.0.1", options.local_port) if options.tls_cert else port
        stack = Stack(options=options, root=root, port=port, local_port=local)
        lock.announce(stack.url)
        if stack.start(supervisor, lock.descriptor):
            print(f"ready {stack.url}", flush=True)  # noqa: T201
            _say(stack.hints())
            supervisor.run()
            stack.end(supervisor)
    finally:
        supervisor.stop()
        redis.clear(root)
        with suppress(OSError):
            home.remove_ended_address()
        held.close()
        lock.release()


@dataclass(frozen=True, kw_only=True)
class Stack:
    """The programs of one home folder."""

    options: StackOptions
    root: Path
    port: int
    local_port: int
    """Port for programs on this machine: with a certificate one of its own, without TLS."""

    @property
    def url(self) -> str:
        """Address at which programs on this machine reach the service."""
        if self.options.tls_cert is not None:
            return f"http://127.0.0.1:{self.local_port}"
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.options.host, self.options.host)  # noqa: S104
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def start(self, supervisor: Supervisor, lock: int) -> bool:
        """Start everything and wait until a job can be accepted; False when asked to end before."""
        began = datetime.now(UTC)
        home.log_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        broker = self.options.redis_url
        if broker is None:
            server = redis.embedded(self.root)
            broker = server.broker_url
            supervisor.add(self._program("redis", server.command(), {}, lock))
        service = [sys.executable, "-P", "-m", "service"]
        supervisor.add(self._program("service", service, {"TORCHYARD_REDIS_URL": broker}, lock))
        # It gets ready beside the service, for which it waits, and for the token that the service writes for it.
        own = {"TORCHYARD_REDIS_URL": broker, access.ROOT_JOBS: str(int(access.root_jobs()))}
        supervisor.add(self._program("worker", self._worker(), own, lock))
        if not supervisor.wait_until(self._answers, timeout_s=START_S, what="the service"):
            return False
        with self._client() as client:
            return supervisor.wait_until(
                lambda: _beats(client, began), timeout_s=START_S, what="the worker's registration"
            )

    def end(self, supervisor: Supervisor) -> None:
        """End the worker first, so that what it still sends is taken, then service and Redis."""
        try:
            with self._client() as client:
                self._settle_jobs(client, supervisor)
        except TorchYardError as error:
            _say(f"torchyard: {error}")
        supervisor.stop("worker")
        supervisor.stop("service")
        supervisor.stop()

    def hints(self) -> str:
        """Hint at what a person does next."""
        with self._client() as client:
            link = client.login_link()
        end = (
            "Ctrl-C ends the stack and its jobs" if self.options.stop_jobs else "Ctrl-C ends the stack, trainings go on"
        )
        lines = [f"dashboard: {link} (once; `yard login` prints another)", f"logs: {home.log_folder()}", end]
        return "\n".join([*lines, *access.remarks(home.worker_folder())])

    def _settle_jobs(self, client: Client, supervisor: Supervisor) -> None:
        if self.options.stop_jobs:
            if jobs.running(client):
                _say("stopping jobs (again Ctrl-C: leave them running)")
            jobs.stop_all(client, supervisor.tend)
        elif left := jobs.running(client):
            _say(f"{left} job{'s' if left > 1 else ''} still running; the next `yard up` takes them up again")

    def _client(self) -> Client:
        return Client(self.url, home.admin_token_file().read_text().strip())

    def _worker(self) -> list[str]:
        folder, token = str(home.worker_folder()), str(home.node_token_file())
        command = [sys.executable, "-P", "-m", "worker", "--home", folder, "--token-file", token, "--join", self.url]
        slots = self.options.cpu_slots
        return command if slots is None else [*command, "--cpu-slots", str(slots)]

    def _program(self, name: str, argv: list[str], extra: dict[str, str], lock: int) -> SupervisedProgram:
        environment = {
            **os.environ,
            "TORCHYARD_HOME": str(self.root),
            "TORCHYARD_HOST": self.options.host,
            "TORCHYARD_PORT": str(self.port),
            **({"TORCHYARD_BEHIND_PROXY": "1"} if self.options.behind_proxy else {}),
            **self._tls(),
            **extra,
        }
        log = home.log_folder() / f"{name}.log"
        return SupervisedProgram(name=name, argv=argv, environment=environment, log=log, pass_fds=(lock,))

    def _tls(self) -> dict[str, str]:
        certificate, key = self.options.tls_cert, self.options.tls_key
        if certificate is None or key is None:
            return {}
        files = {"TORCHYARD_TLS_CERT": str(certificate.absolute()), "TORCHYARD_TLS_KEY": str(key.absolute())}
        return {**files, "TORCHYARD_LOCAL_PORT": str(self.local_port)}

    def _answers(self) -> bool:
        try:
            # Over plain HTTP no certificate is checked: to read those of all authorities at every try costs too much.
            ready = httpx.get(f"{self.url}/readyz", timeout=2, trust_env=False, verify=False).is_success  # noqa: S501
        except httpx.TransportError:
            return False
        return ready and home.node_token_file().exists()


def detach(options: StackOptions) -> str:
    """Run the stack in the background, and return its URL once a job can be accepted."""
    # One by one: parents that `mkdir` makes have the usual mode, and the home is nobody else's.
    for folder in (home.root(), home.log_folder()):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log_path = home.log_folder() / "up.log"
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "torchyard.cli.main", "up", *_words(options)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            text=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    process.stdout.close()
    if not line.startswith("ready "):
        process.wait()
        # The last error, without the name that the command line puts before each.
        raise StartError(log_path.read_text(errors="replace").strip().rpartition("yard: ")[2] or None)
    return line.split()[1]


def down(*, stop_jobs: bool = False) -> bool:
    """End the stack of this home; False when none runs."""
    root = home.root()
    owner = instance.running(root)
    if owner is None:
        return False
    if stop_jobs:
        with Client(owner.url, home.admin_token_file().read_text().strip()) as client:
            jobs.stop_all(client, _pause)
    os.kill(owner.pid, signal.SIGTERM)
    deadline = time.monotonic() + END_S
    while not instance.is_free(root):
        if time.monotonic() > deadline:
            raise StartError(
                f"the stack (process {owner.pid}) has not ended after {END_S:.0f} s: see {home.log_folder()}"
            )
        time.sleep(0.1)
    return True


def _pause(seconds: float) -> bool:
    time.sleep(seconds)
    return False


def _words(options: StackOptions) -> list[str]:
    words = ["--host", options.host, "--port", str(options.port)]
    words += [] if options.cpu_slots is None else ["--cpu-slots", str(options.cpu_slots)]
    words += ["--stop-jobs"] if options.stop_jobs else []
    if options.tls_cert is not None and options.tls_key is not None:
        words += ["--tls-cert", str(options.tls_cert.absolute()), "--tls-key", str(options.tls_key.absolute())]
    return [*words, "--behind-proxy"] if options.behind_proxy else words


def _beats(client: Client, began: datetime) -> bool:
    """Return whether a node has spoken since the stack began to start."""
    try:
        nodes = client.nodes()
    except (RefusedError, UnreachableError):
        return False
    return any(node.state != "unreachable" and node.last_seen_at and node.last_seen_at >= began for node in nodes)


def _hold(held: ExitStack, host: str, port: int) -> int:
    """The port, chosen now if 0, which nobody else gets while the service starts anew. Raises PortTakenError."""
    try:
        return held.enter_context(ports.held(host, port))
    except OSError as error:
        raise PortTakenError(
            f"{host}:{port} cannot be bound ({error.strerror}): choose another with --port, or let `--port 0` find one"
        ) from error


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
