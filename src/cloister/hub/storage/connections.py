"""Tables in somebody's database, PostgreSQL or Spark: reached where the hub's settings say, and nowhere else.

Whoever registers a table gives an address, and the hub connects from where it stands, often behind the institution's firewall. So
the address is taken apart (`postgres_address.py`, `spark_address.py`), where it leads is looked at (`allowed.py`), nothing but
what these list is taken from it, and the connection is made of that again.

Credentials are kept wrapped; what is shown of a connection has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cloister.crypto import Keyring
from cloister.hub.storage.allowed import Allowed, Resolve, resolved
from cloister.hub.storage.postgres_address import PostgresAddress, guarded_postgres
from cloister.hub.storage.spark_address import SparkAddress, guarded_spark
from cloister.tables.engines.spark_connect import SparkConnectSource
from cloister.tables.sourcing.sources import Source


@dataclass(frozen=True, kw_only=True)
class KeptAddress:
    """A connection as the hub's database keeps it: what is shown, and the address, wrapped."""

    id: str
    shown: str
    wrapped: bytes = field(repr=False)


def connect(
    address: str,
    allowed: Iterable[Allowed],
    *,
    authorities: Path | None = None,
    resolve: Resolve = resolved,
    part: str = "",
) -> Source:
    """The table behind an address, where the address is allowed. `authorities` is a file of certificates (PEM) that the servers'
    certificates are checked by, instead of the operating system's. `part` says which of its rows are meant, where several
    populations share them (`Source.part`).
    """
    return guarded_address(address, allowed, authorities=authorities, resolve=resolve).open(part)


def keep(
    address: str,
    allowed: Iterable[Allowed],
    keys: Keyring,
    number: str,
    *,
    authorities: Path | None = None,
    resolve: Resolve = resolved,
) -> KeptAddress:
    """An address that passes now, wrapped under the id of what it belongs to."""
    passed = guarded_address(address, allowed, authorities=authorities, resolve=resolve)
    return KeptAddress(id=number, shown=passed.shown, wrapped=keys.wrap(address.encode(), f"connection {number}"))


def reopen(
    kept: KeptAddress,
    allowed: Iterable[Allowed],
    keys: Keyring,
    *,
    authorities: Path | None = None,
    resolve: Resolve = resolved,
    part: str = "",
) -> Source:
    """The table behind a kept address. It is checked again: the list may have changed since."""
    address = keys.unwrap(kept.wrapped, f"connection {kept.id}").decode()
    return connect(address, allowed, authorities=authorities, resolve=resolve, part=part)


def shown_of(kept: KeptAddress, source: Source) -> str:
    """What is shown of a connection that was opened: the table by its whole name, where the other side has told it."""
    return source.shown if isinstance(source, SparkConnectSource) else kept.shown


def guarded_address(
    address: str, allowed: Iterable[Allowed], *, authorities: Path | None = None, resolve: Resolve = resolved
) -> PostgresAddress | SparkAddress:
    """Takes an address apart, checks each part, and puts it together again. Connects to nothing; asks for the name once."""
    guarded = guarded_spark if address.startswith("sc://") else guarded_postgres
    return guarded(address, allowed, authorities=authorities, resolve=resolve)
