"""A command line whose program is Python: which words are the interpreter's, which file or module it runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: A program of this name is a Python interpreter.
PYTHON_WORD = re.compile(r"python(3(\.\d+)?)?")
#: Options of the interpreter that take the next word with them.
_TAKES_WORD = frozenset({"-W", "-X", "--check-hash-based-pycs"})


@dataclass(frozen=True, kw_only=True)
class PythonProgram:
    """Script or module that an interpreter's arguments run, or neither (code, or standard input)."""

    script: str | None = None
    module: str | None = None
    #: Index at which the program's own arguments begin.
    own: int


def python_program(arguments: Sequence[str]) -> PythonProgram:
    """Tell the program from the interpreter's own options and from what follows it."""
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if not word.startswith("-"):
            return PythonProgram(script=word, own=index + 1)
        if word == "-m":
            return PythonProgram(module="".join(arguments[index + 1 : index + 2]), own=index + 2)
        if word.startswith("-m"):
            return PythonProgram(module=word[2:], own=index + 1)
        if word == "-" or word.startswith("-c"):
            return PythonProgram(own=index + (2 if word == "-c" else 1))
        index += 2 if word in _TAKES_WORD else 1
    return PythonProgram(own=index)


def is_python(words: Sequence[str]) -> bool:
    """Return whether a command runs Python: by an interpreter's name, or by a script's."""
    first = Path(words[0]).name
    return PYTHON_WORD.fullmatch(first) is not None or first.endswith(".py")


def program(words: Sequence[str]) -> PythonProgram:
    """The program of a Python command, with or without the interpreter's name."""
    named = PYTHON_WORD.fullmatch(Path(words[0]).name) is not None
    return python_program(words[1:] if named else words)
