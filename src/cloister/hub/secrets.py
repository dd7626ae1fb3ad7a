"""Secrets that the hub makes once and keeps wrapped by the master key, so that a new master key changes none of them."""

from __future__ import annotations

from sqlalchemy import String, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, mapped_column

from cloister.crypto import Keyring, new_key
from cloister.hub.database import Base, Database


class StoredSecret(Base):
    """A secret of the hub's own, such as the key that seals the ledger's lines."""

    __tablename__ = "kept_secret"

    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    wrapped: Mapped[bytes]


def has_stored_secrets(database: Database) -> bool:
    """Whether there are any: then the master key that wraps them was made before."""
    with database.reading() as db:
        return db.scalar(select(StoredSecret.name).limit(1)) is not None


def stored_secret(database: Database, keys: Keyring, name: str) -> bytes:
    """The 32 bytes of that name; made when they are first asked for, by whichever process is first."""
    for _ in range(2):
        with database.reading() as db:
            wrapped = db.scalar(select(StoredSecret.wrapped).where(StoredSecret.name == name))
        if wrapped is not None:
            return keys.unwrap(wrapped, f"secret {name}")
        try:
            with database.begin() as db:
                db.add(StoredSecret(name=name, wrapped=keys.wrap(new_key(), f"secret {name}")))
                db.flush()
        except IntegrityError:
            continue  # another process was first: its secret is read in the next turn
    return stored_secret(database, keys, name)
