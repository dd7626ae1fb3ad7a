"""A server of Prio3: it checks each report once with the others, adds what was valid, and puts its whole noise into its sum.

Guarantee: ε for each person's value, towards everyone who sees the sum, and towards the servers, as long as one of them
follows the protocol and tells the others nothing else. Neighbours: one report has another valid value; that a person sent one
is public. *Proof.* The shares of an honest server are uniform given the sum (`reports.py`), so all that others learn of the
values follows from the sum of all reports and the honest server's noise. A valid value moves the numbers of the sum by at most
`circuit.changes` in L1, an invalid one is not counted; the discrete Laplace law of scale changes/ε does the rest, and the
other servers' noises are independent of the values. ∎ All of them add the same reports, once each: a nonce that came before is
refused, and so is a share that came before under another nonce (who relays sealed shares could send one again: its value would be
counted twice, and two answers about one share give it away); servers open a sum only where their lists of counted reports are
equal. Else the difference of two sums could be one person's value with noise of its own. Each step is taken by one thread at a
time, so that noise is drawn once.

A person with two reports has twice the ε: who may send is for those who hand out addresses. All servers' noise is in the sum,
so the variance is that of one noise times their number.
"""

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteLaplace, Random, SummedNoise
from cloister.privacy import Exact, PureDP
from cloister.session.releases.uncertainty import Term, half_width
from cloister.together.messages import RoundRefused
from cloister.together.prio3.reports import KEY_BYTES, Checked, Prio3, Report


@dataclass(frozen=True, kw_only=True)
class PrioSum:
    """A sum that was opened: noisy numbers, how many reports are in it, and the noise that is."""

    counts: npt.NDArray[np.int64]
    reports: int
    noise: SummedNoise
    guarantee: PureDP

    def margin(self, confidence: float = 0.95) -> float:
        """Half the width of the interval of each number by itself.

        >>> PrioSum(
        ...     counts=np.array([7]), reports=9, noise=SummedNoise(parts=[(DiscreteLaplace(scale=2), 2)]), guarantee=PureDP("0.5")
        ... ).margin()
        8.0
        """
        return _half_width(self.noise, confidence)


class PrioServer:
    """One of the servers. It holds the key that all servers share and clients don't know, and what it was sent.

    Parameters
    ----------
    prio3: what is added up.
    place: which server this is, from 0 on.
    key: 32 random bytes, the same at all servers.
    epsilon: what the sum may say something about one report.

    >>> from cloister.together.prio3.circuits import Count
    >>> prio3, random = Prio3(Count(), context=b"smokers"), Random()
    >>> key = random.bytes(KEY_BYTES)
    >>> servers = [PrioServer(prio3, place, key, epsilon=100) for place in range(2)]
    >>> for value in (1, 0, 1):
    ...     report = prio3.report(value)
    ...     said = [server.check(report) for server in servers]
    ...     for server in servers:
    ...         server.count(report.nonce, said)
    >>> lists = [server.close() for server in servers]
    >>> opened(prio3, [server.share(lists) for server in servers], reports=3, epsilon=100).counts
    array([2])
    """

    def __init__(self, prio3: Prio3, place: int, key: bytes, *, epsilon: Exact, random: Random | None = None) -> None:
        if type(place) is not int or not 0 <= place < prio3.servers:
            raise InvalidParameter(f"place={place!r} is invalid", why=f"there are {prio3.servers} servers", instead="place=0")
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise InvalidParameter("key= is invalid", why=f"it is {KEY_BYTES} bytes", instead=f"key=Random().bytes({KEY_BYTES})")
        self.prio3, self.place, self._key, self._random = prio3, place, key, random
        self._epsilon = _law(prio3, epsilon).guarantee.epsilon  # refused here, before a report is taken
        self._waiting: dict[bytes, Checked] = {}
        self._seen: set[bytes] = set()
        """Nonces, and digests of shares."""
        self._lock = threading.RLock()
        self._counted: set[bytes] = set()
        self._total = [0] * len(prio3.circuit.decode([0] * prio3.circuit.length))
        self._closed, self._share = False, b""

    def check(self, report: Report) -> bytes:
        """What this server tells the others of a report; of a `Report` it reads the public part and its own share."""
        with self._lock:
            self._still_open()
            if len(report.shares) != self.prio3.servers:
                raise _refused(f"there are {self.prio3.servers} servers")
            share = report.shares[self.place]
            came = {report.nonce, hashlib.sha256(b"share" + share).digest()}
            if came & self._seen:
                raise _refused("this report came before")
            kept, said = self.prio3.check(self._key, self.place, report.nonce, report.public, share)
            self._seen |= came
            self._waiting[report.nonce] = kept
            return said

    def count(self, nonce: bytes, said: Sequence[bytes]) -> None:
        """Add a report, from what all servers said of it; one that is invalid is let go for good."""
        with self._lock:
            self._still_open()
            kept = self._waiting.pop(nonce, None)
            if kept is None:
                raise _refused("no report waits under this nonce")
            share = self.prio3.counted(kept, self.prio3.decided(said))
            self._total = self.prio3.circuit.field.add(self._total, share)
            self._counted.add(nonce)

    def close(self) -> bytes:
        """Take no more reports. The digest of those that were counted, for the other servers."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            return self._list

    @cached_property
    def _list(self) -> bytes:
        return hashlib.sha256(b"".join(sorted(self._counted))).digest()

    def share(self, lists: Sequence[bytes]) -> bytes:
        """This server's share of the sum, with its noise in it: the same bytes each time. `lists` is what `close` gave."""
        if not self._closed:
            raise _refused("reports are still taken", "server.close()")
        if len(lists) != self.prio3.servers or any(each != self._list for each in lists):
            raise _refused("the servers counted different reports", "the same reports at each server")
        with self._lock:
            if not self._share:
                self._share = noisy_share(self.prio3, self._epsilon, self._total, self._random)
            return self._share

    def _still_open(self) -> None:
        if self._closed:
            raise _refused("the sum is closed", "another context")


def noisy_share(prio3: Prio3, epsilon: Exact, total: Sequence[int], random: Random | None = None) -> bytes:
    """A server's share of the sum with its whole noise, drawn at each call: keep it, since two of one total tell more."""
    noise, field = _law(prio3, epsilon).sample(len(total), random=random), prio3.circuit.field
    return field.encode(field.add(total, [int(each) % field.modulus for each in noise]))


def opened(prio3: Prio3, shares: Sequence[bytes], *, reports: int, epsilon: Exact) -> PrioSum:
    """The sum, from the shares of all servers. Shares that are not of one sum add up to a number anywhere in the field: what so
    many reports and the noise do not reach, but with probability 1e-12 a number, is refused."""
    field, law = prio3.circuit.field, _law(prio3, epsilon)
    length = field.size * len(prio3.circuit.decode([0] * prio3.circuit.length))
    if [len(each) if isinstance(each, bytes) else 0 for each in shares] != [length] * prio3.servers:
        raise _refused(f"a share of {length} bytes of each of {prio3.servers} servers is needed", "server.share(lists)")
    try:
        total = field.decode(shares[0])
        for each in shares[1:]:
            total = field.add(total, field.decode(each))
    except ValueError as error:
        raise _refused(str(error)) from None
    signed = [each - field.modulus if each > field.modulus // 2 else each for each in total]
    noise = _noise(prio3, epsilon)
    wide = _half_width(noise, 1 - 1e-12)
    if any(not -wide <= each <= reports * prio3.circuit.largest + wide for each in signed):
        raise _refused(f"the shares are not those of one sum of {reports} reports", "each server's own share of that sum")
    return PrioSum(counts=np.array(signed), reports=reports, noise=noise, guarantee=law.guarantee)


def margin_of(prio3: Prio3, epsilon: Exact, confidence: float = 0.95) -> float:
    """The margin that each number of an opened sum will have, whatever comes in."""
    return _half_width(_noise(prio3, epsilon), confidence)


def _noise(prio3: Prio3, epsilon: Exact) -> SummedNoise:
    """That of every server."""
    return SummedNoise(parts=[(_law(prio3, epsilon), prio3.servers)])


def _half_width(noise: SummedNoise, confidence: float) -> float:
    return half_width((Term(1.0, noise),), confidence, integer=True)


def _law(prio3: Prio3, epsilon: Exact) -> DiscreteLaplace:
    return DiscreteLaplace.for_epsilon(epsilon, sensitivity=prio3.circuit.changes)


def _refused(why: str, instead: str = "report(value)") -> RoundRefused:
    return RoundRefused("A server of Prio3 refused", why=why, instead=instead)
