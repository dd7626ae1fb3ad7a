"""The windows of one data set: which there are, which comes next, and that all are of one cut.

Of one cut means: one column of dates, one length, one population that each window's is a window of. These stay once the first
window is open, and after a window is deleted too, since what its people have spent is spent: the same rows in windows of
another length, or along another column, would have a second budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.errors import InvalidParameter
from cloister.hub.decisions.policy.mandatory import alike
from cloister.hub.platform.catalogue.windows import base_of, column_of, following
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import DataSet

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db


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
