"""What the demonstration offers can be done: each of its people follows every link of their menu, and does what its page asks.

The links are those that the menu shows, the forms are those that the pages hold: a new one that fails turns this red.
"""

from __future__ import annotations

import importlib
import re
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from cloister.cli import demo_hub
from cloister.cli.demo_hub import _REASONS, _TABLES, CLINICS, PEOPLE, _clinics, _furnished
from cloister.compress import attackers
from cloister.hub.platform.accounts import login_link
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.access import Grant
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.jobs import Job
from tests.guests.unhurried import unhurry
from tests.hub.house import Clock, House

ELSEWHERE = ("/preferences", "/log-out", "/account")
"""Forms that stand on every page."""


class Forms(HTMLParser):
    """The forms of a page that post, each filled in with what stands there, and the names that somebody has to fill in."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.found: list[Form] = []
        self._form: Form | None = None
        self._select = self._area = ""
        self._begun = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        name, value, kind = given.get("name", ""), given.get("value", ""), given.get("type", "text")
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "form":
            self._form = Form(given.get("action", ""))
            if given.get("method") == "post":
                self.found.append(self._form)
        elif self._form is None or "disabled" in given:
            return
        elif tag == "button" and kind == "submit":
            self._form.buttons.append((given.get("formaction") or self._form.action, {name: value} if name else {}))
        elif tag == "select":
            self._select, self._begun = name, False
            self._form.wanted |= {name: "required" in given}
        elif tag == "option" and self._select and ("selected" in given or not self._begun):
            chosen = self._form.given.setdefault(self._select, [])  # a name that several rows have is sent for each of them
            chosen[len(chosen) - self._begun :] = [value]
            self._begun = True
        elif tag == "textarea":
            self._area = name
            self._form.given[name] = [""]
            self._form.wanted |= {name: "required" in given}
        elif tag == "input" and kind in ("checkbox", "radio"):
            if "checked" in given or ("required" in given and not self._form.given.get(name)):
                self._form.given.setdefault(name, []).append(given.get("value") or ("on" if "value" not in given else ""))
            self._form.choices.setdefault(name, []).append(value)
        elif tag == "input" and name:
            self._form.given.setdefault(name, []).append(value)
            self._form.files += [name] if kind == "file" else []
            self._form.wanted |= {name: "required" in given}

    def handle_data(self, data: str) -> None:
        if self._area and self._form is not None:
            self._form.given[self._area][0] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag in ("select", "textarea"):
            self._select = self._area = ""


class Form:
    """One of them."""

    def __init__(self, action: str) -> None:
        self.action = action
        self.given: dict[str, list[str]] = {}
        self.wanted: dict[str, bool] = {}
        self.choices: dict[str, list[str]] = {}
        self.files: list[str] = []
        self.buttons: list[tuple[str, dict[str, str]]] = []

    def filled(self, values: dict[str, Any]) -> dict[str, Any]:
        """What is sent: what stands there, or what somebody writes."""
        known = (*self.wanted, *self.choices)
        return {name: each for name, each in self.given.items() if name} | {k: v for k, v in values.items() if k in known}


CENSUS = {"purpose": "care", "spend": "0.1", "title": "Tried"}
VALUES: dict[str, dict[str, Any]] = {
    "/ask": {**CENSUS, "sql": "SELECT COUNT(*) AS n FROM census"},
    "/ask/build": CENSUS,
    "/joint-surveys": {"title": "Ways to work"},
    "/learn": {**CENSUS, "method": "GaussianNB", "features": ["age", "hours"], "target": "sex"},
    "/synthesise": {**CENSUS, "columns": ["age", "sex"]},
    "/run-algorithm": {**CENSUS, "table": "census", "algorithm": "middle-age"},
    "/fit-projection": {
        **CENSUS,
        "table": "census",
        "columns": "age, hours",
        "method": "DCA",
        "utility": "sex",
        "dimensions": "1",
    },
    "/project-data": {
        "table": "census",
        "columns": "age, hours",
        "utility": "sex",
        "secret": "income",
        "methods": "random",
        "dimensions": "1",
        "approval": "yes",
        "purpose": "care",
    },
    "/anonymise?about=patients": {"purpose": "care", "k": "2"},
    "/projects": {"name": "study", "title": "A study", "purpose": "care"},
    "/dashboards": {"title": "Wards"},
    "/surveys": {"title": "Sleep again", "purpose": "care"},
    "/streams": {"title": "Rooms", "until": "2026-03-02T12:00:00+00:00", "purpose": "care"},
    "/algorithms": {"name": "bayes", "title": "Bayes", "service": "learning", "settings": '{"method": "GaussianNB"}'},
    "/policy": {"title": "Little at once", "epsilon_of_population": "10"},
    "/register": {"file": b"age,sex\n34,F\n51,M\n"},
}
"""What somebody writes, by the page; a page that is no link of the menu is tried where a page of the menu leads to it."""
ABOUT = {"/anonymise": "/anonymise?about=patients"}
"""Which data set is quickest."""
OF_OTHERS = {"/sites/roster", "/sites/join", "/uploads/masked", "/pools"}
"""What others bring goes into these forms: what their programs print (`join_clinics` does that), a table of the same columns."""
DONE = {
    "analyst": {"learning.fit", "synthesising.make", "projecting.fit", "guests.run"},
    "owner": {"learning.fit", "anonymizing.try", "projecting.attack"},
}
"""Of the work that is done as jobs what these people must have done at least: so no form was overlooked."""


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory, empty_hub: Path) -> Path:
    """The folder of the demonstration, without its clinics: each of its people gets a copy."""
    folder = tmp_path_factory.mktemp("furnished") / "hub"
    shutil.copytree(empty_hub, folder)
    house = House(folder, Clock())
    _furnished(house.hub)
    house.close()
    return folder


@pytest.fixture
def demo(furnished: Path, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A hub of the demonstration."""
    unhurry(monkeypatch)
    for kind in ("classifiers", "rebuilders"):  # of attackers one each: all of them train for half a minute
        made = getattr(attackers, kind)
        monkeypatch.setattr(attackers, kind, lambda *given, made=made: dict([*made(*given).items()][:1]))
    shutil.copytree(furnished, tmp_path / "hub")
    house = House(tmp_path / "hub", clock)
    yield house
    house.close()


def entered(house: House, role: str) -> TestClient:
    """Their browser, by the link that the demonstration prints."""
    client, link = house.client(), login_link(house.hub, PEOPLE[role][1])
    token = Forms(client.get(link).text).found[-1]
    assert client.post(link, data=token.filled({})).status_code == 303
    return client


def offered(client: TestClient, house: House) -> Iterator[str]:
    """The links of their menu, as the page shows them."""
    shown = Forms(client.get("/").text).links
    yield from dict.fromkeys(link for link in shown if link in {each.path for each in house.hub.links})


@pytest.mark.parametrize("role", PEOPLE)
def test_whatever_the_menu_offers_is_done_once(demo: House, role: str) -> None:
    client = entered(demo, role)
    waiting, seen = [ABOUT.get(each, each) for each in offered(client, demo)], set[str]()
    assert waiting
    wrong = list[str]()
    for page in waiting:
        answer = client.get(page)
        if answer.status_code != 200:
            wrong.append(f"{page}: {answer.status_code}")
            continue
        wrong += tried(demo, client, page)
        for link in {urlsplit(each).path for each in Forms(answer.text).links if each.startswith("/")} - seen - {*waiting}:
            seen.add(link)
            if link in VALUES:
                waiting.append(link)
            elif not link.startswith("/static/") and (code := client.get(link).status_code) >= 400:
                wrong.append(f"{page} leads to {link}: {code}")
    assert not wrong, "\n".join(wrong)
    with demo.hub.database.reading() as db:
        assert DONE.get(role, set()) <= {*db.scalars(select(Job.kind))}


def tried(house: House, client: TestClient, page: str) -> Iterator[str]:
    """What went wrong with the forms of a page, each of whose buttons is pressed once."""
    for number, form in enumerate(Forms(client.get(page).text).found):
        if form.action.startswith(ELSEWHERE) or form.action in OF_OTHERS:
            continue
        for action, pressed in form.buttons:
            now = Forms(client.get(page).text).found[number]  # a form is sent once
            given = {**now.filled(VALUES.get(page, {})), **pressed}
            if empty := [name for name, needed in now.wanted.items() if needed and given.get(name) in ("", [""])]:
                yield f"{page}: say in VALUES what somebody writes into {empty} of {action}"
                continue
            files = {name: (f"{name}.csv", given.pop(name)) for name in now.files if name in given}
            files = {name: each for name, each in files.items() if isinstance(each[1], bytes)}
            answer = client.post(action, data=given, files=files or None)
            if answer.status_code >= 400:
                yield f"{page}: {action}: {answer.status_code} {said(answer.text)}"
            elif job := re.search(r"/jobs/([\w-]+)", answer.headers.get("location", "")):
                while Workers(house.hub, 0).run_one():
                    pass
                told = client.get(f"/api/v1/jobs/{job[1]}").json()
                if told["state"] != "done":
                    yield f"{page}: {action}: {told['state']} {told}"


def said(text: str) -> str:
    """What a page refuses."""
    found = re.search(r'role="alert".*?</div>', text, re.DOTALL)
    return " ".join(re.sub("<[^>]*>", " ", found[0] if found else "").split())


@pytest.mark.parametrize(
    ("where", "name", "turn"),
    [
        ("cloister.hub.platform.catalogue", "register", 3),
        ("cloister.hub.platform.access", "grant", 2),
        ("cloister.hub.platform.access", "register_algorithm", 1),
        ("cloister.cli.demo_hub", "make_key_file", 2),
        ("cloister.hub.services.sites.joining", "join", 1),
    ],
)
def test_a_demonstration_that_was_killed_while_it_was_made_goes_on(
    house: House, monkeypatch: pytest.MonkeyPatch, where: str, name: str, turn: int
) -> None:
    class Killed(BaseException): ...

    turns, real = iter(range(1, 100)), getattr(importlib.import_module(where), name)

    def dies(*given: Any, **named: Any) -> Any:
        if next(turns) == turn:
            raise Killed
        return real(*given, **named)

    def made() -> None:
        with _clinics(house.hub, _furnished(house.hub)):
            pass

    monkeypatch.setattr(demo_hub, "_running_clinics", lambda *_: nullcontext())
    with monkeypatch.context() as once:
        once.setattr(f"{where}.{name}", dies)
        with pytest.raises(Killed):
            made()
    made()
    with house.hub.database.reading() as db:
        roles = [
            (name, role) for name, role in db.execute(select(DataSet.name, Grant.role).join(Grant, Grant.object == DataSet.id))
        ]
        assert {*db.scalars(select(DataSet.name))} == {*_TABLES, CLINICS}
    private = (*_REASONS, CLINICS)
    assert sorted(roles) == sorted(
        [*((each, role) for each in private for role in ("analyst", "listed")), ("census", "publisher"), ("census", "runner")]
    )
