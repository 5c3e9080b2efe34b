"""Lint of a training script: what it should not do on a shared box. Notes for the submitter, never a refusal."""

import ast
import re
from collections.abc import Iterator, Sequence

from torchyard.analysis.scripts.reach import last_name
from torchyard.analysis.scripts.source import Script

_FIXED_GPU = re.compile(r"cuda:\d+")
_FIXED_ADDRESS = re.compile(r"tcp://[^/\s]*:\d{2,5}")
_MEETING_PORT = re.compile(r"(?:master|dist|ddp|rdzv|init)[-_]?port$", re.IGNORECASE)
_PORT_NAME = re.compile(r"port$", re.IGNORECASE)
#: What torchrun, the PyTorch tutorials and everybody who copied them use.
_KNOWN_PORTS = frozenset({12355, 23456, 29400, 29500})

_VISIBLE = "sets CUDA_VISIBLE_DEVICES, which leaves the job's allocation: leave that to the queue"
_GPU = "names a fixed GPU: use the one of LOCAL_RANK (`torch.device('cuda', int(os.environ['LOCAL_RANK']))`)"
_DEVICE_IDS = "names fixed device_ids: use [int(os.environ['LOCAL_RANK'])]"
_PORT = (
    "fixes a port, which collides with other jobs of the box: take MASTER_ADDR and MASTER_PORT as they are set "
    "(`init_method='env://'`)"
)
_RANK = "chooses a GPU by RANK, which counts over all nodes: use int(os.environ['LOCAL_RANK'])"

Found = tuple[int, str]


def in_script(script: Script, *, ranked: bool = True) -> list[str]:
    """Notes as ``name:line: what, and the mend``, by line.

    `ranked`: a process for each GPU is started. Otherwise the process has all GPUs of the job and may name them.
    """
    nodes = script.nodes
    found = [*_visible_devices(nodes), *_ports(nodes)]
    if ranked:
        found += [*_gpus(nodes), *_by_rank(nodes)]
    return [f"{script.path}:{line}: {advice}" for line, advice in sorted(set(found))]


def _visible_devices(nodes: list[ast.AST]) -> Iterator[Found]:
    for line, name, _ in _environment_writes(nodes):
        if name == "CUDA_VISIBLE_DEVICES":
            yield line, _VISIBLE


def _ports(nodes: list[ast.AST]) -> Iterator[Found]:
    for line, name, value in _environment_writes(nodes):
        if name == "MASTER_PORT" and isinstance(value, ast.Constant):
            yield line, _PORT
    for name, value in _named_values(nodes):
        fixed = _port(value)
        if (fixed == 6000 and _PORT_NAME.search(name)) or (fixed and _MEETING_PORT.search(name)):
            yield value.lineno, _PORT
    for node in nodes:
        if isinstance(node, ast.Constant) and _is_known_address(node):
            yield node.lineno, _PORT
        if isinstance(node, ast.Call) and last_name(node.func) in {"TCPStore", "bind"}:
            yield from ((node.lineno, _PORT) for inner in ast.walk(node) if _port(inner))


def _gpus(nodes: list[ast.AST]) -> Iterator[Found]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _FIXED_GPU.fullmatch(node.value):
            yield node.lineno, _GPU
        elif isinstance(node, ast.keyword) and node.arg == "device_ids" and _names_numbers(node.value):
            yield node.value.lineno, _DEVICE_IDS
        elif isinstance(node, ast.Call) and any(map(_is_number, _devices(node))):
            yield node.lineno, _GPU


def _by_rank(nodes: list[ast.AST]) -> Iterator[Found]:
    ranks = _names_of_rank(nodes)
    for node in nodes:
        used: list[ast.expr] = []
        if isinstance(node, ast.Call):
            used = _devices(node)
        elif isinstance(node, ast.keyword) and node.arg == "device_ids" and isinstance(node.value, ast.List):
            used = node.value.elts
        elif isinstance(node, ast.JoinedStr):
            used = _after_cuda(node)
        if any(_is_rank(each, ranks) for each in used):
            yield used[0].lineno, _RANK


def _environment_writes(nodes: list[ast.AST]) -> Iterator[tuple[int, str, ast.expr]]:
    """Line, name and value of what is set under a constant name: by item, by a method, or in a mapping."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            targets = [target for target in node.targets if isinstance(target, ast.Subscript)]
            yield from _entries([target.slice for target in targets], [node.value] * len(targets))
        elif isinstance(node, ast.Call):
            yield from _method_writes(node)
        elif isinstance(node, ast.Dict):
            pairs = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if _is_literal(value)]
            yield from _entries([key for key, _ in pairs], [value for _, value in pairs])


def _method_writes(call: ast.Call) -> Iterator[tuple[int, str, ast.expr]]:
    name = last_name(call.func)
    if name in {"setdefault", "putenv"}:
        yield from _entries(call.args[:1], call.args[1:2])
    elif name == "update":
        yield from ((call.lineno, word.arg, word.value) for word in call.keywords if word.arg)


def _entries(keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> Iterator[tuple[int, str, ast.expr]]:
    for key, value in zip(keys, values, strict=False):
        if isinstance(key, ast.Constant):
            yield key.lineno, str(key.value), value


def _named_values(nodes: list[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Values with the name they are given: of variables, keywords, parameters, and options of a command line."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            yield from ((last_name(target), node.value) for target in node.targets)
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value
        elif isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            yield from ((a.arg, d) for a, d in zip(positional[::-1], node.defaults[::-1], strict=False))
            yield from ((a.arg, d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d)
        elif isinstance(node, ast.Call) and last_name(node.func) == "add_argument":
            names = [str(word.value) for word in node.args if isinstance(word, ast.Constant)]
            yield from ((name, word.value) for name in names for word in node.keywords if word.arg == "default")


def _devices(call: ast.Call) -> list[ast.expr]:
    """Arguments that choose a GPU: ``set_device(x)``, ``.cuda(x)``, ``.to(x)``, ``torch.device('cuda', x)``."""
    name = last_name(call.func)
    if name in {"set_device", "cuda", "to"} and isinstance(call.func, ast.Attribute):
        return call.args[:1]
    if name == "device" and len(call.args) == 2:
        return call.args[1:]
    return []


def _names_of_rank(nodes: list[ast.AST]) -> frozenset[str]:
    """Variables that hold RANK and nothing else."""
    values: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                values.setdefault(ast.unparse(target), []).append(node.value)
    return frozenset(name for name, given in values.items() if all(_reads_rank(value) for value in given))


def _is_rank(value: ast.expr, names: frozenset[str]) -> bool:
    return _reads_rank(value) or ast.unparse(value) in names


def _reads_rank(value: ast.expr) -> bool:
    """``int(os.environ['RANK'])``, ``os.getenv('RANK', 0)``, ``dist.get_rank()``; what is computed further is not."""
    if isinstance(value, ast.Subscript):
        return isinstance(value.slice, ast.Constant) and value.slice.value == "RANK"
    if not isinstance(value, ast.Call):
        return False
    name = last_name(value.func)
    if name == "get_rank":
        return not value.args
    first = value.args[0] if value.args else None
    if name in {"get", "getenv"}:
        return isinstance(first, ast.Constant) and first.value == "RANK"
    return name == "int" and first is not None and _reads_rank(first)


def _after_cuda(text: ast.JoinedStr) -> list[ast.expr]:
    """The value in ``f'cuda:{value}'``."""
    match text.values:
        case [ast.Constant(value="cuda:"), ast.FormattedValue(value=value)]:
            return [value]
    return []


def _names_numbers(value: ast.expr) -> bool:
    return isinstance(value, ast.List | ast.Tuple) and any(map(_is_number, value.elts))


def _is_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is int


def _is_literal(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant | ast.JoinedStr)


def _port(node: ast.AST) -> int | None:
    """The number of a literal that may be a port, also where it is written as text."""
    value = node.value if isinstance(node, ast.Constant) else None
    number = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{4,5}", value) else value
    return number if type(number) is int and 1024 <= number < 65536 else None


def _is_known_address(node: ast.Constant) -> bool:
    address = isinstance(node.value, str) and _FIXED_ADDRESS.fullmatch(node.value)
    return bool(address) or _port(node) in _KNOWN_PORTS
