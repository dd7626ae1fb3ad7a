"""What a promise leaves to somebody who guesses: whether a person is in the data, or what a value of theirs is.

Neighbours are unbounded here: one unit added or removed. So a promise speaks of *presence*. Another *value* of somebody who is
in the data is two steps away: remove them, and add them as they would then be. So about values ε counts twice, (ε, δ) becomes
(2ε, (1 + e^ε)·δ), and ρ counts four times (`for_groups`, `to_bounded`). Likewise for k people: k steps for their presence, 2k for
their values. Nothing less is true: counts by person and bit at ε tell each bit at e^{2ε} : 1, since another bit moves two of
them. (Reports that are randomised by the people themselves are promised for values: there ε counts once.)

Two worlds, held for equally likely by somebody who knows everything else:

- *The best guess* is right with probability (1 + TV)/2, TV the total variation between the laws of the answers in both worlds.
  For (ε, δ) TV ≤ (e^ε − 1 + 2δ)/(e^ε + 1) (Kairouz, Oh & Viswanath 2015). For ρ, TV ≤ √(ρ/2) (Pinsker) and TV ≤ √(1 − e^(−ρ))
  (Bretagnolle & Huber 1979), since the Kullback–Leibler divergence is at most ρ; with a slack of δ, δ more. Over s steps TV is at
  most s times that of one, by the triangle inequality. Somebody who knows less of the others averages over them, in both worlds
  alike, and TV is jointly convex: they guess no better. About presence the bound is attained. About a value the doubled ε bounds
  how sure one answer can make somebody, which is attained too; over all answers a guess between two values is right less often,
  at most 1 − e^(−ε)/2 under ε, since answers near the absent person's tell neither.
- *The odds after one answer* are those before it times e^L, L the privacy loss of the answer. Under ε, L ≤ ε always. Under (ε, δ)
  it is not so that L ≤ ε but for a chance of δ: δ bounds E[(1 − e^{ε−L})⁺], and P(L > ε) is larger: for Gaussian noise
  and δ = 10⁻⁶ it is 149δ, 20δ and 4δ at an ε of 0.1, 1 and 8, and more of δ where that is smaller. What follows is P(L > ε + t) ≤
  δ/(1 − e^{−t}), by Markov: where L > ε + t, (1 − e^{ε−L})⁺ is above 1 − e^{−t}. With t = ln 2: the odds grow beyond 2e^ε with a
  chance of at most 2δ. Under ρ, P(L > ρ + λ) ≤ e^{−λ²/4ρ} (Bun & Steinke 2016, Lemma 3.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from cloister.errors import NotConvertible, check_one_of, check_whole
from cloister.privacy.conversion import delta_of_approx
from cloister.privacy.groups import for_groups
from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.privacy.precision import context, real, up
from cloister.privacy.rational import Exact, exact_probability

About: TypeAlias = Literal["presence", "value"]
_STEPS = {"presence": 1, "value": 2}
_SELDOM = Fraction(1, 10**6)


@dataclass(frozen=True, kw_only=True)
class Inference:
    """The most that anybody can infer under a promise, whatever they knew and whatever else they ask; all rounded up."""

    promise: Guarantee | None
    """What holds between the two worlds; None where no theorem says so."""
    right: Fraction
    """How often the best guess is right, where it would be right every second time without any answer."""
    loss: Fraction | None
    """No single answer raises the odds by more than e to this power, but with a chance of at most `chance`; None: no bound."""
    chance: Fraction

    @classmethod
    def of(cls, guarantee: Guarantee, *, about: About = "presence", people: int = 1) -> Inference:
        """What a promise for unbounded neighbours leaves to a guess about the presence, or a value, of one or several people.

        >>> def chance(guarantee, about): return float(round(100 * Inference.of(guarantee, about=about).right, 1))
        >>> [(chance(each, "presence"), chance(each, "value")) for each in (PureDP(1), ApproxDP(1, "0.01"), ZCDP("0.1"))]
        [(73.1, 88.1), (73.4, 88.5), (61.2, 72.4)]
        >>> found = Inference.of(ApproxDP(1, "1e-6"), about="value")
        >>> found.promise.epsilon, round(float(found.loss), 4), round(float(found.chance), 9)
        (Fraction(2, 1), 2.6931, 7.437e-06)
        """
        try:
            promise: Guarantee | None = for_groups(guarantee, _steps(about, people))
        except NotConvertible:
            promise = None
        chance = Fraction(1)
        if promise is not None:
            seldom = _SELDOM if isinstance(promise, ZCDP) else Fraction(0)
            chance = min(Fraction(1), seldom + 2 * promise.delta)
        return cls(
            promise=promise,
            right=(1 + advantage(guarantee, about=about, people=people)) / 2,
            loss=None if promise is None or chance == 1 else loss_within(promise, chance),
            chance=chance,
        )


def advantage(guarantee: Guarantee, *, about: About = "presence", people: int = 1) -> Fraction:
    """The largest total variation between the answers in both worlds, rounded up; 0 is a coin's toss, and 1 is certainty.

    >>> [float(round(advantage(each), 4)) for each in (PureDP(0), PureDP(1), ApproxDP(1, "0.1"), ZCDP("0.5"))]
    [0.0, 0.4621, 0.5159, 0.5]
    >>> [float(round(advantage(PureDP(1), about="value", people=each), 4)) for each in (1, 2)]
    [0.7616, 0.964]
    """
    steps = _steps(about, people)
    walked = min(Fraction(1), steps * _apart(guarantee))
    try:
        return min(walked, _apart(for_groups(guarantee, steps)))
    except NotConvertible:
        return walked


def loss_within(guarantee: Guarantee, chance: Exact) -> Fraction | None:
    """The privacy loss that an answer exceeds with at most this chance, rounded up; None where the promise bounds none.

    >>> losses = loss_within(PureDP(1), 0), loss_within(ApproxDP(1, "1e-6"), "2e-6"), loss_within(ZCDP("0.1"), "1e-6")
    >>> [round(float(each), 4) for each in losses]
    [1.0, 1.6931, 2.4508]
    >>> loss_within(ApproxDP(1, "1e-6"), "1e-6") is None
    True
    """
    seldom = exact_probability(chance, "chance")
    number = context()
    if isinstance(guarantee, ZCDP):
        if guarantee.rho == 0 and guarantee.delta == 0:
            return Fraction(0)
        if seldom <= guarantee.delta:
            return None
        if guarantee.delta == 0:
            return up(real(guarantee.rho) + 2 * number.sqrt(-real(guarantee.rho) * number.log(real(seldom))))
        guarantee = guarantee.to_approx((seldom + guarantee.delta) / 2)
    if guarantee.delta == 0:
        return guarantee.epsilon
    if seldom <= guarantee.delta:
        return None
    return guarantee.epsilon + up(-number.log1p(-real(guarantee.delta / seldom)))


def _steps(about: About, people: int) -> int:
    """How many units are added or removed between the two worlds."""
    check_one_of(about, "about", _STEPS, why="a guess is about presence or about a value", instead='about="value"')
    check_whole(people, "people", 1, why="a group is one person or several", instead="people=4")
    return _STEPS[about] * people


def _apart(guarantee: Guarantee) -> Fraction:
    """The most that the total variation between neighbours can be."""
    if isinstance(guarantee, PureDP | ApproxDP):
        return delta_of_approx(guarantee.to_approx(), 0)
    number, rho = context(), real(guarantee.rho)
    near, far = number.sqrt(rho / 2), number.sqrt(-number.expm1(-rho))
    return min(Fraction(1), up(min(near, far)) + guarantee.delta)
