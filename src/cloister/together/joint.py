"""A table whose rows are at several sites: asked like any table, answered by secure sums; nothing exact exists outside a site.

Guarantee: the one that a session states, towards anyone who sees its answers; towards the hub itself, and up to t sites that
show it all they see, the same. *Proof.* All maps of a request are linear, so the integers of the sites add up to those of all
rows, and the hub learns that sum and nothing else (`rounds.py`). In the sum is the noise of at least quorum − t honest sites
(`Roster.honest`), sized to be what was asked for; what more of them add is independent of the rows, and is in the law that the
answer names. A person with rows at up to k sites moves the sum k times as far as one of one site: abilities say so,
and every sensitivity grows by it. ∎ What is not linear, or needs rows, is refused by name before anything is charged.

The hub's charge and those of the sites are apart: each stands in its own ledger, and each errs upward.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NoReturn

import numpy as np

from cloister.crypto import SigningKey
from cloister.errors import CloisterError, EngineError, InvalidDeclaration, UnsupportedQuery
from cloister.noise import Random, default_random
from cloister.noise.laws import LAWS
from cloister.tables import (
    Abilities,
    Answering,
    Domain,
    Groups,
    Prepared,
    PrivateTable,
    PublicTable,
    Relation,
    Workspace,
)
from cloister.tables.engines.engine import Compiled, PreparationReport
from cloister.tables.engines.engine import Site as Place
from cloister.tables.engines.noised import Combination, Integers, LevelSums, Noised, NoisedRequest, exact_integers
from cloister.tables.sourcing.sources import Source
from cloister.together.messages import RoundRefused
from cloister.together.roster import Roster
from cloister.together.rounds import HubRound, Round, run_round
from cloister.together.site import Site, SitePart, plan_of, shares_of, signed_by

_KINDS = {"integer": "integer", "real": "float", "text": "text", "date": "date", "boolean": "boolean", "category": "text"}
_MOST_ROWS = 40
"""Rows of all sites, as a power of two: what sums have room for."""
_LAWS = tuple(each.kind for each in LAWS)


class SitesMissing(UserWarning):
    """Some sites dropped out of a round: the answer is about the rows of the others."""


@dataclass(frozen=True, kw_only=True)
class RoundReport:
    """Who was in one round: public, since everybody sees who answers."""

    charge: str
    number: int
    sites: tuple[str, ...]


class JointTable(PrivateTable):
    """A private table whose rows are at several sites.

    Parameters
    ----------
    sites: who has rows, each declared by its owner as this table is.
    columns, unit, max_rows, population, size: as of any private table; `max_rows` is of one person at one site.
    overlap: at how many sites one person may have rows: "none", or a number from 2 on. It has no default: who claims "none" for
        hospitals of one town promises people half of what they get. If you can't tell, the number of sites is always safe.
    missing: how many sites may collude with the hub, and how many may drop out; None takes fewer than a third, and at least one.
        An owner who reads the answers knows the noise of its own site, and counts as one that colludes. With 0 the guarantee is
        towards people who are no owner.

    >>> from cloister import PureDP, Session
    >>> from cloister.tables import Integer
    >>> columns = {"age": Integer(17, 90)}
    >>> rows = {"north": [39, 51], "south": [22, 80, 64], "west": [33]}
    >>> sites = [Site(name, PrivateTable({"age": ages}, columns=columns), budget=PureDP(100)) for name, ages in rows.items()]
    >>> with Session({"people": JointTable(sites, columns, overlap="none")}, budget=PureDP(100)) as session:
    ...     session.sql("SELECT COUNT(*) AS n FROM people", spend=50).to_pydict()
    {'n': [6]}
    >>> sites[0].spent
    PureDP(epsilon='50')
    """

    __slots__ = ()

    def __init__(
        self,
        sites: Sequence[Site],
        columns: Mapping[str, Domain],
        unit: str | None = None,
        max_rows: int | None = None,
        population: str | None = None,
        size: int | None = None,
        *,
        overlap: str | int,
        missing: int | None = None,
        random: Random | None = None,
    ) -> None:
        source = JointSource(sites, columns, unit, overlap=overlap, missing=missing, random=random)
        super().__init__(source, columns, unit=unit, max_rows=max_rows, population=population, size=size)


class JointSource(Source):
    """The rows of several sites: the hub knows what is declared of them, and who has them."""

    engine: ClassVar[str] = "joint"

    def __init__(
        self,
        sites: Sequence[Site],
        columns: Mapping[str, Domain],
        unit: str | None,
        *,
        overlap: str | int,
        missing: int | None = None,
        random: Random | None = None,
    ) -> None:
        self.sites = {site.name: site for site in sites}
        self.overlap = _overlap_of(overlap, len(self.sites))
        self.schema = {name: _KINDS.get(domain.kind, "text") for name, domain in columns.items()}
        if unit is not None:
            self.schema.setdefault(unit, "text")
        self.key = SigningKey.generate(random)
        t = max(1, (len(self.sites) - 1) // 3) if missing is None else missing  # an owner who reads an answer counts
        roster = Roster(sites={name: site.public for name, site in self.sites.items()}, hub=self.key.public, missing=t)
        if len(self.sites) < len(sites):
            raise InvalidDeclaration("The sites are invalid", why="two have one name", instead="a name of its own for each site")
        self.roster = signed_by(self.sites, roster)
        self.rounds: deque[RoundReport] = deque(maxlen=1000)
        """The latest rounds."""

    def note(self, request: NoisedRequest, survivors: Sequence[str]) -> None:
        """Keeps who was in a round, and warns where that is not everybody."""
        self.rounds.append(RoundReport(charge=request.charge, number=request.number, sites=tuple(survivors)))
        missing = [name for name in self.sites if name not in survivors]
        if missing:
            names = ", ".join(missing)
            warnings.warn(f"{names} dropped out: the answer is about the rows of the other sites", SitesMissing, stacklevel=2)

    def describe(self) -> str:
        """What it is."""
        return f"rows at {len(self.sites)} sites"

    def make_engine(self) -> JointEngine:
        """The engine of these sites."""
        return JointEngine(self)


class JointEngine:
    """Asks every site to make its rows ready."""

    name = "joint"

    def __init__(self, source: JointSource) -> None:
        self.source = source
        roster = source.roster.roster
        self.abilities = Abilities(
            additive_noise_only=True,
            declared_keys_only=True,
            rows=False,
            parts_of_a_person=source.overlap,
            shares=(len(roster.sites), roster.honest),
        )

    def prepare(self, table: PrivateTable, *, workspace: Workspace, secret: str | None = None) -> Prepared:
        """The sites, ready to be asked. Which rows of a unit count each site settles for itself."""
        parts = [site.part(table) for site in self.source.sites.values()]
        return JointPrepared(table, parts, self.source, workspace)


def _nowhere(*_: Any, **__: Any) -> NoReturn:
    raise EngineError(
        "Exact values are not available", why="the rows are at several sites, and only sums with noise leave them", instead="SQL"
    )


class AtSites(Answering):
    """What several sites answer together."""

    parts: Sequence[SitePart]
    source: JointSource
    token: str

    aggregate = each = rows = _fetch = _stream = plan = _planned = staticmethod(_nowhere)

    def compiled(self, request: NoisedRequest) -> Compiled:
        """Each site's plans. What one site's owner refuses is refused, by the site's name and before anything is charged."""
        try:
            request.canonical()
        except TypeError:
            raise UnsupportedQuery(
                "A request that is not linear is not supported", why="sites add up integers and noise", instead="declared keys"
            ) from None
        round_ = self._round(request)
        for _, shares in shares_of(round_, request):
            _ = shares.share  # a share that is too narrow is refused here
        return tuple([part.compiled(request) for part in self.parts])

    def noised(self, request: NoisedRequest, compiled: Compiled, random: Random) -> Noised:
        """The sum of the sites' integers with the noise that they made together, and its law."""
        round_ = self._round(request)
        asked = {part.site.name: part.take_part(round_, request) for part in self.parts}
        refusals: dict[str, CloisterError] = {}

        def answer(name: str, message: bytes) -> bytes | None:
            if name in refusals:
                return None
            try:
                return asked[name].answer(message)
            except CloisterError as error:  # its owner's refusal; to the others it has dropped out
                refusals[name] = error
                return None

        hub = HubRound(self.source.key, round_)
        try:
            total = run_round(hub, {name: partial(answer, name) for name in asked})
        except RoundRefused:
            for error in refusals.values():
                raise error from None
            raise
        self.source.note(request, hub.survivors)
        values, laws, start = {}, {}, 0
        for (each, shares), shape in zip(shares_of(round_, request), _shapes(request), strict=True):
            size = int(np.prod(shape))
            values[each.name] = _narrowed(total[start : start + size]).reshape(shape)
            laws[each.name] = shares.total(len(hub.survivors))
            start += size
        return Noised(values, laws, without=tuple(name for name in asked if name not in hub.survivors))

    def _round(self, request: NoisedRequest) -> Round:
        """The round about a request: its plan is the request's one text, and where it is asked."""
        plan = plan_of(request, self.token)
        numbers = sum(int(np.prod(shape)) for shape in _shapes(request))
        signed = self.source.roster
        words = _words(request, len(signed.roster.sites))
        return Round(signed=signed, plan=plan, numbers=numbers, words=words, number=request.number)

    def cancel(self, thread: int | None = None) -> None:
        """At each site."""
        for part in self.parts:
            part.rows.cancel(thread)

    def _reading(self, work: Any) -> Any:
        return work()


class JointPrepared(AtSites, Prepared):
    """A table at several sites."""

    dialect: ClassVar[str] = "duckdb"

    def __init__(self, table: PrivateTable, parts: Sequence[SitePart], source: JointSource, workspace: Workspace) -> None:
        Prepared.__init__(self, table, materialised=True, workspace=workspace)
        self.parts, self.source = parts, source
        self.token = default_random().bytes(16).hex()  # no two sessions ask one round, whatever their charges are called

    def related(
        self, relation: Relation, prepared: Mapping[str, Prepared], public: Mapping[str, PublicTable] | None
    ) -> Answering:
        """The relation at each site, as long as it is about this table alone."""
        if len(prepared) > 1 or relation.publics():
            raise UnsupportedQuery(
                f"A join of {' and '.join([*prepared, *relation.publics()])} is not supported",
                why="the rows are at several sites, and no row leaves its site",
                instead="a query about one table",
            )
        [name] = prepared
        return JointRelated(self, relation, name)

    def _close(self) -> None:
        for part in self.parts:
            part.rows.close()  # type: ignore[attr-defined]

    def _bring(self, other: Prepared) -> Place | None:
        return None

    def _publish(self, codes: Any) -> Place:
        _nowhere()

    def _remove(self, site: Place) -> None:
        _nowhere()

    def _owner_report(self) -> PreparationReport:
        _nowhere()


class JointRelated(AtSites):
    """A relation over a table at several sites."""

    dialect = "duckdb"

    def __init__(self, home: JointPrepared, relation: Relation, name: str) -> None:
        self.declared, self.workspace = relation, home.workspace
        self.source, self.token = home.source, home.token
        self.parts = [part.related(relation, name) for part in home.parts]


def _shapes(request: NoisedRequest) -> list[tuple[int, ...]]:
    """The shape of each of the request's integers, from what its maps make of no rows."""
    empty: list[Groups] = []
    for aggregation in request.asked:
        length = 0 if aggregation.keys else 1
        keys = tuple(np.zeros(length, dtype=np.int64) for _ in aggregation.keys)
        empty.append(Groups(keys, {each.name: np.zeros(length, dtype=np.int64) for each in aggregation.aggregates}))
    return [np.shape(each) for each in exact_integers(request, empty).values()]


def _words(request: NoisedRequest, sites: int) -> int:
    """How many words of 64 bits have room for every sum, with its noise and sign: at most 2^40 rows in all, and the noise of all
    sites beyond 2^10 scales once in 2^1000 numbers."""
    most = 0
    for each in request.integers:
        law: Any = each.law
        if not isinstance(law, _LAWS):
            continue
        one = (int(law.scale) + 1 << 10) * sites
        most = max(most, (_width(each, request) << _MOST_ROWS) + one)
    return -(-(most.bit_length() + 1) // 64)


def _width(integers: Integers, request: NoisedRequest) -> int:
    """How far one row moves one number."""
    if isinstance(integers.map, Combination):
        return integers.map.width
    if isinstance(integers.map, LevelSums):
        return max(map(abs, request.hierarchies[integers.map.hierarchy].weights))
    return integers.map.strategy.l1


def _narrowed(numbers: Any) -> Any:
    """As 64-bit integers where they fit."""
    if numbers.dtype == object and all(-(2**63) <= number < 2**63 for number in numbers):
        return numbers.astype(np.int64)
    return numbers


def _overlap_of(overlap: object, sites: int) -> int:
    if overlap == "none":
        return 1
    if isinstance(overlap, bool) or not isinstance(overlap, int) or not 2 <= overlap <= sites:
        raise InvalidDeclaration(
            f"overlap={overlap!r} is invalid",
            why="it says at how many sites one person may have rows",
            instead=f'overlap="none", or overlap={sites}, which is always safe',
        )
    return overlap
