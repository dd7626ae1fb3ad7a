"""What a membership attack found: scores of members and of others, and the rates that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.binomial import lower_bound, upper_bound
from cloister.errors import InvalidParameter
from cloister.privacy import ZCDP, ApproxDP, Exact, Guarantee, exact_probability, text_of

if TYPE_CHECKING:
    import altair as alt

Floats = NDArray[np.float64]
_CONFIDENCE = Fraction(95, 100)
_LEAST_SHOWN = 1e-4
_COLOURS = ["#c9714f", "#3f6c8f", "#6a8f4f", "#8a5f9e", "#2d2823"]
_DASHES = [[1, 0], [9, 2], [6, 2], [3, 2], [9, 2, 2, 2]]
_ZCDP_DELTAS = tuple(Fraction(1, 10**power) for power in range(2, 9))


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A share that was counted, with its Clopper–Pearson interval.

    >>> str(rate_of(50, 100))
    '50 % (39.8–60.2 %)'
    """

    rate: float
    low: float
    high: float
    confidence: Fraction

    def __str__(self) -> str:
        return f"{100 * self.rate:.3g} % ({100 * self.low:.3g}–{100 * self.high:.3g} %)"


def rate_of(hits: int, trials: int, *, confidence: Exact = _CONFIDENCE) -> Rate:
    """So many of so many, with the interval of Clopper & Pearson (1934) for independent trials.

    >>> rate_of(0, 1000).high < 0.004
    True
    """
    sure = exact_probability(confidence, "confidence")
    error = (1 - sure) / 2
    low, high = lower_bound(hits, trials, error=error), upper_bound(hits, trials, error=error)
    return Rate(rate=hits / trials, low=low, high=min(1.0, high), confidence=sure)


@dataclass(frozen=True, kw_only=True, eq=False)
class MembershipResult:
    """The scores that an attack gave to members and to others, larger where it believes in membership.

    Intervals take the threshold as given, and rows as independent; rows that one model was trained on are nearly so.

    >>> found = MembershipResult(attack="loss threshold", members=np.array([1.0, 2.0, 3.0]), others=np.array([0.0, 1.0, 2.0]))
    >>> round(found.auc, 3), round(found.balanced_accuracy, 3), found.true_positives(0).rate.__round__(3)
    (0.778, 0.667, 0.333)
    """

    attack: str
    members: Floats
    others: Floats
    models: int = 1
    """How many models were attacked; the scores are of all of them together."""

    def __post_init__(self) -> None:
        if not (len(self.members) and len(self.others)) or np.isnan(self.members).any() or np.isnan(self.others).any():
            raise InvalidParameter("The scores are invalid", why="there are members and others, and each has a number")

    @property
    def auc(self) -> float:
        """The chance that a member's score is above another's, ties by half: ½ where nothing is seen."""
        others = np.sort(self.others)
        below = np.searchsorted(others, self.members, side="left") + np.searchsorted(others, self.members, side="right")
        return float(below.mean() / (2 * len(others)))

    @property
    def balanced_accuracy(self) -> float:
        """(true positives + true negatives)/2 at the best threshold; a little above ½ also where nothing is seen."""
        false, true = self.roc()
        return float((1 + (true - false).max()) / 2)

    def roc(self) -> tuple[Floats, Floats]:
        """False and true positives at each threshold, both rising from 0 to 1."""
        thresholds = np.unique(np.concatenate([self.members, self.others]))[::-1]
        members, others = np.sort(self.members), np.sort(self.others)
        true = 1 - np.searchsorted(members, thresholds, side="left") / len(members)
        false = 1 - np.searchsorted(others, thresholds, side="left") / len(others)
        return np.concatenate([[0.0], false]), np.concatenate([[0.0], true])

    def true_positives(self, at: Exact = "0.001", *, confidence: Exact = _CONFIDENCE) -> Rate:
        """The share of members found by the lowest threshold whose false positives are a share of `at` or less."""
        return self._above(self.members, at, confidence)

    def false_positives(self, at: Exact = "0.001", *, confidence: Exact = _CONFIDENCE) -> Rate:
        """The share of others that the same threshold takes for members, with its own interval."""
        return self._above(self.others, at, confidence)

    def _above(self, scores: Floats, at: Exact, confidence: Exact) -> Rate:
        others = np.sort(self.others)
        most = math.floor(float(exact_probability(at, "at")) * len(others) * (1 + 1e-12))
        # Everything above the (most + 1)-th largest score of the others: with ties on it, fewer than `most` are above.
        hits = len(scores) if most >= len(others) else int((scores > others[len(others) - 1 - most]).sum())
        return rate_of(hits, len(scores), confidence=confidence)

    @staticmethod
    def most_under(guarantee: Guarantee, at: Exact = "0.001") -> float:
        """The largest share of members that any attack at all can find at this share of false positives under a guarantee.

        min(e^ε·at + δ, 1 − e^−ε(1 − δ − at)) (Kairouz, Oh & Viswanath 2015); for zCDP the best of its (ε, δ) forms.

        >>> from cloister.privacy import PureDP
        >>> round(MembershipResult.most_under(PureDP(1), "0.001"), 6)
        0.002718
        """
        false = float(exact_probability(at, "at"))
        if isinstance(guarantee, ZCDP):
            forms = [guarantee.to_approx(guarantee.delta + slack) for slack in _ZCDP_DELTAS]
        else:
            forms = [ApproxDP(guarantee.epsilon, guarantee.delta if isinstance(guarantee, ApproxDP) else 0)]
        return min(_most(float(form.epsilon), float(form.delta), false) for form in forms)

    def as_card(self) -> dict[str, Any]:
        """For a model card: plain texts and numbers.

        >>> card = MembershipResult(attack="loss threshold", members=np.arange(9.0), others=np.arange(9.0)).as_card()
        >>> card["attack"], card["auc"], sorted(card)[:3]
        ('loss threshold', 0.5, ['attack', 'auc', 'balanced_accuracy'])
        """
        shares = {f"true_positives_at_{at}": self.true_positives(at) for at in ("0.001", "0.01")}
        return {
            "attack": self.attack,
            "models_attacked": self.models,
            "members": len(self.members),
            "others": len(self.others),
            "auc": round(self.auc, 4),
            "balanced_accuracy": round(self.balanced_accuracy, 4),
            **{name: share.rate for name, share in shares.items()},
            **{f"{name}_interval": [share.low, share.high] for name, share in shares.items()},
            "interval_confidence": text_of(_CONFIDENCE),
        }

    def __repr__(self) -> str:
        return (
            f"MembershipResult({self.attack}: finds {self.true_positives('0.001')} of the members at 0.1 % false positives, "
            f"{self.true_positives('0.01')} at 1 %;\n  AUC {self.auc:.3f}, balanced accuracy {self.balanced_accuracy:.3f}, "
            f"{self.models} models, {len(self.members):,} members and {len(self.others):,} others)"
        )

    def plot(self, *others: MembershipResult, names: tuple[str, ...] = ()) -> alt.LayerChart:
        """True against false positives, both axes logarithmic, with guessing dashed; more results in the same picture."""
        import altair as alt

        from cloister.notebook import offline

        curves = (self, *others)
        called = names or tuple(each.attack for each in curves)
        if len(called) != len(curves):
            raise InvalidParameter("names= is invalid", why="it has one name for each curve", instead='names=("raw", "private")')
        rows = [row for name, each in zip(called, curves, strict=True) for row in _curve(name, each)]
        share = alt.Scale(type="log", domain=[_LEAST_SHOWN, 1], clamp=True)
        ticks = alt.Axis(format="~%", values=[1e-4, 1e-3, 1e-2, 1e-1, 1])
        across = alt.X("false:Q", title="false positives", scale=share, axis=ticks)
        up = alt.Y("true:Q", title="true positives: members found", scale=share, axis=ticks)
        order = list(called)
        lines = (
            alt.Chart(alt.Data(values=rows))
            .mark_line(interpolate="step-after", size=2.5)
            .encode(
                x=across,
                y=up,
                color=alt.Color("model:N", title=None, sort=order, scale=alt.Scale(domain=order, range=_COLOURS)),
                strokeDash=alt.StrokeDash("model:N", legend=None, scale=alt.Scale(domain=order, range=_DASHES)),
            )
        )
        ends = [{"false": value, "true": value} for value in (_LEAST_SHOWN, 1.0)]
        guess = alt.Chart(alt.Data(values=ends)).mark_line(strokeDash=[2, 4], color="#8b8378").encode(x=across, y=up)
        return offline(alt.layer(guess, lines).properties(width=360, height=300))


def _most(epsilon: float, delta: float, false: float) -> float:
    grown = math.exp(min(epsilon, 700.0))
    return min(1.0, grown * false + delta, 1 - (1 - delta - false) / grown)


def _curve(name: str, result: MembershipResult) -> list[dict[str, Any]]:
    """Some hundred points of the curve, dense where false positives are few."""
    false, true = result.roc()
    wanted = np.unique(np.searchsorted(false, np.geomspace(_LEAST_SHOWN, 1.0, 160), side="right") - 1)
    return [
        {"model": name, "false": max(float(false[place]), _LEAST_SHOWN), "true": max(float(true[place]), _LEAST_SHOWN)}
        for place in wanted
    ]
