"""Several groupings under one charge: they agree, they are right, and they cost less error than one by one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Mean, Persons, Quantile, Question, Sum

ROWS: dict[str, list[Any]] = {
    "sex": ["F", "M", None, "F"] * 250,
    "educ": ["a", "b", "b", None, "c"] * 200,
    "hours": [number % 41 for number in range(1000)],
}
COLUMNS = {"sex": cl.Category(["F", "M"]), "educ": cl.Category(["a", "b", "c"]), "hours": cl.Integer(0, 40)}
BUDGETS = [cl.PureDP(10**9), cl.ZCDP(10**9), cl.ApproxDP(10**9, "1e-6")]


def session(budget: Any = BUDGETS[0], rows: dict[str, list[Any]] = ROWS) -> cl.Session:
    return cl.Session({"people": cl.PrivateTable(rows, columns=COLUMNS)}, budget=budget, random=Random.deterministic(8))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("sets", ["ROLLUP(sex, educ)", "CUBE(sex, educ)", "GROUPING SETS ((sex), (educ), ())"])
def test_totals_are_the_sums_of_the_cells_that_are_shown(budget: Any, sets: str) -> None:
    with session(budget) as opened:
        answer = opened.sql(f"SELECT sex, educ, COUNT(*) AS n, SUM(hours) AS h FROM people GROUP BY {sets}", spend="0.5")
        rows = list(zip(*answer.to_pydict().values(), strict=True))
    table = {(sex, educ): (n, h) for sex, educ, n, h in rows}
    for (sex, educ), values in table.items():
        finer = [key for key in table if (sex is None) != (key[0] is None) and (educ is None) == (key[1] is None) and sex is None]
        if finer:
            mine = [table[key] for key in finer if key[1] == educ]
            assert tuple(map(sum, zip(*mine, strict=True))) == values, (sex, educ)
    assert all(isinstance(n, int) for n, _ in table.values())


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_numbers_are_right_where_noise_is_nothing(budget: Any) -> None:
    with session(budget) as opened:
        answer = opened.sql("SELECT sex, educ, COUNT(*) AS n, AVG(hours) AS h FROM people GROUP BY CUBE(sex, educ)", spend=10**8)
        rows = zip(*answer.to_pydict().values(), strict=True)
        for sex, educ, n, mean in rows:
            chosen = [
                hours
                for s, e, hours in zip(*(ROWS[name] for name in ("sex", "educ", "hours")), strict=True)
                if s is not None and e is not None and sex in (None, s) and educ in (None, e)
            ]
            assert n == len(chosen), (sex, educ)
            assert mean == pytest.approx(float(np.mean(chosen)), abs=0.01)


def test_asked_one_by_one_the_totals_count_rows_without_a_value() -> None:
    asked = ["SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "SELECT COUNT(*) AS n FROM people"]
    with session() as opened:
        by_sex, total = opened.workload(asked, spend=10**8)
        assert by_sex["n"].tolist() == [500, 250]
        assert total["n"].tolist() == [1000]


def test_one_charge_and_the_same_workload_again_is_free() -> None:
    text = "SELECT sex, educ, COUNT(*) AS n FROM people GROUP BY ROLLUP(sex, educ)"
    with session() as opened:
        first = opened.sql(text, spend="0.5")
        assert str(opened.spent) == "ε = 0.5"
        again = opened.sql(text, spend="0.5")
        assert str(opened.spent) == "ε = 0.5"
        assert again.to_pydict() == first.to_pydict()
        assert again.provenance.repeated


def test_a_larger_spend_buys_the_difference_and_narrows_the_margins() -> None:
    text = "SELECT sex, educ, COUNT(*) AS n FROM people GROUP BY ROLLUP(sex, educ)"
    with session() as opened:
        first = opened.sql(text, spend="0.1")
        second = opened.sql(text, spend="0.4")
        assert str(opened.spent) == "ε = 0.4"
        assert max(second.margin()["n"]) < max(first.margin()["n"]) * 0.6


def test_the_margins_before_are_the_margins_after() -> None:
    text = "SELECT sex, educ, COUNT(*) AS n FROM people GROUP BY ROLLUP(sex, educ)"
    with session() as opened:
        plan = opened.explain(text, spend="0.5")
        answer = opened.sql(text, spend="0.5")
    told = {keys: margins["count_star()"] for keys, margins in plan.wanted}
    found = answer.margin()["n"].tolist()
    assert [told["sex × educ"]] * 6 + [told["sex"]] * 2 + [told["all rows"]] == found
    assert "worked out together" in str(plan)


@pytest.mark.parametrize("keys", ["ROLLUP(sex)", "CUBE(sex, educ)", "GROUPING SETS ((sex, educ), (educ), ())"])
def test_the_margin_before_is_that_of_the_widest_grouping(keys: str) -> None:
    """At every confidence, and in the table of spends; whole numbers that add up may be a little wider. A mean stands beside."""
    text = f"SELECT COUNT(*) AS n, SUM(hours) AS h, AVG(hours) AS a FROM people GROUP BY {keys}"
    with session() as opened:
        plan, spends = opened.explain(text, spend="0.5"), opened.afford(text, spends=["0.5"])
        answer = opened.sql(text, spend="0.5")
        for confidence in (0.5, 0.95):
            told = plan.margin(confidence)
            assert told.column_names == ["n", "h", "a"]
            for name in ("n", "h"):
                found = max(answer.margin(confidence)[name])
                assert told[name][0] <= found <= told[name][0] + 2, (name, confidence)
        assert spends.to_pydict()["n"] == plan.margin()["n"].tolist()
        assert spends.margins.column_names == ["n", "h", "a"]
    assert "in each group" not in str(plan)
    assert "rounded so that they add up" in str(plan)


def test_measured_together_the_error_is_less_than_one_by_one() -> None:
    """Three groupings of one spend: a third each, or together."""
    texts = [
        "SELECT sex, educ, COUNT(*) AS n FROM people GROUP BY sex, educ",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    ]
    texts.append("SELECT COUNT(*) AS n FROM people")
    with session() as opened:
        together = [max(answer.margin()["n"]) for answer in opened.workload(texts, spend="0.3")]
    with session() as opened:
        apart = [max(opened.sql(text, spend="0.1", fresh=True).margin()["n"]) for text in texts]
    assert sum(width**2 for width in together) < 0.7 * sum(width**2 for width in apart)


def test_questions_of_different_kinds_stand_side_by_side() -> None:
    questions = [
        Question(table="people", by=("sex",), statistics=(Count(),)),
        Question(table="people", statistics=(Count(),)),
        Question(table="people", by=("sex",), statistics=(Quantile(column="hours"),)),
        Question(table="people", by=("educ",), statistics=(Mean(column="hours"), Sum(column="hours"))),
        Question(table="people", statistics=(Persons(),)),
    ]
    with session() as opened:
        found = opened.workload(questions, spend=10**8)
        assert [answer.num_rows for answer in found] == [2, 1, 2, 3, 1]
        assert found[1]["count"].tolist() == [1000]
        assert found[4]["persons"].tolist() == [1000]
        assert found[3]["mean_hours"][0] == pytest.approx(np.mean(ROWS["hours"][0::5]), abs=0.01)


def test_the_order_of_keys_is_the_question_s_own() -> None:
    orders = [("sex", "educ"), ("educ", "sex"), ("educ",)]
    with session() as opened:
        one, other, _ = opened.workload([Question(table="people", by=by, statistics=(Count(),)) for by in orders], spend=10**8)
        counts = {(sex, educ): n for sex, educ, n in zip(*one.to_pydict().values(), strict=True)}
        turned = {(sex, educ): n for educ, sex, n in zip(*other.to_pydict().values(), strict=True)}
    assert counts == turned
    assert len(counts) == len(list(itertools.product("FM", "abc")))


def test_an_empty_table_has_the_same_shape() -> None:
    text = "SELECT sex, educ, COUNT(*) AS n FROM people GROUP BY CUBE(sex, educ)"
    with session() as full, session(rows={name: [] for name in ROWS}) as empty:
        one, other = full.sql(text, spend=1), empty.sql(text, spend=1)
    assert [one.to_pydict()[key] for key in ("sex", "educ")] == [other.to_pydict()[key] for key in ("sex", "educ")]


def test_joint_margins_are_wider() -> None:
    with session() as opened:
        answer = opened.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP(sex)", spend=1)
    assert (np.asarray(answer.margin(joint=True)["n"]) > np.asarray(answer.margin()["n"])).all()
    assert answer.take([0, 2]).num_rows == 2


@pytest.mark.parametrize("sets", ["(g), (h), (k)", "(), (g), (g, h), (k)", "(g, h), (h, k), (g, k)", "(g), (h, k)"])
def test_without_noise_every_table_of_every_workload_is_exact(sets: str) -> None:
    """Whole numbers that add up exist, and they are found: rounding must not move what noise has not."""
    rows = {"g": [number * 7 % 11 % 3 for number in range(143)], "h": [number % 13 % 2 for number in range(143)]}
    rows["k"] = [number * number % 17 % 5 for number in range(143)]
    table = cl.PrivateTable(rows, columns={"g": cl.Integer(0, 2), "h": cl.Integer(0, 1), "k": cl.Integer(0, 4)})
    with cl.Session({"t": table}, budget=cl.PureDP(10**9), random=Random.deterministic(2)) as opened:
        answer = opened.sql(f"SELECT g, h, k, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ({sets})", spend=10**8)
    for g, h, k, n in zip(*answer.to_pydict().values(), strict=True):
        mine = [
            all(wanted in (None, found) for wanted, found in zip((g, h, k), each, strict=True))
            for each in zip(*rows.values(), strict=True)
        ]
        assert n == sum(mine), (g, h, k)
    assert max(answer.margin()["n"]) == 0


def test_a_number_that_rounding_moved_has_a_margin_that_holds_the_way() -> None:
    from cloister.noise import DiscreteLaplace
    from cloister.session.releases.formulas import Rounded, reading_of

    reading = reading_of(np.array([3, 4]), DiscreteLaplace(scale="0.01"))
    formula = Rounded(name="n", kind="integer", coefficients=(("rows", 1.0),), slack=2.0)
    assert formula.margins({"rows": reading}, 0.95).tolist() == [2.0, 2.0]
