"""Naive Bayes with discrete features, from randomised (value, class) cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter, check_one_of
from cloister.local.frequency.direct import DirectEncoding
from cloister.local.frequency.domain import Domain, domain_of
from cloister.local.frequency.estimates import norm_sub
from cloister.local.frequency.hashing import LocalHashing
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.learning.moments import Floats, by_row
from cloister.local.numbers.finite import drawn_coordinates
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy import Exact, PureDP, exact_positive


class LocalNaiveBayes:
    """How features hang together with a class, when no respondent tells any of them.

    Guarantee: ε-local privacy for a person's whole record, class and all. A person reports k features, drawn by lot without a
    look at the record; for each of them the cell (value, class) goes through a frequency oracle at ε/k. The k reports compose
    to ε, and the lot says nothing of the record. (A published program sends a report of every feature in the slot of every class,
    each at ε: (d + 1)·ε in all.)

    Few reports at a large ε/k say more than many at a small one, up to where the people's own variety is the larger part of the
    error. k is chosen from public facts, as the one with the least variance of all estimated cells.

    The joint counts are unbiased but noisy. By default they are drawn towards independence of value and class, by as much as the
    known variance of the noise says (James & Stein 1961, positive part), and made consistent (norm-sub). `negative="one"` does
    as the published program does: what is below 0 becomes 1.

    A feature of one value is the same for all: nobody reports it, and it costs no report.

    >>> model = LocalNaiveBayes([["low", "high"], range(3)], ["no", "yes"], epsilon=2)
    >>> people = [["low", 0], ["high", 2]] * 5000
    >>> reports = model.randomize(people, ["no", "yes"] * 5000, random=Random.deterministic(1))
    >>> model.fit(model.aggregate(reports)).predict([["high", 2], ["low", 0]])
    ['yes', 'no']
    """

    def __init__(
        self,
        features: Sequence[Any],
        classes: Any,
        epsilon: Exact = 1,
        *,
        protocol: type[FrequencyOracle] | None = None,
        picks: int | None = None,
    ) -> None:
        told = [feature if isinstance(feature, Domain) else list(feature) for feature in features]
        self.places = tuple(at for at, feature in enumerate(told) if len(feature) != 1)
        self.width = len(told)
        self.features = tuple(domain_of(told[at]) for at in self.places)
        self.classes = domain_of(classes)
        self.epsilon = exact_positive(epsilon, "epsilon")
        if not self.features:
            why = "each has one value, so nobody tells anything by it" if told else "it is missing"
            raise InvalidParameter("features= is invalid", why=why, instead='features=[["low", "high"]]')
        d = len(self.features)
        if picks is not None and (isinstance(picks, bool) or not isinstance(picks, int) or not 1 <= picks <= d):
            raise InvalidParameter("picks= is invalid", why=f"a person tells of 1 to {d} features", instead="picks=1")
        cells = tuple(len(feature) * len(self.classes) for feature in self.features)
        self.picks = picks or _best_picks(cells, self.epsilon, protocol)
        self.oracles = tuple(_oracle(size, self.epsilon / self.picks, protocol) for size in cells)

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent, for the whole record.

        >>> str(LocalNaiveBayes([range(4)] * 9, range(2), epsilon=8).guarantee)
        'ε = 8'
        """
        return PureDP(self.epsilon)

    def randomize(self, rows: Any, classes: Any, *, random: Random | None = None) -> tuple[Reports, ...]:
        """For each feature, the reports of those who report it; to run where the person is, alone or for many at once."""
        records, said = _columns(rows, self.width, self.places), self.classes.places(classes)
        if any(len(column) != len(said) for column in records):
            raise InvalidParameter("Rows and classes are invalid", why="they differ in number", instead="one class a row")
        chance = source(random)
        told = drawn_coordinates(self.picks, len(self.features), len(said), chance)
        out = []
        for j, (feature, oracle) in enumerate(zip(self.features, self.oracles, strict=True)):
            places = feature.places(records[j]) if len(said) else np.zeros(0, dtype=np.int64)
            mine = (told == j).any(axis=1)
            out.append(oracle.randomize(places[mine] * len(self.classes) + said[mine], random=chance))
        return tuple(out)

    def aggregate(self, reports: Sequence[Reports]) -> tuple[Sketch, ...]:
        """A sketch for each feature; those of streams and servers add up, feature by feature."""
        if not isinstance(reports, Sequence) or len(reports) != len(self.oracles):
            raise InvalidParameter("The reports are invalid", why="they are of other features", instead="randomize(…)")
        return tuple(oracle.aggregate(each) for oracle, each in zip(self.oracles, reports, strict=True))

    def fit(self, sketches: Sequence[Sketch], *, negative: str = "norm-sub") -> NaiveBayesModel:
        """The model of which the reports speak."""
        check_one_of(negative, "negative", ("norm-sub", "one"), why="no such way", instead='negative="norm-sub"')
        if not isinstance(sketches, Sequence) or len(sketches) != len(self.oracles):
            raise InvalidParameter("The sketches are invalid", why="there is one a feature", instead="fit(aggregate(reports))")
        tables, noises = [], []
        for feature, oracle, sketch in zip(self.features, self.oracles, sketches, strict=True):
            read = oracle.estimate(sketch)
            tables.append(read.counts.reshape(len(feature), len(self.classes)) / max(1, read.n))
            noises.append(float(read.variances.mean()) / max(1, read.n) ** 2)
        ns = [sketch.n for sketch in sketches]
        classes = _class_shares(tables, noises, ns)
        if negative == "one":
            held = [np.where(table * n <= 0, 1.0, table * n) for table, n in zip(tables, ns, strict=True)]
        else:
            held = [drawn_in(table, noise, n, classes) for table, noise, n in zip(tables, noises, ns, strict=True)]
        logs = tuple(np.log(table / table.sum(axis=0)) for table in held)
        how: dict[str, Any] = {"width": self.width, "places": self.places, "log_classes": np.log(classes), "log_values": logs}
        return NaiveBayesModel(features=self.features, classes=self.classes, **how)


@dataclass(frozen=True, kw_only=True)
class NaiveBayesModel:
    """A naive Bayes model: the logarithms of the classes' shares, and of each value's share within each class."""

    features: tuple[Domain, ...]
    """Those of which people tell."""
    classes: Domain
    log_classes: Floats
    log_values: tuple[Floats, ...]
    width: int
    """How many values a row has; those of constant features say nothing."""
    places: tuple[int, ...]
    """Where the others are among them."""

    def scores(self, rows: Any) -> Floats:
        """For each row, the log-likelihood of it together with each class."""
        columns = _columns(rows, self.width, self.places)
        parts = [log[f.places(column)] for log, f, column in zip(self.log_values, self.features, columns, strict=True)]
        return np.asarray(self.log_classes + np.sum(parts, axis=0), dtype=np.float64)

    def predict(self, rows: Any) -> list[Any]:
        """The most likely class of each row."""
        return [self.classes.values[place] for place in self.scores(rows).argmax(axis=1)]


@lru_cache(maxsize=256)
def _oracle(size: int, epsilon: Fraction, protocol: type[FrequencyOracle] | None) -> FrequencyOracle:
    if protocol is not None:
        return protocol(range(size), epsilon)
    return min(DirectEncoding(range(size), epsilon), LocalHashing(range(size), epsilon), key=lambda each: each.variance(1))


@lru_cache(maxsize=64)
def _best_picks(cells: tuple[int, ...], epsilon: Fraction, protocol: type[FrequencyOracle] | None) -> int:
    """The k with the least error of all cells: for each, (d/k)·(the oracle's variance + that of drawing a person)."""

    def error(k: int) -> float:
        parts = {size: _oracle(size, epsilon / k, protocol).variance(1, 1 / size) for size in set(cells)}
        return sum(size * parts[size] + 1 - 1 / size for size in cells) / k

    least = max(1, -int(-epsilon // 16))  # more than 16 for one report tells nothing new
    tried = range(min(least, len(cells)), len(cells) + 1)
    return min(tried, key=error)


def _class_shares(tables: Sequence[Floats], noises: Sequence[float], ns: Sequence[int]) -> Floats:
    """Each feature's reports hold the class, too: the mean of what they say, weighted by its known variance."""
    weights = np.array(
        [1 / (noise * len(table) + 1e-12) if n else 0.0 for table, noise, n in zip(tables, noises, ns, strict=True)]
    )
    size = tables[0].shape[1]
    if not weights.any():
        return np.full(size, 1 / size)
    said = sum((w * table.sum(axis=0) for w, table in zip(weights, tables, strict=True)), np.zeros(size)) / weights.sum()
    held = norm_sub(np.asarray(said, dtype=np.float64), 1.0) + 1 / max(1, sum(ns))
    return np.asarray(held / held.sum(), dtype=np.float64)


def drawn_in(table: Floats, noise: float, n: int, classes: Floats) -> Floats:
    """Towards what independence says, by the share of the deviation that the noise explains; nothing below 0, and half a person
    for each value, so that none is impossible."""
    values = norm_sub(table.sum(axis=1), 1.0)
    alike = np.outer(values, classes)
    away = table - alike
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    kept = max(0.0, 1.0 - freedom * noise / max(float((away**2).sum()), 1e-300))
    held = norm_sub((alike + kept * away).ravel(), 1.0).reshape(table.shape)
    return np.asarray(held + (values[:, None] + 1e-3) / max(1, n), dtype=np.float64)


def _columns(rows: Any, width: int, places: Sequence[int]) -> list[Any]:
    """Rows of so many values as columns; of those, the ones at these places."""
    rows = by_row(rows)
    if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.shape[1] == width:
        return [rows[:, at] for at in places]
    try:
        values = [list(row) for row in rows]
    except TypeError:
        values = [[]]
    if any(len(row) != width for row in values):
        raise InvalidParameter("The rows are invalid", why=f"each needs {width} values", instead="one value a feature")
    return [[row[at] for row in values] for at in places]
