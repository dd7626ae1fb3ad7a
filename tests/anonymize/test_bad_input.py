"""What is wrong with a table or an order is refused with its own words: what, why, and what would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from cloister import errors
from cloister.anonymize import Anonymizer, DeltaPresence, Hierarchy, KAnonymity, LDiversity, TCloseness
from tests.tiers import by_day_and_night

PEOPLE: dict[str, list[Any]] = {
    "age": [23, 24, None, 38, 39, 52, 55, 58],
    "town": ["A", "A", "B", "B", "B", "A", "A", "A"],
    "ill": ["flu", "cold", "flu", "cold", "gout", "flu", "gout", "cold"],
}


def refused(table: Any, **how: Any) -> errors.CloisterError:
    given: dict[str, Any] = {"quasi": ["age"], "models": [KAnonymity(2)], "suppression": "0.2", **how}
    with pytest.raises(errors.CloisterError) as caught:
        Anonymizer(**given).fit_transform(table)
    assert caught.value.why
    assert caught.value.instead
    return caught.value


@pytest.mark.parametrize("search", ["optimal", "mondrian"])
def test_a_missing_value_is_a_value_a_reason_to_suppress_or_to_refuse(search: str) -> None:
    def made(missing: str) -> tuple[int, int]:
        anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search=search, suppression="0.2", missing=missing)
        return len(anonymizer.fit_transform(PEOPLE)["age"]), anonymizer.report_.suppressed

    assert sum(made("value")) == sum(made("suppress")) == 8
    assert made("suppress")[1] >= 1
    assert "missing" in str(refused(PEOPLE, missing="refuse", search=search))
    assert "'guess'" in str(refused(PEOPLE, missing="guess", search=search))


def test_a_column_that_is_not_there_is_named_with_those_that_are() -> None:
    error = refused(PEOPLE, quasi=["nose"])
    assert "'nose'" in error.what
    assert "age" in error.instead


def test_a_k_above_the_rows_is_refused_with_their_number() -> None:
    error = refused(PEOPLE, models=[KAnonymity(9)], suppression=0)
    assert "8 rows" in error.why


def test_models_that_cannot_be_met_name_the_column_in_the_way_and_what_would_do() -> None:
    halves = Hierarchy.of({"A": ["A"], "B": ["B"]})
    error = refused(PEOPLE, quasi=["town"], models=[KAnonymity(4)], hierarchies={"town": halves}, suppression=0)
    assert "'town' is in the way" in error.why
    assert "suppression=" in error.instead
    uneven = refused(PEOPLE, quasi=["town"], sensitive=["ill"], models=[LDiversity(4)], suppression=0)
    assert "'ill'" in uneven.why


def test_a_hierarchy_that_misses_a_value_names_it() -> None:
    error = refused(PEOPLE, quasi=["town"], hierarchies={"town": Hierarchy.of({"A": ["*"]})})
    assert "'B'" in error.why
    assert "'B'" in error.instead


def test_several_types_in_a_column_are_refused() -> None:
    assert "age" in str(refused({"age": [1, "1", 2.5, None]}))


def test_a_column_that_stands_there_twice_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([[1, 2], [3, 4]], columns=["age", "age"])
    assert "age" in str(refused(table))
    assert "'age'" in str(refused(PEOPLE, quasi=["age", "age"]))


@by_day_and_night("rows", 200_000, 1_000_000)
def test_a_million_distinct_values_are_cut_into_classes(rows: int) -> None:
    numbers = np.arange(rows, dtype=np.int64)
    anonymizer = Anonymizer(quasi=["number"], models=[KAnonymity(5)], search="mondrian")
    made = anonymizer.fit_transform(pl.DataFrame({"number": numbers}))
    assert made.height == rows
    assert anonymizer.report_.risk.k >= 5
    assert anonymizer.report_.classes > rows // 20


@pytest.mark.parametrize(
    ("low", "high", "inside", "words"),
    [("0", "0.25", 50, "more than 0.25"), ("0.75", "1", 50, "less than 0.75")],
)
def test_presence_that_no_recoding_has_is_refused_before_the_search(low: str, high: str, inside: int, words: str) -> None:
    table = {"age": list(range(100)), "there": [place < inside for place in range(100)]}

    def never(*_: Any) -> bool:
        raise AssertionError("something was searched for")

    model = DeltaPresence(low, high)
    error = refused(table, models=[model], research="there", suppression="0.02", stop=never)
    assert words in error.why
    assert "DeltaPresence" in error.instead
    assert "0.5" in error.instead


def test_presence_that_suppression_can_reach_is_searched_for() -> None:
    table = {"age": [30] * 100, "there": [place < 50 for place in range(100)]}
    Anonymizer(quasi=["age"], models=[DeltaPresence(0, "0.5")], research="there", suppression=0).fit_transform(table)
    enough = {"age": [30] * 50 + [60] * 50, "there": [place < 25 for place in range(50)] + [place < 26 for place in range(50)]}
    flat = {"age": Hierarchy.of({30: ["30"], 60: ["60"]})}
    made = Anonymizer(
        quasi=["age"], models=[DeltaPresence(0, "0.5")], research="there", suppression="0.5", hierarchies=flat
    ).fit_transform(enough)
    assert len(made["age"]) in (25, 50)


def test_settings_of_the_wrong_kind_are_refused_in_words() -> None:
    """They ended in raw errors of a search, of the order of the rows, or of a class; a number of numpy's was refused."""
    table = {"age": [1, 2, 3, 4] * 5, "ill": ["a", "b"] * 10}
    for how in ({"seconds": "ten"}, {"seconds": -1}, {"random": 5}):
        with pytest.raises(errors.InvalidParameter, match=next(iter(how))):
            Anonymizer(quasi=["age"], models=[KAnonymity(2)], **how).fit_transform(table)
    assert len(Anonymizer(quasi=["age"], models=[KAnonymity(2)], seconds="10").fit_transform(table)["age"]) == 20
    with pytest.raises(errors.InvalidParameter, match="hierarchy"):
        TCloseness("0.3", hierarchy=5)  # type: ignore[arg-type]
    k = KAnonymity(np.int64(5))  # type: ignore[arg-type]
    assert (k, type(k.k)) == (KAnonymity(5), int)
