"""The pictures and the page of made-up figures; a flag is where a person looks."""

import csv
from html.parser import HTMLParser
from pathlib import Path

import pytest

from torchyard.recipe import Recipe
from trainer.bench import plan, table
from trainer.bench.report import ComparisonReport


class Outside(HTMLParser):
    """Collects what a page would load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.found += [value for key in ("src", "href") if (value := named.get(key)) and not value.startswith("#")]
        self.found += [tag] * (tag in {"script", "link", "iframe"})


def report(seconds: float, folder: Path, note: str = "") -> dict[str, str]:
    """Files of a comparison in which two devices took so long for what one did in a second."""
    cases = plan.cases(Recipe(), ["ddp"], [2], 8, per_device=True)
    results = [{"seconds": [took], "samples": [100], "bytes_sent": [2**20]} for took in (1.0, seconds)]
    facts = [("Devices", "CPU <slots>")]
    made = ComparisonReport(
        title="a on b",
        rows=table.rows(list(zip(cases, results, strict=True))),
        facts=facts,
        model="deeplabv3_resnet101",
        note=note,
    )
    made.write(folder)
    return {path.name: path.read_text() for path in folder.iterdir() if path.suffix != ".png"}


def test_the_page_needs_nothing_beside_it(tmp_path: Path) -> None:
    files = report(0.6, tmp_path, note="the offline twin of x")
    page = files["strategies.html"]
    outside = Outside()
    outside.feed(page)
    assert not outside.found
    assert page.count("<svg") == 1
    assert "the offline twin of x" in page
    assert "CPU &lt;slots&gt;" in page
    assert "DeepLabV3-ResNet101, VOC 2012, 20 epochs" in page
    assert "None of it was measured here" in page
    assert (tmp_path / "strategies.png").read_bytes().startswith(b"\x89PNG")


def test_published_figures_of_the_model_are_in_the_picture(tmp_path: Path) -> None:
    assert "published: ddp on V100" in report(0.6, tmp_path)["strategies.svg"]


@pytest.mark.parametrize(("seconds", "flagged"), [(0.6, False), (0.4, True)])
def test_more_than_linear_is_flagged_in_table_picture_and_page_with_the_reason(
    seconds: float, flagged: bool, tmp_path: Path
) -> None:
    files = report(seconds, tmp_path)
    (_, row) = csv.DictReader(files["strategies.csv"].splitlines())
    assert bool(row["remark"]) == flagged
    drawn = files["strategies.svg"]
    assert ("Red rings: efficiency above 100 %" in drawn) == flagged
    assert ("ddp: 125%" in drawn) == flagged
    page = files["strategies.html"]
    ours = page[: page.index("Published by others")]
    assert ('<tr class="flagged">' in ours) == flagged
    assert ('<p class="warning">' in ours) == flagged
    assert (ours.count(table.INCREDIBLE) >= 2) == flagged
