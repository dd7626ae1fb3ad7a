"""Releases that SQL can be asked of as of tables: whoever sees one asks it, in the workbench, the API and PostgreSQL clients.

What they answer is post-processing of what left, so nothing is charged. A table is called after what the release was made of, its
kind, and its id (`people_synthetic_1f3a9c2b`). The rules are those of the release: a page shows what one may look at, and a
program that asks what another shows takes it as a download does. The audit log has each query.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError
from cloister.hub.decisions.policy import Object
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail import write_alone
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import AsTable, TableAnswer, View, kind_of
from cloister.hub.releases.reading import read_release, releases_of, seen_release
from cloister.hub.web.languages import language_of
from cloister.hub.work.concurrency import working
from cloister.hub.work.offer import Offer
from cloister.tables import Domain, PrivateTable

ASKED = "release.answer"
"""The action of the entries about such queries."""
_MOST = 50
_MOST_KNOWN = 1_000
_COLUMNS: dict[str, Mapping[str, Domain]] = {}
"""By the id of a release."""
_LONGEST = 40
_NAMED = re.compile(r"(?<![a-z0-9_])[a-z][a-z0-9_]*_[0-9a-f]{8}")  # begun once a word: time grows with the text alone


@dataclass(frozen=True, kw_only=True)
class TableOffer(Offer):
    """A release that this person may ask as a table."""

    row: StoredRelease

    @property
    def path(self) -> str:
        """Its page."""
        return f"/releases/{self.row.id}"

    @property
    def cost(self) -> Mapping[str, str]:
        """What it was made for, by population."""
        return self.row.cost


@dataclass(frozen=True, kw_only=True)
class FreeTable(Offer):
    """What a service has released, as a table: no release of one piece, such as the steps of a stream."""

    path: str
    """Its page."""
    kind: str
    """As the audit log calls it."""
    cost: Mapping[str, str]
    """What was charged for all of it, by population."""
    answered: Callable[[str, float, str | None], TableAnswer]
    """By the query, the confidence, and the dialect."""


def free_tables(hub: Hub, db: Db, caller: Caller, sql: str | None = None) -> list[FreeTable]:
    """Those of all services that somebody sees now; of a query those whose names stand in it."""
    made = (each.tables for each in hub.services if each.tables is not None)
    return [table for tables in made for table in tables(hub, db, caller, sql)]


def asked_in(hub: Hub, db: Db, caller: Caller, sql: str) -> TableOffer | FreeTable | None:
    """What a query names that answers at no cost: a release, or a table of a service."""
    return table_in(hub, db, caller, sql) or next(
        iter(free_tables(hub, db, caller, sql) if _NAMED.search(sql.casefold()) else ()), None
    )


def name_in_queries(row: StoredRelease | Row[tuple[str, str, Any]]) -> str:
    """What a release is called in SQL, where its kind is a table."""
    made_of = str(row.details.get("table", ""))[:_LONGEST].rstrip("_")
    return f"{made_of}_{row.kind}_{hashlib.sha256(row.id.encode()).hexdigest()[:8]}"


def tables_of(hub: Hub, db: Db, caller: Caller, *, search: str = "") -> list[TableOffer]:
    """The newest releases of every kind that is a table, as far as somebody sees them now."""
    found = list[TableOffer]()
    for kind in hub.kinds.values():
        if kind.as_table is not None:
            for row in releases_of(hub, db, caller, kind=kind.name, search=search, limit=_MOST):
                found.append(_offer(row, hub))
    return found


def _offer(row: StoredRelease, hub: Hub) -> TableOffer:
    as_table = kind_of(hub, row).as_table
    assert as_table is not None
    which = Object(kind="release", id=row.id, name=name_in_queries(row), owner=row.person)
    columns = _columns_of(as_table, row)
    return TableOffer(which=which, table=PrivateTable({name: [] for name in columns}, columns), row=row)


def _columns_of(as_table: AsTable, row: StoredRelease) -> Mapping[str, Domain]:
    """The declared columns of a release, which never change: read once, since every page that lists tables needs them."""
    found = _COLUMNS.get(row.id)
    if found is None:
        if len(_COLUMNS) >= _MOST_KNOWN:
            _COLUMNS.clear()
        found = _COLUMNS[row.id] = as_table.columns(row)
    return found


def table_in(hub: Hub, db: Db, caller: Caller, sql: str) -> TableOffer | None:
    """The release whose name stands in a query; None where none does."""
    words = set(_NAMED.findall(sql.casefold()))
    if not words:
        return None
    kinds = [kind.name for kind in hub.kinds.values() if kind.as_table is not None]
    about = (StoredRelease.id, StoredRelease.kind, StoredRelease.details)
    for row in db.execute(select(*about).where(StoredRelease.kind.in_(kinds))):
        if name_in_queries(row) in words:
            try:
                return _offer(seen_release(hub, db, caller, row.id, kind=row.kind), hub)
            except CloisterError:  # not theirs to see: as if it were not there
                continue
    return None


def answer_in(
    hub: Hub,
    caller: Caller,
    sql: str,
    *,
    confidence: float = 0.95,
    dialect: str | None = None,
    program: bool = False,
    logged: bool = True,
) -> tuple[TableOffer | FreeTable, TableAnswer] | None:
    """The answer to a query that names a release; None where it names none. `program`: a program asks, and not a page."""
    with hub.database.reading() as db:
        found = asked_in(hub, db, caller, sql)
        if found is None:
            return None
        if isinstance(found, FreeTable):
            with working(hub, caller):
                free = found.answered(sql, confidence, dialect)
            if logged:
                write_alone(hub, caller, ASKED, kind=found.kind, object_id=found.which.id, sql=sql)
            return found, free
        row = read_release(hub, db, caller, found.row.id, kind=found.row.kind) if program else found.row
    as_table = kind_of(hub, row).as_table
    assert as_table is not None
    view = View(hub=hub, caller=caller, row=row, language=language_of("en"), confidence=confidence)
    with working(hub, caller):
        answer = as_table.answer(view, found.which.name, sql, dialect)
    if logged:
        told = {"kind": kind_of(hub, row).trail, "object_id": row.id, "purpose": row.purpose, "data_sets": list(row.data_sets)}
        write_alone(hub, caller, ASKED, **told, sql=sql)
    return found, answer
