"""An hour of a box with twelve users, some careless: every honest job is done, and every offender is named."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support import accounts, opened_cards, wait
from tests.support.stack import Stack, running
from torchyard import api
from torchyard.api.sharing import UserChanges
from torchyard.client.client import Client
from torchyard.exceptions import RefusedError
from torchyard.states import JobState
from worker.limits.hierarchies import Controller, usable

NEEDED = {Controller.MEMORY, Controller.PIDS}
pytestmark = [
    pytest.mark.e2e,
    accounts.needs_root,
    pytest.mark.skipif(not usable().keys() >= NEEDED, reason="needs cgroups that it may make"),
]
NAMES = ("ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ivy", "jim", "kim", "lou")
#: Enough for the slowest look, which is that at disks.
PATIENCE_S = 60


@dataclass
class Person:
    """A user with a UNIX account of their own, and what they have submitted."""

    name: str
    account: str
    client: Client
    jobs: dict[str, api.Job] = field(default_factory=dict)

    def submit(self, what: str, script: str, **resources: Any) -> None:
        spec = {"name": what, "launcher": "none", "command": ["sh", "-c", script], "max_retries": 0}
        self.jobs[what] = self.client.submit({**spec, "resources": {"gpus": 0, **resources}})

    def starts(self, what: str) -> None:
        """Wait for a start; one that is careless may have been ended again by then."""
        wait.until(lambda: self.client.job(self.jobs[what].id).started_at, what=f"{what} of {self.name}")

    def ends(self, what: str) -> api.Job:
        """The job once it has ended."""
        return self.client.wait(self.jobs[what].id, timeout_s=PATIENCE_S)

    def why_failed(self, what: str) -> str:
        """What `yard` tells of a failure."""
        ended = self.ends(what)
        assert ended.state is JobState.FAILED, (what, ended.state, ended.error)
        assert ended.error is not None
        return ended.error.message

    def watch(self, what: str) -> Iterator[str]:
        """What the job prints, as it comes, until its end."""
        return (chunk.text for chunk in self.client.follow_logs(self.jobs[what].id))

    def waits_for(self, what: str) -> str:
        """Why the job waits, in all the words that there are."""
        return self.client.why(self.jobs[what].id).model_dump_json()

    def attention(self) -> str:
        """All that this user is told needs attention."""
        return self.client.connection.request("GET", "/attention").text


@dataclass
class Lab:
    """The box, its twelve users and their cards."""

    yard: Stack
    people: dict[str, Person]
    cards: opened_cards.Cards
    evening: Path

    def until_evening(self, before: str = ":") -> str:
        """Words for a shell that does something, waits until the hour is over, and says that it is done."""
        return f"{before}; echo works; while [ ! -e {self.evening} ]; do sleep 0.2; done; echo done"

    def use(self, card: int, mib: int) -> str:
        """Words for a shell that takes memory of a card, for as long as it lives."""
        return f"exec 3< {self.cards.file(card, mib)}"

    @contextmanager
    def squatter(self, person: Person, card: int, mib: int) -> Iterator[psutil.Process]:
        """A process that somebody has started beside the queue, from a shell of theirs."""
        command = ["setpriv", "--reuid", person.account, "--clear-groups", "sh", "-c"]
        with subprocess.Popen([*command, f"{self.use(card, mib)}; exec sleep 600"]) as process:
            try:
                yield psutil.Process(process.pid)
            finally:
                process.terminate()


@pytest.fixture
def lab(open_tmp: Path) -> Iterator[Lab]:
    cards = opened_cards.make(open_tmp, 3)
    settings = {
        "PYTHONPATH": cards.python_path,
        "TORCHYARD_CGROUPS": "1",
        "TORCHYARD_PROCESS_LIMIT": "32",
        "TORCHYARD_DISK_LIMIT": "32MiB",
        "TORCHYARD_TRESPASS": "stop",
    }
    with ExitStack() as stack:
        own = {name: stack.enter_context(accounts.account()).pw_name for name in NAMES}
        yard = stack.enter_context(running(open_tmp / "home", slots=None, **settings))
        people = {name: stack.enter_context(joined(yard, name, own[name])) for name in NAMES}
        yield Lab(yard, people, cards, open_tmp / "evening")


@contextmanager
def joined(yard: Stack, name: str, account: str) -> Iterator[Person]:
    """A user as the administrator adds one."""
    yard.client.create_user(api.NewUser(name=name, unix_user=account))
    token = yard.client.create_token(api.TokenRequest(name="laptop", scopes=["submit"], user=name)).secret
    with Client(yard.url, token) as client:
        yield Person(name, account, client)


def test_every_honest_job_is_done_and_every_offender_is_named(lab: Lab) -> None:
    ada, bob, cyd, dan, eve, fay, gus, hal, ivy, jim, kim, lou = lab.people.values()
    # Morning: ada trains on a GPU, cyd on a part of another, bob works without one and watches.
    with lab.squatter(lou, 2, 4096) as squatting:
        wait.until(lambda: lou.account in ada.attention(), what="the squatter's name")
        ada.submit("training", lab.until_evening(lab.use(0, 4096)), gpus=1)
        cyd.submit("tuning", lab.until_evening(lab.use(1, 1024)), gpus=1, gpu_share="10GiB")
        bob.submit("cleaning", lab.until_evening("id -un"), memory="200MiB", cpus=1)
        watched: list[str] = []
        watcher = threading.Thread(target=lambda: watched.extend(bob.watch("cleaning")))
        watcher.start()
        for person, what in ((ada, "training"), (cyd, "tuning"), (bob, "cleaning")):
            person.starts(what)
        eve.submit("greedy", f"{lab.use(1, 40960)}; exec sleep 600", gpus=1, gpu_share="10GiB")
        eve.starts("greedy")
        # Kim's waits for the card that lou sits on, ivy's for its turn behind it until she is removed.
        kim.submit("next", lab.until_evening(lab.use(2, 4096)), gpus=1)
        ivy.submit("left", "echo never", gpus=1)
        # The careless.
        dan.submit("trespass", f"{lab.use(0, 1024)}; exec sleep 600")
        fay.submit("bomb", "while :; do sleep 600 & done")
        gus.submit("filler", "head -c 100000000 /dev/zero > full; exec sleep 600")
        hal.submit("hog", "tail /dev/zero", memory="100MiB")
        with pytest.raises(RefusedError):
            jim.client.cancel(ada.jobs["training"].id)
        with pytest.raises(RefusedError):
            jim.client.change_user("jim", UserChanges(role="administrator"))
        lab.yard.client.delete_user("ivy")

        # First its node says whether it can run jobs as her.
        wait.until(lambda: f"of {lou.account}" in kim.waits_for("next"), what="the squatter as a reason")
        assert str(squatting.pid) in kim.waits_for("next")
        assert "GPU" in dan.why_failed("trespass")
        assert "10.0 GiB" in eve.why_failed("greedy")
        assert "32 processes" in fay.why_failed("bomb")
        assert "of disk" in gus.why_failed("filler")
        assert "memory of 100.0 MiB" in hal.why_failed("hog")
    # Lou has gone home. What waits for the card starts, but not the job of whoever is no user any more.
    kim.starts("next")
    removed = lab.yard.client.why(ivy.jobs["left"].id)
    assert "ivy is deactivated" in removed.model_dump_json()
    assert lab.yard.client.job(ivy.jobs["left"].id).state is JobState.QUEUED
    refused = [(entry.action, entry.status) for entry in lab.yard.client.audit(user="jim", refused=True)]
    assert refused == [("user.change", 403), ("job.cancel", 404)], "he may not know of the job that he would cancel"
    # Evening: whoever did as they should is done, with all that their jobs said.
    lab.evening.touch()
    for person, what in ((ada, "training"), (cyd, "tuning"), (bob, "cleaning"), (kim, "next")):
        ended = person.ends(what)
        assert ended.state is JobState.SUCCEEDED, (what, ended.error)
        assert person.client.attempts(ended.id)[-1].number == 1
        wait.until(lambda job=ended: lab.yard.log(job).endswith(b"works\ndone\n"), what="its log")  # type: ignore[misc]
    watcher.join(PATIENCE_S)
    assert "".join(watched) == f"{bob.account}\nworks\ndone\n"
