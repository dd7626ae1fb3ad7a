"""What a privacy model is: a condition on each class."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes
from cloister.anonymize.encoded import Encoded


@dataclass(frozen=True, kw_only=True)
class Attained:
    """What a table has of a model: the number that it reaches, and whether that is enough.

    >>> print(Attained(model="5-anonymity", asked="k ≥ 5", reached="k = 7", holds=True))
    5-anonymity: k = 7 (asked: k ≥ 5): holds
    """

    model: str
    asked: str
    reached: str
    holds: bool
    column: str | None = None

    def __str__(self) -> str:
        where = f" of {self.column!r}" if self.column else ""
        return f"{self.model}{where}: {self.reached} (asked: {self.asked}): {'holds' if self.holds else 'DOES NOT HOLD'}"


class PrivacyModel(ABC):
    """A condition that every class has to meet. A subclass is a frozen dataclass; models of a sensitive column have a field
    `column`, None for each column that was declared sensitive.

    Every model of this room is *monotone*: two classes that meet it meet it together (a convex distance, a count, a ratio
    between two ratios). `absorbing` models stay met when *any* class is joined to one that meets them; only with those does
    suppressing rows leave the lattice monotone.
    """

    absorbing: ClassVar[bool] = False
    of_sensitive: ClassVar[bool] = True
    column: str | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """In words, with its parameter: 5-anonymity."""

    @abstractmethod
    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Which classes meet it, for one sensitive column (None for a model that has none)."""

    @abstractmethod
    def attained(self, classes: Classes, column: str | None) -> Attained:
        """What the table has of it."""

    def check(self, table: Encoded, columns: Sequence[str | None], limit: int | None = None) -> None:  # noqa: B027 - most models can always be met
        """Raise where no recoding could meet it: the message says what is in the way and what would do."""

    def columns_of(self, sensitive: Iterable[str]) -> list[str | None]:
        """Which sensitive columns it is about."""
        if not self.of_sensitive:
            return [None]
        return [self.column] if self.column is not None else list(sensitive)


def satisfied_by(models: Sequence[PrivacyModel], classes: Classes) -> npt.NDArray[np.bool_]:
    """Which classes meet every model."""
    met = np.ones(classes.count, dtype=bool)
    for model in models:
        for column in model.columns_of(classes.sensitive):
            met &= model.satisfied(classes, column)
    return met


def attained_by(models: Sequence[PrivacyModel], classes: Classes) -> tuple[Attained, ...]:
    """What the table has of every model, re-computed from its classes."""
    return tuple(model.attained(classes, column) for model in models for column in model.columns_of(classes.sensitive))


def evened(counts: npt.NDArray[np.int64], limit: int | None) -> npt.NDArray[np.int64]:
    """Counts at least as even as any that are left when `limit` rows are gone; with no limit known, one row of each value.

    Rows of the commonest values are cut off at one height; where the limit does not reach down to a whole number, the next lower
    one is taken. A model that bounds how uneven a class is, and that holds for classes together where it holds for each, has to
    hold of all rows that are kept; so it can't be met where it fails here.

    >>> evened(np.array([10, 4, 1]), 5).tolist(), evened(np.array([10, 4, 1]), 7).tolist()
    ([5, 4, 1], [3, 3, 1])
    >>> evened(np.array([3, 0, 1]), None).tolist()
    [1, 0, 1]
    """
    if limit is None:
        return np.minimum(counts, 1)
    low, high = 1, int(counts.max(initial=1))
    while low < high:
        middle = (low + high) // 2
        if int(np.maximum(counts - middle, 0).sum()) <= limit:
            high = middle
        else:
            low = middle + 1
    gone = int(np.maximum(counts - low, 0).sum())
    return np.minimum(counts, low if gone == limit else max(low - 1, 1))
