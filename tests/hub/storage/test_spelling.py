"""Files as people write them: numbers and days of six countries, missing values, two lines of names, ragged lines; and prose."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.hub.storage import Limits, Reading, RefusedUpload
from cloister.hub.storage.encodings import Recoder
from cloister.hub.storage.spelling import Rewriter, reader_of
from cloister.hub.storage.texts import TextCheck
from cloister.tables.engines.connection import connected
from cloister.tables.sourcing.sources import CsvSource

GERMAN = Reading(numbers="comma", dates="dmy", missing=("k.A.", "-99"), short=True)


def rewritten(text: str, how: Reading, piece: int = 3) -> str:
    content, recoder, rewriter = text.encode(), Recoder(named=how.lines == 1), Rewriter(how)
    pieces = [content[start : start + piece] for start in range(0, len(content), piece)]
    found = b"".join(rewriter.feed(recoder.feed(each), recoder.filled) for each in pieces)
    return (found + rewriter.feed(recoder.finish(), recoder.filled) + rewriter.finish()).decode()


def test_a_piece_that_ends_within_a_letter_loses_nothing() -> None:
    content = "name,town\n王小明,北京\nZoë,Köln\n".encode()
    for first in range(len(content)):
        for second in range(first, min(first + 7, len(content))):
            recoder = Recoder()
            pieces = (content[:first], content[first:second], content[second:])
            assert b"".join(map(recoder.feed, pieces)) + recoder.finish() == content, (first, second)


@pytest.mark.parametrize(
    ("numbers", "dates", "written", "read"),
    [
        ("comma", "dmy", ["1.234.567,50", "31.03.2026", "-0,5"], ["1234567.50", "2026-03-31", "-0.5"]),  # Germany
        ("comma", "dmy", ["1\u202f234,5", "31/3/2026", "7"], ["1234.5", "2026-03-31", "7"]),  # France
        ("comma", "dmy", ["12.500", "31-3-2026", "3-31-2026"], ["12500", "2026-03-31", "3-31-2026"]),  # the Netherlands
        ("point", "dmy", ["1,234.5", "31/03/2026 14:05", "31/03/26"], ["1234.5", "2026-03-31 14:05", "31/03/26"]),  # Britain
        ("point", "mdy", ["1,234", "3/31/2026", "31/3/2026"], ["1234", "2026-03-31", "31/3/2026"]),  # the United States
        ("point", "ymd", ["1'234.5", "2026年3月31日", "2026/3/1"], ["1234.5", "2026-03-31", "2026-03-01"]),  # China
        ("", "", ["1,5", "31.3.2026", "NA"], ["1,5", "31.3.2026", "NA"]),
        ("comma", "", ["1.5", "1,2,3", "A1,5"], ["1.5", "1,2,3", "A1,5"]),
        ("comma", "", [",5", "1,5E+03", "−5,25"], ["0.5", "1.5E+03", "-5.25"]),  # SPSS, Excel, a true minus
        ("point", "", ["-.5", "1,200.5e-2", "−5"], ["-0.5", "1200.5e-2", "-5"]),
        ("comma", "", ["e5", "5,", ",e5"], ["e5", "5,", ",e5"]),
        ("comma", "", ["0.125", "-0.500", "1.125"], ["0.125", "-0.500", "1125"]),  # no thousands begin with 0
    ],
)
def test_values_of_six_countries(numbers: str, dates: str, written: list[str], read: list[str]) -> None:
    field = reader_of(Reading(numbers=numbers, dates=dates))
    assert [field(each) for each in written] == read


@pytest.mark.parametrize("dates", ["mdy", "ymd"])
@pytest.mark.parametrize("by", [",", ";", "\t", "|"])
def test_a_day_is_read_as_was_said_of_the_file_or_not_at_all(tmp_path: Path, dates: str, by: str) -> None:
    """31.12.2026 was read day first where it was said that the month comes first, or the year."""
    days = ["12/31/2026", "2026/12/31", "31.12.2026", "1.2.2026", "2026-12-31"]
    (tmp_path / "rows.csv").write_text(
        rewritten("\n".join(f"{day}{by}{day}{by}a b" for day in ["born", *days]).replace("born", "note", 1), Reading(dates=dates))
    )
    source = CsvSource(tmp_path / "rows.csv").read_under({"born": ("date",)})
    with connected() as engine:
        found = engine.execute(f"SELECT born, note, count(*) OVER () FROM {source.attach(engine)}").fetchall()
    said = list(map(reader_of(Reading(dates=dates)), days))
    assert found == [(day, day, len(days)) for day in said]


def test_a_file_as_a_german_sheet_saves_it() -> None:
    text = 'pay;born;note\r\n"1.234,5";31.3.1984;"a; b"\r\nk.A.;-99\r\n1;2;3;;\r\n'
    assert rewritten(text, GERMAN) == 'pay\tborn\tnote\r\n1234.5\t1984-03-31\t"a; b"\r\n\t\t\r\n1\t2\t3\r\n'
    assert rewritten(text, Reading()) == text


def test_two_lines_of_names_become_one() -> None:
    text = "id,visit,,\n,day,cost,\n7,1,2,3\n"
    assert rewritten(text, Reading(lines=2)) == "id,visit day,visit cost,column_4\n7,1,2,3\n"


@pytest.mark.parametrize(
    ("dates", "written", "read"),
    [
        ("dmy", ["31-Mar-2026", "31 March 2026", "31st March, 2026", "March 31, 2026"], "2026-03-31"),  # Britain
        ("mdy", ["March 31, 2026", "Mar 31 2026", "Mar. 31st, 2026 9:30"], "2026-03-31"),  # the United States
        ("dmy", ["31. März 2026", "31.Mrz.2026", "31. Mär 2026"], "2026-03-31"),  # Germany
        ("dmy", ["31 mars 2026", "31-mars-2026"], "2026-03-31"),  # France
        ("dmy", ["1er août 2026", "1 AOÛT 2026"], "2026-08-01"),
        ("dmy", ["31 de marzo de 2026", "31-mar.-2026"], "2026-03-31"),  # Spain
        ("dmy", ["31 marzo 2026", "31 maart 2026", "31 mrt 2026"], "2026-03-31"),  # Italy, the Netherlands
        ("ymd", ["2026-Mar-31", "2026 March 31", "2026年3月31日"], "2026-03-31"),
    ],
)
def test_months_by_their_names(dates: str, written: list[str], read: str) -> None:
    field = reader_of(Reading(dates=dates))
    assert {field(each)[:10] for each in written} == {read}


def test_years_of_two_digits_need_a_pivot() -> None:
    field, silent = reader_of(Reading(dates="dmy", pivot=30)), reader_of(Reading(dates="dmy"))
    assert [field(each) for each in ("31/03/30", "31.3.31", "31-Mar-84")] == ["2030-03-31", "1931-03-31", "1984-03-31"]
    assert reader_of(Reading(dates="mdy", pivot=0))("3/31/00") == "2000-03-31"
    assert reader_of(Reading(dates="ymd", pivot=30))("26-03-31") == "2026-03-31"
    kept = ["31/03/30", "31-Mar-84", "31 Foo 2026", "30 February 2026", "May", "11 mai"]
    assert [silent(each) for each in kept] == kept
    assert [field(each) for each in kept[2:]] == kept[2:]


def test_lines_need_not_have_the_fields_whose_names_are_missing() -> None:
    assert rewritten("age,sex,,\n30,F\n40,M,\n50,F,,\n60\n", Reading()) == (
        "age,sex,column_3,column_4\n30,F,,\n40,M,,\n50,F,,\n60\n"
    )
    assert rewritten("id,visit,,\n,day,cost,\n7,1,2\n", Reading(lines=2)).endswith("column_4\n7,1,2,\n")


@pytest.mark.parametrize("letters", ["utf-16-le", "utf-16-be"])
def test_utf_16_that_does_not_say_so(letters: str) -> None:
    recoder = Recoder()
    text = "age,name\n30,Zoë\n".encode(letters)
    assert (recoder.feed(text[:7]) + recoder.feed(text[7:]) + recoder.finish()).decode() == "age,name\n30,Zoë\n"
    assert recoder.encoding == "UTF-16"


@given(st.lists(st.text('ab1.,;"-\r /9', max_size=12), max_size=6), st.text('ab1.,;"-', max_size=12), st.integers(1, 9))
def test_a_line_affects_nothing_but_itself(lines: list[str], more: str, piece: int) -> None:
    """Promise of `lines.py`: the file with one line more gives the same lines, and one more."""
    text = "a;b\n" + "".join(line + "\n" for line in lines)
    assert rewritten(text + more + "\n", GERMAN, piece).startswith(rewritten(text, GERMAN))
    assert rewritten(text, GERMAN, piece) == rewritten(text, GERMAN, 10_000)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Dear colleagues please find below what we discussed in our meeting\nIt was long\n", "line 1, column A: it is prose"),
        (
            "Dear all, hello\nplease find, below, what we said.\nIt was, as ever, long.\nYours\nAda, and Bob, and Eve\n",
            "line 2 has 3 fields",
        ),
        ("a,,b\n1,2,3\n", "line 1, column B: the column has no name"),
        ("a,A\n1,2\n", "line 1, column B: another column has the same name"),
        ('a,b\n"1,2\n"3,4\n"5,6\n', "line 2: its quotes do not close"),
    ],
)
def test_prose_is_refused_and_quoted_nowhere(text: str, why: str) -> None:
    check = TextCheck(Limits())
    with pytest.raises(RefusedUpload, match=why) as found:
        [check.feed(text.encode()), check.finish()]
    assert "meeting" not in str(found.value)
    assert "Ada" not in str(found.value)


ROOT = Path(__file__).parents[3]
PROSE = {
    "letter": "Dear all.\n\nWe met on Monday. It was nice.\n",
    "greeting": "Hello Ada,\n\nthank you for your message. I will send the table tomorrow.\n\nBest wishes,\nBob\n",
    "haiku": "An old silent pond\nA frog jumps into the pond\nSplash! Silence again.\n",
    "log": "2026-01-01 ERROR something failed\n2026-01-02 INFO other thing\n2026-01-02 INFO other thing\n",
    "syslog": "Nov 24 10:00:01 host sshd[1]: session opened\nNov 24 10:00:02 host sshd[1]: session closed\n",
    "program": "import os\n\ndef f(x):\n    return x\n",
    "chinese": "这是一封信。我们昨天见面了。\n希望你一切都好。\n明天再见。\n",
    "chinese letter": "各位同事：\n我们昨天见面了，谈了很多事情。\n明天再见。\n",
    "lorem": "Lorem ipsum dolor sit amet consectetur\neiusmod tempor incididunt ut labore et dolore magna aliqua. Ut enim\n"
    "ad minim veniam quis nostrud exercitation\n",
    "title": "Introduction\n"
    + "We show how a table is shared without its rows being\nshown to whoever asks, and what this costs\n" * 3,
    "sentences of three commas": "Dear Ada, it was nice, as ever, to see you.\nWe met, had lunch, talked, and went home.\n"
    "Yours, as ever, with thanks, Bob.\n",
    "json": '{"age": 1}\n{"age": 2}\n',
    "html": "<html><body><table><tr><td>1</td></tr></table></body></html>\n</html>\n",
}
LISTS = {
    "ids": "id\nA-001\nA-002\n",
    "numbers": "1\n2\n3\n",
    "towns": 'Town\nFrankfurt am Main\nSanta Cruz de Tenerife\nSt. Ives\n"Washington, D.C."\nNewcastle upon Tyne\n',
    "districts": "Name of district\nKing's Lynn and West Norfolk\nLeeds\nYork\nHull\n",
    "schools": "Highest level of education\n" + "Did not finish secondary school\nSecondary school\n" * 4,
    "words": "marital status\nnever married\nmarried\nwidowed\n",
    "number": "Ref. No.\n17\n18\n",
    "comments": "comment\nIt was really a very nice day.\nI liked all of it very much!\nThere was nothing that I missed.\n",
    "question": "How old are you?\n17\n18\n19\n",
    "moments": "2026-01-01 10:00:00\n2026-01-02 11:00:00\n",
    "days": "day\n2026-01-01\n\n2026-01-02\n",
    "towns of china": "城市\n北京\n上海\n",
    "spaced": "name, what was said of the day and of the evening, place\nAda, It was nice., York\nBob, It was not., Hull\n",
    "comments of persons": "full name of the person, comment\nAda, It was really nice.\nBob, It was not.\n",
    "spaces": "name\n  Ada\n  Bob\n",
    "one": "how often do you smoke\nnever\n",
}


def taken(text: str) -> None:
    check, recoder = TextCheck(Limits()), Recoder()
    [check.feed(recoder.feed(text.encode()) + recoder.finish()), check.finish()]


@pytest.mark.parametrize("which", [*PROSE, "README.md", "LICENSE", "CONTRIBUTING.md", "conftest.py", "Makefile"])
def test_what_is_no_table_is_refused(which: str) -> None:
    text = PROSE[which] if which in PROSE else (ROOT / which).read_text(encoding="utf-8").lstrip()
    with pytest.raises(RefusedUpload):
        taken(text)


@pytest.mark.parametrize("which", LISTS)
def test_a_list_of_values_is_a_table(which: str) -> None:
    taken(LISTS[which])


@pytest.mark.parametrize("piece", [1, 3, 10_000])
@pytest.mark.parametrize("letters", ["utf-8", "utf-16", "latin-1"])
def test_carriage_returns_alone_end_lines(piece: int, letters: str) -> None:
    content, recoder = "name,age,\rZoë,36,\rBob,50,\r".encode(letters), Recoder()
    pieces = [content[at : at + piece] for at in range(0, len(content), piece)]
    found = b"".join([*map(recoder.feed, pieces), recoder.finish()])
    assert found.decode() == "name,age,column_3\nZoë,36,\nBob,50,\n"
    check = TextCheck(Limits())
    check.feed(found)
    check.finish()


@pytest.mark.parametrize("piece", [1, 4, 10_000])
def test_the_line_that_tells_excel_what_divides_fields_is_left_out(piece: int) -> None:
    for text, left in (
        ("sep=;\r\na;b\r\n1;2\r\n", "a;b\r\n1;2\r\n"),
        ("\ufeffsep=,\na,b,\n", "a,b,column_3\n"),
        ("sep=x\n1\n",) * 2,
    ):
        content, recoder = text.encode(), Recoder()
        pieces = [content[at : at + piece] for at in range(0, len(content), piece)]
        assert b"".join([*map(recoder.feed, pieces), recoder.finish()]).decode() == left


def test_where_newlines_end_lines_a_carriage_return_stays() -> None:
    recoder = Recoder()
    assert recoder.feed(b"a,b\r\n1,x\ry\r\n") + recoder.finish() == b"a,b\r\n1,x\ry\r\n"


def test_a_few_ragged_lines_are_for_the_trial_reading() -> None:
    check = TextCheck(Limits())
    check.feed(b"a,b\n1,2\n3\n4,5\n6,7,8\n9,10\n")
    check.finish()
