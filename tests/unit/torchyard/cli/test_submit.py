import os
import pty
import select
from pathlib import Path

from torchyard.cli import submit


def test_what_is_piped_in_is_seen(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    assert not submit.unread(reader)
    os.write(writer, b"1 2 3\n")
    assert submit.unread(reader)
    os.close(writer)
    assert submit.unread(reader)
    os.read(reader, 100)
    assert not submit.unread(reader)
    os.close(reader)
    assert not submit.unread(reader)
    (tmp_path / "data").write_text("1 2 3\n")
    with (tmp_path / "data").open("rb", buffering=0) as data:
        assert submit.unread(data.fileno())
        data.read()
        assert not submit.unread(data.fileno())


def test_a_terminal_and_no_input_are_nothing_piped_in() -> None:
    shell, terminal = pty.openpty()
    os.write(shell, b"typed ahead\n")
    assert select.select([terminal], [], [], 60)[0]
    with Path(os.devnull).open("rb") as nothing:
        assert not submit.unread(nothing.fileno())
    assert not submit.unread(terminal)
    os.close(shell)
    os.close(terminal)
