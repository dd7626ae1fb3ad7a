"""What a model would be charged now: of sums that were bought before, what is still missing; of rows, all of it.

A method of sums is led up to its first question, which is explained and not asked: nothing is spent and no row is read. Whatever
it would ask after that one follows from the answer, and counts in full. This is what the policy is asked with, as it is for a
plain question, and opens no way past a ceiling or a share: the ledger holds the charge itself against them, when it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cloister.errors import CloisterError
from cloister.hub.services.learning.order import Order, model_of
from cloister.privacy import Guarantee, zero_of
from cloister.session import Delegate
from cloister.session.questions.spend import less, spend_of
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from cloister.query import Session
    from cloister.session import Plan, Question, Spending

__all__ = ["still_to_pay"]

_OF_PAIRS = frozenset({"LinearRegression", "Ridge", "LinearDiscriminantAnalysis", "PCA"})
_MOST_PAIRED = 64
"""Features of a method that asks about each pair of them: the question about more takes longer to read than a page may wait."""


def still_to_pay(session: Session, order: Order, table: PrivateTable, budget: Guarantee) -> Guarantee:
    """The most that an order would be charged now, of a population of that budget: at most what it names, and all of that where
    nothing less can be said."""
    cost = spend_of(order.spending, budget).whole()
    try:
        first = _first_question(session, order, table)
    except (CloisterError, TypeError, ValueError, ArithmeticError, LookupError):
        return cost  # what is wrong with the order is told where it is tried, in the words for that
    if first is None:
        return cost
    had = less(spend_of(first.spend, budget).whole(), first.plan.cost)
    return cost if had is None else less(cost, had) or zero_of(cost)


def _first_question(session: Session, order: Order, table: PrivateTable) -> _Reached | None:
    """What a method of sums asks first, with its plan; None of one that reads rows, asks nothing, or asks too long a question."""
    model, target = model_of(order), order.target or None
    from cloister.learn.frame.encoding import Encoder
    from cloister.learn.frame.from_tables import check_target, declare

    check_target(model, list(order.features), target)
    encoder = Encoder.of(table.columns, list(order.features))
    if order.method in _OF_PAIRS and len(encoder.names) > _MOST_PAIRED:
        return None
    declare(model, encoder, table, target)
    if not model._from_engine(table, encoder):
        return None
    try:
        model._learn_table(_Explaining(session), order.table, encoder, target, order.spending, order.purpose)
    except _Reached as reached:
        return reached
    except _Rows:
        pass
    return None


class _Explaining(Delegate):
    """A session that explains the first question of a method, and ends the method there."""

    def measure(self, question: Question, spend: Spending, **how: Any) -> NoReturn:
        """The one question."""
        raise _Reached(spend, self.explain(question, spend))

    def measure_all(self, questions: Sequence[Question], spend: Spending, **how: Any) -> NoReturn:
        """Several under one charge."""
        raise _Reached(spend, self.explain(questions, spend))

    def run(self, *how: Any, **more: Any) -> NoReturn:
        """What reads rows is charged each time."""
        raise _Rows


class _Reached(Exception):
    """A method has come to its first question."""

    def __init__(self, spend: Spending, plan: Plan) -> None:
        super().__init__()
        self.spend, self.plan = spend, plan


class _Rows(Exception):
    """A method would read rows."""
