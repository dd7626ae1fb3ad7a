"""The way of a question: charged first, answered once, repeated for nothing, refused in words that hold no row."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Door, Mean, Persons, Question, Sum, histogram, marginal
from cloister.session.questions.question import OverCap
from cloister.session.releases.formulas import Linear
from cloister.tables import Base, Column, Compare, Filtered, Groups, Literal, Prepared

HUGE = cl.PureDP(10**9)


def test_questions_take_the_parts_of_the_spend_that_are_said(people: cl.PrivateTable) -> None:
    questions = [marginal("people", ["sex"]), marginal("people", [])]
    shares = [Fraction(1, 4), Fraction(3, 4)]
    with Door({"people": people}, budget=cl.PureDP(1)) as door:
        plan = door.explain(questions, "0.8", shares=shares)
        releases = door.measure_all(questions, "0.8", shares=shares)
        assert door.spent == cl.PureDP("0.8")
        with door.within_share("0.2") as measurer:
            assert len(measurer.measure_all(questions, "0.8", shares=shares)) == 2
    scales = [noise.scale for part in plan.parts for noise in part.noises.values()]
    assert scales == [Fraction(5), Fraction(5, 3)]
    assert [term.noise.scale for release in releases for term in release.readings["rows"].terms] == scales


@pytest.mark.parametrize(
    "shares",
    [
        [Fraction(1)],
        [Fraction(1), Fraction(0)],
        [Fraction(3, 2), Fraction(-1, 2)],
        [Fraction(1), Fraction(1)],
        [Fraction(1, 4), Fraction(1, 4)],
        [0.5, 0.5],
    ],
)
def test_parts_that_are_not_all_of_one_spend_are_refused(people: cl.PrivateTable, shares: Any) -> None:
    questions = [marginal("people", ["sex"]), marginal("people", [])]
    with Door({"people": people}, budget=cl.PureDP(1)) as door:
        for ask in (door.explain, door.measure_all):
            with pytest.raises(cl.InvalidParameter, match="make 1 together"):
                ask(questions, "0.5", shares=shares)
        assert str(door.spent) == "ε = 0"


def frames_of(error: BaseException) -> list[dict[str, object]]:
    """What the frames of a trace hold, those of this file left out."""
    found, trace = [], error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != __file__:
            found.append(dict(trace.tb_frame.f_locals))
        trace = trace.tb_next
    return found


def sure(**tables: cl.PrivateTable) -> Door:
    """A door with so much budget that the noise is nil: exact answers are tested through it."""
    return Door(tables, budget=cl.PureDP(10**12), random=Random.deterministic(3))


def test_counts_sums_and_means_are_those_of_the_prepared_rows(people: cl.PrivateTable) -> None:
    question = Question(
        table="people",
        by=("sex",),
        statistics=(Count(), Count(column="age"), Sum(column="age"), Mean(column="age"), Sum(column="pay"), Mean(column="pay")),
    )
    with sure(people=people) as door:
        answer = door.measure(question, spend=10**9)
    # F: ages 20, 40, NULL; pay 10.5, NULL, 100 (clamped). M: ages 30, 50; pay 20.25, 40
    assert answer["count"].tolist() == [150, 100]
    assert answer["count_age"].tolist() == [100, 100]
    assert answer["sum_age"].tolist() == [3000, 4000]
    assert answer["mean_age"] == pytest.approx([30, 40])
    assert answer["sum_pay"] == pytest.approx([5525.0, 3012.5])
    assert answer["mean_pay"] == pytest.approx([55.25, 30.125])


def test_where_is_applied_to_prepared_values(people: cl.PrivateTable) -> None:
    question = Question(table="people", statistics=(Count(),), where=Compare(">=", Column("age"), Literal(50)))
    with sure(people=people) as door:
        assert door.measure(question, spend=10**9)["count"].tolist() == [100]  # 50, and 200 clamped to 90


def test_histograms_and_marginals_hold_every_cell(people: cl.PrivateTable) -> None:
    with sure(people=people) as door:
        ages = door.measure(histogram("people", "age", [17, 30, 60, 90]), spend=10**9)
        both = door.measure(marginal("people", ["sex", "age"]), spend=10**9)
    assert ages["age"].tolist() == ["[17, 30)", "[30, 60)", "[60, 90]"]
    assert ages["count"].tolist() == [50, 150, 50]
    assert both.num_rows == 2 * 74
    assert int(both["count"].sum()) == 200


def test_a_person_with_many_rows_counts_up_to_the_cap(visits: cl.PrivateTable) -> None:
    question = Question(table="visits", statistics=(Count(), Persons()))
    with sure(visits=visits) as door:
        answer = door.measure(question, spend=10**9)
    rows = [k % 6 for k in range(40)]
    assert answer["count"].tolist() == [sum(min(number, 3) for number in rows)]
    assert answer["persons"].tolist() == [sum(number > 0 for number in rows)]


@pytest.mark.parametrize(
    "source", [{"age": [], "sex": []}, {"age": [None, None], "sex": ["F", None]}, {"age": [30], "sex": ["M"]}]
)
def test_empty_one_row_and_all_null_tables_have_the_same_shape(source: dict[str, list[object]]) -> None:
    table = cl.PrivateTable(source, columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])})
    question = Question(table="t", by=("sex",), statistics=(Count(), Mean(column="age"), Sum(column="age")))
    with Door({"t": table}, budget=cl.PureDP(1), random=Random.deterministic(5)) as door:
        answer = door.measure(question, spend=1)
    assert answer["sex"].tolist() == ["F", "M"]
    assert [str(answer[name].dtype) for name in ("count", "mean_age", "sum_age")] == ["int64", "float64", "int64"]
    assert np.all((answer["mean_age"] >= 17) & (answer["mean_age"] <= 90))


def test_spending_is_exact_and_stops_at_the_budget(people: cl.PrivateTable) -> None:
    with Door({"people": people}, budget=cl.PureDP(1), random=Random.deterministic(1)) as door:
        for place in range(10):
            question = Question(table="people", statistics=(Count(),), where=Compare(">", Column("age"), Literal(20 + place)))
            door.measure(question, spend=0.1)
        assert door.spent == cl.PureDP(1)
        assert door.remaining == cl.PureDP(0)
        with pytest.raises(cl.BudgetExceeded) as refusal:
            door.measure(Question(table="people", statistics=(Sum(column="age"),)), spend="0.0001")
        assert "ε = 0.0001" in str(refusal.value)
        assert door.spent == cl.PureDP(1)


def test_explain_spends_nothing_and_foretells_the_margin(door: Door) -> None:
    question = Question(table="people", by=("sex",), statistics=(Count(), Sum(column="age")))
    plan = door.explain(question, spend="0.5")
    assert door.spent == cl.PureDP(0)
    answer = door.measure(question, spend="0.5")
    assert plan.cost == answer.cost == cl.PureDP("0.5")
    for name in ("count", "sum_age"):
        assert plan.margin()[name][0] == answer.margin()[name][0]
    assert "nothing was spent" in str(plan)


def test_explain_does_not_prepare_the_table(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age\n30\n")
    with Door({"people": cl.PrivateTable(path, columns={"age": cl.Integer(17, 90)})}, budget=cl.PureDP(1)) as door:
        path.unlink()
        assert door.explain(Question(table="people", statistics=(Count(),)), spend="0.1").cost == cl.PureDP("0.1")


def test_the_same_question_is_answered_from_the_ledger(door: Door) -> None:
    question = Question(table="people", by=("sex",), statistics=(Count(),))
    first = door.measure(question, spend=1)
    again = door.measure(question, spend=1)
    less = door.measure(question, spend="0.5")
    assert door.spent == cl.PureDP(1)
    assert first["count"].tolist() == again["count"].tolist() == less["count"].tolist()
    assert again.provenance.repeated
    assert not first.provenance.repeated


def test_a_larger_spend_buys_the_difference_and_narrows_the_margin(door: Door) -> None:
    question = Question(table="people", by=("sex",), statistics=(Sum(column="age"),))
    first = door.measure(question, spend=1)
    second = door.measure(question, spend=3)
    assert door.spent == cl.PureDP(3)
    assert second.cost == cl.PureDP(3)
    assert second.margin()["sum_age"][0] < first.margin()["sum_age"][0]
    assert len(second.provenance.charges) == 2


def test_reordered_conditions_and_other_names_of_tables_are_the_same_question(people: cl.PrivateTable) -> None:
    with Door({"people": people}, budget=HUGE, random=Random.deterministic(1)) as door:
        older, female = Compare(">", Column("age"), Literal(30)), Compare("=", Column("sex"), Literal("F"))
        from cloister.tables import And

        door.measure(Question(table="people", statistics=(Count(),), where=And(older, female)), spend=1)
        door.measure(Question(table="people", statistics=(Count(),), where=And(female, older)), spend=1)
        assert door.spent == cl.PureDP(1)


def test_several_questions_share_one_spend(door: Door) -> None:
    questions = [
        Question(table="people", statistics=(Count(),)),
        Question(table="people", by=("sex",), statistics=(Sum(column="age"),)),
    ]
    releases = door.measure_all(questions, spend="0.8")
    assert [release.num_rows for release in releases] == [1, 2]
    assert door.spent == cl.PureDP("0.8")
    assert len(door.ledger.charges("people")) == 1


def test_two_tables_of_one_population_share_its_budget(people: cl.PrivateTable) -> None:
    first = cl.PrivateTable({"x": [1, 2]}, columns={"x": cl.Integer(0, 9)}, population="p")
    second = cl.PrivateTable({"y": [3, 4]}, columns={"y": cl.Integer(0, 9)}, population="p")
    with Door({"a": first, "b": second, "people": people}, budget=cl.PureDP(1)) as door:
        door.measure(Question(table="a", statistics=(Count(),)), spend="0.5")
        door.measure(Question(table="b", statistics=(Count(),)), spend="0.5")
        with pytest.raises(cl.BudgetExceeded):
            door.measure(Question(table="b", statistics=(Sum(column="y"),)), spend="0.1")
        assert door.spent_by == {"p": cl.PureDP(1), "people": cl.PureDP(0)}
        assert door.spent == cl.PureDP(1)
        assert door.remaining == cl.PureDP(0)


def test_registering_again_keeps_what_was_spent(people: cl.PrivateTable, tmp_path: Path) -> None:
    book = tmp_path / "budget.db"
    with Door({"people": people}, budget=cl.PureDP(1), ledger=book) as door:
        door.measure(Question(table="people", statistics=(Count(),)), spend="0.7")
    with Door({"people": people}, ledger=book) as door:
        assert door.remaining == cl.PureDP("0.3")
    with pytest.raises(cl.LedgerError):
        Door({"people": people}, budget=cl.PureDP(2), ledger=book)


def test_a_declared_version_makes_repeats_last(tmp_path: Path) -> None:
    def ask() -> tuple[list[int], cl.PureDP]:
        table = cl.PrivateTable({"age": [30, 40]}, columns={"age": cl.Integer(17, 90)}, version="2026-11")
        with Door({"people": table}, budget=cl.PureDP(1), ledger=tmp_path / "budget.db") as door:
            return door.measure(Question(table="people", statistics=(Count(),)), spend="0.5")["count"].tolist(), door.spent  # type: ignore[return-value]

    assert ask() == ask()


def test_what_a_test_generator_made_enters_no_durable_ledger(people: cl.PrivateTable, tmp_path: Path) -> None:
    question = Question(table="people", statistics=(Count(),))
    with Door({"people": people}, budget=cl.PureDP(1), random=Random.deterministic(1)) as door:
        assert door.measure(question, spend=1).marked
    with pytest.raises(cl.LedgerError, match="generator made for tests"):
        Door({"people": people}, budget=cl.PureDP(1), ledger=tmp_path / "b.db", random=Random.deterministic(1))


def test_undeclared_keys_need_a_delta(people: cl.PrivateTable) -> None:
    question = Question(table="people", by=("town",), statistics=(Count(),))
    with Door({"people": people}, budget=cl.PureDP(10)) as door, pytest.raises(cl.UnsupportedQuery, match="δ") as refused:
        door.measure(question, spend=1)
    assert refused.value.instead.startswith('columns={"town": cl.Category([…])} or ')


@pytest.mark.parametrize("budget", [cl.ApproxDP(10, "1e-5"), cl.ZCDP(10, "1e-5")])
def test_undeclared_keys_pass_a_noisy_threshold(budget: cl.ApproxDP | cl.ZCDP) -> None:
    towns = ["Delft"] * 300 + ["Leiden"] * 200 + ["Sneek"]
    table = cl.PrivateTable({"town": towns, "age": [40] * 501}, columns={"town": cl.Text(), "age": cl.Integer(17, 90)})
    question = Question(table="t", by=("town",), statistics=(Count(), Mean(column="age")))
    with Door({"t": table}, budget=budget, random=Random.deterministic(2)) as door:
        plan = door.explain(question, spend=1)
        answer = door.measure(question, spend=1)
        assert answer["town"].tolist() == ["Delft", "Leiden"]
        assert abs(answer["count"][0] - 300) < 60
        assert door.spent.delta == plan.cost.delta == Fraction(1, 10**6)
        assert "not shown" in answer.notes[0]


def test_the_order_in_which_an_engine_tells_groups_does_not_change_a_seeded_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    towns = ["Delft"] * 300 + ["Leiden"] * 200 + ["Gouda"] * 100 + [None] * 50
    table = cl.PrivateTable({"town": towns}, columns={"town": cl.Text(nullable=True)})
    aggregate = Prepared.aggregate

    def answered(order: slice) -> tuple[list[Any], list[Any]]:
        def told(self: Prepared, *asked: Any) -> Groups:
            groups = aggregate(self, *asked)
            return Groups(
                tuple(key[order] for key in groups.keys), {name: values[order] for name, values in groups.values.items()}
            )

        monkeypatch.setattr(Prepared, "aggregate", told)
        with Door({"t": table}, budget=cl.ApproxDP(10, "1e-5"), random=Random.deterministic(2)) as door:
            answer = door.measure(Question(table="t", by=("town",), statistics=(Count(),)), spend=1)
            return answer["town"].tolist(), answer["count"].tolist()

    answers = [answered(slice(None)), answered(slice(None, None, -1))]
    assert answers[0] == answers[1]
    assert answers[0][0] == ["Delft", "Gouda", "Leiden", None]


def test_within_finds_the_least_spend(door: Door) -> None:
    question = Question(table="people", by=("sex",), statistics=(Count(),))
    spend = door.spend_within(question, 50)
    assert door.explain(question, spend).margin()["count"][0] <= 50
    less = cl.PureDP(spend.epsilon * Fraction(999, 1000))
    assert door.explain(question, less).margin()["count"][0] > 50
    with pytest.raises(cl.UnsupportedQuery, match="mean"):
        door.spend_within(Question(table="people", statistics=(Mean(column="age"),)), 1)


def test_refusals_name_what_to_write(door: Door) -> None:
    with pytest.raises(cl.UnknownColumn, match="sex"):
        door.measure(Question(table="people", by=("sx",), statistics=(Count(),)), spend=1)
    with pytest.raises(cl.UnknownTable, match="people"):
        door.measure(Question(table="nobody", statistics=(Count(),)), spend=1)
    with pytest.raises(cl.UnsupportedQuery, match="text"):
        door.measure(Question(table="people", statistics=(Sum(column="town"),)), spend=1)
    for spend in (0, -1, "nan", float("inf"), None, "many"):
        with pytest.raises(cl.CloisterError):
            door.measure(Question(table="people", statistics=(Count(),)), spend=spend)  # type: ignore[arg-type]
    assert door.spent == cl.PureDP(0)


def test_a_table_without_a_budget_is_refused(people: cl.PrivateTable) -> None:
    with pytest.raises(cl.InvalidParameter, match="budget"):
        Door({"people": people})


def test_an_engine_that_fails_is_charged_and_says_nothing(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = door.prepared("people")

    def fails(*_: object) -> None:
        raise RuntimeError("row 7 holds the salary of Alice")

    monkeypatch.setattr(prepared, "aggregate", fails)
    with pytest.raises(cl.EngineError) as refusal:
        door.measure(Question(table="people", statistics=(Count(),)), spend=1)
    assert "Alice" not in str(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None
    assert "Alice" not in str(frames_of(refusal.value))
    assert door.spent == cl.PureDP(1)


def test_a_failed_question_runs_once_more_under_its_own_charge(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question(table="people", statistics=(Count(),))
    prepared = door.prepared("people")
    with monkeypatch.context() as broken:
        broken.setattr(prepared, "aggregate", lambda *_: 1 / 0)
        with pytest.raises(cl.EngineError):
            door.measure(question, spend=1)
    door.measure(question, spend=1)
    assert door.spent == cl.PureDP(1)


def test_threads_do_not_overspend(people: cl.PrivateTable) -> None:
    refused = []
    with Door({"people": people}, budget=cl.PureDP(1)) as door:

        def ask(place: int) -> None:
            question = Question(table="people", statistics=(Count(),), where=Compare(">", Column("age"), Literal(place)))
            try:
                door.measure(question, spend="0.1")
            except cl.BudgetExceeded:
                refused.append(place)

        threads = [threading.Thread(target=ask, args=(place,)) for place in range(20, 40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert door.spent == cl.PureDP(1)
    assert len(refused) == 10


def test_formulas_of_one_column_share_one_block(door: Door) -> None:
    plan = door.explain(
        Question(table="people", statistics=(Count(), Sum(column="age"), Mean(column="age"), Count(column="age"))), spend=1
    )
    assert [block.name for block in plan.parts[0].shape.blocks] == ["split:age"]
    assert isinstance(plan.parts[0].shape.formulas[0], Linear)


def test_sharing_beats_splitting_the_budget(door: Door) -> None:
    """Count and mean of one column: the noise of the count is narrower than that of a count with half the budget."""
    together = door.explain(Question(table="people", statistics=(Count(column="age"), Mean(column="age"))), spend=1)
    halved = door.explain(Question(table="people", statistics=(Count(column="age"),)), spend="0.5")
    assert together.margin()["count_age"][0] < halved.margin()["count_age"][0]


def test_a_hundred_thousand_groups_and_a_hostile_name() -> None:
    rows = 100_000
    table = cl.PrivateTable(
        {'"; DROP TABLE people; -- 🤷': list(range(rows))}, columns={'"; DROP TABLE people; -- 🤷': cl.Integer(0, rows - 1)}
    )
    with sure(t=table) as door:
        answer = door.measure(Question(table="t", by=('"; DROP TABLE people; -- 🤷',), statistics=(Count(),)), spend=10**9)
    assert answer.num_rows == rows
    assert answer["count"].tolist() == [1] * rows


def test_the_bias_of_caps_and_clamps_can_be_bought(visits: cl.PrivateTable) -> None:
    question = Question(table="visits", statistics=(Sum(column="cost"),))
    with sure(visits=visits) as door:
        answer = door.measure(question, spend=10**9)
        before = door.spent
        bias = answer.bias(spend=10**9)
        assert door.spent == before + cl.PureDP(10**9)
    assert bias.units_over_cap is not None
    assert bias.units_over_cap.value == sum(k % 6 > 3 for k in range(40))
    assert bias.at_low["cost"].value > 0
    assert "upper bound" in str(bias)


def test_a_count_of_persons_has_no_bias_to_buy(door: Door) -> None:
    with pytest.raises(cl.UnsupportedQuery, match="count"):
        door.measure(Question(table="people", statistics=(Count(),)), spend=1).bias(spend=1)
    assert door.spent == cl.PureDP(1)


def test_a_mark_stays_on_what_is_repeated(people: cl.PrivateTable) -> None:
    table = cl.PrivateTable({"age": [30, 40]}, columns={"age": cl.Integer(17, 90)}, version="1")
    question = Question(table="t", statistics=(Count(),))
    with cl.Ledger() as book:
        with Door({"t": table}, budget=cl.PureDP(1), ledger=book, random=Random.deterministic(1)) as door:
            door.measure(question, spend=1)
        with Door({"t": table}, ledger=book) as door:
            assert door.measure(question, spend=1).marked


def test_what_was_spent_can_be_read_after_the_session(people: cl.PrivateTable) -> None:
    with Door({"people": people}, budget=cl.PureDP(1)) as door:
        door.measure(Question(table="people", statistics=(Count(),)), spend="0.25")
    assert door.spent == cl.PureDP("0.25")
    assert door.remaining == cl.PureDP("0.75")
    with pytest.raises(cl.LedgerError):
        door.measure(Question(table="people", by=("sex",), statistics=(Count(),)), spend="0.25")


def test_units_over_their_cap_are_asked_of_a_table_alone_and_refused_before_they_are_charged(visits: cl.PrivateTable) -> None:
    with Door({"visits": visits}, budget=cl.PureDP(1)) as door:
        base = Base(name="visits", table=door.tables["visits"])  # type: ignore[arg-type]
        some = Filtered(source=base, where=Compare(">=", Column("cost"), Literal(0)))
        for ask in (door.explain, door.measure):
            with pytest.raises(cl.UnsupportedQuery, match="about a table itself"):
                ask(Question(table=some, statistics=(OverCap(),)), "0.5")
        assert door.spent == cl.PureDP(0)


@pytest.mark.parametrize("name", [None, 5, ["people"], b"people"], ids=repr)
def test_a_name_that_is_not_a_text_is_not_a_table_either(people: cl.PrivateTable, name: Any) -> None:
    with Door({"people": people}, budget=cl.PureDP(1)) as door, pytest.raises(cl.UnknownTable, match="tables are people"):
        door.declared(name)
