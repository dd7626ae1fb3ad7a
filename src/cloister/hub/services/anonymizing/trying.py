"""A trial: what k would cost, and what the columns would become. Exact, for the owner's eyes alone; nothing leaves."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete

from cloister.errors import CloisterError
from cloister.hub.ids import new_id
from cloister.hub.records.anonymizing import Trial
from cloister.hub.service import JobType
from cloister.hub.services.anonymizing.order import Order
from cloister.hub.services.anonymizing.ready import ACTION, ready
from cloister.hub.services.asking.standing import present
from cloister.hub.services.jobs import Stopped, caller_of_job
from cloister.hub.services.trail import write
from cloister.session.sealed import sealed

if TYPE_CHECKING:
    from cloister.anonymize import Anonymizer
    from cloister.hub.hub import Hub
    from cloister.hub.service import Progress

__all__ = ["TRY", "trees_of"]

_SIZES = (2, 3, 5, 10, 20, 50)
_SECONDS = 20.0
_MOST_LEAVES = 400
_KEPT = timedelta(days=7)
"""How long a trial is kept: it holds values of rows, and another costs nothing but time."""


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    from cloister.anonymize.from_tables import frame_of
    from cloister.noise import Random

    order = Order(**payload["order"])
    with hub.database.reading() as db:
        caller = present(hub, db, caller_of_job(progress, payload))
        found = ready(hub, db, caller, order)
    sizes = sorted({*_SIZES, order.k})

    def work() -> dict[str, Any] | None:
        frame = frame_of(found.session._registry.prepare(found.row.name), Random())
        points: list[dict[str, Any]] = []
        trees: dict[str, Any] = {}
        for place, k in enumerate(sizes):
            if progress.stopped():
                return None
            progress.tell("comparing risk and loss", place / len(sizes))
            anonymizer = order.anonymizer(progress, k=k, seconds=_SECONDS)
            try:
                anonymizer.recode(frame)
            except CloisterError as error:
                points.append({"k": k, "why": error.why, "instead": error.instead})
                continue
            points.append(_point(k, anonymizer))
            trees = trees or trees_of(anonymizer)
        return {"points": points, "trees": trees}

    result = sealed(work)
    if result is None:
        raise Stopped
    row = Trial(id=new_id(), person=caller.id, data_set=found.row.id, order=order.plain(), wrapped=b"", created=hub.now())
    row.wrapped = hub.keys.wrap(json.dumps(result).encode(), row.about)
    with hub.database.begin() as db:
        db.execute(delete(Trial).where(Trial.created < hub.now() - _KEPT))
        db.add(row)
        db.flush()
        write(db, hub, caller, ACTION, kind="trial", object_id=row.id, purpose=order.purpose, data_sets=[found.row.id])
        return {"href": f"/anonymise/trials/{row.id}"}


def _point(k: int, anonymizer: Anonymizer) -> dict[str, Any]:
    report = anonymizer.report_
    return {
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
    }


def trees_of(anonymizer: Anonymizer) -> dict[str, dict[str, Any]]:
    """The hierarchy of each quasi-identifier: as a tree, and as lines that can be edited."""
    found: dict[str, dict[str, Any]] = {}
    for name, ladder in anonymizer.problem_.ladders.items():
        values = len(ladder.labels[0])
        lines = ""
        if values <= _MOST_LEAVES:
            lines = _lines(ladder)
        found[name] = {
            "about": anonymizer.report_.hierarchies[name],
            "values": values,
            "height": ladder.height,
            "lines": lines,
            "tree": _branches(ladder) if values <= _MOST_LEAVES else [],
        }
    return found


def _lines(ladder: Any) -> str:
    """As ARX writes it, to be edited."""
    from cloister.anonymize.hierarchies.levels import text_of

    text = io.StringIO()
    levels, values = range(ladder.height), range(len(ladder.labels[0]))
    rows = [[text_of(ladder.labels[level][ladder.codes[level][place]]) for level in levels] for place in values]
    csv.writer(text, delimiter=";", lineterminator="\n").writerows(rows)
    return text.getvalue()


def _branches(ladder: Any) -> list[dict[str, Any]]:
    """Labels with those below them, from the top."""
    from cloister.anonymize.hierarchies.levels import text_of

    below: list[dict[str, Any]] = [{"label": text_of(label), "below": []} for label in ladder.labels[0]]
    for level in range(1, ladder.height):
        above: list[dict[str, Any]] = [{"label": text_of(label), "below": []} for label in ladder.labels[level]]
        for code, parent in enumerate(ladder.parents[level - 1].tolist()):
            above[parent]["below"].append(below[code])
        below = above
    return below


TRY = JobType(kind="anonymizing.try", title="Trial of an anonymised table", run=_run, again=True)
