"""Two tables of one population: keys hold, numbers of rows are the persons' own, and what hangs together stays together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Door
from cloister.synth import RelatedModel, fit_related

MOST = 4
PATIENTS = {"sex": cl.Category(["F", "M"]), "age": cl.Integer(0, 9)}
VISITS = {"ward": cl.Category(["a", "b", "c"]), "cost": cl.Integer(0, 20, nullable=True)}


def rows(n: int = 4000) -> tuple[dict[str, Any], dict[str, Any]]:
    """The old come more often, and to ward c; what a visit costs follows from its ward, and is sometimes not known."""
    drawn = np.random.default_rng(7)
    who, age = np.arange(n), drawn.integers(0, 10, n)
    times = np.where(drawn.random(n) < 0.3, 0, 1 + (age + drawn.integers(0, 4, n)) // 4)
    owner = np.repeat(who, np.minimum(times, MOST))
    ward = np.where(drawn.random(len(owner)) < age[owner] / 10, 2, drawn.integers(0, 2, len(owner)))
    cost = [None if drawn.random() < 0.1 else int(5 * each + drawn.integers(0, 5)) for each in ward]
    people = {"who": who, "sex": np.array(["F", "M"])[drawn.integers(0, 2, n)], "age": age}
    return people, {"who": owner, "ward": np.array(["a", "b", "c"])[ward], "cost": np.array(cost, dtype=object)}


def tables(people: dict[str, Any], visits: dict[str, Any], **how: Any) -> dict[str, cl.PrivateTable]:
    how = {"unit": "who", "population": "patients", **how}
    return {
        "patients": cl.PrivateTable(people, PATIENTS, max_rows=1, **how),
        "visits": cl.PrivateTable(visits, VISITS, max_rows=MOST, **how),
    }


@pytest.fixture(scope="module")
def fitted() -> tuple[RelatedModel, tuple[dict[str, Any], dict[str, Any]]]:
    held = rows()
    with Door(tables(*held), budget=cl.PureDP(20), random=Random.deterministic(3)) as door:
        model = fit_related(door, "patients", "visits", spend=20)
        assert door.spent == cl.PureDP(20) == model.cost
        assert len(door.ledger.charges("patients")) == 1
    return model, held


def test_keys_and_numbers_of_rows_hold(fitted: Any) -> None:
    model, _ = fitted
    made = model.sample(3000, random=Random.deterministic(5))
    patients, visits = made["patients"].to_pydict(), made["visits"].to_pydict()
    assert patients["who"] == list(range(3000))
    assert list(patients) == ["who", "sex", "age"]
    assert list(visits) == ["who", "ward", "cost"]
    times = np.bincount(visits["who"], minlength=3000)
    assert len(times) == 3000
    assert set(times) == {0, 1, 2, 3, 4}
    assert visits["who"] == sorted(visits["who"])


def test_what_hangs_together_stays_together(fitted: Any) -> None:
    """Visits by age, wards by age, costs by ward, missing costs: each within two points or a tenth of what the rows say."""
    model, (people, visits) = fitted
    made = model.sample(20_000, random=Random.deterministic(6))
    drawn = [{name: np.array(column, dtype=object) for name, column in each.to_pydict().items()} for each in made.values()]
    found = []
    for patients, events in ((people, visits), drawn):
        age = np.asarray(patients["age"], dtype=int)
        of = age[np.asarray(events["who"], dtype=int)]
        cost, ward = np.array([-1 if each is None else each for each in events["cost"]]), np.asarray(events["ward"])
        times = np.bincount(np.asarray(events["who"], dtype=int), minlength=len(age))
        found.append(
            [
                *((times[age == each].mean() / 4) for each in (0, 5, 9)),
                *((ward[of == each] == "c").mean() for each in (0, 5, 9)),
                *(cost[(ward == each) & (cost >= 0)].mean() / 20 for each in "abc"),
                (cost < 0).mean(),
                (times == 0).mean(),
            ]
        )
    np.testing.assert_allclose(found[1], found[0], atol=0.03)


def test_noise_follows_the_rows_of_a_person() -> None:
    """A person is one row among persons and four among visits: four times the noise, for the same part of the spend."""
    with Door(tables(*rows(100)), budget=cl.PureDP("0.2"), random=Random.deterministic(3)) as door:
        model = fit_related(door, "patients", "visits", spend="0.2")
    scales = []
    for part in (model.people.measured, model.events.measured):
        assert part is not None
        singles = [each for kept, each in part.tables.items() if len(kept) == 1]  # each takes the same part
        taken = max(0.05, 0.3 / len(singles)) / len(singles)
        scales.append((singles[0].variance / 2) ** 0.5 * taken)
    assert scales[1] / scales[0] == pytest.approx(MOST, rel=0.01)


def test_a_cap_takes_fewer_rows_and_less_noise() -> None:
    held = rows(500)
    with Door(tables(*held), budget=cl.PureDP(20), random=Random.deterministic(3)) as door:
        model = fit_related(door, "patients", "visits", spend=20, rows=1, columns={"visits": ["ward"]})
    assert model.events.rows == pytest.approx(len(set(held[1]["who"])), abs=5 * model.events.rows_error)
    visits = model.sample(400, random=Random.deterministic(1))["visits"].to_pydict()
    assert list(visits) == ["who", "ward"]
    assert len(set(visits["who"])) == len(visits["who"])


def test_both_answer_and_survive_the_file(fitted: Any, tmp_path: Path) -> None:
    model, (people, visits) = fitted
    answer = model.events.answer("SELECT ward, COUNT(*) AS n FROM visits WHERE age = 9 GROUP BY ward", confidence=0.999999)
    exact = [int(((visits["ward"] == ward) & (people["age"][visits["who"]] == 9)).sum()) for ward in "abc"]
    assert all(low <= each <= high for each, low, high in zip(exact, answer.low()["n"], answer.high()["n"], strict=True))
    model.save(tmp_path / "model.json")
    back = RelatedModel.load(tmp_path / "model.json")
    (tmp_path / "model.json").write_bytes("\ufeff".encode() + (tmp_path / "model.json").read_bytes())  # as an editor saves it
    assert str(RelatedModel.load(tmp_path / "model.json")) == str(model)
    one, other = (each.sample(50, random=Random.deterministic(2)) for each in (model, back))
    assert {name: frame.to_pydict() for name, frame in one.items()} == {name: frame.to_pydict() for name, frame in other.items()}
    assert str(back) == str(model)


def stays(n: int = 3000) -> dict[str, Any]:
    """Days that follow one another in a ward that is mostly the one before, written down in no order."""
    drawn = np.random.default_rng(11)
    owner = np.repeat(np.arange(n), 1 + np.arange(n) % MOST)
    place = np.concatenate([np.arange(each) for each in 1 + np.arange(n) % MOST])
    ward = drawn.integers(0, 3, len(owner))
    for row in np.flatnonzero((place > 0) & (drawn.random(len(owner)) < 0.9)):
        ward[row] = ward[row - 1]
    mixed = drawn.permutation(len(owner))
    return {
        "who": owner[mixed],
        "ward": np.array(["a", "b", "c"])[ward[mixed]],
        "day": (20 * place + drawn.integers(0, 9, len(place)))[mixed],
    }


def staying(rows: dict[str, Any]) -> float:
    """How often the next row of a person has the ward of the one before."""
    who, ward, day = (np.asarray(rows[name]) for name in ("who", "ward", "day"))
    order = np.lexsort((day, who))
    follows = who[order][1:] == who[order][:-1]
    return float((ward[order][1:] == ward[order][:-1])[follows].mean())


def test_in_an_order_one_row_leads_to_the_next(tmp_path: Path) -> None:
    """Nine tenths of the wards stay, and one in three of the others by chance: .93; without an order a third."""
    held, columns = stays(), {"ward": VISITS["ward"], "day": cl.Integer(0, 99)}
    how: dict[str, Any] = {"unit": "who", "population": "patients"}
    people = {"who": np.arange(3000), "sex": ["F", "M"] * 1500}
    declared = {
        "patients": cl.PrivateTable(people, {"sex": PATIENTS["sex"]}, max_rows=1, **how),
        "stays": cl.PrivateTable(held, columns, max_rows=MOST, **how),
    }
    with Door(declared, budget=cl.PureDP(60), random=Random.deterministic(3)) as door:
        plain = fit_related(door, "patients", "stays", spend=20)
        model = fit_related(door, "patients", "stays", spend=20, order="day")
        first = fit_related(door, "patients", "stays", spend=20, order="day", rows=1)
    made = model.sample(3000, random=Random.deterministic(5))["stays"].to_pydict()
    assert list(made) == ["who", "ward", "day"]
    assert staying(held) == pytest.approx(0.93, abs=0.02)
    assert staying(made) == pytest.approx(0.93, abs=0.06)
    assert staying(plain.sample(3000, random=Random.deterministic(5))["stays"].to_pydict()) < 0.6
    who, day = np.array(made["who"]), np.array(made["day"])
    assert (np.diff(day)[who[1:] == who[:-1]] >= 0).all()
    days = np.array(first.sample(500, random=Random.deterministic(5))["stays"].to_pydict()["day"])
    assert (days < 20).mean() > 0.95
    model.save(tmp_path / "model.json")
    back = RelatedModel.load(tmp_path / "model.json")
    assert (
        back.sample(50, random=Random.deterministic(2))["stays"].to_pydict()
        == model.sample(50, random=Random.deterministic(2))["stays"].to_pydict()
    )
    with pytest.raises(cl.InvalidParameter, match="no order"):
        RelatedModel.of(plain.people, plain.events, "who", "day")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"people": {}, "events": {}, "unit": "who"}', '{"people": 1}'])
def test_any_other_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(cl.InvalidParameter):
        RelatedModel.load(path)


def test_parts_that_do_not_belong_together_are_refused(fitted: Any) -> None:
    model, _ = fitted
    with pytest.raises(cl.InvalidParameter, match="belong together"):
        RelatedModel.of(model.events, model.people, "who")


@pytest.mark.parametrize("n", [0, 1])
def test_tables_of_nobody_and_of_somebody_who_never_came(n: int) -> None:
    people = {"who": np.arange(n), "sex": ["F"] * n, "age": [3] * n}
    visits: dict[str, Any] = {
        "who": np.array([], dtype=int),
        "ward": np.array([], dtype=object),
        "cost": np.array([], dtype=object),
    }
    with Door(tables(people, visits), budget=cl.PureDP(50), random=Random.deterministic(3)) as door:
        model = fit_related(door, "patients", "visits", spend=50)
    made = model.sample(20, random=Random.deterministic(1))
    assert len(made["patients"]) == 20
    assert set(made["visits"]["who"].tolist()) <= set(range(20))
    assert len(model.sample(0)["visits"]) == 0


@pytest.mark.parametrize("order", [None, "cost"])
def test_a_name_that_both_tables_have_is_drawn_of_one(order: str | None) -> None:
    people, visits = rows(200)
    held = {
        "patients": cl.PrivateTable(people, PATIENTS, unit="who", max_rows=1, population="patients"),
        "visits": cl.PrivateTable(
            {**visits, "sex": ["M"] * len(visits["who"])}, {**VISITS, "sex": PATIENTS["sex"]}, unit="who", max_rows=4,
            population="patients",
        ),
    }  # fmt: skip
    with Door(held, budget=cl.PureDP(100), random=Random.deterministic(3)) as door:
        with pytest.raises(cl.InvalidParameter, match="both tables have a column 'sex'") as refused:
            fit_related(door, "patients", "visits", spend=50, order=order)
        assert "columns={'visits': ['ward', 'cost']}" in str(refused.value)
        assert door.ledger.charges("patients") == []
        model = fit_related(door, "patients", "visits", spend=50, order=order, columns={"visits": ["ward", "cost"]})
        assert fit_related(door, "patients", "visits", spend=50, columns={"patients": ["age"], "visits": ["sex"]})
    made = model.sample(2000, random=Random.deterministic(1))
    assert made["visits"].column_names == ["who", "ward", "cost"]
    assert np.mean(made["patients"]["sex"] == "F") == pytest.approx(np.mean(np.array(people["sex"]) == "F"), abs=0.1)


@pytest.mark.parametrize(
    ("how", "error", "why"),
    [
        ({"people": "visits", "events": "patients"}, cl.InvalidParameter, "may have 4 rows"),
        ({"people": "rows"}, cl.InvalidParameter, "whose row a row is"),
        ({"events": "rows"}, cl.InvalidParameter, "whose row a row is"),
        ({"rows": 0}, cl.InvalidParameter, "rows=0"),
        ({"columns": {"visits": ["height"]}}, cl.UnknownColumn, "height"),
        ({"columns": {"visit": ["ward"]}}, cl.InvalidParameter, "the tables are patients and visits"),
        ({"columns": {"patients": ["who", "sex"]}}, cl.InvalidParameter, "keys are made up"),
        ({"columns": {"visits": ["who"]}}, cl.InvalidParameter, "keys are made up"),
        ({"people": "keys"}, cl.InvalidParameter, "no column beside"),
        ({"order": "age"}, cl.InvalidParameter, "none of the columns that are drawn"),
        ({"events": "nothing"}, cl.UnknownTable, "nothing"),
        ({"events": "others"}, cl.CloisterError, "population"),
        ({"events": "patients"}, cl.InvalidParameter, "the table of people"),
    ],
    ids=str,
)
def test_what_is_not_two_tables_of_one_population_is_refused(how: dict[str, Any], error: Any, why: str) -> None:
    people, visits = rows(50)
    held = tables(people, visits)
    held["rows"] = cl.PrivateTable({"sex": people["sex"]}, {"sex": PATIENTS["sex"]}, population="patients", row_is_person=True)
    held["keys"] = cl.PrivateTable(
        {"who": people["who"]}, {"who": cl.Integer(0, 99)}, unit="who", max_rows=1, population="patients"
    )
    other = {name: column[::-1].copy() for name, column in rows(60)[1].items()}
    held["others"] = cl.PrivateTable(other, VISITS, unit="who", max_rows=2, population="others")
    with Door(held, budget={"patients": cl.PureDP(5), "others": cl.PureDP(5)}) as door:
        with pytest.raises(error, match=why):
            fit_related(door, **{"people": "patients", "events": "visits", "spend": 1, **how})
        assert door.ledger.charges("patients") == []


def test_one_text_is_not_a_list_of_columns() -> None:
    """Its letters were read as columns: "the column 'c' is unknown"."""
    with cl.Session(tables(*rows(8)), budget=cl.PureDP(1)) as session:
        with pytest.raises(cl.CloisterError, match="'visits': it takes a list of columns"):
            fit_related(session, "patients", "visits", spend=1, columns={"visits": "cost"})
        assert session.spent == cl.PureDP(0)


@pytest.mark.parametrize("size", [None, 200])
def test_what_would_buy_noise_alone_is_refused_before_the_charge(size: int | None) -> None:
    """As `cl.synth.fit` refuses it: by the owner's hint of the size, or as no table is that large."""
    with Door(tables(*rows(20), size=size), budget=cl.PureDP(1)) as door:
        with pytest.raises(cl.InvalidParameter, match="noise of"):
            fit_related(door, "patients", "visits", spend="1e-3" if size else "1e-14")
        assert door.spent == cl.PureDP(0)
