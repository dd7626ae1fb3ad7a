"""A noisy hierarchy over the values of a column: all quantiles, extremes and the mode of it from one measurement.

The codes of the column fall into at most 65,536 bins of equal width, the *leaves*; what is noised are the sums of blocks of
leaves on each level of a tree. Every row with a value lies in one block of each level, so a unit with m rows moves the
weighted sums by at most m·Σw in L1 and m²·Σw² in squared L2 (`noise/trees.py`; Hay, Rastogi, Miklau & Suciu 2010). A row
without a value moves none of them, so the number of those rows is had for nothing beside them.

The branching follows from public facts: it is the one for which the median's cumulative count has the least variance after
least squares, averaged over where the median may lie. The total of all leaves is a level of its own only where a count is
asked: without it the variance of a median under Laplace noise is nearly halved."""

import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.noise.trees import Tree, height_of
from cloister.session.planning.zoom import MOST_DENOMINATOR, ladder_variance
from cloister.tables.engines.noised import block_sums

Floats = npt.NDArray[np.float64]

MOST_LEAVES = 2**16
MOST_CELLS = 2**21
MOST_CHOICES = 4096
_PLACES = 64
_DIGITS = 12  # of the weights that least squares gives


@dataclass(frozen=True, kw_only=True)
class Leaves:
    """Which bins of a column are the leaves of which tree.

    `low` is the column's first code, `size` the number of its codes; a leaf holds `stride` of them, the last perhaps fewer.

    >>> leaves = leaves_of("age", 17, 74, cells=1, total=False, gaussian=False)
    >>> leaves.stride, leaves.count, leaves.tree.branching, leaves.tree.weights
    (1, 74, 9, (1, 1, 0))
    """

    column: str
    low: int
    size: int
    stride: int
    branching: int
    weights: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many leaves there are."""
        return -(-self.size // self.stride)

    @property
    def tree(self) -> Tree:
        """The blocks that are summed."""
        return Tree(cells=self.count, branching=self.branching, weights=self.weights)

    @property
    def total(self) -> bool:
        """Whether the number of all values is a raw of its own."""
        return self.weights[-1] > 0 and len(self.weights) > 1

    @property
    def levels_name(self) -> str:
        """The raw that holds the blocks, a row a group."""
        return f"blocks:{self.column}/{self.stride}"

    @property
    def total_name(self) -> str:
        """The raw that holds the number of all values, where it is one."""
        return f"total:{self.column}/{self.stride}"

    @property
    def blocks(self) -> list[int]:
        """How many blocks of each level hold a leaf. A full tree would have more, which are empty for everybody: they are not
        measured, and least squares takes them for 0, so the variance worked out for the full tree is an upper bound."""
        return [-(-self.count // self.branching**level) for level in range(len(self.weights))]

    def sums(self, leaves: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """The raws from the exact counts of the leaves, a row a group: block sums of each level, from the leaves up."""
        levels, total = block_sums(leaves, self.branching, self.weights, apart=self.total)
        return {self.levels_name: levels} if total is None else {self.levels_name: levels, self.total_name: total}

    def counts(self, levels: npt.NDArray[np.number[Any]], total: npt.NDArray[np.number[Any]] | None) -> Floats:
        """The least-squares counts of the leaves from the noisy raws, a row a group."""
        answers = np.zeros((self.tree.rows, len(levels)))
        answers[np.flatnonzero(self.measured())[: levels.shape[1]]] = levels.T
        if total is not None:
            answers[-1] = total
        found: Floats = np.ascontiguousarray(self.tree.reconstruct(answers).T)
        return found

    def measured(self) -> npt.NDArray[np.bool_]:
        """Which rows of the full tree are measured."""
        sizes = [self.tree.padded // self.branching**level for level in range(len(self.weights))]
        levels = zip(self.weights, self.blocks, sizes, strict=True)
        return np.concatenate([np.arange(size) < blocks for weight, blocks, size in levels if weight])

    def first(self, leaf: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The first code of a leaf."""
        return self.low + leaf * self.stride

    def last(self, leaf: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The last code of a leaf."""
        return np.minimum(self.low + (leaf + 1) * self.stride, self.low + self.size) - 1

    def variances(self, below: float, above: float) -> Floats:
        """The variance, in units of one raw's, of below · (leaves up to k) + above · (leaves after k), for every k."""
        return _variances(self, below, above)

    def weights_at(self, place: int, below: float, above: float) -> tuple[Floats, Floats]:
        """The sizes of the weights that least squares gives the raws in such a sum up to k = `place`, and how many have each."""
        question = np.where(np.arange(self.count) <= place, below, above)[None, :]
        sizes, numbers = np.unique(
            np.abs(self.tree.coefficients(question)[0, self.measured()]).round(_DIGITS), return_counts=True
        )
        return sizes, numbers.astype(np.float64)

    def kurtosis(self, below: float, above: float) -> float:
        """The largest Σw⁴/(Σw²)² of the weights of such a sum, of some places k: 1 where one noise carries it all."""
        return _kurtosis(self, below, above)


@lru_cache(maxsize=256)
def leaves_of(column: str, low: int, size: int, *, cells: int, total: bool, gaussian: bool) -> Leaves:
    """The leaves and the tree for a column of `size` codes in each of `cells` groups: as fine as the limits allow.

    >>> leaves_of("pay", 0, 500_001, cells=1, total=False, gaussian=False).stride
    8
    """
    most = max(2, min(MOST_LEAVES, MOST_CELLS // max(cells, 1)))
    stride = -(-size // most)
    count = -(-size // stride)
    places = np.unique(np.linspace(1, count, _PLACES).astype(np.int64))
    best: tuple[float, int, tuple[int, ...]] | None = None
    for branching in _branchings(count):
        height = height_of(count, branching)
        weights = (1,) * (height + 1) if total or height == 0 else (1,) * height + (0,)
        tree = Tree(cells=count, branching=branching, weights=weights)
        sensitivity = tree.l2_squared if gaussian else tree.l1**2
        error = sensitivity * float(cumulative_variance(tree, places, 0.5, -0.5).mean())
        if best is None or error < best[0] * (1 - 1e-9):
            best = (error, branching, weights)
    assert best is not None
    return Leaves(column=column, low=low, size=size, stride=stride, branching=best[1], weights=best[2])


@lru_cache(maxsize=256)
def zoomed_of(column: str, low: int, size: int, *, cells: int, share: Fraction, gaussian: bool, margins: bool) -> Leaves | None:
    """The leaves among which `Zoom` finds one quantile; with `margins`, where half of the spend goes to its ladder, only if that
    ladder is at least as sharp as a hierarchy for all of it, which it is not with few leaves.

    >>> age = {"column": "age", "low": 17, "size": 74, "cells": 1, "share": Fraction(1, 2), "gaussian": False}
    >>> zoomed_of(**age, margins=True) is None, zoomed_of(**age, margins=False).count
    (True, 74)
    >>> zoomed_of("pay", 0, 500_001, cells=1, share=Fraction(1, 2), gaussian=False, margins=True).stride
    8
    """
    if not 0 < share < 1 or share.denominator > MOST_DENOMINATOR or (cells > MOST_CHOICES and (margins or gaussian)):
        return None
    rival = leaves_of(column, low, size, cells=cells, total=False, gaussian=gaussian)
    if not margins:
        return Leaves(column=column, low=low, size=size, stride=rival.stride, branching=rival.count, weights=(1, 0))
    places = np.unique(np.linspace(1, rival.count, _PLACES).astype(np.int64))
    spread = cumulative_variance(rival.tree, places, 1 - float(share), -float(share)).mean()
    spread *= rival.tree.l2_squared if gaussian else rival.tree.l1**2
    if ladder_variance(rival.count, share, gaussian=gaussian) > spread:
        return None
    return Leaves(column=column, low=low, size=size, stride=rival.stride, branching=rival.count, weights=(1, 0))


def histogram_of(column: str, low: int, size: int) -> Leaves:
    """Every value a leaf, and nothing but the leaves: what a mode needs.

    >>> histogram_of("town", 0, 5).weights
    (1, 0)
    """
    weights = (1,) if size == 1 else (1, 0)
    return Leaves(column=column, low=low, size=size, stride=1, branching=max(size, 2), weights=weights)


@lru_cache(maxsize=16)
def _variances(leaves: Leaves, below: float, above: float) -> Floats:
    """Kept, since every margin asks for them; nobody may write to them."""
    found = cumulative_variance(leaves.tree, np.arange(1, leaves.count + 1), below, above)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=256)
def _kurtosis(leaves: Leaves, below: float, above: float) -> float:
    """See `Leaves.kurtosis`; kept, since it takes a pass over all weights."""
    places = np.unique(np.linspace(0, leaves.count - 1, 9).astype(np.int64))
    questions = np.where(np.arange(leaves.count)[None, :] <= places[:, None], below, above)
    weights = leaves.tree.coefficients(questions)[:, leaves.measured()]
    squares = (weights**2).sum(axis=1)
    ratios = (weights**4).sum(axis=1)[squares > 0] / squares[squares > 0] ** 2
    return float(ratios.max()) if len(ratios) else 0.0


def cumulative_variance(tree: Tree, places: npt.NDArray[np.int64], below: float, above: float) -> Floats:
    """wᵀ(AᵀA)⁻¹w for w = `below` on the first k cells and `above` on the rest, for each k of `places`.

    (AᵀA)⁻¹ multiplies the part of w that lives on level l by 1/λ_l; the length of that part is the energy of w's block sums on
    level l, Σ sum²/size, less that on the next level. Blocks inside the first k cells, and those behind, all have the same sum;
    at most two are mixed.

    >>> cumulative_variance(Tree(cells=4, branching=4, weights=(1, 0)), np.array([1, 4]), 1.0, 0.0).tolist()
    [1.0, 4.0]
    """
    cells, energies = tree.cells, []
    for level in range(tree.height + 1):
        size = tree.branching**level
        full, whole = places // size, cells // size
        mixed = below * (places - full * size) + above * np.maximum(np.minimum(cells, (full + 1) * size) - places, 0)
        last = np.where(whole > full, above * (cells - whole * size), 0.0)
        squares = full * (below * size) ** 2 + np.maximum(whole - full - 1, 0) * (above * size) ** 2
        energies.append((squares + mixed**2 + last**2) / size)
    energies.append(np.zeros(len(places)))
    found: Floats = np.zeros(len(places))
    for level, value in enumerate(tree.eigenvalues()):
        found = found + np.maximum(energies[level] - energies[level + 1], 0.0) / value
    return found


def _branchings(count: int) -> list[int]:
    """For each height the least branching that holds all leaves: the fullest tree of that height."""
    heights = range(1, max(count - 1, 1).bit_length() + 1)
    return sorted(
        {next(b for b in itertools.count(max(2, int(count ** (1 / h)))) if b**h >= count) for h in heights}, reverse=True
    )
