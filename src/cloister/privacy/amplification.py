"""Promises that grow stronger because it is not known whose data were used: subsampling and shuffling.

They amplify only as long as the secret is kept: nobody may learn who was sampled, or which report was whose. All results are
rounded up.
"""

from fractions import Fraction

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy.guarantee import ApproxDP, Guarantee, PureDP, guarantee_of
from cloister.privacy.precision import context, real, up
from cloister.privacy.rational import Exact, exact_nonnegative, exact_probability, text_of


def poisson(guarantee: Guarantee | Exact, rate: Exact) -> Guarantee:
    """Each unit takes part with probability q, independently of the others: ε′ = ln(1 + q(e^ε − 1)), δ′ = qδ.

    Neighbours: unbounded, before and after. Theorem: Balle, Barthe & Gaboardi (2018), Theorem 8. Proof sketch: with and without
    the unit, the outputs are (1 − q)·A + q·B and A, where B and A are (ε, δ)-close; the mixture moves only q of the way.

    >>> poisson(PureDP(1), "0.01").epsilon < Fraction("0.0171")
    True
    """
    q = exact_nonnegative(rate, "rate")
    if q > 1:
        raise InvalidParameter(f"rate={text_of(q)} is invalid", why="it is a probability", instead='rate="0.01"')
    return _thinned(guarantee_of(guarantee), q)


def without_replacement(guarantee: Guarantee | Exact, *, taken: int, of: int) -> Guarantee:
    """A sample of exactly m of n units: ε′ = ln(1 + (m/n)(e^ε − 1)), δ′ = (m/n)·δ.

    Neighbours: *bounded*, before and after; n is public. Theorem: Balle, Barthe & Gaboardi (2018), Theorem 9.

    >>> without_replacement(ApproxDP(1, "1e-6"), taken=10, of=1000).delta
    Fraction(1, 100000000)
    """
    some, everyone = exact_nonnegative(taken, "taken"), exact_nonnegative(of, "of")
    if some.denominator != 1 or everyone.denominator != 1 or not 0 < some <= everyone:
        raise InvalidParameter(
            f"taken={text_of(some)} of={text_of(everyone)} is invalid",
            why="m of n units need 1 ≤ m ≤ n",
            instead="taken=10, of=1000",
        )
    return _thinned(guarantee_of(guarantee), some / everyone)


def shuffled(guarantee: PureDP | Exact, *, reports: int, delta: Exact) -> ApproxDP:
    """n reports, each randomised at its source with ε₀-DP, in an order that nobody knows.

    ε = ln(1 + (e^ε₀ − 1)/(e^ε₀ + 1)·(8√(e^ε₀·ln(4/δ))/√n + 8e^ε₀/n)), for ε₀ ≤ ln(n/(16·ln(2/δ))); never more than ε₀ itself.
    Neighbours: *bounded* (one respondent's value changes). Assumption: all use the same randomiser, or ones chosen in view of
    earlier reports but not of the shuffled outcome. Theorem: Feldman, McMillan & Talwar (2021), Theorem 3.1. Proof sketch: with
    probability e^−ε₀ a report does not depend on its own value more than on the first respondent's, so the first hides among the
    clones that the others make.

    >>> shuffled(PureDP(1), reports=100_000, delta="1e-6").epsilon < Fraction("0.1")
    True
    """
    count, slack, promised = exact_nonnegative(reports, "reports"), exact_probability(delta, "delta"), guarantee_of(guarantee)
    if not isinstance(promised, PureDP):
        raise NotConvertible(f"{promised} was not amplified by shuffling", why="the theorem is for pure ε", instead='PureDP("1")')
    if count.denominator != 1 or count == 0:
        raise InvalidParameter(f"reports={text_of(count)} is invalid", why="it counts reports", instead="reports=10_000")
    if slack == 0:
        raise NotConvertible(
            "δ = 0 is invalid for shuffling", why="the clones are enough only almost surely", instead='delta="1e-6"'
        )
    number = context()
    local, n = real(promised.epsilon), real(count)
    log_inverse = -number.log(real(slack))
    if promised.epsilon == 0 or local > number.log(n / (16 * (log_inverse + number.log(2)))):
        return ApproxDP(promised.epsilon, slack)
    crowd = 8 * number.sqrt(number.exp(local) * (log_inverse + number.log(4)) / n) + 8 * number.exp(local) / n
    return ApproxDP(min(promised.epsilon, up(number.log1p(number.tanh(local / 2) * crowd))), slack)


def _thinned(guarantee: Guarantee, rate: Fraction) -> Guarantee:
    if not isinstance(guarantee, PureDP | ApproxDP):
        raise NotConvertible(
            f"{guarantee} was not amplified by sampling",
            why="ρ-zCDP is not preserved by it; its Rényi curve is amplified at each order instead",
            instead="RenyiCurve.sampled_gaussian(…)",
        )
    if rate == 0 or guarantee.epsilon == 0:
        epsilon = Fraction(0)
    elif rate == 1:
        epsilon = guarantee.epsilon
    else:
        number = context()
        # With ε as large as it may be written, e^ε has no 60 digits worth keeping: ln(1 + q(e^ε − 1)) = ε + ln(q + (1 − q)e^−ε).
        full = real(guarantee.epsilon)
        small = (
            number.log1p(real(rate) * number.expm1(full))
            if full < 100
            else full + number.log(real(rate) + real(1 - rate) * number.exp(-full))
        )
        epsilon = min(guarantee.epsilon, up(small))
    return PureDP(epsilon) if isinstance(guarantee, PureDP) else ApproxDP(epsilon, rate * guarantee.delta)
