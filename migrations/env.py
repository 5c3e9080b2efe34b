"""Runs migrations over a connection that the caller has attached, or over a plain ``sqlalchemy.url``."""

from alembic import context
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from service.db.models import Base


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection, target_metadata=Base.metadata, render_as_batch=connection.dialect.name == "sqlite"
    )
    with context.begin_transaction():
        context.run_migrations()


def _run_offline(url: str) -> None:
    context.configure(url=url, target_metadata=Base.metadata, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()


def main() -> None:
    """Migrates online, or prints SQL for ``alembic --sql``."""
    attached: Connection | None = context.config.attributes.get("connection")
    if attached is not None:
        _run(attached)
        return
    url = context.config.get_main_option("sqlalchemy.url") or ""
    if context.is_offline_mode():
        _run_offline(url)
        return
    with create_engine(url, poolclass=NullPool).connect() as connection:
        _run(connection)
        connection.commit()


main()
