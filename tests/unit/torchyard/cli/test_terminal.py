import io
import os
import pty

import pytest

from torchyard.cli import common, terminal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("loss[/b]", "loss[/b]"),
        ("a\tb\n", "a\tb\n"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07\x1b]8;;http://x\x1b\\link", "link"),
        ("\x1b]0;no end, so only the start goes", "0;no end, so only the start goes"),
        ("\x1bcreset", "reset"),
        ("half\rfull\x08\x9b31m", "halffull31m"),
        ("safe\u202egnp.exe\u2066\u200f\u061c", "safegnp.exe"),
        ("👩\u200d🔬 ünï 数", "👩\u200d🔬 ünï 数"),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_what_steers_a_terminal_is_taken_out(text: str, shown: str) -> None:
    assert terminal.clean(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[m \x1b[38:2:1:2:3mtrue", "\x1b[1;31mred\x1b[m \x1b[38:2:1:2:3mtrue"),
        ("\x1b[A\x1b[K\x1b]52;c;aGk=\x07ok\x1b[?1049h\n", "ok\n"),
    ],
)
def test_a_log_keeps_its_colours_and_nothing_else(text: str, shown: str) -> None:
    assert terminal.clean_log(text) == shown


@pytest.mark.parametrize(
    ("line", "shown"), [("plain", "plain"), ("1%\r50%\r100%", "100%"), ("dos\r", "dos"), ("", ""), ("\r\r", "")]
)
def test_a_line_drawn_over_shows_what_was_drawn_last(line: str, shown: str) -> None:
    assert terminal.drawn(line) == shown


def test_nothing_printed_is_markup_and_columns_stay_straight() -> None:
    from rich.table import Table

    console = terminal.console_class()(
        file=io.StringIO(), force_terminal=True, markup=False, emoji=False, highlight=False, width=60
    )
    table = Table("A", "B", box=None)
    table.add_row("[/b]\x1b[2J\r\u202e:smile:", "right")
    table.add_row(terminal.styled("[red]\x1b]0;x\x07", "dim"), "right")
    console.print(table)
    console.print(terminal.joined(["a[/]", ("b[/]", "bold"), terminal.styled("c", "red")], between=" "))
    shown = console.file.getvalue()
    heading, first, second, line = (terminal.clean(each) for each in shown.splitlines())
    assert first.split() == ["[/b]:smile:", "right"]
    assert second.split() == ["[red]", "right"]
    assert line == "a[/] b[/] c"
    assert "\x1b[2J" not in shown
    assert "\r" not in shown
    assert heading.split() == ["A", "B"]


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({}, "\x1b[31mno\x1b[0m"),
        ({"NO_COLOR": "1"}, "no"),
        ({"NO_COLOR": ""}, "\x1b[31mno\x1b[0m"),
        ({"TERM": "dumb"}, "no"),
    ],
)
def test_colours_are_for_terminals_that_want_some(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], shown: str
) -> None:
    for name, value in ({"TERM": "xterm", "NO_COLOR": ""} | environment).items():
        monkeypatch.setenv(name, value)
    shell, screen = pty.openpty()
    with os.fdopen(screen, "w") as stream:
        assert terminal.painted("no\x1b[2J", terminal.RED, stream) == shown
    os.close(shell)
    assert terminal.painted("no", terminal.RED, io.StringIO()) == "no"


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (40, [["JOB", "TIME", "WHY"], ["12", "3s"], ["13", "7s"]]),
        (100, [["JOB", "USER", "TIME", "WHY"], ["12", "ada", "3s"], ["13", "bob", "7s"]]),
    ],
)
def test_a_narrow_terminal_shows_some_columns_and_a_line_for_each_row(
    monkeypatch: pytest.MonkeyPatch, width: int, lines: list[list[str]]
) -> None:
    console = terminal.console_class()(file=io.StringIO(), force_terminal=True, width=width)
    monkeypatch.setattr(common, "console", lambda: console)
    with common.table("JOB", "USER", "TIME", "WHY", narrow=("JOB", "TIME", "WHY")) as table:
        table.add_row("12", "ada", "3s", "the node is short of disk: 1 GiB is free")
        table.add_row("13", "bob", "7s", "")
    found = [terminal.clean(line).split() for line in console.file.getvalue().splitlines()]
    assert [line[: len(wanted)] for line, wanted in zip(found, lines, strict=True)] == lines


def test_words_beside_the_output_are_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    common.note("[/b]\x1b[2Jx\r")
    common.warn("\u202ey")
    assert capsys.readouterr().err == "[/b]x\nwarning: y\n"
