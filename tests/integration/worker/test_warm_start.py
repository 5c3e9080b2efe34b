"""Programs that are forked from a server do what they do when they are executed."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support import accounts
from tests.support.node import PYTHON, ended, log
from tests.support.pair import Pair, forked
from tests.support.processes import MARK
from tests.support.wait import until
from torchyard.injob import layout
from torchyard.wire import Result, StartMark
from worker.attempts.folder import AttemptFolder
from worker.attempts.starts import StartReader
from worker.launching import warm
from worker.launching.warm import ForkServers, ServerKey, key_of
from worker.monitoring import inventory, processes, stacks
from worker.shim import table

#: Programs of one process; each tells what differs if anything does.
ALONE = {
    "main module": "print(__name__, __file__[-14:], __spec__, __package__, __doc__, sorted(globals()))",
    "arguments": "import sys; print(sys.argv, sys.flags, sys.path[0][-9:], sys.executable, sys.orig_argv[1:])",
    "documentation": "'''Words.'''\nfrom __future__ import annotations\nprint(__doc__, __annotations__)",
    "exit code": "import sys; sys.exit(7)",
    "exit words": "import sys; sys.exit('no data')",
    "exit large": "raise SystemExit(1000)",
    "hard exit": "import os; print('x', end=''); os._exit(3)",
    "exception": """
        def f(x):
            return 1 / x
        try:
            f(0)
        except ZeroDivisionError as e:
            raise ValueError('bad') from e
        """,
    "syntax error": "print('never'\n",
    "interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "segmentation fault": "import ctypes; ctypes.string_at(0)",
    "signals": """
        import signal
        print([(each.name, str(signal.getsignal(each))) for each in signal.Signals if signal.getsignal(each)])
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        """,
    "at exit": """
        import atexit, threading, time
        atexit.register(print, 'bye')
        threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()
        class Last:
            def __del__(self): print('deleted')
        kept = Last()
        """,
    "hooks": "import sys\nsys.excepthook = lambda t, v, b: print('hook', t, b.tb_lineno)\n1 / 0",
    "fork": """
        import os
        child = os.fork()
        if child == 0:
            print('child'); raise SystemExit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    "descriptors": "import os; print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))",
    "limits": """
        import os, resource, threading
        print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE), os.nice(0))
        print(os.umask(0), threading.active_count(), os.getcwd()[-4:], os.getpgid(0) == os.getpid())
        """,
    "standard streams": """
        import sys
        print(sys.stdin.read(), sys.stdout.encoding, sys.stdout.line_buffering, sys.stderr.errors, sys.stdout.name)
        """,
    "pickles": """
        import pickle, multiprocessing as mp
        class Thing:
            def __init__(self): self.x = 1
        def back(thing): return type(thing).__module__, thing.x
        if __name__ == '__main__':
            print(pickle.loads(pickle.dumps(Thing())).x)
            for how in ('fork', 'spawn', 'forkserver'):
                with mp.get_context(how).Pool(1) as pool:
                    print(how, pool.map(back, [Thing()]))
        """,
    "start method": """
        import multiprocessing as mp
        if __name__ == '__main__':
            mp.set_start_method('spawn')
            process = mp.Process(target=print, args=(1,))
            process.start()
            process.join()
            print(process.exitcode)
        """,
    "own modules": "import worker, helper; print(worker.NAME, helper.NAME)",
    "environment": """
        import os
        print(sorted(os.environ))
        print({name: value for name, value in os.environ.items() if name != 'TMPDIR'})
        """,
    "imported by nobody": "import sys; print([n for n in ('worker', 'worker.shim') if n in sys.modules])",
    "hidden devices": """
        import os
        os.environ['CUDA_VISIBLE_DEVICES'] = ''
        import torch
        print(torch.cuda.is_available(), torch.cuda.device_count())
        """,
    "compiled": """
        import torch
        torch.manual_seed(3)
        model = torch.compile(torch.nn.Linear(4, 4), backend='aot_eager')
        model(torch.ones(2, 4)).sum().backward()
        print([each.grad.sum().item().hex() for each in model.parameters()])
        """,
    "parallel regions of two threads": """
        import threading, torch
        torch.set_num_threads(2)
        torch.manual_seed(3)
        x = torch.randn(400, 400)
        sums = []
        def work(): sums.append((x.sigmoid() @ x).sum().isfinite().item())
        threads = [threading.Thread(target=work) for _ in range(2)]
        for each in threads: each.start()
        for each in threads: each.join()
        print(sums)
        """,
}


@pytest.mark.parametrize("name", ALONE)
def test_a_program_of_one_process_does_the_same(pair: Pair, name: str) -> None:
    files = {"src/train.py": ALONE[name], "src/worker.py": "NAME = 'mine'", "src/helper/__init__.py": "NAME = 'also'"}
    results = pair.run(files, launcher="python", command=["python", "src/train.py", "--lr", "0.1"])
    (cold, first), (warm, second) = results
    assert told(warm) == told(cold)
    assert outcome(second) == outcome(first)
    assert forked(warm)


TORCH = """
    import os, random
    import numpy, torch
    import torch.distributed as dist
    import torch.nn as nn
    from torch.utils.data import DataLoader, TensorDataset

    def seeds(index): torch.set_num_threads(1)

    if __name__ == '__main__':
        rank = int(os.environ['RANK'])
        print('unseeded', file=open(f'unseeded-{rank}', 'w'))
        print(random.random(), numpy.random.rand(), torch.rand(1).item(), file=open(f'unseeded-{rank}', 'w'))
        torch.manual_seed(3)
        dist.init_process_group('gloo')
        model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        data = TensorDataset(torch.randn(32, 16), torch.randint(0, 4, (32,)))
        for how in (None, 'fork', 'spawn'):  # "pickles" above has the third method
            how = None if rank else how  # one rank's workers are like another's, and each imports PyTorch
            loader = DataLoader(data, 8, shuffle=True, num_workers=1 if how else 0, multiprocessing_context=how,
                                worker_init_fn=seeds)
            for x, y in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                print(how, loss.item().hex())
        total = torch.tensor([float(rank)])
        dist.all_reduce(total)
        print(total, torch.get_num_threads(), torch.initial_seed(), torch.cuda.is_initialized())
        print(sorted(k for k in os.environ if 'TORCHELASTIC' in k or 'RANK' in k or 'MASTER' in k or 'WORLD' in k))
        print([os.environ[k] for k in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'TORCHELASTIC_MAX_RESTARTS', 'MASTER_ADDR')])
        dist.destroy_process_group()
"""


def test_ranks_train_bit_for_bit_the_same(pair: Pair) -> None:
    spec: dict[str, Any] = {"launcher": "torchrun", "command": ["python", "train.py"], "slots": 2}
    (cold, first), (warm, second) = pair.run({"train.py": TORCH}, **spec)
    assert log(warm) == log(cold), log(warm, layout.LAUNCHER_LOG)
    assert log(warm, "rank-1.log") == log(cold, "rank-1.log")
    assert "spawn" in log(warm)
    assert outcome(second) == outcome(first)
    assert forked(warm)
    unseeded = [(each.at(layout.CODE) / f"unseeded-{rank}").read_text() for each in (cold, warm) for rank in range(2)]
    assert len(set(unseeded)) == 4
    steps = ["shim", "started", "agent", "agent-imported", "rank", "program", "torch", "joined", "stepped"]
    for folder in (cold, warm):
        start = StartReader(folder, owner=os.getuid()).read()
        assert start is not None
        moments = [start.marks[StartMark(name)] for name in steps]
        assert moments == sorted(moments)
        assert start.warm is (folder is warm)


RECORDED = """
    from torch.distributed.elastic.multiprocessing.errors import record
    import os
    @record
    def main():
        import time
        if os.environ['RANK'] == '0':
            open('zero', 'w').close()
            time.sleep(600)
        while not os.path.exists('zero'):
            time.sleep(0.02)
        raise RuntimeError('of rank 1')
    main()
"""


def test_the_error_of_a_rank_is_told_by_torchruns_error_file(pair: Pair) -> None:
    spec: dict[str, Any] = {"launcher": "torchrun", "command": ["python", "train.py"], "slots": 2}
    (cold, first), (warm, second) = pair.run({"train.py": RECORDED}, **spec)
    assert (first.failed_rank, first.exit_code) == (1, 1)
    assert outcome(second) == outcome(first)
    for folder in (cold, warm):
        words = log(folder, layout.LAUNCHER_LOG)
        assert "RuntimeError: of rank 1" in words
        assert "exitcode  : 1 " in words
    assert told(warm, "rank-1.log") == told(cold, "rank-1.log")


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\nprint(torch.get_num_threads())\n",
        "import setting\nimport torch\nprint(torch.get_num_threads())\n",
        "import random\nprint(random.MINE)\n",
    ],
)
def test_what_cannot_be_forked_is_executed(pair: Pair, code: str) -> None:
    files = {"train.py": code, "setting.py": "import os\nos.environ['OMP_NUM_THREADS'] = '1'\n", "random.py": ""}
    if "random" in code:
        files["random.py"] = "MINE = 1\n"
    else:
        del files["random.py"]
    spec: dict[str, Any] = {"launcher": "python", "command": ["python", "train.py"]}
    forkable, _ = pair.cold.run(files={"train.py": "print(1)"}, **spec)
    pair.make(forkable)
    warm, result = pair.warm.run(files=files, **spec)
    assert (result.exit_code, log(warm)) == (0, "1\n")
    start = StartReader(warm, owner=os.getuid()).read()
    assert start is not None
    assert (start.cold_reason or "").startswith("its program was executed: it")


def test_a_job_that_refuses_is_executed_beside_a_server(pair: Pair) -> None:
    spec: dict[str, Any] = {"launcher": "python", "command": ["python", "train.py"]}
    _, (warm, _) = pair.run({"train.py": "print(1)"}, **spec)
    assert forked(warm)
    refusing, result = pair.warm.run(files={"train.py": "print(1)"}, **spec, warm_start=False)
    assert (result.exit_code, log(refusing), forked(refusing)) == (0, "1\n", False)
    start = StartReader(refusing, owner=os.getuid()).read()
    assert start is not None
    assert start.cold_reason == "its spec says warm_start: false"


@accounts.needs_root
def test_a_forked_job_has_a_network_of_its_own_where_it_asks_for_one(pair: Pair) -> None:
    program = {"train.py": "import os, socket\nprint(os.readlink('/proc/self/ns/net'), len(socket.if_nameindex()))"}
    (_, first), (warm, second) = pair.run(
        program, launcher="torchrun", command=["train.py"], slots=2, network="isolated"
    )
    assert (first.exit_code, second.exit_code) == (0, 0)
    namespaces = {log(warm, f"rank-{rank}.log").split()[0] for rank in range(2)}
    assert len(namespaces) == 1
    assert namespaces != {str(Path("/proc/self/ns/net").readlink())}


WAITS = "import os, time\nopen(f\"ready-{os.environ['RANK']}\", 'w').close()\ntime.sleep(600)\n"


def waiting(pair: Pair) -> AttemptFolder:
    folder = pair.start({"train.py": WAITS}, launcher="torchrun", command=["python", "train.py"], slots=2)
    until(lambda: len(list(folder.at(layout.CODE).glob("ready-*"))) == 2, seconds=60, what="the ranks")
    return folder


def test_processes_of_a_forked_job_are_found_and_swept(pair: Pair) -> None:
    folder = waiting(pair)
    shim = folder.read_shim()
    assert shim is not None
    below = table.descendants(shim.pid)
    assert len(below) == 5  # agent, two wrappers, two ranks
    assert {each.pid for each in processes.of_attempt(folder.attempt_id)} == {each.pid for each in below}
    assert folder.attempt_id in processes.attempts_alive(pair.warm.attempts)
    assert [(each.rank, each.main) for each in stacks.targets(folder)] == [(0, True), (1, True)]
    dump = stacks.dump(folder, 1)
    assert [each.command.split()[-1] for each in dump.processes] == ["train.py", "train.py"]
    for stack in dump.processes:  # a frame of the C library may lie outside of Python's
        *_, outermost = (each for each in stack.threads[0].frames if not each.native)
        assert (Path(outermost.file).name, outermost.function) == ("train.py", "<module>")
    os.kill(shim.pid, signal.SIGKILL)
    until(lambda: not folder.locked(), what="the end of the shim")
    assert pair.warm.launcher.finalize_lost(folder.attempt_id)
    assert not processes.of_attempt(folder.attempt_id)
    assert inventory.status_of(folder).phase == "ended"


def test_a_job_outlives_the_server_that_it_was_forked_from(pair: Pair) -> None:
    folder = waiting(pair)
    pair.servers.end()
    until(lambda: len(processes.of_attempt(folder.attempt_id)) == 5, what="the job")
    [rank] = [each.process for each in stacks.targets(folder) if each.rank == 1]
    rank.send(signal.SIGKILL)
    result = ended(folder)
    assert (result.failed_rank, result.signal) == (1, signal.SIGKILL)


UNFIT = {
    "starts threads": "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "keeps /dev/zero open": "kept = open('/dev/zero')",
    "starts processes": "import subprocess; process = subprocess.Popen(['sleep', '5'])",
    "No module named 'nothing'": "import nothing",
}


@pytest.mark.parametrize("why", UNFIT)
def test_modules_that_forked_processes_must_not_share_get_no_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    (tmp_path / "torch.py").write_text(UNFIT[why])
    servers = ForkServers(log=tmp_path / "log")
    environment = (("PYTHONPATH", str(tmp_path)), *((name, os.environ[name]) for name in [MARK] if name in os.environ))
    assert not servers.make(ServerKey(interpreter=PYTHON, options=("-u",), environment=environment))
    assert why in caplog.text


def test_an_update_of_a_package_ends_the_server(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "pandas-1.dist-info").mkdir()
    spec: dict[str, Any] = {
        "launcher": "python",
        "command": ["python", "train.py"],
        "env": {"PYTHONPATH": str(tmp_path)},
    }
    first, _ = pair.cold.run(files={"train.py": "print(1)"}, **spec)
    key = key_of(first.read_launch() or {})
    assert key is not None
    assert pair.servers.make(key)
    assert pair.servers.has(key)
    (tmp_path / "pandas-1.dist-info").rename(tmp_path / "pandas-2.dist-info")
    assert not pair.servers.has(key)


def test_a_server_that_does_not_answer_leaves_the_attempt_to_others(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec: dict[str, Any] = {"launcher": "python", "command": ["python", "train.py"]}
    first, _ = pair.cold.run(files={"train.py": "print(1)"}, **spec)
    pair.make(first)
    key = key_of(first.read_launch() or {})
    assert key is not None
    server = pair.servers._servers[key]
    monkeypatch.setattr(warm, "ANSWER_S", 0.2)
    server.process.send_signal(signal.SIGSTOP)
    second, result = pair.warm.run(files={"train.py": "print(1)"}, **spec)
    assert (result.exit_code, log(second), forked(second)) == (0, "1\n", False)
    assert server.process.poll() is not None


def told(folder: AttemptFolder, name: str = "rank-0.log") -> str:
    """A log, without the attempt's id."""
    return log(folder, name).replace(folder.attempt_id, "att")


def outcome(result: Result) -> dict[str, object]:
    ranks = [(each.rank, each.exit_code, each.signal) for each in result.ranks]
    return {"ranks": ranks, **result.model_dump(include={"kind", "exit_code", "signal", "failed_rank", "message"})}
