"""A site: one owner's table, with the owner's own key, ledger and policy. Exact values of its rows exist here and nowhere else.

The site declares its table for itself, and takes part in questions about a table that is declared the same. Of each request
it works out what it can cost a person (`accounting.py`), asks its owner's policy, reserves that in its own ledger, and only
then shows a key of the round. The charge stands whatever becomes of the round. What leaves are numbers with the site's share
of the noise, under masks (`rounds.py`).

Until the policy has said yes, a request is a text that is read by the site's declaration, and nothing more: no row is read, no
query is compiled, no file is opened. Where the text looks rows up in a public table, whose rows decide what it costs, the policy
is asked about that first. One plan may keep the engine busy for so long as the owner says, and no longer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from cloister.crypto import SigningKey, canonical_json
from cloister.errors import AccessDenied, BudgetExceeded, EngineError, InvalidDeclaration, UnknownTable
from cloister.ledger import Ledger, Reservation
from cloister.noise import Random, default_random
from cloister.privacy import ZCDP, Guarantee, PureDP
from cloister.privacy.rational import legible
from cloister.session.questions.limits import Clock, checked_limit, stopped_after
from cloister.session.state.view import rebuilt
from cloister.tables import Answering, Base, Domain, Prepared, PrivateTable, PublicTable, Relation, Workspace, prepare, relate
from cloister.tables.engines.engine import Compiled
from cloister.tables.engines.noised import Cells, NoisedRequest, exact_integers
from cloister.tables.engines.row_sums import FeatureRows, Fit
from cloister.tables.relations.public import checked
from cloister.tables.sourcing.sources import CsvSource, ParquetSource
from cloister.together.accounting import cost_of, with_besides
from cloister.together.checking import check_request
from cloister.together.journal import Journal, MemoryJournal
from cloister.together.plan import Plan, declaration_of, round_about, shares_of
from cloister.together.reading import request_from
from cloister.together.reading_relations import Over
from cloister.together.roster import Roster, SignedRoster
from cloister.together.rounds import Round, SiteRound

HUB_NAME = "the hub"
TIME_LIMIT = 300.0
"""Seconds that one plan may take at a site, if its owner says nothing else."""
_ROSTERS = "rosters"
"""The journal of the newest roster of each hub; those of rounds have names of hexadecimal digits."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a site's policy decides on: which table, what it costs each person here, and the request itself."""

    table: str
    cost: Guarantee
    request: NoisedRequest
    purpose: str = ""
    """For what, as the hub has it; a site believes that as far as it believes the hub."""
    who: str = ""
    """For whom, likewise."""
    round: str = ""
    """The round that is about to be charged; empty while the hub asks in advance."""
    whole: Guarantee | None = None
    """What all steps of a descent over rows cost each person here together, of which this request is one: a yes is for all."""
    label: str = ""
    """What the owner calls the table, where the site has several."""
    looks_up: str = ""
    """A public table of this site that a request looks rows up in. Where it is named, no more is asked than whether the site may
    open it, which costs nobody anything; what the request is and costs is asked afterwards."""


class OutOfTime(EngineError):
    """A plan took longer at a site than its owner allows."""

    stored = "OutOfTime"


Policy = Callable[[Asked], str | None]
"""Says why a request is denied; None where it is not."""


class Site:
    """One owner's part in a joint table.

    `table` is declared by the owner, `budget` written when the site's ledger is first opened. `public_tables` are tables that
    everybody may see, by the names that the hub calls its own: a question that looks rows up in one is answered where both have
    the same rows in it. `policy` says why a request is denied, or None. `time_limit` is how many seconds one plan may take here.
    An owner with several tables has a site of the same name, key, ledger and journal for each, whose `label` says which it is.
    A site with a ledger or a key of its own keeps a journal in a folder beside them, so that it does not answer one message
    twice; without any of the three it ends with its process.

    >>> from cloister.privacy import PureDP
    >>> from cloister.tables import Integer
    >>> north = Site("north", PrivateTable({"age": [39, 51]}, columns={"age": Integer(17, 90)}), budget=PureDP(1))
    >>> north.spent, len(north.public)
    (PureDP(epsilon='0'), 32)
    """

    def __init__(
        self,
        name: str,
        table: PrivateTable,
        *,
        public_tables: Mapping[str, PublicTable] | None = None,
        budget: Guarantee | None = None,
        ledger: Ledger | None = None,
        policy: Policy | None = None,
        key: SigningKey | None = None,
        journal: Journal | None = None,
        random: Random | None = None,
        time_limit: float = TIME_LIMIT,
        label: str = "",
    ) -> None:
        checked_limit(time_limit)
        if journal is None and (ledger is not None or key is not None):
            raise InvalidDeclaration(
                f"The site {name!r} has no journal",
                why="its ledger or its key outlasts the process, and after a restart it would answer a round again",
                instead="journal=Journal(folder)",
            )
        self.name, self.table, self.policy, self.time_limit, self.label = name, table, policy, time_limit, label
        self.public_tables = {each: checked(each, table) for each, table in (public_tables or {}).items()}
        self.ledger, self.journal = ledger or Ledger(), journal or MemoryJournal()
        self.population = table.population or name
        self.random = random or default_random()
        self._key = key or SigningKey.generate()
        self._rosters: dict[bytes, SignedRoster] = {}
        self.ledger.open(self.population, budget, who=name)

    @property
    def public(self) -> bytes:
        """The public half of the site's key."""
        return self._key.public

    @cached_property
    def declared(self) -> str:
        """A digest of how its owner declares the table, under its own key: others see whether it changed, no more."""
        return self.ledger.derive("declaration", declaration_of(self.table), str(self.table.through)).hex()

    @property
    def spent(self) -> Guarantee:
        """What the site's own ledger has charged."""
        return self.ledger.spent(self.population)

    def sign(self, roster: Roster) -> bytes:
        """The owner agrees to a roster."""
        if roster.sites.get(self.name) != self.public:
            raise InvalidDeclaration(
                "The roster was not signed",
                why=f"{self.name!r} is not in it under its own key",
                instead="a roster with this site",
            )
        return self._key.sign(roster.text)

    def join(self, signed: SignedRoster) -> None:
        """Take part under a roster that all signed; a later one of the same hub has to follow on it. The journal has the newest:
        after a restart, too, the next has to follow on it, and none is joined that it took the place of."""
        hub = signed.roster.hub
        kept = self.journal.of(_ROSTERS)
        with kept.locked():
            newest, digest, before = _joined(kept.get(hub.hex()))
            before = before or self._rosters.get(hub)
            if before is None or signed.roster == before.roster:
                signed.check()
            elif signed.roster.epoch > newest:
                signed.check_after(before, missed=True)
            number = signed.roster.epoch
            if number < newest or (number == newest and digest != signed.roster.digest):
                raise InvalidDeclaration(
                    f"A roster of number {number} is refused",
                    why=f"the site {self.name!r} joined number {newest} of this hub before",
                    instead="the roster that it joined last, or the one after it",
                )
            kept.put(hub.hex(), f"{number} {signed.roster.digest}\n{canonical_json(signed.plain())}".encode())
            self._rosters[hub] = signed

    def joined(self) -> list[SignedRoster]:
        """The newest roster of each hub that the journal has: take part again after a restart."""
        kept = self.journal.of(_ROSTERS)
        found = [signed for name in kept.names() if (signed := _joined(kept.get(name))[2]) is not None]
        for signed in found:
            self.join(signed)
        return found

    def check(self, roster: Roster) -> None:
        """Refuses a roster that this site did not join, or that another took the place of."""
        joined = self._rosters.get(roster.hub)
        if joined is None or joined.roster != roster:
            raise _no_part(self.name, "it did not join this roster", "the roster that it joined last")

    def check_declared(self, columns: Mapping[str, Domain], unit: str | None, max_rows: int | None) -> None:
        """Refuses a joint table that is declared otherwise than the owner declared this one."""
        own = self.table
        for name, domain in columns.items():
            if own.columns.get(name) != domain:
                raise _otherwise(self.name, f"column {name!r}", own.columns.get(name), domain)
        if own.through is not None:
            raise _otherwise(self.name, "unit", f"{own.unit} through {own.through}", unit)
        if own.unit != unit or own.max_rows != max_rows:
            raise _otherwise(self.name, "unit", (own.unit, own.max_rows), (unit, max_rows))

    def part(self, table: PrivateTable) -> SitePart:
        """This site's rows for a joint table of that declaration, made ready; refused where the owner declared otherwise."""
        own = self.table
        self.check_declared(table.columns, table.unit, table.max_rows)
        source = own.source.given if isinstance(own.source, CsvSource | ParquetSource) else own.source  # as it is written now
        kept = PrivateTable.declared(source, table.columns, like=own)
        secret = self.ledger.derive("order of the rows", self.name).hex()
        return SitePart(self, prepare(kept, secret=secret, workspace=Workspace.of()), Over(table=kept, public=self.public_tables))


@dataclass
class SitePart:
    """A site's prepared rows, or a relation over them, as the site alone can read them."""

    site: Site
    rows: Answering
    over: Over
    """What a relation that is read from its text stands on."""
    declared: PrivateTable | Relation = field(init=False)
    _last: tuple[str, Guarantee] | None = field(init=False, default=None)
    _features: tuple[Fit, FeatureRows] | None = field(init=False, default=None)
    _about: SitePart | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.declared = self.rows.declaration  # type: ignore[attr-defined]

    def related(self, relation: Relation, name: str, public: Mapping[str, PublicTable] | None = None) -> SitePart:
        """The relation over this site's rows, joined with public tables here."""
        if not isinstance(self.rows, Prepared):
            raise UnknownTable(f"The table {name!r} is not known", why="it is made of another", instead="a joint table")
        base, over = Base(name=name, table=self.over.table), Over(table=self.over.table, public=public or {})
        return SitePart(self.site, relate(rebuilt(relation, lambda _: base), {name: self.rows}, public), over)

    def read(self, plan: Plan, round_id: str = "") -> NoisedRequest:
        """The request of a plan, about these rows or a relation over them. What the owner's rules deny whatever it is stays
        unread, and no public table is opened before the owner's policy was asked about that."""
        denies = getattr(self.site.policy, "denies", None)
        if denies is not None:
            self._denied(denies(plan.purpose, plan.who))
        over = replace(self.over, may_open=partial(self._may_open, plan, round_id))
        return request_from(plan.request, self.over.table.columns, over)

    def about(self, request: NoisedRequest) -> SitePart:
        """The rows that a request is about, which was read from its text: these, or its relation over them."""
        if self._declared(request) is self.declared:
            return self
        assert isinstance(request.table, Relation)
        if self._about is None or self._about.declared.digest != request.table.digest:  # type: ignore[union-attr]
            [name] = request.names
            self._about = self.related(request.table, name, self.over.public)
        return self._about

    def round(self, request: NoisedRequest, plan: Plan, signed: SignedRoster) -> Round:
        """The round about a request that was read, as this site works it out. A request that is no linear one of what it is about
        is refused: its sizes, before anything is as large as they say."""
        check_request(request, declared := self._declared(request))
        return round_about(request, plan, signed, declared.columns)

    def compiled(
        self, request: NoisedRequest, plan: Plan | None = None, besides: Iterable[Guarantee] = (), round_id: str = ""
    ) -> Compiled:
        """The site's own plans for a request, which it agrees to as far as it can tell in advance: nothing is charged yet.
        `besides`: what others cost that would be under the same charge. A round that stands in its ledger was agreed to."""
        if not round_id or not self.site.ledger.charges(self.site.population, what=round_id):
            self._agreed(request, plan, besides=besides)
        return self._made(request)

    def take_part(self, round_: Round, request: NoisedRequest) -> SiteRound:
        """The site's part in a round about a request, whose text is in the plan that the hub signs."""
        site = self.site
        site.check(round_.roster)
        plan = Plan.read(round_.plan)
        if plan.request != request.canonical():
            raise _no_part(site.name, "the plan is about another request", "the request of the plan")
        read = self.read(plan, round_.id)  # what is signed is what is done
        about = read.table if isinstance(read.table, Relation) else None
        if isinstance(self.declared, Relation) and (about is None or about.describe() != self.declared.describe()):
            raise _no_part(site.name, "the plan is about other rows than were made ready", "the relation of the plan")

        plans: list[Compiled] = []

        def agree() -> None:
            cost = self._agreed(read, plan, round_.id)
            plans.append(self._made(read))  # what can't be is refused before it is charged
            if not self._paid(round_.id, cost):
                site.ledger.reserve({site.population: cost}, who=HUB_NAME, what=round_.id, purpose=plan.purpose, rerun=False)

        def settle() -> None:
            """The ledger knows, too, which charges rows were read under: a journal that was restored from a copy does not."""
            charges = site.ledger.charges(site.population, what=round_.id)
            before = any(each.state == "settled" for each in charges)
            enough = plans or self._paid(round_.id, cost_of(read, self._declared(read)))  # what is declared may be another now
            held = "rows read in this round before" if before else "no charge for this round that is enough"
            if not charges or before or not enough:
                raise EngineError(
                    f"The site {site.name!r} dropped out",
                    why=f"its ledger has {held}",
                    instead="a new question, which is charged again",
                )
            last = charges[-1]
            assert last.cost is not None
            found = Reservation(id=last.id, costs={site.population: last.cost}, who=last.who, what=last.what)
            site.ledger.settle(found, round_.id.encode(), marked=site.random.marked)

        return SiteRound(
            site.name,
            site._key,
            round_,
            lambda: self._numbers(round_, read, plans[-1] if plans else self._made(read, charged=True)),  # after a restart
            agree=agree,
            settle=settle,
            journal=site.journal,
            random=site.random,
        )

    def _agreed(
        self, request: NoisedRequest, plan: Plan | None, round_id: str = "", besides: Iterable[Guarantee] = ()
    ) -> Guarantee:
        """What it costs here, if the owner's policy and the budget allow it."""
        site, last, text = self.site, self._last, request.under("").canonical()
        cost = last[1] if last is not None and last[0] == text else cost_of(request, self._declared(request))
        self._last = (text, cost)  # it is asked for before the charge, and again under it
        purpose, who = ("", "") if plan is None else (plan.purpose, plan.who)
        whole = None if request.fit is None else ZCDP(request.fit.most)
        if whole is not None and not cost <= whole:
            raise _no_part(
                site.name, f"a step costs {cost} there, and all of them are said to cost {whole}", "steps that cost what they say"
            )
        how: dict[str, Any] = {"purpose": purpose, "who": who, "round": round_id, "whole": whole, "label": site.label}
        self._denied(None if site.policy is None else site.policy(Asked(table=site.name, cost=cost, request=request, **how)))
        remaining = site.ledger.remaining(site.population)
        needed = with_besides(cost if whole is None or round_id else whole, besides, remaining)  # to its end
        if not needed <= remaining and not self._paid(round_id, cost):
            raise BudgetExceeded(
                f"The site {site.name!r} takes no part",
                why=f"the request costs {legible(needed)} there, and {legible(remaining)} of the site's own budget is left",
                instead="a smaller spend=, or a budget that the site's owner raises; one in ρ takes Laplace and Gaussian noise",
            )
        return cost

    def _paid(self, round_id: str, cost: Guarantee) -> bool:
        """Whether a process that was stopped before it answered left a charge for this round, under which no row was read."""
        charges = self.site.ledger.charges(self.site.population, what=round_id) if round_id else []
        return any(each.state == "reserved" and each.cost is not None and cost <= each.cost for each in charges)

    def _denied(self, why: str | None) -> None:
        """Raises what the owner's policy denies."""
        if why is not None:
            raise AccessDenied(
                f"The site {self.site.name!r} denied a request", why=why, instead="a request that its owner allows"
            )

    def _may_open(self, plan: Plan, round_id: str, name: str) -> None:
        """Asks the owner's policy whether a plan may look rows up in a public table."""
        if self.site.policy is not None:
            none = NoisedRequest(table=name, aggregations=(), integers=(), cells=Cells())
            how: dict[str, Any] = {"purpose": plan.purpose, "who": plan.who, "round": round_id, "looks_up": name}
            how["label"] = self.site.label
            self._denied(self.site.policy(Asked(table=self.site.name, cost=PureDP(0), request=none, **how)))

    def _declared(self, request: NoisedRequest) -> PrivateTable | Relation:
        """What a request is about, as this site declares it: its text was read by this site's own table."""
        return self.declared if isinstance(self.declared, Relation) or isinstance(request.table, str) else request.table

    def _made(self, request: NoisedRequest, *, charged: bool = False) -> Compiled:
        """The relation over the rows, and the engine's plans, once the owner's policy said yes."""
        with self._in_time(charged=charged):
            part = self.about(request)
            return part.rows.compiled(request)

    @contextmanager
    def _in_time(self, *, charged: bool) -> Iterator[Clock]:
        """Stops the engine when the owner's time limit is over, and says so, whatever the engine made of it."""
        with stopped_after(self.site.time_limit, [self.rows]) as clock:
            try:
                yield clock
            finally:
                if clock.over:
                    raise _out_of_time(self.site.name, self.site.time_limit, charged) from None

    def _numbers(self, round_: Round, request: NoisedRequest, compiled: Compiled) -> Any:
        """All integers of the request over this site's rows, each with the site's share of its noise, one after another.

        Whatever fails when rows are read looks alike from outside, and has no cause and no frames: what an engine says may be
        of a row. That the time was over is said, since whoever waits sees it. The charge stands.
        """
        try:
            return self._added_up(round_, request, compiled)
        except BaseException as error:  # SystemExit and the like hold words too
            kind = type(error)
        if kind is OutOfTime:
            raise _out_of_time(self.site.name, self.site.time_limit, True)
        if kind is KeyboardInterrupt:
            raise KeyboardInterrupt
        raise EngineError(
            f"The site {self.site.name!r} dropped out",
            why="it could not read its rows; what was charged stays charged",
            instead="a new question, which is charged again",
        )

    def features(self, fit: Fit) -> FeatureRows:
        """The rows as a descent sees them, kept for its next step: only the last descent's."""
        kept = self._features
        if kept is None or kept[0] != fit:
            kept = self._features = fit, self.rows.features(fit)
        return kept[1]

    def _added_up(self, round_: Round, request: NoisedRequest, compiled: Compiled) -> Any:
        about = self.about(request)
        rows, parts = about.rows, []
        with self._in_time(charged=True) as clock:
            found = [rows.aggregate(asked, plan) for asked, plan in zip(request.asked, compiled, strict=True) if not clock.over]
            if clock.over:
                return None  # it is said why
            exact = exact_integers(request, found, about.features)
            for integers, shares in shares_of(round_, request):
                numbers = np.asarray(exact[integers.name]).reshape(-1)
                noise = shares.share.sample(0 if clock.over else numbers.size, random=self.site.random)
                parts.append(numbers.astype(object) + noise.astype(object) if round_.words > 1 else numbers + noise)
        return np.concatenate(parts)


def _joined(text: bytes | None) -> tuple[int, str, SignedRoster | None]:
    """The newest roster as a journal has it: its number, digest, and itself where the journal keeps it."""
    head, _, body = (text or b"0 ").decode().partition("\n")
    number, digest = head.split(" ")
    return int(number), digest, SignedRoster.from_plain(json.loads(body)) if body else None


def _out_of_time(site: str, seconds: float, charged: bool) -> OutOfTime:
    return OutOfTime(
        f"The site {site!r} stopped a request",
        why=f"it took longer than the {seconds:g} seconds that its owner allows; "
        + ("what was charged stays charged" if charged else "nothing was charged"),
        instead="fewer groups or computed columns; or its owner sets a longer time_limit",
    )


def _otherwise(site: str, what: str, own: object, joint: object) -> InvalidDeclaration:
    return _no_part(site, f"it declares the {what} as {own}, and the joint table as {joint}", f"{own}")


def _no_part(site: str, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"The site {site!r} takes no part", why=why, instead=instead)


def signed_by(sites: Mapping[str, Site], roster: Roster) -> SignedRoster:
    """The roster that all of these sites sign, and take part under.

    >>> from cloister.tables import Integer
    >>> from cloister.privacy import PureDP
    >>> table = PrivateTable({"age": [39]}, columns={"age": Integer(17, 90)})
    >>> sites = {name: Site(name, table, budget=PureDP(1)) for name in "abc"}
    >>> roster = Roster(sites={name: site.public for name, site in sites.items()}, hub=bytes(32), missing=0)
    >>> signed_by(sites, roster).roster.quorum
    3
    """
    signed = SignedRoster(roster, {name: site.sign(roster) for name, site in sites.items()})
    for site in sites.values():
        site.join(signed)
    return signed
