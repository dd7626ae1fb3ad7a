"""Tables in a PostgreSQL database of somebody's: reached where the hub's settings say, and nowhere else.

Whoever registers a table gives an address, and the hub connects from where it stands, often behind the institution's firewall. So
the address is taken apart, nothing but what is listed here is taken from it, and the connection is made of that anew:

- host and port must be on the list of the settings, as they are written there; the list is empty at first. One host, no socket,
  no file, no service, no option of libpq but those below.
- The name is resolved once. Every address that it has must be one that is allowed: with `host:port@network`, one inside the
  network; else none that is this machine, the link's own (where clouds keep their secrets) or nobody's, unless the list itself
  names an address or localhost. The connection goes to the address that was looked at (`hostaddr`), now and later, so that a
  name which is made to resolve elsewhere afterwards leads nowhere.
- Outside of this machine TLS is required, and by default the server's certificate must be valid for its name.
- What libpq would take from this machine's own files (passwords, client keys, Kerberos tickets) is shut off.

Credentials are kept wrapped; what is shown of a connection has none.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from cloister.errors import AccessDenied, InvalidParameter, MissingDependency
from cloister.hub.storage.keyring import Keyring
from cloister.tables.guard import tried
from cloister.tables.postgres import PostgresSource
from cloister.tables.sources import Source

__all__ = ["Address", "Allowed", "KeptAddress", "connect", "guarded_address", "keep", "reopen"]

IP: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], list[str]]
"""The addresses of a name."""

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
class Allowed:
    """One place that connections may go to.

    >>> Allowed.read("db.example.org:5432@10.1.0.0/16, 127.0.0.1:5433")[1].host
    '127.0.0.1'
    """

    host: str
    port: int
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None

    @classmethod
    def read(cls, text: str) -> list[Allowed]:
        """The list of the settings: host:port or host:port@network, separated by commas."""
        return [cls._one(part.strip()) for part in text.split(",") if part.strip()]

    @classmethod
    def _one(cls, text: str) -> Allowed:
        found = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^\s:@,/\[\]]+):([0-9]{1,5})(?:@([0-9a-fA-F:./]+))?", text)
        network = None
        if found is not None and found[3]:
            network = tried(lambda: ipaddress.ip_network(found[3]), ValueError)
        if found is None or not 0 < int(found[2]) < 65536 or (found[3] and network is None):
            raise InvalidParameter(
                f"sources = {text!r} was refused", why="it is no host:port or host:port@network", instead='"db.example.org:5432"'
            )
        return cls(host=_folded(found[1].strip("[]")), port=int(found[2]), network=network)

    def admits(self, address: IP) -> bool:
        """Whether an address that the host has is one that is meant."""
        if self.network is not None:
            return address in self.network
        own = tried(lambda: ipaddress.ip_address(self.host), ValueError)
        if own is not None:
            return address == own
        if self.host == "localhost":
            return address.is_loopback
        return not (
            address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast or address.is_reserved
        )


@dataclass(frozen=True, kw_only=True)
class Address:
    """An address that passed: what is shown of it, and the text that libpq connects by, which holds the password."""

    shown: str
    conninfo: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class KeptAddress:
    """A connection as the hub's database keeps it: what is shown, and the address, wrapped."""

    id: str
    shown: str
    wrapped: bytes = field(repr=False)


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a name, as this machine resolves it."""
    return list(dict.fromkeys(str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))


def connect(address: str, allowed: Iterable[Allowed], *, authorities: Path | None = None, resolve: Resolve = resolved) -> Source:
    """The table behind an address, where the address is allowed. `authorities` is a file of certificates (PEM) that the servers'
    certificates are checked by, instead of the operating system's.
    """
    return PostgresSource.from_url(guarded_address(address, allowed, authorities=authorities, resolve=resolve).conninfo)


def keep(address: str, allowed: Iterable[Allowed], keys: Keyring, number: str, *, resolve: Resolve = resolved) -> KeptAddress:
    """An address that passes now, wrapped under the id of what it belongs to."""
    passed = guarded_address(address, allowed, resolve=resolve)
    return KeptAddress(id=number, shown=passed.shown, wrapped=keys.wrap(address.encode(), f"connection {number}"))


def reopen(
    kept: KeptAddress,
    allowed: Iterable[Allowed],
    keys: Keyring,
    *,
    authorities: Path | None = None,
    resolve: Resolve = resolved,
) -> Source:
    """The table behind a kept address. It is checked again: the list may have changed since."""
    address = keys.unwrap(kept.wrapped, f"connection {kept.id}").decode()
    return connect(address, allowed, authorities=authorities, resolve=resolve)


def guarded_address(
    address: str, allowed: Iterable[Allowed], *, authorities: Path | None = None, resolve: Resolve = resolved
) -> Address:
    """Takes an address apart, checks each part, and puts it together anew. Connects to nothing; asks for the name once."""
    server, separator, table = address.rpartition("::")
    given = _parts(server)
    if not separator or given is None or not table:
        raise _refused("it is no postgresql:// address of a table")
    for name in given:
        if name not in _TAKEN:
            raise _refused(f"{name}= is not taken from an address")
    host, port = _place(given)
    places = [each for each in allowed if (each.host, each.port) == (host, port)]
    if not places:
        raise AccessDenied(
            "The connection was refused",
            why=f"{host}:{port} is not among the databases that the hub's administrator allows",
            instead=f'ask the administrator for sources = "{host}:{port}" in the hub\'s settings',
        )
    found = _address(host, port, places, resolve)
    database, user = given.get("dbname", ""), given.get("user", "")
    if not re.fullmatch(r"[^=:/@\0]+", database) or not user:
        raise _refused("it names no database, or no user")
    parts = {"host": host, "port": str(port), "hostaddr": str(found), "dbname": database, "user": user}
    if given.get("password"):
        parts["password"] = given["password"]
    parts |= _SHUT | _tls(given.get("sslmode"), local=found.is_loopback, authorities=authorities)
    written = f"[{host}]" if ":" in host else host
    return Address(shown=f"postgresql://{written}:{port}/{database}::{table}", conninfo=f"{_conninfo(parts)}::{table}")


def _parts(server: str) -> dict[str, str] | None:
    """What libpq reads in an address; None where it is none, or not in the form of a URL."""
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingDependency(
            "PostgreSQL was refused", why="psycopg is not installed", instead='pip install "cloister[postgres]"'
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
        raise _refused("its host is no name and no address, or its port no number")
    return _folded(host), int(port)


def _address(host: str, port: int, places: list[Allowed], resolve: Resolve) -> IP:
    texts = tried(lambda: resolve(host, port), OSError, UnicodeError)
    if not texts:
        raise _refused(f"the name {host} has no address", "a name that the hub's machine can resolve")
    found = [_unmapped(text) for text in texts]
    for address in found:
        if address is None or not any(place.admits(address) for place in places):
            raise AccessDenied(
                "The connection was refused",
                why=f"{host} resolves to an address that it is not allowed to have",
                instead=f'if it is right, the administrator writes sources = "{host}:{port}@network"',
            )
    assert found[0] is not None
    return found[0]


def _unmapped(text: str) -> IP | None:
    """The address, None where it is none; an IPv4 address inside an IPv6 one is itself."""
    address = tried(lambda: ipaddress.ip_address(text), ValueError)
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or address.sixtofour or address
    return address


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


def _folded(host: str) -> str:
    return host.casefold().rstrip(".")


def _refused(why: str, instead: str = _EXAMPLE) -> InvalidParameter:
    return InvalidParameter("The connection was refused", why=why, instead=instead)
