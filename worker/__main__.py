"""``python -m worker``: one node's worker.

Prints ``ready NAME`` once it is registered and consumes its queue. SIGHUP reads the settings anew. SIGTERM ends it;
trainings go on, and the next worker of the same home takes them up again.
"""

import argparse
import fcntl
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from torchyard import exceptions, wire
from torchyard.client import joining
from torchyard.home import WORKER_LOCK
from torchyard.stack import filesystem
from worker import app, settings
from worker.control.backoff import Backoff
from worker.control.registration import Registration, broker_url
from worker.exceptions import RequestRefusedError, UnavailableError
from worker.runtime import Runtime, spawn

#: How long a service may take to start beside this worker: asked often until then. A worker that was registered
#: before starts without it afterwards.
PATIENCE_S: Final = 3.0
SOON_S: Final = 0.05

logger = logging.getLogger("worker")


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM; the exit status is 0, or 2 for a home that cannot be used."""
    # `yard config reload` may ask as soon as the home is locked; what is read below is new then.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    chosen, read = parse(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    for noisy in ("httpx", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    if os.geteuid() == 0:
        # What is laid out for other accounts is theirs to read, whatever the shell says from which this was started.
        os.umask(0o022)
    chosen.home.mkdir(parents=True, exist_ok=True, mode=0o711)
    try:
        filesystem.refuse_network(chosen.home)
        lock = lock_home(chosen.home)
    except (exceptions.NetworkHomeError, BlockingIOError) as error:
        logger.error("%s", error)
        return 2
    try:
        join(chosen)
        restart = WorkerProgram(chosen, read).run()
    except exceptions.TorchYardError as error:
        logger.error("%s", error)
        return 2
    finally:
        os.close(lock)
    if restart:
        os.execv(sys.executable, [sys.executable, "-P", "-m", "worker", *(arguments or sys.argv[1:])])  # noqa: S606
    return 0


def join(chosen: settings.WorkerSettings) -> None:
    """Get the node's own token for an invitation, once: a worker that has one goes on with that.

    Raises JoinError, UnreachableError.
    """
    # This may be a restart, long after standard input was read: nobody is asked for what would not be used.
    if chosen.invitation is None or joining.has_joined(chosen.token_file):
        return
    invitation = sys.stdin.readline().strip() if chosen.invitation == "-" else chosen.invitation
    if joining.join(chosen.address(), invitation, chosen.name, chosen.token_file):
        logger.info("joined as node %s; its token is in %s", chosen.name, chosen.token_file)


def parse(arguments: list[str] | None) -> tuple[settings.WorkerSettings, Callable[[], settings.WorkerSettings]]:
    """Return the settings, of which the command line's come first, and the function that reads them anew."""
    parser = argparse.ArgumentParser(prog="worker", description="The worker of one TorchYard node.")
    parser.add_argument("--name", help="the node's name (default: the host's)")
    parser.add_argument("--join", metavar="URL", help="the service (default: the one in TORCHYARD_HOME)")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="file of the node token")
    parser.add_argument(
        "--join-token",
        metavar="TOKEN",
        help="invitation (`yard nodes --invite`), used if there is no token; - reads it",
    )
    parser.add_argument("--home", type=Path, metavar="DIR", help="folder of attempts and caches, on a local disk")
    parser.add_argument("--cpu-slots", type=int, metavar="N", help="CPU slots to offer instead of GPUs")
    parser.add_argument(
        "--label", action="append", metavar="WORD", help="a word that jobs may ask for; may be given several times"
    )
    given = parser.parse_args(arguments)
    read = partial(
        settings.from_environment,
        name=given.name,
        join=given.join,
        token_file=given.token_file,
        folder=given.home,
        cpu_slots=given.cpu_slots,
        labels=given.label,
        invitation=given.join_token,
    )
    try:
        return read(), read
    except ValueError as error:
        parser.error(str(error))


def lock_home(home: Path) -> int:
    """A descriptor that keeps other workers out of this home, in a file that tells this process.

    Raises BlockingIOError when one is there.
    """
    descriptor = os.open(home / WORKER_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise BlockingIOError(f"another worker runs in {home}: stop it, or give --home another folder") from None
    os.truncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    return descriptor


class WorkerProgram:
    """One run of the worker."""

    def __init__(self, chosen: settings.WorkerSettings, read: Callable[[], settings.WorkerSettings]) -> None:
        self._settings = chosen
        self._read = read
        self._restart = False
        self._said_ready = False
        self._worker: Any = None
        self._runtime = Runtime(chosen, moved=self._start_again)
        self._obey_hangups()

    def _obey_hangups(self) -> None:
        """Read the settings anew at SIGHUP, also while the service or Redis is waited for."""
        signal.signal(signal.SIGHUP, lambda *_: spawn(partial(self._runtime.reload, self._read)))

    def run(self) -> bool:
        """Work until told to end; True when it should be started again."""
        registered = first_registration(self._runtime.registration)
        self._runtime.use(registered)
        broker = broker_url(registered, self._settings.redis_url)
        name = self._settings.name
        # Celery's own handler, which it has installed by then, would start the worker anew.
        on_start = self._obey_hangups
        celery = app.make_app(broker, registered.broker_key_prefix, name, self._runtime, on_start)
        self._worker = app.make_worker(celery, name, self._ready)
        self._worker.start()
        return self._restart

    def _ready(self) -> None:
        if not self._said_ready:
            self._said_ready = True
            gc.freeze()  # what the start has made stays: nothing looks through it for garbage, now and at the end
            self._runtime.publish_settings()
            print(f"ready {self._settings.name}", flush=True)  # noqa: T201

    def _start_again(self) -> None:
        self._restart = True
        threading.Thread(target=self._worker.stop, daemon=True).start()


def first_registration(registration: Registration) -> wire.Registered:
    """The service's answer; that of last time when there is one and the service stays silent."""
    backoff, began, said = Backoff(), time.monotonic(), ""
    while True:
        try:
            return registration.renew()
        except (UnavailableError, RequestRefusedError) as error:
            early = time.monotonic() - began <= PATIENCE_S
            if early and isinstance(error, UnavailableError):
                time.sleep(SOON_S)
                continue
            cached = registration.cached()
            if cached is not None and not early:
                logger.warning("starting without the service: %s", error)
                return cached
            if str(error) != said:
                said = str(error)
                logger.warning("waiting for the service: %s", error)
            time.sleep(backoff.next())


if __name__ == "__main__":
    sys.exit(main())
