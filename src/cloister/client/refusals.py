"""A hub's refusals as exceptions: the same classes that a session on this machine raises, with what, why and what to do instead.

The hub's problem details (RFC 9457) name the kind of error in `code`. A kind that has no class on this machine, such as a request
that was sent too often, is a `HubError`.
"""

from collections.abc import Mapping
from typing import Any

from cloister import errors

_LONGEST = 4000


class HubError(errors.CloisterError):
    """The hub refused, or failed, in a way that a session on this machine cannot."""

    code: str = ""
    """The kind, as the hub names it."""


class HubUnreachable(HubError):
    """The hub did not answer."""


class NotOverHub(errors.UnsupportedQuery, AttributeError):
    """What a session has on the machine with the tables alone."""

    stored = "UnsupportedQuery"


_KINDS: Mapping[str, type[errors.CloisterError]] = {
    "not-logged-in": errors.AccessDenied,
    "access-denied": errors.AccessDenied,
    "unknown-table": errors.UnknownTable,
    "budget-exceeded": errors.BudgetExceeded,
    "invalid": errors.InvalidParameter,
    "invalid-declaration": errors.InvalidDeclaration,
    "missing-bound": errors.MissingBound,
    "unknown-column": errors.UnknownColumn,
    "unsupported": errors.UnsupportedQuery,
    "not-convertible": errors.NotConvertible,
    "not-installed": errors.MissingDependency,
    "engine": errors.EngineError,
    "ledger": errors.LedgerError,
}


def refusal_of(status: int, problem: Mapping[str, Any]) -> errors.CloisterError:
    """The exception that a problem stands for.

    >>> refusal_of(404, {"code": "unknown-table", "title": "The table 'x' is not known", "detail": "no data set of that name"})
    UnknownTable("The table 'x' is not known: no data set of that name.")
    """
    code = _text(problem, "code")
    what = _text(problem, "title") or f"The hub answered with the status {status}"
    error = _KINDS.get(code, HubError)(what, why=_text(problem, "detail"), instead=_text(problem, "instead"))
    error.rule = _text(problem, "rule")
    if isinstance(error, HubError):
        error.code = code
    return error


def _text(problem: Mapping[str, Any], name: str) -> str:
    value = problem.get(name, "")
    return value[:_LONGEST] if isinstance(value, str) else ""
