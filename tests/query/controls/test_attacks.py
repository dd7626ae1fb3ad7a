"""Each control against the attack that it stops, and against one that it doesn't."""

from __future__ import annotations

import statistics

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.query.controls import (
    ControlledSession,
    Controls,
    InputPerturbation,
    OutputPerturbation,
    RandomSample,
    Rounding,
    Suppression,
)
from cloister.tables import And, Expression, Not, Or
from tests.query.controls.support import session, staff, where

WOMEN, MEN = where("sex", "F"), where("sex", "M")
VICTIM = where("person", 12)
PAY = 20_000 + 1_000 * 12


def tracked(asked: ControlledSession, tracker: Expression) -> int:
    """The general tracker: sum(C) = sum(C or T) + sum(C or not T) − sum(T) − sum(not T)."""
    parts = [asked.sum("pay", each).value for each in (Or(VICTIM, tracker), Or(VICTIM, Not(tracker)), tracker, Not(tracker))]
    return parts[0] + parts[1] - parts[2] - parts[3]  # type: ignore[operator, return-value]


def test_set_size_stops_the_direct_question_and_not_the_tracker() -> None:
    with session(Controls(set_size=10, audit_sums=False)) as asked:
        for direct in (VICTIM, Not(VICTIM)):
            with pytest.raises(cl.AccessDenied):
                asked.sum("pay", direct)
        assert tracked(asked, MEN) == PAY


@pytest.mark.parametrize("controls", [Controls(set_size=10, audit_sums=True), Controls(set_size=10, audit_sums=False, overlap=5)])
def test_audit_or_overlap_stop_the_tracker(controls: Controls) -> None:
    with session(controls) as asked, pytest.raises(cl.AccessDenied):
        tracked(asked, MEN)


def test_overlap_does_not_stop_many_questions() -> None:
    """Three pairs of three persons overlap in one person each, and give all three away."""
    five = staff(5)
    with session(Controls(set_size=2, overlap=1, audit_sums=False), five) as asked:
        pairs = {}
        for a, b in ((0, 1), (1, 2), (0, 2)):
            pairs[a, b] = asked.sum("pay", Or(where("person", a), where("person", b))).value
        assert (pairs[0, 1] + pairs[0, 2] - pairs[1, 2]) // 2 == 20_000
    with session(Controls(set_size=2, overlap=1), five) as asked:
        asked.sum("pay", Or(where("person", 0), where("person", 1)))
        asked.sum("pay", Or(where("person", 1), where("person", 2)))
        with pytest.raises(cl.AccessDenied, match="fix one person"):
            asked.sum("pay", Or(where("person", 0), where("person", 2)))


def test_the_audit_stops_the_difference_within_a_version_and_not_bounds() -> None:
    """What the audit does not promise: a total at the declared bound gives everybody's value away."""
    lowest = staff(10, pay=[0] * 10)
    with session(Controls(set_size=2), lowest) as asked:
        assert asked.sum("pay", where("person", 4, "<=")).value == 0  # five salaries of 0, known at once
    with session(Controls()) as asked:
        asked.sum("pay", WOMEN)
        with pytest.raises(cl.AccessDenied):
            asked.sum("pay", And(WOMEN, Not(VICTIM)))


def test_the_total_before_and_after_somebody_joins(tmp_path: object) -> None:
    """156,000, from two totals of 40 persons and more: no set size stops it, a new version does (or its owner is told)."""
    pays = [52_000 + 1_500 * place for place in range(40)]
    february, march = staff(40, pay=pays, version="february"), staff(41, pay=[*pays, 156_000], version="march")
    loose = Controls(set_size=None, audit_sums=False)
    before, after = (session(loose, table).sum("pay").value for table in (february, march))
    assert after - before == 156_000  # type: ignore[operator]
    book = f"{tmp_path}/budget.db"
    with session(loose, february, ledger=book) as asked:
        asked.sum("pay")
    with pytest.raises(cl.AccessDenied, match="another version"):
        session(loose, march, ledger=book)


def students() -> cl.PrivateTable:
    """2,000 students, 900 of whom spend more than 500 a month; the first of them is the victim."""
    return cl.PrivateTable(
        {"student": list(range(2000)), "spends": [600 if i < 900 else 300 for i in range(2000)]},
        columns={"student": cl.Integer(0, 9999), "spends": cl.Integer(0, 5000)},
        version="1",
    )


def rewrites(number: int) -> list[Expression]:
    """The same condition in as many words."""
    return [Or(where("spends", 500, ">"), And(where("spends", 500, ">"), where("student", i))) for i in range(number)]


def test_averaging_by_rewrites_fails_on_keyed_noise_and_wins_on_fresh_noise() -> None:
    noise = Controls(set_size=None, audit_sums=False, output=OutputPerturbation(counts=20))
    with ControlledSession.of(students(), noise, name="students") as asked:
        answers = {asked.count(each).value for each in rewrites(50)}
    assert len(answers) == 1
    fresh = Random.deterministic(3)  # the naive twin: noise drawn anew for every question
    twin = [900 + fresh.below_one(41) - 20 for _ in range(2000)]
    assert round(statistics.mean(twin)) == 900


def test_keyed_noise_is_averaged_over_different_sets() -> None:
    """What it does not stop: the two halves of a partition have noise of their own, and there are many partitions."""
    noise = Controls(set_size=None, audit_sums=False, output=OutputPerturbation(counts=20))
    with ControlledSession.of(students(), noise, name="students") as asked:
        rich, estimates = where("spends", 500, ">"), []
        for cut in range(10, 890, 10):
            halves = (where("student", cut, "<"), where("student", cut, ">="))
            estimates.append(sum(asked.count(And(rich, half)).value for half in halves))  # type: ignore[misc]
    single = 12.0  # standard deviation of one answer: uniform on −20 … 20
    assert abs(statistics.mean(estimates) - 900) < 6 * single * (2 / len(estimates)) ** 0.5 < single


def test_noise_of_one_hides_little_and_a_sample_hides_the_difference() -> None:
    """With −1, 0, 1 on both counts the difference of 900 and 899 lies within −1 … 3; from samples it is anything."""
    rich = where("spends", 500, ">")
    without = And(rich, Not(where("student", 0)))
    small = Controls(set_size=None, audit_sums=False, output=OutputPerturbation(counts=1))
    with ControlledSession.of(students(), small, name="students") as asked:
        assert -1 <= asked.count(rich).value - asked.count(without).value <= 3  # type: ignore[operator]
    sampled = Controls(set_size=None, audit_sums=False, sample=RandomSample(share="0.9"))
    differences = set()
    for version in range(20):
        table = cl.PrivateTable(
            {"student": list(range(2000)), "spends": [600 if i < 900 else 300 for i in range(2000)]},
            columns={"student": cl.Integer(0, 9999), "spends": cl.Integer(0, 5000)},
            version=str(version),
        )
        with ControlledSession.of(table, sampled, name="students") as asked:
            found = asked.count(rich).value
            assert asked.count(rewrites(3)[2]).value == found
            assert abs(found - 900) < 80  # type: ignore[operator]
            differences.add(found - asked.count(without).value)  # type: ignore[operator]
    assert len(differences) > 5
    assert max(abs(each) for each in differences) > 3


def test_rounding_stops_one_difference_and_not_a_person_on_the_edge() -> None:
    """Deterministic rounding to 5: 30 women are 30; 28 are 30, and 27 are 25 — the 28th moves the answer by 5."""
    rounded = Controls(set_size=None, audit_sums=False, rounding=Rounding(base=5))
    with session(rounded) as asked:
        first = asked.count(WOMEN).value
        assert asked.count(And(WOMEN, Not(VICTIM))).value == first
        others = And(WOMEN, Not(where("person", 0)), Not(where("person", 2)))
        assert asked.count(others).value == 30
        assert asked.count(And(others, Not(VICTIM))).value == 25


def test_suppression_stops_subtraction_in_its_table_and_not_other_questions() -> None:
    """A suppressed cell comes back from a count of it together with a shown one."""
    lonely = staff(60)
    with session(Controls(set_size=None, audit_sums=False, suppress=Suppression(threshold=21)), lonely) as asked:
        table = asked.table("department")
        assert table["count"].count(None) >= 3
        everybody = asked.count().value
        not_sales = asked.count(Not(where("department", "sales"))).value
        assert everybody - not_sales == 20  # type: ignore[operator]
    both = Controls(set_size=21, audit_sums=False, suppress=Suppression(threshold=21))
    with session(both, lonely) as asked, pytest.raises(cl.AccessDenied):
        asked.count(Not(where("department", "sales")))


def test_a_perturbed_copy_is_asked_and_differences_tell_the_copy_alone() -> None:
    moved = Controls(set_size=None, audit_sums=False, input=InputPerturbation({"pay": 2_000}))
    with session(moved) as asked:
        total, rest = asked.sum("pay", WOMEN).value, asked.sum("pay", And(WOMEN, Not(VICTIM))).value
        told = total - rest  # type: ignore[operator]
        assert told != PAY
        assert abs(told - PAY) <= 2_000
        assert asked.sum("pay", WOMEN).value == total
        assert asked.count(where("pay", 49_999, "<=")).value == asked.count(Not(where("pay", 50_000, ">="))).value


def test_the_audit_reads_no_value() -> None:
    """Simulatable: the same questions about other salaries meet the same decisions, words included."""
    asked_of: list[list[str]] = []
    random = Random.deterministic(8)
    for pay in ([1_000 * i for i in range(60)], [int(each) for each in random.below(500_000, 60)]):
        decisions = []
        questions = Random.deterministic(9)
        with session(Controls(set_size=2), staff(60, pay=pay)) as asked:
            for _ in range(60):
                people = sorted(set(questions.below(12, 5).tolist()))
                try:
                    asked.sum("pay", Or(*(where("person", person) for person in people)))
                    decisions.append("answered")
                except cl.AccessDenied as refused:
                    decisions.append(str(refused))
        asked_of.append(decisions)
    assert asked_of[0] == asked_of[1]
    assert len(set(asked_of[0])) > 1
