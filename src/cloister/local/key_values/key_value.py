"""Keys and their values: which films people saw and how they liked each of them, in one report of each person."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.domain import Domain, Indices, domain_of
from cloister.local.frequency.estimates import Estimate
from cloister.local.key_values.key_value_estimates import KeyValueEstimate, Weights
from cloister.local.key_values.key_value_reports import CellSender, RowSender, Sender
from cloister.local.numbers.interval import Interval
from cloister.local.protocols.coins import check_epsilon
from cloister.local.protocols.protocol import Protocol, Reports, Sketch
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy.rational import Exact

_LISTED = 4
"""The most keys whose 3^d sets are written out."""
_SENDERS: dict[str, type[CellSender] | type[RowSender]] = {"unary": RowSender, "direct": CellSender}


class KeyValue(Protocol):
    """How many people have each key, and the mean of their values for it (PCKV: Gu et al. 2020).

    A person has some of the keys, and for each of these a number from `low` to `high`. The set is padded to `padding` pairs with
    empty ones, one of them is drawn, its number goes to an end of the interval by a coin that keeps the mean, and key and end are
    reported *together*: an end is told only where its key is. `how` says in which form:

    - "unary": for each key one of nothing, low, high. The true key is there with a = ½, its end is the true one with
      p = e^ε/(e^ε + 1); every other key is there with b = 2/(e^ε + 3), at either end.
    - "direct": one pair, or nothing. The drawn one has c·(1 + padding·(e^ε − 1)), every other pair c = 1/(2d + padding·e^ε), and
      "nothing" counts for `padding` pairs.

    Left out, it is the one whose means err less for rare keys: "direct" for few keys or a large padding.

    Guarantee: ε-local privacy for the whole set, keys, values and how many. *Unary:* a report that differs by key has the ratio
    (2ap/b)·max((1 − b)/(1 − a), (b/2)/(a(1 − p))) at most, and for one key p/(1 − p). Both are at most e^ε, since p is rounded
    down to a whole number of 2⁻⁶⁴ and b is then the least such number for which it holds. What is drawn, and a number between two
    ends, are mixtures of such inputs. *Direct:* a set draws each pair with the share s ≤ 1/padding, so the pair's probability
    is c + s·(A − c), with A that of the drawn one: between c and c + (A − c)/padding, whose ratio is 1 + (A/c − 1)/padding ≤ e^ε.
    "Nothing" has padding·c and A − c more at most: the same ratio. So the drawing itself hides something, and A may be larger
    for it. (In the unary form it hides nothing: all keys of a report may be those of one set.)

    Error: the counts and the sums of values are unbiased; a mean is their ratio. Variances grow with padding² in the unary form,
    where the drawing is all loss, and little in the direct one, where they grow with the number of keys. A person with more than
    `padding` keys is refused, on the person's own machine, or with `clip=True` reports each with the lesser chance 1/size, and
    then counts for padding/size of a person.

    >>> films = KeyValue(["Alien", "Brazil", "Casablanca"], low=1, high=5, epsilon=2, padding=2)
    >>> people = [{"Alien": 5, "Casablanca": 2}] * 6_000 + [{"Alien": 3}] * 4_000
    >>> found = films.estimate(films.aggregate(films.randomize(people, random=Random.deterministic(1))))
    >>> bool(abs(found.counts.counts[0] - 10_000) < found.counts.margin(0.999)[0])
    True
    >>> bool(abs(found.means[0] - 4.2) < found.margin(0.999)[0] < 0.5)
    True
    """

    protocol: ClassVar[str] = "key-value"
    keys: Domain
    interval: Interval
    padding: int
    how: str

    _asked = "list of keys, interval"

    def __init__(
        self, keys: Any, low: Exact = -1, high: Exact = 1, epsilon: Exact = 1, *, padding: int, how: str | None = None
    ) -> None:
        self.keys = domain_of(keys)
        self.interval = Interval.of(low, high)
        self.epsilon = check_epsilon(epsilon)
        if isinstance(padding, bool) or not isinstance(padding, int) or not 1 <= padding <= len(self.keys):
            raise InvalidParameter(
                "padding= is invalid",
                why=f"it says how many of the {len(self.keys)} keys a person has at most",
                instead="padding=3, a public guess that few people exceed",
            )
        self.padding = padding
        if how is not None and how not in _SENDERS:
            raise InvalidParameter(
                f"how={how!r} is invalid", why="there are two forms", instead='how="unary" or how="direct", or leave it out'
            )
        size = len(self.keys)
        made: dict[str, Sender] = {
            name: kind(size, self.epsilon, self.padding) for name, kind in _SENDERS.items() if how in (None, name)
        }
        self.how = min(made, key=lambda name: _weights(made[name], self.padding).rare)
        self._sender = made[self.how]
        self._weights = _weights(self._sender, self.padding)

    @property
    def client(self) -> Mapping[str, Any]:
        return {
            "protocol": self.protocol,
            "how": self.how,
            "size": len(self.keys),
            "low": self.interval.low,
            "high": self.interval.high,
            "padding": self.padding,
            **self._sender.coins,
        }

    @property
    def _label(self) -> str:
        return f"{self.protocol}-{len(self.keys)}"

    @property
    def _width(self) -> int:
        return self._sender.width

    @property
    def report_size(self) -> int:
        """How many bits a report has: two for each key, or those of one number.

        >>> [KeyValue(range(100), padding=1, how=how).report_size for how in ("unary", "direct")]
        [200, 8]
        """
        return self._sender.bits

    def randomize(self, people: Any, *, clip: bool = False, random: Random | None = None) -> Reports:
        """One report for each person: to run where the person is.

        `people` are mappings of keys to numbers, such as `[{"Alien": 5}, {}]`; or rows of numbers, one column for each key, with
        NaN where a person has it not. `clip` moves numbers outside of the interval to its nearer end, and takes people with more
        keys than `padding`. Draws: which pair, by below(the larger of the set's size and `padding`), in the order of the keys;
        the coin that brings a number to an end (also where there is none); then those of the form.
        """
        drawn = source(random)
        held = held_by(people, self.keys, self.interval, clip=clip)
        if not clip and bool((held.sizes > self.padding).any()):
            raise InvalidParameter(
                "A person's keys are invalid",
                why=f"there are more than padding={self.padding} of them",
                instead="a larger padding, or randomize(people, clip=True), which lets them count for less",
            )
        places, values = self._picked(held, drawn)
        return self._sender.report(places, self.interval.places(values, 1, drawn), drawn)

    def _count(self, reports: Reports) -> npt.NDArray[np.int64]:
        """For each key, how many reports have it at the low end and at the high one."""
        return self._sender.count(reports)

    def valid(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return self._sender.valid(reports)

    def estimate(self, sketch: Sketch) -> KeyValueEstimate:
        """How many people have each key, and the means of their numbers, with margins."""
        self._own(sketch)
        counts, sums = self._weights.read(sketch.counts, sketch.n)
        shares = np.clip(counts / sketch.n, 0.0, 1.0) if sketch.n else np.zeros(len(counts))
        none, all_ = self.variance(sketch.n, 0.0), self.variance(sketch.n, 1.0)
        return KeyValueEstimate(
            counts=Estimate(
                counts=counts,
                n=sketch.n,
                variances=none + (all_ - none) * shares,
                values=self.keys.values,
                part=self._weights.count_part,
                slope=abs(self.variance(1, 1.0) - self.variance(1, 0.0)),
            ),
            signs=sums,
            weights=self._weights,
            interval=self.interval,
        )

    def variance(self, n: int, frequency: float = 0.0) -> float:
        """The variance of an estimated count of a key among n people, of whom the share `frequency` have it.

        >>> [round(KeyValue(range(100), padding=padding, how="unary").variance(1), 1) for padding in (1, 4)]
        [10.1, 161.2]
        """
        return n * self._weights.count_variance(frequency)

    def mean_variance(self, n: int, frequency: float, value: float | None = None) -> float:
        """The variance of a key's mean, to first order in 1/n, where the share `frequency` of n people have it and all hold
        `value`; of the worst value where it is left out.

        >>> films = KeyValue(range(100), 1, 5, epsilon=1, padding=1)
        >>> round(films.mean_variance(100_000, 0.1) ** 0.5, 2), round(films.mean_variance(100_000, 0.1, 3) ** 0.5, 2)
        (0.25, 0.17)
        """
        if not 0 < frequency <= 1:
            raise InvalidParameter("frequency= is invalid", why="nobody has the key: no mean", instead="frequency=0.1")
        signs = (0.0, 1.0) if value is None else (2 * float(self.interval.units(self.interval.checked([value]))[0, 0]) - 1,)
        worst = max(self._weights.mean_variance(frequency, sign) for sign in signs)
        return (self.interval.span / 2) ** 2 * worst / n

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact probability of each report, for each of the 3^d sets of keys with values at the ends (a value between them is
        a mixture of these), those with more than `padding` keys included.

        >>> from cloister.attacks import audit_channel
        >>> pairs = KeyValue(["a", "b"], epsilon=1, padding=2, how="direct")
        >>> audit_channel(pairs.channel())
        ChannelAudit(ε = 1, 9 inputs, 5 outputs)
        """
        size = len(self.keys)
        if size > _LISTED:
            raise InvalidParameter(
                "The channel was not written out",
                why=f"{size} keys have too many sets and reports to list",
                instead=f"at most {_LISTED} keys, or cloister.attacks.audit by sampling",
            )
        rows = []
        for states in product((None, 0, 1), repeat=size):
            pairs = [(place, end) for place, end in enumerate(states) if end is not None]
            slots = max(self.padding, len(pairs))
            parts = [self._sender.law(*pair) for pair in pairs]
            empty = self._sender.law(-1, 0)
            row = [sum(column, (slots - len(pairs)) * none) / slots for none, *column in zip(empty, *parts, strict=True)]
            rows.append(tuple(row))
        return tuple(rows)

    def _picked(self, held: Held, random: Random) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """For each person the place of the drawn key and its number; −1 and `low` for an empty pair."""
        n = len(held.sizes)
        drawn = np.zeros(n, dtype=np.int64)
        slots = np.maximum(held.sizes, self.padding)
        for many in np.unique(slots).tolist():
            these = np.flatnonzero(slots == many)
            drawn[these] = random.below(many, len(these))
        full = drawn < held.sizes
        places, values = np.full(n, -1, dtype=np.int64), np.full(n, self.interval.low)
        here = (held.starts + drawn)[full]
        places[full], values[full] = held.places[here], held.values[here]
        return places, values


def _weights(sender: Sender, padding: int) -> Weights:
    seen, unseen, pull = sender.probabilities
    return Weights(seen=float(seen), unseen=float(unseen), pull=float(pull), padding=padding)


@dataclass(frozen=True, kw_only=True)
class Held:
    """The pairs of all people, one person after the other, each person's in the order of the keys."""

    sizes: Indices
    """How many pairs each person has."""
    starts: Indices
    """Where each person's begin."""
    places: Indices
    values: npt.NDArray[np.float64]


def held_by(people: Any, keys: Domain, interval: Interval, *, clip: bool) -> Held:
    """Mappings of keys to numbers, or rows of numbers with NaN for what a person has not.

    >>> held = held_by([{"b": 1, "a": 0}, {}], Domain(["a", "b"]), Interval.of(0, 1), clip=False)
    >>> held.sizes.tolist(), held.places.tolist(), held.values.tolist()
    ([2, 0], [0, 1], [0.0, 1.0])
    """
    owners, places, numbers = _rows(people, keys) if isinstance(people, np.ndarray) else _mappings(people, keys)
    count = len(people)
    values = interval.checked(numbers, clip=clip)[:, 0]
    order = np.lexsort((places, owners))
    sizes = np.bincount(owners, minlength=count).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    return Held(sizes=sizes, starts=starts, places=places[order], values=values[order])


def _rows(people: npt.NDArray[Any], keys: Domain) -> tuple[Indices, Indices, Any]:
    if people.ndim != 2 or people.shape[1] != len(keys) or people.dtype.kind not in "iuf":
        raise _refused(f"they are not rows of {len(keys)} numbers, one for each key")
    owners, places = np.nonzero(~np.isnan(people.astype(np.float64)))
    return owners.astype(np.int64), places.astype(np.int64), people[owners, places]


def _mappings(people: Any, keys: Domain) -> tuple[Indices, Indices, Any]:
    if isinstance(people, Mapping | str | bytes) or not isinstance(people, Collection):
        raise _refused("they are not a list of mappings, one for each person")
    if not all(isinstance(person, Mapping) for person in people):
        raise _refused("a person's keys are no mapping")
    owners = np.repeat(np.arange(len(people), dtype=np.int64), [len(person) for person in people])
    named = [name for person in people for name in person]
    places = keys.places(named) if named else np.zeros(0, dtype=np.int64)
    return owners, places, [number for person in people for number in person.values()]


def _refused(why: str) -> InvalidParameter:
    return InvalidParameter(
        "people are invalid", why=why, instead='randomize([{"Alien": 5}, {}]), or an array with NaN for what a person has not'
    )
