"""t-closeness: a sensitive column is spread over each class nearly as it is over the whole table."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, Spread
from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.models.base import Attained, PrivacyModel
from cloister.anonymize.models.distances import hierarchical, kullback_leibler, ordered, total_variation
from cloister.anonymize.models.ratios import Ratios
from cloister.errors import InvalidParameter
from cloister.privacy.rational import Exact, exact

DISTANCES = ("equal", "ordered", "hierarchical", "kl", "total variation")


@dataclass(frozen=True)
class TCloseness(PrivacyModel):
    """In every class the sensitive column is spread nearly as in the whole table: at a distance of at most t (Li, Li and
    Venkatasubramanian 2007).

    - `distance="equal"`: the earth mover's distance where every two values are one apart; the same as "total variation".
    - `distance="ordered"`: the earth mover's distance along the order of the values, in steps of 1/(m − 1).
    - `distance="hierarchical"`: the earth mover's distance in a `hierarchy` of the sensitive column: values that meet on level
      h of H are h/H apart.
    - `distance="kl"`: the Kullback–Leibler divergence in nats; t may exceed 1.

    When nothing is said: ordered for numbers and dates, equal for everything else; hierarchical where a hierarchy is given.

    The attacks that made it necessary are skewness (one in two of a class has a disease that one in a hundred has elsewhere) and
    similarity (all diseases of a class are those of the stomach).

    >>> column = EncodedColumn(name="pay", codes=np.array([0, 1, 2, 2], dtype=np.int32), values=[30, 40, 50], kind="integer")
    >>> classes = Classes.of(np.array([0, 0, 1, 1]), 2, sensitive={"pay": column})
    >>> print(TCloseness("0.4").attained(classes, "pay"))
    0.4-closeness (ordered) of 'pay': t = 0.375 (asked: t ≤ 0.4): holds
    >>> TCloseness("0.4", distance="equal").satisfied(classes, "pay").tolist()
    [False, False]
    """

    t: Exact
    distance: str | None = None
    hierarchy: Hierarchy | Ladder | None = field(default=None, hash=False)
    column: str | None = None
    _resolved: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bound = exact(self.t, "t")
        if self.distance is not None and self.distance not in DISTANCES:
            raise InvalidParameter(
                f"distance={self.distance!r} is invalid",
                why="it is not one of " + ", ".join(map(repr, DISTANCES)),
                instead=f'TCloseness({self.t!r}, distance="equal")',
            )
        if bound < 0 or (bound > 1 and self.distance != "kl"):
            raise InvalidParameter(
                f"t={self.t!r} is invalid",
                why="such a distance lies between 0 and 1" if self.distance != "kl" else "a divergence is not negative",
                instead="TCloseness(0.2)",
            )
        missing = self.distance == "hierarchical" and self.hierarchy is None
        if missing or not isinstance(self.hierarchy, Hierarchy | Ladder | None):
            raise InvalidParameter(
                "The hierarchical distance is invalid",
                why="the sensitive column was given no hierarchy",
                instead=f'TCloseness({self.t!r}, hierarchy=Hierarchy.of({{"gastritis": ["stomach"], …}}))',
            )
        if self.hierarchy is not None and self.distance not in (None, "hierarchical"):
            raise InvalidParameter(
                f"distance={self.distance!r} is invalid with a hierarchy",
                why="it does not look at one",
                instead=f'TCloseness({self.t!r}, distance="hierarchical", hierarchy=…)',
            )

    @property
    def name(self) -> str:
        """t-closeness with its t."""
        return f"{self.t}-closeness" + (f" ({self.distance})" if self.distance else "")

    @property
    def bound(self) -> Fraction:
        """t, exactly."""
        return exact(self.t)

    def distance_for(self, column: EncodedColumn) -> str:
        """Which distance is used for a column."""
        if self.distance is not None:
            return self.distance
        if self.hierarchy is not None:
            return "hierarchical"
        return "ordered" if column.is_number else "equal"

    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Classes at a distance of at most t."""
        assert column is not None
        spread = classes.spread(column)
        if self.distance_for(spread.column) == "kl":
            return np.asarray(kullback_leibler(spread) <= float(self.bound))
        return self._ratios(spread).at_most(self.bound)

    def distances(self, classes: Classes, column: str) -> npt.NDArray[np.float64]:
        """How far each class is from the whole table."""
        spread = classes.spread(column)
        return kullback_leibler(spread) if self.distance_for(spread.column) == "kl" else self._ratios(spread).floats

    def _ratios(self, spread: Spread) -> Ratios:
        match self.distance_for(spread.column):
            case "ordered":
                return ordered(spread)
            case "hierarchical":
                return hierarchical(spread, self._ladder(spread.column))
            case _:
                return total_variation(spread)

    def _ladder(self, column: EncodedColumn) -> Ladder:
        if isinstance(self.hierarchy, Ladder):
            if len(self.hierarchy.codes[0]) != len(column):
                raise InvalidParameter(
                    f"The hierarchy of {column.name!r} is invalid",
                    why="it was made for other values",
                    instead="a Hierarchy, which fits itself to a column",
                )
            return self.hierarchy
        assert self.hierarchy is not None
        if not self._resolved or self._resolved[0] is not column.values:
            self._resolved[:] = [column.values, self.hierarchy.ladder(column)]
        found: Ladder = self._resolved[1]
        return found

    def attained(self, classes: Classes, column: str | None) -> Attained:
        """The class that is farthest away."""
        assert column is not None
        kind = self.distance_for(classes.sensitive[column])
        most = float(self.distances(classes, column).max(initial=0.0))
        return Attained(
            model=f"{self.t}-closeness ({kind})",
            asked=f"t ≤ {self.t}",
            reached=f"t = {most:.6g}",
            holds=bool(self.satisfied(classes, column).all()),
            column=column,
        )
