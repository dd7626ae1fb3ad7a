"""A release as a page shows it: cells with margins, to as many places as these deserve; and its policy in words."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from cloister.hub.releases.kinds import TableAnswer
from cloister.hub.web.languages import N_
from cloister.session import Release
from cloister.session.releases.frames import Series, null_word
from cloister.session.releases.release import holds_all

MOST_ROWS = 500
_DOUBTS = ("outside", "anything")
_LAW = re.compile(r"(DiscreteLaplace|DiscreteGaussian) of scale ((?:[0-9][0-9.,e+-]*)?[0-9])")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One value; `margin` is None for a key, and NaN where nothing is known. What a released table answers has an interval
    instead, and says how sure that is."""

    value: Any
    margin: float | None = None
    drowned: bool = False
    doubt: str = ""
    """Why a drowned one is: "outside" what is possible, "anything" is; empty: its noise."""
    low: float = math.nan
    high: float = math.nan
    known: str = ""
    null: str = "NULL"
    """What is written where there is no value."""

    @property
    def kind(self) -> str:
        """number, date, truth, text or nothing: how a page writes it.

        >>> Cell(value=3).kind, Cell(value=True).kind, Cell(value=None).kind
        ('number', 'truth', 'nothing')
        """
        if self.value is None or self.value != self.value:
            return "nothing"
        if isinstance(self.value, bool):
            return "truth"
        return "number" if isinstance(self.value, int | float) else "date" if isinstance(self.value, date) else "text"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: whether it is measured, whether it holds numbers, and with how many digits after the point."""

    name: str
    measured: bool
    number: bool
    digits: int | None


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The first rows of a release."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: int
    drowned: bool
    """Whether any cell is."""
    doubts: Mapping[str, bool]
    """Which reasons some drowned cell has."""


def shown(release: Release, confidence: float, *, joint: bool = False, rows: int = MOST_ROWS) -> Shown:
    """The rows of a release as cells.

    >>> from cloister.session.examples import small_release
    >>> found = shown(small_release(), 0.95)
    >>> [column.name for column in found.columns], found.rows[0][1].margin, found.more
    (['sex', 'count'], 6.0, 0)
    """
    part = release.take(range(min(rows, release.num_rows)))
    values, margins, drowned = part.table.columns, part.margin(confidence, joint=joint).columns, part.drowned(confidence).columns
    measured = set(release.statistics())
    columns = []
    cells: list[list[Cell]] = []
    for name, series in values.items():
        if name not in measured:
            columns.append(_column(name, series, None))
            null = null_word(series.tolist())
            cells.append([Cell(value=value, null=null) for value in series.tolist()])
            continue
        widths = [float(each) for each in margins[name].tolist()]
        columns.append(_column(name, series, widths))
        flags = [bool(each) for each in drowned[name].tolist()]
        told = zip(series.tolist(), widths, flags, strict=True)
        bounds = part.bounds(name)
        cells.append(
            [Cell(value=value, margin=width, drowned=flag, doubt=_doubt(value, width, bounds)) for value, width, flag in told]
        )
    lines = tuple(zip(*cells, strict=True))
    return Shown(
        doubts={each: any(cell.doubt == each for line in lines for cell in line) for each in _DOUBTS},
        columns=tuple(columns),
        rows=lines,
        more=release.num_rows - len(lines),
        drowned=any(cell.drowned for line in lines for cell in line),
    )


def _doubt(value: Any, margin: float, bounds: tuple[float, float]) -> str:
    """What makes a number doubtful besides its noise.

    >>> _doubt(-15, 10, (0, math.inf)), _doubt(50.0, 40.0, (17, 90)), _doubt(50.0, 4.0, (17, 90))
    ('outside', 'anything', '')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if value < bounds[0] or value > bounds[1]:
        return "outside"
    return "anything" if holds_all(np.array([float(value)]), np.array([margin]), bounds)[0] else ""


KNOWN = {
    "measured": N_("A sum of counts that were measured. The interval holds with the confidence."),
    "sure": N_("Bounds that follow from counts that were measured. They hold with the confidence, and are wide."),
    "typical": N_("The interval holds for most cells of a table, as tried on other data. Nothing is promised of a single cell."),
    "not known": N_("The model's own value. Nothing that was measured says how far off it is."),
}
"""What the labels of intervals mean; nothing is called typical any more but in answers that were kept."""
_LABELS = (N_("measured"), N_("sure"), N_("typical"), N_("not known"))


def of_table(answer: TableAnswer, rows: int = MOST_ROWS) -> Shown:
    """What a released table answers as cells, to as many places as the narrowest interval deserves.

    >>> from cloister.hub.releases.kinds import TableAnswer
    >>> from cloister.session import Frame, Series
    >>> import numpy as np
    >>> ends = {name: Series("real", np.array([value])) for name, value in (("n", 7.2), ("n_low", 4.0), ("n_high", 9.0))}
    >>> kind = Series("text", np.array(["sure"], dtype=object))
    >>> found = of_table(TableAnswer(table=Frame({**ends, "n_kind": kind}), statistics=("n",), notes=()))
    >>> found.columns[0].digits, found.rows[0][0].high, found.rows[0][0].known
    (1, 9.0, 'sure')
    """
    table = answer.table
    told = {name: series.tolist()[:rows] for name, series in table.columns.items()}
    columns, cells = [], list[list[Cell]]()
    beside = {f"{name}{end}" for name in answer.statistics for end in ("_low", "_high", "_kind")}
    for name in (each for each in told if each not in beside):
        measured = name in answer.statistics
        ends = [told[f"{name}{end}"] if measured else [math.nan] * len(told[name]) for end in ("_low", "_high")]
        widths = [(high - low) / 2 for low, high in zip(*ends, strict=True)]
        columns.append(_column(name, table.columns[name], widths if measured else None))
        known = told[f"{name}_kind"] if measured else [""] * len(told[name])
        parts = zip(told[name], *ends, known, strict=True)
        cells.append([Cell(value=value, low=low, high=high, known=label) for value, low, high, label in parts])
    lines = tuple(zip(*cells, strict=True))
    return Shown(
        columns=tuple(columns), rows=lines, more=len(table) - len(lines), drowned=False, doubts=dict.fromkeys(_DOUBTS, False)
    )


def name_of(table: str, columns: tuple[Column, ...], _: Callable[[str], str]) -> str:
    """What a page calls an answer that has no name: its first table and its keys, or what was measured where it has none.

    >>> from dataclasses import replace
    >>> column = Column(name="n", measured=True, number=True, digits=0)
    >>> name_of("people, visits", (replace(column, name="sex", measured=False), column), str), name_of("people", (column,), str)
    ('people by sex', 'people: n')
    """
    first = table.split(",")[0].strip()
    keys = ", ".join(each.name for each in columns if not each.measured)
    if keys:
        return _("{table} by {keys}").format(table=first, keys=keys)
    return _("{table}: {statistics}").format(table=first, statistics=", ".join(each.name for each in columns))


def mechanism_words(mechanism: Iterable[str], _: Callable[[str], str]) -> str:
    """How an answer was made noisy, for a reader: the laws by their names in the field.

    >>> mechanism_words(("rows: DiscreteLaplace of scale 20",), str)
    'rows: discrete Laplace noise of scale 20'
    """
    laws = {
        "DiscreteLaplace": _("discrete Laplace noise of scale {scale}"),
        "DiscreteGaussian": _("discrete Gaussian noise of scale {scale}"),
    }
    found = "; ".join(mechanism)
    return _LAW.sub(lambda match: laws[match[1]].format(scale=match[2]), found)


_MET = (
    N_("rows never leave; counts, sums and means do"),
    N_("it is not a finite number"),
    N_("it must be greater than 0"),
    N_("the table {table} declares {columns}"),
    N_("The column {column} was compared wrongly"),
    N_("a {kind} is not a number"),
    N_("The mean of {column} is not supported"),
    N_("The sum of {column} is not supported"),
    N_("it is declared as {kind}, which has no mean"),
    N_("it is declared as {kind}, which has no sum"),
    N_("Counted are rows that have a value in every column of the model that is not declared nullable. Others are left out."),
    N_("Intervals hold where no row lacks a value in a column of the model that is not declared nullable."),
    N_("what is worked out over groups counts all that are declared, empty ones too"),
    N_("what is worked out over groups counts only those that are shown"),
    N_("a query in the place of a value fails after the charge where released numbers leave it several rows: LIMIT 1"),
    N_("no declared value passes the condition: the answer is certain, no row was read and nothing was charged"),
    N_("what stands above the aggregates is worked out over their answers, at no cost"),
    N_("worked out from released numbers, at no cost: its margins hold for all cells at once"),
    N_("· is a cell that is not shown"),
    N_("{condition} holds for no row: declared for {column} are {values}"),
    N_("{condition} holds for no row: {column} is declared from {low} to {high}"),
    N_("{condition} holds for every row with a value: declared for {column} are {values}"),
    N_("{condition} holds for every row with a value: {column} is declared from {low} to {high}"),
    N_("{column}: its margin is not known"),
    N_("{column}: its margin is not known in {some} of {rows} rows"),
    N_("{column} has no margin; it is right with at least {chance} % confidence"),
    N_("{column} has no margin; it is right with at least {chance} % confidence in every group"),
    N_(
        "{column} is the value that {rows} rows reach (in a group of fewer than twice as many, its median); the noise hides fewer"
    ),
    N_("{names} dropped out: the answer is about the rows of the others"),
    N_("table {table} could not be prepared, since its database is read-only: each question finds the cap again, slower"),
)
"""What refusals and notes of questions and models say, from below the hub, where nobody looks for what to translate."""


def page_of(release: str, confidence: float = 0.95) -> str:
    """The address of the page of a release, which shows its margins at the confidence that was asked for.

    >>> page_of("r1"), page_of("r1", 0.99)
    ('/releases/r1', '/releases/r1?confidence=0.99')
    """
    return f"/releases/{release}" + ("" if confidence == 0.95 else f"?confidence={confidence:g}")


def _column(name: str, series: Series, widths: list[float] | None) -> Column:
    number = series.kind in ("integer", "real")
    digits = None
    if number and widths is not None:
        narrowest = min((width for width in widths if 0 < width < math.inf), default=1.0)
        digits = 0 if series.kind == "integer" else min(max(0, 1 - math.floor(math.log10(narrowest))), 8)
    return Column(name=name, measured=widths is not None, number=number, digits=digits)
