"""Relations and computed columns that sites elsewhere read from their texts: what is read is what was written, it costs what the
site's own declaration says, and a hub that lies is refused before anything is charged."""

from __future__ import annotations

import copy
import datetime
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.learn import KMeans, LinearRegression
from cloister.noise import DiscreteLaplace, Random
from cloister.tables import (
    Aggregate,
    Aggregation,
    And,
    Base,
    Capped,
    Column,
    Compare,
    Extended,
    Filtered,
    Followed,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Numbered,
    PerUnit,
    PrivateTable,
    Projected,
    PublicJoined,
    PublicTable,
    Relation,
    Stacked,
    UnitAggregate,
    UnitJoined,
    prepare,
    relate,
)
from cloister.tables.engines.noised import Cells, Combination, Integers, KeyCodes, NoisedRequest, exact_integers
from cloister.tables.expression import scalars
from cloister.tables.expression.scalars import Const, Ref, Scalar
from cloister.together import Asked, Coordinator, MemoryJournal, Site, SiteAgent, cost_of
from cloister.together.messages import opened
from cloister.together.owner import OwnersPolicy, Rule
from cloister.together.plan import Plan
from cloister.together.reading import request_from
from cloister.together.reading_relations import PARTS, Over
from cloister.together.wording import words_of
from tests.session.test_parts import ABLE, COLUMNS, rows, share_below
from tests.tiers import by_day_and_night
from tests.together.test_wire import from_hub, joined
from tests.together.wired import coordinator_of, key_of, roster_of, running, signed_by

NONE = 10**9
"""A spend for which noise is nil."""
MUCH = cl.ZCDP(10**30)
TOWNS = {"name": ["F", "M"], "long": ["woman", "man"], "height": [165, 178]}
PEOPLE = {
    **COLUMNS,
    "born": cl.Date("1930-01-01", "2009-12-31"),
    "ill": cl.Boolean(),
    "at": cl.Moment("2020-01-01", "2020-12-31"),
}
QUESTIONS = [
    "SELECT COUNT(*) FILTER (WHERE age > 40) AS n FROM people",
    "SELECT SUM(CASE WHEN age > 40 THEN pay ELSE 1 END) AS n FROM people",
    "SELECT age // 10 AS decade, COUNT(*) AS n FROM people GROUP BY age // 10",
    "SELECT EXTRACT(MONTH FROM born) AS month, COUNT(*) AS n FROM people GROUP BY 1",
    "SELECT DATE_TRUNC('year', born) AS year, COUNT(*) AS n FROM people GROUP BY 1",
    "SELECT SUM(age * 2) AS s, AVG(age * pay) AS m FROM people",
    "WITH women AS (SELECT age FROM people WHERE sex = 'F') SELECT COUNT(*) AS n, AVG(age) AS a FROM women",
    "SELECT COUNT(*) AS n FROM (SELECT age FROM people UNION ALL SELECT pay AS age FROM people)",
    "SELECT COUNT(*) AS n FROM people WHERE age * 2 > 60",
    "SELECT long, COUNT(*) AS n, AVG(age) AS a FROM people JOIN sexes ON people.sex = sexes.name GROUP BY long",
]


def held(dates: bool = True) -> dict[str, list[Any]]:
    found = rows()
    if dates:
        found["born"] = [
            datetime.date(1930, 1, 1) + datetime.timedelta(days=(97 * n * n) % 29000) for n in range(len(found["age"]))
        ]
    return found


WITH_DATES = {**COLUMNS, "born": PEOPLE["born"]}


def sites_of(public: Any = TOWNS, count: int = 3, columns: Any = WITH_DATES, **other: Any) -> list[Site]:
    """Sites as the panel's, by the keys of the wire's rosters."""
    found, length = [], len(held()["age"])
    for place, name in enumerate("abcdef"[:count]):
        mine = [row for row in range(length) if min(row % (count + 2), count - 1) == place]
        table = PrivateTable({each: [values[row] for row in mine] for each, values in held().items()}, columns=columns)
        tables = {} if public is None else {"sexes": PublicTable(public)}
        given = {"budget": MUCH, "key": key_of(name), "journal": MemoryJournal(), "random": Random.deterministic(place), **other}
        found.append(Site(name, table, public_tables=tables, **given))
    return found


@contextmanager
def over_agents(sites: list[Site], budget: Any, missing: int = 0) -> Iterator[tuple[cl.Session, Coordinator]]:
    """A session over agents that dial out over loopback."""
    coordinator = coordinator_of("abcdef"[: len(sites)], missing)
    with coordinator.serving() as hub, running([SiteAgent(site) for site in sites], hub):
        table = cl.JointTable(coordinator.sites, WITH_DATES, overlap="none", size=240)
        tables = {"people": table, "sexes": PublicTable(TOWNS)}
        with cl.Session(tables, budget=budget, random=Random.deterministic(1)) as session:
            yield session, coordinator


@contextmanager
def central(budget: Any) -> Iterator[cl.Session]:
    table = PrivateTable(held(), columns=WITH_DATES, size=240)
    table.source.able_as = ABLE
    tables = {"people": table, "sexes": PublicTable(TOWNS)}
    with cl.Session(tables, budget=budget, random=Random.deterministic(1)) as session:
        yield session


def learnt(session: cl.Session, spend: Any) -> list[Any]:
    line = LinearRegression(epsilon=1).fit_table(session, "people", features=["age", "height"], target="pay", spend=spend)
    cluster = KMeans(2, epsilon=1).fit_table(session, "people", features=["age", "height"], spend=spend)
    return [line.coef_, line.intercept_, cluster.cluster_centers_]


# ── equal to one table ───────────────────────────────────────────────────────────────────────────


def test_without_noise_agents_give_what_one_table_gives() -> None:
    """SQL about computed columns, joins with a public table, regression and k-means, over the wire; sites charge the same."""
    sites = sites_of()
    with central(cl.PureDP(100 * NONE)) as one, over_agents(sites, cl.PureDP(100 * NONE)) as (session, _):
        for text in QUESTIONS:
            expected, answer = one.sql(text, spend=NONE), session.sql(text, spend=NONE)
            assert repr(answer.to_pydict()) == repr(expected.to_pydict()), text
            assert repr(answer.margin().to_pydict()) == repr(expected.margin().to_pydict()), text
        assert session.spent == one.spent
        for mine, other in zip(learnt(session, NONE), learnt(one, NONE), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-9)
        costs = {site.name: [charge.cost for charge in site.ledger.charges(site.name)] for site in sites}
        assert costs["a"] == costs["b"] == costs["c"]
        assert len(costs["a"]) > len(QUESTIONS)


@pytest.mark.parametrize("text", QUESTIONS[:1] + QUESTIONS[5:7] + QUESTIONS[9:])
def test_each_site_charges_what_the_hub_charges(text: str) -> None:
    """A site works out the cost from the text alone, and from its own declaration: the very number."""
    sites = sites_of()
    with over_agents(sites, cl.ZCDP(10)) as (session, _):
        session.sql(text, spend="0.01")
        assert all(site.spent == session.spent for site in sites)


def test_with_noise_a_computed_column_has_the_law_that_the_answer_names() -> None:
    """Sums of a computed column in 1,000 groups: by the inequality of Dvoretzky, Kiefer & Wolfowitz a false alarm once in 10⁷."""
    columns = {"k": cl.Integer(0, 1999), "age": cl.Integer(17, 90)}
    data = {"k": list(range(0, 2000, 7)), "age": [17 + place % 74 for place in range(len(range(0, 2000, 7)))]}
    sites = [
        Site(name, PrivateTable(data, columns=columns), budget=MUCH, key=key_of(name), journal=MemoryJournal()) for name in "abc"
    ]
    coordinator = coordinator_of("abc")
    with coordinator.serving() as hub, running([SiteAgent(site) for site in sites], hub):
        table = cl.JointTable(coordinator.sites, columns, overlap="none")
        with cl.Session({"people": table}, budget=cl.ZCDP(100)) as session:
            answer = session.sql("SELECT k // 2 AS pair, SUM(age * 2) AS s FROM people GROUP BY k // 2", spend="0.05")
    [reading] = [each for each in answer.readings.values() if each.terms]
    [term] = reading.terms
    exact: dict[int, int] = {}
    for k, age in zip(data["k"], data["age"], strict=True):
        exact[k // 2] = exact.get(k // 2, 0) + 3 * 2 * age
    found = answer.to_pydict()
    pairs = zip(found["pair"], found["s"], strict=True)
    noise = np.array([(value - exact.get(pair, 0)) // 2 for pair, value in pairs])  # in steps of age * 2
    below, above = share_below(term.noise, noise - 1), share_below(term.noise, noise)
    uniform = np.sort(below + (above - below) * Random.deterministic(3).words(len(noise)).astype(np.float64) / 2.0**64)
    places = np.arange(1, len(noise) + 1) / len(noise)
    far = max(float((places - uniform).max()), float((uniform - places).max()) + 1 / len(noise))
    assert len(noise) == 1000
    assert far < math.sqrt(math.log(2 / 1e-7) / (2 * len(noise)))


# ── every kind is read, and nothing else ─────────────────────────────────────────────────────────

VISITS = PrivateTable(
    {"who": ["a"], "day": [3], "cost": [5]}, {"day": cl.Integer(0, 9), "cost": cl.Integer(0, 99)}, unit="who", max_rows=5
)
AGE, SEX, BORN, ILL, AT = Ref("age"), Ref("sex"), Ref("born"), Ref("ill"), Ref("at")
OLD = Compare(">", Column("age"), Literal(40))
PLACED = cl.Place((4.2, 51.9, 4.5, 52.1))
SCALARS: dict[str, Scalar] = {
    "ref": AGE,
    "case": scalars.Case(((And(OLD, Not(IsNull("pay"))), Const("old")), (Column("ill"), Const("ill"))), Const("young'")),
    "case without else": scalars.Case(((In("sex", ["F", "M"]), Const(1)),)),
    "coalesce": scalars.Coalesce((Ref("pay"), Const(0))),
    "leastof": scalars.LeastOf((AGE, Const(40))),
    "greatestof": scalars.GreatestOf((AGE, Ref("pay"), Const(0.1))),
    "nullif": scalars.NullIf(SEX, Const("F")),
    "truth": scalars.Truth(Like("sex", "F%")),
    "textfunction": scalars.TextFunction("substring", SEX, (Const(1), Const(1))),
    "add": scalars.Add(AGE, Const(Fraction(1, 3))),
    "subtract": scalars.Subtract(AGE, Const(10)),
    "multiply": scalars.Multiply(AGE, Const(-0.25)),
    "modulo": scalars.Modulo(AGE, Const(7)),
    "negate": scalars.Negate(AGE),
    "absolute": scalars.Absolute(scalars.Subtract(AGE, Const(50))),
    "sign": scalars.Sign(scalars.Subtract(AGE, Const(50))),
    "cast": scalars.Cast(AGE, "text"),
    "datepart": scalars.DatePart("month", BORN),
    "datetrunc": scalars.DateTrunc("quarter", BORN),
    "dateshift": scalars.DateShift(BORN, -3, "month"),
    "datediff": scalars.DateDiff("year", Const(datetime.date(2026, 1, 1)), BORN),
    "gridcell": scalars.GridCell(Ref("home"), Fraction(5000)),
    "lattice": scalars.Lattice("row", Ref("home")),
    "inbox": scalars.InBox(
        Ref("home"), scalars.Lattice("column", Ref("home")), scalars.Lattice("row", Ref("home")), *map(Fraction, (4, 51, 5, 52))
    ),
    "metres": scalars.Metres("up", Ref("home")),
    "near": scalars.Near(
        Ref("home"),
        scalars.Metres("across", Ref("home")),
        scalars.Metres("up", Ref("home")),
        Fraction(4),
        Fraction(52),
        Fraction(9),
    ),
    "round": scalars.Round(scalars.Divide(AGE, Const(7)), 2, "half even"),
    "floor": scalars.Floor(scalars.Divide(AGE, Const(10))),
    "ceiling": scalars.Ceiling(scalars.Divide(AGE, Const(10))),
    "clamp": scalars.Clamp(scalars.Divide(Const(1), AGE), 0, Fraction(1, 7)),
    "divide": scalars.Divide(AGE, Const(3)),
    "sqrt": scalars.Sqrt(AGE),
    "ln": scalars.Ln(AGE),
    "exp": scalars.Exp(scalars.Divide(AGE, Const(10))),
    "power": scalars.Power(AGE, Fraction(3, 2)),
    "null": scalars.Coalesce((Const(None), Const(True), ILL)),
}
ALL = {**PEOPLE, "home": PLACED}
NO_ROWS: dict[str, list[Any]] = {name: [] for name in (*PEOPLE, "longitude", "latitude")}
EMPTY = PrivateTable(NO_ROWS, columns=PEOPLE)
SEXES = PublicTable(TOWNS)


def base_of(table: PrivateTable = EMPTY) -> Base:
    return Base(name="people", table=table)


def visits() -> Base:
    return Base(name="people", table=VISITS)


RELATIONS: dict[str, Relation] = {
    "table": base_of(),
    "extended": Extended(source=Extended(source=base_of(), scalars=(("x", scalars.Add(AGE, AGE)),)), scalars=(("y", Ref("x")),)),
    "filtered": Filtered(source=base_of(), where=OLD),
    "projected": Projected(source=base_of(), names=(("pay", "age"), ("age", "pay"))),
    "nothing left": Projected(source=base_of(), names=()),
    "capped": Capped(source=visits(), rows=2),
    "stacked": Stacked(sources=(base_of(), Filtered(source=base_of(), where=OLD))),
    "joined": UnitJoined(left=Projected(source=visits(), names=(("x", "day"),)), right=visits(), on=(("x", "day"),), outer=True),
    "numbered": Numbered(source=visits(), number="n", keys=("cost",), by=(("day", True, False),)),
    "followed": Followed(source=visits(), by="day", number="n", previous=(("before", "cost"),), rows=3),
    "per unit": PerUnit(
        source=visits(),
        keys=("day",),
        aggregates=(UnitAggregate(name="n", kind="count"), UnitAggregate(name="s", kind="sum", column="cost")),
    ),
    "looked up": PublicJoined(
        source=base_of(), name="sexes", table=SEXES, on=(("sex", "name"),), columns=(("tall", "height"),), outer=True
    ),
}
ROWS = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))


def about(relation: Relation, aggregation: Aggregation | None = None, integers: Integers = ROWS) -> NoisedRequest:
    asked = aggregation or Aggregation(None)
    return NoisedRequest(table=relation, aggregations=(asked,), integers=(integers,), cells=Cells(), charge="1")


def over_of(relation: Relation) -> Over:
    [table] = relation.tables().values()
    return Over(table=table, public={"sexes": SEXES})


def read(request: NoisedRequest, **changes: Any) -> NoisedRequest:
    assert isinstance(request.table, Relation)
    over = over_of(request.table)
    return request_from(request.canonical(), over.table.columns, over)


def test_every_kind_of_computed_column_is_among_those_tried() -> None:
    tried = {each.describe()[0] for each in SCALARS.values()}
    assert tried >= set(PARTS) - {"regionof", "within", "nearest"}
    assert {each.stored for each in map(type, SCALARS.values())} == tried


@pytest.mark.parametrize("name", SCALARS)
def test_computed_columns_are_read(name: str) -> None:
    """Each is the same value again, with the domain that it had; and an owner sees it whole."""
    scalar = SCALARS[name]
    table = PrivateTable(NO_ROWS, columns=ALL)
    relation = Extended(source=base_of(table), scalars=(("x", scalar),))
    request = about(relation)
    found = read(request)
    assert isinstance(found.table, Extended)
    assert found.table.scalars == relation.scalars
    assert found.table.column("x") == relation.column("x")
    assert found.canonical() == request.canonical()
    words = words_of(Asked(table="a", cost=cl.PureDP(1), request=found))
    assert all(repr(column) in words for column in scalar.columns())


@pytest.mark.parametrize("name", RELATIONS)
def test_relations_are_read(name: str) -> None:
    request = about(RELATIONS[name])
    found = read(request)
    assert found.canonical() == request.canonical()
    assert isinstance(found.table, Relation)
    assert (found.table.max_rows, dict(found.table.columns)) == (RELATIONS[name].max_rows, dict(RELATIONS[name].columns))
    assert cost_of(found, found.table) == cost_of(request, RELATIONS[name])
    assert words_of(Asked(table="a", cost=cl.PureDP(1), request=found)).count("\n") >= 1


# ── a hub that lies ──────────────────────────────────────────────────────────────────────────────


def summed(scalar: Any, *, scale: int = 10, name: str = "x") -> NoisedRequest:
    """The sum of one computed column, with noise of this scale."""
    relation = Extended(source=base_of(), scalars=((name, scalar),))
    total = Aggregation(None, aggregates=(Aggregate("s", "sum", ((name, 0),)),))
    return about(relation, total, Integers("s", Combination((("s", 1),)), DiscreteLaplace(scale=scale)))


@pytest.mark.parametrize(
    ("scalar", "epsilon"),
    [
        (AGE, 9),
        (scalars.Clamp(AGE, -(10**6), 10**6), 9),
        (scalars.Clamp(AGE, 0, 20), 2),
        (scalars.Clamp(scalars.Divide(Const(1000), scalars.Subtract(AGE, Const(17))), -50, 30), 5 * 10**7),
        (scalars.Multiply(AGE, AGE), 810),
        (scalars.Coalesce((Ref("pay"), Const(500))), 50),
        (scalars.LeastOf((AGE, Const(10))), 1),
    ],
    ids=["column", "wide clamp", "narrow clamp", "quotient", "square", "coalesce", "least"],
)
def test_a_site_bounds_computed_columns_by_its_own_declaration(scalar: Any, epsilon: int) -> None:
    """Whatever bounds the hub has in mind, and however wide its clamp: what a row of this site can add, in the steps that are
    summed, over the noise's scale."""
    found = read(summed(scalar))
    assert isinstance(found.table, Relation)
    assert cost_of(found, found.table) == cl.PureDP(epsilon)
    assert found.integers[0].map.width == 10 * epsilon  # type: ignore[union-attr]


def test_a_hub_that_believes_narrower_bounds_is_charged_by_the_sites() -> None:
    """It plans noise for ages up to 1; at a site, where they go to 90, the same costs 90 times as much."""
    narrow = PrivateTable({"age": [1]}, columns={"age": cl.Integer(0, 1)})
    relation = Extended(source=Base(name="people", table=narrow), scalars=(("x", Ref("age")),))
    total = Aggregation(None, aggregates=(Aggregate("s", "sum", (("x", 0),)),))
    request = about(relation, total, Integers("s", Combination((("s", 1),)), DiscreteLaplace(scale=10)))
    assert cost_of(request, relation) == cl.PureDP("0.1")
    agent = joined()
    part = agent.part
    found = part.read(Plan(request=request.canonical(), token="7"))
    assert part.about(found)._agreed(found, None) == cl.PureDP(9)
    assert agent.site.spent == cl.ZCDP(0)


@pytest.mark.parametrize(
    "relation",
    [
        Stacked(sources=(base_of(), base_of())),
        PublicJoined(
            source=base_of(),
            name="sexes",
            table=PublicTable({"name": ["F", "F", "M"]}),
            on=(("sex", "name"),),
            columns=(),
        ),
    ],
    ids=["stacked", "looked up"],
)
def test_people_are_not_counted_where_no_column_says_whose_a_row_is(relation: Relation) -> None:
    """There an engine counts rows, of which a person has two: as a number of people it would be charged by half."""
    people = Aggregation(None, aggregates=(Aggregate("units", "units"),))
    request = about(relation, people, Integers("units", Combination((("units", 1),)), DiscreteLaplace(scale=10)))
    with pytest.raises(cl.UnsupportedQuery, match="no column says whose a row is"):
        cost_of(request, relation)
    assert cost_of(about(relation), relation) == cl.PureDP("0.2")


BAD: list[tuple[Any, str]] = [
    (["else", ["table", "people"]], "kind 'else'"),
    ([["table"], "people"], "can't be read"),
    (["table"], "can't be read"),
    (["table", "people", "more"], "can't be read"),
    (["table", 5], "can't be read"),
    (["extended", ["table", "people"], [["x", ["shell", "rm"]]]], "kind 'shell'"),
    (["extended", ["table", "people"], [["x", ["add", ["ref", "age"]]]]], "has 1 parts, and takes 2"),
    (["extended", ["table", "people"], [["x", ["ref", "salary"]]]], "'salary' is not known"),
    (["extended", ["table", "people"], [["age", ["ref", "age"]]]], "age"),
    (["extended", ["table", "people"], [["x", ["round", ["ref", "age"], True, "floor"]]]], "can't be read"),
    (["extended", ["table", "people"], [["x", ["exp", ["ref", "age"]]]]], "EXP needs bounds"),
    (
        ["filtered", ["table", "people"], ["compare", ">", ["column", "salary"], ["literal", "number", "1"]]],
        "'salary' is not known",
    ),
    (["projected", ["table", "people"], [["x", "salary"]]], "'salary' is not known"),
    (["capped", ["table", "people"], 1], "A cap"),
    (["capped", ["table", "people"], True], "can't be read"),
    (["stacked", [["table", "people"], ["table", "others"]]], "two private tables"),
    (["stacked", []], "has no parts"),
    (["through", ["table", "people"], ["table", "people"], "who", False], "kind 'through'"),
    (["looked up", ["table", "people"], "towns", "", [["sex", "name"]], [], False], "The public table 'towns' is not known"),
    (["looked up", ["table", "people"], "sexes", "00", [["sex", "name"]], [], False], "The public table 'sexes' is another"),
    (["extended", ["table", "people"], [["x", ["const", "number", "0.50"]]]], "not the one text"),
    (["extended", ["table", "people"], [["x", ["const", "number", "1e9"]]]], "can't be read"),
    (["extended", ["table", "people"], [["x", ["clamp", ["ref", "age"], "10", "1"]]]], "CLAMP"),
]


@pytest.mark.parametrize(("told", "words"), BAD, ids=lambda each: None)
def test_what_no_relation_is_is_refused_by_name(told: Any, words: str) -> None:
    text = (
        about(base_of())
        .canonical()
        .replace(json.dumps(["table", "people"], separators=(",", ":")), json.dumps(told, separators=(",", ":")))
    )
    with pytest.raises(cl.CloisterError, match=words):
        request_from(text, PEOPLE, over_of(base_of()))


def deep(depth: int) -> list[Any]:
    found: list[Any] = ["ref", "age"]
    for _ in range(depth):
        found = ["negate", found]
    return ["extended", ["table", "people"], [["x", found]]]


def filtered(depth: int) -> list[Any]:
    found: list[Any] = ["table", "people"]
    for _ in range(depth):
        found = ["filtered", found, ["null", "age"]]
    return found


def nested(depth: int) -> list[Any]:
    found: list[Any] = ["numbered", ["table", "people"], "row_number", [], [["day", False, False]], "n"]
    for _ in range(depth):
        found = ["filtered", found, ["compare", "<=", ["column", "n"], ["literal", "number", "3"]]]
    return found


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (deep(70), "more than 60"),
        (deep(9000), "more than 60"),
        (filtered(90), "more than 80"),
        (filtered(5000), "more than 80"),
        (["stacked", [["table", "people"]] * 500], "more than 400 steps"),
        (["stacked", [["table", "people"]] * 50_000], "more than 40,000 parts"),
        (["extended", ["table", "people"], [[f"x{place}", ["cast", ["ref", "age"], "text"]] for place in range(90)]], "too long"),
        (["extended", ["table", "people"], [[f"x{place}", ["ref", "age"]] for place in range(50_000)]], "more than 40,000 parts"),
    ],
    ids=lambda each: None,
)
def test_what_takes_long_is_refused_first(told: Any, words: str) -> None:
    with pytest.raises(cl.UnsupportedQuery, match=words):
        over_of(base_of()).relation(told)


def test_bounds_of_rows_are_worked_out_once_a_step() -> None:
    """Each asks for those below more than once: without keeping them, two more steps would take seven times as long."""
    found = Over(table=VISITS).relation(nested(70))
    assert found.max_rows == 3


def test_a_site_that_has_no_such_public_table_or_another_is_named() -> None:
    """And nothing is charged; rows in another order have another digest, too, since the number of a row in its key is in it."""
    text = QUESTIONS[9]
    for public, words in ((None, "The public table 'sexes' is not known"), ({**TOWNS, "long": ["a", "b"]}, "'sexes' is another")):
        with over_agents([*sites_of(count=2), sites_of(public)[2]], cl.PureDP(1)) as (session, _):
            with pytest.raises(cl.CloisterError, match=f"The site 'c' says: .*{words}"):
                session.sql(text, spend=1)
            assert session.spent == cl.PureDP(0)
            assert session.sql(QUESTIONS[8], spend="0.5").to_pydict().keys() == {"n"}


def mutated(told: Any, random: Random) -> Any:
    """Plain data with some of its parts changed, moved, taken out, doubled, or of another kind."""
    found = copy.deepcopy(told)
    for _ in range(1 + random.below_one(3)):
        places: list[tuple[Any, Any]] = []
        waiting = [found]
        while waiting:
            each = waiting.pop()
            keys = range(len(each)) if isinstance(each, list) else list(each)
            places += [(each, key) for key in keys]
            waiting += [each[key] for key in keys if isinstance(each[key], list | dict)]
        if not places:
            return found
        (holder, key), (other, there) = (places[random.below_one(len(places))] for _ in range(2))
        how = random.below_one(6)
        if how == 0:
            holder[key] = copy.deepcopy(other[there])
        elif how == 1:
            holder[key] = [None, True, 0, -1, 1 << 70, "", "age", "1/0", [], {}, 0.5, "é\u202e'"][random.below_one(12)]
        elif how == 2:
            holder[key] = [holder[key]]
        elif how == 3 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif how == 4:
            del holder[key]
        else:
            holder[key], other[there] = copy.deepcopy(other[there]), copy.deepcopy(holder[key])
    return found


@by_day_and_night("plans", 400, 20_000)
def test_a_plan_that_was_changed_is_refused_or_is_what_it_says(plans: int) -> None:
    """Whatever is done to a text: it is refused in words of ours, or it is read as the very text that it is, and then a site
    knows what it costs or refuses it. No other exception; and nothing is charged by reading."""
    random = Random.deterministic(7)
    known = [
        about(Extended(source=base_of(), scalars=(("x", each),))) for each in SCALARS.values() if "home" not in each.columns()
    ]
    known += [about(each) for each in RELATIONS.values()] + [summed(scalars.Multiply(AGE, Const(2)))]
    accepted = 0
    for place in range(plans):
        request = known[place % len(known)]
        assert isinstance(request.table, Relation)
        over = over_of(request.table)
        text = json.dumps(mutated(json.loads(request.canonical()), random), sort_keys=True, separators=(",", ":"))
        try:
            found = request_from(text, over.table.columns, over)
            assert found.canonical() == text
            declared = over.table if isinstance(found.table, str) else found.table
            cost = cost_of(found, declared)
        except cl.CloisterError:
            continue
        assert isinstance(cost, cl.PureDP | cl.ZCDP)
        assert words_of(Asked(table="a", cost=cost, request=found))
        accepted += 1
    assert 0 < accepted < plans / 2


def test_agents_refuse_changed_plans_and_charge_nothing() -> None:
    """Over the wire: a refusal is a message in words of ours; not one of them is a failure whose cause stays here."""
    noted: list[str] = []
    site = sites_of()[0]
    agent = SiteAgent(site, note=lambda event, details: noted.append(event))
    signed = signed_by(roster_of("abc"))
    site.join(signed)
    agent.signed = signed
    relation = Extended(
        source=Base(name="people", table=site.table), scalars=(("x", SCALARS["coalesce"]), ("y", SCALARS["case without else"]))
    )
    told, random = json.loads(about(relation).canonical()), Random.deterministic(3)
    kinds = set()
    for _ in range(60):
        text = json.dumps(mutated(told, random), sort_keys=True, separators=(",", ":"))
        kinds.add(opened(agent.answer(from_hub("request", Plan(request=text, token="1").text))).kind)
    assert kinds <= {"agreed", "refused"}
    assert "failed" not in noted
    assert site.spent == cl.ZCDP(0)


# ── what a person can move ───────────────────────────────────────────────────────────────────────

PEOPLE_ROWS = {"age": [90, 17, 40, 63], "sex": ["F", "M", "F", "M"], "pay": [100, 0, None, 7]}
VISIT_ROWS = {"who": [*"aaaabbbcd"], "day": [0, 9, 9, 4, 1, 5, 2, 9, 0], "cost": [99, 0, 98, 99, 3, 7, 20, 50, 99]}
TWICE = PublicTable({"name": ["F", "F", "M"], "extra": [5, 9, 2]})


def made(told: Any, columns: list[str], has_unit: bool, random: Random, place: int) -> tuple[Any, list[str]]:
    """One more step over a relation, at random, and the columns of numbers that it has."""
    one = columns[random.below_one(len(columns))]
    number = ["const", "integer", str(random.below_one(7) - 3)]
    scalar = [
        ["multiply", ["ref", one], number],
        ["subtract", ["ref", one], ["ref", columns[random.below_one(len(columns))]]],
        ["case", [[["compare", ">", ["column", one], ["literal", "number", "9"]], ["ref", one]]], number],
        ["clamp", ["ref", one], "2", "30"],
        ["coalesce", [["ref", one], number]],
        ["modulo", ["ref", one], ["const", "integer", "7"]],
    ][random.below_one(6)]
    where = ["compare", ["<", ">="][random.below_one(2)], ["column", one], ["literal", "number", str(random.below_one(50))]]
    steps: list[tuple[Any, list[str]]] = [
        (["extended", told, [[f"x{place}", scalar]]], [*columns, f"x{place}"]),
        (["filtered", told, where], columns),
        (["stacked", [told, ["filtered", told, where]]], columns),
        (["projected", told, [[each, each] for each in columns]], columns),
    ]
    if has_unit:
        again = ["projected", told, [[f"y{place}", one]]]
        steps += [
            (["capped", told, 1 + random.below_one(2)], columns),
            (
                ["numbered", told, "row_number", [], [[one, bool(random.below_one(2)), False]], f"n{place}"],
                [*columns, f"n{place}"],
            ),
            (["per unit", told, [], [["s", "sum", one], ["n", "count", None]]], ["s", "n"]),
            (["joined", told, again, [], bool(random.below_one(2))], [*columns, f"y{place}"]),
        ]
    return steps[random.below_one(len(steps))]


def asked_of(relation: Relation, columns: list[str], random: Random) -> NoisedRequest:
    """One number of its rows at random: a count of rows, people or values, or a sum of a product; at times by groups."""
    factors = [(columns[random.below_one(len(columns))], random.below_one(20)) for _ in range(1 + random.below_one(2))]
    kind = ["rows", "units", "values", "sum", "sum"][random.below_one(5)]
    aggregate = Aggregate("s", kind, tuple(factors) if kind in ("values", "sum") else ())  # type: ignore[arg-type]
    key = columns[random.below_one(len(columns))]
    domain = relation.columns[key]
    keyed = random.below_one(2) and domain.size is not None and domain.size < 500
    cells = Cells((KeyCodes(domain.low_code, domain.size + 1),)) if keyed and domain.size is not None else Cells()
    asked = Aggregation(None, keys=(key,) if keyed else (), aggregates=(aggregate,), missing=bool(keyed))
    number = Integers("s", Combination((("s", 1 + random.below_one(3)),)), DiscreteLaplace(scale=1))
    return NoisedRequest(table=relation, aggregations=(asked,), integers=(number,), cells=cells, charge="1")


def compared(relations: int) -> list[tuple[int, Fraction]]:
    """Of relations at random, of up to four steps, over rows with and without a unit: how far all numbers together move with one
    person, and what a site charges for noise of scale 1. Nothing random is in either."""
    random = Random.deterministic(11)
    tables = [
        (PEOPLE_ROWS, {name: PEOPLE[name] for name in PEOPLE_ROWS}, None, None, ["age", "pay"], 0),
        (VISIT_ROWS, VISITS.columns, "who", 3, ["day", "cost"], "a"),
    ]
    pairs: list[tuple[int, Fraction]] = []
    for place in range(relations):
        held, columns, unit, most, numbers, person = tables[place % 2]
        told: Any = ["table", "people"]
        if unit is None and random.below_one(2):
            told, numbers = ["looked up", told, "sexes", "", [["sex", "name"]], [["extra", "extra"]], False], [*numbers, "extra"]
        exact: list[Any] = []
        cost = None
        seed = random.below_one(10**9)
        for left in (False, True):
            kept = [
                row for row in range(len(next(iter(held.values())))) if not left or (held["who"][row] if unit else row) != person
            ]
            rows_left = {name: [values[row] for row in kept] for name, values in held.items()}
            table = PrivateTable(rows_left, columns=columns, unit=unit, max_rows=most)
            over, again = Over(table=table, public={"sexes": TWICE}), Random.deterministic(seed)
            if told[0] == "looked up":
                base = Base(name="people", table=table)
                told[3] = PublicJoined(
                    source=base, name="sexes", table=TWICE, on=(("sex", "name"),), columns=(("extra", "extra"),)
                ).codes.digest
            found, named = told, numbers
            try:
                for step in range(1 + again.below_one(4)):
                    found, named = made(found, named, unit is not None, again, step)
                relation = over.relation(found)
                request = asked_of(relation, named, again)
                cost = cost_of(request, relation)
            except cl.CloisterError:
                break
            with prepare(table, secret="order") as prepared:
                related = relate(relation, {"people": prepared}, {"sexes": TWICE})
                groups = [related.aggregate(each) for each in request.asked]
            exact.append(exact_integers(request, groups)["s"].astype(object))
        if len(exact) < 2:
            continue
        assert isinstance(cost, cl.PureDP)
        pairs.append((int(abs(exact[0] - exact[1]).sum()), cost.epsilon))
    assert len(pairs) > relations / 2
    return pairs


@by_day_and_night("relations", 24, 500)
def test_nobody_moves_a_number_further_than_the_site_charges(relations: int) -> None:
    """And some as far."""
    found = compared(relations)
    assert all(moved <= charged for moved, charged in found)
    assert any(moved == charged for moved, charged in found)


def test_a_site_that_forgets_that_a_person_has_several_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloister.together.accounting._most_rows", lambda *_: 1)
    assert any(moved > charged for moved, charged in compared(16))


# ── what an owner is told ────────────────────────────────────────────────────────────────────────


def test_a_plan_says_what_is_computed_step_by_step() -> None:
    women = Filtered(
        source=base_of(), where=And(Compare("=", Column("sex"), Literal("F")), Compare(">", Column("age"), Literal(40)))
    )
    twice = Extended(source=women, scalars=(("twice", scalars.Multiply(AGE, Const(2))), ("old", SCALARS["case"])))
    total = Aggregation(
        None, where=Compare(">", Column("twice"), Literal(90)), aggregates=(Aggregate("s", "sum", (("twice", 0),)),)
    )
    request = about(twice, total, Integers("s", Combination((("s", 1),)), DiscreteLaplace(scale=10)))
    assert words_of(
        Asked(table="a", cost=cl.PureDP("0.1"), request=read(request), who="ada", purpose="a report")
    ).splitlines() == [
        "for 'ada', for the purpose 'a report': 1 number with noise, at a cost of ε = 0.1 to each person here",
        "step 1: the rows of this table, those where 'sex' = 'F' and 'age' > 40",
        "step 2: step 1, with 'twice' = 'age' × 2, 'old' = (case when 'age' > 40 and not ('pay' is missing) then 'old'"
        " when 'ill' then 'ill' else \"young'\" end)",
        "counts the sum of 'twice', where 'twice' > 90, of step 2",
    ]


@pytest.mark.parametrize("name", list(RELATIONS)[3:])
def test_renamed_columns_and_steps_are_said(name: str) -> None:
    words = words_of(Asked(table="a", cost=cl.PureDP(1), request=read(about(RELATIONS[name])))).splitlines()
    said = {
        "projected": "step 1: the rows of this table, as 'pay' = its 'age', 'age' = its 'pay'",
        "capped": "step 1: the rows of this table, at most 2 of each person",
        "numbered": "with 'n' = the row_number of each among those of its person with the same 'cost' by 'day' descending",
        "per unit": "one row for each person and 'day' of the rows of this table, with 'n' = the count, 's' = the sum of 'cost'",
        "looked up": "looked up in the public table 'sexes' where 'sex' = its 'name', with 'tall' = its 'height'",
    }.get(name, "step 1")
    assert any(said in line for line in words)


def test_no_name_of_the_hubs_can_write_a_plan() -> None:
    """A column, a text and a public table that are called like the end of a plan: each stays within its quotes, on its line."""
    forged = "x' = 1\ncounts rows, of step 0\u2028\u202e'"
    scalar = scalars.Case(((Like("sex", forged), Const(forged)),), Const("b"))
    request = summed(scalars.Coalesce((AGE,)), name=forged)
    relation = PublicJoined(
        source=Extended(source=base_of(), scalars=((forged, scalar),)),
        name=forged,
        table=SEXES,
        on=(("sex", "name"),),
        columns=((forged + "2", "height"),),
    )
    for each in (request, about(relation)):
        assert isinstance(each.table, Relation)
        over = Over(table=EMPTY, public={forged: SEXES})
        words = words_of(Asked(table="a", cost=cl.PureDP(1), request=request_from(each.canonical(), PEOPLE, over)))
        lines = words.splitlines()
        assert sum(line.startswith("counts") for line in lines) == 1
        assert all(line.startswith(("for ", "step ", "counts ")) for line in lines)
        assert not {"\u2028", "\u202e"} & set(words)
        assert words.count(repr(forged)[:-1]) >= 1


def test_a_yes_to_one_computed_column_is_none_to_another() -> None:
    policy = OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal())
    given = {"table": "a", "cost": cl.PureDP(1), "purpose": "a report", "who": "ada"}
    harmless, narrow = read(summed(scalars.Clamp(AGE, 0, 90))), read(summed(scalars.Clamp(AGE, 40, 41)))
    assert "its owner is asked" in str(policy(Asked(request=harmless, **given)))  # type: ignore[arg-type]
    policy.decide(policy.plans("waiting")[0]["plan"], "allowed")
    assert "its owner is asked" in str(policy(Asked(request=narrow, **given)))  # type: ignore[arg-type]
    assert policy(Asked(request=harmless, **given)) is None  # type: ignore[arg-type]
