"""From a table to a model: what is measured and charged, what is kept, and what is refused before anything is spent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cloister as cl
import cloister.synth.fitting as fitting
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.session.questions.spend import amount_of
from cloister.synth.measuring import measure
from cloister.synth.states import states_of
from tests.synth.conftest import COLUMNS, ROWS, rows

SMALL = {"age": cl.Integer(18, 40), "sex": cl.Category(["F", "M"]), "member": cl.Boolean()}


def small(rows: dict[str, list[Any]], **terms: Any) -> cl.PrivateTable:
    return cl.PrivateTable(rows, columns=SMALL, **terms)


def test_measured_marginals_are_those_of_the_rows(people: cl.PrivateTable) -> None:
    """Without noise, every one- and two-way table is the exact count of each combination of states, missing ones included."""
    states = states_of(COLUMNS, None, table="people")
    with cl.Session({"people": people}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        found, _ = measure(session, "people", states, "pairs", 10**11, purpose="")
    places = []
    for each, values in zip(states, rows().values(), strict=True):
        codes = [each.domain.null_code if value is None else each.domain.encode(value) for value in values]
        places.append(np.searchsorted(each.starts, np.array(codes), side="right") - 1)
    assert len(found.tables) == 7 + 20  # pay × born has 101² cells, which is too many
    for kept, table in found.tables.items():
        shape = table.counts.shape
        exact = np.bincount(np.ravel_multi_index([places[place] for place in kept], shape), minlength=table.counts.size)
        assert table.counts.ravel().tolist() == exact.tolist(), kept
    assert found.rows()[0] == pytest.approx(ROWS)


def test_all_is_charged_once_and_the_same_again_costs_nothing(people: cl.PrivateTable) -> None:
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        one = cl.synth.fit(session, "people", spend="0.5", columns=["age", "sex", "ward"])
        assert session.spent == one.cost == cl.PureDP("0.5")
        assert len(one.charges) == 1
        other = cl.synth.fit(session, "people", spend="0.5", columns=["age", "sex", "ward"])
        assert session.spent == cl.PureDP("0.5")
    assert other.to_json() == one.to_json()


def test_rows_and_files_cost_nothing_more(people: cl.PrivateTable) -> None:
    with cl.Session({"people": people}, budget=cl.ZCDP("0.5")) as session:
        model = cl.synth.fit(session, "people", spend="0.25", columns=["age", "sex"])
        model.sample(10)
        model.to_json()
        assert session.spent == model.cost == cl.ZCDP("0.25")


@pytest.mark.parametrize("budget", [cl.PureDP(1), cl.ApproxDP(1, "1e-6"), cl.ZCDP("0.1")])
def test_every_kind_of_budget_pays(people: cl.PrivateTable, budget: Any) -> None:
    with cl.Session({"people": people}, budget=budget) as session:
        model = cl.synth.fit(session, "people", spend=budget, columns=["age", "sex", "ward", "smoker", "member"])
    assert model.cost == budget
    assert len(model.sample(20)) == 20


def test_an_interruption_loses_nothing_that_was_paid(people: cl.PrivateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        with monkeypatch.context() as patched:
            patched.setattr(fitting, "fitted", interrupted)
            with pytest.raises(KeyboardInterrupt):
                cl.synth.fit(session, "people", spend=1, columns=["age", "sex"])
        assert session.remaining == cl.PureDP(0) or str(session.remaining) == "ε = 0"
        model = cl.synth.fit(session, "people", spend=1, columns=["age", "sex"])
    assert model.cost == cl.PureDP(1)


def test_a_person_with_many_rows_is_protected_by_more_noise() -> None:
    """The noise of `max_rows` rows a person is that of a third of the spend; the column that names persons is never modelled."""
    held = {"who": [f"p{i // 3}" for i in range(300)], "age": [18 + i % 20 for i in range(300)], "sex": ["F", "M"] * 150}
    declared = {"who": cl.Identifier(), "age": cl.Integer(18, 40), "sex": cl.Category(["F", "M"])}
    table = cl.PrivateTable(held, declared, unit="who", max_rows=3)
    with cl.Session({"t": table}, budget=cl.PureDP(10)) as session:
        model = cl.synth.fit(session, "t", spend=1)
        alone = cl.PrivateTable({name: held[name] for name in ("age", "sex")}, {name: declared[name] for name in ("age", "sex")})
    with cl.Session({"t": alone}, budget=cl.PureDP(10)) as session:
        single = cl.synth.fit(session, "t", spend=1)
    assert [each.name for each in model.columns] == ["age", "sex"]
    assert model.rows_error == pytest.approx(3 * single.rows_error, rel=0.05)


def test_progress_is_told(people: cl.PrivateTable) -> None:
    said: list[str] = []
    with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        cl.synth.fit(session, "people", spend=1, columns=["sex", "member"], progress=said.append)
    assert said[0] == "measuring"
    assert said[-1].endswith("start 10 of 10")


def test_a_method_is_chosen_by_public_facts() -> None:
    held = {"age": [20, 30] * 50, "sex": ["F", "M"] * 50, "member": [True, False] * 50}
    with cl.Session({"t": small(held, size=100)}, budget=cl.PureDP(100)) as session:
        assert cl.synth.fit(session, "t", spend=1, columns=["age"]).why == "there is one column"
        assert cl.synth.fit(session, "t", spend=1).method == "independent"
        assert cl.synth.fit(session, "t", spend=20).method == "pairs"
        assert cl.synth.fit(session, "t", spend=1, about=["age"]).method == "pairs"
    with cl.Session({"t": small(held, size=10**6)}, budget=cl.PureDP(100)) as session:
        found = cl.synth.fit(session, "t", spend=90)
        assert found.method == "triples"
        assert all(f"{method} ± " in found.why for method in ("independent", "pairs", "triples"))
        assert cl.synth.fit(session, "t", spend=1, method="pairs").why == ""
    with cl.Session({"t": small(held)}, budget=cl.PureDP(100)) as session:
        assert cl.synth.fit(session, "t", spend=1).method == "pairs"


def test_a_frame_has_a_budget_of_its_own() -> None:
    pure = cl.synth.fit_frame(rows(), COLUMNS, epsilon=2)
    approx = cl.synth.fit_frame(rows(), COLUMNS, epsilon=2, delta="1e-6", random=Random.deterministic(1))
    assert (pure.cost, approx.cost) == (cl.PureDP(2), cl.ApproxDP(2, "1e-6"))
    assert (pure.marked, approx.marked) == (False, True)
    assert "MARKED" in str(approx)


@pytest.mark.parametrize(
    "held",
    [
        {"age": [], "sex": [], "member": []},
        {"age": [20], "sex": ["F"], "member": [True]},
        {"age": [None] * 9, "sex": [None] * 9, "member": [None] * 9},
    ],
    ids=["no rows", "one row", "all missing"],
)
def test_tables_of_next_to_nothing_say_so(held: dict[str, list[Any]]) -> None:
    """The number of rows is hidden, and said to be; rows of the declared domains can be drawn all the same."""
    table = {"age": np.array(held["age"], dtype=object), **{name: held[name] for name in ("sex", "member")}}
    model = cl.synth.fit_frame(table, SMALL, epsilon="0.1", random=Random.deterministic(2))
    with pytest.raises(cl.InvalidParameter, match="the noise hides how many rows there are"):
        model.sample()
    assert len(model.sample(10)) == 10


def test_one_category_is_enough() -> None:
    model = cl.synth.fit_frame({"a": ["x"] * 200, "b": [1] * 200}, {"a": cl.Category(["x"]), "b": cl.Integer(1, 1)}, epsilon=5)
    assert set(model.sample(10)) == {("x", 1)}


@pytest.mark.parametrize("budget", [cl.PureDP(1), cl.ApproxDP(1, "1e-6"), cl.ZCDP(1)])
def test_a_spend_that_buys_noise_alone_is_refused_and_enough_is_said(budget: Any) -> None:
    held = {"age": [20, 30] * 50, "sex": ["F", "M"] * 50, "member": [True, False] * 50}
    with cl.Session({"t": small(held, size=100)}, budget=budget) as session:
        with pytest.raises(cl.InvalidParameter, match="and the table has about 100 rows") as refused:
            cl.synth.fit(session, "t", spend="0.0001")
        assert not amount_of(session.spent)
        [enough] = re.findall(r"spend=([0-9.]+), or more", str(refused.value))
        with pytest.raises(cl.InvalidParameter):
            cl.synth.fit(session, "t", spend=str(float(enough) * 0.8))
        assert cl.synth.fit(session, "t", spend=enough).method == "independent"


def test_a_histogram_keeps_what_three_columns_make_together() -> None:
    """The third column is the first two taken apart (exclusive or): no pair of columns shows it."""
    random = Random.deterministic(3)
    one, two = (random.below(2, 4000).astype(bool) for _ in range(2))
    declared = {"one": cl.Boolean(), "two": cl.Boolean(), "three": cl.Boolean()}
    model = cl.synth.fit_frame(
        {"one": one, "two": two, "three": one ^ two}, declared, epsilon=1, method="histogram", random=random
    )
    rows = model.sample(4000, random=random)
    assert np.mean(rows["three"] == (rows["one"] ^ rows["two"])) > 0.99
    assert len(model.mixture.weights) <= 4
    back = cl.synth.SyntheticModel.from_json(model.to_json())
    np.testing.assert_allclose(back.mixture.marginal((0, 1, 2)), model.mixture.marginal((0, 1, 2)), atol=1e-8)
    report = back.report()
    assert [each.tables for each in report.measured] == [3, 1]
    assert [each.value for each in report.expected] == [None] * 3
    assert model.answer("SELECT COUNT(*) AS n FROM frame WHERE one AND two AND three").kind()["n"].tolist() == ["measured"]


def test_a_histogram_of_one_column_is_that_column_and_obeys_rules() -> None:
    held = {"a": [1, 2, 2, 3] * 100, "b": [3, 3, 2, 3] * 100}
    declared = {"a": cl.Integer(0, 3), "b": cl.Integer(0, 3)}
    alone = cl.synth.fit_frame({"a": held["a"]}, {"a": cl.Integer(0, 3)}, epsilon=2, method="histogram")
    assert alone.mixture.marginal((0,)) == pytest.approx([0, 0.25, 0.5, 0.25], abs=0.05)
    ruled = cl.synth.fit_frame(held, declared, epsilon=1, method="histogram", rules=["a <= b"])
    assert np.tril(ruled.mixture.marginal((0, 1)), -1).sum() == 0
    assert ruled.acceptance == 1


def test_a_column_that_is_always_missing_comes_back_missing() -> None:
    declared = {"a": cl.Integer(0, 9, nullable=True), "b": cl.Boolean()}
    held = {"a": np.array([None] * 400, dtype=object), "b": [True, False] * 200}
    model = cl.synth.fit_frame(held, declared, epsilon=100)
    assert set(model.sample(100)["a"]) == {None}


REFUSED: list[tuple[Callable[[cl.Session], Any], type[Exception], str]] = [
    (
        lambda s: cl.synth.fit(s, "people", spend=1, method="copula"),  # type: ignore[arg-type]
        cl.InvalidParameter,
        "known are auto, pairs, triples, independent, histogram, mst, aim, mwem, privbayes",
    ),
    (lambda s: cl.synth.fit(s, "people", spend=1, method="histogram"), cl.UnsupportedQuery, "cells, and at most 100,000"),
    (lambda s: cl.synth.fit(s, "people", spend=1, about=["aeg"]), cl.UnknownColumn, "'aeg' is unknown"),
    (lambda s: cl.synth.fit(s, "people", spend=1, about=[["age", "pya"]]), cl.UnknownColumn, "'pya' is unknown"),
    (lambda s: cl.synth.fit(s, "people", spend=1, columns=["age", "sex"], about=["ward"]), cl.UnknownColumn, "'ward' is unknown"),
    (lambda s: cl.synth.fit(s, "people", spend=1, about=["SELECT AVG(pya) AS x FROM people"]), cl.UnknownColumn, "pya"),
    (
        lambda s: cl.synth.fit(s, "people", spend=1, about=["SELECT COUNT(*) AS n FROM towns"]),
        cl.InvalidParameter,
        "asks nothing of",
    ),
    (lambda s: cl.synth.fit(s, "people", spend=1, about=7), cl.InvalidParameter, "list of columns"),
    (lambda s: cl.synth.fit(s, "people", spend=1, about=[[]]), cl.InvalidParameter, "has no column"),
    (lambda s: cl.synth.fit(s, "people", spend=1, method="independent", about=["age"]), cl.InvalidParameter, "nothing of two"),
    (lambda s: cl.synth.fit(s, "towns", spend=1), cl.InvalidParameter, "it is a public table"),
    (lambda s: cl.synth.fit(s, "nothing", spend=1), cl.UnknownTable, "nothing"),
    (lambda s: cl.synth.fit(s, "people", spend=0, method="pairs"), cl.InvalidParameter, "spend"),
    (lambda s: cl.synth.fit(s, "people", spend=2), cl.BudgetExceeded, "ε = 2"),
    (lambda s: cl.synth.fit(s, "people", spend=1, columns=["aeg"]), cl.UnknownColumn, "'aeg' is unknown"),
]


@pytest.mark.parametrize(("ask", "error", "why"), REFUSED)
def test_refusals_spend_nothing(
    people: cl.PrivateTable, ask: Callable[[cl.Session], Any], error: type[Exception], why: str
) -> None:
    towns = cl.PublicTable({"town": ["Delft"]})
    with cl.Session({"people": people, "towns": towns}, budget=cl.PureDP(1)) as session:
        with pytest.raises(error, match=why):
            ask(session)
        assert str(session.spent) == "ε = 0"


@pytest.mark.parametrize("method", ["histogram", "pairs", "mst"])
def test_a_spend_that_no_table_is_large_enough_for_is_refused_before_it_is_charged(method: Any) -> None:
    """Without a hint of the size such a spend was charged and ended in an IndexError, or in a model that could not be loaded."""
    table = small({"age": [20, 30] * 30, "sex": ["F", "M"] * 30, "member": [True, False] * 30})
    for budget, spend in ((cl.PureDP(1), "1e-26"), (cl.ZCDP(1), "1e-50")):
        with cl.Session({"people": table}, budget=budget) as session:
            with pytest.raises(InvalidParameter, match=r"no table has 1,099,511,627,776 rows.*\n.*spend=0\.0") as refused:
                cl.synth.fit(session, "people", spend=spend, method=method)
            assert not session.ledger.charges("people")
            enough = re.search(r"spend=([0-9.]+[0-9])", str(refused.value))
            assert enough is not None
            model = cl.synth.fit(session, "people", spend=enough[1], method="independent")
            assert len(cl.synth.SyntheticModel.from_json(model.to_json()).sample(5)) == 5
