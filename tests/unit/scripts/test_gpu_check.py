"""One table of what ran on which card; a step that hangs or fails spoils no other."""

from pathlib import Path

import pytest

from scripts import gpu_check
from scripts.gpu_check import Outcome
from scripts.gpu_steps import Step

PAGE = Path(__file__).parents[3] / "docs" / "gpu.md"


def test_the_page_has_a_row_for_each_step() -> None:
    rows = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert sorted(set(rows) - {"step"}) == sorted(step.name for step in gpu_check.ALL)
    assert len(rows) - rows.count("step") == len(gpu_check.ALL)


def test_a_table_says_where_it_was() -> None:
    seen = Outcome(name="discovery", state="ran", seconds=1.5, note="a | b")
    text = gpu_check.table([seen], "a card")
    assert text.startswith("On a card:\n")
    assert text.endswith("| discovery | the devices, as nvidia-smi lists them | ran | 1.5 | a \\| b |")


def test_a_step_without_a_cpu_half_is_not_begun_without_a_gpu() -> None:
    step = next(each for each in gpu_check.ALL if not each.on_cpu)
    assert gpu_check.run(step, False, {}).state == "not here: no GPU"


@pytest.mark.parametrize(
    ("program", "state", "note"),
    [
        ("print('one'); print('two')", "ran on the CPU", "two"),
        ("print('bad'); raise SystemExit(1)", "failed", "bad"),
        ("import time; print('slow', flush=True); time.sleep(600)", "timed out", "slow"),
    ],
)
def test_a_step_has_a_process_and_a_time_limit_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, state: str, note: str
) -> None:
    script = tmp_path / "check.py"
    script.write_text(program)
    monkeypatch.setattr(gpu_check, "__file__", str(script))
    step = Step(name="x", shows="", run=lambda _: "", limit_s=5.0)
    found = gpu_check.run(step, False, {})
    assert (found.state, found.note) == (state, note)


def test_nothing_is_installed_where_nothing_is_missing(tmp_path: Path) -> None:
    environment = gpu_check.add_wheels(tmp_path / "none", tmp_path)
    assert environment["PYTHONPATH"].startswith(str(gpu_check.ROOT))
    assert str(tmp_path) not in environment["PYTHONPATH"]
