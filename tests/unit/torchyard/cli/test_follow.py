import signal
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from service.api.examples.jobs import JOB, MODELS
from tests.support.resources import job
from torchyard import api
from torchyard.cli import follow as module
from torchyard.cli.follow import Interrupts, LineBuffer, RankLogs, Screen, follow
from torchyard.cli.loglines import LONGEST
from torchyard.client.client import Client
from torchyard.client.log_stream import LogChunk
from torchyard.states import JobState


class Written:
    """What reached the screen: whole lines, and each state of the bar."""

    def __init__(self, prefix: str = "") -> None:
        self.text = ""
        self.bars: list[str] = []
        self.lines = LineBuffer(self._write, self.bars.append, prefix)

    def _write(self, lines: str) -> None:
        self.text += lines


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["one\ntwo\n"], "one\ntwo\n"),
        (["on", "e\n", "\n", "tw", "o"], "one\n\ntwo\n"),
        (["no end"], "no end\n"),
        (["windows\r\n"], "windows\n"),
        ([" 10%\r 50%\r100%\n", "done\n"], "100%\ndone\n"),
        (["\r 10%", "\r 50%", "\r100%"], "100%\n"),
        (["\r 10%\r 5", "0%", "\r1", "00%\r", "\n"], "100%\n"),
        ([], ""),
    ],
)
def test_lines_are_written_whole_as_a_terminal_shows_them(pieces: list[str], text: str) -> None:
    written = Written()
    for piece in pieces:
        written.lines.feed(piece)
    written.lines.end()
    assert written.text == text


def test_every_line_has_its_ranks_prefix() -> None:
    written = Written("[1] ")
    written.lines.feed("a\nb\n")
    assert written.text == "[1] a\n[1] b\n"


@pytest.mark.parametrize(("prefix", "between"), [("", ""), ("[1] ", "\n[1] ")])
def test_a_line_without_end_is_shown_in_parts(prefix: str, between: str) -> None:
    written, part = Written(prefix), "x" * (LONGEST + 1)
    for piece in (part, part, "end\n"):
        written.lines.feed(piece)
    assert written.text == prefix + between.join((part, part, "end\n"))


def test_a_bar_is_shown_until_its_line_is_whole() -> None:
    written = Written("[0] ")
    for piece in ("\r 10%", "\r 50%", "\r100%\n"):
        written.lines.feed(piece)
    assert written.bars == ["[0]  10%", "[0]  50%", ""]
    assert written.text == "[0] 100%\n"


def pressed() -> api.Job:
    signal.raise_signal(signal.SIGINT)
    raise AssertionError("it was not interrupted")


def test_each_ctrl_c_is_answered_however_soon_it_follows_another() -> None:
    before, job = signal.getsignal(signal.SIGINT), JOB
    with Interrupts() as interrupts:
        assert interrupts.run(lambda: job, 0) is job
        assert interrupts.run(pressed, 0) is None
        signal.raise_signal(signal.SIGINT)  # while the first one is answered
        assert interrupts.run(pytest.fail, 1) is None
        assert interrupts.run(lambda: job, 2) is job
        assert interrupts.run(pressed, 2) is None
    assert signal.getsignal(signal.SIGINT) is before


def test_a_job_whose_spec_a_newer_service_has_extended_is_followed() -> None:
    asked = []

    class Quiet(Client):
        def follow_logs(self, *_: object, rank: int, **__: object) -> Iterator[LogChunk]:
            asked.append(rank)
            return iter(())

    spec = {"command": ["train.py"], "launcher": "torchrun", "resources": {"gpus": 2, "tomorrow": 1}, "new": True}
    with Quiet(url="http://127.0.0.1:9", token="none") as client:
        RankLogs(client, job(spec=spec, attempt=1), Screen()).join()
    assert sorted(asked) == [0, 1]


def test_a_log_that_nobody_reads_any_more_is_left_and_the_job_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*_: object) -> None:
        raise BrokenPipeError

    class Running(Client):
        def follow_logs(self, *_: object, **__: object) -> Iterator[LogChunk]:
            yield LogChunk(attempt=1, offset=0, next=6, text="step 1\n")

        def wait(self, *_: object, **__: object) -> api.Job:
            raise TimeoutError

        def job(self, *_: object) -> api.Job:
            return running

    running = job(state=JobState.RUNNING, attempt=1, started_at=JOB.created_at)
    monkeypatch.setattr(Screen, "write", gone)
    with Running(url="http://127.0.0.1:9", token="none") as client, pytest.raises(BrokenPipeError):
        follow(client, running)
    assert f"job {running.number} goes on: `yard cancel {running.number}` stops it" in capsys.readouterr().err


class WithoutFiles(Client):
    """A client of a job whose files are all stored: none."""

    def attempts(self, *_: object) -> list[api.Attempt]:
        return []

    def outputs(self, *_: object, **__: object) -> list[api.Output]:
        return []


def test_a_job_that_the_second_ctrl_c_cancels_shows_its_log_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And why nothing was saved, although an older checkpoint was told of after the end."""
    shown, cancelled = threading.Event(), threading.Event()

    class Followed(WithoutFiles):
        def follow_logs(self, *_: object, **__: object) -> Iterator[LogChunk]:
            yield LogChunk(attempt=1, offset=0, next=6, text="step 1\n")
            shown.set()
            assert cancelled.wait(60)
            yield LogChunk(attempt=1, offset=6, next=11, text="last\n")

        def wait(self, *_: object, **__: object) -> api.Job:
            assert shown.wait(60)
            if not cancelled.is_set():
                signal.raise_signal(signal.SIGINT)
            return ended

        def job(self, *_: object) -> api.Job:
            return ended

        def cancel(self, *_: object) -> api.Job:
            cancelled.set()
            return running

        def events(self, *_: object) -> list[api.Event]:
            return told

    begun = {"attempt": 1, "started_at": JOB.created_at}
    running = job(state=JobState.RUNNING, **begun)
    end = JOB.created_at + timedelta(seconds=3)
    ended = job(state=JobState.CANCELLED, ended_at=end, ran_s=3, stop="cancel", **begun)
    event = next(each for each in MODELS if isinstance(each, api.Event))
    told = [
        event.model_copy(update={"kind": "cancelled", "message": "stopped; nothing was saved, because: full"}),
        event.model_copy(update={"kind": "checkpoint", "message": "checkpoint of step 1 written"}),
    ]
    monkeypatch.setattr(module.select, "select", lambda *_: signal.raise_signal(signal.SIGINT))
    with Followed(url="http://127.0.0.1:9", token="none") as client:
        assert follow(client, running) is ended
    out, err = capsys.readouterr()
    assert out == "step 1\nlast\n"
    assert "job 1 cancelled after 3.0s; nothing was saved, because: full\n" in err


def test_a_pipe_is_told_once_for_each_reason_why_the_job_waits(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = [("starting", "starts"), ("no-gpus", "1 GPU is free"), ("no-gpus", "2 GPUs are free"), ("held", "held")]

    class Waiting(WithoutFiles):
        def why(self, *_: object) -> api.Why:
            code, summary = reasons.pop(0)
            found = [api.Reason(code=code, message=summary)]
            return api.Why(state=JobState.QUEUED, summary=summary, reasons=found, position=1, expected_start_at=None)

        def wait(self, *_: object, **__: object) -> api.Job:
            return waiting if reasons else ended

        def job(self, *_: object) -> api.Job:
            return ended

    waiting = job()
    ended = job(state=JobState.CANCELLED, ended_at=JOB.created_at)
    with Waiting(url="http://127.0.0.1:9", token="none") as client:
        assert follow(client, waiting) is ended
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "job 1 one submitted\nqueued: 1 GPU is free\nqueued: held\njob 1 cancelled\n"


def test_a_program_that_reads_the_end_as_json_gets_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    class Ended(Client):
        def follow_logs(self, *_: object, **__: object) -> Iterator[LogChunk]:
            yield LogChunk(attempt=1, offset=0, next=6, text="step 1\n")

        def job(self, *_: object) -> api.Job:
            return ended

        def attempts(self, *_: object) -> list[api.Attempt]:
            return [
                each.model_copy(update={"dropped_log_bytes": 2**20, "settled": True})
                for each in MODELS
                if isinstance(each, api.Attempt)
            ]

        def outputs(self, *_: object, **__: object) -> list[api.Output]:
            return []

    error = api.JobError(cause="exit", message="KeyError: 'loss'", rank=0, traceback="Traceback: …", exit_code=1)
    ended = job(state=JobState.FAILED, attempt=1, started_at=JOB.created_at, ended_at=JOB.created_at, error=error)
    with Ended(url="http://127.0.0.1:9", token="none") as client:
        assert follow(client, ended, beside=True) is ended
    out, err = capsys.readouterr()
    assert out == ""
    assert "step 1\n" in err
    assert "failed: KeyError: 'loss'\n" in err
    assert "warning: 1.0 MiB of logs are missing: the log limit or a full disk dropped them\n" in err
