"""Names of projects: which there are."""

from sqlalchemy import Connection, select

from service.db.models import Project
from service.errors import not_found


def exists(tx: Connection, name: str) -> bool:
    """Return whether there is a project of the name."""
    return tx.scalar(select(Project.name).where(Project.name == name)) is not None


def check(tx: Connection, name: str) -> None:
    """Raise ``not-found`` unless there is a project of the name."""
    if not exists(tx, name):
        raise not_found("project", name)
