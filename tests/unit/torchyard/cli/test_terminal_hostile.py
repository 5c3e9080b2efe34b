"""Whatever others write: each function that shows it takes it, and nothing of it steers the terminal."""

import ast
import io
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import resources
from torchyard.api import JobError, Node, NodeDevice, Output, QueueEntry
from torchyard.cli import box, common, follow, outputs, terminal
from torchyard.cli import format as shown
from torchyard.cli.top import view
from torchyard.cli.top.snapshot import BoxSnapshot, LogTail, Selection
from torchyard.control_characters import STEERING

CLI = Path(terminal.__file__).parent
MARKUP = ["x", "[/b]", "[red]", "[/]", "[link=http://x]", ":smile:", "\\["]
SEQUENCES = ["\x1b[2J", "\x1b]0;t\x07", "\x1b[31m", "\x1bP", "\x1bc", "\x9b2J", "\x9d", "\x90"]
CHARACTERS = st.sampled_from([*"\r\n\t\0\x08\x1b\x7f\x85\u2028\u202e\u2066\u200f", "数", "👩", "\ud800"])
HOSTILE = st.lists(st.sampled_from(MARKUP + SEQUENCES) | CHARACTERS | st.text(max_size=5), max_size=8).map("".join)
STORED = HOSTILE.map(lambda text: text.encode(errors="replace").decode())
STEERS = re.compile(f"[{STEERING}]")


@given(HOSTILE)
def test_a_cleaned_text_has_nothing_left(text: str) -> None:
    cleaned = terminal.clean(text)
    assert not STEERS.search(cleaned)
    assert terminal.clean(cleaned) == cleaned


@given(HOSTILE)
def test_a_log_has_colours_left_and_nothing_else(text: str) -> None:
    assert not STEERS.search(re.sub(r"\x1b\[[0-9;:]*m", "", terminal.clean_log(text)))


def device(text: str) -> NodeDevice:
    holder = {"job": text, "job_number": 7, "job_name": text, "user": text, "share": None}
    fields = dict.fromkeys(NodeDevice.model_fields) | {"uuid": text, "index": 0, "kind": "gpu", "name": text}
    return NodeDevice.model_validate(fields | {"memory": 1, "unusable": text, "holders": [holder], "job": text})


def node(text: str) -> Node:
    fields: dict[str, Any] = {"name": text, "state": "online", "hostname": text, "version": text, "last_seen_at": None}
    fields |= {"cpus": 1, "memory": 1, "disk_free": 1, "labels": [text], "offenders": [text], "drain_message": text}
    return Node.model_validate(fields | {"devices": [device(text)], "latest": {}, "maintenance": text})


def output(text: str, root: str) -> Output:
    fields = {"name": f"{text}/{text}", "root": root, "state": "on-node", "node": text, "place": text}
    return Output.model_validate(fields | {"size": 1, "sha256": ""})


def failure(text: str) -> JobError:
    return JobError(cause=text, message=text, traceback=text, rank=0, exit_code=1)


def show_everything(text: str) -> None:
    """Each function of the command line that shows what others wrote, with it in every place."""
    names: dict[str, Any] = {"name": text, "user": text, "project": text, "tags": [text], "latest": {text: 0.5}}
    running = resources.job(
        **names, id="a", state="running", devices=[{"node": text, "uuid": text, "index": 0, "kind": "gpu"}]
    )
    failed = resources.job(**names, id="b", state="failed", error=failure(text))
    waiting = QueueEntry.model_validate(
        {"position": 1, "job": "c", "number": 1, "name": text, "user": text, "gpus": 2}
        | {"priority": "normal", "held": False, "reason": text}
    )
    seen = BoxSnapshot(
        at=running.created_at,
        nodes=[node(text)],
        jobs=[running, failed],
        queue=[waiting],
        log=LogTail(job="a", data=text.encode(errors="surrogateescape")),
    )
    for line in view.whole(seen, Selection().among(seen.rows), width=200):
        common.put(line)
    with common.table("A", text) as table:
        for each in (running, failed):
            table.add_row(text, shown.status(each), shown.state(each), shown.devices(each.devices))
        table.add_row(*box.device_row(device(text)), shown.latest(running.latest))
    for line in outputs.tree([output(text, "code"), output(text, "job")]):
        common.line(line)
    common.line(outputs.path(output(text, "output")))
    common.line(text)
    common.put(text, (text, "bold"), terminal.styled(text, "red"))
    common.print_json_line(failed)
    common.print_json([running, failed])
    follow.Screen().status(text)
    common.note(text)
    common.warn(text)


@settings(max_examples=60, deadline=None)
@given(STORED)
def test_nothing_that_is_shown_steers_the_terminal(text: str) -> None:
    to, beside = io.StringIO(), io.StringIO()
    plain = terminal.console_class()(file=to, markup=False, emoji=False, highlight=False, width=200)
    with patch.object(common, "console", lambda: plain), redirect_stdout(to), redirect_stderr(beside):
        show_everything(text)
    found = STEERS.search(to.getvalue() + beside.getvalue())
    assert found is None, (found, text)


def test_only_one_module_prints() -> None:
    """All else goes through `common`, whose functions clean; `main` has its own last words."""
    printing = {
        path.relative_to(CLI).as_posix()
        for path in CLI.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"
    }
    assert printing == {"common.py", "main.py"}
