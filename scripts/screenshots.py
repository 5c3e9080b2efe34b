"""Pictures of the dashboard for the documentation: `python -m scripts.screenshots` writes docs/images anew.

It starts a stack of its own with four CPU slots, trains what is to be seen, and looks at it with Chromium. It takes
some minutes; look at each picture before it is committed.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from torchyard import api
from torchyard.client.client import Client
from torchyard.stack import up
from torchyard.states import JobState
from torchyard.submission import drafts

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
EXAMPLES = ROOT / "examples"
SIZE = {"width": 1440, "height": 900}
#: Enough for flat areas and lines, and a third of the bytes.
COLOURS = 128
PATIENCE_MS = 300_000
#: The stream stays open, so no page is ever idle: time for the rest of it to be drawn.
SETTLE_MS = 3_000
#: A script that ends as many do.
BROKEN = """
import torch

weights = {"head.weight": torch.zeros(19, 256)}
model = torch.nn.Linear(256, 21)
raise ValueError(f"the checkpoint has {len(weights['head.weight'])} classes, the model {model.out_features}")
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="screenshots-") as folder:
        os.environ["TORCHYARD_HOME"] = f"{folder}/home"
        for name in ("TORCHYARD_URL", "TORCHYARD_TOKEN"):
            os.environ.pop(name, None)
        url = up.detach(up.StackOptions(port=0, cpu_slots=4, stop_jobs=True))
        try:
            with Client(url) as client:
                numbers = trained(client, Path(folder) / "code")
                look(url, (Path(folder) / "home" / "admin.token").read_text().strip(), numbers)
        finally:
            up.down()


def trained(client: Client, code: Path) -> Mapping[str, str]:
    """What the pictures show: their numbers, by name."""

    def submit(changes: Mapping[str, str]) -> api.Job:
        draft = drafts.from_file(EXAMPLES / "digits.yaml", [f"{key}={value}" for key, value in changes.items()])
        return drafts.prepare(draft).submit(client)

    first = submit({"name": "digits-cnn"})
    second = submit({"name": "digits-cnn-fast", "recipe.optim.lr": "0.005", "recipe.epochs": "20"})
    for job in (first, second):
        ended = client.wait(job.id)
        assert ended.state is JobState.SUCCEEDED, ended.error
    code.mkdir()
    (code / "segment.py").write_text(BROKEN)
    active = {"VIRTUAL_ENV": sys.prefix, "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}
    draft = drafts.from_words(["python", "segment.py"], code, name="segmenter")
    broken = drafts.prepare(draft, active).submit(client)
    client.wait(broken.id)
    sweep = drafts.prepare(drafts.from_file(EXAMPLES / "sweep.yaml")).submit_sweep(client)
    client.wait_sweep(sweep.id)
    running = submit({"name": "digits-long", "recipe.epochs": "4000", "recipe.optim.lr": "0.0001"})
    waiting = submit({"name": "digits-wide", "resources.gpus": "4", "recipe.epochs": "200"})
    return {
        "first": str(first.number),
        "second": str(second.number),
        "broken": str(broken.number),
        "sweep": sweep.id,
        "running": str(running.number),
        "waiting": str(waiting.number),
    }


def look(url: str, token: str, numbers: Mapping[str, str]) -> None:
    shutil.rmtree(IMAGES, ignore_errors=True)
    IMAGES.mkdir()
    headers = {"Authorization": f"Bearer {token}"}
    code = httpx.post(f"{url}/api/v1/session/codes", headers=headers).raise_for_status().json()["code"]
    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--disable-gpu", *sandbox])
        page = browser.new_page(base_url=url, viewport=SIZE)  # type: ignore[arg-type]
        expect.set_options(timeout=PATIENCE_MS)
        page.goto(f"/#login={code}")
        expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
        for name, (path, ready) in views(numbers).items():
            page.goto(path)
            ready(page)
            page.wait_for_timeout(SETTLE_MS)
            take(page, name)
        browser.close()


def views(numbers: Mapping[str, str]) -> Mapping[str, tuple[str, Callable[[Page], None]]]:
    """Address and what must be seen there, by the picture's name."""
    return {
        "why": (f"/jobs/{numbers['waiting']}", lambda page: shows(page, "waits")),
        "charts": (f"/jobs/{numbers['first']}/charts", drawn),
        "failure": (f"/jobs/{numbers['broken']}", lambda page: shows(page, "ValueError")),
        "compare": (f"/compare?jobs={numbers['first']},{numbers['second']}", drawn),
        "sweep": (f"/sweeps/{numbers['sweep']}", lambda page: shows(page, "val/accuracy")),
        "sharing": ("/sharing", lambda page: shows(page, "Shares")),
        "home": ("/", lambda page: shows(page, "digits-wide")),
    }


def shows(page: Page, words: str) -> None:
    expect(page.get_by_text(re.compile(re.escape(words))).first).to_be_visible()


def drawn(page: Page) -> None:
    expect(page.locator("canvas").first).to_be_visible()


def take(page: Page, name: str) -> None:
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as image:
        image.convert("RGB").quantize(colors=COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    main()
