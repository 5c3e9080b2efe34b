"""Functions of the job's own code, named ``module:function`` in the recipe. Only the job imports them."""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any

from trainer.exceptions import RecipeError


def made(noun: str, target: str, options: Mapping[str, Any]) -> Any:
    """Call the target with the options and return its answer; `noun` is the recipe's key, for messages.

    Raises RecipeError where it cannot be imported or does not take the options.
    """
    function = _imported(noun, target)
    try:
        _check_options(function, options)
    except TypeError as error:
        raise RecipeError(f"{noun}.target {target} does not take {noun}.options: {error}") from error
    return function(**options)


def _check_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise TypeError for options that the function does not take, as far as it tells what it takes."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # written in C
        return
    signature.bind(**options)


def _imported(noun: str, target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    try:
        with _own_code():
            found = reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise RecipeError(
            f"{noun}.target {target} cannot be imported: {error}: give module:function as seen from the job's code "
            f"folder ({Path.cwd()}), and that folder as code: or live:"
        ) from error
    if not callable(found):
        raise RecipeError(f"{noun}.target {target} is no function or class, but {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


@contextmanager
def _own_code() -> Iterator[None]:
    """Put the working folder first while the target is imported, and last when it imports something later."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)
