"""The roles of many columns, written as a few lines."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from tests.hub.house import House, Visitor

SELECTED = r'<select name="part_(\d+)".*?<option value="(\w+)" selected'


@pytest.fixture
def wide(house: House) -> Visitor:
    """An owner of a data set of thirty-nine columns."""
    owner = house.person("owner", email="wide@example.org", name="Wilma Wide")
    names = ["age", *(f"q{each}" for each in range(38))]
    kinds = {name: {"kind": "integer", "low": 0, "high": 9} for name in names}
    rows = {name: [each % 10 for each in range(60)] for name in names}
    house.sample_data_set("wide", owner=owner, rows=rows, declaration={"columns": kinds})
    return owner


def sent(owner: Visitor, path: str, roles: str) -> Any:
    page = owner.client.get("/anonymise?about=wide").text
    token, key = (html.unescape(re.search(rf'name="{name}" value="([^"]+)"', page)[1]) for name in ("form_token", "key"))  # type: ignore[index]
    parts = {f"part_{place}": "quasi" for place in range(39)}
    form = {"form_token": token, "key": key, "table": "wide", "k": "5", "purpose": "research", **parts, "roles": roles}
    return owner.client.post(path, data=form)


def test_a_few_lines_say_the_roles_of_all_columns(wide: Visitor) -> None:
    page = sent(wide, "/anonymise/hierarchies", "* = kept\nq1* = sensitive\n\nage = quasi")
    assert page.status_code == 200, page.text
    found = re.findall(SELECTED, page.text, re.DOTALL)
    assert len(found) == 39
    assert found[0] == ("0", "quasi")
    assert {role for place, role in found[1:] if place == "2" or 11 <= int(place) <= 20} == {"sensitive"}
    assert {role for place, role in found[1:] if place != "2" and not 11 <= int(place) <= 20} == {"kept"}
    assert "q1* = sensitive" not in page.text, "what is chosen by hand afterwards holds"
    ordered = sent(wide, "/anonymise/trials", "* = identifying\nage = quasi")
    assert ordered.headers["location"].startswith("/jobs/")


@pytest.mark.parametrize("line", ["age", "age = secret", "nothing = kept", "z* = kept", "= kept"])
def test_a_line_that_says_no_role_is_refused_and_stands_there_still(wide: Visitor, line: str) -> None:
    for path in ("/anonymise/hierarchies", "/anonymise/trials"):
        page = sent(wide, path, f"{line}\nq2 = kept")
        assert page.status_code == 422
        assert "is a column, or several by *" in html.unescape(page.text)
        assert f"{line}\nq2 = kept" in html.unescape(page.text)
