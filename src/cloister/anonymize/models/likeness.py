"""β-likeness: no class makes a sensitive value much more likely than it is in the whole table."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, Spread
from cloister.anonymize.models.base import Attained, PrivacyModel
from cloister.anonymize.models.ratios import Ratios, fits
from cloister.errors import InvalidParameter
from cloister.privacy.rational import Exact, exact


def gains(spread: Spread) -> Ratios:
    """(q − p)/p of each triple: by how much a value is commoner in a class than in the table."""
    table = int(spread.overall.sum())
    n, p = spread.sizes[spread.owner], spread.overall[spread.value]
    kind = np.int64 if fits(table, table) else np.float64
    whole = n.astype(kind) * p.astype(kind)
    return Ratios(top=np.asarray(spread.count.astype(kind) * kind(table) - whole), bottom=np.asarray(whole))


@dataclass(frozen=True)
class BetaLikeness(PrivacyModel):
    """No value's share q in a class exceeds its share p in the table by more than β times p: (q − p)/p ≤ β (Cao and Karras 2012).

    With `enhanced=True`, (q − p)/p ≤ min(β, −ln p): common values, for which β alone allows a certainty, get a tighter bound.

    The attack that made it necessary is skewness of rare values, which distances between whole distributions let pass: from
    one in a thousand to one in ten moves t by less than a tenth, and the suspicion a hundredfold.

    >>> from cloister.anonymize.encoded import EncodedColumn
    >>> column = EncodedColumn(name="ill", codes=np.array([0, 1, 1, 1], dtype=np.int32), values=["HIV", "flu"], kind="text")
    >>> classes = Classes.of(np.array([0, 0, 1, 1]), 2, sensitive={"ill": column})
    >>> print(BetaLikeness(1).attained(classes, "ill"))
    1-likeness of 'ill': β = 1 (asked: β ≤ 1): holds
    >>> BetaLikeness(1, enhanced=True).satisfied(classes, "ill").tolist()
    [True, False]
    """

    beta: Exact
    enhanced: bool = False
    column: str | None = None

    def __post_init__(self) -> None:
        if exact(self.beta, "beta") < 0:
            raise InvalidParameter(f"beta={self.beta!r} is invalid", why="it is negative", instead="BetaLikeness(1)")

    @property
    def name(self) -> str:
        """β-likeness with its β."""
        return f"{'enhanced ' if self.enhanced else ''}{self.beta}-likeness"

    @property
    def bound(self) -> Fraction:
        """β, exactly."""
        return exact(self.beta)

    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Classes in which no value gains more than β."""
        assert column is not None
        spread = classes.spread(column)
        found = gains(spread)
        met = found.at_most(self.bound)
        if self.enhanced:
            met &= _not_certain(spread, found)
        return np.logical_and.reduceat(met, spread.first[:-1]) if classes.count else met[:0]

    def attained(self, classes: Classes, column: str | None) -> Attained:
        """The largest gain of a value in a class."""
        assert column is not None
        spread = classes.spread(column)
        found = gains(spread)
        note = "" if not self.enhanced or _not_certain(spread, found).all() else ", and a value gains more than −ln p"
        return Attained(
            model=self.name,
            asked=f"β ≤ {self.beta}" + (", −ln p" if self.enhanced else ""),
            reached=f"β = {max(found.largest, 0.0):.6g}{note}",
            holds=bool(self.satisfied(classes, column).all()),
            column=column,
        )


def _not_certain(spread: Spread, found: Ratios) -> npt.NDArray[np.bool_]:
    """(q − p)/p ≤ −ln p, for each triple; a value that everybody has gains nothing."""
    p = spread.overall[spread.value] / max(int(spread.overall.sum()), 1)
    return np.asarray(found.floats <= -np.log(p))
