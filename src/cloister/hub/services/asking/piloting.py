"""What to expect of a mean or a quantile, whose margin depends on how many rows its group has, which is private.

Where the owner declared no size, the forecast is a small table: the margins in groups of 100, 1,000 and 10,000 rows. A pilot is a
count of the same groups for a small spend. It is a query like any other, an answer in the list of its analyst; what follows from
its noisy counts is post-processing, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cloister.errors import CloisterError
from cloister.hub.releases.reading import releases_of
from cloister.hub.services.asking.answers import unpacked
from cloister.hub.services.asking.pages_build import open_tables
from cloister.hub.services.asking.question_request import QuestionRequest
from cloister.query import read_sql, write_sql
from cloister.session import Count

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.session import Plan

PILOT = "0.01"
"""What a pilot spends."""
_SIZES = (100, 1_000, 10_000)
_COUNTED = "n"


@dataclass(frozen=True, kw_only=True)
class MarginsBySize:
    """The margin of each statistic in groups of some sizes; `offered`: whether a pilot can be asked for, `pilot` its answer."""

    sizes: tuple[int, ...]
    margins: dict[str, tuple[float, ...]]
    pilot: str = ""
    offered: bool = False
    spend: str = PILOT


def margins_by_size(hub: Hub, caller: Caller, wish: QuestionRequest, plan: Plan) -> MarginsBySize | None:
    """The margins that depend on the size of a group; None where none does, or where the owner declared the size."""
    if not plan.parts or all(part.shape.declaration.size is not None for part in plan.parts):
        return None
    if not (found := _margins(plan, wish.confidence, _SIZES)):
        return None
    try:
        sql = "" if wish.algorithm else pilot_sql(hub, caller, wish.sql)
    except CloisterError:
        sql = ""
    pilot, sizes = _piloted(hub, caller, sql) if sql else ("", ())
    if sizes:
        return MarginsBySize(sizes=sizes, margins=_margins(plan, wish.confidence, sizes, tuple(found)), pilot=pilot)
    return MarginsBySize(sizes=_SIZES, margins=found, offered=bool(sql))


def pilot_sql(hub: Hub, caller: Caller, sql: str) -> str:
    """The count of the groups of a query; refused where the query is more than one question about one table."""
    tables = {each.which.name: each.table for each in open_tables(hub, caller)}
    question = read_sql(sql, tables)
    return write_sql(replace(question, statistics=(Count(name=_COUNTED),), hidden=()), tables)


def _margins(plan: Plan, confidence: float, sizes: Sequence[int], names: tuple[str, ...] = ()) -> dict[str, tuple[float, ...]]:
    """By statistic, of those that are named or whose margins differ."""
    frames = [plan.margin(confidence, group_size=size).columns for size in sizes]
    found = {name: tuple(float(frame[name].values[0]) for frame in frames) for name in frames[0]}
    return {name: widths for name, widths in found.items() if name in names or len(set(widths)) > 1}


def _piloted(hub: Hub, caller: Caller, sql: str) -> tuple[str, tuple[int, ...]]:
    """The newest answer to a pilot, and the least, the middle and the largest of its counts."""
    with hub.database.reading() as db:
        row = next(iter(releases_of(hub, db, caller, which="mine", sql=sql, limit=1)), None)
        number, told = ("", []) if row is None else (row.id, unpacked(row).to_pydict()[_COUNTED])
    counts = sorted(max(1, round(count)) for count in told if count is not None)
    return number, tuple(dict.fromkeys(counts[place] for place in (0, len(counts) // 2, -1))) if counts else ()
