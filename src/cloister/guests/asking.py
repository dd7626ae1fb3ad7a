"""Way "ask": the guest gets no rows. It asks the door in SQL while its share of the budget lasts, and returns what it likes.

Guarantee: the share. All that the code ever sees are answers at the door, which add up to at most the share (`session/share.py`);
what it makes of them is post-processing. So the code needs no trust, and its own randomness, number of questions and order
of them may follow from answers (sequential composition, adaptively chosen: Rogers et al. 2016; the ledger's bound counts).
"""

import json
import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from cloister.errors import (
    BudgetExceeded,
    CloisterError,
    InvalidParameter,
    MissingBound,
    UnknownColumn,
    UnknownTable,
    UnsupportedQuery,
)
from cloister.privacy import Guarantee, zero_of
from cloister.query.parse import parse
from cloister.query.session import laid_out
from cloister.session import Measurer, Release
from cloister.session.questions.spend import Spending, less
from cloister.tables import PrivateTable, PublicTable

Result = TypeVar("Result")
_MOST_QUESTIONS, _MOST_TEXT = 1000, 1_000_000
"""How many questions a guest asks, and of how many characters together: each is kept with its result."""
_GUESTS_OWN = (BudgetExceeded, InvalidParameter, MissingBound, UnknownColumn, UnknownTable, UnsupportedQuery)
"""Refusals of what a guest asked. Others, as of an engine or a job, are for whoever runs it."""


class Sharing(Protocol):
    """What gives a share of its budget: a session, or the attempt of a job."""

    def declared(self, table: str) -> PrivateTable | PublicTable:
        """The declaration of a table."""
        ...

    def population_of(self, table: str) -> tuple[str, Guarantee]:
        """Its population, and the budget of that."""
        ...

    def within_share(self, spend: Spending) -> AbstractContextManager[Measurer]:
        """What spends at most so much."""
        ...


def ask(sql: str, spend: Any) -> dict[str, Any]:
    """What a guest of way "ask" asks the door: columns, margins and cost of the answer; a refusal is a `ValueError`.

    It is there inside the sandbox alone; here it stands for whoever writes a guest, and for their editor.
    """
    raise InvalidParameter("ask is invalid", why="nobody answers outside of the sandbox", instead="guest.run(session, …)")


class Answers:
    """What a guest may ask of one table, within a share: `ask(sql, spend)` gives columns and margins, or says why not."""

    def __init__(self, share: Measurer, table: str, purpose: str, *, tick: float = 0.0) -> None:
        """With a `tick`, in seconds, answers come at multiples of it: how long an engine worked is rounded up."""
        self._share, self._table, self._purpose, self._tick = share, table, purpose, tick
        self.broken: CloisterError | None = None
        """The first refusal that is not the guest's doing: its caller looks at it when the guest has ended."""
        self.asked: list[str] = []
        self.beyond = False
        """Whether it asked for tables or columns that are not there for it."""

    def __call__(self, question: str) -> str:
        """One question as the sandbox hands it over, and its answer as text."""
        began = time.monotonic()
        answer = self._replied(question)
        if self._tick:
            used = time.monotonic() - began
            time.sleep(math.ceil(used / self._tick) * self._tick - used)
        return answer

    def _replied(self, question: str) -> str:
        try:
            told = json.loads(question)
            sql, spend = str(told["sql"]), str(told["spend"])
        except (ValueError, KeyError, TypeError):
            return json.dumps({"refused": 'a question is text with a spend: ask("SELECT …", "0.1")'})
        try:
            if len(self.asked) >= _MOST_QUESTIONS:
                raise InvalidParameter("The question is invalid", why=f"a guest asks at most {_MOST_QUESTIONS}", instead="fewer")
            if sum(map(len, self.asked)) + len(sql) > _MOST_TEXT:
                why = f"the questions of a guest have at most {_MOST_TEXT:,} characters together"
                raise InvalidParameter("The question is invalid", why=why, instead="shorter questions")
            self.asked.append(sql)
            found = self._answer(sql, spend)
            told = {"columns": found.to_pydict(), "margins": found.margin().to_pydict(), "cost": str(found.cost)}
            return json.dumps(told, default=str)
        except CloisterError as refused:
            self.beyond = self.beyond or isinstance(refused, UnknownColumn | UnknownTable)
            if not isinstance(refused, _GUESTS_OWN):
                self.broken = self.broken or refused
            return json.dumps({"refused": str(refused)})

    def _answer(self, sql: str, spend: str) -> Release:
        parsed = parse(sql, {self._table: self._share.declared(self._table)})
        if parsed.above is not None:
            raise InvalidParameter(
                "The question is invalid",
                why="a guest works out by itself what follows from answers",
                instead="the inner question",
            )
        if len(parsed.questions) == 1:
            return laid_out([self._share.measure(parsed.questions[0], spend, purpose=self._purpose)], parsed)
        return laid_out(self._share.measure_all(list(parsed.questions), spend, purpose=self._purpose), parsed)


def asking(
    session: Sharing,
    table: str,
    spend: Spending,
    purpose: str,
    work: Callable[[Answers, dict[str, Any]], Result],
    *,
    tick: float = 0.0,
) -> tuple[Result, Guarantee]:
    """Does the work with a share of the session's budget; also what it spent of the table's population."""
    population, _ = session.population_of(table)
    declared = session.declared(table)
    with session.within_share(spend) as share:
        before = share.remaining_by[population]
        about = {"table": table, "columns": {name: each.describe() for name, each in (declared.columns or {}).items()}}
        answers = Answers(share, table, purpose, tick=tick)
        found = work(answers, {**about, "spend": str(before)})
        if answers.broken is not None:
            raise answers.broken
        return found, less(before, share.remaining_by[population]) or zero_of(before)
