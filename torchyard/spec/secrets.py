"""Names of secrets: variables of a job's environment whose values nobody reads again."""

from typing import Annotated

from pydantic import AfterValidator, Field

from torchyard.spec.command import ENV_NAME, RESERVED_ENV
from torchyard.translatable import TranslatableText

#: What is put together for each job, and would no longer be what a secret has set.
_COMPOSED = frozenset({"PATH", "PYTHONPATH", "TMPDIR", "HOME", "USER", "LOGNAME", "VIRTUAL_ENV", "CONDA_PREFIX"})
#: Bytes of a value; Linux starts no program with a variable of twice as many.
MAX_VALUE = 64 * 1024


def check_secret_name(name: str) -> str:
    """Return the name of a secret; ValueError for one that no variable can have, or that the launcher sets."""
    if not ENV_NAME.fullmatch(name):
        raise ValueError(
            TranslatableText(
                "secret-name",
                "{name!r} is not a name for an environment variable, such as WANDB_API_KEY",
                name=name[:80],
            )
        )
    if name in RESERVED_ENV | _COMPOSED or name.startswith("TORCHYARD_"):
        raise ValueError(
            TranslatableText("secret-reserved", "{name} is set by the launcher: a secret needs another name", name=name)
        )
    return name


SecretName = Annotated[str, Field(max_length=200), AfterValidator(check_secret_name)]
