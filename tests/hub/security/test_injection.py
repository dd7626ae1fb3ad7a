"""Injection: what people write reaches pages, SQL, headers, templates, paths and spreadsheets as text and as nothing else.

Covered elsewhere: what every page shows (`test_canaries.py`), questions as SQL (`tests/security/`, `tests/query/`), values bound
by PostgreSQL clients (`postgres/test_statements.py`), formulas in the trail's files (`trail/test_pages.py`), addresses of
databases (`storage/test_connections.py`), uploads that burst (`storage/test_uploads.py`), languages (`web/test_languages.py`).
"""

from __future__ import annotations

import csv
import io
import zipfile
from typing import Any

import pytest

from tests.hub.house import House, Visitor
from tests.hub.security.walk import form_token, places
from tests.hub.security.world import MAY, World

HTML = "<zqx onclick=x>"
TEMPLATE = "{{999983*999979}}${999983*999979}<%=999983*999979%>#{999983*999979}"
WORKED_OUT = str(999983 * 999979)
"""Twelve digits: no identifier or digest on a page holds them by chance."""
SQL = "x'); DROP TABLE person; --"
FORMULAS = ("=cmd|'/C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\uff1d1+1")
TEXT = f"{HTML}\"'> {TEMPLATE} {SQL} ../../etc/passwd %s%n {{0}}"


def written(world: World, text: str = TEXT) -> None:
    """Put the text wherever somebody may write one: `test_canaries.py`, which walks along all pages, looks at what they show."""
    analyst, owner = world.analyst, world.owner
    number, name = world.ids["release"], world.ids["data set"]

    def sent(visitor: Visitor, method: str, path: str, body: Any) -> None:
        answer = visitor.client.request(method, f"/api/v1{path}", json=body, headers=visitor.csrf())
        assert answer.status_code < 500, (path, answer.text)

    sent(owner, "PATCH", f"/datasets/{name}", {"title": text, "about": text})
    sent(analyst, "POST", f"/releases/{number}/title", {"title": text})
    sent(analyst, "POST", "/questions/saved", {"title": text, "sql": f"SELECT '{text}'"})
    sent(analyst, "POST", "/projects", {"name": "other_zqx", "title": text, "purpose": text, "about": text})
    sent(analyst, "POST", "/access-requests", {"data_set": name, "purpose": text, "wanted": {"actions": ["question.ask"]}})
    sent(analyst, "POST", "/questions", {"sql": f'SELECT COUNT(*) AS "{text}" FROM {name}', "spend": "0.01", "purpose": text})
    sent(world.administrator, "PATCH", f"/people/{analyst.id}", {"institution": text})
    form = {"form_token": form_token(analyst), "name": text, "language": "en"}
    assert analyst.client.post("/account", data=form).status_code < 500


def test_the_database_is_as_it_was(world: World) -> None:
    """All at once, and each alone where one of them was refused: it may have been refused before another was read."""
    asked = dict.fromkeys(("search", "after", "before", "person", "action", "object", "project", "since"), SQL)
    for visitor in (world.analyst, world.administrator):
        for place in places(world.house.app):
            if not place.writes and not place.parameters:
                answer = visitor.client.get(place.path, params=asked)
                assert answer.status_code < 500, place
                for name in asked if answer.status_code >= 400 and answer.status_code not in (401, 403) else ():
                    answer = visitor.client.get(place.path, params={name: SQL})
                    assert answer.status_code < 500, (place, name)
    assert world.administrator.client.get("/api/v1/people").json()["items"]


@pytest.mark.parametrize(
    "path", ["..%2f..%2fmaster.key", "%2e%2e/master.key", "..\\master.key", "....//master.key", "%00", "\u2025/master.key"]
)
@pytest.mark.parametrize("under", ["/static/", "/releases/", "/datasets/", "/link/", "/api/v1/uploads/", "/trail/export/"])
def test_no_address_leads_to_a_file(world: World, under: str, path: str) -> None:
    master = world.house.settings.path("master.key").read_text()
    answer = world.administrator.client.get(under + path)
    assert answer.status_code in (303, 400, 404, 405, 422)
    assert master.strip() not in answer.text


def test_a_spreadsheet_computes_nothing_of_a_download(house: House) -> None:
    """A formula as a category, which is public, and one as a column's name, which the asker writes."""
    owner, analyst = house.person("owner"), house.person("analyst")
    values = [each.strip() for each in FORMULAS]
    rows = {"kind": [values[each % len(values)] for each in range(120)]}
    declaration = {"columns": {"kind": {"kind": "category", "values": values}}, "unit": None, "size": 120}
    made = house.sample_data_set("forms", owner=owner, rows=rows, declaration=declaration)
    house.grant(made, analyst, by=owner, actions=MAY)
    body = {"sql": 'SELECT kind, COUNT(*) AS "=1+1" FROM forms GROUP BY kind', "spend": "0.5"}
    answer = analyst.client.post("/api/v1/questions", json=body, headers=analyst.csrf())
    assert answer.status_code == 201, answer.text
    file = analyst.client.get(f"/api/v1/releases/{answer.json()['id']}/download/csv")
    assert file.status_code == 200
    with zipfile.ZipFile(io.BytesIO(file.content)) as held:
        lines = list(csv.reader(io.StringIO(held.read("release.csv").decode())))
    assert len(lines) == len(values) + 1
    for line in lines:
        for cell in line:
            assert not cell.startswith(("=", "+", "@", "\t", "\uff1d")), cell
            assert not cell.startswith("-") or cell[1:].replace(".", "").isdigit(), cell
