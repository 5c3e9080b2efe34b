"""A job's user who moves files about while root prepares, keeps or removes them gets nothing that is not theirs."""

import hashlib
import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support import accounts
from tests.support.node import PYTHON, Box
from tests.support.wait import until
from torchyard.injob import layout
from torchyard.wire import CarriedFile, Place, Root
from worker.attempts import removal
from worker.attempts.folder import AttemptFolder, finish_removals
from worker.attempts.kept import KeptFiles
from worker.attempts.retained import RetainedFiles
from worker.launching import prepare
from worker.launching.identity import identity

pytestmark = accounts.needs_root

USER = pwd.getpwnam("nobody").pw_uid
#: Files of the job, and as many of the same names that are root's.
NAMES = [f"file-{number}" for number in range(2000)]
BECOME = """
import ctypes, mmap, os, struct, sys
uid, parent, victim = int(sys.argv[1]), *sys.argv[2:4]
os.setgroups([]); os.setgid(uid); os.setuid(uid)
print("ready", flush=True)
"""
#: Waits until the first file is the user's, and puts a link in the place of its folder.
SWAP_WHAT_IS_GIVEN = """
while True:
    try:
        os.chdir(parent)
        first = os.path.join("data", os.listdir("data")[0])
        while os.stat(first).st_uid != uid:
            pass
        os.rename("data", "away")
        os.symlink(victim, "data")
        break
    except OSError:
        pass
"""
#: Exchanges folders of these names with links, and back, as fast as it can; it goes on in a folder that root has moved
#: meanwhile. Counts its swaps in a file.
SWAP_TO_AND_FRO = """
RENAME_EXCHANGE, renameat2 = 2, ctypes.CDLL(None).renameat2
counter, *names = sys.argv[4:]
with open(counter, "r+b") as file:
    swaps = mmap.mmap(file.fileno(), 8)
count = 0
while True:
    try:
        at = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        continue
    for name in names:
        try:
            os.symlink(victim, name + "-link", dir_fd=at)
        except OSError:
            pass
    swapped = True
    while swapped:
        swapped = sum(renameat2(at, name.encode(), at, f"{name}-link".encode(), RENAME_EXCHANGE) == 0 for name in names)
        count += swapped
        swaps[:8] = struct.pack("q", count)
    os.close(at)
"""
#: Keeps a folder from being empty, and puts a link in the place of what root makes in there.
SWAP_WHAT_IS_MADE = """
number = 0
while True:
    try:
        os.chdir(parent)
        number += 1
        os.close(os.open(f"full-{number}", os.O_CREAT))
        if os.lstat("code").st_uid == 0:
            os.rename("code", f"away-{number}")
            os.symlink(victim, "code")
    except OSError:
        pass
"""


@pytest.fixture
def box(open_tmp: Path) -> Box:
    return Box(open_tmp)


@pytest.fixture
def victim(open_tmp: Path) -> Path:
    """A folder of root's that everybody may look into."""
    made = open_tmp / "victim"
    made.mkdir()
    for name in NAMES:
        (made / name).write_text("root's")
    return made


def stolen(victim: Path) -> list[str]:
    """What is not as root has left it."""
    assert victim.stat().st_uid == 0
    changed = [path.name for path in victim.iterdir() if path.stat().st_uid != 0 or path.read_text() != "root's"]
    return sorted({*changed, *({path.name for path in victim.iterdir()} ^ set(NAMES))})


@contextmanager
def attack(how: str, parent: Path, victim: Path, *more: str, uid: int = USER) -> Iterator[None]:
    """A process of another account that has its way with a folder whenever the kernel allows it."""
    command = [PYTHON, "-I", "-S", "-c", BECOME + how, str(uid), str(parent), str(victim), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


class Race:
    """Swaps of folders by their user while root keeps, brings or removes what is in them."""

    def __init__(self, parent: Path, victim: Path, counter: Path, *names: str) -> None:
        counter.write_bytes(bytes(8))
        counter.chmod(0o666)
        self._counter = counter
        self._seen = 0
        self.attack = attack(SWAP_TO_AND_FRO, parent, victim, str(counter), *names)

    def goes_on(self) -> bool:
        """Whether there were swaps since the last look."""
        before, self._seen = self._seen, int.from_bytes(self._counter.read_bytes(), sys.byteorder)
        return self._seen > before


def grow(folder: Path, names: Iterable[str]) -> None:
    """A folder of the user's with files of these names."""
    folder.mkdir(parents=True)
    for path in (folder, *(folder / name for name in names)):
        path.touch()
        os.chown(path, USER, -1)


def test_files_that_root_hands_over_are_the_jobs_alone(box: Box, victim: Path) -> None:
    who = identity("ada", "nobody", one_trust_domain=False)
    for _ in range(5):
        folder = box.assign(unix_user="nobody", files={}, command=["true"])
        launch = box.control.launch(folder.attempt_id)
        assert launch is not None
        folder.create()
        code = prepare.lay_out(folder, launch, box.control.fetch_blob)
        folder.make_temporary()
        code.joinpath("data").mkdir()
        for name in NAMES:
            code.joinpath("data", name).touch()
        with attack(SWAP_WHAT_IS_GIVEN, code, victim):
            prepare.hand_over(folder, launch, who)
            prepare.let_in(folder, who)
        assert stolen(victim) == []
        assert folder.at(layout.CODE).lstat().st_uid == USER
        folder.remove()


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def test_what_is_handed_over_is_one_accounts_whoever_tries_to_have_it(box: Box, victim: Path) -> None:
    """The job's own account, one that has jobs too, and one that has none."""
    with accounts.account() as ada, accounts.account() as bob, accounts.account() as stranger:
        who = identity("ada", ada.pw_name, one_trust_domain=False)
        for attacker in (ada, bob, stranger):
            folder = box.assign(unix_user=ada.pw_name, files={}, command=["true"])
            launch = box.control.launch(folder.attempt_id)
            assert launch is not None
            folder.create()
            data = prepare.lay_out(folder, launch, box.control.fetch_blob) / "data"
            folder.make_temporary()
            data.mkdir()
            for name in NAMES:
                (data / name).touch()
            with attack(SWAP_WHAT_IS_GIVEN, data.parent, victim, uid=attacker.pw_uid):
                prepare.hand_over(folder, launch, who)
                prepare.let_in(folder, who)
            assert stolen(victim) == []
            assert owners(folder.at(layout.JOB)) == {ada.pw_uid}
            if attacker is not ada:
                looked = subprocess.run(["ls", folder.at(layout.JOB)], user=attacker.pw_uid, check=False)
                assert looked.returncode != 0
                assert {path.name for path in data.iterdir()} == set(NAMES), "they have not come in"
            folder.remove()


def test_what_an_earlier_try_has_handed_over_is_not_written_into(box: Box, victim: Path) -> None:
    """A worker that was killed after it had handed the folders over prepares the attempt anew."""
    files: dict[str, str | bytes] = dict.fromkeys(NAMES, "the job's")
    folder = box.assign(unix_user="nobody", files=files, command=["true"])
    folder.at(layout.CODE).mkdir(parents=True)
    for path in (folder.at(layout.JOB), folder.at(layout.CODE)):
        os.chown(path, USER, -1)
    with attack(SWAP_WHAT_IS_MADE, folder.at(layout.JOB), victim):
        for _ in range(50):
            with suppress(OSError):
                box.launcher.start(folder.attempt_id)
            if folder.started():
                break
        assert folder.started()
    assert stolen(victim) == []


#: Times that root does something while its user swaps folders.
TIMES = 300


def the_folder(parent: Path, name: str) -> Path:
    """Where the user has left a folder."""
    return next(path for path in (parent / name, parent / f"{name}-link") if not path.is_symlink())


def test_swaps_while_files_are_kept_brought_and_removed(open_tmp: Path, victim: Path) -> None:
    folder, kept = open_tmp / "attempts/att-1", KeptFiles(open_tmp)
    code, names = folder / layout.CODE, NAMES[:TIMES]
    grow(code / "models", names)
    for path in (code, folder / layout.JOB):
        os.chown(path, USER, -1)
    places = [Place(root=Root.CODE, path=f"models/{name}") for name in names]
    race = Race(code, victim, open_tmp / "counter", "models")
    with race.attack:
        for place in places:
            until(race.goes_on)
            kept.keep("att-1", folder, USER, [place])
    assert stolen(victim) == []
    taken = [place for place in places if kept.has("att-1", place)]
    assert 0 < len(taken) < TIMES
    left = {path.name for path in the_folder(code, "models").iterdir()}
    assert left == {*names} - {Path(place.path).name for place in taken}, "each is moved, or left where it is"

    here, brought = kept.folder("att-1") / "code", 0
    race = Race(here, victim, open_tmp / "counter", "models")
    with race.attack:
        for place in taken:
            until(race.goes_on)
            with suppress(OSError), kept.open("att-1", place) as descriptor:
                assert os.fstat(descriptor).st_uid == USER
                brought += 1
            kept.remove("att-1", place)
    assert 0 < brought < len(taken)
    assert 0 < len(list(the_folder(here, "models").iterdir())) < len(taken), "some were removed"
    race = Race(here, victim, open_tmp / "counter", "models")
    with race.attack:
        until(race.goes_on)
        kept.discard("att-1")
    assert stolen(victim) == []


def test_swaps_while_attempts_are_retained_taken_from_and_removed(
    open_tmp: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = open_tmp / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    attempt, retained = AttemptFolder(open_tmp / "attempts", "att-1"), RetainedFiles(open_tmp)
    file = CarriedFile(
        root=Root.CODE, path="data/file-0", size=0, sha256=hashlib.sha256().hexdigest(), attempt="att-1", move=True
    )
    race = Race(attempt.at(layout.JOB), victim, open_tmp / "counter", "code", "output", "metrics", "marks")
    taken = 0
    with race.attack:
        for number in range(TIMES // 3):
            attempt.create()
            attempt.make_temporary()
            job = open_tmp / "job"
            for name in ("code", "output", "metrics", "marks"):
                grow(job / name / "data", NAMES[:3])
                os.chown(job / name, USER, -1)
            os.chown(job, USER, -1)
            job.rename(attempt.at(layout.JOB))
            race.goes_on()
            until(race.goes_on)
            if number % 2:
                attempt.remove()
            else:
                retained.retain(attempt)
                target = open_tmp / f"taken-{number}"
                taken += retained.take(file, target)
                assert not target.exists() or target.stat().st_uid == USER
                retained.discard("att-1")
                assert retained.attempts() == []
            finish_removals(attempt.attempts)
    assert 0 < taken < TIMES // 6
    assert stolen(victim) == []
    for parent in (attempt.attempts, retained.root, temporary):
        finish_removals(parent)
        removal.remove(retained.root / "att-1")
        assert list(parent.iterdir()) == [], "nothing is forgotten"
