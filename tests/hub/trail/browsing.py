"""Browsers that are logged in as somebody, over the real application."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from starlette.testclient import TestClient

from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import digest, new_secret
from cloister.hub.records.accounts import Person, PersonRole, WebSession
from cloister.hub.web.forms import TOKEN_FIELD
from cloister.hub.web.home import home_pages
from tests.hub.accounts.world import application


class Visitor:
    """A person's browser, already logged in; `person` None is nobody's."""

    def __init__(self, hub: Hub, person: str | None = None, *roles: str) -> None:
        self.hub, self.person = hub, person
        app = application(hub)
        if not any(getattr(route, "path", "") == "/" for route in app.routes):
            app.include_router(home_pages())
        self.client = TestClient(app, base_url=hub.settings.origin, follow_redirects=False)
        if person is not None:
            secret = new_secret()
            with hub.database.begin() as db:
                now = hub.now()
                db.add(Person(id=person, email=f"{person}@example.org", name=person.title(), created=now))
                db.flush()
                db.add_all(PersonRole(person=person, role=role, given=now) for role in roles)
                end = now + timedelta(hours=12)
                db.add(
                    WebSession(
                        digest=digest(secret), person=person, created=now, used=now, expires=end, second_factor=False, address=""
                    )
                )
            self.client.cookies.set("cloister", secret)
            self.client.headers["X-CSRF-Token"] = hub.keys.sign("form", f"session {digest(secret)}")
        self.caller = Caller(id=person or "", roles=frozenset(roles), via="session")

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, **more)

    def post(self, path: str, page: str, **fields: str) -> Any:
        """Send a form with the token that a page gave."""
        found = re.search(rf'name="{TOKEN_FIELD}" value="([^"]+)"', self.get(page).text)
        assert found is not None
        return self.client.post(path, data={TOKEN_FIELD: found[1], **fields})

    def api(self, method: str, path: str) -> Any:
        """A call of the API with the browser's log-in, as the page's script makes them."""
        return self.client.request(method, f"/api/v1{path}")
