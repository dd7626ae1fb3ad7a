"""Models as plain JSON: everything comes back, and nothing else is let in."""

from __future__ import annotations

import json
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from cloister import Session
from cloister.errors import CloisterError, InvalidParameter
from cloister.learn import GaussianNB, NeuralClassifier
from cloister.learn.frame.portable import from_plain, load, plain, read_guarantee, to_json, write_guarantee
from cloister.learn.frame.scaling import StandardScaler
from cloister.noise import Random
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.session.examples import small_door
from cloister.tables import Date, Integer, PrivateTable


def fitted(**further: Any) -> StandardScaler:
    model = StandardScaler(**{"epsilon": "0.3", "bounds": ([0, -1.5], [1, 2]), "random": Random.deterministic(1), **further})
    return model.fit(np.linspace(0, 1, 200).reshape(100, 2))


@pytest.mark.parametrize("further", [{}, {"delta": "1e-6"}, {"privacy": None}, {"epsilon": Fraction(1, 3)}])
def test_a_model_comes_back_whole(further: dict[str, Any]) -> None:
    model = fitted(**further)
    again = load(model.to_json())
    rows = np.linspace(-1, 2, 20).reshape(10, 2)
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
    assert (again.guarantee_, again.spent_, again.marked_) == (model.guarantee_, model.spent_, model.marked_)
    assert again.random is None
    assert again.to_json() == model.to_json()


@pytest.mark.filterwarnings("error::UserWarning")
def test_names_that_came_from_a_file_ask_for_no_frame() -> None:
    rows = np.linspace(0, 1, 200).reshape(100, 2)
    document = json.loads(fitted().to_json())
    again = load(json.dumps({**document, "features": plain(np.array(["age", "pay"], dtype=object))}))
    assert again.feature_names_in_.tolist() == ["age", "pay"]
    assert again.transform(rows).shape == rows.shape
    for wrong in (rows[:, :1], np.hstack([rows, rows])):
        with pytest.raises(InvalidParameter, match="the model learnt from 2"):
            again.transform(wrong)
    again.fit(rows)  # from here on it is a model of arrays, as any other
    assert not hasattr(again, "feature_names_in_")


def test_declared_columns_are_kept_until_a_model_learns_from_arrays() -> None:
    """A judgement is known by the text that an older version had, which kept none."""
    with small_door() as door:
        model = GaussianNB(epsilon="0.5").fit_table(door, "people", features=["age"], target="sex")
        again = load(model.to_json())
        assert again.declared_ == model.declared_ == [("age", door.declared("people").column("age"))]
    assert again.to_json() == model.to_json()
    assert {*json.loads(model.to_json())} - {*json.loads(to_json(model, declared=False))} == {"columns"}
    frame = polars.DataFrame({"note": ["a"], "age": [30.4]})
    for each in (frame, frame.to_arrow(), frame.to_pandas()):
        assert again.predict_proba(each).tolist() == again.predict_proba([[30.0]]).tolist()
    assert again.predict_proba([[30.0]]).tolist() != again.predict_proba([[30.4]]).tolist()
    again.set_params(bounds=(0, 90), classes=["F", "M"]).fit(frame[["age"]].to_numpy(), ["F"])
    assert "columns" not in json.loads(again.to_json())


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        0.1,
        "text",
        Fraction(22, 7),
        (1, ("a", None)),
        [1, [2.5]],
        {1: "a", "b": (2,)},
        float("inf"),
        np.array([[1.5, np.inf], [-np.inf, 2.0]]),
        np.arange(6).reshape(2, 3),
        np.array([True, False]),
        np.array(["a", "bc"]),
        np.array(["a", "bc"], dtype=object),
        np.empty((0, 3)),
    ],
)
def test_values_survive_strict_json(value: Any) -> None:
    again = from_plain(json.loads(json.dumps(plain(value), allow_nan=False)))
    if isinstance(value, np.ndarray):
        assert again.dtype.kind == value.dtype.kind
        np.testing.assert_array_equal(again, value)
    else:
        assert again == value
        assert type(again) is type(value)


def test_nan_survives() -> None:
    assert np.isnan(from_plain(json.loads(json.dumps(plain(np.array([np.nan])), allow_nan=False)))).all()


@pytest.mark.parametrize("guarantee", [None, PureDP("0.1"), ApproxDP("1/3", "1e-9"), ZCDP("0.01"), ZCDP("0.01", "1e-6")])
def test_promises_survive_exactly(guarantee: Guarantee | None) -> None:
    assert read_guarantee(json.loads(json.dumps(write_guarantee(guarantee)))) == guarantee


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "[]",
        "{}",
        "nonsense",
        '{"format": 2}',
        '{"format": 1, "model": "StandardScaler"}',
        "[" * 100_000,
        '{"format": 1, "model": "builtins.eval", "parameters": {}}',
        '{"format": 1, "model": ["StandardScaler"], "parameters": {}}',
    ],
)
def test_what_this_library_did_not_write_is_refused(broken: str) -> None:
    with pytest.raises(CloisterError, match="is invalid"):
        load(broken)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("parameters", {"epsilon": 1, "strange": 2}),
        ("parameters", {"epsilon": {"fraction": "1/0"}}),
        ("parameters", {"epsilon": {"fraction": "1e999999999"}}),
        ("parameters", {"epsilon": {"call": "os.system"}}),
        ("learned", {}),
        ("learned", {"mean_": {"array": [1], "dtype": "O", "shape": [1]}}),
        ("learned", {"__class__": 1}),
        ("guarantee", {"kind": "none"}),
        ("columns", [["age"]]),
        ("columns", [["age", {"kind": "strange"}]]),
        ("spent", [{"what": "x"}]),
        ("spent", [{"what": "x", "currency": "epsilon", "amount": "1e999999999", "portion": "1"}]),
    ],
)
def test_a_tampered_model_is_refused(key: str, value: Any) -> None:
    document = json.loads(fitted().to_json())
    document[key] = value
    with pytest.raises(CloisterError):
        load(json.dumps(document))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(fitted().to_json(), encoding="utf-8")
    assert load(path).mean_.shape == (2,)
    path.write_text(fitted().to_json(), encoding="utf-8-sig")
    assert load(path).mean_.shape == (2,), "an editor may begin it with a byte order mark"
    with pytest.raises(InvalidParameter, match="a file is given as a Path"):
        load(str(path))
    with pytest.raises(InvalidParameter, match="no file"):
        load(tmp_path / "missing.json")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidParameter):
        load(path)


def test_what_cannot_be_saved_is_refused() -> None:
    for value in (object(), {1, 2}, np.array([object()]), np.array([1j])):
        with pytest.raises(InvalidParameter, match="cannot be saved"):
            plain(value)


@pytest.mark.parametrize("model", [GaussianNB(), NeuralClassifier(steps=2)])
def test_days_are_classes_that_leave_a_session_and_can_be_kept(model: Any) -> None:
    """A network was charged for, and then refused as it left the door: its classes could not be written."""
    rows = {"day": ["2020-01-01", "2020-01-02"] * 20, "age": [20, 60] * 20}
    table = PrivateTable(rows, {"day": Date("2020-01-01", "2020-01-02"), "age": Integer(0, 99)})
    with Session({"people": table}, budget=ApproxDP(9, "1e-5")) as session:
        model.fit_table(session, "people", features=["age"], target="day", spend=ApproxDP(1, "1e-6"))
    again = load(model.to_json())
    assert again.classes_.tolist() == again.classes == [date(2020, 1, 1), date(2020, 1, 2)]
    assert again.predict([[20], [60]]).tolist() == model.predict([[20], [60]]).tolist()
