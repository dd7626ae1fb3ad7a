"""Every kind of frame goes in and comes out as it was; what cannot be read is refused by name."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cloister.anonymize import Anonymizer, KAnonymity
from cloister.anonymize.encoded import encode
from cloister.anonymize.frames import read_frame
from cloister.errors import InvalidParameter, UnknownColumn

ROWS: dict[str, list[Any]] = {
    "age": [31, 45, None, 31],
    "pay": [1.5, float("nan"), 2.5, -0.0],
    "🏠 town": ["'; DROP TABLE people; --", "東京", None, ""],
    "born": [datetime.date(1990, 1, 2), None, datetime.date(1950, 12, 31), datetime.date(1990, 1, 2)],
    "smokes": [True, False, None, True],
}


def frames() -> list[Any]:
    """The same rows in each kind of frame."""
    polars = pl.DataFrame(ROWS)
    return [
        ROWS,
        pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in ROWS.items()}),
        polars,
        polars.lazy(),
        polars.to_arrow(),
    ]


@pytest.mark.parametrize("frame", frames(), ids=lambda frame: type(frame).__module__.split(".")[0])
def test_the_same_codes_from_every_kind_of_frame(frame: Any) -> None:
    table = encode(read_frame(frame), list(ROWS))
    columns = table.columns
    assert table.rows == 4
    assert (columns["age"].values, columns["age"].codes.tolist(), columns["age"].kind) == (
        [31, 45, None],
        [0, 1, 2, 0],
        "integer",
    )
    assert columns["pay"].values == [0.0, 1.5, 2.5, None]
    assert columns["🏠 town"].values == ["'; DROP TABLE people; --", "東京", None]  # "" beside a missing one is read as missing
    assert columns["born"].kind == "date"
    assert columns["born"].codes.tolist() == [1, 2, 0, 1]
    assert columns["smokes"].values == [False, True, None]


def test_an_arrow_column_of_nothing_comes_back() -> None:
    """It ended in an error of Arrow's own, after the search."""
    table = pl.DataFrame({"age": [31, 31], "note": ["", ""]}).to_arrow().set_column(1, "note", [[None, None]])
    back = Anonymizer(quasi=["age"], models=[KAnonymity(2)]).fit_transform(table)
    assert (type(back).__name__, pl.DataFrame(back)["note"].to_list()) == ("Table", [None, None])


def test_a_frame_comes_back_in_its_kind() -> None:
    for given in frames():
        frame = read_frame(given)
        back = frame.give_back(frame.data)
        kinds = {"LazyFrame": "DataFrame"}
        assert type(back).__name__ == kinds.get(type(given).__name__, type(given).__name__)
    indexed = pd.DataFrame({"age": [1, 2, 3]}, index=["a", "b", "c"])
    frame = read_frame(indexed)
    kept = np.array([0, 2])
    assert frame.give_back(frame.data[kept]).index.tolist() == [0, 1]
    assert frame.give_back(frame.data[kept], kept).index.tolist() == ["a", "c"]


def test_files(tmp_path: Path) -> None:
    pl.DataFrame({"age": [1, 2], "born": ["1990-01-02", "1991-01-01"]}).write_csv(tmp_path / "people.csv")
    pl.DataFrame({"age": [1, 2]}).write_parquet(tmp_path / "people.parquet")
    assert encode(read_frame(tmp_path / "people.csv"), ["born"]).columns["born"].kind == "date"
    assert read_frame(str(tmp_path / "people.parquet")).rows == 2
    with pytest.raises(InvalidParameter, match="there is no such file"):
        read_frame(tmp_path / "nobody.csv")


def test_missing_values_are_what_the_user_says() -> None:
    frame = read_frame({"work": ["?", "State-gov", None], "age": [-1, 30, 40]})
    table = encode(frame, ["work", "age"], missing_values=["?", -1])
    assert table.columns["work"].values == ["State-gov", None]
    assert table.columns["work"].missing == 1
    assert table.columns["age"].values == [30, 40, None]
    assert encode(frame, ["work", "age"], missing_values=["?", "-1"]).columns["age"].values == [30, 40, None], "as it is typed"
    days = read_frame({"end": [datetime.date(9999, 12, 31), datetime.date(2020, 1, 1)]})
    assert encode(days, ["end"], missing_values=["9999-12-31", "?"]).columns["end"].missing == 1
    with pytest.raises(InvalidParameter, match="1 of its values are missing"):
        encode(frame, ["work"], missing="refuse")
    with pytest.raises(InvalidParameter, match="not one of 'value', 'suppress', 'refuse'"):
        encode(frame, ["work"], missing="guess")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"age": [1, "1"]}, "several types: int, str"),
        ({"age": [1, 2], "sex": ["F"]}, "different lengths"),
        ({"age": [1.0, float("inf")]}, "infinite"),
        ({"age": [[1], [2]]}, "values of the type"),
        ([1, 2], "it is a list"),
    ],
)
def test_what_is_refused(table: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        encode(read_frame(table), ["age"])


def test_columns_that_are_not_there_or_twice() -> None:
    with pytest.raises(UnknownColumn, match="no such column"):
        encode(read_frame({"age": [1]}), ["sex"])
    with pytest.raises(InvalidParameter, match="stands there twice"):
        encode(read_frame({"age": [1]}), ["age", "age"])
    twice = pd.DataFrame([[1, 2]], columns=["age", "age"])
    with pytest.raises(InvalidParameter, match="stands there twice"):
        read_frame(twice)


def test_empty_and_all_missing() -> None:
    empty = encode(read_frame({"age": [], "sex": []}), ["age", "sex"])
    assert empty.rows == 0
    assert len(empty.columns["age"]) == 0
    nothing = encode(read_frame({"age": [None, None]}), ["age"])
    assert nothing.columns["age"].values == [None]
    assert nothing.columns["age"].codes.tolist() == [0, 0]


def test_whole_numbers_and_others_in_one_list() -> None:
    assert encode(read_frame({"pay": [1, 2.5, None]}), ["pay"]).columns["pay"].values == [1.0, 2.5, None]


def test_categories_of_pandas_and_polars() -> None:
    pandas = pd.DataFrame({"sex": pd.Categorical(["b", "a", None])})
    polars = pl.DataFrame({"sex": pl.Series(["b", "a", None], dtype=pl.Categorical)})
    for frame in (pandas, polars):
        assert encode(read_frame(frame), ["sex"]).columns["sex"].values == ["a", "b", None]


@pytest.mark.parametrize("largest", [2**64 - 1, 2**100])
def test_numbers_that_numpy_lacks_come_back_in_a_column_that_nothing_looks_at(largest: int) -> None:
    frame = pd.DataFrame({"age": [30, 30, 40, 40], "other": pd.Series([largest, -1, 0, 0], dtype=object)})
    assert sorted(Anonymizer(["age"], models=[KAnonymity(2)], suppression=0).fit_transform(frame)["other"]) == [-1, 0, 0, largest]


@pytest.mark.parametrize(
    ("by", "first"), [(",", "age,postcode"), (";", "age;postcode"), ("\t", "age\tpostcode"), (",", "age,post;code")]
)
def test_a_file_is_divided_as_its_first_line_is(by: str, first: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(f"{first}\n31{by}01234\n45{by}1234\n", encoding="utf-8")
    frame = read_frame(tmp_path / "people.csv")
    assert frame.data.columns == first.split(by)
    assert frame.data.rows() == [(31, "01234"), (45, "1234")]


def test_times_and_long_numbers_of_a_csv_file_stay_texts(tmp_path: Path) -> None:
    source, goal = tmp_path / "people.csv", tmp_path / "out.csv"
    source.write_text("t,card,age\n" + "12:30,123456789012345678901,31\n08:15,5,31\n" * 5, encoding="utf-8")
    assert read_frame(source).data.rows()[0] == ("12:30", "123456789012345678901", 31)
    Anonymizer(quasi=["age", "t"], models=[KAnonymity(2)]).transform_file(source, goal)
    assert {line.split(",")[1] for line in goal.read_text().splitlines()[1:]} == {"123456789012345678901", "5"}


def test_quotes_in_the_name_of_a_column_of_a_csv_file_are_read_as_they_are_written(tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    source.write_text('"born ""x""",b""c,age\n1,2,3\n', encoding="utf-8")
    assert read_frame(source).data.columns == ['born "x"', 'b""c', "age"]


def test_a_csv_column_of_which_one_cell_is_of_no_type_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("born;age;digits;row\n2020-01-01;31;３２;1\n31/12/2020;32;33;\n;33;;3\n", encoding="utf-8")
    found = read_frame(path).data
    assert found.schema == {"born": pl.String, "age": pl.Int64, "digits": pl.String, "row": pl.Int64}
    assert found["born"].to_list() == ["2020-01-01", "31/12/2020", None]
    assert found["row"].to_list() == [1, None, 3]


def test_line_ends_of_old_macs_are_refused_and_are_no_table_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"age,zip\r31,1\r32,2\r")
    with pytest.raises(InvalidParameter, match="its first line holds a carriage return"):
        read_frame(path)
    path.write_bytes(b"age,zip\r\n31,1\r\n")
    assert read_frame(path).rows == 1


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_with_nothing_in_it_is_nobody(end: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(end.join(["\ufeffage;ill", "31;a", "", '32;"b', "", 'c"', ";", "33;", "", ""]).encode())
    assert read_frame(path).data.rows() == [(31, "a"), (32, f"b{end}{end}c"), (None, None), (33, None)]
    path.write_text("age\n31\n\n32\n", encoding="utf-8")
    assert read_frame(path).rows == 3, "of a single column it is a missing value"


def test_years_of_two_digits_are_no_years_of_antiquity(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("born,age\n1/2/20,31\n3/4/68,32\n", encoding="utf-8")
    assert read_frame(path).data["born"].to_list() == ["1/2/20", "3/4/68"]


def test_long_numbers_beside_a_missing_one_come_back_to_pandas_as_they_were() -> None:
    cards = pd.array([2**53 + 1, None, -(2**53) - 3, 5], dtype="Int64")
    frame = pd.DataFrame({"age": [30] * 4, "card": cards})
    released = Anonymizer(["age"], models=[KAnonymity(2)], suppression=0).fit_transform(frame)
    assert {each for each in released["card"] if each is not None} == {2**53 + 1, -(2**53) - 3, 5}
