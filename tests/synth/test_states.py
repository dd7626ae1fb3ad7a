"""States follow from declarations, and each stands for exactly the values that it says."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.synth.states import MOST_STATES, States, states_of
from tests.synth.conftest import COLUMNS


def test_columns_with_many_values_are_put_into_bins() -> None:
    found = {each.name: each for each in states_of(COLUMNS, None, table="people")}
    assert {name: each.number for name, each in found.items()} == {
        "age": 23, "pay": 101, "sex": 2, "ward": 4, "born": 101, "smoker": 3, "member": 2
    }  # fmt: skip
    assert found["age"].bins is None
    assert found["pay"].words() == "pay: 100 bins and missing"


def test_bins_of_ones_own_are_kept() -> None:
    [found] = states_of(COLUMNS, [cl.Binned("age", [18, 25, 30, 40])], table="people")
    assert found.starts.tolist() == [18, 25, 30, 41]


@pytest.mark.parametrize("name", list(COLUMNS))
def test_the_pieces_of_a_column_are_all_of_its_codes(name: str) -> None:
    [states] = states_of(COLUMNS, [name], table="people")
    pieces, domain = states.pieces, states.domain
    sizes = pieces.sizes(states.number)
    assert sizes.sum() == domain.high_code - domain.low_code + 1 + domain.nullable
    every = np.repeat(np.arange(states.number), sizes.astype(int))
    within = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes.astype(int)])
    codes = pieces.at(every, states.number, within)
    assert codes.tolist() == list(range(domain.low_code, domain.high_code + 1 + domain.nullable))


@pytest.mark.parametrize(
    ("name", "wanted", "values"),
    [
        ("age", 20, [20]),
        ("age", [20, 22, 20], [20, 22]),
        ("age", (38, 99), [38, 39, 40]),
        ("age", range(20, 22), [20, 21]),
        ("pay", [None, 0.5], [0.5, None]),
        ("sex", "M", ["M"]),
        ("ward", {5, None}, [5, None]),
        ("born", ("1950-01-01", "1950-01-02"), [datetime.date(1950, 1, 1), datetime.date(1950, 1, 2)]),
        ("born", "1999-12-31", [datetime.date(1999, 12, 31)]),
        ("smoker", True, [True]),
    ],
)
def test_a_condition_allows_the_values_that_it_names(name: str, wanted: Any, values: list[Any]) -> None:
    [states] = states_of(COLUMNS, [name], table="people")
    pieces = states.given(wanted)
    codes = np.concatenate([np.arange(low, high + 1) for low, high in zip(pieces.low, pieces.high, strict=True)])
    assert states.series(codes).tolist() == values


@pytest.mark.parametrize(
    ("name", "wanted", "why"),
    [
        ("age", 17, "declares no such value"),
        ("age", None, "declares no missing values"),
        ("age", (30, 20), "no value is left"),
        ("age", [], "no value is left"),
        ("age", (1, 2, 3), "least and the largest"),
        ("sex", "X", "declares no such value"),
        ("sex", ("F", "M"), "least and the largest"),
        ("born", "1900-01-01", "declares no such value"),
        ("pay", "much", "declares no such value"),
    ],
)
def test_a_condition_that_cannot_be_met_is_refused(name: str, wanted: Any, why: str) -> None:
    [states] = states_of(COLUMNS, [name], table="people")
    with pytest.raises(cl.InvalidParameter, match=why):
        states.given(wanted)


@pytest.mark.parametrize(
    ("declared", "columns", "error", "why"),
    [
        ({"name": cl.Text()}, None, cl.UnsupportedQuery, "'name' is not supported: it is free text"),
        ({"visit": cl.Identifier()}, None, cl.UnsupportedQuery, "'visit' is not supported: it is free text"),
        (
            lambda: {"town": cl.Category(range(10**5)), "age": cl.Integer(0, 9)},
            None,
            cl.UnsupportedQuery,
            r'QuantileBins\("town"\) in its place',
        ),
        (
            lambda: {"town": cl.Category(range(10**5 + 1)), "age": cl.Integer(0, 9)},
            None,
            cl.UnsupportedQuery,
            r"columns=\['age'\], and in its place",
        ),
        (lambda: {"code": cl.Category(range(10**6))}, None, cl.UnsupportedQuery, "1,000,000 categories, and at most 1,000"),
        ({f"c{i}": cl.Category(range(900)) for i in range(5)}, None, cl.UnsupportedQuery, "4,500 values and bins"),
        ({"n": cl.Integer(-(2**61), 2**61)}, None, cl.UnsupportedQuery, "narrower bounds"),
        ({"age": cl.Integer(0, 9)}, ["aeg"], cl.UnknownColumn, "'aeg' is unknown"),
        ({"age": cl.Integer(0, 9)}, [], cl.InvalidParameter, "at least one"),
        ({"age": cl.Integer(0, 9)}, "age", cl.InvalidParameter, "list of columns"),
        ({"age": cl.Integer(0, 9)}, ["age", "age"], cl.InvalidParameter, "named twice"),
        ({"age": cl.Integer(0, 9)}, [cl.Binned("age", [0, 5])], cl.InvalidParameter, "together all declared ones"),
    ],
)
def test_what_has_no_states_is_refused_by_name(declared: Any, columns: Any, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        states_of(declared() if callable(declared) else declared, columns, table="people")


def test_a_number_with_a_million_values_has_bins() -> None:
    [states] = states_of({"pay": cl.Integer(1, 10**6)}, None, table="people")
    assert states.number == MOST_STATES


def test_a_percentage_has_a_state_for_each_value() -> None:
    numbers = [states_of({"share": cl.Integer(0, high)}, None, table="people")[0].number for high in (100, 101)]
    assert numbers == [101, 51]


def test_reals_come_back_as_the_very_floats_that_are_declared() -> None:
    domain = cl.Real("0.1", "0.7", step="0.1")
    states = States("share", domain)
    codes = np.arange(domain.low_code, domain.high_code + 1)
    assert states.series(codes).tolist() == [domain.decode(int(code)) for code in codes] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]


@pytest.mark.parametrize("name", ["pay", "ward", "born", "smoker", "sex"])
def test_many_rows_have_the_values_that_few_have(name: str) -> None:
    """Where there are more rows than values, each value is made once."""
    [states] = states_of({**COLUMNS, "pay": cl.Real(0, 50, step="0.5", nullable=True)}, [name], table="people")
    codes = np.arange(states.domain.low_code, states.domain.high_code + 1 + states.domain.nullable)
    few = [value for code in codes for value in states.series(np.array([code])).tolist()]
    many = states.series(np.tile(codes, 3))
    assert many.tolist() == few * 3
    assert {type(value) for value in many.tolist()} == {type(value) for value in few}
    assert many.values.dtype == states.series(codes[:1]).values.dtype


def test_quantiles_of_a_long_tail_survive_in_bins_that_double() -> None:
    """A hundred bins of equal width put nine tenths of such numbers into the first; twenty that double keep every quantile."""
    random = Random.deterministic(5)
    one, two = ((random.words(20_000) >> np.uint64(11)) * 2.0**-53 for _ in range(2))
    normal = np.sqrt(-2 * np.log1p(-one)) * np.cos(2 * np.pi * two)
    pay = np.minimum(np.rint(200 * np.exp(1.2 * normal)), 10**6 - 1).astype(np.int64)
    doubling = cl.Binned("pay", [0, *(2**power for power in range(19)), 10**6])
    with cl.Session(
        {"t": cl.PrivateTable({"pay": pay}, {"pay": cl.Integer(0, 10**6)})}, budget=cl.PureDP(2), random=random
    ) as session:
        model = cl.synth.fit(session, "t", spend=1, columns=[doubling])
        equal = cl.synth.fit(session, "t", spend=1)
    shares = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
    true, found, other = (
        np.quantile(each, shares)
        for each in (pay, model.sample(20_000, random=random)["pay"], equal.sample(20_000, random=random)["pay"])
    )
    np.testing.assert_allclose(found, true, rtol=0.2)
    assert abs(other[2] / true[2] - 1) > 5
