"""Hierarchies: each kind, what it makes of odd values, and what it refuses by name."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.anonymize import Hierarchy
from cloister.anonymize.encoded import EncodedColumn, encode
from cloister.anonymize.frames import read_frame
from cloister.anonymize.hierarchies.chosen import choose_hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.errors import CloisterError, InvalidParameter
from tests.tiers import by_day_and_night


def column_of(values: list[Any]) -> EncodedColumn:
    """A column of values."""
    return encode(read_frame({"x": values}), ["x"]).columns["x"]


def names(ladder: Ladder, value: Any) -> list[Any]:
    """What a value is called on each level."""
    place = next(place for place, each in enumerate(ladder.labels[0]) if each == value or (each is None and value is None))
    return [ladder.labels[level][ladder.codes[level][place]] for level in range(ladder.height)]


def test_intervals() -> None:
    ladder = Hierarchy.intervals(5, 10, low=18, high=90).ladder(column_of([17, 18, 42, 90, 93]))
    assert names(ladder, 42) == [42, "40–44", "40–49", "*"]
    assert names(ladder, 17) == [17, "under 18", "under 18", "*"]
    assert names(ladder, 93) == [93, "over 90", "over 90", "*"]
    assert ladder.total == 75  # 18 to 90, and the two outside
    assert ladder.shares(1)[ladder.codes[1][2]] == pytest.approx(5 / 75)
    real = Hierarchy.intervals(0.5).ladder(column_of([0.1, 0.5, -0.2]))
    assert names(real, -0.2) == [-0.2, "[-0.5, 0)", "*"]


def test_cuts() -> None:
    ladder = Hierarchy.intervals(cuts=[[18, 30, 65], [30]]).ladder(column_of([10, 18, 64, 65]))
    assert names(ladder, 10) == [10, "under 18", "under 30", "*"]
    assert names(ladder, 18) == [18, "18–29", "under 30", "*"]
    assert names(ladder, 65) == [65, "65 and over", "30 and over", "*"]


def test_dates() -> None:
    ladder = Hierarchy.dates("day", "month", "quarter", "half", "year", "decade", "century").ladder(
        column_of([datetime.date(1987, 5, 4), datetime.date(2001, 1, 1)])
    )
    assert names(ladder, datetime.date(1987, 5, 4))[1:] == [
        "1987-05-04",
        "1987-05",
        "1987 Q2",
        "1987 H1",
        "1987",
        "1980s",
        "1900–1999",
        "*",
    ]


def test_masking() -> None:
    ladder = Hierarchy.masking(4, 2).ladder(column_of(["81675", "81925", "817"]))
    assert names(ladder, "81675") == ["81675", "8167*", "81***", "*"]
    assert names(ladder, "817") == ["817", "817**", "81***", "*"]
    left = Hierarchy.masking(2, side="left").ladder(column_of(["81675", "925"]))
    assert names(left, "81675") == ["81675", "***75", "*"]


def test_functions() -> None:
    ladder = Hierarchy.function(lambda town: town[0], lambda town: "all").ladder(column_of(["Ulm", "Unna", "Bonn"]))
    assert names(ladder, "Ulm") == ["Ulm", "U", "all", "*"]
    with pytest.raises(InvalidParameter, match="raised IndexError for the value ''"):
        Hierarchy.function(lambda town: town[0]).ladder(column_of(["", "Ulm"]))


def test_missing_values_keep_to_themselves_under_the_top() -> None:
    for hierarchy in (Hierarchy.intervals(10), Hierarchy.masking(1), Hierarchy.of({31: ["30s", "*"], 45: ["40s", "*"]})):
        ladder = hierarchy.ladder(column_of([31, 45, None]))
        assert names(ladder, None) == [None, "(missing)", "*"]


def test_a_hierarchy_is_read_and_written_as_arx_does(tmp_path: Path) -> None:
    pets = Hierarchy.of([["cat", "mammal", "*"], ["dog", "mammal", "*"], ["owl", "bird", "*"]])
    pets.write_csv(tmp_path / "pets.csv")
    assert (tmp_path / "pets.csv").read_text() == "cat;mammal;*\ndog;mammal;*\nowl;bird;*\n"
    assert Hierarchy.read_csv(tmp_path / "pets.csv") == pets
    (tmp_path / "headed.csv").write_text("level_0,level_1\n39,*\n40,*\n")
    ages = Hierarchy.read_csv(tmp_path / "headed.csv")
    assert ages.ladder(column_of([39.0, 40.0])).height == 2
    (tmp_path / "quoted.csv").write_text('"a;b";"x"\n"""c""";"x"\n')
    assert Hierarchy.read_csv(tmp_path / "quoted.csv").lines == (("a;b", "x"), ('"c"', "x"))
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidParameter, match="could not be read"):
        Hierarchy.read_csv(tmp_path / "binary.csv")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("0,125;0,5–1,5;*\n1;0,5–1,5;*\n", (("0,125", "0,5–1,5", "*"), ("1", "0,5–1,5", "*"))),
        ("猫；哺乳动物；*\n鹰；鸟；*\n", (("猫", "哺乳动物", "*"), ("鹰", "鸟", "*"))),
        ("猫，哺乳动物\n鹰，鸟\n", (("猫", "哺乳动物"), ("鹰", "鸟"))),
        ('"a\u2028b";x\n"c\x85d";"y\nz"\n', (("a\u2028b", "x"), ("c\x85d", "y\nz"))),
        ("a;x\r\nb;y", (("a", "x"), ("b", "y"))),
    ],
)
def test_the_mark_is_one_that_parts_every_line_alike(tmp_path: Path, text: str, lines: Any) -> None:
    (tmp_path / "levels.csv").write_text(text, encoding="utf-8", newline="")
    assert Hierarchy.read_csv(tmp_path / "levels.csv").lines == lines


def test_leaves_are_counted_over_the_whole_hierarchy() -> None:
    ladder = Hierarchy.of({"cat": ["mammal", "*"], "dog": ["mammal", "*"], "owl": ["bird", "*"]}).ladder(column_of(["cat"]))
    assert ladder.total == 3
    assert [float(ladder.shares(level)[0]) for level in range(3)] == [1 / 3, 2 / 3, 1.0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Hierarchy.of({"cat": ["mammal", "*"]}).ladder(column_of(["cat", "emu 🐦"])), "no line for the value 'emu 🐦'"),
        (lambda: Hierarchy.of({"a": ["x", "*"], "b": ["x"]}), "'b' has 1 levels, and 'a' has 2"),
        (lambda: Hierarchy.of([["a", "x"], ["a", "y"]]), "'a' stands there twice"),
        (lambda: Hierarchy.of({}), "it has no value"),
        (
            lambda: Hierarchy.of({"a": ["x", "1"], "b": ["x", "2"]}).ladder(column_of(["a", "b"])),
            "'a' and 'b' are both 'x' on level 1, but '1' and '2' on level 2",
        ),
        (lambda: Hierarchy.intervals(5, 12), "12 is not a multiple of 5"),
        (lambda: Hierarchy.intervals(0), "not a positive number"),
        (lambda: Hierarchy.intervals(5, low=9, high=1), "low is not under high"),
        (lambda: Hierarchy.intervals(cuts=[[3, 1]]), "do not rise"),
        (lambda: Hierarchy.intervals(cuts=[[1, 3], [2]]), "2 is not a border of the level below"),
        (lambda: Hierarchy.intervals(5).ladder(column_of(["a"])), "invalid: its values are of the kind text.\n"),
        (lambda: Hierarchy.dates("fortnight"), "not one of day, month"),
        (lambda: Hierarchy.dates("year", "month"), "do not become coarser"),
        (lambda: Hierarchy.dates("year").ladder(column_of([3])), "invalid: its values are of the kind integer.\n"),
        (lambda: Hierarchy.masking(1, 2), "do not fall"),
        (lambda: Hierarchy.masking(side="up"), "neither left nor right"),
        (lambda: Hierarchy.masking(character="ab"), "not one character"),
        (lambda: Hierarchy.learnt(groups=(2, 4)), "do not fall"),
    ],
)
def test_what_is_refused(make: Any, words: str) -> None:
    with pytest.raises(CloisterError, match=words):
        make()


def test_categories_that_behave_alike_are_joined_first() -> None:
    work = ["clerk", "teller", "miner", "driller"] * 50
    pay = [300, 300, 900, 900] * 50
    table = encode(read_frame({"work": work, "pay": pay}), ["work", "pay"])
    ladder = Hierarchy.learnt(groups=(2,)).ladder(table.columns["work"], table)
    assert ladder.labels[1] == ["clerk | teller", "driller | miner"]


def test_many_categories_are_learnt_in_a_moment() -> None:
    values = [f"v{n * n % 1009}" for n in range(5000)]
    table = encode(read_frame({"x": values, "y": [n % 7 for n in range(5000)]}), ["x", "y"])
    ladder = Hierarchy.learnt().ladder(table.columns["x"], table)
    sizes = [len(labels) for labels in ladder.labels]
    assert sizes[-1] == 1
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([True, False], "shown or not shown"),
        ([datetime.date(2000, 1, 1)], "dates by month, quarter, year, decade"),
        ([f"{n:05}" for n in range(30)], "masked from the right, one character after the other"),
        (["red", "green", "blue"], "learnt groups that keep what is known of the other columns"),
        (list(range(17, 91)), "intervals of 5, 10, 20, 40"),
        ([0] * 90 + [n * n for n in range(1, 11)], "intervals between 4, 2, 1 borders"),
        ([1], "shown or not shown"),
    ],
)
def test_what_a_column_gets_that_has_none(values: list[Any], said: str) -> None:
    assert choose_hierarchy(column_of(values)).describe() == said


@by_day_and_night("longest", 90_000, 1_000_000)
def test_a_long_table_gets_finer_intervals(longest: int) -> None:
    """Some three thousand rows in an interval of the first level, and at most 512 intervals: even, and lopsided."""
    for rows, power, least, most in (
        (90_000, 1, 16, 33), (90_000, 3, 15, 33), (300_000, 1, 50, 101), (300_000, 3, 50, 101), (1_000_000, 1, 200, 513)
    ):  # fmt: skip
        if rows <= longest:
            column = encode(read_frame({"x": np.arange(rows) ** power // 10 ** (2 * power - 2)}), ["x"]).columns["x"]
            assert least <= len(choose_hierarchy(column).ladder(column).labels[1]) <= most


@given(st.lists(st.one_of(st.none(), st.integers(-(10**6), 10**6)), max_size=60))
def test_chosen_levels_only_join(values: list[int | None]) -> None:
    column = column_of(values)
    ladder = choose_hierarchy(column).ladder(column)
    assert len(ladder.labels[-1]) <= 1 or len(column) <= 1
    for lower, upper in zip(ladder.codes, ladder.codes[1:], strict=False):
        pairs = set(zip(lower.tolist(), upper.tolist(), strict=True))
        assert len(pairs) == len(set(lower.tolist()))
    assert np.all(ladder.shares(ladder.height - 1) <= 1.0)


@by_day_and_night("values", 100_000, 1_000_000)
def test_as_many_values_as_there_are_rows(values: int) -> None:
    column = encode(read_frame({"x": np.arange(values)}), ["x"]).columns["x"]
    ladder = choose_hierarchy(column).ladder(column)
    assert len(ladder.labels[0]) == values
    assert ladder.labels[-1] == ["*"]


def test_a_border_is_written_in_full() -> None:
    """Six digits would say "1.23457e+06 and over" of somebody who is under it."""
    column = column_of([1234560, 1234567, 1234569])
    ladder = Hierarchy.intervals(cuts=[[1234567]]).ladder(column)
    assert ladder.labels[1] == ["1234567 and over", "under 1234567"]
