"""The models that an owner may ask for: each is offered, means what it says, and is refused where it makes no sense."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cloister.hub.platform.jobs import Workers
from tests.hub.anonymizing.ordering import ORDER, RELEASE, get, post, run
from tests.hub.anonymizing.rows import varied
from tests.hub.anonymizing.test_anonymizing import key_of
from tests.hub.house import House, Visitor

PARTS = {"age": "quasi", "sex": "sensitive"}
"""Of `varied`: two of three are F."""


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"l": 1.5, "diversity": "entropy"}, "entropy 1.5-diversity"),
        ({"l": 2, "diversity": "recursive", "c": "3"}, "recursive (3, 2)-diversity"),
        ({"t": "0.3", "distance": "equal"}, "0.3-closeness (equal)"),
        ({"t": "1.5", "distance": "kl"}, "1.5-closeness (kl)"),
        ({"t": "0.3", "distance": "hierarchical", "hierarchies": {"sex": "F;*\nM;*"}}, "0.3-closeness (hierarchical)"),
        ({"beta": "1", "likeness": "enhanced"}, "enhanced 1-likeness"),
        ({"delta": "1"}, "1-disclosure privacy"),
        ({"alpha": "0.8"}, "(0.8, 5)-anonymity"),
    ],
)
def test_each_model_is_proved_of_the_table_that_leaves(house: House, owner: Visitor, asked: dict[str, Any], named: str) -> None:
    house.sample_data_set("varied", owner=owner, rows=varied(300))
    told = run(house, owner, "/anonymised", {**RELEASE, "table": "varied", "parts": PARTS, "search": "optimal", **asked})
    assert told["state"] == "done", told["problem"]
    table = get(house, owner, f"/anonymised/{told['result']['href'].rpartition('/')[2]}").json()
    models = {each["model"]: each for each in table["certificate"]["models"]}
    assert set(models) == {"5-anonymity", named}
    assert models[named]["holds"]
    assert models[named]["column"] == "sex"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"diversity": "odd"}, "unknown variant"),
        ({"l": 2.5}, "not a whole number"),
        ({"l": 2, "diversity": "recursive"}, "has no c"),
        ({"t": "1.5"}, "it is not a number from 0 to 1"),
        ({"t": "0.2", "distance": "hierarchical"}, "the sensitive column 'sex' has none"),
        ({"delta": "0"}, "not above 0"),
        ({"alpha": "1.1"}, "it is not a number from 0 to 1"),
        ({"alpha": "0.5", "parts": {"age": "quasi"}}, "no column is that"),
    ],
)
def test_what_no_model_is_is_refused_before_a_row_is_read(
    house: House, owner: Visitor, changed: dict[str, Any], words: str
) -> None:
    answer = post(house, owner, "/anonymised/trials", {**ORDER, "parts": PARTS, **changed})
    assert answer.status_code == 422, answer.text
    assert words in answer.text


def test_the_common_three_stand_in_front_and_a_form_that_was_filled_comes_back_filled(house: House, owner: Visitor) -> None:
    client = owner.client
    page = client.get("/anonymise?about=people").text
    front, folded = page.split("More models, and other kinds of l and t")
    for name in ("k", "l", "t"):
        assert f'name="{name}"' in front
    for name in ("diversity", "c", "distance", "beta", "likeness", "delta", "alpha"):
        assert f'name="{name}"' in folded
        assert f'name="{name}"' not in front
    assert front.endswith('<details class="fold"><summary>')
    parts = {f"part_{place}": part for place, part in enumerate(("quasi", "sensitive", "identifying"))}
    filled = {
        "form_token": owner.csrf()["X-CSRF-Token"], "key": key_of(page), "table": "people", "k": "5", "suppression": "0.05",
        **parts, "l": "1.5", "diversity": "entropy", "alpha": "0.9", "delta": "2", "likeness": "enhanced", "beta": "1",
    }  # fmt: skip
    wrong = client.post("/anonymise/trials", data={**filled, "alpha": "2"})
    assert wrong.status_code == 422
    assert re.search(r'<details class="fold" open><summary>More models', wrong.text)
    sent = client.post("/anonymise/trials", data={**filled, "key": key_of(wrong.text)})
    assert sent.status_code == 303, sent.text
    assert Workers(house.hub, 0).run_one()
    [where] = set(re.findall(r'href="(/anonymise/trials/[^"]+)"', client.get(sent.headers["location"]).text))
    again = client.get(f"/anonymise?trial={where.rpartition('/')[2]}").text
    assert re.search(r'<details class="fold" open><summary>More models', again)
    for name, value in (("l", "1.5"), ("alpha", "0.9"), ("delta", "2"), ("beta", "1")):
        assert re.search(rf'name="{name}" type="text" value="{value}"', again), name
    for value in ("entropy", "enhanced"):
        assert re.search(rf'<option value="{value}" selected>', again), value


def test_one_value_in_several_spellings_is_said_on_the_pages(house: House, owner: Visitor) -> None:
    columns = {"age": {"kind": "integer", "low": 17, "high": 90}, "ill": {"kind": "text"}}
    rows = {"age": varied(300)["age"], "ill": ["gout", "Gout", "flu"] * 100}
    house.sample_data_set("ills", owner=owner, rows=rows, declaration={"columns": columns, "size": 300})
    order = {"table": "ills", "parts": {"age": "quasi", "ill": "sensitive"}, "l": 2, "search": "mondrian"}
    told = run(house, owner, "/anonymised/trials", order)
    words = "2 values of ill differ in blanks"
    assert words in owner.client.get(told["result"]["href"]).text
    told = run(house, owner, "/anonymised", {**RELEASE, **order})
    assert words in owner.client.get(told["result"]["href"]).text
