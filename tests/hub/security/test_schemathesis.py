"""schemathesis over the whole API as each kind of caller: no 5xx, no breach of what the API says of itself, problems in one form.

Requests come from the description of the API, valid and broken ones, and half of the ids in addresses are of things that are
there. Each operation gets a few of them here (the same ones each time; valid or broken ones, in turn), and hundreds at night.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from cloister.hub.platform.accounts.tokens import scopes_for
from cloister.hub.records.accounts import ApiToken
from tests.hub.house import Clock, House, application
from tests.hub.security.world import World, populated

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
CALLERS = ("nobody", "analyst", "owner", "administrator")
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
EACH = int(os.environ.get("CLOISTER_SCHEMATHESIS", "2"))
PROBLEM = "application/problem+json"


@pytest.fixture
def attacked(tmp_path: Path, empty_hub: Path) -> Iterator[World]:
    shutil.copytree(empty_hub, tmp_path / "hub")
    house = House(tmp_path / "hub", Clock())
    yield populated(house)
    house.close()


def attack(world: World, each: int, *, in_turn: bool = False) -> int:
    """Draw so many requests of each kind (or of one, in turn) for each operation, and send each as everybody: how many."""
    app = application(world.house.hub)
    schema = schemathesis.openapi.from_dict(readable(app.openapi()))
    client = world.house.client(raise_server_exceptions=False)
    callers = {name: {} if name == "nobody" else getattr(world, name).bearer for name in CALLERS}
    known = st.sampled_from(sorted(world.ids.values()))
    sent = 0

    def request(case: Any, number: str | None) -> None:
        nonlocal sent
        if number is not None:
            case.path_parameters = {
                key: value if key == "form" else number for key, value in (case.path_parameters or {}).items()
            }
        drawn = case.as_transport_kwargs(base_url=world.house.settings.origin)
        headers = {key: str(value) for key, value in (drawn.pop("headers", None) or {}).items()}
        for name, bearer in callers.items():
            response = send(client, drawn, {**headers, **bearer})
            sent += 1
            try:
                checked(case, response)
            except (AssertionError, FailureGroup) as fault:
                raise AssertionError(f"as {name}: {fault}") from None

    faults = []
    for place, found in enumerate(schema.get_all_operations()):
        operation = found.ok()
        for mode in MODES[place % 2 :][:1] if in_turn else MODES:
            cases = operation.as_strategy(generation_mode=mode)
            drawn = settings(
                max_examples=each, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
            )
            test = seed(20261120)(drawn(given(case=cases, number=st.one_of(st.none(), known))(request)))
            try:
                test()
            except Unsatisfiable:
                continue  # what takes nothing has nothing that could be broken
            except AssertionError as fault:
                faults.append(f"{operation.label} {fault}")
    assert faults == [], "\n".join(faults)
    return sent


def readable(described: Any) -> Any:
    """The description as schemathesis 4 reads it: it takes the places of a pair (prefixItems) for a schema, and refuses them."""
    if isinstance(described, dict):
        return {key: readable(value) for key, value in described.items() if key != "prefixItems"}
    return [readable(value) for value in described] if isinstance(described, list) else described


def checked(case: Any, response: Any) -> None:
    """As the API says of itself; and what goes wrong is a problem in the one form."""
    case.validate_response(response, checks=CHECKS)
    if response.status_code >= 400:
        assert response.headers["content-type"] == PROBLEM, response.text
        told = response.json()
        assert told["status"] == response.status_code
        assert told["code"]
        assert told["title"]


def send(client: Any, given_: dict[str, Any], headers: dict[str, str]) -> Any:
    """Through the application; what no client can send is left out of a header."""
    raw = [(name.encode("latin-1", "ignore"), value.encode("latin-1", "ignore")) for name, value in headers.items()]
    body = {name: given_[name] for name in ("json", "data", "files", "params") if given_.get(name) is not None}
    if isinstance(body.get("data"), bytes | str):
        body["content"] = body.pop("data")
    return client.request(given_["method"], given_["url"], headers=raw, **body)


def test_no_request_breaks_the_api(attacked: World) -> None:
    assert attack(attacked, EACH, in_turn=True) > 500


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_request_breaks_the_api_at_night(attacked: World) -> None:
    assert attack(attacked, 45 * EACH) > 20_000


def test_every_body_takes_what_is_named_and_nothing_else(world: World) -> None:
    """Mass assignment: a field that nobody offers is refused, wherever a body is taken. Bodies that are policies are read as
    strictly by `hub/decisions/policy/facts.py`; a report, by `cloister.local`, so that a strange one is counted under its reason
    (`surveys/test_answers.py`)."""
    openapi = world.house.app.openapi()
    strict_elsewhere = {
        ("post", "/api/v1/algorithms/{name}/grants"),
        ("post", "/api/v1/policy/rules"),
        ("post", "/api/v1/projects/{name}/data-sets/{data_set}/approve"),
        ("post", "/api/v1/surveys/{number}/reports"),
        ("post", "/api/v1/joint-surveys/{number}/reports"),
    }
    loose = set()
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            named = openapi["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], schema)
            if named and named.get("additionalProperties") is not False:
                loose.add((method, path))
    assert loose == strict_elsewhere


def test_tokens_of_this_test_may_do_all_that_their_roles_allow(world: World) -> None:
    """Otherwise the walk would end at the scopes of the token."""
    with world.house.hub.database.reading() as db:
        rows = {row.person: set(row.scopes) for row in db.query(ApiToken)}
    for visitor in (world.analyst, world.owner, world.administrator):
        assert rows[visitor.id] == set(scopes_for(visitor.caller.roles))
