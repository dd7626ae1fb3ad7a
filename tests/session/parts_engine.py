"""An engine whose rows are in several parts, and whose exact aggregates exist nowhere: a stand-in for sites that don't trust
one another.

Each part is a DuckDB table of its own. It applies the linear maps of a request to its own rows, adds its share of the noise,
and the engine sees the sum of the parts alone. Shares are drawn exactly (`cloister.noise.shares`). There is no cryptography
here: what is tested is that session, query and learn need nothing of an engine beyond `noised`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np

from cloister.errors import UnsupportedQuery
from cloister.noise import Random
from cloister.noise.shares import NoiseShares
from cloister.session.state.view import rebuilt
from cloister.tables import Abilities, Answering, Base, Prepared, PrivateTable, PublicTable, Relation, Workspace, prepare, relate
from cloister.tables.engines.engine import Compiled, PreparationReport, Site
from cloister.tables.engines.noised import Integers, Noised, NoisedRequest, exact_integers
from cloister.tables.sourcing.source_factory import recognise
from cloister.tables.sourcing.sources import Source

Drawing = Literal["shares", "one"]


@dataclass(kw_only=True)
class Parties:
    """Who takes part: how noise is drawn, and what was recorded of it for tests."""

    parts: int
    drawing: Drawing = "shares"
    """`one`: by the session's own generator, as an engine of one part draws it."""
    may_miss: int = 0
    """How many of the parts may be missing or dishonest: shares are sized for the others."""
    missing: int = 0
    """How many of the parts are missing."""
    overlap: int = 1
    residuals: list[tuple[Any, np.ndarray[Any, Any]]] = field(default_factory=list)
    """For tests: the noise that was in each integer, with the law that the engine said."""
    requests: list[NoisedRequest] = field(default_factory=list)

    def randoms(self) -> list[Random]:
        """One generator a part."""
        return [Random.deterministic(1000 + part) for part in range(self.parts)]


class InParts(Source):
    """Rows in several dictionaries of lists of the same columns."""

    engine: ClassVar[str] = "parts"

    def __init__(self, rows: Sequence[Mapping[str, Any]], parties: Parties | None = None) -> None:
        self.sources = [recognise(each) for each in rows]
        self.parties = parties or Parties(parts=len(rows))
        self.schema = dict(self.sources[0].schema)

    def describe(self) -> str:
        """What it is."""
        return "rows in parts"

    def make_engine(self) -> PartsEngine:
        """The engine of these parts."""
        return PartsEngine(self)


class PartsEngine:
    """Prepares each part by itself."""

    name = "parts"

    def __init__(self, source: InParts) -> None:
        self.source = source
        self.abilities = Abilities(
            additive_noise_only=True, declared_keys_only=True, rows=False, parts_of_a_person=source.parties.overlap
        )

    def prepare(self, table: PrivateTable, *, workspace: Workspace, secret: str | None = None) -> Prepared:
        """The parts, ready to be asked."""
        parts = [
            prepare(PrivateTable.declared(each, table.columns, like=table), secret=secret, workspace=workspace)
            for each in self.source.sources
        ]
        return PartsPrepared(table, parts, self.source.parties)


def _nowhere(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("exact values of all parts exist nowhere")


class InEachPart(Answering):
    """What several parts answer together."""

    parts: Sequence[Answering]
    parties: Parties
    randoms: list[Random]
    drawn: set[tuple[str, int]]

    aggregate = each = rows = _fetch = _stream = plan = _planned = staticmethod(_nowhere)  # type: ignore[assignment]

    def compiled(self, request: NoisedRequest) -> Compiled:
        """Each part's plans. The text of the request is made first: what is not linear has none."""
        request.canonical()
        return tuple(part.compiled(request) for part in self.parts)

    def noised(self, request: NoisedRequest, compiled: Compiled, random: Random) -> Noised:
        """The sum of the parts, each with its share of the noise."""
        assert request.charge
        assert (request.charge, request.number) not in self.drawn, "noise is drawn once under a charge"
        self.drawn.add((request.charge, request.number))
        self.parties.requests.append(request)
        present = list(zip(self.parts, compiled, self.randoms, strict=True))[: len(self.parts) - self.parties.missing]
        exact = [
            exact_integers(request, [part.aggregate(asked, plan) for asked, plan in zip(request.asked, plans, strict=True)])
            for part, plans, _ in present
        ]
        values, laws = {}, {}
        for each in request.integers:
            mine = [found[each.name] for found in exact]
            values[each.name], laws[each.name] = self._noised(each, mine, [own for *_, own in present], random)
            self.parties.residuals.append((laws[each.name], np.asarray(values[each.name] - sum(mine)).ravel()))
        return Noised(values, laws)

    def _noised(self, integers: Integers, exact: list[Any], randoms: list[Random], random: Random) -> tuple[Any, Any]:
        law: Any = integers.law
        if self.parties.drawing == "one":
            return np.asarray(law.release(sum(exact), random=random)), law
        honest = len(self.parts) - self.parties.may_miss
        shares = NoiseShares(law=law, parties=len(self.parts), honest=honest)
        shape = np.shape(exact[0])
        total = sum(
            mine + shares.share.sample(int(np.prod(shape)), random=own).reshape(shape)
            for mine, own in zip(exact, randoms, strict=True)
        )
        return total, shares.total(len(exact))

    def cancel(self, thread: int | None = None) -> None:
        """In each part."""
        for part in self.parts:
            part.cancel(thread)

    def _reading(self, work: Any) -> Any:
        return work()


class PartsPrepared(InEachPart, Prepared):
    """A table in parts."""

    dialect: ClassVar[str] = "duckdb"

    def __init__(self, table: PrivateTable, parts: Sequence[Prepared], parties: Parties) -> None:
        Prepared.__init__(self, table, materialised=True)
        self.parts, self.parties, self.randoms, self.drawn = parts, parties, parties.randoms(), set()

    def related(
        self, relation: Relation, prepared: Mapping[str, Prepared], public: Mapping[str, PublicTable] | None
    ) -> Answering:
        """The relation in each part, as long as it is about one table."""
        if len(prepared) > 1 or relation.publics():
            raise UnsupportedQuery(
                f"A join of {' and '.join(prepared)} is not supported",
                why="their rows are in parts, and rows do not leave theirs",
                instead="a query about one of them",
            )
        [name] = prepared
        return PartsRelated(self, relation, name)

    def _close(self) -> None:
        for part in self.parts:
            part.close()  # type: ignore[attr-defined]

    def _bring(self, other: Prepared) -> Site | None:
        return None

    def _publish(self, codes: Any) -> Site:
        _nowhere()

    def _remove(self, site: Site) -> None:
        _nowhere()

    def _owner_report(self) -> PreparationReport:
        _nowhere()

    def _owner_offenders(self, names: list[str]) -> dict[str, list[Any]]:
        _nowhere()


class PartsRelated(InEachPart):
    """A relation over a table in parts."""

    dialect = "duckdb"

    def __init__(self, home: PartsPrepared, relation: Relation, name: str) -> None:
        self.parties, self.randoms, self.drawn, self.workspace = home.parties, home.randoms, home.drawn, home.workspace
        self.declared = relation
        parts: list[Answering] = []
        for part in home.parts:
            assert isinstance(part, Prepared)
            own = Base(name=name, table=part.declaration)
            parts.append(relate(rebuilt(relation, lambda _, own=own: own), {name: part}))  # type: ignore[misc]
        self.parts = parts
