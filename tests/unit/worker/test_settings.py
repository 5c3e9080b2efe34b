from pathlib import Path

import pytest

from torchyard import home, settingsfile
from worker.exceptions import UnavailableError
from worker.settings import WorkerSettings, from_environment


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "URL",
        "NODE",
        "NODE_TOKEN_FILE",
        "CPU_SLOTS",
        "REDIS_URL",
        "ONE_TRUST_DOMAIN",
        "LABELS",
        "OUTPUT_LIMIT",
        "DISK_FLOOR",
    ):
        monkeypatch.delenv(f"TORCHYARD_{name}", raising=False)
    monkeypatch.setenv("TORCHYARD_HOME", str(tmp_path))


def settings(**arguments: object) -> WorkerSettings:
    given = {"name": None, "join": None, "token_file": None, "folder": None, "cpu_slots": None} | arguments
    return from_environment(**given)  # type: ignore[arg-type]


def test_defaults_are_those_of_the_embedded_stack(tmp_path: Path) -> None:
    found = settings()
    assert found.home == home.worker_folder()
    assert found.home.is_relative_to(tmp_path.parent)
    assert found.attempts == found.home / "attempts"
    assert found.name == home.node_name()
    assert found.cpu_slots is None


def test_arguments_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_URL", "http://env")
    monkeypatch.setenv("TORCHYARD_CPU_SLOTS", "4")
    assert settings().address() == "http://env"
    assert settings().cpu_slots == 4
    assert settings(join="http://arg", cpu_slots=0).address() == "http://arg"
    assert settings(cpu_slots=0).cpu_slots == 0


def test_the_running_service_is_found_when_it_appears() -> None:
    found = settings()
    with pytest.raises(UnavailableError, match="yard up"):
        found.address()
    home.write_address("http://127.0.0.1:1")
    assert found.address() == "http://127.0.0.1:1"


def test_the_token_is_read_when_it_is_there(tmp_path: Path) -> None:
    found = settings(token_file=tmp_path / "token")
    with pytest.raises(UnavailableError, match="--token-file"):
        found.token()
    (tmp_path / "token").write_text("")
    with pytest.raises(UnavailableError, match="empty"):
        found.token()
    (tmp_path / "token").write_text("secret\n")
    assert found.token() == "secret"


def test_labels_are_those_given_or_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings().labels == ()
    monkeypatch.setenv("TORCHYARD_LABELS", "fast-disk, ib ,,ib")
    assert settings().labels == ("fast-disk", "ib")
    assert settings(labels=["only"]).labels == ("only",)


def test_a_label_that_no_job_could_ask_for_is_refused() -> None:
    with pytest.raises(ValueError, match="labels: "):
        settings(labels=["x" * 1000])


def test_how_much_of_an_attempts_files_is_stored_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings().limits.total == 100 * 2**30
    monkeypatch.setenv("TORCHYARD_OUTPUT_LIMIT", "5GiB")
    assert settings().limits.total == 5 * 2**30
    monkeypatch.setenv("TORCHYARD_OUTPUT_LIMIT", "much")
    with pytest.raises(ValueError, match=r"^TORCHYARD_OUTPUT_LIMIT: 'much' is not a size"):
        settings()


def test_a_floor_of_the_disk_is_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings().disk_floor is None
    monkeypatch.setenv("TORCHYARD_DISK_FLOOR", "5GiB")
    assert settings().disk_floor == 5 * 2**30
    monkeypatch.setenv("TORCHYARD_DISK_FLOOR", "much")
    with pytest.raises(ValueError, match="TORCHYARD_DISK_FLOOR"):
        settings()


def test_jobs_start_warm_unless_somebody_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHYARD_WARM_START", raising=False)
    assert settings().warm_start
    monkeypatch.setenv("TORCHYARD_WARM_START", "0")
    assert not settings().warm_start


def test_what_counts_at_once_is_taken_over_and_the_rest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings(name="box", cpu_slots=1)
    for name, value in {
        "LABELS": "a100",
        "FOREIGN_PROCESSES": "use",
        "OUTPUT_LIMIT": "1GiB",
        "PROCESS_LIMIT": "99",
    }.items():
        monkeypatch.setenv(f"TORCHYARD_{name}", value)
    fresh = settings(name="box", cpu_slots=1)
    changes = settingsfile.changes(before.given, fresh.given)
    assert (changes.at_once, changes.restart) == (["labels", "foreign_processes", "output_limit"], ["process_limit"])
    after = before.take_over(fresh)
    assert (after.labels, after.foreign.policy, after.limits.total, after.process_limit) == (
        ("a100",),
        "use",
        2**30,
        None,
    )
    assert settingsfile.changes(after.given, fresh.given).at_once == []
    assert after.take_over(fresh) == after


def test_what_the_command_line_says_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings(labels=["mine"], cpu_slots=1)
    monkeypatch.setenv("TORCHYARD_LABELS", "other")
    monkeypatch.setenv("TORCHYARD_CPU_SLOTS", "4")
    fresh = settings(labels=["mine"], cpu_slots=1)
    assert settingsfile.changes(before.given, fresh.given) == settingsfile.Changes([], [])
    assert before.take_over(fresh).labels == ("mine",)
    assert before.options == {"labels", "cpu_slots"}
