"""Entry points beside whatever a script has in its folder; frameworks are no part of it."""

import subprocess
import sys
from pathlib import Path

import pytest

import torchyard
from torchyard.injob import entry_points

CALLS = f"""
import sys
sys.path[:0] = [{{folder!r}}, {str(Path(torchyard.__file__).parents[1])!r}]
namespace = {{{{}}}}
exec(compile(open({entry_points.__file__!r}).read(), "entry", "exec"), namespace)
namespace["torch_imported"]()
found = namespace["mlflow_context"]()
print(namespace["_callbacks"]("lightning.pytorch"), type(found).__name__, found.in_context())
"""


@pytest.mark.parametrize(("own", "context"), [("torchyard.py", "_NoContext"), ("other.py", "RunContext")])
def test_a_script_of_our_name_is_not_run(own: str, context: str, tmp_path: Path) -> None:
    (tmp_path / own).write_text("print('the script again')\n")
    code = CALLS.format(folder=str(tmp_path))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == (f"[] {context} False\n", "")
