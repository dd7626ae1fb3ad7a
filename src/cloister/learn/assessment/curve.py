"""The price of privacy: how good a model is at each ε, run many times, against the same model without noise.

A curve that is computed on private rows is not private: it is for public or synthetic rows, or for the owner's own eyes. That
is why it says where its rows are from, and why a chart carries a mark.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from sklearn.base import clone, is_classifier

from cloister.errors import InvalidParameter
from cloister.learn.assessment.evaluation import paired, split
from cloister.learn.assessment.judging import Measure, judge_of, measure_of, rows_for
from cloister.learn.decomposition.captured import captured, captures
from cloister.learn.frame.catalogue import name_of
from cloister.noise import Random
from cloister.privacy import Exact, exact_positive, text_of

if TYPE_CHECKING:
    import altair as alt

    from cloister.learn.frame.base import PrivateModel

Measured: TypeAlias = Measure | Literal["captured"]
_NAMES = {"accuracy": "accuracy", "captured": "explained variance", "mean_squared_error": "mean squared error", "r2": "R²"}
_MARK = "not private: for public rows, or the owner's own eyes"


@dataclass(frozen=True, kw_only=True)
class Point:
    """What came out of so many runs with one ε (None: without privacy).

    >>> point = Point(epsilon=Fraction(1), values=(0.5, 0.7))
    >>> round(point.mean, 3), round(point.spread, 3), round(point.margin(), 3)
    (0.6, 0.141, 1.271)
    """

    epsilon: Fraction | None
    values: tuple[float, ...]

    @property
    def runs(self) -> int:
        """How many."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Of the runs."""
        return sum(self.values) / len(self.values)

    @property
    def spread(self) -> float:
        """The standard deviation of one run; 0 of a single one."""
        if len(set(self.values)) < 2:
            return 0.0
        return math.sqrt(sum((value - self.mean) ** 2 for value in self.values) / (len(self.values) - 1))

    def margin(self) -> float:
        """Of the mean, at 95 %: standard errors by Student's law, since the spread is that of few runs; infinite of one
        run, and of runs that are all alike, which don't tell how far others may lie."""
        from scipy.special import stdtrit

        return float(stdtrit(self.runs - 1, 0.975)) * self.spread / math.sqrt(self.runs) if self.spread else math.inf


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A model's measure by ε, with the one without privacy. NOT PRIVATE where its rows are.

    >>> curve = Curve(model="GaussianNB", measure="accuracy", rows="public rows", delta=None, plain=None,
    ...               points=(Point(epsilon=Fraction(1), values=(0.5, 0.7)),))
    >>> curve.data()[0]["epsilon"], curve.nearest(Fraction(2)).mean
    (1.0, 0.6)
    """

    model: str
    measure: str
    rows: str
    """Where the rows are from, in the caller's words."""
    delta: Fraction | None
    plain: Point | None
    points: tuple[Point, ...]

    def nearest(self, epsilon: Fraction | None) -> Point | None:
        """The point whose ε is nearest, in proportion."""
        if epsilon is None or not epsilon or not self.points:
            return None
        return min(self.points, key=lambda point: abs(math.log(float(point.epsilon or 1) / float(epsilon))))

    def data(self) -> list[dict[str, Any]]:
        """One row a point, the one without privacy last, with epsilon None; the margin is None where it is infinite."""
        points = [*self.points, *([self.plain] if self.plain is not None else [])]
        return [
            {
                "epsilon": None if point.epsilon is None else float(point.epsilon),
                "mean": point.mean,
                "spread": point.spread,
                "margin": point.margin() if point.spread else None,
                "runs": point.runs,
            }
            for point in points
        ]

    def to_json(self) -> str:
        """As JSON, with the mark."""
        delta = None if self.delta is None else text_of(self.delta)
        about = {"model": self.model, "measure": self.measure, "rows": self.rows, "delta": delta, "private": False, "mark": _MARK}
        return json.dumps({**about, "points": self.data()}, ensure_ascii=False)

    def text(self) -> str:
        """A table for a terminal."""
        lines = [f"{self.model}, {_NAMES.get(self.measure, self.measure)}, from {self.rows} ({_MARK})"]
        for point in (*self.points, *([self.plain] if self.plain is not None else [])):
            label = "no privacy" if point.epsilon is None else f"ε = {float(point.epsilon):g}"
            told = f"  {point.runs} run{'s, all alike' if point.runs > 1 else ''}"
            if point.spread:
                told = f"± {point.margin():.4f}   one run ± {point.spread:.4f}   {point.runs} runs"
            lines.append(f"  {label:<12} {point.mean:8.4f} {told}")
        return "\n".join(lines)

    def chart(self) -> alt.LayerChart:
        """The means over ε on a logarithmic axis, bars of one standard deviation, and a dashed line without privacy."""
        import altair as alt

        from cloister.notebook import offline

        name = _NAMES.get(self.measure, self.measure)
        rows = [
            {**row, "low": row["mean"] - row["spread"], "high": row["mean"] + row["spread"], "series": "with privacy"}
            for row in self.data()
            if row["epsilon"] is not None
        ]
        delta = "" if self.delta is None else f", δ = {text_of(self.delta)}"
        title = alt.Title(
            f"{self.model}: what privacy costs", subtitle=[f"{self.rows}{delta}; bars: one standard deviation of a run", _MARK]
        )
        base = alt.Chart(alt.Data(values=rows)).properties(width=420, height=260, title=title)
        x = alt.X("epsilon:Q", scale=alt.Scale(type="log"), title="ε (less is more private)")
        y = alt.Y("mean:Q", title=name, scale=alt.Scale(zero=False))
        layers = [
            base.mark_rule(strokeWidth=1.5).encode(x=x, y=alt.Y("low:Q", title=name, scale=alt.Scale(zero=False)), y2="high:Q"),
            base.mark_line(point=True).encode(x=x, y=y, tooltip=["epsilon:Q", "mean:Q", "spread:Q", "runs:Q"]),
        ]
        if self.plain is not None:
            data = alt.Data(values=[{"mean": self.plain.mean, "label": "no privacy"}])
            layers.append(alt.Chart(data).mark_rule(strokeDash=[6, 4]).encode(y=y))
            ends = max(row["epsilon"] for row in rows)
            text = alt.Data(values=[{"mean": self.plain.mean, "epsilon": ends, "label": "no privacy"}])
            layers.append(alt.Chart(text).mark_text(align="right", baseline="bottom", dy=-4).encode(x=x, y=y, text="label:N"))
        return offline(alt.layer(*layers))


def price_of_privacy(
    model: PrivateModel,
    X: Any,
    y: Any = None,
    *,
    epsilons: Iterable[Exact] | Exact = ("0.1", "0.3", "1", "3", "10"),
    runs: int = 10,
    measure: Measured | None = None,
    test: Exact = "0.25",
    rows: str = "these rows",
    random: Random | None = None,
    progress: Callable[[str], None] | None = None,
) -> Curve:
    """The curve of a model on arrays. Each run parts the rows again, alike for every ε, so that all are compared on the same.

    The measure is accuracy for classes, R² for numbers, and "captured" for groups and directions, which have no y: the share of
    the spread of rows that the middles of groups, or the directions, keep (`cloister.learn.decomposition.captured`).

    No guarantee: scores are exact, and runs many. It is for public or synthetic rows, or for the owner's own eyes.

    >>> from cloister.learn.frame.examples import Threshold
    >>> curve = price_of_privacy(Threshold(bounds=(0, 1)), [[0.2], [0.8]] * 100, [0, 1] * 100, epsilons=[1, 10], runs=3)
    >>> curve.plain.mean, [float(point.epsilon) for point in curve.points]
    (1.0, [1.0, 10.0])
    """
    given = [epsilons] if isinstance(epsilons, str) or not isinstance(epsilons, Iterable) else epsilons
    wanted = sorted({exact_positive(epsilon, "epsilon") for epsilon in given})
    if not wanted or isinstance(runs, bool) or not isinstance(runs, int) or not 1 <= runs <= 10_000:
        raise InvalidParameter(
            f"runs={runs!r} with {len(wanted)} values of ε is invalid",
            why="a curve has at least one ε, and between 1 and 10000 runs of each",
            instead='epsilons=["0.1", 1, 10], runs=10',
        )
    of_groups = captures(model) and measure in (None, "captured")
    chosen: Measured = "captured" if of_groups else measure_of(model, cast("Measure | None", measure))
    if chosen in ("confusion", "reliability"):
        raise InvalidParameter(f"measure={chosen!r} is invalid", why="a curve is of one number", instead='measure="accuracy"')
    X = X if chosen == "captured" else paired(X, y)
    found: dict[Fraction | None, list[float]] = {epsilon: [] for epsilon in [*wanted, None]}
    for run in range(runs):
        if progress is not None:
            progress(f"run {run + 1} of {runs}")
        parts = split(X, y, test=test, random=random)
        each = [_one(model, epsilon, chosen, parts, random) for epsilon in found]
        if not any(map(math.isnan, each)):  # else there are no rows to judge by, or none that differ: the run says nothing
            found = {epsilon: [*found[epsilon], value] for epsilon, value in zip(found, each, strict=True)}
    if not found[None]:
        raise InvalidParameter("The rows are invalid", why="none to judge by, or all of one target", instead="more rows")
    delta = getattr(model, "delta", None)
    return Curve(
        model=name_of(model),
        measure=chosen,
        rows=rows,
        delta=None if delta in (None, 0) else exact_positive(delta, "delta"),
        plain=Point(epsilon=None, values=tuple(found[None])),
        points=tuple(Point(epsilon=epsilon, values=tuple(found[epsilon])) for epsilon in wanted),
    )


def _one(
    model: PrivateModel, epsilon: Fraction | None, measure: Measured, parts: tuple[Any, ...], random: Random | None
) -> float:
    twin: PrivateModel = clone(model).set_params(**({"privacy": None} if epsilon is None else {"epsilon": epsilon}))
    twin.random = random
    if measure == "captured":
        return captured(twin.fit(parts[0]), parts[1]) if len(parts[1]) > 1 else math.nan
    X, X_test, y, y_test = parts
    if not len(y) or (is_classifier(twin) and twin.get_params().get("classes") is None and len(set(np.asarray(y).tolist())) < 2):
        return math.nan  # nothing to learn of
    twin.fit(X, y)
    judge = judge_of(twin, measure)
    features, truth = rows_for(twin, X_test, y_test, judge)
    found = judge.answer(judge.released(twin, features, truth, None, None), None, None, marked=False)
    return float(found.value) if len(truth) else math.nan
