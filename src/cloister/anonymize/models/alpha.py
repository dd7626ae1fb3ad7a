"""(α, k)-anonymity: classes of k rows, in which no sensitive value has more than a share α."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, Spread
from cloister.anonymize.encoded import Encoded
from cloister.anonymize.models.base import Attained, PrivacyModel, evened
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.models.ratios import Ratios
from cloister.errors import InvalidParameter
from cloister.privacy.rational import Exact, exact


def largest_shares(spread: Spread) -> Ratios:
    """The share of the commonest value of each class."""
    most = np.maximum.reduceat(spread.count, spread.first[:-1]) if len(spread.sizes) else spread.count
    return Ratios(top=most, bottom=spread.sizes)


@dataclass(frozen=True)
class AlphaKAnonymity(PrivacyModel):
    """k-anonymity, and no sensitive value is that of more than a share α of a class (Wong, Li, Fu and Wang 2006).

    The attack that made it necessary is homogeneity: where all rows of a class have one disease, or nearly all, k does not
    matter.

    >>> from cloister.anonymize.encoded import EncodedColumn
    >>> column = EncodedColumn(name="ill", codes=np.array([0, 1, 1, 1], dtype=np.int32), values=["flu", "gout"], kind="text")
    >>> classes = Classes.of(np.array([0, 0, 1, 1]), 2, sensitive={"ill": column})
    >>> AlphaKAnonymity("0.5", 2).satisfied(classes, "ill").tolist()
    [True, False]
    """

    alpha: Exact
    k: int
    column: str | None = None

    def __post_init__(self) -> None:
        KAnonymity(self.k)
        if not 0 < exact(self.alpha, "alpha") <= 1:
            raise InvalidParameter(
                f"alpha={self.alpha!r} is invalid",
                why="it is not a share above 0, up to 1",
                instead=f'AlphaKAnonymity("0.5", {self.k})',
            )

    @property
    def name(self) -> str:
        """(α, k)-anonymity with its numbers."""
        return f"({self.alpha}, {self.k})-anonymity"

    @property
    def bound(self) -> Fraction:
        """α, exactly."""
        return exact(self.alpha)

    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Classes of k rows whose commonest value has a share of at most α."""
        assert column is not None
        return largest_shares(classes.spread(column)).at_most(self.bound) & (classes.sizes >= self.k)

    def attained(self, classes: Classes, column: str | None) -> Attained:
        """The largest share, and the smallest class."""
        assert column is not None
        k = int(classes.sizes.min()) if classes.count else 0
        return Attained(
            model=self.name,
            asked=f"α ≤ {self.alpha}, k ≥ {self.k}",
            reached=f"α = {largest_shares(classes.spread(column)).largest:.6g}, k = {k}",
            holds=bool(self.satisfied(classes, column).all()),
            column=column,
        )

    def check(self, table: Encoded, columns: Sequence[str | None], limit: int | None = None) -> None:
        """A value that is commoner than α in the whole table is commoner than α in some class."""
        KAnonymity(self.k).check(table, [None])
        for name in columns:
            assert name is not None
            counts = evened(table.columns[name].counts, limit)
            if counts.sum() and Fraction(int(counts.max()), int(counts.sum())) > self.bound:
                least = Fraction(int(counts.max()), int(counts.sum()))
                raise InvalidParameter(
                    f"{self.name} is invalid",
                    why=f"one value of {name!r} is that of a share {float(least):.4g} of all rows, so some class has more than α",
                    instead=f"AlphaKAnonymity({_up(least)}, {self.k})",
                )


def _up(share: Fraction) -> str:
    """Three digits, rounded up.

    >>> _up(Fraction(2, 3))
    '"0.667"'
    """
    return f'"{-(-share.numerator * 1000 // share.denominator) / 1000:g}"'
