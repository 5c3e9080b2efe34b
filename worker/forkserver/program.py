"""A Python program, run by a forked process as a new interpreter would run it.

Random numbers that a new process seeds from the system are seeded anew: those of `random`, numpy and torch.
"""

import builtins
import ctypes
import importlib
import multiprocessing.process
import os
import random
import re
import runpy
import signal
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from typing import Any, NamedTuple, NoReturn

#: Options of the interpreter that a server can have been started with.
OPTIONS = frozenset({"-u", "-P", "-O", "-OO", "-B"})
#: Files and bytes of a program that are looked at; one with more is executed.
MAX_FILES, MAX_BYTES = 400, 8 << 20
#: Variables that torch and what it needs read when they are imported, beside a word for setting some.
_SETTING = re.compile(
    rb"\b(?:OMP|MKL|KMP|GOMP|OPENBLAS|DNNL|ONEDNN|TORCH\w*|PYTORCH|AOT\w*|TRITON|LD|MALLOC|PYTHON)_[A-Z]"
)
_ENVIRON = re.compile(rb"environ|putenv|setenv")
_DOTENV = re.compile(rb"\bdotenv\b")
#: A variable that is only looked at; names that are quoted; and a change of several at once, whose names are words.
_LOOKED_AT = re.compile(
    rb"(?:environ\.get|getenv)\(\s*(['\"])\w+\1|environ\[\s*(['\"])\w+\2\s*\](?!\s*=[^=])"
    rb"|(['\"])\w+\3\s+(?:not\s+)?in\b"
)
_QUOTED = re.compile(rb"(?<=['\"])\w+(?=['\"])")
_UPDATE = re.compile(rb"environ\.update\(|environ\s*\|=")
_WORD = re.compile(rb"\w+")
#: Module of the in-job library that torch calls when it is imported (`torchyard.injob.entry_points`).
_ENTRY_POINTS = "torchyard_entry_points"
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+(\w+)|import[ \t]+([\w., \t]+))", re.MULTILINE)


class Command(NamedTuple):
    """A Python command line."""

    words: tuple[str, ...]
    how: str
    """``-m``, ``-c``, or nothing for a script."""
    target: str
    """Module, code or path."""
    arguments: tuple[str, ...]


class Cold(NamedTuple):
    """Why a program is executed after all: a code of `torchyard.wire.ColdCode`, the words, and what it names."""

    code: str
    words: str
    said: str = ""


#: What is executed although it came to a fork server.
NOT_PYTHON = Cold("not-python", "it is no Python")


def parse(words: Sequence[str], interpreter: str, options: Sequence[str]) -> Command | None:
    """Return the command, if this interpreter with just these options runs it."""
    own = 1 + len(options)
    if len(words) <= own or words[0] != interpreter or list(words[1:own]) != list(options):
        return None
    how = words[own] if words[own] in {"-m", "-c"} else ""
    at = own + bool(how)
    if len(words) <= at or words[at].startswith("-"):
        return None
    return Command(tuple(words), how, words[at], tuple(words[at + 1 :]))


def needs_new_interpreter(
    command: Command, loaded: frozenset[str], variables: Collection[str] = frozenset()
) -> Cold | None:
    """Return why a command has to be executed after all; `loaded` has the names of the modules that are loaded here,
    and would not come from the program's own folder, `variables` those that were looked up meanwhile.
    """
    if not _is_script(command):
        return Cold("no-source", "it is no file of Python source")
    first = _first_folder(command)
    try:
        own = {name.partition(".")[0] for name in os.listdir(first or ".")} if first is not None else set()
        shadowed = sorted(own & loaded)
        text = _text(command, first)
    except OSError as error:
        return Cold("unreadable", str(error), str(error))
    if shadowed:
        return Cold("own-module", f"its folder has a module {shadowed[0]} of its own", shadowed[0])
    if text is None:
        return Cold("too-large", "it is too large to be looked through")
    if _DOTENV.search(text) or (_ENVIRON.search(text) and _SETTING.search(text)):
        return Cold("sets-torch", "it may set variables that torch reads when it is imported")
    late = _may_set(text, variables)
    words = f"it may set {late}, which a module reads when it is imported"
    return Cold("sets-variable", words, late) if late else None


def _may_set(text: bytes, variables: Collection[str]) -> str | None:
    """The first of the variables that is named otherwise than to look at it."""
    if not variables or not _ENVIRON.search(text):
        return None
    words = set((_WORD if _UPDATE.search(text) else _QUOTED).findall(_LOOKED_AT.sub(b"", text)))
    return min((name for name in variables if name.encode(errors="surrogateescape") in words), default=None)


def _is_script(command: Command) -> bool:
    if command.how:
        return True
    try:
        with open(command.target, "rb") as file:
            return os.path.isfile(command.target) and file.read(2) != b"PK" and command.target.endswith(".py")
    except OSError:
        return False


def _first_folder(command: Command) -> str | None:
    """The folder that comes first in the module search path; None where none does."""
    if getattr(sys.flags, "safe_path", False):
        return None
    if command.how == "-m":
        return os.getcwd()
    return "" if command.how else os.path.dirname(os.path.realpath(command.target))


def _text(command: Command, folder: str | None) -> bytes | None:
    """The program's source, with all that it imports from this folder; None when that is too much."""
    waiting = {command.target.partition(".")[0]} if command.how == "-m" else set()
    texts = [command.target.encode()] if command.how == "-c" else []
    if not command.how:
        texts = [_read(command.target)]
    waiting |= {name for text in texts for name in _imports(text)}
    seen: set[str] = set()
    while waiting and folder is not None:
        name = waiting.pop()
        seen.add(name)
        for path in _files(folder or ".", name):
            texts.append(_read(path))
            waiting |= set(_imports(texts[-1])) - seen
            if len(texts) > MAX_FILES or sum(map(len, texts)) > MAX_BYTES:
                return None
    return b"\n".join(texts)


def _imports(text: bytes) -> list[str]:
    """First parts of the names that are imported."""
    names = [word for module, modules in _IMPORT.findall(text) for word in (module or modules).split(b",")]
    return [name.split()[0].split(b".")[0].decode() for name in names if name.split()]


def _files(folder: str, name: str) -> list[str]:
    """The files of a module or package of the folder."""
    package = os.path.join(folder, name)
    found = [f"{package}.py"] if os.path.isfile(f"{package}.py") else []
    for base, _, names in os.walk(package):
        found += [os.path.join(base, each) for each in names if each.endswith(".py")]
        if len(found) > MAX_FILES:
            break
    return found


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(MAX_BYTES + 1)


def run(command: Command) -> NoReturn:
    """Run the program to its end, and end this process like an interpreter that was started for it."""
    sys.orig_argv = list(command.words)
    sys.argv = [command.how or command.target, *command.arguments]
    first = _first_folder(command)
    if first is not None:
        sys.path.insert(0, first)
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = main
    if command.how == "-m":
        as_main(lambda: runpy._run_module_as_main(command.target))  # type: ignore[attr-defined]
    name = "<string>"
    source = command.target.encode()
    if not command.how:
        name = os.path.join(os.getcwd(), command.target)
        source = _read(name)
        main.__dict__.update(__file__=name, __cached__=None, __loader__=SourceFileLoader("__main__", name))
    as_main(lambda: exec(compile(source, name, "exec", dont_inherit=True), main.__dict__), own_frames=2)  # noqa: S102


def as_main(function: Callable[[], object], own_frames: int = 2) -> NoReturn:
    """Call the function, and end this process as Python ends with its main program."""
    code = 0
    try:
        function()
    except SystemExit as error:
        code = _exit_code(error.code)
    except BaseException as error:  # noqa: BLE001 (as the interpreter does)
        code = _uncaught(error, own_frames)
    ctypes.pythonapi.Py_Exit(ctypes.c_int(code))
    os._exit(code)


def _exit_code(code: Any) -> int:
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    sys.stdout.flush()
    sys.stderr.write(f"{code}\n")
    return 1


def _uncaught(error: BaseException, own_frames: int) -> int:
    """Say it as the interpreter would, without the frames that are ours."""
    trace = error.__traceback__
    for _ in range(own_frames):
        trace = trace.tb_next if trace else None
    error = error.with_traceback(trace)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    try:
        sys.stdout.flush()
        sys.excepthook(type(error), error, trace)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    if isinstance(error, KeyboardInterrupt):
        _die_of_interrupt()
    return 1


def _die_of_interrupt() -> None:
    threading._shutdown()  # type: ignore[attr-defined]
    importlib.import_module("atexit")._run_exitfuncs()
    sys.stdout.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def renew(environment: Mapping[str, str]) -> None:
    """Give this forked process what a new interpreter has: environment, signals, seeds, and no open files but three."""
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    os.environ.clear()
    os.environ.update(environment)
    _renew_signals()
    tempfile.tempdir = None
    multiprocessing.process.current_process().authkey = os.urandom(32)
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        # Of the CPU alone: those of GPUs get their seed when CUDA is initialised.
        sys.modules["torch"].default_generator.seed()


def forget_extension() -> bool:
    """Forget the in-job library, which torch has called when it was imported; return whether it has. Of it each process
    has its own.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchyard"]:
        del sys.modules[name]
    return sys.modules.pop(_ENTRY_POINTS, None) is not None


def extend_torch() -> None:
    """Call what torch has called, now that this process belongs to an attempt."""
    importlib.import_module(_ENTRY_POINTS).torch_imported()


def _renew_signals() -> None:
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
