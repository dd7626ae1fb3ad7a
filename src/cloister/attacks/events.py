"""Sets of outputs that may tell two worlds apart, and the choice of the best one.

For one feature the candidates are: its single cells; everything below, or from, an edge; and the cells in order of
their likelihood ratio, cut anywhere (by the Neyman–Pearson lemma the best event is such a set). The cells and their order
are learned from one part of the runs and the candidates compared on a second part, so that a set which only looked good where
it was found is not chosen; the bound itself is measured on a third part by `audit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.cells import Cells
from cloister.attacks.features import Feature
from cloister.attacks.result import rho_of
from cloister.attacks.runs import Array

Floats = NDArray[np.float64]
Score = Callable[[Floats, Floats], Floats]
_LEAST = 1e-12
_NAMED = 3
_LONG = 60


@dataclass(frozen=True)
class Event:
    """Some cells of one feature, thought more likely on one side."""

    feature: Feature
    cells: Cells
    members: NDArray[np.bool_]
    likelier: str
    text: str
    score: float

    def count(self, outputs: Array) -> int:
        """How many outputs are in the event."""
        return int(self.members[self.cells.index(self.feature.of(outputs))].sum())


def score_of(*, delta: Fraction | None, epsilon: Fraction | None) -> Score:
    """What is to be made large, as a function of a lower bound p of the one probability and an upper bound q of the other.

    >>> ratio = score_of(delta=Fraction(0), epsilon=None)
    >>> ratio(np.array([0.5]), np.array([0.25])).round(3).tolist()
    [0.693]
    """
    if epsilon is not None:
        with np.errstate(over="ignore"):
            factor = float(np.exp(float(epsilon)))
        return lambda p, q: p - np.minimum(factor, 1e300) * q
    if delta is None:
        return rho_of
    slack = float(delta)
    return lambda p, q: np.log(np.maximum(p - slack, _LEAST) / q)


def best_event(
    feature: Feature, learn: tuple[Array, Array], choose: tuple[Array, Array], *, score: Score, log_error: float
) -> Event:
    """The candidate of one feature whose bound promises most, by the counts of the second part."""
    seen = [feature.of(part) for part in learn]
    cells = Cells.learned(seen[0], seen[1], identity=feature.identity)
    ratio = cells.log_ratios(seen[0], seen[1])
    counts = [cells.counts(feature.of(part)) for part in choose]
    runs = len(choose[0])
    orders = {"single": np.arange(cells.number), "ratio": np.argsort(-ratio, kind="stable")}
    if not feature.identity:
        orders["value"] = np.arange(cells.number)
    best: tuple[float, str, str, str, int] = (-math.inf, "", "", "", 0)
    for kind, order in orders.items():
        left, right = counts[0][order], counts[1][order]
        if kind == "single":
            sets = [("first", left, right)]
        else:
            left, right = left.cumsum(), right.cumsum()
            sets = [("first", left, right), ("last", runs - left, runs - right)]
        for end, here, there in sets:
            for side, likely, unlikely in (("left", here, there), ("right", there, here)):
                promise = score(_lower(likely, runs, log_error), _upper(unlikely, runs, log_error))
                place = int(np.argmax(promise))
                if promise[place] > best[0]:
                    best = (float(promise[place]), kind, end, side, place)
    value, kind, end, side, place = best
    members = np.zeros(cells.number, dtype=bool)
    members[orders[kind][place : place + 1] if kind == "single" else orders[kind][: place + 1]] = True
    if end == "last":
        members = ~members
    if not feature.identity:
        members = _filled(members, counts[0] + counts[1] + cells.counts(seen[0]) + cells.counts(seen[1]) > 0)
    return Event(feature, cells, members, side, _words(feature, cells, members, side), value)


def _filled(members: NDArray[np.bool_], seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Cells where nothing was seen join the event where the nearest cells with outputs, on both sides, are in it."""
    known = np.flatnonzero(seen[:-1])
    if len(known) == 0:
        return members
    place = np.arange(len(members) - 1)
    after = np.searchsorted(known, place)
    upper = known[np.minimum(after, len(known) - 1)]
    lower = known[np.maximum(np.where(known[np.minimum(after, len(known) - 1)] == place, after, after - 1), 0)]
    return np.append(members[lower] & members[upper], members[-1] & seen[-1])


def _words(feature: Feature, cells: Cells, members: NDArray[np.bool_], side: str) -> str:
    inside = np.flatnonzero(members)
    if feature.identity:
        return f"{feature.name} is {_named(feature, cells, inside, side)}"
    missing = len(members) - 1
    numbers = inside[inside < missing]
    if len(numbers) and numbers[-1] - numbers[0] + 1 == len(numbers):
        text = f"{feature.name} {cells.text(int(numbers[0]), int(numbers[-1]))}"
        return f"{text}, or not a number" if members[missing] else text
    if len(numbers) == 0:
        return f"{feature.name} is not a number"
    return f"{feature.name} lies in those {len(inside)} of {cells.number} cells that are likeliest on the {side}"


def _named(feature: Feature, cells: Cells, inside: NDArray[np.intp], side: str) -> str:
    values = [int(cells.edges[cell - 1]) for cell in inside.tolist() if 0 < cell <= len(cells.edges)]
    known = [feature.labels[value] for value in values if value in feature.labels]
    if 0 < len(known) <= _NAMED:
        return " or ".join(text if len(text) <= _LONG else f"{text[:_LONG]}…" for text in sorted(known))
    return f"one of {len(inside)} that are likelier on the {side}"


def _lower(counts: NDArray[np.int64], runs: int, log_error: float) -> Floats:
    """About the bound that these counts would give. The measurement has twice the runs and gives a closer one; but a choice made
    as if these counts were as good as those would fall for whichever of the many candidates was lucky.
    """
    spread = np.sqrt(2 * counts * (1 - counts / runs) * log_error)
    lower: Floats = np.maximum(counts - spread, _LEAST) / runs
    return lower


def _upper(counts: NDArray[np.int64], runs: int, log_error: float) -> Floats:
    spread = np.sqrt(2 * counts * (1 - counts / runs) * log_error) + log_error
    upper: Floats = np.minimum(counts + spread, runs) / runs
    return upper
