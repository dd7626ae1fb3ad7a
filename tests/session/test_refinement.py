"""What follows from a paid release is read off it, exactly where it is the same number with noise, and costs nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Combined, Count, Door, Mean, Named, Operation, Persons, Question, Sum
from cloister.tables import And, Binned, Column, Compare, Expression, Literal

N = 400
ROWS = {
    "sex": ["F", "M", None, "F"] * (N // 4),
    "educ": ["a", "b", "b", None, "c"] * (N // 5),
    "hours": [number % 41 for number in range(N)],
}
COLUMNS = {"sex": cl.Category(["F", "M"]), "educ": cl.Category(["a", "b", "c"]), "hours": cl.Integer(0, 40)}
WOMEN = Compare("=", Column("sex"), Literal("F"))
FINE = 4 / 10**5  # the scale of noise at a spend of 10^5 is so small that the integers below are exact


@pytest.fixture
def door() -> Iterator[Door]:
    """A door with so much budget that noise can be told from wrong sums."""
    table = cl.PrivateTable(ROWS, columns=COLUMNS)
    with Door({"people": table}, budget=cl.PureDP(10**7), random=Random.deterministic(5)) as opened:
        yield opened


def question(by: tuple[str, ...], where: Expression | None = None, statistics: tuple[object, ...] = (Count(),)) -> Question:
    return Question(table="people", by=by, statistics=statistics, where=where)  # type: ignore[arg-type]


def _exact(where: object = None) -> int:
    return sum(1 for sex in ROWS["sex"] if where is None or sex == where)


@pytest.mark.parametrize(
    ("coarse", "expected"),
    [
        (question(()), [N]),
        (question(("sex",)), [_exact("F"), _exact("M")]),
        (question((), WOMEN), [_exact("F")]),
        (question(("sex",), WOMEN), [_exact("F")]),
    ],
)
def test_a_coarser_answer_is_the_sum_of_finer_groups_and_is_free(door: Door, coarse: Question, expected: list[int]) -> None:
    door.measure(question(("sex", "educ")), spend=10**5)
    spent = door.spent
    answer = door.measure(coarse, spend=10**5)
    assert door.spent == spent
    assert answer["count"].tolist() == expected, "rows without a value of a key are part of the totals"
    assert answer.provenance.repeated
    assert any("follows from a finer answer" in note for note in answer.notes)


@pytest.mark.parametrize("finer", [question(()), question(("sex", "educ"))])
def test_a_condition_that_reads_no_column_is_one_all_the_same(door: Door, finer: Question) -> None:
    door.measure(finer, spend=10**5)
    answer = door.measure(question((), Literal(False)), spend=10**5)
    assert answer["count"].tolist() == [0]
    assert not answer.provenance.repeated


def test_fresh_buys_it_anew(door: Door) -> None:
    door.measure(question(("sex", "educ")), spend=10)
    before = door.spent
    door.measure(question(("sex",)), spend=10, fresh=True)
    assert door.spent != before


def test_a_larger_spend_than_the_finer_answer_cost_is_bought(door: Door) -> None:
    door.measure(question(("sex", "educ")), spend=10)
    before = door.spent
    door.measure(question(("sex",)), spend=11)
    assert door.spent != before


def test_sums_and_means_follow_too(door: Door) -> None:
    statistics = (Count(), Sum(column="hours"), Mean(column="hours"))
    door.measure(question(("sex", "educ"), None, statistics), spend=10**6)
    before = door.spent
    answer = door.measure(question((), None, (Mean(column="hours"), Sum(column="hours"))), spend=10**6)
    assert door.spent == before
    assert answer["sum_hours"][0] == pytest.approx(sum(ROWS["hours"]), abs=1)
    assert answer["mean_hours"][0] == pytest.approx(sum(ROWS["hours"]) / N, abs=0.01)


@pytest.mark.parametrize(
    ("finer", "coarse"),
    [
        (question(("sex",)), question(("educ",))),
        (question(("sex",)), question((), Compare("=", Column("educ"), Literal("a")))),
        (question(("sex",), WOMEN), question(("sex",))),
        (question(("sex",)), question((), None, (Sum(column="hours"),))),
        (question(("sex",)), question((), And(WOMEN, Compare(">", Column("hours"), Literal(3))))),
    ],
)
def test_what_does_not_follow_is_bought(door: Door, finer: Question, coarse: Question) -> None:
    door.measure(finer, spend=10)
    before = door.spent
    door.measure(coarse, spend=10)
    assert door.spent != before


def test_bins_cover_everything_or_nothing_follows(door: Door) -> None:
    door.measure(Question(table="people", by=(Binned("hours", [0, 10, 20]),), statistics=(Count(),)), spend=10**5)
    before = door.spent
    answer = door.measure(question(()), spend=10**5)
    assert door.spent == before
    assert answer["count"].tolist() == [N], "rows outside of all bins are measured as a group of their own"


def test_persons_of_several_rows_do_not_add_up_over_groups() -> None:
    visits = cl.PrivateTable(
        {"who": ["a", "a", "b", "c"] * 5, "ward": ["x", "y", "x", "y"] * 5},
        columns={"ward": cl.Category(["x", "y"])},
        unit="who",
        max_rows=3,
    )
    with Door({"visits": visits}, budget=cl.PureDP(100), random=Random.deterministic(2)) as door:
        door.measure(Question(table="visits", by=("ward",), statistics=(Persons(),)), spend=1)
        before = door.spent
        door.measure(Question(table="visits", statistics=(Persons(),)), spend=1)
        assert door.spent != before


def test_the_margin_of_a_sum_of_groups_is_that_of_all_their_noise(door: Door) -> None:
    """12 cells with DiscreteLaplace of scale 10: the standard deviation is √12 · √2 · 10 ≈ 49, the 95 % margin near 97."""
    door.measure(question(("sex", "educ")), spend="0.1")
    margin = float(door.measure(question(()), spend="0.1").margin()["count"][0])
    assert 92 <= margin <= 102


def test_arithmetic_that_names_other_statistics_is_not_taken_for_the_same(door: Door) -> None:
    share = Combined(name="c", expression=Operation("divide", (Named("a"), Named("b"))))
    one = (Sum(column="hours", name="a"), Count(name="b"), share)
    turned = (Count(name="a"), Sum(column="hours", name="b"), share)
    door.measure(question(("sex",), None, one), spend=10**6)
    answer = door.measure(question((), None, turned), spend=10**6)
    assert answer["c"][0] == pytest.approx(N / sum(ROWS["hours"]), rel=1e-3)


FINE_SQL = "SELECT hours, COUNT(*) AS n FROM people GROUP BY hours"
TOTAL_SQL = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def session() -> Iterator[cl.Session]:
    """A session that holds 41 groups, bought for ε = 0.1."""
    table = cl.PrivateTable(ROWS, columns=COLUMNS)
    with cl.Session({"people": table}, budget=cl.PureDP(10), random=Random.deterministic(1)) as opened:
        opened.sql(FINE_SQL, spend="0.1")
        yield opened


def test_a_finer_answer_is_served_only_where_its_margin_is_within(session: cl.Session) -> None:
    answer = session.sql(TOTAL_SQL, within=31)
    assert float(answer.margin()["n"][0]) <= 31
    assert not answer.provenance.repeated
    assert session.spent != cl.PureDP("0.1")


def test_the_confidence_of_within_is_that_of_the_margin_that_is_compared(session: cl.Session) -> None:
    wide = float(session.sql(TOTAL_SQL, spend="0.1").margin(0.8)["n"][0])
    assert session.sql(TOTAL_SQL, within=wide, confidence=0.8).provenance.repeated
    assert session.spent == cl.PureDP("0.1")
    surer = session.sql(TOTAL_SQL, within=wide, confidence=0.9999)
    assert float(surer.margin(0.9999)["n"][0]) <= wide


def test_a_margin_that_is_wide_enough_costs_nothing(session: cl.Session) -> None:
    assert session.sql(TOTAL_SQL, within=1000).provenance.repeated
    assert session.spent == cl.PureDP("0.1")


@pytest.mark.parametrize("spend", ["0.05", "0.1", "0.2"])
@pytest.mark.parametrize("sql", [TOTAL_SQL, "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", FINE_SQL])
def test_explain_foresees_what_sql_does(session: cl.Session, sql: str, spend: str) -> None:
    before, plan = session.spent, session.explain(sql, spend=spend)
    told = str(plan)
    answer = session.sql(sql, spend=spend)
    assert session.spent.epsilon == before.epsilon + plan.cost.epsilon  # type: ignore[union-attr]
    assert float(plan.margin()["n"][0]) == float(answer.margin()["n"].max())
    assert plan.digest == answer.provenance.digest
    assert ("fresh=True" in told) == any("fresh=True" in note for note in answer.notes)
    assert plan.picture()
    assert plan.summary()["cost"]
    assert float(session.afford(sql, [spend]).margins["n"][0]) == float(plan.margin()["n"][0])
