"""Who has connected and not yet logged in: so many at once, and who comes now goes before who has long been silent.

Where there is no more room, the network that has the most strangers gives up its oldest. So one address that opens sockets and
says nothing takes room from itself, and however many addresses do so, whoever logs in at once gets through: to be the oldest, a
client must be slower than all that came after it. Networks from which somebody has logged in lately have room of their own.
Whose token is being looked at is given up for nobody.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter, OrderedDict
from dataclasses import dataclass

_MOST_KNOWN = 10_000


@dataclass(eq=False)
class Stranger:
    """One of them, and the task that waits for what it says."""

    network: str
    task: asyncio.Task[None]
    known: bool
    waits: bool = True
    """Whether it is the client's turn."""
    given_up: bool = False


class Strangers:
    """So many of them, in the order in which they came. Used in the event loop alone."""

    def __init__(self, most: int) -> None:
        self._most = {False: most, True: max(1, most // 2)}
        self._here: dict[Stranger, None] = {}
        self._known: OrderedDict[str, None] = OrderedDict()
        self.going: set[Stranger] = set()
        """Those who were given up and whose connection is not yet at its end."""

    def __len__(self) -> int:
        return len(self._here)

    def arrive(self, address: str, task: asyncio.Task[None]) -> Stranger | None:
        """One more, for whom another may have to go; None where there is no room, since all are just being looked at."""
        network = network_of(address)
        new = Stranger(network=network, task=task, known=network in self._known)
        alike = [each for each in self._here if each.known == new.known]
        if len(alike) >= self._most[new.known] and not self._give_up(alike):
            return None
        self._here[new] = None
        return new

    def make_room(self, but: Stranger) -> bool:
        """One of them goes for somebody else, whoever it is; False where all are just being looked at."""
        return self._give_up([each for each in self._here if each is not but])

    def leave(self, who: Stranger, *, logged_in: bool) -> None:
        """Somebody is no stranger any more, or gone."""
        self._here.pop(who, None)
        self.going.discard(who)
        if logged_in:
            self._known[who.network] = None
            self._known.move_to_end(who.network)
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)

    def _give_up(self, among: list[Stranger]) -> bool:
        waiting = [each for each in among if each.waits]
        if not waiting:
            return False
        crowds = Counter(each.network for each in waiting)
        most = max(crowds.values())
        oldest = next(each for each in waiting if crowds[each.network] == most)
        oldest.given_up = True
        del self._here[oldest]
        self.going.add(oldest)
        oldest.task.cancel()
        return True


def network_of(address: str) -> str:
    """What one customer has: an address of IPv4, or the /64 that one of IPv6 is in.

    >>> network_of("192.0.2.7"), network_of("::ffff:192.0.2.7"), network_of("2001:db8::1:2:3:4"), network_of("?")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64', '')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.IPv6Network((int(found), 64), strict=False))
