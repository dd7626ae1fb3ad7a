"""From what is asked for to a session that may do it: whether this person may, how narrowly, and within which bounds.

1. The work says which columns of which data sets it touches; nothing is spent and no row is read. Its data sets are among those
that the person may see.
2. All of them together are put to the policy with those columns and the terms; the session that does the work knows only the
columns and the rows that the decisions leave. Where a grant's condition on rows reads further columns, the policy is asked again
with those: what the institution, or a policy on a column, closes is not read by a detour.
3. Where a ceiling, a share or a limit on the risk is to be kept, the work says what it would cost in that session, and the policy
is asked again with the money. The bounds go with the session (`bounds.py`), so that no race of requests passes them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, InvalidParameter
from cloister.hub.decisions.checking import check_together, context_of
from cloister.hub.decisions.facts import Facts, facts_of, known_generation, project_of, who_of
from cloister.hub.decisions.held import Decided, Exchanged, Held
from cloister.hub.decisions.policy import Context, Decision, Object, Policy, Spend, decide, derived
from cloister.hub.generation import claim_generation, read_generation
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue import live_of
from cloister.hub.work.bounds import account_of, bounded, bounds_of, money_of
from cloister.privacy import Guarantee
from cloister.query import Session
from cloister.query.views import row_conditions

_ROUNDS = 3
_CARRIED, _MOST_CARRIED = "carried policies", 512

Columns = Mapping[str, frozenset[str]]
"""By data set: by its id, where nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """How a kind of work is spoken of in what refuses it: sentences that are translated, so each is written out."""

    name: str
    """`The query`"""
    invalid: str
    """`The query is invalid`"""
    denied: str
    """`The query was denied`"""
    withheld: str
    """`The answer was not released`"""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What rules look at besides columns and money."""

    action: str
    purpose: str = ""
    project: str = ""
    """The project in which it is asked for: its name or its id; of what was authorised, its id."""
    algorithm: str = ""
    """The id of the algorithm under which it runs; empty for none."""
    method: str = ""

    def context(
        self, hub: Hub, caller: Caller, columns: Columns, behind: Columns, money: Mapping[str, Spend] | None = None
    ) -> Context:
        """What the policy is asked with."""
        return context_of(
            hub,
            caller,
            purpose=self.purpose,
            columns=columns,
            behind=behind,
            project=self.project,
            spend=money,
            algorithm=self.algorithm,
            method=self.method,
        )


class Work(Protocol):
    """Something that is asked for: both of its answers follow from public facts, spend nothing and read no row."""

    @property
    def terms(self) -> Terms:
        """Under which terms."""

    @property
    def words(self) -> Words:
        """How it is spoken of."""

    def touches(self, session: Session) -> Columns:
        """Which columns of which data sets, by name, it reads, among those that the session knows."""

    def costs(self, session: Session) -> Mapping[str, Guarantee]:
        """What it would be charged now, by population: what was bought before is counted in."""


@dataclass(frozen=True, kw_only=True)
class Authorised:
    """What may be done."""

    terms: Terms
    words: Words
    session: Session
    """It knows only what the decisions leave, and charges only within their bounds."""
    objects: tuple[Object, ...]
    decisions: Mapping[str, Decision]
    """By the id of a data set."""
    touched: Columns
    """By the name of a data set."""
    behind: Columns
    """Columns that are read by the conditions of grants on rows: nobody asked about them, and every rule counts them."""
    policy: Policy
    """What is made will carry it."""
    generation: int
    """Of the facts that it was decided on."""
    held: Held
    """The tables that it was decided for: it is done with these, or not at all."""

    @property
    def columns(self) -> list[str]:
        """Every column that is touched, as "data set.column"."""
        return [f"{name}.{column}" for name, columns in self.touched.items() for column in sorted(columns)]

    @property
    def populations(self) -> tuple[str, ...]:
        """Whose people are charged, each once."""
        return tuple(dict.fromkeys(each.population for each in self.objects if each.population))

    @property
    def read(self) -> dict[str, frozenset[str]]:
        """The columns that are touched, by the id of the data set."""
        return {each.id: self.touched[each.name] for each in self.objects}


Wanted = TypeVar("Wanted")


@dataclass(frozen=True, kw_only=True)
class AuthorisedOrder(Authorised, Generic[Wanted]):
    """An order that may be carried out."""

    order: Wanted
    charges: Mapping[str, Guarantee] = field(default_factory=dict)
    """What would be charged of it now, at most, by population."""


def authorise(
    hub: Hub,
    db: Db,
    facts: Facts,
    caller: Caller,
    work: Work,
    seen: Mapping[str, Object],
    *,
    priced: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Authorised:
    """The session that may do the work, or the refusal. `seen`: the data sets that it may mean, by name, of those that the person
    may see. `priced`: whether money is asked about, where any rule or grant speaks of it."""
    terms, words = replace(work.terms, project=project_of(facts, caller, work.terms.project)), work.words
    who = account_of(facts, caller, terms.project)
    live = live_of(hub)
    first = live.session(db, who, tables=seen, progress=progress, generation=facts.generation)
    with first.registry.pinned() as now:
        if not live.held(first, first.tables, facts.generation, now.tables).whole:  # a refusal names them
            raise Exchanged
        asked = dict(work.touches(first))
        own = tuple([seen[name] for name in asked])
        touched, parts = _with_parts(facts, own, asked, work.words)
        held = live.held(first, touched, facts.generation, now.tables)
        objects = (*own, *[each for each in parts if each.name not in asked])
        columns = {each.id: touched[each.name] for each in objects}

        priced = priced and bounded(facts, objects)
        decisions = check_together(hub, db, caller, terms.action, objects, terms.context(hub, caller, columns, {}), facts)
        money: Mapping[str, Spend] = {}
        for _ in range(_ROUNDS):
            _check_parts(parts, decisions, columns, work.words)
            rows, narrow = _reach(own, decisions)
            session, behind = first, _behind(first, own, rows) if rows else {}
            if rows or narrow:
                how: dict[str, Any] = {"rows": rows, "columns": narrow, "progress": progress, "generation": facts.generation}
                session = live.session(db, who, tables=asked, **how)
            if not priced and not behind:
                break
            money = money_of(hub, objects, who, _of_all(facts, own, work.costs(session)), words.name) if priced else {}
            context = terms.context(hub, caller, columns, behind, money)
            decisions = check_together(hub, db, caller, terms.action, objects, context, facts)
            if _reach(own, decisions) == (rows, narrow):
                break
        else:
            raise InvalidParameter(
                words.invalid,
                why="which of your grants applies depends on its cost and its columns",
                instead="columns that one grant covers",
            )
        _check_parts(parts, decisions, columns, words)  # with the money, another grant may decide
        if priced:
            context = terms.context(hub, caller, columns, behind)
            session.keep_within(bounds_of(hub, facts, caller, terms.action, objects, decisions, context, money))
        versions = {each.id: str(getattr(held.tables.get(each.name), "version", None) or "") for each in objects}
        return Authorised(
            terms=terms,
            words=words,
            session=session,
            objects=objects,
            decisions=decisions,
            touched=touched,
            behind=behind,
            policy=_carried(hub, facts, objects, columns, versions, behind),
            generation=facts.generation,
            held=held,
        )


def decided(hub: Hub, decide: Callable[[Db, Facts], Decided]) -> Decided:
    """Decide on the facts of this moment. Where nothing has changed since the last time, all that is asked of the database is
    known, and it is not asked."""
    with hub.database.looking() as connection:
        now = read_generation(connection)
    settled = known_generation(hub) == now and live_of(hub).is_of(now)
    with hub.database.reading(late=settled) as db:
        if settled:
            claim_generation(db, now)
        return decide(db, facts_of(hub, db))


def visible(hub: Hub, caller: Caller, facts: Facts, which: Object) -> bool:
    """Whether somebody may know that a data set exists, whatever their token was made for."""
    return sight(hub, caller, facts)(which)


def sight(hub: Hub, caller: Caller, facts: Facts) -> Callable[[Object], bool]:
    """The same for several data sets at one moment."""
    who, context = replace(who_of(caller, facts), token_scopes=None), context_of(hub, caller)
    return lambda which: decide(who, "dataset.see", which, context, facts.mandatory).allowed


def _carried(
    hub: Hub, facts: Facts, objects: Sequence[Object], columns: Columns, versions: Mapping[str, str], behind: Columns
) -> Policy:
    """The policy that what is made will carry. It decides nothing here; it follows from the facts and from what is read, and is
    computed once for these."""
    known: tuple[Facts, dict[Any, Policy]] | None = hub.parts.get(_CARRIED)
    if known is None or known[0] is not facts or len(known[1]) >= _MOST_CARRIED:
        known = hub.parts[_CARRIED] = (facts, {})
    key = tuple([(each.id, columns[each.id], versions[each.id], behind.get(each.id)) for each in objects])
    policy = known[1].get(key)
    if policy is None:
        policy = known[1][key] = derived(((each, columns[each.id]) for each in objects), versions, behind)
    return policy


def _with_parts(
    facts: Facts, own: Iterable[Object], asked: Columns, words: Words
) -> tuple[dict[str, frozenset[str]], Collection[Object]]:
    """What is touched, by name: of a data set that is made of others, the same columns of each of these; and these, each once."""
    touched = {name: frozenset(columns) for name, columns in asked.items()}
    parts: dict[str, Object] = {}
    for which in own:
        for each in which.parts:
            part = facts.data_sets.get(each)
            if part is None:
                why = f"one of the data sets that {which.name} is made of was deleted"
                raise AccessDenied(words.denied, why=why, instead="another data set")
            touched[part.name] = touched.get(part.name, frozenset()) | touched[which.name]
            parts[each] = part
    return touched, parts.values()


def _of_all(facts: Facts, own: Iterable[Object], costs: Mapping[str, Guarantee]) -> dict[str, Guarantee]:
    """The costs by population, where work names that of the whole alone: each part's is charged the same."""
    found = dict(costs)
    for which in own:
        for each in which.parts:
            if which.population in costs:
                found.setdefault(facts.data_sets[each].population, costs[which.population])
    return found


def _check_parts(parts: Iterable[Object], decisions: Mapping[str, Decision], columns: Columns, words: Words) -> None:
    """The rows of several owners are added up whole: a grant that opens some rows, or other columns, opens no such sum."""
    for each in parts:
        narrowed = decisions[each.id].narrowed
        if narrowed.rows or (narrowed.columns is not None and not columns[each.id] <= narrowed.columns):
            why = f"your grant on {each.name} opens only a part of it, and all of its rows would be in the sum"
            raise AccessDenied(words.denied, why=why, instead="a grant on the whole data set, from its owner")


def _reach(objects: tuple[Object, ...], decisions: Mapping[str, Decision]) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """The rows and the columns that the decisions leave, where they leave less than all."""
    rows, columns = dict[str, str](), dict[str, frozenset[str]]()
    for each in objects:
        narrowed = decisions[each.id].narrowed
        if narrowed.rows:
            rows[each.name] = narrowed.rows
        if narrowed.columns is not None:
            columns[each.name] = narrowed.columns & each.columns
    return rows, columns


def _behind(session: Session, own: Sequence[Object], rows: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """The columns that the conditions on rows read, by data set; of the parts too."""
    conditions = row_conditions(rows, session.tables)
    found = {each.id: frozenset(conditions[each.name].columns()) for each in own if each.name in conditions}
    behind = dict(found)
    for which in own:
        for each in which.parts if which.id in found else ():
            behind[each] = behind.get(each, frozenset()) | found[which.id]
    return behind
