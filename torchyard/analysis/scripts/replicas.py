"""Mistakes of a program that trains replicas of a model on several ranks, found in its source.

Notes for the submitter. Whatever may be done in code that is not there, or in a way that is not known here, is taken
for done.
"""

import ast
import re
from collections.abc import Callable, Iterator

from torchyard.analysis.scripts.reach import last_name
from torchyard.analysis.scripts.source import ProgramSource, Script

_REPLICATES = frozenset({"DistributedDataParallel", "fully_shard", "FullyShardedDataParallel"})
#: Other ways to bring gradients together, by hand or by a library that is given the model.
_EXCHANGE = re.compile(r"all_?reduce|reduce_scatter|all_?gather|broadcast|reduce|isend|irecv|send|recv", re.IGNORECASE)
_LIBRARIES = frozenset(
    {"accelerate", "lightning", "pytorch_lightning", "transformers", "deepspeed", "horovod", "colossalai", "ignite"}
)
#: Names under which samples are dealt in another way than by a DistributedSampler.
_DEALS = re.compile(r"sampler|shard|split_dataset_by_node|webdataset|IterableDataset|DataPipe|dali", re.IGNORECASE)
_RANK = re.compile(r"rank", re.IGNORECASE)
_SEED = re.compile(r"seed", re.IGNORECASE)
#: What draws in training by the streams that a seed begins.
_DRAWS = re.compile(
    r"(?:alpha|feature)?_?dropout\w*|Random[A-Z]\w*|RandAugment|AutoAugment|TrivialAugmentWide|AugMix|MixUp|CutMix",
    re.IGNORECASE,
)

_ALONE = (
    "deals each rank other samples, but nothing brings their gradients together, so each trains a model of its own: "
    "wrap the model in DistributedDataParallel"
)
_SAME = (
    "gives every rank the same samples, so that more GPUs only repeat the work: pass sampler=DistributedSampler(data) "
    "instead of shuffle"
)
_ORDER = (
    "deals the samples in the same order in every epoch: call set_epoch(epoch) of the DistributedSampler in the loop"
)
_ALIKE = (
    "seeds all ranks alike, so all draw the same dropout and augmentation: seed again once the model is made, with "
    "seed + rank"
)

_Place = tuple[str, int, str]


def notes(program: ProgramSource) -> list[str]:
    """Notes as ``name:line: what, and the mend``, in the order of files and lines."""
    used = _UsedNames(program)
    found = [*_same_order(used), *_alone(used), *_same_samples(used), *_alike(used)]
    return [f"{path}:{line}: {advice}" for path, line, advice in sorted(set(found))]


class _UsedNames:
    """Calls and names of all files of a program."""

    def __init__(self, program: ProgramSource) -> None:
        self._scripts = program.scripts
        self.calls = [
            (script, node, last_name(node.func), script.dotted(node.func) or "")
            for script in program.scripts
            for node in script.nodes
            if isinstance(node, ast.Call)
        ]
        self.names = {
            name for script in program.scripts for node in script.nodes for name in _names_of(node, script) if name
        }
        self.roots = {name.partition(".")[0] for script in program.scripts for name in script.imported_modules}

    def called(self, wanted: Callable[[str], bool]) -> Iterator[tuple[Script, ast.Call]]:
        """Call by the name that they have in the script, or that it stands for."""
        for script, node, name, dotted in self.calls:
            if wanted(name) or wanted(dotted.rpartition(".")[2]):
                yield script, node

    def any_name(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(name) for name in self.names - _REPLICATES)

    @property
    def replicates(self) -> bool:
        return any(True for _ in self.called(lambda name: name in _REPLICATES))

    @property
    def by_library(self) -> bool:
        return not self.roots.isdisjoint(_LIBRARIES)


def _names_of(node: ast.AST, script: Script) -> tuple[str, ...]:
    if isinstance(node, ast.Name | ast.Attribute):
        return last_name(node), (script.dotted(node) or "").rpartition(".")[2]
    return ()


def _same_order(used: _UsedNames) -> Iterator[_Place]:
    # `run.epochs` of torchyard.attach tells the sampler.
    if "set_epoch" in used.names or "attach" in used.names or used.by_library:
        return
    for script, call in used.called(lambda name: name == "DistributedSampler"):
        shuffle = _keyword(call, "shuffle")
        if not (isinstance(shuffle, ast.Constant) and shuffle.value is False):
            yield script.path, call.lineno, _ORDER


def _alone(used: _UsedNames) -> Iterator[_Place]:
    known = used.replicates or used.by_library
    if known or any(_EXCHANGE.fullmatch(name) or name in _REPLICATES for name in used.names):
        return
    # Without a backward pass it is an evaluation.
    if "backward" not in used.names:
        return
    for script, call in used.called(lambda name: name == "DistributedSampler"):
        yield script.path, call.lineno, _ALONE


def _same_samples(used: _UsedNames) -> Iterator[_Place]:
    if not used.replicates or used.by_library or used.any_name(_DEALS):
        return
    for script, call in used.called(lambda name: name == "DataLoader"):
        shuffle = _keyword(call, "shuffle")
        given = {word.arg for word in call.keywords}
        # ``**options`` may hold a sampler.
        if None not in given and isinstance(shuffle, ast.Constant) and shuffle.value is True:
            yield script.path, call.lineno, _SAME


def _alike(used: _UsedNames) -> Iterator[_Place]:
    if not used.replicates or used.by_library or not any(_DRAWS.fullmatch(name) for name in used.names):
        return
    seeding = list(used.called(lambda name: bool(_SEED.search(name))))
    if any(_mentions_rank(call) for _, call in seeding):
        return
    for script, call in seeding:
        if script.dotted(call.func) in {"torch.manual_seed", "torch.random.manual_seed"}:
            yield script.path, call.lineno, _ALIKE


def _mentions_rank(call: ast.Call) -> bool:
    words = (word for given in [*call.args, *(each.value for each in call.keywords)] for word in ast.walk(given))
    return any(
        _RANK.search(last_name(word) if isinstance(word, ast.Name | ast.Attribute) else str(word.value))
        for word in words
        if isinstance(word, ast.Name | ast.Attribute | ast.Constant)
    )


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)
