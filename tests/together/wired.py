"""Sites for tests of the wire: folders as `cloister site` has them, and agents in threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cloister as cl
from cloister.crypto import SigningKey
from cloister.together import Coordinator, Roster, SignedRoster, Site
from cloister.together.agent import Caller
from tests.together.parties import HUB_KEY

COLUMNS = {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])}
MUCH = cl.ZCDP(10**12)
PAUSES = (0.02, 0.05, 0.1)
CONFIG = """
[site]
name = "{name}"
hub = "http://127.0.0.1:1"

[policy]
otherwise = "{otherwise}"

[tables.people]
source = "people.csv"

[tables.people.columns]
age = {{ kind = "integer", low = 17, high = 90 }}
sex = {{ kind = "category", values = ["F", "M"] }}

[budgets]
people = {{ rho = "1000000000000" }}
"""


def key_of(name: str) -> SigningKey:
    return SigningKey(name.encode() * 32)


def roster_of(names: str, missing: int = 0, **other: Any) -> Roster:
    return Roster(sites={name: key_of(name).public for name in names}, hub=HUB_KEY.public, missing=missing, **other)


def signed_by(roster: Roster) -> SignedRoster:
    return SignedRoster.by({name: key_of(name) for name in roster.sites}, roster)


def coordinator_of(names: str, missing: int = 0, **other: Any) -> Coordinator:
    given = {"deadline": 240.0, "wait": 0.3, **other}
    return Coordinator(HUB_KEY, signed_by(roster_of(names, missing)), **given)


def folder_of(folder: Path, name: str, *, otherwise: str = "always", rows: int = 20) -> Path:
    """A site's folder, with rows of its own: so many of each sex."""
    found = folder / name
    found.mkdir()
    (found / "site.toml").write_text(CONFIG.format(name=name, otherwise=otherwise), encoding="utf-8")
    (found / "site.key").write_text((name.encode() * 32).hex(), encoding="ascii")
    lines = [f"{30 + row % 20},{sex}" for row in range(rows) for sex in "FM"]
    (found / "people.csv").write_text("\n".join(["age,sex", *lines, ""]), encoding="utf-8")
    return found


def site_of(name: str, *, rows: int = 20, columns: Any = COLUMNS, **other: Any) -> Site:
    """A site in this process, with the key of the tests' rosters and what it needs to outlast nobody."""
    from cloister.together import MemoryJournal

    held = {"age": [30 + row % 20 for row in range(2 * rows)], "sex": ["F", "M"] * rows}
    given = {"budget": MUCH, "key": other.get("key") or key_of(name), "journal": MemoryJournal(), **other}
    return Site(name, cl.PrivateTable(held, columns=columns), **given)


@contextmanager
def running(agents: Sequence[Caller], hub: str, **how: Any) -> Iterator[list[str]]:
    """The agents in threads, until the end; what they tell their owners."""
    stop, told = threading.Event(), list[str]()
    given = {"stop": stop, "told": told.append, "pauses": PAUSES, **how}
    threads = [threading.Thread(target=agent.run, args=(hub,), kwargs=given) for agent in agents]
    for thread in threads:
        thread.start()
    try:
        yield told
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def asked(coordinator: Coordinator, *, name: str = "people", **other: Any) -> cl.Session:
    """A session over the sites of a coordinator."""
    table = cl.JointTable(coordinator.sites, other.pop("columns", COLUMNS), overlap="none", **other)
    return cl.Session({name: table}, budget=cl.PureDP(10**9))


class Recorder:
    """A web application, and all that it receives with a body: path, Authorization, body."""

    def __init__(self, app: Any) -> None:
        self.app, self.seen = app, list[tuple[str, bytes, bytes]]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = bytearray()

        async def received() -> Any:
            part = await receive()
            body.extend(part.get("body", b""))
            return part

        await self.app(scope, received, send)
        if body:
            self.seen.append((scope["path"], dict(scope["headers"])[b"authorization"], bytes(body)))


def lines_of(folder: Path) -> list[list[str]]:
    """What a site's process noted."""
    return [line.split(" ") for line in (folder / "process.log").read_text(encoding="utf-8").splitlines()]
