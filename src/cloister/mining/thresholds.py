"""How often is often enough: exact thresholds, from shares of the baskets to whole numbers.

A set of items is frequent where at least `least` baskets hold it; a rule is there where its set is frequent and its confidence is
at least `confidence`, as fractions: nothing is rounded, so a rule that lies exactly on a threshold is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cloister.errors import InvalidParameter
from cloister.privacy import Exact, exact_nonnegative, exact_positive, text_of


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What makes a rule.

    >>> thresholds = Thresholds.of(10, min_support="0.25", min_confidence="0.6")
    >>> thresholds.least, thresholds.confident(3, 5), thresholds.confident(2, 5)
    (3, True, False)
    """

    support: Fraction
    confidence: Fraction
    least: int
    """So many baskets make a set of items frequent: never fewer than one."""

    @staticmethod
    def of(baskets: int, *, min_support: Exact, min_confidence: Exact = 0) -> Thresholds:
        """For so many baskets."""
        support = share_of(min_support, "min_support")
        confidence = exact_nonnegative(min_confidence, "min_confidence")
        if confidence > 1:
            raise InvalidParameter(
                f"min_confidence={text_of(confidence)} is invalid", why="it is a share, at most 1", instead='min_confidence="0.6"'
            )
        least = -(-support.numerator * baskets // support.denominator)
        return Thresholds(support=support, confidence=confidence, least=max(1, least))

    def confident(self, whole: int, antecedent: int) -> bool:
        """Whether so many baskets with the whole rule, of so many with its antecedent, are enough."""
        return whole * self.confidence.denominator >= antecedent * self.confidence.numerator

    def there(self, whole: int, antecedent: int) -> bool:
        """Whether a rule with these counts is found."""
        return whole >= self.least and self.confident(whole, antecedent)


def share_of(value: Exact, name: str) -> Fraction:
    """A share above 0 and at most 1.

    >>> share_of("0.01", "min_support")
    Fraction(1, 100)
    """
    try:
        share = exact_positive(value, name)
    except InvalidParameter as error:
        why = "every set of items would be frequent, and there are too many" if value == 0 else error.why
        raise InvalidParameter(error.what, why=why, instead=f'{name}="0.01"') from None
    if share > 1:
        raise InvalidParameter(
            f"{name}={text_of(share)} is invalid", why="it is a share of the baskets, at most 1", instead=f'{name}="0.01"'
        )
    return share
