"""What joint learning gives: a kind of release for whoever ordered it, and the same result for each owner whose rows are in it.

The owners of all parts agreed to it by their grants of "Learn jointly", which say that the result goes to each of them: so an
owner takes it away without having been shown it. What the institution forbids of its sources binds them all the same.
"""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import Missing
from cloister.hub.decisions.checking import refusal_of
from cloister.hub.decisions.policy import Decision
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail import left
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.derived import decided
from cloister.hub.releases.kinds import File, ReleaseKind, View, json_file, stored
from cloister.hub.web.languages import N_

HOW = "z = (2 (x − low) / (high − low) − 1 − mean) · components transposed"
"""How rows are projected by the file."""
_MOST = 50


def page_of(view: View, told: Mapping[str, Any], handed: tuple[str, str], how: str) -> dict[str, Any]:
    """Components as a page shows them: who has them, a line for each column, and how rows are projected."""
    _ = view.language.gettext
    names = [each["name"] for each in told["columns"]]
    heads = [_("Column"), *(_("Direction %(number)s") % {"number": each + 1} for each in range(len(told["components"])))]
    lines = [[name, *(f"{each[at]:.3f}" for each in told["components"])] for at, name in enumerate(names)]
    pairs = [(_("Data set"), view.row.details["table"]), (_("Method"), told["method"]), handed]
    return {"pairs": pairs, "columns": heads, "lines": lines, "how": how}


def _shown(view: View) -> dict[str, Any]:
    _, told = view.language.gettext, json.loads(view.row.body)
    handed = (_("Handed to the owners of"), _("%(number)s parts") % {"number": told["parts"]})
    of_sites = (_("Rows of"), _("%(number)s sites") % {"number": told["parts"]})  # to whose owners nothing is handed
    return page_of(view, told, handed if view.row.details["parts"] else of_sites, HOW)


JOINT = ReleaseKind(
    name="joint",
    path="/joint-results",
    trail="joint-result",
    title=N_("Joint results"),
    made_at="/joint-learning",
    missing=N_("There is no such joint result"),
    template="joint_learning/result.html",
    shown=_shown,
    told=stored,
    files={"json": json_file("joint")},
)


def owned_results(hub: Hub, db: Db, caller: Caller) -> list[StoredRelease]:
    """The newest results in which there are rows of a data set of the caller's: of a part, and not of what was made of parts."""
    mine = set(db.scalars(select(DataSet.id).where(DataSet.owner == caller.id)))
    wanted = select(StoredRelease).where(StoredRelease.kind == JOINT.name, StoredRelease.withdrawn.is_(None))
    rows = db.scalars(wanted.order_by(StoredRelease.created.desc(), StoredRelease.id.desc())) if mine else ()
    shown = (row for row in rows if mine & set(row.details["parts"]) and _handed(hub, db, caller, row).allowed)
    return list(islice(shown, _MOST))


def _handed(hub: Hub, db: Db, caller: Caller, row: StoredRelease) -> Decision:
    return decided(hub, db, caller, row, "release.download", handed=True)


def take_away(hub: Hub, caller: Caller, number: str) -> File:
    """The result for an owner of a part, once the audit log says so; for anybody else it is missing."""
    with hub.database.reading() as db:
        row = db.scalar(select(StoredRelease).where(StoredRelease.id == number, StoredRelease.kind == JOINT.name))
        parts = () if row is None else row.details["parts"]
        owners = set(db.scalars(select(DataSet.owner).where(DataSet.id.in_(parts))))
        if row is None or row.withdrawn is not None or caller.id not in owners:
            raise Missing(JOINT.missing, why="it does not exist, or none of your rows are in it", instead="/joint-learning")
        decision = _handed(hub, db, caller, row)
        if not decision.allowed:
            raise refusal_of(db, decision)
    left(hub, caller, JOINT.trail, row.id, row.data_sets, row.purpose, "owner")
    return File(name=f"joint-{row.id}.json", body=row.body)
