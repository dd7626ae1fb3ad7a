"""One course of boosting: counts, leaves, and rounds over the columns. What is asked of the rows, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cloister.learn.ensembles.boosting_losses import Floats, Integers, Loss
from cloister.learn.ensembles.histograms import Columns, merged, sums
from cloister.noise import Random
from cloister.noise.allowance import Share

_HEAVY = 10.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Leaves:
    """A column's bins, merged, with noisy counts."""

    of_bin: Integers
    size: Floats
    """How many persons, at least 1."""
    start: Floats
    """The first scores."""


def counted(
    columns: Columns, places: Integers, loss: Loss, share: Share | None, random: Random
) -> tuple[tuple[Leaves, ...], Floats]:
    """The leaves of each column, and the score that everybody starts with.

    Guarantee: what the share says; the sums move as the top of `boosting.py` proves, by l1 = K·unit and l2² = K·unit².
    """
    shares, count, unit = loss.shares(), len(columns.members), loss.unit
    exact = [sums(places[column], shares, columns.bins_of(column)) for column in range(count)]
    noisy, deviation = np.concatenate(exact).astype(np.float64), 0.0
    if share is not None:
        reach = {"l1": count * unit, "l2_squared": count * unit**2}
        noisy = share.add(np.concatenate(exact), random=random, **reach)
        deviation = share.variance(**reach) ** 0.5 / unit
    pace = min(1.0, loss.eager / count**0.5)
    parts = np.split(noisy / unit, np.cumsum([len(one) for one in exact])[:-1])
    whole = sum(part.sum(axis=0) for part in parts) / count
    found = []
    for column, part in enumerate(parts):
        of_bin = merged(part.sum(axis=1), deviation * part.shape[1] ** 0.5, ordered=columns.ordered(column))
        held = np.zeros((int(of_bin.max()) + 1, part.shape[1]))
        np.add.at(held, of_bin, part)
        start = pace * loss.start(held, whole, deviation + _HEAVY)
        found.append(Leaves(of_bin=of_bin, size=np.maximum(held.sum(axis=1), 1.0), start=start))
    return tuple(found), loss.base(whole)


@dataclass(kw_only=True, eq=False)
class Course:
    """Scores on their way: of the rows, in whole steps, and of the leaves."""

    leaves: tuple[Leaves, ...]
    leaf: list[Integers]
    """Of each row, a column after the other."""
    loss: Loss
    base: Integers
    scores: Integers
    tables: list[Integers]

    @classmethod
    def begun(cls, places: Integers, leaves: tuple[Leaves, ...], base: Floats, loss: Loss) -> Course:
        """With the first scores."""
        leaf = [one.of_bin[place] for one, place in zip(leaves, places, strict=True)]
        first = np.rint(base * 2.0**loss.bits).astype(np.int64)
        scores = np.repeat(first[None, :], places.shape[1], axis=0)
        course = cls(leaves=leaves, leaf=leaf, loss=loss, base=first, scores=scores, tables=[])
        for column, one in enumerate(leaves):
            course.tables.append(np.zeros(one.start.shape, dtype=np.int64))
            course.move(column, one.start)
        return course

    def round(self, share: Share | None, random: Random) -> None:
        """Each column once.

        Guarantee: what the share says: each of the K columns is paid by a K-th of it, for a gradient of at most `l1` and
        `l2_squared` that is in one leaf.
        """
        loss = self.loss
        each = None if share is None else replace(share, amount=share.amount / len(self.leaves))
        for column, one in enumerate(self.leaves):
            exact = sums(self.leaf[column], loss.gradient(self.scores), len(one.size))
            noisy, deviation = exact.astype(np.float64), 0.0
            if each is not None:
                reach = {"l1": loss.l1, "l2_squared": loss.l2_squared}
                noisy = each.add(exact, random=random, **reach)
                deviation = each.variance(**reach) ** 0.5 / loss.one
            rigid = loss.curvature * one.size + deviation + _HEAVY
            self.move(column, noisy / loss.one / rigid[:, None])

    def move(self, column: int, step: Floats) -> None:
        """The leaves of a column, and the rows in them."""
        far = self.loss.farthest
        whole = np.rint(np.clip(step, -far, far) * 2.0**self.loss.bits).astype(np.int64)
        self.tables[column] += whole
        self.scores += whole[self.leaf[column]]

    def values(self, width: int) -> Floats:
        """The score of each bin of each column, with zeros where a column has fewer."""
        found = np.zeros((len(self.leaves), width, len(self.base)))
        for column, (one, table) in enumerate(zip(self.leaves, self.tables, strict=True)):
            found[column, : len(one.of_bin)] = table[one.of_bin]
        return found / 2.0**self.loss.bits
