"""Several attributes of each person, one of them told and the others made up, so that nobody sees which one it was."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations, product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.attributes.several import checked_domains, columns_of, sketches_of
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.domain import Domain, Indices
from cloister.local.frequency.estimates import Estimate
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.frequency.unary import UnaryEncoding
from cloister.local.protocols.coins import bit_rows, check_epsilon
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy import Exact, PureDP
from cloister.privacy.precision import context, real, up

_LISTED = 1 << 10
"""The most records, and the most reports, that are written out."""


class FakeData:
    """The frequencies of several attributes where each person reports one, drawn by chance, and makes the others up (RS+FD:
    Arcolezi et al. 2021).

    A report has a part for every attribute. The part of the drawn one is the value through a frequency oracle with the whole ε;
    one that is made up is a uniform value (direct encoding), or the coins of a row without a value (optimised unary encoding).
    `forms` says which for each attribute; left out, it is the one that errs less.

    Guarantee: ε-local privacy for the whole record. Proof: let P_j be the law of the drawn part, F_j that of a made-up one, and k
    the number of attributes. A report y has probability ΠF·(1/k)·Σ_j P_j(y_j | v_j)/F_j(y_j). In either form the fraction lies
    between some r_j and R_j ≤ e^ε·r_j, whatever the value; and a ratio of two sums is at most the largest ratio of their terms. ∎

    `drawn` is the promise for *which* attribute was drawn, to somebody who knows the record: that of R_j/r_i.

    `single` is the promise for one attribute by itself, to somebody who knows all the others: the ratio is at most
    1 + (R_j − r_j)/Σ r_i, which is 1 + (e^ε − 1)/k for domains of one size. **As published, that smaller number is called the
    promise, and ε is raised to ln(1 + k(e^ε − 1)) for it. It is not the promise for a record:** two people who differ in every
    attribute are told apart by the raised ε, since all terms of the sum move at once. (And where domains differ in size, 1/k is
    too hopeful for one attribute, too. `single` is worked out for them as they are.)

    Error: all n people's coins are in every count. With p, q and f the chances that a part supports a value where it is the
    person's own, where another one is told, and where it is made up, and π = (q + (k − 1)f)/k: k²n·π(1 − π)/(p − q)² where nobody
    holds the value. That is k times what `SeveralAttributes` has by sampling at the same ε, and more; by splitting, that has more
    for domains of more than two values, and less for yes or no. Take it only where the drawn attribute is itself a secret.

    >>> health = FakeData({"smokes": ["yes", "no"], "illness": ["none", "flu", "other"]}, epsilon=1)
    >>> people = {"smokes": ["no"] * 15_000 + ["yes"] * 5_000, "illness": ["none"] * 18_000 + ["flu"] * 2_000}
    >>> estimates = health.estimate(health.aggregate(health.randomize(people, random=Random.deterministic(1))))
    >>> bool(abs(estimates["illness"].counts[1] - 2_000) < estimates["illness"].margin(0.999)[1])
    True
    >>> str(health.guarantee), round(float(health.single.epsilon), 2)
    ('ε = 1', 0.66)
    """

    epsilon: Fraction
    forms: dict[str, str]

    def __init__(self, domains: Mapping[str, Any], epsilon: Exact = 1, *, forms: Mapping[str, str] | None = None) -> None:
        self.epsilon = check_epsilon(epsilon)
        self._domains = checked_domains(domains)
        if forms is not None and (set(forms) != set(self._domains) or not set(forms.values()) <= set(_FORMS)):
            raise InvalidParameter(
                "forms= is invalid",
                why='it is "direct" or "unary" for each attribute',
                instead=f"forms={dict.fromkeys(self._domains, 'direct')}",
            )
        self._parts = {name: self._part(name, domain, forms) for name, domain in self._domains.items()}
        self.forms = {name: part.form for name, part in self._parts.items()}

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent, for the whole record."""
        return PureDP(self.epsilon)

    @property
    def single(self) -> PureDP:
        """The promise for any one attribute by itself: two people who have all other attributes in common.

        >>> three = FakeData({name: range(4) for name in "abc"}, epsilon=2)
        >>> round(float(three.single.epsilon), 3), round(np.log(1 + (np.exp(2) - 1) / 3), 3)
        (1.141, np.float64(1.141))
        """
        least = sum((part.odds[0] for part in self._parts.values()), Fraction(0))
        worst = max(1 + (high - low) / least for low, high in (part.odds for part in self._parts.values()))
        return PureDP(min(self.epsilon, up(context().log(real(Fraction(worst))))))

    @property
    def drawn(self) -> PureDP:
        """The promise for which attribute was drawn, to somebody who knows the record: ε where the domains are of one size.

        >>> str(FakeData({name: range(4) for name in "abc"}, epsilon=2).drawn)
        'ε = 2'
        """
        odds = [part.odds for part in self._parts.values()]
        worst = max(odds[j][1] / odds[i][0] for i, j in permutations(range(len(odds)), 2))
        return PureDP(up(context().log(real(worst))))

    @property
    def oracles(self) -> dict[str, FrequencyOracle]:
        """What the drawn value goes through, for each attribute."""
        return {name: part.oracle for name, part in self._parts.items()}

    @property
    def report_size(self) -> int:
        """How many bits a report has.

        >>> FakeData({"a": range(4), "b": range(100)}, forms={"a": "direct", "b": "unary"}).report_size
        102
        """
        return sum(part.oracle.report_size for part in self._parts.values())

    def randomize(self, table: Mapping[str, Any], *, random: Random | None = None) -> dict[str, Reports]:
        """For each attribute a part of every person's report: the i-th of all of them together are one report. `table` has a
        list of values for each attribute. Draws: which attribute; then, for each attribute in turn, the oracle's, and what is
        made up. Both are drawn for everybody."""
        places, drawn = columns_of(self._domains, table), source(random)
        told = drawn.below(len(self._parts), len(next(iter(places.values()))))
        return {name: part.report(places[name], told == number, drawn) for number, (name, part) in enumerate(self._parts.items())}

    def aggregate(self, reports: Mapping[str, Reports]) -> dict[str, Sketch]:
        """The sketch of each attribute's parts."""
        sketches = sketches_of(self.oracles, reports)
        if len({sketch.n for sketch in sketches.values()}) != 1:
            raise InvalidParameter("The reports are invalid", why="the parts differ in number", instead="randomize(…)")
        return {name: replace(sketch, key=self._key(name)) for name, sketch in sketches.items()}

    def estimate(self, sketches: Mapping[str, Sketch]) -> dict[str, Estimate]:
        """For each attribute, how many people hold each value."""
        if not isinstance(sketches, Mapping) or {name: self._key(name) for name in self._parts} != {
            name: sketch.key for name, sketch in sketches.items()
        }:
            raise InvalidParameter(
                "The sketches are invalid", why="they are of other attributes, domains or ε", instead="fake.aggregate(reports)"
            )
        return {name: part.read(sketches[name]) for name, part in self._parts.items()}

    def variance(self, name: str, n: int, frequency: float = 0.0) -> float:
        """The variance of an estimated count of an attribute among n people, of whom the share `frequency` hold the value.

        >>> two = FakeData({"a": range(100), "b": range(100)}, epsilon=1)
        >>> two.forms["a"], round(two.variance("a", 1), 2), round(2 * UnaryEncoding(range(100), 1).variance(1), 2)
        ('unary', 14.73, 7.37)
        """
        if name not in self._parts:
            raise InvalidParameter(
                "The attribute is invalid", why="it is not one of these", instead=f"{next(iter(self._parts))!r}"
            )
        return n * self._parts[name].variance(frequency)

    def channel(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact probability of each report for each record: records in the order of the domains' values, the last attribute's
        first.

        >>> from cloister.attacks import audit_channel
        >>> audit_channel(FakeData({"a": range(2), "b": range(3)}, forms={"a": "direct", "b": "unary"}).channel())
        ChannelAudit(ε = 1, 6 inputs, 16 outputs)
        """
        parts = list(self._parts.values())
        sizes = [len(part.oracle.domain) for part in parts]
        outputs = [size if part.form == "direct" else 1 << size for part, size in zip(parts, sizes, strict=True)]
        if max(sizes) > 8 or np.prod(sizes) > _LISTED or np.prod(outputs) > _LISTED:
            raise InvalidParameter(
                "The channel was not written out", why="it has too many records and reports to list", instead="smaller domains"
            )
        laws, fakes = [part.oracle.channel() for part in parts], [part.fake() for part in parts]
        rows = []
        for record in product(*(range(size) for size in sizes)):
            true = [law[place] for law, place in zip(laws, record, strict=True)]
            row = []
            for report in product(*(range(count) for count in outputs)):
                made_up = Fraction(1)
                for fake, seen in zip(fakes, report, strict=True):
                    made_up *= fake[seen]
                fractions = (law[seen] / fake[seen] for law, fake, seen in zip(true, fakes, report, strict=True))
                row.append(made_up * sum(fractions, Fraction(0)) / len(parts))
            rows.append(tuple(row))
        return tuple(rows)

    def _part(self, name: str, domain: Domain, forms: Mapping[str, str] | None) -> _Part:
        many = len(self._domains)
        made = [_FORMS[form](domain, self.epsilon, many) for form in _FORMS if forms is None or forms[name] == form]
        return min(made, key=lambda part: part.variance(1 / len(domain)))

    def _key(self, name: str) -> str:
        told = json.dumps([name, {other: part.oracle.key for other, part in self._parts.items()}], sort_keys=True)
        return f"fake-{len(self._domains[name])}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, kw_only=True)
class _Part(ABC):
    """One of `many` attributes: its oracle, and how its part is made up."""

    oracle: FrequencyOracle
    many: int
    form: ClassVar[str]

    @property
    @abstractmethod
    def odds(self) -> tuple[Fraction, Fraction]:
        """The least and the largest of P(part | value)/F(part): any value's report against a made-up one."""

    @property
    @abstractmethod
    def chances(self) -> tuple[float, float, float]:
        """How likely a part supports a value: where it's the true one and told; where another is told; where it's made up."""

    @abstractmethod
    def made_up(self, n: int, random: Random) -> Reports: ...

    @abstractmethod
    def fake(self) -> tuple[Fraction, ...]:
        """The probability of each made-up part, in the order of the oracle's channel."""

    def report(self, places: Indices, told: npt.NDArray[np.bool_], random: Random) -> Reports:
        true = self.oracle._report(places, random)
        fake = self.made_up(len(places), random)
        return np.where(told if true.ndim == 1 else told[:, None], true, fake)

    def read(self, sketch: Sketch) -> Estimate:
        p, q, f = self.chances
        n = sketch.n
        counts = np.asarray((self.many * sketch.counts - n * (q + (self.many - 1) * f)) / (p - q), dtype=np.float64)
        shares = np.clip(counts / n, 0.0, 1.0) if n else np.zeros(len(counts))
        none, all_ = self.variance(0.0), self.variance(1.0)
        return Estimate(
            counts=counts,
            n=n,
            variances=n * (none + (all_ - none) * shares),
            values=self.oracle.domain.values,
            part=self.many / (p - q),
            slope=abs(all_ - none),
        )

    def variance(self, frequency: float) -> float:
        """Of one person's part in a count."""
        p, q, f = self.chances
        none, held = ((chance + (self.many - 1) * f) / self.many for chance in (q, p))
        return (self.many / (p - q)) ** 2 * (none * (1 - none) + frequency * (held * (1 - held) - none * (1 - none)))


class _Direct(_Part):
    """The uniform value is made up."""

    oracle: DirectEncoding
    form = "direct"

    def __init__(self, domain: Domain, epsilon: Fraction, many: int) -> None:
        super().__init__(oracle=DirectEncoding(domain, epsilon), many=many)

    @property
    def odds(self) -> tuple[Fraction, Fraction]:
        size = len(self.oracle.domain)
        return Fraction(self.oracle._q * size), self.oracle._p * size

    @property
    def chances(self) -> tuple[float, float, float]:
        return float(self.oracle._p), float(self.oracle._q), 1 / len(self.oracle.domain)

    def made_up(self, n: int, random: Random) -> Reports:
        return random.below(len(self.oracle.domain), n)

    def fake(self) -> tuple[Fraction, ...]:
        size = len(self.oracle.domain)
        return (Fraction(1, size),) * size


class _Unary(_Part):
    """The coins of a row that has no value are made up."""

    oracle: UnaryEncoding
    form = "unary"

    def __init__(self, domain: Domain, epsilon: Fraction, many: int) -> None:
        super().__init__(oracle=UnaryEncoding(domain, epsilon), many=many)

    @property
    def odds(self) -> tuple[Fraction, Fraction]:
        p, q = self.oracle.probabilities
        return Fraction((1 - p) / (1 - q)), p / q

    @property
    def chances(self) -> tuple[float, float, float]:
        p, q = self.oracle.probabilities
        return float(p), float(q), float(q)

    def made_up(self, n: int, random: Random) -> Reports:
        return bit_rows(self.oracle._rise, n, len(self.oracle.domain), random)

    def fake(self) -> tuple[Fraction, ...]:
        size, q = len(self.oracle.domain), self.oracle.probabilities[1]
        return tuple(q ** report.bit_count() * (1 - q) ** (size - report.bit_count()) for report in range(1 << size))


_FORMS: dict[str, type[_Direct] | type[_Unary]] = {"direct": _Direct, "unary": _Unary}
