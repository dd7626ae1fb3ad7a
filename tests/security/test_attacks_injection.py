"""SQL injection through every place where a text comes in: names, literals, aliases, patterns, options, and values of rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloister as cl
from cloister.printable import is_text
from cloister.tables import Identifier
from tests.security.naive import Naive

CANARY = "DROP TABLE cloister_prepared_rows"
NASTY = [
    f"x'; {CANARY}; --",
    f'x"; {CANARY}; --',
    f"x`; {CANARY}; --",
    f"x]; {CANARY}; --",
    f"x*/ {CANARY}; /*",
    "x' OR '1'='1",
    'x" OR ""="',
    "x') UNION ALL SELECT * FROM cloister_prepared_rows --",
    "x\\'; DROP TABLE t; --",
    "x\\",
    "x''",
    'x""',
    "x%s{0}$1?:name@p",
    "x${jndi}{{7*7}}",
    "🤷 naïve ﬁ",
    "x\u2019\uff07\u02bc",
    "x\u202e\u200d",
    "x y\tz",
    "select",
    "NULL",
    "c0",
    "unit",
    "k0",
    "x" * 200,
]
ENOUGH = 10**12


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def table_of(name: str) -> cl.PrivateTable:
    """A table in which everything bears the name: unit, columns, a category, a text, a visit."""
    return cl.PrivateTable(
        {
            f"{name} unit": ["a", "b", name, name],
            f"{name} class": [name, "other", name, "third"],
            f"{name} number": [1, 2, 3, 4],
            f"{name} text": [name, "plain", name, None],
            f"{name} key": [name, "1", "2", "3"],
        },
        columns={
            f"{name} class": cl.Category([name, "other", "third"]),
            f"{name} number": cl.Integer(0, 9),
            f"{name} text": cl.Text(),
            f"{name} key": Identifier(),
        },
        unit=f"{name} unit",
        max_rows=2,
        population=name if name.isprintable() else "all",
        version="1",
    )


@pytest.mark.parametrize("name", [name for name in NASTY if not is_text(f"{name} number")])
def test_a_name_that_cannot_be_printed_is_refused_where_it_is_declared(name: str) -> None:
    with pytest.raises(cl.CloisterError, match="a name has 1 to 200 characters, all of them printable"):
        table_of(name)


@pytest.mark.parametrize("name", [name for name in NASTY if is_text(f"{name} number")])
def test_a_name_or_a_literal_is_nothing_but_itself(name: str) -> None:
    t, kind, number, text, unit = (
        quoted(each) for each in (name, f"{name} class", f"{name} number", f"{name} text", f"{name} unit")
    )
    public = cl.PublicTable({f"{name} class": [name, "third"], f"{name} label": [name, "no"]})
    with cl.Session({name: table_of(name), f"{name} public": public}, budget=cl.PureDP(ENOUGH**2)) as session:

        def exact(sql: str) -> list[tuple[Any, ...]]:
            return list(session.sql(sql, spend=ENOUGH))

        assert exact(f"SELECT {kind}, SUM({number}) AS {quoted(name + ' alias')} FROM {t} GROUP BY {kind}") == [
            (name, 4),
            ("other", 2),
            ("third", 4),
        ]
        assert exact(f"SELECT COUNT(*) AS n FROM {t} WHERE {kind} = {literal(name)}") == [(2,)]
        assert exact(f"SELECT COUNT(*) AS n FROM {t} WHERE {text} = {literal(name)}") == [(2,)]
        assert exact(f"SELECT COUNT(*) AS n FROM {t} WHERE {text} IN ({literal(name)}, 'x')") == [(2,)]
        assert exact(f"SELECT COUNT(*) AS n FROM {t} WHERE {kind} LIKE {literal('%' + name[:50] + '%')}")[0][0] in (2, 3, 4)
        assert exact(f"SELECT COUNT(DISTINCT {unit}) AS n FROM {t}") == [(3,)]
        assert exact(f"SELECT {literal(name)} AS {quoted('a ' + name)}, COUNT(*) AS n FROM {t}") == [(name, 4)]
        assert exact(
            f"SELECT CASE WHEN {kind} = {literal(name)} THEN {literal(name)} ELSE '-' END AS c, COUNT(*) AS n FROM {t} GROUP BY c"
        ) == [
            (name, 2),
            ("-", 2),
        ]
        assert exact(
            f"SELECT COUNT(*) AS n FROM (SELECT {kind} AS {quoted(name)} FROM {t} AS {quoted('s' + name)})"
            f" AS {quoted('q' + name)}"
        ) == [(4,)]
        assert exact(
            f"SELECT {quoted(f'{name} label')}, COUNT(*) AS n FROM {t} JOIN {quoted(f'{name} public')} AS p"
            f" ON {t}.{kind} = p.{kind} GROUP BY {quoted(f'{name} label')}"
        ) == sorted([(name, 2), ("no", 1)])
        assert exact(f"SELECT COUNT(*) AS n FROM {t}") == [(4,)]


@pytest.mark.parametrize("name", NASTY)
def test_a_text_where_sql_expects_none_changes_nothing(name: str) -> None:
    """Unquoted, unfinished, in OPTIONS, as a dialect, a spend, a purpose: a refusal that spends nothing, or an exact answer."""
    who = name if name.isprintable() else "ada"
    with cl.Session({"t": table_of("x")}, budget=cl.PureDP(10**30), who=who) as session:
        texts = [
            f'SELECT COUNT(*) FROM t WHERE "x class" = \'{name}',
            f"SELECT COUNT(*) FROM {name}",
            f"SELECT {name} FROM t",
            f"SELECT COUNT(*) FROM t {name}",
            f"{name} SELECT COUNT(*) FROM t",
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {name}) COUNT(*) FROM t",
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, privacy_unit_column = {name}) COUNT(*) FROM t",
            f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, {name} = 1) COUNT(*) FROM t",
            f"SELECT COUNT(*) FROM t ORDER BY {name}",
            f"SELECT COUNT(*) FROM t LIMIT {name}",
        ]
        for text in texts:
            before = session.spent
            try:
                session.sql(text, spend=1)
            except cl.CloisterError:
                assert session.spent == before
        for arguments in ({"dialect": name}, {"spend": name}):
            with pytest.raises(cl.CloisterError):
                session.sql("SELECT COUNT(*) FROM t", **{"spend": 1, **arguments})  # type: ignore[arg-type]
        assert list(session.sql("SELECT COUNT(*) AS n FROM t", spend=ENOUGH, purpose=who)) == [(4,)]
        assert session.ledger.verify() is True
        assert {charge.who for charge in session.ledger.charges("x")} == {who}


ANY_TEXT = st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=30)


@settings(max_examples=30)
@given(text=ANY_TEXT)
def test_any_text_as_a_literal(text: str) -> None:
    counted_by(text)


@pytest.mark.slow
@settings(max_examples=600)
@given(text=ANY_TEXT)
def test_many_texts_as_a_literal(text: str) -> None:
    counted_by(text)


def counted_by(text: str) -> None:
    """A condition on a text counts the rows that hold it."""
    rows = {"word": [text, text, "other"]}
    table = cl.PrivateTable(rows, columns={"word": cl.Text()}, version="1")
    with cl.Session({"t": table}, budget=cl.PureDP(10**30)) as session:
        said = list(session.sql(f"SELECT COUNT(*) AS n FROM t WHERE word = {literal(text)}", spend=ENOUGH))
    assert said == [(0 if "\0" in text else 3 if text == "other" else 2,)]


COMMENTS = [
    "SELECT COUNT(*) AS n FROM t /* WHERE x > 100 */ WHERE x > 2",
    "SELECT COUNT(*) AS n FROM t -- WHERE x > 100\n WHERE x > 2",
    "SELECT /* + ; */ COUNT(*) AS n FROM t WHERE /* ' */ x > 2 -- '",
    "SELECT COUNT(*) AS n FROM t WHERE x > 2;",
    "SELECT COUNT(*) AS n FROM t WHERE x > 2;;",
    "SELECT COUNT(*) AS n FROM t WHERE x > 2 /* ; DROP TABLE t */",
    "/* ; */ SELECT COUNT(*) AS n FROM t WHERE x > 2",
]


@pytest.mark.parametrize("sql", COMMENTS)
def test_a_comment_is_no_part_of_the_question(sql: str) -> None:
    table = cl.PrivateTable({"x": [1, 2, 3, 4]}, columns={"x": cl.Integer(0, 9)}, version="1")
    with cl.Session({"t": table}, budget=cl.PureDP(10**30)) as session:
        assert list(session.sql(sql, spend=ENOUGH)) == [(2,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t WHERE x > 2 /* unfinished",
        "SELECT COUNT(*) FROM t; -- x\n SELECT 1",
        "SELECT COUNT(*) FROM t /*! UNION SELECT 1 */ UNION SELECT x FROM t",
        "SELECT COUNT(*) FROM t; /* */ DROP TABLE t",
        "SELECT COUNT(*) FROM t\0; DROP TABLE t",
        "/**/",
        "--",
        ";",
    ],
)
def test_what_hides_behind_a_comment_is_refused(sql: str) -> None:
    table = cl.PrivateTable({"x": [1, 2, 3, 4]}, columns={"x": cl.Integer(0, 9)}, version="1")
    with cl.Session({"t": table}, budget=cl.PureDP(1)) as session:
        with pytest.raises(cl.CloisterError):
            session.sql(sql, spend="0.1")
        assert session.spent == cl.PureDP(0)


def test_the_naive_twin_is_injected() -> None:
    """Where a text is pasted into SQL, it takes the rows along."""
    with Naive({"t": {"word": ["a", "b"]}}, scale=None) as naive:
        wanted = "x' OR '1'='1"
        assert naive.rows(f"SELECT COUNT(*) FROM t WHERE word = '{wanted}'") == [(2,)]
        wanted = "x'; DROP TABLE t; SELECT '1"
        naive.rows(f"SELECT COUNT(*) FROM t WHERE word = '{wanted}'")
        assert naive.rows("SELECT COUNT(*) FROM duckdb_tables()") == [(0,)]
