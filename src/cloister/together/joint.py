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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np

from cloister.crypto import SigningKey
from cloister.errors import CloisterError, InvalidDeclaration, UnsupportedQuery
from cloister.noise import Random
from cloister.noise.mechanism import narrowed
from cloister.privacy import Guarantee
from cloister.tables import Abilities, Answering, Domain, Place, Prepared, PrivateTable, PublicTable, Relation, Workspace
from cloister.tables.engines.engine import Compiled
from cloister.tables.engines.noised import Noised, NoisedRequest
from cloister.tables.sourcing.sources import Source
from cloister.together.coordinator import Coordinator, RemoteParts, RemoteSite
from cloister.together.messages import RoundRefused
from cloister.together.plan import Elsewhere, Plan, check_words, round_about, shapes_of, shares_of, token_of
from cloister.together.roster import Roster
from cloister.together.rounds import HubRound, Round, run_round
from cloister.together.site import Site, SitePart, signed_by

_SOURCE_KINDS = {"integer": "integer", "real": "float", "text": "text", "date": "date", "boolean": "boolean", "category": "text"}


def schema_of(columns: Mapping[str, Domain], unit: str | None) -> dict[str, str]:
    """The columns that parts of a table have, elsewhere, and of which kind, as far as its declaration says: a place stands in
    two columns of its source.

    >>> schema_of({"home": Place((4.2, 51.9, 4.5, 52.1), longitude="lon", latitude="lat")}, None)
    {'lon': 'float', 'lat': 'float'}
    """
    found: dict[str, str] = {}
    for name, domain in columns.items():
        if isinstance(domain, Place):
            found |= {domain.longitude: "float", domain.latitude: "float"}
        else:
            found[name] = _SOURCE_KINDS.get(domain.kind, "text")
    return found if unit is None else {unit: "text", **found}


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
    missing: how many sites may collude with the hub; None takes fewer than a third, and at least one. An owner who reads the
        answers knows the noise of its own site, and counts as one that colludes. With 0 the guarantee is towards people who are
        no owner.
    dropouts: how many sites may drop out of a question; None: as many as may collude, where the roster leaves room for it. Of N
        sites with t that collude and d that drop out, the noise has N/(N − t − d) of the variance of one table's, and the
        margin says so: 5/4 for five sites of which one may collude and none drop out, 5/3 where one may drop out, too.
    purpose, who: for what and for whom is asked, where that is not what the session says of each question. Owners see it with
        each plan, and decide by it; they believe it as far as they believe the hub.

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
        sites: Sequence[Site | RemoteSite],
        columns: Mapping[str, Domain],
        unit: str | None = None,
        max_rows: int | None = None,
        population: str | None = None,
        size: int | None = None,
        *,
        overlap: str | int,
        missing: int | None = None,
        dropouts: int | None = None,
        purpose: str = "",
        who: str = "",
        random: Random | None = None,
    ) -> None:
        failing = {"missing": missing, "dropouts": dropouts}
        source = JointSource(sites, columns, unit, overlap=overlap, **failing, purpose=purpose, who=who, random=random)
        super().__init__(source, columns, unit=unit, max_rows=max_rows, population=population, size=size)


class JointSource(Source):
    """The rows of several sites: the hub knows what is declared of them, and who has them."""

    engine: ClassVar[str] = "joint"

    def __init__(
        self,
        sites: Sequence[Site | RemoteSite],
        columns: Mapping[str, Domain],
        unit: str | None,
        *,
        overlap: str | int,
        missing: int | None = None,
        dropouts: int | None = None,
        purpose: str = "",
        who: str = "",
        random: Random | None = None,
    ) -> None:
        check_words(purpose=purpose, who=who)
        self.purpose, self.who = purpose, who
        self.sites = {site.name: site for site in sites}
        self.overlap = _overlap_of(overlap, len(self.sites))
        self.schema = schema_of(columns, unit)
        self.rounds: deque[RoundReport] = deque(maxlen=1000)
        """The latest rounds."""
        self.coordinator = _coordinator_of(sites)
        if self.coordinator is not None:
            self.key, self.roster = self.coordinator.key, self.coordinator.signed
            agreed = self.roster.roster
            for name, given, said in (("missing", missing, agreed.missing), ("dropouts", dropouts, agreed.dropouts)):
                if given not in (None, said):
                    why = "the roster that all sites signed says it already"
                    raise InvalidDeclaration(f"{name}={given!r} is invalid", why=why, instead=f"{name}={said}")
            return
        self.key = SigningKey.generate(random)
        t = max(1, (len(self.sites) - 1) // 3) if missing is None else missing  # an owner who reads an answer counts
        keys = {name: site.public for name, site in self.sites.items()}
        roster = Roster(sites=keys, hub=self.key.public, missing=t, dropouts=dropouts)
        if len(self.sites) < len(sites):
            raise InvalidDeclaration("The sites are invalid", why="two have one name", instead="a name of its own for each site")
        self.roster = signed_by(self._here, roster)

    @property
    def _here(self) -> dict[str, Site]:
        return {name: site for name, site in self.sites.items() if isinstance(site, Site)}

    def parts(self, table: PrivateTable) -> LocalParts | RemoteParts:
        """The sites' rows, ready to be asked."""
        if self.coordinator is not None:
            return RemoteParts(self.coordinator, table)
        return LocalParts([site.part(table) for site in self._here.values()])

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

    def lineage(self) -> frozenset[str]:
        """Each site by its key: another roster with one of them has rows of the same people."""
        return frozenset(f"site {key.hex()}" for key in self.roster.roster.sites.values())

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
            row_sums=True,
            parts_of_a_person=source.overlap,
            shares=(len(roster.sites), roster.honest),
        )

    def prepare(self, table: PrivateTable, *, workspace: Workspace, secret: str | None = None) -> Prepared:
        """The sites, ready to be asked. Which rows of a unit count each site settles for itself."""
        return JointPrepared(table, self.source, workspace, token_of(secret))


class AtSites(Elsewhere):
    """What several sites answer together."""

    parts: LocalParts | RemoteParts
    nowhere: ClassVar[str] = "the rows are at several sites, and only sums with noise leave them"

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
        return self.parts.compiled(request, self._plan(request), round_.id, self._besides(request))

    def noised(self, request: NoisedRequest, compiled: Compiled, random: Random) -> Noised:
        """The sum of the sites' integers with the noise that they made together, and its law."""
        round_ = self._round(request)
        refusals: dict[str, CloisterError] = {}
        journal = getattr(self.source.coordinator, "journal", None)
        hub = HubRound(self.source.key, round_, getattr(self.parts, "declared", None), journal and journal(round_.id))
        try:
            total = run_round(hub, self.parts.asked(round_, request, compiled, refusals), refusals)
        except RoundRefused:
            for error in refusals.values():
                raise error from None
            raise
        self.source.note(request, hub.survivors)
        values, laws, start = {}, {}, 0
        for (each, shares), shape in zip(shares_of(round_, request), shapes_of(request), strict=True):
            size = int(np.prod(shape))
            values[each.name] = narrowed(total[start : start + size]).reshape(shape)
            laws[each.name] = shares.total(len(hub.survivors))
            start += size
        return Noised(values, laws, without=tuple(name for name in self.source.sites if name not in hub.survivors))

    def _round(self, request: NoisedRequest) -> Round:
        """The round about a request: its plan is the request's one text, and where it is asked."""
        return round_about(request, self._plan(request), self.source.roster, self.declared.columns)

    def cancel(self, thread: int | None = None) -> None:
        """At each site."""
        self.parts.cancel(thread)


Answers: TypeAlias = Mapping[str, Callable[[bytes], bytes | None]]


class LocalParts:
    """Sites that are objects of this process."""

    def __init__(self, parts: Sequence[SitePart]) -> None:
        self.parts = parts

    def compiled(self, request: NoisedRequest, plan: Plan, round_id: str, besides: Sequence[Guarantee]) -> Compiled:
        """Each site's plans; raises what one of them refuses."""
        return tuple([part.compiled(request, plan, besides, round_id) for part in self.parts])

    def asked(self, round_: Round, request: NoisedRequest, compiled: Compiled, refusals: dict[str, CloisterError]) -> Answers:
        """How each site is asked in a round: one after another. Why one drops out is noted among the refusals."""
        asked = {part.site.name: part.take_part(round_, request) for part in self.parts}

        def answer(name: str, message: bytes) -> bytes | None:
            if name in refusals:
                return None
            try:
                return asked[name].answer(message)
            except CloisterError as error:  # its owner's refusal; to the others it has dropped out
                refusals[name] = error
                return None

        return {name: partial(answer, name) for name in asked}

    def related(self, relation: Relation, name: str, public: Mapping[str, PublicTable]) -> LocalParts:
        """The relation at each."""
        return LocalParts([part.related(relation, name, public) for part in self.parts])

    def cancel(self, thread: int | None = None) -> None:
        """At each."""
        for part in self.parts:
            part.rows.cancel(thread)

    def close(self) -> None:
        """At each."""
        for part in self.parts:
            part.rows.close()  # type: ignore[attr-defined]


class JointPrepared(AtSites, Prepared):
    """A table at several sites."""

    dialect: ClassVar[str] = "duckdb"

    def __init__(self, table: PrivateTable, source: JointSource, workspace: Workspace, token: str) -> None:
        Prepared.__init__(self, table, materialised=True, workspace=workspace)
        self.parts, self.source, self.base, self.token = source.parts(table), source, table, token

    def related(
        self, relation: Relation, prepared: Mapping[str, Prepared], public: Mapping[str, PublicTable] | None
    ) -> Answering:
        """The relation at each site, as long as it is about this table alone; public tables are joined there."""
        if len(prepared) > 1:
            raise UnsupportedQuery(
                f"A join of {' and '.join(prepared)} is not supported",
                why="the rows are at several sites, and no row leaves its site",
                instead="a query about one table, joined with public ones",
            )
        [name] = prepared
        return JointRelated(self, relation, name, public or {})

    def _close(self) -> None:
        self.parts.close()


class JointRelated(AtSites):
    """A relation over a table at several sites."""

    dialect = "duckdb"

    def __init__(self, home: JointPrepared, relation: Relation, name: str, public: Mapping[str, PublicTable]) -> None:
        self.declared, self.workspace = relation, home.workspace
        self.source, self.token, self.base = home.source, home.token, home.base
        self.parts = home.parts.related(relation, name, public)


def _coordinator_of(sites: Sequence[Site | RemoteSite]) -> Coordinator | None:
    """Of sites that are elsewhere; all of a roster, or none."""
    elsewhere = [site for site in sites if isinstance(site, RemoteSite)]
    if not elsewhere:
        return None
    coordinator = elsewhere[0].coordinator
    if elsewhere != list(sites) or [(each.name, each.coordinator) for each in elsewhere] != [
        (name, coordinator) for name in coordinator.signed.roster.sites
    ]:
        raise InvalidDeclaration(
            "The sites are invalid", why="they are not those of one roster, in its order", instead="sites=coordinator.sites"
        )
    return coordinator


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
