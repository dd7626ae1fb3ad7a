"""A declaration is opened again: in place while nothing was charged, and as a new version of its population afterwards."""

from __future__ import annotations

import re

from cloister.hub.platform.catalogue.filling import with_drafts
from cloister.hub.platform.catalogue.typed import declaration_typed, typed_of
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.trail import AuditLine
from cloister.hub.storage import HeaderColumn
from cloister.tables.declaring.draft import of_declaration
from tests.hub.catalogue.world import DECLARED, FORM, Sender, World, text_of

AGAIN = {name: text for name, text in FORM.items() if name.startswith("c") or name in ("rows_are", "size")}
PATH = "/datasets/people/declaration"


def again(ada: Sender, **fields: str) -> str:
    answer = ada.post(PATH, PATH, **{**AGAIN, **fields})
    assert answer.status_code == 303, text_of(answer.text)
    return text_of(ada.get("/datasets/people/manage").text)


def clamped(ada: Sender) -> int:
    return int(ada.api("GET", "/datasets/people/reading").json()["columns"]["age"]["clamped"])


def test_as_long_as_nothing_is_charged_it_changes_in_place(world: World, ada: Sender) -> None:
    world.register(
        declaration={**DECLARED, "columns": {**DECLARED["columns"], "age": {"kind": "integer", "low": 17, "high": 30}}}
    )
    assert clamped(ada) > 0
    page = ada.get(PATH).text
    assert 'value="30"' in page
    assert "Nothing has been charged yet" in page
    assert "Queries now read version 1" in again(ada)
    assert clamped(ada) == 0
    assert [each.number for each in world.rows(DataSetVersion)] == [1]
    [line] = [each for each in world.rows(AuditLine) if each.action == "dataset.redeclare"]
    assert line.details["columns"] == ["age"]


def test_once_something_is_charged_it_is_a_new_version_of_the_same_population(world: World, ada: Sender) -> None:
    world.register()
    asked = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.5", "purpose": "research"}
    first = ada.api("POST", "/questions", json=asked)
    assert first.status_code == 201, first.text
    assert "This will be a new version" in ada.get(PATH).text
    assert "Queries now read version 2" in again(ada, c0_high="40", c1_kind="", c2_kind="text")
    row = world.rows(DataSet)[0]
    assert (row.version, row.population, sorted(row.declaration["columns"])) == (2, "people", ["age", "pay", "town"])
    assert str(world.hub.ledger.spent("people")) == "ε = 0.5"
    assert clamped(ada) > 0
    assert ada.api("POST", "/questions", json=asked).json()["cost"] == {"people": "ε = 0.5"}  # of other rows: not the old answer
    assert ada.post("/datasets/people/versions/1/destroy", "/datasets/people/manage").status_code == 303
    assert clamped(ada) > 0  # the file is shared, and stays as long as one of them has a key


def test_what_is_wrong_stands_beside_its_field(world: World, ada: Sender) -> None:
    world.register()
    answer = ada.post(PATH, PATH, **{**AGAIN, "c0_reason": "", "c3_high": "many"})
    assert answer.status_code == 422
    assert "their public reason is missing" in text_of(answer.text)
    assert 'value="many"' in answer.text
    assert world.rows(DataSet)[0].declaration["columns"]["age"]["high"] == 90


def test_what_may_not_be_opened_again(world: World, ada: Sender) -> None:
    policy = {"columns": {"sex": {"sensitivity": "special"}}}
    world.register(metadata=policy)
    world.register(name="towns", public=True)
    answer = ada.post(PATH, PATH, **{**AGAIN, "c1_kind": "", "c0_reason": "a long reason"})
    assert "has a policy of its own" in text_of(answer.text)
    assert "a long reason" in answer.text, "what was typed stays"
    world.register(name="gone")
    assert '"gone"' in ada.get(PATH).text
    assert ada.api("DELETE", "/datasets/gone").status_code in (200, 204)
    assert '"gone"' not in ada.get(PATH).text, "nothing is filled in from what was deleted"
    assert ada.get("/datasets/towns/declaration").status_code == 409
    eve = world.owner("eve@example.org")
    assert eve.get(PATH).status_code in (403, 404)
    assert eve.post(PATH, "/register", **AGAIN).status_code in (403, 404)


def test_the_declaration_of_an_earlier_version_is_filled_in(world: World, ada: Sender) -> None:
    world.register()
    before = world.rows(DataSet)[0].declaration
    assert "earlier version" not in ada.get(PATH).text
    asked = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.5", "purpose": "research"}
    assert ada.api("POST", "/questions", json=asked).status_code == 201
    again(ada, c0_high="40", c2_kind="text")
    assert [each.declaration for each in sorted(world.rows(DataSetVersion), key=lambda each: each.number)] == [before, {}]
    page = ada.get(PATH).text
    assert "people, earlier version 1" in page
    assert 'value="40"' in page
    form = {**AGAIN, "c0_high": "40", "fill": "data-set", "fill_from": "people version 1"}
    filled = ada.post(PATH, PATH, **form)
    assert 'name="c0_high" value="90"' in re.sub(r'id="[^"]*" ', "", filled.text)
    number = ada.arrival()
    assert "people, earlier version 1" in ada.get(f"/register/{number}").text
    for wrong in ("people version 2", "people version 7", "people version x", "people version ", "none version 1"):
        assert ada.post(PATH, PATH, **{**form, "fill_from": wrong}).status_code in (404, 422), wrong
    eve = world.owner("eve@example.org")
    theirs = eve.arrival()
    assert "people" not in re.findall(r'<option value="([^"]*)"', eve.get(f"/register/{theirs}").text)
    refused = eve.post(
        f"/register/{theirs}", f"/register/{theirs}", **{**FORM, "fill": "data-set", "fill_from": "people version 1"}
    )
    assert refused.status_code in (403, 404, 422)


def test_blanks_that_are_a_category_or_around_one_stay() -> None:
    """They stand in quotes, so that they can be typed and taken away: rows of a blank that was lost would count as missing. So
    does a category of two lines, which would be two."""
    kept = {"kind": "category", "values": ["no", " no", '"so"', "", "two\nlines", '"open'], "nullable": False}
    before = {"columns": {"answer": kept}, "reasons": {"answer": "the codebook"}}
    columns = [HeaderColumn(name="answer", kind="text", suggested="Text")]
    typed = typed_of(before, columns)
    again, wrong = declaration_typed(typed, columns, before)
    assert (again and again["columns"], wrong) == ({"answer": kept}, {})
    assert typed["c0_values"] == 'no\n" no"\n"""so"""\n""\n"two\nlines"\n"""open"'
    filled = with_drafts({}, {0: of_declaration(before).columns["answer"]})
    assert filled == {each: typed[each] for each in typed if each[0] == "c"}
    fewer, _ = declaration_typed({**typed, "c0_values": 'no\r\n" no"\r\n\r\n'}, columns, before)
    assert fewer is not None
    assert fewer["columns"]["answer"]["values"] == ["no", " no"]
    other, _ = declaration_typed({**typed, "c0_kind": "text"}, columns, before)
    assert other is not None
    assert "values" not in other["columns"]["answer"]
