"""Writes docs/settings.md from the classes that read the variables; `--check` only compares."""

from pathlib import Path

from pydantic_settings import BaseSettings

from scripts import generated
from service import settings as service
from torchyard import settingsfile
from worker import settings as worker

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
PARTS: dict[str, tuple[type[BaseSettings], frozenset[str]]] = {
    "service": (service.ServiceEnvironment, service.RELOADED),
    "worker": (worker.WorkerEnvironment, worker.RELOADED),
}


def table(kind: type[BaseSettings], reloaded: frozenset[str]) -> str:
    """A Markdown table of variables, in the order of the class; `reloaded` count at once when they are read anew."""
    rows = ["| variable | default | at once | |", "|---|---|---|---|"]
    for name, field in kind.model_fields.items():
        at_once = "yes" if reloaded & {name, f"{name}_s"} else ""
        shown = default(name, field.default)
        rows.append(f"| `{settingsfile.PREFIX}{name.upper()}` | {shown} | {at_once} | {field.description} |")
    return "\n".join(rows)


def default(name: str, value: object) -> str:
    """A default as a person would write it."""
    if value is None or value == ():
        return ""
    if name in {"disk_floor", "output_limit"} and isinstance(value, int):
        return f"`{value // 2**30}GiB`"
    return f"`{int(value)}`" if isinstance(value, bool | float) else f"`{value}`"


def render(page: str) -> str:
    """The page with its tables made anew."""
    for name, (kind, reloaded) in PARTS.items():
        page = generated.between(page, f"{name} settings", table(kind, reloaded))
    return page


if __name__ == "__main__":
    generated.write_or_check(PAGE, render(PAGE.read_text()), "settings_table")
