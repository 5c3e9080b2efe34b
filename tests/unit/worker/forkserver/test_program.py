import sys
from pathlib import Path

import pytest

from torchyard.wire import ColdCode
from worker.forkserver import program
from worker.forkserver.program import Command, parse

OPTIONS = ("-u",)
PYTHON = "/env/bin/python"


@pytest.mark.parametrize(
    ("words", "how", "target", "arguments"),
    [
        (["train.py", "--lr", "1"], "", "train.py", ("--lr", "1")),
        (["-m", "package.train", "-x"], "-m", "package.train", ("-x",)),
        (["-c", "print(1)"], "-c", "print(1)", ()),
    ],
)
def test_a_command_of_this_interpreter_is_known(
    words: list[str], how: str, target: str, arguments: tuple[str, ...]
) -> None:
    line = [PYTHON, *OPTIONS, *words]
    assert parse(line, PYTHON, OPTIONS) == Command(tuple(line), how, target, arguments)


@pytest.mark.parametrize(
    "line",
    [
        ["/other/bin/python", "-u", "train.py"],
        [PYTHON, "train.py"],
        [PYTHON, "-u", "-X", "dev", "train.py"],
        [PYTHON, "-u", "-mtrain"],
        [PYTHON, "-u", "-m"],
        [PYTHON, "-u"],
        [PYTHON],
    ],
)
def test_other_commands_are_executed(line: list[str]) -> None:
    assert parse(line, PYTHON, OPTIONS) is None


def reason(folder: Path, code: str | bytes, name: str = "train.py") -> str | None:
    path = folder / name
    path.write_bytes(code.encode() if isinstance(code, str) else code)
    command = Command(("python", str(path)), "", str(path), ())
    return words_of(program.needs_new_interpreter(command, frozenset({"torch", "numpy", "json"})))


def words_of(found: program.Cold | None) -> str | None:
    """The words of a reason; its code is one that the service knows."""
    assert found is None or found.code in set(ColdCode)
    return None if found is None else found.words


def test_a_plain_script_needs_no_interpreter_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import os\nprint(os.environ['RANK'])\n")
    assert reason(tmp_path, "import model, torch\nfrom torch import nn\n") is None


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch",
        "import os\nos.environ.setdefault('PYTORCH_CUDA_ALLOC_CONF', 'x')",
        "from os import putenv\nputenv('TORCH_LOGS', 'all')",
        "from dotenv import load_dotenv\nload_dotenv()",
        "if True:\n    import package.deep\n",
        "from package import deep\n",
        "import json as j, package\n",
    ],
)
def test_a_program_that_may_set_what_torch_has_read_does(tmp_path: Path, code: str) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "deep.py").write_text("import os\nos.environ['MKL_NUM_THREADS'] = '1'\n")
    found = reason(tmp_path, code)
    assert found is not None
    assert "variables" in found


@pytest.mark.parametrize("name", ["torch.py", "numpy"])
def test_a_program_with_a_module_of_the_name_of_one_that_is_loaded_does(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert "of its own" in (reason(tmp_path, "print(1)") or "")


def test_what_is_no_source_does(tmp_path: Path) -> None:
    assert "source" in (reason(tmp_path, b"PK\x03\x04", "train.py") or "")
    assert "source" in (reason(tmp_path, "print(1)", "train") or "")
    assert program.needs_new_interpreter(Command(("python", "x"), "", str(tmp_path / "no.py"), ()), frozenset())


def test_a_program_that_is_too_large_to_be_looked_through_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MAX_BYTES", 100)
    (tmp_path / "big.py").write_text("#" * 200)
    assert "too large" in (reason(tmp_path, "import big") or "")


def test_a_module_that_is_installed_is_not_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = Command((sys.executable, "-m", "json.tool"), "-m", "json.tool", ())
    assert program.needs_new_interpreter(command, frozenset({"json"})) is None


VARIABLES = frozenset({"HF_HOME", "CI", "HOME"})


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.environ['HF_HOME'] = '/x'\nimport transformers",
        "import os\nos.environ.setdefault('HF_HOME', '/x')",
        "import os\nos.environ.update(HF_HOME='/x')",
        "import os\nos.environ.pop('HF_HOME')",
        "import os\nfor name in ['HF_HOME']:\n    os.environ[name] = '/x'",
        "import os\nos.putenv('CI', '1')",
        "import os\nos.environ[ 'CI' ]='1'",
    ],
)
def test_a_program_that_may_set_what_a_learnt_module_has_read_is_executed(tmp_path: Path, code: str) -> None:
    assert "which a module reads" in (learnt_reason(tmp_path, code) or "")


@pytest.mark.parametrize(
    "code",
    [
        "import os\nprint(os.environ['HOME'], os.environ.get('CI'), os.getenv('HF_HOME', ''))",
        "import os\nprint('HF_HOME' in os.environ, os.environ['CI'] == '1')",
        "import os\nCI = 1\nos.environ['MINE'] = '2'",
        "print('HF_HOME')",
    ],
)
def test_a_program_that_looks_at_it_is_not(tmp_path: Path, code: str) -> None:
    assert learnt_reason(tmp_path, code) is None


def learnt_reason(folder: Path, code: str) -> str | None:
    path = folder / "train.py"
    path.write_text(code)
    command = Command(("python", str(path)), "", str(path), ())
    return words_of(program.needs_new_interpreter(command, frozenset(), VARIABLES))
