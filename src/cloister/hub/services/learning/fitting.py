"""A model as work of the frame (`hub/work/orders.py`): what its order is, how it is learnt, what is kept of it.

The charge is the ledger's, as a question's is. A method of sums asks the door for them, and what was bought before is answered
again at no cost; any other reads rows through `Session.run`, and is charged each time it is ordered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.services.learning.algorithms import ACTION, settled
from cloister.hub.services.learning.expected import lost
from cloister.hub.services.learning.judging import as_kept, judged
from cloister.hub.services.learning.membership import attacked, lines_of
from cloister.hub.services.learning.models import MODEL
from cloister.hub.services.learning.order import ORDER, Training, declared, model_of
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Terms, Words
from cloister.hub.work.one_table import ReadyTable, ready_table
from cloister.hub.work.orders import OrderedWork, Product, job_of
from cloister.privacy import Guarantee, zero_of
from cloister.session.questions.spend import less, spend_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.work.attempts import AttemptSession
    from cloister.learn.assessment.scores import Score
    from cloister.query import Session
    from cloister.tables import PrivateTable

MODEL_WORDS = Words(
    name="The model",
    invalid=N_("The model is invalid"),
    denied=N_("The model was denied"),
    withheld=N_("The model was not released"),
)
_STAGES = {"preparing the tables": 0.1, "reserving the cost": 0.2, N_("learning"): 0.3, N_("keeping the model"): 0.9}
_FEW = 60
_OF_PAIRS = frozenset({"LinearRegression", "Ridge", "LinearDiscriminantAnalysis", "PCA"})
_MOST_PAIRED = 64
"""Features of a method that asks about each pair of them: the question about more takes longer to read than a page may wait."""


class _Fitting(OrderedWork[Training, ReadyTable[Training]]):
    """Orders of models."""

    job, title, action, words, release, stages, stored = "learning.fit", "Model", ACTION, MODEL_WORDS, MODEL, _STAGES, ORDER
    extra = "learn"

    def about(self, order: Training) -> dict[str, Any]:
        return {"method": order.method, "table": order.table[:200]}

    def ready(self, hub: Hub, db: Db, caller: Caller, order: Training, **how: Any) -> ReadyTable[Training]:
        """With the order as its algorithm leaves it; it costs what is still to be charged."""
        order = settled(hub, db, caller, order)
        terms = Terms(action=ACTION, purpose=order.purpose, project=order.project, algorithm=order.algorithm, method=order.method)
        return ready_table(
            hub,
            db,
            caller,
            order,
            table=order.table,
            columns=order.columns,
            terms=terms,
            words=MODEL_WORDS,
            spend=order.spending,
            charge=lambda session, table, budget: still_to_pay(session, order, table, budget),
            **how,
        )

    def rehearse(self, found: ReadyTable[Training]) -> None:
        """Learn from a few made-up rows first: a wrong parameter is found before anything is charged."""
        model, encoder = declared(found.order, found.table)
        from cloister.learn.assessment.made_up import fit_within, made_up

        try:
            X, y = made_up(model, encoder, _FEW)
            fit_within(model, X, y, found.cost, rows=found.table.max_rows or 1)
        except CloisterError:
            raise
        except (TypeError, ValueError, ArithmeticError, LookupError):
            raise InvalidParameter(
                "The model is invalid",
                why="the method can't work with these parameters",
                instead=f"{found.order.method}() as it is",
            ) from None

    def run(self, hub: Hub, found: ReadyTable[Training], session: Callable[[], AttemptSession]) -> Product:
        """The model, learnt from the rows that were decided on, however many questions it asks of them; with what made-up rows
        say of such a one: what an attack found, and what privacy is expected to cost."""
        order, table = found.order, found.table
        attack = attacked(hub, order, table, found.cost)  # before the charge: after it, nothing more can fail
        loss = lost(hub, order, table, found.cost)
        model, target = model_of(order), order.target or None
        how: dict[str, Any] = {"features": order.features, "target": target, "spend": order.spending, "purpose": order.purpose}
        score: Score | None = None
        if order.held_out:
            model, score = judged(model, session(), order.table, test=order.held_out, **how)
        else:
            model.fit_table(session(), order.table, **how)
        membership = None if model.guarantee_ is None else lines_of(model.guarantee_, attack)
        about: dict[str, Any] = {
            "data": order.table,
            "date": f"{hub.now():%Y-%m-%d}",
            "evaluation": () if score is None else score,
        }
        card = model.card(**about, expected=loss, membership=membership)
        features = [[name, table.column(name).describe()] for name in order.features]
        version = str(getattr(table, "version", ""))
        return Product(
            body=model.to_json().encode(),
            cost=dict.fromkeys(found.populations, model.guarantee_),
            details={
                "method": order.method,
                "table": order.table,
                "columns": {"features": features, "target": order.target, "version": version},
                "card": card.to_json(),
                **({} if score is None else {"judged": as_kept(score, order.held_out)}),
            },
        )

    def written(self, found: ReadyTable[Training]) -> dict[str, Any]:
        return {"method": found.order.method}


def still_to_pay(session: Session, order: Training, table: PrivateTable, budget: Guarantee) -> Guarantee:
    """The most that an order would be charged now, of a population of that budget: of sums that were bought before, what is still
    missing of the first question; of rows, all of it. All that it names, where nothing less can be said.

    This is what the policy is asked with, as it is for a plain question, and opens no way past a ceiling or a share: the ledger
    holds the charge itself against them, when it is made.
    """
    cost = spend_of(order.spending, budget).whole()
    if order.held_out:
        return cost
    try:
        model, encoder = declared(order, table)
        if order.method in _OF_PAIRS and len(encoder.names) > _MOST_PAIRED:
            return cost
        from cloister.learn.frame.first_question import first_question

        how: dict[str, Any] = {"encoder": encoder, "target": order.target or None, "purpose": order.purpose}
        first = first_question(model, session, order.table, table, spend=order.spending, **how)
    except (CloisterError, TypeError, ValueError, ArithmeticError, LookupError):
        return cost  # what is wrong with the order is told where it is tried, in the words for that
    if first is None:
        return cost
    spend, plan = first
    had = less(spend_of(spend, budget).whole(), plan.cost)
    return cost if had is None else less(cost, had) or zero_of(cost)


FITTING = _Fitting()
FIT = job_of(FITTING)
