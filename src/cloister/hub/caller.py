"""Who asks: what the rest of the hub knows of the person behind a request."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from fastapi import Depends, Request

from cloister.hub.database import left_out
from cloister.hub.problems import Unauthenticated

Via = Literal["nobody", "session", "token", "system"]


@dataclass(frozen=True, kw_only=True)
class Caller:
    """A person (or nobody), as this request proves it.

    >>> NOBODY.signed_in, NOBODY.has("analyst")
    (False, False)
    """

    id: str = ""
    email: str = ""
    name: str = ""
    institution: str = ""
    roles: frozenset[str] = frozenset()
    training: Mapping[str, str] = field(default_factory=dict)
    """Certificate → the last day on which it holds (ISO date)."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    projects: frozenset[str] = frozenset()
    locale: str = ""
    via: Via = "nobody"
    scopes: frozenset[str] | None = None
    """Of an API token: the actions it may do; None: all of the person's."""
    session: str = ""
    """The digest of the browser's session, for forms and for signing out."""
    token: str = ""
    """The id of the API token, where one was shown."""
    address: str = ""
    second_factor: bool = False

    @property
    def signed_in(self) -> bool:
        """Whether it is anybody."""
        return self.id != ""

    def has(self, *roles: str) -> bool:
        """Whether the person has one of the roles."""
        return not self.roles.isdisjoint(roles)


NOBODY = Caller()


def caller_of(request: Request) -> Caller:
    """Who asks; worked out once a request by the middleware of accounts."""
    caller: Caller = getattr(request.state, "caller", NOBODY)
    return caller


def person_of(request: Request) -> Caller:
    """Who asks, where it has to be somebody."""
    caller = caller_of(request)
    if not caller.signed_in:
        raise Unauthenticated("Sign in to see this page", why="you are not signed in", instead="/login")
    return caller


async def _caller(request: Request) -> Caller:
    """`caller_of` for handlers: a dependency that is no coroutine would be run in a thread."""
    return caller_of(request)


async def _person(request: Request) -> Caller:
    return person_of(request)


def somebody(calls: Collection[object]) -> bool:
    """Whether a route with these dependencies takes somebody who has signed in, whatever it names besides.

    >>> somebody([_caller]), somebody([_caller, _person])
    (False, True)
    """
    return _person in calls


def left_out_for(caller: Caller) -> list[str]:
    """The rows that lists of this request went on without, as far as the caller may hear of them: the own ones, and an
    administrator of all."""
    return left_out(caller.id, all_rows=caller.has("administrator")) if caller.signed_in else []


CallerDep = Annotated[Caller, Depends(_caller)]
PersonDep = Annotated[Caller, Depends(_person)]
