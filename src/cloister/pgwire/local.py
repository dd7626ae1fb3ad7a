"""A backend over one local session and a list of people: for a laboratory, and for the tests of the wire."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from cloister.errors import AccessDenied
from cloister.pgwire.backend import AnswerColumn, Asking, Explained, Tables
from cloister.query import Session
from cloister.session import Plan, Release
from cloister.session.questions.spend import amount_of

EXAMPLE = "0.1"
_DIALECT = "postgres"


class LocalBackend:
    """People with tokens, and one session that answers all of them.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30, 40, 50] * 100}, columns={"age": cl.Integer(17, 90)})
    >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
    ...     ada = LocalBackend(session, {"ada": "a-long-token"}).login("ada", "a-long-token", "127.0.0.1")
    ...     ada.shape("SELECT COUNT(*) AS n FROM people", Asking())
    [AnswerColumn(name='n', kind='integer', measured=True)]
    """

    def __init__(self, session: Session, users: Mapping[str, str]) -> None:
        self._session = session
        self._tokens = {name: _digest(token) for name, token in users.items()}

    def login(self, user: str, token: str, address: str) -> LocalSession:
        """A session for a person with a token."""
        kept = self._tokens.get(user, "")
        if not hmac.compare_digest(kept, _digest(token)):
            raise AccessDenied(
                "You could not be signed in", why="the name or the token is wrong", instead="an API token as password"
            )
        return LocalSession(self._session)


class LocalSession:
    """Questions of one person, all asked under the name of the session that answers.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30, 40, 50] * 100}, columns={"age": cl.Integer(17, 90)})
    >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
    ...     print(LocalSession(session).ask("SELECT COUNT(*) AS n FROM people", Asking(spend="1")).cost)
    ε = 1
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def tables(self) -> Tables:
        """All tables of the session."""
        return self._session.tables

    def shape(self, sql: str, how: Asking) -> list[AnswerColumn]:
        """The columns that the answer will have: spends nothing."""
        return shape_of(self._session, sql)

    def explain(self, sql: str, how: Asking) -> Explained:
        """The plan for a spend, for the least spend that reaches a margin, or for an example."""
        cost: Any = how.spend or EXAMPLE
        if how.within is not None:
            cost = self._session.spend_for(sql, within=how.within, confidence=how.confidence, dialect=_DIALECT)
        plan: Plan = self._session.explain(sql, cost, dialect=_DIALECT)
        return plan

    def ask(self, sql: str, how: Asking) -> Release:
        """The private answer, charged."""
        return self._session.sql(
            sql, how.spend, within=how.within, confidence=how.confidence, purpose=how.purpose, fresh=how.fresh, dialect=_DIALECT
        )

    def repeat(self, sql: str, how: Asking) -> Release | None:
        """The stored releases of the same question, where there are any: worth what was paid for them, so nothing is charged."""
        plan: Plan = self._session.explain(sql, EXAMPLE, dialect=_DIALECT)
        if not plan.parts:
            return self._session.stored(sql, dialect=_DIALECT)
        found = self._session.ledger.find(plan.digest, plan.costs)
        paid = [min(amount_of(cost) for cost in each.costs.values()) for each in found]
        for amount in dict.fromkeys([sum(paid, Fraction(0)), *sorted(paid, reverse=True)[:1]]) if paid else ():
            again: Plan = self._session.explain(sql, amount, dialect=_DIALECT)
            if again.repeated:
                return self._session.sql(sql, amount, dialect=_DIALECT)
        return None

    def check(self, sql: str, how: Asking) -> None:
        """Anyone who is in may ask everything, for as long as the session is open."""
        self._session.explain(sql, EXAMPLE, dialect=_DIALECT)

    def close(self) -> None:
        """Nothing is held for one person."""


def shape_of(session: Session, sql: str, dialect: str | None = _DIALECT) -> list[AnswerColumn]:
    """The columns of the answer to a question, from its plan alone.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"sex": ["F", "M"]}, columns={"sex": cl.Category(["F", "M"])})
    >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
    ...     shape = shape_of(session, "SELECT sex, COUNT(*) AS n, 0.5 AS half FROM people GROUP BY sex")
    >>> [(each.kind, each.measured) for each in shape]
    [('text', False), ('integer', True), ('real', False)]
    """
    return [AnswerColumn(*each) for each in session.columns(sql, dialect=dialect)]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
