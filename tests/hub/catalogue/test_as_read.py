"""The owner learns which lines and values of their file count for nothing, and nobody else does."""

from __future__ import annotations

import pytest

from cloister.errors import CloisterError
from tests.hub.catalogue.world import DECLARED, FORM, Sender, World, text_of

ROWS = b"""age,sex,town,pay
30,F,x,100
40,M,x,200
200,F,x,100
41,F,x
"42,M,x,5
50,Q,x,nan
"""


def test_the_owner_sees_what_was_read_of_the_file(world: World, ada: Sender) -> None:
    world.register(source=[ROWS])
    told = ada.api("GET", "/datasets/people/reading").json()
    assert told["version"] == 1
    assert told["rows"] + told["rows_malformed"] == 6
    assert told["rows_malformed"] == 2
    assert told["columns"]["age"]["clamped"] == 1
    assert told["columns"]["sex"]["nulled"] == 1
    assert told["columns"]["pay"]["nulled"] == 1
    assert "/datasets/people/reading" in ada.get("/datasets/people/manage").text
    page = text_of(ada.get("/datasets/people/reading").text)
    assert "Malformed lines 2" in page
    assert "its quotes do not close" in page


def test_rows_beyond_the_cap_are_counted(world: World, ada: Sender) -> None:
    rows = b"age,sex,town,pay\n" + b"30,F,x,100\n" * 5 + b"31,M,y,3\n,F,x,1\n"
    declared = {**DECLARED, "unit": "age", "max_rows": 2, "size": None}
    world.register(source=[rows], declaration=declared)
    told = ada.api("GET", "/datasets/people/reading").json()
    assert (told["rows_without_unit"], told["units_over_cap"], told["rows_over_cap"]) == (1, 1, 3)
    assert told["units"] == {"age": {"units": 2, "fullest": 5}}
    page = text_of(ada.get("/datasets/people/reading").text)
    assert "People with more than 2 rows 1" in page
    assert "Different values of age 2 Rows of the fullest of them 5" in page
    assert "Rows per person" not in page


def test_the_owner_of_a_table_of_events_sees_that_it_is_one(world: World, ada: Sender) -> None:
    rows = b"age,sex,town,pay\n" + b"30,F,x,100\n" * 5 + b"31,M,y,3\n,F,,1\n"
    columns = {**DECLARED["columns"], "town": {"kind": "identifier"}}
    with pytest.raises(CloisterError, match="'town' may name events"):
        world.register(source=[rows], declaration={**DECLARED, "columns": columns})
    world.register(source=[rows], declaration={**DECLARED, "columns": columns}, row_is_person=True)
    assert ada.api("GET", "/datasets/people/reading").json()["units"] == {"town": {"units": 2, "fullest": 5}}
    page = text_of(ada.get("/datasets/people/reading").text)
    assert "Rows per person" in page
    assert "5 rows have the same town" in page


def test_numbers_that_may_be_thousands_are_told_before_and_after_the_table_opens(world: World, ada: Sender) -> None:
    rows = b"age;sex;note;pay\n30;F;x;999,5\n31;M;x;2.000\n32;M;x;2,000\n"
    number = ada.arrival(rows)
    ada.declare(number, **FORM)
    said = "Numbers of pay that look like 2.000, and are read as 2: 1."
    assert ada.post(f"/register/{number}/trial", f"/register/{number}/review").status_code == 303
    page = ada.get(f"/register/{number}/trial").text
    assert said in text_of(page)
    assert 'name="c3_numbers"' in page
    ada.post(f"/register/{number}/trial", f"/register/{number}/trial", cells="yes", c3_numbers="comma")
    assert said not in text_of(ada.get(f"/register/{number}/trial").text)
    world.register(source=[rows.replace(b"note", b"town")])
    assert said in text_of(ada.get("/datasets/people/reading").text)


def test_nobody_else_is_told(world: World, ada: Sender) -> None:
    world.register(source=[ROWS])
    for roles in ("owner", "analyst", "steward", "administrator"):
        other = world.somebody(f"{roles}@example.org", roles)
        assert other.api("GET", "/datasets/people/reading").status_code in (403, 404)
        assert other.get("/datasets/people/reading").status_code in (403, 404)


def test_of_a_closed_or_public_table_there_is_nothing_to_tell(world: World, ada: Sender) -> None:
    world.register()
    world.register(name="towns", public=True)
    assert ada.api("GET", "/datasets/towns/reading").json()["detail"].startswith("a public table is read as it is")
    ada.api("POST", "/datasets/people/close")
    answer = ada.get("/datasets/people/reading")
    assert answer.status_code == 409
    assert "the data set is closed" in answer.text
