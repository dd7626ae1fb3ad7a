"""Addresses of PostgreSQL: taken apart, and put together again from what is listed here and nothing else.

One host, no socket, no file, no service, no option of libpq but those below. Outside of this machine TLS is required, and by
default the server's certificate must be valid for its name. What libpq would take from this machine's own files (passwords,
client keys, Kerberos tickets) is shut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloister.errors import InvalidParameter, MissingDependency
from cloister.hub.storage.allowed import Allowed, Resolve, folded, looked_at
from cloister.installed import install
from cloister.tables.engines.guard import tried
from cloister.tables.engines.postgres import PostgresSource
from cloister.tables.sourcing.sources import Source

_EXAMPLE = '"postgresql://user:password@db.example.org:5432/database::schema.table"'
_TAKEN = ("host", "port", "dbname", "user", "password", "sslmode")
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


@dataclass(frozen=True, kw_only=True)
class PostgresAddress:
    """An address that passed: what is shown of it, and the text that libpq connects by, which holds the password."""

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
        raise _refused("it is not a postgresql:// or sc:// address of a table")
    for name in given:
        if name not in _TAKEN:
            raise _refused(f"{name}= is not taken from an address")
    host, port = _place(given)
    found = looked_at(host, port, allowed, resolve)
    database, user = given.get("dbname", ""), given.get("user", "")
    if not re.fullmatch(r"[^=:/@\0]+", database) or not user:
        raise _refused("it names no database, or no user")
    parts = {"host": host, "port": str(port), "hostaddr": str(found), "dbname": database, "user": user}
    if given.get("password"):
        parts["password"] = given["password"]
    parts |= _SHUT | _tls(given.get("sslmode"), local=found.is_loopback, authorities=authorities)
    written = f"[{host}]" if ":" in host else host
    return PostgresAddress(shown=f"postgresql://{written}:{port}/{database}::{table}", conninfo=f"{_conninfo(parts)}::{table}")


def _parts(server: str) -> dict[str, str] | None:
    """What libpq reads in an address; None where it is none, or not in the form of a URL."""
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingDependency(
            "PostgreSQL is not available", why="psycopg is not installed", instead=install("postgres")
        ) from None
    if not server.startswith(("postgresql://", "postgres://")) or "\0" in server:
        return None
    found: dict[str, Any] | None = tried(lambda: conninfo_to_dict(server), Error, UnicodeError)
    return None if found is None else {name: str(value) for name, value in found.items()}


def _place(given: dict[str, str]) -> tuple[str, int]:
    """One host and one port, written as the settings write them."""
    host, port = given.get("host", ""), given.get("port", "5432")
    if not host or host.startswith(("/", "@", "\\")):
        raise _refused("it names no host: sockets of the hub's machine are not open to it")
    if "," in host or "," in port:
        raise _refused("it names several hosts")
    if not re.fullmatch(r"[A-Za-z0-9.:_-]+", host) or not re.fullmatch(r"[0-9]{1,5}", port):
        raise _refused("its host is not a name or an address, or its port is not a number")
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


def _refused(why: str, instead: str = _EXAMPLE) -> InvalidParameter:
    return InvalidParameter("The connection is invalid", why=why, instead=instead)
