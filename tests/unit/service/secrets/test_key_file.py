"""The key of the secrets: made once, for its owner alone; what is wrong with it is said with its name."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from service.secrets.key_file import KeyFile, KeyFileError


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    made = KeyFile(tmp_path / "new folder" / "secrets.key")
    made.create()
    return made


def test_the_first_key_is_for_its_owner_alone_and_stays(keys: KeyFile) -> None:
    assert keys.path.stat().st_mode & 0o777 == 0o600
    assert keys.path.parent.stat().st_mode & 0o777 == 0o700
    before = keys.path.read_bytes()
    keys.create()
    assert keys.path.read_bytes() == before
    assert [each.name for each in keys.path.parent.iterdir()] == ["secrets.key"]


def test_of_many_that_make_the_first_key_one_does(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "secrets.key")
    with ThreadPoolExecutor(8) as pool:

        def used(number: int) -> str:
            keys.create()
            return keys.encrypt(str(number))

        made = list(pool.map(used, range(16)))
    assert [keys.decrypt(each) for each in made] == [str(number) for number in range(16)]


def test_a_value_is_not_readable_and_never_looks_alike(keys: KeyFile) -> None:
    first, second = keys.encrypt("hunter2hunter2"), keys.encrypt("hunter2hunter2")
    assert first != second
    assert "hunter2" not in first
    assert keys.decrypt(first) == keys.decrypt(second) == "hunter2hunter2"


def test_a_rotation_reads_both_keys_until_the_old_one_goes(keys: KeyFile) -> None:
    old = keys.encrypt("value")
    keys.add_newest()
    assert len(keys.path.read_text().split()) == 2
    new = keys.encrypt(keys.decrypt(old))
    keys.keep_newest()
    assert keys.decrypt(new) == "value"
    assert keys.path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(KeyFileError, match="holds another key"):
        keys.decrypt(old)


def test_who_rotates_as_root_leaves_the_file_to_its_account(keys: KeyFile) -> None:
    os.chown(keys.path, 12345, 12345)
    keys.add_newest()
    status = keys.path.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (12345, 12345, 0o600)


def test_what_is_wrong_with_the_file_is_said_with_its_name(keys: KeyFile) -> None:
    encrypted = keys.encrypt("value")
    keys.path.write_text("no key\n")
    with pytest.raises(KeyFileError, match=rf"{keys.path} of the secrets is damaged: put it back"):
        keys.decrypt(encrypted)
    keys.path.write_bytes(Fernet.generate_key())
    with pytest.raises(KeyFileError, match=rf"{keys.path} of the secrets holds another key .* from a backup"):
        keys.decrypt(encrypted)
    keys.path.chmod(0o640)
    with pytest.raises(KeyFileError, match=f"can be read by other accounts: `chmod 0600 {keys.path}`"):
        keys.encrypt("value")
    keys.path.unlink()
    with pytest.raises(KeyFileError, match=f"{keys.path} of the secrets is gone"):
        keys.encrypt("value")
    keys.path.mkdir()
    with pytest.raises(KeyFileError, match="cannot be read"):
        keys.encrypt("value")
