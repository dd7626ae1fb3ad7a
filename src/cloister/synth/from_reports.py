"""Rows from local reports: nobody but the person ever held a value, and a table with the same columns can still be drawn.

Each person sends one randomised report (`cloister.local.attributes.Marginals`: the cell of one table of two or three columns; or
`SeveralAttributes`: single columns alone). Tables are estimated from the reports, and the mixture of `mixture.py` is fitted to
them, so that rows for a learner come out where histograms went in.

Guarantee: that of the protocol, ε-local privacy for each person's whole record (its class has the proof). What is made here
reads reports and public facts only: post-processing. The number of people is the number of reports, which a collector knows.

Error: the noise of an estimated cell of t tables has a variance of about t·n·v(ε), v(ε) that of one report, so it grows with √n
where central noise stays: tens of thousands of people are few. Cells of one table have noises that hang together, so
`model.answer` tells values, and no margins; those of single tables are in `MarginalTables.margin`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.local.attributes.marginals import Marginals as LocalMarginals
from cloister.local.attributes.several import SeveralAttributes
from cloister.synth.measuring import Floats, Marginals, Noisy
from cloister.synth.mixture import fitted
from cloister.synth.model import SyntheticModel
from cloister.synth.states import States
from cloister.tables import Category, Domain, Integer

RESPONDENTS = "respondents"
_MOST = 3
"""Columns of a table that the fit reads."""


def fit_reports(
    protocol: LocalMarginals | SeveralAttributes, reports: Mapping[Any, Any], *, table: str = "reports"
) -> SyntheticModel:
    """A synthetic model of people who sent local reports, for nothing beyond what these promise.

    Parameters
    ----------
    protocol
        What the people answered with: `cloister.local.Marginals(domains, epsilon)` or `SeveralAttributes(…)`.
    reports
        What they sent: the dict that `protocol.randomize` gave, or dicts of many people put together (`protocol.aggregate` reads
        it).
    table
        The name in queries.

    >>> from cloister.local import Marginals
    >>> from cloister.noise import Random
    >>> protocol = Marginals({"smokes": ["yes", "no"], "sex": ["f", "m"]}, epsilon=2)
    >>> people = {"smokes": ["yes", "no", "no"] * 10_000, "sex": ["m", "f", "f"] * 10_000}
    >>> model = fit_reports(protocol, protocol.randomize(people, random=Random.deterministic(1)))
    >>> rows = model.sample(random=Random.deterministic(2)).to_pandas()
    >>> len(rows), bool((rows[rows.smokes == "yes"].sex == "m").mean() > 0.9), str(model.cost)
    (30000, True, 'ε = 2')
    """
    if not isinstance(protocol, LocalMarginals | SeveralAttributes):
        raise InvalidParameter(
            "protocol= is invalid",
            why="it is neither cloister.local.Marginals nor cloister.local.SeveralAttributes",
            instead='cloister.local.Marginals({"smokes": ["yes", "no"], "sex": ["f", "m"]}, epsilon=2)',
        )
    sketches: Any = protocol.aggregate(reports)
    found: Any = protocol.estimate(sketches)
    read: dict[tuple[str, ...], tuple[Floats, Floats]]
    if isinstance(protocol, LocalMarginals):
        domains, people = found.domains, found.n
        read = {names: (each, found.variances[names]) for names, each in found.tables.items() if len(names) <= _MOST}
    else:
        domains = {name: oracle.domain for name, oracle in protocol.oracles.items()}
        people = next(iter(found.values())).n
        read = {(name,): (each.counts, each.variances) for name, each in found.items()}
    names = list(domains)
    if missing := [name for name in names if not any(name in kept for kept in read)]:
        raise InvalidParameter(
            f"The protocol says nothing of {missing[0]!r}",
            why=f"none of its tables of up to {_MOST} columns has it",
            instead="sets= with a table of it",
        )
    states = [States(name, _declared(domains[name].values)) for name in names]
    tables: dict[tuple[int, ...], Noisy] = {}
    for kept, (counts, variances) in read.items():
        order = sorted(range(len(kept)), key=lambda place: names.index(kept[place]))
        places = tuple(names.index(kept[place]) for place in order)
        tables[places] = Noisy(np.transpose(counts, order), float(variances.mean()) or 1.0, laplace=False)
    for place in range(len(names)):  # the fit begins with single columns
        if (place,) not in tables:
            tables[(place,)] = _single(place, tables)
    tables = dict(sorted(tables.items(), key=lambda each: (len(each[0]), each[0])))
    marginals = Marginals(sizes=tuple(each.number for each in states), tables=tables)
    return SyntheticModel(
        table=table,
        method="reports",
        why=f"{people:,} local reports",
        columns=tuple(states),
        mixture=fitted(marginals),
        rows=float(people),
        rows_error=0.0,
        cost=protocol.guarantee,
        population=RESPONDENTS,
        charges=(),
        marked=False,
    )


def _single(place: int, tables: Mapping[tuple[int, ...], Noisy]) -> Noisy:
    """A column by itself: the inverse-variance mean of the tables that have it, summed."""
    total, weights = np.zeros(1), 0.0
    for kept, table in tables.items():
        if place in kept and len(kept) > 1:
            summed = table.counts.sum(axis=tuple(axis for axis, each in enumerate(kept) if each != place))
            weight = summed.size / (table.counts.size * table.variance)
            total, weights = total + weight * summed, weights + weight
    return Noisy(total / weights, 1 / weights, laplace=False)


def _declared(values: Any) -> Domain:
    """A list of values as a column."""
    listed = list(values)
    if isinstance(values, range) and values.step == 1:
        return Integer(values[0], values[-1])
    if not all(isinstance(value, str) for value in listed) and not all(type(value) in (int, bool) for value in listed):
        raise InvalidParameter(
            "The values of a column are invalid",
            why="rows have text, whole numbers or truth values, each column one kind",
            instead='cloister.local.Marginals({"smokes": ["yes", "no"], "age": range(18, 100)}, epsilon=2)',
        )
    return Category(listed)
