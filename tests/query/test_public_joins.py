"""Joins of public tables within a question."""

from __future__ import annotations

from typing import Any

import pytest

import cloister as cl
from cloister.query.parse import parse
from cloister.tables import In

TABLES: dict[str, Any] = {
    "people": cl.PrivateTable({"town": ["Delft"]}, columns={"town": cl.Category(["Delft", "Gouda", "Leiden"])}),
    "towns": cl.PublicTable(
        {"town": ["Delft", "Gouda", "Leiden", "Ede"], "province": ["ZH", "ZH", None, "GE"], "n": [1, 2, 3, 4]}
    ),
    "provinces": cl.PublicTable({"province": ["ZH", "GE", None], "region": ["west", "east", "west"], "n": [2, 9, 3]}),
}


def values(inside: str) -> Any:
    where = parse(f"SELECT COUNT(*) FROM people WHERE town IN ({inside})", TABLES).question.where
    return where.values if isinstance(where, In) else ()


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("SELECT town FROM towns t, provinces p WHERE t.province = p.province AND region = 'west'", ("Delft", "Gouda")),
        ("SELECT town FROM towns JOIN provinces USING (province) WHERE region = 'west' AND towns.n > 1", ("Gouda",)),
        ("SELECT town FROM towns t JOIN provinces p ON t.province = p.province AND t.n = p.n", ("Gouda",)),
        ("SELECT t.town FROM towns t JOIN provinces p ON t.n < p.n WHERE p.region = 'west'", ("Delft", "Gouda")),
        (
            "SELECT a.town FROM towns a, towns b, provinces p WHERE a.n = b.n AND b.province = p.province",
            ("Delft", "Gouda", "Ede"),
        ),
        ("SELECT town FROM towns WHERE province IN (SELECT province FROM provinces WHERE region = 'east')", ("Ede",)),
        ("SELECT town FROM towns, provinces WHERE towns.province = provinces.province AND region = 'south'", ()),
    ],
)
def test_rows_that_fit_one_another(inside: str, expected: tuple[str, ...]) -> None:
    """NULL fits nothing."""
    assert values(inside) == expected


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("SELECT town FROM towns LEFT JOIN provinces USING (province)", "LEFT JOIN of public tables"),
        ("SELECT town FROM towns t JOIN provinces p ON t.n = p.province", "numbers are compared with texts"),
        ("SELECT town FROM towns, people", "reads people's rows"),
        ("SELECT province FROM towns, provinces", "more than one table"),
        ("SELECT town FROM towns WHERE province IN (SELECT town FROM people)", "reads people's rows"),
        ("SELECT town FROM towns WHERE n IN (SELECT n FROM provinces WHERE region = town)", "town"),
    ],
)
def test_what_is_refused(inside: str, why: str) -> None:
    with pytest.raises(cl.CloisterError, match=why):
        values(inside)


def test_a_join_that_grows_too_large_ends() -> None:
    many = cl.PublicTable({"k": [1] * 2000, "town": ["Delft"] * 2000})
    with pytest.raises(cl.UnsupportedQuery, match="2,000,000 rows"):
        parse("SELECT COUNT(*) FROM people WHERE town IN (SELECT a.town FROM many a, many b)", {**TABLES, "many": many})


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("people a JOIN towns b JOIN provinces c ON b.province = c.province ON a.town = b.town", "join within a join"),
        ("people p JOIN towns ON people.town = towns.town", "'people' is unknown: the question reads from"),
    ],
)
def test_a_table_is_neither_left_out_nor_called_by_a_name_that_an_alias_took(asked: str, why: str) -> None:
    with pytest.raises(cl.CloisterError, match=why):
        parse(f"SELECT COUNT(*) FROM {asked}", TABLES)


def test_whole_numbers_of_a_public_table_fit_texts_that_are_written_so() -> None:
    """A table's file may have read a column of codes as numbers; a category that is declared of texts is the same one."""
    people = cl.PrivateTable({"code": ["1", "2", "2"]}, columns={"code": cl.Category(["1", "2", "3"])})
    codes = cl.PublicTable({"code": [1, 2, 3, 4], "name": ["a", "b", "c", "d"]})
    with cl.Session({"people": people, "codes": codes}, budget=cl.PureDP(10**6)) as session:
        found = session.sql("SELECT name, COUNT(*) AS n FROM people JOIN codes USING (code) GROUP BY name", spend=10**6)
    counts = dict(zip(*(found.to_pydict()[each] for each in ("name", "n")), strict=True))
    assert {name: n for name, n in counts.items() if n} == {"a": 1, "b": 2}
