"""Errors on their way out: problem details (RFC 9457) for programs; the same three parts on a page for people.

What was refused, why, and what to do instead come from `cloister.errors`, whose messages are computed from public facts alone. An
error that nobody foresaw shows nothing but a reference, which the log has, too, with the kind of the error and no more.
"""

from dataclasses import dataclass
from typing import Any

from cloister import errors
from cloister.errors import Conflict as Conflict
from cloister.errors import Missing as Missing
from cloister.errors import TooMany as TooMany
from cloister.hub.database import DatabaseUnavailable

_BASE = "https://cloister.readthedocs.io/problems/"


class Unauthenticated(errors.CloisterError):
    """Nobody is signed in."""

    stored = "Unauthenticated"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An error as it leaves."""

    status: int
    code: str
    title: str
    why: str = ""
    instead: str = ""
    rule: str = ""

    def details(self) -> dict[str, Any]:
        """As problem details."""
        told = {
            "type": _BASE + self.code,
            "code": self.code,
            "title": self.title,
            "status": self.status,
            "detail": self.why,
            "instead": self.instead,
            "rule": self.rule,
        }
        return {name: value for name, value in told.items() if value != ""}


_STATUS: tuple[tuple[type[errors.CloisterError], int, str], ...] = (
    (Unauthenticated, 401, "not-logged-in"),
    (errors.AccessDenied, 403, "access-denied"),
    (Missing, 404, "missing"),
    (errors.UnknownTable, 404, "unknown-table"),
    (errors.BudgetExceeded, 409, "budget-exceeded"),
    (Conflict, 409, "conflict"),
    (TooMany, 429, "too-many"),
    (errors.InvalidParameter, 422, "invalid"),
    (errors.InvalidDeclaration, 422, "invalid-declaration"),
    (errors.MissingBound, 422, "missing-bound"),
    (errors.UnknownColumn, 422, "unknown-column"),
    (errors.UnsupportedQuery, 422, "unsupported"),
    (errors.NotConvertible, 422, "not-convertible"),
    (errors.MissingDependency, 501, "not-installed"),
    (errors.EngineError, 502, "engine"),
    (errors.LedgerError, 503, "ledger"),
    (DatabaseUnavailable, 503, "database"),
)


def problem_of(error: errors.CloisterError) -> Problem:
    """An error of ours as a problem.

    >>> problem_of(errors.UnknownColumn("The column 'x' is not known", why="declared are 'a'", instead="'a'")).status
    422
    """
    status, code = next(((status, code) for kind, status, code in _STATUS if isinstance(error, kind)), (400, "refused"))
    return Problem(status=status, code=code, title=error.what, why=error.why, instead=error.instead, rule=error.rule)


def beside_form(error: errors.CloisterError) -> Problem:
    """The same, for the page that shows what was sent once more; what is denied or missing has a page of its own."""
    problem = problem_of(error)
    if problem.status in (403, 404):
        raise error
    return problem
