"""Marginal tables of several attributes, from local reports: how values go together, and tables that agree with one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, check_whole
from cloister.local.attributes.several import checked_domains, columns_of, least_error, report_one, sketches_of, whole_estimate
from cloister.local.frequency.domain import Domain, Indices
from cloister.local.frequency.estimates import Estimate, norm_sub
from cloister.local.frequency.hashing import LARGEST
from cloister.local.frequency.oracle import FrequencyOracle, Reports, Sketch
from cloister.local.protocols.coins import check_epsilon
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy import Exact, PureDP

Floats = npt.NDArray[np.float64]
Names = tuple[str, ...]

_ROUNDS = 50


@dataclass(frozen=True, kw_only=True)
class MarginalTables:
    """Estimated counts for each combination of values, in a table for each set of attributes.

    Raw tables are unbiased, and contradict one another. `consistent` makes them agree; margins of either hold the truth.
    """

    n: int
    tables: dict[Names, Floats]
    """An axis for each attribute, in the order of its domain."""
    variances: dict[Names, Floats]
    domains: dict[str, Domain]
    raw: dict[Names, Floats] | None = None
    """The unbiased tables, where these were made consistent."""
    estimates: Mapping[Names, Estimate] = field(default_factory=dict)
    """What the unbiased tables were read off, with all that their margins need."""

    def of(self, *names: str) -> Floats:
        """The table of these attributes, in this order: read off the tables that have all of them, and averaged in proportion to
        their precision where there are several."""
        fitting = [each for each in self.tables if set(names) <= set(each)]
        if not fitting or len(set(names)) != len(names):
            raise InvalidParameter(
                "The table is invalid",
                why="no table that was asked for has all of these attributes",
                instead=f"of({', '.join(repr(name) for name in next(iter(self.tables)))})",
            )
        mean = self._mean(fitting, tuple(sorted(names)))
        order = sorted(names)
        return np.transpose(mean, [order.index(name) for name in names])

    def margin(self, *names: str, confidence: Exact = 0.95) -> Floats:
        """Half-widths of the counts of a table that was asked for, each by itself (`Estimate.margin`); of consistent ones to the
        farther end of the interval of the raw count, as far as that lies between 0 and n."""
        if names not in self.estimates:
            raise InvalidParameter(
                "The margin is invalid", why="that table was not asked for", instead=f"margin{next(iter(self.tables))}"
            )
        raw = None if self.raw is None else self.raw[names].ravel()
        told = replace(self.estimates[names], counts=self.tables[names].ravel(), raw=raw)
        return told.margin(confidence).reshape(self.tables[names].shape)

    def consistent(self) -> MarginalTables:
        """Tables that agree on every attribute they share, with no count below 0, and n in sum (Qardaji, Yang & Li 2014; Zhang et
        al. 2018, "CALM").

        For each set of attributes that some tables share, from the empty one upwards, their sums are replaced by the mean of
        least variance, and what a table differs from it is dealt out evenly to its cells: the least squares projection. Then
        counts below 0 are set to 0 and the rest lowered (norm-sub). Both in turns, 50 times; the last step is norm-sub. That is
        post-processing, and costs nothing; counts are biased by it, and margins wider by that.
        """
        tables = {names: table.copy() for names, table in self.tables.items()}
        for _ in range(_ROUNDS):
            current = replace(self, tables=tables)
            for shared in self._shared():
                current._align(shared)
            tables = {
                names: norm_sub(table.ravel(), float(self.n)).reshape(table.shape) for names, table in current.tables.items()
            }
        return replace(self, tables=tables, raw=self.tables if self.raw is None else self.raw)

    def _shared(self) -> list[Names]:
        """Every set of attributes that two tables share; the empty one first. A set's turn doesn't disturb the smaller ones'."""
        found = {subset for names in self.tables for size in range(len(names)) for subset in combinations(sorted(names), size)}
        shared = [subset for subset in found if sum(set(subset) <= set(names) for names in self.tables) > 1 or not subset]
        return sorted(shared, key=lambda subset: (len(subset), subset))

    def _align(self, shared: Names) -> None:
        fitting = [names for names in self.tables if set(shared) <= set(names)]
        mean = self._mean(fitting, shared) if shared else np.array(float(self.n))
        for names in fitting:
            table = self.tables[names]
            own = _projected(table, names, shared)
            spread = (mean - own) / (table.size / own.size)
            kept = [name for name in names if name in shared]
            spread = np.transpose(spread, [shared.index(name) for name in kept])
            shape = [len(self.domains[name]) if name in shared else 1 for name in names]
            table += spread.reshape(shape)

    def _mean(self, fitting: Iterable[Names], shared: Names) -> Floats:
        """The mean of least variance of what tables say of some attributes, which are sorted by name."""
        total, weights = np.zeros([len(self.domains[name]) for name in shared]), 0.0
        for names in fitting:
            own = _projected(self.tables[names], names, shared)
            weight = 1 / max(1e-9, float(self.variances[names].mean()) * self.tables[names].size / own.size)
            total = total + weight * own
            weights += weight
        return np.asarray(total / weights, dtype=np.float64)


class Marginals:
    """How attributes go together: a table of counts for each pair (or triple, …) of them, from one report of each person.

    Chance picks one of the tables, and a person reports in which of its cells they are, with the whole ε. The cells' domain is
    the product of the attributes' ones; the protocol is direct encoding or local hashing, whichever errs less.

    Guarantee: ε-local privacy. Proof: which table is drawn before any value is looked at, and the report of a cell is ε-locally
    private.

    Error: with t tables a count is estimated from n/t people and scaled up: its variance is t·n·v(ε) + (t − 1)·n·f(1 − f), for
    v(ε) the variance of one report and f the cell's share. `ways` is how many attributes each table has; `sets` names the tables
    where not all are wanted.

    >>> marginals = Marginals({"smokes": ["yes", "no"], "sex": ["f", "m"], "region": range(6)}, epsilon=2)
    >>> marginals.sets
    (('smokes', 'sex'), ('smokes', 'region'), ('sex', 'region'))
    >>> people = {"smokes": ["yes", "no", "no"] * 10_000, "sex": ["m", "f", "f"] * 10_000, "region": [0, 1, 2] * 10_000}
    >>> reports = marginals.randomize(people, random=Random.deterministic(1))
    >>> tables = marginals.estimate(marginals.aggregate(reports))
    >>> margin = tables.margin("smokes", "sex", confidence=0.999)
    >>> bool((abs(tables.of("smokes", "sex") - [[0, 10_000], [20_000, 0]]) < margin).all())
    True
    """

    epsilon: Fraction
    sets: tuple[Names, ...]
    oracles: dict[Names, FrequencyOracle]

    def __init__(
        self, domains: Mapping[str, Any], epsilon: Exact = 1, *, ways: int = 2, sets: Sequence[Sequence[str]] | None = None
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self._domains = checked_domains(domains)
        names = list(self._domains)
        check_whole(ways, "ways", 1, len(names), why=f"there are {len(names)} attributes", instead="ways=2")
        self.sets = tuple(combinations(names, ways)) if sets is None else tuple(tuple(each) for each in sets)
        sound = all(each and set(each) <= set(names) and len(set(each)) == len(each) for each in self.sets)
        if not self.sets or not sound or len({frozenset(each) for each in self.sets}) != len(self.sets):
            raise InvalidParameter(
                "sets= is invalid",
                why="it is not a list of different sets of the attributes",
                instead=f"sets={[tuple(names[:2])]}",
            )
        if max(self._cells(each) for each in self.sets) > LARGEST:
            raise InvalidParameter(
                "The tables are invalid", why="one would have more than 2²⁶ cells", instead="fewer ways, or coarser values"
            )
        self.oracles = {each: least_error(range(self._cells(each)), self.epsilon) for each in self.sets}

    @property
    def guarantee(self) -> PureDP:
        """The promise to each respondent."""
        return PureDP(self.epsilon)

    def randomize(self, table: Mapping[str, Any], *, random: Random | None = None) -> dict[Names, Reports]:
        """For each set of attributes, the reports of those who drew it. `table` has a list of values for each attribute."""
        places = columns_of(self._domains, table)
        return report_one(self.oracles, {each: self._joint(each, places) for each in self.sets}, source(random))

    def aggregate(self, reports: Mapping[Names, Reports]) -> dict[Names, Sketch]:
        """The sketch of each table's reports."""
        return sketches_of(self.oracles, reports)

    def estimate(self, sketches: Mapping[Names, Sketch]) -> MarginalTables:
        """The tables, unbiased, of all people."""
        people = sum(sketches[each].n for each in self.sets)
        found = {each: whole_estimate(oracle.estimate(sketches[each]), people) for each, oracle in self.oracles.items()}
        shapes = {each: [len(self._domains[name]) for name in each] for each in self.sets}
        return MarginalTables(
            n=people,
            tables={each: found[each].counts.reshape(shapes[each]) for each in self.sets},
            variances={each: found[each].variances.reshape(shapes[each]) for each in self.sets},
            domains=dict(self._domains),
            estimates=found,
        )

    def _cells(self, names: Names) -> int:
        return prod(len(self._domains[name]) for name in names)

    def _joint(self, names: Names, places: Mapping[str, Indices]) -> Indices:
        joint = np.zeros(len(places[names[0]]), dtype=np.int64)
        for name in names:
            joint = joint * len(self._domains[name]) + places[name]
        return joint


def _projected(table: Floats, names: Names, shared: Names) -> Floats:
    """Summed over the other attributes, with axes in the order of `shared`."""
    summed = table.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in shared))
    kept = [name for name in names if name in shared]
    return np.asarray(np.transpose(summed, [kept.index(name) for name in shared]), dtype=np.float64)
