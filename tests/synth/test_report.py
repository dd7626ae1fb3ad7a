"""The report follows from the model alone, says nothing that is not known, and its ranges hold on tables that they were not
chosen on."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Question
from cloister.synth import SyntheticModel, fit_frame
from cloister.synth.explaining import explained
from cloister.tables import Boolean
from tests.synth.conftest import made_up


def model_of(rows: dict[str, np.ndarray], epsilon: str, method: Any = "pairs", delta: str = "1e-6") -> SyntheticModel:
    declared = {name: cl.Integer(0, int(values.max())) for name, values in rows.items()}
    return cl.synth.fit_frame(rows, declared, epsilon=epsilon, delta=delta, method=method, random=Random.deterministic(11))


@pytest.mark.parametrize(("epsilon", "delta", "rows"), [("1", "1e-6", 10_000), ("2", "0", 5_000), ("0.05", "1e-6", 4_000)])
def test_the_true_error_lies_in_the_range(epsilon: str, delta: str, rows: int) -> None:
    held = made_up(21, rows)
    model = model_of(held, epsilon, delta=delta)
    report = model.report()
    assert report.expected[2].value is None  # triples were not measured
    for expected in report.expected:
        apart = []
        for kept in combinations(range(len(held)), expected.order):
            sizes = [model.columns[place].number for place in kept]
            codes = np.ravel_multi_index([list(held.values())[place] for place in kept], sizes)
            true = np.bincount(codes, minlength=int(np.prod(sizes))) / rows
            apart.append(np.abs(true - model.mixture.marginal(kept).ravel()).sum() / 2)
        if expected.low is not None and expected.high is not None:
            assert expected.low <= np.mean(apart) <= expected.high, expected


def test_what_a_table_drawn_again_is_off_by_is_right() -> None:
    held = made_up(22, 5_000)
    expected = model_of(held, "3").report().expected[1]
    drawn = np.random.default_rng(1).integers(0, 5_000, 5_000)
    apart = []
    for one, other in combinations(held.values(), 2):
        codes = one * 100 + other
        apart.append(np.abs(np.bincount(codes, minlength=700) - np.bincount(codes[drawn], minlength=700)).sum() / 10_000)
    assert expected.again == pytest.approx(np.mean(apart), rel=0.15)


def test_margins_are_those_of_the_release(people: cl.PrivateTable) -> None:
    with cl.Session({"people": people}, budget=cl.PureDP(2), random=Random.deterministic(1)) as session:
        model = cl.synth.fit(session, "people", spend=1, columns=["sex"])
        release = session.measure(Question(table="people", by=("sex",), statistics=(Count(),)), spend=1)
    [single] = model.report().measured
    assert single.margin == (release.margin(0.95)["count"][0],) * 2


def test_margins_are_those_of_answers_and_of_what_is_said_beforehand(people: cl.PrivateTable) -> None:
    """A table of one column is read from the pairs that hold it, too."""
    names = ["age", "sex", "smoker"]
    with cl.Session({"people": people}, budget=cl.PureDP(2), random=Random.deterministic(1)) as session:
        before = explained(session, "people", spend=1, columns=names, method="pairs")
        model = cl.synth.fit(session, "people", spend=1, columns=names, method="pairs")
    assert model.measured is not None
    single, pairs = model.report().measured
    assert (single.order, single.tables, single.of, pairs.tables, pairs.of) == (1, 3, 3, 3, 3)
    answers = [model.answer(f"SELECT {name}, COUNT(*) AS n FROM people GROUP BY {name}") for name in names]
    widths = [float((each.high()["n"] - each["n"]).max()) for each in answers]
    assert single.margin == pytest.approx((min(widths), max(widths)))
    assert before.margins[:2] == pytest.approx((single.margin[1], pairs.margin[1]))
    assert single.margin[1] < model.measured.tables[(0,)].variance ** 0.5, "by itself it would have twice that margin"
    assert pairs.cells == sum(each.counts.size for kept, each in model.measured.tables.items() if len(kept) == 2)


def test_a_file_has_the_same_report(tmp_path: Path) -> None:
    model = model_of(made_up(23, 800), "3")
    model.save(tmp_path / "model.json")
    back = cl.synth.load(tmp_path / "model.json").report()
    assert str(back) == str(model.report())
    json.dumps(back.to_dict(), allow_nan=False)
    assert "MARKED" in str(back)
    assert back.columns[0] == "a: 6 values"


def test_what_is_not_known_is_said_to_be() -> None:
    report = model_of(made_up(24, 2_000), "1", "independent").report()
    assert [each.value is None for each in report.expected] == [False, True, True]
    assert str(report).count("not known") == 2
    old = replace(model_of(made_up(24, 500), "1"), measured=None).report()
    assert (old.measured, [each.value for each in old.expected]) == ((), [None, None, None])
    assert "rows" in old.to_html()
    single = cl.synth.fit_frame({"a": [1, 2] * 50}, {"a": cl.Integer(0, 3)}, epsilon=1).report()
    assert [each.order for each in single.expected] == [1]


def test_the_page_fetches_nothing_and_misleads_no_reader() -> None:
    held = {"<b>x</b>": ["<i>", "y"] * 200, "n": [1, 2] * 200}
    declared = {"<b>x</b>": cl.Category(["<i>", "y"]), "n": cl.Integer(0, 3)}
    page = cl.synth.fit_frame(held, declared, epsilon=1).report().to_html(title="A & B")
    assert "<b>x" not in page
    assert "&lt;i&gt;" in page
    assert "<title>A &amp; B</title>" in page
    assert "<script" not in page
    assert set(re.findall(r"https?://[^\"']+", page)) == {"http://www.w3.org/2000/svg"}
    assert page.count("<svg") == len(re.findall(r"<svg[^>]* role=\"img\"[^>]*><title>[^<]+</title>", page)) == 3
    assert "MARKED" not in page
    assert re.findall(r"<(?:p|li)(?: [^>]*)?>.{0,9}</", page) == []
    assert "at most 73.2 % (50 % without the table)" in page  # e/(1 + e), rounded up
    assert page.count("best guess whether") == 1


def test_it_is_written_by_its_ending(tmp_path: Path) -> None:
    report = cl.synth.fit_frame({"a": [1, 2] * 50}, {"a": cl.Integer(0, 3)}, epsilon=100).report()
    for ending in ("html", "json", "txt"):
        report.save(tmp_path / f"report.{ending}")
        text = (tmp_path / f"report.{ending}").read_text(encoding="utf-8")
        assert "frame" in text
        assert ending != "json" or json.loads(text)["cost"] == {"kind": "pure", "epsilon": "100"}
    with pytest.raises(cl.InvalidParameter, match="ending"):
        report.save(tmp_path / "report.pdf")


def test_the_margin_of_the_number_of_rows_is_that_of_its_law() -> None:
    """200 fits of 20 rows: a margin of 95 % misses 30 with a probability below 1e-6; by the normal law it missed 40."""
    random, missed = Random.deterministic(19), 0
    for _ in range(200):
        model = fit_frame({"a": [True, False] * 10}, {"a": Boolean()}, epsilon=3, random=random)
        missed += abs(model.rows - 20) > model.rows_margin
    assert missed < 30


@pytest.mark.parametrize("method", ["aim", "mwem", "privbayes"])
def test_the_margin_of_the_number_of_rows_is_that_of_the_tables_it_is_made_of(method: Any) -> None:
    """Rows are counted by the tables that came before every choice, and not by AIM's later ones, which are less noisy."""
    frame = {"a": [0, 1, 2, 3] * 100, "b": [True, False] * 200, "c": [True, True, False, False] * 100}
    model = fit_frame(frame, {"a": cl.Integer(0, 70), "b": Boolean(), "c": Boolean()}, epsilon=1, method=method)
    assert model.rows_margin == pytest.approx(1.96 * model.rows_error, rel=0.1)
    assert model.report().rows_margin == model.rows_margin
