"""Many promises about the same unit, as one.

=====================  ======================================================================  ==================================
theorem                what it says of k mechanisms, ε-private each                            needs
=====================  ======================================================================  ==================================
`sequential`           kε; δ adds, ρ adds                                                      nothing
`parallel`             the largest of them                                                     each unit in one part only
`advanced`             ε√(2k·ln(1/δ′)) + kε(e^ε − 1), and kδ + δ′                              parameters fixed in advance
`optimal`              the least ε for a wanted δ, of any k mechanisms with that guarantee     parameters fixed in advance
`heterogeneous`        the same where the guarantees differ                                    parameters fixed in advance
`best_of`              the least ε for a wanted δ of the rows above and of ρ-zCDP              parameters fixed in advance
=====================  ======================================================================  ==================================

All hold where a mechanism is chosen in view of earlier answers, as long as its *parameters* are not; where those are chosen in
view of answers, too, see `cloister.privacy.filters`. A number stands for the pure guarantee of that ε. Results that are not
rational are rounded up. Groups of units: `cloister.privacy.groups`.

A popular form of the advanced theorem, 2ε√(2k·ln(1/δ′)), is wrong: for k = 500 releases of ε = 1 at δ = 10⁻⁵ it claims ε = 214.6,
where `optimal` proves that no general theorem can claim less than 311.8, and Laplace noise alone needs 258.306.
"""

from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction

from cloister.errors import NotConvertible
from cloister.privacy.conversion import delta_of_approx, epsilon_of_zcdp, zcdp_of_approx, zcdp_of_pure
from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, guarantee_of, pure_or_approx
from cloister.privacy.loss import PrivacyLossDistribution
from cloister.privacy.precision import context, real, rounded_up, up
from cloister.privacy.rational import Exact, exact, exact_nonnegative, exact_probability, text_of, whole_number

_LONGEST_SUM = 20_000
_TINIEST = Fraction(1, 10**12)  # below this the sum is as good as any theorem, and the digits of sixty would cancel


def sequential(guarantees: Iterable[Guarantee | Exact]) -> Guarantee:
    """The sum of promises: ε adds, δ adds, ρ adds. Valid for adaptively chosen mechanisms.

    Theorem: Dwork, McSherry, Nissim & Smith (2006); Dwork, Kenthapadi, McSherry, Mironov & Naor (2006); Bun & Steinke (2016),
    Lemma 1.7.

    >>> sequential([PureDP("0.1")] * 10)
    PureDP(epsilon='1')
    """
    total: Guarantee = PureDP(0)
    for guarantee in guarantees:
        total = total + guarantee_of(guarantee)
    return total


def parallel(guarantees: Iterable[Guarantee | Exact]) -> Guarantee:
    """The largest of promises that each concern other units: what one unit sees of them all.

    Assumption: the parts are disjoint by units, and the part that a unit falls into depends on that unit alone. Theorem: McSherry
    (2009), Theorem 4. It holds for unbounded neighbours; a replaced unit may leave one part and enter another, which costs the
    two largest together.

    >>> parallel([PureDP("0.1"), PureDP("0.5")])
    PureDP(epsilon='0.5')
    >>> parallel([ApproxDP(1, "1e-6"), ApproxDP(2, "1e-7")])
    ApproxDP(epsilon='2', delta='0.000001')
    """
    largest: Guarantee = PureDP(0)
    for guarantee in guarantees:
        largest = _larger(largest, guarantee_of(guarantee))
    return largest


def advanced(guarantee: PureDP | ApproxDP | Exact, count: int, slack: Exact) -> ApproxDP:
    """The advanced composition theorem: ε√(2k·ln(1/δ′)) + kε(e^ε − 1), rounded up, and kδ + δ′.

    Theorem: Dwork, Rothblum & Vadhan (2010), Theorem III.3; see `optimal`, which is never worse.

    >>> advanced(PureDP("0.1"), 100, "1e-5").epsilon < 10 < advanced(PureDP("0.1"), 20, "1e-5").epsilon * 5
    True
    """
    times, prime = _count(count), exact_probability(slack, "slack")
    each_promises = pure_or_approx(guarantee)
    epsilon, delta = each_promises.epsilon, times * each_promises.delta + prime
    if prime == 0:
        raise NotConvertible(
            "slack=0 is invalid", why="the advanced theorem buys a smaller ε with some δ′", instead='slack="1e-6"'
        )
    if delta >= 1:
        raise NotConvertible(
            "The composition is invalid", why=f"its δ would be {text_of(delta)}, which promises nothing", instead="fewer"
        )
    if epsilon == 0:
        return ApproxDP(0, delta)
    number = context()
    each = real(epsilon)
    spread = each * number.sqrt(-2 * times * number.log(real(prime)))
    return ApproxDP(up(spread + times * each * number.expm1(each)), delta)


def optimal(guarantee: PureDP | ApproxDP | Exact, count: int, delta: Exact) -> ApproxDP:
    """The least ε, rounded up, that k mechanisms of one guarantee are certain to have at a wanted δ.

    Theorem: Kairouz, Oh & Viswanath (2015), Theorem 3.3, which holds with equality for k randomised responses: so nothing less is
    true in general. For k above 20,000 the binomial sum is taken by `PrivacyLossDistribution`, which is slightly above it.

    >>> 311.7 < optimal(PureDP(1), 500, "1e-5").epsilon < 311.9
    True
    """
    guarantee, times, wanted = pure_or_approx(guarantee), _count(count), exact_probability(delta, "delta")
    epsilon = guarantee.epsilon
    if times > _LONGEST_SUM:
        return (PrivacyLossDistribution.of_guarantee(guarantee) * times).to_approx(wanted)
    kept = (1 - guarantee.delta) ** times if guarantee.delta else Fraction(1)
    if 1 - kept > wanted:
        raise NotConvertible(
            f"{times} × ({guarantee}) was not converted to δ = {text_of(wanted)}",
            why="the δ of the parts add up to more",
            instead=f'a delta of at least "{text_of(times * guarantee.delta)}"',
        )
    if epsilon < _TINIEST or wanted == 1 - kept:
        return ApproxDP(times * epsilon, wanted)
    left = 1 - (1 - wanted) / kept  # δ = 1 − (1 − δ₀)ᵏ·(1 − left)
    number = context()
    each, target = real(epsilon), real(left)
    step = number.exp(-each)
    mass = number.exp(-times * number.log1p(step))  # P[all k say the more likely thing]
    above, below, odds = number.mpf(0), number.mpf(0), number.mpf(1)
    for wrong in range(times // 2 + 1):
        # Σ P and e^{kε}·Σ Q of the losses from (k − 2·wrong)ε on: down to the next loss, δ(ε) = above − e^{ε − kε}·below.
        above, below, odds = above + mass, below + mass * odds, odds / step**2
        if above - below / odds > target:  # δ at the next loss is too large, so the ε that is sought lies before it
            found = times * each + number.log((above - target) / below)
            return ApproxDP(min(times * epsilon, max(Fraction(0), up(found))), wanted)
        mass *= step * (times - wrong) / (wrong + 1)
    return ApproxDP(0, wanted)


def optimal_delta(guarantee: PureDP | ApproxDP | Exact, count: int, epsilon: Exact) -> Fraction:
    """The least δ, rounded up, that k mechanisms of one guarantee are certain to have at a wanted ε; the inverse of `optimal`.

    >>> optimal_delta(PureDP(1), 1, "0.5") == delta_of_approx(ApproxDP(1, 0), "0.5")
    True
    """
    guarantee, times, bound = pure_or_approx(guarantee), _count(count), exact_nonnegative(epsilon, "epsilon")
    if times == 1:
        return delta_of_approx(guarantee.to_approx(), bound)
    if times > _LONGEST_SUM:
        return (PrivacyLossDistribution.of_guarantee(guarantee) * times).delta(bound)
    kept = (1 - guarantee.delta) ** times if guarantee.delta else Fraction(1)
    number = context()
    each, wanted = real(guarantee.epsilon), real(bound)
    step = number.exp(-each)
    mass, total = number.exp(-times * number.log1p(step)), number.mpf(0)
    for wrong in range(times // 2 + 1):
        loss = (times - 2 * wrong) * guarantee.epsilon
        if loss <= bound:
            break
        total += mass * -number.expm1(wanted - real(loss))
        mass *= step * (times - wrong) / (wrong + 1)
    slack = min(Fraction(1), up(total))
    return rounded_up(1 - kept * (1 - slack))


def heterogeneous(guarantees: Iterable[PureDP | ApproxDP | Exact], delta: Exact) -> ApproxDP:
    """The ε, rounded up, of mechanisms with different guarantees, at a wanted δ.

    The exact optimum is #P-complete (Murtagh & Vadhan 2016). This composes the worst pair of each, randomised response, as
    privacy losses on a grid; it is never below the optimum, and typically above it by a few parts in ten thousand.

    >>> heterogeneous([PureDP("0.1")] * 50 + [PureDP("0.2")] * 50, "1e-6").epsilon < 12
    True
    """
    batch = PrivacyLossDistribution.compose(PrivacyLossDistribution.of_guarantee(guarantee) for guarantee in guarantees)
    return batch.to_approx(delta)


def best_of(guarantees: Iterable[Guarantee | Exact], delta: Exact) -> ApproxDP:
    """The least ε at a wanted δ that any theorem of this module gives: the sum, ρ-zCDP, the optimal theorems.

    >>> best_of([PureDP("0.1")] * 5, 0), best_of([PureDP("0.1")] * 500, "1e-9").epsilon < 20
    (ApproxDP(epsilon='0.5', delta='0'), True)
    """
    batch, wanted = [guarantee_of(each) for each in guarantees], exact_probability(delta, "delta")
    found: list[ApproxDP] = []
    if not any(isinstance(guarantee, ZCDP) for guarantee in batch):
        plain = [guarantee for guarantee in batch if isinstance(guarantee, PureDP | ApproxDP)]
        total = sequential(plain)
        if total.delta <= wanted:
            found.append(total.to_approx(wanted))
        if plain and wanted > 0:
            same = all(guarantee == plain[0] for guarantee in plain)
            with suppress(NotConvertible):
                found.append(optimal(plain[0], len(plain), wanted) if same else heterogeneous(plain, wanted))
    if wanted > 0:
        rho = sequential(_as_zcdp(guarantee) for guarantee in batch)
        if isinstance(rho, ZCDP) and rho.delta < wanted:
            found.append(ApproxDP(epsilon_of_zcdp(rho, wanted), wanted))
    if not found:
        raise NotConvertible(
            f"The batch has no ε at δ = {text_of(wanted)}",
            why="its own δ is larger, or a ρ in it needs δ > 0",
            instead='best_of(guarantees, "1e-6")',
        )
    return min(found, key=lambda approx: approx.epsilon)


def _as_zcdp(guarantee: Guarantee) -> ZCDP:
    if isinstance(guarantee, ZCDP):
        return guarantee
    return zcdp_of_pure(guarantee) if isinstance(guarantee, PureDP) else zcdp_of_approx(guarantee)


def _larger(left: Guarantee, right: Guarantee) -> Guarantee:
    if not isinstance(left, ZCDP) and not isinstance(right, ZCDP):
        if isinstance(left, PureDP) and isinstance(right, PureDP):
            return PureDP(max(left.epsilon, right.epsilon))
        return ApproxDP(max(left.epsilon, right.epsilon), max(left.delta, right.delta))
    if isinstance(left, ApproxDP) or isinstance(right, ApproxDP):
        return left + right  # which is refused, with the line to write
    first = left if isinstance(left, ZCDP) else left.to_zcdp()
    second = right if isinstance(right, ZCDP) else right.to_zcdp()
    return ZCDP(max(first.rho, second.rho), max(first.delta, second.delta))


def _count(value: int) -> int:
    return whole_number(exact(value, "count"), "count", least=1, usual=10)
