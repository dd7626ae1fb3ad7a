"""Object ids of others: for each route with an id, somebody else's object answers exactly as one that never was.

Mallory has every role but the two offices, so no gate of roles stops her; the walk follows the routes, so a new one is in it.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from cloister.hub.ids import new_id
from cloister.hub.web.forms import ONCE_FIELD
from tests.hub.house import Visitor
from tests.hub.security.walk import KINDS, NUMBERED, Place, body_of, form_token, kinds, send
from tests.hub.security.world import World

FORMS = {"form": "csv"}
"""Parts of an address that are no id."""
LINK = "/link/{secret}"
"""What a link is, its secret alone decides (`accounts/test_links.py`)."""
BY_OFFICE = {"people.see", "people.block", "roles.give", "people.invite", "policy.write", "trail.read", "trail.acknowledge"}
"""Actions of an office: everybody else is refused before any object is looked at."""

BY_KEY = {"stream.send": 401}
"""What a key of its own decides, and no account."""
BY_LINK = {"survey.answer": "survey"}
"""What is open to whoever has its address, by design (`surveys/test_answers.py`); a draft of one is not."""


def answers(visitor: Visitor, place: Place, number: str, body: Any, token: str) -> tuple[int, str, str]:
    """Status, text and where it leads, with the id and the random words of forms taken out."""
    address = place.at(**{name: FORMS.get(name, "1" if _versioned(place, name) else number) for name in place.parameters})
    told = send(visitor, place, address, body=body, token=token)
    text = re.sub(f'name="{ONCE_FIELD}" value="[^"]+"', "", told.text)
    return told.status_code, text.replace(number, "(id)"), told.headers.get("location", "").replace(number, "(id)")


def _versioned(place: Place, name: str) -> bool:
    return name == "number" and "/versions/{number}" in place.path


@pytest.mark.parametrize(
    "each", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["what it may show and one other", "each thing"]
)
def test_somebody_elses_object_answers_as_one_that_never_was(world: World, every: list[Place], each: bool) -> None:
    walked = [place for place in every if set(place.parameters) - set(FORMS) and place.path != LINK]
    assert len(walked) > 100
    openapi, token = world.house.app.openapi(), form_token(world.mallory)
    told, unreached = [], []
    for place in walked:
        body = body_of(openapi, place) if place.api else None
        missing = answers(world.mallory, place, new_id(), body, token)
        wanted = BY_KEY.get(place.action, 403 if place.action in BY_OFFICE else 404)
        if missing[0] != wanted:
            unreached.append(f"{place}: {missing[0]}")
        shown = {kind for name in place.parameters for kind in kinds(place, name)}
        for kind, number in world.ids.items():
            if not each and kind not in shown:
                continue
            if BY_LINK.get(place.action) == kind:
                continue
            found = answers(world.mallory, place, number, body, token)
            if found != missing:
                told.append(f"{place} tells of the {kind}: {found[0]} and not {missing[0]}")
    assert told == []
    assert unreached == [], "a body or a form that is refused before the object is looked for shows nothing: see walk.BODIES"


def test_the_walk_would_find_it(world: World, every: list[Place]) -> None:
    """Who may see an object gets another answer than for one that never was."""
    place = next(place for place in every if str(place) == "GET /api/v1/releases/{number}")
    own = answers(world.analyst, place, world.ids["release"], None, "")
    assert own[0] == 200
    assert own != answers(world.analyst, place, new_id(), None, "")


def test_each_address_that_names_its_things_is_there(every: list[Place]) -> None:
    assert set(NUMBERED) <= {place.path.removeprefix("/api/v1").split("/")[1] for place in every if "number" in place.parameters}


@pytest.mark.slow
def test_no_address_shows_what_its_name_does_not_say(world: World, every: list[Place]) -> None:
    """The walks send an address what it may show and one thing more; here it is sent each of them, by everybody."""
    for place in every:
        if "number" not in place.parameters or place.writes:
            continue
        for kind in set(KINDS["number"]) - set(kinds(place, "number")):
            address = place.at(**{name: FORMS.get(name, world.ids[kind]) for name in place.parameters})
            for visitor in (world.analyst, world.owner, world.administrator, world.steward):
                assert visitor.client.get(address).status_code in (403, 404), (place, kind)


@pytest.mark.parametrize("who", ["analyst", "owner"])
def test_nothing_was_changed_by_the_walk(world: World, who: str) -> None:
    """What Mallory sent has reached nobody's things: they are there, as they were."""
    visitor: Visitor = getattr(world, who)
    at = {
        "analyst": (
            "releases/{release}",
            "questions/saved/{saved question}",
            "projects/{project}",
            "jobs/{job}",
            "surveys/{draft}",
            "surveys/{survey}",
        ),
        "owner": ("datasets/{data set}", "populations/{population}", "datasets/{data set}/versions"),
    }[who]
    for path in at:
        told = visitor.client.get(f"/api/v1/{path.format_map(world.ids)}")
        assert told.status_code == 200, path
        assert "Mine now" not in told.text
        assert "mallory" not in told.text
