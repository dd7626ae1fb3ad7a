"""Tables in somebody's database, PostgreSQL or Spark: reached where the hub's settings say, and nowhere else.

Whoever registers a table gives an address, and the hub connects from where it stands, often behind the institution's firewall. So
the address is taken apart, where it leads is looked at (`allowed.py`), nothing but what these list is taken from it, and the
connection is made of that again.

Credentials are kept wrapped; what is shown of a connection has none.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloister.crypto import Keyring
from cloister.errors import InvalidParameter
from cloister.hub.storage.allowed import Allowed, Resolve, folded, looked_at, resolved
from cloister.lazily import needing
from cloister.tables.engines.guard import tried
from cloister.tables.engines.postgres import PostgresSource
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


_POSTGRES = '"postgresql://user:password@db.example.org:5432/database::schema.table"'
_POSTGRES_TAKEN = ("host", "port", "dbname", "user", "password", "sslmode")
_MODES = ("require", "verify-ca", "verify-full")
_SHUT = {
    "passfile": "/dev/null/none",
    "sslcertmode": "disable",
    "gssencmode": "disable",
    "gssdelegation": "0",
    "load_balance_hosts": "disable",
    "target_session_attrs": "any",
    "options": "",
}
_SPARK_TAKEN = ("token", "user_id", "use_ssl")


@dataclass(frozen=True, kw_only=True)
class PostgresAddress:
    """An address that passed: what is shown of it, and the text that libpq connects by, which holds the password.

    Addresses of PostgreSQL are taken apart, and put together again from what is listed here and nothing else: one host, no
    socket, no file, no service, no option of libpq but those below. Outside of this machine TLS is required, and by default the
    server's certificate must be valid for its name. What libpq would take from this machine's own files (passwords, client
    keys, Kerberos tickets) is shut off."""

    shown: str
    conninfo: str = field(repr=False)

    def open(self, part: str = "") -> Source:
        """The table."""
        return PostgresSource.from_url(self.conninfo, part)


def guarded_postgres(address: str, allowed: Iterable[Allowed], *, authorities: Path | None, resolve: Resolve) -> PostgresAddress:
    """The address, where it may be connected to. Connects to nothing; asks for the name once."""
    server, separator, table = address.rpartition("::")
    given = _parts(server)
    if not separator or given is None or not table:
        raise _refused("it is not a postgresql:// or sc:// address of a table", _POSTGRES)
    for name in given:
        if name not in _POSTGRES_TAKEN:
            raise _refused(f"{name}= is not taken from an address", _POSTGRES)
    host, port = _place(given)
    found = looked_at(host, port, allowed, resolve)
    database, user = given.get("dbname", ""), given.get("user", "")
    if not re.fullmatch(r"[^=:/@\0]+", database) or not user:
        raise _refused("it names no database, or no user", _POSTGRES)
    parts = {"host": host, "port": str(port), "hostaddr": str(found), "dbname": database, "user": user}
    if given.get("password"):
        parts["password"] = given["password"]
    parts |= _SHUT | _tls(given.get("sslmode"), local=found.is_loopback, authorities=authorities)
    written = f"[{host}]" if ":" in host else host
    return PostgresAddress(shown=f"postgresql://{written}:{port}/{database}::{table}", conninfo=f"{_conninfo(parts)}::{table}")


def _parts(server: str) -> dict[str, str] | None:
    """What libpq reads in an address; None where it is none, or not in the form of a URL."""
    with needing("PostgreSQL is not available", "psycopg is not installed", "postgres"):
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    if not server.startswith(("postgresql://", "postgres://")) or "\0" in server:
        return None
    found: dict[str, Any] | None = tried(lambda: conninfo_to_dict(server), Error, UnicodeError)
    return None if found is None else {name: str(value) for name, value in found.items()}


def _place(given: dict[str, str]) -> tuple[str, int]:
    """One host and one port, written as the settings write them."""
    host, port = given.get("host", ""), given.get("port", "5432")
    if not host or host.startswith(("/", "@", "\\")):
        raise _refused("it names no host: sockets of the hub's machine are not open to it", _POSTGRES)
    if "," in host or "," in port:
        raise _refused("it names several hosts", _POSTGRES)
    if not re.fullmatch(r"[A-Za-z0-9.:_-]+", host) or not re.fullmatch(r"[0-9]{1,5}", port):
        raise _refused("its host is not a name or an address, or its port is not a number", _POSTGRES)
    return folded(host), int(port)


def _tls(asked: str | None, *, local: bool, authorities: Path | None) -> dict[str, str]:
    if asked is not None and asked not in _MODES and not local:
        raise _refused("TLS is required outside of the hub's own machine", "sslmode=verify-full, or nothing, which means it")
    if local and asked is None:
        return {"sslmode": "prefer"}
    mode = asked or "verify-full"
    if mode not in ("verify-ca", "verify-full"):
        return {"sslmode": mode}
    if authorities is not None:
        return {"sslmode": mode, "sslrootcert": str(authorities)}
    return {"sslmode": "verify-full", "sslrootcert": "system"}


def _conninfo(parts: dict[str, str]) -> str:
    """The text for libpq, without what an older libpq does not know."""
    from psycopg.conninfo import make_conninfo
    from psycopg.pq import Conninfo

    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    return str(make_conninfo("", **{name: value for name, value in parts.items() if name in known}))


@dataclass(frozen=True, kw_only=True)
class SparkAddress:
    """An address that passed: where it leads, and which table is meant there.

    Addresses of Spark Connect: `sc://host:port/;token=…::catalog.schema.table`.

    Spark has no users of its own: who reaches a server reads what it holds. The hub reaches more than its people do, so a token
    is required, and the server must be one that asks for it (`SparkPlace.must_ask`): else any owner could read, through the
    hub, every table of a server that was put on the list for another. Of parameters none but the token and the user's name is
    taken. Outside of this machine TLS is required, and the certificate must be valid for the host's name."""

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
        if name not in _SPARK_TAKEN:
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
