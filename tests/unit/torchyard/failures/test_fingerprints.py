import re
import socket
import subprocess
import sys
import traceback

import pytest
import torch
from torch import nn
from torch.distributed import TCPStore, rendezvous

from torchyard.failures import fingerprints, recognition
from torchyard.failures.fingerprints import Blame

WATCHDOG = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, "
    "NumelOut=466119168, Timeout(ms)=600000) ran for 600060 milliseconds before timing out."
)


def name_of(words: str) -> str | None:
    known = recognition.recognise(words)
    return known.name if known else None


def said(error: BaseException) -> str:
    """As Python ends a traceback with it."""
    return "".join(traceback.format_exception_only(error))


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
        assert name_of(said(error.value)) == fingerprints.ADDRESS_IN_USE


def test_batch_normalisation_of_a_single_sample() -> None:
    with pytest.raises(ValueError, match="channel") as error:
        nn.BatchNorm1d(3)(torch.ones(1, 3))
    assert name_of(said(error.value)) == fingerprints.SINGLE_SAMPLE


def test_a_process_group_without_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="RANK expected") as error:
        next(rendezvous("env://"))
    assert name_of(said(error.value)) == fingerprints.NO_RANKS


def test_a_nan_that_torch_finds_itself() -> None:
    number = torch.zeros(1, requires_grad=True)
    with (
        pytest.warns(UserWarning, match="Error detected"),
        pytest.raises(RuntimeError, match="returned nan values") as error,
        torch.autograd.set_detect_anomaly(True),
    ):
        (number.sqrt() * 0).sum().backward()
    assert name_of(said(error.value)) == "not-finite"


def test_python_names_what_is_missing() -> None:
    with pytest.raises(ImportError) as module:
        __import__("no_such_module.deep")
    assert recognition.recognise(said(module.value)) == recognition.RecognisedFailure(
        name=fingerprints.MISSING_MODULE, subject="no_such_module"
    )
    with pytest.raises(FileNotFoundError) as file:
        open("/no/such/file.pt")  # noqa: PTH123, SIM115
    known = recognition.recognise(said(file.value))
    assert known == recognition.RecognisedFailure(name="missing-file", subject="/no/such/file.pt")
    assert (recognition.advice(known.name, known.subject) or "").startswith("the file /no/such/file.pt is not on")
    assert "python:" in (recognition.advice(fingerprints.MISSING_MODULE, "no_such_module") or "")


@pytest.mark.parametrize(
    ("error", "subject"),
    [
        (ModuleNotFoundError("my own text"), "my own text"),
        (ModuleNotFoundError("apex {is} needed\nsecond line"), "apex {is} needed"),
        (ImportError("libcudart.so.12: cannot open"), "libcudart.so.12: cannot open"),
        (ImportError("x" * 300), "x" * 200),
        (ImportError(), None),
        (ModuleNotFoundError(""), None),
    ],
)
def test_an_import_error_is_told_with_its_own_words(error: ImportError, subject: str | None) -> None:
    known = recognition.recognise(f"step 1\n{said(error)}\n")
    assert known == recognition.RecognisedFailure(name="import-error", subject=subject)
    told = recognition.advice(known.name, known.subject) or ""
    assert told.startswith(f"a module cannot be imported ({subject or 'its traceback shows where'}): the environment")
    assert recognition.blame(known.name) is Blame.JOB


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("out-of-memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total"),
        ("out-of-memory", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 192.00 MiB. GPU 0"),
        ("out-of-memory", "RuntimeError: CUDA out of memory. Tried to allocate 92.00 MiB (GPU 0; 1.96 GiB total"),
        ("out-of-memory", "torch.AcceleratorError: CUDA error: out of memory\nCUDA kernel errors might be"),
        (
            "out-of-memory",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        ),
        (
            "host-memory",
            "RuntimeError: [enforce fail at alloc_cpu.cpp:73] . DefaultCPUAllocator: can't allocate memory: you tried "
            "to allocate 116813856768 bytes. Error code 12 (Cannot allocate memory)",
        ),
        ("host-memory", "RuntimeError: DataLoader worker (pid 4242) is killed by signal: Killed. "),
        ("host-memory", "MemoryError"),
        ("host-memory", "OSError: [Errno 12] Cannot allocate memory"),
        (
            "shared-memory",
            "RuntimeError: DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that "
            "dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
        ),
        (
            "shared-memory",
            "RuntimeError: unable to write to file </torch_4312_2811>: No space left on device (28)",
        ),
        ("not-finite", "ValueError: The loss returned in `training_step` is nan or inf."),
        ("not-finite", "Loss is nan, stopping training"),
        ("not-finite", "FloatingPointError: loss is nan at step 7"),
        ("nccl-timeout", f"[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] {WATCHDOG}"[8:]),
        ("nccl-timeout", f"[E ProcessGroupNCCL.cpp:737] [Rank 1] {WATCHDOG}"),
        (
            "nccl-timeout",
            "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG 1 Rank 1] Process "
            f"group watchdog thread terminated with exception: [Rank 1] {WATCHDOG}\nException raised from checkTimeout",
        ),
        (
            "lost-rank",
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or "
            "there was a network error, NCCL version 2.20.5\nncclRemoteError: A call failed possibly due to a network "
            "error or a remote process exiting prematurely.",
        ),
        (
            "lost-rank",
            "RuntimeError: [third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by peer [::1]:4",
        ),
        (
            "lost-rank",
            "RuntimeError: [third_party/gloo/gloo/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation",
        ),
        ("lost-rank", "trainer.exceptions.PeerError: rank 1 no longer answers"),
        ("gpu-fault", "RuntimeError: CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be"),
        ("gpu-fault", "torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the execution"),
        (
            "gpu-fault",
            "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: uncorrectable ECC "
            "error encountered",
        ),
        ("gpu-fault", "pynvml.NVMLError_GpuIsLost: GPU is lost"),
        ("gpu-fault", "NVRM: Xid (PCI:0000:44:00): 79, GPU has fallen off the bus."),
        ("gpu-fault", "[74789.644138] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus."),
        (
            "driver-mismatch",
            "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors",
        ),
        (
            "driver-mismatch",
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update",
        ),
        ("driver-mismatch", "RuntimeError: CUDA driver version is insufficient for CUDA runtime version"),
        ("driver-mismatch", "AssertionError: Torch not compiled with CUDA enabled"),
        ("device-assert", "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be"),
        ("import-error", "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"),
        ("disk-full", "OSError: [Errno 28] No space left on device: 'out.pt'"),
        ("permission", "PermissionError: [Errno 13] Permission denied: '/data/x'"),
        ("code-error", "NameError: name 'modle' is not defined"),
        ("code-error", "ImportError: attempted relative import with no known parent package"),
        ("no-input", "EOFError: EOF when reading a line"),
        ("code-error", "TypeError: forward() missing 1 required positional argument: 'x'"),
    ],
)
def test_what_torch_nccl_driver_and_python_say(name: str, words: str) -> None:
    assert name_of(f"step 12 loss 0.5\n{words}\n") == name


@pytest.mark.parametrize(
    "words",
    [
        "ValueError: boom",
        "KeyError: 'loss'",
        "RuntimeError: shape '[2, 3]' is invalid for input of size 5",
        # logs that mention the words
        "INFO if you see CUDA out of memory, lower the batch size",
        "# catches torch.OutOfMemoryError: CUDA out of memory.",
        "WARNING retrying: address already in use, next port",
        "step 7: no nan in the loss, no inf either",
        "epoch 3 loss nan-free ratio 1.0",
        "ValueError: loss_fn must be one of mse, nanmean",
        "docs: uncorrectable ECC error encountered means a broken GPU",
        "NVRM: Xid (PCI:0000:02:00): 13, Graphics Exception: Shader Program Header 11 Error",
        "the Xid of this GPU is 79",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1: Watchdog caught collective operation timeout will abort",
        "[W321 02:07:08.4 ProcessGroupNCCL.cpp:607] Watchdog caught collective operation timeout is what you would see",
        "gloo: Connection closed by peer, as asked",
        "see ModuleNotFoundError: No module named 'apex' in the FAQ",
        "ImportErrors: 0",
        "ImportError was caught",
        "  File 'a.py', line 3, in f  # PermissionError: [Errno 13]",
        "UserWarning: The NVIDIA driver on your system is too old, CPU is used",
        "caught TypeError: skipped",
        "MemoryErrors: 0",
    ],
)
def test_what_only_mentions_the_words(words: str) -> None:
    assert name_of(f"step 12\n{words}\nbye\n") is None


def test_a_python_without_torch_and_a_script_that_is_not_there_in_pythons_own_words() -> None:
    def said(*words: str) -> str:
        done = subprocess.run([sys.executable, "-I", "-S", *words], capture_output=True, text=True, check=False)
        return done.stderr

    found = recognition.recognise(said("-m", "torch.distributed.run", "--standalone"))
    assert found == recognition.RecognisedFailure(name=fingerprints.NO_TORCH, subject=sys.executable)
    assert f"`{sys.executable} -m pip install torch`" in str(recognition.advice(found.name, found.subject))
    found = recognition.recognise(said("/nowhere/train.py"))
    assert found == recognition.RecognisedFailure(name="missing-script", subject="/nowhere/train.py")


def test_names_are_unique_and_advice_goes_on_in_the_sentence() -> None:
    names = [each.name for each in fingerprints.FINGERPRINTS]
    assert len(names) == len(set(names))
    assert recognition.advice(None) is recognition.advice("of a newer worker") is None
    for each in fingerprints.FINGERPRINTS:
        assert re.match(r"[a-z].*[^.]$", recognition.advice(each.name) or "")
