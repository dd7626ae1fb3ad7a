"""A synthetic table as work of the frame (`hub/work/orders.py`): what its order touches and costs, how it is made, what is kept.

The door measures the counts and charges them; the model that is fitted to them, and all rows that are drawn from it later, are
post-processing of that release. What was measured before is not charged again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, cast

from cloister.errors import CloisterError
from cloister.hub.services.synthesising.order import ORDER, Synthesis
from cloister.hub.services.synthesising.tables import SYNTHETIC
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Terms, Words
from cloister.hub.work.one_table import ReadyTable, ready_table
from cloister.hub.work.orders import OrderedWork, Product, job_of
from cloister.privacy import Guarantee, exact_positive, text_of
from cloister.session import Delegate, Plan, Question, Spending
from cloister.session.questions.spend import spend_of
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.work.attempts import AttemptSession
    from cloister.query import Session

    _Margins = tuple[float | None, float | None]
    """Of a count of one column, and of two."""

ACTION = "synthesise.run"
_TIMES = (Fraction(1, 4), Fraction(1), Fraction(4))


class _Synthesising(OrderedWork[Synthesis, ReadyTable[Synthesis]]):
    """Orders of synthetic tables."""

    job, title, action, release, stored = "synthesising.make", N_("Synthetic table"), ACTION, SYNTHETIC, ORDER
    stages = {"preparing the tables": 0.1, "reserving the cost": 0.2, N_("fitting the model"): 0.3, "keeping the table": 0.9}  # noqa: RUF012
    words = Words(
        name="The synthetic table",
        invalid=N_("The synthetic table is invalid"),
        denied=N_("The synthetic table was denied"),
        withheld=N_("The synthetic table was not released"),
    )

    def about(self, order: Synthesis) -> dict[str, Any]:
        return {"method": order.method, "table": order.table[:200]}

    def ready(self, *given: Any, **how: Any) -> ReadyTable[Synthesis]:
        order: Synthesis = given[3]

        def charge(session: Session, _: PrivateTable, budget: Guarantee) -> Guarantee:
            try:
                return _first(session, order)[0]
            except CloisterError:  # what is wrong with the columns is told where it is rehearsed
                return spend_of(order.spending, budget).whole()

        terms = Terms(action=ACTION, purpose=order.purpose, project=order.project, method=order.method)
        how |= {"table": order.table, "columns": order.columns, "terms": terms, "words": self.words}
        return ready_table(*given, **how, spend=order.spending, charge=charge)

    def rehearse(self, found: ReadyTable[Synthesis]) -> None:
        """Refuse columns that cannot be fitted, and rules that cannot be obeyed; that follows from their declarations."""
        with found.held.pinned():
            _first(found.session, found.order)

    def run(self, hub: Hub, found: ReadyTable[Synthesis], session: Callable[[], AttemptSession]) -> Product:
        from cloister.synth import fit

        order = found.order
        model = fit(session(), order.table, spend=order.spending, purpose=order.purpose, **_how(order))
        page = model.report().to_html(title=order.title)
        return Product(
            body=json.dumps({"model": model.to_json(), "report": page}, ensure_ascii=False).encode(),
            cost={model.population: model.cost},
            details={
                "table": order.table,
                "columns": list(order.columns),
                "method": model.method,
                "rows": model.rows,
                "rows_error": model.rows_error,
                "rules": list(model.rules),
                "version": str(getattr(found.table, "version", "")),
            },
        )

    def written(self, found: ReadyTable[Synthesis]) -> dict[str, Any]:
        return {"method": found.order.method}


SYNTHESISING = _Synthesising()
MAKE = job_of(SYNTHESISING)


def expected(_: Hub, found: ReadyTable[Synthesis]) -> list[dict[str, Any]]:
    """Margins of error to expect at 95 %, of the noise alone, of a count of one column and of two (none where no two are measured
    together): for the spend of an order, for a quarter and for four times as much. They follow from declarations."""
    amount, table = exact_positive(found.order.spend, "spend"), []
    SYNTHESISING.rehearse(found)
    with found.held.pinned():
        for times in _TIMES:
            order = replace(found.order, spend=text_of(amount * times))
            try:
                one, two = _first(found.session, order)[1]
            except CloisterError:  # such a spend is beyond the budget
                continue
            table.append({"spend": order.spend, "one": one, "two": two})
    return table


def _margin(plan: Plan, number: int) -> float | None:
    """Of a count of so many columns, the widest."""
    parts = [part for part in plan.parts if len(part.shape.question.by) == number]
    widths = [float(replace(plan, parts=(part,)).margin()["count"][0]) for part in parts]
    return max(widths, default=None)


def _how(order: Synthesis) -> dict[str, Any]:
    return {"method": order.method, "columns": list(order.columns), "rules": order.conditions}


def _first(session: Session, order: Synthesis) -> tuple[Guarantee, _Margins]:
    """What a fit would be charged, and the margins of what it measures first: nothing is spent and no row is read."""
    from cloister.synth import fit

    try:
        fit(_Explaining(session), order.table, spend=order.spending, **_how(order))
    except _Reached as reached:
        return reached.found
    raise AssertionError("a fit that measures nothing")


class _Explaining(Delegate):
    """A session that explains the first questions of a fit, or its run over rows, and ends the fit there."""

    def measure_all(
        self, questions: Sequence[Question], spend: Spending, *, purpose: str = "", shares: Sequence[Fraction] | None = None
    ) -> NoReturn:
        """The questions."""
        plan = self.explain(questions, spend, shares=shares)
        raise _Reached((plan.cost, (_margin(plan, 1), _margin(plan, 2))))

    def run(self, method: Any, table: str, spend: Spending, *, purpose: str = "") -> NoReturn:
        """A method that chooses what it measures."""
        cost = cast("Session", self._measurer).explain_run(method, table, spend).cost
        raise _Reached((cost, method.margins(cost, self.declared(table))))


class _Reached(Exception):
    """A fit has come to what it measures first."""

    def __init__(self, found: tuple[Guarantee, _Margins]) -> None:
        super().__init__()
        self.found = found
