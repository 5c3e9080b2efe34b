import signal

import pytest

from torchyard.failures import fingerprints, recognition
from torchyard.failures.fingerprints import Blame


def test_what_is_said_last_counts() -> None:
    chain = "FileNotFoundError: [Errno 2] No such file or directory: 'cache.pt'\n\nDuring handling …\n\n"
    found = recognition.recognise(f"{chain}RuntimeError: CUDA out of memory. Tried to allocate 1 GiB")
    assert found == recognition.RecognisedFailure(name=fingerprints.OUT_OF_MEMORY)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["Error.", "Error ", "Exception: loss ", "a", "what():  ", "[E .cpp:1]"])
def test_no_log_keeps_the_worker_busy(piece: str) -> None:
    line = piece * (60_000 // len(piece))
    assert recognition.recognise("\n".join([line] * 4 + [piece * 200] * 200)) is None


def test_blame() -> None:
    assert recognition.blame(fingerprints.GPU_FAULT) is recognition.blame(fingerprints.LOST) is Blame.BOX
    assert recognition.blame(fingerprints.OUT_OF_MEMORY) is recognition.blame("missing-module") is Blame.JOB
    assert recognition.blame(fingerprints.LOST_RANK) is recognition.blame("of a newer worker") is Blame.UNCLEAR
    assert recognition.blame(None) is Blame.UNCLEAR


def test_signals() -> None:
    assert recognition.of_signal(signal.SIGKILL) == "killed"
    assert recognition.of_signal(signal.SIGTERM) is None
