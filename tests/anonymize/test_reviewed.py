"""What a reader of the outputs found wrong once: what is certified is what leaves, and files are what frames are."""

import random
import re
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.anonymize import (
    Anonymizer,
    DeltaPresence,
    Hierarchy,
    KAnonymity,
    KMap,
    LDiversity,
    TCloseness,
)
from cloister.anonymize.encoded import encode
from cloister.anonymize.frames import read_frame
from cloister.anonymize.hierarchies.chosen import choose_hierarchy
from cloister.anonymize.hierarchies.intervals import Cuts
from cloister.anonymize.searches.axes import axes_of
from cloister.anonymize.searches.regions import regions
from cloister.cli.spreadsheets import guarded
from cloister.errors import CloisterError, InvalidParameter

SEARCHES = ("optimal", "mondrian", "local", "topdown", "greedy", "microaggregation")


def listed(seed: int, rows: int = 60) -> pl.DataFrame:
    drawn = random.Random(seed)
    return pl.DataFrame(
        {
            "a": [drawn.randint(0, 9) for _ in range(rows)],
            "b": [drawn.choice("pqr") for _ in range(rows)],
            "in": [drawn.random() < 0.5 for _ in range(rows)],
            "s": [drawn.choice("xyz") for _ in range(rows)],
        }
    )


@pytest.mark.parametrize("search", SEARCHES)
def test_rows_of_a_public_list_count_for_presence_alone(search: str) -> None:
    for seed in range(6):
        anonymizer = Anonymizer(
            quasi=["a", "b"],
            sensitive=["s"],
            models=[KAnonymity(3), LDiversity(2), KMap(4)],
            hierarchies={"a": Hierarchy.intervals(2, 4), "b": Hierarchy.flat()},
            search=search,
            suppression="0.3" if search in ("optimal", "local", "topdown", "greedy") else 0,
            research="in",
        )
        released = anonymizer.fit_transform(listed(seed))
        kinds = Counter(released.select("a", "b").rows())
        values: dict[Any, set[str]] = defaultdict(set)
        for a, b, s in released.select("a", "b", "s").rows():
            values[a, b].add(s)
        assert min(kinds.values()) >= 3, seed
        assert min(map(len, values.values())) >= 2, seed
        paper = anonymizer.certificate(released, learning=False)
        assert paper.holds
        assert paper.models[0].reached == f"k = {paper.risk.k}" == f"k = {min(kinds.values())}"
        assert anonymizer.report_.risk.k == paper.risk.k
        assert anonymizer.report_.risk_before.rows == paper.risk_before.rows == released.height
        assert paper.made["rows"].startswith(f"{released.height} published")


def test_too_few_rows_that_leave_are_refused_though_the_list_is_long() -> None:
    table = {"age": [30] * 6 + [60] * 6, "in_study": [True] + [False] * 5 + [True, True] + [False] * 4}
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(5), DeltaPresence(0, "0.5")], research="in_study", suppression=0)
    with pytest.raises(InvalidParameter, match="the table has 3 rows"):
        asked.fit_transform(table)


def test_a_file_with_brackets_in_its_name_is_read_itself(tmp_path: Path) -> None:
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian")
    for ending in ("csv", "parquet"):
        for name, word in ((f"p1.{ending}", "WRONG"), (f"p[1].{ending}", "RIGHT")):
            frame = pl.DataFrame({"age": [1] * 6, "x": [word] * 6})
            if ending == "csv":
                frame.write_csv(tmp_path / name)
            else:
                frame.write_parquet(tmp_path / name)
        asked.transform_file(tmp_path / f"p[1].{ending}", tmp_path / "out.parquet")
        assert pl.read_parquet(tmp_path / "out.parquet")["x"].unique().to_list() == ["RIGHT"]
        done = asked.transform_file(tmp_path / f"p*.{ending}", tmp_path / "out.parquet")
        assert done.written == 12
        done = asked.transform_file(tmp_path / f"p[12].{ending}", tmp_path / "out.parquet")
        assert done.written == 6


@given(st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 2)), min_size=3, max_size=40), st.integers(0, 2))
def test_no_border_is_a_value_where_two_leave_room(values: list[float], outliers: int) -> None:
    pays = [*values, *[10.0] * 60, *[1e12 + 0.25, -1e12 - 0.25][:outliers]]
    column = encode(read_frame({"pay": pays}), ["pay"]).columns["pay"]
    chosen = choose_hierarchy(column)
    if not isinstance(chosen, Cuts):
        return
    assert len(chosen.cuts) >= 1  # and each level rises and nests: Cuts itself refuses others
    if any(value != int(value) for value in pays):
        assert not {cut for level in chosen.cuts for cut in level} & set(pays)


def test_no_border_is_the_value_of_a_row_that_was_left_out() -> None:
    for rows in range(8, 40):
        table = {"pay": [*map(float, range(1, rows)), 7777.25]}
        asked = Anonymizer(quasi=["pay"], models=[KAnonymity(3)], suppression="0.2")
        assert "7777" not in str(asked.fit_transform(table)["pay"])


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("search", ["optimal", "topdown", "local", "greedy"])
def test_masks_are_no_longer_than_the_texts_that_leave(side: str, search: str) -> None:
    table = {"zip": [f"1{n % 40:03}" for n in range(80)] + ["Z234567890123Z"], "s": ["a"] * 80 + ["gone"]}
    asked = Anonymizer(
        quasi=["zip"],
        sensitive=["s"],
        models=[KAnonymity(5)],
        search=search,
        suppression="0.02",
        hierarchies={"zip": Hierarchy.masking(side=side)},
    )
    released = asked.fit_transform(table)
    assert "gone" not in released["s"]
    assert {len(text) for text in released["zip"]} <= {4, 1}
    assert asked.certificate(released, learning=False).holds


def test_a_file_whose_sensitive_values_changed_meanwhile_is_withheld(tmp_path: Path) -> None:
    """Classes stay as they are: nobody's label changes, only what is said of whom."""
    source, goal = tmp_path / "people.csv", tmp_path / "released.csv"

    def write(*, apart: bool) -> None:
        ill = ["flu" if (n // 4 if apart else n) % 2 else "gout" for n in range(40)]
        pl.DataFrame({"age": [n // 4 for n in range(40)], "ill": ill}).write_csv(source)

    def meanwhile(stage: str, far: float) -> None:
        if (stage, far) == ("writing", 0.0):
            write(apart=True)

    write(apart=False)
    asked = Anonymizer(quasi=["age"], sensitive=["ill"], models=[KAnonymity(4), LDiversity(2)], search="mondrian")
    asked.transform_file(source, goal)
    goal.unlink()
    asked.progress = meanwhile
    with pytest.raises(CloisterError, match="other values of 'ill'"):
        asked.transform_file(source, goal)
    assert not goal.exists()


def kinds_of(table: pl.DataFrame) -> Counter[Any]:
    return Counter(table.rows())


@pytest.mark.parametrize("shuffle", [False, True])
def test_starred_columns_read_alike_in_files_and_frames(tmp_path: Path, shuffle: bool) -> None:
    table = pl.DataFrame(
        {
            "pay": [float("nan")] * 5 + [7.0] * 5 + [9.5],
            "day": [date(2020, 1, 2)] * 10 + [date(2021, 1, 1)],
            "ok": [True] * 10 + [False],
            "score": [1e22, 0.1, -0.0, 0.0, 2.0, 2.5, float("nan"), 3.0, 4.0, 5.0, 6.0],
        },
        strict=False,
    )
    flat = {name: Hierarchy.flat() for name in ("pay", "day", "ok")}
    asked = Anonymizer(
        quasi=["pay", "day", "ok"], sensitive=["score"], models=[KAnonymity(2)], suppression="0.2", suppressed="star",
        hierarchies=flat, shuffle=shuffle,
    )  # fmt: skip
    table.write_parquet(tmp_path / "people.parquet")
    released = asked.fit_transform(table)
    assert asked.certificate(released, learning=False).holds
    assert set(released["pay"]) == {None, "7", "*"}
    asked.transform_file(tmp_path / "people.parquet", tmp_path / "released.parquet")
    assert kinds_of(pl.read_parquet(tmp_path / "released.parquet")) == kinds_of(released)


def test_learnt_groups_count_the_rows_that_a_combination_stands_for(tmp_path: Path) -> None:
    for seed in range(4):
        drawn = random.Random(seed)
        jobs = [drawn.choice("abcdefgh") for _ in range(400)]
        ages = [(ord(job) // 2 * 7 + drawn.choice([0, 0, 0, 0, 0, 1, 2, 3])) % 12 for job in jobs]
        table = pl.DataFrame({"job": jobs, "age": ages})
        table.write_parquet(tmp_path / "people.parquet")
        asked = Anonymizer(
            quasi=["job", "age"], models=[KAnonymity(8)], suppression="0.02", hierarchies={"age": Hierarchy.intervals(3, 6)}
        )
        released = asked.fit_transform(table)
        asked.transform_file(tmp_path / "people.parquet", tmp_path / "released.parquet")
        written = pl.read_parquet(tmp_path / "released.parquet")
        assert Counter(map(str, written.rows())) == Counter(map(str, released.rows())), seed


def test_a_number_that_begins_with_a_zero_is_text_in_frames_and_files(tmp_path: Path) -> None:
    source, goal = tmp_path / "people.csv", tmp_path / "released.csv"
    source.write_text("zip,n,m\n" + "01234,10,0\n" * 5 + "12000,-3,7\n" * 5, encoding="utf-8")
    asked = Anonymizer(quasi=["zip"], models=[KAnonymity(2)], search="mondrian")
    released = asked.fit_transform(source)
    assert released.dtypes == [pl.String, pl.Int64, pl.Int64]
    asked.transform_file(source, goal)
    assert Counter(goal.read_text(encoding="utf-8").split()) == Counter(released.write_csv().split())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_numbers_over_64_bits_are_names_in_a_csv_file_and_refused_in_a_frame(tmp_path: Path, ending: str) -> None:
    source, goal = tmp_path / "people.csv", tmp_path / f"out.{ending}"
    source.write_text("id,x\n" + f"{2**70},a\n" * 5 + f"{2**70 + 1},a\n" * 5, encoding="utf-8")
    asked = Anonymizer(quasi=["id"], models=[KAnonymity(2)], search="mondrian")
    asked.transform_file(source, goal)
    written = pl.read_parquet(goal) if ending == "parquet" else pl.read_csv(goal, infer_schema=False)
    for found in (asked.fit_transform(source), written):
        assert Counter(found["id"].to_list()) == {str(2**70): 5, str(2**70 + 1): 5}
    frame = pl.DataFrame({"id": pl.Series([2**70] * 4, dtype=pl.Int128)})
    with pytest.raises(InvalidParameter, match="'id' is invalid: it holds whole numbers of more than 64 bits"):
        asked.fit_transform(frame)


def test_what_files_refuse_is_said_in_words(tmp_path: Path) -> None:
    asked = Anonymizer(quasi=["age"], models=[KAnonymity(2)], search="mondrian")
    source = tmp_path / "people.parquet"
    pl.DataFrame({"age": [1] * 4, "Age": [2] * 4}).write_parquet(source)
    with pytest.raises(InvalidParameter, match="but for capitals"):
        asked.transform_file(source, tmp_path / "out.parquet")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidParameter, match="a folder has that name"):
        asked.transform_file(source, tmp_path / "folder.csv")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE cloister_recoding AS SELECT 1 AS age FROM range(4)")
        with pytest.raises(InvalidParameter, match="of that name for a while"):
            asked.transform_file("cloister_recoding", tmp_path / "out.parquet", connection=connection)
        assert connection.execute("SELECT count(*) FROM cloister_recoding").fetchone() == (4,)


def test_suppressed_rows_that_stay_say_nothing_in_any_column(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"age": [1] * 5 + [9], "ill": list("abcabz"), "note": ["x"] * 5 + ["mine"], "n": [1, 2, 3, 4, 5, 66], "f": [0.5] * 6}
    )
    asked = Anonymizer(
        quasi=["age"], sensitive=["ill"], models=[KAnonymity(2)], suppression="0.2", suppressed="star",
        hierarchies={"age": Hierarchy.flat()},
    )  # fmt: skip
    released = asked.fit_transform(table)
    assert [row for row in released.rows() if row[0] == "*"] == [("*", "*", None, None, None)]
    assert released["n"].dtype == pl.Int64
    assert asked.certificate(released, learning=False).holds
    table.write_parquet(tmp_path / "people.parquet")
    asked.transform_file(tmp_path / "people.parquet", tmp_path / "released.parquet")
    written = pl.read_parquet(tmp_path / "released.parquet")
    assert kinds_of(written) == kinds_of(released)
    assert written.dtypes == released.dtypes


def test_the_certificate_says_what_classes_are_compared_with() -> None:
    table = {"a": [0] * 8 + [1] * 8 + [2], "s": [*("ppppppqq" * 2), "q"]}
    asked = Anonymizer(
        ["a"], ["s"], [KAnonymity(2), TCloseness("0.3")], {"a": Hierarchy.flat()}, suppression="0.1"
    )  # fmt: skip
    paper = asked.certificate(asked.fit_transform(table), learning=False)
    assert asked.report_.suppressed == 1
    assert paper.models[1].reached == "t = 0.0441176" != f"t = {paper.risk.t:.6g}"
    for text in (paper.to_html(), paper.to_json()):
        assert "the whole table with its suppressed rows" in text


@pytest.mark.parametrize("search", ["optimal", "mondrian", "local", "topdown", "greedy"])
def test_rows_that_lack_something_leave_no_value_in_the_labels_of_others(tmp_path: Path, search: str) -> None:
    jobs = ["astronaut"] + ["nurse", "cook", "smith", "baker"] * 5
    zips = ["Z9999999X"] + [f"1{n:03}" for n in range(20)]
    table = pl.DataFrame({"job": jobs, "zip": zips, "age": [None] + [20, 30] * 10})
    asked = Anonymizer(
        quasi=["job", "age", "zip"], models=[KAnonymity(4)], search=search, suppression="0.1", missing="suppress"
    )  # fmt: skip
    released = asked.fit_transform(table)
    assert released.height >= 18
    assert not any(word in str(released.to_dict(as_series=False)) for word in ("astronaut", "Z99", "*" * 6))
    table.write_parquet(tmp_path / "people.parquet")
    asked.transform_file(tmp_path / "people.parquet", tmp_path / "released.parquet")
    assert kinds_of(pl.read_parquet(tmp_path / "released.parquet").cast(pl.String)) == kinds_of(released.cast(pl.String))


@pytest.mark.parametrize("search", ["mondrian", "local", "topdown", "microaggregation"])
def test_a_missing_value_and_the_word_for_one_are_published_as_they_are_counted(search: str) -> None:
    table = {"a": ["x"] * 4 + ["y"] * 4 + [None, "(missing)"], "s": list("pq" * 5)}
    for k in (1, 2):
        asked = Anonymizer(quasi=["a"], sensitive=["s"], models=[KAnonymity(k)], search=search, suppression="0.2")
        released = asked.fit_transform(table)
        sizes = Counter(released["a"])
        assert asked.report_.models[0].reached == f"k = {min(sizes.values())}"
        assert asked.report_.classes == len(sizes)
        assert asked.certificate(released, learning=False).risk.k == asked.report_.risk.k


@pytest.mark.parametrize("search", SEARCHES)
def test_moments_at_midnight_are_certified(search: str) -> None:
    days = [datetime(2020, 1, 1 + n // 2) for n in range(8)]
    for last in (datetime(2020, 1, 4), datetime(2020, 1, 4, 6)):
        table = pl.DataFrame({"seen": [*days, last, last], "s": list("pqrst" * 2)})
        asked = Anonymizer(quasi=["seen"], sensitive=["s"], models=[KAnonymity(2)], search=search, suppression=0)
        assert asked.certificate(asked.fit_transform(table), learning=False).holds


@pytest.mark.parametrize("suppressed", ["drop", "star"])
def test_a_table_of_which_nothing_is_left_is_refined_to_nothing(suppressed: str) -> None:
    table = {"a": [1, 2, 3], "s": ["p", "p", "q"]}
    asked = Anonymizer(
        quasi=["a"], sensitive=["s"], models=[LDiversity(2), TCloseness(0)], search="local", suppression=1, suppressed=suppressed,
        hierarchies={"a": Hierarchy.of({1: ["x"], 2: ["x"], 3: ["y"]})},
    )  # fmt: skip
    released = asked.fit_transform(table)
    assert asked.report_.suppressed == 3
    paper = asked.certificate(released, learning=False)
    assert paper.risk.rows == asked.report_.risk.rows == 0
    assert "All rows of the table are suppressed" in str(paper)


@pytest.mark.parametrize("suppressed", ["drop", "star"])
def test_a_class_of_stars_that_was_not_suppressed_is_at_risk_as_any_other(suppressed: str) -> None:
    """Local recoding may leave a class that says nothing but the sensitive value: who is in no other class is in that one."""
    drawn = random.Random(2)
    table = {"a": [drawn.choice("abcdef") for _ in range(30)], "s": [drawn.choice("pqr") for _ in range(30)]}
    asked = Anonymizer(
        ["a"], ["s"], [TCloseness("0.2")], {"a": Hierarchy.flat()}, search="local", suppression="0.5", suppressed=suppressed
    )
    released = asked.fit_transform(table)
    sizes = Counter(released["a"])
    assert 0 < sizes["*"] < len(released["a"]) == 30
    paper = asked.certificate(released, learning=False)
    assert (paper.risk.rows, paper.risk.classes, paper.risk.suppressed) == (30, len(sizes), 0)
    assert paper.risk.k == asked.report_.risk.k == min(sizes.values())
    assert paper.risk.t == asked.report_.risk.t


def test_what_the_report_calls_published_is_what_leaves() -> None:
    asked = Anonymizer(quasi=["a"], models=[KMap(3)], research="in", suppression="0.3", hierarchies={"a": Hierarchy.intervals(2)})
    released = asked.fit_transform(listed(0))
    told = f"{released.height} published; with the public list there are 60"
    assert asked.report_.published == told
    for text in (str(asked.report_), asked.report_.to_html(), asked.certificate(released, learning=False).to_html()):
        assert told in text
        assert " of 60 published" not in text


@pytest.mark.parametrize(
    ("values", "absent", "left"),
    [
        ([1, 2, 2, 1], [1, "?"], [2]),
        ([1, 2, 2, 1], [1.0, 2.5, 2**70, float("nan")], [2]),
        ([1.0, 2.0, 2.0, 1.0], [1], [2.0]),
        ([0.5, 2.0, 2.0, 0.5], [0.5, 7], [2.0]),
        ([Decimal("1.5"), Decimal("2.5")] * 2, [1.5], [Decimal("2.5")]),
        ([date(2020, 1, 1), date(2021, 1, 1)] * 2, [datetime(2020, 1, 1), datetime(2021, 1, 1, 5)], [date(2021, 1, 1)]),
        ([datetime(2020, 1, 1), datetime(2021, 1, 1)] * 2, [date(2020, 1, 1)], [datetime(2021, 1, 1)]),
        ([True, False, True, False], [1, "?"], [False, True]),
    ],
)
def test_what_stands_for_a_missing_value_may_be_of_another_kind_of_number(values: Any, absent: Any, left: Any) -> None:
    column = encode(read_frame({"x": values}), ["x"], missing_values=absent).columns["x"]
    assert [value for value in column.values if value is not None] == left
    asked = Anonymizer(quasi=["x"], models=[KAnonymity(2)], missing_values=absent, suppression=0)
    assert asked.certificate(asked.fit_transform({"x": values}), learning=False).holds


def test_a_certificate_names_one_digest_whatever_the_file_was_guarded_for() -> None:
    asked = Anonymizer(quasi=["a"], models=[KAnonymity(2)], suppression=0)
    paper = replace(asked.certificate(asked.fit_transform({"a": ["=1", "=1"]}), learning=False), digest="of the guarded file")
    told = paper.to_dict()
    assert told["digest"] == told["risk"]["digest"] == "of the guarded file"


def test_names_that_are_guarded_stay_two() -> None:
    told, changed = guarded(pl.DataFrame({"-d": ["=1"], "'-d": [2]}))
    assert (told.columns, changed) == (["''-d", "'-d"], ["-d"])


@pytest.mark.parametrize("line", ["name,age,name", 'name,age,"name"', "name;age;name", "name,age,Name"])
def test_of_two_columns_of_one_name_none_leaves_unnoticed(tmp_path: Path, line: str) -> None:
    """Readers of CSV rename the second: who said that the column of names is dropped would publish it under another name."""
    source, goal = tmp_path / "people.csv", tmp_path / "released.csv"
    between = ";" if ";" in line else ","
    source.write_text("".join(f"{each}\n" for each in [line, *[between.join(("Ann", "30", "Ann"))] * 4]), encoding="utf-8")
    asked = Anonymizer(quasi=["age"], identifying=["name"], models=[KAnonymity(2)], search="mondrian")
    with pytest.raises(InvalidParameter, match=r"two of its columns are called '[nN]ame'"):
        asked.transform_file(source, goal)
    assert not goal.exists()
    if line == "name,age,name":
        with pytest.raises(InvalidParameter, match="'name' stands there twice"):
            asked.fit_transform(source)


def test_moments_of_a_time_zone_come_from_pandas_and_go_back() -> None:
    pandas = pytest.importorskip("pandas")
    seen = pandas.to_datetime(["2020-01-01", "2020-01-01", None, None]).tz_localize("Europe/Berlin")
    asked = Anonymizer(quasi=["seen"], models=[KAnonymity(2)], suppression=0)
    released = asked.fit_transform(pandas.DataFrame({"seen": seen}))
    assert asked.certificate(released, learning=False).holds
    assert str(released["seen"].dtype.tz) == "Europe/Berlin"


def test_a_search_that_came_to_its_end_is_not_said_to_have_been_ended() -> None:
    drawn = random.Random(1)
    table = {"a": [drawn.choice("abcdef") for _ in range(20)], "s": [drawn.choice("pppppppq") for _ in range(20)]}
    asked = Anonymizer(["a"], ["s"], [LDiversity(1.6, kind="entropy")], search="greedy", suppression="0.3")
    with pytest.raises(InvalidParameter, match="the whole table as one class does not meet them"):
        asked.fit_transform(table)
    asked.stop = lambda: True
    with pytest.raises(CloisterError, match="The search was ended"):
        asked.fit_transform(table)


def holds(label: str, value: float) -> bool:
    """Whether an interval has a number, both read as they are written."""
    number = Fraction(repr(value))
    if found := re.fullmatch(r"\[(.+), (.+)\)", label):
        return Fraction(found[1]) <= number < Fraction(found[2])
    if found := re.fullmatch(r"(-?\d+)–(-?\d+)", label):
        return Fraction(found[1]) <= number <= Fraction(found[2])
    if found := re.fullmatch(r"under (.+)", label):
        return number < Fraction(found[1])
    found = re.fullmatch(r"(.+) and over", label)
    return number >= Fraction(found[1]) if found else label == "*" or Fraction(label) == number


@pytest.mark.parametrize("search", ["optimal", "topdown", "local"])
@pytest.mark.parametrize(
    "values",
    [
        [1.2] * 3 + [tenth / 10 for tenth in range(60)],
        [2**62 + more for more in range(60)],
        [10**17 + more for more in range(60)],
        [1_700_000_000_000 + (more if more < 50 else more * 10**7) for more in range(60)],
        [1700000000.0 + more / 1000 for more in range(50)] + [1800000000.0 + more for more in range(10)],
        [random.Random(1).uniform(-1, 1) * 1e-7 for _ in range(60)],
        [3e300, -3e300, 1e308, -1e308] * 3,
    ],
    ids=["tenths", "2^62", "10^17", "milliseconds", "seconds", "tiny", "widest"],
)
def test_an_interval_holds_the_number_that_it_stands_for(values: list[float], search: str) -> None:
    asked = Anonymizer(quasi=["dose"], models=[KAnonymity(3)], suppression=0, search=search, shuffle=False)
    labels = asked.fit_transform({"dose": values})["dose"]
    assert all(holds(str(label), value) for label, value in zip(labels, values, strict=True))


def test_a_border_between_tenths_is_where_it_is_written() -> None:
    column = encode(read_frame({"dose": [0.25, 0.3, 0.5]}), ["dose"]).columns["dose"]
    assert Hierarchy.intervals(0.1, 0.3).ladder(column).labels[1:3] == (
        ["[0.2, 0.3)", "[0.3, 0.4)", "[0.5, 0.6)"],
        ["[0, 0.3)", "[0.3, 0.6)"],
    )


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ([10**15 + 1000 * more for more in range(12)], 4),
        ([48 + more * 1e-6 for more in range(12)], 4),
        ([datetime(2020, 1, 1, more) for more in range(12)], 4),
        ([datetime(9999, 12, 31, 23, 59, 59, 999999)] * 4, 1),
        ([1.7e308] * 6 + [1.71e308] * 6, 2),
    ],
    ids=["large", "near", "hours", "last", "largest"],
)
def test_means_that_differ_are_told_apart(values: list[Any], kinds: int) -> None:
    asked = Anonymizer(quasi=["dose"], models=[KAnonymity(3)], search="microaggregation")
    assert len(set(asked.fit_transform({"dose": values})["dose"])) == kinds == asked.report_.classes
    assert all(
        0 <= after <= 1 for after in (asked.report_.utility[name][1] for name in ("loss", "certainty penalty", "precision"))
    )


def test_classes_that_read_alike_lose_what_both_cover() -> None:
    """A mean is the same for the ends and for the middle, in which the first class is hidden."""
    axis = axes_of(encode(read_frame({"age": [0, 4, 6, 10]}), ["age"]), ("age",), {})
    found = regions(axis, np.array([0, 1, 1, 0]), 2, aggregates={"age": "mean"})["age"]
    assert found.labels == ["5"]
    assert (found.shares.tolist(), found.widths.tolist()) == ([1.0], [1.0])
    found = regions(axis, np.array([0, 0, 1, 1]), 2, aggregates={"age": "mode"})["age"]
    assert found.shares.tolist() == [0.5, 0.5]


def test_a_branch_that_is_alone_in_the_table_is_under_the_root_all_the_same() -> None:
    ills = {"gastritis": "stomach", "ulcer": "stomach", "flu": "lung", "cough": "lung"}
    tree = Hierarchy.of({ill: [organ, "*"] for ill, organ in ills.items()})
    asked = Anonymizer(quasi=["a"], sensitive=["s"], models=[TCloseness(1, hierarchy=tree)])
    asked.fit_transform({"a": [1, 2] * 2, "s": ["gastritis", "ulcer"] * 2})
    assert "t = 0.25" in str(asked.report_)  # they meet on the first of two levels, and half of a class would have to move
