"""What one row does to what is noised, by brute force: a fit is run again on a neighbour, and is told what it was told before.

`told` records every whole number that a fit hands to a mechanism, and what the mechanism answered. On a neighbour the same
answers are given again, so that both fits take the same path through what is chosen by earlier answers (this is what adaptive
composition speaks of). Then the two records differ by what one row does alone, and `moved` says how that compares with what was
declared: 1 is all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from cloister.learn.frame.cube import CubeNoise
from cloister.noise import PermuteAndFlip, VectorMechanism
from cloister.noise.allowance import Share


@dataclass(frozen=True, kw_only=True, eq=False)
class Told:
    """What a mechanism was handed, under which limits, and what it said."""

    mechanism: str
    values: npt.NDArray[Any]
    limits: tuple[Any, ...]
    answer: Any


class _Record:
    def __init__(self, before: Sequence[Told] | None) -> None:
        self.before, self.lines = before, list[Told]()

    def note(self, mechanism: str, values: Any, limits: tuple[Any, ...], answer: Callable[[], Any]) -> Any:
        said = answer() if self.before is None else self.before[len(self.lines)].answer
        self.lines.append(Told(mechanism=mechanism, values=np.array(values), limits=limits, answer=said))
        return said


@contextmanager
def _listening(record: _Record) -> Iterator[None]:
    add, cube, vector, choice = Share.add, CubeNoise.release, VectorMechanism.release, PermuteAndFlip.release
    choices = PermuteAndFlip.release_each

    def shared(self: Share, values: Any, *, l1: Any, l2_squared: Any, random: Any = None) -> Any:
        limit = ("l1", Fraction(l1)) if self.currency == "epsilon" else ("l2", Fraction(l2_squared))
        return record.note(
            "add", values, (*limit, self.amount), lambda: add(self, values, l1=l1, l2_squared=l2_squared, random=random)
        )

    def cubed(self: CubeNoise, values: Any, *, random: Any = None) -> Any:
        return record.note("cube", values, (self.reach, self.epsilon), lambda: cube(self, values, random=random))

    def vectored(self: VectorMechanism, value: Any, *, random: Any = None) -> Any:
        limits = (self.sensitivity, self.epsilon, self.float_delta)
        return record.note("vector", value, limits, lambda: vector(self, value, random=random))

    def chosen(self: PermuteAndFlip, utilities: Any, *, random: Any = None) -> Any:
        limits = (self.sensitivity, self.epsilon)
        return record.note("choice", utilities, limits, lambda: choice(self, utilities, random=random))

    def chosen_each(self: PermuteAndFlip, tables: Any, *, random: Any = None) -> Any:
        limits = (self.sensitivity, self.epsilon)
        return record.note("choices", tables, limits, lambda: choices(self, tables, random=random))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Share, "add", shared)
        patch.setattr(CubeNoise, "release", cubed)
        patch.setattr(VectorMechanism, "release", vectored)
        patch.setattr(PermuteAndFlip, "release", chosen)
        patch.setattr(PermuteAndFlip, "release_each", chosen_each)
        yield


def told(fit: Callable[[], Any], before: Sequence[Told] | None = None) -> list[Told]:
    """Everything that a fit handed to mechanisms; with `before`, under the answers of that record."""
    record = _Record(before)
    with _listening(record):
        fit()
    return record.lines


def moved(one: Sequence[Told], other: Sequence[Told]) -> list[float]:
    """For each mechanism how far the second fit's numbers lie from the first's, in parts of what was declared."""
    assert [(line.mechanism, line.values.shape, line.limits) for line in one] == [
        (line.mechanism, line.values.shape, line.limits) for line in other
    ]
    return [_part(left, right) for left, right in zip(one, other, strict=True)]


def _part(left: Told, right: Told) -> float:
    apart = left.values.astype(object) - right.values.astype(object)
    steps = [abs(int(step)) for step in apart.ravel().tolist()]
    if left.mechanism in ("cube", "choices"):  # each row of it is another group of persons
        assert sum(bool(np.any(row != 0)) for row in apart) <= 1
        return float(max(steps) / left.limits[0])
    if left.mechanism == "choice":
        return float(max(steps) / left.limits[0])
    if left.mechanism == "vector":
        return math.sqrt(sum(step**2 for step in steps)) / float(left.limits[0])
    return float((sum(steps) if left.limits[0] == "l1" else sum(step**2 for step in steps)) / left.limits[1])


def cost(one: Sequence[Told], other: Sequence[Told]) -> float:
    """The pure ε that lies between two records: of each mechanism its own, by how far its numbers moved."""
    total = 0.0
    for left, right in zip(one, other, strict=True):
        apart = np.abs(left.values.astype(object) - right.values.astype(object))
        if left.mechanism == "cube":  # each row has noise of its own
            total += float(sum(max(row) for row in apart.tolist()) * left.limits[1] / left.limits[0])
        elif left.mechanism == "vector":
            total += math.sqrt(sum(int(step) ** 2 for step in apart.ravel().tolist())) * float(left.limits[1] / left.limits[0])
        elif left.mechanism in ("choice", "choices"):
            total += float(max(apart.ravel().tolist()) * left.limits[1] / left.limits[0])
        else:
            total += float(Fraction(sum(apart.ravel().tolist())) * left.limits[2] / left.limits[1])
    return total
