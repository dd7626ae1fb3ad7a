"""Scatters bought at the door: one charge, exact without noise, and whatever the rows, directions that are finite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.compress import DCA, LDA, PCA, RUCA, Scatter
from cloister.compress.drawing import normal
from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import Random
from cloister.privacy import ZCDP, PureDP
from cloister.session import Door
from cloister.tables import Boolean, Category, Date, Integer, PrivateTable, Real, Text

COLUMNS = {
    "ill": Category(["no", "yes"]),
    "sex": Category(["f", "m"]),
    "age": Integer(0, 100),
    "weight": Real(0, 200, step=1),
    "blood": Real(0, 10, step="0.01"),
    "name": Text(),
}
NUMBERS = ["age", "weight", "blood"]


def people(count: int) -> dict[str, list[Any]]:
    ill, sex = np.arange(count) % 2, np.arange(count) // 2 % 2
    drawn = normal(count * 3, Random.deterministic(2)).reshape(count, 3)
    age = np.clip(np.rint(50 + 15 * ill + 10 * drawn[:, 0]), 0, 100)
    weight = np.clip(np.rint(70 + 20 * sex + 5 * ill + 10 * drawn[:, 1]), 0, 200)
    blood = np.clip(np.round(5 + drawn[:, 2], 2), 0, 10)
    return {
        "ill": ["yes" if each else "no" for each in ill],
        "sex": ["m" if each else "f" for each in sex],
        "age": age.astype(int).tolist(),
        "weight": weight.tolist(),
        "blood": blood.tolist(),
        "name": ["x"] * count,
    }


def measured(rows: dict[str, list[Any]], spend: Any, *, budget: Any = None, **how: Any) -> tuple[Scatter, Door]:
    budget = PureDP(spend) if budget is None else budget
    door = Door({"people": PrivateTable(rows, COLUMNS)}, budget=budget, random=Random.deterministic(3))
    with door:
        return Scatter.measure(door, "people", spend=spend, **{"columns": NUMBERS, **how}), door


def scaled(rows: dict[str, list[Any]]) -> Any:
    ends = {"age": 100, "weight": 200, "blood": 10}
    return np.column_stack([np.array(rows[name], dtype=float) / ends[name] * 2 - 1 for name in NUMBERS])


def test_with_hardly_any_noise_they_are_those_of_the_rows() -> None:
    rows = people(2000)
    found, door = measured(rows, 1_000_000, utility="ill", private="sex")
    exact = Scatter.of_rows(scaled(rows), rows["ill"], rows["sex"])
    for name in ("mean", "total", "utility", "private"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=1e-3, atol=0.05)
    assert (found.classes, str(found.cost), str(door.spent)) == (2, "ε = 1000000", "ε = 1000000")
    for made in (PCA(2), LDA(), DCA(2), RUCA(2)):
        noisy = made.fit_scatter(found)
        assert noisy.promise_ == "directions: ε = 1000000; projected rows: none"
        plain = type(made)(**made.get_params()).fit_scatter(exact)
        np.testing.assert_allclose(np.abs((noisy.components_ * plain.components_).sum(axis=1)), 1, atol=1e-3)
        assert noisy.transform(scaled(rows)).shape == (2000, len(noisy.components_))


def test_few_rows_have_the_scatter_of_few_rows() -> None:
    """A scatter is n − 1 times the covariance of a sample, and no n times."""
    rows = people(20)
    found, _ = measured(rows, 1_000_000, utility="ill")
    np.testing.assert_allclose(found.total, Scatter.of_rows(scaled(rows)).total, rtol=1e-2, atol=0.01)


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("budget", [PureDP("0.1"), ZCDP("0.1")])
def test_noise_alone_gives_directions_that_are_finite(count: int, budget: Any) -> None:
    found, _ = measured(people(count), "0.1", budget=budget, utility="ill", private="sex")
    assert np.linalg.eigvalsh(found.total)[0] >= -1e-9
    for made in (PCA(), DCA(2), RUCA(2)):
        assert np.isfinite(made.fit_scatter(found).components_).all()


def test_one_charge_for_all_of_them() -> None:
    for labels in ({}, {"utility": "ill"}, {"private": "sex"}, {"utility": "ill", "private": "sex"}):
        found, door = measured(people(100), "0.5", **labels)
        assert str(door.spent) == str(found.cost) == "ε = 0.5"
        assert [found.utility is not None, found.private is not None] == ["utility" in labels, "private" in labels]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"columns": ["name"]}, "a number or a day with declared bounds"),
        ({"columns": ["ill"]}, "a number or a day with declared bounds"),
        ({"columns": []}, "from 1 to 200 columns"),
        ({"utility": "nobody"}, "nobody"),
        ({"utility": "one"}, "a label has two values or more"),
        ({"utility": "ill", "private": "one"}, "a label has two values or more"),
        ({"utility": "seven"}, "a label has two values or more"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_it_is_charged(how: dict[str, Any], why: str) -> None:
    single = {"one": Category(["x"]), "seven": Integer(7, 7)}
    rows = PrivateTable(people(10) | {"one": ["x"] * 10, "seven": [7] * 10}, COLUMNS | single)
    door = Door({"people": rows}, budget=PureDP(1))
    with door, pytest.raises(CloisterError, match=why):
        Scatter.measure(door, "people", spend=1, **{"columns": NUMBERS, **how})
    assert str(door.spent) == "ε = 0"


def test_days_and_truth_values_are_numbers_as_where_models_learn() -> None:
    first, count = np.datetime64("2026-01-01"), 365
    days = np.arange(count) * 11 % 365
    rows = {"day": (first + days).tolist(), "smoker": (days > 200).tolist(), "ill": ["no", "yes"] * 182 + ["no"]}
    columns = {"day": Date("2026-01-01", "2026-12-31"), "smoker": Boolean(), "ill": Category(["no", "yes"])}
    with Door({"people": PrivateTable(rows, columns)}, budget=PureDP(1_000_000)) as door:
        found = Scatter.measure(door, "people", spend=1_000_000, columns=["day", "smoker"], utility="ill")
    exact = Scatter.of_rows(np.column_stack([days / 182 - 1, (days > 200) * 2.0 - 1]), rows["ill"])
    for name in ("mean", "total", "utility"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=1e-3, atol=0.05)


def test_a_text_is_to_be_declared_a_number() -> None:
    rows = PrivateTable({"name": ["x"]}, {"name": Text()})
    with Door({"people": rows}, budget=PureDP(1)) as door, pytest.raises(InvalidParameter) as refused:
        Scatter.measure(door, "people", spend=1, columns=["name"])
    assert refused.value.instead == '"name": cl.Real(0, 100)'


@pytest.mark.parametrize("utility", ["ill", None])
def test_rows_in_which_something_is_missing_are_left_out_as_where_projections_are_published(utility: str | None) -> None:
    """Those without a label were a class of their own: of two classes LDA had two directions, and what lies within classes had
    theirs in it. Those without a number were in the covariances of the others, or in the number of rows and their means."""
    rows = people(400)
    rows["weight"] = [None if blood > 6 else weight for blood, weight in zip(rows["blood"], rows["weight"], strict=True)]
    rows["ill"] = [None if age > 60 else ill for age, ill in zip(rows["age"], rows["ill"], strict=True)]
    columns = {**COLUMNS, "ill": Category(["no", "yes"], nullable=True)}
    with Door({"people": PrivateTable(rows, columns)}, budget=PureDP(1_000_000)) as door:
        found = Scatter.measure(door, "people", columns=NUMBERS, utility=utility, spend=1_000_000)
    whole = ["weight", *([utility] if utility else [])]
    kept = [place for place in range(400) if all(rows[name][place] is not None for name in whole)]
    exact = Scatter.of_rows(scaled(rows)[kept], [rows[utility][place] for place in kept] if utility else None)
    for name in ("mean", "total", *(["utility"] if utility else [])):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=1e-3, atol=0.1)
    assert found.classes == exact.classes


def test_a_scatter_that_lacks_a_label_is_refused() -> None:
    found, _ = measured(people(100), 1, utility="ill")
    with pytest.raises(InvalidParameter, match="none by the label of private"):
        RUCA().fit_scatter(found)
