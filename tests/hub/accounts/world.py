"""What the tests of accounts stand on: a hub in a folder, its people, and browsers without scripts."""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from sqlalchemy import select
from starlette.testclient import TestClient

from cloister.hub.app import make_app
from cloister.hub.hub import Hub
from cloister.hub.platform import accounts, trail
from cloister.hub.platform.accounts.parts import parts_of
from cloister.hub.platform.accounts.people import add_person
from cloister.hub.records.accounts import Person, person_of_address
from cloister.hub.records.trail import AuditLine
from cloister.hub.service import Service
from cloister.hub.settings import Settings
from cloister.hub.web.forms import TOKEN_FIELD
from cloister.hub.web.home import home_pages
from tests.hub.house import Clock, cheap_passwords

PASSWORD = "tepid otter juggles maps"
OTHER_PASSWORD = "seven lamps under glacier"
_HOME = Service(name="home", title="Overview", pages=home_pages)


@cache
def _routes(services: tuple[str, ...]) -> list[FastAPI]:
    return []


def application(hub: Hub) -> FastAPI:
    """The real application around a hub. The routes of some services are built once for all tests, since that takes most of a
    second.
    """
    kept = _routes(tuple(each.name for each in hub.services))
    if not kept:
        kept.append(make_app(hub))
    [app] = kept
    app.state.hub = hub
    for layer in app.user_middleware:
        if "hub" in layer.kwargs:
            layer.kwargs["hub"] = hub
    app.middleware_stack = None
    return app


class World:
    """A hub, and ways to act on it."""

    def __init__(self, folder: Path, clock: Clock, **settings: Any) -> None:
        self.folder = folder
        self.clock = clock
        self.settings = Settings(data=folder / "hub", **settings)
        with cheap_passwords():
            self.hub = Hub(self.settings, [accounts.SERVICE, trail.SERVICE, _HOME], clock=clock)
        self.app = application(self.hub)

    def again(self, **settings: Any) -> World:
        """The same hub, opened anew with other settings."""
        self.close()
        return World(self.folder, self.clock, **settings)

    def close(self) -> None:
        self.hub.close()

    def person(self, email: str, *roles: str, password: str | None = PASSWORD, name: str = "Ada Byron") -> str:
        """Add a person: their id."""
        kept = parts_of(self.hub).hasher.hash(password) if password is not None else None
        with self.hub.database.begin() as db:
            return add_person(self.hub, db, email=email, name=name, roles=roles, password=kept).id

    def find(self, email: str) -> Person:
        with self.hub.database.reading() as db:
            found = person_of_address(db, email)
        assert found is not None
        return found

    def trail(self) -> list[tuple[str, str, str]]:
        """Action, person and outcome of every act."""
        with self.hub.database.reading() as db:
            lines = db.scalars(select(AuditLine).order_by(AuditLine.number)).all()
        return [(line.action, line.person, line.outcome) for line in lines]

    def browser(self, address: str = "192.0.2.7") -> Browser:
        return Browser(self, address)

    def logged_in(self, email: str, *roles: str) -> Browser:
        """A new person's browser, logged in with the password."""
        self.person(email, *roles)
        browser = self.browser()
        browser.log_in(email)
        return browser


class Browser:
    """A browser: it keeps cookies, follows redirects only when told to, and fills in forms that a page gave."""

    def __init__(self, world: World, address: str = "192.0.2.7") -> None:
        self.world = world
        self.client = TestClient(
            world.app,
            base_url=world.settings.origin,
            client=(address, 40000),
            follow_redirects=False,
            raise_server_exceptions=True,
        )
        self._known: dict[str, str] = {}

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, **more)

    def token(self, page: str) -> str:
        """The token against forgery of a page's forms."""
        text = self.client.get(page, follow_redirects=True).text
        found = re.search(rf'name="{TOKEN_FIELD}" value="([^"]+)"', text)
        assert found is not None, text[:400]
        return html.unescape(found[1])

    def post(self, path: str, page: str | None = None, **form: Any) -> Any:
        """Send the form of a page (by default the page of the same address)."""
        return self.client.post(path, data={TOKEN_FIELD: self.token(page or path), **form})

    def log_in(self, email: str, password: str = PASSWORD) -> Any:
        answer = self.post("/login", email=email, password=password)
        assert answer.status_code == 303, answer.text
        return answer

    def api(self, method: str, path: str, **more: Any) -> Any:
        """Ask the API as the page's own script would: with the cookie, and the token against forgery."""
        if self.cookie not in self._known:  # it is that of the log-in
            self._known = {self.cookie: self.client.get("/api/v1/me").json().get("csrf", "")}
        headers = {"X-CSRF-Token": self._known[self.cookie], **more.pop("headers", {})}
        return self.client.request(method, f"/api/v1{path}", headers=headers, **more)

    def who(self) -> str:
        """The address of who is logged in; empty: nobody."""
        answer = self.client.get("/api/v1/me")
        return answer.json()["email"] if answer.status_code == 200 else ""

    @property
    def cookie(self) -> str:
        name = "__Host-cloister" if self.world.settings.secure else "cloister"
        return self.client.cookies.get(name, "")
