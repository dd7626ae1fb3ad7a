"""Released steps as people and programs read them: a table of the newest, a chart of all, CSV, and lines of an event stream."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.hub.records.streams import HeldStream, StreamStep
from cloister.hub.services.streams.opening import columns_of, declared_of, labels_of
from cloister.hub.spreadsheets import csv_pieces
from cloister.hub.web.pictures import svg_of

_ON_CHART = 200
_PARTS = (("value", "table"), ("margin", "margin"), ("so_far", "so_far"))


def steps_of(db: Db, number: str, *, after: int = 0, newest: int | None = None) -> list[Mapping[str, Any]]:
    """Released steps in their order; `newest`: so many of the last."""
    wanted = select(StreamStep).where(StreamStep.stream == number, StreamStep.number > after)
    if newest is not None:
        return [row.body for row in reversed(list(db.scalars(wanted.order_by(StreamStep.number.desc()).limit(newest))))]
    return [row.body for row in db.scalars(wanted.order_by(StreamStep.number).limit(10_000))]


def all_steps(db: Db, number: str) -> Iterator[Mapping[str, Any]]:
    """Every released step, however many they are."""
    after = 0
    while found := steps_of(db, number, after=after):
        yield from found
        after = found[-1]["step"]


def name_of(row: HeldStream) -> str:
    """What a stream is called in SQL.

    >>> name_of(HeldStream(id="one", title="People in the hall"))
    'people_in_the_hall_stream_7692c3ad'
    """
    stem = re.sub(r"[^a-z0-9]+", "_", row.title.casefold()).strip("_")[:40].rstrip("_")
    start = stem if stem[:1].isascii() and stem[:1].isalpha() else "readings"
    return f"{start}_stream_{hashlib.sha256(row.id.encode()).hexdigest()[:8]}"


def lines_of(step: Mapping[str, Any], said: Callable[[Any], Any] = lambda key: key) -> list[dict[str, Any]]:
    """The rows of a step: its groups as they are said, and for each number its value, margin and running total."""
    keys, numbers = columns_of(step)
    rows = len(step["table"][next(iter(step["table"]))])
    return [
        {
            "keys": [said(step["table"][name][place]) for name in keys],
            "numbers": [{part: step[which][name][place] for part, which in _PARTS} for name in numbers],
        }
        for place in range(rows)
    ]


def shown(db: Db, row: HeldStream, gettext: Callable[[str], str]) -> dict[str, Any]:
    """What the page of a stream shows."""

    def said(key: Any) -> Any:
        return "NULL" if key is None else (gettext("yes") if key else gettext("no")) if isinstance(key, bool) else key

    declared = declared_of(row)
    steps, found = declared.steps, steps_of(db, row.id, newest=_ON_CHART)
    newest = found[-1] if found else None
    keys, numbers = ([], []) if newest is None else columns_of(newest)
    return {
        "row": row,
        "declared": declared,
        "spend": str(declared.spend),
        "count": steps.count,
        "left": steps.count - row.taken if row.state == "open" else 0,
        "ends": steps.edges(steps.count)[1],
        "newest": newest,
        "newest_ends": 0 if newest is None else steps.edges(newest["step"])[1],
        "name": "" if newest is None else name_of(row),
        "keys": keys,
        "numbers": numbers,
        "lines": [] if newest is None else lines_of(newest, said),
        "picture": svg_of(chart(found, said)) if len(found) > 1 and numbers else "",
    }


def chart(steps: Sequence[Mapping[str, Any]], said: Callable[[Any], Any]) -> Any:
    """The first number of each group over the steps, with its margin as a band."""
    import altair as alt

    _, numbers = columns_of(steps[-1])
    points = [
        {"at": step["ends"], "group": _named(line, numbers[0]), "value": one, "low": one - off, "high": one + off}
        for step in steps
        for line in lines_of(step, said)
        for one, off in [(line["numbers"][0]["value"], line["numbers"][0]["margin"])]
        if one is not None and off is not None
    ]
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X("at:T", title="UTC", scale=alt.Scale(type="utc")), color=alt.Color("group:N", title=None)
    )
    band = base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", title=numbers[0]), y2="high:Q")
    return (band + base.mark_line(point=len(steps) < 50).encode(y="value:Q")).properties(width=520, height=240)


def _named(line: Mapping[str, Any], otherwise: str) -> str:
    return " ".join(map(str, line["keys"])) or otherwise


def csv_of(steps: Iterable[Mapping[str, Any]]) -> str:
    """A row for each group of each step; a key that a spreadsheet would compute stays a text."""
    steps = list(steps)
    if not steps:
        return ""
    keys, numbers = columns_of(steps[0])
    rows = (
        [step["step"], step["begins"], step["ends"], *line["keys"], *(one[part] for one in line["numbers"] for part, _ in _PARTS)]
        for step in steps
        for line in lines_of(step)
    )
    return b"".join(csv_pieces(labels_of(keys, numbers), rows)).decode()


def event_of(step: Mapping[str, Any]) -> str:
    """A step as a server-sent event, whose id a subscriber gives to go on after it."""
    return f"id: {step['step']}\nevent: step\ndata: {json.dumps(step, ensure_ascii=False)}\n\n"
