"""Encryption of secrets with a key that lies in a file of its own, outside of the database.

The file holds Fernet keys, one a line, the newest first: it has two only while a rotation is under way. It is read anew
each time, so a service that runs knows a key that was exchanged beside it.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from service.errors import ProblemError

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet  # else imported at the first use: it is large, and many have no secrets


class KeyFileError(ProblemError):
    """A key file by which the stored secrets cannot be read; the message names it, and the mend."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__("conflict", f"The key file {path} of the secrets {what}")


class KeyFile:
    """Keys of one installation. Every method raises `KeyFileError` for a file that cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Write a first key, unless there is a file already."""
        _ensure_folder(self.path)
        temporary = _written(self.path, [_new_key()])
        try:
            with suppress(FileExistsError):  # somebody else was quicker: theirs counts
                os.link(temporary, self.path)
        finally:
            temporary.unlink()

    def encrypt(self, value: str) -> str:
        """Return a value encrypted with the newest key."""
        encrypted: bytes = self._keys().encrypt(value.encode())
        return encrypted.decode()

    def decrypt(self, encrypted: str) -> str:
        """Return the value that was encrypted with any of the keys."""
        from cryptography.fernet import InvalidToken

        try:
            decrypted: bytes = self._keys().decrypt(encrypted)
        except InvalidToken as error:
            what = "holds another key than the one that they were encrypted with: put that one back from a backup, or "
            raise KeyFileError(self.path, f"{what}remove the secrets and set them anew") from error
        return decrypted.decode()

    def add_newest(self) -> None:
        """Add a new key, by which values are encrypted from now on; those of before are still read."""
        self._write([_new_key(), *self._read()])

    def keep_newest(self) -> None:
        """Forget all keys but the newest."""
        self._write(self._read()[:1])

    def _keys(self) -> "MultiFernet":
        from cryptography.fernet import Fernet, MultiFernet

        try:
            return MultiFernet([Fernet(line) for line in self._read()])
        except ValueError as error:
            what = "is damaged: put it back from a backup, or move it away, remove the secrets and set them anew"
            raise KeyFileError(self.path, what) from error

    def _read(self) -> list[bytes]:
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                lines = file.read().split()
        except FileNotFoundError as error:
            what = "is gone: put it back from a backup, or remove the secrets and set them anew"
            raise KeyFileError(self.path, what) from error
        except OSError as error:
            what = f"cannot be read ({error.strerror}): make it the service's own, mode 0600"
            raise KeyFileError(self.path, what) from error
        if stat.S_IMODE(status.st_mode) & 0o077:
            what = f"can be read by other accounts: `chmod 0600 {self.path}`, then `python -m service rotate-secrets`"
            raise KeyFileError(self.path, what)
        return lines

    def _write(self, keys: list[bytes]) -> None:
        """Exchange the file whole; who rotates as root leaves it to the account that had it."""
        owner = self.path.stat()
        temporary = _written(self.path, keys)
        if os.geteuid() == 0:
            os.chown(temporary, owner.st_uid, owner.st_gid)
        temporary.replace(self.path)
        _sync_folder(self.path)


def _new_key() -> bytes:
    from cryptography.fernet import Fernet

    key: bytes = Fernet.generate_key()
    return key


def _ensure_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise KeyFileError(path, f"cannot be written ({error.strerror}): mend its folder") from error


def _written(path: Path, keys: list[bytes]) -> Path:
    """Return a file beside the path that holds the keys, and is on the disk: what they encrypt depends on it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise KeyFileError(path, f"cannot be written ({error.strerror}): mend its folder") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"".join(key + b"\n" for key in keys))
        file.flush()
        os.fsync(descriptor)
    return temporary


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
