"""A trial: risk against loss, to choose from, and what columns would become. Exact, for the owner's eyes alone; nothing leaves.

There are two kinds of choices. For several k the search that was ordered finds its best table. For the k that was ordered, the
lattice of levels is drawn: recodings of which no other has both less risk and less loss.

Of each, twenty rows as they are and as they would leave stand side by side, taken evenly from the whole table. They are a part of
the trial, so they are encrypted with it, gone after a week, and decided on at each look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.hub import Hub
from cloister.hub.records.catalogue import DataSet
from cloister.hub.service import JobType, Progress
from cloister.hub.services.anonymizing.authorised import AuthorisedTable
from cloister.hub.services.anonymizing.order import Anonymizing
from cloister.hub.services.anonymizing.reading import TRIAL
from cloister.hub.services.anonymizing.releasing import ANONYMISING
from cloister.hub.services.anonymizing.trees import tree_of
from cloister.hub.work.owner_view import make_view

if TYPE_CHECKING:
    from cloister.anonymize import Anonymizer, Choice
    from cloister.anonymize.frames import Frame
    from cloister.anonymize.hierarchies.ladder import Ladder
    from cloister.anonymize.recoding import Recoded


_SIZES = (2, 3, 5, 10, 20, 50)
_SECONDS = 20.0
_MOST_LEVELS = 9
"""Recodings by levels that are offered: as many as somebody can compare."""
_LOSES_TOO_MUCH = 0.5


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    from cloister.anonymize.from_tables import frame_of
    from cloister.noise import Random

    def find(found: AuthorisedTable) -> Callable[[], dict[str, Any] | None]:
        prepared = found.session.registry.row_access(found.row.name).prepare()
        return lambda: _tried(found.order, frame_of(prepared, Random()), found.row, progress)

    return make_view(hub, payload, progress, ANONYMISING, kind=TRIAL, path="/anonymise/trials", find=find)


def _tried(order: Anonymizing, frame: Frame, row: DataSet, progress: Progress) -> dict[str, Any] | None:
    """What the owner sees; None where the job is to stop.

    How far it is follows from the order alone: a search that tells how many nodes are left would tell others of the rows.
    """
    from cloister.anonymize import risk

    progress.tell("reading the rows", 0.0)
    raw = risk(frame, quasi=order.columns("quasi"), sensitive=order.columns("sensitive"))
    found: dict[str, Any] = {
        "before": {
            "prosecutor": raw.prosecutor,
            "marketer": raw.marketer,
            "alone": raw.sample_uniques,
            "rows": raw.rows,
            "classes": raw.classes,
        },
        "page": raw.to_html(of=row.title),
        "points": [],
        "trees": {},
        "refused": None,
    }
    found["version"] = row.version
    found["spellings"] = {name: each.alike for name, each in raw.sensitive.items() if each.alike}
    first = order.anonymizer(progress.stopped, seconds=_SECONDS)
    try:
        problem = first.problem(frame)
    except CloisterError as error:
        return found | {"refused": _told(error)}
    words = {name: hierarchy.describe() for name, hierarchy in first.chosen.items()}
    found["trees"] = {name: tree_of(ladder, words.get(name, "")) for name, ladder in problem.ladders.items()}
    found["words"] = levels_in_words(problem.ladders)
    found["sample"] = rows_before(frame, _shown(order))
    sizes = [] if order.levels else sorted({*_SIZES, order.k})
    points: list[dict[str, Any]] = []
    for place, k in enumerate(sizes or [order.k]):
        if progress.stopped():
            return None
        progress.tell("comparing risk and information loss", (1 + place) / (len(sizes) + 2))
        points.append(_of_size(order, k, frame, progress))
    if order.search == "optimal" and not order.levels:
        progress.tell("comparing levels", (1 + len(sizes)) / (len(sizes) + 2))
        points += _of_levels(order, frame, progress, taken=[each.get("levels") for each in points])
    if progress.stopped():
        return None
    asked = next(each for each in points if each["k"] == order.k)
    return found | {"points": points, "refused": asked if "why" in asked else None}


def _shown(order: Anonymizing) -> list[str]:
    """The columns that leave, those that others may know first."""
    quasi = order.columns("quasi")
    return [*quasi, *(name for name in order.left if name not in quasi)]


def _told(error: CloisterError) -> dict[str, Any]:
    return {"what": error.what, "why": error.why, "instead": error.instead}


def _of_size(order: Anonymizing, k: int, frame: Frame, progress: Progress) -> dict[str, Any]:
    """The best table for a k, or why there is none."""
    anonymizer = order.anonymizer(progress.stopped, k=k, seconds=_SECONDS)
    try:
        recoded = anonymizer.recode(frame)
    except CloisterError as error:
        return {"of": "k", "k": k, **_told(error)}
    report = anonymizer.report_
    if report.suppressed == report.rows:
        empty = InvalidParameter(
            "No row is left of the table",
            why="each lacks a value, or is in no class that is large enough",
            instead="a smaller k, fewer columns, or missing values as a group of their own",
        )
        return {"of": "k", "k": k, **_told(empty)}
    return {
        "of": "k",
        "k": k,
        "reached": report.risk.k,
        "prosecutor": report.risk.prosecutor,
        "marketer": report.risk.marketer,
        "loss": report.utility["loss"][1],
        "classes": report.classes,
        "suppressed": report.suppressed,
        "rows": report.rows,
        "levels": report.levels,
        "proof": str(report.proof) if report.proof is not None else "",
        "after": rows_after(frame, recoded, _shown(order)),
    }


def _of_levels(order: Anonymizing, frame: Frame, progress: Progress, *, taken: list[Any]) -> list[dict[str, Any]]:
    """Other levels that meet the models, from the least loss to the least risk."""
    from cloister.anonymize import frontier

    anonymizer: Anonymizer = replace(order, metric="loss").anonymizer(progress.stopped, seconds=_SECONDS)
    try:
        problem = anonymizer.problem(frame)
        found = frontier(problem)
    except CloisterError:  # too many nodes to draw; that the models can't be met is said for each k already
        return []
    worth = [each for each in found if each.loss <= _LOSES_TOO_MUCH and each.levels not in taken]
    incomplete = frame.rows - problem.table.total
    return [
        {**_of_choice(order.k, each, frame.rows, incomplete), "after": _after(order, each, frame, progress)}
        for each in _spread(worth, _MOST_LEVELS)
    ]


def _after(order: Anonymizing, choice: Choice, frame: Frame, progress: Progress) -> list[Any] | None:
    """The looked-at rows at the levels of a choice; None where they can't be made."""
    at_levels = replace(order, levels=choice.levels).anonymizer(progress.stopped, seconds=_SECONDS)
    try:
        return rows_after(frame, at_levels.recode(frame), _shown(order))
    except CloisterError:
        return None


def _of_choice(k: int, choice: Choice, rows: int, incomplete: int) -> dict[str, Any]:
    """As it is shown; rows that lack something are left out besides those that the choice leaves out."""
    return {
        "of": "levels",
        "k": k,
        "reached": round(1 / choice.highest_risk) if choice.highest_risk else 0,
        "prosecutor": choice.highest_risk,
        "marketer": choice.risk,
        "loss": choice.loss,
        "classes": choice.classes,
        "suppressed": choice.suppressed + incomplete,
        "rows": rows,
        "levels": choice.levels,
        "proof": "",
    }


def _spread(choices: list[Choice], most: int) -> list[Choice]:
    """As many, evenly along the frontier: neighbours that hardly differ are no choice.

    >>> _spread(list(range(10)), 4)
    [0, 3, 6, 9]
    """
    if len(choices) <= most:
        return choices
    return [choices[place * (len(choices) - 1) // (most - 1)] for place in range(most)]


TRY = JobType(kind="anonymizing.try", title="Trial of an anonymised table", run=_run)


ROWS, MOST_COLUMNS = 20, 12
_LONGEST = 60


def places_of(rows: int) -> list[int]:
    """Which rows are looked at.

    >>> places_of(3), places_of(39)[:3], len(places_of(1000))
    ([0, 1, 2], [0, 2, 4], 20)
    """
    few = min(rows, ROWS)
    return [place * (rows - 1) // max(few - 1, 1) for place in range(few)]


def rows_before(frame: Frame, columns: Sequence[str]) -> dict[str, Any]:
    """The rows as they are, in the columns that leave: quasi-identifiers first."""
    shown = list(columns)[:MOST_COLUMNS]
    places = places_of(frame.rows)
    lines = [[_cell_text(frame.data[name][place]) for name in shown] for place in places]
    return {"columns": shown, "rows": lines, "more": len(columns) - len(shown)}


def rows_after(frame: Frame, recoded: Recoded, columns: Sequence[str]) -> list[list[str | None] | None]:
    """The same rows as they would leave; None for one that is suppressed."""
    lines: list[list[str | None] | None] = []
    for place in places_of(frame.rows):
        if recoded.suppressed[place]:
            lines.append(None)
            continue
        found = []
        for name in list(columns)[:MOST_COLUMNS]:
            column = recoded.columns.get(name)
            found.append(_cell_text(frame.data[name][place] if column is None else column.labels[column.codes[place]]))
        lines.append(found)
    return lines


def levels_in_words(ladders: Mapping[str, Ladder]) -> dict[str, list[str]]:
    """What a value looks like at each level of a column: one of its labels, from the middle. Level 0 is the values themselves."""
    return {
        name: [(_cell_text(labels[len(labels) // 2]) or "") if len(labels) else "" for labels in ladder.labels[: ladder.height]]
        for name, ladder in ladders.items()
    }


def _cell_text(value: Any) -> str | None:
    from cloister.anonymize.hierarchies.levels import text_of

    if value is None:
        return None
    told = value if isinstance(value, str) else text_of(value)
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 1]}…"
