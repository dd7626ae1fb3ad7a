"""What leaves, read as a stranger would read it: cell by cell in the file, byte by byte where rows were left out."""

from __future__ import annotations

import io
import math
import pickle
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cloister.anonymize import Anonymizer, DeltaPresence, HiddenRows, Hierarchy, KAnonymity, KMap, LDiversity, risk
from cloister.anonymize.perturbing import LocalSuppression
from cloister.errors import InvalidParameter
from cloister.noise import Random

SECRET = "the value of somebody who was left out"


@pytest.mark.parametrize(
    ("values", "missing_values"),
    [
        ([math.nan, None, None, None, None], []),
        ([-0.0, 0.0, 0.0, 0.0, 0.0], []),
        ([-0.0, -0.0, -0.0, -0.0, -0.0], []),
        (["?", None, None, "n/a", "n/a"], ["?", "n/a"]),
        ([-1, -1, -9, -9, None], [-1, -9]),
    ],
)
@pytest.mark.parametrize("role", ["quasi", "sensitive"])
def test_values_that_count_as_one_are_written_as_one(values: list[Any], missing_values: list[Any], role: str) -> None:
    table = pl.DataFrame({"x": pl.Series(values, strict=False), "y": ["a"] * 5})
    roles: dict[str, Any] = {"quasi": ["x"]} if role == "quasi" else {"quasi": ["y"], "sensitive": ["x"]}
    anonymizer = Anonymizer(**roles, models=[KAnonymity(5)], suppression=0, missing_values=missing_values)
    released = anonymizer.fit_transform(table)
    assert released["x"].dtype == table["x"].dtype
    assert set(Counter(released.select("x").write_csv().splitlines()[1:]).values()) == {5}
    assert anonymizer.certificate(released, learning=False).risk.k == 5


def test_an_emptied_table_is_k_anonymous_in_its_file() -> None:
    done = LocalSuppression(quasi=["x"], k=2).apply(pl.DataFrame({"x": [-0.0, 0.0, 1.0, 1.0]}))
    assert done.k == min(Counter(done.frame.write_csv().splitlines()[1:]).values()) == 2


WRITERS: dict[str, Callable[[pl.DataFrame, io.BytesIO], object]] = {
    "arrow": lambda frame, file: frame.write_ipc(file),
    "arrow stream": lambda frame, file: frame.write_ipc_stream(file),
    "parquet": lambda frame, file: frame.write_parquet(file, compression="uncompressed"),
    "pickle": pickle.dump,
}


def rows_with_a_secret() -> pl.DataFrame:
    common = "a long name, so that it is not kept within the row itself"
    texts = {name: [common] * 9 + [f"{name}: {SECRET}"] for name in ("town", "ill", "memo", "shop", "club")}
    return pl.DataFrame({"age": [30] * 9 + [91], **texts}).with_columns(
        pl.col("club").cast(pl.Categorical),
        pl.col("shop").cast(pl.Enum([common, f"shop: {SECRET}"])),
        pl.concat_list("memo").alias("list"),
        pl.struct("memo").alias("pair"),
        pl.col("memo").cast(pl.Binary).alias("bytes"),
    )


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("suppressed", ["drop", "star"])
def test_no_byte_of_a_row_that_was_left_out_is_in_the_file(writer: str, suppressed: str) -> None:
    """Arrow's texts of picked rows share the bytes of all; the type of an `Enum` lists what no row has any more."""
    frame = rows_with_a_secret()
    frame = frame if suppressed == "drop" else frame.select("age", "town", "ill")
    anonymizer = Anonymizer(
        quasi=["age", "town"], sensitive=["ill"], models=[KAnonymity(5)], suppression="0.1", suppressed=suppressed
    )
    released = anonymizer.fit_transform(frame)
    assert anonymizer.report_.suppressed == 1
    assert released.columns == frame.columns
    file = io.BytesIO()
    WRITERS[writer](released, file)
    assert SECRET.encode() not in file.getvalue()
    WRITERS[writer](frame, before := io.BytesIO())
    assert SECRET.encode() in before.getvalue()


def test_nor_in_the_memory_that_an_arrow_table_shares() -> None:
    anonymizer = Anonymizer(quasi=["age", "town"], sensitive=["ill"], models=[KAnonymity(5)], suppression="0.1")
    released = anonymizer.fit_transform(rows_with_a_secret().drop("list", "pair", "bytes").to_arrow())
    table = pa.table(released)
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    assert SECRET.encode() not in file.getvalue()


def test_the_labels_of_a_pandas_frame_are_looked_at() -> None:
    ages = [20 + number % 2 for number in range(40)]
    frame = pd.DataFrame({"age": ages}, index=pd.Index([f"person {number}" for number in range(40)], name="who"))
    anonymizer = Anonymizer(quasi=["age"], keep_index=True)
    with pytest.warns(HiddenRows, match="the index 'who' stays as it is"):
        released = anonymizer.fit_transform(frame)
    assert anonymizer.report_.kept == ("the index 'who'",)
    assert anonymizer.certificate(released, learning=False).made["published as they are"] == "the index 'who'"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fresh = Anonymizer(quasi=["age"]).fit_transform(frame)
    assert fresh.index.equals(pd.RangeIndex(40))
    assert fresh.index.name is None


@pytest.mark.parametrize("index", [None, [f"person {number}" for number in range(40)]])
def test_a_shuffled_pandas_frame_does_not_say_its_old_order(index: Any) -> None:
    frame = pd.DataFrame({"age": [20] * 40, "row": range(40)}, index=index)
    anonymizer = Anonymizer(quasi=["age"], shuffle=True, random=Random.deterministic(1))
    with pytest.warns(HiddenRows, match="'row'"):
        released = anonymizer.fit_transform(frame)
    assert released["row"].tolist() != list(range(40))
    assert released.index.tolist() == list(range(40))


def test_who_is_only_on_the_public_list_is_not_published() -> None:
    """With the list and its column of booleans in the file, presence would be told of everybody."""
    town = {"age": [25, 28, 33, 37, 41, 46], "in_study": [True, False, False, True, False, False], "ill": list("abcdef")}
    anonymizer = Anonymizer(
        quasi=["age"], sensitive=["ill"], models=[DeltaPresence(0, "0.5"), KMap(2)], research="in_study", suppression=0,
        hierarchies={"age": Hierarchy.intervals(20)},
    )  # fmt: skip
    released = anonymizer.fit_transform(town)
    assert released["age"] == ["20–39", "20–39"]
    assert sorted(released["ill"]) == ["a", "d"]
    assert anonymizer.report_.kept == ()
    assert anonymizer.report_.dropped == ("in_study",)
    assert anonymizer.certificate(released, learning=False).risk.rows == 2


def test_starred_rows_do_not_count_those_of_the_list_who_are_in_no_class() -> None:
    """Whoever has the list knows who fits no class that is published: as many of them are in the table as rows are starred."""
    with pytest.raises(InvalidParameter, match="in no class"):
        Anonymizer(
            quasi=["age"], models=[DeltaPresence(0, "0.5")], research="in_study", suppressed="star", suppression="0.5"
        ).fit_transform({"age": [25, 28, 33], "in_study": [True, False, True]})


def test_report_and_certificate_do_not_count_them_either() -> None:
    """Both are handed over with the table: rows of the raw table less rows that are published were those in no class."""
    found = []
    for inside in (True, False):
        listed = {"age": [30] * 40 + [99] * 3, "in_study": [True, False] * 20 + [inside] * 3, "ill": ["flu", "gout", "cold"] * 14}
        listed["ill"] += ["flu"]
        anonymizer = Anonymizer(
            quasi=["age"], sensitive=["ill"], models=[DeltaPresence("0.2", "0.8")], research="in_study", suppression="0.1",
            hierarchies={"age": Hierarchy.flat()}, random=Random.deterministic(1),
        )  # fmt: skip
        released = anonymizer.fit_transform(listed)
        assert set(released["age"]) == {30}
        paper = anonymizer.certificate(released, other=anonymizer.recoded_)
        found.append((paper.to_dict(), paper.to_html(), anonymizer.report_.to_dict() | {"seconds": 0}))
    assert found[0] == found[1]


@pytest.mark.parametrize("search", ["optimal", "local", "topdown", "greedy"])
def test_what_was_lost_does_not_say_how_far_away_somebody_was_who_was_left_out(search: str) -> None:
    """Widths were shares of the range of all rows: published widths over the loss were that range, to the last digit."""
    told = []
    for age in (990, 43_210):
        anonymizer = Anonymizer(
            quasi=["age"], models=[KAnonymity(20)], suppression="0.01", search=search, metric="certainty penalty",
            hierarchies={"age": Hierarchy.intervals(10, 100)}, random=Random.deterministic(1),
        )  # fmt: skip
        released = anonymizer.fit_transform({"age": [20 + place % 40 for place in range(400)] + [age]})
        assert set(released["age"]) == {"20–29", "30–39", "40–49", "50–59"}
        told.append(anonymizer.report_.to_dict() | {"seconds": 0})
    assert told[0] == told[1]


def test_a_column_that_only_a_model_names_is_starred_too() -> None:
    table = {"age": [30] * 8 + [99], "ill": ["flu", "gout"] * 4 + [SECRET]}
    models = [KAnonymity(4), LDiversity(2, column="ill")]
    anonymizer = Anonymizer(quasi=["age"], models=models, suppression="0.2", suppressed="star")
    assert sorted(anonymizer.fit_transform(table)["ill"]) == ["*", *["flu"] * 4, *["gout"] * 4]
    assert anonymizer.report_.kept == ()


def test_risk_sees_what_was_written() -> None:
    """What the report says of the table is what `risk` says of the file."""
    table = pl.DataFrame(
        {"x": pl.Series([math.nan, None, -0.0, 0.0, 1.0, 1.0], strict=False), "work": ["?", None, "a", "a", "b", "b"]}
    )
    anonymizer = Anonymizer(quasi=["x", "work"], models=[KAnonymity(2)], suppression=0, missing_values=["?"])
    released = anonymizer.fit_transform(table)
    assert anonymizer.report_.risk.k == risk(released, ["x", "work"]).k == 2
