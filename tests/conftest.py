"""Fixtures that all tests share: databases of both kinds, and a watch for leaked processes."""

import gc
import os
import secrets
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.support import memory, processes
from tests.support.live import live_service, serve, yard_home
from torchyard.network import ports

if TYPE_CHECKING:  # loaded by the fixtures that need them: what hands tests out to several processes runs none
    from service.db.engine import Database
    from tests.support import postgres

__all__ = ["live_service", "serve", "yard_home"]

# No test is timed: on a busy machine any example may take long.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")

#: A test that takes so many seconds hangs, as a rule, and is soon ended: what its processes do is kept before.
_HANGS_S = 200
_UNIT = Path(__file__).parent / "unit"
# It is of the whole run, whichever test spawns the first process.
resource_tracker.ensure_running()


def pytest_configure(config: pytest.Config) -> None:
    """What killed programs leave among their temporary files goes with the run; the tests' own folders stay."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell; programs would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # the run's environment is the workers' too
    os.environ.setdefault("TORCHYARD_CGROUPS", "0")  # a stack that a test kills would leave groups on the machine
    # The server that a stack makes for jobs to come would take the cores from what is tested.
    os.environ.setdefault("TORCHYARD_WARM_START", "0")
    # A thread of NumPy's for each core, in each program that loads it, waits busily for work that no test has.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Every stack, command and job that a test starts would compile our modules anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    get_temp_dir()  # multiprocessing removes its own at exit, when the run's folder is gone
    folder = tempfile.TemporaryDirectory(prefix="ty-", ignore_cleanup_errors=True)
    Path(folder.name).chmod(0o711)  # jobs of other users have theirs in it
    os.environ["TMPDIR"] = tempfile.tempdir = folder.name
    config.add_cleanup(folder.cleanup)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without looking for garbage, which takes a third of the time, and keep what is loaded by then out of it.

    To look through that took most of a training's time, which ends with a collection. Processes share the cores:
    torch's own threads would only wait for each other, which takes as much of a core as to compute.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have what changes the machine's network wait for the browser's tests: Chromium drops what it loads meanwhile."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("interfaces"):
        return 1
    return 2 if item.path.is_relative_to(_UNIT) else 0


@pytest.fixture(scope="session")
def watch() -> Iterator[processes.Watch]:
    """One for all tests: a thread for each takes longer than most of them."""
    with processes.watch(_HANGS_S) as watch:
        yield watch


@pytest.fixture(autouse=True)
def no_leaked_processes(monkeypatch: pytest.MonkeyPatch, watch: processes.Watch) -> Iterator[None]:
    """Fails a test that leaves a process behind: every child inherits a mark of this one test."""
    mark = watch.begin()
    monkeypatch.setenv(processes.MARK, mark)
    monkeypatch.setenv("TORCHYARD_JOB_ENV", processes.MARK)  # jobs inherit it too
    yield
    deadline = time.monotonic() + 20
    while (left := watch.left()) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid, _ in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, f"processes left behind: {left}"


@pytest.fixture(scope="session", autouse=True)
def compiled_statements() -> Iterator[None]:
    """Statements are compiled once for all tests."""
    from tests.support import statements_cache

    with statements_cache.shared():
        yield


@pytest.fixture(scope="session", autouse=True)
def rows_in_any_order() -> Iterator[None]:
    """SQLite answers backwards where a query asks for no order: PostgreSQL may answer in any."""
    from sqlalchemy import Engine, event

    def reverse(connection: object, _record: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA reverse_unordered_selects=ON")

    event.listen(Engine, "connect", reverse)
    yield
    event.remove(Engine, "connect", reverse)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator["postgres.Server"]:
    """One PostgreSQL server for the whole run."""
    from tests.support import postgres

    with postgres.serve() as server:
        yield server


@pytest.fixture
def database_folder() -> Iterator[Path]:
    """A folder for the files of SQLite."""
    with tempfile.TemporaryDirectory(prefix="ty-db-", dir=memory.place()) as folder:
        yield Path(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, database_folder: Path) -> Iterator[str]:
    """URL of a database without tables; every test that takes it runs on both kinds."""
    if request.param == "sqlite":
        yield f"sqlite:///{database_folder / 'test.db'}"
        return
    server: postgres.Server = request.getfixturevalue("postgres_server")
    with server.database() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database to copy, which is faster than to migrate each."""
    from service.db.schema import migrate

    path = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, database_folder: Path, migrated_file: Path) -> Iterator[str]:
    """URL of a database with all tables and nothing in them, of both kinds."""
    if request.param == "sqlite":
        yield f"sqlite:///{shutil.copy(migrated_file, database_folder / 'test.db')}"
        return
    server: postgres.Server = request.getfixturevalue("postgres_server")
    with server.database(migrated=True) as url:
        yield url


@pytest.fixture
def db(database_url: str) -> Iterator["Database"]:
    """An open database with all tables."""
    from service.db.engine import Database

    database = Database(database_url)
    yield database
    database.dispose()


@pytest.fixture
def port() -> Iterator[int]:
    """A port of the loopback for a program that is told where to listen, and that nobody else is given."""
    with ports.held("127.0.0.1") as port:
        yield port


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """A folder with a short path, for sockets (their paths end at 108 bytes)."""
    with tempfile.TemporaryDirectory(prefix="ty-", dir="/tmp") as folder:
        yield Path(folder)


@contextmanager
def open_folder() -> Iterator[Path]:
    folder = Path("/tmp", f"ty-{secrets.token_hex(6)}")
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    """A folder that all accounts may enter, as /srv and /var/lib are; pytest's own are closed to them."""
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def shared_open_tmp() -> Iterator[Path]:
    """The same for all tests of a module."""
    with open_folder() as folder:
        yield folder
