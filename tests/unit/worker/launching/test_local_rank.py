from pathlib import Path

import pytest

from worker.launching import local_rank


@pytest.mark.parametrize(
    ("source", "option"),
    [
        ('parser.add_argument("--local_rank", type=int)', "--local_rank"),
        ('parser.add_argument("-l", "--local-rank", default=0)', "--local-rank"),
        ('@click.option("--local_rank")\ndef main(local_rank): os.environ["LOCAL_RANK"]', "--local_rank"),
        ('parser.add_argument("--lr")\nrank = int(os.environ["LOCAL_RANK"])', None),
        ('# "--local_rank"\nprint("hello")', "--local-rank"),
        ("print 'Python 2'", "--local-rank"),
    ],
)
def test_the_spelling_that_a_script_declares(source: str, option: str | None) -> None:
    assert local_rank.declared(source) == option


def test_where_the_source_lies(tmp_path: Path) -> None:
    declares = 'add_argument("--local_rank")'
    (tmp_path / "pkg" / "tool").mkdir(parents=True)
    for name in ("train.py", "pkg/train.py", "pkg/tool/__main__.py"):
        (tmp_path / name).write_text(declares)
    for arguments in (["-u", "train.py"], ["-m", "pkg.train"], ["-mpkg.tool"]):
        assert local_rank.option(arguments, tmp_path) == "--local_rank"
    for arguments in (["gone.py"], ["-m", "site"], ["-c", declares], ["."]):
        assert local_rank.option(arguments, tmp_path) == "--local-rank"
