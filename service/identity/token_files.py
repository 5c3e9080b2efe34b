"""The files of the administrator's and the embedded worker's token, which follow a rotation."""

import logging
from pathlib import Path

from service.identity.callers import hash_secret
from torchyard import home

logger = logging.getLogger(__name__)


def replace(old_sha256: str, secret: str) -> None:
    """Write a new secret to each file of this home that has the old one: `yard` and the worker would be refused."""
    for path in filter(Path.exists, (home.admin_token_file(), home.node_token_file())):
        try:
            if hash_secret(path.read_text().strip()) == old_sha256:
                home.write_private(path, secret + "\n")
        except OSError as error:
            logger.warning("%s still has a token that was replaced: %s; start the service anew", path, error)
