"""Every route of the hub, and something to send to each: attack tests walk along them, so that a new route is attacked too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from cloister.hub.guard import action_of
from tests.hub.house import Visitor

_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")

BODIES: Mapping[str, Any] = {
    "Changes": {"title": "Mine now"},
    "Details": {"institution": "Elsewhere"},
    "Renaming": {"name": "mine"},
    "AccessWish": {"data_set": "people", "purpose": "care", "wanted": {"actions": ["question.ask"]}},
    "AccessGiven": {"rules": {"actions": ["question.ask"]}},
    "ShareWish": {"amount": "0.1", "reason": "more"},
    "ShareDecision": {"grant": True, "amount": "0.1"},
    "Raising": {"amount": "9", "why": "more"},
    "Allotting": {"who": "mallory@example.org", "amount": "0.1"},
    "Saying": {"text": "hello"},
    "HelperSays": {},
    "Refusing": {"reason": "no"},
    "NewVersion": {"upload": "x"},
    "NewWindow": {"upload": "x", "window": "2026"},
    "AskDataSet": {"data_set": "people"},
    "Joining": {"email": "mallory@example.org"},
    "Sharing": {"email": "mallory@example.org"},
    "Renamed": {"title": "mine"},
    "Roles": {"roles": ["administrator"]},
    "Training": {"table": "secrets_zqx", "method": "LinearRegression", "features": ["code"], "target": "pay", "spend": "0.1"},
    "Anonymizing": {"table": "secrets_zqx", "parts": {"code": "quasi"}},
    "Releasing": {"table": "secrets_zqx", "parts": {"code": "quasi"}, "name": "mine", "title": "Mine now", "understood": True},
    "SurveyTraining": {"method": "naive-bayes", "target": "copied", "features": ["why"]},
    "Foretelling": {"answers": [{"why": "time"}]},
    "Predicting": {"csv": "code\n1\n"},
    "Inviting": {"count": 1},
    "Composing": {"title": "Mine now"},
    "NewDevice": {"name": "mine"},
    "NextRoster": {
        "roster": {"sites": [["a", "ab" * 32], ["b", "cd" * 32]], "hub": "01" * 32, "missing": 0, "threshold": 2, "epoch": 2},
        "signatures": {"a": "ab" * 64},
    },
    "NewPads": {"holder": "keys", "key": "ab" * 64, "uploads": []},
    "Scores": {"scores": {"code": "guessed"}},
    "Comparing": {"sql": "SELECT COUNT(*) AS n FROM secrets_zqx", "spend": "0.1"},
    "ReadingBatch": {"readings": [{"at": "2030-01-01T00:05:00Z"}]},
}
"""A body that is right in form, for each route that takes one about an object of its address."""

FORM: Mapping[str, str | list[str]] = {
    "title": "Mine now",
    "name": "mine",
    "email": "mallory@example.org",
    "data_set": "people",
    "purpose": "care",
    "about": "",
    "reason": "no",
    "text": "hello",
    "message": "hello",
    "role": ["administrator"],
    "actions": ["question.ask"],
    "present": "yes",
    "amount": "0.1",
    "why": "more",
    "who": "mallory@example.org",
    "decision": "grant",
    "which": "everybody",
    "to": "mallory@example.org",
    "rows": "5",
    "json": "{}",
    "table": "secrets_zqx",
    "method": "LinearRegression",
    "features": ["code"],
    "target": "pay",
    "spend": "0.1",
    "kind": "yes-no",
    "count": "1",
    "hoped": "100",
    "cap": "8",
    "level": ["mine"],
    "epsilon": ["1"],
    "k": "1",
    "part_0": "quasi",
    "understood": "yes",
}
"""What a posted form holds: more than any of them asks for."""


KINDS: Mapping[str, tuple[str, ...]] = {
    "name": ("data set", "population", "project", "algorithm"),
    "population": ("population",),
    "number": ("request", "budget request", "release", "saved question", "upload", "rule", "model", "survey", "draft"),
    "person": ("person",),
    "data_set": ("data set",),
    "grant": ("grant",),
    "token": ("token",),
    "job": ("job",),
}
"""What a part of an address may name (`world.ids`); of others, nothing is there."""


RESULTS = ("release", "model")
NUMBERED: Mapping[str, tuple[str, ...]] = {
    "access": ("request",),
    "access-requests": ("request",),
    "algorithm-results": RESULTS,
    "algorithm-runs": RESULTS,
    "anonymise": RESULTS,
    "anonymised": RESULTS,
    "budget-requests": ("budget request",),
    "budgets": ("budget request",),
    "dashboards": ("release", "saved question"),
    "exact-joint-results": RESULTS,
    "joint-learning": RESULTS,
    "joint-results": RESULTS,
    "journeys": RESULTS,
    "models": ("model",),
    "policy": ("rule",),
    "projected": RESULTS,
    "projections": RESULTS,
    "published": RESULTS,
    "questions": ("saved question",),
    "register": ("upload",),
    "releases": RESULTS,
    "s": ("survey",),
    "shown": RESULTS,
    "streams": (),
    "survey-models": ("model",),
    "surveys": ("survey", "draft"),
    "synthetic": RESULTS,
    "uploads": ("upload",),
}
"""What the first part of an address says that its number is; where it says nothing, each kind is tried.
`test_no_address_shows_what_its_name_does_not_say` holds it."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """One method of one address."""

    method: str
    path: str
    action: str

    @property
    def api(self) -> bool:
        """Whether programs use it."""
        return self.path.startswith("/api/")

    @property
    def parameters(self) -> list[str]:
        """What its address leaves open."""
        return _PARAMETER.findall(self.path)

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return self.method not in ("GET", "HEAD")

    def at(self, **values: str) -> str:
        """Its address, with those values."""
        return _PARAMETER.sub(lambda found: values[found[1]], self.path)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def addresses(place: Place, ids: Mapping[str, str]) -> Iterator[str]:
    """Its addresses with the things that it may show, with another thing, with one that is not there, and in each form."""
    named = [name for name in place.parameters if name != "form"]
    found = {kind: ids[kind] for name in named for kind in kinds(place, name)}
    for form in ("csv", "json", "parquet", "jsonl") if "form" in place.parameters else ("",):
        for number in [*found.values(), "nothing"] if named else [""]:
            yield place.at(**{name: form if name == "form" else number for name in place.parameters})


def kinds(place: Place, name: str) -> tuple[str, ...]:
    """Which things a part of an address may name, and of numbers one that it does not."""
    first = place.path.removeprefix("/api/v1").split("/")[1]
    if name != "number" or first not in NUMBERED:
        return KINDS.get(name, ())
    others = [kind for kind in KINDS["number"] if kind not in NUMBERED[first]]
    return (*NUMBERED[first], others[crc32(place.path.encode()) % len(others)])


def places(app: FastAPI) -> list[Place]:
    """Every route, in the order of its address."""
    return sorted(_found(app), key=lambda place: (place.path, place.method))


def _found(app: FastAPI) -> Iterator[Place]:
    for context in iter_route_contexts(app.router.routes):
        if isinstance(context.route, APIRoute):
            action = action_of(context.route)
            assert action is not None, f"{context.path} names no action"
            for method in context.methods or ():
                yield Place(method=method, path=context.path or "", action=action)


def send(visitor: Visitor, place: Place, address: str, *, body: Any = None, token: str = "") -> Any:
    """A request as the page of this visitor would send it: with their cookie, and with the token of their forms."""
    if place.api:
        given = {} if body is None else {"json": body}
        return visitor.client.request(place.method, address, headers={"X-CSRF-Token": token} if place.writes else {}, **given)
    if place.writes:
        return visitor.client.request(place.method, address, data={**FORM, "form_token": token})
    return visitor.client.request(place.method, address)


def body_of(openapi: Mapping[str, Any], place: Place) -> Any:
    """The body for a route of the API, or None where it takes none."""
    described = openapi["paths"][place.path][place.method.lower()].get("requestBody")
    schema = (described or {}).get("content", {}).get("application/json", {}).get("schema")
    if schema is None:
        return None
    name = schema.get("$ref", "").rpartition("/")[2]
    return BODIES.get(name, {})


def form_token(visitor: Visitor) -> str:
    """What every form of this log-in holds."""
    return visitor.csrf()["X-CSRF-Token"]
