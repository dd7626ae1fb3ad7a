"""What was bought before: found again where the question means the same, never where it does not, and told as what it was."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Door, Mean, Question, Sum
from cloister.tables import Column, Compare, Literal
from tests.tiers import by_day_and_night

SURE = cl.PureDP(10**12)
COUNT = Question(table="t", statistics=(Count(),))


def ask(table: cl.PrivateTable, question: Question, book: cl.Ledger, spend: int = 10**6) -> list[float]:
    name = question.statistics[0].name
    with Door({"t": table}, budget=SURE, ledger=book, random=Random.deterministic(7)) as door:
        return door.measure(question, spend=spend)[name].tolist()


def test_another_table_of_the_population_is_another_question() -> None:
    shared = {"unit": "p", "max_rows": 2, "population": "patients", "version": "2026-01"}
    many = cl.PrivateTable({"p": [f"u{n}" for n in range(1000)], "x": [1] * 1000}, columns={"x": cl.Integer(0, 9)}, **shared)
    few = cl.PrivateTable({"p": [f"u{n}" for n in range(50)], "x": [1] * 50}, columns={"x": cl.Integer(0, 9)}, **shared)
    with Door({"visits": many, "drugs": few}, budget=SURE, random=Random.deterministic(1)) as door:
        assert door.measure(Question(table="visits", statistics=(Count(),)), spend=10**6)["count"].tolist() == [1000]
        assert door.measure(Question(table="drugs", statistics=(Count(),)), spend=10**6)["count"].tolist() == [50]


def test_another_declaration_is_another_question() -> None:
    rows = {"x": [5] * 100 + [-50] * 100, "c": ["a"] * 100 + ["b"] * 100}

    def table(low: int, listed: list[str]) -> cl.PrivateTable:
        return cl.PrivateTable(rows, columns={"x": cl.Integer(low, 100), "c": cl.Category(listed)}, version="1", population="p")

    total = Question(table="t", statistics=(Sum(column="x"),))
    known = Question(table="t", statistics=(Count(column="c"),))
    zero = Question(table="t", statistics=(Count(),), where=Compare("=", Column("x"), Literal(0)))
    with cl.Ledger() as book:
        assert [ask(table(0, ["a"]), question, book) for question in (total, known, zero)] == [[500], [100], [100]]
        assert [ask(table(-100, ["a", "b"]), question, book) for question in (total, known, zero)] == [[-4500], [200], [0]]


def test_one_table_under_two_names_has_one_budget(people: cl.PrivateTable) -> None:
    with Door({"a": people, "b": people}, budget=cl.PureDP(1)) as door:
        door.measure(Question(table="a", statistics=(Count(),)), spend="0.6")
        with pytest.raises(cl.BudgetExceeded):
            door.measure(Question(table="b", statistics=(Sum(column="age"),)), spend="0.6")
        assert door.spent_by == {"a": cl.PureDP("0.6")}


def test_one_file_under_another_name_keeps_what_it_spent(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("x\n" + "1\n" * 50)

    def table(population: str | None = None) -> cl.PrivateTable:
        return cl.PrivateTable(path, columns={"x": cl.Integer(0, 9)}, population=population)

    book = tmp_path / "budget.db"
    with Door({"people": table()}, budget=cl.PureDP(1), ledger=book) as door:
        door.measure(Question(table="people", statistics=(Count(),)), spend="0.7")
    with Door({"humans": table()}, budget=cl.PureDP(1), ledger=book) as door:
        assert door.remaining_by == {"people": cl.PureDP("0.3")}
    with pytest.raises(cl.CloisterError, match="people"):
        Door({"humans": table("humans")}, budget=cl.PureDP(1), ledger=book)


def test_a_file_that_was_not_written_anew_is_the_same_version_in_every_session(tmp_path: Path) -> None:
    path, book = tmp_path / "people.csv", tmp_path / "budget.db"
    path.write_text("x\n" + "1\n" * 50)

    def answer() -> tuple[list[int], cl.PureDP]:
        with Door({"t": cl.PrivateTable(path, columns={"x": cl.Integer(0, 9)})}, budget=cl.PureDP(1), ledger=book) as door:
            return door.measure(COUNT, spend="0.25")["count"].tolist(), door.spent  # type: ignore[return-value]

    first = answer()
    assert answer() == first
    path.write_text("x\n" + "1\n" * 51)
    assert answer()[1] == cl.PureDP("0.5")


def test_the_rows_under_a_cap_are_the_same_in_every_session(tmp_path: Path) -> None:
    table = cl.PrivateTable(
        {"p": [n // 50 for n in range(1000)], "x": [n % 2 for n in range(1000)]},
        columns={"x": cl.Integer(0, 1)},
        unit="p",
        max_rows=1,
        version="1",
    )
    book, found = tmp_path / "budget.db", set()
    for place in range(4):
        question = Question(table="t", statistics=(Sum(column="x"),), where=Compare("<", Column("x"), Literal(5 + place)))
        with Door({"t": table}, budget=SURE, ledger=book) as door:
            found.add(int(door.measure(question, spend=10**9)["sum_x"][0]))
    assert len(found) == 1


def test_within_and_explain_count_in_what_was_bought(people: cl.PrivateTable) -> None:
    question = Question(table="people", statistics=(Count(),))
    for budget, within in ((cl.PureDP(10), 12), (cl.ZCDP(10), 4)):
        with Door({"people": people}, budget=budget, random=Random.deterministic(1)) as door:
            door.measure(question, spend="0.05")
            spend = door.spend_within(question, within)
            plan = door.explain(question, spend)
            answer = door.measure(question, spend)
            assert answer.margin()["count"][0] <= within
            assert plan.margin()["count"][0] == answer.margin()["count"][0]
            first = plan.cost.rho if isinstance(plan.cost, cl.ZCDP) else plan.cost.epsilon
            assert first < (spend.rho if isinstance(spend, cl.ZCDP) else spend.epsilon)
            assert door.spent == spend
            assert len(answer.provenance.mechanism[0].split(" + ")) == 2
            assert door.spend_within(question, within) == spend
            again = door.explain(question, spend)
            assert again.repeated
            assert again.cost in (cl.PureDP(0), cl.ZCDP(0))


def test_a_stored_answer_states_its_own_threshold_and_cost() -> None:
    table = cl.PrivateTable({"town": ["Delft"] * 300 + ["Leiden"] * 20}, columns={"town": cl.Text()}, version="1")
    question = Question(table="t", by=("town",), statistics=(Count(),))
    with Door({"t": table}, budget=cl.ApproxDP(20, "1e-3"), random=Random.deterministic(1)) as door:
        first = door.measure(question, spend=cl.ApproxDP(2, "1e-20"))
        later = door.measure(question, spend=cl.ApproxDP(1, "1e-4"))
        assert later.notes == first.notes
        assert later.cost == first.cost == cl.ApproxDP(2, "1e-20")
        more = door.measure(question, spend=cl.ApproxDP(3, "1e-4"))
        assert more.cost == door.measure(question, spend=cl.ApproxDP(3, "1e-4")).cost == cl.ApproxDP(3, "1e-4")
        assert more.notes != first.notes


def test_the_answer_of_another_debits_an_allotment_once(people: cl.PrivateTable) -> None:
    question = Question(table="t", statistics=(Count(),))
    table = cl.PrivateTable({"x": [1] * 9}, columns={"x": cl.Integer(0, 9)}, version="1")
    with cl.Ledger() as book:
        book.open("t", cl.PureDP(10), who="owner")
        book.allot("t", "bob", cl.PureDP("5.5"), who="owner")
        with Door({"t": table}, ledger=book, who="ann") as door:
            door.measure(question, spend=5)
        with Door({"t": table}, ledger=book, who="bob") as door:
            for _ in range(3):
                door.measure(question, spend=5)
            assert book.allotment("t", "bob") == (cl.PureDP("5.5"), cl.PureDP("0.5"))
            door.measure(question, spend="5.1")
            assert book.allotment("t", "bob") == (cl.PureDP("5.5"), cl.PureDP("0.4"))
        assert book.spent("t") == cl.PureDP("5.1")


def test_a_margin_takes_of_a_share_no_more_than_somebody_who_asks_first_would_spend(people: cl.PrivateTable) -> None:
    """However much others paid; what a person paid alone is stored, and is had again for nothing."""
    question = Question(table="people", statistics=(Count(),))
    with Door({"people": people}, budget=cl.PureDP(10)) as fresh, Door({"people": people}, budget=cl.PureDP(10)) as door:
        first = fresh.spend_within(question, 50)
        ana, bob = door.on_behalf("ana"), door.on_behalf("bob")
        ana.measure(question, spend=5)
        assert ana.spend_within(question, 50) == cl.PureDP(5)
        assert bob.spend_within(question, 50) == first <= cl.PureDP("0.06")
        assert bob.explain(question, first).owed == {"people": first}
        assert bob.measure(question, first).margin()["count"][0] <= 50
        assert door.ledger.spent_by("people", "bob") == first
        assert not bob.explain(question, first).owed
        assert not ana.explain(question, 5).owed
        assert door.spent == cl.PureDP(5)


def test_an_allotment_that_is_too_small_refuses_before_anything_is_bought() -> None:
    question = Question(table="t", statistics=(Count(),))
    table = cl.PrivateTable({"x": [1] * 9}, columns={"x": cl.Integer(0, 9)}, version="1")
    with cl.Ledger() as book:
        book.open("t", cl.PureDP(10), who="owner")
        book.allot("t", "bob", cl.PureDP(2), who="owner")
        with Door({"t": table}, ledger=book, who="ann") as door:
            door.measure(question, spend=5)
        with Door({"t": table}, ledger=book, who="bob") as door, pytest.raises(cl.BudgetExceeded, match="bob"):
            door.measure(question, spend="5.1")
        assert book.spent("t") == cl.PureDP(5)
        assert book.allotment("t", "bob") == (cl.PureDP(2), cl.PureDP(2))


def test_a_constant_column_is_its_constant() -> None:
    table = cl.PrivateTable({"x": [5] * 40}, columns={"x": cl.Integer(5, 5)})
    with Door({"t": table}, budget=cl.PureDP(1)) as door:
        answer = door.measure(Question(table="t", statistics=(Mean(column="x"),)), spend=1)
    assert answer["mean_x"].tolist() == [5.0]
    assert answer.margin()["mean_x"].tolist() == [0.0]


def test_a_session_of_public_tables_says_that_it_has_no_budget() -> None:
    with cl.Session({"towns": cl.PublicTable({"name": ["Delft"]})}, budget=cl.PureDP(1)) as session:
        for ask_for in (lambda: session.spent, lambda: session.remaining, lambda: session.measure(COUNT, spend=1)):
            with pytest.raises(cl.CloisterError):
                ask_for()
        assert "nothing" in repr(session)


@pytest.mark.parametrize("confidence", ["0.9", 0, 1, 1.5, float("nan"), 0.9999999999999999, None, True])
def test_a_confidence_is_a_number_between_0_and_1(people: cl.PrivateTable, confidence: object) -> None:
    question = Question(table="people", statistics=(Count(),))
    with Door({"people": people}, budget=cl.ZCDP(1), random=Random.deterministic(1)) as door:
        answer, plan = door.measure(question, spend="0.1"), door.explain(question, spend="0.2")
        for margin in (answer.margin, plan.margin, lambda each: door.spend_within(question, 5, confidence=each)):
            with pytest.raises(cl.InvalidParameter, match="confidence"):
                margin(confidence)  # type: ignore[operator]
    with Door({"people": people}, budget=cl.PureDP(1)) as door, pytest.raises(cl.InvalidParameter, match="within"):
        door.spend_within(question, 10**400)


def test_a_delta_that_no_tail_reaches_is_refused(people: cl.PrivateTable) -> None:
    question = Question(table="people", by=("town",), statistics=(Count(),))
    with Door({"people": people}, budget=cl.ApproxDP(1, "1e-3")) as door, pytest.raises(cl.InvalidParameter, match="δ"):
        door.measure(question, spend=cl.ApproxDP(Fraction(1, 2), "1e-330"))


@pytest.mark.statistical
@pytest.mark.parametrize("size", [1, 4, 9, 12, 14, 15, 16, 20, 40])
def test_counts_that_passed_a_threshold_are_covered(size: int) -> None:
    """Groups of equal size at ε = 1, δ = 1e-6 (threshold 15). With n shown groups the share covered has a standard deviation of
    at most 0.218/√n; it may be more than 0.95, and below 0.95 − 6 deviations it is with probability below 1e-8; the generator
    is fixed besides."""
    groups = 20_000 if size > 10 else 60_000
    table = cl.PrivateTable(
        {"key": np.repeat([f"k{n}" for n in range(groups)], size).astype(object)}, columns={"key": cl.Text()}, version="1"
    )
    with Door({"t": table}, budget=cl.ApproxDP(10, "1e-3"), random=Random.deterministic(size)) as door:
        question = Question(table="t", by=("key",), statistics=(Count(),))
        answer = door.measure(question, spend=cl.ApproxDP(1, "1e-6"))
    if answer.num_rows == 0:
        assert size == 1
        return
    covered = np.abs(answer["count"] - size) <= answer.margin(0.95)["count"]
    assert float(covered.mean()) >= 0.95 - 6 * 0.218 / len(covered) ** 0.5


@pytest.mark.statistical
@by_day_and_night("times", 30, 120)
def test_joint_margins_hold_for_rows_that_were_chosen(times: int) -> None:
    """The three largest of 1,000 equal cells: simultaneous margins must hold in 95 % of them: fewer than 20 of 30, or 100 of
    120, with a probability below 1e-6."""
    held = 0
    for seed in range(times):
        table = cl.PrivateTable({"k": list(range(1000))}, columns={"k": cl.Integer(0, 999)})
        with cl.Session({"t": table}, budget=cl.PureDP(1), random=Random.deterministic(seed)) as session:
            top = session.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY n DESC LIMIT 3", spend="0.01")
        held += bool((np.abs(top["n"] - 1) <= top.margin(0.95, joint=True)["n"]).all())
        assert "chosen" in top.notes[-1]
    assert held >= {30: 20, 120: 100}[times]


@pytest.mark.statistical
@pytest.mark.parametrize("rho", [2, 4])
def test_gaussian_margins_hold_where_the_noise_is_small(rho: int) -> None:
    """Means of truth values, three rows a group: σ is below 1, where the continuous law is a poor guide."""
    cells = 40_000
    table = cl.PrivateTable(
        {"cell": np.repeat(np.arange(cells), 3), "x": np.tile([0, 1, 1], cells)},
        columns={"cell": cl.Integer(0, cells - 1), "x": cl.Integer(0, 1)},
    )
    with Door({"t": table}, budget=cl.ZCDP(100), random=Random.deterministic(rho)) as door:
        answer = door.measure(Question(table="t", by=("cell",), statistics=(Mean(column="x"), Count(column="x"))), spend=rho)
        counts = door.measure(Question(table="t", by=("cell",), statistics=(Count(),)), spend="0.5")
        twice = door.measure(Question(table="t", by=("cell",), statistics=(Count(),)), spend=1)
    for release, name, truth in ((answer, "mean_x", 2 / 3), (answer, "count_x", 3), (counts, "count", 3), (twice, "count", 3)):
        for confidence in (0.9, 0.95, 0.99):
            covered = np.mean(np.abs(release[name] - truth) <= release.margin(confidence)[name] + 1e-9)
            assert covered >= confidence - 0.007, (name, confidence)
