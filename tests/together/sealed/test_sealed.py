"""Sealed tables answer what any table answers, with the noise of two; what their format has no cells for is refused by name."""

from __future__ import annotations

import dataclasses
import itertools
import math
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import cloister as cl
from cloister.crypto import WrongKey, unseal
from cloister.learn import PCA, GaussianNB, KMeans, LinearRegression, Ridge
from cloister.noise import DiscreteLaplace, Random, SummedNoise
from cloister.session import Count, Question
from cloister.tables import Aggregate, Aggregation, Base, Column, Compare, Extended, Literal
from cloister.tables.engines.noised import Cells, Combination, Integers, NoisedRequest
from cloister.tables.expression import scalars
from cloister.tables.expression.evaluate import evaluate
from cloister.together import Journal, KeyHolder, Marginal, MaskedFormat, Sealer
from cloister.together.accounting import cost_of
from cloister.together.sealed import sums
from cloister.together.sealed.batches import Batch, pad_sums
from cloister.together.sealed.format import CELL
from cloister.together.sealed.sums import SumReader
from tests.session.test_parts import NONE, QUESTIONS, ROWS, rows
from tests.session.test_parts import session_of as central_session
from tests.together.sealed.cells import AGES, MARGINALS, MUCH, NUMBERS, ages, format_of, holder_of, panel

ANSWERED = [each for each in QUESTIONS if "age * 2" not in each]


LACKING = [
    ("SELECT SUM(wealth * 2) AS s FROM people WHERE sex = 'F'", r"by=\['sex'\], sums=\['wealth'\]"),
    ("SELECT AVG(wealth * age) AS a FROM people", r"products=\[\('age', 'wealth'\)\]"),
    ("SELECT SUM(CASE WHEN pay > 50 THEN age END) AS s FROM people", r"by=\['pay'\], sums=\['age'\]"),
    ("SELECT SUM(pay * pay * pay) AS s FROM people", r"by=\['pay'\]"),
    ("SELECT SUM(FLOOR(pay / 7)) AS s FROM people", r"by=\['pay'\]"),
    ("SELECT AVG(LN(age)) AS a FROM people", "may differ"),
    ("SELECT AVG(EXP(CLAMP(age, 0, 5))) AS a FROM people", "may differ"),
    ("SELECT AVG(POWER(age, 0.3)) AS a FROM people", "may differ"),
    ("SELECT COUNT(*) AS n FROM (SELECT age FROM people UNION ALL SELECT age FROM people) AS d", "A join, a union"),
    ("SELECT COUNT(*) AS n FROM people JOIN sizes ON people.age = sizes.age", "A join, a union"),
]
COMPUTED = [
    "SELECT AVG(pay) FILTER (WHERE sex = 'F') AS a, COUNT(*) FILTER (WHERE sex = 'M') AS n FROM people",
    "SELECT SUM(CASE WHEN sex = 'F' THEN pay ELSE 0 END) AS s, SUM(COALESCE(pay, 7)) AS c FROM people",
    "SELECT CASE WHEN age > 40 THEN 'old' ELSE 'young' END AS k, COUNT(*) AS n FROM people GROUP BY k",
    "SELECT age // 10 AS k, COUNT(*) AS n, AVG(age * 2) AS a FROM people WHERE sex = 'F' GROUP BY k",
    "WITH d AS (SELECT sex AS s, pay * 2 - 5 AS p FROM people WHERE sex = 'F') SELECT s, SUM(p) AS p FROM d GROUP BY s",
    "SELECT AVG(age * pay) AS a, SUM(age * height - 3 * pay) AS s FROM people",
    "SELECT sex, VARIANCE(pay * 2 + 1) AS v, STDDEV(3 - height) AS d FROM people GROUP BY sex",
    "SELECT tall, SUM(pay + age) AS s FROM (SELECT height > 180 AS tall, pay, age FROM people) AS d GROUP BY tall",
    "SELECT COUNT(*) AS n FROM (SELECT SQRT(wealth) AS r FROM people) AS d WHERE r > 30",
]


def session_of(folder: Path, holder: KeyHolder, budget: Any = MUCH, public: Any = None, **other: Any) -> cl.Session:
    table = cl.SealedTable(folder, holder, size=ROWS, **other)
    return cl.Session({"people": table, **(public or {})}, budget=budget, random=Random.deterministic(1))


def learnt(session: cl.Session, spend: Any) -> list[Any]:
    """The questions and models of the panel that the format is made for."""
    found: list[Any] = [session.sql(each, spend=spend).to_pydict() for each in ANSWERED]
    bayes = GaussianNB(epsilon=1).fit_table(session, "people", features=["age", "height"], target="sex", spend=spend)
    axes = PCA(2, epsilon=1).fit_table(session, "people", features=["age", "height", "pay"], spend=spend)
    model = cl.synth.fit(session, "people", spend=spend, method="pairs", columns=["sex", "age"])
    text = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex"
    return [*found, bayes.theta_, bayes.var_, axes.components_, axes.explained_variance_, model.answer(text).to_pydict()]


def test_without_noise_masked_cells_give_what_rows_give_and_cost_as_much(tmp_path: Path) -> None:
    """Two batches, padded; values missing and out of bounds. The key holder works out the very cost that the hub charges."""
    budget, holder = cl.PureDP(100 * NONE), holder_of()
    with central_session(rows(), budget) as central, session_of(panel(tmp_path, holder), holder, budget) as sealed:
        assert repr(learnt(central, NONE)) == repr(learnt(sealed, NONE))
        assert central.spent == sealed.spent
        assert isinstance(sealed.spent, cl.PureDP)
        assert holder.spent("patients") >= cl.ZCDP(sealed.spent.epsilon**2 / 2 / 100)
    gaussian = holder_of()
    (tmp_path / "rho").mkdir()
    with session_of(panel(tmp_path / "rho", gaussian), gaussian, cl.ZCDP(10)) as sealed:
        for each in ANSWERED:
            sealed.sql(each, spend="0.01")
            assert gaussian.spent("patients") == sealed.spent


def test_what_is_computed_of_a_row_is_what_the_rows_give(tmp_path: Path) -> None:
    """Conditions, CASE, FILTER, products and relations of a row, of the same cells; the key holder charges what the hub does."""
    holder, budget = holder_of(), cl.PureDP(10**15)
    pair = Marginal(by=["sex", "height"], products=[("age", "pay")])
    given = panel(tmp_path, holder, marginals=[*MARGINALS, pair])
    with central_session(rows(), budget) as central, session_of(given, holder, budget) as sealed:
        for each in COMPUTED:
            one, other = (session.sql(each, spend=10**12).to_pydict() for session in (central, sealed))
            assert one == other, each
            assert sealed.spent == central.spent, each
    assert len(holder.ledger.charges("patients")) == len(COMPUTED)


def test_columns_that_cells_are_by_are_summed_and_clustered(tmp_path: Path) -> None:
    """A number that cells are by needs no sum of its own; k-means asks about the nearest centre of each cell."""
    holder, budget = holder_of(), cl.PureDP(10**15)
    given = panel(tmp_path, holder, marginals=[Marginal(by=["age", "height"])])
    asked = "SELECT SUM(age) AS s, AVG(age * height) AS p, VARIANCE(height) AS v FROM people WHERE age > 30"
    with central_session(rows(), budget) as central, session_of(given, holder, budget) as sealed:
        one, other = (each.sql(asked, spend=10**12).to_pydict() for each in (central, sealed))
        assert one == other
        fits = [
            KMeans(2, method="engine", random=Random.deterministic(1)).fit_table(
                each, "people", features=["age", "height"], spend=10**12
            )
            for each in (central, sealed)
        ]
        np.testing.assert_allclose(fits[0].cluster_centers_, fits[1].cluster_centers_, rtol=1e-6)
        assert central.spent == sealed.spent


def test_a_table_of_cells_is_not_closed_under_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One table is kept; eight threads ask about two marginals in turns."""
    monkeypatch.setattr(sums, "_GRIDS", 1)
    holder, budget = holder_of(), cl.PureDP(10**15)
    given = panel(tmp_path, holder, marginals=[Marginal(by=["age"]), Marginal(by=["height"])])
    with session_of(given, holder, budget) as sealed, ThreadPoolExecutor(8) as pool:
        asked = [(name, low + shift) for shift in range(8) for name, low in (("age", 30), ("height", 160))]
        texts = [f"SELECT COUNT(*) AS n FROM people WHERE {name} > {low}" for name, low in asked]
        found = list(pool.map(lambda text: sealed.sql(text, spend=10**11).to_pydict()["n"][0], texts))
    assert found == [sum(each > low for each in rows()[name]) for name, low in asked]


def test_who_lets_go_of_the_tables_of_cells_waits_for_those_who_read(monkeypatch: pytest.MonkeyPatch) -> None:
    law = DiscreteLaplace(scale=10)
    rows = Integers("rows", Combination((("rows", 1),)), law)
    total = NoisedRequest(table="people", aggregations=(Aggregation(None),), integers=(rows,), cells=Cells())
    reader = SumReader(AGES)
    over, taken, let_go = reader._over, threading.Event(), threading.Event()

    def slowly(*given: Any) -> Any:
        found = over(*given)
        taken.set()
        assert let_go.wait(60)
        return found

    monkeypatch.setattr(reader, "_over", slowly)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(reader.integers, total, lambda _: np.arange(9))
        assert taken.wait(60)
        reader.close()
        let_go.set()
        assert read.result().shape == (1,)
    assert not reader._grids
    assert not reader._passed


def test_what_is_no_linear_map_of_the_cells_is_refused_before_a_charge(tmp_path: Path) -> None:
    holder, sizes = holder_of(), cl.PublicTable({"age": [39, 40]}, columns={"age": cl.Integer(17, 90)})
    with session_of(panel(tmp_path, holder), holder, public={"sizes": sizes}) as session:
        for sql, line in LACKING:
            with pytest.raises(cl.UnsupportedQuery, match=line):
                session.sql(sql, spend=1)
        assert session.spent == holder.spent("patients") == cl.ZCDP(0)


@pytest.mark.parametrize(
    ("limits", "why"), [({"budget": cl.PureDP("1.5")}, "it costs ε = 2,"), ({"a_day": 1}, "1 charges a day")]
)
def test_who_would_refuse_a_later_part_refuses_the_first_before_a_charge(tmp_path: Path, limits: Any, why: str) -> None:
    holder = holder_of(**limits)
    parts = [Question(table="people", by=by, statistics=[Count()]) for by in ((), ("sex",))]
    with session_of(panel(tmp_path, holder), holder, cl.PureDP(10)) as session:
        with pytest.raises(cl.CloisterError, match=why):
            session.measure_all(parts, 2)
        assert session.spent == cl.PureDP(0)
        assert not holder.ledger.charges("patients")
        session.measure_all(parts[:1], "1.5")


def test_a_question_that_is_asked_again_under_its_charge_was_agreed_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub was stopped when its key holder had answered, which has no budget and no charge of the day left for another."""
    holder = holder_of(budget=cl.PureDP(50), a_day=1)
    folder, integers = panel(tmp_path, holder), SumReader.integers

    def ask() -> list[int]:
        masked = cl.SealedTable(folder, holder, size=ROWS)
        table = cl.PrivateTable.declared(masked.source, masked.columns, like=masked, version="1")
        with cl.Session({"people": table}, budget=cl.PureDP(50), ledger=str(tmp_path / "hub.db")) as session:
            return session.sql("SELECT COUNT(*) AS n FROM people", spend=50).to_pydict()["n"]  # type: ignore[no-any-return]

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SumReader, "integers", stopped)
    with pytest.raises(KeyboardInterrupt):
        ask()
    monkeypatch.setattr(SumReader, "integers", integers)
    [n] = ask()
    assert abs(n - ROWS) <= 5
    assert len(holder.ledger.charges("patients")) == 1


def random_scalar(random: Any, depth: int) -> Any:
    """A formula of two numbers that a cell sums up, and of conditions that it knows."""
    kind = int(random.integers(9)) if depth else int(random.integers(3))
    if kind < 3:
        return [scalars.Ref("a"), scalars.Ref("b"), scalars.Const(int(random.integers(-3, 4)))][kind]
    one, other = random_scalar(random, depth - 1), random_scalar(random, depth - 1)
    if kind < 6:
        return [scalars.Add, scalars.Subtract, scalars.Multiply][kind - 3](one, other)
    if kind == 6:
        return scalars.Coalesce((scalars.Negate(one), other))
    women = Compare("=", Column("sex"), Literal("F"))
    return scalars.Case(((women, one),), other if kind == 7 else None)


def test_no_row_moves_what_is_computed_further_than_is_charged(tmp_path: Path) -> None:
    """Every row of a small format, values missing too, and 40 formulas: the map of its cells is what the formula gives, worked
    out on arrays, and moves a number by no more than the key holder charges."""
    columns = {"sex": cl.Category(["F", "M"]), "a": cl.Real(-1, 1, step=0.5), "b": cl.Integer(2, 4)}
    form = MaskedFormat(
        columns=columns,
        marginals=[Marginal(by=["sex"], squares=["a", "b"], products=[("a", "b")]), Marginal(by=["a"], sums=["b"])],
        population="patients",
    )
    each_code = [[*range(domain.low_code, domain.high_code + 1), domain.null_code] for domain in columns.values()]
    grid = np.array([*itertools.product(*each_code)])
    codes = {name: grid[:, at] for at, name in enumerate(columns)}
    known = {
        name: np.array([None if code == columns[name].null_code else int(code) for code in column], dtype=object)
        for name, column in codes.items()
    }
    cells = [form.encoded(codes, marginal) for marginal in form.marginals]
    reader, random, answered = SumReader(form), np.random.default_rng(4), 0
    base = Base(name="people", table=form.table)
    while answered < 40:
        relation = Extended(source=base, scalars=(("c", random_scalar(random, 3)),))
        offset, factor = int(random.integers(-2, 3)), int(random.integers(1, 4))
        asked = Aggregation(None, aggregates=(Aggregate("s", "sum", (("c", offset),)), Aggregate("n", "values", (("c", 0),))))
        parts = Integers("s", Combination((("s", factor), ("n", 1))), DiscreteLaplace(scale=1))
        request = NoisedRequest(table=relation, aggregations=(asked,), integers=(parts,), cells=Cells())
        try:
            homes = reader._homes(asked, relation)
        except cl.UnsupportedQuery:
            continue
        answered += 1
        found = evaluate(relation.scalars[0][1], columns, known)
        expected = [[0, 0] if value is None else [value - offset, 1] for value in found]
        moved = np.zeros((2, len(grid)), dtype=np.int64)
        for at, (place, terms) in enumerate(homes):
            marginal = form.marginals[place]
            numbers = cells[place].reshape(len(grid), -1, len(marginal.statistics))
            for statistic, weights in terms.items():
                moved[at] += numbers[:, :, marginal.statistics.index(statistic)] @ weights.astype(np.int64)
        assert moved.T.tolist() == expected, relation.scalars
        total = reader.integers(request, lambda place: cells[place].sum(axis=0))
        assert total.view(np.int64).tolist() == [factor * moved[0].sum() + moved[1].sum()]
        cost = cost_of(request, relation)
        assert isinstance(cost, cl.PureDP)
        assert max(abs(factor * moved[0] + moved[1])) <= cost.epsilon
    reader.close()


def test_the_noise_is_that_of_both_and_the_margin_says_so(tmp_path: Path) -> None:
    """4,001 counts: by the inequality of Dvoretzky, Kiefer & Wolfowitz a false alarm once in 10⁷."""
    holder, budget = holder_of(cl.PureDP(100)), cl.PureDP(100)
    with session_of(panel(tmp_path, holder), holder, budget) as session:
        text = "SELECT wealth, COUNT(*) AS n FROM people GROUP BY wealth"
        planned = session.explain(text, spend="0.1").margin()["n"][0]
        answer = session.sql(text, spend="0.1")
        assert str(holder.spent("patients")) == str(session.spent) == "ε = 0.1"
    law = answer.readings["rows"].terms[0].noise
    assert law == SummedNoise(parts=[(DiscreteLaplace(scale=10), 2)])
    assert planned == answer.margin().to_pydict()["n"][0]
    released = answer.to_pydict()
    counts: dict[int, int] = {}
    for wealth in rows()["wealth"]:
        counts[wealth] = counts.get(wealth, 0) + 1
    noise = np.array(released["n"]) - np.array([counts.get(wealth, 0) for wealth in released["wealth"]])
    places, decay = np.arange(-2000, 2001), math.exp(-1 / 10)
    one = (1 - decay) / (1 + decay) * decay ** np.abs(places)
    below = np.concatenate([[0.0], np.cumsum(np.convolve(one, one))])
    at = noise + 4000
    uniform = np.sort(below[at] + (below[at + 1] - below[at]) * Random.deterministic(2).words(len(at)) / 2.0**64)
    steps = np.arange(1, len(at) + 1) / len(at)
    far = max(float((steps - uniform).max()), float((uniform - steps).max()) + 1 / len(at))
    assert far < math.sqrt(math.log(2 / 1e-7) / (2 * len(at)))


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("SELECT COUNT(*) AS n FROM people WHERE wealth > 10 AND age > 40", r"Marginal\(by=\['age', 'wealth'\]\)"),
        ("SELECT sex, SUM(wealth) AS s FROM people GROUP BY sex", r"by=\['sex'\], sums=\['wealth'\]"),
        ("SELECT sex, VARIANCE(wealth) AS v FROM people GROUP BY sex", r"by=\['sex'\], squares=\['wealth'\]"),
        ("SELECT CORR(wealth, age) AS c FROM people", r"products=\[\('age', 'wealth'\)\]"),
    ],
)
def test_what_the_format_lacks_is_refused_with_the_line_that_has_it(tmp_path: Path, sql: str, line: str) -> None:
    holder = holder_of()
    with session_of(panel(tmp_path, holder), holder) as session:
        with pytest.raises(cl.UnsupportedQuery, match=line):
            session.sql(sql, spend=1)
        model = LinearRegression(epsilon=1)
        with pytest.raises(cl.UnsupportedQuery, match=r"products=\[\('age', 'wealth'\)\]"):
            model.fit_table(session, "people", features=["age"], target="wealth", spend=1)
        with pytest.raises(cl.UnsupportedQuery, match=r"another upload with Marginal\(by=\['age', 'pay', 'sex'\]\)"):
            model.fit_table(session, "people", features=["age", "sex"], target="pay", spend=1)
        assert session.spent == holder.spent("patients") == cl.ZCDP(0)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_line_of_masked_cells_is_that_of_the_rows(tmp_path: Path, intercept: bool) -> None:
    """From sums of declared columns: without noise the line that an engine with computed columns finds, whose margins are nil."""
    data = {name: [20 if value is None else value for value in values] for name, values in rows().items() if name != "town"}
    holder, budget = holder_of(), cl.PureDP(100 * NONE)
    Sealer(format_of(), holder.public).seal(data, tmp_path / "all.masked")
    given: dict[str, Any] = {"features": ["age", "height"], "target": "pay", "spend": NONE}
    with central_session({**data, "town": rows()["town"]}, budget) as central, session_of(tmp_path, holder, budget) as sealed:
        one, other = (LinearRegression(fit_intercept=intercept).fit_table(each, "people", **given) for each in (central, sealed))
        np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-9)
        assert math.isclose(other.intercept_, one.intercept_, rel_tol=1e-9)
        assert sealed.spent == central.spent == cl.PureDP(NONE)
        assert max(other.margin()["coef"]) < 1e-6


SCORES: dict[str, list[Any]] = {
    "age": [None if (place * place) % 5 == 4 else place % 11 for place in range(600)],
    "sex": ["FM"[place % 7 % 2] for place in range(600)],
    "score": [min(place % 11 + 4 * (place % 7 % 2) + place % 3, 15) for place in range(600)],
}


def scored(folder: Path, age: cl.Integer, *marginals: Marginal) -> tuple[dict[str, cl.PrivateTable], KeyHolder]:
    """Rows of whose ages some are missing, in one table and in masked cells."""
    columns = {"age": age, "sex": cl.Category(["F", "M"]), "score": cl.Integer(0, 15)}
    holder = holder_of()
    Sealer(MaskedFormat(columns=columns, marginals=marginals, population="patients"), holder.public).seal(
        SCORES, folder / "all.masked"
    )
    return {"rows": cl.PrivateTable(SCORES, columns), "cells": cl.SealedTable(folder, holder)}, holder


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(alpha=5.0)], ids=["line", "ridge"])
def test_a_line_of_cells_by_all_of_its_columns_leaves_out_rows_in_which_one_is_missing(tmp_path: Path, model: Any) -> None:
    """And takes a category, as where rows are: a line of masked cells was refused for either."""
    tables, _ = scored(tmp_path, cl.Integer(0, 10, nullable=True), Marginal(by=["age", "sex", "score"]))
    found = []
    with cl.Session(tables, budget=cl.PureDP(10**9), random=Random.deterministic(1)) as session:
        for name in tables:
            fitted = clone(model).fit_table(session, name, features=["age", "sex"], target="score", spend=10**6)
            found.append(fitted.predict(np.array([[0, 1, 0], [10, 1, 0], [0, 0, 1], [10, 0, 1]])))
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)
    assert np.ptp(found[0]) > 5


@pytest.mark.parametrize("spend", [10**6, 30])
def test_a_line_of_masked_cells_that_lack_values_is_not_said_to_be_near_that_of_complete_rows(tmp_path: Path, spend: int) -> None:
    """Sums of whole columns beside products of what is left of two: its slope was another, within a margin of nothing."""
    numbers = Marginal(squares=["score", "age"], products=[("age", "score")])
    tables, _ = scored(tmp_path, cl.Integer(0, 10), numbers)
    given: dict[str, Any] = {"features": ["score"], "target": "age", "spend": spend}
    with cl.Session(tables, budget=cl.PureDP(10**9), random=Random.deterministic(1)) as session:
        exact = LinearRegression().fit_table(session, "rows", **given | {"spend": 10**6})
        with pytest.warns(UserWarning, match="lack a value of a column that is not declared nullable") as told:
            line = LinearRegression().fit_table(session, "cells", **given)
    assert told[0].filename == __file__
    assert abs(line.coef_[0] - exact.coef_[0]) <= line.margin()["coef"][0]
    assert abs(line.intercept_ - exact.intercept_) <= line.margin()["intercept"]


def test_the_margin_of_a_line_of_masked_cells_holds(tmp_path: Path) -> None:
    """Of 12 lines from 4,000 rows each number, with a confidence of 1 - 10⁻⁹; and the noise is felt. The key holder charges what
    the hub does."""
    random = np.random.default_rng(5)
    age, height = random.integers(17, 91, 4000), random.integers(140, 211, 4000)
    pay = np.clip(age // 2 + height // 5 + random.integers(0, 20, 4000), 0, 100)
    data = {"age": age, "height": height, "pay": pay, "wealth": 40 * age, "sex": ["FM"[each % 2] for each in age]}
    holder = holder_of(cl.ZCDP(10**6))
    Sealer(format_of(), holder.public).seal({name: list(values) for name, values in data.items()}, tmp_path / "all.masked")
    exact = np.linalg.lstsq(np.column_stack([age, height, np.ones(4000)]), pay, rcond=None)[0]
    table, apart = cl.SealedTable(tmp_path, holder, size=4000), []
    with cl.Session({"people": table}, budget=cl.ZCDP(10**6), random=Random.deterministic(1)) as session:
        for place in range(12):
            spend = cl.ZCDP(Fraction(2) + Fraction(place, 100))  # another amount each time, or it is the same answer
            line = LinearRegression().fit_table(session, "people", features=["age", "height"], target="pay", spend=spend)
            margin = line.margin(1 - 1e-9)
            assert np.isfinite(margin["coef"]).all()
            assert (np.abs(line.coef_ - exact[:2]) <= margin["coef"]).all()
            assert abs(line.intercept_ - exact[2]) <= margin["intercept"]
            apart.append(np.abs(line.coef_ - exact[:2]) / margin["coef"])
        assert holder.spent("patients") == session.spent
    assert 1e-3 < np.mean(apart) < 0.5


def test_people_with_several_rows_are_counted_over_all_batches(tmp_path: Path) -> None:
    columns = {"cost": cl.Integer(0, 9)}
    form = MaskedFormat(
        columns=columns, marginals=[Marginal(sums=["cost"])], population="patients", unit="who", max_rows=2, overlap=2, pad_to=4
    )
    holder = holder_of(cl.PureDP(10 * NONE))
    with pytest.raises(cl.InvalidDeclaration, match="counts="):
        Sealer(form, holder.public).seal({"who": ["a"], "cost": [1]}, tmp_path / "none")
    other = Sealer(form, holder_of().public, counts=Journal(tmp_path / "owner"))  # another key holder's, or format's, don't count
    other.seal({"who": ["a", "a"], "cost": [1, 1]}, tmp_path / "other")
    for place, people in enumerate((["a", "a", "a", "b"], ["a", "b", "b", "c"])):
        sealer = Sealer(form, holder.public, counts=Journal(tmp_path / "owner"))  # as after a restart
        sealer.seal({"who": people, "cost": [1] * 4}, tmp_path / f"{place}.masked")
    with session_of(tmp_path, holder, cl.PureDP(10 * NONE)) as session:
        found = session.sql("SELECT COUNT(*) AS n, SUM(cost) AS s FROM people", spend=NONE)
        assert found.to_pydict() == {"n": [5], "s": [5]}
        assert holder.spent("patients") == session.spent  # a person may be at two owners: both count her twice
        with pytest.raises(cl.UnsupportedQuery, match="number of people"):
            session.sql("SELECT COUNT(DISTINCT who) AS n FROM people", spend=1)


def test_a_batch_that_was_not_written_uses_up_nobodys_rows(tmp_path: Path) -> None:
    """Neither where its draft can't be written nor where it can't take its place: the same again has every row."""
    form = MaskedFormat(
        columns={"cost": cl.Integer(0, 9)}, marginals=[Marginal(sums=["cost"])], population="p", unit="who", max_rows=1
    )
    sealer = Sealer(form, holder_of().public, counts=Journal(tmp_path / "owner"))
    rows = {"who": ["a", "a", "b", "c"], "cost": [1] * 4}
    (tmp_path / "taken").mkdir()
    for path in (tmp_path / "nowhere" / "first.masked", tmp_path / "taken"):
        with pytest.raises(OSError):
            sealer.seal(rows, path)
        assert Journal(tmp_path / "owner").of(sealer.name).get("rows") is None
    for left, over in ((3, 1), (0, 4)):
        sealer.seal(rows, tmp_path / "first.masked")
        assert (sealer.rows, sealer.over) == (left, over)


def test_rows_of_a_batch_that_was_killed_before_it_got_its_name_are_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had counted them already: the folder is put back as it was at that moment."""
    form = MaskedFormat(
        columns={"cost": cl.Integer(0, 9)}, marginals=[Marginal(sums=["cost"])], population="p", unit="who", max_rows=1
    )
    holder, path, rename = holder_of(), tmp_path / "first.masked", Path.replace
    rows = {"who": ["a", "b"], "cost": [1, 1]}

    def killed(draft: Path, to: Path) -> Path:
        if to == path:
            shutil.copytree(tmp_path, tmp_path.with_name("then"))
            raise OSError
        return rename(draft, to)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(OSError):
            Sealer(form, holder.public, counts=Journal(tmp_path / "owner")).seal(rows, path)
    shutil.copytree(tmp_path.with_name("then"), tmp_path, dirs_exist_ok=True)
    for name, left in (("second.masked", 2), ("third.masked", 0)):
        sealer = Sealer(form, holder.public, counts=Journal(tmp_path / "owner"))
        sealer.seal(rows, tmp_path / name)
        assert sealer.rows == left
    assert sorted(each.name for each in tmp_path.glob("*.masked*")) == ["second.masked", "third.masked"]


def test_rows_stand_in_random_places_among_the_padding(tmp_path: Path) -> None:
    """Else the rows after a person who is added move on by a place, and half of the places tell of her by all of them. 64 rows in
    2,000 places are in the first 64 of them, or in their order, once in 10¹⁰⁰."""
    holder, form = holder_of(), dataclasses.replace(AGES, pad_to=2000)
    batch = Batch(Sealer(form, holder.public).seal({"age": [*range(17, 81)], "sex": ["F"] * 64}, tmp_path / "b.masked"))
    key = unseal(holder._opening, batch.head.sealed, batch.head.about)
    cells = [batch.sums(0, ((at, at + 1),)) - pad_sums(key, form, 0, ((at, at + 1),)) for at in range(2000)]
    found = [(at, int(each[2]) + 17) for at, each in enumerate(cells) if each[0]]  # F: rows, rows with an age, ages
    assert sorted(age for _, age in found) == [*range(17, 81)]
    assert found[-1][0] > 63
    none = Sealer(form, holder.public).seal({"age": [], "sex": []}, tmp_path / "none.masked")
    assert Batch(none).head.rows == 2000
    assert [age for _, age in found] != [*range(17, 81)]


def test_cells_less_pads_are_the_rows_and_no_pad_comes_twice(tmp_path: Path) -> None:
    """Pads of different pages, marginals and batches are streams of their own, and a sum over ranges is that of its rows."""
    form, key = format_of(marginals=MARGINALS[:2]), bytes(range(32))
    pads = [pad_sums(key, form, place, ((row, row + 1),)) for place in (0, 1) for row in (0, 1, 1023, 1024, 5000)]
    assert len({int(each[at]) for each in pads for at in range(80)}) == 80 * len(pads)
    whole = pad_sums(key, form, 0, ((1000, 1100),))
    assert (whole == sum(pad_sums(key, form, 0, ((row, row + 1),)) for row in range(1000, 1100))).all()
    holder = holder_of()
    batch = ages(tmp_path, holder)
    with pytest.raises(WrongKey):
        holder_of().accept(batch.head.data)  # sealed to another
    assert Batch(batch.path).head.format == AGES


def test_what_is_not_whole_or_not_declared_is_invalid(tmp_path: Path) -> None:
    holder = holder_of()
    batch = ages(tmp_path, holder)
    text = batch.path.read_bytes()
    for wrong in (b"", text[:40], text[:-8], b"x" + text[1:]):
        (tmp_path / "wrong.masked").write_bytes(wrong)
        with pytest.raises(cl.EngineError, match="A batch could not be read"):
            cl.SealedTable([tmp_path / "wrong.masked"], holder)
    (tmp_path / "wrong.masked").write_bytes(text)
    with pytest.raises(cl.InvalidDeclaration, match="twice"):
        cl.SealedTable(tmp_path, holder)
    for away in (tmp_path / "nowhere", [tmp_path / "nowhere"]):
        with pytest.raises(cl.InvalidDeclaration, match="there is no nowhere"):
            cl.SealedTable(away, holder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(cl.InvalidDeclaration, match="none was given"):
        cl.SealedTable(tmp_path / "empty", holder)
    assert cl.SealedTable(batch.path, holder).source.schema == cl.SealedTable([batch.path], holder).source.schema
    with pytest.raises(cl.InvalidDeclaration, match="one text that can be shown"):
        cl.SealedTable([batch.path], holder, who=" ")
    sums = {"columns": {"pay": cl.Integer(0, 2**40)}, "population": "p"}
    for marginal, why in (
        ({"by": ["age"]}, "no column"),
        ({"by": ["pay"]}, "cells"),
        ({"squares": ["pay"]}, "62 bits"),
        ({"by": "pay"}, "list of names"),
        ({"products": [("pay",)]}, "two or three"),
    ):
        with pytest.raises(cl.InvalidDeclaration, match=why):
            MaskedFormat(marginals=[Marginal(**marginal)], **sums)  # type: ignore[arg-type]
    with pytest.raises(cl.InvalidDeclaration, match="what its cells are called"):
        MaskedFormat(columns={CELL: cl.Integer(0, 3)}, marginals=[Marginal(by=[CELL])], population="p")
    with pytest.raises(cl.InvalidDeclaration, match="nothing could be asked"):
        MaskedFormat(columns=NUMBERS, marginals=[], population="p")
    wide = MaskedFormat(columns={"pay": cl.Integer(0, 2**60)}, marginals=[Marginal(sums=["pay"])], population="patients")
    Sealer(wide, holder.public).seal({"pay": [1, 2]}, tmp_path / "wide.masked")
    with (
        cl.Session({"t": cl.SealedTable([tmp_path / "wide.masked"], holder)}, budget=cl.PureDP(1)) as session,
        pytest.raises(cl.UnsupportedQuery, match="63 bits"),
    ):
        session.sql("SELECT SUM(pay) AS s FROM t", spend=1)
