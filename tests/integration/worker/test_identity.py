"""A worker that runs as root starts jobs as their owners' UNIX users."""

import os
from pathlib import Path

import pytest

from tests.support import accounts
from tests.support.node import PYTHON, Box, log
from tests.support.written import Store
from torchyard.wire import CarriedFile, Carry, Place, ResultKind, Root
from worker.attempts.kept import KeptFiles
from worker.attempts.retained import RetainedFiles
from worker.forward.blobs import BlobSender
from worker.forward.outputs import OutputForwarder
from worker.forward.written import OutputLimits

pytestmark = accounts.needs_root


@pytest.fixture
def box(open_tmp: Path) -> Box:
    return Box(open_tmp)


def test_the_job_is_the_owners_and_cannot_read_the_workers(box: Box) -> None:
    script = (
        "#!/bin/sh\nid -un; echo $HOME; touch $TMPDIR/x && echo $TMPDIR; "
        "echo made > $TORCHYARD_OUTPUT_DIR/x; ls $TORCHYARD_ATTEMPT_DIR/yard"
    )
    folder, result = box.run(unix_user="nobody", command=["./run.sh"], files={"run.sh": script}, restore={"s": b"x"})
    name, home, temporary, denied = log(folder).splitlines()
    assert name == "nobody"
    assert home == os.path.expanduser("~nobody")  # noqa: PTH111 (a named user's)
    assert "Permission denied" in denied
    assert result.exit_code != 0
    owner = (folder.path / "job" / "output" / "x").stat()
    assert owner.st_uid == (folder.path / "restore" / "s").stat().st_uid != 0
    assert (folder.path / "job").stat().st_mode & 0o777 == 0o700
    assert Path(temporary).stat().st_uid == owner.st_uid
    folder.remove()
    assert not Path(temporary).exists()


def test_no_such_user_is_told(box: Box) -> None:
    _, result = box.run(unix_user="no-such-user", command=["true"])
    assert result.kind is ResultKind.UNUSABLE
    assert "no-such-user of ada does not exist" in (result.message or "")


def test_what_the_owner_wrote_is_kept_as_theirs_and_no_file_of_others_is_taken(box: Box, open_tmp: Path) -> None:
    script = "#!/bin/sh\necho mine > small; head -c 5000 /dev/zero > huge; mkdir -p ../data; echo x > ../data/x\n"
    folder, result = box.run(unix_user="nobody", command=["./run.sh"], files={"run.sh": script, "config": "a"})
    assert result.exit_code == 0
    owner = folder.at("job").stat().st_uid
    secret = open_tmp / "secret"
    secret.write_text("the worker's")
    secret.chmod(0o600)
    os.link(secret, folder.at("job/code/stolen"))  # as a kernel without protected_hardlinks lets anybody do
    folder.at("job/code/followed").symlink_to(secret)

    store = Store()
    kept = KeptFiles(box.attempts.parent)
    limits = OutputLimits(total=1000)
    forwarder = OutputForwarder(
        store,
        BlobSender(store),
        folder.attempt_id,
        folder.path,
        owner=owner,
        kept=kept,
        limits=limits,
        spawn=lambda function: function(),
    )
    while forwarder.pump():
        pass
    assert store.named() == {("code", "small"): "stored", ("job", "data/x"): "stored", ("code", "huge"): "on-node"}
    assert sorted(store.blobs.values()) == [b"mine\n", b"x\n"]
    place = kept.folder(folder.attempt_id)
    assert {path.stat().st_uid for path in (place, place / "code", place / "code/huge")} == {owner}
    assert place.stat().st_mode & 0o777 == 0o700
    with kept.open(folder.attempt_id, Place(root=Root.CODE, path="huge")) as descriptor:
        assert os.fstat(descriptor).st_size == 5000


def test_the_next_attempt_of_the_owner_takes_their_own_files_and_no_others(box: Box, open_tmp: Path) -> None:
    """A file of another user's, linked among the owner's, has the recorded content and is fetched all the same."""
    script = "#!/bin/sh\necho mine > mine\n"
    first, _ = box.run(unix_user="nobody", command=["./run.sh"], files={"run.sh": script})
    secret = open_tmp / "secret"
    secret.write_text("secret")
    os.link(secret, first.at("job/code/stolen"))
    assert RetainedFiles(box.attempts.parent).retain(first)
    files = [
        CarriedFile(**box.control.put(path, data).model_dump(), root=Root.CODE, attempt=first.attempt_id, move=True)
        for path, data in (("mine", b"mine\n"), ("stolen", b"secret"))
    ]
    blob = box.control.root / "blobs" / files[0].sha256
    blob.unlink()  # it is not fetched
    carried = Carry(attempt=first.attempt_id, settled=True, files=files)
    command = ["sh", "-c", "cat stolen mine; echo more >> mine; echo changed > stolen"]
    second, result = box.run(unix_user="nobody", command=command, files={}, carry=carried)
    assert (result.exit_code, log(second)) == (0, "secretmine\n")
    assert secret.read_text() == "secret"
    assert secret.stat().st_uid == 0


def test_a_python_that_the_owner_cannot_reach_is_named_with_its_folder(open_tmp: Path) -> None:
    closed = open_tmp / "root"
    closed.mkdir(mode=0o700)
    (closed / "python").symlink_to(PYTHON)
    box = Box(open_tmp / "worker", python=closed / "python")
    _, result = box.run(
        unix_user="nobody", launcher="torchrun", command=["python", "x.py"], files={"x.py": ""}, slots=1
    )
    assert result.kind is ResultKind.UNUSABLE
    assert f"nobody may not enter {closed} (mode 0700, owner 0), and so not reach {closed}/python" in str(
        result.message
    )
    folder, result = box.run(unix_user="nobody", command=["./run.sh"], files={"run.sh": "#!/bin/sh\nid -un"})
    assert (result.exit_code, log(folder)) == (0, "nobody\n")
