"""What every model has from its base: checks that tell nothing, declared bounds and classes."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.pipeline import make_pipeline

from cloister.errors import CloisterError, InvalidParameter, MissingBound
from cloister.learn import LinearRegression, PrivateSearch, cross_validate, fit_and_score
from cloister.learn.frame.base import places_of
from cloister.learn.frame.bounds import Box, box_of, classes_of, interval_of, steps_of
from cloister.learn.frame.catalogue import class_of
from cloister.learn.frame.examples import Threshold
from cloister.learn.frame.reading import number_of
from cloister.learn.frame.scaling import BoundedScaler
from cloister.noise import Random
from cloister.privacy import ApproxDP, PureDP

X = np.array([[0.2], [0.8]] * 50)
Y = np.array([0, 1] * 50)


def model(**further: Any) -> Threshold:
    return Threshold(**{"bounds": (0, 1), "epsilon": 100, "random": Random.deterministic(1), **further})


def test_the_promise_follows_from_the_parameters() -> None:
    assert model(epsilon="0.1").fit(X, Y).guarantee_ == PureDP("0.1")
    assert model(epsilon=1, delta="1e-6").fit(X, Y).guarantee_ == ApproxDP(1, "1e-6")
    assert model(privacy=None).fit(X, Y).guarantee_ is None
    with pytest.raises(InvalidParameter, match='known are "central" and None'):
        model(privacy="local").fit(X, Y)
    with pytest.raises(CloisterError):
        model(epsilon=0).fit(X, Y)


def test_rows_with_missing_values_or_undeclared_classes_count_for_nothing() -> None:
    rows = np.vstack([X, [[np.nan]], [[0.1]], [[0.9]]])
    target = np.concatenate([Y, [0], [5], [np.nan]])
    found = model()._checked(rows, target)
    assert len(found.X) == len(X)
    assert np.asarray(found.y).tolist() == Y.tolist()


def test_values_outside_are_clipped_and_infinities_too() -> None:
    found = model()._checked([[-5.0], [np.inf], [0.5], [-np.inf]], [0, 1, 0, 1])
    assert found.X.ravel().tolist() == [0.0, 1.0, 0.5, 0.0]


@pytest.mark.parametrize("mixed", [["no", "yes", None, np.nan, 3, ["no"]], ["no", "yes", "maybe", "NO", "", "x"]])
def test_a_mixed_target_is_read_value_by_value(mixed: list[Any]) -> None:
    """Whether one person's label is a text or a number must not decide whether there is an error."""
    target = np.empty(6, dtype=object)
    target[:] = mixed
    found = model(classes=["no", "yes"])._checked(np.full((6, 1), 0.5), target)
    assert np.asarray(found.y).tolist() == [0, 1]


def test_the_kind_of_a_target_decides_nothing() -> None:
    """A column turns to objects or texts for the sake of one label: what stands there is read, or counts for nothing."""
    for texts in (np.array(["0", "1"] * 50), np.array(["0", "1"] * 50, dtype=object)):
        assert np.asarray(model()._checked(X, texts).y).tolist() == Y.tolist()
    for target, classes in ((np.array(["a"] * 100), None), (np.array(["a"] * 100, dtype=object), None), (Y, ["no", "yes"])):
        assert len(model(classes=classes)._checked(X, target).X) == 0
    assert model(classes=[False, True]).fit(X, Y.astype(bool)).classes_.tolist() == [False, True]


ODD = [
    10**400,
    -(10**400),
    "secret",
    "1e999",
    "",
    b"x",
    None,
    [1.0],
    {},
    1j,
    Decimal("1e5000"),
    Decimal("sNaN"),
    Fraction(10**400),
]
ODD += [b"\xff", "0\x00", np.ma.masked, np.complex128(1), np.timedelta64(1, "D"), np.datetime64("2026-01-01"), range(2), {1.0}]
ODD += [np.nan, -np.inf, object(), np.array([1.0]), np.longdouble("1e4000"), dt.date(2026, 1, 1), "0.5"]


def shapes_of(rows: list[list[Any]]) -> Iterator[Any]:
    """The same rows in whatever they may come in."""
    yield rows
    yield tuple(map(tuple, rows))
    whole = np.empty((len(rows), len(rows[0])), dtype=object)
    for place, row in enumerate(rows):
        for column, cell in enumerate(row):
            whole[place, column] = cell
    yield whole
    yield list(whole)
    pandas = pytest.importorskip("pandas")
    yield [pandas.Series(list(row), dtype=object) for row in whole]
    if not isinstance(rows[-1][0], np.ma.core.MaskedConstant):
        yield pandas.DataFrame({f"c{column}": pandas.Series(list(whole[:, column])) for column in range(whole.shape[1])})
    yield pandas.DataFrame(
        {f"c{column}": pandas.Series(list(whole[:, column]), dtype=object) for column in range(whole.shape[1])}
    )


@pytest.mark.parametrize("odd", ODD, ids=lambda value: repr(value)[:12])
@pytest.mark.parametrize("twin", [{}, {"privacy": None, "classes": [0, 1]}], ids=["private", "twin"])
def test_one_cell_never_decides_whether_there_is_an_error(odd: Any, twin: dict[str, Any]) -> None:
    """One reading for all arrays: each value is taken, moved to a bound or counted as missing, silently, in X and in y."""
    usual: list[list[Any]] = [[0.2, 1], [0.8, 0], [0.4, 1], [0.9, 0]]
    target: list[Any] = [0, 1, 0, 1]
    strange = [*usual[:3], [odd, 0]]
    expected = number_of(odd)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in shapes_of(strange):
            found = model(**twin)._checked(rows, target)
            assert len(found.X) == (3 if np.isnan(expected) else 4)
            assert np.isnan(expected) or found.X[3, 0] == np.clip(expected, 0, 1)
            assert found.X[:3].tolist() == [[0.2, 1], [0.8, 0], [0.4, 1]]
            scaled = BoundedScaler(bounds=(0, 1), privacy=twin.get("privacy", "central")).fit(rows)
            if "privacy" not in twin:
                assert scaled.transform(rows)[:3].tolist() == found.X[:3].tolist()
        for labels in ([*target[:3], odd], (*target[:3], odd), _objects([*target[:3], odd])):
            taken = model(**twin)._checked(usual, labels)
            assert np.asarray(taken.y).tolist()[:3] == [0, 1, 0]
            alone = isinstance(odd, list) and not isinstance(labels, np.ndarray)  # a list of one label is that label
            assert len(taken.X) == 3 + (alone or isinstance(odd, np.complex128))
            numbers = LinearRegression(bounds=(0, 1), bounds_y=(0, 1), privacy=twin.get("privacy", "central"))
            heard = numbers._checked(usual, labels)
            assert np.asarray(heard.y).tolist()[:3] == [0, 1, 0]
            assert len(heard.X) == (3 if np.isnan(expected) and not alone else 4)


class Lying(Fraction):
    """A number that is none, and says why."""

    def __float__(self) -> float:
        raise ZeroDivisionError("secret")

    def __hash__(self) -> int:
        raise RuntimeError("secret")


def test_no_kind_of_array_is_refused() -> None:
    """numpy makes complex numbers or days of a whole array for one of them: the others are what they were."""
    mixed = np.array([[0.25], [1j], [0.75]])
    assert mixed.dtype.kind == "c"
    assert model()._checked(mixed, np.array([0, 1, 1])).X.tolist() == [[0.25], [0.75]]
    assert model()._checked([[0.25], [0.5], [0.75]], np.array([0, 1j, 1])).X.tolist() == [[0.25], [0.75]]
    days = np.array([[None], [np.datetime64("2026-01-01")]])
    assert len(model()._checked(days, [0, 1]).X) == 0
    assert model()._checked([[0.25], [Lying(1, 2)]], [0, 1]).X.tolist() == [[0.25]]
    assert model()._checked([[0.25], [0.5]], [0, Lying(1, 2)]).X.tolist() == [[0.25]]


def test_nested_labels_are_read_one_by_one() -> None:
    """A list of lists of one label each is a column whatever one of them is, silently."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for odd, left in (([0], 3), (0, 3), (None, 2), ([], 2), ([0, 1], 2)):
            assert len(model()._checked([[0.25], [0.5], [0.75]], [[1], odd, [1]]).X) == left


def test_no_rows_are_as_good_as_some() -> None:
    for rows in ([], [None], [[]], [[], None]):
        assert model(bounds=([0, 0], [1, 1]))._checked(rows, [0] * len(rows)).X.shape == (0, 2)


def _objects(values: list[Any]) -> npt.NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def test_texts_among_numbers_take_nobody_else_along() -> None:
    """numpy makes texts of a whole array for one of them: the others are still the numbers that they spell."""
    rows = np.array([[0.25, 1.0], ["x", 0.5], [0.75, "1e400"]])
    assert rows.dtype.kind == "U"
    assert model()._checked(rows, np.array([0, 1, "y"])).X.tolist() == [[0.25, 1.0]]
    masked = np.ma.masked_array([[0.25], [0.5]], mask=[[False], [True]])
    assert model()._checked(masked, [0, 1]).X.tolist() == [[0.25]]


def test_a_row_of_another_length_counts_for_nothing() -> None:
    for rows in ([[1.0, 0.0], [3.0], [0.5, 0.5]], [[3.0], [1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], None, [0.5, 0.5]]):
        assert model()._checked(rows, [0, 1, 0]).X.tolist() == [[1.0, 0.0], [0.5, 0.5]]
        assert len(model(bounds=([0, 0], [1, 1]))._checked(rows, [0, 1, 0]).X) == 2


def test_a_search_and_its_folds_read_likewise() -> None:
    rows: list[list[Any]] = [[0.2], [0.8]] * 200
    rows[7], target = [10**400], [0, 1] * 200
    labels: list[Any] = [*target[:-1], ["no label"]]
    found = PrivateSearch(Threshold(bounds=(0, 1)), {"at": ["0.5"]}, epsilon=50, method="parts").fit(rows, labels)
    assert found.best_params_ == {"at": "0.5"}
    assert cross_validate(Threshold(bounds=(0, 1), at="0.5"), rows, labels, epsilon=50).total.value > 0.9
    assert fit_and_score(Threshold(bounds=(0, 1), epsilon=50), rows, labels)[1].value > 0.9


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        ([1.0, 2.0], [0, 1]),
        ([[1.0], [2.0]], None),
        ([[1.0], [2.0]], [0]),
        ([[1.0], [2.0]], [[0, 1], [1, 0]]),
        (["secret", 2.0], [0, 1]),
        (np.array([[[1.0], [2.0]], [[3.0], [2.0]]]), [0, 1]),
        ({"secret": 2.0}, [0, 1]),
    ],
)
def test_wrong_shapes_are_refused_without_their_values(rows: Any, target: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        model().fit(rows, target)
    assert "secret" not in str(caught.value)
    assert "2." not in str(caught.value)


def test_a_sparse_matrix_is_refused() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InvalidParameter, match="dense"):
        model().fit(sparse.csr_array(X), Y)


def test_weights_and_other_arguments_are_refused() -> None:
    assert model().fit(X, Y, sample_weight=None).predict(X).tolist() == Y.tolist()
    with pytest.raises(InvalidParameter, match="count as much as their weight"):
        model().fit(X, Y, sample_weight=np.ones(100))
    with pytest.raises(InvalidParameter, match="groups= is invalid"):
        model().fit(X, Y, groups=Y)


def test_models_stand_in_pipelines() -> None:
    pipeline = make_pipeline(BoundedScaler(bounds=(-10, 10)), model())
    holed = np.vstack([X * 20 - 10, [[np.nan]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline.fit(holed, np.append(Y, 0))
    assert pipeline.predict(X * 20 - 10).tolist() == Y.tolist()


def test_the_report_says_what_was_spent() -> None:
    assert model(epsilon="0.5").fit(X, Y).report().splitlines() == ["ε = 0.5", "  counts: ε = 0.5 (100.0%)"]
    assert model(privacy=None).fit(X, Y).report().startswith("NOT PRIVATE")


def test_declared_classes() -> None:
    for wrong in ([], [1], [1, 1], [[1, 2], [3, 4]]):
        with pytest.raises(InvalidParameter, match="two different classes"):
            classes_of(wrong)
    assert places_of(np.array([1.5, np.nan, 2.0]), np.array([2, 1])).tolist() == [-1, -1, 0]


def test_bounds_are_pairs_of_finite_numbers() -> None:
    for wrong in ((1,), "01", (0, np.inf), (np.nan, 1), (2, 1), ([0, 0], [1, 1]), (0, "high"), (-1e300, 1e300)):
        with pytest.raises(InvalidParameter):
            box_of(wrong, features=3)
    with pytest.raises(MissingBound):
        box_of(None, features=3)
    with pytest.raises(InvalidParameter, match="empty"):
        interval_of((3, 3))


def test_steps_stay_within_what_was_declared() -> None:
    wild = np.array([np.nan, np.inf, -np.inf, 5.0, -5.0, 1 + 1e-16, 0.5])
    assert steps_of(wild, bits=20).tolist() == [0, 2**20, -(2**20), 2**20, -(2**20), 2**20, 2**19]


def test_boxes_map_to_unit_and_centre() -> None:
    box = Box(low=np.array([0.1, 5.0]), high=np.array([0.7, 5.0]))
    rows = np.array([[0.1, 5.0], [0.7, 9.0], [1e300, -1e300]])
    assert (box.unit(rows) <= 1).all()
    assert (np.abs(box.centred(rows)) <= 1).all()
    assert box.unit(rows)[:, 1].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("confidence", [95, 1, -1])
@pytest.mark.parametrize("kind", ["GaussianNB", "KMeans", "LinearRegression", "PCA"])
def test_a_confidence_that_is_none_is_refused(kind: str, confidence: int) -> None:
    """`margin(95)` was that of 0.999999999999, in silence."""
    model = class_of(kind)(epsilon=1, bounds=(0, 1), random=Random.deterministic(1))
    if kind == "LinearRegression":
        model.bounds_y = (0, 1)
    model.fit([[0.1, 0.2], [0.9, 0.4]] * 50, None if model.target_kind == "none" else [0, 1] * 50)
    assert model.margin("0.95") is not None
    with pytest.raises(InvalidParameter, match="confidence="):
        model.margin(confidence)
