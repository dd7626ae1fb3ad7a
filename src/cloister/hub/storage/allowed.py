"""Where connections may go to: the list of the settings, and the address that a name has.

- Host and port must be on the list, as they are written there.
- The name is resolved once. Every address that it has must be one that is allowed: with `host:port@network`, one inside the
  network; else one where institutions keep databases: in the internet, or in a private network (RFC 1918, RFC 4193). All else
  is refused unless the list itself names the address, its network or localhost: this machine, the link (where clouds keep their
  secrets), carriers' networks, site-local ones, and what IANA has set aside. An address that holds another one (mapped, NAT64)
  is judged by it; what tunnels (6to4, Teredo) is refused.
- The connection goes to the address that was looked at, now and later, so that a name which is made to resolve elsewhere
  afterwards leads nowhere.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from cloister.errors import AccessDenied, InvalidParameter
from cloister.tables.engines.guard import tried

IP: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], list[str]]
"""The addresses of a name."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ASSIGNED = (ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("fc00::/7"))
_SET_ASIDE = tuple(
    ipaddress.ip_network(each)
    for each in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # carriers' own
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure answers here for its machines
        "169.254.0.0/16",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        "2001::/23",  # Teredo and other protocols
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "3fff::/20",
        "fd00::/16",  # a prefix that nobody has drawn at random: clouds answer here for their machines
        "fd20:ce::/32",
    )
)


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
                f"sources = {text!r} is invalid", why="it is not host:port or host:port@network", instead='"db.example.org:5432"'
            )
        return cls(host=folded(found[1].strip("[]")), port=int(found[2]), network=network)

    def admits(self, address: IP) -> bool:
        """Whether an address that the host has is one that is meant."""
        if self.network is not None:
            return address in self.network
        own = tried(lambda: ipaddress.ip_address(self.host), ValueError)
        if own is not None:
            return address == own
        if self.host == "localhost":
            return address.is_loopback
        return _ordinary(address)


def _ordinary(address: IP) -> bool:
    """Whether a database may be expected there: the registries of IANA (RFC 6890), and where clouds answer for a machine.

    >>> [_ordinary(ipaddress.ip_address(each)) for each in ("10.1.2.3", "9.9.9.9", "100.100.100.200", "fd00:ec2::254")]
    [True, True, False, False]
    """
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SET_ASIDE)
    if address.scope_id is not None:
        return False
    if address in _NAT64:
        held = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return _ordinary(held) and not held.is_private
    return any(address in network for network in _ASSIGNED) and not any(address in network for network in _SET_ASIDE)


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a name, as this machine resolves it."""
    return list(dict.fromkeys(str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))


def looked_at(host: str, port: int, allowed: Iterable[Allowed], resolve: Resolve) -> IP:
    """The address that a connection to this host and port goes to; refused where the list does not have it."""
    places = [each for each in allowed if (each.host, each.port) == (host, port)]
    if not places:
        raise AccessDenied(
            "The connection is not allowed",
            why=f"{host}:{port} is not among the databases that the hub's administrator allows",
            instead=f'ask the administrator for sources = "{host}:{port}" in the hub\'s settings',
        )
    texts = tried(lambda: resolve(host, port), OSError, UnicodeError)
    if not texts:
        raise InvalidParameter(
            "The connection is invalid",
            why=f"the name {host} has no address",
            instead="a name that the hub's machine can resolve",
        )
    found = [_unmapped(text) for text in texts]
    for address in found:
        if address is None or not any(place.admits(address) for place in places):
            raise AccessDenied(
                "The connection is not allowed",
                why=f"{host} resolves to an address that it is not allowed to have",
                instead=f'if it is right, the administrator writes sources = "{host}:{port}@network"',
            )
    assert found[0] is not None
    return found[0]


def _unmapped(text: str) -> IP | None:
    """The address, None where it is none; an IPv4 address inside an IPv6 one is itself."""
    address = tried(lambda: ipaddress.ip_address(text), ValueError)
    if isinstance(address, ipaddress.IPv6Address):
        return address.ipv4_mapped or address
    return address


def folded(host: str) -> str:
    """The name of a host as it is compared.

    >>> folded("DB.example.org.")
    'db.example.org'
    """
    return host.casefold().rstrip(".")
