"""The most that a budget, a share, a spend or a ceiling may say: beyond it there is only a mistake of units.

At ε = 30 an answer may give a person away for certain, so 10¹² takes nothing from anybody who means what they write. It keeps
every amount within what floats, pictures and pages can hold.
"""

from __future__ import annotations

from fractions import Fraction

from cloister.errors import InvalidParameter
from cloister.privacy.guarantee import ZCDP, Guarantee

LARGEST = 10**12


def check_amount(amount: Fraction | Guarantee, title: str = "The amount") -> None:
    """Refuse an ε or a ρ that is larger than any that is meant.

    >>> check_amount(Fraction(10**9))
    >>> check_amount(Fraction(10**400), "The budget")
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The budget is invalid: ε and ρ are at most 1000000000000, and protect no one long before
    that.
      Instead: 1
    """
    number = amount if isinstance(amount, Fraction) else amount.rho if isinstance(amount, ZCDP) else amount.epsilon
    if number > LARGEST:
        raise InvalidParameter(
            f"{title} is invalid", why=f"ε and ρ are at most {LARGEST}, and protect no one long before that", instead="1"
        )
