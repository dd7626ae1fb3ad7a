"""What a model says, for its page: its numbers with margins of error, its columns with their bounds, and what each column does.

All of it follows from the released model and from declarations: no row is read and nothing is spent. A number whose margin the
method does not know says so. What a column does is tried on made-up rows, which are even over the declared values: that column
alone is drawn again, with all of its zeros and ones where it is a category, and what the model then says otherwise is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.hub.web.languages import N_
from cloister.hub.web.pictures import INK, MAIN, svg_of
from cloister.noise import Random
from cloister.tables import Category, Domain
from cloister.tables.declaring.plain import domain_of

if TYPE_CHECKING:
    from cloister.hub.records.releases import StoredRelease
    from cloister.learn.frame.encoding import Encoder

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
