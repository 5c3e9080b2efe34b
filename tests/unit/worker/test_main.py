from collections.abc import Iterator
from pathlib import Path

import pytest

from torchyard import wire
from worker import __main__ as main
from worker.control.registration import Registration
from worker.exceptions import RequestRefusedError, UnavailableError
from worker.settings import WorkerSettings

ANSWER = wire.Registered(
    installation="yard-1",
    broker_url="redis://broker",
    broker_key_prefix="yard-1",
    heartbeat_s=2,
    inbox="/inbox",
    inbox_probe="probe",
)


def test_a_worker_with_a_token_reads_no_invitation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been started again by itself, and standard input be a terminal at which nobody sits."""
    token = tmp_path / "node.token"
    token.write_text("secret\n")
    monkeypatch.setattr(main.sys, "stdin", None)
    main.join(WorkerSettings(name="box", home=tmp_path, url="http://nobody", token_file=token, invitation="-"))


class Waits:
    """The clock of a worker that waits; each wait passes at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waited: list[float] = []
        monkeypatch.setattr(main.time, "sleep", self.waited.append)
        monkeypatch.setattr(main.time, "monotonic", lambda: sum(self.waited))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    return Waits(monkeypatch)


def registration(folder: Path, answers: Iterator[wire.Registered | Exception]) -> Registration:
    def ask() -> wire.Registered:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Registration(folder / "registration.json", ask)


def test_a_service_that_starts_beside_is_asked_often_and_in_silence(
    tmp_path: Path, waits: Waits, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [UnavailableError("no token yet")] * 40
    assert main.first_registration(registration(tmp_path, iter([*answers, ANSWER]))) == ANSWER
    assert waits.waited == [main.SOON_S] * 40
    assert not caplog.messages


def test_a_refusal_is_not_asked_again_at_once(tmp_path: Path, waits: Waits, caplog: pytest.LogCaptureFixture) -> None:
    refusals = [RequestRefusedError(401, {"detail": "revoked"}, "registration")] * 4
    assert main.first_registration(registration(tmp_path, iter([*refusals, ANSWER]))) == ANSWER
    assert len(waits.waited) == 4
    assert sum(waits.waited) > 20 * main.SOON_S
    assert caplog.messages == ["waiting for the service: registration was refused with 401: revoked"]


@pytest.mark.parametrize("known", [True, False])
def test_only_who_was_registered_before_starts_without_a_service(tmp_path: Path, waits: Waits, known: bool) -> None:
    if known:
        registration(tmp_path, iter([ANSWER])).renew()

    def silence() -> Iterator[wire.Registered | Exception]:
        while sum(waits.waited) < 100:
            yield UnavailableError("nobody there")
        yield ANSWER

    assert main.first_registration(registration(tmp_path, silence())) == ANSWER
    assert (sum(waits.waited) < main.PATIENCE_S + 5) is known
