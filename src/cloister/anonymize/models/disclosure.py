"""δ-disclosure privacy: in no class is a sensitive value much more likely, or much less, than in the whole table."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, Spread
from cloister.anonymize.models.base import Attained, PrivacyModel
from cloister.errors import InvalidParameter
from cloister.privacy.rational import Exact, exact


def log_ratios(spread: Spread) -> npt.NDArray[np.float64]:
    """|ln(q/p)| of each value that stands in a class, triple by triple."""
    p = spread.overall[spread.value] / max(int(spread.overall.sum()), 1)
    return np.abs(np.log(spread.shares / p))


@dataclass(frozen=True)
class DeltaDisclosure(PrivacyModel):
    """|ln(q/p)| < δ for each value of the column and each class: its share q there is within a factor e^δ of its share p in the
    table (Brickell and Shmatikov 2008).

    A value that lacks in a class has q = 0 and an infinite ratio, so every class has to have every value. ARX and pycanon skip
    such values; then two classes that meet the model may fail it together, and "nobody here has it" goes unnoticed.

    The attack that made it necessary is the same as of t-closeness, counted as what an attacker *gains*: how far
    the odds move from what is known of everybody.

    >>> from cloister.anonymize.encoded import EncodedColumn
    >>> column = EncodedColumn(name="ill", codes=np.array([0, 1, 0, 1, 1], dtype=np.int32), values=["flu", "gout"], kind="text")
    >>> classes = Classes.of(np.array([0, 0, 1, 1, 1]), 2, sensitive={"ill": column})
    >>> print(DeltaDisclosure("0.3").attained(classes, "ill"))
    0.3-disclosure privacy of 'ill': δ = 0.223144 (asked: δ < 0.3): holds
    """

    delta: Exact
    column: str | None = None

    def __post_init__(self) -> None:
        if exact(self.delta, "delta") <= 0:
            raise InvalidParameter(f"delta={self.delta!r} is invalid", why="it is not above 0", instead="DeltaDisclosure(1)")

    @property
    def name(self) -> str:
        """δ-disclosure privacy with its δ."""
        return f"{self.delta}-disclosure privacy"

    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Classes that have every value, each within a factor e^δ of its share of the table."""
        assert column is not None
        return np.asarray(self._reached(classes, column) < float(exact(self.delta)))

    def attained(self, classes: Classes, column: str | None) -> Attained:
        """The largest |ln(q/p)|."""
        assert column is not None
        spread = classes.spread(column)
        there = float(log_ratios(spread).max(initial=0.0))
        most = float(self._reached(classes, column).max(initial=0.0))
        note = f" (a class lacks a value; among those that are there, {there:.6g})" if math.isinf(most) else ""
        return Attained(
            model=self.name,
            asked=f"δ < {self.delta}",
            reached=f"δ = {'∞' if math.isinf(most) else f'{most:.6g}'}{note}",
            holds=bool(self.satisfied(classes, column).all()),
            column=column,
        )

    @staticmethod
    def _reached(classes: Classes, column: str) -> npt.NDArray[np.float64]:
        spread = classes.spread(column)
        if not classes.count:
            return np.zeros(0)
        most = np.maximum.reduceat(log_ratios(spread), spread.first[:-1])
        lacking = np.diff(spread.first) < int(np.count_nonzero(spread.overall))
        return np.where(lacking, np.inf, most)
