"""One run from two sides: what the author of the code is told about it, and what the owner of the data sees.

The author learns that it ran, when, for which purpose, from which institution, and on which data set where they may know of it:
never a value, and never who. The owner sees besides who asked, what it cost whom, which columns were read and who had admitted
the code; and the author's side, to know what leaves on that way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloister.hub.decisions.checking import allowed
from cloister.hub.decisions.facts import facts_of
from cloister.hub.problems import Missing
from cloister.hub.records.access import Algorithm
from cloister.hub.records.accounts import Person
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.guests.admission import ADMIT

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

Pairs = Sequence[tuple[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What is shown of one run."""

    row: StoredRelease
    title: str
    author: Pairs
    owner: Pairs
    """Empty for who is no owner of the data."""


def sides_of(hub: Hub, db: Db, caller: Caller, number: str, _: Callable[[str], str]) -> Sides:
    """A run by the id of its release, for its author, an owner of its data, or a steward; for anybody else there is none."""
    row = db.get(StoredRelease, number)
    algorithm = None if row is None or row.kind != "guest" else db.get(Algorithm, row.algorithm)
    if row is None or algorithm is None:
        raise _missing()
    facts = facts_of(hub, db)
    sets = [facts.data_sets[each] for each in row.data_sets if each in facts.data_sets]
    owns = bool(sets) and all(allowed(hub, db, caller, ADMIT, each).allowed for each in sets)
    if not owns and caller.id != algorithm.provider:
        raise _missing()
    known = [each.name for each in sets if owns or allowed(hub, db, caller, "dataset.see", each).allowed]
    asker = db.get(Person, row.person)
    author = [
        (_("Algorithm"), f"{algorithm.name}, {_('version')} {algorithm.version}"),
        (_("Digest of the code"), row.details["digest"][:16]),
        (_("When"), row.created),
        (_("Purpose"), row.purpose or "–"),
        (_("Institution"), (asker.institution if asker else "") or "–"),
        (_("Data sets"), ", ".join(known) or "–"),
    ]
    owner = [
        (_("Asked by"), asker.name if asker else row.person),
        (_("Cost"), ", ".join(f"{cost} ({population})" for population, cost in row.cost.items())),
        (_("Columns"), ", ".join(row.details["inputs"])),
        (_("Admitted"), row.details.get("provenance") or _("needs no approval")),
        (_("Result"), row.title or row.id),
    ]
    return Sides(row=row, title=algorithm.title, author=author, owner=owner if owns else [])


def _missing() -> Missing:
    return Missing("There is no such run", why="it does not exist, or is not open to you", instead="/algorithms")
