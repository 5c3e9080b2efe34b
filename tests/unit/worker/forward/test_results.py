from pathlib import Path

import pytest

from torchyard import wire
from torchyard.failures import recognition
from worker.forward import results
from worker.forward.results import clean, complete, extract

HEADER = "Traceback (most recent call last):"


def test_the_last_traceback_is_quoted_without_what_follows() -> None:
    old = f'step 1\n{HEADER}\n  File "old.py"\nKeyError: 1\n\nstep 2\n'
    text = f'{old}{HEADER}\n  File "a.py"\n    f()\nValueError: no\n\nbye'
    assert extract(text) == f'{HEADER}\n  File "a.py"\n    f()\nValueError: no'


def test_a_message_of_several_lines_is_kept() -> None:
    text = f'{HEADER}\n  File "a.py"\nRuntimeError: CUDA error\nCompile with DSA\n'
    assert extract(text).endswith("RuntimeError: CUDA error\nCompile with DSA")


def test_chained_exceptions_belong_together() -> None:
    chain = "The above exception was the direct cause of the following exception:"
    text = f'noise\n{HEADER}\n  File "a.py"\nKeyError: 1\n\n{chain}\n\n{HEADER}\n  File "b.py"\nValueError: 2\n'
    assert extract(text) == text.removeprefix("noise\n").strip()


def test_torch_puts_the_rank_before_each_line() -> None:
    text = (
        f'[rank1]: {HEADER}\n[rank1]:   File "a.py"\n[rank1]: ValueError: no\n[W1120 warning]: destroy_process_group\n'
    )
    assert extract(text) == f'{HEADER}\n  File "a.py"\nValueError: no'


#: What torchrun says last, in a script of the user's or by `accelerate launch`, when a rank has failed.
OF_TORCHRUN = f"""\
W1129 08:30:31.495000 9702 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 8 closing signal
{HEADER}
  File "/venv/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-29_08:30:31
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 8)  (SIGTERM)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-29_08:30:31
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 9)
  error_file: <N/A>
============================================================
"""
OF_ACCELERATE = f"""\
{HEADER}
  File "/venv/bin/accelerate", line 8, in <module>
    sys.exit(main())
subprocess.CalledProcessError: Command '['/venv/bin/python', 'train.py']' returned non-zero exit status 1.
"""
OF_CHILD = f"{HEADER}\n  File \"train.py\", line 4, in <module>\nFileNotFoundError: [Errno 2] No such file: 'data'\n"


def of_rank(rank: int, text: str) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        OF_CHILD + OF_ACCELERATE,
        OF_CHILD + OF_TORCHRUN,
        of_rank(1, OF_CHILD) + of_rank(0, f"{HEADER}\nRuntimeError: gloo: Connection closed by peer") + OF_TORCHRUN,
        of_rank(0, f"{HEADER}\nRuntimeError: gloo: Connection closed by peer") + of_rank(1, OF_CHILD) + OF_TORCHRUN,
    ],
    ids=["accelerate", "torchrun", "first-of-two", "last-of-two"],
)
def test_a_launchers_traceback_gives_way_to_that_of_its_process(text: str) -> None:
    assert extract(text) == OF_CHILD.rstrip()
    assert results.recognise(text) == recognition.RecognisedFailure(name="missing-file", subject="data")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OF_ACCELERATE, "CalledProcessError"),
        (f"{OF_CHILD}\nwithout data\n{OF_ACCELERATE}", "CalledProcessError"),
        (OF_CHILD + OF_TORCHRUN.replace("exitcode  : 1 (", "exitcode  : -9 ("), "ChildFailedError"),
        (of_rank(0, OF_CHILD) + OF_TORCHRUN, "ChildFailedError"),
    ],
    ids=["alone", "mended-before", "killed", "of-another-rank"],
)
def test_a_launchers_traceback_stays_where_its_process_has_none(text: str, said: str) -> None:
    assert said in extract(text)
    assert "data" not in extract(text)


def test_terminal_sequences_and_progress_bars_are_removed() -> None:
    text = f'10%|#  \r20%|## \r\x1b[31m{HEADER}\x1b[0m\n  File "a.py"\x00\nValueError: \x1b]8;;u\x07no\n'
    assert extract(text) == f'{HEADER}\n  File "a.py"\nValueError: no'
    assert clean("a\x00b\x1b[1;31mc") == "abc"


def test_without_a_traceback_the_last_lines_speak() -> None:
    assert extract("\n".join(f"line {n}" for n in range(50))).split("\n") == [f"line {n}" for n in range(30, 50)]


def test_the_quote_is_bounded() -> None:
    text = f'{HEADER}\n  File "a.py"\nValueError: {"ä" * 40_000}'
    assert len(extract(text).encode()) <= results.MAX_TRACEBACK


def failed(**changes: object) -> wire.Result:
    return wire.Result.model_validate({"kind": "exited", "exit_code": 1, "failed_rank": 1, "ended_us": 1} | changes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank-0.log").write_text("fine\n")
    (tmp_path / "logs" / "rank-1.log").write_text(f"{HEADER}\nValueError: rank one\n")
    (tmp_path / "logs" / "launcher.log").write_text("torchrun: failed\n")
    return tmp_path


def test_the_failed_rank_is_quoted_and_drops_are_added(folder: Path) -> None:
    done = complete(failed(dropped_records=2), folder, dropped_bytes=5, dropped_records=1)
    assert done.traceback == f"{HEADER}\nValueError: rank one"
    assert (done.dropped_log_bytes, done.dropped_records) == (5, 3)


@pytest.mark.parametrize(
    "changes",
    [{"exit_code": 0, "failed_rank": None}, {"stop": "cancel"}, {"kind": "unusable", "exit_code": None}],
)
def test_no_quote_where_nothing_failed(folder: Path, changes: dict[str, object]) -> None:
    assert complete(failed(**changes), folder, dropped_bytes=0, dropped_records=0).traceback is None


def test_the_launcher_speaks_for_a_silent_rank(folder: Path) -> None:
    (folder / "logs" / "rank-1.log").unlink()
    assert complete(failed(), folder, dropped_bytes=0, dropped_records=0).traceback == "torchrun: failed"


def test_a_launcher_that_crashed_speaks_where_no_rank_has_failed(folder: Path) -> None:
    (folder / "logs" / "launcher.log").write_text(f"a warning\n{HEADER}\nDistNetworkError: no port\n")
    done = complete(failed(failed_rank=None), folder, dropped_bytes=0, dropped_records=0)
    assert done.traceback == f"{HEADER}\nDistNetworkError: no port"
    (folder / "logs" / "launcher.log").write_text("a warning\n")
    assert complete(failed(failed_rank=None), folder, dropped_bytes=0, dropped_records=0).traceback == "fine"


def test_what_the_shim_has_seen_is_not_replaced_by_words(folder: Path) -> None:
    (folder / "logs" / "rank-1.log").write_text("OSError: [Errno 98] Address already in use\n")
    done = complete(failed(fingerprint="no-store"), folder, dropped_bytes=0, dropped_records=0)
    assert done.fingerprint == "no-store"


def test_a_known_failure_is_named_by_the_words_that_are_quoted(folder: Path) -> None:
    (folder / "logs" / "rank-1.log").write_text("OSError: [Errno 98] Address already in use\n")
    assert complete(failed(), folder, dropped_bytes=0, dropped_records=0).fingerprint == "address-in-use"
    (folder / "logs" / "rank-1.log").write_text(f"address already in use, next\n{HEADER}\nValueError: rank one\n")
    assert complete(failed(), folder, dropped_bytes=0, dropped_records=0).fingerprint is None


def test_what_is_said_after_the_last_traceback_counts_first(folder: Path) -> None:
    watchdog = (
        "[rank1]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: W"
    )
    stack = "\n".join(f"frame #{n}: c10d::ProcessGroupNCCL" for n in range(40))
    mended = f"{HEADER}\nFileNotFoundError: [Errno 2] No such file or directory: 'cache'\n\n"
    (folder / "logs" / "rank-1.log").write_text(f"{mended}step 1\n{watchdog}\n{stack}\n")
    assert complete(failed(), folder, dropped_bytes=0, dropped_records=0).fingerprint == "nccl-timeout"
    (folder / "logs" / "rank-1.log").write_text(f"{mended}step 1\n{HEADER}\nValueError: rank one\n")
    assert complete(failed(), folder, dropped_bytes=0, dropped_records=0).fingerprint is None


#: What a script said whose processes, two for each of torchrun's two ranks, met in torchrun's own store.
SPAWNED = f"""\
{HEADER}
  File "train.py", line 14, in <module>
    mp.spawn(main, args=(2,), nprocs=2)
  File "/venv/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 215, in join
    raise ProcessRaisedException(msg, error_index, failed_process.pid)
torch.multiprocessing.spawn.ProcessRaisedException:

-- Process 0 terminated with the following error:
{HEADER}
  File "/venv/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 87, in _wrap
    fn(i, *args)
  File "train.py", line 8, in main
    dist.all_reduce(torch.ones(1))
"""
RESET = (
    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:545] Read error [127.0.0.1]:12709: "
    "Connection reset by peer. This is typically caused by a remote worker hanging."
)


@pytest.mark.parametrize(
    ("words", "ranked", "cause"),
    [
        (SPAWNED + RESET, True, "own-processes"),
        (SPAWNED + "torch.distributed.DistBackendError: NCCL error: Duplicate GPU detected", True, "own-processes"),
        (f"Process SpawnProcess-1:\n{HEADER}\n{RESET}", True, "own-processes"),
        (SPAWNED + RESET, False, "lost-rank"),
        (f"{HEADER}\n{RESET}", True, "lost-rank"),
        (SPAWNED + "ValueError: bad sample", True, None),
    ],
)
def test_processes_of_a_ranks_own_that_cannot_meet_are_named(
    folder: Path, words: str, ranked: bool, cause: str | None
) -> None:
    (folder / "logs" / "rank-1.log").write_text(f"{words}\n\n")
    done = complete(failed(), folder, dropped_bytes=0, dropped_records=0, ranked=ranked)
    assert done.fingerprint == cause


def test_what_a_known_failure_names_goes_along(folder: Path) -> None:
    (folder / "logs" / "rank-1.log").write_text(f"{HEADER}\nModuleNotFoundError: No module named 'apex'\n")
    done = complete(failed(), folder, dropped_bytes=0, dropped_records=0)
    assert (done.fingerprint, done.subject) == ("missing-module", "apex")


def test_a_failure_under_a_fault_of_the_gpu_is_put_down_to_it() -> None:
    blamed = results.blame(failed(fingerprint="device-assert"), 79)
    assert (blamed.fingerprint, blamed.subject) == ("gpu-fault", "Xid 79")
    assert results.blame(failed(fingerprint="device-assert"), None).fingerprint == "device-assert"
    for other in ({"exit_code": 0, "failed_rank": None}, {"stop": "cancel"}, {"kind": "lost"}):
        assert results.blame(failed(**other), 79).fingerprint is None
