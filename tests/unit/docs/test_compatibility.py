"""docs/compatibility.md is what the compatibility tests prove, of scripts that know nothing of us."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import compatibility

ROOT = Path(__file__).parents[3]


def test_the_page_is_what_the_tests_prove() -> None:
    subprocess.run([sys.executable, "-m", "scripts.compatibility", "--check"], check=True, cwd=ROOT)


@pytest.mark.parametrize("name", compatibility.ROWS)
def test_every_row_is_proven_to_start_unchanged(name: str) -> None:
    script = compatibility.ROWS[name].script
    assert "starts" in compatibility.proofs()[name]
    assert script is None or "import torchyard" not in (ROOT / script).read_text()


@pytest.mark.parametrize("words", ['"absent", "starts"', '"ddp", "speed"', '"ddp", column'])
def test_a_mark_that_proves_nothing_known_is_refused(tmp_path: Path, words: str) -> None:
    (tmp_path / "test_some.py").write_text(f"@pytest.mark.proves({words})\ndef test_some(): pass\n")
    with pytest.raises(ValueError, match=r"test_some\.py"):
        compatibility.proofs(tmp_path)
