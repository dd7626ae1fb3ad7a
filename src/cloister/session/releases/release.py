"""What leaves the door: a table, the error of each cell, what it cost and where it came from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, UnknownColumn
from cloister.printable import places_of, rounded_up
from cloister.privacy import Guarantee
from cloister.session.questions.spend import Spending
from cloister.session.questions.threshold import Threshold
from cloister.session.releases.formulas import Chosen, Formula, Reading, cut
from cloister.session.releases.frames import Frame, Series, Values, null_word, text_table
from cloister.session.releases.uncertainty import check_confidence
from cloister.tables.engines.guard import tried

if TYPE_CHECKING:
    import altair as alt

    from cloister.session.planning.bias import Bias
    from cloister.session.releases.chart import Shape

_MARK = "~"
_ANYTHING = (-math.inf, math.inf)
_NEAR = 1e-9
"""Of a range: by how much the arithmetic of an interval may miss its end."""
_MOST_PICTURED = 60


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a release came from: public facts, enough to repeat the question and to find its charge.

    >>> from cloister.session.examples import small_release
    >>> origin: Provenance = small_release().provenance
    >>> origin.table, origin.mechanism, origin.marked
    ('people', ('rows: DiscreteLaplace of scale 2',), False)
    """

    digest: str
    table: str
    population: str
    version: str
    who: str
    when: float
    charges: tuple[int | str, ...]
    mechanism: tuple[str, ...]
    neighbours: str
    marked: bool = False
    repeated: bool = False


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Release:
    """A released table. It looks like a table, and knows its own error.

    >>> from cloister.session.examples import small_release
    >>> answer = small_release()
    >>> answer.column_names, answer.num_rows, str(answer.cost)
    (['sex', 'count'], 2, 'ε = 0.5')
    >>> answer.margin(confidence=0.95)["count"].tolist()
    [6.0, 6.0]
    """

    groups: Mapping[str, Series]
    """The key columns."""
    formulas: tuple[Formula, ...]
    readings: Mapping[str, Reading]
    cost: Guarantee
    spent_by: Mapping[str, Guarantee]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    threshold: Threshold | None = None
    """What the noisy counts of undeclared groups had to reach."""
    cells: int = 1
    """How many groups there were before any were chosen: simultaneous margins speak of all of them."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Output column → key or formula, in the order of the answer; empty: all keys, then all statistics."""
    buy_bias: Callable[[Spending], Bias] | None = None
    """How to ask the door that this came from what its caps and clamps touched."""

    @property
    def marked(self) -> bool:
        """True where the noise came from a test's generator: such a release protects nobody and enters no durable ledger."""
        return self.provenance.marked

    @property
    def table(self) -> Frame:
        """The values, without their errors."""
        return Frame({out: self._series(source) for out, source in self._names.items()})

    def margin(self, confidence: float = 0.95, *, joint: bool = False) -> Frame:
        """The half-width of the interval around each cell: value ± margin covers what would have been answered without noise.

        It speaks of the noise alone: rows beyond a person's cap and values clamped to their bounds are lost before the noise is
        added. With `joint`, all intervals hold at once with the given confidence: each may fail with its part of 1 − confidence,
        and the probability that any fails is at most the sum (Boole). Nothing is assumed of how the cells depend on each other,
        and they do: tables of a workload are made of the same noises. (Independent rows would allow (1 − α)^(1/n) in place of 1 −
        α/n, and so would Gaussian or Laplace noise that rows share, by Šidák 1967 and by the association of scales, Esary,
        Proschan & Walkup 1967; for noise on integers the latter is not proved. At 95 % it makes less than 1 % of a margin.)
        """
        check_confidence(confidence)
        each = confidence
        if joint:
            columns = max(len(self.statistics()), 1)
            each = 1 - (1 - confidence) / (columns * max(self.cells, 1))
        return Frame({out: self._margin(source, each) for out, source in self._names.items()})

    def drowned(self, confidence: float = 0.95) -> Frame:
        """For each cell whether the value is not to be read as it stands: its margin is at least as large as the value itself;
        or it is none that can be, such as a count below zero; or its interval holds every value that can be, as that of a mean
        does where the group may be empty. Key columns are as they are.
        """
        values, margins, measured = self.table, self.margin(confidence), set(self.statistics())
        return Frame(
            {
                name: Series("boolean", _drowned(series, margins[name], self.bounds(name))) if name in measured else series
                for name, series in values.columns.items()
            }
        )

    def bias(self, spend: Spending) -> Bias:
        """Noisy counts of what caps and clamps touched before the noise was added: margins don't speak of it, and it costs its
        own spend."""
        if self.buy_bias is None:
            raise InvalidParameter(
                "The bias is invalid",
                why="this release is no longer tied to a session",
                instead="session.measure(…).bias(spend=…)",
            )
        return self.buy_bias(spend)

    def select(self, names: Mapping[str, str]) -> Release:
        """The same release with other columns, in another order: output name → name here."""
        current = self._names
        for source in names.values():
            if source not in current:
                raise UnknownColumn(
                    f"The column {source!r} was not found",
                    why=f"the answer has {', '.join(current)}",
                    instead=f'["{next(iter(current))}"]',
                )
        return replace(self, names={out: current[source] for out, source in names.items()})

    def take(self, rows: Sequence[int] | npt.NDArray[Any]) -> Release:
        """Some of the rows, in the order given: post-processing."""
        given = tried(lambda: np.asarray(rows), Exception)
        whole = given is not None and given.ndim == 1 and (given.dtype.kind in "iu" or not len(given))
        if given is None or not whole or not ((given >= -self.num_rows) & (given < self.num_rows)).all():
            why = f"rows are whole numbers below {self.num_rows}, which is how many there are"
            raise InvalidParameter("The rows are invalid", why=why, instead="answer.take([0])")
        places = given.astype(np.int64)
        return replace(
            self,
            groups={name: Series(series.kind, series.values[places]) for name, series in self.groups.items()},
            readings={name: cut(reading, places) for name, reading in self.readings.items()},
        )

    @property
    def column_names(self) -> list[str]:
        """In the order of the answer."""
        return list(self._names)

    @property
    def num_rows(self) -> int:
        """Fixed by the plan where all keys are declared."""
        return next((len(reading.values) for reading in self.readings.values()), 0)

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str) -> Values:
        return self.select({name: name}).table[name]  # one column, without working out the others

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.table)

    def to_pandas(self) -> Any:
        """A pandas DataFrame of the values."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """A polars DataFrame of the values."""
        return self.table.to_polars()

    def to_arrow(self) -> Any:
        """An Arrow table of the values."""
        return self.table.to_arrow()

    def to_pydict(self) -> dict[str, list[Any]]:
        """A dict of plain lists."""
        return self.table.to_pydict()

    def to_json(self) -> str:
        """The release as canonical JSON, exact: the same release has the same bytes. What ties it to its session stays behind.

        >>> from cloister.session.examples import small_release
        >>> small_release().to_json()[:22]
        '{"format":1,"release":'
        """
        from cloister.session.releases.wire import to_json

        return to_json(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """As its text, which no session is tied to: for other processes, caches and copies."""
        return Release.from_json, (self.to_json(),)

    def __eq__(self, other: object) -> bool:
        """Whether both have the same text: numbers, errors, cost and origin."""
        return isinstance(other, Release) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    @staticmethod
    def from_json(text: str) -> Release:
        """The release that such a text holds: equal tables, margins and words. Anything else is refused, and nothing in it is
        run. A text is not authenticated: its numbers are as true as whoever it came from.

        >>> from cloister.session.examples import small_release
        >>> answer = small_release()
        >>> Release.from_json(answer.to_json()).margin(0.9)["count"].tolist() == answer.margin(0.9)["count"].tolist()
        True
        """
        from cloister.session.releases.wire import from_json

        return from_json(text)

    def plot(self, confidence: float = 0.95, *, shape: Shape | None = None) -> alt.LayerChart | alt.VConcatChart:
        """A chart of each statistic (the first four that are numbers or dates) by the first key: dots with error bars, hollow
        where the value is not to be read as it stands (`drowned`), joined by lines where the key has an order; of two keys of
        many values a heat map. `shape` names one of "dots", "lines" and "heat". A notebook and a saved page draw it with no
        network."""
        from cloister.notebook import offline
        from cloister.session.releases.chart import chart_of

        return offline(chart_of(self, confidence, shape))

    def bounds(self, name: str) -> tuple[float, float]:
        """Between which a statistic must lie: the bounds of its column for a mean, 0 and more for a count, any for a sum."""
        formula = self._measured.get(self._names.get(name, name))
        return (-math.inf, math.inf) if formula is None else formula.bounds

    def statistics(self) -> list[str]:
        """The output columns that are measured, not keys."""
        return [out for out, source in self._names.items() if source in self._measured]

    def __repr__(self) -> str:
        return f"{self.text()}\n{self._footer()}"

    def text(self, *, confidence: float = 0.95, rows: int = 40) -> str:
        """The table as aligned text, each measured cell with its margin."""
        shown = self if rows >= self.num_rows else self.take(range(rows))
        values, margins, measured = shown.table, shown.margin(confidence), set(self.statistics())
        columns = [
            shown._cells_of(name, series, margins[name] if name in measured else None) for name, series in values.columns.items()
        ]
        lines = [list(row) for row in zip(*columns, strict=True)]
        rest = self.num_rows - len(lines)
        return text_table(values.column_names, lines) + (f"\n… and {rest:,} more rows" if rest > 0 else "")

    @property
    def paid(self) -> str:
        """What was charged for it, in words."""
        if not self.provenance.population:
            return "nothing private was read, and nothing was charged"
        before = "answered before, at no further cost; it " if self.provenance.repeated else ""
        return f"{before}cost {self.cost} of {self.provenance.population!r}"

    def _footer(self) -> str:
        lines = [f"{self.paid}; ± holds with 95 % confidence, for the noise alone" if self.provenance.population else self.paid]
        flags = self.drowned().columns
        if any(bool(flags[name].values.any()) for name in self.statistics()):
            lines.append(f"{_MARK} the noise may be larger than the value")
        if self.marked:
            lines.append("MARKED: the noise came from a test's generator and protects nobody")
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        from cloister.printable import escape

        shown = self if self.num_rows <= 40 else self.take(range(40))
        values, margins, measured = shown.table, shown.margin(), set(self.statistics())
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in values.column_names)
        columns = [
            shown._cells_of(name, series, margins[name] if name in measured else None) for name, series in values.columns.items()
        ]
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in zip(*columns, strict=True)
        )
        table = f"<table><caption>{escape(self._footer())}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return table + (self._picture() if self.groups and 1 < self.num_rows <= _MOST_PICTURED else "")

    def _cells_of(self, name: str, series: Series, margins: Values | None) -> list[str]:
        return _cells(series, margins, self.bounds(name) if margins is not None else _ANYTHING)

    def _picture(self) -> str:
        """The chart of a grouped answer as an image, where the library that draws it without a browser is installed."""
        import base64
        from importlib import util

        from cloister.printable import escape
        from cloister.session.releases.chart import drawable
        from cloister.session.releases.drawing import svg

        measured = drawable(self)
        if util.find_spec("vl_convert") is None or not measured:
            return ""
        drawn = base64.b64encode(svg(self.plot().to_dict(validate=False)).encode()).decode()
        alt = escape(f"{', '.join(measured[:4])} in each group, with the error; the table above has the same numbers")
        return f'<img alt="{alt}" src="data:image/svg+xml;base64,{drawn}">'

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return self.names or {name: name for name in [*self.groups, *(formula.name for formula in self.formulas)]}

    @cached_property
    def _measured(self) -> dict[str, Formula]:
        return {formula.name: formula for formula in self.formulas}

    def _series(self, name: str) -> Series:
        formula = self._measured.get(name)
        return self.groups[name] if formula is None else formula.series(self._known)

    def _margin(self, name: str, confidence: float) -> Series:
        formula = self._measured.get(name)
        if formula is None:
            return self.groups[name]
        if (name, confidence) not in self._widths:
            self._widths[name, confidence] = formula.margins(self._known, confidence)
        return Series("real", self._widths[name, confidence].copy())

    @cached_property
    def _widths(self) -> dict[tuple[str, float], Values]:
        """Margins that were worked out: whoever shows a release asks for them several times."""
        return {}

    @cached_property
    def _known(self) -> Mapping[str, Reading]:
        """The readings; of undeclared groups with what their counts had to reach to be shown."""
        units = self.readings.get("units")
        if self.threshold is None or units is None:
            return self.readings
        return {**self.readings, "units": Chosen(units.values, units.terms, self.threshold.least)}


def widest_margin(release: Release, confidence: float) -> float:
    """The widest margin of any cell.

    >>> from cloister.session.examples import small_release
    >>> widest_margin(small_release(), 0.95)
    6.0
    """
    margins = release.margin(confidence)
    return max((float(np.max(np.nan_to_num(margins[name]), initial=0.0)) for name in release.statistics()), default=0.0)


def _drowned(series: Series, margins: Values, bounds: tuple[float, float]) -> npt.NDArray[np.bool_]:
    if series.values.dtype == object:
        return np.array([value is None for value in series.values], dtype=bool)
    told, values = np.asarray(margins, dtype=np.float64), series.values.astype(np.float64)
    least, most = bounds if series.kind in ("integer", "real") else _ANYTHING
    with np.errstate(invalid="ignore"):
        noisy = ~(np.abs(values) > told) & (told > 0)
        outside = (values < least) | (values > most)
        found: npt.NDArray[np.bool_] = noisy | outside | holds_all(values, told, (least, most))
    return found


def holds_all(values: Values, margins: Values, bounds: tuple[float, float]) -> npt.NDArray[np.bool_]:
    """For each value whether its interval holds all that lies between the bounds, so that it says nothing.

    >>> holds_all(np.array([50.0, 50.0]), np.array([40.0, 30.0]), (17, 90)).tolist()
    [True, False]
    """
    least, most = bounds
    if not (math.isfinite(least) and math.isfinite(most) and least < most):
        return np.zeros(len(values), dtype=bool)
    near = _NEAR * (most - least)
    found: npt.NDArray[np.bool_] = (values - margins <= least + near) & (values + margins >= most - near)
    return found


def _cells(series: Series, margins: Values | None, bounds: tuple[float, float]) -> list[str]:
    """A column as text; measured ones with their margins, to as many places as the narrowest of these deserves, and a mark where
    the noise may be larger than the value."""
    values = series.tolist()
    if margins is None:
        null = null_word(values)
        return [null if value is None else str(value) for value in values]
    marks = [f" {_MARK}" if drowned else "" for drowned in _drowned(series, margins, bounds)]
    if series.kind == "date":
        values = [
            value if value is None else _beside(str(value), f"{rounded_up(margin, 0):,.0f} days")
            for value, margin in zip(values, margins, strict=True)
        ]
    if series.kind not in ("integer", "real") or series.values.dtype == object or np.isnan(margins).all():
        return [f"{'NULL' if value is None else value}{mark}" for value, mark in zip(values, marks, strict=True)]
    return [f"{cell}{mark}" for cell, mark in zip(_numbers(series, values, margins), marks, strict=True)]


def _numbers(series: Series, values: list[Any], margins: Values) -> list[str]:
    if series.kind == "integer":
        return [_beside(f"{value:,}", f"{rounded_up(margin, 0):,.0f}") for value, margin in zip(values, margins, strict=True)]
    narrowest = min((float(margin) for margin in margins if 0 < margin < math.inf), default=1.0)
    at, cells = max(0, places_of(narrowest, 2)), zip(values, margins, strict=True)
    if at > 12 or max(map(abs, values)) > 1e15:
        return [_beside(f"{value:.6g}", f"{rounded_up(margin, places_of(margin, 2)):.2g}") for value, margin in cells]
    return [_beside(f"{value:,.{at}f}", f"{rounded_up(margin, at):,.{at}f}") for value, margin in cells]


def _beside(value: str, margin: str) -> str:
    """A value with its margin; nothing beside it where that is not known."""
    return value if margin.startswith("nan") else f"{value} ± {margin}"
