"""What py-spy tells, in words; and who is asked."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchyard import wire
from torchyard.wire import Frame
from worker.monitoring import stacks
from worker.monitoring.stacks import StackTarget, UnreadableError, activity
from worker.shim import table

TORCH = "/opt/envs/x/lib/python3.11/site-packages/torch"


def frame(function: str, file: str, line: int = 1, *, native: bool = False) -> Frame:
    return Frame(function=function, file=file, line=line, native=native)


TRAIN = frame("main", "/code/train.py", 88)
C10D = f"{TORCH}/distributed/distributed_c10d.py"


def test_a_rank_that_waits_in_a_collective() -> None:
    told = activity(
        [
            frame("c10d::Work::wait", f"{TORCH}/lib/libtorch_cpu.so", 0, native=True),
            frame("all_reduce", C10D, 3913),
            frame("_exception_logger.<locals>.wrapper", f"{TORCH}/distributed/c10d_logger.py", 83),
            TRAIN,
        ]
    )
    assert told == {"collective": "all_reduce", "doing": None, "place": "train.py:88"}


def test_a_collective_below_other_layers_of_torch() -> None:
    told = activity(
        [
            frame("_all_gather_base", C10D),
            frame("unshard", f"{TORCH}/distributed/fsdp/_fsdp_param_group.py"),
            frame("__call__", f"{TORCH}/nn/modules/module.py"),
            frame("step", "/opt/envs/x/lib/python3.11/site-packages/lightning/loop.py"),
            TRAIN,
        ]
    )
    assert (told["collective"], told["place"]) == ("_all_gather_base", "train.py:88")


def test_a_rank_that_loads_data() -> None:
    told = activity(
        [
            frame("poll", "/usr/lib/python3.11/selectors.py"),
            frame("_try_get_data", f"{TORCH}/utils/data/dataloader.py"),
            TRAIN,
        ]
    )
    assert told == {"collective": None, "doing": "data loading", "place": "train.py:88"}


def test_the_jobs_own_function_is_named_though_a_launcher_of_torch_called_it() -> None:
    """torchrun's `record` wraps the main function: that is below it on the stack, and no collective."""
    record = frame("wrapper", f"{TORCH}/distributed/elastic/multiprocessing/errors/__init__.py")
    told = activity([frame("clock_nanosleep", "libc.so.6", native=True), frame("load", "/code/data.py", 5), record])
    assert told == {"collective": None, "doing": "load", "place": "data.py:5"}


def test_where_all_is_installed_the_last_that_is_not_torch_counts() -> None:
    told = activity([frame("barrier", C10D), frame("run", "/venv/lib/python3.11/site-packages/trainer/loop.py", 7)])
    assert told == {"collective": "barrier", "doing": None, "place": "loop.py:7"}


def test_native_code_alone_says_nothing() -> None:
    assert activity([frame("futex", "libc.so.6", native=True)]) == {"collective": None, "doing": None, "place": None}


@pytest.mark.parametrize(
    ("words", "mend"),
    [
        ("Error: Permission Denied: Try running again with elevated permissions by going 'sudo env", "ptrace_scope=0"),
        ("Error: Failed to suspend process\nReason: EPERM: Operation not permitted", "--cap-add SYS_PTRACE"),
        ("Error: Failed to find python version from target process", "py-spy says: Failed to find python version"),
        ("", "py-spy says: nothing"),
    ],
)
def test_a_refusal_names_the_mend(words: str, mend: str) -> None:
    assert mend in stacks.refusal(words)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (["/env/bin/python3.11", "-u", "train.py", "--token", "hf_secret", ""], "/env/bin/python3.11 train.py"),
        (["python", "-um", "pdb", "train.py", "--key=secret"], "python pdb"),
        (["python", "-m", "trainer", "--key", "secret"], "python -m trainer"),
        (["python", "-c", "login('secret')"], "python"),
        (["python", "-Ic", "login('secret')"], "python"),
        (["bash", "-c", "export TOKEN=secret; train"], "bash"),
        (["/bin/train", "--token", "secret"], "/bin/train"),
        (["bash", "run.sh", "secret"], "bash run.sh"),
        (["/bin/train", ""], "/bin/train"),
        ([], ""),
    ],
)
def test_of_a_command_line_only_program_and_script_are_shown(line: list[str], shown: str) -> None:
    """The other arguments may hold tokens, and everybody who may read sees them."""
    assert stacks.program_of(line) == shown


def own() -> StackTarget:
    process = table.find(os.getpid())
    assert process is not None
    return StackTarget(process=process, rank=3, main=True)


def test_a_process_that_cannot_be_read_says_why() -> None:
    tried = []

    def read(pid: int, native: bool) -> list[Any]:
        tried.append(native)
        raise UnreadableError("no")

    stack = stacks.stack_of(own(), read)
    assert (stack.rank, stack.main, stack.error, stack.threads) == (3, True, "no", [])
    assert tried == [True, False]
    assert stack.command == stacks.program_of(own().process.command_line())


def test_the_main_thread_comes_first() -> None:
    def thread(number: int, name: str) -> dict[str, Any]:
        call = {"name": name, "filename": "/code/x.py", "line": 1, "module": None}
        return {"thread_name": name, "os_thread_id": number, "frames": [call]}

    pid = own().process.pid
    stack = stacks.stack_of(own(), lambda *_: [thread(pid + 1, "pin_memory"), thread(pid, "main")])
    assert [each.name for each in stack.threads] == ["main", "pin_memory"]
    assert (stack.doing, stack.place) == ("main", "x.py:1")
    assert Path(stack.command.split()[0]).name.startswith("python") or "pytest" in stack.command


def test_py_spy_reads_a_real_process(tmp_path: Path) -> None:
    code = "import sys, time\ndef wait():\n    print(flush=True)\n    time.sleep(600)\nwait()\n"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            (main,) = stacks.py_spy(process.pid, False)
            assert "wait" in [call["name"] for call in main["frames"]]
        finally:
            process.kill()
    with pytest.raises(UnreadableError):
        stacks.py_spy(process.pid, False)


def test_a_dump_is_measured_in_bytes() -> None:
    calls = [frame("ü" * 200, "/ü" * 100) for _ in range(30)]
    thread = wire.ThreadStack(frames=calls)
    made = [wire.ProcessStack(pid=n, rank=n, main=True, command="python", threads=[thread] * 8) for n in range(15)]
    whole = wire.StackDump(serial=1, at_us=1, processes=made)
    assert len(whole.model_dump_json()) < wire.MAX_DUMP < len(whole.model_dump_json().encode())
    assert len(stacks.fitted(whole).model_dump_json().encode()) <= wire.MAX_DUMP


def test_a_large_dump_loses_helpers_first() -> None:
    calls = [frame("f" * 200, "/x" * 100, native=index % 2 == 0) for index in range(80)]
    thread = wire.ThreadStack(frames=calls)
    made = [wire.ProcessStack(pid=n, rank=n % 8, main=n < 8, command="python", threads=[thread] * 8) for n in range(40)]
    whole = wire.StackDump(serial=1, at_us=1, processes=made)
    assert len(whole.model_dump_json()) > 2 * wire.MAX_DUMP
    small = stacks.fitted(whole)
    assert len(small.model_dump_json()) <= wire.MAX_DUMP
    assert [process.pid for process in small.processes] == list(range(40))
    assert stacks.fitted(small) == small
    assert json.loads(small.model_dump_json())["serial"] == 1
