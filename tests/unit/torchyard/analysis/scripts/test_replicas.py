from pathlib import Path

import pytest

from torchyard.analysis.scripts import replicas, source

EXAMPLES = Path(__file__).parents[5] / "examples"
ALONE, SAME, ORDER, ALIKE = "a model of its own", "the same samples", "set_epoch", "seeds all ranks alike"

#: As tutorials have it: every line that a replica needs, and the seed that keeps initial weights alike.
RIGHT = """\
import torch, torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group('nccl')
rank = dist.get_rank()
torch.manual_seed(args.seed)
model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
torch.manual_seed(args.seed + rank)
model = DDP(model, device_ids=[local_rank])
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for x, y in loader:
        criterion(model(x), y).backward()
"""


def notes(text: str, **modules: str) -> list[str]:
    files = {"train.py": text} | {f"{name}.py": content for name, content in modules.items()}
    program = source.program(files.get, "train.py")
    assert program is not None
    return replicas.notes(program)


def without(line: str, instead: str = "pass") -> str:
    assert line in RIGHT
    return RIGHT.replace(line, instead)


def test_a_script_that_has_all_of_it_is_left_alone() -> None:
    assert notes(RIGHT) == []


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (without("model = DDP(model, device_ids=[local_rank])"), 13, ALONE),
        (without("    sampler.set_epoch(epoch)\n", ""), 13, ORDER),
        (without("torch.manual_seed(args.seed + rank)"), 9, ALIKE),
        (
            without("sampler = DistributedSampler(data)")
            .replace("from torch.utils.data.distributed import DistributedSampler", "")
            .replace("sampler=sampler", "shuffle=True")
            .replace("    sampler.set_epoch(epoch)\n", ""),
            14,
            SAME,
        ),
    ],
    ids=["no DDP", "no set_epoch", "one seed", "no sampler"],
)
def test_what_is_missing_is_named_with_its_line(text: str, line: int, says: str) -> None:
    (note,) = notes(text)
    assert note.startswith(f"train.py:{line}: ")
    assert says in note


@pytest.mark.parametrize(
    "text",
    [
        without("model = DDP(model, device_ids=[local_rank])", "reducer = lambda p: dist.all_reduce(p.grad)"),
        without("model = DDP(model, device_ids=[local_rank])", "model, loader = accelerator.prepare(model, loader)")
        + "from accelerate import Accelerator",
        without(".backward()", ".item()").replace("model = DDP(model, device_ids=[local_rank])", "model.eval()"),
        without("    sampler.set_epoch(epoch)\n", "").replace(
            "DistributedSampler(data)", "DistributedSampler(d, shuffle=False)"
        ),
        without("    sampler.set_epoch(epoch)\n", "").replace("range(10)", "torchyard.attach(model=model).epochs(10)"),
        without("torch.manual_seed(args.seed + rank)", "seed_everything(7 + int(os.environ['RANK']))"),
        without("torch.manual_seed(args.seed + rank)").replace(", nn.Dropout(0.5)", ""),
    ],
    ids=["by hand", "a library", "evaluation", "in order", "attach", "a function", "nothing random"],
)
def test_what_is_done_in_another_way_is_left_alone(text: str) -> None:
    assert notes(text) == []


def test_other_files_of_the_program_count() -> None:
    engine = "def train(loader, epoch):\n    loader.sampler.set_epoch(epoch)\n"
    text = "import engine\n" + without("    sampler.set_epoch(epoch)\n", "    engine.train(loader, epoch)\n")
    assert notes(text, engine=engine) == []
    data = "from torch.utils.data import DataLoader\n\ndef load(data):\n    return DataLoader(data, shuffle=True)\n"
    (note,) = notes(
        "import torch.nn.parallel as p\nfrom mine import load\nmodel = p.DistributedDataParallel(m)\n", mine=data
    )
    assert note.startswith("mine.py:4: gives every rank the same samples")


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_the_examples_are_left_alone(example: Path) -> None:
    assert notes(example.read_text()) == []
