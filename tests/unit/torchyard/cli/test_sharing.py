import sys

import pytest

from torchyard.cli import main


def test_a_time_that_ends_after_the_calendar_is_refused_with_its_option_and_its_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["yard", "reserve", "x", "--gpus", "1", "--user", "ada", "--from", "9990-01-01T09:00", "--for", "36500d"]
    monkeypatch.setenv("TORCHYARD_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TORCHYARD_TOKEN", "none")
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith("yard: --for 36500d: from 9990-01-01 on it would end after the year 9999")
