"""The second door: everything is marked, history outlives the process, and what the controls forbid does not leave."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import cloister as cl
from cloister.ledger import Ledger
from cloister.query.controls import (
    NOT_PRIVATE,
    TOTAL,
    ControlledSession,
    Controls,
    InputPerturbation,
    OutputPerturbation,
    RandomSample,
    Range,
    Rounding,
    Substitution,
    Suppression,
)
from cloister.session import Count, Mean, Persons, Question, Sum, histogram
from cloister.tables import And, Binned, Not, Or
from tests.query.controls.support import session, staff, where

OPEN = Controls(set_size=None, audit_sums=False)
WOMEN = where("sex", "F")


def test_every_answer_and_every_class_says_that_it_is_not_private() -> None:
    with session(Controls(suppress=Suppression(threshold=3))) as asked:
        question = Question(table="staff", by=("sex",), statistics=(Count(), Mean(column="pay")))
        answers = [asked.count(WOMEN), asked.table(("sex", "department")), asked.ask(question)]
        assert all(NOT_PRIVATE in str(answer) and not answer.private for answer in answers)
        assert "not differential privacy" in repr(asked)
    said = [Controls, ControlledSession, Rounding, Suppression, RandomSample, OutputPerturbation, InputPerturbation, Substitution]
    assert all("ot differential privacy" in (each.__doc__ or "") for each in said)
    assert "not differential privacy" in str(Controls())


def test_the_event_is_written_before_the_answer_leaves_and_the_population_is_unbounded() -> None:
    ledger = Ledger()
    with session(OPEN, ledger=ledger, who="ada") as asked:
        assert not ledger.unbounded("staff")
        asked.count(WOMEN)
        assert asked.unbounded
        (charge,) = ledger.charges("staff")
        assert (charge.state, charge.who, charge.cost) == ("not private", "ada", None)
        assert "not differentially private" in charge.what
        ledger.close()
        with pytest.raises(cl.CloisterError):
            asked.sum("pay", WOMEN)


def test_a_refusal_that_depends_on_rows_is_marked_and_one_that_does_not_is_not() -> None:
    ledger = Ledger()
    with session(Controls(), ledger=ledger) as asked:
        with pytest.raises(cl.UnknownColumn):
            asked.sum("salary", WOMEN)
        with pytest.raises(cl.UnsupportedQuery):
            asked.maximum("pay", WOMEN)
        with pytest.raises(cl.UnsupportedQuery):
            asked.count(where("sex", 3))
        for _ in range(2):
            with pytest.raises(cl.UnsupportedQuery, match="both summed and read by conditions"):
                asked.sum("pay", where("pay", 20_000))
        assert not asked.unbounded
        assert len(asked.owner_report().refusals) == 2
        assert ledger.charges("staff") == []
        with pytest.raises(cl.AccessDenied):
            asked.count(where("person", 7))
        assert [charge.what.partition(":")[0] for charge in ledger.charges("staff")] == ["controls refused"]


def test_a_refusal_by_size_is_the_same_on_both_sides_and_holds_no_number() -> None:
    with session(Controls(set_size=5)) as asked:
        texts = set()
        for condition in (where("person", 7), Not(where("person", 7)), where("person", 999), None):
            with pytest.raises(cl.AccessDenied) as refused:
                asked.count(condition)
            texts.add(str(refused.value))
            assert refused.value.__context__ is None
        assert len(texts) == 1


def test_exact_answers() -> None:
    with session(OPEN) as asked:
        assert asked.count().value == 60
        assert asked.sum("pay", WOMEN).value == sum(20_000 + 1_000 * i for i in range(0, 60, 2))
        assert asked.mean("pay", WOMEN).value == 49_000
        answer = asked.ask(Question(table="staff", by=("department",), statistics=(Count(), Persons(), Sum(column="pay"))))
        assert answer["count"] == answer["persons"] == [20, 20, 20]
        assert answer.to_frame().column_names == ["department", "count", "persons", "sum_pay"]
        bins = asked.ask(histogram("staff", "pay", [20_000, 40_000, 80_000]))
        assert bins["count"] == [20, 40]
        assert asked.table((Binned("pay", [20_000, 40_000, 80_000]),)).cell(TOTAL) == 60


def test_ranges_rounding_and_substitutes() -> None:
    controls = Controls(set_size=None, audit_sums=False, recode={"pay": 10_000}, rounding=Rounding(base=7))
    with session(controls) as asked:
        top = asked.maximum("pay").value
        assert isinstance(top, Range)
        assert (top.low, top.high) == (70_000, 80_000)
        assert asked.count(WOMEN).value == 28
        assert asked.minimum("pay", where("person", 77)).value is None
    pays = {20_000 + 1_000 * i for i in range(60)}
    with session(Controls(set_size=None, substitute=Substitution({"pay": 3_000}))) as asked:
        told = asked.maximum("pay").value
        assert told not in pays
        assert abs(told - 79_000) <= 3_000
        assert asked.maximum("pay", Not(where("person", 3))).value == told


def test_a_substitute_that_does_not_exist_is_refused() -> None:
    crowded = cl.PrivateTable({"age": list(range(11))}, columns={"age": cl.Integer(0, 10)}, version="1")
    controls = Controls(set_size=None, substitute=Substitution({"age": 2}))
    with ControlledSession.of(crowded, controls) as asked, pytest.raises(cl.AccessDenied, match="no value near it is free"):
        asked.maximum("age")


def test_tables_with_suppression_add_up_where_they_are_shown() -> None:
    with session(Controls(set_size=3, suppress=Suppression(threshold=12))) as asked:
        table = asked.table(("sex", "department"))
        assert table.cell("F", TOTAL) == 30
        assert table.cell("F", "sales") is None
        assert "not shown" in str(table)
        (cells,) = asked.owner_report().open_cells.values()
        assert cells[(0, 0)] == (0, 20)
    with session(Controls(set_size=11)) as asked:
        with pytest.raises(cl.AccessDenied):
            asked.table(("sex", "department"))
        assert asked.table("sex").cell("F") == 30


def test_controlled_rounding_of_a_table_adds_up() -> None:
    with session(Controls(set_size=None, rounding=Rounding(base=3, kind="controlled"))) as asked:
        table = asked.table(("sex", "department"))
        assert sum(table.cell("F", each) for each in ("sales", "legal", "works")) == table.cell("F", TOTAL)
        with pytest.raises(cl.UnsupportedQuery):
            asked.table(("sex", "department", Binned("pay", [0, 50_000, 500_000])))


def test_three_keys_have_no_totals_and_overlap_allows_none() -> None:
    three = ("sex", "department", Binned("pay", [0, 50_000, 500_000]))
    with session(Controls(set_size=None, suppress=Suppression())) as asked:
        assert TOTAL not in asked.table(three)["sex"]
        with pytest.raises(cl.UnsupportedQuery):
            asked.table(three, totals=True)
    with session(Controls(set_size=None, overlap=3)) as asked:
        assert asked.table("sex")["count"] == [30, 30]
        with pytest.raises(cl.UnsupportedQuery):
            asked.table("sex", totals=True)


def test_a_column_is_summed_or_compared_and_never_both() -> None:
    with session(Controls(recode={"pay": 1_000})) as asked:
        asked.sum("pay", WOMEN)
        for refused in (lambda: asked.count(where("pay", 30_000, ">")), lambda: asked.maximum("pay")):
            with pytest.raises(cl.UnsupportedQuery, match="either summed"):
                refused()
        with pytest.raises(cl.UnsupportedQuery, match="either summed"):  # before the size of the set is looked at
            asked.count(where("pay", 20_000))
    with session(Controls(recode={"pay": 1_000})) as asked:
        asked.count(where("pay", 30_000, ">"))
        with pytest.raises(cl.UnsupportedQuery, match="either summed"):
            asked.sum("pay", WOMEN)
        with pytest.raises(cl.UnsupportedQuery, match="either summed"):
            asked.sum("person", where("person", 9, ">"))


def test_the_history_outlives_the_process_and_is_everybodys(tmp_path: Path) -> None:
    book = tmp_path / "budget.db"
    almost = And(WOMEN, Not(where("person", 4)))
    with session(Controls(), ledger=book, who="ada") as asked:
        total = asked.sum("pay", WOMEN).value
        with (
            session(Controls(), ledger=asked._ledger, who="bob") as other,
            pytest.raises(cl.AccessDenied, match="fix one person"),
        ):
            other.sum("pay", almost)
    with session(Controls(), ledger=book, who="eve") as asked:
        with pytest.raises(cl.AccessDenied, match="fix one person"):
            asked.sum("pay", almost)
        assert asked.sum("pay", WOMEN).value == total
        (refusal,) = asked.owner_report().refusals
        assert str(refusal.witness) == "1 × answer 0 − 1 × answer 1 = 1 × record 4"
        assert len(refusal.questions) == 2
    assert Ledger(book).verify()


def test_a_history_that_was_cut_or_changed_is_noticed(tmp_path: Path) -> None:
    book, history = tmp_path / "budget.db", tmp_path / "budget.db.controls"
    with session(Controls(), ledger=book) as asked:
        asked.sum("pay", WOMEN)
        asked.count(WOMEN)
    kept = history.read_bytes()
    assert b"pay" not in kept
    for statement in ("DELETE FROM answered WHERE number = 2", "DELETE FROM answered WHERE number = 1", "DELETE FROM answered"):
        history.write_bytes(kept)
        with sqlite3.connect(history) as connection:
            connection.execute(statement)
        connection.close()
        with pytest.raises(cl.CloisterError, match="history"):
            session(Controls(), ledger=book)
    history.write_bytes(kept)
    with sqlite3.connect(history) as connection:
        connection.execute("UPDATE answered SET sealed = (SELECT sealed FROM answered WHERE number = 2) WHERE number = 1")
    connection.close()
    with session(Controls(), ledger=book) as asked, pytest.raises(cl.CloisterError, match="changed, moved or dropped"):
        asked.sum("pay", WOMEN)


def test_another_version_of_the_rows_needs_the_owners_word(tmp_path: Path) -> None:
    book = tmp_path / "budget.db"
    with session(Controls(), ledger=book) as asked:
        asked.sum("pay", WOMEN)
    joined = staff(61, version="2")
    with pytest.raises(cl.AccessDenied, match="another version"):
        session(Controls(), joined, ledger=book)
    with session(Controls(), joined, ledger=book, new_version=True) as asked:
        assert asked.count(WOMEN).value == 31


def test_the_first_door_stays_open_beside_it() -> None:
    with cl.Session({"staff": staff()}, budget=cl.PureDP(1)) as private:
        asked = ControlledSession(private, "staff", OPEN)
        asked.count(WOMEN)
        private.sql("SELECT COUNT(*) AS n FROM staff", spend="0.5")
        assert private.ledger.unbounded("staff")
        assert str(private.spent) == "ε = 0.5"
        with pytest.raises(cl.UnsupportedQuery):
            asked.ask(Question(table="others", statistics=(Count(),)))


def test_a_population_opened_by_controls_alone_has_nothing_to_spend() -> None:
    with session(OPEN) as asked:
        assert str(asked._ledger.budget("staff")) == "ε = 0"


def test_persons_with_many_rows_count_once_and_are_audited_together() -> None:
    visits = cl.PrivateTable(
        {"who": [i // 2 for i in range(24)], "cost": list(range(24)), "ward": ["a" if i % 2 else "b" for i in range(24)]},
        columns={"cost": cl.Integer(0, 99), "ward": cl.Category(["a", "b"]), "who": cl.Integer(0, 99)},
        unit="who",
        max_rows=2,
        version="1",
    )
    with ControlledSession.of(visits, Controls(set_size=3), name="visits") as asked:
        assert asked.ask(Question(table="visits", where=where("who", 5, "<="), statistics=(Count(), Persons())))["persons"] == [6]
        with pytest.raises(cl.AccessDenied):
            asked.count(where("who", 1, "<="))
        asked.sum("cost", where("who", 5, "<="))
        with pytest.raises(cl.AccessDenied, match="fix one person"):  # the two rows of person 5 together
            asked.sum("cost", where("who", 4, "<="))
        assert asked.sum("cost", where("who", 3, "<=")).value == sum(range(8))


def test_missing_values_do_not_make_the_set() -> None:
    """Whether the audit refuses must not depend on who has a value: NULL counts as 0."""
    decisions = []
    for missing in (None, 5):
        table = cl.PrivateTable(
            {"pay": [missing, *range(9)], "n": list(range(10))},
            columns={"pay": cl.Integer(0, 9), "n": cl.Integer(0, 99)},
            version="1",
        )
        with ControlledSession.of(table, Controls(set_size=1)) as asked:
            asked.mean("pay", where("n", 5, "<="))
            with pytest.raises(cl.AccessDenied, match="fix one person"):
                asked.sum("pay", And(where("n", 5, "<="), where("n", 0, ">")))
            decisions.append(asked.sum("pay", where("n", 3, "<=")).value)
    assert decisions == [0 + 1 + 2, 5 + 0 + 1 + 2]


@pytest.mark.parametrize(
    ("controls", "error"),
    [
        (Controls(recode={"wage": 5}), cl.UnknownColumn),
        (Controls(recode={"sex": 5}), cl.UnsupportedQuery),
        (Controls(recode={"pay": "0.5"}), cl.InvalidParameter),
        (Controls(input=InputPerturbation({"wage": 5})), cl.UnknownColumn),
    ],
)
def test_controls_that_do_not_fit_the_table_are_refused(controls: Controls, error: type[cl.CloisterError]) -> None:
    with pytest.raises(error):
        session(controls)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Controls(set_size=0),
        lambda: Controls(overlap=-1),
        lambda: Controls(audit_sums="yes"),
        lambda: Controls(rounding=5),
        lambda: Controls(recode={"pay": 0}),
        lambda: RandomSample(share=1),
        lambda: OutputPerturbation(),
        lambda: OutputPerturbation(counts=1, law="normal"),
        lambda: InputPerturbation({}),
    ],
)
def test_wrong_parameters_are_refused(wrong: object) -> None:
    with pytest.raises(cl.InvalidParameter):
        wrong()  # type: ignore[operator]


def test_several_rewrites_are_one_set() -> None:
    controls = Controls(set_size=None, overlap=0, audit_sums=True)
    with session(controls) as asked:
        first = asked.sum("pay", WOMEN).value
        assert asked.sum("pay", Not(where("sex", "M"))).value == first
        assert asked.sum("pay", Or(WOMEN, And(WOMEN, where("department", "legal")))).value == first


def test_columns_are_called_as_the_query_calls_them() -> None:
    with session(OPEN) as asked:
        answer = asked.sql("SELECT sex AS g, COUNT(*) AS n FROM staff GROUP BY sex")
        plain = asked.sql("SELECT sex, COUNT(*) FROM staff GROUP BY sex")
        assert answer.column_names == ["g", "n"]
        assert answer["n"] == [plain.cell(each) for each in answer["g"]]
        with pytest.raises(cl.UnknownColumn, match="has none of this name"):
            answer["count"]
        with pytest.raises(cl.UnsupportedQuery, match="no column is computed"):
            asked.sql("SELECT SUM(pay * 2) FROM staff")


def test_the_value_of_one_person_is_no_mean_sum_or_extreme_of_a_set() -> None:
    bonus = [777 if person == 4 else 100 if person % 2 else None for person in range(60)]
    table = cl.PrivateTable(
        {"sex": ["F", "M"] * 30, "bonus": bonus},
        columns={"sex": cl.Category(["F", "M"]), "bonus": cl.Integer(0, 5000, nullable=True)},
    )
    with ControlledSession.of(table, Controls(set_size=5, recode={"bonus": 10}, suppress=None), name="staff") as asked:
        for statistic in (asked.mean, asked.sum, asked.maximum):
            with pytest.raises(cl.AccessDenied, match="who in it has a value"):
                statistic("bonus", WOMEN)
        assert asked.mean("bonus", where("sex", "M")) is not None
        assert asked.count(WOMEN).value == 30
    with ControlledSession.of(table, Controls(set_size=5, suppress=Suppression(threshold=3)), name="staff") as asked:
        assert asked.ask(Question(table="staff", by=("sex",), statistics=(Mean(column="bonus"),)))["mean_bonus"] == [None, 100]
