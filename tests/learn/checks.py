"""One suite of checks that every model of the catalogue must pass, as scikit-learn has one for every estimator.

`CHECKS` are functions of a model's name. What differs between models is data: `RECIPES`, the parameters that a method needs, and
`EXPECTED`, scikit-learn's own checks that a private model cannot pass, each with the reason.
"""

from __future__ import annotations

import contextlib
import json
import math
import pickle
import warnings
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from cloister.errors import CloisterError, InvalidParameter
from cloister.learn import fit_and_score_table, load
from cloister.learn.frame.catalogue import METHODS
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ApproxDP, PureDP
from cloister.session import Door
from cloister.tables import Category, Integer, PrivateTable, Real

FEATURES = 3
RECIPES: dict[str, dict[str, Any]] = {
    "KMeans": {"n_clusters": 2},
    "PCA": {"n_components": 2},
    "NeuralClassifier": {"delta": "1e-5"},
    "CategoricalNB": {"categories": [[0, 1], [0, 1], [0, 1]]},
    "MixedNB": {"categories": {2: [0, 1]}},
    # without a hint of how many rows there are, a noisy count says how many bins and rounds there will be
    "DecisionTreeClassifier": {"size": 400},
    "GradientBoostingClassifier": {"size": 400},
    "GradientBoostingRegressor": {"size": 400},
    "RandomForestClassifier": {"size": 400},
}
ANY_WIDTH: dict[str, dict[str, Any]] = {"NeuralClassifier": {"delta": "1e-5"}}
"""What a model needs that learns from any number of features."""
COUNTS = ("PoissonRegressor",)
"""Models whose target is a count."""
FREE = ("BoundedScaler",)
"""Models that read no value, and so cost nothing."""

_NOISE = "the noise of two fits differs"
_ROWS = "how many rows there are is private: none is as good as some"
_VALUES = "whether a value is missing or infinite is a private fact, so it is not refused"
_CLASSES = "the classes are declared as 0 and 1, and those of the check are others"
_WORDS = "scikit-learn's own words show values; ours do not"
EXPECTED: dict[str, str] = {
    "check_estimators_nan_inf": _VALUES,
    "check_estimators_empty_data_messages": _ROWS,
    "check_dtype_object": _WORDS,
    "check_complex_data": "one complex number makes complex numbers of a whole array, so that kind is a private fact",
    "check_supervised_y_no_nan": _VALUES,
    "check_supervised_y_2d": _NOISE,
    "check_fit_idempotent": _NOISE,
    "check_pipeline_consistency": _NOISE,
    "check_transformer_data_not_an_array": _NOISE,
    "check_transformer_general": _NOISE,
    "check_regressor_data_not_an_array": _NOISE,
    "check_classifier_data_not_an_array": _NOISE,
    "check_regressors_int": _NOISE,
    "check_clustering": _NOISE,
    "check_clusterer_compute_labels_predict": _NOISE,
    "check_classifiers_train": _CLASSES,
    "check_classifiers_classes": _CLASSES,
    "check_classifiers_regression_target": _CLASSES,
}

EXPECTED_OF: dict[str, dict[str, str]] = {
    "CategoricalNB": {"check_classifiers_one_label": "its numbers are no declared categories, so its rows count for nothing"}
}


def model_of(name: str, **further: Any) -> Any:
    """A model of that name with all that it needs to be told, and a generator that repeats itself."""
    kind = getattr(import_module(METHODS[name].module), name)
    given = {"bounds": (0, 1), "random": Random.deterministic(7), **RECIPES.get(name, {})}
    if METHODS[name].task == "numbers":
        given["bounds_y"] = (0, 1)
    return kind(**{**given, **further})


def rows_of(name: str, count: int = 400) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any] | None]:
    """Rows within [0, 1]; the last feature is 0 or 1 throughout; the target follows the first."""
    steps = np.arange(count)
    X = np.column_stack([(steps * 0.618034) % 1, (steps * 0.414214) % 1, steps % 2]).astype(np.float64)
    if name == "CategoricalNB":
        X = np.rint(X)
    return X, target_of(name, X)


def target_of(name: str, X: npt.NDArray[np.float64]) -> npt.NDArray[Any] | None:
    """Classes 0 and 1, numbers of [0, 1], or none."""
    task = METHODS[name].task
    if task == "classes":
        return (np.nan_to_num(X[:, 0]) > 0.5).astype(np.int64)
    numbers = np.clip(np.nan_to_num(X[:, 0]), 0, 1) if task == "numbers" else None
    return np.rint(numbers) if name in COUNTS and numbers is not None else numbers


def said(model: Any, X: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """What the model makes of rows."""
    return np.asarray(model.predict(X) if hasattr(model, "predict") else model.transform(X))


def learned(model: Any) -> dict[str, tuple[Any, ...]]:
    """The shape and kind of every learned attribute."""
    return {key: _form(value) for key, value in model._learned_values().items()}


def _form(value: Any) -> tuple[Any, ...]:
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.kind, value.shape)
    if isinstance(value, tuple | list):
        return (type(value).__name__, *(_form(item) for item in value))
    return (type(value).__name__,)


# ── what scikit-learn expects ────────────────────────────────────────────────────────────────────────


def check_parameters(name: str) -> None:
    """`__init__` stores what it is given, as it is; a clone has the same, and nothing that was learnt."""
    model = model_of(name)
    X, y = rows_of(name)
    before = model.get_params(deep=False)
    assert before["bounds"] == (0, 1)
    copy = clone(model.fit(X, y))
    assert not [key for key in vars(copy) if key.endswith("_")]
    assert {key: repr(value) for key, value in copy.get_params(deep=False).items()} == {
        key: repr(value) for key, value in before.items()
    }
    assert model.get_params(deep=False) == before


def check_pickle(name: str) -> None:
    """A fitted model survives a pickle."""
    X, y = rows_of(name)
    model = model_of(name, random=None).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(said(again, X), said(model, X))
    assert again.spent_ == model.spent_


def check_sample_weight(name: str) -> None:
    """Weights are refused, and the refusal says why."""
    X, y = rows_of(name)
    with pytest.raises(InvalidParameter, match="sample_weight is invalid: one person would count as much"):
        model_of(name).fit(X, y, sample_weight=np.ones(len(X)))


def check_feature_names(name: str) -> None:
    """Names of a frame's columns are kept, and other names are refused."""
    pandas = pytest.importorskip("pandas")
    X, y = rows_of(name)
    frame = pandas.DataFrame(X, columns=["age", "pay", "sex"])
    model = model_of(name).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["age", "pay", "sex"]
    assert len(said(model, frame)) == len(frame)
    with pytest.raises(ValueError, match="feature names"):
        said(model, frame.rename(columns={"age": "height"}))
    if hasattr(model, "get_feature_names_out"):
        assert len(model.get_feature_names_out()) == said(model, frame).reshape(len(frame), -1).shape[1] or name == "KMeans"


def check_without_privacy(name: str) -> None:
    """privacy=None passes scikit-learn's whole suite, but for checks that it skips itself."""
    further = ANY_WIDTH.get(name, {})
    kind = getattr(import_module(METHODS[name].module), name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = check_estimator(kind(privacy=None, **further), on_fail=None, on_skip=None)
    failed = {each["check_name"]: str(each["exception"])[:200] for each in outcomes if each["status"] == "failed"}
    assert not failed, failed
    assert sum(each["status"] == "passed" for each in outcomes) > 35


def check_with_privacy(name: str) -> None:
    """With privacy, all of scikit-learn's checks but the listed ones pass."""
    further = dict(ANY_WIDTH.get(name, {}))
    if name == "CategoricalNB":
        further["categories"] = 20
    if METHODS[name].task == "numbers":
        further["bounds_y"] = (0 if name in COUNTS else -500, 500)
    kind = getattr(import_module(METHODS[name].module), name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = check_estimator(
            kind(bounds=(-20, 20), **({} if name in FREE else {"epsilon": 10_000}), **further), on_fail=None, on_skip=None
        )
    failed = {each["check_name"]: str(each["exception"])[:200] for each in outcomes if each["status"] == "failed"}
    unexpected = {check: why for check, why in failed.items() if check not in {**EXPECTED, **EXPECTED_OF.get(name, {})}}
    assert not unexpected, unexpected
    assert sum(each["status"] == "passed" for each in outcomes) > 20


# ── what a promise needs ─────────────────────────────────────────────────────────────────────────────


def check_portable(name: str) -> None:
    """Plain JSON and back: the same model, the same promise; nothing that is not JSON, and no generator."""
    X, y = rows_of(name)
    model = model_of(name).fit(X, y)
    text = model.to_json()
    document = json.loads(text, parse_constant=pytest.fail)
    assert "random" not in document["parameters"]
    again = load(text)
    np.testing.assert_array_equal(said(again, X), said(model, X))
    assert (again.guarantee_, again.spent_, again.marked_) == (model.guarantee_, model.spent_, model.marked_)
    assert again.to_json() == text


def check_bounds_are_declared(name: str) -> None:
    """Without bounds there is no private model, and the refusal says what to write."""
    X, y = rows_of(name)
    with pytest.raises(CloisterError, match="never looked up"):
        model_of(name, bounds=None, **({"categories": None} if "categories" in RECIPES.get(name, {}) else {})).fit(X, y)


def check_spending(name: str) -> None:
    """What was spent sums to at most the whole, in each currency, and every line says on what."""
    X, y = rows_of(name)
    model = model_of(name, **({} if name in FREE else {"epsilon": "0.7"})).fit(X, y)
    if name in FREE:
        assert model.guarantee_ == PureDP(0)
        assert model.spent_ == ()
        return
    promise = ApproxDP("0.7", model.delta) if model.delta else PureDP("0.7")
    assert model.guarantee_ == promise
    assert model.spent_
    assert all(line.what and line.amount > 0 for line in model.spent_)
    assert sum((line.portion for line in model.spent_), Fraction(0)) <= 1
    whole = Allowance(promise, currency=model.spent_[0].currency).size
    assert sum((line.amount for line in model.spent_), Fraction(0)) <= whole
    assert all(line.what in model.report() for line in model.spent_)


def check_marks(name: str) -> None:
    """A generator made for tests marks the model, the system's own does not; one seed gives one model, and noise differs."""
    X, y = rows_of(name)
    seeded = [model_of(name, random=Random.deterministic(seed)).fit(X, y) for seed in (1, 1, 2)]
    assert not model_of(name, random=None).fit(X, y).marked_
    assert _values(seeded[0]) == _values(seeded[1])
    if name not in FREE:
        assert all(model.marked_ for model in seeded)
        assert _values(seeded[0]) != _values(seeded[2])
    plain = model_of(name, privacy=None).fit(X, y)
    assert plain.guarantee_ is None
    assert plain.spent_ == ()
    assert "NOT PRIVATE" in plain.report()


def _values(model: Any) -> str:
    return json.dumps(json.loads(model.to_json())["learned"])


def nasty(name: str) -> Iterator[tuple[str, npt.NDArray[np.float64], npt.NDArray[Any] | None]]:
    """Rows that go wrong elsewhere."""
    X, _ = rows_of(name, 40)
    holed, endless, huge = X.copy(), X.copy(), X * 1e308
    holed[::3, 1] = np.nan
    endless[::4, 0], endless[1::4, 1] = np.inf, -np.inf
    cases = {
        "none": X[:0],
        "one": X[:1],
        "fewer than features": X[:2],
        "constant": np.full_like(X, 0.0),
        "missing": holed,
        "all missing": np.full_like(X, np.nan),
        "endless": endless,
        "huge": huge,
        "far below": -huge,
    }
    for label, rows in cases.items():
        yield label, rows, target_of(name, rows)
    if METHODS[name].task == "classes":
        yield "one class", X, np.zeros(len(X), dtype=np.int64)
        yield "undeclared classes", X, np.arange(len(X)) % 7 - 3
        yield "missing classes", X, np.where(np.arange(len(X)) % 3, 1.0, np.nan)
    if METHODS[name].task == "numbers":
        yield "far targets", X, np.full(len(X), 1e308)
        yield "missing targets", X, np.where(np.arange(len(X)) % 3, np.inf, np.nan)


def check_nasty_input(name: str) -> None:
    """Nothing crashes, nothing warns, what is said is finite, and what is learnt has one form whatever the rows hold."""
    X, y = rows_of(name)
    for epsilon in ("0.001", 1, 1000):
        further = {} if name in FREE else {"epsilon": epsilon}
        form = learned(model_of(name, **further).fit(X, y))
        for label, rows, target in nasty(name):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model = model_of(name, **further).fit(rows, target)
                answers = said(model, X)
            where = f"{label}, ε = {epsilon}"
            assert len(answers) == len(X), where
            assert answers.dtype.kind not in "f" or np.isfinite(answers).all(), where
            assert learned(model) == form, where


def check_refusals_show_no_value(name: str) -> None:
    """A refusal says what is wrong, and never what stands there."""
    X, y = rows_of(name)
    texts = X.astype(object)
    texts[3, 1] = "secret-42"
    assert learned(model_of(name).fit(texts, y)) == learned(model_of(name).fit(X, y)), "a text is a missing value"
    for wrong, target in ((np.full(7, 31337.25), y), (np.full((4, 3, 2), 31337.25), y)):
        with pytest.raises(CloisterError) as caught:
            model_of(name).fit(wrong, target)
        assert "secret" not in str(caught.value)
        assert "31337" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    if y is not None:
        with pytest.raises(CloisterError):
            model_of(name).fit(X, y[:-1])


def _table(name: str, pay: Any = None) -> PrivateTable:
    """The rows as a table: age, pay, sex, and y where there is a target. `pay`: declared as this."""
    X, y = rows_of(name)
    kinds: dict[str, Any] = {"age": Integer(0, 1), "pay": Real(0, 1), "sex": Category(["F", "M"])}
    columns: dict[str, list[Any]] = {
        "age": np.rint(X[:, 0]).astype(int).tolist(),
        "pay": X[:, 1].tolist(),
        "sex": np.where(X[:, 2] > 0, "M", "F").tolist(),
    }
    if name == "CategoricalNB":
        kinds["pay"], columns["pay"] = Integer(0, 1), np.rint(X[:, 1]).astype(int).tolist()
    if y is not None:
        columns["y"] = y.tolist()
        kinds["y"] = Integer(0, 1) if METHODS[name].task == "classes" or name in COUNTS else Real(0, 1)
    return PrivateTable(columns, columns={**kinds, "pay": pay or kinds["pay"]})


PROMISED = ("bounds", "bounds_y", "classes", "random", "categories", "groups")
"""What a table's declaration says in the place of a parameter."""


def check_wrong_parameters(name: str) -> None:
    """Whatever a parameter is: it is refused in words before anything is charged or drawn, or what is learnt is finite."""
    X, y = rows_of(name)
    target, recipe = (
        None if METHODS[name].task not in ("classes", "numbers") else "y",
        {**RECIPES.get(name, {}), "categories": None},
    )
    own = model_of(name).get_params(deep=False)
    with Door({"people": _table(name)}, budget=ApproxDP(10_000, "0.5")) as door:
        for key in sorted(own.keys() - {*PROMISED}):
            for wrong in (-1, math.nan, math.inf, "many", [1]):
                given = {each: value for each, value in recipe.items() if each in own}
                model, before = model_of(name).set_params(**{**given, key: wrong}), door.spent
                try:
                    model.fit_table(door, "people", features=["age", "pay", "sex"], target=target)
                except InvalidParameter:
                    assert door.spent == before, (key, wrong)
                else:
                    answers = said(model, np.zeros((3, len(model.feature_names_in_))))
                    assert answers.dtype.kind not in "f" or np.isfinite(answers).all(), (key, wrong)
                with contextlib.suppress(InvalidParameter):
                    model_of(name, **{**RECIPES.get(name, {}), key: wrong}).fit(X, y)


def check_table(name: str) -> None:
    """Learning from a table of a session: charged once, in full, with the names of the encoded columns."""
    X, y = rows_of(name)
    delta = RECIPES.get(name, {}).get("delta")
    budget = ApproxDP(5, "1e-3") if delta else PureDP(5)
    with Door({"people": _table(name)}, budget=budget) as door:
        given = {key: value for key, value in RECIPES.get(name, {}).items() if key != "categories"}
        model = model_of(name, random=None, **({} if name in FREE else {"epsilon": 2}), **given)
        if "categories" in RECIPES.get(name, {}):
            model.set_params(categories=None)
        model.fit_table(door, "people", features=["age", "pay", "sex"], target=None if y is None else "y")
        spent = door.spent
        if METHODS[name].task in ("classes", "numbers"):
            judged, found = fit_and_score_table(door, clone(model), "people", features=["age", "pay", "sex"], target="y")
            assert judged.guarantee_ == found.guarantee == model.guarantee_
            assert judged.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert not model.marked_
    if name not in FREE:
        assert spent == model.guarantee_ == (ApproxDP(2, delta) if delta else PureDP(2))
    names = model.feature_names_in_.tolist()
    assert names[0] == "age"
    matrix = np.column_stack([X[:, 0] > 0.5, X[:, 1], *([X[:, 2] == 0, X[:, 2] == 1] if len(names) == 4 else [X[:, 2]])])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # an array in the table's order is what it is asked with
        assert len(said(model, matrix.astype(np.float64))) == len(X)
    again = load(model.to_json())
    assert again.guarantee_ == model.guarantee_


def check_out_of_reach(name: str) -> None:
    """A promise or bounds that no noise can be computed for are refused before anything is charged, whatever the rows are."""
    _, y = rows_of(name)
    near, wide = _table(name), _table(name, None if name == "CategoricalNB" else Real(0, "1e75", step="1e70"))
    given = {key: value for key, value in RECIPES.get(name, {}).items() if key != "categories"}
    spends = (ApproxDP("1e-9", "1e-9"), ApproxDP("1e-15", "1e-15"), ApproxDP(100, "1e-40"), PureDP("1e-25"), PureDP("1e-320"))
    for table, spend in [*((near, each) for each in spends), (wide, ApproxDP(1, "1e-6"))]:
        with Door({"people": table}, budget=ApproxDP(1_000, "1e-2")) as door:
            model = model_of(name, random=None, **given)
            if "categories" in RECIPES.get(name, {}):
                model.set_params(categories=None)
            before = door.spent
            if METHODS[name].task in ("classes", "numbers"):
                try:
                    fit_and_score_table(door, model, "people", features=["age", "pay", "sex"], target="y", spend=spend)
                except CloisterError:
                    assert door.spent == before, spend
            before = door.spent
            try:
                model.fit_table(door, "people", features=["age", "pay", "sex"], target=None if y is None else "y", spend=spend)
            except CloisterError:
                assert door.spent == before, spend
            else:
                answers = said(model, np.zeros((3, len(model.feature_names_in_))))
                assert answers.dtype.kind not in "f" or np.isfinite(answers).all(), spend


CHECKS: tuple[Callable[[str], None], ...] = (
    check_parameters,
    check_pickle,
    check_sample_weight,
    check_feature_names,
    check_without_privacy,
    check_with_privacy,
    check_portable,
    check_bounds_are_declared,
    check_spending,
    check_marks,
    check_nasty_input,
    check_refusals_show_no_value,
    check_wrong_parameters,
    check_table,
    check_out_of_reach,
)
