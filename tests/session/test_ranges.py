"""Counts over ranges of one column, asked together: right, in agreement, sharper than one by one, and within their guarantee."""

from __future__ import annotations

import datetime
import itertools
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.query.parse import parse
from cloister.session import Count, Mean, Plan, Question
from cloister.session.planning.blocks import rows_block
from cloister.session.planning.shape import Shape, shape_of
from cloister.session.planning.zoom import Zoom
from cloister.session.releases.formulas import Reading
from cloister.session.releases.uncertainty import Noise, Term, half_width, variance
from cloister.session.workloads.range_family import RangeFamily, Strategic, range_families, strategic_block
from cloister.session.workloads.ranges import range_plan
from cloister.tables import And, Between, Column, Compare, Expression, In, IsNull, Literal, Not, Or, PrivateTable

AGES = [None if number % 40 == 7 else 17 + number * number % 74 for number in range(2000)]
ROWS: dict[str, list[Any]] = {
    "age": AGES,
    "sex": ["F", "M", "F", None] * 500,
    "pay": [number % 101 / 4 for number in range(2000)],
    "born": [datetime.date(1950, 1, 1) + datetime.timedelta(days=number * 7) for number in range(2000)],
}
COLUMNS = {
    "age": cl.Integer(17, 90),
    "sex": cl.Category(["F", "M"]),
    "pay": cl.Real(0, 25, step="0.25"),
    "born": cl.Date("1950-01-01", "1999-12-31"),
}
BUDGETS = [cl.PureDP(10**9), cl.ZCDP(10**9), cl.ApproxDP(10**9, "1e-6")]
UNDER = [f"SELECT COUNT(*) AS n FROM people WHERE age < {age}" for age in (20, 30, 40, 65)]


def session(budget: Any = BUDGETS[0], seed: int = 3, rows: dict[str, list[Any]] = ROWS) -> cl.Session:
    return cl.Session({"people": PrivateTable(rows, columns=COLUMNS)}, budget=budget, random=Random.deterministic(seed))


def shapes_of(conditions: list[Expression | None], *, gaussian: bool = False, table: PrivateTable | None = None) -> list[Shape]:
    declared = table or PrivateTable(ROWS, columns=COLUMNS)
    return [
        shape_of(
            Question(table="people", where=each, statistics=(Count(),)),
            declared,
            population="people",
            version="1",
            fingerprint="people",
            gaussian=gaussian,
        )
        for each in conditions
    ]


def family_of(conditions: list[Expression | None], measure: Any = "pure") -> RangeFamily:
    [family] = range_families(range(len(conditions)), shapes_of(conditions), measure)
    return family


def at_most(age: int) -> Expression:
    return Compare("<=", Column("age"), Literal(age))


def drawn(noise: Noise, shape: tuple[int, int]) -> Any:
    """Noise alone, from a fixed generator."""
    assert not isinstance(noise, Zoom)
    return np.asarray(noise.sample(shape[0] * shape[1], random=Random.deterministic(5)), dtype=np.float64).reshape(shape)


CUMULATIVE: list[Expression | None] = [at_most(age) for age in range(17, 91)]


class TestAnswers:
    @pytest.mark.parametrize("budget", BUDGETS)
    def test_the_numbers_are_right_where_noise_is_nothing(self, budget: Any) -> None:
        def known(test: Any) -> int:
            return sum(age is not None and test(age) for age in AGES)

        asked = {
            "age < 20": known(lambda age: age < 20),
            "age BETWEEN 30 AND 39": known(lambda age: 30 <= age <= 39),
            "age >= 30 AND age < 65": known(lambda age: 30 <= age < 65),
            "age = 41": known(lambda age: age == 41),
            "65 <= age": known(lambda age: age >= 65),
            "age IS NULL": AGES.count(None),
            "age >= 80 OR age IS NULL": known(lambda age: age >= 80) + AGES.count(None),
            "age IS NOT NULL": known(lambda age: True),
        }
        questions = [f"SELECT COUNT(*) AS n FROM people WHERE {where}" for where in asked]
        with session(budget) as opened:
            answers = opened.workload([*questions, "SELECT COUNT(*) AS n FROM people"], spend=10**8)
            plan = opened.explain_workload([parse(each, opened.tables).question for each in questions], 10**8)
        assert [answer["n"].tolist() for answer in answers] == [[number] for number in (*asked.values(), len(AGES))]
        assert len(plan.parts) == 1, "all of them are one family"

    @pytest.mark.parametrize(
        ("column", "ends"),
        [("pay", ["1.5", "3.25", "20"]), ("born", ["DATE '1955-03-01'", "DATE '1960-01-01'", "DATE '1980-12-31'"])],
    )
    def test_reals_and_dates_have_ranges_too(self, column: str, ends: list[str]) -> None:
        values: dict[str, list[Any]] = {
            "pay": [1.5, 3.25, 20.0],
            "born": [datetime.date(1955, 3, 1), datetime.date(1960, 1, 1), datetime.date(1980, 12, 31)],
        }
        with session() as opened:
            questions = [f"SELECT COUNT(*) AS n FROM people WHERE {column} <= {end}" for end in ends]
            answers = opened.workload(questions, spend=10**8)
            plan = opened.explain_workload([parse(each, opened.tables).question for each in questions], 10**8)
        assert [part.shape.question.by for part in plan.parts] == [(column,)]
        assert [answer["n"][0] for answer in answers] == [sum(value <= end for value in ROWS[column]) for end in values[column]]

    def test_a_condition_that_all_share_stays(self) -> None:
        with session() as opened:
            texts = [f"SELECT COUNT(*) AS n FROM people WHERE sex = 'F' AND age < {age}" for age in (30, 50, 70)]
            answers = opened.workload([*texts, "SELECT COUNT(*) AS n FROM people WHERE sex = 'F'"], spend=10**8)
        women = [age for age, sex in zip(AGES, ROWS["sex"], strict=True) if sex == "F"]
        wanted = [sum(age is not None and age < end for age in women) for end in (30, 50, 70)]
        assert [answer["n"][0] for answer in answers] == [*wanted, len(women)]

    @pytest.mark.parametrize("budget", BUDGETS)
    def test_nested_ranges_agree_but_for_rounding(self, budget: Any) -> None:
        parts = ["age < 30", "age BETWEEN 30 AND 64", "age >= 65", "age IS NULL", "age < 65", "age >= 30"]
        with session(budget) as opened:
            questions = [f"SELECT COUNT(*) AS n FROM people WHERE {where}" for where in parts]
            answers = opened.workload([*questions, "SELECT COUNT(*) AS n FROM people"], spend="0.05")
            young, middle, old, missing, under, over, total = (answer["n"][0] for answer in answers)
        assert abs(young + middle - under) <= 1.5
        assert abs(middle + old - over) <= 1.5
        assert abs(young + middle + old + missing - total) <= 2.5
        assert young + middle + old + missing != len(AGES), "the noise is there"

    def test_one_person_with_several_rows(self) -> None:
        visits = PrivateTable(
            {"who": [f"p{number // 4}" for number in range(400)], "day": [number % 31 for number in range(400)]},
            columns={"day": cl.Integer(0, 30)},
            unit="who",
            max_rows=4,
        )
        questions = [f"SELECT COUNT(*) AS n FROM visits WHERE day < {day}" for day in (5, 10, 20)]
        with cl.Session({"visits": visits}, budget=cl.PureDP(10**9), random=Random.deterministic(1)) as opened:
            plan = opened.explain_workload([parse(each, opened.tables).question for each in questions], 1)
            answers = opened.workload(questions, spend=10**8)
        [block] = plan.parts[0].shape.blocks
        assert isinstance(block, Strategic)
        assert block.l1 % 4 == 0
        assert block.l2_squared % 16 == 0
        assert [answer["n"][0] for answer in answers] == [sum(number % 31 < day for number in range(400)) for day in (5, 10, 20)]

    def test_other_questions_stand_beside(self) -> None:
        questions: list[str | Question] = [
            *UNDER,
            "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
            Question(table="people", statistics=(Mean(column="age"),)),
        ]
        for budget in BUDGETS:
            with session(budget) as opened:
                answers = opened.workload(questions, spend=10**8)
                plan = opened.explain_workload(
                    [parse(each, opened.tables).question if isinstance(each, str) else each for each in questions], 10**8
                )
            assert [answer["n"][0] for answer in answers[:4]] == [
                sum(age is not None and age < end for age in AGES) for end in (20, 30, 40, 65)
            ]
            assert answers[4]["n"].tolist() == [1000, 500]
            assert answers[5]["mean_age"][0] == pytest.approx(np.mean([age for age in AGES if age is not None]), abs=0.01)
            assert len(plan.parts) == 3
            assert "age < 20" in str(plan)

    def test_an_empty_table_is_measured_alike(self) -> None:
        with session() as full, session(rows={name: [] for name in ROWS}) as empty:
            one, other = full.workload(UNDER, spend=1), empty.workload(UNDER, spend=1)
        assert [answer.margin()["n"].tolist() for answer in one] == [answer.margin()["n"].tolist() for answer in other]


class TestMoney:
    @pytest.mark.parametrize("budget", BUDGETS)
    def test_one_charge_and_the_same_again_is_free(self, budget: Any) -> None:
        with session(budget) as opened:
            first = opened.workload(UNDER, spend="0.5")
            spent = opened.spent
            again = opened.workload(UNDER[::-1], spend="0.5")
            assert opened.spent == spent
            assert [answer["n"][0] for answer in again[::-1]] == [answer["n"][0] for answer in first]
            assert all(answer.provenance.repeated for answer in again)
            assert len(opened.ledger.charges("people")) == 1

    @pytest.mark.parametrize("budget", BUDGETS[:2])
    def test_a_larger_spend_buys_the_difference(self, budget: Any) -> None:
        with session(budget) as opened:
            first = opened.workload(UNDER, spend="0.01")
            second = opened.workload(UNDER, spend="0.04")
            assert opened.spent == type(budget)("0.04")
        narrower = 0.51 if isinstance(budget, cl.ZCDP) else 0.36
        for before, after in zip(first, second, strict=True):
            assert after.margin()["n"][0] <= narrower * before.margin()["n"][0]

    def test_the_margins_before_are_the_margins_after(self) -> None:
        for budget in BUDGETS:
            with session(budget) as opened:
                plan = opened.explain_workload([parse(each, opened.tables).question for each in UNDER], "0.5")
                answers = opened.workload(UNDER, spend="0.5")
            assert [words for words, _ in plan.wanted] == ["age < 20", "age < 30", "age < 40", "age < 65"]
            told = [margins["count_star()"] for _, margins in plan.wanted]
            assert told == [answer.margin()["n"][0] for answer in answers]
            assert "worked out together" in str(plan)


class TestFamilies:
    def test_what_is_no_range_stays_alone(self) -> None:
        age = Column("age")
        apart: list[Expression | None] = [
            Or(at_most(20), Compare(">", age, Literal(60))),
            Or(at_most(20), IsNull(age)),
            Not(Compare("=", age, Literal(40))),
            In("age", [20, 40]),
            at_most(3),
            In("sex", ["F"]),
        ]
        near: list[Expression | None] = [at_most(20), at_most(30), Between(age, Literal(30), Literal(50))]
        [family] = range_families(range(len(apart) + 3), shapes_of([*apart, *near]), "pure")
        assert set(family.wanted) == {len(apart), len(apart) + 1, len(apart) + 2}

    def test_two_are_no_family_and_neither_is_what_does_not_gain(self) -> None:
        assert range_families(range(2), shapes_of([at_most(20), at_most(30)]), "pure") == []
        with session() as opened:
            questions = [parse(each, opened.tables).question for each in UNDER[:2]]
            assert len(opened.explain_workload(questions, 1).parts) == 2

    def test_columns_with_too_many_values_stay_alone(self) -> None:
        wide = PrivateTable({"x": [1]}, columns={"x": cl.Integer(0, 100_000)})
        conditions: list[Expression | None] = [Compare("<", Column("x"), Literal(end)) for end in (10, 20, 30)]
        assert range_families(range(3), shapes_of(conditions, table=wide), "pure") == []
        narrow = PrivateTable({"x": [1]}, columns={"x": cl.Integer(1, 100_000)})
        assert len(range_families(range(3), shapes_of(conditions, table=narrow), "pure")) == 1

    def test_a_question_on_two_columns_joins_the_larger_family(self) -> None:
        paid = Compare("<", Column("pay"), Literal(5))
        conditions: list[Expression | None] = [And(at_most(age), paid) for age in (20, 30, 40)]
        conditions += [And(at_most(20), Compare("<", Column("pay"), Literal(pay))) for pay in (6, 7)]
        [family] = range_families(range(5), shapes_of(conditions), "pure")
        assert set(family.wanted) in ({0, 1, 2}, {0, 3, 4})

    def test_the_strategy_is_in_the_digest_and_the_order_is_not(self) -> None:
        some = [at_most(age) for age in (20, 30, 40, 50)]
        digests = [family_of(list(order)).shape.digest for order in itertools.permutations(some)]
        assert len(set(digests)) == 1
        assert family_of([*some, at_most(60)]).shape.digest not in digests
        assert family_of(list(some), "zcdp").shape.digest not in digests


class TestGuarantee:
    @pytest.mark.parametrize("pure", [True, False])
    @pytest.mark.parametrize(
        "ranges", [[(0, stop) for stop in range(1, 17)], [(0, 3), (1, 4), (2, 5), (0, 5)], [(1, 2), (3, 5), (1, 5)]]
    )
    def test_the_norms_are_those_of_all_neighbours(self, pure: bool, ranges: list[tuple[int, int]]) -> None:
        """All that one unit of at most m rows can add, by brute force."""
        size = max(stop for _, stop in ranges)
        plan = range_plan(size, ranges, pure=pure)
        assert size < 16 or plan.strategy.l1 > 1, "a strategy that is more than the counts themselves"
        for rows in (1, 2, 3):
            block = strategic_block("age", plan, rows_block(rows))
            base = np.arange(size) % 3
            reach = []
            for places in itertools.combinations_with_replacement(range(size + 1), rows):  # the last place: no row at all
                with_unit = base + np.bincount(places, minlength=size + 1)[:size]
                moved = block.raws[0].exact({"rows": with_unit}) - block.raws[0].exact({"rows": base})
                reach.append((int(np.abs(moved).sum()), int((moved**2).sum())))
            assert max(l1 for l1, _ in reach) == block.l1
            assert max(l2 for _, l2 in reach) == block.l2_squared

    def test_the_noise_costs_what_is_charged(self) -> None:
        for measure, guarantee in (("pure", cl.PureDP("0.3")), ("zcdp", cl.ZCDP("0.3"))):
            [block] = family_of(CUMULATIVE, measure).shape.blocks
            [noise] = block.laplace(guarantee.epsilon) if isinstance(guarantee, cl.PureDP) else block.gaussian(guarantee.rho)
            assert noise.guarantee == guarantee  # type: ignore[union-attr]


class TestError:
    @pytest.mark.parametrize(("measure", "factor"), [("pure", 300), ("zcdp", 15)])
    def test_all_cumulative_counts_of_74_ages_are_sharper_by_the_promised_factor(self, measure: Any, factor: int) -> None:
        family = family_of(CUMULATIVE, measure)
        shapes = shapes_of(CUMULATIVE)
        [block] = family.shape.blocks
        alone = rows_block(1)
        if measure == "pure":
            [noise], [one] = block.laplace(cl.PureDP(1).epsilon), alone.laplace(cl.PureDP(1).epsilon / 74)
        else:
            [noise], [one] = block.gaussian(cl.ZCDP(1).rho), alone.gaussian(cl.ZCDP(1).rho / 74)
        blank = Reading(np.zeros(family.plan.strategy.rows), (Term(1.0, noise),))
        answers = family.answers(shapes, [{block.name: blank}])
        said = [variance(readings["rows"].terms) for _, readings in (answers[place] for place in range(74))]
        assert family.plan.gain > factor
        assert float(one.variance) / np.mean(said) == pytest.approx(family.plan.gain, rel=0.01)
        errors = family.plan.coefficients @ drawn(noise, (family.plan.strategy.rows, 4000))
        rows = [family.wanted[place] for place in range(74)]
        assert errors.var(axis=1)[rows] == pytest.approx(said, rel=0.15)

    @pytest.mark.parametrize("measure", ["pure", "zcdp"])
    def test_the_margins_cover(self, measure: Any) -> None:
        """20,000 draws: a share of 95 % is off by less than 0.77 % with five standard deviations."""
        draws = 20_000
        conditions: list[Expression | None] = [at_most(age) for age in (20, 25, 31, 40, 52, 64, 75)]
        conditions += [Between(Column("age"), Literal(30), Literal(50)), None]
        family, shapes = family_of(conditions, measure), shapes_of(conditions)
        [block] = family.shape.blocks
        for amount in ("0.05", "2"):
            [noise] = block.laplace(cl.PureDP(amount).epsilon) if measure == "pure" else block.gaussian(cl.ZCDP(amount).rho)
            blank = Reading(np.zeros(family.plan.strategy.rows), (Term(1.0, noise),))
            answers = family.answers(shapes, [{block.name: blank}])
            errors = np.rint(family.plan.coefficients @ drawn(noise, (family.plan.strategy.rows, draws)))
            for place, row in family.wanted.items():
                [formula], readings = answers[place]
                for confidence in (0.5, 0.95, 0.999):
                    width = formula.margins(readings, confidence)[0]
                    assert width == half_width(tuple(formula.terms(readings)), confidence, True)  # type: ignore[attr-defined]
                    covered = float((np.abs(errors[row]) <= width).mean())
                    assert covered >= confidence - 5 * (confidence * (1 - confidence) / draws) ** 0.5
                    if width >= 20:
                        assert covered <= confidence + 0.05 * (1 - confidence) ** 0.5 + 0.01

    def test_margins_are_narrower_than_one_by_one(self) -> None:
        for budget, factor in zip(BUDGETS[:2], (2.1, 1.2), strict=True):
            with session(budget) as opened:
                together: Plan = opened.explain_workload([parse(each, opened.tables).question for each in UNDER], "0.1")
                alone = opened.explain(UNDER[0], cl.PureDP("0.025") if factor > 2 else cl.ZCDP("0.025"))
            widest = max(margins["count_star()"] for _, margins in together.wanted)
            assert alone.margin()["n"].tolist()[0] > factor * widest


def test_an_unknown_column_is_refused_as_ever() -> None:
    questions = [
        Question(table="people", where=Compare("<", Column("agee"), Literal(end)), statistics=(Count(),)) for end in (20, 30, 40)
    ]
    with session() as opened, pytest.raises(cl.UnknownColumn, match="agee"):
        opened.workload(questions, spend=1)
