"""From declared columns to features: as a table prepares them, for rows to learn from and rows to predict."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from cloister.errors import InvalidParameter, MissingBound, UnknownColumn
from cloister.learn import (
    PCA,
    GaussianNB,
    KMeans,
    LinearDiscriminantAnalysis,
    LinearRegression,
    StandardScaler,
    accuracy,
    fit_and_score_table,
)
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.from_tables import checked_features
from cloister.noise import Random
from cloister.privacy import PureDP
from cloister.session import Door
from cloister.tables import Boolean, Category, Date, Domain, Integer, PrivateTable, Real, Text

COLUMNS: dict[str, Domain] = {
    "age": Integer(17, 90),
    "pay": Real(0, 100, step="0.5"),
    "odd": Real("0.3", "10.3", step=2),
    "sex": Category(["F", "M"]),
    "level": Category([3, 1]),
    "born": Date("1900-01-01", "2026-12-31"),
    "smoker": Boolean(),
    "note": Text(),
}
FEATURES = [name for name in COLUMNS if name != "note"]
VALUES: dict[str, list[Any]] = {
    "age": [30, 5, 200, None, 41],
    "pay": [10.26, -3.0, 1e9, float("nan"), 0.75],
    "odd": [0.3, 1.3, 99.0, float("inf"), 4.0],
    "sex": ["F", "M", "X", None, "M"],
    "level": [1, 3, 7, None, 1],
    "born": [datetime.date(1984, 5, 6), datetime.date(1800, 1, 1), datetime.date(2100, 1, 1), None, datetime.date(1970, 1, 2)],
    "smoker": [True, False, True, None, False],
}


def test_names_and_bounds_follow_from_the_declaration() -> None:
    encoder = Encoder.of(COLUMNS, FEATURES)
    assert encoder.names == ("age", "pay", "odd", "sex=F", "sex=M", "level=3", "level=1", "born", "smoker")
    low, high = encoder.bounds
    assert (low[:5], high[:5]) == ([17.0, 0.0, 0.3, 0.0, 0.0], [90.0, 100.0, 10.3, 1.0, 1.0])
    assert (low[-1], high[-1]) == (0.0, 1.0)


def test_values_are_encoded_as_a_table_prepares_them() -> None:
    """The same rows by both ways: through DuckDB's preparation, and from Python values."""
    encoder = Encoder.of(COLUMNS, FEATURES)
    table = PrivateTable({**VALUES, "note": ["a"] * 5}, columns=COLUMNS)
    with Door({"people": table}, budget=PureDP(1)) as door:
        prepared = encoder.codes(door.prepared("people").rows(FEATURES))
    mine = encoder.transform(VALUES)
    order = [np.lexsort(np.nan_to_num(matrix, nan=-1e9).T) for matrix in (prepared, mine)]
    np.testing.assert_array_equal(prepared[order[0]], mine[order[1]])


def test_arrays_and_lists_are_encoded_alike() -> None:
    encoder = Encoder.of(COLUMNS, ["age", "pay", "odd"])
    numbers = np.concatenate([np.linspace(-50, 150, 401), [np.nan, np.inf, -np.inf, 1e300]])
    by_array = encoder.transform({"age": numbers, "pay": numbers, "odd": numbers})
    by_value = encoder.transform({name: numbers.astype(object) for name in ("age", "pay", "odd")})
    np.testing.assert_array_equal(by_array, by_value)
    whole = np.array([-(2**62), 17, 18, 2**62])
    assert Encoder.of(COLUMNS, ["age"]).transform({"age": whole}).ravel().tolist() == [17, 17, 18, 90]


def test_frames_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    encoder = Encoder.of(COLUMNS, ["age", "sex"])
    wanted = [[30.0, 1.0, 0.0], [90.0, 0.0, 1.0]]
    rows = {"age": [30, 95], "sex": ["F", "M"]}
    assert encoder.transform(pandas.DataFrame(rows)).tolist() == wanted
    assert encoder.transform(polars.DataFrame(rows)).tolist() == wanted


def test_wrong_features_are_refused() -> None:
    for wrong in ([], "age", ["age", "age"]):
        with pytest.raises(InvalidParameter, match="different columns"):
            Encoder.of(COLUMNS, wrong)
    with pytest.raises(UnknownColumn):
        Encoder.of(COLUMNS, ["height"])
    with pytest.raises(MissingBound):
        Encoder.of(COLUMNS, ["note"])
    with pytest.raises(UnknownColumn):
        Encoder.of(COLUMNS, ["age"]).transform({"sex": ["F"]})
    with pytest.raises(InvalidParameter, match="different lengths"):
        Encoder.of(COLUMNS, ["age", "sex"]).transform({"age": [1, 2], "sex": ["F"]})


@pytest.mark.parametrize("features", ["age", None, 5, [["age"]], {"age", "odd"}, [5]], ids=lambda each: type(each).__name__)
def test_what_names_no_columns_is_refused_in_words_before_the_charge(features: Any) -> None:
    table = PrivateTable({"age": [30], "odd": [1], "sex": ["F"]}, {each: COLUMNS[each] for each in ("age", "odd", "sex")})
    with Door({"people": table}, budget=PureDP(1)) as door:
        for learn in (
            lambda: GaussianNB().fit_table(door, "people", features=features, target="sex"),
            lambda: fit_and_score_table(door, GaussianNB(), "people", features=features, target="sex"),
        ):
            with pytest.raises(InvalidParameter, match=r"features=.* is invalid"):
                learn()
        assert door.spent == PureDP(0)
        model = GaussianNB().fit_table(door, "people", features=np.array(["age", "odd"]), target="sex")
        assert model.feature_names_in_.tolist() == ["age", "odd"]


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (GaussianNB(), "level"),
        (LinearDiscriminantAnalysis(), "level"),
        (LinearRegression(), "pay"),
        (KMeans(n_clusters=2, method="engine"), None),
        (PCA(n_components=2, method="moments"), None),
    ],
    ids=["naive Bayes", "discriminant", "line", "k-means", "components"],
)
def test_days_are_summed_by_the_engine_as_their_numbers_are(model: Any, target: str | None) -> None:
    """The same noise, by the test's name: a table with the numbers of the same days, also missing ones, gives the same model."""
    generator = np.random.default_rng(4)
    numbers = [None if n % 9 == 0 else int(day) for n, day in enumerate(generator.integers(-400, 400, 2000))]
    level = generator.integers(0, 2, 2000)
    days = [None if each is None else datetime.date(1970, 1, 1) + datetime.timedelta(days=each) for each in numbers]
    others: dict[str, Domain] = {"pay": Integer(0, 100), "level": Category(["0", "1"])}
    fitted = []
    for values, domain in ((numbers, Integer(-500, 500, nullable=True)), (days, Date("1968-08-19", "1971-05-16", nullable=True))):
        rows = {"day": values, "pay": (20 + 40 * level).tolist(), "level": list(map(str, level))}
        table = PrivateTable(rows, {"day": domain, **others}, size=2000)
        features = ["day"] if target == "pay" else ["day", "pay"]
        with Door({"people": table}, budget=PureDP(10**7), random=Random.deterministic(1)) as door:
            fitted.append(clone(model).fit_table(door, "people", features=features, target=target, spend=10**6, purpose="days"))
    for name, value in fitted[0]._learned_values().items():
        if np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(getattr(fitted[1], name), value, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize(
    ("model", "target"),
    [
        (LinearDiscriminantAnalysis(), "level"),
        (LinearRegression(), "pay"),
        (KMeans(n_clusters=2, method="engine"), None),
    ],
    ids=["discriminant", "line", "k-means"],
)
def test_rows_in_which_something_is_missing_count_for_nothing_in_the_engine(
    model: Any, target: str | None, nullable: bool
) -> None:
    """However the column is declared: a line through y = 2x of whose x four in ten are missing had the slope 1."""
    generator = np.random.default_rng(4)
    age = generator.integers(0, 101, 4000)
    pay, lacks = (2 * age + generator.integers(0, 9, 4000)).tolist(), generator.random(4000) < 0.4
    rows = {"age": [None if no else int(each) for each, no in zip(age, lacks, strict=True)], "pay": pay}
    rows["level"] = [int(each > 60) for each in age]
    whole = {name: [each for each, no in zip(values, lacks, strict=True) if not no] for name, values in rows.items()}
    columns = {"age": Integer(0, 100, nullable=nullable), "pay": Integer(0, 250), "level": Category([0, 1])}
    features, fitted = ["age"] if target == "pay" else ["age", "pay"], []
    for given in (rows, whole):
        with Door(
            {"people": PrivateTable(given, columns, size=4000)}, budget=PureDP(10**9), random=Random.deterministic(1)
        ) as door:
            fitted.append(clone(model).fit_table(door, "people", features=features, target=target, spend=10**8))
    for name, value in fitted[0]._learned_values().items():
        if np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(getattr(fitted[1], name), value, rtol=1e-3, atol=1e-3, err_msg=name)


def test_a_number_is_the_text_that_a_table_reads_it_as() -> None:
    """A model that learnt "1" from a table's whole numbers met the number 1, and took it for missing."""
    values: list[object] = [1, 2.0, True, 0.5, 10**5000, float("inf"), None, "2", []]
    category = Category(["1", "2", "true", "0.5"])
    assert [category.encode(each) for each in values] == [0, 1, 2, 3, None, None, None, 1, None]
    assert Encoder.of({"ward": category}, ["ward"]).transform({"ward": np.array([1, 2])}).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]


def test_a_day_that_pandas_calls_nat_is_missing() -> None:
    pandas = pytest.importorskip("pandas")
    days = pandas.Series(pandas.to_datetime(["1969-12-31", None]))
    found = Encoder.of({"born": Date("1960-01-01", "1970-12-31")}, ["born"]).transform({"born": days})
    np.testing.assert_array_equal(found, [[-1], [np.nan]])


def test_columns_of_arrow_and_one_row_alone_are_encoded_as_lists_are() -> None:
    arrow = pytest.importorskip("pyarrow")
    columns = {"age": Integer(0, 99), "sex": Category(["F", "M"]), "born": Date("1960-01-01", "1970-12-31"), "ill": Boolean()}
    rows = {"age": [30, None], "sex": ["M", None], "born": [datetime.date(1969, 12, 31), None], "ill": [True, False]}
    encoder = Encoder.of(columns, list(columns))
    np.testing.assert_array_equal(encoder.transform(arrow.table(rows)), encoder.transform(rows))
    one = encoder.transform({name: values[0] for name, values in rows.items()})
    np.testing.assert_array_equal(one, encoder.transform(rows)[:1])


@pytest.mark.parametrize(("column", "cell"), [("sex", "X"), ("sex", None), ("age", float("nan")), ("age", "old")])
def test_a_cell_that_is_not_declared_is_refused_by_its_column_where_it_is_predicted(column: str, cell: object) -> None:
    """scikit-learn's words were of NaN in X, which nobody had given, and of other models that take it."""
    pandas = pytest.importorskip("pandas")
    table = PrivateTable(
        {"age": [30, 40] * 50, "sex": ["F", "M"] * 50, "pay": [1, 2] * 50},
        {"age": Integer(17, 90, nullable=True), "sex": COLUMNS["sex"], "pay": Integer(0, 9)},
    )
    with Door({"people": table}, budget=PureDP(9), random=Random.deterministic(1)) as door:
        model = LinearRegression(epsilon=1).fit_table(door, "people", features=["age", "sex"], target="pay", purpose="cells")
    good = {"age": [30, 40], "sex": ["F", "M"]}
    assert model.predict(pandas.DataFrame(good)).shape == (2,)
    with pytest.raises(InvalidParameter, match=f"The column '{column}' is invalid") as refused:
        model.predict(pandas.DataFrame({**good, column: [good[column][0], cell]}))
    assert "nullable=True" not in refused.value.instead  # which would have nothing be a value of it


@pytest.mark.parametrize("kind", ["pandas", "polars", "dict"])
@pytest.mark.parametrize("model", [LinearRegression(epsilon=1), StandardScaler(epsilon=1)], ids=["predicts", "scales"])
def test_a_declared_column_that_rows_lack_is_named_with_all_that_they_need(model: Any, kind: str) -> None:
    """scikit-learn's words were of sex=F and sex=M, which are not columns, and scalers refused the declared columns, too."""
    frames = dict if kind == "dict" else pytest.importorskip(kind).DataFrame
    good: Any = {"age": [30, 40], "sex": ["F", "M"]}
    target = None if model.target_kind == "none" else "pay"
    table = PrivateTable(
        {"age": [30, 40] * 50, "sex": ["F", "M"] * 50, "pay": [1, 2] * 50},
        {"age": COLUMNS["age"], "sex": COLUMNS["sex"], "pay": Integer(0, 9)},
    )
    with Door({"people": table}, budget=PureDP(9), random=Random.deterministic(1)) as door:
        found = clone(model).fit_table(door, "people", features=["age", "sex"], target=target, purpose="lacking")
    say = found.transform if target is None else found.predict
    np.testing.assert_array_equal(say(frames(good)), say(np.array([[30, 1, 0], [40, 0, 1]])))
    for lacking in good:
        rest = {"other" if name == lacking else name: cells for name, cells in good.items()}
        with pytest.raises(UnknownColumn, match=rf"(?s)'{lacking}' is missing.*X = frame\[\['age', 'sex'\]\]"):
            say(frames(rest))
    if target is None:
        assert np.isnan(say(frames({**good, "sex": ["F", None]}))[1]).any()  # what is missing stays so
    if kind == "pandas":
        twice = pytest.importorskip("pandas").concat([frames(good), frames(good)[["age"]]], axis=1)
        with pytest.raises(InvalidParameter, match="The column 'age' is invalid: more than one has this name"):
            say(twice)


def test_a_frame_of_declared_columns_judges_a_model_that_learnt_from_them() -> None:
    """It was refused, with the line X[['age', 'sex=F', 'sex=M']] to write instead, which no such frame answers."""
    pandas = pytest.importorskip("pandas")
    columns = {"age": COLUMNS["age"], "sex": COLUMNS["sex"], "owns": Category(["no", "yes"])}
    rows: Any = {"age": [30, 80] * 200, "sex": ["F", "M"] * 200, "owns": ["no", "yes"] * 200}
    with Door({"people": PrivateTable(rows, columns)}, budget=PureDP(9), random=Random.deterministic(1)) as door:
        model = GaussianNB(epsilon=9).fit_table(door, "people", features=["age", "sex"], target="owns", purpose="judging")
    frame = pandas.DataFrame(rows)
    assert accuracy(model, frame, frame["owns"], epsilon=9, random=Random.deterministic(1)).value > 0.9


def test_a_target_that_is_the_only_feature_is_answered_with_a_list_that_may_be_written() -> None:
    with pytest.raises(InvalidParameter) as caught:
        checked_features(LinearRegression(), ["pay"], "pay")
    assert "features=[]" not in str(caught.value)
