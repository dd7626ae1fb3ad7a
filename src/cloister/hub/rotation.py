"""A new master key: everything that is wrapped by the old one is wrapped again, in one transaction.

The data themselves are not written anew, since each data set's version has a key of its own and only that key is wrapped. An
interrupted rotation leaves the old key in force; run again with the old key still in place, it does the whole work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.hub.kept import KeptSecret
from cloister.hub.services.accounts.models import Person
from cloister.hub.services.catalogue.models import DataSetVersion

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.keys import Keys

__all__ = ["rotate"]


def rotate(hub: Hub, new: Keys) -> int:
    """Wrap by `new` what the hub's keys have wrapped; how many secrets that were."""
    old, counted = hub.keys, 0
    with hub.database.begin() as db:
        for secret in db.scalars(select(KeptSecret)):
            about = f"secret {secret.name}"
            secret.wrapped = new.wrap(old.unwrap(secret.wrapped, about), about)
            counted += 1
        for person in db.scalars(select(Person).where(Person.totp.is_not(None))):
            about = f"second factor {person.id}"
            assert person.totp is not None
            person.totp = new.wrap(old.unwrap(person.totp, about), about)
            counted += 1
        for version in db.scalars(select(DataSetVersion)):
            for column, about in (("key", f"table {version.file}"), ("address", f"connection {version.id}")):
                wrapped = getattr(version, column)
                if wrapped is not None:
                    setattr(version, column, new.wrap(old.unwrap(wrapped, about), about))
                    counted += 1
    return counted
