"""Questions that would grow beyond a machine's memory, or that one person's rows alone make slow: refused by public limits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import cloister as cl


@pytest.fixture
def session() -> Iterator[cl.Session]:
    """A table with wide domains, one with a small category, one with many rows a person."""
    wide = {name: cl.Integer(0, 3000) for name in ("x", "y", "z")}
    tables = {
        "wide": cl.PrivateTable({name: [1, 2] for name in wide}, columns=wide, version="1"),
        "small": cl.PrivateTable({"g": ["1", "2"]}, columns={"g": cl.Category(["1", "2"])}, version="1"),
        "many": cl.PrivateTable(
            {"p": ["a"] * 9, "x": [1] * 9}, columns={"x": cl.Integer(0, 9)}, unit="p", max_rows=1000, version="1"
        ),
    }
    with cl.Session(tables, budget=cl.PureDP(1000)) as opened:
        yield opened


@pytest.mark.parametrize("steps", [5, 29])
def test_texts_that_grow_are_refused(session: cl.Session, steps: int) -> None:
    grown = "REPLACE(" * steps + "g" + ", '1', '11111111')" * steps
    with pytest.raises(cl.UnsupportedQuery, match="it makes a value longer than 10,000 characters"):
        session.explain(f"SELECT COUNT({grown}) AS n FROM small", spend=1)


def test_texts_that_are_joined_again_and_again_are_refused(session: cl.Session) -> None:
    long = "CONCAT(" + ", ".join(["g"] * 12 + [f"'{'x' * 9000}'"] * 2) + ")"
    with pytest.raises(cl.UnsupportedQuery, match=r"CONCAT\(.* is not supported"):
        session.explain(f"SELECT COUNT({long}) AS n FROM small", spend=1)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM wide GROUP BY GROUPING SETS ((x, y), (y, z), (x, z))",
        "SELECT COUNT(*) AS n FROM wide GROUP BY x, y",
    ],
)
def test_the_numbers_in_all_groups_together_are_bounded(session: cl.Session, sql: str) -> None:
    with pytest.raises(cl.UnsupportedQuery, match=r"at most [0-9,]+ are (answered|drawn)"):
        session.explain(sql, spend=1)


def test_a_join_in_which_one_person_could_have_a_thousand_million_rows_is_refused(session: cl.Session) -> None:
    with pytest.raises(cl.UnsupportedQuery, match="one person could have more than 1,000,000 rows in it"):
        session.explain("SELECT COUNT(*) AS n FROM many AS a JOIN many AS b ON a.p = b.p JOIN many AS c ON a.p = c.p", spend=1)


def test_hundreds_of_conditions_on_a_wide_key_are_answered_without_looking_at_each_value(session: cl.Session) -> None:
    wide = cl.PrivateTable({"big": [1]}, columns={"big": cl.Integer(0, 999_999)}, version="1")
    conditions = " AND ".join(f"big <> {number}" for number in range(500))
    with cl.Session({"wide": wide}, budget=cl.PureDP(1)) as opened:
        plan = opened.explain(f"SELECT big, COUNT(*) AS n FROM wide WHERE {conditions} GROUP BY big", spend=1)
    assert plan.parts[0].shape.grid.shown == 1_000_000
