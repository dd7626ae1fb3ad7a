"""The first gate of every route: does this kind of person, with this kind of sign-in, do this at all?

`needs("question.ask")` names the action of a route. What the action may be done *to* is decided behind it, by the policy. A route
that names none is found by a test, as is one that is not in the table of routes and roles.
"""

from typing import Any

from fastapi import Depends, Request
from fastapi.routing import APIRoute

from cloister.errors import AccessDenied
from cloister.hub.decisions.policy import in_scope
from cloister.hub.decisions.policy.actions import ANYBODY, NOBODY, ROLES, actions
from cloister.hub.hub import Caller, caller_of
from cloister.hub.problems import Unauthenticated


class _Needs:
    """The dependency of a route, which remembers its action."""

    def __init__(self, action: str) -> None:
        if action not in actions():
            raise KeyError(f"no such action: {action}")
        self.action = action

    async def __call__(self, request: Request) -> Caller:
        caller = caller_of(request)
        check_action(caller, self.action)
        return caller


def needs(action: str) -> Any:
    """The dependency that lets only callers through whose role may do the action at all."""
    return Depends(_Needs(action))


def check_action(caller: Caller, action: str) -> None:
    """Let through, or say who may.

    >>> check_action(Caller(), "question.ask")
    Traceback (most recent call last):
    cloister.hub.problems.Unauthenticated: You need to sign in: you are not signed in.
      Instead: /login
    """
    wanted = actions()[action]
    if NOBODY in wanted.roles:
        return
    if not caller.signed_in:
        raise Unauthenticated("You need to sign in", why="you are not signed in", instead="/login")
    if ANYBODY not in wanted.roles and wanted.roles.isdisjoint(caller.roles):
        titles = " or ".join(sorted(ROLES[role] for role in wanted.roles))
        raise AccessDenied(
            f"{wanted.title}: denied", why=f"it is for the role {titles}", instead="ask an administrator for the role"
        )
    if caller.via == "token" and not wanted.by_token:
        raise AccessDenied(f"{wanted.title}: denied", why="an API token cannot do it", instead="the page, in a browser")
    if caller.scopes is not None and not in_scope(action, caller.scopes):
        raise AccessDenied(
            f"{wanted.title}: denied", why="the API token has no such scope", instead=f"a token with the scope {action}"
        )


def action_of(route: APIRoute) -> str | None:
    """The action that a route names."""
    for dependency in route.dependant.dependencies:
        if isinstance(dependency.call, _Needs):
            return dependency.call.action
    return None
