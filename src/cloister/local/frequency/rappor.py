"""RAPPOR: texts as Bloom bits, a permanent randomisation that is kept for life, and a fresh one on top of it for each report.

Decoding on a list of candidates stands in rappor_decoding.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.estimates import Estimate
from cloister.local.frequency.packed import column_counts, fits
from cloister.local.frequency.rappor_decoding import decode, listed_texts
from cloister.local.protocols.coins import WORD, bit_rows, check_epsilon, heads_above, heads_below, lanes_of, odds_below
from cloister.local.protocols.protocol import Reports, Sketch
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.printable import SPLIT
from cloister.privacy import Exact, PureDP, exact
from cloister.privacy.precision import context, real, up

Words = npt.NDArray[np.uint64]
Permanent = dict[str, Words]

_MOST_BITS, _MOST_HASHES, _MOST_COHORTS = 1 << 16, 8, 1 << 16


class RAPPOR:
    """Reports about texts (home pages, names of programs) that may be sent every day for years.

    A person belongs to one of `cohorts` at random, for good. A text sets up to `hashes` of `bits` Bloom bits, by public hashes
    that differ between cohorts. Each bit is flipped with probability f/2, once: these permanent bits are kept. A report throws a
    coin for each of them: it is 1 with probability q where the permanent bit is 1, p where it is 0.

    Guarantee (Erlingsson, Pihur & Korolova 2014), for any two texts that a person might hold for good:
    ε∞ = 2h·ln((1 − f/2)/(f/2)) for all reports of a lifetime together (`lifetime`); ε₁ = h·ln(q*(1 − p*)/(p*(1 − q*))) for one
    report (`guarantee`), where q* = q(1 − f/2) + p·f/2 and p* = p(1 − f/2) + q·f/2; `after(k)` for k reports. Proof: two texts
    differ in at most 2h Bloom bits, h of which only one of them sets, and h only the other. Permanent bits are independent, each
    at most (1 − f/2)/(f/2) times as likely under one text; all reports are made of them, so they tell no more. Of one bit, k
    reports tell the number of ones j alone. With a = 1 − f/2, b = f/2 its ratio is (aL + b)/(bL + a) with
    L = (q/p)^j·((1 − q)/(1 − p))^(k − j), which grows with L: it is largest for k ones and least for k zeros, and `after` takes
    both. f/2 is rounded up to 2⁻⁶⁴, which lessens ε∞; ε₁ and ε∞ are worked out for the coins that are thrown.

    Not covered: a person who changes from one text to another. Each text has permanent bits of its own, so a collector who
    watches for long sees *that* something changed (and the promise above then holds for each text by itself). Where answers
    change, `LocalMemory` with a fixed number of waves is the honest choice.

    >>> rappor = RAPPOR(f="1/2", p="1/2", q="3/4", bits=64, hashes=2, cohorts=8)
    >>> round(float(rappor.guarantee.epsilon), 3), round(float(rappor.lifetime.epsilon), 3)
    (1.074, 4.394)
    >>> rappor.randomize(["example.org"] * 5).shape
    (5, 2)
    """

    def __init__(
        self,
        *,
        f: Exact = "1/2",
        p: Exact = "1/2",
        q: Exact = "3/4",
        bits: int = 128,
        hashes: int = 2,
        cohorts: int = 64,
        name: str = "",
    ) -> None:
        _check_whole(bits, _MOST_BITS, "bits")
        _check_whole(hashes, _MOST_HASHES, "hashes")
        _check_whole(cohorts, _MOST_COHORTS, "cohorts")
        forget, low, high = exact(f, "f"), exact(p, "p"), exact(q, "q")
        if not 0 < forget < 1:
            raise InvalidParameter(
                f"f={f} is invalid", why="0 < f < 1: at 0 the bits are bare, at 1 they tell nothing", instead="f=0.5"
            )
        if not 0 <= low < high <= 1:
            raise InvalidParameter(f"p={p} q={q} is invalid", why="0 ≤ p < q ≤ 1", instead='p="1/2", q="3/4"')
        self.bits, self.hashes, self.cohorts, self.name = bits, hashes, cohorts, str(name)
        self._flip = heads_above(forget / 2)
        self._low, self._high = heads_above(low), heads_below(high)
        if self._low >= self._high or 2 * self._flip >= WORD:
            raise InvalidParameter("f, p and q are invalid", why="reports would tell nothing", instead='p="1/2", q="3/4"')

    @classmethod
    def for_epsilon(
        cls, once: Exact, forever: Exact, *, bits: int = 128, hashes: int = 2, cohorts: int = 64, name: str = ""
    ) -> RAPPOR:
        """The one that promises `once` for a report and `forever` for a lifetime, with p = 1 − q.

        >>> rappor = RAPPOR.for_epsilon(1, 4)
        >>> str(rappor.guarantee), str(rappor.lifetime)
        ('ε = 1', 'ε = 4')
        """
        one, all_ = check_epsilon(once, "once"), check_epsilon(forever, "forever")
        if one > all_:
            raise InvalidParameter(
                "once= is invalid", why="one report tells no more than all of them", instead="once=1, forever=4"
            )
        _check_whole(hashes, _MOST_HASHES, "hashes")
        flip = Fraction(heads_above(1 / (1 + odds_below(all_ / (2 * hashes)))), WORD)
        odds = odds_below(one / (2 * hashes))
        high = Fraction(heads_below(min(Fraction(1), (odds / (1 + odds) - flip) / (1 - 2 * flip))), WORD)
        return cls(f=2 * flip, p=1 - high, q=high, bits=bits, hashes=hashes, cohorts=cohorts, name=name)

    @property
    def guarantee(self) -> PureDP:
        """ε₁, the promise of one report."""
        return self.after(1)

    @property
    def lifetime(self) -> PureDP:
        """ε∞, the promise of all reports about a text together, however many."""
        number = context()
        b = Fraction(self._flip, WORD)
        return PureDP(up(2 * self.hashes * number.log(real((1 - b) / b))))

    def after(self, reports: int) -> PureDP:
        """The promise of so many reports about one text together: less than so many times ε₁, and never more than ε∞.

        >>> rappor = RAPPOR.for_epsilon("0.5", 3)
        >>> [round(float(rappor.after(days).epsilon), 2) for days in (1, 10, 100, 10_000)]
        [0.5, 2.81, 3.0, 3.0]
        """
        if isinstance(reports, bool) or not isinstance(reports, int) or reports < 1:
            raise InvalidParameter("reports is invalid", why="it counts reports", instead="after(30)")
        number = context()
        p, q, b = Fraction(self._low, WORD), Fraction(self._high, WORD), Fraction(self._flip, WORD)

        def loss(rare: Fraction, often: Fraction) -> Any:
            """ln((aL + b)/(bL + a)) for 1/L = (rare/often)^reports."""
            inverse = real(rare / often) ** reports
            return number.log((real(1 - b) + real(b) * inverse) / (real(b) + real(1 - b) * inverse))

        total = self.hashes * (loss(p, q) + loss(1 - q, 1 - p))
        return PureDP(min(up(total), self.lifetime.epsilon))

    @property
    def probabilities(self) -> tuple[float, float]:
        """q* and p*: how likely a report's bit is 1 where the text sets it, and where not."""
        flip, low, high = self._flip / WORD, self._low / WORD, self._high / WORD
        return high * (1 - flip) + low * flip, low * (1 - flip) + high * flip

    @property
    def key(self) -> str:
        """The same for those whose reports may be counted together."""
        told = [self.bits, self.hashes, self.cohorts, self.name, hex(self._flip), hex(self._low), hex(self._high)]
        return f"rappor-{self.bits}-{hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]}"

    @property
    def report_size(self) -> int:
        """How many bits a report has: Bloom bits and the cohort."""
        return self.bits + (self.cohorts - 1).bit_length()

    def bloom(self, text: str, cohort: int) -> list[int]:
        """The places of the Bloom bits that a text sets in a cohort: public.

        >>> RAPPOR(bits=64).bloom("example.org", 0) == RAPPOR(bits=64).bloom("example.org", 0)
        True
        """
        if not isinstance(text, str):
            raise InvalidParameter("A value is invalid", why="RAPPOR is for texts", instead='"example.org", or str(value)')
        told = json.dumps([self.name, cohort]).encode() + b"\0" + text.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(told, digest_size=8 * self.hashes).digest()
        return sorted({int.from_bytes(digest[8 * i : 8 * i + 8], "little") % self.bits for i in range(self.hashes)})

    def client(self, *, random: Random | None = None) -> Client:
        """One person's side, in a cohort at random."""
        return Client(rappor=self, cohort=int(source(random).below(self.cohorts, 1)[0]), permanent={})

    def randomize(self, texts: Iterable[str], *, random: Random | None = None) -> Words:
        """A first report of each of so many people, who are new each time: for simulations and for surveys that ask once.

        A row is the cohort and ⌈bits/64⌉ words of bits.
        """
        drawn = source(random)
        listed = listed_texts(texts)
        cohorts = drawn.below(self.cohorts, len(listed))
        known = {pair: self._row(*pair) for pair in set(zip(listed, cohorts.tolist(), strict=True))}
        rows = np.array([known[pair] for pair in zip(listed, cohorts.tolist(), strict=True)], dtype=np.uint64)
        bits = self._fresh(self._permanent(rows.reshape(len(listed), lanes_of(self.bits)), drawn), drawn)
        return np.column_stack([cohorts.astype(np.uint64), bits])

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        """Which rows could be reports at all."""
        cohorts = reports[:, 0]
        return np.asarray((cohorts >= 0) & (cohorts < self.cohorts) & fits(reports[:, 1:], self.bits), dtype=np.bool_)

    def aggregate(self, reports: Any) -> Sketch:
        """For each cohort, how many reports there are and how many have each bit. Sketches add up."""
        array = np.asarray(reports)
        counts = np.zeros((self.cohorts, 1 + self.bits), dtype=np.int64)
        if array.size:
            shape = (len(array), 1 + lanes_of(self.bits))
            if array.dtype.kind not in "iu" or array.shape != shape or not bool(self.valid(array).all()):
                raise InvalidParameter(
                    "The reports are invalid",
                    why="some could not come from this RAPPOR",
                    instead="reports[rappor.valid(reports)]",
                )
            order = np.argsort(array[:, 0], kind="stable")
            ordered = array[order]
            ends = np.searchsorted(ordered[:, 0], np.arange(self.cohorts + 1))
            for cohort in np.flatnonzero(np.diff(ends)):
                group = ordered[ends[cohort] : ends[cohort + 1], 1:]
                counts[cohort, 0] = len(group)
                counts[cohort, 1:] = column_counts(group, self.bits)
        return Sketch(key=self.key, n=len(array) if array.size else 0, counts=counts)

    def decode(self, sketch: Sketch, candidates: Iterable[str], *, method: str = "unbiased") -> Estimate:
        """How many hold each candidate; see `cloister.local.frequency.rappor_decoding.decode` for the methods."""
        if not isinstance(sketch, Sketch) or sketch.key != self.key:
            raise InvalidParameter("The sketch is invalid", why="it is of another RAPPOR", instead="rappor.aggregate(reports)")
        return decode(self, sketch, candidates, method=method)

    def _row(self, text: str, cohort: int) -> tuple[int, ...]:
        bits = sum(1 << place for place in self.bloom(text, cohort))
        return tuple(bits >> 64 * lane & WORD - 1 for lane in range(lanes_of(self.bits)))

    def _permanent(self, rows: Words, random: Random) -> Words:
        return rows ^ bit_rows(self._flip, len(rows), self.bits, random)

    def _fresh(self, rows: Words, random: Random) -> Words:
        """Both coins of every bit are drawn, so that the words used up say nothing of the bits."""
        high, low = (bit_rows(heads, len(rows), self.bits, random) for heads in (self._high, self._low))
        return rows & high | ~rows & low

    def __repr__(self) -> str:
        return (
            f"RAPPOR({self.bits} bits, {self.hashes} hashes, {self.cohorts} cohorts, {self.guarantee}; for life {self.lifetime})"
        )


class Client:
    """One person's side of RAPPOR: a cohort, and the permanent bits of each text that was ever reported.

    It holds the texts themselves, so it belongs on the person's own machine; `to_json` is for keeping it there.

    >>> rappor = RAPPOR(bits=64, cohorts=4)
    >>> client = rappor.client()
    >>> client.report("example.org").shape, client.texts
    ((2,), 1)
    >>> again = Client.from_json(rappor, client.to_json())
    >>> again.cohort == client.cohort, again.report("example.org").shape, again.texts
    (True, (2,), 1)
    """

    def __init__(self, *, rappor: RAPPOR, cohort: int, permanent: Permanent) -> None:
        self.rappor, self.cohort, self._kept = rappor, cohort, permanent

    @property
    def texts(self) -> int:
        """Of how many texts permanent bits are kept."""
        return len(self._kept)

    def report(self, text: str, *, random: Random | None = None) -> Words:
        """One report: fresh coins on the permanent bits of the text, which are thrown when it is reported for the first time."""
        drawn, rappor = source(random), self.rappor
        row = np.array([rappor._row(text, self.cohort)], dtype=np.uint64)
        if SPLIT.search(text):  # kept as JSON it is another text, whose permanent bits would be thrown again
            raise InvalidParameter("A value is invalid", why="a character of it is in two halves", instead='"example.org"')
        if text not in self._kept:
            self._kept.setdefault(text, rappor._permanent(row, drawn))  # of two threads, both keep what the first one drew
        return np.concatenate([np.array([self.cohort], dtype=np.uint64), rappor._fresh(self._kept[text], drawn)[0]])

    def to_json(self) -> str:
        """All of it as JSON: private."""
        kept = {text: [hex(word) for word in row[0].tolist()] for text, row in self._kept.items()}
        return json.dumps({"version": 1, "key": self.rappor.key, "cohort": self.cohort, "permanent": kept})

    @classmethod
    def from_json(cls, rappor: RAPPOR, text: str) -> Client:
        """What `to_json` wrote."""
        try:
            read = json.loads(text)
            same = read["version"] == 1 and read["key"] == rappor.key
            cohort = int(read["cohort"])
            kept = {
                str(each): np.array([[int(word, 16) for word in words]], dtype=np.uint64)
                for each, words in read["permanent"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise _not_kept("it is not what to_json wrote") from None
        if not same:
            raise _not_kept("it belongs to another RAPPOR")
        sound = all(row.shape == (1, lanes_of(rappor.bits)) and bool(fits(row, rappor.bits).all()) for row in kept.values())
        if not 0 <= cohort < rappor.cohorts or not sound:
            raise _not_kept("it is not what to_json wrote")
        return cls(rappor=rappor, cohort=cohort, permanent=kept)


def _check_whole(value: int, most: int, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidParameter(f"{what} is invalid", why=f"it is a whole number from 1 to {most}", instead=f"{what}=2")


def _not_kept(why: str) -> InvalidParameter:
    return InvalidParameter("The client's file is invalid", why=why, instead="rappor.client(), for a new person")
