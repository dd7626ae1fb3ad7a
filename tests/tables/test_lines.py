"""CSV: a line can affect nothing but itself, whatever bytes it holds."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cloister as cl
from cloister.errors import CloisterError, EngineError
from cloister.tables import Aggregation, Category, Integer, PrivateTable, Real, Text, prepare
from cloister.tables.sourcing import lines
from cloister.tables.sourcing.lines import batches, malformed_sql, read_header, rows_sql
from cloister.tables.sourcing.reading import spelt
from cloister.tables.sourcing.sources import spelt_sql

PIECES = [
    b'"',
    b'""',
    b",",
    b";",
    b"\t",
    b"\r",
    b"\x00",
    b"\xff",
    b"\xc3",
    b"\xc3\xa9",
    b" ",
    b"a",
    b"7",
    b"\x1f",
    b"\\",
    b"'",
    b"\x85",
    b"\xe2\x80\xa8",
]
LINE = st.lists(st.sampled_from(PIECES), max_size=7).map(b"".join) | st.binary(max_size=12).map(lambda b: b.replace(b"\n", b""))


def read(content: bytes, *, name: str = "rows.csv") -> Counter[tuple[str | None, ...]]:
    """The rows that a file gives."""
    with TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / name
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        header = read_header(path)
        connection.register("cloister_source", batches(path, header))
        names = [f'"{i}"' for i in range(len(header.names))]
        return Counter(connection.execute(rows_sql("cloister_source", header, names)).fetchall())


def malformed(path: Path) -> int:
    header = read_header(path)
    with duckdb.connect() as connection:
        connection.register("cloister_source", batches(path, header))
        (count,) = connection.execute(malformed_sql("cloister_source", header)).fetchone() or (None,)
    return int(count)


def expected(line: bytes, delimiter: str, count: int) -> tuple[str | None, ...] | None:
    """The row of a line, read character by character: a second way to say what `lines.py` says with patterns."""
    line = line.removesuffix(b"\r")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    if not text:
        return None
    fields: list[str] = []
    at = 0
    while True:
        field = ""
        if text[at : at + 1] == '"':
            at += 1
            while True:
                if at >= len(text):
                    return None
                if text[at : at + 2] == '""':
                    field, at = field + '"', at + 2
                elif text[at] == '"':
                    at += 1
                    break
                else:
                    field, at = field + text[at], at + 1
            if at < len(text) and text[at] != delimiter:
                return None
        else:
            while at < len(text) and text[at] != delimiter:
                field, at = field + text[at], at + 1
        fields.append(field)
        if at >= len(text):
            break
        at += 1
    return tuple(field or None for field in fields) if len(fields) == count else None


@settings(max_examples=60, deadline=None)
@given(st.lists(LINE, max_size=6), st.sampled_from([(b"a,b", ","), (b"a;b;c", ";"), (b"a\tb", "\t"), (b"a|b", "|"), (b"a", ",")]))
@example([b'"evil', b"n1,30", b'z",31'], (b"a,b", ","))
def test_each_line_is_its_own_row(content: list[bytes], header: tuple[bytes, str]) -> None:
    """So adding or removing a line adds or removes at most its row."""
    first, delimiter = header
    found = read(b"\n".join([first, *content]))
    rows = (expected(line, delimiter, len(first.split(delimiter.encode()))) for line in content)
    assert found == Counter(row for row in rows if row is not None)


@settings(max_examples=20, deadline=None)
@given(st.lists(LINE, max_size=8), LINE, st.integers(0, 8), st.integers(2, 40), st.sampled_from([b"\n", b"\r\n"]))
def test_one_more_line_moves_no_other_wherever_chunks_end(
    content: list[bytes], line: bytes, place: int, chunk: int, ending: bytes
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_CHUNK", chunk)
        patch.setattr(lines, "LONGEST_LINE", 11)
        less = read(ending.join([b"a,b", *content, b""]), name="rows.csv.gz")
        more = read(ending.join([b"a,b", *content[:place], line, *content[place:]]))
    assert less <= more
    assert (more - less).total() <= 1


def test_a_stray_quote_swallows_nobody(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rows = [f"n{i},30" for i in range(500)] + ['z",31']
    for content, count in ((rows, 501), ([*rows[:10], '"evil', *rows[10:]], 501)):
        path.write_text("\n".join(["name,age", *content]))
        table = PrivateTable(path, columns={"age": Integer(0, 120)}, unit="name", max_rows=1)
        with prepare(table) as prepared:
            assert prepared.aggregate(Aggregation(prepared)).values["rows"].tolist() == [count]
            assert prepared.owner_report().rows_malformed == len(content) - count


@pytest.mark.parametrize(
    "last", [b"Alice Secret,HIV+,44", b'"Alice" Secret,44', b"short", b"\xff\xfe,44", b'"', b"x" * (2**20 + 1) + b",44"]
)
@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_a_malformed_line_is_dropped_and_counted(tmp_path: Path, last: bytes, ending: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"name,age\nAnn,39\n\n\r\n" + last + ending)
    with prepare(PrivateTable(path, columns={"name": Text(), "age": Integer(0, 120)})) as prepared:
        assert prepared.rows(["age"])["age"].tolist() == [39]
        report = prepared.owner_report()
    assert (report.rows, report.rows_malformed) == (1, 1)
    assert malformed(path) == 1


def test_a_name_in_capitals_says_what_it_says_in_small_letters(tmp_path: Path) -> None:
    path = tmp_path / "P.CSV.GZ"
    path.write_bytes(gzip.compress(b"n\n3\n4\n"))
    with prepare(PrivateTable(path, columns={"n": Integer(0, 9)})) as prepared:
        assert sorted(prepared.rows(["n"])["n"].tolist()) == [3, 4]


def test_quotes_are_undone(tmp_path: Path) -> None:
    found = read(b'\xef\xbb\xbf"a ""b""",c\r\n"x, y","say ""hi"""\r\n5" pipe,"plain"\r\n"",\r\n')
    assert found == {("x, y", 'say "hi"'): 1, ('5" pipe', "plain"): 1, (None, None): 1}


def test_a_line_is_as_long_as_its_bytes_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is read alone, with others, across chunks, or ends in a carriage return."""
    monkeypatch.setattr(lines, "LONGEST_LINE", 16)
    for chunk in range(1, 40):
        monkeypatch.setattr(lines, "_CHUNK", chunk)
        content = [
            b"x" * 14 + b",1",
            b"x" * 15 + b",2",
            b"x" * 13 + b",3\r",
            b"x" * 14 + b",4\r",
            "é".encode() * 7 + b",5",
            "é".encode() * 8 + b",6",
        ]
        assert {row[1] for row in read(b"\n".join([b"a,b", *content]))} == {"1", "3", "5"}, chunk


def test_construction_reads_no_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"name,age\nAnn\xff,39\n")
    assert dict(PrivateTable(path, columns={"age": Integer(0, 120)}).source.schema) == {"name": "text", "age": "text"}
    compressed = tmp_path / "rows.csv.gz"
    compressed.write_bytes(gzip.compress(b"name,age\n") + b"torn")
    PrivateTable(compressed, columns={"age": Integer(0, 120)})


@pytest.mark.parametrize("first", [b"a\xff,b\n", b'"a,b\n', b"a\rb\r", b"x" * (2**20 + 1)])
def test_a_first_line_that_names_nothing_is_refused(tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(first + b"1,2\n")
    with pytest.raises(CloisterError) as caught:
        PrivateTable(path, columns={"a": Category(["1"])})
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("", "one of its columns has no name"),
        ("Patients 2024;;", "no title above them"),
        ("sep=;\n", "no title above them"),
        ("Age", "'Age' and 'age': names differ in more than case"),
        ("age", "are named 'age'."),
        ("sex\u00e9", "saved once more, as CSV in UTF-8"),
    ],
)
def test_a_first_line_that_is_refused_says_how_to_mend_it(tmp_path: Path, first: str, words: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(f"{first},age\n1,2\n".encode("latin-1"))
    with pytest.raises(CloisterError, match=words):
        PrivateTable(path, columns={"age": Integer(0, 9)})


def test_a_file_with_new_columns_is_not_read_by_the_old_ones(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("age,pay\n39,99\n")
    table = PrivateTable(path, columns={"age": Integer(0, 120)})
    path.write_text("pay,age\n99,39\n")
    with pytest.raises(EngineError, match="could not be prepared"):
        prepare(table)


KINDS = ("decimal", "whole", "date")
PAYS = ["3,5", "3.5", '" 2,25 "', ",5", "-1,5", "1,5e1", "1.234,5", "3,5,1", "1 000,5", "a,b", ","]


@pytest.mark.parametrize(("mark", "read"), [(";", [0.5, 2.25, 3.5, 3.5, 15.0]), ("\t", [3.5])])
def test_between_semicolons_numbers_may_have_a_decimal_comma(tmp_path: Path, mark: str, read: list[float]) -> None:
    """Spreadsheets write the two together; a text stays what it was, and of each field its own characters decide."""
    lines = [f'{pay}{mark}"1,5"' for pay in PAYS]
    (tmp_path / "people.csv").write_text("\n".join([f"pay{mark}size", *lines]), encoding="utf-8")
    columns = {"pay": Real(0, 20, step="0.25"), "size": Category(["1,5", "1.5"])}
    with prepare(PrivateTable(str(tmp_path / "people.csv"), columns)) as prepared:
        report, offenders = prepared.owner_report(), prepared.owner_offenders()
    below = (("-1.5", 1),) if mark == ";" else ()
    assert (report.rows, report.columns["size"].nulled, offenders["pay"].clamped) == (11, 0, below)
    assert report.columns["pay"].given - report.columns["pay"].nulled == len(read) + len(below)
    rows = PrivateTable(str(tmp_path / "people.csv"), columns)
    session = cl.Session({"people": rows}, budget=cl.PureDP(10**9))
    for number in set(read):
        found = session.sql(f"SELECT COUNT(*) AS n FROM people WHERE pay = {number}", spend=10**6)
        assert round(found["n"][0]) == read.count(number)


@pytest.mark.parametrize(("mark", "people"), [(";", [1234, 1_234_567, 2000, 7, 1]), (",", [1, None, 2, 7, 1])])
def test_between_semicolons_whole_numbers_may_have_groups_of_three(tmp_path: Path, mark: str, people: list[int | None]) -> None:
    lines = [f"{each}{mark}2.000" for each in ("1.234", "1.234.567", " 2.000 ", "7.0", "1.23")]
    (tmp_path / "towns.csv").write_text("\n".join([f"people{mark}beds", *lines]), encoding="utf-8")
    columns = {"people": Integer(0, 9_999_999, nullable=True), "beds": Real(0, 9999, step=1)}
    with prepare(PrivateTable(str(tmp_path / "towns.csv"), columns), secret="00" * 16) as prepared:
        found = prepared.rows(list(columns))
    read = [None if each == columns["people"].null_code else each for each in found["people"].tolist()]
    assert Counter(read) == Counter(people)  # an engine of several threads keeps no order
    assert set(found["beds"].tolist()) == {2}


@given(st.text("012.,e -:T", max_size=18), st.sampled_from(",;"))
@example("-1.234.567,00 ", ";")
@example(" 1.2.2024 9:05", ",")
def test_python_and_duckdb_read_a_cell_alike(text: str, mark: str) -> None:
    read = spelt_sql("cell", KINDS, mark)
    [(found,)] = duckdb.execute(f"SELECT {read} FROM (SELECT ? AS cell)", [text]).fetchall()
    assert spelt(text, KINDS, mark) == found


def test_a_public_table_reads_numbers_alike(tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("town;beds\nDelft;2,5\nGouda;1\n", encoding="utf-8")
    towns = cl.PublicTable(str(tmp_path / "towns.csv"), {"town": Category(["Delft", "Gouda"]), "beds": Real(0, 9, step="0.5")})
    people = cl.PrivateTable({"town": ["Delft"] * 4}, {"town": Category(["Delft", "Gouda"])})
    session = cl.Session({"people": people, "towns": towns}, budget=cl.PureDP(10**9))
    found = session.sql("SELECT SUM(beds) AS beds FROM people JOIN towns USING (town)", spend=10**6)
    assert round(float(found["beds"][0]), 1) == 10


@pytest.mark.parametrize("mark", [";", ","])
def test_days_may_be_written_with_points(tmp_path: Path, mark: str) -> None:
    """With points the day comes first, wherever they are written so."""
    given = ["31.12.2024", "3.4.2024", " 05.06.2024", "2024-06-05", "29.02.2023", "13.13.2024", "1.2.24", "1.2.2024x", "1/2/2024"]
    moments = ["31.12.2024 14:05", "1.2.2024 00:00:00.5", "2024-02-01T00:00:00.5-01:00", "5.6.2024", "5.6.2024 24:00"]
    moments += ["1.2.2024 9:05", "1.2.2024 9:5"]
    lines = [f"{day}{mark}{moment}{mark}1.2.2024" for day, moment in zip_longest(given, moments, fillvalue="")]
    (tmp_path / "visits.csv").write_text("\n".join([mark.join(["day", "at", "text"]), *lines]), encoding="utf-8")
    columns = {
        "day": cl.Date("2024-01-01", "2024-12-31"),
        "at": cl.Moment("2024-01-01", "2024-12-31T23:59:59"),
        "text": Category(["1.2.2024"]),
    }
    table = PrivateTable(str(tmp_path / "visits.csv"), columns)
    with prepare(table) as prepared:
        columns = prepared.owner_report().columns
    assert {name: each.given - each.nulled for name, each in columns.items()} == {"day": 4, "at": 5, "text": 9}
    session = cl.Session({"visits": table}, budget=cl.PureDP(10**9))
    for day, times in (("2024-12-31", 1), ("2024-04-03", 1), ("2024-06-05", 2)):
        found = session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE day = '{day}'", spend=10**6)
        assert round(found["n"][0]) == times
    found = session.sql("SELECT COUNT(*) AS n FROM visits WHERE HOUR(at) = 9", spend=10**6)
    assert round(found["n"][0]) == 1


def test_names_stay_as_they_are_written(tmp_path: Path) -> None:
    """A comma in a name is part of it, declared or not: else what goes through it would find nothing."""
    rows = range(100)
    visits, notes = tmp_path / "visits.csv", tmp_path / "notes.csv"
    visits.write_text("pid;visit\n" + "".join(f"{row};{row},1\n" for row in rows), encoding="utf-8")
    notes.write_text("visit;day\n" + "".join(f"{row},1;1.2.2024\n" for row in rows), encoding="utf-8")
    of_visits = PrivateTable(str(visits), {"visit": cl.Identifier()}, "pid", 1, "patients")
    day = cl.Date("2024-01-01", "2024-12-31")
    of_notes = PrivateTable(str(notes), {"day": day}, "visit", 1, "patients", through="visits.visit")
    session = cl.Session({"visits": of_visits, "notes": of_notes}, budget=cl.PureDP(10**9))
    found = session.sql("SELECT COUNT(*) AS n FROM visits JOIN notes ON visits.visit = notes.visit", spend=10**6)
    assert round(found["n"][0]) == len(rows)


def test_what_fits_nothing_is_shown_as_it_is_written(tmp_path: Path) -> None:
    """An owner looks for it in the file."""
    pays = ["3,5 kg", "1.234,5", "1,2,3", "Ulm, Bonn"]
    (tmp_path / "people.csv").write_text("\n".join(["pay;day", *(f"{pay};31.12.2024 12 Uhr" for pay in pays)]), encoding="utf-8")
    columns = {"pay": Real(0, 20, step="0.25"), "day": cl.Date("2024-01-01", "2024-12-31")}
    with prepare(PrivateTable(str(tmp_path / "people.csv"), columns)) as prepared:
        found = prepared.owner_offenders()
    assert sorted(found["pay"].nulled) == sorted((each, 1) for each in pays)
    assert found["day"].nulled == (("31.12.2024 12 Uhr", len(pays)),)
