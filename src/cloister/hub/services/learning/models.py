"""Models as a kind of release: what their page shows, what a program reads, their files.

What the page says of a model: its numbers with margins of error, its columns with their bounds, and what each column does. All of
it follows from the released model and from declarations: no row is read and nothing is spent. A number whose margin the method
does not know says so. What a column does is tried on made-up rows, which are even over the declared values: that column alone is
drawn again, with all of its zeros and ones where it is a category, and what the model then says otherwise is counted.

How good it is, on rows that were held out, is measured under the charge that trained it, kept with it, and drawn on its page.
Each row falls by a coin of its own into the part that trains or into the part that judges, so both cost what one costs
(`learn/assessment/judged_tables.py`). A model of classes is judged by tenths of its own certainty, from which its accuracy
follows; one that says a class and no probability, by accuracy alone; one of numbers, by R²."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cloister.errors import CloisterError
from cloister.hub.cache import cached
from cloister.hub.decisions.policy.methods import offered
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import File, FileKind, ReleaseKind, View, json_file
from cloister.hub.releases.shapes import Line
from cloister.hub.services.learning.order import class_of
from cloister.hub.services.learning.predicting import MOST_BYTES
from cloister.hub.web.languages import N_
from cloister.hub.web.pictures import INK, MAIN, SOFT, svg_of
from cloister.noise import Random
from cloister.printable import finite
from cloister.tables import Category, Domain
from cloister.tables.declaring.plain import domain_of

if TYPE_CHECKING:
    from cloister.learn.assessment.scores import Score
    from cloister.learn.frame.base import PrivateModel
    from cloister.learn.frame.encoding import Encoder
    from cloister.session import Measurer


def judged(model: PrivateModel, session: Measurer, table: str, *, test: str, **how: Any) -> tuple[PrivateModel, Score]:
    """A fitted copy of the model, and its score."""
    from cloister.learn import fit_and_score_table

    measure = "reliability" if model.target_kind == "class" and hasattr(model, "predict_proba") else None
    return fit_and_score_table(session, model, table, test=test, measure=measure, **how)  # type: ignore[arg-type]


def as_kept(score: Score, part: str) -> dict[str, Any]:
    """A score as it is kept with a model: small, and JSON. Of tenths, those that have more rows than noise."""
    from cloister.learn.assessment.scores import Reliability

    if not isinstance(score, Reliability):
        return {"measure": score.name, "part": part, "value": finite(score.value), "margin": finite(score.margin()), "bins": []}
    wide = 0.0 if score.noise is None else score.noise.margin(0.95, terms=2)
    bins = [
        {"low": place / 10, "rows": each.part + each.rest, "value": each.value, "margin": finite(each.margin())}
        for place, each in enumerate(score.bins)
        if each.part + each.rest > wide
    ]
    found = score.accuracy
    return {"measure": "accuracy", "part": part, "value": found.value, "margin": finite(found.margin()), "bins": bins}


def reliability(told: Mapping[str, Any], _: Callable[[str], str]) -> str:
    """How often the model is right where it is how sure, as SVG in the reader's words."""
    import altair as alt

    rows = [
        {
            "sure": each["low"] + 0.05,
            "right": each["value"],
            "low": max(each["value"] - wide, 0.0),
            "high": min(each["value"] + wide, 1.0),
        }
        for each in told["bins"]
        for wide in [1.0 if each["margin"] is None else each["margin"]]
    ]
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("sure:Q", scale=scale, title=_("probability that the model states"), axis=alt.Axis(format="%"))
    y = alt.Y("right:Q", scale=scale, title=_("predictions that are right"), axis=alt.Axis(format="%"))
    base = alt.Chart(alt.Data(values=rows)).properties(width=300, height=260)
    ideal = alt.Chart(alt.Data(values=[{"sure": 0, "right": 0}, {"sure": 1, "right": 1}]))
    return svg_of(
        alt.layer(
            ideal.mark_line(color=SOFT, strokeDash=[6, 4]).encode(x=x, y=y),
            base.mark_rule(color=SOFT, strokeWidth=1.5).encode(x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q"),
            base.mark_line(color=MAIN, point=alt.OverlayMarkDef(color=MAIN)).encode(x=x, y=y),
        )
    )


MOST_LINES = 60
"""Rows of a table of numbers that a page shows; the file has them all."""
_TRIED, _SEED = 500, 20_261_124
_CONFIDENCE = 0.95
_FEW = 8
"""Values of a category that its line names."""


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A table of what the model learnt: a line a feature, a cell a number and its half-width; None: its method knows none."""

    title: str
    head: tuple[str, ...]
    lines: tuple[tuple[str, tuple[tuple[float, float | None], ...]], ...]
    more: int
    known: bool
    """Whether every number has a margin."""


@dataclass(frozen=True, kw_only=True)
class Weight:
    """What a column does: the share of made-up rows of which the model says otherwise, or by how much of the target's range."""

    column: str
    share: float


def declared_columns(row: StoredRelease) -> dict[str, Domain]:
    """The columns that a model learnt from, as they were declared."""
    features = row.details["columns"]["features"]
    return {name: domain_of(name, told, table=row.details["table"]) for name, told in features}


def bounds_of(columns: Mapping[str, Domain]) -> list[tuple[str, str]]:
    """Each column with what it may hold: a category in one line, whatever it became for the model.

    >>> from cloister.tables import Integer
    >>> bounds_of({"age": Integer(17, 90), "sex": Category(["F", "M"])})
    [('age', '17 – 90'), ('sex', 'F, M')]
    """
    return [(name, _bounds(domain)) for name, domain in columns.items()]


def numbers_of(model: Any, columns: Mapping[str, Domain]) -> list[Numbers]:
    """Its tables of numbers; none of a method that has no number for a feature."""
    encoder = _encoder(columns)
    names, found = _titles(encoder), list[Numbers]()
    margins = _margins(model)
    coefficients = getattr(model, "coef_", None)
    if coefficients is not None:
        found += _table(N_("Coefficients"), np.atleast_2d(coefficients), margins.get("coef"), names, _heads(model, coefficients))
    if hasattr(model, "theta_"):
        found += _table(N_("Mean in each class"), model.theta_, margins.get("theta"), names, _classes(model))
    if hasattr(model, "cluster_centers_"):
        places = [str(place + 1) for place in range(len(model.cluster_centers_))]
        found += _table(N_("Centre of each group"), model.cluster_centers_, margins.get("all"), names, places)
    if hasattr(model, "components_"):
        places = [str(place + 1) for place in range(len(model.components_))]
        found += _table(N_("Weights in each component"), model.components_, None, names, places)
    return found


def weights_of(model: Any, columns: Mapping[str, Domain]) -> list[Weight]:
    """What each column does, the strongest first; empty for a method that says nothing of a row."""
    if not hasattr(model, "predict"):
        return []
    encoder, random = _encoder(columns), Random.deterministic(_SEED)
    codes = {name: _drawn(domain, random) for name, domain in encoder.columns}
    before = np.asarray(model.predict(encoder.codes(codes)))
    bounds = getattr(model, "bounds_y_", None)
    found = []
    for name, domain in encoder.columns:
        after = np.asarray(model.predict(encoder.codes({**codes, name: _drawn(domain, random)})))
        if bounds is None:
            share = float(np.mean(after != before))
        else:
            share = float(np.mean(np.abs(after - before))) / (float(bounds[1]) - float(bounds[0]))
        found.append(Weight(column=name, share=share))
    return sorted(found, key=lambda each: (-each.share, each.column))


def picture(weights: Sequence[Weight], _: Callable[[str], str]) -> str:
    """What each column does, as SVG in the reader's words."""
    import altair as alt

    rows = [{"column": each.column, "share": each.share} for each in weights[:MOST_LINES]]
    x = alt.X("share:Q", title=_("predictions that change"), axis=alt.Axis(format="%"))
    y = alt.Y("column:N", sort=None, title=None, axis=alt.Axis(labelColor=INK, labelLimit=220))
    chart = alt.Chart(alt.Data(values=rows)).mark_bar(color=MAIN, height={"band": 0.6}).encode(x=x, y=y)
    return svg_of(chart.properties(width=420, height={"step": 24}))


def _encoder(columns: Mapping[str, Domain]) -> Encoder:
    from cloister.learn.frame.encoding import Encoder

    return Encoder.of(columns, list(columns))


def _titles(encoder: Encoder) -> list[str]:
    """What a line is called: a column, or a column and one of its values."""
    names = list[str]()
    for column, domain in encoder.columns:
        names += [f"{column}: {value}" for value in domain.values()] if isinstance(domain, Category) else [column]
    return names


def _table(title: str, values: Any, margins: Any, names: list[str], head: Sequence[str]) -> list[Numbers]:
    """The table of an array with a row for each of `head`; none where it is not about these features."""
    told = np.asarray(values, dtype=np.float64)
    if told.shape != (len(head), len(names)):
        return []
    wide = None if margins is None else np.atleast_2d(np.asarray(margins, dtype=np.float64))
    known = wide is not None and wide.shape == told.shape
    lines = []
    for place, name in enumerate(names[:MOST_LINES]):
        halves = wide[:, place].tolist() if known and wide is not None else [None] * len(head)
        cells = zip(told[:, place].tolist(), halves, strict=True)
        lines.append((name, tuple((value, None if half is None or not math.isfinite(half) else half) for value, half in cells)))
    sure = known and wide is not None and bool(np.isfinite(wide).all())
    return [Numbers(title=title, head=tuple(head), lines=tuple(lines), more=max(len(names) - MOST_LINES, 0), known=sure)]


def _margins(model: Any) -> dict[str, Any]:
    """The half-widths that the method knows, by what they are of."""
    found: dict[str, Any] = {}
    if hasattr(model, "margin") and not hasattr(model, "components_"):
        told = model.margin(_CONFIDENCE)
        found |= dict(told) if isinstance(told, Mapping) else {"all": told}
    if getattr(model, "margins_", None) is not None:
        found["coef"] = model.margins_
    return found


def _heads(model: Any, coefficients: Any) -> list[str]:
    """What the columns of a table of coefficients are called: nothing where there is one, a class where there are several."""
    rows, classes = len(np.atleast_2d(coefficients)), _classes(model)
    return classes if rows == len(classes) else classes[1:] if rows == len(classes) - 1 else [""] * rows


def _classes(model: Any) -> list[str]:
    return [str(each) for each in np.asarray(getattr(model, "classes_", ())).tolist()]


def _drawn(domain: Domain, random: Random) -> Any:
    return domain.low_code + np.asarray(random.below(domain.high_code - domain.low_code + 1, _TRIED)).astype(np.int64)


def _bounds(domain: Domain) -> str:
    values = getattr(domain, "values", None)
    if isinstance(domain, Category) and values is not None:
        told = [str(each) for each in domain.values()]
        return ", ".join(told[:_FEW]) + (f", … ({len(told)})" if len(told) > _FEW else "")
    if hasattr(domain, "low") and hasattr(domain, "high"):
        return f"{_end(domain.low)} – {_end(domain.high)}"
    return domain.kind


def _end(value: Any) -> str:
    return f"{float(value):g}" if isinstance(value, int | float) or hasattr(value, "numerator") else str(value)


CARD = (
    N_("Charges by statistic"),
    N_("Results"),
    N_("Declared bounds"),
    N_("Parameters"),
    N_("data set"),
    N_("date"),
    N_("guarantee"),
    N_("target"),
)
"""Sections and lines of a card: they are written below the hub, and told in the reader's language where they are shown."""


class LearntLine(Line):
    """One model, without what it learnt."""

    method: str
    table: str
    features: list[str]
    target: str
    project: str
    algorithm: str
    cost: dict[str, str]

    @classmethod
    def of(cls, row: StoredRelease, **more: Any) -> Self:
        """As it is kept."""
        columns = row.details["columns"]
        return super().of(row, features=[name for name, _ in columns["features"]], target=columns["target"], **more)


class Learnt(LearntLine):
    """One model: `model` is its portable text, which `cloister.learn.load` reads, and `card` its card."""

    model: str
    card: dict[str, Any]

    @classmethod
    def of(cls, row: StoredRelease, **more: Any) -> Self:
        """With what it learnt."""
        return super().of(row, model=row.body.decode(), card=json.loads(row.details["card"]), **more)


def _shown(view: View) -> dict[str, Any]:
    details, _ = view.row.details, view.language.gettext
    columns = declared_columns(view.row)
    numbers, weights = _inside(view, columns)
    told = details.get("judged")
    return {
        "card": _card(view),
        "bounds": bounds_of(columns),
        "numbers": numbers,
        "weights": weights,
        "weights_picture": picture(weights, _) if weights else "",
        "judged": told,
        "reliability": reliability(told, _) if told and told["bins"] else "",
        "method": offered()[details["method"]],
        "features": [name for name, _ in details["columns"]["features"]],
        "target": details["columns"]["target"],
        "most": MOST_BYTES // 2**20,
    }


def _inside(view: View, columns: Mapping[str, Domain]) -> tuple[list[Numbers], list[Weight]]:
    """What the page says of the model itself: worked out once in a process, nothing where it can't be."""

    def work() -> tuple[list[Numbers], list[Weight]]:
        class_of(view.row.details["method"])
        import cloister.learn

        model = cloister.learn.load(view.row.body.decode())
        try:
            return numbers_of(model, columns), weights_of(model, columns)
        except (CloisterError, TypeError, ValueError, ArithmeticError, LookupError):  # a model of an older version
            return [], []

    return cached(view.hub, "what a model says", view.row.id, work)


def _card(view: View) -> Any:
    class_of(view.row.details["method"])  # refuses where learning is not installed
    from cloister.learn.frame.card import Card

    return Card.from_json(view.row.details["card"])


MODEL = ReleaseKind(
    name="model",
    path="/models",
    trail="model",
    missing=N_("There is no such model"),
    list_template="learning/models.html",
    template="learning/model.html",
    listed=lambda *_: {"titles": {name: method.title for name, method in offered().items()}},
    shown=_shown,
    told=lambda view: Learnt.of(view.row).model_dump_json().encode(),
    files={
        "json": json_file("model"),
        "card": FileKind(
            media_type="text/markdown; charset=utf-8",
            make=lambda view: File(name=f"card-{view.row.id}.md", body=_card(view).markdown().encode()),
        ),
    },
)
