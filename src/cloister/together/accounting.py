"""What a request can cost one person of one site, worked out by the site itself: from the request and from its own declaration.

A site does not believe the hub's word for a sensitivity, and takes no request that is not of the forms that sessions ask
(`checking.py`). Neighbours: one unit's rows added or removed at this site; a unit has at most m rows here
(a row that is a unit by itself has as many as the relation makes of it). *Claim.* The noise of
the request's laws promises at least what `cost_of` says. *Proof.* Cells are disjoint, and a vector is made of one aggregation's
rows, so a row is in one cell and moves each vector v of `Combination`s by one number, a polynomial q_v in the codes of its
columns (a sum is of products of codes), for each pattern of columns without a value. On the declared box the codes'
polynomial has Bernstein coefficients β_v[i], and q_v(x) = Σ_i β_v[i]·B_i(x), where the B_i are not negative and add up to 1.
Hence

    Σ_v |q_v(x)|/s_v ≤ max_i Σ_v |β_v[i]|/s_v        and        Σ_v q_v(x)²/σ_v² ≤ max_i Σ_v β_v[i]²/σ_v²,

the second by Jensen's inequality. m rows add up to at most m times the first, and m² times the second (triangle inequality).
A Laplace vector of scale s_v loses at most ‖v‖₁/s_v, a Gaussian one of variance parameter σ_v² promises ‖v‖₂²/2σ_v² in ρ, and
both add up over vectors (Dwork et al. 2006; Canonne, Kamath & Steinke 2020, Theorem 14). Vectors of different columns are
bounded apart and added up. A row is in one block of each level of a hierarchy, and moves a strategy's answers by a column of
its matrix. ∎

A sum over rows (`RowSums`) moves by its own `length` in L2 for each row, in m rows by m times that.

For the blocks that sessions measure the bound is what the hub charges: the parts of a bounded column are Bernstein polynomials.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from math import comb, lcm, prod
from typing import Any, TypeAlias

from cloister.errors import UnsupportedQuery
from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.privacy import ZCDP, Guarantee, PureDP, zero_of
from cloister.tables import Aggregate, Aggregation, Domain, Text
from cloister.tables.engines.compiler import Declared
from cloister.tables.engines.noised import Combination, Integers, LevelSums, NoisedRequest, RangeSums
from cloister.tables.engines.row_sums import RowSums
from cloister.together.checking import check_request

Powers: TypeAlias = tuple[int, ...]
Polynomial: TypeAlias = dict[Powers, int]
_MOST_COLUMNS = 4
"""In one vector: more have too many patterns of missing values to look at each."""
_MOST_TERMS = 1 << 22
"""Of all polynomials of some columns, times the coefficients of each: worked out in seconds, before anything is charged."""


@dataclass(frozen=True)
class Loss:
    """How much is lost in ε by vectors with Laplace noise, and in 2ρ by those with Gaussian noise."""

    epsilon: Fraction = Fraction(0)
    doubled_rho: Fraction = Fraction(0)

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.epsilon + other.epsilon, self.doubled_rho + other.doubled_rho)

    @property
    def guarantee(self) -> Guarantee:
        """As one guarantee; where both laws occur, ε counts as ε²/2 of ρ."""
        if not self.doubled_rho:
            return PureDP(self.epsilon)
        return ZCDP((self.doubled_rho + self.epsilon**2) / 2)


def with_besides(cost: Guarantee, besides: Iterable[Guarantee], remaining: Guarantee) -> Guarantee:
    """What a request costs with those besides it under one charge, each in the measure of a budget of which so much remains.

    >>> with_besides(PureDP(1), [PureDP(1)], PureDP(3)), with_besides(PureDP(1), [PureDP(1)], ZCDP(3))
    (PureDP(epsilon='2'), ZCDP(rho='1'))
    """
    others = tuple(besides)
    return sum(others, zero_of(remaining) + cost) if others else cost


def cost_of(request: NoisedRequest, declared: Declared) -> Guarantee:
    """An upper bound of what the request costs each unit of a table that is declared so; `UnsupportedQuery` for a request that
    is not linear.

    >>> from cloister.tables import Integer, PrivateTable
    >>> from cloister.tables.engines.noised import Cells
    >>> people = PrivateTable({"age": [39]}, columns={"age": Integer(17, 90)})
    >>> rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    >>> request = NoisedRequest(table="people", aggregations=(Aggregation(people),), integers=(rows,), cells=Cells())
    >>> cost_of(request, people)
    PureDP(epsilon='0.1')
    """
    check_request(request, declared)
    if request.fit is not None:
        return _of_row_sums(request, declared)
    aggregates: dict[str, tuple[Aggregate, int]] = {}
    for aggregation in request.aggregations:
        most = _most_rows(aggregation, declared)
        aggregates.update({each.name: (each, most) for each in aggregation.aggregates})
    assert request.cells is not None
    cells = request.cells.count
    total, apart = Loss(), defaultdict[tuple[frozenset[str], int], list[Integers]](list)
    for integers in request.integers:
        if isinstance(integers.map, Combination):
            parts = [aggregates[name] for name, _ in integers.map.parts]
            most = max(most for _, most in parts)
            if [each.kind for each, _ in parts] == ["units"]:
                total += _of_units(integers, min(most, cells))
                continue
            columns = frozenset[str]().union(*(_columns_of(each) for each, _ in parts))
            apart[columns, most].append(integers)
        elif isinstance(integers.map, RangeSums):
            total += _of_ranges(integers.map, integers.law, aggregates[integers.map.aggregate][1])
        elif isinstance(integers.map, LevelSums):
            hierarchy = request.hierarchies[integers.map.hierarchy]
            total += _of_levels(integers.map, integers.law, hierarchy.weights, _most_rows(hierarchy.aggregation, declared))
    named = {name: each for name, (each, _) in aggregates.items()}
    for (columns, most), vectors in apart.items():
        total += _of_columns(sorted(columns), vectors, named, declared, most)
    return total.guarantee


def rows_of_a_unit(declared: Declared) -> int:
    """How many rows of a unit a sum over rows adds up."""
    return declared.max_rows or 1


def _of_row_sums(request: NoisedRequest, declared: Declared) -> Guarantee:
    """By the one sum over rows of a request."""
    [integers] = request.integers
    assert isinstance(integers.map, RowSums)
    length = Fraction(integers.map.length * rows_of_a_unit(declared))
    return _loss(integers.law, length, length**2).guarantee


def _most_rows(aggregation: Aggregation, declared: Declared) -> int:
    """How many rows of a unit can count. Where a row is a unit, a relation may make several of it, and no place says which are
    the first: all of them count."""
    if declared.unit is None:
        return declared.max_rows or 1
    found = aggregation.max_rows if aggregation.max_rows is not None else declared.max_rows
    assert found is not None
    return found


def _columns_of(aggregate: Aggregate) -> frozenset[str]:
    return frozenset([*(name for name, _ in aggregate.factors), *aggregate.present])


def _loss(law: Any, l1: Fraction, l2_squared: Fraction) -> Loss:
    """By a vector that moves so far in either norm."""
    if isinstance(law, DiscreteLaplace):
        return Loss(epsilon=l1 / law.scale)
    if isinstance(law, DiscreteGaussian):
        return Loss(doubled_rho=l2_squared / law.scale_squared)
    raise UnsupportedQuery(
        f"Noise of the kind {type(law).__name__} is refused", why="its law is not additive", instead="Laplace or Gaussian noise"
    )


def _of_units(integers: Integers, groups: int) -> Loss:
    """A unit adds at most 1 in each of so many cells."""
    assert isinstance(integers.map, Combination)
    [(_, coefficient)] = integers.map.parts
    return _loss(integers.law, Fraction(abs(coefficient) * groups), Fraction(coefficient**2 * groups))


def _of_ranges(sums: RangeSums, law: Any, rows: int) -> Loss:
    """A row is in as many ranges as overlap where they overlap most."""
    wide = Fraction(rows * sums.overlap)
    return _loss(law, wide * sums.strategy.l1, wide**2 * sums.strategy.l2_squared)


def _of_levels(sums: LevelSums, law: Any, weights: tuple[int, ...], rows: int) -> Loss:
    """A row is in one block of each level."""
    held = weights[-1:] if sums.total else weights[:-1] if sums.apart else weights
    return _loss(law, Fraction(rows * sum(map(abs, held))), Fraction(rows**2 * sum(weight**2 for weight in held)))


# ── polynomials of one row ───────────────────────────────────────────────────────────────────────


def _of_columns(
    columns: list[str], vectors: list[Integers], aggregates: Mapping[str, Aggregate], declared: Declared, rows: int
) -> Loss:
    """By vectors that are polynomials in the same columns: the worst pattern of missing values."""
    if len(columns) > _MOST_COLUMNS:
        raise UnsupportedQuery(
            f"A number made of {len(columns)} columns is refused", why=f"at most {_MOST_COLUMNS} are", instead="fewer columns"
        )
    _check_terms(columns, vectors, aggregates)
    patterns = [set(some) for size in range(len(columns) + 1) for some in combinations(columns, size)]
    found = [_of_pattern([name for name in columns if name in some], vectors, aggregates, declared) for some in patterns]
    epsilon, doubled = max(each.epsilon for each in found), max(each.doubled_rho for each in found)
    return Loss(rows * epsilon, rows**2 * doubled)


def _check_terms(columns: list[str], vectors: list[Integers], aggregates: Mapping[str, Aggregate]) -> None:
    """Before a polynomial is made: how many terms the powers of its factors allow, times the coefficients of each."""
    made, held, highest = 0, 0, Counter[str]()
    for each in vectors:
        assert isinstance(each.map, Combination)
        own = Counter[str]()
        for name, _ in each.map.parts:
            powers = Counter(column for column, _ in aggregates[name].factors)
            made += prod(power + 1 for power in powers.values())
            own |= powers
        held += prod(power + 1 for power in own.values())
        highest |= own
    if made > _MOST_TERMS or held * prod(power + 1 for power in highest.values()) > _MOST_TERMS:
        raise UnsupportedQuery(
            f"A request of {len(vectors)} numbers of {len(columns)} columns is refused",
            why="their products have too many terms to bound what a row moves",
            instead="numbers of fewer columns, or of lower powers",
        )


def _of_pattern(present: list[str], vectors: list[Integers], aggregates: Mapping[str, Aggregate], declared: Declared) -> Loss:
    """By one row in which these columns have a value and the others have none."""
    box = [_box(declared.columns[name]) for name in present]
    polynomials = [_polynomial(each, aggregates, present, box) for each in vectors]
    degrees = [max((powers[axis] for each in polynomials for powers in each), default=0) for axis in range(len(present))]
    places = list(product(*(range(degree + 1) for degree in degrees)))
    ways = [_ways(degree, high - low) for degree, (low, high) in zip(degrees, box, strict=True)]
    whole = prod(_common(degree) for degree in degrees)
    absolute, squares = (
        defaultdict[Any, list[int]](lambda: [0] * len(places)),
        defaultdict[Any, list[int]](lambda: [0] * len(places)),
    )
    for integers, polynomial in zip(vectors, polynomials, strict=True):
        for at, place in enumerate(places):
            coefficient = _bernstein(polynomial, place, ways)
            absolute[integers.law][at] += abs(coefficient)
            squares[integers.law][at] += coefficient**2
    losses = [Loss() for _ in places]
    for law, found in absolute.items():
        ones, others = _loss(law, Fraction(1, whole), Fraction(0)), _loss(law, Fraction(0), Fraction(1, whole**2))
        for at, (l1, l2_squared) in enumerate(zip(found, squares[law], strict=True)):
            losses[at] += Loss(ones.epsilon * l1, others.doubled_rho * l2_squared)
    return Loss(max(each.epsilon for each in losses), max(each.doubled_rho for each in losses))


def _box(domain: Domain) -> tuple[int, int]:
    """Between which codes a value is. Of a text it matters alone whether there is one: it is not added up."""
    return (0, 0) if isinstance(domain, Text) else (domain.low_code, domain.high_code)


def _polynomial(
    integers: Integers, aggregates: Mapping[str, Aggregate], present: list[str], box: list[tuple[int, int]]
) -> Polynomial:
    """What one row adds, in the codes less the lowest of each column."""
    assert isinstance(integers.map, Combination)
    total = defaultdict[Powers, int](int)
    for name, coefficient in integers.map.parts:
        aggregate = aggregates[name]
        if not _columns_of(aggregate) <= set(present):
            continue  # a value is missing: such a row adds nothing
        terms: Polynomial = {(0,) * len(present): coefficient}
        for column, offset in aggregate.factors if aggregate.kind == "sum" else ():
            axis = present.index(column)
            shift, grown = box[axis][0] - offset, defaultdict[Powers, int](int)
            for powers, value in terms.items():
                if shift:
                    grown[powers] += value * shift
                grown[(*powers[:axis], powers[axis] + 1, *powers[axis + 1 :])] += value
            terms = grown
        for powers, value in terms.items():
            total[powers] += value
    return dict(total)


def _bernstein(polynomial: Polynomial, place: Powers, ways: list[list[list[int]]]) -> int:
    """A Bernstein coefficient, Σ_k Π C(i, k)/C(n, k)·Wᵏ·a_k over k ≤ i, times the common multiples of the C(n, k)."""
    return sum(
        coefficient * prod(way[i][k] for way, i, k in zip(ways, place, powers, strict=True))
        for powers, coefficient in polynomial.items()
    )


@lru_cache(maxsize=256)
def _ways(degree: int, width: int) -> list[list[int]]:
    """C(i, k)/C(n, k)·Wᵏ times the least common multiple of all C(n, k), for each i and k of one axis."""
    whole = _common(degree)
    return [[comb(i, k) * width**k * (whole // comb(degree, k)) for k in range(degree + 1)] for i in range(degree + 1)]


def _common(degree: int) -> int:
    return lcm(*(comb(degree, k) for k in range(degree + 1)))
