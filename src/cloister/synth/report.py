"""The report of a synthetic model: what was measured, how far off to expect the rows, what it cost. All of it may be published.

Everything follows from the model alone: no row is read, and nothing more is spent. How far the model's tables lie from those of
the people is not known, since it was not measured. What is given instead is the mean total variation between the model's tables
and those of fits to redrawn noise (`mixture.refits`), with a range from trials on other tables:

- tables of as many columns as were measured: the truth lay between 0.7 and 1.4 times that value, where the number of rows is at
  least `LEAST_SIGNAL` noises of a cell, and up to 1.7 times where it is not;
- anything else: not known. What columns do together beyond what was measured together is the model's assumption; redrawn noise
  says nothing of it.

Total variation is the share of rows that would have to move. A table of so many rows drawn again from the same people would be
off by √(2p(1 − p)/πn)/2 a cell, in the mean: what no report can be better than, and what a margin of the noise alone leaves out.

Rules move rows away from what was fitted: columns that follow from others, and rows that are mended or thrown away. How far each
column that a rule reads was moved is told by rows from a fixed seed, and so is each difference that was fitted. Expected errors
count it: by the triangle inequality a column is off by no more than both together, and a table of several columns by no less than
what the one that moved most is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil, comb, pi
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cloister.anonymize.document import Document, Part, drawn, facts, listed, said, section, table
from cloister.anonymize.paper import bars
from cloister.noise import Random
from cloister.printable import escape, margin_text
from cloister.privacy import Guarantee, Inference
from cloister.privacy.plain import guarantee_to_plain
from cloister.session.workloads.marginals import Marginal, cells
from cloister.synth.drawing import drawn_under
from cloister.synth.measuring import Marginals
from cloister.synth.mixture import Mixture, refits
from cloister.synth.released import best, margin_of
from cloister.synth.rules import LEAST_ACCEPTED
from cloister.synth.states import States
from cloister.synth.workload import MOST_CELLS

if TYPE_CHECKING:
    from cloister.synth.model import SyntheticModel

ORDERS = {1: "single columns", 2: "pairs of columns", 3: "triples of columns"}
MOST_TABLES = 200
"""Of one order: more are thinned out evenly."""
_SURE, _FAINT = (0.7, 1.4), (0.7, 1.7)
LEAST_SIGNAL = 20
_HEIGHT, _WIDTH = 90, 600
_DRAWN, _SEED = 20_000, b"rows that show how far rules move columns"
LIMITS = (
    "The rows are made up, but they are personal data up to the guarantee: the guarantee limits what they reveal, not the fact "
    "that nobody has these rows.",
    "What is true of everyone can be learnt from the table, and says something of each person, in the data or not.",
    "A margin computed from the number of synthetic rows is too small: it leaves out the noise. Ask the model (model.answer).",
    "Dependence among more columns than were measured together, and shapes inside a bin, are not kept on purpose.",
)
"""What every report says of itself."""
_UNFITTED = "The differences of columns that these rules compare were not fitted, and may be far from the table's:"
_MARKED = "MARKED: the noise came from a test's generator and protects nobody."


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

    def line(self) -> list[str]:
        """Of a table."""
        low, high = (_rows(margin) for margin in self.margin)
        margin = f"± {low}" if low == high else f"± {low} to {high}"
        return [ORDERS.get(self.order, f"{self.order} columns"), f"{self.tables} of {self.of}", f"{self.cells:,}", margin]


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

    def line(self) -> list[str]:
        """Of a table."""
        told = ["not known", ""]
        if self.value is not None and self.low is not None and self.high is not None:
            told = [f"{self.value:.2g}", f"{self.low:.2g} to {self.high:.2g}"]
        return [ORDERS[self.order], *told, f"{self.again:.2g}" if self.tables else ""]


class Bar(NamedTuple):
    """One state in a picture: its bar, and the ends of its error bar, from the top."""

    x: float
    width: float
    middle: float
    top: float
    high: float
    low: float


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

    def bars(self, width: float, height: float) -> list[Bar]:
        """Where they stand in a picture of that size: the model's, with error bars about what was measured."""
        counts = self.counts or self.model
        top = max(1.0, *(max(own, count + self.margin) for own, count in zip(self.model, counts, strict=True)))
        step = width / len(self.model)

        def at(value: float) -> float:
            return height * (1 - max(value, 0.0) / top)

        return [
            Bar(
                x=place * step,
                width=max(step * 0.8, 0.5),
                middle=(place + 0.4) * step,
                top=at(own),
                high=at(count + self.margin),
                low=at(count - self.margin),
            )
            for place, (own, count) in enumerate(zip(self.model, counts, strict=True))
        ]


@dataclass(frozen=True, kw_only=True, repr=False)
class Report(Document):
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
    rules: tuple[str, ...] = ()
    acceptance: float = 1.0
    """Which share of what is drawn can be made to obey the rules, and is kept."""
    moved: dict[str, float | None] = field(default_factory=dict)
    """By column that a rule reads, and by difference that was fitted for one: the total variation between the rows that are drawn
    and what was fitted. None: too few rows obey the rules for any to be drawn."""
    unfitted: tuple[str, ...] = ()
    """The rules of columns in bins of which the fit doesn't know how far apart they are."""
    pictures: tuple[Picture, ...]
    cost: Guarantee
    population: str
    present: float
    """How often the best guess can be right whether one person is in the table, from one half without it."""
    value: float
    """How often the best guess between two values of a person can be right."""
    marked: bool

    @property
    def title(self) -> str:
        """Of the page."""
        return f"Synthetic table of {self.table}"

    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and lists."""
        plain: dict[str, Any] = {
            "kind": "report of a synthetic table",
            **{name: getattr(self, name) for name in ("table", "method", "why", "rows", "rows_margin", "population", "marked")},
            "columns": list(self.columns),
            "rules": {
                "texts": list(self.rules),
                "acceptance": self.acceptance,
                "moved": self.moved,
                "unfitted": list(self.unfitted),
            },
            "cost": guarantee_to_plain(self.cost),
            "best_guess": {"presence": self.present, "value": self.value},
            "limits": list(LIMITS),
        }
        for name in ("measured", "expected", "pictures"):
            told = [vars(each).items() for each in getattr(self, name)]
            plain[name] = [{key: list(value) if isinstance(value, tuple) else value for key, value in each} for each in told]
        return plain

    def parts(self) -> list[Part]:
        """The mark, the guarantee, what was measured, what to expect, each column, and what no report can say."""
        guarantee = (
            f"{self.cost}: the best guess whether one person is in the data is right with a probability of at most "
            f"{_up(self.present)} (50 % without the table); the best guess between two values of a person, of at most "
            f"{_up(self.value)}."
        )
        known = facts(
            ("data set", self.table),
            ("columns", ", ".join(self.columns)),
            ("method", self.method),
            ("why", self.why),
            ("rows", f"{self.rows:z,.0f}, margin of error {margin_text(self.rows_margin)} at 95 % confidence"),
            ("cost", f"{self.cost}, of population {self.population}; rows and answers from the model cost nothing more"),
        )
        words = "Mean total variation: the share of rows that would have to move. The range is from trials on other tables."
        legend = (
            "<p class='soft'>Bars: rows that the model expects. Error bars: the noisy count that was measured, with its margin "
            "of error at 95 % confidence, which covers the noise alone.</p>"
        )
        kept = f"{self.acceptance:.1%} of what is drawn can obey the rules, and is kept."
        unfitted = [said(_UNFITTED, kind="said warned"), listed(self.unfitted)] if self.unfitted else []
        changed = table(
            ["column, or difference of two", "moved"],
            [[name, "not known" if each is None else f"{each:.2g}"] for name, each in self.moved.items()],
            numbers=(1,),
            caption="Total variation between the rows and what was fitted. Expected errors count it.",
        )
        return [
            *([said(_MARKED, kind="said warned")] if self.marked else []),
            said(guarantee, kind="said"),
            section("The table", known),
            section(
                "What was measured",
                table(
                    ["tables of", "measured", "cells", "margin of a cell"],
                    [each.line() for each in self.measured],
                    numbers=(1, 2, 3),
                    caption="Margins at 95 % confidence, in rows: they cover the noise alone.",
                ),
            ),
            section(
                "Expected error",
                said(words),
                table(
                    ["tables of", "expected", "range", "the people drawn again"],
                    [each.line() for each in self.expected],
                    numbers=(1, 2, 3),
                ),
                drawn(_ranges(self.expected)),
            ),
            *([section("Rules", said(kept), listed(self.rules), changed, *unfitted)] if self.rules else []),
            section("Each column", drawn(legend, *(_drawn(each) for each in self.pictures))),
            section("Limits", listed(LIMITS)),
        ]


@dataclass(frozen=True, kw_only=True, repr=False)
class PlainReport(Document):
    """What `GaussianModel.report` and `KAnonymousModel.report` give: text, plain data, a page.

    >>> print(PlainReport(table="people", warned=("NOT PRIVATE",), known=(("k", "5"),), limits=("Rows may be anybody's.",)))
    Synthetic table of people
    <BLANKLINE>
    NOT PRIVATE
    <BLANKLINE>
    the table
    k: 5
    <BLANKLINE>
    limits
    Rows may be anybody's.
    """

    table: str
    warned: tuple[str, ...]
    """What stands above all else."""
    known: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, float], ...] = ()
    margin: float = 0.0
    limits: tuple[str, ...]
    cost: Guarantee | None = None
    """None where nothing is promised."""

    @property
    def title(self) -> str:
        """Of the page."""
        return f"Synthetic table of {self.table}"

    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and lists."""
        return {
            "kind": "report of a synthetic table",
            "table": self.table,
            "private": self.cost is not None,
            "warned": list(self.warned),
            **dict(self.known),
            "groups": [{"group": name, "rows": rows} for name, rows in self.groups],
            "margin": self.margin,
            "cost": None if self.cost is None else guarantee_to_plain(self.cost),
            "limits": list(self.limits),
        }

    def parts(self) -> list[Part]:
        """What warns, what is known, the groups, and what no report can say."""
        lines = [[name, f"{rows:,.0f}"] for name, rows in self.groups]
        told = f"Noisy counts of rows, each within {_rows(self.margin)} of the truth at 95 % confidence."
        groups = section("Groups", table(["group", "rows"], lines, numbers=(1,), caption=told))
        return [
            *(said(each, kind="said warned") for each in self.warned),
            section("The table", facts(*self.known)),
            *([groups] if lines else []),
            section("Limits", listed(self.limits)),
        ]


def report_of(model: SyntheticModel, progress: Callable[[str], None] = lambda _: None) -> Report:
    """The report of a model, from the model alone."""
    found, sizes = model.measured, tuple(each.number for each in model.columns)
    others = refits(found, model.mixture, progress) if found and model.method != "pooled" else []
    moved = _moved(model)
    guesses = [Inference.of(model.cost, about=about).right for about in ("presence", "value")]
    return Report(
        table=model.table,
        method=model.method,
        why="; ".join(filter(None, [model.why, *model.said])),
        columns=tuple(each.words() for each in model.columns),
        rows=model.rows,
        rows_margin=model.rows_margin,
        measured=tuple(_of_order(found, each) for each in sorted({len(kept) for kept in found.tables})) if found else (),
        expected=tuple(_expected(model, others, sizes, order, moved) for order in ORDERS if order <= len(sizes)),
        rules=model.rules,
        unfitted=model.ruled.unfitted,
        acceptance=model.acceptance,
        moved=moved,
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


def _of_order(found: Marginals, order: int) -> Measured:
    tables = {kept: each for kept, each in found.tables.items() if len(kept) == order}
    margins = [margin_of(found, kept) for kept in tables]
    return Measured(
        order=order,
        tables=len(tables),
        of=comb(len(found.sizes), order),
        cells=sum(each.counts.size for each in tables.values()),
        margin=(min(margins), max(margins)),
    )


def _complete(model: SyntheticModel, sizes: Sequence[int]) -> int:
    """The largest order all of whose tables (of up to 10⁴ cells) were measured."""
    known = [] if model.measured is None else [set(kept) for kept in model.measured.tables]
    for order in range(len(sizes)):
        every = [set(each) for each in combinations(range(len(sizes)), order + 1) if cells(sizes, each) <= MOST_CELLS]
        if not every or not all(any(each <= kept for kept in known) for each in every):
            return order
    return len(sizes)


def _moved(model: SyntheticModel) -> dict[str, float | None]:
    """How far rules move each column that they read."""
    ruled, found = model.ruled, dict[str, float | None]()
    few = model.acceptance < LEAST_ACCEPTED
    rows = drawn_under(ruled, model.mixture, {}, 0 if few else _DRAWN, Random.derived(_SEED)) if model.rules else []
    for place, (each, codes) in enumerate(zip(ruled.fitted, rows, strict=False)):
        if ruled.touch([each.name]):
            shares = np.bincount(each.placed(codes), minlength=each.number) / max(len(codes), 1)
            away = float(np.abs(shares - model.mixture.marginal((place,))).sum() / 2)
            found[each.name] = None if few else away
    return found


def _expected(
    model: SyntheticModel, others: Sequence[Mixture], sizes: tuple[int, ...], order: int, moved: dict[str, float | None]
) -> Expected:
    chosen = tables_of(sizes, order)
    faint = model.measured is not None and model.measured.signal() < LEAST_SIGNAL
    own = [model.mixture.marginal(kept) for kept in chosen]
    again = [np.sqrt(2 * each * np.maximum(1 - each, 0) / (pi * max(model.rows, 1.0))).sum() / 2 for each in own]
    mean = low = high = None
    if chosen and others and None not in moved.values() and order <= _complete(model, sizes) and model.method != "histogram":
        told = zip(chosen, own, strict=True)
        mean = float(np.mean([[np.abs(other.marginal(kept) - each).sum() / 2 for other in others] for kept, each in told]))
        least, most = _FAINT if faint else _SURE
        away = [moved.get(each.name, 0.0) or 0.0 for each in model.columns]
        more = float(np.mean([max(away[place] for place in kept) for kept in chosen]))
        low, high, mean = least * mean, min(most * mean + more, 1.0), min(mean + more, 1.0)
    return Expected(
        order=order, tables=len(chosen), value=mean, low=low, high=high, again=float(np.mean(again)) if again else 0.0
    )


def pictures_of(model: SyntheticModel) -> tuple[Picture, ...]:
    """Each column of a model."""
    found = []
    for place, states in enumerate(model.columns):
        own = model.mixture.marginal((place,)) * max(model.rows, 0.0)
        evidence = None if model.measured is None else best(model.measured, (place,))
        known = () if evidence is None else tuple(evidence.counts.tolist())
        margin = 0.0 if model.measured is None else margin_of(model.measured, (place,))
        found.append(Picture(name=states.name, labels=labels_of(states), model=tuple(own.tolist()), counts=known, margin=margin))
    return tuple(found)


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
    parts = []
    for bar in picture.bars(_WIDTH, _HEIGHT):
        parts.append(
            f'<rect x="{bar.x:.1f}" y="{bar.top:.1f}" width="{bar.width:.1f}" height="{_HEIGHT - bar.top:.1f}" '
            'fill="var(--first)"/>'
        )
        if picture.counts:
            parts.append(f'<path d="M{bar.middle:.1f} {bar.high:.1f}V{bar.low:.1f}" stroke="var(--ink)" stroke-width="1.5"/>')
    name = escape(picture.name)
    lines = [
        ["missing" if label is None else label, f"{own:,.0f}", f"{count:,.0f}" if picture.counts else ""]
        for label, own, count in zip(picture.labels, picture.model, counts, strict=True)
    ]
    shown = table(
        ["value", "model", "measured"], lines, numbers=(1, 2), caption=f"{picture.name}, margin ± {_rows(picture.margin)}"
    ).html
    return (
        f"<h3>{name}</h3>"
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT + 1}" role="img"><title>{name}: rows by value, '
        f'with error bars; the numbers follow</title>{"".join(parts)}<path d="M0 {_HEIGHT}h{_WIDTH}" stroke="var(--soft)"/></svg>'
        f"<details><summary>Numbers</summary>{shown}</details>"
    )
