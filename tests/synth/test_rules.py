"""Every drawn row obeys the rules; rows that break one are mended before they are counted; what can't be meant is refused."""

from __future__ import annotations

import datetime
import json
import pickle
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Question
from cloister.synth import SyntheticModel
from cloister.synth.comparing import _without_noise
from cloister.synth.cutting import truth
from cloister.synth.rule_texts import read
from cloister.synth.rules import Rules
from cloister.synth.states import states_of
from tests.tiers import by_day_and_night

COLUMNS = {
    "birth": cl.Date("1900-01-01", "1999-12-31"),
    "admission": cl.Date("1950-01-01", "2024-12-31"),
    "death": cl.Date("1950-01-01", "2024-12-31", nullable=True),
    "age": cl.Integer(0, 99),
    "marital": cl.Category(["married", "never married", "widowed"]),
    "boys": cl.Integer(0, 4),
    "girls": cl.Integer(0, 4),
    "children": cl.Integer(0, 8),
    "value": cl.Real(0, 100, step="0.5", nullable=True),
    "measured": cl.Date("2000-01-01", "2024-12-31", nullable=True),
}
RULES = [
    "birth <= admission <= death",
    "age < 15 => marital = 'never married'",
    "boys + girls = children",
    "missing(value) == missing(measured)",
]


def rows(n: int = 4000) -> dict[str, Any]:
    """People who obey the rules, but for one in fifty who is married as a child."""
    drawn = np.random.default_rng(5)
    birth = drawn.integers(0, 36_000, n)
    admission = np.maximum(birth + drawn.integers(0, 9000, n), 18_300)
    death, missing = admission + drawn.integers(0, 500, n), drawn.random(n) < 0.3
    age, boys, girls = drawn.integers(0, 100, n), drawn.integers(0, 5, n), drawn.integers(0, 5, n)
    status = np.where((age < 15) & (drawn.random(n) > 0.02), 1, np.where(age > 60, 2, 0))

    def days(numbers: Any, absent: Any) -> list[Any]:
        first = datetime.date(1900, 1, 1)
        return [None if no else first + datetime.timedelta(days=int(each)) for each, no in zip(numbers, absent, strict=True)]

    never = np.zeros(n, dtype=bool)
    return {
        "birth": days(birth, never),
        # a moment beside the days: its time is cut off
        "admission": [datetime.datetime.combine(day, datetime.time(23, 59)) for day in days(admission, never)],
        "death": days(death, drawn.random(n) < 0.5),
        "age": age,
        "marital": np.array(COLUMNS["marital"].values())[status].tolist(),
        "boys": boys,
        "girls": girls,
        "children": boys + girls,
        "value": [None if no else float(each) / 2 for each, no in zip(drawn.integers(0, 200, n), missing, strict=True)],
        "measured": days(36_600 + drawn.integers(0, 9000, n), missing),
    }


def violations(made: dict[str, Any]) -> dict[str, int]:
    """Counted in plain Python, without anything of the package."""
    found = dict.fromkeys(("birth", "death", "marital", "children", "missing"), 0)
    for birth, admission, death, age, marital, boys, girls, children, value, measured in zip(*made.values(), strict=True):
        found["birth"] += birth > admission
        found["death"] += death is not None and admission > death
        found["marital"] += age < 15 and marital != "never married"
        found["children"] += boys + girls != children
        found["missing"] += (value is None) != (measured is None)
    return found


NONE = dict.fromkeys(("birth", "death", "marital", "children", "missing"), 0)


@pytest.fixture(scope="module")
def model() -> SyntheticModel:
    return cl.synth.fit_frame(
        rows(), COLUMNS, epsilon=2, delta="1e-6", method="pairs", rules=RULES, random=Random.deterministic(1)
    )


@pytest.fixture(scope="module")
def drawn(model: SyntheticModel) -> dict[str, Any]:
    return model.sample(20_000, random=Random.deterministic(3)).to_pydict()


@by_day_and_night("many", 5_000, 100_000)
def test_not_one_of_many_rows_breaks_a_rule(model: SyntheticModel, many: int) -> None:
    made = model.sample(many, random=Random.deterministic(2)).to_pydict()
    assert len(made["age"]) == many
    assert violations(made) == NONE
    assert 0.3 < np.mean([death is None for death in made["death"]]) < 0.7
    assert np.mean([value is None for value in made["value"]]) == pytest.approx(0.3, abs=0.05)


def test_without_them_rows_break_all_of_them() -> None:
    """The rules are not met by chance."""
    free = cl.synth.fit_frame(rows(), COLUMNS, epsilon=2, delta="1e-6", method="independent", random=Random.deterministic(1))
    assert all(violations(free.sample(5000, random=Random.deterministic(2)).to_pydict()).values())


def test_independent_columns_obey_too() -> None:
    made = cl.synth.fit_frame(
        rows(), COLUMNS, epsilon=2, delta="1e-6", method="independent", rules=RULES, random=Random.deterministic(1)
    )
    assert violations(made.sample(5000, random=Random.deterministic(2)).to_pydict()) == NONE


def test_single_columns_stay_what_they_were(model: SyntheticModel, drawn: dict[str, Any]) -> None:
    """Mending takes nothing from columns with clear counts."""
    made, real = drawn, rows()
    for name in ("marital", "boys", "girls", "children"):
        values = sorted(set(real[name]) | set(made[name]))
        one, other = (np.array([list(each[name]).count(value) / len(each[name]) for value in values]) for each in (real, made))
        assert np.abs(one - other).sum() / 2 < 0.06, name
    assert model.acceptance > 0.8


@pytest.mark.parametrize(
    "given",
    [
        {"birth": ("1980-01-01", "1985-12-31")},
        {"admission": ("1990-01-01", "1991-12-31")},
        {"death": None},
        {"death": ("2000-01-01", "2010-12-31")},
        {"age": (0, 14)},
        {"marital": "widowed"},
        {"boys": 3},
        {"children": 6},
        {"children": [0, 8], "boys": [0, 4]},
        {"value": None},
        {"measured": ("2020-01-01", "2024-12-31")},
        {"age": (10, 20), "children": 2, "value": (10, 20), "admission": ("1980-01-01", "2000-01-01")},
    ],
    ids=str,
)
def test_rows_under_conditions_on_any_column_obey_too(model: SyntheticModel, given: dict[str, Any]) -> None:
    made = model.sample(2000, given=given, random=Random.deterministic(4)).to_pydict()
    assert len(made["age"]) == 2000
    assert violations(made) == NONE
    for name, wanted in given.items():
        domain = COLUMNS[name]
        codes = [None if value is None else domain.encode(value) for value in made[name]]
        if isinstance(wanted, tuple):
            low, high = (domain.encode(each) for each in wanted)
            assert low is not None
            assert high is not None
            assert all(code is not None and low <= code <= high for code in codes)
        else:
            allowed = [
                None if each is None else domain.encode(each) for each in (wanted if isinstance(wanted, list) else [wanted])
            ]
            assert set(codes) <= set(allowed)


def test_as_many_rows_meet_a_condition_as_the_rules_leave(model: SyntheticModel, drawn: dict[str, Any]) -> None:
    assert len(model.sample()) == pytest.approx(4000, abs=100)
    share = np.mean(np.asarray(drawn["age"]) < 15)
    assert len(model.sample(given={"age": (0, 14)})) == pytest.approx(4000 * share, rel=0.2)


def test_what_cannot_be_is_counted_as_nothing(model: SyntheticModel) -> None:
    answer = model.answer("SELECT marital, COUNT(*) AS n FROM frame WHERE age < 15 GROUP BY marital")
    assert answer["n"].tolist()[0] == answer["n"].tolist()[2] == 0
    assert answer["n"][1] == pytest.approx(600, abs=150)
    assert "rows that obey the rules" in answer.notes[0]


def test_rules_survive_the_file(model: SyntheticModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    back = cl.synth.load(tmp_path / "model.json")
    assert (back.rules, back.acceptance, back.unmapped) == (tuple(RULES), model.acceptance, ())
    one, other = (each.sample(500, random=Random.deterministic(3)).to_pydict() for each in (back, model))
    assert violations(one) == NONE
    assert sorted(one) == sorted(other)
    assert all(f"rule: {rule}" in str(back) for rule in RULES)
    assert json.loads(back.to_json())["format"] == 2  # a version without rules would break them, and refuses this


def test_a_model_that_has_drawn_goes_to_other_processes(ordered: SyntheticModel) -> None:
    first = ordered.sample(50, random=Random.deterministic(4)).to_pydict()
    assert pickle.loads(pickle.dumps(ordered)).sample(50, random=Random.deterministic(4)).to_pydict() == first


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rules": ["age = 1; DROP TABLE people"]}, "can't be read"),
        ({"rules": ["nothing > 3"]}, "'nothing' is unknown"),
        ({"rules": [7]}, "is a text"),
        ({"acceptance": 2}, "no share"),
        ({"acceptance": "all"}, "not a model"),
    ],
)
def test_a_file_with_rules_that_are_none_is_refused(model: SyntheticModel, change: dict[str, Any], why: str) -> None:
    with pytest.raises(cl.CloisterError, match=why):
        SyntheticModel.from_json(json.dumps({**json.loads(model.to_json()), **change}))


# the map


def counted(
    held: dict[str, Any], columns: dict[str, Any], rules: list[str], by: list[str]
) -> tuple[dict[tuple[Any, ...], int], Any]:
    """The exact counts of the mended table, and the rules that are not mended."""
    table = cl.PrivateTable(held, columns)
    with cl.Session({"t": table}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
        ruled = Rules.of(rules, states_of(columns, None, table="t"), table="t")
        source, unmapped = ruled.mapped(session, "t", table, 1)
        release = session.measure(Question(table=source, by=tuple(by), statistics=(Count(),)), 10**11)
    found = {row[:-1]: int(row[-1]) for row in release if row[-1]}
    return found, unmapped


SMALL = cl.Integer(0, 9)
SOME = cl.Integer(0, 9, nullable=True)
STATUS = cl.Category(["a", "b", "c"])


@pytest.mark.parametrize(
    ("columns", "rules", "before", "after"),
    [
        ({"x": SMALL, "y": SMALL}, ["x <= y"], (5, 3), (5, 5)),
        ({"x": SMALL, "y": SMALL}, ["x < y"], (5, 3), (5, 6)),
        ({"x": SMALL, "y": SMALL}, ["y > x"], (5, 3), (2, 3)),
        ({"x": SMALL, "y": cl.Integer(0, 4)}, ["x <= y"], (5, 3), (4, 4)),  # the other one leaves room
        ({"x": SMALL, "y": SMALL}, ["x < y"], (9, 9), (8, 9)),
        ({"x": SMALL, "y": SMALL}, ["NOT (x > y)"], (5, 3), (5, 5)),
        ({"x": SMALL, "y": SMALL}, ["y - x >= 0"], (5, 3), (5, 5)),
        ({"x": SMALL, "y": SMALL}, ["y - x >= 2"], (9, 3), (7, 9)),  # the other one leaves room for what is added
        ({"x": SMALL, "y": SMALL}, ["y - x BETWEEN 0 AND 2"], (1, 5), (3, 5)),
        ({"x": SMALL, "y": SMALL}, ["x < 3 => NOT (x BETWEEN 0 AND 2 OR y = 5)"], (1, 5), (3, 5)),
        ({"x": SMALL, "y": SMALL, "z": SMALL}, ["y <= z", "x <= y"], (9, 0, 5), (9, 9, 9)),
        ({"x": SMALL, "y": SMALL, "z": SMALL}, ["CASE WHEN x + y > 5 THEN 1 ELSE 0 END = z"], (3, 3, 0), (3, 3, 1)),
        ({"x": SOME, "y": SMALL}, ["x <= y"], (5, 3), (3, 3)),
        ({"x": SOME, "y": SMALL}, ["x <= y"], (None, 3), (None, 3)),
        ({"x": SMALL, "y": SMALL, "z": SMALL}, ["x <= y <= z"], (7, 2, 4), (7, 7, 7)),
        ({"x": SMALL, "s": STATUS}, ["x < 3 => s = 'b'"], (2, "c"), (2, "b")),
        ({"x": SMALL, "s": STATUS}, ["x < 3 => s = 'b'"], (3, "c"), (3, "c")),
        ({"x": SMALL, "s": STATUS}, ["x < 3 => s IN ('c', 'a')"], (2, "b"), (2, "c")),
        ({"x": SMALL, "s": STATUS}, ["s = 'a' => x BETWEEN 4 AND 6"], (9, "a"), (6, "a")),
        ({"x": SMALL, "s": STATUS}, ["NOT (x < 3 AND s = 'b')"], (2, "b"), (3, "b")),
        ({"x": SMALL, "y": SMALL, "z": cl.Integer(0, 18)}, ["x + y = z"], (4, 5, 1), (4, 5, 9)),
        ({"x": SMALL, "y": SOME}, ["x < 3 => missing(y)"], (2, 5), (2, None)),
        ({"x": SOME, "y": SOME}, ["missing(x) == missing(y)"], (4, None), (None, None)),
        ({"x": SOME, "y": SOME}, ["missing(x) == missing(y)"], (4, 5), (4, 5)),
        (
            {"d": cl.Date("2020-01-01", "2020-12-31"), "e": cl.Date("2020-06-01", "2021-12-31")},
            ["d < e"],
            (datetime.date(2020, 12, 31), datetime.date(2020, 7, 1)),
            (datetime.date(2020, 12, 31), datetime.date(2021, 1, 1)),
        ),
        (
            {"d": cl.Date("2020-01-01", "2020-12-31"), "e": cl.Date("2020-01-01", "2020-12-31")},
            ["d < e"],
            (datetime.date(2020, 12, 31), datetime.date(2020, 7, 1)),
            (datetime.date(2020, 12, 30), datetime.date(2020, 12, 31)),
        ),
        (
            {"d": cl.Date("2020-01-01", "2020-12-31"), "e": cl.Date("2020-01-01", "2020-12-31")},
            ["e - d >= 3"],
            (datetime.date(2020, 12, 31), datetime.date(2020, 7, 1)),
            (datetime.date(2020, 12, 28), datetime.date(2020, 12, 31)),
        ),
        ({"x": SMALL, "s": STATUS}, ["s = CASE WHEN x < 5 THEN 'a' ELSE 'c' END"], (7, "b"), (7, "c")),
    ],
    ids=str,
)
def test_rows_that_break_a_rule_are_mended_one_by_one(
    columns: dict[str, Any], rules: list[str], before: tuple[Any, ...], after: tuple[Any, ...]
) -> None:
    """A table of one row and thirty others: the one becomes what the map says, the others stay, and none is dropped."""
    other = [None if domain.nullable else domain.decode(domain.low_code) for domain in columns.values()]
    fine = Rules.of(rules, states_of(columns, None, table="t"), table="t")
    codes = [
        np.array([domain.null_code if value is None else domain.encode(value)])
        for value, domain in zip(other, columns.values(), strict=True)
    ]
    obeys = not fine.broken(codes)[0]
    held = {name: np.array([before[i]] + [other[i]] * 30, dtype=object) for i, name in enumerate(columns)}
    found, unmapped = counted(held, columns, rules, list(columns))
    assert unmapped == ()
    assert found.get(after, 0) == (31 if after == tuple(other) else 1)
    assert sum(found.values()) == 31
    if obeys and after != tuple(other):
        assert found[tuple(other)] == 30


def test_a_neighbour_stays_a_neighbour() -> None:
    """Without one row the mended table lacks the image of that row, and is the same else: what the guarantee stands on."""
    columns = {"x": SMALL, "y": SMALL, "s": STATUS}
    drawn = np.random.default_rng(3)
    held = {"x": drawn.integers(0, 10, 40), "y": drawn.integers(0, 10, 40), "s": np.array(list("abc"))[drawn.integers(0, 3, 40)]}
    rules = ["x <= y", "x < 4 => s = 'b'", "y = 9 => s = 'c'"]
    whole, _ = counted(held, columns, rules, list(columns))
    for left_out in range(0, 40, 13):
        less, _ = counted({name: np.delete(values, left_out) for name, values in held.items()}, columns, rules, list(columns))
        assert sum(abs(whole.get(key, 0) - less.get(key, 0)) for key in whole | less) == 1


def test_what_no_map_mends_is_said_and_not_drawn() -> None:
    columns = {"x": cl.Integer(0, 5), "y": cl.Integer(0, 5)}
    held = {"x": [1, 2, 3, 3] * 100, "y": [1, 4, 5, 3] * 100}
    model = cl.synth.fit_frame(held, columns, epsilon=5, rules=["x != y"], random=Random.deterministic(1))
    assert model.unmapped == ("x != y",)
    assert "not of the rows that were counted" in str(model)
    made = model.sample(20_000, random=Random.deterministic(2))
    assert not (np.asarray(made["x"]) == np.asarray(made["y"])).any()


@pytest.mark.parametrize("rules", [["x >= 4"], ["x >= 4", "y = 2"], ["x <= 5 AND y >= x"]])
@pytest.mark.parametrize("method", ["pairs", "histogram"])
def test_rules_about_single_columns_leave_cells_empty_and_the_model_measures_them(rules: list[str], method: Any) -> None:
    """The map of the rows says in advance that no row is there; a table of all values is fitted all the same."""
    table = cl.PrivateTable({"x": [1, 5, 3] * 50, "y": [4, 4, 4] * 50}, {"x": SMALL, "y": SMALL})
    with cl.Session({"t": table}, budget=cl.PureDP(9), random=Random.deterministic(1)) as session:
        made = cl.synth.fit(session, "t", spend=9, rules=rules, method=method).sample(200, random=Random.deterministic(2))
    x, y = np.asarray(made["x"]), np.asarray(made["y"])
    assert {"x >= 4": x >= 4, "y = 2": y == 2, "x <= 5 AND y >= x": (x <= 5) & (y >= x)}[rules[-1]].all()
    assert rules[0] != "x >= 4" or (x >= 4).all()


def test_a_fit_through_a_view_of_some_rows_keeps_every_value() -> None:
    table = cl.PrivateTable({"x": [1, 5, 3] * 50, "y": [4, 4, 4] * 50}, {"x": SMALL, "y": SMALL})
    with cl.Session({"t": table}, budget=cl.PureDP(9), random=Random.deterministic(1)) as session:
        model = cl.synth.fit(session.on_behalf("ana", rows={"t": "x >= 3"}), "t", spend=9)
    assert (np.asarray(model.sample(200, random=Random.deterministic(2))["x"]) >= 3).mean() > 0.9


@pytest.mark.parametrize("rule", ["x + y = z", "x != y"])
def test_a_rule_that_some_rows_break_after_the_map_is_named(rule: str) -> None:
    columns = {"x": SMALL, "y": SMALL, "z": SMALL}
    _, unmapped = counted({name: np.array([9, 1]) for name in columns}, columns, [rule, "x <= z"], list(columns))
    assert unmapped == (rule,)


def test_the_cost_is_that_of_the_table_and_an_interruption_loses_nothing() -> None:
    columns = {"x": SMALL, "y": SMALL}
    table = cl.PrivateTable({"x": [1, 5, 3] * 50, "y": [4, 4, 4] * 50}, columns)
    with cl.Session({"t": table}, budget=cl.PureDP(1)) as session:
        one = cl.synth.fit(session, "t", spend="0.5", rules=["x <= y"])
        again = cl.synth.fit(session, "t", spend="0.5", rules=["x <= y"])
        assert session.spent == one.cost == cl.PureDP("0.5")
    assert one.to_json() == again.to_json()


@by_day_and_night("many", 500, 5000)
def test_functional_dependence_and_computed_columns(many: int) -> None:
    """A column that follows from others, in the house's SQL: a group of ages, the year of a date."""
    columns = {
        "age": cl.Integer(0, 99),
        "group": cl.Category(["child", "adult", "old"]),
        "born": cl.Date("1920-01-01", "2019-12-31"),
        "year": cl.Integer(1920, 2019),
        "double": cl.Real(0, 200, step="0.5"),
    }
    rules = [
        "\"group\" = CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END",
        "year = EXTRACT(YEAR FROM born)",
        "double = age + age",
    ]
    drawn = np.random.default_rng(2)
    age, born = drawn.integers(0, 100, 500), drawn.integers(-18262, 18000, 500)
    days = [datetime.date(1970, 1, 1) + datetime.timedelta(days=int(day)) for day in born]
    held = {
        "age": age,
        "group": ["child" if each < 18 else "adult" if each < 65 else "old" for each in age],
        "born": days,
        "year": [day.year for day in days],
        "double": age * 2.0,
    }
    model = cl.synth.fit_frame(held, columns, epsilon=1, rules=rules, random=Random.deterministic(1))
    for given in ({}, {"group": "old"}, {"year": (1950, 1960)}):
        for years, group, born_, year, double in model.sample(many, given=given, random=Random.deterministic(2)):
            assert group == ("child" if years < 18 else "adult" if years < 65 else "old")
            assert year == born_.year
            assert double == 2 * years


# refusals

REFUSED: list[tuple[Any, str]] = [
    ("birth <= admission", "is a list of texts"),
    ([""], "is a text"),
    (["   "], "is a text"),
    ([None], "is a text"),
    (["age"], "is not supported"),
    (["1 = 1"], "reads no column"),
    (["TRUE"], "reads no column"),
    (["height > 3"], "'height' is unknown"),
    (["birth <= marital"], "it is date and 'marital' is category"),
    (["birth <= 5"], "is compared with a day"),
    (["age <= 'old'"], "not a number"),
    (["marital = 'maried'"], "declares no value 'maried'"),
    (["age < 15 => marital IN ('never married', 'sinlge')"], "declares no value 'sinlge'"),
    (["age < 15 => marital = 'widowed' => age > 3"], "can't be read"),
    (["=> age > 3"], "can't be read"),
    (["age > 3 =>"], "can't be read"),
    (["age > 3 -- and more"], "can't be read"),
    (["age > 3; DROP TABLE people"], "can't be read"),
    (["age > 3) OR (1 = 1"], "can't be read"),
    (["age > 3) GROUP BY age --"], "can't be read"),
    (["age IN (SELECT age FROM frame)"], "reads people's rows"),
    (["SELECT age FROM frame"], "can't be read|is not supported"),
    (["COUNT(*) > 3"], "is not supported"),
    (["age > 3 UNION SELECT 1"], "can't be read|is not supported"),
    (["age > " + "(" * 400 + "3" + ")" * 400], "deep|can't be read"),
    (["age > 3" + " OR age > 3" * 500], "longer than 1,000"),
    (["age > 120"], "no values that the columns declare obey it"),
    (["missing(age)"], "no values that the columns declare obey it"),
    (["birth > admission", "admission > birth"], "contradicts 'birth > admission'"),
    (["age < 15 => boys = 0", "age < 20", "age < 15", "boys > 0"], "found that obey it and the rules before it"),
    (["age > 3"] * 3 + [f"age > {n / 100}" for n in range(101)], "more than 100"),
]


@pytest.mark.parametrize(("rules", "why"), REFUSED, ids=[str(rules)[:40] for rules, _ in REFUSED])
def test_what_is_no_rule_is_refused_before_anything_is_spent(rules: Any, why: str) -> None:
    table = cl.PrivateTable({name: [] for name in COLUMNS}, COLUMNS)
    with cl.Session({"frame": table}, budget=cl.PureDP(1)) as session:
        with pytest.raises(cl.CloisterError, match=why):
            cl.synth.fit(session, "frame", spend=1, rules=rules)
        assert str(session.spent) == "ε = 0"


def test_rules_that_hardly_a_row_obeys_are_refused_by_name() -> None:
    """The model is kept; rows are refused, with the rule."""
    columns = {"x": cl.Integer(0, 9), "y": cl.Integer(0, 9)}
    held = {"x": [0] * 500, "y": [0] * 500}
    model = cl.synth.fit_frame(held, columns, epsilon=50, rules=["x != y"], method="independent", random=Random.deterministic(1))
    assert model.acceptance < 0.01
    with pytest.raises(cl.InvalidParameter, match="at least 1% has to; 'x != y' is broken most"):
        model.sample(100, random=Random.deterministic(1))
    assert len(model.sample(0)) == 0


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("x <= y", lambda x, y: x <= y),
        ("x < y < 5", lambda x, y: x < y < 5),
        ("x <= 3 => y >= 5", lambda x, y: x > 3 or y >= 5),
        ("x = 1 OR y = 2", lambda x, y: x == 1 or y == 2),
        ("NOT (x < 4 AND y > 6)", lambda x, y: not (x < 4 and y > 6)),
        ("x + y <= 9", lambda x, y: x + y <= 9),
        ("x - y = 2", lambda x, y: x - y == 2),
        ("CASE WHEN x < 5 THEN 1 ELSE 2 END = y", lambda x, y: y == (1 if x < 5 else 2)),
        ("x BETWEEN 2 AND 4 => y IN (1, 2)", lambda x, y: not 2 <= x <= 4 or y in (1, 2)),
        ("(x > y) => (x > 5)", lambda x, y: x <= y or x > 5),
    ],
)
def test_a_text_means_what_it_says(text: str, meaning: Callable[[int, int], bool]) -> None:
    states = states_of({"x": cl.Integer(0, 9), "y": cl.Integer(0, 9)}, None, table="t")
    x, y = (each.ravel() for each in np.meshgrid(np.arange(10), np.arange(10)))
    broken = Rules.of([text], states, table="t").broken([x, y])
    assert broken.tolist() == [not meaning(int(a), int(b)) for a, b in zip(x, y, strict=True)]


ONE = [  # however it is written
    ["came <= left", "left >= came", "NOT (left < came)", "NOT came > left", "left - came >= 0", "came - left <= 0",
     "0 <= left - came", "came < left OR came = left", "came < left OR left - came = 0", "left - came > -0.5",
     "NOT (left - came < 0)", "NOT (came >= left AND left != came)", "NOT NOT left + 1 >= came + 1"],
    ["left - came BETWEEN 0 AND 60", "NOT (left - came NOT BETWEEN 0 AND 60)", "0 <= left - came <= 60",
     "NOT (left < came OR left - 60 > came)", "came <= left AND left - 60 <= came",
     "NOT (came - left > 0) AND came - left > -61"],
    ["came < left", "came <= left AND came != left", "left - came > 0", "left - came >= 1", "NOT (came >= left)"],
    ["came = left", "came <= left AND came >= left", "NOT (came < left OR came > left)", "NOT came != left"],
]  # fmt: skip


@pytest.mark.parametrize("texts", ONE, ids=lambda texts: texts[0])
@pytest.mark.parametrize("kind", ["number", "day"])
def test_what_is_written_otherwise_is_the_same_rule(texts: list[str], kind: str) -> None:
    domain = cl.Integer(0, 999) if kind == "number" else cl.Date("2015-01-01", "2024-12-31")
    columns: dict[str, Any] = {"came": domain, "left": domain}
    ruled = [Rules.of([text], states_of(columns, None, table="t"), table="t") for text in texts]
    forms = [json.dumps(sorted(json.dumps(rule.condition.describe()) for rule in each.rules)) for each in ruled]
    assert forms == forms[:1] * len(texts)
    assert [list(each.differences) for each in ruled] == [list(ruled[0].differences)] * len(texts)
    assert [each.texts for each in ruled] == [(text,) for text in texts]  # as it was written
    assert all(rule.map for each in ruled for rule in each.rules)


@pytest.mark.parametrize(
    "text",
    [
        *(text.replace("came", "x").replace("left", "y").replace("60", "3") for texts in ONE for text in texts),
        "x > y => y > 7",
        "NOT (x < 4 AND NOT (y > 6 OR x IN (1, y0) OR missing(y)))".replace("y0", "2"),
        "x NOT BETWEEN 2 AND 4 => y NOT IN (1, 2)",
        "missing(x) != missing(y)",
        "x < y OR y = 3 OR x = y",
        "x < y AND x > y OR x = 1",
        "x < y OR x >= y",
    ],
)
def test_the_form_of_a_rule_says_what_its_text_says_with_missing_values_too(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """True, false and open, for all pairs of values."""
    domains = {"x": cl.Integer(0, 9, nullable=True), "y": cl.Integer(0, 9, nullable=True)}
    x, y = (each.ravel() for each in np.meshgrid(*(np.append(np.arange(10), each.null_code) for each in domains.values())))

    def said() -> list[Any]:
        found = [truth(rule.condition, rule.scope({"x": x, "y": y})) for rule in read(text, "t", domains)]
        wrong = np.any([np.broadcast_to(~each.values.astype(bool) & ~each.null, x.shape) for each in found], axis=0)
        open_ = np.any([np.broadcast_to(each.null, x.shape) for each in found], axis=0)
        return [None if each else not no for each, no in zip(open_ & ~wrong, wrong, strict=True)]

    normal = said()
    monkeypatch.setattr("cloister.synth.rule_texts._normal", lambda condition, *_: condition)
    assert normal == said()


def test_empty_cells_are_those_of_which_no_values_obey() -> None:
    """By trying all values of all bins."""
    columns = {"x": cl.Integer(0, 199), "y": cl.Integer(0, 149, nullable=True)}
    ruled = Rules.of(["x <= y", "x < 30 => y < 100"], states_of(columns, None, table="t"), table="t")
    [((_, _), empty)] = ruled.zeros.items()
    x, y = (each.ravel() for each in np.meshgrid(np.arange(200), np.arange(151), indexing="ij"))
    obeyed = ~ruled.broken([x, y])
    one, other = (np.searchsorted(each.starts, codes, side="right") - 1 for each, codes in zip(ruled.states, (x, y), strict=True))
    some = np.zeros_like(empty)
    some[one[obeyed], other[obeyed]] = True
    np.testing.assert_array_equal(empty, ~some)


# sums and differences

STAYS = {
    "came": cl.Date("2015-01-01", "2024-12-31"),
    "left": cl.Date("2015-01-01", "2024-12-31"),
    "days": cl.Integer(0, 60),
    "ward": cl.Category(["a", "b", "c", "d"]),
}
WITHOUT_DAYS = ["came", "left", "ward"]


@cache
def stays(n: int = 4000) -> dict[str, Any]:
    """Stays of 4.5 days in the mean, which depend on the ward; the declared days are in bins of five weeks."""
    drawn = np.random.default_rng(5)
    came, ward = drawn.integers(0, 3500, n), drawn.integers(0, 4, n)
    days = np.minimum(drawn.geometric(1 / np.array([3, 4, 5, 6])[ward]), 60)
    first = np.datetime64("2015-01-01")
    held = {"came": first + came, "left": first + came + days, "days": days, "ward": np.array(list("abcd"))[ward]}
    return {name: each.tolist() for name, each in held.items()}


def of_stays(names: list[str], rules: list[str], seed: int, **how: Any) -> SyntheticModel:
    held = stays()
    return cl.synth.fit_frame(
        {name: held[name] for name in names},
        {name: STAYS[name] for name in names},
        **{"epsilon": 1, "method": "pairs", **how},
        rules=rules,
        random=Random.deterministic(seed),
    )


def lengths(made: dict[str, Any]) -> Any:
    return np.array([(left - came).days for came, left in zip(made["came"], made["left"], strict=True)])


@cache
def codes_of_stays() -> dict[str, Any]:
    return {name: np.array([*map(STAYS[name].encode, values)]) for name, values in stays().items()}


def away(model: SyntheticModel, made: dict[str, Any]) -> dict[tuple[str, str], float]:
    """The total variation of each pair of columns, in the bins of the model."""
    found = dict[tuple[str, str], float]()
    codes = [codes_of_stays(), {each.name: np.array([*map(each.domain.encode, made[each.name])]) for each in model.columns}]
    states = {each.name: [each.placed(table[each.name]) for table in codes] for each in model.columns}
    for one, other in combinations(model.columns, 2):
        pairs = [
            np.bincount(first * other.number + second, minlength=one.number * other.number) / len(first)
            for first, second in zip(states[one.name], states[other.name], strict=True)
        ]
        found[one.name, other.name] = float(np.abs(pairs[0] - pairs[1]).sum() / 2)
    return found


@pytest.mark.parametrize("rules", [["left - came = days"], ["came <= left"]], ids=str)
def test_pairs_of_columns_are_no_worse_for_rules_and_a_difference_is_kept(rules: list[str]) -> None:
    """No pair is off by more than .05 beyond what it is without rules, in the mean of two models, and stays keep their length."""
    names = list(STAYS) if "days" in rules[0] else WITHOUT_DAYS
    apart: dict[bool, list[dict[tuple[str, str], float]]] = {True: [], False: []}
    for ruled in (True, False):
        for seed in (1, 2):
            model = of_stays(names, rules if ruled else [], seed)
            made = model.sample(8000, random=Random.deterministic(seed)).to_pydict()
            apart[ruled].append(away(model, made))
            if ruled:
                assert lengths(made).mean() == pytest.approx(np.mean(stays()["days"]), abs=1.5)
                assert (lengths(made) >= 0).all()
                assert "days" not in made or (lengths(made) == made["days"]).all()
                assert model.acceptance > 0.9
    for pair in apart[True][0]:
        with_rules, without = (np.mean([each[pair] for each in apart[ruled]]) for ruled in (True, False))
        assert with_rules < without + 0.05, pair


@pytest.mark.parametrize("kind", ["number", "day"])
@pytest.mark.parametrize(
    "text",
    ["NOT (left < came)", "left - came >= 0", "came - left <= 0", "left - came BETWEEN 0 AND 60", "came < left OR came = left"],
)
def test_a_difference_is_kept_however_the_order_is_written(text: str, kind: str) -> None:
    held, columns = {name: stays()[name] for name in ("came", "left")}, {name: STAYS[name] for name in ("came", "left")}
    if kind == "number":
        codes = codes_of_stays()
        columns = {name: cl.Integer(STAYS[name].low_code, STAYS[name].high_code) for name in columns}
        held = {name: codes[name] for name in columns}
    model = cl.synth.fit_frame(held, columns, epsilon=2, method="independent", rules=[text], random=Random.deterministic(3))
    assert model.unmapped == ()
    assert model.report().unfitted == ()
    codes_ = model.codes(4000, {}, Random.deterministic(4))
    assert (codes_[1] >= codes_[0]).all()
    assert np.mean(codes_[1] - codes_[0]) == pytest.approx(4.5, abs=1.5)


@pytest.mark.parametrize(
    "text", ["left - came = days", "days = left - came", "came + days = left", "left - days = came", "left - came - days = 0"]
)
def test_the_same_column_follows_whichever_way_a_sum_is_written(text: str) -> None:
    columns = {"came": cl.Integer(0, 3650), "left": cl.Integer(0, 3650), "days": cl.Integer(0, 60)}
    [rule] = Rules.of([text], states_of(columns, None, table="t"), table="t").rules
    assert next(name for name, _, _ in rule.followers({"came": 36.0, "left": 36.0, "days": 0.0})) == "left"
    assert next(name for name, _, _ in rule.followers({"came": 40.0, "left": 36.0, "days": 0.0})) == "came"


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (["x <= y"], {"y - x": (0, 999)}),
        (["y > x"], {"y - x": (1, 999)}),
        (["y - x >= 3"], {"y - x": (3, 999)}),
        (["x <= y + 5"], {"y - x": (-5, 999)}),
        (["x <= y <= z"], {"y - x": (0, 999), "z - y": (0, 499)}),
        (["r < s"], {"s - r": (1, 1000)}),
        (["NOT (y < x)"], {"y - x": (0, 999)}),
        (["x < y OR x = y"], {"y - x": (0, 999)}),
        (["y - x BETWEEN 3 AND 60"], {"y - x": (3, 999), "x - y": (-60, 999)}),
        (["s - r >= 1.5"], {"s - r": (3, 1000)}),
        (["x <= y", "y - x = z"], {}),  # a column holds it
        (["a <= b"], {}),  # each value is a state, and the fit knows which pairs there are
        (["x <= 7", "x != y", "x < 3 => x <= y"], {}),
        (["m <= n"], {}),  # both may be missing
        (["x <= m"], {"m - x": (0, 999)}),
    ],
    ids=str,
)
def test_which_differences_are_fitted_follows_from_declarations(rules: list[str], found: dict[str, tuple[int, int]]) -> None:
    some, wide = cl.Integer(0, 999, nullable=True), cl.Integer(0, 999)
    columns = {
        "x": wide, "y": wide, "z": cl.Integer(0, 499), "a": SMALL, "b": SMALL, "m": some, "n": some,
        "r": cl.Real(0, 500, step="0.5"), "s": cl.Real(0, 500, step="0.5"),
    }  # fmt: skip
    differences = Rules.of(rules, states_of(columns, None, table="t"), table="t").differences
    assert {name: (states.domain.low_code, states.domain.high_code) for name, (_, states) in differences.items()} == found
    assert all(states.number <= 40 for _, states in differences.values())


def test_a_neighbour_stays_a_neighbour_with_a_difference() -> None:
    """One row more is one row more in the counts of the difference."""
    columns = {"x": cl.Integer(0, 999), "y": cl.Integer(0, 999)}
    drawn = np.random.default_rng(3)
    held = {"x": drawn.integers(0, 1000, 40), "y": drawn.integers(0, 1000, 40)}

    def table_of(rows: dict[str, Any]) -> Any:
        table = cl.PrivateTable(rows, columns)
        with cl.Session({"t": table}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as session:
            ruled = Rules.of(["x <= y"], states_of(columns, None, table="t"), table="t")
            ruled, source = ruled.with_differences(*ruled.mapped(session, "t", table, 1))
            keys = tuple(each.key for each in ruled.fitted)
            release = session.measure(Question(table=source, by=keys[::2], statistics=(Count(),)), 10**11)
        return {row[:-1]: int(row[-1]) for row in release if row[-1]}

    whole = table_of(held)
    assert sum(whole.values()) == 40
    for left_out in range(0, 40, 13):
        less = table_of({name: np.delete(values, left_out) for name, values in held.items()})
        assert sum(abs(whole.get(key, 0) - less.get(key, 0)) for key in whole | less) == 1


def test_a_difference_of_a_column_that_may_be_missing_is_missing_with_it() -> None:
    columns = {"came": cl.Integer(0, 3000), "left": cl.Integer(0, 3000, nullable=True)}
    drawn = np.random.default_rng(4)
    came, days = drawn.integers(0, 2900, 3000), drawn.integers(0, 9, 3000)
    absent = drawn.random(3000) < 0.3
    left = [None if no else int(each) for no, each in zip(absent, came + days, strict=True)]
    model = cl.synth.fit_frame(
        {"came": came, "left": left}, columns, epsilon=2, rules=["came <= left"], random=Random.deterministic(1)
    )
    for given in ({}, {"left": (1000, 2000)}, {"came": (1000, 2000)}):
        made = list(model.sample(4000, given=given, random=Random.deterministic(2)))
        assert all(end is None or end >= start for start, end in made)
        if "left" not in given:
            assert np.mean([end is None for _, end in made]) == pytest.approx(0.3, abs=0.05)
            assert np.mean([end - start for start, end in made if end is not None]) == pytest.approx(4, abs=2)
    assert {end for _, end in model.sample(200, given={"left": None}, random=Random.deterministic(2))} == {None}


@pytest.fixture(scope="module")
def ordered() -> SyntheticModel:
    return of_stays(WITHOUT_DAYS, ["came <= left"], 3, method="independent")


def test_a_difference_is_shown_to_nobody_and_survives_the_file(ordered: SyntheticModel) -> None:
    assert [each.name for each in ordered.differences] == ["left - came"]
    assert ordered.sample(0).column_names == WITHOUT_DAYS
    back = SyntheticModel.from_json(ordered.to_json())
    one, other = (each.sample(300, random=Random.deterministic(3)).to_pydict() for each in (back, ordered))
    assert one == other
    assert "left - came" not in ordered.answer("SELECT ward, COUNT(*) AS n FROM frame GROUP BY ward").column_names
    told = json.loads(ordered.to_json())
    with pytest.raises(cl.InvalidParameter, match="not a model"):
        SyntheticModel.from_json(json.dumps({**told, "rules": ["came != left"]}))
    with pytest.raises(cl.InvalidParameter, match="don't belong together"):
        SyntheticModel.from_json(json.dumps({**told, "differences": []}))


def test_a_file_without_differences_is_read_and_keeps_its_rules(ordered: SyntheticModel) -> None:
    """As versions before this one wrote it."""
    told = json.loads(ordered.to_json())
    del told["differences"]
    told["probabilities"] = told["probabilities"][:3]
    told["measured"] = [each for each in told["measured"] if max(each["columns"]) < 3]
    made = SyntheticModel.from_json(json.dumps(told)).sample(500, random=Random.deterministic(3)).to_pydict()
    assert (lengths(made) >= 0).all()


@pytest.mark.parametrize("rule", ["NOT (left < came)", "left - came BETWEEN 0 AND 4000", "came < left OR came = left"])
def test_a_file_whose_rule_had_no_difference_is_read_and_drawn_from(ordered: SyntheticModel, rule: str) -> None:
    """As versions wrote it that knew `came <= left` alone."""
    told = json.loads(ordered.to_json())
    told |= {"rules": [rule], "probabilities": told["probabilities"][:3], "measured": None, "unmapped": [rule]}
    del told["differences"]
    back = SyntheticModel.from_json(json.dumps(told))
    assert (back.rules, back.unmapped, back.differences) == ((rule,), (rule,), ())
    assert (lengths(back.sample(300, random=Random.deterministic(3)).to_pydict()) >= 0).all()
    assert back.report().unfitted == (rule,)


def test_a_file_with_a_difference_that_would_not_be_fitted_today_is_read(ordered: SyntheticModel) -> None:
    told = json.loads(ordered.to_json()) | {"rules": ["came <= left AND left <= came"]}
    back = SyntheticModel.from_json(json.dumps(told))
    assert not lengths(back.sample(50, random=Random.deterministic(3)).to_pydict()).any()


def test_models_with_a_difference_are_pooled(ordered: SyntheticModel) -> None:
    made = cl.synth.pooled({"one": ordered, "two": of_stays(WITHOUT_DAYS, ["came <= left"], 4, method="independent")})
    assert (lengths(made.sample(500, random=Random.deterministic(3)).to_pydict()) >= 0).all()
    with pytest.raises(cl.InvalidParameter, match="has the columns came, left"):
        cl.synth.pooled({"one": ordered, "two": of_stays(WITHOUT_DAYS, [], 4, method="independent")})


def test_the_report_has_the_rules_what_they_keep_and_what_they_move(ordered: SyntheticModel) -> None:
    report = ordered.report()
    told = report.to_dict()["rules"]
    assert (told["texts"], told["acceptance"]) == (["came <= left"], ordered.acceptance)
    assert set(told["moved"]) == {"came", "left", "left - came"}
    assert all(0 <= each < 0.1 for each in told["moved"].values())
    assert f"{ordered.acceptance:.1%} of what is drawn can obey the rules" in str(report)
    assert "left - came" in report.to_html()
    free = of_stays(WITHOUT_DAYS, [], 3, method="independent").report()
    assert free.to_dict()["rules"] == {"texts": [], "acceptance": 1.0, "moved": {}, "unfitted": []}
    assert report.unfitted == ()
    assert "may be far from the table's" not in str(report)
    assert "can obey the rules" not in str(free)


@pytest.mark.parametrize(
    "rules", [["came > left => left > '2024-06-01'"], ["ABS(DATEDIFF(left, came)) <= 60", "came <= '2024-12-30'"]]
)
def test_the_report_names_a_rule_whose_difference_is_not_fitted(rules: list[str]) -> None:
    report = of_stays(WITHOUT_DAYS, rules, 3, method="independent").report()
    assert report.unfitted == (rules[0],)
    assert report.to_dict()["rules"]["unfitted"] == [rules[0]]
    assert "differences of columns that these rules compare were not fitted, and may be far from the table's" in str(report)


def test_the_expected_error_counts_what_rules_move() -> None:
    """Two columns that have nothing to do with each other in the rows are ordered by a rule: it moves them far, and that is
    said."""
    drawn = np.random.default_rng(6)
    columns = {"x": SMALL, "y": SMALL}
    held = {"x": drawn.integers(0, 10, 3000), "y": drawn.integers(0, 10, 3000)}
    model = cl.synth.fit_frame(held, columns, epsilon=5, rules=["x + y = 9 OR x = y"], random=Random.deterministic(1))
    [one, *_] = (report := model.report()).expected
    assert one.value is not None
    assert one.value >= np.mean([each for each in report.moved.values() if each is not None])


def test_the_attacks_of_a_comparison_leave_differences_out(ordered: SyntheticModel) -> None:
    """They hold the model against rows, which have none."""
    assert ordered.measured is not None
    known = np.column_stack([np.zeros(50, dtype=np.int64) for _ in WITHOUT_DAYS])
    found = _without_noise(ordered.measured, known)
    assert found.sizes == tuple(each.number for each in ordered.columns)
    assert max(place for kept in found.tables for place in kept) == len(WITHOUT_DAYS) - 1
