"""Facts about a program for its launcher: whether it starts processes itself, whether it trains on several at all."""

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from torchyard.analysis.scripts import reach
from torchyard.analysis.scripts.reach import Call
from torchyard.analysis.scripts.source import ProgramSource, Script

#: Functions that start one process per device, each of which joins a process group of their own.
STARTERS = frozenset(
    {
        "torch.multiprocessing.spawn",
        "torch.multiprocessing.start_processes",
        "torch.multiprocessing.spawn.spawn",
        "torch.multiprocessing.spawn.start_processes",
        "torch.multiprocessing.launch_processes",
        "torch.distributed.elastic.multiprocessing.start_processes",
        "accelerate.notebook_launcher",
        "accelerate.debug_launcher",
        "accelerate.launchers.notebook_launcher",
        "accelerate.launchers.debug_launcher",
        "ignite.distributed.spawn",
        "detectron2.engine.launch",
        "detectron2.engine.launch.launch",
    }
)
_PROCESS = frozenset({"torch.multiprocessing.Process", "multiprocessing.Process"})
#: Third-party packages that train in one process unless the script itself says otherwise.
_PLAIN_WORDS = (
    "torch torchvision torchaudio torchtext torchmetrics torchinfo torchsummary numpy scipy pandas sklearn skimage "
    "matplotlib seaborn PIL cv2 imageio albumentations kornia tqdm rich click typer fire absl yaml omegaconf hydra "
    "tensorboard tensorboardX wandb mlflow trackio einops h5py psutil requests regex nltk sentencepiece tokenizers "
    "tiktoken timm gym gymnasium numba networkx joblib six future attr dotenv simplejson msgpack"
)
_PLAIN = frozenset(_PLAIN_WORDS.split())
#: Names of torch's own that only a process group has a use for.
_OF_GROUPS = frozenset({"init_process_group", "DistributedDataParallel", "fully_shard", "FullyShardedDataParallel"})
_LOCAL_RANK_OPTIONS = ("--local-rank", "--local_rank")


@dataclass(frozen=True, kw_only=True)
class ProgramFacts:
    """Facts about one program."""

    starts: str | None
    """Where it surely starts its processes itself, such as ``train.py:12 (torch.multiprocessing.spawn)``."""
    may_start: str | None
    """Where it may, which nobody can tell from its source."""
    joins: bool
    """It is written for a process group, or for a launcher's ranks."""
    distributed: bool
    """It may join one all the same, in a package that is not read."""
    imports_torch: bool
    local_rank: str | None
    """The option by which the entry script takes its rank, where it does not read LOCAL_RANK."""


def of(program: ProgramSource) -> ProgramFacts:
    """Read a program."""
    made = [call for call in reach.calls(program) if call.name in STARTERS]
    roots = {name.partition(".")[0] for script in program.scripts for name in script.imported_modules}
    joins = _joins(program)
    return ProgramFacts(
        starts=_where(call for call in made if not call.guarded),
        may_start=_uncalled(program.entry, made) or _processes(program),
        joins=joins,
        distributed=joins or _unknown(program, roots),
        imports_torch="torch" in roots or not roots.isdisjoint({"lightning", "pytorch_lightning", "transformers"}),
        local_rank=None if _reads(program.entry, {"LOCAL_RANK"}) else local_rank_option(program.entry),
    )


def local_rank_option(script: Script) -> str | None:
    """The spelling of ``--local-rank`` that a script declares."""
    words = [word for node in script.nodes if isinstance(node, ast.Call) for word in node.args]
    declared = {word.value for word in words if isinstance(word, ast.Constant)}
    return next((spelling for spelling in _LOCAL_RANK_OPTIONS if spelling in declared), None)


def reads_local_rank(script: Script) -> bool:
    """Return whether the script names the variable LOCAL_RANK."""
    return _reads(script, {"LOCAL_RANK"})


def _where(calls: Iterable[Call]) -> str | None:
    places = sorted((call.script.path, call.node.lineno, call.name) for call in calls)
    return "{}:{} ({})".format(*places[0]) if places else None


def _uncalled(entry: Script, made: list[Call]) -> str | None:
    """A call in the entry script that nothing seems to reach."""
    known = {call.node for call in made}
    for node in entry.nodes:
        if isinstance(node, ast.Call) and node not in known and (name := entry.dotted(node.func)) in STARTERS:
            return f"{entry.path}:{node.lineno} ({name})"
    return None


def _processes(program: ProgramSource) -> str | None:
    """Processes that are started one by one, beside a process group: ranks, perhaps."""
    if not any(_names(script, {"init_process_group"}) for script in program.scripts):
        return None
    made = [call for call in reach.calls(program) if call.name in _PROCESS and not call.guarded]
    return _where(made)


def _joins(program: ProgramSource) -> bool:
    return any(
        _reads(script, reach.RANK_WORDS)
        or _names(script, _OF_GROUPS)
        or any(_of_group(name) for name in script.imported_modules)
        for script in program.scripts
    )


def _of_group(module: str) -> bool:
    return module == "torch.distributed" or module.startswith("torch.distributed.")


def _unknown(program: ProgramSource, roots: set[str]) -> bool:
    """Return whether something imported from elsewhere may join a process group on its own."""
    own = {name.partition(".")[0] for name in program.modules}
    return bool(roots - own - _PLAIN - sys.stdlib_module_names)


def _reads(script: Script, words: Iterable[str]) -> bool:
    wanted = frozenset(words)
    constants = (node.value for node in script.nodes if isinstance(node, ast.Constant))
    return any(isinstance(value, str) and value in wanted for value in constants)


def _names(script: Script, wanted: Iterable[str]) -> bool:
    known = frozenset(wanted)
    return any(
        isinstance(node, ast.Name | ast.Attribute) and reach.last_name(node) in known for node in script.nodes
    ) or any(stands_for.rpartition(".")[2] in known for _, stands_for in script.imports)
