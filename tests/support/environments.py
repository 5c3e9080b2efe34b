"""A user's own environment: a venv with PyTorch in it and nothing of ours."""

import subprocess
import sys
import sysconfig
from pathlib import Path

OURS = ("__editable__", "torchyard", "fastapi", "celery", "sqlalchemy", "pydantic", "httpx", "pip")


def with_torch(folder: Path) -> Path:
    """Makes the venv; its packages are links to those of this environment, so that nothing is downloaded."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.lower().startswith(OURS):
            (site / package.name).symlink_to(package)
    return folder
