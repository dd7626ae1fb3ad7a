"""The algorithms under which somebody may ask, as the workbench offers them: none that they may not run now.

An algorithm with a text of its own is open where its provider, the institution and the owner of every data set in that text let
this person run it; one without is open where that holds of at least one data set. For which purpose is left to the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.errors import CloisterError
from cloister.hub.policy import Decision, Object
from cloister.hub.records.access import Algorithm
from cloister.hub.services.access import algorithms_of, check_together, context_of, facts_of
from cloister.hub.services.asking.algorithms import NAME
from cloister.hub.services.asking.authorised import meant
from cloister.hub.work.authorise import visible

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["Runnable", "runnable"]


@dataclass(frozen=True, kw_only=True)
class Runnable:
    """An algorithm that somebody may ask under.

    >>> Runnable(id="a1", name="by-sex", title="By sex", sql="", on={}).on
    {}
    """

    id: str
    name: str
    title: str
    sql: str
    """The question that it asks; empty where it leaves that open."""
    on: Mapping[str, Decision]
    """The data sets on which it may run, by id, and how far that reaches."""


def runnable(hub: Hub, db: Db, caller: Caller) -> list[Runnable]:
    """Those that the person may run on data that they may know of, by name."""
    rows = [row for row in algorithms_of(hub, db, caller) if row.withdrawn is None and row.service == NAME]
    if not rows:
        return []
    facts = facts_of(hub, db)
    seen = [each for each in facts.data_sets.values() if visible(hub, caller, facts, each)]
    found = []
    for row in rows:
        sql = str(row.settings.get("sql", ""))
        runs: dict[str, Decision] = {}
        if sql:
            named = meant(facts, [sql])
            runs.update(_together(hub, db, caller, row, named) if named and all(each in seen for each in named) else {})
        else:
            for each in seen:
                runs.update(_together(hub, db, caller, row, [each]))
        if runs:
            found.append(Runnable(id=row.id, name=row.name, title=row.title, sql=sql, on=runs))
    return found


def _together(hub: Hub, db: Db, caller: Caller, row: Algorithm, objects: Sequence[Object]) -> Mapping[str, Decision]:
    """What lets the person explain a question under it on all of these at once, alone or in one of their projects, for whatever
    purpose; nothing where nothing does."""
    grants = [*facts_of(hub, db).algorithms[row.id].grants, *(grant for each in objects for grant in each.grants)]
    named = sorted({purpose for grant in grants for purpose in grant.rules.purposes or ()})
    columns = {each.id: frozenset[str]() for each in objects}
    for purpose in ("", *named):
        for project in ("", *sorted(caller.projects)):
            context = context_of(hub, caller, purpose=purpose, columns=columns, project=project, algorithm=row.id)
            try:
                return check_together(hub, db, caller, "question.explain", objects, context)
            except CloisterError:  # another purpose may do, or another project
                continue
    return {}
