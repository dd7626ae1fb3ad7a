"""Answers of a model: the closed form is that of its rows, what is measured and what is bounded is so, and the rest says so."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.privacy import PureDP
from cloister.session import Count, Question
from cloister.synth import SyntheticModel
from cloister.synth.measuring import Marginals, Noisy
from cloister.synth.mixture import Mixture, independent
from cloister.synth.states import States
from cloister.synth.workload import parts_for
from cloister.tables import Strided
from tests.synth.conftest import rows

DAYS = ["2000-01-01", "2000-01-04", "2000-01-20"]
STATES = (
    States("age", cl.Integer(18, 41), Strided("age", 5)),
    States("sex", cl.Category(["F", "M"])),
    States("ward", cl.Integer(3, 6, nullable=True)),
    States("born", cl.Date("2000-01-01", "2000-01-20", nullable=True), cl.Binned("born", DAYS)),
)


def made_up(codes: np.ndarray | None = None, noise: Any = None, random: Random | None = None) -> SyntheticModel:
    """A model of four columns: a mixture that was never fitted, and the marginals of some coded rows, with noise."""
    sizes = tuple(each.number for each in STATES)
    random = Random.deterministic(8) if random is None else random
    columns = tuple(random.words(3 * size).reshape(3, size) * 2.0**-64 for size in sizes)
    mixture = Mixture(np.array([0.2, 0.3, 0.5]), tuple(column / column.sum(axis=1, keepdims=True) for column in columns))
    measured = None if codes is None else tables(codes, sizes, noise, random)
    return SyntheticModel(
        table="people",
        method="pairs",
        why="",
        columns=STATES,
        mixture=mixture,
        rows=1000.0 if measured is None else measured.rows()[0],
        rows_error=3.0,
        cost=PureDP(1),
        population="people",
        charges=(),
        measured=measured,
    )


def tables(codes: np.ndarray, sizes: tuple[int, ...], noise: Any, random: Random) -> Marginals:
    """All tables of one and two columns of coded states."""
    found = {}
    for kept in parts_for(sizes, "pairs"):
        shape = [sizes[place] for place in kept]
        exact = np.bincount(np.ravel_multi_index([codes[:, place] for place in kept], shape), minlength=int(np.prod(shape)))
        if noise is None:
            found[kept] = Noisy(exact.reshape(shape).astype(float), 0.0, False)
            continue
        laplace, scale = isinstance(noise, DiscreteLaplace), float(noise.scale)
        found[kept] = Noisy(
            (exact + noise.sample(exact.size, random=random)).reshape(shape).astype(float),
            float(noise.variance),
            laplace,
            fourth=12 * scale**4 if laplace else 0.0,
            largest=2 * scale**2 if laplace else 0.0,
        )
    return Marginals(sizes=sizes, tables=found)


def people(n: int = 4000, seed: int = 3) -> np.ndarray:
    """Coded states of dependent columns, from a seeded generator."""
    random = Random.deterministic(seed)
    draws = random.words(6 * n).reshape(6, n) * 2.0**-64
    age = (5 * draws[0] ** 1.5).astype(int)
    sex = (draws[1] < 0.3 + 0.1 * age).astype(int)
    ward = np.where(draws[2] < 0.7, (age + sex) % 5, (5 * draws[3]).astype(int))
    born = np.where(draws[4] < 0.6, ward % 3, (3 * draws[5] ** 2).astype(int))
    return np.column_stack([age, sex, ward, born])


CONDITIONS: list[tuple[str, Callable[[Any, Any, Any, Any], bool | None]]] = [
    ("age >= 30", lambda a, s, w, b: a >= 30),
    ("age BETWEEN 20 AND 36 AND NOT age = 31", lambda a, s, w, b: 20 <= a <= 36 and a != 31),
    ("age IN (18, 19, 40) OR sex = 'M'", lambda a, s, w, b: a in (18, 19, 40) or s == "M"),
    ("ward IS NULL", lambda a, s, w, b: w is None),
    ("ward <> 4", lambda a, s, w, b: w is not None and w != 4),
    ("ward > 3 AND born < '2000-01-09'", lambda a, s, w, b: None not in (w, b) and w > 3 and b < datetime.date(2000, 1, 9)),
    ("sex = 'F' AND age < 22 OR ward = 5 AND born IS NULL", lambda a, s, w, b: (s == "F" and a < 22) or (w == 5 and b is None)),
    ("sex = 'F' AND age > 25.5", lambda a, s, w, b: s == "F" and a > 25.5),
]  # fmt: skip


def atoms(model: SyntheticModel) -> list[tuple[tuple[Any, ...], float]]:
    """Every combination of values, and its probability: inside a bin all values are alike."""
    sides = []
    for place, states in enumerate(model.columns):
        domain, sizes = states.domain, states.pieces.sizes(states.number)
        codes = list(range(domain.low_code, domain.high_code + 1 + domain.nullable))
        at = [
            states.number - 1 if code == domain.null_code else int(np.searchsorted(states.starts, code, "right")) - 1
            for code in codes
        ]
        values = [None if code == domain.null_code else domain.decode(code) for code in codes]
        sides.append(
            [(value, model.mixture.columns[place][:, state] / sizes[state]) for value, state in zip(values, at, strict=True)]
        )
    found = []
    for combination in product(*sides):
        chance = model.mixture.weights
        for _, each in combination:
            chance = chance * each
        found.append((tuple(value for value, _ in combination), float(chance.sum())))
    return found


@pytest.fixture(scope="module")
def every() -> list[tuple[tuple[Any, ...], float]]:
    return atoms(made_up())


@pytest.mark.parametrize(("where", "holds"), CONDITIONS, ids=[each for each, _ in CONDITIONS])
def test_the_closed_form_is_the_sum_over_all_values(
    where: str, holds: Callable[..., bool | None], every: list[tuple[tuple[Any, ...], float]]
) -> None:
    """Counts, sums and means by group, against a sum over each combination of values; conditions cut bins."""
    answer = made_up().answer(
        f"SELECT sex, COUNT(*) AS n, COUNT(ward) AS w, SUM(age) AS s, AVG(ward) AS a FROM people WHERE {where} GROUP BY sex"
    )
    for row, sex in enumerate(answer.keys["sex"].tolist()):
        inside = [(values, chance) for values, chance in every if values[1] == sex and holds(*values)]
        count, there = (1000 * sum(chance for values, chance in inside if values[2] is not None or not left) for left in (0, 1))
        assert answer["n"][row] == pytest.approx(count)
        assert answer["w"][row] == pytest.approx(there)
        assert answer["a"][row] == pytest.approx(
            1000 * sum(values[2] * chance for values, chance in inside if values[2] is not None) / there if there else np.nan,
            nan_ok=True,
        )
        total = sum(values[0] * chance for values, chance in inside)
        assert answer["s"][row] == pytest.approx(1000 * total, rel=0.05)  # a bin is taken by its middle


def test_keys_of_every_kind_have_their_groups(every: list[tuple[tuple[Any, ...], float]]) -> None:
    answer = made_up().answer(Question(table="people", by=(cl.Binned("age", [18, 20, 33, 41]), "ward"), statistics=(Count(),)))
    assert len(answer) == 3 * 5
    found = dict(zip(zip(*(answer.keys[name].tolist() for name in ("age", "ward")), strict=True), answer["count"], strict=True))
    for (label, low, high), ward in product([("[18, 20)", 18, 19), ("[20, 33)", 20, 32), ("[33, 41]", 33, 41)], [3, 6, None]):
        expected = 1000 * sum(chance for values, chance in every if low <= values[0] <= high and values[2] == ward)
        assert found[label, ward] == pytest.approx(expected)


def test_a_value_of_a_bin_can_be_a_key(every: list[tuple[tuple[Any, ...], float]]) -> None:
    answer = made_up().answer("SELECT born, COUNT(*) AS n FROM people GROUP BY born")
    assert len(answer) == 21
    assert answer["n"][4] == pytest.approx(
        1000 * sum(chance for values, chance in every if values[3] == datetime.date(2000, 1, 5))
    )


def test_what_is_measured_is_exact_without_noise() -> None:
    codes = people()
    model = made_up(codes)
    answer = model.answer("SELECT sex, ward, COUNT(*) AS n, AVG(ward) AS a FROM people GROUP BY sex, ward")
    assert set(answer.kind()["n"]) == {"measured"}
    exact = [int(((codes[:, 1] == sex) & (codes[:, 2] == ward)).sum()) for sex in (0, 1) for ward in range(5)]
    assert answer["n"].tolist() == exact == answer.low()["n"].tolist() == answer.high()["n"].tolist()
    means = answer.to_pydict()["a"]
    assert means[:5] == [3, 4, 5, 6, None]


def test_the_reading_of_several_tables_is_their_inverse_variance_mean() -> None:
    """One column stands in its own table and in three pairs; the noise of a sum over a pair is that of all its cells."""
    codes, noise = people(), DiscreteGaussian(scale=20)
    model = made_up(codes, noise)
    answer = model.answer("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex")
    assert model.measured is not None
    variances = [400.0 * size for size in (1, 5, 5, 3)]
    parts = [model.measured.tables[kept].counts for kept in ((1,), (0, 1), (1, 2), (1, 3))]
    sums = np.array([parts[0], parts[1].sum(axis=0), parts[2].sum(axis=1), parts[3].sum(axis=1)])
    weights = 1 / np.array(variances)
    np.testing.assert_allclose(answer["n"], weights @ sums / weights.sum())
    assert answer.margin()["n"][0] == pytest.approx(1.98 * weights.sum() ** -0.5, rel=0.05)


def test_bounds_hold_for_the_rows_behind_exact_tables() -> None:
    """Every answer to questions of up to four columns, with cut bins: the exact one of the rows lies within what is sure."""
    codes = people(300)
    part = np.full(len(codes), 0.4)
    values = [
        states.series(states.pieces.at(codes[:, place], states.number, part)).tolist() for place, states in enumerate(STATES)
    ]
    real = list(zip(*values, strict=True))
    model, narrow = made_up(codes), 0
    for where, holds in CONDITIONS:
        answer = model.answer(
            f"SELECT sex, ward, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a FROM people WHERE {where} GROUP BY sex, ward"
        )
        for row, (sex, ward) in enumerate(zip(answer.keys["sex"].tolist(), answer.keys["ward"].tolist(), strict=True)):
            inside = [each[0] for each in real if each[1] == sex and each[2] == ward and holds(*each)]
            for name, exact in (("n", len(inside)), ("s", sum(inside)), ("a", np.mean(inside) if inside else None)):
                low, high = answer.low()[name][row], answer.high()[name][row]
                if np.isnan(low) or answer.kind()[name][row] not in ("measured", "sure") or exact is None:
                    continue
                narrow += name == "n" and high - low < 300
                assert low - 1e-6 <= exact <= high + 1e-6, (where, sex, ward, name)
    assert narrow > 20


def test_the_lower_bound_of_two_events_is_bonferronis() -> None:
    """90 of 100 rows are women of 18 to 22, 80 are women of ward 3, all are women: at least 70 are all three. And
    70 rows have that age and that ward, which is the most."""
    codes = np.zeros((100, 4), dtype=int)
    codes[90:, 0] = 1
    codes[:20, 2] = 1
    text = "SELECT COUNT(*) AS n FROM people WHERE sex = 'F' AND age <= 22 AND ward = 3"
    answer = made_up(codes).answer(text, confidence=0.9)
    assert (answer.low()["n"][0], answer.high()["n"][0], answer.kind()["n"][0]) == (70, 70, "sure")


def test_what_nothing_bounds_is_not_known() -> None:
    """Two columns of which only one-way tables were measured, all rows in one state of each: nothing more follows."""
    codes = people()
    model = made_up(codes, DiscreteLaplace(scale=10_000))
    answer = model.answer("SELECT sex, ward, COUNT(*) AS n, AVG(age) AS a FROM people WHERE age < 23 GROUP BY sex, ward")
    assert set(answer.kind()["n"]) <= {"not known", "sure"}
    assert set(answer.kind()["a"]) == {"not known"}
    assert np.isnan(answer.low()["a"]).all()
    assert answer.to_pydict()["a_low"] == [None] * len(answer)


NIGHT = pytest.mark.slow


@pytest.mark.parametrize("runs", [25, pytest.param(1000, marks=NIGHT)])
@pytest.mark.parametrize("noise", [DiscreteLaplace(scale=30), DiscreteGaussian(scale=30)], ids=["laplace", "gaussian"])
def test_margins_of_what_is_measured_hold_as_often_as_they_say(noise: Any, runs: int) -> None:
    """Counts of cells, counts under conditions, sums and means: 95 ± 1 % of some thousand intervals, or what chance
    allows of fewer by day; what is sure is wrong at most as often."""
    codes, random = people(20_000), Random.deterministic(17)
    texts = [
        "SELECT sex, ward, COUNT(*) AS n, SUM(ward) AS s FROM people GROUP BY sex, ward",
        "SELECT ward, COUNT(*) AS n FROM people WHERE sex = 'M' OR ward > 4 GROUP BY ward",
        "SELECT sex, COUNT(*) AS n, SUM(ward) AS s, AVG(ward) AS a FROM people WHERE ward <> 5 GROUP BY sex",
        "SELECT COUNT(*) AS n, AVG(ward) AS a FROM people",
    ]
    exact = [made_up(codes).answer(text) for text in texts]
    inside: dict[str, list[np.ndarray]] = {"n": [], "s": [], "a": [], "sure": []}
    for _ in range(runs):
        model = made_up(codes, noise, random)
        for text, truth in zip(texts, exact, strict=True):
            answer = model.answer(text)
            for name in answer.statistics:
                one = answer.statistics[name]
                told = (one.kind == "measured") & (one.high > one.low)
                assert told.any()
                low = np.where(one.low == 0, -np.inf, one.low) if name == "n" else one.low
                inside[name].append((low[told] <= truth[name][told] + 1e-9) & (truth[name][told] <= one.high[told] + 1e-9))
        states = [
            ((codes[:, 1] == sex) & (codes[:, 3] == born) & (codes[:, 2] == ward)).sum()
            for sex, born, ward in product(range(2), range(3), range(2))
        ]
        inside["sure"].append(_sure_of_bins(model, states))
    for name in ("n", "s", "a"):
        told = np.concatenate(inside[name])
        chance = 4 * (0.95 * 0.05 / len(told)) ** 0.5
        assert told.mean() == pytest.approx(0.95, abs=max(0.01, chance)), name
    assert np.mean(np.concatenate(inside["sure"])) >= 0.95


@pytest.mark.parametrize(("number", "scale"), [(5, 60), (30, 30), (60, 20), (100, 10)])
def test_bounds_that_are_told_hold_where_noise_hides_the_rows(number: int, scale: int) -> None:
    """If those were told that noise moved far enough to say something, half of them would be wrong."""
    codes, random = people(20_000)[:: 20_000 // number], Random.deterministic(31)
    text = "SELECT COUNT(*) AS n, SUM(ward) AS s FROM people WHERE NOT (sex = 'M' AND ward < 5 AND born < '2000-01-05')"
    truth, right, told = made_up(codes).answer(text).table.to_pydict(), 0, 0
    for _ in range(30):
        answer = made_up(codes, DiscreteLaplace(scale=scale), random).answer(text)
        for name, (value,) in truth.items():
            if answer.kind()[name][0] == "sure":
                told, right = told + 1, right + bool(answer.low()[name][0] <= value <= answer.high()[name][0])
    assert right >= 0.75 * told, (right, told)  # of 60 at 95 %: false by chance with 1.9e-7
    assert (told > 0) == (number == 100)


def test_means_of_few_rows_are_covered_whether_or_not_the_noise_hides_them() -> None:
    """Forty rows under noise of as many: some intervals are the whole column, and all hold as often as they say."""
    codes, random = people(2_000), Random.deterministic(23)
    codes[:, 1] = np.arange(len(codes)) < 40
    text, inside, wide = "SELECT sex, AVG(ward) AS a FROM people GROUP BY sex", 0, 0
    truth, runs = made_up(codes).answer(text)["a"][1], 80
    for _ in range(runs):
        answer = made_up(codes, DiscreteLaplace(scale=8), random).answer(text)
        assert answer.kind()["a"][1] == "measured"
        low, high = answer.low()["a"][1], answer.high()["a"][1]
        inside += low - 1e-9 <= truth <= high + 1e-9
        wide += (low, high) == (3, 6)
    assert 0 < wide < runs
    assert inside > 63  # of 80 at 95 %: false by chance below 1e-6


@pytest.mark.parametrize(("scale", "share"), [("0.4", 10), ("0.3", 2), ("1", 500)])
def test_means_are_covered_though_noise_is_whole(scale: str, share: int) -> None:
    """Where noise is small, its law is far from the continuous one: half a step is added, as to counts."""
    codes, random, runs = people(2 * share), Random.deterministic(29), 60
    codes[:, 1], codes[:, 2] = 0, np.arange(len(codes)) < share
    text, inside = "SELECT AVG(ward) AS a FROM people", 0
    truth = made_up(codes).answer(text)["a"][0]
    for _ in range(runs):
        answer = made_up(codes, DiscreteLaplace(scale=scale), random).answer(text)
        inside += answer.low()["a"][0] - 1e-9 <= truth <= answer.high()["a"][0] + 1e-9
    assert inside > 45  # of 60 at 95 %: false by chance with 1.9e-7


def _sure_of_bins(model: SyntheticModel, states: list[int]) -> np.ndarray:
    """Whether the bounds of cells of three columns, of which one is in bins of its own, hold the counts of the rows."""
    question = Question(table="people", by=("sex", cl.Binned("born", DAYS), "ward"), statistics=(Count(),))  # fmt: skip
    one = model.answer(question)
    keys = list(zip(*(one.keys[name].tolist() for name in ("sex", "born", "ward")), strict=True))
    bins = ["[2000-01-01, 2000-01-04)", "[2000-01-04, 2000-01-20]", None]
    found = []
    for number, (sex, born, ward) in enumerate(product("FM", bins, (3, 4))):
        row = keys.index((sex, born, ward))
        if one.kind()["count"][row] == "sure":
            found.append(one.low()["count"][row] <= states[number] <= one.high()["count"][row])
    return np.array(found)


def test_a_file_keeps_the_answers(sure: SyntheticModel, tmp_path: Path) -> None:
    sure.save(tmp_path / "model.json")
    text = "SELECT sex, ward, COUNT(*) AS n, AVG(age) AS a FROM people WHERE age > 30 GROUP BY sex, ward"
    back = cl.synth.load(tmp_path / "model.json")
    one, other = (model.answer(text) for model in (sure, back))
    assert one.kind().to_pydict() == other.kind().to_pydict()
    np.testing.assert_allclose(one["n"], other["n"], atol=1e-5)
    np.testing.assert_allclose(one.low()["n"], other.low()["n"], atol=1e-5)


def test_a_file_of_old_has_values_without_margins(sure: SyntheticModel, tmp_path: Path) -> None:
    document = json.loads(sure.to_json())
    del document["measured"]
    (tmp_path / "old.json").write_text(json.dumps(document), encoding="utf-8")
    answer = cl.synth.load(tmp_path / "old.json").answer(
        "SELECT sex, COUNT(*) AS n, SUM(age) AS s, AVG(age) AS a FROM people GROUP BY sex"
    )
    assert {kind for name in "nsa" for kind in answer.kind()[name]} == {"not known"}
    assert "no measured tables" in repr(answer)
    real = rows()
    assert answer["n"] == pytest.approx([sum(sex == each for sex in real["sex"]) for each in "FM"], abs=5)


@pytest.mark.parametrize(
    "change",
    [
        {"columns": [0, 0]}, {"columns": [99]}, {"counts": [1]}, {"counts": ["a"]}, {"variance": -1}, {"variance": float("inf")},
        {"fourth": None},
    ],
)  # fmt: skip
def test_measured_tables_that_are_none_are_refused(sure: SyntheticModel, tmp_path: Path, change: dict[str, Any]) -> None:
    document = json.loads(sure.to_json())
    document["measured"][0].update(change)
    (tmp_path / "model.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(cl.InvalidParameter, match="The model is invalid"):
        cl.synth.load(tmp_path / "model.json")


def test_questions_of_a_real_model_agree_with_its_rows(sure: SyntheticModel) -> None:
    """Hardly any noise: what is measured are the counts, sums and means of the table."""
    real = rows()
    answer = sure.answer(
        "SELECT sex, COUNT(*) AS n, AVG(age) AS a, SUM(age) AS s FROM people WHERE member GROUP BY sex ORDER BY n"
    )
    assert set(answer.kind()["n"]) == {"measured"}
    assert "measured" not in set(answer.kind()["a"])  # three columns
    answer = sure.answer("SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex ORDER BY n DESC")
    assert answer.keys["sex"].tolist() == ["F", "M"]
    for row, sex in enumerate("FM"):
        ages = [age for age, each in zip(real["age"], real["sex"], strict=True) if each == sex]
        assert answer["n"][row] == pytest.approx(len(ages), abs=5)
        assert answer["a"][row] == pytest.approx(np.mean(ages), abs=0.3)
    assert sure.answer("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n > 300").keys["sex"].tolist() == ["F"]
    assert len(sure.answer("SELECT age, COUNT(*) AS n FROM people GROUP BY age LIMIT 4")) == 4
    assert "measured" in repr(answer)
    assert "MARKED" in repr(answer)


REFUSED: list[tuple[str | Question, type[Exception], str]] = [
    ("SELECT COUNT(*) AS n FROM patients", cl.UnknownTable, "patients"),
    (Question(table="patients", statistics=(Count(),)), cl.UnknownTable, "the model is of 'people'"),
    ("SELECT SUM(height) AS s FROM people", cl.UnknownColumn, "height"),
    ("SELECT MEDIAN(age) AS m FROM people", cl.UnsupportedQuery, "answers counts, sums and means"),
    ("SELECT SUM(age) / COUNT(*) AS m FROM people", cl.UnsupportedQuery, "answers counts, sums and means"),
    ("SELECT SUM(sex) AS s FROM people", cl.CloisterError, "sex"),
    ("SELECT COUNT(*) AS n FROM people GROUP BY GROUPING SETS ((sex), (ward))", cl.UnsupportedQuery, "GROUPING SETS"),
    ("SELECT FLOOR(age / 10) AS d, COUNT(*) AS n FROM people GROUP BY d", cl.UnsupportedQuery, "computes columns"),
    ("SELECT age, pay, ward, COUNT(*) AS n FROM people GROUP BY age, pay, ward", cl.UnsupportedQuery, "groups"),
    ("DELETE FROM people", cl.CloisterError, "."),
    ("", cl.CloisterError, "."),
]  # fmt: skip


@pytest.mark.parametrize(("question", "error", "why"), REFUSED, ids=[str(each)[:40] for each, _, _ in REFUSED])
def test_what_cannot_be_answered_is_refused(
    sure: SyntheticModel, question: str | Question, error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        sure.answer(question)


@pytest.mark.parametrize("confidence", [0, 1, -1, 1.5, "much", True])
def test_a_confidence_is_a_probability(sure: SyntheticModel, confidence: Any) -> None:
    with pytest.raises(cl.InvalidParameter, match="confidence"):
        sure.answer("SELECT COUNT(*) AS n FROM people", confidence=confidence)


def test_answers_cost_nothing_and_are_the_same_again(people: cl.PrivateTable) -> None:
    with cl.Session({"people": people}, budget=cl.PureDP(2)) as session:
        model = cl.synth.fit(session, "people", spend=1, columns=["age", "sex", "ward"], method="pairs")
        text = "SELECT sex, ward, COUNT(*) AS n FROM people WHERE age = 30 GROUP BY sex, ward"
        one, other = model.answer(text), model.answer(text)
        assert session.spent == cl.PureDP(1)
    assert one.to_pydict() == other.to_pydict()


def test_independent_columns_have_bounds_where_they_meet() -> None:
    codes = people(20_000)
    model = made_up(codes, DiscreteGaussian(scale=5))
    assert model.measured is not None
    singles = {kept: table for kept, table in model.measured.tables.items() if len(kept) == 1}
    alone = Marginals(sizes=model.measured.sizes, tables=singles)
    apart = SyntheticModel(
        table="people", method="independent", why="", columns=STATES, mixture=independent(alone), rows=alone.rows()[0],
        rows_error=1, cost=PureDP(1), population="p", charges=(), measured=alone,
    )  # fmt: skip
    answer = apart.answer("SELECT sex, ward, COUNT(*) AS n FROM people GROUP BY sex, ward")
    assert set(answer.kind()["n"]) == {"sure"}
    exact = np.array([((codes[:, 1] == sex) & (codes[:, 2] == ward)).sum() for sex in (0, 1) for ward in range(5)])
    assert ((answer.low()["n"] <= exact) & (exact <= answer.high()["n"])).all()
