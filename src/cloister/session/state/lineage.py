"""Whose rows a source holds: by what the ledger, and the tables beside it, know of where these rows come from.

A source has marks: a digest of its address as it is written, and one of each name of its lineage, which the server or the disk
that holds the rows tells (`Source.lineage`): the relations of a database by the names that their server gives them, a file by its
place on the disk and by what is in it. The ledger keeps which population a mark belongs to, for good. So two tables with a mark
in common are of one population, whatever their addresses look like: that one is taken where a table names none, and any other is
refused (promise 6).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from cloister.errors import InvalidParameter
from cloister.ledger import Ledger
from cloister.tables import PrivateTable
from cloister.tables.sourcing.sources import Source


@dataclass(frozen=True, kw_only=True)
class Marks:
    """By what the ledger knows rows again."""

    own: frozenset[str] = frozenset()
    """Of the rows that are meant: those of a part (`Source.part`) have marks of their own."""
    whole: frozenset[str] = frozenset()
    """Of all that they come from, whichever part is meant."""

    def __sub__(self, other: Marks) -> Marks:
        return Marks(own=self.own - other.own, whole=self.whole - other.whole)


class SharedRows(InvalidParameter):
    """That a table was refused, because its rows are those of other populations. The names of these, and by what the rows were
    known again, are for the person who holds the tables."""

    stored = "SharedRows"

    def __init__(self, what: str, populations: Iterable[str], whole: frozenset[str], *, why: str, instead: str) -> None:
        self.populations, self.whole = frozenset(populations), whole
        super().__init__(what, why=why, instead=instead)


def identity_digest(identity: str) -> str:
    """A source's identity as the ledger keeps it: a digest, since an address may hold more than the ledger's readers should
    see."""
    return hashlib.sha256(identity.encode()).hexdigest()


def marks_of(source: Source, ledger: Ledger) -> Marks:
    """The marks of a source, as its rows are now. Those of its lineage are keyed, so that nobody who reads the ledger can try
    files against them."""
    identity, lineage = source.identity(), source.lineage()
    own = {ledger.derive("lineage", each, *([source.part] if source.part else [])).hex() for each in lineage}
    if identity is not None:
        own.add(identity_digest(identity))
    return Marks(own=frozenset(own), whole=frozenset(ledger.derive("lineage", each).hex() for each in lineage))


def one_population(name: str, table: PrivateTable, known: Collection[str], marks: Marks) -> str:
    """The population of a table whose rows are those of the populations that are `known`: its own name where there is none."""
    found = dict.fromkeys(known)
    population = table.population or next(iter(found), name)
    others = [each for each in found if each != population]
    if not others:
        return population
    if len(found) == 1:
        [other] = others
        raise SharedRows(
            f"The table {name!r} was refused as of population {population!r}",
            found,
            marks.whole,
            why=f"its rows are those of population {other!r}, which keeps what it has spent",
            instead=f'population="{other}"',
        )
    named = ", ".join(map(repr, sorted(found)))
    raise SharedRows(
        f"The table {name!r} was refused",
        found,
        marks.whole,
        why=f"its rows are those of the populations {named}, whose budgets are apart",
        instead="one of the tables that it is made of, with the population of that one",
    )
