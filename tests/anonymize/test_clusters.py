"""Microaggregation as a search: groups of k at least, true aggregates, and further models met by joining."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.anonymize import Anonymizer, KAnonymity, LDiversity, TCloseness
from cloister.anonymize.encoded import encode
from cloister.anonymize.frames import Frame, read_frame
from cloister.anonymize.metrics import metric_of
from cloister.anonymize.problem import Problem
from cloister.anonymize.searches.clusters import Clusters
from cloister.errors import InvalidParameter
from cloister.noise import Random

Table = dict[str, list[Any]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    rows = draw(st.integers(6, 50))
    ages = st.one_of(st.none(), st.integers(-5, 40))
    return {
        "age": draw(st.lists(ages, min_size=rows, max_size=rows)),
        "pay": draw(st.lists(st.sampled_from([0.0, 1e300, -1e300, 5.5, float("nan")]), min_size=rows, max_size=rows)),
        "town": draw(st.lists(st.sampled_from(["Ulm", "Bonn", "🏰", None]), min_size=rows, max_size=rows)),
        "ill": draw(st.lists(st.sampled_from("xyz"), min_size=rows, max_size=rows)),
    }


def problem_of(table: Table, models: list[Any], **more: Any) -> Problem:
    """A problem with nothing to suppress."""
    names = list(table)
    return Problem(
        table=encode(read_frame(table), names),
        quasi=tuple(name for name in names if name != "ill"),
        ladders={},
        models=tuple(models),
        metric=metric_of("loss"),
        limit=0,
        sensitive=("ill",) if "ill" in table else (),
        **more,
    )


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(2, 5))
def test_groups_have_k_rows_at_least(table: Table, k: int) -> None:
    recoded = Clusters().find(problem_of(table, [KAnonymity(k)]))
    assert recoded.classes.sizes.min() >= k
    assert recoded.classes.rows == len(table["age"])


@settings(max_examples=40, deadline=None)
@given(tables())
def test_groups_join_until_every_model_holds(table: Table) -> None:
    models = [KAnonymity(2), LDiversity(min(2, len(set(table["ill"])))), TCloseness("0.4")]
    problem = problem_of(table, models)
    recoded = Clusters().find(problem)
    assert problem.satisfied(recoded.classes).all()


def test_means_keep_the_sum() -> None:
    random = Random.deterministic(4)
    ages = [int(each) for each in random.below(80, 300)]
    recoded = Clusters().find(problem_of({"age": ages}, [KAnonymity(5)]))
    column = recoded.columns["age"]
    assert not column.intact
    published = np.array([float(label) for label in column.labels])[column.codes]
    assert abs(published.sum() - sum(ages)) < 0.01
    assert np.abs(published - ages).mean() < 1


def test_aggregates_by_column() -> None:
    table = {"age": [20, 21, 24, 60, 61, 66], "town": ["Ulm", "Ulm", "Bonn", "Kiel", "Kiel", "Kiel"]}

    def of(aggregate: str) -> list[list[str]]:
        asked = Anonymizer(
            quasi=["age", "town"], models=[KAnonymity(3)], search="microaggregation", aggregates=dict.fromkeys(table, aggregate)
        )
        released = asked.fit_transform(table)
        rows = sorted(zip(*(released[name] for name in table), strict=True))
        return [list(dict.fromkeys(each)) for each in zip(*rows, strict=True)]

    assert of("mean") == [["21.6667", "62.3333"], ["Ulm", "Kiel"]]
    assert of("median")[0] == ["21", "61"]
    assert of("range") == [["20–24", "60–66"], ["{Bonn, Ulm}", "Kiel"]]
    assert of("set")[0] == ["{20, 21, 24}", "{60, 61, 66}"]
    assert of("mode")[0] == ["20", "60"]


@pytest.mark.parametrize(
    "table",
    [
        {"age": [], "town": []},
        {"age": [4], "town": ["x"]},
        {"age": [None] * 5, "town": [None] * 5},
        {"age": [1] * 9, "town": ["x"] * 9},
        {'💣 "; --': ["'; --", "<b>", "*", ""] * 2, "n": [1.0, float("nan")] * 4},
        {"many": [f"v{number}" for number in range(200)]},
    ],
)
def test_nasty_tables(table: Table) -> None:
    rows = len(next(iter(table.values())))
    recoded = Clusters().find(problem_of(table, [KAnonymity(min(3, max(rows, 1)))]))
    assert recoded.classes.rows == rows
    assert rows == 0 or recoded.classes.sizes.min() >= min(3, rows)


def test_stopped_it_is_one_class() -> None:
    recoded = Clusters().find(problem_of({"age": list(range(50))}, [KAnonymity(3)], stop=lambda: True))
    assert recoded.classes.sizes.tolist() == [50]


def test_what_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="not a whole number"):
        Clusters(k=0)
    with pytest.raises(InvalidParameter, match="it is not one of"):
        Clusters(aggregates={"age": "sum"})
    frame = read_frame({"age": [1, 2]})
    counted = encode(Frame(frame.data, "polars", None, np.array([5, 5])), ["age"])
    problem = Problem(table=counted, quasi=("age",), ladders={}, models=(KAnonymity(2),), metric=metric_of("loss"), limit=0)
    with pytest.raises(InvalidParameter, match="this table was counted"):
        Clusters().find(problem)
    with pytest.raises(InvalidParameter, match="whole table as one class"):
        Clusters().find(problem_of({"age": [1, 2]}, [KAnonymity(3)]))
