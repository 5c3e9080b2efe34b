"""Idioms of other people's scripts, and what a launcher has to know of each."""

from collections.abc import Mapping

import pytest

from torchyard.analysis.scripts import facts, source

DDP_TUTORIAL = """
import os
import torch.distributed as dist
import torch.multiprocessing as mp

def setup(rank, world_size):
    os.environ['MASTER_ADDR'] = 'localhost'
    os.environ['MASTER_PORT'] = '12355'
    dist.init_process_group('gloo', rank=rank, world_size=world_size)

def demo(rank, world_size):
    setup(rank, world_size)

def run_demo(fn, world_size):
    mp.spawn(fn, args=(world_size,), nprocs=world_size, join=True)

if __name__ == '__main__':
    run_demo(demo, 2)
"""
IMAGENET = """
import argparse, os
import torch.distributed as dist
import torch.multiprocessing as mp

def main():
    args = argparse.ArgumentParser().parse_args()
    if args.dist_url == "env://" and args.world_size == -1:
        args.world_size = int(os.environ["WORLD_SIZE"])
    args.distributed = args.world_size > 1 or args.multiprocessing_distributed
    if args.multiprocessing_distributed:
        mp.spawn(main_worker, nprocs=4, args=(args,))
    else:
        main_worker(0, args)

def main_worker(gpu, args):
    if args.distributed:
        if args.dist_url == "env://" and args.rank == -1:
            args.rank = int(os.environ["RANK"])
        dist.init_process_group(backend="nccl")

if __name__ == '__main__':
    main()
"""
MNIST = """
import argparse
import torch
import torch.nn.functional as F
import torch.optim as optim
from torchvision import datasets, transforms
from torch.optim.lr_scheduler import StepLR

def main():
    parser = argparse.ArgumentParser(description='PyTorch MNIST Example')
    device = torch.accelerator.current_accelerator()
    torch.save(model.state_dict(), "mnist_cnn.pt")

if __name__ == '__main__':
    main()
"""


def read(text: str, files: Mapping[str, str] | None = None, entry: str = "train.py") -> facts.ProgramFacts:
    program = source.program({entry: text, **(files or {})}.get, entry)
    assert program is not None
    return facts.of(program)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (DDP_TUTORIAL, 15),
        (IMAGENET, 12),
        ("import torch.multiprocessing as mp\nmp.spawn(f)", 2),
        ("import torch\ntorch.multiprocessing.spawn(f)", 2),
        ("from torch.multiprocessing import spawn as go\ngo(f)", 2),
        ("from torch import multiprocessing\nmultiprocessing.start_processes(f)", 2),
        ("import torch.multiprocessing as mp\nlaunch = mp.spawn\nlaunch(f)", 3),
        ("from accelerate import notebook_launcher\nnotebook_launcher(f, num_processes=2)", 2),
        ("import torch.multiprocessing as mp\nclass T:\n  def fit(self):\n    mp.spawn(f)\nT().fit()", 4),
        ("import hydra, torch.multiprocessing as mp\n@hydra.main()\ndef run(cfg):\n  mp.spawn(f)\nrun()", 4),
        ("import torch.multiprocessing as mp\napp = Typer()\n@app.command()\ndef go():\n mp.spawn(f)\napp()", 5),
        ("import torch.multiprocessing as mp\nif torch.cuda.device_count() > 1:\n  mp.spawn(f)", 3),
        ("import torch.multiprocessing as mp\ntry:\n  mp.spawn(f)\nexcept KeyboardInterrupt: pass", 3),
    ],
)
def test_a_script_that_starts_its_processes_itself(text: str, line: int) -> None:
    assert str(read(text).starts).startswith(f"train.py:{line} (")


@pytest.mark.parametrize(
    "guard",
    [
        "if 'RANK' in os.environ:\n  work()\nelse:\n  mp.spawn(f)",
        "if os.environ.get('LOCAL_RANK') is None:\n  mp.spawn(f)",
        "rank = int(os.getenv('LOCAL_RANK', -1))\nif rank < 0:\n  mp.spawn(f)",
        "args.rank = int(os.environ.get('RANK', -1))\nif args.rank == -1: mp.spawn(f)",
        "try:\n  rank = int(os.environ['RANK'])\nexcept KeyError:\n  mp.spawn(f)",
        "def by_torchrun():\n  return 'RANK' in os.environ\nif not by_torchrun():\n  mp.spawn(f)",
        "def main():\n  if 'LOCAL_RANK' in os.environ:\n    return work()\n  mp.spawn(f)\nmain()",
        "def launch():\n  mp.spawn(f)\nif not dist.is_torchelastic_launched():\n  launch()",
        "work() if 'RANK' in os.environ else mp.spawn(f)",
        "if args.local_rank == -1: mp.spawn(f)",
    ],
)
def test_a_call_that_asks_for_a_rank_first_is_no_reason(guard: str) -> None:
    text = f"import os\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n{guard}\n"
    assert read(text).starts is None


@pytest.mark.parametrize(
    "text",
    [
        "import torch.multiprocessing as mp\nmp.set_start_method('spawn')\nctx = mp.get_context('spawn')",
        "import torch.multiprocessing\nqueue = torch.multiprocessing.Queue()",
        "def spawn(f): pass\nspawn(f)",
        "from game import spawn\nspawn(monster)",
        "import subprocess\nsubprocess.spawn(f)",
    ],
)
def test_a_name_alone_is_no_reason(text: str) -> None:
    found = read(text, {"game.py": "def spawn(monster): pass\n"})
    assert (found.starts, found.may_start) == (None, None)


def test_what_is_imported_from_the_folder_counts_where_it_is_called() -> None:
    files = {
        "tools/__init__.py": "from .launching import launch\n",
        "tools/launching.py": "import torch.multiprocessing as mp\ndef launch(f):\n    mp.spawn(f)\n"
        "if __name__ == '__main__':\n    launch(print)\n",
    }
    assert str(read("from tools import launch\nlaunch(f)", files).starts).startswith("tools/launching.py:3 (")
    assert str(read("import tools.launching as t\nt.launch(f)", files).starts).startswith("tools/launching.py:3 (")
    assert read("import tools.launching\nprint()", files).starts is None


def test_what_is_imported_and_never_called_does_not_count() -> None:
    files = {"tools.py": "import torch.multiprocessing as mp\ndef launch(f):\n    mp.spawn(f)\ndef rank(): return 0\n"}
    assert read("from tools import rank\nrank()", files).starts is None


def test_a_script_in_a_folder_imports_what_lies_beside_it() -> None:
    files = {"src/launching.py": "import torch.multiprocessing as mp\nmp.spawn(print)\n"}
    assert (
        read("import launching\n", files, "src/train.py").starts == "src/launching.py:2 (torch.multiprocessing.spawn)"
    )


def test_a_module_is_a_program_too() -> None:
    files = {"pkg/__init__.py": "", "pkg/train.py": "from . import deep\ndeep.go()\n", "pkg/deep.py": "def go(): 1\n"}
    program = source.program(files.get, None, "pkg.train")
    assert program is not None
    assert set(program.modules) >= {"pkg.deep"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch.multiprocessing as mp\ndef never(): mp.spawn(f)", "train.py:2 (torch.multiprocessing.spawn)"),
        (
            "import torch.multiprocessing as mp\ndist.init_process_group()\nmp.Process(target=f).start()",
            "train.py:3 (torch.multiprocessing.Process)",
        ),
        ("import torch.multiprocessing as mp\nmp.Process(target=f).start()", None),
    ],
)
def test_doubts(text: str, expected: str | None) -> None:
    assert (read(text).starts, read(text).may_start) == (None, expected)


@pytest.mark.parametrize(
    ("text", "distributed"),
    [
        ("import torch, torchvision, numpy as np\nfrom tqdm import tqdm\nimport os.path", False),
        (MNIST, False),
        ("import torch\nfrom torch.utils.data.distributed import DistributedSampler", False),
        ("import torch.distributed as dist", True),
        ("from torch.nn.parallel import DistributedDataParallel as DDP", True),
        ("import os\nos.environ['LOCAL_RANK']", True),
        ("import lightning", True),
        ("import torchyard", True),
        ("from models import net", False),
        ("from models import ddp", True),
    ],
)
def test_what_joins_a_process_group_or_may(text: str, distributed: bool) -> None:
    files = {"models/net.py": "import torch\n", "models/ddp.py": "import torch.distributed\n"}
    assert read(text, files).distributed is distributed


def test_a_rank_by_argument() -> None:
    assert read("parser.add_argument('--local_rank', type=int)").local_rank == "--local_rank"
    assert read("p.add_argument('--local_rank', default=os.environ['LOCAL_RANK'])").local_rank is None


def test_no_python_is_no_program() -> None:
    assert source.program({"a.py": "print 'x'"}.get, "a.py") is None
    assert source.program({}.get, "a.py") is None
    assert source.parse("a.py", "(" * 10_000) is None
    assert source.parse("a.py", "x = 1\n" * 2**18) is None
