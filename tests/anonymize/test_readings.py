"""What a certificate counts is what a reader of the written file sees, whichever file and whichever reader."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.anonymize import Anonymizer, KAnonymity, LDiversity, risk
from cloister.anonymize.encoded import encode, one_writing
from cloister.anonymize.frames import read_frame
from cloister.anonymize.models.diversity import distinct_values
from cloister.anonymize.readings import one_reading, seen, shown
from cloister.errors import CloisterError

ZERO_WIDTH = "\u200b"
ALIKE: list[tuple[Any, Any]] = [
    ("", None),
    ("NA", None),
    ("nan", ""),
    (0.3, 0.1 + 0.2),
    (1e22, 1e22 + 2**22),
    (float("nan"), None),
    (-0.0, 0.0),
    ("gout", f"go{ZERO_WIDTH}ut"),
    ("gout", "gout\u00ad"),
    ("gout", "\ufeffgout"),
    ("gout", "gout\ufe0f"),
    ("gout", "\u2066gout\u2069"),
    ("gout", "g\u043eut"),
    ("gout", "gou\u03c4".replace("\u03c4", "t\u034f")),
    ("a b", "a\u00a0b"),
    ("a b", "a  b"),
    ("a b", "a\u2003b "),
    ("a b", "a\tb"),
    ("caf\u00e9", "cafe\u0301"),
    ("gout", "\uff47out"),
    ("fi", "\ufb01"),
    ("x-y", "x\u2010y"),
    ("1", "1.0"),
    ("1", "+1"),
]
APART: list[tuple[Any, Any]] = [
    ("gout", "Gout"),
    (0.3, 0.30000001),
    ("cafe", "caf\u00e9"),
    ("gout", "flu"),
    ("NA", "flu"),
    (1, 2),
    ("1.0", "2 pills"),
]


def table(one: Any, other: Any) -> pl.DataFrame:
    """Two classes, in each of which the two take turns."""
    return pl.DataFrame({"age": [30] * 4 + [60] * 4, "ill": pl.Series([one, other] * 4, strict=False)})


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_looks_alike_is_one_value(one: Any, other: Any) -> None:
    frame = table(one, other)
    assert risk(frame, ["age"], ["ill"]).l == 1
    with pytest.raises(CloisterError, match="2-diversity"):
        Anonymizer(["age"], ["ill"], [KAnonymity(2), LDiversity(2)], suppression=0).fit_transform(frame)
    for roles in ({"quasi": ["age"], "sensitive": ["ill"]}, {"quasi": ["ill"], "sensitive": ["age"]}):
        asked = Anonymizer(**roles, models=[KAnonymity(2)], suppression=0)  # type: ignore[arg-type]
        released = asked.fit_transform(frame)
        paper = asked.certificate(released, learning=False)
        assert len(set(released.select("ill").write_csv().splitlines()[1:])) == 1
        for read in (pl.read_csv(io.BytesIO(released.write_csv().encode())), pd.read_csv(io.StringIO(released.write_csv()))):
            again = risk(read, roles["quasi"], roles["sensitive"])
            assert (again.k, again.l) == (paper.risk.k, paper.risk.l)


@pytest.mark.parametrize(("one", "other"), APART)
def test_what_can_be_seen_to_differ_stays_apart_and_as_it_is(one: Any, other: Any) -> None:
    frame = table(one, other)
    assert risk(frame, ["age"], ["ill"]).l == 2
    released = Anonymizer(["age"], ["ill"], [KAnonymity(2), LDiversity(2)], suppression=0).fit_transform(frame)
    assert set(released["ill"]) == {one, other}


TAKEN_ALIKE = [
    ("1", "01"),
    ("1", "+1.0"),
    ("1", "1." + "0" * 60),
    ("100000", "1e0005"),
    ("inf", "+Infinity"),
    ("1e400", "9" * 5000),
    ("true", "TRUE"),
    ("9007199254740992", "9007199254740993.0"),
    ("2020-01-02", "2020-01-02 00:00:00"),
    (2**53, 2**53 + 1),
]
"""What a reader of CSV takes for one number, Boolean or day, where nothing else in the column keeps it from that."""


def read_by_all(text: str) -> list[list[list[Any]]]:
    """The rows of a CSV file, as everybody's program reads them."""
    frames = [pl.read_csv(text.encode()), pl.read_csv(text.encode(), try_parse_dates=True)]
    read = [[list(row) for row in frame.rows()] for frame in frames]
    read.append(pd.read_csv(io.StringIO(text)).astype(object).to_numpy().tolist())
    return [*read, list(csv.reader(io.StringIO(text)))[1:]]


@pytest.mark.parametrize("star", [False, True])
@pytest.mark.parametrize(
    "beside", [[], ["NA"], ["other"]], ids=["alone", "beside a missing one", "beside one that is suppressed"]
)
@pytest.mark.parametrize(("one", "other"), TAKEN_ALIKE)
def test_no_reader_finds_fewer_sensitive_values_than_were_certified(one: Any, other: Any, beside: list[Any], star: bool) -> None:
    """What else stands in a column may keep a reader from taking its texts for numbers; suppressed, it does no more."""
    values = [one, other, *([None] if beside and isinstance(one, int) else beside)]
    ages = [30] * 4 + [60] * 4
    ills = [one, other] * 4
    for extra in values[2:]:
        ages, ills = [*ages, 97], [*ills, extra]
    frame = pl.DataFrame({"age": ages, "ill": pl.Series(ills, strict=False)})
    asked = Anonymizer(["age"], ["ill"], [KAnonymity(2)], suppression="0.2", suppressed="star" if star else "drop")
    released = asked.fit_transform(frame)
    certified = asked.certificate(released, learning=False).risk
    judged = asked.recoded_.classes  # what models are counted on
    least = int(distinct_values(judged.spread("ill")).min())
    for rows in read_by_all(released.write_csv()):
        classes = defaultdict(list)
        for age, ill in rows:
            if age != "*":
                classes[age].append(None if pd.isna(ill) else ill)
        assert max(certified.l, least) <= min(len(set(each)) for each in classes.values())
        assert certified.k <= min(map(len, classes.values()))
    if not isinstance(one, int) and not beside:
        with pytest.raises(CloisterError, match="2-diversity"):
            Anonymizer(["age"], ["ill"], [LDiversity(2)], suppression="0.2").fit_transform(frame)


def test_codes_that_begin_with_a_zero_stay_what_they_are() -> None:
    """Of postcodes, and of codes that no other reads like; k is counted as by a program that tells all of them apart."""
    frame = {"post": ["01", "1"] * 3, "ill": ["011", "012", "A"] * 2}
    released = Anonymizer(["post"], ["ill"], [KAnonymity(3)], suppression=0).fit_transform(frame)
    assert {name: sorted(set(values)) for name, values in released.items()} == {
        "post": ["01", "1"],
        "ill": ["011", "012", "A"],
    }
    for values in (["1", "1.0"], ["", None], ["NA", ""], ["x", "x "]):
        assert risk({"post": values * 3}, quasi=["post"]).k == 3


def test_a_program_that_tells_rows_apart_is_not_credited_with_what_the_eye_sees() -> None:
    """k of a file that is not ours: a mark without a glyph in each row makes each row the only one of its kind."""
    marked = {"age": ["30" + ZERO_WIDTH * place for place in range(5)]}
    assert risk(marked, quasi=["age"]).k == 1
    released = Anonymizer(["age"], models=[KAnonymity(5)], suppression=0).fit_transform(marked)
    assert len(set(released["age"])) == 1
    assert risk(released, quasi=["age"]).k == 5


def test_a_larger_file_is_read_and_written_in_the_same_way(tmp_path: Any) -> None:
    frame = pl.concat([table("gout", "gout" + ZERO_WIDTH), table("flu", "\u0192lu".replace("\u0192", "f\u2060"))])
    frame.write_parquet(tmp_path / "people.parquet")
    asked = Anonymizer(["age"], ["ill"], [KAnonymity(2), LDiversity(2)], suppression=0)
    for ending in ("csv", "parquet"):
        assert asked.transform_file(tmp_path / "people.parquet", tmp_path / f"out.{ending}").report.models[1].holds
        read = pl.read_csv(tmp_path / "out.csv") if ending == "csv" else pl.read_parquet(tmp_path / "out.parquet")
        assert sorted(set(read["ill"])) == ["flu", "gout"]


PIECES = st.sampled_from(["a", "b", "A", " ", "\u00a0", ZERO_WIDTH, "\u0430", "e\u0301", "\u00e9", "0", "1", ".", "NA", "\ufe0f"])
TEXTS = st.one_of(st.none(), st.lists(PIECES, max_size=3).map("".join))


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=12), st.booleans())
def test_counted_and_written_alike(values: list[str | None], categorical: bool) -> None:
    """Two rows have one code where, and only where, they are written alike; what is written reads as what was there."""
    series = pl.Series("x", values, dtype=pl.String)
    if categorical:
        series = series.cast(pl.Categorical)
    codes = encode(read_frame(pl.DataFrame({"x": series})), ["x"]).columns["x"].codes.tolist()
    written = one_writing(series).cast(pl.String).to_list()
    by_code, by_text = defaultdict(set), defaultdict(set)
    for code, text in zip(codes, written, strict=True):
        by_code[code].add(text)
        by_text[text].add(code)
    assert all(len(each) == 1 for each in (*by_code.values(), *by_text.values()))
    assert [shown(text) for text in written] == [shown(text) for text in values]
    again = encode(read_frame({"x": written}), ["x"]).columns["x"].codes.tolist()
    assert again == codes


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.3, 0.1 + 0.2, 0.7, 0.1 * 7])), min_size=1, max_size=20))
def test_numbers_are_one_up_to_fifteen_digits(values: list[float]) -> None:
    ordered = sorted({each + 0.0 for each in values})
    read = one_reading(ordered) or list(range(len(ordered)))
    texts = [f"{each:.15g}" for each in ordered]
    for place, chosen in enumerate(read):
        assert chosen is not None
        assert texts[place] == texts[chosen]
        assert all((read[other] == chosen) == (texts[other] == texts[place]) for other in range(len(ordered)))


@given(st.text())
def test_a_look_has_one_look(text: str) -> None:
    assert seen(seen(text)) == seen(text)
