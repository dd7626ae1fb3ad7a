"""How far people who lie about their reports can move an estimate: closed forms.

An honest report adds, on average, 1 to the estimated count of its own answer and 0 to any other. A made-up report adds one
fixed amount, of which a protocol bounds the size. So m made-up reports move an estimated count by at most m times the largest
difference between the two. Nobody can be kept from lying about the answer itself; that moves a count by 1.
"""

from __future__ import annotations

import math

__all__ = ["reach", "sway_of_coins"]


def reach(none: float, all_: float) -> tuple[float, float]:
    """What one report adds to an estimated count: at least −b, at most a, in every protocol that counts whether a report
    supports a value (with probability p if it is held, else q).

    Proof: a supporting report adds a = (1 − q)/(p − q), another one −b = −q/(p − q). Of one person, the estimate's variance is
    v₀ = q(1 − q)/(p − q)² = ab where the value is not held, and v₁ = p(1 − p)/(p − q)² = (1 + b)(a − 1) where it is; so
    a − b = v₁ − v₀ + 1, and a, −b are the roots of x² − (v₁ − v₀ + 1)x − v₀.

    >>> a, b = reach(0.75, 0.75)  # true 3 times in 4: a report adds 1.5 or −0.5
    >>> round(a, 6), round(b, 6)
    (1.5, 0.5)
    """
    middle = (all_ - none + 1) / 2
    root = math.sqrt(middle**2 + none)
    return middle + root, root - middle


def sway_of_coins(none: float, all_: float) -> float:
    """The most that one made-up report moves an estimated count, against the expectation of an honest one: max(a, 1 + b).

    >>> round(sway_of_coins(0.75, 0.75), 6)
    1.5
    """
    a, b = reach(none, all_)
    return max(a, 1 + b)
