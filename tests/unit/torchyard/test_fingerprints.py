import re
import socket

import pytest
import torch
from torch import nn
from torch.distributed import TCPStore

from torchyard import fingerprints


def test_a_port_in_use_is_recognised_in_the_words_of_python_and_of_torch() -> None:
    with socket.socket() as taken, socket.socket() as late:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use") as of_python:
            late.bind(("", port))
        with pytest.raises(RuntimeError, match="EADDRINUSE") as of_torch:
            TCPStore("localhost", port, 1, is_master=True)
    for error in (of_python, of_torch):
        assert fingerprints.recognise(str(error.value)) == fingerprints.ADDRESS_IN_USE


@pytest.mark.parametrize(
    "words",
    [
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer [::1]:4",
        "RuntimeError: [third_party/gloo/gloo/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation",
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600000 ms",
        "trainer.exceptions.PeerError: rank 1 no longer answers",
    ],
)
def test_a_rank_that_is_waited_for_in_vain(words: str) -> None:
    assert fingerprints.recognise(words) == fingerprints.LOST_RANK


def test_batch_normalisation_of_a_single_sample() -> None:
    with pytest.raises(ValueError, match="channel") as error:
        nn.BatchNorm1d(3)(torch.ones(1, 3))
    assert fingerprints.recognise(f"ValueError: {error.value}") == fingerprints.SINGLE_SAMPLE


def test_what_is_not_known() -> None:
    assert fingerprints.recognise("ValueError: boom") is None
    assert fingerprints.advice(None) is fingerprints.advice("of a newer worker") is None


def test_names_are_unique_and_advice_goes_on_in_the_sentence() -> None:
    names = [each.name for each in fingerprints.FINGERPRINTS]
    assert len(names) == len(set(names))
    for each in fingerprints.FINGERPRINTS:
        assert re.match(r"[a-z].*[^.]$", fingerprints.advice(each.name) or "")
