"""The report of a synthetic model: what was measured, how far off to expect the rows, what it cost. All of it may be published.

Everything follows from the model alone: no row is read, and nothing more is spent. How far the model's tables lie from those of
the people is not known, since it was not measured. What is given instead is the mean total variation between the model's tables
and those of fits to redrawn noise (`typical.py`), with a range from trials on other tables:

- tables of as many columns as were measured: the truth lay between 0.8 and 1.4 times that value, where the number of rows is at
  least `LEAST_SIGNAL` noises of a cell, and up to 1.7 times where it is not;
- with one column more, where all pairs were measured: between 0.9 and 1.8 times;
- anything else: not known.

Total variation is the share of rows that would have to move. A table of so many rows drawn again from the same people would be
off by √(2p(1 − p)/πn)/2 a cell, in the mean: what no report can be better than, and what a margin of the noise alone leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb, pi
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.anonymize.paper import bars, document, facts, section, table
from cloister.errors import InvalidParameter
from cloister.printable import escape, json_of
from cloister.privacy import Guarantee, Inference
from cloister.privacy.plain import guarantee_to_plain
from cloister.session import text_table
from cloister.session.workloads.marginals import Marginal, cells
from cloister.synth.measuring import Marginals
from cloister.synth.mixture import Floats, Mixture
from cloister.synth.released import Functional, width
from cloister.synth.states import States
from cloister.synth.typical import LEAST_SIGNAL, refits
from cloister.synth.workload import MOST_CELLS

if TYPE_CHECKING:
    from cloister.synth.model import SyntheticModel

ORDERS = {1: "single columns", 2: "pairs of columns", 3: "triples of columns"}
MOST_TABLES = 200
"""Of one order: more are thinned out evenly."""
_SURE, _FAINT, _NEXT = (0.8, 1.4), (0.8, 1.7), (0.9, 1.8)
_HEIGHT, _WIDTH = 90, 600
LIMITS = (
    "The rows are made up, but they are personal data up to the guarantee: the guarantee limits what they reveal, not the fact "
    "that nobody has these rows.",
    "What is true of everyone can be learnt from the table, and says something of each person, in the data or not.",
    "A margin computed from the number of synthetic rows is too small: it leaves out the noise. Ask the model (model.answer).",
    "Dependence among more columns than were measured together, and shapes inside a bin, are not kept on purpose.",
)
"""What every report says of itself."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The tables of so many columns that were measured."""

    order: int
    tables: int
    of: int
    """How many there are of so many columns."""
    cells: int
    margin: tuple[float, float]
    """Of a cell, at 95 %: the least and the largest, in rows. It covers the noise alone."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """How far off the model's tables of so many columns are expected to be: their mean total variation. None: not known."""

    order: int
    tables: int
    value: float | None
    low: float | None
    high: float | None
    again: float
    """What a table of so many rows, drawn again from the same people, would be off by."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One column: the rows that the model expects in each state, and what was measured of them."""

    name: str
    labels: tuple[str | None, ...]
    """None: missing."""
    model: tuple[float, ...]
    counts: tuple[float, ...]
    """Empty in a model of an old file, which has no measured counts; likewise the margin."""
    margin: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """What `SyntheticModel.report` gives: text, plain data, a page.

    >>> from cloister.session.examples import small_door
    >>> from cloister.synth import fit
    >>> with small_door() as door:
    ...     report = fit(door, "people", spend=1).report()
    >>> [each.order for each in report.expected], report.to_dict()["cost"], "<script" in report.to_html()
    ([1, 2], {'kind': 'pure', 'epsilon': '1'}, False)
    """

    table: str
    method: str
    why: str
    columns: tuple[str, ...]
    rows: float
    rows_margin: float
    measured: tuple[Measured, ...]
    expected: tuple[Expected, ...]
    pictures: tuple[Picture, ...]
    cost: Guarantee
    population: str
    present: float
    """How often the best guess can be right whether one person is in the table, from one half without it."""
    value: float
    """How often the best guess between two values of a person can be right."""
    marked: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and lists."""
        plain: dict[str, Any] = {
            "kind": "report of a synthetic table",
            **{name: getattr(self, name) for name in ("table", "method", "why", "rows", "rows_margin", "population", "marked")},
            "columns": list(self.columns),
            "cost": guarantee_to_plain(self.cost),
            "best_guess": {"presence": self.present, "value": self.value},
            "limits": list(LIMITS),
        }
        for name in ("measured", "expected", "pictures"):
            plain[name] = [_plain(each) for each in getattr(self, name)]
        return plain

    def __repr__(self) -> str:
        heads, lines = self._expected()
        parts = [
            f"synthetic table of {self.table!r}, method {self.method!r}" + (f": {self.why}" if self.why else ""),
            f"cost: {self.cost} of population {self.population!r}; rows and answers from the model cost nothing more",
            self._guarantee(),
            f"rows: {self.rows:,.0f} ± {self.rows_margin:,.0f} at 95 % confidence; columns: {len(self.columns)}",
            "",
            "what was measured; the margin of error at 95 % confidence, in rows, covers the noise alone",
            text_table(*self._measured()),
            "",
            "expected error: mean total variation, the share of rows that would have to move",
            text_table(heads, lines),
            "",
            *LIMITS,
        ]
        if self.marked:
            parts.insert(0, _MARKED)
        return "\n".join(parts)

    def to_html(self, *, title: str = "") -> str:
        """One page with nothing to fetch and no script, for reading and printing."""
        title = title or f"Synthetic table of {self.table}"
        parts = [f"<p class='said warned'>{escape(_MARKED)}</p>"] if self.marked else []
        known = [("data set", self.table), ("columns", ", ".join(self.columns)), ("method", self.method), ("why", self.why)]
        known += [("rows", f"{self.rows:,.0f}, margin of error {self.rows_margin:,.0f} at 95 % confidence")]
        known += [("cost", f"{self.cost}, of population {self.population}")]
        parts += [
            f"<p class='said'>{escape(self._guarantee())}</p>",
            section("The table", facts([each for each in known if each[1]])),
            section(
                "What was measured", table(*self._measured(), numbers=(1, 2, 3), caption="Margins at 95 % confidence, in rows.")
            ),
            section(
                "Expected error",
                "<p>Mean total variation: the share of rows that would have to move. The range is from trials on other "
                "tables.</p>",
                table(*self._expected(), numbers=(1, 2, 3)),
                _ranges(self.expected),
            ),
            section(
                "Each column",
                "<p class='soft'>Bars: rows that the model expects. Error bars: the noisy count that was measured, with its "
                "margin of error at 95 % confidence, which covers the noise alone.</p>",
                *(_drawn(each) for each in self.pictures),
            ),
            section("Limits", "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in LIMITS) + "</ul>"),
        ]
        return document(title, *parts)

    _repr_html_ = to_html

    def save(self, path: str | Path) -> None:
        """Write it, by the ending: .html, .json or .txt."""
        save(self, path)

    def _guarantee(self) -> str:
        return (
            f"{self.cost}: the best guess whether one person is in the data is right with a probability of at most "
            f"{_up(self.present)} (50 % without the table); the best guess between two values of a person, of at most "
            f"{_up(self.value)}."
        )

    def _measured(self) -> tuple[list[str], list[list[str]]]:
        lines = []
        for each in self.measured:
            low, high = (_rows(margin) for margin in each.margin)
            margin = f"± {low}" if low == high else f"± {low} to {high}"
            lines.append(
                [ORDERS.get(each.order, f"{each.order} columns"), f"{each.tables} of {each.of}", f"{each.cells:,}", margin]
            )
        return ["tables of", "measured", "cells", "margin of a cell"], lines

    def _expected(self) -> tuple[list[str], list[list[str]]]:
        lines = []
        for each in self.expected:
            known = each.value is not None and each.low is not None and each.high is not None
            value = f"{each.value:.2g}" if known else "not known"
            span = f"{each.low:.2g} to {min(each.high or 0.0, 1.0):.2g}" if known else ""
            lines.append([ORDERS[each.order], value, span, f"{each.again:.2g}" if each.tables else ""])
        return ["tables of", "expected", "range", "the people drawn again"], lines


_MARKED = "MARKED: the noise came from a test's generator and protects nobody."


def report_of(model: SyntheticModel, progress: Callable[[str], None] = lambda _: None) -> Report:
    """The report of a model, from the model alone."""
    found, sizes = model.measured, tuple(each.number for each in model.columns)
    others = [] if found is None else [mixture for _, mixture in refits(found, model.mixture, progress)]
    guesses = [Inference.of(model.cost, about=about).right for about in ("presence", "value")]
    return Report(
        table=model.table,
        method=model.method,
        why=model.why,
        columns=tuple(each.words() for each in model.columns),
        rows=model.rows,
        rows_margin=1.96 * model.rows_error,
        measured=() if found is None else _of_orders(found),
        expected=tuple(_expected(model, others, sizes, order) for order in ORDERS if order <= len(sizes)),
        pictures=pictures_of(model),
        cost=model.cost,
        population=model.population,
        present=float(guesses[0]),
        value=float(guesses[1]),
        marked=model.marked,
    )


def tables_of(sizes: Sequence[int], order: int) -> list[Marginal]:
    """The tables of so many columns that are looked at: of up to 10⁴ cells, and at most 200 of them, evenly spread.

    >>> tables_of((2, 3, 9999), 2), len(tables_of([2] * 30, 3))
    ([(0, 1)], 200)
    """
    every = [each for each in combinations(range(len(sizes)), order) if cells(sizes, each) <= MOST_CELLS]
    return [every[place] for place in np.unique(np.linspace(0, len(every) - 1, MOST_TABLES).astype(int))] if every else []


def labels_of(states: States) -> tuple[str | None, ...]:
    """Each state in words; None for missing.

    >>> from cloister.tables import Integer, Strided
    >>> labels_of(States("age", Integer(0, 14, nullable=True), Strided("age", 10)))
    ('0–9', '10–14', None)
    """
    ends = [(int(low), int(high) - 1) for low, high in zip(states.starts[:-1], states.starts[1:], strict=True)]
    ends = [(low, min(high, states.domain.high_code)) for low, high in ends]
    words = [str(states.domain.decode(low)) + (f"–{states.domain.decode(high)}" if high > low else "") for low, high in ends]
    return (*words, *([None] if states.domain.nullable else []))


def save(report: Any, path: str | Path) -> None:
    """Write what has `to_html`, `to_dict` and a text, by the ending of the file."""
    path = Path(path)
    forms: dict[str, Callable[[], str]] = {
        ".html": report.to_html,
        ".json": lambda: json_of(report.to_dict(), indent=1, allow_nan=False) + "\n",
        ".txt": lambda: f"{report}\n",
    }
    if path.suffix not in forms:
        raise InvalidParameter(
            f"The file {path.name!r} is invalid", why="its ending names no format", instead=f'"{path.stem}.html"'
        )
    path.write_text(forms[path.suffix](), encoding="utf-8")


def _of_orders(found: Marginals) -> tuple[Measured, ...]:
    lines = []
    for order in sorted({len(kept) for kept in found.tables}):
        tables = {kept: each for kept, each in found.tables.items() if len(kept) == order}
        margins = [_margin(found, kept) for kept in tables]
        lines.append(
            Measured(
                order=order,
                tables=len(tables),
                of=comb(len(found.sizes), order),
                cells=sum(each.counts.size for each in tables.values()),
                margin=(min(margins), max(margins)),
            )
        )
    return tuple(lines)


def _margin(found: Marginals, kept: Marginal) -> float:
    """Of one cell of a table by itself, at 95 %; its noise is a whole number, so what is between two of them says nothing. Of one
    that was chosen at the level that `released.read` gives it."""
    turns = sorted({each.round for other, each in found.readings if set(kept) <= set(other)})
    one, widths = np.ones(1), []
    for each in (each for other, each in found.readings if other == kept):
        level = 0.5 ** (1 + turns.index(each.round)) if found.rounds else 1.0
        step = one * (0.5 if each.variance else 0.0)
        whole = Functional(one, one * each.variance, one * each.fourth, one * each.largest, step, level)
        widths.append(float(np.floor(width(whole, 0.95)[0])))
    return min(widths)


def _complete(model: SyntheticModel, sizes: Sequence[int]) -> int:
    """The largest order all of whose tables (of up to 10⁴ cells) were measured."""
    found = model.measured
    order = 0
    while found is not None and order < len(sizes):
        every = [each for each in combinations(range(len(sizes)), order + 1) if cells(sizes, each) <= MOST_CELLS]
        if not every or not all(any(set(each) <= set(kept) for kept in found.tables) for each in every):
            break
        order += 1
    return order


def _expected(model: SyntheticModel, others: Sequence[Mixture], sizes: tuple[int, ...], order: int) -> Expected:
    chosen, rows = tables_of(sizes, order), max(model.rows, 1.0)
    complete = _complete(model, sizes)
    told = bool(chosen) and model.method != "histogram" and (order <= complete or order == complete + 1 == 3)
    apart: list[float] = []
    again: list[float] = []
    for kept in chosen:
        own = model.mixture.marginal(kept)
        again.append(float(np.sqrt(2 * own * np.maximum(1 - own, 0) / (pi * rows)).sum() / 2))
        if told:
            apart.append(float(np.mean([np.abs(other.marginal(kept) - own).sum() / 2 for other in others])))
    mean = float(np.mean(apart)) if apart else None
    faint = model.measured is not None and model.measured.signal() < LEAST_SIGNAL
    low, high = _NEXT if order > complete else _FAINT if faint else _SURE
    if faint and order > complete:
        mean = None
    return Expected(
        order=order,
        tables=len(chosen),
        value=mean,
        low=None if mean is None else low * mean,
        high=None if mean is None else min(high * mean, 1.0),
        again=float(np.mean(again)) if again else 0.0,
    )


def pictures_of(model: SyntheticModel) -> tuple[Picture, ...]:
    """Each column of a model."""
    return tuple(_picture(model, place) for place in range(len(model.columns)))


def _picture(model: SyntheticModel, place: int) -> Picture:
    known = None if model.measured is None else model.measured.tables[(place,)]
    own: Floats = model.mixture.marginal((place,)) * max(model.rows, 0.0)
    return Picture(
        name=model.columns[place].name,
        labels=labels_of(model.columns[place]),
        model=tuple(own.tolist()),
        counts=() if known is None else tuple(known.counts.tolist()),
        margin=0.0 if model.measured is None else _margin(model.measured, (place,)),
    )


def _plain(line: Any) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(line).items()}


def _up(probability: float) -> str:
    """In per cent, rounded up."""
    return f"{min(ceil(1000 * probability) / 10, 100.0):g} %"


def _rows(margin: float) -> str:
    """Rounded up, to two digits."""
    step = 10 ** max(len(str(ceil(margin))) - 2, 0)
    return f"{ceil(margin / step) * step:,}"


def _ranges(expected: Sequence[Expected]) -> str:
    """What is expected of each order, beside the people drawn again, as bars on one scale."""
    top = max([each.value or 0.0 for each in expected] + [each.again for each in expected], default=0.0) or 1.0
    lines: list[tuple[str, float, str]] = []
    for each in expected:
        words = "not known" if each.value is None else f"{each.value:.2g}"
        lines.append((ORDERS[each.order], (each.value or 0.0) / top, words))
        lines.append(("the people drawn again", each.again / top, f"{each.again:.2g}"))
    return bars("Expected error of each order, beside that of the people drawn again", lines, marked=range(1, len(lines), 2))


def _drawn(picture: Picture) -> str:
    """Bars with error bars, and the numbers under them."""
    counts = picture.counts or picture.model
    top = max(1.0, *(max(a, b + picture.margin) for a, b in zip(picture.model, counts, strict=True)))
    step = _WIDTH / len(picture.model)

    def height(value: float) -> float:
        return _HEIGHT * (1 - max(value, 0.0) / top)

    parts = []
    for place, (own, count) in enumerate(zip(picture.model, counts, strict=True)):
        x, y = place * step, height(own)
        parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(step * 0.8, 0.5):.1f}" height="{_HEIGHT - y:.1f}" fill="var(--first)"/>'
        )
        if picture.counts:
            low, high, middle = height(count - picture.margin), height(count + picture.margin), x + 0.4 * step
            parts.append(f'<path d="M{middle:.1f} {high:.1f}V{low:.1f}" stroke="var(--ink)" stroke-width="1.5"/>')
    name = escape(picture.name)
    lines = [
        ["missing" if label is None else label, f"{own:,.0f}", f"{count:,.0f}" if picture.counts else ""]
        for label, own, count in zip(picture.labels, picture.model, counts, strict=True)
    ]
    shown = table(
        ["value", "model", "measured"], lines, numbers=(1, 2), caption=f"{picture.name}, margin ± {_rows(picture.margin)}"
    )
    return (
        f"<h3>{name}</h3>"
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + 1}" role="img"><title>{name}: rows by value, '
        f'with error bars; the numbers follow</title>{"".join(parts)}<path d="M0 {_HEIGHT}h{_WIDTH}" stroke="var(--soft)"/></svg>'
        f"<details><summary>Numbers</summary>{shown}</details>"
    )
