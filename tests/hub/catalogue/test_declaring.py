"""Codebooks and other declarations fill in the table of a declaration."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cloister.hub.records.catalogue import Arrival, DataSet
from tests.hub.catalogue.test_redeclaring import AGAIN, PATH
from tests.hub.catalogue.world import CANARY, FORM, PEOPLE, Sender, World, text_of

BOOK = "name\tkind\tfrom\tto\tvalues\tmissing\nage\tint\t0\t110\t\t-99\nsex\tcode\t\t\tF=female|M=male\t\n"


def typed(world: World) -> dict[str, str]:
    return dict(world.rows(Arrival)[0].typed)


def test_a_text_of_a_known_name_is_declared_and_any_other_is_dropped(world: World, ada: Sender) -> None:
    """Postcodes, codes of diagnoses and places are asked by; notes, names and what nobody knows stay dropped."""
    names = ("plz", "ICD-10 code", "education", "Ward", "notes", "first name")
    number = ada.arrival((",".join(names) + "\na,b,c,d,e,f\n").encode(), "ward.csv")
    page = ada.get(f"/register/{number}").text
    chosen = re.findall(r'name="c\d_kind">.*?<option value="(\w*)" selected', page)
    assert chosen == ["text", "text", "text", "", "", ""]


def test_the_table_is_filled_in_from_elsewhere(world: World, ada: Sender) -> None:
    world.register()
    world.owner("eve@example.org")
    world.register("eve@example.org", name="hidden")
    number = ada.arrival(b"person;" + PEOPLE.replace(b",", b";").replace(b"\n", b"\n1;"), "people 2027.csv")
    fresh = text_of(ada.get(f"/register/{number}").text)
    assert CANARY not in fresh
    page = {"name": "people_2027", "c4_kind": "real", "c4_low": "5"}
    said = text_of(ada.get(ada.declare(number, **page, fill="codebook", codebook=BOOK).headers["location"]).text)
    assert "Filled in from the codebook: 2 of 5 columns" in said
    assert "missing values (-99)" in said
    found = typed(world)
    assert (found["c1_high"], found["c2_values"], found["c4_low"]) == ("110", "F\nM", "5")
    assert found["c2_reason"] == "the codebook"
    several = {
        "c1_tick": "yes",
        "c4_tick": "yes",
        "all_kind": "integer",
        "all_low": "1",
        "all_high": "9",
        "all_reason": "a scale",
    }
    ada.declare(number, **found, **several, fill="several")
    found = typed(world)
    assert [found[f"c{place}_{part}"] for place in (1, 4) for part in ("kind", "low", "high")] == ["integer", "1", "9"] * 2
    ada.declare(number, **found, c1_tick="yes", all_kind="-", fill="several")
    assert "c1_kind" not in typed(world)
    ada.declare(number, **typed(world), fill="names")
    assert typed(world)["c1_high"] == "120"
    ada.declare(number, **typed(world), fill="data-set", fill_from="people")
    found = typed(world)
    assert (found["c1_low"], found["c4_kind"], found["c4_high"]) == ("17", "real", "5000")
    saved = ada.get(f"/register/{number}/declaration.toml")
    assert saved.headers["content-disposition"] == 'attachment; filename="declaration.toml"'
    assert CANARY not in saved.text
    ada.declare(number, **{**found, "c1_high": "33"})
    ada.send(saved.content, "declaration.toml", path=f"/uploads/codebooks/{number}", page=f"/register/{number}")
    assert typed(world)["c1_high"] == "90"
    for field in ({"fill": "several"}, {"fill": "codebook", "codebook": "prose"}, {"fill": "data-set", "fill_from": "hidden"}):
        answer = ada.declare(number, **found, **field)
        assert answer.status_code in (404, 422), field
        assert typed(world)["c1_high"] == "90"
    assert "several" not in json.dumps(typed(world))


def test_a_codebook_of_a_statistics_package_and_one_that_reaches_out(world: World, ada: Sender, tmp_path: Any) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pytest.importorskip("pandas").DataFrame({"age": [31.0, 64.0], "sex": ["F", CANARY]})
    pyreadstat.write_sav(frame, tmp_path / "p.sav", variable_value_labels={"age": {1: "young", 2: "old", 3: "older"}})
    number = ada.arrival()
    path, page = f"/uploads/codebooks/{number}", f"/register/{number}"
    content = (tmp_path / "p.sav").read_bytes()
    assert ada.send(content, "p.sav", path=path, page=page).status_code == 303
    assert (typed(world)["c0_kind"], typed(world)["c0_values"]) == ("category", "1\n2\n3")
    assert CANARY not in json.dumps(typed(world))
    bomb = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><codeBook><var name="age"><labl>&e;</labl></var></codeBook>'
    for name, content, why in (("x.xml", bomb, "entities are not read"), ("p.sav", b"$FL2 no", "damaged")):
        answer = ada.send(content, name, path=path, page=page)
        assert answer.status_code == 422
        assert why in text_of(answer.text)
    stranger = world.owner("eve@example.org")
    assert stranger.send(BOOK.encode(), "b.csv", path=path).status_code in (403, 404)


def test_a_declaration_that_is_opened_again_is_filled_in_and_saved(world: World, ada: Sender) -> None:
    world.register()
    answer = ada.post(PATH, PATH, **AGAIN, fill="codebook", codebook=BOOK)
    assert answer.status_code == 200
    assert 'value="110"' in answer.text
    assert world.rows(DataSet)[0].declaration["columns"]["age"]["high"] == 90
    saved = ada.get("/datasets/people/declaration.toml").text
    assert 'sex = { kind = "category", values = ["F", "M"] }' in saved
    assert world.owner("eve@example.org").get("/datasets/people/declaration.toml").status_code in (403, 404)


def test_what_a_row_is_is_chosen(world: World, ada: Sender) -> None:
    number = ada.arrival()
    answer = ada.declare(number, **{name: text for name, text in FORM.items() if name != "rows_are"})
    assert "what a row is was not chosen" in text_of(answer.text)
