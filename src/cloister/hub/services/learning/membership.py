"""What a model's card says of membership inference: the most that any attack can find, and what one found on made-up rows.

Both follow from public facts, so they cost nothing and tell nothing of the data: the first from the guarantee alone, the second
from the declarations, the declared size and a fixed seed (`made_up.py`). What an attack would find on the real rows is not said:
to measure it would be to read them once more. The made-up rows show how far below the bound an attack of today stays. So few
false alarms are counted on a few people: both shares have their intervals (95 %), and neither is read without the other.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.errors import CloisterError
from cloister.hub.cache import cached
from cloister.hub.services.learning.order import Training, declared, shape_of
from cloister.hub.web.languages import N_
from cloister.noise import Random
from cloister.privacy import ZCDP, Guarantee

if TYPE_CHECKING:
    from cloister.attacks import MembershipResult
    from cloister.attacks.confidences import Confidence
    from cloister.hub.hub import Hub
    from cloister.learn.frame.base import PrivateModel
    from cloister.learn.frame.encoding import Encoder
    from cloister.tables import PrivateTable

LINES = (
    N_("membership inference: detection by a blind guess at 0.1 % false alarms"),
    N_("membership inference: the guarantee's limit for any attack there"),
    N_("membership inference: detection by a likelihood-ratio attack there, on models of made-up rows"),
    N_("membership inference: the false alarms that it raised"),
)
"""What the lines of a card are called, as it shows them."""
_AT = Fraction(1, 1000)
_LEAST, _MOST, _UNSAID = 50, 2000, 1000
_SHADOWS, _TARGETS = 4, 12
_PART, _SEED = "membership on made-up rows", 20_261_120
_BEGIN = "membership inference: "


def lines_of(promise: Guarantee, found: MembershipResult | None) -> dict[str, str]:
    """The lines of a card, by what follows "membership inference: "; shares in per cent.

    >>> from cloister.privacy import PureDP
    >>> for what, text in lines_of(PureDP(1), None).items():
    ...     print(what, "-", text)
    detection by a blind guess at 0.1 % false alarms - 0.1 %
    the guarantee's limit for any attack there - 0.272 %
    """
    said = [f"{100 * float(_AT):g} %", _per_cent_up(most_found(promise))]
    if found is not None:
        said += [str(found.true_positives(_AT)), str(found.false_positives(_AT))]
    return {what.removeprefix(_BEGIN): text for what, text in zip(LINES, said, strict=False)}


def most_found(promise: Guarantee, at: Fraction = _AT) -> float:
    """The largest share of members that any attack can find while it takes a share `at` of the others for members.

    Guarantee: for one person more or less. Under (ε, δ) it is the least of e^ε·at + δ and 1 − e^−ε(1 − δ − at) (Kairouz, Oh &
    Viswanath 2015). Under ρ (Bun & Steinke 2016: the Rényi divergence of each order α > 1 is at most ρα), it is at most
    exp(−(√L − √ρ)²) with L = ln(1/at), where ρ < L: by data processing the event "taken for a member", of chance t with the
    person and `at` without, has t^α·at^(1−α) ≤ e^((α−1)ρα), so ln t ≤ (α−1)ρ − (1−1/α)L, which is least at α = √(L/ρ). A δ
    beside the ρ is a share of both outputs of which nothing holds: (1 − δ) times the bound at at/(1 − δ), plus δ.

    >>> from cloister.privacy import ApproxDP, PureDP
    >>> [round(most_found(each), 5) for each in (PureDP(0), PureDP(1), ApproxDP(1, "1e-6"), ZCDP("0.1"), ZCDP(20))]
    [0.001, 0.00272, 0.00272, 0.00477, 1.0]
    """
    from cloister.attacks import MembershipResult

    most = MembershipResult.most_under(promise, at)
    if not isinstance(promise, ZCDP):
        return most
    rho, delta = float(promise.rho), float(promise.delta)
    long = math.log((1 - delta) / float(at))
    sharp = math.exp(-((math.sqrt(long) - math.sqrt(rho)) ** 2)) if rho < long else 1.0
    return min(most, (1 - delta) * sharp + delta)


def attacked(hub: Hub, order: Training, table: PrivateTable, cost: Guarantee) -> MembershipResult | None:
    """A likelihood-ratio attack on the method under this promise, on made-up rows; None where no attack looks at such a model, or
    where it can't learn from half of so few rows. It is worked out once in a process."""
    model, encoder = declared(order, table)
    key = repr((*shape_of(order, model, encoder, table), str(cost)))
    return cached(hub, _PART, key, lambda: _attacked(model, encoder, table.size, cost))


def _attacked(model: PrivateModel, encoder: Encoder, size: int | None, cost: Guarantee) -> MembershipResult | None:
    from sklearn.base import clone

    from cloister.attacks import train_shadows
    from cloister.learn.assessment.made_up import fit_within, made_up

    rows = max(min(size or _UNSAID, _MOST), _LEAST)
    targets = max(_TARGETS, -(-2 * _AT.denominator // rows))  # so many that one in a thousand of the others is somebody
    random = Random.deterministic(_SEED)

    def fit(some: Any, theirs: Any) -> Any:
        twin: PrivateModel = clone(model)
        twin.random = random
        return fit_within(twin, some, theirs, cost)

    try:
        X, y = made_up(model, encoder, rows)
        sure = _sure_of(model, has_target=y is not None)
        if sure is None:
            return None
        shadows = train_shadows(fit, X, y, models=_SHADOWS + targets, confidence=sure, random=random)
        return shadows.attacked(targets)
    except (CloisterError, TypeError, ValueError, ArithmeticError, LookupError):
        return None


def _sure_of(model: PrivateModel, *, has_target: bool) -> Confidence | None:
    """What the attack looks at: how well a model fits a row; None of one that says nothing of rows."""
    from cloister.attacks.confidences import confidence_of
    from cloister.learn.decomposition.captured import captures, distances

    if has_target:
        return confidence_of
    if hasattr(model, "score_samples"):
        return lambda learnt, X, y: learnt.score_samples(X)
    return (lambda learnt, X, y: -distances(learnt, X)) if captures(model) else None


def _per_cent_up(share: float) -> str:
    """A share in per cent, of three digits, never less than it is.

    >>> _per_cent_up(0.0027182), _per_cent_up(1.0), _per_cent_up(0.00100001)
    ('0.272 %', '100 %', '0.101 %')
    """
    rounded = Context(prec=3, rounding=ROUND_CEILING).create_decimal(Decimal(100 * share))
    return f"{min(rounded, Decimal(100)).normalize():f} %"
