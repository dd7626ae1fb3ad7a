"""Bins whose cuts are bought: quantile bins of numbers and of categories of many values, and days by weekday and month.

*Quantile bins.* Values of a declared range fall into a tree of public cells, 16 to a cell of the level above, down to at most 2¹⁶
cells (categories: two levels, runs of neighbours in the declared order and single ones). The counts of all levels are measured;
from the top each noisy count is shared among the cells below as long as some of them stand out of their noise: these have their
own, the others together what is left. So wide empty stretches stay whole, and noise invents no rows in them. What is left are
leaves, each with a noisy weight. Bins are runs of leaves with about as many rows each, and a value inside a bin is drawn by the
weights of its leaves: the shape. It tells a long tail from its middle, where bins of equal width have nearly all rows in one.

*Calendar.* Days stay in bins of equal width, and the table of weekday × month of all rows is measured. A day inside a bin is as
likely as rows are on such days, so drawn days keep weekday and season.

Guarantee. Neighbours differ in one person: one row, or at most m = `max_rows` rows. A row lies in one cell of each table that is
measured here, so a person changes each by at most m in L1, and the noise and the proof are those of `measuring.py`: all of the
tables take the part of the spend that is theirs, under one charge. What follows, the cuts and the shape, reads only what was
released: post-processing. The marginals are measured next, in these bins, for the rest of the spend. That they depend on the
first release is adaptive composition, which adds the two parts (Dwork, Rothblum & Vadhan 2010 for ε and δ; Bun & Steinke 2016,
lemma 2.3, for ρ). Which columns are cut so is what the caller named.

The tree is that of Hay, Rastogi, Miklau & Suciu (2010), stopped where it tells nothing more, as in PrivTree (Zhang, Xiao & Xie
2016).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from cloister.errors import BudgetExceeded
from cloister.privacy import Guarantee, sequential
from cloister.session import Count, Measurer, Question
from cloister.session.questions.spend import Spending, amount_of, spend_of
from cloister.synth.measuring import Floats, Noisy, Origin, noisy
from cloister.synth.mixture import on_simplex
from cloister.synth.pieces import Integers, Shape
from cloister.synth.states import Calendar, QuantileBins, States
from cloister.tables import Base, Category, Domain, Extended, Key, PrivateTable, Relation, Runs, Strided
from cloister.tables.expression.scalars import DatePart, Ref

_BRANCHING, _MOST_LEAVES, _WIDEST = 16, 2**16, 316
_SEEN = 4
"""How many deviations of its noise a count is that stands out of it: others are told by what is left."""
_LEFT = 3
_MOST_OF, _FALSE = 0.8, 1e-3
"""Where one cell has more than this part of what is shared, rows are a little of a wide range, and a false count far off would
move the mean by a factor: there a count stands out that noise reaches in no cell but once in a thousand times."""
_PART, _MOST_PARTS = Fraction(1, 10), Fraction(3, 10)
"""What part of the spend the cuts of a column take, and of all columns together."""
_FAINT = 1e-6
"""Of the weight of a bin, spread over all of its values: a condition on rare ones can be drawn too."""


@dataclass(frozen=True)
class _Bought:
    """What is measured for one column: of a relation, by keys, into so many cells each."""

    place: int
    source: str | Relation
    keys: tuple[tuple[str | Key, ...], ...]
    sizes: tuple[tuple[int, ...], ...]


def cut(
    session: Measurer,
    table: str,
    states: Sequence[States],
    asked: Mapping[str, QuantileBins | Calendar],
    spend: Spending,
    purpose: str,
    after: Fraction,
) -> tuple[list[States], Spending, Origin]:
    """The columns with the bins and shapes that were bought, what is left of the spend, of which up to `after` of the δ is
    needed, and where they come from."""
    wanted = _wanted(session, table, states, asked)
    if not wanted:
        return list(states), spend, {}
    whole, first, rest = _divided(session, table, len(wanted), spend)
    questions, shares = _questions(wanted)
    plan, population = session.explain(questions, first, shares=shares), session.population_of(table)[0]
    remaining = session.remaining_by[population]
    short = amount_of(remaining) < amount_of(whole) or remaining.delta < plan.cost.delta + min(rest.delta, after)
    if short and not plan.repeated:  # the cuts alone would be of no use
        raise BudgetExceeded(
            f"A charge of {whole} to population {population!r} was refused",
            why=f"{remaining} of its budget remains",
            instead="a smaller spend=, or a budget that its owner raises",
        )
    releases = iter(session.measure_all(questions, first, purpose=purpose, shares=shares))
    found, last = list(states), None
    for each in wanted:
        tables = []
        for sizes in each.sizes:
            last = next(releases)
            own = found[each.place].domain.nullable
            tables.append(noisy(last, [*(size + own for size in sizes)]))
        found[each.place] = _cut(found[each.place], asked[found[each.place].name], each, tables)
    assert last is not None
    origin = {"cost": last.spent_by[last.provenance.population], "charges": last.provenance.charges, "marked": last.marked}
    return found, rest, origin


def cut_in_advance(
    session: Measurer, table: str, states: Sequence[States], asked: Mapping[str, QuantileBins | Calendar], spend: Spending
) -> tuple[list[States], Spending, Guarantee | None]:
    """The columns in as many bins as cuts may make, since where these will lie nobody knows; what is left of the spend; and what
    the cuts cost, where any are bought."""
    if not (wanted := _wanted(session, table, states, asked)):
        return list(states), spend, None
    _, first, rest = _divided(session, table, len(wanted), spend)
    questions, shares = _questions(wanted)
    return [as_if_cut(each, asked.get(each.name)) for each in states], rest, session.explain(questions, first, shares=shares).cost


def as_if_cut(states: States, asked: QuantileBins | Calendar | None) -> States:
    """A column in as many bins as its cuts may make: twice as many as were asked for (`_bins`).

    >>> from cloister.tables import Integer
    >>> states = States("pay", Integer(0, 999), Strided("pay", 10))
    >>> as_if_cut(states, QuantileBins("pay", 7)).number, as_if_cut(states, None).number
    (15, 100)
    """
    if not isinstance(asked, QuantileBins) or states.bins is None:
        return states
    low, end = states.domain.low_code, states.domain.high_code + 1
    step = max((end - low) // (2 * asked.bins), 1)  # rounded down: no fewer than that
    return replace(states, bins=Runs(states.name, (*range(low, end, step), end)))


def both(first: Origin, second: Origin) -> Origin:
    """Where something comes from that was bought in two charges."""
    if not first or not second:
        return first or second
    return {
        **second,
        "cost": sequential([first["cost"], second["cost"]]),
        "charges": tuple(dict.fromkeys((*first["charges"], *second["charges"]))),
        "marked": first["marked"] or second["marked"],
    }


def _divided(session: Measurer, table: str, cuts: int, spend: Spending) -> tuple[Guarantee, Guarantee, Guarantee]:
    """All of a spend, what so many cuts take of it, and what is left."""
    whole, part = spend_of(spend, session.population_of(table)[1]), min(_PART * cuts, _MOST_PARTS)
    first, rest = (whole.guarantee(whole.amount * each, whole.delta * each) for each in (part, 1 - part))
    return whole.whole(), first, rest


def _wanted(
    session: Measurer, table: str, states: Sequence[States], asked: Mapping[str, QuantileBins | Calendar]
) -> list[_Bought]:
    found = []
    for place, each in enumerate(states):
        match asked.get(each.name):
            case QuantileBins() if each.bins is not None:  # else each value is a state
                keys = _levels(each)
                sizes = tuple((_size(key, each.domain),) for key in keys)
                found.append(_Bought(place, table, tuple((key,) for key in keys), sizes))
            case Calendar() if each.bins is not None:
                declared = session.declared(table)
                assert isinstance(declared, PrivateTable)
                source = _calendar(table, declared, each.name)
                parts = tuple(_size(key, source.columns[key]) for key in _parts(each.name))
                found.append(_Bought(place, source, (_parts(each.name),), (parts,)))
    return found


def _size(key: str | Key, domain: Domain) -> int:
    return domain.high_code - domain.low_code + 1 if isinstance(key, str) else key.size(domain)


def _levels(states: States) -> list[str | Key]:
    """The levels of the tree, from the top."""
    name, domain = states.name, states.domain
    size, last = domain.high_code - domain.low_code + 1, domain.high_code + 1
    whole = Runs(name, (domain.low_code, last))
    if isinstance(domain, Category):
        step = max(-(-size // _WIDEST), 2)
        return [whole, Runs(name, (*range(domain.low_code, last, step), last)), name]
    strides = [-(-size // _MOST_LEAVES)]
    while -(-size // strides[-1]) > _BRANCHING:
        strides.append(strides[-1] * _BRANCHING)
    return [whole, *(Strided(name, stride) for stride in reversed(strides))]


def _questions(wanted: Sequence[_Bought]) -> tuple[list[Question], list[Fraction]]:
    """How the door is asked, and the share of each table: the same for each column, and for each level of a tree."""
    questions = [Question(table=each.source, by=keys, statistics=(Count(),)) for each in wanted for keys in each.keys]
    return questions, [Fraction(1, len(wanted) * len(each.keys)) for each in wanted for _ in each.keys]


def _cut(states: States, asked: Any, bought: _Bought, tables: Sequence[Noisy]) -> States:
    if isinstance(asked, Calendar):
        months = bought.source.columns[_parts(states.name)[1]]  # type: ignore[union-attr]
        return replace(states, shape=_seasons(states, tables[0], (months.low_code, _size("", months))))
    starts, weights = _leaves(states, [key for (key,) in bought.keys], tables)
    ends = np.append(starts, states.domain.high_code + 1)
    lengths = np.diff(ends).astype(np.float64)
    cuts = _bins(weights, lengths, asked.bins)
    codes = (*starts[cuts].tolist(), states.domain.high_code + 1)
    sizes = np.add.reduceat(weights, cuts)
    place = np.repeat(np.arange(len(cuts)), np.diff(np.append(cuts, len(starts))))
    faint = _FAINT * np.maximum(sizes, 1.0)[place] * lengths / np.add.reduceat(lengths, cuts)[place]
    return States(
        states.name, states.domain, Runs(states.name, codes), Shape(tuple(ends.tolist()), tuple((weights + faint).tolist()))
    )


def _leaves(states: States, keys: Sequence[str | Key], tables: Sequence[Noisy]) -> tuple[Integers, Floats]:
    """The first code of each leaf, and its weight."""
    domain, leaves = states.domain, list[tuple[int, float]]()
    every = np.arange(domain.low_code, domain.high_code + 2)
    edges = [every if isinstance(key, str) else np.array(key.starts(domain), dtype=np.int64) for key in keys]
    place, weights = np.zeros(1, dtype=np.int64), np.maximum(tables[0].counts[:1], 1.0)
    for upper, lower, table in zip(edges, edges[1:], tables[1:], strict=False):
        first, last = np.searchsorted(lower, upper[place]), np.searchsorted(lower, upper[place + 1])
        below, shares, noise = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], sqrt(table.variance)
        strict = 0.0 if isinstance(domain, Category) else _clear(table, _BRANCHING)
        for code, low, high, weight in zip(upper[place].tolist(), first.tolist(), last.tolist(), weights.tolist(), strict=True):
            found = None
            if high - low > 1 and weight > _SEEN * noise:
                found = _shared(table.counts[low:high], weight, noise, strict)
            if found is None:
                leaves.append((code, weight))
            else:
                below.append(np.arange(low, high))
                shares.append(found)
        place, weights = np.concatenate(below), np.concatenate(shares)
    leaves = sorted([*leaves, *zip(edges[-1][place].tolist(), weights.tolist(), strict=True)])
    return np.array([code for code, _ in leaves], dtype=np.int64), np.array([weight for _, weight in leaves])


def _clear(table: Noisy, cells: int) -> float:
    """What noise alone exceeds in any of so many cells once in a thousand times."""
    if table.laplace:
        return sqrt(table.variance / 2) * log(cells / (2 * _FALSE))
    return sqrt(table.variance) * NormalDist().inv_cdf(1 - _FALSE / cells)


def _shared(counts: Floats, total: float, noise: float, strict: float) -> Floats | None:
    """A count shared among cells by their noisy counts: those that stand out of the noise have theirs, the others share what is
    left by the projection on what counts can be, or nothing where that is noise; None where none stands out. Where one cell has
    nearly all, counts up to `strict` are noise too.

    >>> _shared(np.array([90.0, 12.0, -9.0, 4.0]), 100.0, 8.0, 0.0).tolist()
    [100.0, 0.0, 0.0, 0.0]
    >>> _shared(np.array([900.0, 12.0, -9.0, 44.0]), 950.0, 8.0, 50.0).tolist()
    [950.0, 0.0, 0.0, 0.0]
    """
    alone = counts.max() > _MOST_OF * total
    least, least_left = (max(each * noise, strict * alone) for each in (_SEEN, _LEFT))
    seen = counts > least
    if not seen.any():
        return None
    left = total - float(counts[seen].sum())
    if left > least_left * sqrt(1 + seen.sum()) and not seen.all():
        found = counts.copy()
        found[~seen] = on_simplex(counts[~seen], left)
        return found
    return np.asarray(np.where(seen, counts, 0.0) * total / counts[seen].sum())


def _bins(weights: Floats, lengths: Floats, bins: int) -> Integers:
    """The leaves with which a bin begins: each holds about as many rows, and a leaf with more of them is a bin of its own. Wide
    leaves are in no bin with narrow ones: what the marginals then say about a bin puts right what the tree said of its leaves.

    >>> _bins(np.array([1.0, 1.0, 9.0, 1.0, 0.0]), np.ones(5), 4).tolist()
    [0, 2, 3]
    >>> _bins(np.array([1.0, 1.0, 1.0]), np.array([1.0, 1.0, 16.0]), 2).tolist()
    [0, 2]
    """
    step = weights.sum() / bins
    turn = ((np.cumsum(weights) - weights) / step * (1 + 1e-9)).astype(np.int64)
    begins = np.append(True, np.diff(turn) > 0) | (weights >= step)
    begins &= weights > 0  # what is empty belongs to the bin before it, whose shape says so
    begins[0] = True
    some = np.flatnonzero(weights > 0)
    apart = some[1:][np.diff(lengths[some]) != 0]
    begins[apart[~begins[apart]][: max(2 * bins - int(begins.sum()), 0)]] = True  # of the others there are no more than twice
    return np.flatnonzero(begins)


def _parts(name: str) -> tuple[str, str]:
    return f"{name}'weekday", f"{name}'month"


def _calendar(table: str, declared: PrivateTable, name: str) -> Relation:
    """The table with weekday and month of a day."""
    day, month = _parts(name)
    scalars = ((day, DatePart("isodow", Ref(name))), (month, DatePart("month", Ref(name))))
    return Extended(source=Base(name=table, table=declared), scalars=scalars)


def _seasons(states: States, table: Noisy, months: tuple[int, int]) -> Shape:
    """Each day as likely as rows are on such days: of its weekday and month."""
    first, number = months
    counts = table.counts[:7, :number]
    found = on_simplex(counts.ravel(), max(float(counts.sum()), 1.0))
    codes = np.arange(states.domain.low_code, states.domain.high_code + 1)
    of_year = codes.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1
    cell = (codes + 3) % 7 * number + of_year - first  # the first day of the calendar was a Thursday
    days = np.bincount(cell, minlength=len(found))
    rate = found / np.maximum(days, 1)
    weights = rate[cell] + _FAINT * max(float(rate.max()), _FAINT)
    return Shape((*codes.tolist(), states.domain.high_code + 1), tuple((weights / weights.mean()).tolist()))
