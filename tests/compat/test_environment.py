"""The environment of the compatibility tests is a user's: frameworks, and nothing of ours."""

import subprocess
from pathlib import Path

_CODE = """
import importlib.util as util
print([name for name in ("torch", "lightning", "transformers", "accelerate", "hydra", "mlflow", "wandb", "trackio")
       if util.find_spec(name) is None])
print([name for name in ("torchyard", "service", "worker", "trainer", "celery") if util.find_spec(name) is not None])
"""


def test_it_holds_the_frameworks_and_nothing_of_ours(installed: Path, tmp_path: Path) -> None:
    words = [installed / "bin" / "python", "-c", _CODE]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
