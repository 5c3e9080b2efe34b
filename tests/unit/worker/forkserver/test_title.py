import subprocess
import sys

from worker.forkserver import title

SHOWS = """
import sys
from worker.forkserver.title import ProcessTitle
made = ProcessTitle()
attempt = {"TORCHYARD_ATTEMPT_ID": "att-1", "RANK": "3", "SECRET": "s"}
assert made.fits(attempt) and not made.fits({"TORCHYARD_ATTEMPT_DIR": "x" * 400})
made.show(["python", "-u", "train.py"] + sys.argv[1:2], attempt)
sys.stdout.buffer.write(open("/proc/self/cmdline", "rb").read().rstrip(b"\\0") + b"\\n")
sys.stdout.buffer.write(open("/proc/self/environ", "rb").read())
"""


def shown(*arguments: str) -> tuple[bytes, list[bytes]]:
    environment = {"FIRST": "1", title.RESERVED: " " * 300, "LAST": "2"}
    done = subprocess.run([sys.executable, "-c", SHOWS, *arguments], env=environment, capture_output=True, check=True)
    command, _, rest = done.stdout.partition(b"\n")
    return command, [entry for entry in rest.split(b"\0") if entry]


def test_others_see_another_command_line_and_what_the_attempt_is_found_by() -> None:
    command, environment = shown("--lr=1", " " * 200)
    assert command == b"python\0-u\0train.py\0--lr=1"
    assert environment == [b"FIRST=1", b"TORCHYARD_ATTEMPT_ID=att-1", b"RANK=3", b"LAST=2"]


def test_a_command_line_that_is_too_long_is_cut() -> None:
    command, environment = shown("x" * 5000)
    assert command.startswith(b"python\0-u\0train.py\0xxx")
    assert b"LAST=2" in environment
