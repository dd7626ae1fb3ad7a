"""A growing data set, cut into windows of time: each window is a data set of its own, with a population and a budget of its own,
so that a data set which grows doesn't die of its budget.

*What is cut.* The owner names a column of dates and a length. A row is in the window in whose days its own date lies, and in no
other (`tables/declaring/during.py`): every engine leaves the rest out before anything is counted, whatever the file holds and
whatever is asked. A row without a date is in none. Where no column is named, the windows are files that the owner cuts by hand:
nothing here looks at dates then, and that no row is in two of them is the owner's word.

*Guarantee.* Per person and window: whatever all analysts together learn by their questions to a window, adaptively chosen and
with all answers of other windows before them, is within that window's budget for the rows that a person has in it. Somebody with
rows in n windows is protected by the sum of n budgets.

*Neighbours.* Two sources that differ in all rows of one person whose dates lie in the window; over all versions of the source.

*Proof sketch.* (1) Blocks. Whether a row is in window w is a function of this row alone, and the days of windows share none.
So the tables T_1, …, T_W of the windows share no row, and neighbours that differ in w have T_v equal for all v ≠ w. (2)
Nothing else of a window follows from another's rows: the row cap is counted within T_w, and which rows it keeps from a secret
of the version and rows of T_w; names, bounds and days are declared. (3) The ledger lets the questions to T_w spend no more
than w's budget in sum, whichever answers chose them (a privacy filter), and charges no window for another. (4) Given any
transcript so far, an answer from T_v, v ≠ w, has the same law on both neighbours; so these contribute nothing, and the whole
transcript is bounded by the sum over the answers from T_w. This is block composition: M. Lécuyer, R. Spahn, K. Vodrahalli, R.
Geambasu, D. Hsu, "Privacy accounting and quality control in the Sage differentially private ML platform", SOSP 2019. (5) All
rows of a person with rows in S windows change through |S| such steps, one window at a time: sequential composition gives the
sum.

*New versions.* A window keeps its population, so questions about any version spend one budget, and a new file gives nobody a
fresh one. A row whose date is corrected from one window to another is a row of both in turn, and protected by the sum.

*Fixed.* All windows of a data set are of one cut: one column of dates, one length, one population that each window's is a window
of. These stay once the first window is open, and after a window is deleted too, since what its people have spent is spent: the
same rows in windows of another length, or along another column, would overlap, and have a second budget.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, InvalidDeclaration, InvalidParameter
from cloister.hub.decisions.policy.mandatory import alike
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import DataSet
from cloister.privacy import Guarantee
from cloister.tables import Date
from cloister.tables.declaring.plain import domain_of

EVERY = ("year", "quarter", "month")
_YEAR = r"(?!0000)(\d{4})"
_SHAPES = {"year": _YEAR, "quarter": rf"{_YEAR}-Q([1-4])", "month": rf"{_YEAR}-(0[1-9]|1[0-2])"}
_EXAMPLES = {"year": "2026", "quarter": "2026-Q1", "month": "2026-03"}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


def check_window(every: str, label: str) -> dict[str, Any]:
    """The window as the data set keeps it.

    >>> check_window("quarter", "2026-Q1")
    {'every': 'quarter', 'window': '2026-Q1'}
    """
    if every not in EVERY:
        raise InvalidParameter("The windows are invalid", why="there are no windows of that length", instead=", ".join(EVERY))
    if not re.fullmatch(_SHAPES[every], label, re.ASCII):
        raise InvalidParameter(
            "The window is invalid", why=f"its name is not that of a {every}", instead=f"such as {_EXAMPLES[every]}"
        )
    return {"every": every, "window": label}


def check_cut(every: str, column: str) -> None:
    """A date column cuts windows, or nothing.

    >>> check_cut("quarter", "day")
    """
    if column and not every:
        raise InvalidParameter(
            f"The date column {column!r} is invalid",
            why="no length of windows is chosen, so nothing is cut by it",
            instead='every = "quarter", window = "2026-Q1"',
        )


def days_of(every: str, label: str) -> tuple[date, date]:
    """The first and the last day of a window.

    >>> [str(day) for day in days_of("month", "2028-02")], [str(day) for day in days_of("quarter", "2026-Q4")]
    (['2028-02-01', '2028-02-29'], ['2026-10-01', '2026-12-31'])
    >>> [str(day) for day in days_of("year", "9999")]
    ['9999-01-01', '9999-12-31']
    """
    year, part = _read(every, label)
    months = _MONTHS[every]
    first = date(year, (part - 1) * months + 1, 1)
    end = first.month + months  # the month after
    return first, date(year, 12, 31) if end > 12 else date(year, end, 1) - timedelta(days=1)


def windowed(declaration: Mapping[str, Any], column: str, every: str, label: str) -> dict[str, Any]:
    """The declaration of one window: the rows of its days, which are the bounds of the date column too.

    >>> found = windowed({"columns": {"day": {"kind": "date"}}}, "day", "quarter", "2026-Q1")
    >>> found["during"], found["columns"]["day"]["high"], found["reasons"]
    (['day', '2026-01-01', '2026-03-31'], '2026-03-31', {'day': 'the days of the window 2026-Q1'})
    """
    columns, (first, last) = declaration["columns"], days_of(every, label)
    declared = columns.get(column) or {}
    if declared.get("kind") != "date":
        raise InvalidDeclaration(
            f"The date column {column!r} is invalid",
            why="no column of that name is declared as a date",
            instead="the column by whose dates the windows are cut, of the kind date",
        )
    if declared.get("low") or declared.get("high"):
        bounds = domain_of(column, declared, table="the window")
        assert isinstance(bounds, Date)
        if bounds.low > first or bounds.high < last:
            raise InvalidDeclaration(
                f"The bounds of {column!r} are invalid",
                why=f"the windows are cut by it, and the days of {label} are {first} to {last}",
                instead="no bounds for this column: its window says them",
            )
    span = {"low": first.isoformat(), "high": last.isoformat()}
    return {
        **declaration,
        "columns": {**columns, column: {"kind": "date", **span, "nullable": False}},
        "reasons": {**(declaration.get("reasons") or {}), column: f"the days of the window {label}"},
        "during": [column, span["low"], span["high"]],
    }


def in_window(declared: Mapping[str, Any], every: str, label: str, column: str) -> dict[str, Any]:
    """Name, title, population and declaration of one window of what is declared so, and which window it is.

    >>> found = in_window({"name": "visits", "title": "Visits", "population": "all", "declaration": {}}, "quarter", "2026-Q1", "")
    >>> found["name"], found["population"], found["window"]["of"]
    ('visits_2026_q1', 'all 2026-Q1', 'visits')
    """
    window = check_window(every, label)
    name, title, population, declaration = (declared[part] for part in ("name", "title", "population", "declaration"))
    return {
        "name": f"{name}_{label.lower().replace('-', '_')}",
        "title": f"{title} {label}",
        "population": f"{population} {label}",
        "declaration": windowed(declaration, column, every, label) if column else declaration,
        "window": window | {"of": name, "title": title, "population": population, "column": column},
    }


def current(every: str, now: datetime) -> str:
    """The name of the window in which a moment lies.

    >>> current("quarter", datetime(2026, 5, 1)), current("month", datetime(2026, 5, 1)), current("year", datetime(2026, 5, 1))
    ('2026-Q2', '2026-05', '2026')
    """
    return _label(every, now.year, (now.month + _MONTHS[every] - 1) // _MONTHS[every])


def following(every: str, label: str) -> str:
    """The window after one.

    >>> following("quarter", "2026-Q4"), following("month", "2026-03"), following("year", "2026")
    ('2027-Q1', '2026-04', '2027')
    """
    year, part = _read(every, label)
    last = 12 // _MONTHS[every]
    return _label(every, year + (part == last), part % last + 1)


def in_all(budgets: Iterable[Guarantee | None]) -> Guarantee | None:
    """What several windows promise somebody who is in all of them, each with the budget that it has; None where one is not known,
    or where there are none.

    >>> from cloister.privacy import PureDP
    >>> in_all([PureDP("0.5"), PureDP(2)]), in_all([])
    (PureDP(epsilon='2.5'), None)
    """
    total: Guarantee | None = None
    for each in budgets:
        if each is None:
            return None
        try:
            total = each if total is None else total + each
        except CloisterError:
            return None
    return total


def base_of(window: Mapping[str, Any]) -> str:
    """The name that the windows of one data set share.

    >>> base_of({"every": "year", "window": "2026", "of": "visits"}), base_of({})
    ('visits', '')
    """
    return str(window.get("of", ""))


def column_of(window: Mapping[str, Any]) -> str:
    """The date column by which a data set's windows are cut; nothing where its owner cuts files by hand.

    >>> column_of({"every": "year", "window": "2026", "of": "visits", "column": "day"}), column_of({})
    ('day', '')
    """
    return str(window.get("column", ""))


def _read(every: str, label: str) -> tuple[int, int]:
    """The year, and which window of it."""
    found = re.fullmatch(_SHAPES[every], label, re.ASCII)
    assert found is not None
    return int(found[1]), 1 if every == "year" else int(found[2])


def _label(every: str, year: int, part: int) -> str:
    return f"{year:04}" + {"year": "", "quarter": f"-Q{part}", "month": f"-{part:02}"}[every]


def windows_of(db: Db, row: DataSet) -> list[DataSet]:
    """All windows of a data set with windows, the oldest first."""
    return [each for each in _ever(db, row) if each.state != "deleted"]


def window_with(db: Db, population: str) -> DataSet | None:
    """A window, open or not, whose population this is; None where no window has it."""
    rows = db.scalars(select(DataSet).where(DataSet.population == population).order_by(DataSet.created, DataSet.id))
    return next((each for each in rows if base_of(each.window)), None)


def populations_ever(db: Db, row: DataSet) -> set[str]:
    """The populations of all windows that there ever were, and its own."""
    return {str(each.population) for each in [row, *_ever(db, row)]}


def next_window(db: Db, row: DataSet) -> str:
    """The window after the newest that there ever was; nothing of a data set that has no windows."""
    labels = [str(each.window["window"]) for each in _ever(db, row)]
    return following(str(row.window["every"]), max(labels)) if labels else ""


def apart(one: DataSet, other: DataSet) -> bool:
    """Whether no row can be of both, whatever file they are served from: windows of one data set, cut by dates."""
    return (
        bool(base_of(one.window) and column_of(one.window))
        and _cut(one) == _cut(other)
        and one.owner == other.owner
        and one.window["window"] != other.window["window"]
    )


def lock_series(db: Db, row: DataSet) -> None:
    """Let an owner's windows be made one after another, each in its transaction: two first ones could differ in their cut."""
    if base_of(row.window):
        db.execute(select(Person.id).where(Person.id == row.owner).with_for_update())


def check_series(db: Db, row: DataSet) -> None:
    """Refuse a window of another cut than those of the same data set, or of the same population, are of."""
    if not base_of(row.window):
        return
    wanted = select(DataSet).where(DataSet.owner == row.owner, DataSet.id != row.id).order_by(DataSet.created, DataSet.id)
    for other in db.scalars(wanted):
        if not base_of(other.window):
            continue
        every, column, population = (str(other.window.get(part, "")) for part in ("every", "column", "population"))
        if base_of(other.window) == base_of(row.window) and _cut(other) != _cut(row):
            along = f"along the dates in {column!r}" if column else "by its owner's hand, along no column"
            raise InvalidParameter(
                f"The window of {base_of(row.window)!r} is invalid",
                why=f"its windows are of one {every} each, cut {along}, of the population {population!r}; "
                "that stays once the first is open, since other windows would overlap with them",
                instead=f'every = "{every}", date_column = "{column}", population = "{population}"; or another name',
            )
        if alike(population) == alike(str(row.window["population"])) and every != row.window["every"]:
            raise InvalidParameter(
                f"The window of {base_of(row.window)!r} is invalid",
                why=f"the windows of the population {population!r} are of one {every} each, and stay so once the first is open",
                instead=f'every = "{every}", or another population',
            )


def _ever(db: Db, row: DataSet) -> list[DataSet]:
    """All windows that there ever were."""
    base = base_of(row.window)
    if not base:
        return []
    rows = db.scalars(select(DataSet).where(DataSet.owner == row.owner))
    return sorted((each for each in rows if base_of(each.window) == base), key=lambda each: str(each.window["window"]))


def _cut(row: DataSet) -> tuple[str, ...]:
    """What windows of one data set have in common."""
    parts = ("of", "every", "column", "population")
    return tuple(str(row.window.get(part, "")) for part in parts)
