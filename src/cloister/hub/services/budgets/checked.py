"""What is looked at before a budget is changed: that an amount is one that is meant."""

from __future__ import annotations

from fractions import Fraction

from cloister.errors import CloisterError
from cloister.hub.policy import check_amount
from cloister.privacy import exact

__all__ = ["check_typed"]


def check_typed(amount: str, title: str = "The amount") -> None:
    """Refuse an amount beyond all sense; what is no number at all is refused where it is read.

    >>> check_typed("0.5"), check_typed("half")
    (None, None)
    """
    try:
        number: Fraction = exact(amount)
    except CloisterError:
        return
    check_amount(number, title)
