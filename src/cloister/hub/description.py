"""What the API says of itself, besides what its routes and their types say: how one proves who asks, and what is refused how.

Each operation names the ways that its gate takes: an API token, whose needed scope is named too, or the cookie of a sign-in, with
the token against forgery where it writes. An operation that is open to everybody names none.
"""

from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Query
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import AfterValidator, BaseModel, ConfigDict, GetPydanticSchema
from pydantic_core import core_schema

from cloister.hub.database import sound
from cloister.hub.decisions.policy.actions import NOBODY, actions
from cloister.hub.decisions.policy.strict import guarantee_text
from cloister.hub.guard import action_of
from cloister.hub.hub import somebody
from cloister.printable import is_printable
from cloister.privacy import Guarantee

STATUSES = {
    400: "The request is invalid",
    401: "You are not signed in",
    403: "This person may not do this",
    404: "There is no such thing, or not for this person",
    409: "It contradicts what was done before, or too little of a budget is left",
    413: "It is larger than it may be",
    422: "A parameter or the body is not what this description says, or asks for what can't be done",
    429: "Too many attempts in too short a time",
    503: "The hub's database or its ledger is away",
}
"""The refusals that every operation may answer with."""
PROBLEM: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "Problem details (RFC 9457): what was refused, why, and what to do instead.",
    "required": ["type", "title", "status", "code"],
    "properties": {
        "type": {"type": "string", "description": "An address that stands for the code."},
        "code": {"type": "string", "description": "What programs compare."},
        "title": {"type": "string", "description": "What was refused."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "Why."},
        "instead": {"type": "string", "description": "What to do instead."},
        "rule": {"type": "string", "description": "The rule of a denied access."},
    },
    "examples": [
        {
            "type": "https://cloister.readthedocs.io/problems/budget-exceeded",
            "code": "budget-exceeded",
            "title": "A charge of ε = 1 to population 'people' was refused",
            "status": 409,
            "detail": "ε = 0.4 of its budget of ε = 2 remains",
            "instead": "a smaller spend=, or a budget that its owner raises",
        }
    ],
}
_ABOUT = """Everything that programs do with the hub. What leaves it about people is differentially private, charged before it is
worked out, and carries its guarantee, its error and its cost. Every refusal is problem details (RFC 9457).
Where a list leaves out damaged rows, the header Cloister-Left-Out names them to their owner and to administrators."""


class Taken(BaseModel):
    """What a client sends: a field that is not named is refused, and nothing is taken for what it is not."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _readable(text: str) -> str:
    if not is_printable(text, lines=True):
        raise ValueError("a character that cannot be seen")
    return text


_TOLD = core_schema.any_schema(
    serialization=core_schema.plain_serializer_function_ser_schema(
        guarantee_text, return_schema=core_schema.dict_schema(core_schema.str_schema(), core_schema.str_schema())
    )
)
READABLE = AfterValidator(_readable)
"""Of a text: refuses characters that nobody sees."""
Told = Annotated[Guarantee, GetPydanticSchema(lambda *_: _TOLD)]
"""A promise as a client reads it: its numbers as exact texts, by name."""
Limit = Annotated[int, Query(ge=1, le=200)]
Model = TypeVar("Model", bound=BaseModel)


def example(**body: Any) -> ConfigDict:
    """The `model_config` of what a client sends, with an example of it.

    >>> example(name="a notebook")["json_schema_extra"]
    {'examples': [{'name': 'a notebook'}]}
    """
    return ConfigDict(json_schema_extra={"examples": [body]})


def read_of(model: type[Model], row: object, **other: Any) -> Model:
    """What a client is sent of a row: the fields of a model as they are called there, and these others."""
    return model(**{name: sound(getattr(row, name)) for name in model.model_fields if name not in other}, **other)


def describe(app: FastAPI, cookie: str) -> None:
    """Let the application say all of this in its description. `cookie`: the name of a session's cookie."""

    def description() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app, cookie)
        return app.openapi_schema

    app.openapi = description  # type: ignore[method-assign]


def _described(app: FastAPI, cookie: str) -> dict[str, Any]:
    found = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
    parts = found["components"]
    parts["schemas"]["Problem"] = PROBLEM
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    parts["responses"] = {_name(status): {"description": told, "content": content} for status, told in STATUSES.items()}
    parts["securitySchemes"] = _ways(cookie)
    for route, operation in _operations(app, found["paths"]):
        refusals = {str(status): {"$ref": f"#/components/responses/{_name(status)}"} for status in STATUSES}
        operation["responses"] = {**operation["responses"], **refusals}
        operation["security"] = _security(route)
    return found


def _operations(app: FastAPI, paths: dict[str, Any]) -> Iterator[tuple[APIRoute, dict[str, Any]]]:
    for context in iter_route_contexts(app.routes):
        route = context.route
        if not isinstance(route, APIRoute):
            continue
        for method in context.methods or ():
            operation = paths.get(context.path_format or "", {}).get(method.lower())
            if operation is not None:
                yield route, operation


def _name(status: int) -> str:
    return f"Problem{status}"


def _ways(cookie: str) -> dict[str, Any]:
    about = "An API token, from /account/tokens. The scope that an operation needs is named beside it."
    return {
        "token": {"type": "http", "scheme": "bearer", "bearerFormat": "clo_…", "description": about},
        "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "The session of a browser."},
        "csrf": {
            "type": "apiKey",
            "in": "header",
            "name": "X-CSRF-Token",
            "description": "What the script of a page sends with all that it writes: the `csrf` of GET /api/v1/me.",
        },
    }


def _security(route: APIRoute) -> list[dict[str, list[str]]]:
    """Who may ask, by the action that the route names; no way at all where that is open to everybody."""
    from cloister.hub.web.forms import written_here

    name, calls = action_of(route), set(_calls(route.dependant))
    anybody = name is None or NOBODY in actions()[name].roles
    if anybody and not somebody(calls):
        return []
    session: dict[str, list[str]] = {"session": []}
    if written_here in calls:
        session["csrf"] = []
    if name is None or anybody:
        return [{"token": []}, session]
    return [{"token": [name]}, session] if actions()[name].by_token else [session]


def _calls(dependant: Dependant) -> Iterator[object]:
    for each in dependant.dependencies:
        yield each.call
        yield from _calls(each)
