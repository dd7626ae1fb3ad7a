"""A model as work of the frame (`hub/work/orders.py`): what its order is, how it is learnt, what is kept of it.

The charge is the ledger's, as a question's is. A method of sums asks the door for them, and what was bought before is answered
again at no cost; any other reads rows through `Session.run`, and is charged each time it is ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.services.learning.authorised import ACTION, MODEL, AuthorisedFit, ready
from cloister.hub.services.learning.expected import lost
from cloister.hub.services.learning.made_up import made_up
from cloister.hub.services.learning.membership import attacked, lines_of
from cloister.hub.services.learning.models import MODEL as RELEASE
from cloister.hub.services.learning.order import ORDER, Order, model_of
from cloister.hub.work.orders import Product, job_of

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.work.attempts import AttemptSession

__all__ = ["FIT", "FITTING"]

_STAGES = {"preparing the tables": 0.1, "reserving the cost": 0.2, "learning": 0.3, "keeping the model": 0.9}
_FEW = 60


class _Fitting:
    """Orders of models."""

    job, title, action, words, release, stages = "learning.fit", "Model", ACTION, MODEL, RELEASE, _STAGES

    def read(self, told: Mapping[str, Any]) -> Order:
        return ORDER.made({**told, "features": tuple(told["features"])})

    def told(self, order: Order) -> dict[str, Any]:
        return ORDER.told(order) | {"parameters": dict(order.parameters)}

    def about(self, order: Order) -> dict[str, Any]:
        return {"method": order.method, "table": order.table[:200]}

    def ready(self, *given: Any, **how: Any) -> AuthorisedFit:
        return ready(*given, **how)

    def rehearse(self, found: AuthorisedFit) -> None:
        """Learn from a few made-up rows first: a wrong parameter is found before anything is charged."""
        order = found.order
        model, target = model_of(order), order.target or None  # first: it refuses where learning is not installed
        from cloister.learn.frame.encoding import Encoder
        from cloister.learn.frame.from_tables import check_target, declare

        check_target(model, list(order.features), target)
        encoder = Encoder.of(found.table.columns, list(order.features))
        declare(model, encoder, found.table, target)
        allowance = model._allowance(found.cost, rows=found.table.max_rows or 1)
        try:
            X, y = made_up(model, encoder, _FEW)
            model._fitted(model._checked(X, y), allowance)
        except CloisterError:
            raise
        except (TypeError, ValueError, ArithmeticError, LookupError):
            raise InvalidParameter(
                "The model is invalid", why="the method can't work with these parameters", instead=f"{order.method}() as it is"
            ) from None

    def settled(self, found: AuthorisedFit) -> Order:
        return found.order

    def run(self, hub: Hub, found: AuthorisedFit, session: Callable[[], AttemptSession]) -> Product:
        """The model, learnt from the rows that were decided on, however many questions it asks of them; with what made-up rows
        say of such a one: what an attack found, and what privacy is expected to cost."""
        order, table = found.order, found.table
        attack = attacked(hub, order, table, found.cost)  # before the charge: after it, nothing more can fail
        loss = lost(hub, order, table, found.cost)
        model, target = model_of(order), order.target or None
        how: dict[str, Any] = {"features": order.features, "target": target, "spend": order.spending, "purpose": order.purpose}
        model.fit_table(session(), order.table, **how)
        membership = None if model.guarantee_ is None else lines_of(model.guarantee_, attack)
        card = model.card(data=order.table, date=f"{hub.now():%Y-%m-%d}", expected=loss, membership=membership)
        features = [[name, table.column(name).describe()] for name in order.features]
        version = str(getattr(table, "version", ""))
        return Product(
            body=model.to_json().encode(),
            cost={found.which.population: model.guarantee_},
            details={
                "method": order.method,
                "table": order.table,
                "columns": {"features": features, "target": order.target, "version": version},
                "card": card.to_json(),
            },
        )

    def written(self, found: AuthorisedFit) -> dict[str, Any]:
        return {"method": found.order.method}


FITTING = _Fitting()
FIT = job_of(FITTING)
