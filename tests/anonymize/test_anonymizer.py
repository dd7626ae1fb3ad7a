"""`Anonymizer`: one call, checked again from the labels that are published; and each thing that a user can get wrong."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.anonymize import Anonymizer, HiddenRows, Hierarchy, KAnonymity, LDiversity, TCloseness
from cloister.errors import CloisterError, InvalidParameter, UnknownColumn
from cloister.noise import Random


def people(rows: int = 400, seed: int = 1) -> dict[str, list[Any]]:
    """Made-up patients."""
    random = Random.deterministic(seed)
    towns, diseases = ["Ulm", "Bonn", "Trier", "Köln 🏰"], ["flu", "cold", "gout", "none"]
    return {
        "name": [f"person {number}" for number in range(rows)],
        "age": [18 + int(each) for each in random.below(70, rows)],
        "town": [towns[int(each)] for each in random.below(4, rows)],
        "zip": [f"{81000 + int(each)}" for each in random.below(300, rows)],
        "born": [datetime.date(1950, 1, 1) + datetime.timedelta(days=int(each)) for each in random.below(9000, rows)],
        "disease": [diseases[int(each)] for each in random.below(4, rows)],
        "note": ["x"] * rows,
    }


SEARCHES = ["optimal", "mondrian", "local", "topdown", "greedy", "microaggregation"]


@pytest.mark.parametrize("search", SEARCHES)
def test_one_call_makes_a_table_that_holds_what_was_asked(search: str) -> None:
    table = people()
    quasi = ["age", "town", "zip", "born"] if search != "microaggregation" else ["age", "born"]
    anonymizer = Anonymizer(
        quasi=quasi,
        sensitive=["disease"],
        identifying=["name"],
        models=[KAnonymity(5)] if search == "microaggregation" else [KAnonymity(5), LDiversity(2), TCloseness(0.5)],
        search=search,
        suppression="0.1",
    )
    released = pl.DataFrame(anonymizer.fit_transform(table))
    assert "name" not in released.columns
    assert "note" in released.columns
    sizes = released.group_by(quasi).agg(pl.len(), pl.col("disease").n_unique().alias("l"))
    assert sizes["len"].min() >= 5
    if search != "microaggregation":
        assert sizes["l"].min() >= 2
    report = anonymizer.report_
    assert report.classes == sizes.height
    assert report.suppressed == 400 - released.height <= 40
    assert all(each.holds for each in report.models)
    assert report.risk.k >= 5
    assert report.risk_before.k == 1


def test_suppressed_rows_say_nothing() -> None:
    table = people(200)
    table["age"][0], table["disease"][0] = 119, "a rare one"
    arguments: dict[str, Any] = {
        "quasi": ["age"],
        "sensitive": ["disease"],
        "models": [KAnonymity(5)],
        "hierarchies": {"age": Hierarchy.intervals(20)},
    }
    dropped = Anonymizer(**arguments).fit_transform(table)
    assert len(dropped["age"]) == 199
    starred = Anonymizer(**arguments, suppressed="star").fit_transform(table)
    assert len(starred["age"]) == 200
    assert starred["age"].count("*") == 1
    assert starred["disease"][starred["age"].index("*")] == "*"
    assert "a rare one" not in starred["disease"]


def test_the_frame_comes_back_in_its_kind_and_with_its_labels_and_order_where_they_are_asked_for() -> None:
    table = pd.DataFrame(people(60)).set_index("name")
    anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], suppression="0.3", shuffle=False, keep_index=True)
    with pytest.warns(HiddenRows, match="the index 'name' stays") as told:
        released = anonymizer.fit_transform(table)
    assert isinstance(released, pd.DataFrame)
    assert any("the order of the rows stays as it is" in str(each.message) for each in told)
    assert released.index.tolist() == [name for name in table.index if name in set(released.index)]
    with pytest.raises(InvalidParameter, match="no labels"):
        anonymizer.fit_transform(pl.DataFrame(people(60)))
    plain = Anonymizer(quasi=["age"], models=[KAnonymity(2)], suppression="0.3")
    assert plain.fit_transform(pl.DataFrame(people(60))).columns == list(people(1))


def test_shuffled_rows_are_the_same_rows() -> None:
    table = people(300)
    plain = Anonymizer(quasi=["age", "town"], shuffle=False).fit_transform(table)
    mixed = Anonymizer(quasi=["age", "town"], random=Random.deterministic(1)).fit_transform(table)
    assert plain["name"] != mixed["name"]
    assert sorted(plain["name"]) == sorted(mixed["name"])


def test_a_column_that_names_each_row_is_pointed_at() -> None:
    with pytest.warns(HiddenRows, match="'name' stays as it is"):
        Anonymizer(quasi=["age"]).fit_transform(people())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Anonymizer(quasi=["age"], identifying=["name", "born", "zip", "town", "disease"]).fit_transform(people())


def test_missing_values() -> None:
    table: dict[str, list[Any]] = {"age": [20, 20, 30, 30, None, None], "sex": ["F", "F", "?", "?", "M", "M"]}
    own = Anonymizer(quasi=["age", "sex"], models=[KAnonymity(2)], suppression=0, missing_values=["?"])
    assert sorted(own.fit_transform(table)["sex"]) == ["?", "?", "F", "F", "M", "M"]
    gone = Anonymizer(quasi=["age", "sex"], models=[KAnonymity(2)], suppression=0, missing="suppress", missing_values=["?"])
    assert gone.fit_transform(table) == {"age": [20, 20], "sex": ["F", "F"]}
    assert gone.report_.suppressed == 4
    with pytest.raises(InvalidParameter, match="2 of its values are missing"):
        Anonymizer(quasi=["age"], missing="refuse").fit_transform(table)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"quasi": []}, "no quasi-identifier was named"),
        ({"quasi": "age"}, r"quasi='age' is invalid: a list is expected(.|\n)*quasi=\['age'\]"),
        ({"quasi": None}, "a list is expected"),
        ({"quasi": ["age"], "models": KAnonymity(2)}, "models=.*a list is expected"),
        ({"quasi": ["age"], "identifying": "name"}, "identifying='name' is invalid"),
        ({"quasi": ["age"], "missing_values": "NA"}, "missing_values='NA' is invalid"),  # not a missing "N", or a missing "A"
        ({"quasi": ["age"], "weights": {"age": "2"}}, "not a positive number"),
        ({"quasi": ["height"]}, "no such column"),
        ({"quasi": ["age", "age"]}, "stands there twice"),
        ({"quasi": ["age"], "sensitive": ["age"]}, "it has two roles"),
        ({"quasi": ["age"], "models": []}, "it is missing"),
        ({"quasi": ["age"], "models": [5]}, "one is not a privacy model"),
        ({"quasi": ["age"], "models": [LDiversity(2)]}, "no column was declared sensitive"),
        ({"quasi": ["age"], "models": [LDiversity(2, column="age")]}, "the column is a quasi-identifier"),
        ({"quasi": ["age"], "models": [KAnonymity(500)]}, "the table has 400 rows"),
        ({"quasi": ["age"], "suppression": 2}, "not a share from 0 to 1"),
        ({"quasi": ["age"], "suppression": "some"}, "not a share from 0 to 1"),
        ({"quasi": ["age"], "suppressed": "hide"}, "neither drop nor star"),
        ({"quasi": ["age"], "search": "magic"}, "magic"),
        ({"quasi": ["age"], "metric": "beauty"}, "beauty"),
        ({"quasi": ["age"], "hierarchies": {"zip": Hierarchy.flat()}}, "it is not a quasi-identifier"),
        ({"quasi": ["age"], "hierarchies": {"age": "ages.csv"}}, "it is a str"),
        ({"quasi": ["age"], "hierarchies": Hierarchy.flat()}, "a value for each of some"),
        ({"quasi": ["age"], "weights": {"age": -1}}, "not a positive number"),
        ({"quasi": ["age"], "hierarchies": {"age": Hierarchy.of({1: ["*"]})}}, "no line for the value"),
        ({"quasi": ["age"], "research": "note"}, "not one of True and False"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(CloisterError, match=words):
        Anonymizer(**arguments).fit_transform(people())


def test_what_cannot_be_met_names_what_is_in_the_way() -> None:
    table = {"age": [1, 2, 3, 4], "sex": ["F", "F", "M", "M"], "ill": ["yes", "yes", "yes", "yes"]}
    with pytest.raises(CloisterError, match="ill"):
        Anonymizer(quasi=["age", "sex"], sensitive=["ill"], models=[LDiversity(2)]).fit_transform(table)
    stubborn = Hierarchy.of({"F": ["F"], "M": ["M"]})
    with pytest.raises(CloisterError, match="sex"):
        Anonymizer(quasi=["sex"], models=[KAnonymity(3)], hierarchies={"sex": stubborn}, suppression=0).fit_transform(table)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("search", SEARCHES)
def test_tables_of_no_row_and_of_one(rows: int, search: str) -> None:
    table = {"age": [30][:rows], "sex": ["F"][:rows]}
    anonymizer = Anonymizer(quasi=["age", "sex"], models=[KAnonymity(1)], search=search)
    assert len(anonymizer.fit_transform(table)["age"]) == rows


def test_hostile_names_and_values() -> None:
    hostile = ["'; DROP TABLE people; --", "<script>alert(1)</script>", "=cmd()", "\x00\u202e", "*"] * 4
    table = {'💣 "; --': hostile, "<b>": list(range(20))}
    anonymizer = Anonymizer(quasi=list(table), models=[KAnonymity(2)], suppression="0.5")
    anonymizer.fit_transform(table)
    assert "<script>" not in anonymizer.report_.to_html()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.sampled_from("abc"), st.sampled_from("xyz")),
        min_size=4,
        max_size=60,
    ),
    st.integers(1, 4),
    st.sampled_from(["optimal", "mondrian", "greedy", "topdown", "local"]),
)
def test_whatever_leaves_is_k_anonymous(rows: list[tuple[int | None, str, str]], k: int, search: str) -> None:
    table = {"age": [row[0] for row in rows], "town": [row[1] for row in rows], "ill": [row[2] for row in rows]}
    anonymizer = Anonymizer(quasi=["age", "town"], models=[KAnonymity(k)], search=search, suppression="0.2")
    released = anonymizer.fit_transform(table)
    counts: dict[Any, int] = {}
    for pair in zip(released["age"], released["town"], strict=True):
        counts[pair] = counts.get(pair, 0) + 1
    assert min(counts.values(), default=k) >= k
    assert len(released["age"]) >= len(rows) - int(0.2 * len(rows))


def test_the_problem_that_a_search_is_asked() -> None:
    problem = Anonymizer(quasi=["age", "town"]).problem(people())
    assert problem.limit == 8
    assert problem.table.rows == 400
    assert set(problem.ladders) == {"age", "town"}
    assert np.all(problem.ladders["age"].codes[-1] == 0)


def test_unknown_column_is_a_lookup_error() -> None:
    with pytest.raises(UnknownColumn):
        Anonymizer(quasi=["height"]).fit_transform(people())
