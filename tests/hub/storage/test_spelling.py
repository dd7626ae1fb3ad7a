"""Files as people write them: numbers and days of six countries, missing values, two lines of names, ragged lines; and prose."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.hub.storage import Limits, Reading, RefusedUpload
from cloister.hub.storage.encodings import Recoder
from cloister.hub.storage.spelling import Rewriter, reader_of
from cloister.hub.storage.texts import TextCheck

GERMAN = Reading(numbers="comma", dates="dmy", missing=("k.A.", "-99"), short=True)


def rewritten(text: str, how: Reading, piece: int = 3) -> str:
    content, recoder, rewriter = text.encode(), Recoder(named=how.lines == 1), Rewriter(how)
    pieces = [content[start : start + piece] for start in range(0, len(content), piece)]
    found = b"".join(rewriter.feed(recoder.feed(each)) for each in pieces) + rewriter.feed(recoder.finish()) + rewriter.finish()
    return found.decode()


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
    ],
)
def test_values_of_six_countries(numbers: str, dates: str, written: list[str], read: list[str]) -> None:
    field = reader_of(Reading(numbers=numbers, dates=dates))
    assert [field(each) for each in written] == read


def test_a_file_as_a_german_sheet_saves_it() -> None:
    text = 'pay;born;note\r\n"1.234,5";31.3.1984;"a; b"\r\nk.A.;-99\r\n1;2;3;;\r\n'
    assert rewritten(text, GERMAN) == 'pay;born;note\r\n1234.5;1984-03-31;"a; b"\r\n;;\r\n1;2;3\r\n'
    assert rewritten(text, Reading()) == text


def test_two_lines_of_names_become_one() -> None:
    text = "id,visit,,\n,day,cost,\n7,1,2,3\n"
    assert rewritten(text, Reading(lines=2)) == "id,visit day,visit cost,column_4\n7,1,2,3\n"


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


def test_a_few_ragged_lines_are_for_the_trial_reading() -> None:
    check = TextCheck(Limits())
    check.feed(b"a,b\n1,2\n3\n4,5\n6,7,8\n9,10\n")
    check.finish()
