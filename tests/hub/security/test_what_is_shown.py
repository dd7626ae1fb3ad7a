"""What a page shows may be done: whoever follows its links and presses its buttons is not told that they may not.

Each kind of person walks from the first page along every link and every form. What a button would change is undone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from sqlalchemy.orm import Session

from cloister.hub.database import Database
from tests.hub.house import ROLES, Visitor
from tests.hub.security.world import World
from tests.tiers import some_by_day

DENIED = (401, 403, 405, 500, 501)
_ID = re.compile(r"[A-Za-z0-9_-]{22}")


class Shown(HTMLParser):
    """The links of a page, and its forms with what is filled in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.forms: list[tuple[str, str, dict[str, str]]] = []
        self._given: dict[str, str] | None = None
        self._method = "get"
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "form":
            self._given, self._method = {}, found.get("method", "get").lower()
            self.forms.append((self._method, found.get("action", ""), self._given))
        elif self._given is not None and "formaction" in found:
            self.forms.append((found.get("formmethod", self._method).lower(), found["formaction"], self._given))
        elif self._given is not None and tag == "input" and found.get("type") == "hidden" and "name" in found:
            self._given[found["name"]] = found.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._given = None


@contextmanager
def undone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within it, nothing that is written to the hub's database stays."""

    real = Database.begin

    @contextmanager
    def begin(self: Database) -> Iterator[Session]:
        with real(self) as session:
            session.commit = session.rollback  # type: ignore[method-assign]
            yield session

    with monkeypatch.context() as patch:
        patch.setattr(Database, "begin", begin)
        patch.setattr(Database, "writing", begin)
        yield


@some_by_day(
    "who",
    ["administrator", "steward", "owner", "analyst", *(f"only {role}" for role in ROLES[2:])],
    lambda who: who not in ("only owner", "only analyst"),  # the owner and the analyst of the world walk along more than these
)
def test_nothing_is_shown_that_is_denied(world: World, monkeypatch: pytest.MonkeyPatch, who: str) -> None:
    only = who.removeprefix("only ")
    visitor = getattr(world, who) if only == who else world.house.person(only)
    forms: dict[str, tuple[str, dict[str, str]]] = {}
    denied, seen, kinds, waiting = [], set(), dict[str, int](), [("/", "")]
    while waiting:
        path, shown_on = waiting.pop()
        kind = _ID.sub("ID", path)
        if path in seen or kinds.get(kind, 0) >= 2:  # of things that are alike, two tell what the others would
            continue
        seen.add(path)
        kinds[kind] = kinds.get(kind, 0) + 1
        answer = visitor.client.get(path)
        if answer.is_redirect:
            waiting.append((urljoin(path, answer.headers["location"]), shown_on))
        elif answer.status_code in DENIED:
            denied.append((answer.status_code, path, shown_on))
        elif "text/html" in answer.headers.get("content-type", ""):
            page = Shown(answer.text)
            found = [(link, None) for link in page.links]
            found += [(action, given if method == "post" else None) for method, action, given in page.forms]
            for each, given in found:
                place = urlsplit(urljoin(world.house.settings.origin + path, each))
                if place.netloc != urlsplit(world.house.settings.origin).netloc or place.path.startswith("/static/"):
                    continue
                whole = place.path + (f"?{place.query}" if place.query else "")
                if given is None:
                    waiting.append((whole, path))
                elif sum(_ID.sub("ID", whole) == _ID.sub("ID", other) for other in forms) < 2:
                    forms.setdefault(whole, (path, given))
    assert len(seen) > 10
    assert forms
    denied += [each for action, form in forms.items() if (each := pressed(world, visitor, monkeypatch, action, *form))]
    assert not denied


def pressed(
    world: World, visitor: Visitor, monkeypatch: pytest.MonkeyPatch, action: str, shown_on: str, given: dict[str, str]
) -> Any:
    """How a button was denied; None where it was not."""
    origin, cookies = world.house.settings.origin, dict(visitor.client.cookies)
    with undone(monkeypatch):
        answer = visitor.client.post(action, data=given, headers={"Origin": origin, "Referer": origin + shown_on})
    visitor.client.cookies.clear()
    visitor.client.cookies.update(cookies)
    denied = answer.status_code in DENIED and answer.status_code != 500  # what was taken back may be missed afterwards
    return (answer.status_code, action, shown_on) if denied else None
