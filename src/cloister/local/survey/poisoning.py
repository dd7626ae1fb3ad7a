"""How far people who lie about their reports can move an estimate: closed forms.

An honest report adds, on average, 1 to the estimated count of its own answer and 0 to any other. A made-up report adds one
fixed amount, of which a protocol bounds the size. So m made-up reports move an estimated count by at most m times the largest
difference between the two. Nobody can be kept from lying about the answer itself; that moves a count by 1. A mean is a ratio: its
sum moves, and how many are seen to have answered does too, so where few answered it moves by more than its sum says
(`sway_of_ratio`).
"""

import math
from collections.abc import Callable

Lift = Callable[[float, float], float]
"""lift(u, v): the most that a made-up report, in the place of an honest one, adds to u × the estimated sum + v × the estimated
number of those who answered, against what the honest one adds on average."""


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


def sway_of_ratio(lift: Lift, *, total: float, answered: float, liars: float) -> float:
    """The most that so many made-up reports, in the place of honest ones, move a mean total/answered: infinite where they can
    make it seem that nobody answered.

    It holds either way round: from the result of honest reports to one with lies in it, and from a result as it is shown to what
    it would be without the lies that may be in it. In both, it is reached.

    Proof: write m = total/answered =: T/A. A made-up report r adds (t_r, a_r) to (T, A), the honest one in whose place it stands
    adds (t_h, a_h) on average; let τ = t − m·a, so that T − m·A = 0. With k lies the mean moves by
    k(τ_r − τ_h)/(A + k(a_r − a_h)), averaged over the lies in numerator and in denominator. As long as no denominator reaches 0,
    a ratio of linear functions on a convex set is largest at a corner: at k equal lies in the place of k equal honest reports. So
    the shift is at most λ if and only if k·max(τ_r − τ_h − λ(a_r − a_h)) ≤ λA, that is, k·lift(1, −m − λ) ≤ λA (and with −1 for
    +1, to the other side). The left side less the right one is convex in λ, not below 0 at 0, and below 0 in the end: it has one
    zero, which is found by halves. Without the lies, the signs of a_r and a_h in the denominator change, and so does that of λ
    in `lift`. Denominators reach 0 just where k·lift(0, ∓1) ≥ A.

    >>> def everybody(u, v):  # a randomised response among −1 and 1 at p = 3/4, which all answer: ±2, against ±1
    ...     return 3 * abs(u)
    >>> round(sway_of_ratio(everybody, total=0, answered=1000, liars=10), 9)
    0.03
    """
    if liars <= 0:
        return 0.0
    if answered <= 0 or max(liars * lift(0.0, side) for side in (-1.0, 1.0)) >= answered:
        return math.inf
    mean = total / answered
    return max(_zero(lift, sign, side, mean, answered / liars) for sign in (-1.0, 1.0) for side in (-1.0, 1.0))


def _zero(lift: Lift, sign: float, side: float, mean: float, each: float) -> float:
    """The λ with lift(±1, ∓m ∓ λ) = λ·A/k, from above: lift is subadditive, so the zero is not above the first `most`."""
    least, most = 0.0, lift(sign, -sign * mean) / (each - lift(0.0, -side))
    for _ in range(100):
        middle = (least + most) / 2
        if not least < middle < most:
            break
        if lift(sign, -sign * mean - side * middle) > middle * each:
            least = middle
        else:
            most = middle
    return most
