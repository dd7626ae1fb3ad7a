"""What the tests of the catalogue stand on: a hub with people and data, and browsers that send files as browsers do."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from sqlalchemy import select

from cloister.hub.decisions.callers import caller_for
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform import access, accounts, catalogue, trail
from cloister.hub.records.catalogue import Arrival, DataSet, DataSetVersion, Population
from cloister.hub.services import asking
from cloister.hub.settings import Settings
from cloister.hub.web.forms import TOKEN_FIELD
from cloister.privacy import PureDP
from tests.hub.accounts.world import Browser, application
from tests.hub.accounts.world import World as AccountsWorld
from tests.hub.house import Clock, cheap_passwords

CANARY = "kestrel-71453"
"""A value of a private row: it may be seen by who sent it, where they ask for it, and nowhere else."""
PEOPLE = ("age,sex,town,pay\n" + "".join(f"{20 + n % 60},{'FM'[n % 2]},{CANARY},{n * 37 % 5000}\n" for n in range(400))).encode()
VISITS = ("patient,cost\n" + "".join(f"p{n % 80},{n % 90}\n" for n in range(300))).encode()
COLUMNS = {
    "age": {"kind": "integer", "low": 17, "high": 90},
    "sex": {"kind": "category", "values": ["F", "M"]},
    "pay": {"kind": "real", "low": 0, "high": 5000, "step": 1},
}
DECLARED = {"columns": COLUMNS, "unit": None, "max_rows": None, "size": 400, "through": None, "reasons": {}}
SERVICES = (accounts, access, catalogue, asking, trail)


def rows_of(name: str) -> bytes:
    """The same people for each data set, in an order of its own: the same file is one population's only."""
    head, *rows = PEOPLE.splitlines(keepends=True)
    first = 0 if name == "people" else sum(place * each for place, each in enumerate(name.encode(), 1)) % len(rows)
    return head + b"".join(rows[first:] + rows[:first])


class World(AccountsWorld):
    """A hub with the catalogue, and ways to act on it."""

    def __init__(self, folder: Path, clock: Clock, **settings: Any) -> None:
        self.folder = folder
        self.clock = clock
        self.settings = Settings(data=folder / "hub", workers=0, **settings)
        with cheap_passwords():
            self.hub = Hub(self.settings, [each.SERVICE for each in SERVICES], clock=clock)
        self.app = application(self.hub)

    def again(self, **settings: Any) -> World:
        """The same hub, opened anew with other settings."""
        self.close()
        return World(self.folder, self.clock, **settings)

    def owner(self, email: str = "ada@example.org") -> Sender:
        """An owner's browser, logged in."""
        self.person(email, "owner")
        sender = Sender(self)
        sender.log_in(email)
        return sender

    def somebody(self, email: str, *roles: str) -> Sender:
        """Another person's browser."""
        self.person(email, *roles, name="Bob")
        sender = Sender(self)
        sender.log_in(email)
        return sender

    def caller(self, email: str) -> Caller:
        with self.hub.database.reading() as db:
            found = caller_for(self.hub, db, self.find(email).id)
        assert found is not None
        return found

    def register(self, email: str = "ada@example.org", name: str = "people", **more: Any) -> DataSet:
        """A data set by the function for programs."""
        given = {"declaration": DECLARED, "population": name, "budget": PureDP(2)} | more
        if given.get("public"):
            given |= {"declaration": {}, "population": "", "budget": None}
        source = given.pop("source", [rows_of(name)])
        kind = given.pop("kind", "csv")
        title = given.pop("title", name.title())
        return catalogue.register(self.hub, self.caller(email), name=name, title=title, source=source, kind=kind, **given)

    def rows(self, model: Any) -> list[Any]:
        with self.hub.database.reading() as db:
            return list(db.scalars(select(model)))

    def left(self) -> tuple[int, int, int, int, list[str]]:
        """How many arrivals, data sets, versions and populations there are, and the files of the table store."""
        vault = self.settings.path("vault")
        files = sorted(str(each.relative_to(vault)) for each in vault.rglob("*") if each.is_file()) if vault.exists() else []
        counted = (len(self.rows(model)) for model in (Arrival, DataSet, DataSetVersion, Population))
        arrivals, data_sets, versions, populations = counted
        return arrivals, data_sets, versions, populations, files


class Sender(Browser):
    """A browser that sends files."""

    def send(
        self, content: bytes, name: str = "people.csv", path: str = "/uploads", page: str = "/register", **fields: str
    ) -> Any:
        """Send the form with the file; the token stands first, as the page has it."""
        data = {TOKEN_FIELD: self.token(page), **fields}
        return self.client.post(path, data=data, files={"file": (name, content)})

    def arrival(self, content: bytes = PEOPLE, name: str = "people.csv") -> str:
        """The id of what was sent."""
        answer = self.send(content, name)
        assert answer.status_code == 303, answer.text
        return str(answer.headers["location"]).removeprefix("/register/")

    def upload(self, content: bytes = PEOPLE, kind: str = "text/csv") -> Any:
        """By the API."""
        return self.api("POST", "/uploads", content=content, headers={"Content-Type": kind})

    def declare(self, number: str, **fields: str) -> Any:
        return self.post(f"/register/{number}", **fields)


FORM = {
    "title": "People of the town",
    "name": "people",
    "rows_are": "units",
    "unit": "person",
    "size": "400",
    "people": "400",
    "population_new": "townspeople",
    "measure": "epsilon",
    "epsilon": "2",
    "understood": "yes",
    "c0_kind": "integer",
    "c0_low": "17",
    "c0_high": "90",
    "c0_reason": "the register takes adults",
    "c1_kind": "category",
    "c1_values": "F\nM",
    "c1_reason": "the register's two codes",
    "c2_kind": "",
    "c3_kind": "real",
    "c3_low": "0",
    "c3_high": "5000",
    "c3_step": "1",
    "c3_reason": "wages by the published scale",
}


def text_of(page: str) -> str:
    """A page without its tags."""
    return html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page)))
