"""A worker that runs as root starts jobs as their owners' UNIX users."""

import os
from pathlib import Path

import pytest

from tests.support.node import Box, log
from torchyard.wire import ResultKind

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")


@pytest.fixture
def box(short_tmp: Path) -> Box:
    short_tmp.chmod(0o755)
    return Box(short_tmp)


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
