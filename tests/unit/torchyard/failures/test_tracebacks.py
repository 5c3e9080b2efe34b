import pytest

from torchyard.failures.tracebacks import raised_line

FRAMES = '  File "train.py", line 3, in <module>\n    load()\n'


@pytest.mark.parametrize(
    ("tail", "line"),
    [
        ("", None),
        ("epoch 1\nalloc\n", None),
        (f"Traceback (most recent call last):\n{FRAMES}KeyError: 'a'\nsaved nothing\n", "KeyError: 'a'"),
        (
            f"Traceback (most recent call last):\n{FRAMES}KeyError: 'a'\n\nDuring handling of the above exception, "
            f"another exception occurred:\n\nTraceback (most recent call last):\n{FRAMES}ValueError: b\n  and more\n",
            "ValueError: b",
        ),
        (f"Traceback (most recent call last):\n{FRAMES}", None),
        (
            "  File \"train.py\", line 3\n    foo(\n       ^\nSyntaxError: '(' was never closed\n",
            "SyntaxError: '(' was never closed",
        ),
        ("SyntaxError: printed by the script\n", None),
        ("Fatal Python error: Segmentation fault\n\n" + 100 * '  File "train.py", line 3 in load\n', None),
    ],
)
def test_the_exception_alone_is_the_reason_not_what_was_printed_last(tail: str, line: str | None) -> None:
    assert raised_line(tail) == line
