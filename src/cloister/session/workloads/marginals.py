"""Several marginals of one table: what each says about the others, and the tables that agree with each other and with all.

A *marginal* is named by the axes that it keeps, a sorted tuple of their numbers: `()` is the total, `(0, 2)` the table of axes 0
and 2. Axis i has n_i groups, that of rows without a value included, so that each marginal is an exact sum of the finest table.

Every table splits into *effects*, one for each set T of axes: what the marginal T has beyond those of fewer axes, i.e. its
values after the mean over each axis of T was taken away, θ_T = C_T Q_T x (x the finest table, Q_T the sums to marginal T, C_T =
⊗(I − 11ᵀ/n_i) over T). Effects of different T are orthogonal, and Q_V x = Σ_{T ⊆ V} θ_T / Π_{V∖T} n_i, spread over the other
axes. A marginal S that was measured with independent noise of variance σ_S² in each cell informs on every T ⊆ S: its sums over
S∖T, centred, are θ_T plus noise of variance σ_S² Π_{S∖T} n_i before centring.

Claim. θ̂_T = Σ_{S ⊇ T} u_S (centred sums of S) / U_T, with u_S = 1/(σ_S² Π_{S∖T} n_i) and U_T = Σ u_S, put together for each V,
is the generalised least-squares estimate, the least variance of all linear unbiased ones (Gauss–Markov; Aitken 1935).
Proof: the normal matrix Σ_S Q_SᵀQ_S/σ_S² is a sum of ⊗(I or 11ᵀ), which all have the effect spaces as eigenspaces, with
eigenvalue Σ_{S ⊇ T} Π_{i∉S} n_i/σ_S² ∝ U_T on that of T; so least squares solves each effect by itself, and there it is the
inverse-variance mean of independent readings. The noise of one table is white, so its effects are uncorrelated, and the
variance of a cell of V is Σ_{T ⊆ V} Π_T (1 − 1/n_i) / (U_T Π_{V∖T} n_i²). (The decomposition: Xiao, He, Zhang & Kifer 2023;
McKenna, Miklau, Hay & Machanavajjhala 2018, section 6.3.)

It is all post-processing: no privacy is argued here.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum, prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.session.releases.uncertainty import Terms, scaled, variance
from cloister.session.workloads.marginal_terms import Copies, gathered

Marginal: TypeAlias = tuple[int, ...]
"""The axes that a marginal keeps, sorted."""

Floats: TypeAlias = npt.NDArray[np.float64]

_NOTHING = 1e-30  # the variance of noise at a very large ε, which is 0 in floating point, must not divide by itself


def subsets(axes: Marginal) -> Iterator[Marginal]:
    """All marginals of a marginal, itself included, the smallest first.

    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    for number in range(len(axes) + 1):
        yield from combinations(axes, number)


def union(marginals: Collection[Marginal]) -> Marginal:
    """All axes of some marginals.

    >>> union([(0,), (2, 3)])
    (0, 2, 3)
    """
    return tuple(sorted({axis for axes in marginals for axis in axes}))


def cells(sizes: Sequence[int], axes: Collection[int]) -> int:
    """How many cells the table of these axes has.

    >>> cells((2, 16, 5), (0, 2))
    10
    """
    return prod(sizes[axis] for axis in axes)


def check_marginals(sizes: Sequence[int], marginals: Collection[Marginal], name: str) -> None:
    """Refuse what is no marginal of a table with these axes.

    >>> check_marginals((2, 16, 5), [(), (0, 2)], "wanted")
    """
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in sizes):
        raise InvalidParameter(
            f"sizes={tuple(sizes)!r} is invalid", why="each is a number of groups, at least 1", instead="sizes=(2, 16, 5)"
        )
    known = set(range(len(sizes)))
    for axes in marginals:
        if not isinstance(axes, tuple) or not set(axes) <= known or list(axes) != sorted(set(axes)):
            raise InvalidParameter(
                f"{name} is invalid",
                why=f"{axes!r} does not name different axes of {len(sizes)}, in order",
                instead=f"{name}=[(), (0,), (0, 1)]",
            )
    if not marginals:
        raise InvalidParameter(f"{name} is invalid", why="it names no marginal", instead=f"{name}=[(), (0,), (0, 1)]")


def effects_of(sizes: Sequence[int], marginals: Collection[Marginal]) -> list[Marginal]:
    """The effects that these marginals are made of. An axis with one group has none.

    >>> effects_of((2, 1, 3), [(0, 1), (2,)])
    [(), (0,), (2,)]
    """
    found = {part for axes in marginals for part in subsets(tuple(axis for axis in axes if sizes[axis] > 1))}
    return sorted(found, key=lambda part: (len(part), part))


def precision(sizes: Sequence[int], measured: Mapping[Marginal, float], effect: Marginal) -> float:
    """U_T: what the measured marginals, each with its variance, say about an effect; 0 where they tell nothing.

    >>> precision((2, 3), {(0,): 1.0, (0, 1): 1.0}, (0,))
    1.3333333333333333
    """
    kept = set(effect)
    return fsum(1 / (noise * cells(sizes, set(axes) - kept)) for axes, noise in measured.items() if kept <= set(axes))


def cell_variances(
    sizes: Sequence[int], measured: Mapping[Marginal, float], wanted: Collection[Marginal]
) -> dict[Marginal, float]:
    """The variance of a cell of each wanted marginal, from the variances of the cells of the measured ones.

    >>> found = cell_variances((2, 3), {(0, 1): 1.0}, [(), (0,)])
    >>> round(found[()], 9), round(found[(0,)], 9)
    (6.0, 3.0)
    """
    check_marginals(sizes, wanted, "wanted")
    check_marginals(sizes, measured.keys(), "measured")
    known = {effect: _known(sizes, measured, effect) for effect in effects_of(sizes, wanted)}
    return {
        axes: fsum(
            prod(1 - 1 / sizes[axis] for axis in effect) / (known[effect] * cells(sizes, set(axes) - set(effect)) ** 2)
            for effect in effects_of(sizes, [axes])
        )
        for axes in wanted
    }


def consistent(
    sizes: Sequence[int], readings: Mapping[Marginal, tuple[npt.NDArray[Any], Terms]], wanted: Collection[Marginal]
) -> dict[Marginal, tuple[Floats, Terms]]:
    """The least-squares estimate of each wanted marginal from the measured ones, and the noises in each of its cells.

    `readings` holds each measured table, an axis for each axis that it keeps, with the noises of one of its cells; noises of
    different cells and tables are independent. The tables that come back add up to each other, to rounding error, and the
    noises have exactly the variance of the cell (`marginal_terms.py` says how many small ones are put together).

    >>> from cloister.noise import DiscreteGaussian
    >>> from cloister.session.releases.uncertainty import Term
    >>> noise = (Term(1.0, DiscreteGaussian(scale=10)),)
    >>> found = consistent((3,), {(): (np.array(33), noise), (0,): (np.array([5, 10, 15]), noise)}, [(), (0,)])
    >>> found[()][0].round(6).tolist(), found[(0,)][0].round(6).tolist(), round(variance(found[()][1]), 6)
    (32.25, [5.75, 10.75, 15.75], 75.0)
    """
    check_marginals(sizes, wanted, "wanted")
    check_marginals(sizes, readings.keys(), "readings")
    tables = {axes: _table(sizes, axes, values) for axes, (values, _) in readings.items()}
    noise = {axes: max(variance(terms), _NOTHING) for axes, (_, terms) in readings.items()}
    whole = {effect: _known(sizes, noise, effect) for effect in effects_of(sizes, wanted)}
    estimates: dict[Marginal, Floats] = {}
    for effect in whole:
        parts = [
            _centred(table.sum(axis=_places(axes, set(axes) - set(effect)))) * (_told(sizes, noise, axes, effect) / whole[effect])
            for axes, table in tables.items()
            if set(effect) <= set(axes)
        ]
        estimates[effect] = np.sum(parts, axis=0)
    laws = {axes: terms for axes, (_, terms) in readings.items()}
    return {
        axes: (spread_out(sizes, axes, estimates), gathered(copies_of(sizes, axes, laws, whole)))
        for axes in dict.fromkeys(wanted)
    }


def copies_of(
    sizes: Sequence[int], axes: Marginal, laws: Mapping[Marginal, Terms], whole: Mapping[Marginal, float]
) -> list[Copies]:
    """The weights of all noises in one cell v of the table of `axes`, and how often each occurs. `whole` holds U_T.

    The noise of cell c of table S enters through the effects T ⊆ V∩S with Π_{i∈T} (1{c_i = v_i} − 1/n_i): so its weight depends
    only on which of the axes that both tables keep have c_i = v_i, and there are Π (n_i − 1) over the others of them, times
    Π_{S∖V} n_i, such cells.

    >>> from cloister.noise import DiscreteGaussian
    >>> from cloister.session.releases.uncertainty import Term
    >>> one = (Term(1.0, DiscreteGaussian(scale=10)),)
    >>> [(round(each.term.weight, 6), each.number) for each in copies_of((3,), (), {(0,): one}, {(): 1 / 300})]
    [(1.0, 3)]
    """
    found: list[Copies] = []
    noise = {measured: max(variance(terms), _NOTHING) for measured, terms in laws.items()}
    for measured, terms in laws.items():
        shared = tuple(axis for axis in axes if axis in measured)
        weights, numbers = np.zeros((2,) * len(shared)), np.array(cells(sizes, set(measured) - set(axes)), dtype=object)
        for effect in effects_of(sizes, [shared]):
            told = _told(sizes, noise, measured, effect) / whole[effect] / cells(sizes, set(axes) - set(effect))
            weights[tuple(int(axis in effect) for axis in shared)] = told
        for place, axis in enumerate(shared):  # from "in the effect or not" to "agrees or not"
            out, within = np.take(weights, 0, place), np.take(weights, 1, place)
            weights = np.stack([out - within / sizes[axis], out + within * (1 - 1 / sizes[axis])], axis=place)
            numbers = np.multiply.outer(numbers, np.array([sizes[axis] - 1, 1], dtype=object))
        for weight, number in zip(weights.ravel().tolist(), np.ravel(numbers).tolist(), strict=True):
            if weight and number:
                found += [Copies(term, number) for term in scaled(terms, weight)]
    return found


def effects_from(sizes: Sequence[int], tables: Mapping[Marginal, Floats]) -> dict[Marginal, Floats]:
    """The effects of tables that agree with each other.

    >>> effects_from((2,), {(0,): np.array([1.0, 3.0])})[(0,)].tolist()
    [-1.0, 1.0]
    """
    found: dict[Marginal, Floats] = {}
    for axes in sorted(tables, key=len):
        for effect in effects_of(sizes, [axes]):
            if effect not in found:
                found[effect] = _centred(_table(sizes, axes, tables[axes]).sum(axis=_places(axes, set(axes) - set(effect))))
    return found


def spread_out(sizes: Sequence[int], axes: Marginal, effects: Mapping[Marginal, Floats]) -> Floats:
    """The table of these axes from its effects; those that are unknown count as none.

    >>> spread_out((2,), (0,), {(): np.array(10.0), (0,): np.array([-1.0, 1.0])}).tolist()
    [4.0, 6.0]
    """
    total = np.zeros([sizes[axis] for axis in axes])
    for effect in effects_of(sizes, [axes]):
        if effect in effects:
            shape = [sizes[axis] if axis in effect else 1 for axis in axes]
            total += effects[effect].reshape(shape) / cells(sizes, set(axes) - set(effect))
    return total


def _told(sizes: Sequence[int], noise: Mapping[Marginal, float], axes: Marginal, effect: Marginal) -> float:
    return 1 / (noise[axes] * cells(sizes, set(axes) - set(effect)))


def _known(sizes: Sequence[int], measured: Mapping[Marginal, float], effect: Marginal) -> float:
    found = precision(sizes, measured, effect)
    if found <= 0:
        raise InvalidParameter(
            "wanted is invalid",
            why=f"no measured marginal keeps the axes {effect!r} together",
            instead=f"a measurement of {effect!r}, or of a table that has it as a marginal",
        )
    return found


def _table(sizes: Sequence[int], axes: Marginal, values: npt.NDArray[Any]) -> Floats:
    """The values as floats, an axis for each axis that is kept."""
    shape = tuple(sizes[axis] for axis in axes)
    if np.shape(values) != shape:
        raise InvalidParameter(
            f"The table of {axes!r} is invalid", why=f"its shape is not {shape}", instead=f"values.reshape({shape})"
        )
    return np.asarray(values).astype(np.float64)


def _places(axes: Marginal, chosen: Collection[int]) -> tuple[int, ...]:
    return tuple(place for place, axis in enumerate(axes) if axis in chosen)


def _centred(table: Any) -> Floats:
    """Less its mean over each axis."""
    found: Floats = np.asarray(table, dtype=np.float64)
    for axis in range(found.ndim):
        found = found - found.mean(axis=axis, keepdims=True)
    return found
