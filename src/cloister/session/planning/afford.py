"""What each spend would buy: the margins of one question over a range of spends, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.privacy import Exact, Guarantee, exact_positive, text_of
from cloister.session.planning.plan import Plan
from cloister.session.questions.spend import amount_of
from cloister.session.releases.frames import Frame, Series, text_table

if TYPE_CHECKING:
    import altair as alt

_DECADES = 3


@dataclass(frozen=True, kw_only=True, repr=False)
class Affordable:
    """For each spend the expected margin of each statistic in one group.

    >>> from cloister.session.examples import small_door
    >>> from cloister.session import Count, Question
    >>> with small_door() as door:
    ...     print(door.afford(Question(table="people", statistics=(Count(),)), spends=["0.1", "1"]))
    spend  count
    ─────  ─────
      0.1   ± 30
        1    ± 3
    """

    spends: tuple[Fraction, ...]
    margins: Frame
    confidence: float

    def to_pydict(self) -> dict[str, list[Any]]:
        """The spends and the margins as plain lists."""
        return {"spend": [float(spend) for spend in self.spends], **{name: self.margins[name].tolist() for name in self._names()}}

    def __repr__(self) -> str:
        rows = [
            [text_of(spend), *(f"± {float(self.margins[name][place]):,.4g}" for name in self._names())]
            for place, spend in enumerate(self.spends)
        ]
        return text_table(["spend", *self._names()], rows)

    __str__ = __repr__

    def plot(self) -> alt.Chart:
        """Margin against spend, both in powers of ten, a line for each statistic."""
        import altair as alt

        from cloister.notebook import offline

        points = [
            {"spend": float(spend), "margin": float(self.margins[name][place]), "statistic": name}
            for name in self._names()
            for place, spend in enumerate(self.spends)
            if np.isfinite(float(self.margins[name][place])) and float(self.margins[name][place]) > 0
        ]
        scale = alt.Scale(type="log")
        chart: alt.Chart = (
            alt.Chart(alt.Data(values=points), title="What each spend would buy")
            .mark_line(point=True)
            .encode(
                x=alt.X("spend:Q", scale=scale, title="spend"),
                y=alt.Y("margin:Q", scale=scale, title=f"margin ({self.confidence:.0%})"),
                color=alt.Color("statistic:N", title=None),
                tooltip=["statistic:N", "spend:Q", "margin:Q"],
            )
            .properties(width=420, height=260)
        )
        return offline(chart)

    def _names(self) -> list[str]:
        return self.margins.column_names


def affordable(
    plan_at: Callable[[Fraction], Plan], remaining: Guarantee, spends: Sequence[Exact] | None, confidence: float
) -> Affordable:
    """The margins at the given spends, or at round numbers up to what remains."""
    if spends is not None and (isinstance(spends, str) or not isinstance(spends, Sequence) or not spends):
        raise InvalidParameter("spends= is invalid", why="it is not a list of at least one spend", instead='spends=["0.1", "1"]')
    amounts = (
        tuple(exact_positive(spend, "spends") for spend in spends) if spends is not None else _round_numbers(amount_of(remaining))
    )
    found: dict[str, list[float]] = {}
    for amount in amounts:
        for name, series in plan_at(amount).margin(confidence).columns.items():
            found.setdefault(name, []).append(float(series.values[0]))
    return Affordable(
        spends=amounts,
        margins=Frame({name: Series("real", np.array(values)) for name, values in found.items()}),
        confidence=confidence,
    )


def _round_numbers(most: Fraction) -> tuple[Fraction, ...]:
    """1, 2 and 5 times powers of ten, from a thousandth of `most` to `most`; an empty budget still says what spends would buy."""
    most = most or Fraction(1)
    power = Fraction(10) ** (math.floor(math.log10(most)) + 1)
    found = [power / 10**down * digit for down in range(_DECADES + 2, 0, -1) for digit in (1, 2, 5)]
    return tuple(amount for amount in found if most / 10**_DECADES <= amount <= most)
