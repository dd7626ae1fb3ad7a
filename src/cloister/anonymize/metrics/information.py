"""Metrics that count bits: non-uniform entropy, and the Kullback–Leibler divergence from the table as it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.encoded import tally_of
from cloister.anonymize.metrics.base import Counted, Floats, LatticeMetric, Metric, dot, leaves_of, rows_of
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Recoded


@dataclass(frozen=True)
class Entropy(Metric):
    """Bits that it takes to guess the cells back (non-uniform entropy: De Waal and Willenborg 1999; Gionis and Tassa 2009).

    For each cell it is −log₂ of how often its value is behind its label. Suppressed rows add, as in ARX, what it takes to guess
    the label: −log₂ of its share among them.

    >>> Entropy().name
    'entropy'
    """

    name: ClassVar[str] = "entropy"
    monotone: ClassVar[bool] = True
    words: ClassVar[str] = "bits that it takes to guess the cells back"

    def score(self, problem: Problem, recoded: Recoded) -> float:
        """Summed over cells, columns by weight."""
        weights = recoded.weights
        gone = recoded.suppressed
        total = 0.0
        for name, column in recoded.columns.items():
            original = problem.table.columns[name]
            pairs, count = alike([column.codes, original.codes], [len(column.labels), len(original)])
            behind = tally_of(pairs, count, weights)
            label = tally_of(column.codes, len(column.labels), weights)
            bits = _log2(label[column.codes]) - _log2(behind[pairs])
            lost = _bits(tally_of(column.codes[gone], len(column.labels), None if weights is None else weights[gone]))
            total += problem.weight(name) * ((float(bits.sum()) if weights is None else dot(bits, weights)) + lost)
        return total

    def on_lattice(self, problem: Problem) -> LatticeMetric:
        """The first part from levels alone, the second from the suppressed classes."""
        return _Bits(problem)


class _Bits(LatticeMetric):
    by_levels: ClassVar[bool] = True

    def __init__(self, problem: Problem) -> None:
        self._weights = [problem.weight(name) for name in problem.quasi]
        self._bits: list[Floats] = []
        for name, weight in zip(problem.quasi, self._weights, strict=True):
            column, ladder = problem.table.columns[name], problem.ladders[name]
            held = column.counts > 0
            counts = column.counts[held]
            own = _log2(counts)
            bits = []
            for codes, labels in zip(ladder.codes, ladder.labels, strict=True):
                label = np.bincount(codes[held], weights=counts, minlength=len(labels))
                bits.append(weight * dot(counts, _log2(label[codes[held]]) - own))
            self._bits.append(np.array(bits))

    def floors(self, axes: Sequence[npt.NDArray[np.intp]]) -> Floats:
        """What levels cost: suppressing only adds."""
        total: Floats = np.array(0.0)
        for bits, axis in zip(self._bits, axes, strict=True):
            total = total + bits[axis]
        return total

    def score(self, node: Counted, kept: npt.NDArray[np.bool_]) -> float:
        """Levels, and the suppressed rows."""
        gone = np.flatnonzero(~kept)
        sizes = node.sizes[gone]
        total = sum(float(bits[level]) for bits, level in zip(self._bits, node.levels, strict=True))
        if len(gone):
            for place, weight in enumerate(self._weights):
                total += weight * _bits(np.bincount(node.codes(place, gone), weights=sizes))
        return total


def _bits(counts: npt.NDArray[Any]) -> float:
    """Σ −count · log₂(count / all)."""
    there = counts[counts > 0].astype(np.float64)
    return dot(there, np.log2(there.sum()) - np.log2(there)) if len(there) else 0.0


@dataclass(frozen=True)
class Divergence(Metric):
    """Bits that a row loses when all that is known of it is its class: the Kullback–Leibler divergence from the original table,
    where every combination of values under the labels of a class is taken to be as likely (Kifer and Gehrke 2006). Suppressed
    rows are one class that covers everything.

    >>> Divergence().name
    'divergence'
    """

    name: ClassVar[str] = "divergence"
    monotone: ClassVar[bool] = True
    words: ClassVar[str] = "bits that a row loses against the table as it was"

    def score(self, problem: Problem, recoded: Recoded) -> float:
        """The mean over rows of log₂(share of the row's combination / what its class says of it)."""
        rows, weights = rows_of(recoded)
        if not rows:
            return 0.0
        ids, count = alike(
            [problem.table.columns[name].codes for name in problem.quasi],
            [len(problem.table.columns[name]) for name in problem.quasi],
        )
        original = tally_of(ids, count, weights)[ids]
        own = recoded.classes.of_row
        sizes = np.where(recoded.suppressed, recoded.suppressed_rows, recoded.classes.sizes[own] if recoded.classes.count else 0)
        space = np.zeros(len(own))
        for name, column in recoded.columns.items():
            leaves = leaves_of(problem, name)
            space += np.log2(np.where(recoded.suppressed, leaves, np.maximum(column.shares[column.codes] * leaves, 1.0)))
        bits = _log2(original) - _log2(sizes) + space
        return float(np.average(bits, weights=weights))

    def on_lattice(self, problem: Problem) -> LatticeMetric:
        """From the sizes of classes and the leaves under their labels."""
        return _Lost(problem)


class _Lost(LatticeMetric):
    by_classes: ClassVar[bool] = True

    def __init__(self, problem: Problem) -> None:
        names = problem.quasi
        columns = [problem.table.columns[name] for name in names]
        self._rows = max(problem.table.total, 1)
        ids, count = alike([column.codes for column in columns], [len(column) for column in columns])
        counts = tally_of(ids, count, problem.table.weights).astype(np.float64)
        self._own = dot(counts, _log2(counts))
        self._space = [[np.log2(np.maximum(leaves, 1.0)) for leaves in problem.ladders[name].leaves] for name in names]
        self._whole = float(sum(np.log2(max(problem.ladders[name].total, 1.0)) for name in names))

    def floor(self, node: Counted) -> float:
        """Before anything is suppressed: by the log-sum inequality, joining classes only adds."""
        return self.score(node, np.ones(len(node.sizes), dtype=bool))

    def score(self, node: Counted, kept: npt.NDArray[np.bool_]) -> float:
        """Kept classes, and the suppressed rows as one."""
        there = np.flatnonzero(kept)
        sizes = node.sizes[there].astype(np.float64)
        space = np.zeros(len(there))
        for place, level in enumerate(node.levels):
            space += self._space[place][level][node.codes(place, there)]
        gone = float(self._rows - sizes.sum()) if len(node.sizes) else 0.0
        suppressed = gone * (self._whole - np.log2(gone)) if gone > 0.5 else 0.0
        return (self._own + dot(sizes, space - np.log2(sizes)) + suppressed) / self._rows


@dataclass(frozen=True)
class Ambiguity(Metric):
    """How many original combinations each row could be, as a share of all of them (after Goldberger and Tassa 2010): the mean
    over rows of the product of what its cells cover.

    >>> Ambiguity().name
    'ambiguity'
    """

    name: ClassVar[str] = "ambiguity"
    monotone: ClassVar[bool] = True
    words: ClassVar[str] = "the share of all combinations that a row could be"

    def score(self, problem: Problem, recoded: Recoded) -> float:
        """The mean over rows of the product of shares."""
        rows, weights = rows_of(recoded)
        if not rows:
            return 0.0
        product = np.ones(len(recoded.suppressed))
        for column in recoded.columns.values():
            product *= column.shares[column.codes]
        return float(np.average(np.where(recoded.suppressed, 1.0, product), weights=weights))

    def on_lattice(self, problem: Problem) -> LatticeMetric:
        """From the leaves under the labels of each class."""
        return _Products(problem)


class _Products(LatticeMetric):
    by_classes: ClassVar[bool] = True

    def __init__(self, problem: Problem) -> None:
        self._rows = max(problem.table.total, 1)
        self._shares = [
            [problem.ladders[name].shares(level) for level in range(problem.ladders[name].height)] for name in problem.quasi
        ]

    def floor(self, node: Counted) -> float:
        """Before anything is suppressed."""
        return self.score(node, np.ones(len(node.sizes), dtype=bool))

    def score(self, node: Counted, kept: npt.NDArray[np.bool_]) -> float:
        """Kept classes, and suppressed rows that could be anything."""
        there = np.flatnonzero(kept)
        product = np.ones(len(there))
        for place, level in enumerate(node.levels):
            product *= self._shares[place][level][node.codes(place, there)]
        return (dot(node.sizes[there], product) + float(node.sizes[~kept].sum())) / self._rows


def _log2(counts: npt.NDArray[Any]) -> Floats:
    return np.asarray(np.log2(np.maximum(counts, 1).astype(np.float64)), dtype=np.float64)
