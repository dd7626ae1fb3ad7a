"""The session that people use: the one door, with SQL in front of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cloister.errors import InvalidParameter
from cloister.query.parse import Parsed, parse
from cloister.session import Door, Plan, Question, Release
from cloister.session.spend import Spending

__all__ = ["Session"]

_CHOSEN = "the rows were chosen by their noisy values: margin(joint=True) holds for them; a single margin held before the choice"


class Session(Door):
    """Private and public tables, a budget, a ledger, and questions in SQL.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30, 40, 50] * 100, "sex": ["F", "M", "F"] * 100},
    ...                          columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])})
    >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
    ...     answer = session.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", spend="0.5")
    ...     answer.column_names, answer.num_rows, str(session.remaining)
    (['sex', 'n'], 2, 'ε = 0.5')
    """

    def sql(
        self,
        sql: str,
        spend: Spending | None = None,
        *,
        within: float | None = None,
        confidence: float = 0.95,
        purpose: str = "",
    ) -> Release:
        """The private answer to a question in SQL.

        `spend` is what it may cost; `within` asks for the least spend whose margin, at `confidence`, is at most that wide.
        """
        parsed = parse(sql, self.tables)
        if (spend is None) == (within is None):
            raise InvalidParameter(
                "The question was refused",
                why="it needs either a spend or a wanted margin",
                instead='session.sql("SELECT …", spend="0.1")',
            )
        if within is not None:
            spend = self.spend_within(parsed.question, within, confidence=confidence)
        assert spend is not None
        return _laid_out(self.measure(parsed.question, spend=spend, purpose=purpose), parsed)

    def explain(self, question: str | Question | Sequence[Question], spend: Spending) -> Plan:
        """What would be measured, with which error, at which cost: spends nothing and reads no row."""
        if isinstance(question, str):
            parsed = parse(question, self.tables)
            return replace(super().explain(parsed.question, spend), names=parsed.names)
        return super().explain(question, spend)


def _laid_out(release: Release, parsed: Parsed) -> Release:
    answer = release.select(parsed.names)
    rows: list[int] = list(range(answer.num_rows))
    table = answer.table
    for name, descending in reversed(parsed.order):
        column = table.columns[name].tolist()
        rows.sort(key=lambda row, column=column: _sortable(column[row]), reverse=descending)  # type: ignore[misc]
    if parsed.limit is not None and parsed.limit < len(rows):
        rows = rows[: parsed.limit]
        if any(name in answer.statistics() for name, _ in parsed.order):
            answer = replace(answer, notes=(*answer.notes, _CHOSEN))
    return answer if rows == list(range(answer.num_rows)) else answer.take(rows)


def _sortable(value: Any) -> tuple[bool, Any]:
    """NULL after everything, as in most dialects."""
    return (value is None, 0 if value is None else value)
