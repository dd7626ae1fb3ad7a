"""Cuts that are bought: long tails keep quantiles and means, days weekday and season, categories of many values their shares."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.privacy import ZCDP, ApproxDP, PureDP, zero_of
from cloister.session.door import Door
from cloister.synth import Calendar, QuantileBins, SyntheticModel, fit
from cloister.synth.discretizing import _bins, _leaves, as_if_cut
from cloister.synth.explaining import explained
from cloister.synth.measuring import Noisy
from cloister.synth.states import States, states_from, states_of
from cloister.tables import Runs, Strided

ROWS = 20_000
SHARES = [0.05, 0.25, 0.5, 0.75, 0.95]
PAY = {"pay": cl.Integer(0, 10**6, nullable=True)}


def pay() -> Any:
    """Some hundreds, with a tail to 30,000, of a range to a million; a tenth is missing."""
    drawn = np.random.default_rng(3)
    found = np.minimum(np.rint(200 * np.exp(1.2 * drawn.standard_normal(ROWS))), 10**6).astype(object)
    found[::10] = None
    return found


def door(size: int | None = None, budget: Any = None) -> Door:
    table = cl.PrivateTable({"pay": pay()}, PAY, population="p", version="1", size=size, row_is_person=True)
    return Door({"t": table}, budget=budget or cl.PureDP(2), random=Random.deterministic(4))


def there(model: SyntheticModel) -> Any:
    return np.array([each for each in model.sample(ROWS, random=Random.deterministic(6))["pay"].tolist() if each is not None])


def test_a_long_tail_keeps_its_quantiles_and_its_mean(tmp_path: Path) -> None:
    """For the same spend bins of equal width are off by a factor, where nine tenths of the rows are in the first."""
    true = np.array([each for each in pay() if each is not None], dtype=float)
    with door() as session:
        cut = fit(session, "t", spend=1, columns=[QuantileBins("pay")])
        assert session.spent == cl.PureDP(1) == cut.cost
        assert len(session.ledger.charges("p")) == 2 == len(cut.charges)
        fit(session, "t", spend=1, columns=[QuantileBins("pay")])
        assert session.spent == cl.PureDP(1)  # the same call again costs nothing
        equal = fit(session, "t", spend=1)
    np.testing.assert_allclose(np.quantile(there(cut), SHARES), np.quantile(true, SHARES), rtol=0.15)
    assert there(cut).mean() == pytest.approx(true.mean(), rel=0.2)
    assert np.quantile(there(equal), 0.5) > 5 * np.quantile(true, 0.5)
    assert there(equal).mean() > 5 * true.mean()
    answer = cut.answer("SELECT AVG(pay) AS pay FROM t WHERE pay < 1000")
    assert answer.to_pydict()["pay"][0] == pytest.approx(true[true < 1000].mean(), rel=0.05)
    cut.save(tmp_path / "model.json")
    back = cl.synth.load(tmp_path / "model.json")
    assert there(back).tolist() == there(cut).tolist()
    assert back.columns[0].starts.tolist() == cut.columns[0].starts.tolist()


def test_ages_in_bins_are_nearer_to_their_pairs_than_single_years() -> None:
    """Tables of pairs have one noise a cell, so fewer and fuller cells keep more of what age says of another column. A column of
    fewer values than bins is not cut, and costs no second charge."""
    random = np.random.default_rng(7)
    ages = np.clip(random.normal(45, 20, ROWS).astype(int), 0, 99)
    stage = np.clip(ages // 12 + random.integers(0, 3, ROWS), 0, 9)
    declared = {"age": cl.Integer(0, 99), "stage": cl.Integer(0, 9)}
    groups = [0, *np.quantile(ages, np.arange(1, 10) / 10).astype(int), 100]

    def table(of: Any) -> Any:
        return np.histogram2d(np.asarray(of["age"]), np.asarray(of["stage"]), bins=[groups, np.arange(11)])[0] / ROWS

    rows, off = {"age": ages, "stage": stage}, {}
    for name, cuts in (("years", []), ("bins", [QuantileBins("age", 20), QuantileBins("stage", 10)])):
        model = cl.synth.fit_frame(rows, declared, epsilon="0.1", cuts=cuts, random=Random.deterministic(3))
        off[name] = np.abs(table(model.sample(ROWS, random=Random.deterministic(4))) - table(rows)).sum() / 2
        assert [each.bins is None for each in model.columns] == [not cuts, True]
        assert len(model.charges) == (2 if cuts else 1)
    assert off["bins"] < 0.9 * off["years"]


def test_a_condition_on_the_tail_is_drawn() -> None:
    with door() as session:
        model = fit(session, "t", spend=1, columns=[QuantileBins("pay")])
    rows = model.sample(50, given={"pay": (500_000, 600_000)}, random=Random.deterministic(1))["pay"].tolist()
    assert all(500_000 <= each <= 600_000 for each in rows)


def test_nothing_is_cut_unasked() -> None:
    """A table whose size is public keeps its one charge; categories that are too many are refused, as before."""
    with door(ROWS) as session:
        assert fit(session, "t", spend=1).columns[0].shape is None
        assert len(session.ledger.charges("p")) == 1
    with pytest.raises(cl.UnsupportedQuery, match="2,000 categories, and at most 1,000"):
        cl.synth.fit_frame({"code": [1]}, {"code": cl.Category(range(2_000))}, epsilon=1)


@pytest.mark.parametrize(("law", "noise"), [("laplace", 6.0), ("gaussian", 3.7)])
def test_noise_far_off_moves_no_mean(law: str, noise: float) -> None:
    """In a cell at 900,000: 20,000 rows pay less than 30,000. As many rows as no noise reaches are kept there."""
    values = np.array([each for each in pay() if each is not None], dtype=float)
    keys = [Runs("pay", (0, 10**6 + 1)), *(Strided("pay", 16**power) for power in (4, 3, 2, 1))]
    states = states_of({"pay": cl.Integer(0, 10**6)}, None, table="t")[0]
    for deviations, least, most in ((noise, 0.8, 1.1), (20, 100, 200)):
        tables = [
            Noisy(
                counts=np.histogram(values, key.starts(states.domain))[0].astype(float), variance=4_900, laplace=law == "laplace"
            )
            for key in keys
        ]
        tables[1].counts[14] += deviations * 70
        starts, weights = _leaves(states, keys, tables)
        middles = (starts + np.append(starts[1:], 10**6 + 1)) / 2
        assert least < (weights * middles).sum() / weights.sum() / values.mean() < most


@pytest.mark.parametrize("budget", [cl.ZCDP("0.1"), cl.ApproxDP(1, "1e-6")])
def test_any_budget_pays_and_what_it_cannot_pay_costs_nothing(budget: Any) -> None:
    with door(budget=budget) as session:
        with pytest.raises(cl.BudgetExceeded, match="remains"):
            fit(session, "t", spend=2, columns=[QuantileBins("pay")])
        assert not session.ledger.charges("p")
        model = fit(session, "t", spend="0.1", columns=[QuantileBins("pay")])
        assert model.cost == session.spent


def test_days_keep_weekday_and_season() -> None:
    """Nobody comes on a Sunday, twice as many in winter: of thirty years in bins of 110 days."""
    first, drawn = datetime.date(1990, 1, 1), np.random.default_rng(5)
    days = [first + datetime.timedelta(days=int(each)) for each in drawn.integers(0, 10_957, 60_000)]
    days = [day for day in days if day.isoweekday() < 7 and (day.month in (12, 1, 2) or drawn.random() < 0.5)]
    declared = {"day": cl.Date("1990-01-01", "2019-12-31")}
    model = cl.synth.fit_frame({"day": days}, declared, epsilon=1, cuts=[Calendar("day")], random=Random.deterministic(1))
    plain = cl.synth.fit_frame({"day": days}, declared, epsilon=1, random=Random.deterministic(1))
    for share in (lambda day: day.isoweekday() == 7, lambda day: day.isoweekday() == 3, lambda day: day.month in (12, 1, 2)):
        true, found = (np.mean([share(day) for day in each]) for each in (days, model.sample(20_000)["day"].tolist()))
        assert found == pytest.approx(true, abs=0.015)
    assert np.mean([day.isoweekday() == 7 for day in plain.sample(20_000)["day"].tolist()]) > 0.1


def test_a_hundred_thousand_declared_categories() -> None:
    """Frequent ones have their share; nobody looked at which occur, so any may be drawn."""
    numbers = np.where(np.arange(ROWS) % 4 == 0, 77_777, np.random.default_rng(2).integers(0, 1_000, ROWS))
    sex = np.where(numbers == 77_777, "F", "M")
    declared = {"code": cl.Category(list(range(100_000))), "sex": cl.Category(["F", "M"])}
    model = cl.synth.fit_frame(
        {"code": numbers, "sex": sex}, declared, epsilon=4, cuts=[QuantileBins("code")], random=Random.deterministic(1)
    )
    rows = model.sample(ROWS, random=Random.deterministic(2))
    codes, sexes = np.array(rows["code"].tolist()), np.array(rows["sex"].tolist())
    assert (codes == 77_777).mean() == pytest.approx(0.25, abs=0.02)
    assert (codes < 1_300).mean() == pytest.approx(0.75, abs=0.05)
    assert (sexes[codes == 77_777] == "F").mean() > 0.95
    assert model.columns[0].number < 200
    assert set(model.sample(5, given={"code": 50_001})["code"].tolist()) == {50_001}


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ([Calendar("pay")], "holds no days"),
        ([QuantileBins("age")], "'age' is unknown"),
        (["pay", QuantileBins("pay")], "named twice"),
    ],
)
def test_what_cannot_be_cut_is_refused_and_costs_nothing(columns: Any, why: str) -> None:
    with door() as session:
        with pytest.raises(cl.CloisterError, match=why):
            fit(session, "t", spend=1, columns=columns)
        assert not session.ledger.charges("p")


def test_what_comes_after_the_cuts_is_planned_before_they_are_charged() -> None:
    yes = {f"b{place}": cl.Boolean() for place in range(101)}
    rows = {"pay": [1] * 500, **dict.fromkeys(yes, [True] * 500)}
    table = cl.PrivateTable(rows, {"pay": cl.Integer(0, 100_000), **yes})
    with cl.Session({"t": table}, budget=cl.PureDP(10)) as session:
        for method, count, why in (("aim", 101, "at most 100 columns"), ("histogram", 12, "at most 100,000 are measured")):
            with pytest.raises(cl.UnsupportedQuery, match=why):
                fit(session, "t", spend=1, method=method, columns=[QuantileBins("pay"), *list(yes)[:count]])
        assert not session.ledger.charges("t")
        assert fit(session, "t", spend=1, method="histogram", columns=[QuantileBins("pay"), "b0"]).columns[0].number < 51


def test_no_more_bins_are_made_than_were_planned_for() -> None:
    """Else a histogram of all columns is refused once its cuts are paid for."""
    rows = np.random.default_rng(2)
    for bins in (2, 10, 50):
        for _ in range(200):
            weights = rows.pareto(0.7, 500) * (rows.random(500) < 0.7)
            planned = as_if_cut(States("pay", cl.Integer(0, 99_999), Strided("pay", 1_000)), QuantileBins("pay", bins)).number
            lengths = np.asarray(16.0 ** rows.integers(0, 4, 500), dtype=np.float64)
            assert len(_bins(weights, lengths, bins)) <= planned


def test_cuts_are_not_charged_where_the_delta_of_what_follows_is_spent() -> None:
    names = [f"s{place}" for place in range(7)]
    kinds = {"pay": cl.Integer(0, 20_000), **dict.fromkeys(names, cl.Boolean())}
    table = cl.PrivateTable({"pay": [*range(200)], **dict.fromkeys(names, [True, False] * 100)}, kinds)
    with cl.Session({"t": table}, budget=cl.ApproxDP(20, "1e-6")) as session:
        fit(session, "t", spend=cl.ApproxDP("0.5", "9e-7"), columns=names, method="pairs")
        for method in ("pairs", "mst"):
            with pytest.raises(cl.BudgetExceeded):
                fit(session, "t", spend=cl.ApproxDP("0.6", "1e-6"), columns=[QuantileBins("pay"), *names], method=method)
        assert len(session.ledger.charges("t")) == 1


def test_cuts_of_a_frame_name_its_columns() -> None:
    """A name that is misspelt is refused, and not left out."""
    rows, declared = {"pay": [1, 2, 3]}, {"pay": cl.Integer(0, 9)}
    wrong: list[Any] = [["pay"], "pay", QuantileBins("pay"), [cl.Binned("pay", [0, 5, 10])]]
    wrong.append([QuantileBins("pay", 5), QuantileBins("pay", 9)])
    for cuts in wrong:
        with pytest.raises(cl.InvalidParameter, match="columns whose bins are measured"):
            cl.synth.fit_frame(rows, declared, epsilon=1, cuts=cuts)
    with pytest.raises(cl.UnknownColumn, match="'pya' is unknown"):
        cl.synth.fit_frame(rows, declared, epsilon=1, cuts=[QuantileBins("pya")])


def test_what_can_be_cut_nowhere_is_refused() -> None:
    many = {"code": cl.Category(range(10**6))}
    with pytest.raises(cl.UnsupportedQuery, match="1,000,000 categories, and at most 100,000"):
        cl.synth.fit_frame({"code": [1]}, many, epsilon=1, cuts=[QuantileBins("code")])
    with pytest.raises(cl.InvalidParameter, match="for one table alone"):
        states_of(PAY, [QuantileBins("pay")], table="t")
    with pytest.raises(cl.InvalidParameter, match="bins="):
        QuantileBins("pay", 1)


@pytest.mark.parametrize(
    "change", [{"starts": [0, 5]}, {"weights": [0.0, 1.0]}, {"starts": [0, 5, 10], "weights": [1.0]}, {"starts": [0, 0, 10]}]
)
def test_a_shape_that_is_none_is_refused(change: dict[str, Any]) -> None:
    told = {
        "name": "a",
        "declared": cl.Integer(0, 9).describe(),
        "bins": {"starts": [0, 5, 10]},
        "shape": {"starts": [0, 5, 10], "weights": [1.0, 2.0]},
    }
    assert states_from(told).plain() == told
    with pytest.raises(ValueError, match=""):
        states_from({**told, "shape": {"starts": [0, 5, 10], "weights": [1.0, 2.0], **change}})


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-6"), ZCDP(1)])
@pytest.mark.parametrize("method", ["pairs", "aim"])
def test_what_cuts_cost_is_said_beforehand(budget: Any, method: Any) -> None:
    """Of a category of many values it was said that it can't be fitted but in quantile bins, which were asked for; and where δ is
    for the marginals alone, more of it was said than was charged."""
    towns = [f"t{each}" for each in range(2000)]
    rows = {"town": towns[:50] * 10, "kids": [*range(5)] * 100}
    table = cl.PrivateTable(rows, {"town": cl.Category(towns), "kids": cl.Integer(0, 5)})
    how: Any = {"spend": budget, "method": method, "columns": [QuantileBins("town", 20), "kids"]}
    with cl.Session({"people": table}, budget=budget, random=Random.deterministic(1)) as session:
        said = explained(session, "people", **how).cost
        assert session.spent == zero_of(budget)
        assert said == cl.synth.fit(session, "people", **how).cost == session.spent


def test_bins_of_a_column_that_needs_none_leave_all_of_the_spend() -> None:
    table = cl.PrivateTable({"kids": [1] * 40, "ill": [True] * 40}, {"kids": cl.Integer(0, 5), "ill": cl.Boolean()})
    with cl.Session({"people": table}, budget=PureDP(2)) as session:
        asked = (["kids", "ill"], [QuantileBins("kids", 20), "ill"])
        plain, binned = (explained(session, "people", spend=1, method="pairs", columns=each) for each in asked)
    assert binned == plain
