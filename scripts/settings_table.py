"""Writes docs/settings.md from the classes that read the variables; `--check` only compares."""

from pathlib import Path

from pydantic_settings import BaseSettings

from scripts import generated
from service import settings as service
from torchyard import settingsfile
from worker import settings as worker

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
PARTS: dict[str, type[BaseSettings]] = {"service": service.ServiceEnvironment, "worker": worker.WorkerEnvironment}


def table(kind: type[BaseSettings]) -> str:
    """A Markdown table of variables, in the order of the class."""
    rows = ["| variable | default | counts after | |", "|---|---|---|---|"]
    for name, field in kind.model_fields.items():
        after = "reload" if settingsfile.is_at_once(kind, name) else "restart"
        shown = default(name, field.default)
        rows.append(f"| `{settingsfile.PREFIX}{name.upper()}` | {shown} | {after} | {field.description} |")
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
    for name, kind in PARTS.items():
        page = generated.between(page, f"{name} settings", table(kind))
    return page


if __name__ == "__main__":
    generated.write_or_check(PAGE, render(PAGE.read_text()), "settings_table")
