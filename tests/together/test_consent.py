"""What a site does before its owner said yes, and what it stops: a request that is denied is read as a text, and no further."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import cloister as cl
from cloister.crypto import canonical_json
from cloister.noise import DiscreteLaplace
from cloister.tables import Aggregation, In, Like, Or, PublicTable
from cloister.tables.engines.duckdb import DuckDBPrepared
from cloister.tables.engines.noised import Cells, Combination, Hierarchy, Integers, LevelSums, NoisedRequest
from cloister.tables.relations import public
from cloister.together import Asked, MemoryJournal, SiteAgent, site
from cloister.together.messages import Message, opened
from cloister.together.owner import OwnersPolicy, Rule
from cloister.together.plan import Plan, round_about
from cloister.together.reading import request_from
from cloister.together.wording import words_of
from tests.together.test_wire import COUNT, from_hub
from tests.together.wired import COLUMNS, asked, coordinator_of, roster_of, running, signed_by, site_of

ROWS = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
PLAIN = NoisedRequest(table="people", aggregations=(Aggregation(None),), integers=(ROWS,), cells=Cells(), charge="1")
LOOKED_UP = ["looked up", ["table", "people"], "sexes", "00", [["sex", "name"]], [["size", "size"]], False]
OLD = ["filtered", ["table", "people"], ["compare", ">", ["column", "age"], ["literal", "number", "40"]]]
SIZES = {"sexes": PublicTable({"name": ["F", "M"], "size": ["short", "tall"]})}


def text_of(relation: Any) -> str:
    """A request about a relation that is told as plain data."""
    return PLAIN.canonical().replace('"table":"people"', f'"table":{canonical_json(relation)}')


def agent_of(policy: Any, **other: Any) -> SiteAgent:
    agent = SiteAgent(site_of("a", policy=policy, public_tables=SIZES, **other))
    agent.signed = signed_by(roster_of("abc"))
    agent.site.join(agent.signed)
    return agent


def both(agent: SiteAgent, text: str) -> Iterator[Message]:
    """What a site says to a request that is asked in advance, and to a round that begins with it."""
    plan = Plan(request=text, token="7", purpose="a report", who="eve")
    request = request_from(text, agent.part.over.table.columns, agent.part.over) if "looked" not in text else PLAIN
    about = round_about(request, plan, agent.signed, agent.part._declared(request).columns).id  # type: ignore[arg-type]
    yield opened(agent.answer(from_hub("request", plan.text)))
    yield opened(agent.answer(from_hub("begin", plan.text, about=about)))


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes every look into a public table, every relation over rows and every query that is compiled."""
    found: list[str] = []

    def noted(what: str, owner: Any, name: str) -> None:
        before = getattr(owner, name)

        def called(*how: Any, **named: Any) -> Any:
            found.append(what)
            return before(*how, **named)

        monkeypatch.setattr(owner, name, called)

    noted("opened", public, "public_codes")
    noted("related", site, "relate")
    noted("compiled", DuckDBPrepared, "compiled")
    monkeypatch.setattr(PublicTable, "names", property(lambda table: found.append("names") or ()))  # type: ignore[func-returns-value]
    return found


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (OwnersPolicy([Rule(who="eve", answer="never")], journal=MemoryJournal()), "its owner allows nothing"),
        (OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal()), "its owner is asked"),
        (lambda asked: "nothing for eve" if asked.who == "eve" else None, "nothing for eve"),
    ],
    ids=["never", "ask me", "a function"],
)
@pytest.mark.parametrize("relation", [LOOKED_UP, OLD], ids=["looked up", "filtered"])
def test_nothing_is_touched_before_the_owner_said_yes(touched: list[str], policy: Any, words: str, relation: Any) -> None:
    """No public table is opened, so no digest of it answers a hub that guesses; nothing is compiled, and nothing is charged."""
    agent = agent_of(policy)
    for found in both(agent, text_of(relation)):
        assert found.kind == "refused"
        assert words in found.fields["why"]
    assert touched == []
    assert agent.site.spent == cl.ZCDP(0)


def test_an_owner_is_asked_about_a_public_table_and_then_about_the_plan() -> None:
    """The yes to the table holds until it is denied; what the question is, and costs, is another plan."""
    policy = OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal())
    agents = [agent_of(policy), *(SiteAgent(site_of(name, public_tables=SIZES)) for name in "bc")]
    coordinator = coordinator_of("abc")
    text = "SELECT size, COUNT(*) AS n FROM people JOIN sexes ON sex = sexes.name GROUP BY size"
    with coordinator.serving() as hub, running(agents, hub):
        people = cl.JointTable(coordinator.sites, COLUMNS, overlap="none", purpose="study", who="ada")
        with cl.Session({"people": people, **SIZES}, budget=cl.PureDP(10**9)) as session:
            for expected in ("opens the public table 'sexes'", "counts rows"):
                with pytest.raises(cl.AccessDenied, match="its owner is asked"):
                    session.sql(text, spend=50)
                [plan] = policy.plans("waiting")
                assert expected in plan["words"]
                policy.decide(plan["plan"], "allowed")
            assert all(abs(n - 60) <= 5 for n in session.sql(text, spend=50).to_pydict()["n"])
    assert sorted(each["state"] for each in policy.plans()) == ["allowed", "used"]


def test_a_yes_to_a_public_table_is_about_one_table_of_the_site() -> None:
    policy = OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal())
    plan = Plan(request=text_of(LOOKED_UP), token="7", purpose="a report", who="eve")

    def asked_of(label: str) -> None:
        part = agent_of(policy, label=label).part
        part._may_open(plan, "", "sexes")

    for label in ("stays", "visits"):
        with pytest.raises(cl.AccessDenied, match="its owner is asked"):
            asked_of(label)
        [waiting] = policy.plans("waiting")
        assert f"rows of the table {label!r}" in waiting["words"]
        policy.decide(waiting["plan"], "allowed")
        asked_of(label)


def test_conditions_over_wide_categories_are_weighed() -> None:
    """Of aggregations and of hierarchies, by the units in which those of relations are."""
    columns = {"age": cl.Integer(17, 90), "icd": cl.Category([f"{place:05d}" for place in range(20_000)])}
    wide = Aggregation(None, where=Or(*[Like("icd", f"%a%b{place}%") for place in range(500)]))
    leaves = Aggregation(None, where=wide.where, keys=("age",))
    levels = Hierarchy(aggregation=leaves, first=17, values=74, leaves=74, branching=74, weights=(1, 1))
    by_age = Integers("levels", LevelSums(0, False, False), DiscreteLaplace(scale=10))
    listed = Aggregation(None, where=In("age", list(range(50_000))))
    many = Aggregation(None, where=Or(*[Like("icd", f"%a%b{place}%") for place in range(60)]))
    for request in (
        NoisedRequest(table="people", aggregations=(wide,), integers=(ROWS,), cells=Cells()),
        NoisedRequest(
            table="people", aggregations=(Aggregation(None),), integers=(by_age,), cells=Cells(), hierarchies=(levels,)
        ),
        NoisedRequest(table="people", aggregations=(many,) * 10, integers=(ROWS,), cells=Cells()),
        NoisedRequest(table="people", aggregations=(listed,), integers=(ROWS,), cells=Cells()),
    ):
        with pytest.raises(cl.UnsupportedQuery, match="its conditions take too long to bound"):
            request_from(request.canonical(), columns)
    narrow = NoisedRequest(table="people", aggregations=(many,), integers=(ROWS,), cells=Cells())
    assert request_from(narrow.canonical(), columns).canonical() == narrow.canonical()


def test_a_plan_in_words_counts_every_number_of_ranges_and_levels() -> None:
    """A hierarchy over 74 ages is 84 numbers and not one."""
    coordinator, seen = coordinator_of("abc"), list[Asked]()

    def policy(each: Asked) -> None:
        seen.append(each)

    agents = [SiteAgent(site_of(name, policy=policy if name == "a" else None)) for name in "abc"]
    with coordinator.serving() as hub, running(agents, hub), asked(coordinator) as session:
        session.sql("SELECT MEDIAN(age) AS m FROM people", spend=50)
    request = seen[-1].request
    assert {each.map.plain()["map"] for each in request.integers} >= {"levels"}
    numbers = int(words_of(seen[-1]).split(": ")[1].split(" ")[0].replace(",", ""))
    plan = Plan(request=request.canonical(), token="7")
    assert numbers == round_about(request, plan, signed_by(roster_of("abc")), COLUMNS).numbers > 74


# ── a time limit of the owner's ──────────────────────────────────────────────────────────────────


def test_a_plan_that_takes_longer_than_its_owner_allows_is_stopped_and_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is interrupted, the site's owner and the analyst hear why, the other sites are not asked to open anything."""
    stopped = threading.Event()
    noted: list[tuple[str, dict[str, str]]] = []

    def note(event: str, details: dict[str, str]) -> None:
        noted.append((event, details))
        if event == "charged":  # compiled at leisure, and stopped while it reads
            slow.site.time_limit = 0.05

    slow = SiteAgent(site_of("a"), note=note)
    fetch, cancel = DuckDBPrepared._fetch, DuckDBPrepared.cancel

    def fetched(self: DuckDBPrepared, plan: Any) -> Any:
        if self is slow.part.rows:
            assert stopped.wait(60)
            raise cl.EngineError("The query failed", why="a row says 51", instead="")
        return fetch(self, plan)

    def cancelled(self: DuckDBPrepared, thread: int | None = None) -> None:
        if self is slow.part.rows:
            stopped.set()
        cancel(self, thread)

    monkeypatch.setattr(DuckDBPrepared, "_fetch", fetched)
    monkeypatch.setattr(DuckDBPrepared, "cancel", cancelled)
    agents, coordinator = [slow, *(SiteAgent(site_of(name)) for name in "bc")], coordinator_of("abc")
    with coordinator.serving() as hub, running(agents, hub), asked(coordinator) as session:
        with pytest.raises(cl.EngineError, match=r"'a' stopped a request: it took longer than the 0.05 seconds") as error:
            session.sql(COUNT, spend=50)
        assert session.spent == cl.PureDP(50)
    assert "what was charged stays charged" in str(error.value)
    assert "a row says" not in str(error.value)
    [(_, details)] = [each for each in noted if each[0] == "stopped"]
    assert "longer than the 0.05 seconds that its owner allows" in details["why"]
    assert slow.site.spent == cl.ZCDP(50**2 // 2)  # ε = 50


def test_a_plan_that_takes_too_long_to_compile_is_refused_before_it_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    late = threading.Event()

    def compiled(self: DuckDBPrepared, request: Any) -> Any:
        late.clear()
        assert late.wait(60)
        return ()

    agent = agent_of(None, time_limit=0.05)
    monkeypatch.setattr(DuckDBPrepared, "compiled", compiled)
    monkeypatch.setattr(DuckDBPrepared, "cancel", lambda *_: late.set())
    for found in both(agent, PLAIN.canonical()):
        assert "longer than the 0.05 seconds that its owner allows; nothing was charged" in found.fields["why"]
    assert agent.site.spent == cl.ZCDP(0)


def test_a_time_limit_is_a_number_of_seconds() -> None:
    with pytest.raises(cl.InvalidParameter, match="time_limit=0 is invalid"):
        site_of("a", time_limit=0)
