"""A new master key: everything that is wrapped by the old one is wrapped again, in one transaction.

The data themselves are not written again, since each data set's version has a key of its own and only that key is wrapped. An
interrupted rotation leaves the old key in force; run again with the old key still in place, it does the whole work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.hub.records.accounts import Person, WebSession
from cloister.hub.records.catalogue import Arrival, DataSetVersion
from cloister.hub.records.jobs import Job
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.sites import SiteMessage
from cloister.hub.records.streams import StreamBatch
from cloister.hub.secrets import StoredSecret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.orm import Session

    from cloister.crypto import Keyring
    from cloister.hub.database import Base
    from cloister.hub.hub import Hub

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
    """Wrap by `new` what the hub's keys have wrapped; how many secrets that were."""
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
