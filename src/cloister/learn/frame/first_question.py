"""What a method of sums would ask the door first, with its plan: nothing is spent and no row is read.

Whatever it would ask after that one follows from the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from cloister.noise import Allowance
from cloister.session import Delegate
from cloister.session.planning.abilities import check_rows

if TYPE_CHECKING:
    from cloister.learn.frame.base import PrivateModel
    from cloister.learn.frame.encoding import Encoder
    from cloister.privacy import Guarantee
    from cloister.session import Measurer, Plan, Question, Spending
    from cloister.tables import PrivateTable


def first_question(
    model: PrivateModel,
    session: Measurer,
    name: str,
    table: PrivateTable,
    *,
    encoder: Encoder,
    target: str | None,
    spend: Spending,
    purpose: str = "",
) -> tuple[Spending, Plan] | None:
    """What of the spend goes to it, and its plan; None of a method that reads rows, or asks nothing. `name`: of the table."""
    if not model._from_engine(table, encoder):
        return None
    try:
        model._learn_table(_Explaining(session), name, encoder, target, spend, purpose)
    except _Reached as reached:
        return reached.spend, reached.plan
    except _Rows:
        pass
    return None


def check_readable(model: PrivateModel, name: str, table: PrivateTable, encoder: Encoder, spend: Guarantee) -> None:
    """Refuse a method of rows where the table's engine hands out none, and no sums over them that do under this promise."""
    if table.abilities.rows or model._from_engine(table, encoder):
        return
    if not (table.abilities.row_sums and model._takes_sums()):
        check_rows(name, table)
    Allowance(spend, currency="rho")


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
