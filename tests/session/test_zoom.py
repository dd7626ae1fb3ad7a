"""One quantile by a choice and a ladder: its law against its guarantee, exact counts, repeats, plans."""

from __future__ import annotations

import datetime
import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Exponential, PermuteAndFlip, Random
from cloister.session import Count, Door, Largest, Mode, Quantile, Question, Statistic
from cloister.session.analyst import Analyst
from cloister.session.execution.history import History
from cloister.session.planning.leaves import zoomed_of
from cloister.session.planning.zoom import Zoom, cuts_around, height_of, ladder_part
from cloister.session.releases.formulas import reading_of
from cloister.session.releases.store import Found, from_bytes, to_bytes

ROWS = 500
PAY = [(37 * n * n) % 4001 for n in range(ROWS)]
DAYS = [datetime.date(2000, 1, 1) + datetime.timedelta(days=(11 * n) % 3000) for n in range(ROWS)]
COLUMNS = {
    "pay": cl.Integer(0, 100_000, nullable=True),
    "day": cl.Date("2000-01-01", "2009-12-31"),
    "sex": cl.Category(["F", "M"]),
    "rate": cl.Real(0, 1, step="1e-6"),
}


@pytest.fixture
def table() -> cl.PrivateTable:
    rows = {
        "pay": [None if n % 10 == 0 else pay for n, pay in enumerate(PAY)],
        "day": DAYS,
        "sex": ["F" if n % 3 else "M" for n in range(ROWS)],
        "rate": [pay / 4001 for pay in PAY],
    }
    return cl.PrivateTable(rows, columns=COLUMNS, size=ROWS, version="1")


def asked(*statistics: Statistic, by: tuple[str, ...] = ()) -> Question:
    return Question(table="t", by=by, statistics=statistics)


def least(values: list[int], share: Fraction) -> int:
    """The least value that a share of the rows does not exceed."""
    return sorted(values)[max(-(-share.numerator * len(values) // share.denominator) - 1, 0)]


@pytest.mark.parametrize("share", ["0.5", "0.1", "0.25", "0.95"])
def test_without_noise_the_quantile_is_that_of_the_rows(table: cl.PrivateTable, share: str) -> None:
    with Door({"t": table}, budget=cl.PureDP(10**15), random=Random.deterministic(3)) as door:
        answer = door.measure(asked(*(Quantile(column=name, at=share, name=name) for name in ("day", "rate"))), spend=10**12)
        statistics = (Quantile(column="pay", at=share, name="pay"), Count(column="pay"), Count())
        pay = door.measure(asked(*statistics, by=("sex",)), spend=10**12)
    rank = max(-(-Fraction(share) * ROWS // 1) - 1, 0)
    above = sorted(DAYS)[int(Fraction(share) * ROWS)]  # between the two every value is a quantile: as many lie on either side
    assert sorted(DAYS)[rank] <= answer["day"][0] <= above
    assert abs(answer["rate"][0] - sorted(PAY)[rank] / 4001) <= answer.margin()["rate"][0]
    for place, sex in enumerate([1, 0]):
        mine = [value for n, value in enumerate(PAY) if n % 10 and bool(n % 3) == bool(sex)]
        assert abs(pay["pay"][place] - least(mine, Fraction(share))) <= pay.margin()["pay"][place]
        assert (pay["count_pay"][place], pay["count"][place]) == (len(mine), sum(bool(n % 3) == bool(sex) for n in range(ROWS)))


def test_which_quantiles_are_zoomed_follows_from_public_facts_alone(table: cl.PrivateTable) -> None:
    def shares(*statistics: Statistic) -> list[Fraction | None]:
        with Door({"t": table}, budget=cl.PureDP(1)) as door:
            return [block.share for block in door.explain(asked(*statistics), spend=1).parts[0].shape.blocks]

    median = Quantile(column="day")
    assert shares(median) == [Fraction(1, 2)]
    assert shares(median, Quantile(column="day", name="again")) == [Fraction(1, 2)]
    assert shares(median, Quantile(column="pay", at="0.9")) == [Fraction(1, 2), Fraction(9, 10)]
    for other in (Quantile(column="day", at="0.9"), Largest(column="day"), Mode(column="day")):
        assert shares(median, other) == [None]
    assert shares(Quantile(column="day", at=0)) == [None]
    half = Fraction(1, 2)
    assert zoomed_of("x", 0, 10**5, cells=10**6, share=half, gaussian=False, margins=True) is None
    assert zoomed_of("x", 0, 10**5, cells=1, share=Fraction(1, 3 * 10**6), gaussian=False, margins=False) is None
    few = {"column": "x", "low": 0, "size": 74, "cells": 10**4, "share": half}
    assert [zoomed_of(**few, gaussian=each, margins=False) is None for each in (False, True)] == [False, True]  # type: ignore[arg-type]
    assert zoomed_of(**few, gaussian=False, margins=True) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 10), Fraction(3, 4)])
@pytest.mark.parametrize("gaussian", [False, True])
def test_the_law_of_the_choice_keeps_its_part_of_the_guarantee(share: Fraction, gaussian: bool) -> None:
    """All neighbours over five leaves with up to three rows of a unit in one of all groups: the losses of the groups add up."""
    rows, leaves = 3, 5
    whole = Fraction(2)
    make = {"leaves": leaves, "share": share, "rows": rows}
    part = ladder_part(gaussian=gaussian, margins=False)
    zoom = Zoom.gaussian(**make, rho=whole, ladder=part) if gaussian else Zoom.laplace(**make, epsilon=whole, ladder=part)  # type: ignore[arg-type]
    selection = zoom.selection
    assert isinstance(selection, Exponential if gaussian else PermuteAndFlip)
    worst: dict[int, float] = {}
    ranges: dict[int, float] = {}
    for others in itertools.product(range(3), repeat=leaves):
        world = np.array([others])
        law = selection.probabilities(zoom.utilities(world)[0])
        for number in (1, 2, 3):
            for mine in itertools.combinations_with_replacement(range(leaves), number):
                twin = selection.probabilities(zoom.utilities(world + np.bincount(mine, minlength=leaves))[0])
                losses = np.log(twin / law)
                worst[number] = max(worst.get(number, 0.0), float(np.abs(losses).max()))
                ranges[number] = max(ranges.get(number, 0.0), float(losses.max() - losses.min()))
    slack = 1 + 1e-9
    for number in worst:
        if gaussian:  # a bounded range of r is r²/8-zCDP; groups with m_g rows have Σ (m_g/m)² ≤ 1
            assert ranges[number] ** 2 / 8 <= float(whole * (1 - part)) * (number / rows) ** 2 * slack
        else:  # groups with m_g rows have Σ m_g/m ≤ 1
            assert worst[number] <= float(whole * (1 - part)) * number / rows * slack
    assert (ranges[3] if gaussian else 2 * worst[3]) > (1.7 if gaussian else 1.0)  # not far from what is allowed


def test_a_row_lies_in_one_rung_and_the_utility_is_by_how_many_rows_a_leaf_misses() -> None:
    rng = np.random.default_rng(4)
    for leaves in (2, 3, 8, 9, 100):
        zoom = Zoom.laplace(leaves=leaves, share=Fraction(3, 10), rows=1, epsilon=Fraction(1))
        counts = rng.integers(0, 4, size=(leaves, leaves))
        rungs = zoom.rungs(counts, np.arange(leaves))
        assert rungs.shape == (leaves, 2 * height_of(leaves) + 1)
        assert (rungs.sum(axis=1) == counts.sum(axis=1)).all()
        assert (rungs[:, zoom.height] == np.diagonal(counts)).all()
        cuts = cuts_around(np.arange(leaves), leaves)
        assert (cuts[:, [0, -1]] == [0, leaves]).all()
        assert (np.diff(cuts, axis=1) >= 0).all()
        for row, found in zip(counts, zoom.utilities(counts), strict=True):
            for leaf, utility in enumerate(found.tolist()):
                below, inside, above = int(row[:leaf].sum()), int(row[leaf]), int(row[leaf + 1 :].sum())
                assert utility == -max(3 * above - 7 * (below + inside), 7 * below - 3 * (inside + above))


@pytest.mark.parametrize("budget", [cl.PureDP(100), cl.ZCDP(100), cl.ApproxDP(100, "1e-3")], ids=["pure", "zcdp", "approx"])
def test_repeats_are_combined_and_survive_the_ledger(table: cl.PrivateTable, budget: cl.PureDP | cl.ZCDP) -> None:
    question = asked(Quantile(column="pay"), Quantile(column="day"), by=("sex",))
    with Door({"t": table}, budget=budget, random=Random.deterministic(5)) as door:
        before = door.explain(question, spend=2).margin()
        first = door.measure(question, spend=2)
        digest = door.explain(question, spend=9).digest
        again = door.measure(question, spend=2)
        assert again.to_pandas().equals(first.to_pandas())
        assert again.provenance.repeated
        second = door.measure(question, spend=4)
        more = door.measure(question, spend=40)
        assert door.explain(question, spend=40).margin()["median_pay"][0] <= before["median_pay"][0]
    assert {first.provenance.digest, second.provenance.digest, more.provenance.digest} == {digest}
    assert more.margin()["median_pay"].max() < first.margin()["median_pay"].min()
    [pay, _] = more.formulas
    reading = more.readings[pay.raws[0]]
    assert (reading.values.shape[:2], len(reading.terms)) == ((2, 3), 3)
    truth = least([value for n, value in enumerate(PAY) if n % 10 and n % 3], Fraction(1, 2))
    assert abs(more["median_pay"][0] - truth) <= more.margin()["median_pay"][0]


def test_two_ways_bought_at_the_same_moment_are_not_combined(table: cl.PrivateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    question = asked(Quantile(column="day"))
    with Door({"t": table}, budget=cl.PureDP(100), random=Random.deterministic(7)) as door:
        first = door.measure(question, spend=2)
        with monkeypatch.context() as unseen:
            unseen.setattr(Analyst, "history", lambda *_: History())
            door.spend_after_pilot(question, within=10**5, pilot=1)
        assert door.spent == cl.PureDP(3)
        again, more = door.measure(question, spend=2), door.measure(question, spend=5)
        assert door.spent == cl.PureDP(6)
    assert again.to_pandas().equals(first.to_pandas())
    [reading] = more.readings.values()
    assert [term.noise.ladder for term in reading.terms] == [Fraction(1, 32)] * 2  # type: ignore[union-attr]


def test_stored_bytes_hold_choice_ladder_and_mechanism() -> None:
    for zoom in (
        Zoom.laplace(leaves=300, share=Fraction(1, 3), rows=2, epsilon=Fraction(1, 7)),
        Zoom.gaussian(leaves=300, share=Fraction(1, 3), rows=2, rho=Fraction(1, 7)),
        Zoom.gaussian(leaves=300, share=Fraction(1, 3), rows=2, rho=Fraction(1, 7), ladder=Fraction(1, 16)),
    ):
        reading = reading_of(np.arange(40).reshape(2, 20), zoom)
        found = from_bytes(to_bytes([Found(None, {"a": reading})], marked=True)).parts[0].readings["a"]
        assert found.terms == reading.terms
        assert found.values.tolist() == reading.values.tolist()


def test_a_spend_is_split_between_choice_and_ladder() -> None:
    for ladder in (Fraction(1, 2), Fraction(1, 32)):
        pure = Zoom.laplace(leaves=300, share=Fraction(9, 10), rows=2, epsilon=Fraction(1, 7), ladder=ladder)
        assert pure.selection.guarantee + pure.noise.guarantee == cl.PureDP("1/7")
        assert pure.noise.guarantee == cl.PureDP(ladder / 7)
        assert pure.selection.sensitivity == 18
    rho = Fraction(1, 7)
    for ladder in (Fraction(1, 2), Fraction(1, 16)):
        zcdp = Zoom.gaussian(leaves=300, share=Fraction(9, 10), rows=2, rho=rho, ladder=ladder)
        spent = zcdp.selection.epsilon**2 / 8
        assert rho * (1 - ladder) * (1 - Fraction(1, 10**9)) < spent <= rho * (1 - ladder)
        assert zcdp.noise.guarantee == cl.ZCDP(rho * ladder)


def test_the_plan_says_mechanism_and_error_and_a_pilot_finds_a_spend(table: cl.PrivateTable, tmp_path: Path) -> None:
    question = asked(Quantile(column="pay"))
    with Door({"t": table}, budget=cl.PureDP(10**6), ledger=tmp_path / "book.db") as door:
        plan = door.explain(question, spend=1)
        for words in ("permute-and-flip of ε = 0.9688 among 50,001 leaves", "31/32 for a choice by rank", "33 ranges"):
            assert words in str(plan)
        assert plan.margin(group_size=10**6)["median_pay"][0] < plan.margin(group_size=10**3)["median_pay"][0] < 100_000
        assert plan.margin(group_size=1)["median_pay"][0] >= 49_999
        spend = door.spend_after_pilot(question, within=60, pilot=50)
        answer = door.measure(question, spend=spend)
        assert answer.margin()["median_pay"][0] < 150
    with Door({"t": table}, ledger=tmp_path / "book.db") as door:
        assert door.explain(question, spend=spend).repeated
        assert door.measure(question, spend=spend)["median_pay"].tolist() == answer["median_pay"].tolist()


def test_an_empty_table_has_an_answer_that_says_nothing() -> None:
    empty = cl.PrivateTable({"pay": []}, columns={"pay": cl.Integer(0, 100_000)})
    with Door({"t": empty}, budget=cl.PureDP(10), random=Random.deterministic(6)) as door:
        answer = door.measure(asked(Quantile(column="pay")), spend=1)
    assert 0 <= answer["median_pay"][0] <= 100_000
    assert answer.margin()["median_pay"][0] >= 10_000


@pytest.mark.parametrize("spend", ["1", "8"])
def test_a_value_that_all_rows_share_is_told_apart_from_the_empty_ones_beside_it(spend: str) -> None:
    """No row lies between it and any other leaf, so by the choice alone the margin was as wide as the range."""
    rows = {"x": [37] * 3000 * 20, "g": [f"{n}" for n in range(20)] * 3000}
    shared = cl.PrivateTable(rows, columns={"x": cl.Integer(0, 100), "g": cl.Category([f"{n}" for n in range(20)])})
    with Door({"t": shared}, budget=cl.PureDP(10), random=Random.deterministic(6)) as door:
        answer = door.measure(Question(table="t", by=("g",), statistics=(Quantile(column="x"),)), spend=spend)
    assert set(answer["median_x"].tolist()) == {37}
    assert np.median(answer.margin()["median_x"]) == 0
