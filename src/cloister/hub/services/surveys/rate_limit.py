"""A brake on floods: how many reports to one open survey are taken from one network in an hour.

Each network has so many reports, and gets used-up ones back evenly over an hour; a whole class behind one address still gets in.
What is counted lives in this process's memory alone, under names made with a key that dies with the process, and is forgotten as
soon as it is full again: no address is kept, and nothing tells later which network answered.

What it can't do: many networks together (a botnet, a mobile carrier) send as much as they like; several processes of a hub each
count for themselves, and a restart counts anew. Whoever needs to count people asks by invitation, where nothing of this applies.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import threading
from datetime import datetime
from typing import TYPE_CHECKING

from cloister.hub.ids import new_id
from cloister.hub.problems import TooMany

if TYPE_CHECKING:
    from cloister.hub.hub import Hub

_PART = "survey brake"
_HOUR = 3600.0
_MOST = 100_000
"""So many networks are counted at once; beyond, those that sent least recently are forgotten."""


class RateLimit:
    """What networks have used up.

    >>> brake = RateLimit(2)
    >>> noon = datetime(2026, 1, 1, 12)
    >>> [brake.wait("survey", "192.0.2.7", noon) for _ in range(3)]
    [0, 0, 1800]
    >>> brake.wait("survey", "192.0.2.8", noon), brake.wait("another", "192.0.2.7", noon)
    (0, 0)
    """

    def __init__(self, hourly: int) -> None:
        self._hourly = hourly
        self._key = new_id().encode()
        self._used: dict[bytes, tuple[float, datetime]] = {}
        self._lock = threading.Lock()

    def wait(self, survey: str, address: str, now: datetime) -> int:
        """Count a report; or the seconds until one may come again."""
        name = hashlib.blake2b(f"{survey} {_network(address)}".encode(), key=self._key, digest_size=16).digest()
        with self._lock:
            used, last = self._used.pop(name, (0.0, now))
            passed = max(0.0, (now - last).total_seconds())  # a clock that was put back makes nobody wait for longer
            used = max(0.0, used - self._hourly * passed / _HOUR)
            full = used > self._hourly - 1
            self._used[name] = (used if full else used + 1, now)  # the last one of the dictionary
            if len(self._used) > _MOST:
                self._forget(now)
        return math.ceil((used - self._hourly + 1) * _HOUR / self._hourly) if full else 0

    def _forget(self, now: datetime) -> None:
        """Those that have everything back; and if need be the first half."""
        hour = self._hourly / _HOUR
        self._used = {name: (used, at) for name, (used, at) in self._used.items() if used > hour * (now - at).total_seconds()}
        for name in list(self._used)[: len(self._used) - _MOST // 2 if len(self._used) > _MOST else 0]:
            del self._used[name]


def check_rate_limit(hub: Hub, survey: str, address: str) -> None:
    """Refuse a report whose network has sent too many; nothing where the hub sets no limit, or a report comes from no network."""
    hourly = hub.settings.survey_hourly
    if hourly < 1 or not address:
        return
    brake: RateLimit = hub.parts.setdefault(_PART, RateLimit(hourly))
    seconds = brake.wait(survey, address, hub.now())
    if seconds:
        raise TooMany(
            "The report has to wait",
            why="many reports to this survey came from your network within the hour",
            instead=f"send it again in {seconds} seconds",
            after=seconds,
        )


def _network(address: str) -> str:
    """The address itself, or its /64 where one customer has so many; ::ffff:192.0.2.7 is 192.0.2.7.

    >>> _network("2001:db8::1") == _network("2001:db8::2"), _network("::ffff:192.0.2.7"), _network("?")
    (True, '192.0.2.7/32', 'unknown')
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    known = (known.ipv4_mapped or known) if isinstance(known, ipaddress.IPv6Address) else known
    return str(ipaddress.ip_network((known, 32 if known.version == 4 else 64), strict=False))
