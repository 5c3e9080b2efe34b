"""The domain raises its own errors; HTTP is a matter of `api`, and of the modules that put the server together."""

import ast
from pathlib import Path

import pytest

SERVICE = Path(__file__).parents[3] / "service"
#: The application, and the middleware that counts requests.
HTTP = {*(SERVICE / name for name in ("__main__.py", "app.py", "infra/observability.py"))}
MODULES = sorted(
    path
    for path in SERVICE.rglob("*.py")
    if path not in HTTP and path.relative_to(SERVICE).parts[0] not in {"api", "dashboard"}
)


def imported(module: Path) -> set[str]:
    """Top-level packages that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SERVICE)))
def test_the_domain_knows_no_http(module: Path) -> None:
    assert imported(module).isdisjoint({"fastapi", "starlette"})


def test_the_application_is_seen_to_import_it() -> None:
    assert "fastapi" in imported(SERVICE / "app.py")
