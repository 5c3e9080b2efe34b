"""A real worker process against a fake service and a real Redis."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from service.infra.dispatch import publisher
from tests.support import fake_service, redis
from tests.support.fake_service import FakeService, Live
from tests.support.wait import until
from torchyard import wire
from torchyard.ids import now_us
from worker.monitoring import processes

NAME = "box"


@dataclass
class Yard:
    """A worker's surroundings, and the worker itself once it is started."""

    home: Path
    fake: FakeService
    live: Live
    broker: redis.Server
    process: "subprocess.Popen[str] | None" = None
    environment: dict[str, str] = field(default_factory=dict)
    #: Where the worker's own words go, if anybody wants to read them.
    errors: Path | None = None

    @property
    def attempts(self) -> Path:
        return self.home / "attempts"

    def start(self, *, ready: bool = True) -> None:
        """Starts the worker; by default waits until it consumes."""
        token = self.home.parent / "token"
        token.write_text(fake_service.TOKEN)
        command = [sys.executable, "-m", "worker", "--name", NAME, "--join", self.live.url, "--cpu-slots", "2"]
        command += ["--token-file", str(token), "--home", str(self.home)]
        env = {**os.environ, "TORCHYARD_ONE_TRUST_DOMAIN": "1", **self.environment}
        with self.errors.open("a") if self.errors else nullcontext() as errors:
            self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
        if ready:
            assert self.process.stdout is not None
            assert self.process.stdout.readline() == f"ready {NAME}\n"

    def kill(self) -> None:
        """Kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; returns the exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.send_signal(number)
        status = self.process.wait(60)
        self.process.stdout.close()
        self.process = None
        return status

    def send(self, attempt: str, times: int = 1) -> None:
        """The launch message, as the service publishes it."""
        with publisher(self.broker.url, self.fake.prefix) as app:
            for _ in range(times):
                queue, headers = wire.node_queue(NAME), {wire.PUBLISHED_HEADER: now_us()}
                app.send_task(wire.LAUNCH_TASK, (attempt,), queue=queue, headers=headers, ignore_result=True)

    def nudge(self) -> None:
        with publisher(self.broker.url, self.fake.prefix) as app:
            app.send_task(wire.NUDGE_TASK, queue=wire.node_queue(NAME), ignore_result=True)

    def settled(self, attempt: str, seconds: float = 60) -> wire.Result:
        """Waits until the service has everything; returns the result."""
        until(lambda: attempt in self.fake.settled, seconds=seconds, what=f"the end of {attempt}")
        return self.fake.results[attempt]


@contextmanager
def yard(folder: Path, short: Path) -> Iterator[Yard]:
    """Redis and a fake service; what a test leaves running of worker and jobs is ended."""
    home = folder / "worker"
    home.mkdir()
    with redis.serve(short) as broker:
        fake = FakeService(broker.url)
        with fake_service.serve(fake) as live:
            made = Yard(home, fake, live, broker)
            try:
                yield made
            finally:
                if made.process is not None:
                    made.stop()
                for attempt in fake.launches:
                    processes.sweep(attempt, 5)
