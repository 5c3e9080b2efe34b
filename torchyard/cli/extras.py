"""Parts of TorchYard that a command needs beyond the core, and the way to install them."""

import importlib.util

from torchyard.exceptions import MissingExtraError

#: For each extra of the distribution modules that show whether it is here: ours, and one of the libraries.
_MODULES = {
    "service": ("service.__main__", "fastapi"),
    "worker": ("worker.__main__", "celery"),
    "trainer": ("trainer.__main__", "torch"),
    "box": ("service.__main__", "fastapi", "worker.__main__", "celery"),
}


def require(command: str, extra: str) -> None:
    """Raise MissingExtraError, which says what to install, unless the extra that a command needs is here."""
    if not all(map(_is_found, _MODULES[extra])):
        raise MissingExtraError(f"`yard {command}` needs the {extra}: pip install 'torchyard[{extra}]'")


def _is_found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its package is missing, or another's of the same name
        return False
