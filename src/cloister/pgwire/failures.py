"""What goes wrong, in PostgreSQL's words: a SQLSTATE for each kind of refusal, and the message in its three parts.

The first two parts of a cloister error (what, why) make the message, the third (instead) the hint. An error that nobody raised on
purpose gets a fixed text: its own words may hold a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from cloister.errors import (
    AccessDenied,
    BudgetExceeded,
    CloisterError,
    Conflict,
    EngineError,
    InvalidDeclaration,
    InvalidParameter,
    LedgerFrozen,
    LedgerTampered,
    LedgerUnavailable,
    Missing,
    MissingBound,
    NotConvertible,
    TooMany,
    UnknownColumn,
    UnknownTable,
    UnsupportedQuery,
)
from cloister.voices import Unspeakable, Voice

_CODES: tuple[tuple[type[CloisterError], str], ...] = (
    (AccessDenied, "42501"),
    (UnknownTable, "42P01"),
    (UnknownColumn, "42703"),
    (BudgetExceeded, "53400"),
    (UnsupportedQuery, "0A000"),
    (MissingBound, "42P17"),
    (InvalidDeclaration, "42P17"),
    (NotConvertible, "22023"),
    (InvalidParameter, "22023"),
    (EngineError, "58000"),
    (LedgerUnavailable, "57P03"),
    (LedgerTampered, "XX001"),
    (LedgerFrozen, "55000"),
    (Missing, "42704"),
    (Conflict, "55000"),
    (TooMany, "53400"),
)


class Refused(CloisterError):
    """What the wire itself refuses, with the SQLSTATE that clients know it by.

    >>> Refused("COPY was refused", why="nothing can be written", instead="SELECT", code="25006").code
    '25006'
    """

    def __init__(self, what: str, *, why: str = "", instead: str = "", code: str = "0A000", fatal: bool = False) -> None:
        super().__init__(what, why=why, instead=instead)
        self.code = code
        self.fatal = fatal

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Refused, self.what, why=self.why, instead=self.instead, code=self.code, fatal=self.fatal), ()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The fields of an error response."""

    code: str
    message: str
    hint: str = ""
    severity: str = "ERROR"


def failure_of(error: BaseException) -> Failure:
    """What a client is told about an error.

    >>> failure_of(UnknownTable("The table 'x' was not found", why="there is 'people'", instead="people"))
    Failure(code='42P01', message="The table 'x' was not found: there is 'people'", hint='people', severity='ERROR')
    >>> failure_of(RuntimeError("row 17 is ill")).message
    'The statement failed, and nothing more is said of it'
    """
    if not isinstance(error, CloisterError):
        return Failure(code="XX000", message="The statement failed, and nothing more is said of it")
    if isinstance(error, Refused):
        message = f"{error.what}: {error.why}" if error.why else error.what
        return Failure(code=error.code, message=message, hint=error.instead, severity="FATAL" if error.fatal else "ERROR")
    code = next((code for kind, code in _CODES if isinstance(error, kind)), "XX000")
    what, why = IN_SQL.told(error.what), IN_SQL.told(error.why)
    return Failure(code=code, message=f"{what}: {why}" if why else what, hint=IN_SQL.said(error.instead))


class _InSQL(Voice):
    """A client of PostgreSQL sets `cloister.spend`, where Python writes `spend=`.

    >>> _InSQL().said('spend="0.1", or a larger pilot='), _InSQL().told("within=0 is invalid")
    ("SET cloister.spend = '0.1'", 'cloister.within = 0 is invalid')
    """

    def given(self, name: str, value: str) -> str:
        if name not in _SETTINGS:
            raise Unspeakable(name)
        return f"SET cloister.{name} = '{self.value(value)}'"

    def bare(self, name: str) -> str:
        if name not in _SETTINGS:
            raise Unspeakable(name)
        return f"cloister.{name}"

    def wrong(self, name: str, value: str) -> str:
        return f"{self.bare(name)} = {self.value(value)}"

    def call(self, name: str, positional: Sequence[str], keywords: Sequence[tuple[str, str]]) -> str:
        if name.startswith("cl."):
            raise Unspeakable(name)  # what the owner declares, and no client of PostgreSQL
        if name == "margin":
            return "a joint margin"
        return super().call(name, positional, keywords)


_SETTINGS = frozenset({"confidence", "fresh", "purpose", "spend", "within"})
IN_SQL = _InSQL()
