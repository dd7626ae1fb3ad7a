"""Variances, covariances, regression, quantiles, modes and arithmetic: exact where the noise is nil, shared where they can be."""

from __future__ import annotations

import datetime
import itertools
from fractions import Fraction

import numpy as np
import pytest

import cloister as cl
from cloister.noise import DiscreteLaplace, Random
from cloister.session import (
    Combined,
    Constant,
    Correlation,
    Count,
    Covariance,
    Door,
    Largest,
    Mean,
    Mode,
    Named,
    Operation,
    Persons,
    Quantile,
    Question,
    Regression,
    Smallest,
    Statistic,
    Sum,
    Variance,
)
from cloister.session.planning.blocks import units_block
from cloister.session.planning.choice import choice_of
from cloister.session.planning.leaves import Leaves, histogram_of, leaves_of
from cloister.session.planning.moments import Moments, lowered
from cloister.session.questions.arithmetic import ratio
from cloister.session.questions.spend import Spend
from cloister.session.releases.formulas import reading_of
from cloister.session.releases.store import Found, from_bytes, to_bytes

ROWS = 400
X = [17 + (7 * n) % 74 for n in range(ROWS)]
Y = [float((3 * n) % 101) / 4 if n % 5 else float("nan") for n in range(ROWS)]
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=(11 * n) % 366) for n in range(ROWS)]
SEX = ["F" if n % 3 else "M" for n in range(ROWS)]


@pytest.fixture
def table() -> cl.PrivateTable:
    return cl.PrivateTable(
        {"x": X, "y": Y, "day": DAYS, "sex": SEX, "same": [5] * ROWS, "town": ["Delft"] * ROWS},
        columns={
            "x": cl.Integer(17, 90),
            "y": cl.Real(0, 25, step="0.25"),
            "day": cl.Date("2020-01-01", "2020-12-31"),
            "sex": cl.Category(["F", "M"]),
            "same": cl.Integer(5, 5),
            "town": cl.Text(),
        },
    )


def sure(table: cl.PrivateTable) -> Door:
    return Door({"t": table}, budget=cl.PureDP(10**15), random=Random.deterministic(3))


def asked(*statistics: Statistic, by: tuple[str, ...] = (), hidden: tuple[str, ...] = ()) -> Question:
    return Question(table="t", by=by, statistics=statistics, hidden=hidden)


def test_moments_are_those_of_the_rows(table: cl.PrivateTable) -> None:
    statistics = (
        Count(),
        Count(column="y"),
        Mean(column="x"),
        Sum(column="x"),
        Variance(column="x"),
        Variance(column="x", sample=False, name="population"),
        Variance(column="y", root=True),
        Covariance(x="x", y="y"),
        Covariance(x="y", y="x", sample=False, name="covar_pop"),
        Correlation(x="y", y="x"),
        *(Regression(x="x", y="y", part=part) for part in ("slope", "intercept", "r2", "count", "avgx", "avgy")),  # type: ignore[arg-type]
        *(Regression(x="x", y="y", part=part) for part in ("sxx", "syy", "sxy")),  # type: ignore[arg-type]
        Regression(x="y", y="x", part="slope", name="other_way"),
    )
    with sure(table) as door:
        answer = door.measure(asked(*statistics, by=("sex",)), spend=10**12)
    for place, sex in enumerate(["F", "M"]):
        mine = np.array([s == sex for s in SEX])
        x, y = np.array(X, dtype=float)[mine], np.array(Y)[mine]
        both = ~np.isnan(y)
        u, v = x[both], y[both]
        slope, intercept = np.polyfit(u, v, 1)
        r = np.corrcoef(u, v)[0, 1]
        truth = {
            "count": len(x),
            "count_y": len(v),
            "mean_x": x.mean(),
            "sum_x": x.sum(),
            "variance_x": x.var(ddof=1),
            "population": x.var(),
            "stddev_y": v.std(ddof=1),
            "covariance_x_y": np.cov(u, v)[0, 1],
            "covar_pop": np.cov(u, v, ddof=0)[0, 1],
            "correlation_y_x": r,
            "regr_slope_y_x": slope,
            "regr_intercept_y_x": intercept,
            "regr_r2_y_x": r * r,
            "regr_count_y_x": len(v),
            "regr_avgx_y_x": u.mean(),
            "regr_avgy_y_x": v.mean(),
            "regr_sxx_y_x": u.var() * len(u),
            "regr_syy_y_x": v.var() * len(v),
            "regr_sxy_y_x": np.cov(u, v, ddof=0)[0, 1] * len(u),
            "other_way": np.polyfit(v, u, 1)[0],
        }
        for name, value in truth.items():
            assert float(answer[name][place]) == pytest.approx(value, rel=1e-6, abs=1e-6), name


def test_quantiles_and_extremes_are_those_of_the_rows(table: cl.PrivateTable) -> None:
    shares = ["0", "0.1", "0.25", "0.5", "0.9", "1"]
    with sure(table) as door:
        answer = door.measure(
            asked(
                *(Quantile(column="x", at=share, name=f"x{share}") for share in shares),
                *(Quantile(column="y", at=share, name=f"y{share}") for share in shares[1:]),
                *(Quantile(column="day", at=share, name=f"day{share}") for share in shares[1:]),
                Smallest(column="x"),
                Largest(column="x"),
                Largest(column="day"),
                Count(column="x"),
            ),
            spend=10**12,
        )
        margins = answer.margin()
    present = sorted(value for value in Y if value == value)
    for share in shares[1:]:
        rank = {name: max(int(np.ceil(float(share) * size)) - 1, 0) for name, size in (("x", ROWS), ("y", len(present)))}
        assert answer[f"x{share}"][0] == sorted(X)[rank["x"]]
        assert answer[f"y{share}"][0] == pytest.approx(present[rank["y"]])
        assert answer[f"day{share}"][0] == sorted(DAYS)[rank["x"]]
        assert margins[f"x{share}"][0] == 0
    assert (answer["min_x"][0], answer["max_x"][0], answer["max_day"][0]) == (17, 90, datetime.date(2020, 12, 31))
    assert answer["count_x"].tolist() == [ROWS]
    assert str(answer["x0.5"].dtype) == "int64"


def test_modes_of_categories_numbers_and_truth_values() -> None:
    table = cl.PrivateTable(
        {"c": ["b", "b", "a"] * 9, "k": [3, 4, 4] * 9, "w": [True, False, True] * 9},
        columns={"c": cl.Category(["a", "b"]), "k": cl.Integer(0, 9), "w": cl.Boolean()},
    )
    with sure(table) as door:
        answer = door.measure(asked(Mode(column="c"), Mode(column="k"), Mode(column="w"), Quantile(column="k")), spend=10**12)
    assert [answer[f"mode_{name}"][0] for name in "ckw"] == ["b", 4, True]
    assert np.isnan(answer.margin()["mode_c"][0])
    assert "mode_k has no margin" in "\n".join(answer.notes)
    assert "b" in repr(answer)


def test_constant_columns_and_empty_tables_have_answers(table: cl.PrivateTable) -> None:
    statistics = (Variance(column="same"), Mean(column="same"), Quantile(column="same"), Mode(column="same"), Sum(column="same"))
    with sure(table) as door:
        answer = door.measure(asked(*statistics), spend=10**12)
    assert [float(answer[name][0]) for name in answer.statistics()] == [0, 5, 5, 5, 5 * ROWS]
    empty = cl.PrivateTable({"x": [], "y": []}, columns={"x": cl.Integer(0, 9), "y": cl.Integer(0, 9)})
    question = asked(Variance(column="x"), Correlation(x="x", y="y"), Quantile(column="x"), Regression(x="x", y="y"))
    with Door({"t": empty}, budget=cl.PureDP(1), random=Random.deterministic(4)) as door:
        answer = door.measure(question, spend=1)
    assert answer.num_rows == 1
    assert 0 <= answer["median_x"][0] <= 9
    assert answer.margin()["variance_x"][0] >= 9**2 / 4
    assert answer.margin()["regr_slope_y_x"][0] == np.inf
    assert "inf" in repr(answer)


def test_rows_without_a_value_are_in_no_leaf_and_in_the_count_of_rows(table: cl.PrivateTable) -> None:
    with sure(table) as door:
        two = (Quantile(column="y"), Quantile(column="y", at="0.9"))
        plan = door.explain(asked(*two, Count()), spend=1)
        answer = door.measure(asked(*two, Count(), Count(column="y")), spend=10**12)
    assert len(plan.parts[0].shape.blocks) == 1
    assert (answer["count"][0], answer["count_y"][0]) == (ROWS, sum(value == value for value in Y))


def test_statistics_of_one_column_share_one_block(table: cl.PrivateTable) -> None:
    with sure(table) as door:

        def blocks(*statistics: Statistic) -> list[str]:
            return [block.name for block in door.explain(asked(*statistics), spend=1).parts[0].shape.blocks]

        assert blocks(Count(), Mean(column="x"), Sum(column="x"), Variance(column="x"), Count(column="x")) == ["moments:x^2"]
        assert blocks(Covariance(x="x", y="y")) == ["moments:x^1 × y^1"]
        assert blocks(Covariance(x="y", y="x"), Correlation(x="x", y="y")) == ["moments:x^2 × y^2"]
        assert blocks(Regression(x="x", y="y"), Regression(x="x", y="y", part="count")) == ["moments:x^2 × y^1"]
        assert blocks(Regression(x="y", y="x")) == ["moments:x^1 × y^2"]
        assert blocks(Covariance(x="x", y="x")) == ["moments:x^2"]
        five = [Quantile(column="x", at=share) for share in ("0.1", "0.5", "0.9")]
        assert blocks(*five, Smallest(column="x"), Largest(column="x"), Mode(column="x")) == ["hierarchy:x/1"]


@pytest.mark.parametrize("degrees", [(1,), (2,), (1, 1), (2, 1), (2, 2)])
def test_a_row_moves_a_block_by_one_width_and_no_more(degrees: tuple[int, ...]) -> None:
    """Brute force over all values of small columns: the parts are never negative, add up to the width, and reach the L2 bound."""
    sides = tuple(lowered(degree, 3, 8, name) for degree, name in zip(degrees, "xy", strict=False))
    moments = Moments(sides=sides)
    block = moments.block(1, nulls=False)
    longest = Fraction(0)
    for codes in itertools.product(range(3, 9), repeat=len(sides)):
        sums = {}
        for aggregate in block.aggregates:
            value = 1
            for name, offset in aggregate.factors if aggregate.kind == "sum" else ():
                value *= codes["xy".index(name)] - offset
            sums[aggregate.name] = np.array([value], dtype=object)
        moved = [int(raw.exact(sums)[0]) for raw in block.raws]
        assert min(moved) >= 0
        assert sum(moved) == moments.width == block.raws[0].width
        longest = max(longest, sum((Fraction(part, moments.width) ** 2 for part in moved), Fraction(0)))
    assert longest == block.l2_squared == 1


@pytest.mark.parametrize("leaves", [leaves_of("x", 0, 74, cells=1, total=True, gaussian=False), histogram_of("x", 0, 5)])
def test_a_row_moves_a_hierarchy_by_its_weights_and_no_more(leaves: Leaves) -> None:
    for leaf in range(leaves.count):
        one = np.zeros((1, leaves.count), dtype=np.int64)
        one[0, leaf] = 1
        moved = np.concatenate([each.reshape(-1) for each in leaves.sums(one).values()])
        assert moved.sum() == leaves.tree.l1
        assert (moved**2).sum() == leaves.tree.l2_squared


def test_leaves_follow_from_public_facts_alone() -> None:
    gaussian, laplace = (leaves_of("x", 0, 1000, cells=1, total=False, gaussian=kind) for kind in (True, False))
    assert gaussian.branching < laplace.branching
    assert leaves_of("x", 0, 10**9, cells=1, total=False, gaussian=False).count <= 2**16
    assert leaves_of("x", 0, 10**9, cells=1000, total=False, gaussian=False).count <= 2**21 // 1000
    for leaves in (gaussian, laplace):
        exact = np.arange(1000)[None, :]
        sums = leaves.sums(exact)
        assert leaves.counts(sums[leaves.levels_name], None) == pytest.approx(exact, abs=1e-6)


def test_repeats_are_combined_and_survive_the_ledger(table: cl.PrivateTable) -> None:
    question = asked(Quantile(column="x"), Variance(column="x"), by=("sex",))
    with Door({"t": table}, budget=cl.PureDP(10), random=Random.deterministic(3)) as door:
        first = door.measure(question, spend=1)
        again = door.measure(question, spend=1)
        more = door.measure(question, spend=4)
        assert door.spent == cl.PureDP(4)
    assert first["variance_x"].tolist() == again["variance_x"].tolist()
    assert (more.margin()["variance_x"] < first.margin()["variance_x"]).all()
    assert (more.margin()["median_x"] <= first.margin()["median_x"]).all()
    reading = reading_of(np.arange(6).reshape(2, 3), DiscreteLaplace(scale=1))
    huge = reading_of(np.full((2, 3), 2**40), DiscreteLaplace(scale=1))
    found = from_bytes(to_bytes([Found(None, {"a": reading, "b": huge})], marked=True)).parts[0].readings
    assert found["a"].values.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["b"].values.tolist() == [[2**40] * 3] * 2


def test_arithmetic_on_statistics_costs_nothing_and_hides_its_parts(table: cl.PrivateTable) -> None:
    percent = Operation("multiply", (Constant(100), ratio("high", "n")))
    question = asked(
        Sum(column="x", name="high"),
        Count(column="x", name="n"),
        Mean(column="x"),
        Combined(name="mean", expression=ratio("high", "n")),
        Combined(name="percent", expression=Operation("round", (percent,), digits=1)),
        Combined(name="twice", expression=Operation("add", (Named("n"), Named("n")))),
        Combined(name="least", expression=Operation("least", (Named("n"), Constant(7)))),
        Combined(name="gone", expression=Operation("divide", (Named("n"), Operation("subtract", (Named("n"), Named("n")))))),
        Combined(
            name="kept",
            expression=Operation(
                "coalesce",
                (Operation("divide", (Named("n"), Operation("subtract", (Named("n"), Named("n"))))), Constant(0)),
            ),
        ),
        hidden=("high", "n"),
    )
    with Door({"t": table}, budget=cl.PureDP(10), random=Random.deterministic(5)) as door:
        plan = door.explain(question, spend=1)
        answer = door.measure(question, spend=1)
        margins = answer.margin()
    assert answer.column_names == ["mean_x", "mean", "percent", "twice", "least", "gone", "kept"] == list(margins.column_names)
    assert len(plan.parts[0].shape.blocks) == 1
    assert answer["mean"] == pytest.approx(answer["mean_x"])
    assert margins["mean"] == pytest.approx(margins["mean_x"], rel=0.12)  # shared noise cancels, as in a mean
    assert answer["percent"][0] == pytest.approx(100 * answer["mean"][0], abs=0.051)
    assert str(answer["twice"].dtype) == "int64"
    assert answer["least"].tolist() == [7]
    assert margins["least"][0] == 0
    assert np.isnan(answer["gone"][0])
    assert margins["gone"][0] == np.inf
    assert answer["kept"][0] == 0


def test_what_one_statistic_is_part_of_alone_has_its_margin(table: cl.PrivateTable) -> None:
    """A mean less ten is no less sure than the mean: its margin was nine times as wide with a few dozen rows."""
    less = Operation("subtract", (Named("mean_x"), Constant(10)))
    whole = Operation("round", (Operation("multiply", (Named("mean_x"), Constant("-2"))),), digits=1)
    question = asked(
        Mean(column="x"),
        Quantile(column="x"),
        Combined(name="less", expression=less),
        Combined(name="whole", expression=whole),
        Combined(name="later", expression=Operation("add", (Named("median_x"), Constant(1)))),
    )
    with Door({"t": table}, budget=cl.PureDP(10), random=Random.deterministic(5)) as door:
        answer = door.measure(question, spend="0.5")
    for confidence in (0.8, 0.95, 0.999):
        margins = {name: series.values[0] for name, series in answer.margin(confidence).columns.items()}
        assert margins["less"] == pytest.approx(margins["mean_x"])
        assert margins["whole"] == pytest.approx(2 * margins["mean_x"] + 0.1)
        assert margins["later"] == margins["median_x"] > 0


def test_what_doubles_round_of_large_numbers_is_in_the_margin() -> None:
    large = 100_000_000_000_000_000
    columns = {"age": cl.Integer(0, 9)}
    with cl.Session({"t": cl.PrivateTable({"age": [3] * 39}, columns=columns)}, budget=cl.PureDP(10_000)) as session:
        found = session.sql(f"SELECT COUNT(*) + {large} - {large} AS n, COUNT(*) * 2 + 1 AS m FROM t", spend=5_000)
        assert abs(int(found["n"][0]) - 39) <= found.margin()["n"][0]
        assert found["m"].tolist() == [79]
        assert found.margin()["m"][0] <= 1


def test_what_cannot_be_measured_is_refused_by_name(table: cl.PrivateTable) -> None:
    wide = cl.PrivateTable(
        {"x": [1.0], "y": [1.0]}, columns={"x": cl.Real(0, 10**6, step="0.0001"), "y": cl.Real(0, 10**6, step="0.0001")}
    )
    with sure(wide) as door, pytest.raises(cl.UnsupportedQuery, match="step="):
        door.explain(asked(Correlation(x="x", y="y")), spend=1)
    with Door({"t": table}, budget=cl.ApproxDP(1, "1e-6")) as door:
        refusals: list[tuple[Question, str]] = [
            (asked(Variance(column="sex")), "variance"),
            (asked(Quantile(column="sex")), "no order"),
            (asked(Quantile(column="x"), by=("town",)), "undeclared keys"),
            (asked(Mode(column="town")), "values are not declared"),
            (asked(Correlation(x="x", y="x")), "known"),
            (asked(Quantile(column="day"), Combined(name="c", expression=ratio("median_day", "median_day"))), "not a number"),
        ]
        for question, why in refusals:
            with pytest.raises(cl.CloisterError, match=why):
                door.explain(question, spend=1)
        with pytest.raises(cl.UnknownColumn, match="xx"):
            door.explain(asked(Variance(column="xx")), spend=1)
    for wrong in (
        lambda: Quantile(column="x", at="1.5"),
        lambda: Operation("divide", (Named("a"),)),
        lambda: asked(Combined(name="c", expression=Named("nobody"))),
        lambda: asked(Count(), hidden=("count",)),
        lambda: asked(Count(), hidden=("nobody",)),
    ):
        with pytest.raises(cl.InvalidParameter):
            wrong()


def test_within_refuses_what_depends_on_private_sizes(table: cl.PrivateTable) -> None:
    with Door({"t": table}, budget=cl.PureDP(10)) as door:
        for statistic in (Variance(column="x"), Quantile(column="x")):
            with pytest.raises(cl.UnsupportedQuery, match="within"):
                door.spend_within(asked(statistic), 5)


def test_the_plan_says_resolution_rank_and_expected_error(table: cl.PrivateTable) -> None:
    question = asked(Quantile(column="x"), Smallest(column="x"), Variance(column="x"), Correlation(x="x", y="y"))
    with Door({"t": table}, budget=cl.PureDP(10)) as door:
        plan = door.explain(question, spend=1)
    words = str(plan)
    assert "resolution 1" in words
    assert "rows reach or pass" in words
    assert "spread evenly" in words
    few, many = plan.margin(group_size=100), plan.margin(group_size=100_000)
    for name in ("median_x", "variance_x", "correlation_x_y"):
        assert many[name][0] < few[name][0]


def test_gaussian_noise_is_chosen_where_it_is_the_sharper_one() -> None:
    spend = Spend("approx", Fraction(1), Fraction(1, 10**6))
    assert not choice_of(spend, [units_block(3)], open_keys=False).gaussian
    chosen = choice_of(spend, [units_block(1000)], open_keys=True)
    assert chosen.gaussian
    assert chosen.noise_delta + chosen.key_delta == spend.delta
    assert float(sum(chosen.amounts)) == pytest.approx(0.0229, rel=0.01)  # what (1, 5e-7) is worth in ρ
    many = cl.PrivateTable(
        {"who": [n // 300 for n in range(3000)], "ward": [n % 300 for n in range(3000)]},
        columns={"ward": cl.Integer(0, 299)},
        unit="who",
        max_rows=300,
    )
    question = Question(table="t", by=("ward",), statistics=(Persons(),))
    with Door({"t": many}, budget=cl.ApproxDP(10, "1e-5"), random=Random.deterministic(8)) as door:
        plan = door.explain(question, spend=cl.ApproxDP(1, "1e-6"))
        answer = door.measure(question, spend=cl.ApproxDP(1, "1e-6"))
        assert door.spent == plan.cost == cl.ApproxDP(1, "1e-6")
        assert "DiscreteGaussian" in str(plan)
        assert "ρ = " in str(plan)
        within = door.spend_within(question, 40)
        assert door.explain(question, within).margin()["persons"][0] <= 40
    assert answer.margin()["persons"][0] < 300 * 3 / 2
    with Door({"t": many}, budget=cl.ApproxDP(10, "1e-5")) as door:
        one = door.explain(Question(table="t", statistics=(Count(),)), spend=1)
        assert "DiscreteLaplace" in str(one)
        assert one.cost == cl.ApproxDP(1, 0)


def test_moments_of_undeclared_keys_and_of_persons_with_many_rows(visits: cl.PrivateTable) -> None:
    towns = cl.PrivateTable(
        {"town": ["Delft"] * 3000 + ["Gouda"] * 2000, "x": [n % 10 for n in range(5000)]},
        columns={"town": cl.Text(), "x": cl.Integer(0, 9)},
    )
    question = asked(Variance(column="x", sample=False), Count(), by=("town",))
    with Door({"t": towns}, budget=cl.ApproxDP(10, "1e-5"), random=Random.deterministic(2)) as door:
        answer = door.measure(question, spend=5)
    assert answer["town"].tolist() == ["Delft", "Gouda"]
    assert answer["variance_x"] == pytest.approx([8.25, 8.25], abs=0.5)
    with Door({"t": visits}, budget=cl.PureDP(10), random=Random.deterministic(2)) as door:
        [moments] = door.explain(asked(Variance(column="cost")), spend=1).parts[0].shape.blocks
        [tree] = door.explain(asked(Quantile(column="cost")), spend=1).parts[0].shape.blocks
    assert (moments.l1, moments.l2_squared) == (3, 9)
    assert tree.leaves is not None
    assert (tree.l1, tree.l2_squared) == (3 * tree.leaves.tree.l1, 9 * tree.leaves.tree.l2_squared)


def test_coarser_moments_follow_from_finer_ones(table: cl.PrivateTable) -> None:
    with sure(table) as door:
        door.measure(asked(Variance(column="x"), by=("sex",)), spend=10**9)
        spent = door.spent
        answer = door.measure(asked(Variance(column="x")), spend=10**9)
        assert door.spent == spent
        assert answer["variance_x"][0] == pytest.approx(np.var(X, ddof=1))
        door.measure(asked(Quantile(column="x"), by=("sex",)), spend=10**9)
        spent = door.spent
        door.measure(asked(Quantile(column="x")), spend=10**9)
        assert door.spent != spent  # a hierarchy of each group is not added up


def test_raws_are_exact_in_64_bits_and_beyond() -> None:
    """The largest numbers of rows that a declaration must bear; parts overflow on the way in the first, and in Python integers
    nothing does."""
    for width, rows in ((2**11, 2**40), (2**20, 2**40)):
        moments = Moments(sides=(lowered(2, 0, width, "x"),))
        block = moments.block(1, nulls=False)
        codes = {"values:x": 1, "powers:x^1": width - 1, "powers:x^2": (width - 1) ** 2}
        kind = np.int64 if width**2 * rows < 2**63 else object
        aggregates = {name: np.array([each * rows], dtype=kind) for name, each in codes.items()}
        wanted = [rows, rows * 2 * (width - 1), rows * (width - 1) ** 2]
        assert [int(raw.exact(aggregates)[0]) for raw in block.raws] == wanted


def test_an_extreme_of_fewer_than_twice_its_rank_is_the_median_and_says_so() -> None:
    """MIN and MAX count r rows from their end, and never past the middle: 30 rows with r ≥ 19 have one value for all three."""
    table = cl.PrivateTable({"age": list(range(20, 50))}, columns={"age": cl.Integer(0, 99)})
    with cl.Session({"people": table}, budget=cl.PureDP(2), random=Random.deterministic(1)) as session:
        answer = session.sql("SELECT MIN(age) AS low, MAX(age) AS high, MEDIAN(age) AS middle FROM people", spend=2)
    low, high, middle = (answer[name][0] for name in ("low", "high", "middle"))
    assert abs(low - middle) <= 1
    assert abs(high - middle) <= 1
    ranks = [int(note.split("value that ")[1].split(" ")[0]) for note in answer.notes if "rows reach" in note]
    assert len(ranks) == 2
    assert all(2 * rank > 30 for rank in ranks)
    assert all("in a group of fewer than twice as many, its median" in note for note in answer.notes if "rows reach" in note)
