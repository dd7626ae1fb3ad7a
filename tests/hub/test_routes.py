"""Every route has a gate, and every gate lets through whom the table says: `routes.toml`, route by route and role by role."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from cloister.errors import AccessDenied
from cloister.hub.decisions.policy.actions import ROLES
from cloister.hub.guard import action_of, check_action
from cloister.hub.hub import Caller
from cloister.hub.platform.accounts.tokens import PRESETS
from cloister.hub.platform.catalogue.typed import wide_form
from cloister.hub.problems import Unauthenticated
from cloister.hub.web.forms import form_of, written_here
from tests.hub.house import ROLES as TESTED
from tests.hub.house import Clock, House
from tests.tiers import by_day_and_night

TABLE = tomllib.loads((Path(__file__).parent / "routes.toml").read_text(encoding="utf-8"))
UNGUARDED = {
    "GET /api/v1/openapi.json": "the description of the API: the same for everybody, and public",
    "HEAD /api/v1/openapi.json": "as GET",
    " /static": "style sheets, scripts, fonts: the same for everybody",
}
"""Routes without an action, each with the reason."""
UNFORGED = {
    "POST /uploads": "the form comes as a stream, and the handler looks at its first field before it takes the file",
    "POST /uploads/codebooks/{number}": "as above",
    "POST /uploads/versions/{name}": "as above",
    "POST /uploads/windows/{name}": "as above",
    "POST /uploads/masked": "as above",
    "POST /uploads/algorithms": "as above",
    "POST /models/{number}/predictions": "as above",
    "POST /datasets/{name}/declaration": "a form of more fields than others, checked by the same rule",
    "POST /register/{number}": "a form of more fields than others, checked by the same rule",
    "POST /register/{number}/rows": "as above",
}
"""Routes that write and check the token against forgery by other means, each with the reason."""
SIGNED = {"POST /together/{name:path}"}
"""Routes for programs of others, whose calls are signed by a key that is no cookie."""
COMPUTED = {"POST /api/v1/models/{number}/predictions", "POST /api/v1/survey-models/{number}/predictions"}
"""Routes that are sent rows and answer them, and write nothing."""
NOBODY, NO_ROLE = "nobody", "no role"
SAMPLES = {"form": "csv", "number": "1", "population": "people"}
"""Values for the names in addresses; where none is given, a name of nothing."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("routes") / "hub", Clock())
    yield house
    house.close()


def routes(app: FastAPI) -> dict[str, APIRoute | None]:
    """Method and path of everything that answers, with its route."""
    found: dict[str, APIRoute | None] = {}
    for context in iter_route_contexts(app.routes):
        for method in context.methods or [""]:
            route = context.original_route
            found[f"{method} {context.path}"] = route if isinstance(route, APIRoute) else None
    return found


def listed() -> dict[str, str]:
    """Route → the head of the list that it stands in."""
    found: dict[str, str] = {}
    for who, names in TABLE.items():
        for name in names:
            assert name not in found, f"{name} stands in two lists"
            found[name] = who
    return found


def test_every_route_names_an_action_or_has_a_reason_not_to(whole: House) -> None:
    bare = {name for name, route in routes(whole.app).items() if route is None or action_of(route) is None}
    assert bare == set(UNGUARDED)


def test_every_route_that_writes_asks_for_what_only_our_pages_know(whole: House) -> None:
    """A route of the API that a session may write by checks the token against forgery, and a page's form holds it."""
    bare = []
    for name, route in routes(whole.app).items():
        method, _, path = name.partition(" ")
        if route is None or method in ("GET", "HEAD", "OPTIONS", ""):
            continue
        checks = set(_calls(route.dependant))
        wanted = {written_here} if path.startswith("/api/") else {form_of, wide_form}
        if not wanted & checks and name not in {*UNFORGED, *SIGNED}:
            bare.append(name)
    assert not bare, f"these write, and check nothing against forgery: {bare}"
    assert {*UNFORGED, *SIGNED} <= set(routes(whole.app))


def test_a_token_that_reads_writes_nothing(whole: House) -> None:
    """What writes needs an action that says so, for the preset of tokens for reading goes by the actions' names."""
    reads = PRESETS["see"][1]
    found = {
        name
        for name, route in routes(whole.app).items()
        if route is not None and name.split()[0] not in ("GET", "HEAD") and "/api/v1/" in name and reads(action_of(route) or "")
    }
    assert found == COMPUTED


def test_those_that_check_it_by_other_means_check_it(whole: House) -> None:
    olga, pia = whole.person("owner"), whole.person("algorithm-provider", email="pia.forged@example.org")
    whole.sample_data_set("forged", owner=olga, rows={"age": [30], "sex": ["F"], "pay": [1]})
    for name in UNFORGED:
        path = filled(name.partition(" ")[2].replace("{name}", "forged"))
        who = pia if path.endswith("/algorithms") else olga
        for given in ({"form_token": "0" * 64}, {}):
            answer = who.client.post(path, data=given, files={"file": ("a.csv", b"age,sex,pay\n30,F,1\n", "text/csv")})
            assert (answer.status_code, "comes from another session" in answer.text) == (403, True), (name, given)


def _calls(dependant: Dependant) -> Iterator[object]:
    for each in dependant.dependencies:
        yield each.call
        yield from _calls(each)


def test_the_table_holds_every_route_and_no_other(whole: House) -> None:
    there = set(routes(whole.app)) - set(UNGUARDED)
    missing, gone = there - set(listed()), set(listed()) - there
    assert not missing, f"put these into routes.toml, after thinking who may: {sorted(missing)}"
    assert not gone, f"these are no longer there: {sorted(gone)}"


def test_a_route_that_is_passed_by_would_not_have_matched(whole: House) -> None:
    """Whatever is asked, under a root path too: no address gets another answer than if all routes were tried."""
    begun = {filled(name.partition(" ")[2]).removeprefix("/api/v1").split("/")[1] for name in routes(whole.app)}
    odd = {
        "",
        "/",
        "//",
        "//me",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/api/v1//me",
        "/api/v1me",
        "/api/v1/api/v1/me",
        "/API/v1/me",
        "/hub",
    }
    paths = odd | {f"{base}/{each}{rest}" for each in begun for base, rest in (("", ""), ("/api/v1", "/x"))}
    passing = [each for each in whole.app.router.routes if isinstance(each.matches, partial)]
    assert len(passing) > len(whole.app.router.routes) / 2
    for root in ("", "/hub"):
        for path in sorted(paths):
            scope = {"type": "http", "method": "GET", "root_path": root, "path": root + path, "headers": []}
            for each in passing:
                tried = each.matches.args[0]
                assert each.matches(dict(scope))[0] == tried(dict(scope))[0], (root, path, each)


def test_no_two_services_call_what_they_take_or_give_by_one_name(whole: House) -> None:
    """Where two do, the description of the API names both by their modules, which no client's maker wants to read."""
    names = whole.client().get("/api/v1/openapi.json").json()["components"]["schemas"]
    assert "ShareWish" in names
    assert not [name for name in names if "__" in name]


def test_the_roles_are_those_of_the_hub() -> None:
    assert set(TESTED) == set(ROLES)
    heads = {role for who in TABLE for role in who.split(", ")}
    assert heads <= {*ROLES, "open", "logged in"}


ASKERS = (NOBODY, NO_ROLE, *TESTED)
LATER = {"GET /account/second-factor", "GET /account/second-factor/code.svg", "GET /api/v1/me"}
"""Routes behind whose gate the handler asks who it is: somebody may be half signed in."""


@pytest.mark.parametrize("role", ASKERS)
def test_the_guard_lets_through_whom_the_table_says(whole: House, role: str) -> None:
    """Every route for every role, by the function that each route asks first."""
    roles = () if role in (NOBODY, NO_ROLE) else (role,)
    caller = Caller() if role == NOBODY else Caller(id="somebody", roles=frozenset(roles), via="session")
    actions = {name: action_of(route) or "" for name, route in routes(whole.app).items() if route is not None}
    known = {name: who for name, who in listed().items() if role != NOBODY or name not in LATER}
    found = {name: (guarded(caller, actions[name]), outcome_for(who, role)) for name, who in known.items()}
    wrong = [f"{name}: {given}, not {expected}" for name, (given, expected) in found.items() if given != expected]
    assert not wrong, "\n".join(wrong)


def guarded(caller: Caller, action: str) -> str:
    """What the guard does with a request."""
    try:
        check_action(caller, action)
    except Unauthenticated:
        return "log in"
    except AccessDenied:
        return "denied"
    return "through"


@by_day_and_night("asked", day=1, night=len(ASKERS))
@pytest.mark.parametrize("role", ASKERS)
def test_each_gate_lets_through_whom_the_table_says(whole: House, role: str, asked: int) -> None:
    """By real requests: each route by one of the roles in turn, and at night by each."""
    wrong, asker = [], Asker(whole, role)
    for number, (name, who) in enumerate(listed().items()):
        if (number - ASKERS.index(role)) % len(ASKERS) >= asked and not (role == NOBODY and name in LATER):
            continue
        method, _, path = name.partition(" ")
        expected = outcome_for(who, role)
        answer = asker.ask(method, filled(path))
        found = outcome_of(answer)
        if found != expected:
            wrong.append(f"{name}: {found}, not {expected} (status {answer.status_code})")
        if answer.status_code >= 500 and answer.status_code != 503:
            wrong.append(f"{name}: it failed with {answer.status_code}")
    assert not wrong, "\n".join(wrong)


def outcome_for(who: str, role: str) -> str:
    """What the table says."""
    if who == "open":
        return "through"
    if role == NOBODY:
        return "log in"
    return "through" if who == "logged in" or role in who.split(", ") else "denied"


def outcome_of(answer: httpx.Response) -> str:
    """Which class an answer is of. A denial by the gate names the roles; what the policy or a form denies has other words."""
    if answer.status_code == 401 and "you are not signed in" in answer.text:
        return "log in"
    if answer.status_code == 303 and answer.headers["location"].startswith("/login?next="):
        return "log in"
    return "denied" if answer.status_code == 403 and "it is for the role" in answer.text else "through"


class Asker:
    """Somebody in a role, who sends nothing but what proves the log-in: another person where an act before ended that."""

    def __init__(self, house: House, role: str) -> None:
        self.house = house
        self.role = role
        self._new()

    def ask(self, method: str, path: str) -> httpx.Response:
        """What the real application answers."""
        if self.role == NOBODY:
            return self.house.client().request(method, path)
        answer = self._sent(method, path)
        if outcome_of(answer) == "log in":
            self._new()
            answer = self._sent(method, path)
        return answer

    def _sent(self, method: str, path: str) -> httpx.Response:
        if method in ("GET", "HEAD"):
            return self.visitor.client.request(method, path)
        if path.startswith("/api/"):
            return self.visitor.client.request(method, path, headers=self.csrf)
        return self.visitor.client.request(method, path, data={"form_token": self.csrf["X-CSRF-Token"]})

    def _new(self) -> None:
        if self.role != NOBODY:
            self.visitor = self.house.person(*(() if self.role == NO_ROLE else (self.role,)))
            self.csrf = self.visitor.csrf()


def filled(path: str) -> str:
    """An address with something in the place of its names."""
    parts = (part[1:-1] if part.startswith("{") else "" for part in path.split("/"))
    pairs = zip(parts, path.split("/"), strict=True)
    return "/".join(SAMPLES.get(name.partition(":")[0], "none-such") if name else part for name, part in pairs)
