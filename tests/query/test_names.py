"""A name that is written into SQL parses there, and is read back as the same name."""

from __future__ import annotations

import unicodedata

import pytest
from sqlglot import Parser, Tokenizer

import cloister as cl
from cloister.hub.platform.catalogue import plain_word
from cloister.query.dialect import DIALECTS
from cloister.query.parse import parse
from cloister.query.remedies import Words
from cloister.session.questions.question import Mean
from cloister.tables import Column, Compare, Literal
from cloister.tables.expression.names import alias, needs_quotes, quoted
from tests.tiers import some_by_day

TABLES = ("FUNCTIONS", "FUNCTION_PARSERS", "NO_PAREN_FUNCTION_PARSERS", "QUERY_MODIFIER_PARSERS", "RANGE_PARSERS")
KEYWORDS = sorted(
    {
        word.lower()
        for each in (*Tokenizer.KEYWORDS, *(name for table in TABLES for name in getattr(Parser, table)))
        for word in str(each).split()
        if word.isidentifier()
    }
)
BLANKS = [f"a{chr(code)}b" for code in range(0x10000) if unicodedata.category(chr(code)) == "Zs"]
NAMES = [
    "age",
    "_",
    "x",
    "N",
    "Birth year",
    "Größe (cm)",
    "1st",
    "it's",
    'a"b',
    '""',
    "a`b",
    "[a]",
    "a;b",
    "--",
    "/*",
    "a.b",
    "年",
]
NAMES += [*BLANKS, "年", "Alter", "ORDER", " a", "a ", "$1", "@x", ":x", "?", "%s", "{{x}}", "\\", "a\\"]


def tables(name: str) -> dict[str, cl.PrivateTable]:
    number, text = cl.Integer(0, 9), cl.Category(["a", "b"])
    return {
        "numbers": cl.PrivateTable({name: [1], "other": ["a"]}, columns={name: number, "other": text}),
        "texts": cl.PrivateTable({name: ["a"]}, columns={name: text}),
        name: cl.PrivateTable({"pay": [1]}, columns={"pay": number}),
    }


THIRDS = [KEYWORDS[first::3] for first in range(3)]


@some_by_day("names", [NAMES, *THIRDS], lambda names: names in (NAMES, THIRDS[0]), ids=lambda names: f"{names[0]} and others")
def test_it_is_read_as_the_same_name(names: list[str]) -> None:
    assert {"alter", "order", "if", "cube", "lock", "rollback"} <= set(KEYWORDS)
    for name in names:
        written, known = quoted(name), tables(name)
        one = parse(f"SELECT {written}, COUNT(*) AS counted FROM texts GROUP BY {written}", known)
        assert one.question.by == (name,), name
        assert list(one.names) == [name, "counted"], name
        averaged = parse(f"SELECT AVG({written}) AS {written} FROM numbers", known)
        assert averaged.question.statistics == (Mean(column=name, name=f"avg({name})"),), name
        assert list(averaged.names) == [name]
        told = parse(f"SELECT COUNT(*) FROM texts WHERE {written} = 'a' AND {written} != 'b'", known).question.where
        assert told is not None
        assert told.parts[0] == Compare("=", Column(name), Literal("a")), name  # type: ignore[attr-defined]
        assert parse(f"SELECT COUNT(*) FROM {written}", known).question.table == name


def test_a_data_set_is_called_by_no_word_that_needs_quotes() -> None:
    assert {"alter", "out", "revoke", "order", "if"}.isdisjoint(each for each in KEYWORDS if plain_word(each))
    assert plain_word("visits_2026")
    assert all(quoted(name) == name for name in (*KEYWORDS, *NAMES) if plain_word(name))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_line_to_write_instead_parses(dialect: str) -> None:
    for name in ("age", "alter", "order", "minus", "force", "Birth year", 'a"b', "n", "N", "if"):
        known = {name: tables(name)["texts"]}
        written = Words.of(f'SELECT x FROM "{name}"', known, dialect).example()
        assert parse(written, known, dialect).question.by == (name,)


def test_an_alias_is_no_column() -> None:
    assert alias("n", ["age"]) == "n"
    assert alias("n", ["N", "n_2", "x"]) == "n_3"
    assert not needs_quotes(alias("n", ["N"]))


WRONG = """
SELECT {} FROM numbers
SELECT SUM(counted) + {} FROM (SELECT {}, COUNT(*) AS counted FROM texts GROUP BY {}) AS t
SELECT COUNT(*) FROM numbers GROUP BY ROLLUP ({}) HAVING {} > other
SELECT COUNT(*) FROM numbers WHERE {} = 'nope'
SELECT COUNT(*) FROM numbers WHERE {} LIKE 'a%'
SELECT COUNT(*) FROM numbers WHERE {}
SELECT COUNT(*) FROM texts WHERE {} = 3
SELECT COUNT(*) FROM texts WHERE {} IN (3)
SELECT COUNT(*) FROM days WHERE {} = 3
SELECT COUNT(*) FROM moments WHERE {} = 3
SELECT COUNT(*) FROM free WHERE {} > 'a'
SELECT COUNT(*) FROM free WHERE {} = 3
SELECT MEDIAN({}) FROM moments
SELECT {}, COUNT(*) FROM owned GROUP BY {}
SELECT absent.{}, COUNT(*) FROM texts GROUP BY 1
"""


def test_a_line_to_write_instead_holds_it_in_quotes() -> None:
    for name in ("order", "alter", "Birth year", 'a"b', "if", *BLANKS):
        columns = {
            "days": cl.Date("2020-01-01", "2021-01-01"),
            "moments": cl.Moment("2020-01-01", "2021-01-01"),
            "free": cl.Text(),
        }
        known = {kind: cl.PrivateTable({name: []}, columns={name: domain}) for kind, domain in columns.items()} | tables(name)
        known["owned"] = cl.PrivateTable({name: [1], "x": [1]}, columns={"x": cl.Integer(0, 9)}, unit=name, max_rows=1)
        with cl.Session(known, budget=cl.PureDP(1)) as session:
            for form in WRONG.strip().splitlines():
                with pytest.raises(cl.CloisterError) as refusal:
                    session.explain(form.replace("{}", quoted(name)), spend="0.1")
                line = refusal.value.instead
                assert name not in line.replace(quoted(name), ""), (form, str(refusal.value))


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT AVG(Alter) FROM survey", '"Alter"'),
        ("SELECT AVG(alter) FROM survey", '"Alter"'),
        ("SELECT group, AVG(Alter) AS mean FROM survey GROUP BY group", '"Alter"'),
        ("SELECT COUNT(*) FROM survey WHERE Birth year = 1", '"Birth year"'),
        ("SELECT AVG(Alter), AVG(rollback) FROM survey", '"Alter", "rollback"'),
        ("SELECT AVG(\"Alter\"), 'Alter', AVG(rollback) FROM survey", '"rollback"'),
    ],
)
def test_what_cannot_be_read_says_which_name_needs_quotes(sql: str, names: str) -> None:
    columns = {each: cl.Integer(0, 9) for each in ("Alter", "group", "Birth year", "rollback", "Größe", "age")}
    known = {"survey": cl.PrivateTable({each: [] for each in columns}, columns=columns)}
    with pytest.raises(
        cl.UnsupportedQuery, match=f"only with the column {names.split(',')[0]!r} in quotes".replace('"', "")
    ) as told:
        parse(sql, known)
    assert told.value.instead == names
    with pytest.raises(cl.UnsupportedQuery, match="not SQL that can be read"):  # quotes mend nothing here
        parse('SELECT AVG("Alter" FROM survey', known)
    with pytest.raises(cl.UnsupportedQuery) as other:
        parse("SELECT AVG(Alter) FROM survey", known, "mysql")
    assert other.value.instead == "`Alter`"


@pytest.mark.parametrize("name", ["Age (years)", "Größe (cm)", "a & b", "Age in years", "first.name", "age [y]", "income-2020"])
def test_a_column_whose_name_reads_as_something_else_is_told_to_be_quoted(name: str) -> None:
    known = {"survey": cl.PrivateTable({name: [], "pay": []}, columns={name: cl.Integer(0, 9), "pay": cl.Integer(0, 9)})}
    for sql in (f"SELECT AVG({name}) AS m FROM survey", f"SELECT COUNT(*) AS n FROM survey WHERE {name.lower()} > 3"):
        with pytest.raises(cl.CloisterError, match="only with the column") as told:
            parse(sql, known)
        assert told.value.instead == quoted(name)
    with pytest.raises(cl.UnsupportedQuery, match="The function 'nonsense'"):  # quotes mend nothing here
        parse(f"SELECT AVG({name}), nonsense(pay) FROM survey", known)
