"""Which marginals are measured for a synthetic table, and the release that they make.

All one-way tables; with `pairs` every two-way table of up to 10⁴ cells; with `triples` the three-way tables of the fewest cells
besides; with `histogram` the one table of all columns; and what `about=` asks for (`workload.py`), which takes up to half of the
spend. What is charged is charged by the door before anything is read; what comes back is counts with independent noise of a known
law.

All tables count the same rows: those that have a value in every column that is not declared nullable, which is a condition of
each question (`Part.where`). Otherwise a row without a value of one column would be in the tables of the others and not in its
own, and the mean of what two tables say would be of no set of rows at all. Nobody is told how many rows are left out.

Guarantee. Neighbours differ in one person: one row, or up to `max_rows` rows where the table names a unit. Sensitivity: a row is
in at most one cell of each table, so adding or removing a person changes each table by at most m = `max_rows` (1 without a unit)
in L1 and, in the worst case of m equal rows, by m in L2. Noise and proof: table i takes a part w_i of the spend, Σ w_i = 1;
discrete Laplace noise of scale m/(w_i ε) in each cell makes it w_i ε-private (Dwork, McSherry, Nissim & Smith 2006; Ghosh,
Roughgarden & Sundararajan 2009) and all of them ε-private by sequential composition; discrete Gaussian noise of σ² = m²/(2 w_i ρ)
makes it w_i ρ-zCDP (Canonne, Kamath & Steinke 2020, theorem 4) and all of them ρ-zCDP, hence (ε, δ) by their corollary 13.
The door carries it out (`session/planning/blocks.py`, `session/planning/choice.py`) and keeps the release. Which tables are
measured, and for which part, follows from the declaration, the method and `about=` alone. Everything that this package does
afterwards reads only the release: post-processing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, prod, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.noise import DiscreteLaplace
from cloister.privacy import ZCDP, Guarantee, text_of
from cloister.session import Count, Measurer, Question, Release
from cloister.session.questions.spend import Spending, amount_of
from cloister.session.releases.uncertainty import Terms, variance
from cloister.session.workloads.marginals import Marginal
from cloister.synth.states import States
from cloister.synth.workload import About, Fixed, parts_for
from cloister.tables import And, Domain, Expression, IsNull, Not, PrivateTable, Relation

Floats: TypeAlias = npt.NDArray[np.float64]
_MOST_ROWS = 2**40
_LEAST_ROWS = 2
"""How many times the noise of a cell of a one-way table all rows must be for anything to be seen."""
Origin: TypeAlias = Mapping[str, Any]
"""What a model says of where its tables come from: `cost`, `population`, `charges`, `marked`."""


@dataclass(frozen=True)
class Noisy:
    """One measured table: an axis for each of its columns, and the noise of each of its cells."""

    counts: Floats
    variance: float
    laplace: bool
    """Whether it is one draw of Laplace noise: then far readings say little, and the fit weighs them so."""
    fourth: float = 0.0
    """The fourth cumulant of the noise, and the variance of the largest Laplace noise in it: what margins are made from."""
    largest: float = 0.0
    round: int = 0
    """After how many choices it was measured: its noise is fresh given all tables of earlier rounds."""


@dataclass(frozen=True, kw_only=True)
class Marginals:
    """All that was measured, by the places of the columns."""

    sizes: tuple[int, ...]
    tables: dict[Marginal, Noisy]
    rounds: tuple[tuple[Marginal, Noisy], ...] = ()
    """Where tables were chosen by looking (`choosing.py`), each as it was measured, in order; `tables` has their means."""
    whole: bool = False
    """Whether rows come from the table of all columns, as it was measured, rather than from a fit."""
    complete: bool = False
    """Whether every table counts the same rows: those with a value in each column that is not declared nullable."""

    @property
    def readings(self) -> list[tuple[Marginal, Noisy]]:
        """Every table, as often as it was measured."""
        return list(self.rounds or self.tables.items())

    def rows(self) -> tuple[float, float]:
        """How many rows there are, and the standard deviation of that number: every table has a noisy total of its own, and their
        inverse-variance mean is the best unbiased one. Tables that were chosen by looking at others are left out."""
        first = [table for _, table in self.readings if table.round == 0]
        variances = np.array([max(table.variance, 1e-12) * table.counts.size for table in first])
        totals = np.array([table.counts.sum() for table in first])
        known = (1 / variances).sum()
        return float((totals / variances).sum() / known), float(known**-0.5)

    def signal(self) -> float:
        """How many times the noise of a cell all rows are: what a model can tell, from released numbers alone. The noise is that
        of the mean cell; where tables were chosen by looking, the widest."""
        variances = np.array([table.variance for table in self.tables.values()])
        cells = np.array([table.counts.size for table in self.tables.values()])
        noise = variances.max() if self.rounds else (variances * cells).sum() / cells.sum()
        return float(max(self.rows()[0], 1.0) / sqrt(max(noise, 1e-12)))


def questions_for(
    table: str | Relation, states: Sequence[States], method: Fixed, about: About = (), where: Expression | None = None
) -> tuple[list[Marginal], list[Question], list[Fraction] | None]:
    """The tables of a method, how the door is asked for them, and the part of the spend that each takes (None: all the same)."""
    light = [place for place, each in enumerate(states) if each.light]
    parts = parts_for([each.number for each in states], method, about, light)
    wanted = list(parts)
    questions = [
        Question(table=table, by=tuple(states[place].key for place in kept), where=where, statistics=(Count(),), every_group=True)
        for kept in wanted
    ]
    return wanted, questions, None if len(set(parts.values())) == 1 else list(parts.values())


def declared_rows(session: Measurer, table: str) -> tuple[PrivateTable, dict[str, Domain]]:
    """The declaration of a private table, and its columns but the one that says whose row a row is."""
    declaration = session.declared(table)
    if not isinstance(declaration, PrivateTable):
        raise InvalidParameter(f"{table!r} is invalid", why="it is a public table: nothing needs hiding", instead="its own rows")
    return declaration, {name: domain for name, domain in declaration.columns.items() if name != declaration.unit}


class Part(NamedTuple):
    """What is measured of one table, or of one relation."""

    table: str | Relation
    states: Sequence[States]
    method: Fixed
    about: About = ()
    as_they_are: bool = False
    """Whether each table counts all rows with a value in its own columns: as answers of earlier do, which join them."""

    def where(self, session: Measurer, spend: Spending) -> tuple[Expression | None, bool]:
        """The condition that keeps rows with a value in every column that is not declared nullable, and whether all tables count
        the same rows: they don't on an engine without such conditions."""
        held = [Not(IsNull(each.name)) for each in self.states if not each.domain.nullable]
        if not held or self.as_they_are:
            return None, not held
        where = held[0] if len(held) == 1 else And(*held)
        try:
            session.explain(Question(table=self.table, by=(), where=where, statistics=(Count(),)), spend)
        except UnsupportedQuery:
            return None, False
        return where, True


def measure(
    session: Measurer,
    table: str | Relation,
    states: Sequence[States],
    method: Fixed,
    spend: Spending,
    *,
    about: About = (),
    as_they_are: bool = False,
    purpose: str,
) -> tuple[Marginals, Origin]:
    """Measure the tables of a method under one charge; what was bought before costs nothing again."""
    [found], origin = measure_all(session, [Part(table, states, method, about, as_they_are)], spend, purpose=purpose)
    return found, origin


def measure_all(session: Measurer, parts: Sequence[Part], spend: Spending, *, purpose: str) -> tuple[list[Marginals], Origin]:
    """Measure several tables or relations under one charge, of which each takes the same part."""
    rows = [part.where(session, spend) for part in parts]
    asked = [questions_for(*part[:4], where) for part, (where, _) in zip(parts, rows, strict=True)]
    questions = [question for _, some, _ in asked for question in some]
    shares = asked[0][2]
    if len(parts) > 1:
        shares = [each / len(parts) for _, some, own in asked for each in own or [Fraction(1, len(some))] * len(some)]
    releases = session.measure_all(questions, spend, purpose=purpose, shares=shares)
    found, left = [], iter(releases)
    for part, (wanted, _, _), (_, complete) in zip(parts, asked, rows, strict=True):
        sizes = tuple(each.number for each in part.states)
        tables = {kept: noisy(next(left), [sizes[place] for place in kept]) for kept in wanted}
        found.append(Marginals(sizes=sizes, tables=tables, whole=part.method == "histogram", complete=complete))
    first, marked = releases[0].provenance, any(release.marked for release in releases)
    origin = {"cost": releases[0].spent_by[first.population], "charges": first.charges, "marked": marked}
    return found, {"population": first.population, **origin}


def noisy(release: Release, shape: Sequence[int]) -> Noisy:
    """A released table of counts, with the noise of its cells."""
    [reading] = release.readings.values()
    return of_terms(reading.values.astype(np.float64).reshape(shape), reading.terms)


def of_terms(counts: Floats, terms: Terms) -> Noisy:
    """A table whose cells have the noise of these terms."""
    return Noisy(
        counts,
        variance(terms),
        len(terms) == 1 and isinstance(terms[0].noise, DiscreteLaplace),
        fourth=fsum(term.fourth for term in terms),
        largest=max((term.largest for term in terms), default=0.0),
    )


def combined(rounds: Sequence[tuple[Marginal, Noisy]]) -> dict[Marginal, Noisy]:
    """Each table once: the inverse-variance mean of all that was measured of it."""
    found: dict[Marginal, Noisy] = {}
    for kept, table in rounds:
        before = found.get(kept)
        if before is None:
            found[kept] = table
            continue
        old, new = 1 / max(before.variance, 1e-12), 1 / max(table.variance, 1e-12)
        one, other = old / (old + new), new / (old + new)
        found[kept] = Noisy(
            one * before.counts + other * table.counts,
            one**2 * before.variance + other**2 * table.variance,
            before.laplace and table.laplace,
            fourth=one**4 * before.fourth + other**4 * table.fourth,
            largest=max(one**2 * before.largest, other**2 * table.largest),
            round=before.round,
        )
    return found


def mean_noise(
    session: Measurer, table: str | Relation, states: Sequence[States], method: Fixed, spend: Spending, about: About = ()
) -> tuple[float, Guarantee]:
    """The standard deviation of the mean cell that a method would measure, and what it would cost: spends nothing."""
    where, _ = Part(table, states, method, about).where(session, spend)
    wanted, questions, shares = questions_for(table, states, method, about, where)
    plan = session.explain(questions, spend, shares=shares)
    sizes = [prod(states[place].number for place in kept) for kept in wanted]
    noises = [max(variance(reading.terms) for reading in part.blanks().values()) for part in plan.parts]
    mean = fsum(size * noise for size, noise in zip(sizes, noises, strict=True)) / sum(sizes)
    return sqrt(max(mean, 1e-12)), plan.cost


def check_spend(session: Measurer, table: str | Relation, states: Sequence[States], spend: Spending, size: int | None) -> None:
    """Refuses, before anything is charged, what would buy noise alone, by the owner's hint of the size, or as no table is that
    large; says what would do."""
    rows = "the table has about {size:,} rows" if size else "no table has {size:,} rows"
    size = size or _MOST_ROWS
    noise, cost = mean_noise(session, table, states, "independent", spend)
    if noise * _LEAST_ROWS <= size:
        return
    text, enough = "", amount_of(cost) * Fraction(_LEAST_ROWS * noise / size) ** (2 if isinstance(cost, ZCDP) else 1)
    while not text or mean_noise(session, table, states, "independent", text)[0] * _LEAST_ROWS > size:
        text, enough = text_of(Fraction(f"{float(enough):.2g}")), enough * Fraction(21, 20)
    raise InvalidParameter(
        f"spend={spend if isinstance(spend, str | int) else str(spend)!r} is invalid",
        why=f"counts of a single column would have noise of {noise:,.0f} rows (one standard deviation), and "
        + rows.format(size=size),
        instead=f"spend={text}, or more, or fewer columns=",
    )
