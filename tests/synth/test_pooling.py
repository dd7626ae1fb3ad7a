"""Models of several populations pooled: the law of the sum, margins that hold, each person's own cost, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.synth import PooledModel, SyntheticModel
from cloister.synth.measuring import Noisy

COLUMNS = {"age": cl.Integer(0, 9), "ill": cl.Boolean(), "ward": cl.Category(["a", "b", "c"])}
SEEDS = 12


def rows(n: int, seed: int, old: float) -> dict[str, list[Any]]:
    """The old are ill more often; how many are old differs from place to place."""
    drawn = np.random.default_rng(seed)
    age = drawn.binomial(9, old, n)
    ward = drawn.integers(0, 3, n)
    return {"age": age.tolist(), "ill": (drawn.random(n) < age / 12).tolist(), "ward": ["abc"[each] for each in ward]}


def model(n: int, seed: int, old: float = 0.5, **how: Any) -> SyntheticModel:
    """A place by itself."""
    how = {"epsilon": 2, "method": "pairs", **how}
    return cl.synth.fit_frame(rows(n, seed, old), COLUMNS, random=Random.deterministic(seed), **how)


@pytest.fixture(scope="module")
def north() -> SyntheticModel:
    return model(900, 1, 0.3)


@pytest.fixture(scope="module")
def south() -> SyntheticModel:
    return model(1600, 2, 0.7, epsilon=1)


@pytest.fixture(scope="module")
def both(north: SyntheticModel, south: SyntheticModel) -> PooledModel:
    return cl.synth.pooled({"north": north, "south": south})


def test_the_law_is_that_of_the_sum(both: PooledModel, north: SyntheticModel, south: SyntheticModel) -> None:
    assert both.rows == pytest.approx(north.rows + south.rows)
    assert both.rows_error == pytest.approx(np.hypot(north.rows_error, south.rows_error))
    for kept in ((0,), (0, 1), (0, 1, 2)):
        parts = [each.mixture.marginal(kept) * each.rows for each in (north, south)]
        np.testing.assert_allclose(both.mixture.marginal(kept) * both.rows, sum(parts), rtol=1e-9)
    assert both.measured is not None
    assert north.measured is not None
    assert south.measured is not None
    for kept, table in both.measured.tables.items():
        one, other = (each.tables[kept] for each in (north.measured, south.measured))
        np.testing.assert_array_equal(table.counts, one.counts + other.counts)
        assert (table.variance, table.fourth) == (one.variance + other.variance, one.fourth + other.fourth)
        assert table.largest == max(one.largest, other.largest)
        assert not table.laplace


def test_answers_add(both: PooledModel, north: SyntheticModel, south: SyntheticModel) -> None:
    sql = "SELECT age, COUNT(*) AS n FROM frame WHERE ill GROUP BY age"
    told, parts = both.answer(sql), [each.answer(sql) for each in (north, south)]
    assert set(told.kind()["n"].tolist()) == {"measured"}
    np.testing.assert_allclose(told["n"], parts[0]["n"] + parts[1]["n"])
    widths = [each.margin()["n"] for each in (told, *parts)]
    assert (widths[0] < widths[1] + widths[2]).all(), "independent noise"
    assert (widths[0] > np.maximum(widths[1], widths[2])).all()


def test_rows_come_from_every_part_in_proportion(both: PooledModel, north: SyntheticModel, south: SyntheticModel) -> None:
    made = both.sample(random=Random.deterministic(4))
    assert len(made) == round(both.rows)
    counts = np.bincount(np.asarray(made["age"], dtype=int), minlength=10)
    expected = sum(each.mixture.marginal((0,)) * each.rows for each in (north, south))
    assert np.abs(counts - expected).sum() / 2 / len(made) < 0.02
    old = both.sample(given={"age": (8, 9), "ill": True}, random=Random.deterministic(5))
    assert set(old["age"]) <= {8, 9}
    assert set(old["ill"]) == {True}


def test_margins_hold() -> None:
    """95 % of the intervals hold the count: of 720 with noise of their own at least 655, with probability 1 − 10⁻⁶."""
    tables = [rows(n, n, old) for n, old in ((400, 0.3), (700, 0.6))]
    truth = np.zeros((10, 2, 3))
    for each in tables:
        np.add.at(truth, (each["age"], np.array(each["ill"], dtype=int), ["abc".index(ward) for ward in each["ward"]]), 1)
    held, seen, widths = 0, 0, []
    for seed in range(0, 2 * SEEDS, 2):
        fits = [
            cl.synth.fit_frame(each, COLUMNS, epsilon=spend, method="histogram", random=Random.deterministic(seed + place))
            for place, (each, spend) in enumerate(zip(tables, (1, 3), strict=True))
        ]
        told = cl.synth.pooled(dict(zip("ns", fits, strict=True))).answer(
            "SELECT age, ill, ward, COUNT(*) AS n FROM frame GROUP BY age, ill, ward"
        )
        assert set(told.kind()["n"].tolist()) == {"measured"}
        low, high = told.low()["n"], told.high()["n"]
        held += int(((low <= truth.ravel()) & (truth.ravel() <= high)).sum())
        seen += truth.size
        widths.append(float((high - low).mean()))
    assert (seen, held >= 655) == (720, True), held
    assert held < 720
    assert max(widths) < 12


def test_each_person_pays_what_their_own_population_paid(both: PooledModel) -> None:
    assert both.costs == {"north": cl.PureDP(2), "south": cl.PureDP(1)}
    assert both.cost == cl.PureDP(2)
    told = both.answer("SELECT COUNT(*) AS n FROM frame")
    said = "by population: ε = 2 of 'north', ε = 1 of 'south'; a person's cost is that of their own population, and the sum"
    assert any(said in note for note in told.notes)
    assert said in both.report().why
    assert "of 'south'" in str(both)
    assert [str(each).partition(": ")[0] for each in both.charges] == ["north", "south"]
    assert both.marked
    named = {name: replace(part, population="people") for name, part in both.parts.items()}
    alike = cl.synth.pooled(named).answer("SELECT COUNT(*) AS n FROM frame")
    assert any("call their population 'people'" in note for note in alike.notes)
    assert not any("call their population" in note for note in told.notes)


def test_bounds_alone_are_said_of_three_columns_of_a_pool(both: PooledModel) -> None:
    sql = "SELECT age, ill, ward, COUNT(*) AS n FROM frame GROUP BY age, ill, ward"
    assert set(both.answer(sql).kind()["n"].tolist()) <= {"sure", "not known"}
    report = both.report()
    assert [each.value for each in report.expected] == [None, None, None]
    assert [each.tables for each in report.measured] == [3, 3]


def test_bounds_that_are_sure_hold(both: PooledModel) -> None:
    told = both.answer("SELECT COUNT(*) AS n FROM frame WHERE age > 6 AND ill AND ward = 'a'")
    [kind] = told.kind()["n"].tolist()
    truth = sum(
        age > 6 and ill and ward == "a"
        for table in (rows(900, 1, 0.3), rows(1600, 2, 0.7))
        for age, ill, ward in zip(*table.values(), strict=True)
    )
    assert kind == "sure"
    assert told.low()["n"][0] <= truth <= told.high()["n"][0]


def test_a_pool_survives_its_file(both: PooledModel, tmp_path: Path) -> None:
    both.save(tmp_path / "both.json")
    back = cl.synth.load(tmp_path / "both.json")
    assert isinstance(back, PooledModel)
    assert (str(back), back.costs, back.charges) == (str(both), both.costs, both.charges)
    one, other = (
        each.sample(200, random=Random.deterministic(3)).to_pydict() for each in (back, cl.synth.load(tmp_path / "both.json"))
    )
    assert one == other
    assert json.loads(back.to_json()) == json.loads((tmp_path / "both.json").read_text(encoding="utf-8"))
    sql = "SELECT COUNT(*) AS n FROM frame WHERE ill"
    assert back.answer(sql).to_pydict() == both.answer(sql).to_pydict()


@pytest.mark.parametrize(
    "change",
    [{"format": 9}, {"parts": {}}, {"parts": {"one": {}, "other": {}}}, {"parts": None}, {"kind": "a pool"}],
)
def test_a_file_that_is_no_pool_is_refused(both: PooledModel, tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "both.json").write_text(json.dumps({**json.loads(both.to_json()), **change}), encoding="utf-8")
    with pytest.raises(cl.InvalidParameter, match=r"cannot be pooled|model is invalid"):
        cl.synth.load(tmp_path / "both.json")


def test_tables_that_were_chosen_by_looking_are_not_added() -> None:
    """Only their first round was fixed before any noise was drawn."""
    chosen = [model(500, seed, method="aim") for seed in (3, 4)]
    both = cl.synth.pooled(dict(zip("ab", chosen, strict=True)))
    assert both.measured is not None
    assert set(both.measured.tables) == {(0,), (1,), (2,)}
    for each in chosen:
        assert each.measured is not None
        assert any(table.round for _, table in each.measured.readings)
    first = [dict(each.measured.readings[:3]) for each in chosen if each.measured]
    np.testing.assert_array_equal(both.measured.tables[(1,)].counts, first[0][(1,)].counts + first[1][(1,)].counts)
    assert set(both.answer("SELECT ill, ward, COUNT(*) AS n FROM frame GROUP BY ill, ward").kind()["n"].tolist()) <= {
        "sure",
        "not known",
    }


def test_under_rules_each_part_draws_its_own_rows() -> None:
    """Of one part few of the drawn rows obey, of the other nearly all: yet each has its share of the rows."""
    columns = {"came": cl.Integer(0, 7), "left": cl.Integer(0, 7), "place": cl.Category(["n", "s"])}
    fits = []
    for seed, place in enumerate("ns"):
        drawn = np.random.default_rng(seed)
        came = drawn.integers(0, 8, 600) if place == "n" else np.zeros(600, dtype=int)
        stays = {"came": came.tolist(), "left": np.maximum(came, drawn.integers(0, 8, 600)).tolist(), "place": [place] * 600}
        fits.append(cl.synth.fit_frame(stays, columns, epsilon=20, rules=["came <= left"], random=Random.deterministic(seed)))
    both = cl.synth.pooled(dict(zip("ns", fits, strict=True)))
    made = both.sample(4000, random=Random.deterministic(1)).to_pydict()
    assert all(came <= left for came, left in zip(made["came"], made["left"], strict=True))
    assert abs(made["place"].count("n") / 4000 - fits[0].rows / both.rows) < 0.01
    late = both.sample(300, given={"came": (4, 7)}, random=Random.deterministic(1)).to_pydict()
    assert min(late["came"]) >= 4
    assert late["place"].count("n") > 280
    assert len(both.sample(0)) == 0
    assert both.acceptance == pytest.approx(np.mean([each.acceptance for each in fits]), abs=0.02)


def test_a_part_that_noise_hides_has_no_rows(north: SyntheticModel, south: SyntheticModel) -> None:
    hidden = replace(south, rows=-3.0)
    both = cl.synth.pooled({"north": north, "south": hidden})
    np.testing.assert_allclose(both.mixture.marginal((0,)), north.mixture.marginal((0,)))
    neither = cl.synth.pooled({"north": replace(north, rows=-1.0), "south": hidden})
    assert neither.mixture.weights.sum() == pytest.approx(1)


def test_a_model_of_an_old_file_brings_no_margins(north: SyntheticModel, south: SyntheticModel) -> None:
    both = cl.synth.pooled({"north": north, "south": replace(south, measured=None)})
    assert both.measured is None
    assert both.answer("SELECT COUNT(*) AS n FROM frame").kind()["n"].tolist() == ["not known"]


def test_noise_of_two_laws_adds(north: SyntheticModel, south: SyntheticModel) -> None:
    assert north.measured is not None
    gauss = {kept: Noisy(each.counts, 4.0, laplace=False) for kept, each in north.measured.tables.items()}
    both = cl.synth.pooled({"north": replace(north, measured=replace(north.measured, tables=gauss)), "south": south})
    assert both.measured is not None
    assert south.measured is not None
    table, laplace = both.measured.tables[(0,)], south.measured.tables[(0,)]
    assert (table.variance, table.fourth, table.largest) == (4 + laplace.variance, laplace.fourth, laplace.largest)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (lambda it: it, "'frame', and a person who is in both would be counted twice"),
        (lambda it: replace(it, population="s", columns=it.columns[:2]), "'s' has age, ill"),
        (
            lambda it: replace(it, population="s", columns=(*it.columns[:2], replace(it.columns[2], name="x"))),
            "'s' has age, ill, x",
        ),
        (
            lambda it: replace(it, population="s", columns=(replace(it.columns[0], domain=cl.Integer(0, 8)), *it.columns[1:])),
            "the column 'age' is declared, or cut into bins, otherwise",
        ),
        (lambda it: replace(it, population="s", rules=("age < 9",)), "different rules"),
        (lambda it: replace(it, population="s", cost=cl.ZCDP(1)), None),
        (lambda it: replace(it, population="s", marked=False), "came from a test's generator"),
    ],
)
def test_what_cannot_be_pooled_is_refused(north: SyntheticModel, south: SyntheticModel, changed: Any, why: str | None) -> None:
    models = [north, changed(south)]
    if why is None:
        assert cl.synth.pooled(models).cost == cl.ZCDP(2), "ε = 2 is ρ = 2"
        models, why = [replace(north, cost=cl.ApproxDP(1, "1e-6")), changed(south)], "in ρ, of another in ε and δ"
    with pytest.raises(cl.InvalidParameter, match=why):
        cl.synth.pooled(models)


def test_what_is_no_list_of_models_is_refused(both: PooledModel, north: SyntheticModel) -> None:
    wrong: list[Any] = [north, [north], [], [north, "model.json"], {"north": north}]
    for each in wrong:
        with pytest.raises(cl.InvalidParameter, match="two or more synthetic models"):
            cl.synth.pooled(each)
    with pytest.raises(cl.InvalidParameter, match="pooled already"):
        cl.synth.pooled({"both": both, "north": north})
    with pytest.raises(cl.InvalidParameter, match="given twice"):
        cl.synth.pooled({"north": north, "south": north})
