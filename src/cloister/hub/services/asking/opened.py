"""What is open to somebody: the data sets that they may ask about, and of each the columns, as declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.errors import CloisterError
from cloister.hub.policy import Object
from cloister.hub.services.access import allowed, context_of, facts_of
from cloister.hub.services.asking.runnable import Runnable, runnable
from cloister.hub.services.catalogue import live_of
from cloister.hub.work.authorise import visible
from cloister.tables import Category, PrivateTable, PublicTable

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["OpenDataSet", "example_of", "open_data_sets", "open_tables"]


@dataclass(frozen=True, kw_only=True)
class OpenDataSet:
    """A data set that somebody may ask about, with its table as they may know it."""

    which: Object
    table: PrivateTable | PublicTable
    plain: bool = True
    """Whether they may ask without an algorithm."""

    @property
    def columns(self) -> Mapping[str, str]:
        """Each column with its kind."""
        if isinstance(self.table, PublicTable):
            return dict.fromkeys(self.table.names, "public")
        return {name: domain.kind for name, domain in self.table.columns.items()}


def open_data_sets(hub: Hub, db: Db, caller: Caller, *, project: str = "", under: Sequence[Runnable] = ()) -> list[OpenDataSet]:
    """Those whose questions the person may at least explain, by themselves or under one of these algorithms; without those whose
    rows are out of reach."""
    facts, live = facts_of(hub, db), live_of(hub)
    found = []
    for each in sorted(facts.data_sets.values(), key=lambda which: which.name):
        if not visible(hub, caller, facts, each):
            continue
        context = context_of(hub, caller, columns={each.id: frozenset()}, project=project)
        decision = allowed(hub, db, caller, "question.explain", each, context)
        plain = decision.allowed
        by = None if plain else next((run.on[each.id] for run in under if each.id in run.on), None)
        if by is not None:
            decision = by
        elif not plain:
            continue
        reach = decision.narrowed.columns
        narrow = None if reach is None else {each.name: reach & each.columns}
        try:
            table = live.session(db, caller.email, tables=[each.name], columns=narrow).tables.get(each.name)
        except CloisterError:  # its rows cannot be reached now: who asks about it is told why
            continue
        if table is not None:
            found.append(OpenDataSet(which=each, table=table, plain=plain))
    return found


def open_tables(hub: Hub, db: Db, caller: Caller) -> dict[str, PrivateTable | PublicTable]:
    """The same by name, for programs: also those that may be asked about under an algorithm only."""
    return {each.which.name: each.table for each in open_data_sets(hub, db, caller, under=runnable(hub, db, caller))}


def example_of(opened: OpenDataSet) -> str:
    """A first question about a data set, from its declaration.

    >>> import cloister as cl
    >>> table = cl.PrivateTable({"sex": ["F"]}, columns={"sex": cl.Category(["F", "M"])})
    >>> example_of(OpenDataSet(which=Object(kind="data-set", id="d1", name="people"), table=table))
    'SELECT sex, COUNT(*) AS n FROM people GROUP BY sex'
    """
    name = opened.which.name
    if isinstance(opened.table, PublicTable):
        return ""
    columns = opened.table.columns
    keys = [each for each, domain in columns.items() if isinstance(domain, Category) or domain.kind == "boolean"]
    if not keys:
        return f"SELECT COUNT(*) AS n FROM {name}"  # noqa: S608  (a text for an editor)
    numbers = [each for each, domain in columns.items() if domain.kind in ("integer", "real")]
    mean = f", AVG({numbers[0]}) AS {numbers[0]}" if numbers else ""
    return f"SELECT {keys[0]}, COUNT(*) AS n{mean} FROM {name} GROUP BY {keys[0]}"  # noqa: S608
