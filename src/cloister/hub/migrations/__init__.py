"""How a database of an older hub is brought up to date: numbered steps (`versions/`), each run once, by Alembic.

Steps only add: a hub of the version before must still run on the new tables, so that processes can be replaced one by one.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from cloister.hub.database import Database

__all__ = ["bring_up_to_date", "configuration"]

_LOCK = 0x636C6F6973746572


def bring_up_to_date(database: Database) -> None:
    """Run the steps that this database has not seen; several processes that start at once do it one after another.

    >>> database = Database("sqlite://")
    >>> bring_up_to_date(database)
    >>> with database.reading() as db:
    ...     db.execute(text("SELECT COUNT(*) FROM person")).scalar()
    0
    """
    with database.engine.connect() as connection:
        if database.grown_up:
            connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
            connection.commit()
        else:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            command.upgrade(configuration(connection), "head")
            connection.commit()
        finally:
            if database.grown_up:
                connection.rollback()
                connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": _LOCK})
                connection.commit()


def configuration(connection: Connection) -> Config:
    """Alembic's configuration, on a connection of ours."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config
