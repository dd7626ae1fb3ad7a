"""A refusal on a page speaks of the page: no Python, no key of JSON, and no table that the asker does not have."""

from __future__ import annotations

import html
import re

import pytest

from cloister.hub.web.render import LANGUAGE_COOKIE
from cloister.voices import pieces_of
from tests.hub.house import House
from tests.hub.web.test_chinese_refusals import ACTS, COUNT, FIELDS, SQL, Scene, refusals, scene

__all__ = ["scene"]

JSON_KEY = re.compile(r"^[a-z_.\[\]0-9]+ is invalid|\{\s*\"|\"\w+\":")
STAFF = {
    "columns": {"pay": {"kind": "integer", "low": 0, "high": 9}, "rank": {"kind": "category", "values": ["a", "b"]}},
    "size": 9,
}


def parts_of(page: str) -> list[str]:
    """What the refusals of a page say: each of their parts."""
    found: list[str] = []
    for refusal in refusals(page):
        told = re.findall(r'<p class="title">(.*?)</p>|<dd>(.*?)</dd>|class="error">(.*?)<', refusal, re.DOTALL)
        found += [html.unescape(re.sub(r"<[^>]+>", "", "".join(each))).strip() for each in told]
    return [each for each in found if each]


def wrong(part: str) -> bool:
    """Whether a part speaks of Python, of JSON, or of what only programs see."""
    quoted = re.sub(r"(?<!\w)'[^']*'", "‹›", part)
    return bool(pieces_of(part) or JSON_KEY.search(quoted) or re.search(r"\b(?:cl|session)\.\w", quoted))


def english(scene: Scene) -> None:
    for each in (scene.owner, scene.ana, scene.steward, scene.boss, scene.giver):
        each.client.cookies.set(LANGUAGE_COOKIE, "en")


def test_every_refusal_of_the_pages_names_fields(scene: Scene) -> None:
    english(scene)
    heard: dict[str, list[str]] = {}
    for name, act in ACTS.items():
        heard[name] = parts_of(act(scene))
    for at, fields in enumerate(FIELDS):
        heard[f"field {at}"] = parts_of(
            scene.send(scene.ana, "/ask", "/ask", **{"sql": COUNT, "spend": "0.1", "by": "spend", **fields})
        )
    for sql in SQL:
        heard[sql] = parts_of(scene.send(scene.ana, "/ask/explain", "/ask", sql=sql, spend="0.1", by="spend"))
    silent = [name for name, parts in heard.items() if not parts]
    assert len(silent) < len(heard) / 4, silent
    left = [(name, part) for name, parts in heard.items() for part in parts if wrong(part)]
    assert not left, left


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM staff", "SELECT COUNT(*)", "SELECT AVG(rank) FROM staff", "SELECT 1", "DELETE FROM staff", ""]
)
def test_a_hint_is_about_the_askers_own_table(house: House, sql: str) -> None:
    ana = house.person("analyst")
    house.sample_data_set("staff", rows={"pay": [1, 2], "rank": ["a", "b"]}, declaration=STAFF, readers=[ana])
    page = ana.client.post("/ask/explain", data={"sql": sql, "spend": "0.1", "by": "spend", **token_of(ana)}).text
    told = parts_of(page)
    assert told
    assert not [each for each in told if re.search(r"\bpeople\b|\b(?:age|sex|visits)\b", each)], told


def token_of(person: object) -> dict[str, str]:
    from tests.hub.access.forms import token

    return {"form_token": token(person, "/ask")}  # type: ignore[arg-type]
