"""The hub's master key: where it lies, the keyring that it opens, and what is wrapped by it: secrets that the hub makes once, so
that a new master key changes none of them. A new one wraps everything again (`rotate`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import String, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Mapped, Session, mapped_column

from cloister.crypto import Keyring, make_key_file, new_key
from cloister.errors import InvalidParameter
from cloister.hub.database import Base, Database
from cloister.hub.records.accounts import Person, WebSession
from cloister.hub.records.catalogue import Arrival, DataSetVersion
from cloister.hub.records.jobs import Job
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.sites import SiteMessage
from cloister.hub.records.streams import StreamBatch

if TYPE_CHECKING:
    from cloister.hub.hub import Hub


def hub_keyring(master: bytes) -> Keyring:
    """The keys of a hub that has this master key. All that hubs keep wrapped is bound to the name, so it never changes.

    >>> hub_keyring(bytes(32)).derive("cookies").hex()[:8]
    'ec598bc1'
    """
    return Keyring(master, domain="cloister hub")


def master_key(text: str | None, path: Path, *, make: bool) -> bytes:
    """The master key from the environment's text (base64), or from its file; with `make`, a missing file is made, readable by its
    owner alone.
    """
    if text is not None:
        return _decoded(text, "the environment")
    if make and not path.exists():
        make_key_file(path, base64.b64encode(new_key()).decode() + "\n")
    if path.exists():
        return _decoded(path.read_bytes(), path.name)
    raise InvalidParameter(
        "The hub was not opened",
        why=f"its master key {path.name} is missing",
        instead="put the key file back from your key backup",
    )


def _decoded(text: str | bytes, where: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParameter(
            f"The master key of {where} is invalid", why="it is not base64", instead="32 random bytes in base64"
        ) from None


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


ROTATED = frozenset(
    {
        *("kept_secret.wrapped", "person.totp", "web_session.setup"),
        *("data_set_version.key", "data_set_version.address", "arrival.key", "arrival.wrapped"),
        *("anonymizing_trial.wrapped", "job.secret", "stream_batch.body"),
        *("site_message.message", "site_message.answer"),
    }
)
"""Every column that holds something wrapped by the master key, as table.column."""


def rotate(hub: Hub, new: Keyring) -> int:
    """Wrap by `new` what the hub's keys have wrapped, in one transaction; how many secrets that were.

    The data themselves are not written again, since each data set's version has a key of its own and only that key is wrapped. An
    interrupted rotation leaves the old key in force; run again with the old key still in place, it does the whole work.
    """
    old, counted = hub.keys, 0
    with hub.database.begin() as db:
        for row, column, about in list(_wrapped(db)):
            setattr(row, column, new.wrap(old.unwrap(getattr(row, column), about), about))
            counted += 1
    return counted


def _wrapped(db: Session) -> Iterator[tuple[Base, str, str]]:
    """Row, column, and what the secret in it is about."""
    for secret in db.scalars(select(StoredSecret)):
        yield secret, "wrapped", f"secret {secret.name}"
    for person in db.scalars(select(Person).where(Person.totp.is_not(None))):
        yield person, "totp", f"second factor {person.id}"
    for session in db.scalars(select(WebSession).where(WebSession.setup.is_not(None))):
        yield session, "setup", f"second factor setup {session.digest}"
    for version in db.scalars(select(DataSetVersion)):
        if version.key is not None:
            yield version, "key", version.about
        if version.address is not None:
            yield version, "address", f"connection {version.place}"
    for batch in db.scalars(select(StreamBatch)):
        yield batch, "body", f"stream batch {batch.id}"
    for trial in db.scalars(select(OwnerView)):
        yield trial, "wrapped", trial.about
    for job in db.scalars(select(Job).where(Job.secret.is_not(None))):
        yield job, "secret", job.about
    for message in db.scalars(select(SiteMessage)):
        yield message, "message", message.about
        if message.answer is not None:
            yield message, "answer", f"answer to {message.about}"
    for arrival in db.scalars(select(Arrival)):
        what = "connection" if arrival.kind == "connection" else "upload"
        yield arrival, "wrapped", f"{what} {arrival.id}"
        if arrival.key is not None:
            yield arrival, "key", arrival.about
