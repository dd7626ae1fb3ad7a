"""Tables in somebody's database, PostgreSQL or Spark: reached where the hub's settings say, and nowhere else.

Whoever registers a table gives an address, and the hub connects from where it stands, often behind the institution's firewall. So
the address is taken apart (PostgreSQL: `postgres_address.py`), where it leads is looked at (`allowed.py`), nothing but
what these list is taken from it, and the connection is made of that again.

Credentials are kept wrapped; what is shown of a connection has none.

Addresses of Spark Connect: `sc://host:port/;token=…::catalog.schema.table`.

Spark has no users of its own: who reaches a server reads what it holds. The hub reaches more than its people do, so a token is
required, and the server must be one that asks for it (`SparkPlace.must_ask`): else any owner could read, through the hub, every
table of a server that was put on the list for another. Of parameters none but the token and the user's name is taken. Outside
of this machine TLS is required, and the certificate must be valid for the host's name.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cloister.crypto import Keyring
from cloister.errors import InvalidParameter
from cloister.hub.storage.allowed import Allowed, Resolve, folded, looked_at, resolved
from cloister.hub.storage.postgres_address import PostgresAddress, guarded_postgres
from cloister.tables.engines.guard import tried
from cloister.tables.engines.spark_connect import EXAMPLE, SparkConnectSource, read_address
from cloister.tables.engines.spark_connection import USER, SparkPlace
from cloister.tables.sourcing.sources import Source


@dataclass(frozen=True, kw_only=True)
class KeptAddress:
    """A connection as the hub's database keeps it: what is shown, and the address, wrapped."""

    id: str
    shown: str
    wrapped: bytes = field(repr=False)


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
    """The table behind a kept address. It is checked again: the list may have changed since. `part` says which of its rows are
    meant, where several populations share them (`Source.part`)."""
    address = keys.unwrap(kept.wrapped, f"connection {kept.id}").decode()
    return guarded_address(address, allowed, authorities=authorities, resolve=resolve).open(part)


def shown_of(kept: KeptAddress, source: Source) -> str:
    """What is shown of a connection that was opened: the table by its whole name, where the other side has told it."""
    return source.shown if isinstance(source, SparkConnectSource) else kept.shown


def guarded_address(
    address: str, allowed: Iterable[Allowed], *, authorities: Path | None = None, resolve: Resolve = resolved
) -> PostgresAddress | SparkAddress:
    """Takes an address apart, checks each part, and puts it together again. Connects to nothing; asks for the name once.
    `authorities` is a file of certificates (PEM) that the servers' certificates are checked by, instead of the operating
    system's."""
    guarded = guarded_spark if address.startswith("sc://") else guarded_postgres
    return guarded(address, allowed, authorities=authorities, resolve=resolve)


_TAKEN = ("token", "user_id", "use_ssl")


@dataclass(frozen=True, kw_only=True)
class SparkAddress:
    """An address that passed: where it leads, and which table is meant there."""

    place: SparkPlace
    table: tuple[str, ...]

    @property
    def shown(self) -> str:
        """Without what is secret."""
        return f"{self.place.shown}::{'.'.join(self.table)}"

    def open(self, part: str = "") -> Source:
        """The table."""
        return SparkConnectSource(self.place, self.table, part)


def guarded_spark(address: str, allowed: Iterable[Allowed], *, authorities: Path | None, resolve: Resolve) -> SparkAddress:
    """The address, where it may be connected to. Connects to nothing; asks for the name once."""
    written = read_address(address)
    given = written.parameters
    for name in given:
        if name not in _TAKEN:
            raise _refused(f"{name}= is not taken from an address")
    host = folded(written.host)
    found = looked_at(host, written.port, allowed, resolve)
    if not given.get("token"):
        raise _refused("it holds no token, and without one everyone here could read the tables of that server")
    if not all(value.isascii() and value.isprintable() for value in given.values()):
        raise _refused("it has more than plain letters, digits and signs")
    tls = given.get("use_ssl", "").lower()
    if tls not in ("", "true", "false"):
        raise _refused("use_ssl= is neither true nor false", "use_ssl=true, or nothing, which means it")
    if tls == "false" and not found.is_loopback:
        raise _refused("TLS is required outside of the hub's own machine", "use_ssl=true, or nothing, which means it")
    secure = tls == "true" or not found.is_loopback
    place = SparkPlace(
        host=host,
        port=written.port,
        address=str(found),
        tls=secure,
        authorities=_vouching(authorities) if secure else None,
        token=given["token"],
        user=given.get("user_id") or USER,
        must_ask=True,
    )
    return SparkAddress(place=place, table=written.table)


def _vouching(authorities: Path | None) -> bytes:
    """The certificates (PEM) of a file, or of the operating system."""
    found = system_authorities() if authorities is None else tried(authorities.read_bytes, OSError)
    if not found:
        raise InvalidParameter(
            "The connection is invalid",
            why="no authority for the server's certificate is known",
            instead='the administrator sets source_authorities = "/path/to/file.pem"',
        )
    return found


def system_authorities() -> bytes:
    """Whom the operating system trusts (PEM): gRPC would trust a list of its own instead."""
    paths = ssl.get_default_verify_paths()
    files = [Path(paths.cafile)] if paths.cafile else sorted(Path(paths.capath or "/nowhere").glob("*.pem"))
    return b"\n".join(filter(None, (tried(each.read_bytes, OSError) for each in files)))


def _refused(why: str, instead: str = EXAMPLE) -> InvalidParameter:
    return InvalidParameter("The connection is invalid", why=why, instead=instead)
