"""What the API says of itself: a document of OpenAPI 3.1, in which every operation says who may ask and what can go wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from pydantic import TypeAdapter
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from cloister.hub.decisions.policy.actions import NOBODY, actions
from cloister.hub.description import STATUSES, describe
from cloister.hub.guard import action_of
from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.services import all_services
from tests.docs.test_words import AVOIDED
from tests.hub.house import House
from tests.hub.test_routes import routes

WRITES = {"post", "put", "patch", "delete"}
HERE = "urn:api"
PARTS = {"schemas", "responses", "securitySchemes"}
OPERATION = {
    "type": "object",
    "required": ["summary", "operationId", "tags", "responses", "security"],
    "properties": {
        "summary": {"type": "string", "pattern": r"^[A-Z].*[^.]$"},
        "description": {"type": "string", "minLength": 5},
        "operationId": {"type": "string", "pattern": r"^\w+$"},
        "tags": {"type": "array", "minItems": 1, "items": {"enum": ["Releases", *(service.title for service in all_services())]}},
        "responses": {
            "type": "object",
            "required": [str(each) for each in STATUSES],
            "propertyNames": {"pattern": r"^[1-5]\d\d$"},
            "minProperties": len(STATUSES) + 1,
            "additionalProperties": {"anyOf": [{"required": ["description"]}, {"required": ["$ref"]}]},
        },
        "security": {
            "type": "array",
            "items": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        },
        "parameters": {
            "type": "array",
            "items": {
                "required": ["name", "in", "schema"],
                "properties": {"in": {"enum": ["path", "query", "header", "cookie"]}, "required": {"type": "boolean"}},
                "if": {"properties": {"in": {"const": "path"}}},
                "then": {"required": ["required"], "properties": {"required": {"const": True}}},
            },
        },
    },
    "additionalProperties": False,
    "patternProperties": {"^requestBody$": {"required": ["content"]}},
}


# A summary is an imperative: it begins with one of these.
VERBS = frozenset(
    re.findall(
        r"\w+",
        """
    Acknowledge Add Approve Ask Block Cancel Change Close Compare Confirm Connect Create Decide
    Delete Download End Estimate Explain Get Grant Invite Join Keep List Open Predict
    Pool Preview Put Raise Refuse Register Rehearse Release Remove Rename Reopen Request Revoke Save
    Send Set Share Stop Train Try Unblock Update Upload Verify Withdraw
    """,
    )
)


def faults(operation: dict[str, Any]) -> list[str]:
    """What is missing where an operation is described to its reader."""
    summary = operation.get("summary", "")
    told = {status: each["description"] for status, each in operation["responses"].items() if "description" in each}
    found = [] if summary.split(" ")[0] in VERBS and len(summary) <= 60 else [f"summary: {summary}"]
    found += [f"{status}: {text}" for status, text in told.items() if not text or text == "Successful Response"]
    texts = [summary, operation.get("description", ""), *told.values()]
    return found + [f"write: {instead}" for text in texts for word, instead in AVOIDED.items() if re.search(word, text)]


@pytest.fixture
def told(house: House) -> dict[str, Any]:
    found: dict[str, Any] = house.client().get("/api/v1/openapi.json").json()
    return found


def operations(told: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for each in part.values():
            yield from references(each)
    elif isinstance(part, list):
        for each in part:
            yield from references(each)


def at(told: dict[str, Any], reference: str) -> Any:
    found: Any = told
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found


def test_it_is_a_document_of_openapi(told: dict[str, Any]) -> None:
    """By its own rules, as far as they bear on what is written here; schemas are of JSON Schema, and names lead somewhere."""
    assert told["openapi"].startswith("3.1.")
    assert {"title", "version", "description"} <= set(told["info"])
    assert set(told["components"]) == PARTS
    names = [operation["operationId"] for _, _, operation in operations(told)]
    assert len(names) == len(set(names)) > 100
    for path, method, operation in operations(told):
        errors = [each.message for each in jsonschema.Draft202012Validator(OPERATION).iter_errors(operation)]
        assert not errors, (method, path, errors)
        named = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}, path
    for reference in references(told):
        assert at(told, reference) is not None
    for name, schema in told["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema.get("title"), name


def test_each_operation_has_a_plain_summary_and_described_responses(told: dict[str, Any]) -> None:
    assert {f"{method} {path}": found for path, method, each in operations(told) if (found := faults(each))} == {}
    summaries = [each["summary"] for _, _, each in operations(told)]
    assert {each for each in summaries if summaries.count(each) > 1} == {"Upload a file"}, "by PUT and by POST"


def test_an_operation_without_a_plain_summary_is_found() -> None:
    good = {"summary": "Get a model", "responses": {"200": {"description": "The model"}, "404": {"$ref": "#/x"}}}
    assert faults(good) == []
    assert faults({"responses": good["responses"]}) == ["summary: "]
    assert faults(good | {"summary": "Models"}) == ["summary: Models"]
    assert faults(good | {"responses": {"200": {"description": "Successful Response"}}}) == ["200: Successful Response"]
    assert faults(good | {"description": "Needs no log-in."}) == ["write: session; sign in"]


def test_each_operation_says_how_one_proves_who_asks(house: House, told: dict[str, Any]) -> None:
    describe(house.app, cookie_name(house.settings))  # the tests' shared application was described for the first hub's
    house.app.openapi_schema = None
    own = house.app.openapi()
    ways = own["components"]["securitySchemes"]
    assert (ways["token"]["type"], ways["token"]["scheme"]) == ("http", "bearer")
    assert (ways["session"]["in"], ways["session"]["name"]) == ("cookie", cookie_name(house.settings))
    there = routes(house.app)
    seen = set()
    for path, method, operation in operations(told):
        action = actions()[action_of(there[f"{method.upper()} {path}"]) or ""]
        named = [frozenset(each) for each in operation["security"]]
        seen.add(tuple(sorted(map(tuple, map(sorted, named)))))
        assert set().union(*named) <= set(ways), path
        if NOBODY in action.roles:
            assert operation["security"] == ([{"token": []}, {"session": []}] if path == "/api/v1/me" else []), path
            continue
        assert frozenset({"session", "csrf"} if method in WRITES else {"session"}) in named, (method, path)
        assert ({"token": [action.name]} in operation["security"]) is action.by_token, (method, path)
    assert len(seen) == 5, "open to all; read and written with a token or a log-in; read and written with a log-in alone"


def test_what_it_says_of_security_holds(house: House, told: dict[str, Any]) -> None:
    """Nobody is let in where a way is named; a cookie alone writes nothing; a token does nothing that names none."""
    boss = house.person("administrator", "steward", "owner", "analyst", "algorithm-provider")
    for path, method, operation in operations(told):
        address = path.replace("{form}", "csv")
        for name in {part for part in address.split("/") if part.startswith("{")}:
            address = address.replace(name, "x")
        sent = {"json": {}} if method in WRITES else {}
        if not operation["security"]:
            assert house.client().request(method, address, **sent).status_code != 401, path
            continue
        assert house.client().request(method, address, **sent).status_code == 401, (method, path)
        ways = [set(each) for each in operation["security"]]
        if {"token"} not in ways:
            assert house.client().request(method, address, headers=boss.bearer, **sent).status_code == 403, (method, path)
        if {"session", "csrf"} in ways:
            assert boss.client.request(method, address, **sent).status_code in (403, 422), (method, path)


def test_every_refusal_is_said_and_is_a_problem(house: House, told: dict[str, Any]) -> None:
    registry = Registry().with_resource(HERE, Resource(contents=told, specification=DRAFT202012))
    problem = jsonschema.Draft202012Validator({"$ref": f"{HERE}#/components/schemas/Problem"}, registry=registry)
    for _path, _method, operation in operations(told):
        for status in STATUSES:
            content = at(told, operation["responses"][str(status)]["$ref"])["content"]
            assert content == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for example in told["components"]["schemas"]["Problem"]["examples"]:
        problem.validate(example)
    ana = house.person("analyst")
    for answer in (
        house.client().get("/api/v1/me"),
        ana.client.get("/api/v1/releases/none"),
        ana.client.get("/api/v1/trail"),
        house.client().post("/api/v1/questions", json={"sql": 3}, headers=ana.bearer),
        house.client().post("/api/v1/questions", content=b"{", headers=ana.bearer),
    ):
        assert answer.status_code >= 400
        problem.validate(answer.json())
        assert str(answer.json()["status"]) in {str(each) for each in STATUSES}


def test_every_body_has_an_example_that_it_takes(told: dict[str, Any]) -> None:
    """A report of a survey is made by the page that asks, and a file is a file."""
    registry = Registry().with_resource(HERE, Resource(contents=told, specification=DRAFT202012))
    seen = 0
    for path, method, operation in operations(told):
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            if kind != "application/json" or path.endswith("/reports"):
                continue
            schema = content["schema"]
            examples = content.get("examples") or (at(told, schema["$ref"]) if "$ref" in schema else schema).get("examples")
            assert examples, (method, path)
            for example in examples:
                whole = {"$ref": f"{HERE}{schema['$ref']}"} if "$ref" in schema else schema
                jsonschema.Draft202012Validator(whole, registry=registry).validate(example)
                seen += 1
    assert seen > 40


def test_the_examples_do_what_they_say(house: House, told: dict[str, Any]) -> None:
    def example(name: str) -> Any:
        return told["components"]["schemas"][name]["examples"][0]

    owner, ada = house.person("owner"), house.person("analyst", email="ada@example.org")
    steward, provider = house.person("steward"), house.person("algorithm-provider")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, provider, by=owner, actions=("dataset.see",))
    rule = told["paths"]["/api/v1/policy/rules"]["post"]["requestBody"]["content"]["application/json"]["schema"]["examples"][0]
    runner = told["paths"]["/api/v1/algorithms/{name}/grants"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    for who, path, body, status in (
        (owner, "/grants", example("NewGrant"), 201),
        (owner, "/budgets/people/shares", example("Allotting"), 200),
        (owner, "/budgets/people/raise", example("Raising"), 200),
        (owner, "/projects", example("NewProject"), 201),
        (owner, "/people/invitations", example("Invitation"), 403),
        (provider, "/algorithms", example("NewAlgorithm"), 201),
        (provider, "/algorithms/by-sex/grants", runner["examples"][0], 201),
        (ada, "/questions/explain", {**example("Question"), "purpose": "research"}, 200),
        (ada, "/questions", {**example("Question"), "purpose": "research"}, 201),
        (ada, "/questions/workload", {**example("Questions"), "purpose": "research"}, 201),
        (ada, "/questions/saved", example("Saving"), 201),
        (ada, "/access-requests", example("AccessWish"), 201),
        (ada, "/tokens", example("NewToken"), 201),
        (owner, "/surveys", example("Composing"), 201),
        (steward, "/policy/rules", rule, 201),
    ):
        answer = who.client.post(f"/api/v1{path}", json=body, headers=who.csrf())
        assert answer.status_code == status, (path, answer.text)
    changed = owner.client.patch("/api/v1/datasets/people", json=example("Changes"), headers=owner.csrf())
    assert changed.status_code == 200, changed.text


def test_no_truth_value_is_a_number(house: House) -> None:
    def lax(node: Any, strict: bool = False) -> Iterator[str]:
        if isinstance(node, list | tuple):
            for each in node:
                yield from lax(each, strict)
        elif isinstance(node, dict):
            strict = node.get("strict", (node.get("config") or {}).get("strict", strict))
            if node.get("type") in ("int", "float") and not strict:
                yield node["type"]
            for name, each in node.items():
                yield from (f"{name}.{told}" for told in lax(each, strict))

    bodies = {name: route.body_field for name, route in routes(house.app).items() if route is not None and route.body_field}
    assert len(bodies) > 60
    found = {name: list(lax(TypeAdapter(body.field_info.annotation).core_schema)) for name, body in bodies.items()}
    assert {name: told for name, told in found.items() if told} == {}
