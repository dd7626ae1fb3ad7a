"""Tables of several owners in one hub answer as one table with all rows does, at the cost of one question to each owner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.ledger import Ledger
from cloister.noise import DiscreteLaplace, Random
from cloister.session import Count, Question
from cloister.together import PooledTable, Site, SitesMissing
from tests.session.test_parts import COLUMNS, NONE, QUESTIONS, ROWS, answers, models, rows
from tests.session.test_parts import session_of as central_session
from tests.together.joint_tables import joint_of, sites_of
from tests.together.test_joint import synthetic

COUNT = QUESTIONS[0]
BUDGET = cl.PureDP(100 * NONE)


def tables(count: int = 3) -> dict[str, cl.PrivateTable]:
    return {site.name.replace(" ", "_"): site.table for site in sites_of(count=count)}


def session_of(parts: dict[str, cl.PrivateTable], budget: Any = BUDGET, **other: Any) -> cl.Session:
    pooled = PooledTable(parts, population="study", size=ROWS)
    return cl.Session({**parts, "people": pooled}, budget=budget, random=Random.deterministic(1), **other)


@pytest.mark.parametrize("learnt", [answers, models, synthetic])
def test_without_noise_owners_give_what_pooled_rows_give(learnt: Callable[[cl.Session, Any], Any]) -> None:
    with central_session(rows(), BUDGET) as central, session_of(tables()) as pooled:
        assert repr(learnt(central, NONE)) == repr(learnt(pooled, NONE))
        assert set(pooled.spent_by.values()) == {central.spent}  # the study and each owner


def test_the_noise_is_that_of_one_table() -> None:
    """Under the same draws, the very numbers of all rows in one table: so the law is the same."""
    parts, found = tables(), []
    everybody = cl.PrivateTable(rows(), columns=COLUMNS, size=ROWS)
    sql = "SELECT sex, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS m FROM people GROUP BY sex"
    for people in (everybody, PooledTable(parts, size=ROWS)):
        with cl.Session({**parts, "people": people}, budget=BUDGET, random=Random.deterministic(3)) as session:
            answer = session.sql(sql, spend=1)
            found.append((answer.to_pydict(), answer.margin().to_pydict(), session.explain(sql, spend=1).margin().to_pydict()))
    assert found[0] == found[1]


def test_sums_of_several_owners_do_not_wrap_around() -> None:
    """Each owner's sum has room in 64 bits, and the sum of both has not: whether both are here, or the others at sites."""
    large = 2**62 - 2
    columns = {"pay": cl.Integer(0, large)}
    one, other, *more = (cl.PrivateTable({"pay": [large]}, columns=columns) for _ in range(5))
    sites = [Site(f"site {place}", table, budget=BUDGET) for place, table in enumerate(more)]
    here = {"one": one, "other": other, "third": more[0]}
    for parts, people in ((here, 3), ({"one": one, "other": other, "far": cl.JointTable(sites, columns, overlap="none")}, 5)):
        with cl.Session({**parts, "pool": PooledTable(parts)}, budget=BUDGET) as session:
            [found] = session.sql("SELECT SUM(pay) AS s FROM pool", spend=NONE).to_pydict()["s"]
        assert found == pytest.approx(people * large, rel=1e-6)


def test_each_owner_is_charged_or_nobody_is() -> None:
    parts, ledger = tables(), Ledger()
    budgets = {"site_0": cl.PureDP(1), "site_1": cl.PureDP("0.3"), "site_2": cl.PureDP(1), "study": cl.PureDP(5)}
    with session_of(parts, budgets, ledger=ledger) as session:
        plan = session.explain(COUNT, spend="0.2")
        assert dict(plan.costs) == dict.fromkeys(("study", "site_0", "site_1", "site_2"), cl.PureDP("0.2"))
        answer = session.sql(COUNT, spend="0.2")
        assert answer.spent_by == plan.costs
        assert session.sql(COUNT, spend="0.2").to_pydict() == answer.to_pydict()  # again, for nothing
        assert session.spent_by == dict.fromkeys(budgets, cl.PureDP("0.2"))
        with pytest.raises(cl.BudgetExceeded, match="'site_1'"):
            session.sql(ALL, spend="0.2")
        assert session.spent_by == dict.fromkeys(budgets, cl.PureDP("0.2"))
        assert session.sql("SELECT COUNT(*) AS n FROM site_0", spend="0.5").to_pydict()  # an owner's own question is its own
        more = session.measure_all([Question(table=name, statistics=(Count(),)) for name in ("people", "site_2")], spend="0.1")
        assert more[0].spent_by["site_2"] == cl.PureDP("0.2")  # both of them
        assert str(session.spent_by["site_2"]) == "ε = 0.4"
        ana = session.on_behalf("ana")
        ledger.allot("site_0", "ana", cl.PureDP("0.05"), who="owner")
        with pytest.raises(cl.BudgetExceeded):
            ana.sql(COUNT, spend="0.2")  # what others paid counts against her share of each population


ALL = "SELECT COUNT(*) AS n FROM people WHERE height > 145"


def test_public_tables_are_joined_where_the_rows_are() -> None:
    """In a hub and at sites; of a key with two public rows each person's rows count twice, and each site charges for that."""
    parts, sites, sexes = tables(), sites_of(budget=BUDGET), COLUMNS["sex"]
    words = {"sex": [*sexes.options, sexes.options[0]], "word": ["one", "two", "two"]}
    public = cl.PublicTable(words, columns={"sex": sexes, "word": cl.Category(["one", "two"])})
    sql = "SELECT w.word, COUNT(*) AS n FROM people p JOIN words w ON p.sex = w.sex GROUP BY w.word"
    found = []
    for people in (cl.PrivateTable(rows(), columns=COLUMNS), PooledTable(parts), joint_of(sites)):
        with cl.Session({**parts, "words": public, "people": people}, budget=BUDGET) as session:
            found.append(session.sql(sql, spend=NONE).to_pydict())
    assert found[0] == found[1] == found[2]
    assert sum(found[0]["n"]) > ROWS
    assert {site.spent for site in sites} == {cl.PureDP(NONE)}


def test_rows_are_asked_through_a_pool_on_their_own_budget_alone(tmp_path: Path) -> None:
    columns, ledger = {"age": cl.Integer(17, 90)}, Ledger()
    files = {name: tmp_path / f"{name}.csv" for name in ("spent", "south")}
    for age, file in zip((51, 64), files.values(), strict=True):
        file.write_text(f"age\n39\n{age}\n")
    cl.Session({"spent": cl.PrivateTable(files["spent"], columns=columns)}, budget=cl.PureDP(1), ledger=ledger).close()
    fresh, south, north = (
        cl.PrivateTable(source, columns=columns, population=name)
        for name, source in (("fresh", files["spent"]), ("south", files["south"]), ("north", {"age": [22]}))
    )
    with pytest.raises(cl.InvalidParameter, match="another population's budget"):
        cl.Session({"pool": PooledTable({"fresh": fresh, "north": north})}, budget=cl.PureDP(1), ledger=ledger)
    pool = PooledTable({"south": south, "north": north})
    with cl.Session({"south": south, "north": north, "pool": pool}, budget=cl.PureDP(1), ledger=ledger) as session:
        files["south"].write_text(files["spent"].read_text())  # another's rows by now
        with pytest.raises(cl.InvalidParameter, match="another population's budget"):
            session.sql("SELECT COUNT(*) AS n FROM pool", spend=1)
        assert not np.any([each.epsilon for each in session.spent_by.values()])


REFUSED = [
    ("SELECT COUNT(DISTINCT age) AS n FROM people", "different values"),
    ("SELECT COUNT(*) AS n FROM people p JOIN site_0 s ON p.age = s.age", "different populations|whose row a row is"),
]


def test_what_is_not_a_sum_is_refused_before_anything_is_charged() -> None:
    with session_of(tables()) as session:
        for sql, why in REFUSED:
            with pytest.raises(cl.CloisterError, match=why):
                session.sql(sql, spend=1)
        with pytest.raises(cl.UnsupportedQuery, match="hands no rows"):
            cl.learn.LogisticRegression(epsilon=1).fit_table(session, "people", features=["age"], target="sex")
        assert not np.any([each.epsilon for each in session.spent_by.values()])


def test_tables_that_are_not_alike_are_no_pool() -> None:
    columns = {"age": cl.Integer(17, 90)}
    one, other = (cl.PrivateTable({"age": [39]}, columns=columns) for _ in range(2))
    wide = cl.PrivateTable({"age": [39]}, columns={"age": cl.Integer(17, 99)})
    capped = cl.PrivateTable({"age": [39], "who": ["a"]}, columns=columns, unit="who", max_rows=2)
    same = [cl.PrivateTable({"age": [39]}, columns=columns, population="town") for _ in range(2)]
    pool = PooledTable({"one": one, "other": other})
    for parts, why in (
        ({"one": one}, "fewer than two"),
        ({"one": one, "wide": wide}, "declare the column 'age' differently"),
        ({"one": one, "capped": capped}, "whose a row is"),
        (dict(zip("ab", same, strict=True)), "of one population"),
        ({"one": one, "pool": pool}, "sealed, or of several owners"),
        (
            {"here": sites_of()[0].table, "there": joint_of(sites_of()), "far": joint_of(sites_of())},
            "of two of them are at sites",
        ),
    ):
        with pytest.raises(cl.InvalidDeclaration, match=why):
            PooledTable(parts)
    budgets = {"one": cl.PureDP(1), "other": cl.ZCDP(1), "pool": cl.PureDP(1)}
    with (
        cl.Session({"one": one, "other": other, "pool": pool}, budget=budgets) as session,
        pytest.raises(cl.UnsupportedQuery, match="count differently"),
    ):
        session.sql("SELECT COUNT(*) FROM pool", spend=1)


# ── tables here and rows at sites ────────────────────────────────────────────────────────────────


def here_and_there(missing: int = 1, budget: Any = BUDGET) -> tuple[list[Site], cl.Session]:
    """Two tables of owners who trust this hub, and three sites of owners who don't."""
    sites = sites_of(count=5)
    parts = {"north": sites[3].table, "south": sites[4].table, "clinics": joint_of(sites[:3], missing=missing)}
    pooled = PooledTable(parts, population="study", size=ROWS)
    return sites[:3], cl.Session({**parts, "people": pooled}, budget=budget, random=Random.deterministic(1))


@pytest.mark.parametrize("learnt", [answers, models])
def test_tables_here_and_rows_at_sites_give_what_one_table_gives(learnt: Callable[[cl.Session, Any], Any]) -> None:
    sites, pooled = here_and_there(missing=0)
    with central_session(rows(), BUDGET) as central, pooled as session:
        assert repr(learnt(central, NONE)) == repr(learnt(session, NONE))
        assert session.spent_by == dict.fromkeys(("north", "south", "clinics", "study"), central.spent)
    assert len({repr(site.spent) for site in sites}) == 1


def test_the_noise_of_such_a_pool_is_that_of_the_sites_alone() -> None:
    """Drawn once, with their surplus: three sites of which one may collude have 3/2 of the variance of one noise."""
    sites, pooled = here_and_there()
    with pooled as session:
        answer = session.sql(COUNT, spend="0.5")
        planned = session.explain(COUNT, spend="0.5").margin().to_pydict()
        assert answer.margin().to_pydict() == planned
        laws = [term.noise for each in answer.readings.values() for term in each.terms]
        assert {round(law.variance / DiscreteLaplace(scale=2).variance, 9) for law in laws} == {1.5}
        assert session.spent_by["north"] == session.spent_by["clinics"] == cl.PureDP("0.5")
    assert all(len(site.ledger.charges(site.name)) == 1 for site in sites)


def test_without_a_site_such_a_pool_says_so_and_a_site_may_refuse_the_whole() -> None:
    sites, pooled = here_and_there(missing=0)
    sites[1].policy = lambda asked: "not for the study"
    with pooled as session, pytest.raises(cl.AccessDenied, match="not for the study"):
        session.sql(COUNT, spend=1)
    assert session.spent_by["north"] == cl.PureDP(0)
    sites = sites_of(count=6)
    parts = {"north": sites[5].table, "clinics": joint_of(sites[:5], missing=0, dropouts=1)}
    sites[2].policy = lambda asked: "no" if asked.round else None
    tables = {**parts, "people": PooledTable(parts, size=ROWS)}
    with cl.Session(tables, budget=BUDGET) as session, pytest.warns(SitesMissing, match="site 2 dropped out"):
        counted = sum(session.sql(COUNT, spend=NONE).to_pydict()["n"])
    assert 0 < counted < ROWS
