"""One definition of printable text: by Unicode's own categories, the same in the browser, and on every way out."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import subprocess
import unicodedata
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloister as cl
from cloister.errors import InvalidDeclaration, InvalidParameter, UnsupportedQuery
from cloister.hub.spreadsheets import safe
from cloister.hub.web.render import environment
from cloister.noise import Random
from cloister.pgwire.protocol import text as cstring
from cloister.printable import LONGEST_NAME, UNPRINTABLE, escape, is_printable, is_text, json_of, kept, margin_text, shown
from cloister.query.parse import parse
from cloister.session.releases.drawing import svg
from cloister.session.releases.release import Release
from cloister.tables.sourcing.reading import representable

BROWSER = Path(cl.__file__).parent / "local" / "browser" / "cloister-survey.js"
OF: dict[str, list[str]] = {}
"""Every Unicode category with all its characters."""
for _each in map(chr, range(0x110000)):
    OF.setdefault(unicodedata.category(_each), []).append(_each)
ANY = st.one_of(*[st.sampled_from(OF[each]) for each in sorted(OF)])
NASTY = st.lists(ANY | st.sampled_from("ab '\"\\<&=+@\u2028\u202e\t\r\n\x00\ud800\u200d"), min_size=1, max_size=12).map("".join)
TEXTS = NASTY | st.builds(lambda part, times: part * times, NASTY, st.sampled_from([1, 40, 900]))
QUIET = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def test_the_list_is_that_of_unicode() -> None:
    """Controls, formats but the two joiners, separators of lines, surrogates, private characters, noncharacters; and what is not
    assigned where only such may come (so the list is the same in the next version of Unicode)."""
    for category, characters in OF.items():
        found = {each for each in characters if UNPRINTABLE.fullmatch(each)}
        if category in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
            assert set(characters) - found <= {"\u200c", "\u200d"}, category
        elif category == "Cn":
            assert {each for each in characters if ord(each) & 0xFFFE == 0xFFFE or 0xFDD0 <= ord(each) <= 0xFDEF} <= found
            assert "\U0001fa77" not in found, "a heart of Unicode 15"
        else:
            assert not found, category


def test_the_browser_has_the_same_list() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not here")
    code = f"""import {{ UNPRINTABLE, exact }} from {json.dumps(BROWSER.as_uri())};
    const one = new RegExp(UNPRINTABLE.source, "u");
    const found = [];
    for (let code = 0; code < 0x110000; code += 1) if (one.test(String.fromCodePoint(code))) found.push(code);
    const taken = ["1", "0.5", "1/3", "-2", "-0.25", "-1/3", "0"].every((each) => exact(each)[1] > 0n);
    const refused = ["-5/-1", "1/-3", "1/0", "01", "1e3", "+1", " 1", "", ".5", "1.", "0x10", "1/3/5", 1, null].every((each) => {{
      try {{ exact(each); return false; }} catch (error) {{ return error instanceof RangeError; }} }});
    console.log(JSON.stringify([found, taken, refused]));"""
    said = subprocess.run([node, "--input-type=module", "-e", code], capture_output=True, text=True, check=True, timeout=60)
    found, taken, refused = json.loads(said.stdout)
    assert found == [code for code in range(0x110000) if UNPRINTABLE.fullmatch(chr(code))]
    assert (taken, refused) == (True, True)


@QUIET
@given(TEXTS)
def test_what_leaves_is_printable_and_well_formed(text: str) -> None:
    """Whatever the text: a picture, a page, a file, a message of the wire."""
    assert is_printable(shown(text))
    assert is_printable(shown(text, lines=True), lines=True)
    assert shown(text) == text if is_printable(text) else shown(text) != text
    assert ET.fromstring(f"<p>{escape(text)}</p>").text is not None
    assert json.loads(json_of({"a": [text]}, indent=1)) == {"a": [text]}
    assert is_printable(json_of({"a": [text]}), lines=True)
    json_of(text).encode()
    page = environment("en").from_string("<p title='{{ text }}'>{{ text }} {{ _('%(a)s', a=text) }}</p>").render(text=text)
    assert is_printable(page, lines=True)
    assert cstring(text).index(b"\0") == len(cstring(text)) - 1
    out = io.StringIO()
    csv.writer(out).writerow([safe(text), "b"])
    assert next(csv.reader(io.StringIO(out.getvalue(), newline=""))) == [safe(text), "b"]
    assert is_printable(safe(text), lines=True)


@settings(QUIET, max_examples=8)
@given(st.lists(TEXTS, min_size=2, max_size=12, unique=True))
def test_every_text_can_be_drawn(texts: list[str]) -> None:
    import altair as alt

    values = [{"answer": each, "share": number} for number, each in enumerate(texts)]
    y = alt.Y("answer:N", sort=texts, title=texts[0])
    chart = (
        alt.Chart(alt.Data(values=values)).mark_bar().encode(y=y, x=alt.X("share:Q", title=texts[-1])).properties(title=texts[1])
    )
    ET.fromstring(svg(chart.to_dict()))


@settings(QUIET, max_examples=10)
@given(column=TEXTS, option=TEXTS, alias=TEXTS)
def test_what_was_charged_can_be_opened_again(column: str, option: str, alias: str) -> None:
    """A declaration or a name in a question is refused before anything is charged, or the answer about it can be shown in every
    way. What an older version took (`kept`) is not refused, and its answer can be shown too."""
    rows = {column: ["F", option, "F", option], "n": [1, 2, 3, 4]}
    if not representable(column) or not representable(option):
        with pytest.raises(InvalidDeclaration):
            cl.PrivateTable(rows, columns={column: cl.Category(["F", option])})
        return
    if option == "F" or column.casefold() == "n":
        return
    domains = {column: cl.Category(["F", option]), "n": cl.Integer(0, 9)}
    try:
        table = cl.PrivateTable(rows, columns=domains)
    except InvalidDeclaration:
        assert not is_text(column) or not is_printable(option, lines=True) or len(option) > 10_000
        table = cl.PrivateTable.declared(rows, domains)
    quoted = '"' + column.replace('"', '""') + '"'
    with cl.Session({"people": table}, budget=cl.PureDP(100), random=Random.deterministic(1)) as session:
        named = '"' + alias.replace('"', '""') + '"'
        try:
            session.sql(f"SELECT {quoted}, COUNT(*) AS {named} FROM people GROUP BY {quoted}", spend=1)
        except UnsupportedQuery:
            assert session.spent.epsilon == 0
        else:
            assert is_text(alias)
        release = session.sql(f"SELECT {quoted}, COUNT(*) AS n, AVG(n) FROM people GROUP BY {quoted}", spend=1)
    again = Release.from_json(release.to_json())
    assert again.to_pydict() == release.to_pydict()
    page = again._repr_html_()
    assert is_printable(page, lines=True)
    ET.fromstring(svg(again.plot().to_dict()))
    assert str(again)


@pytest.mark.parametrize("alias", ["a\tb", "a\u202eb", "\u200b", "x" * (LONGEST_NAME + 1), "a\u2028"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS {} FROM people",
        "WITH v AS (SELECT n AS {} FROM people) SELECT COUNT(*) AS c FROM v",
        "SELECT COUNT(*) AS c FROM people AS {}",
        "SELECT COUNT(*) AS c FROM (SELECT n AS {} FROM people) AS v",
    ],
)
def test_no_name_that_a_question_gives_is_unprintable(sql: str, alias: str) -> None:
    people = cl.PrivateTable({"n": [1]}, columns={"n": cl.Integer(0, 9)})
    with pytest.raises(UnsupportedQuery, match="printable"):
        parse(sql.format(f'"{alias}"'), {"people": people})


def test_what_is_kept_is_taken_as_it_stands() -> None:
    assert not is_text("a\u202eb")
    with kept():
        assert is_text("a\u202eb")
        assert not is_text(None)
    assert not is_text("a\u202eb")


def test_a_message_repeats_the_beginning_of_what_is_long() -> None:
    """A category of 100,000 characters came back whole; a name never is cut."""
    error = InvalidParameter(
        "--model " + "x" * 10**6 + " is invalid", why=f"{'y' * 500!r}.", instead="name " + "z" * LONGEST_NAME
    )
    assert (error.what, error.why) == ("--model " + "x" * 60 + "… is invalid", "'" + "y" * 59 + "…'.")
    assert error.instead == "name " + "z" * LONGEST_NAME
    assert len(str(InvalidParameter("x", why="declared are " + ", ".join(f"c{place}" for place in range(5_000))))) < 1_300


def test_no_margin_is_told_narrower_than_it_is() -> None:
    for margin in (0.0, 1e-9, 0.0123, 0.999, 1.01, 5.49, 9.96, 10.2, 31.5, 1234.5, 9_999.01, 1e9 + 0.4):
        told = float(margin_text(margin).replace(",", ""))
        assert margin <= told <= max(1.1 * margin, margin + 1e-12), margin


@pytest.mark.parametrize(
    ("margin", "said"),
    [(5e-324, "4.9e-324"), (1e-310, "1e-310"), (1.01e-200, "1.1e-200"), (2.5e160, "2.5e+160"), (math.inf, "inf")],
)
def test_a_margin_of_any_size_is_told_in_two_digits(margin: float, said: str) -> None:
    assert margin_text(margin) == said
