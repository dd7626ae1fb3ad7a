"""Directions under differential privacy as work of the frame: one charge for the scatters, and the rest is post-processing.

Guarantee: that of the charge (`cloister.compress.Scatter.measure`). Rows that are projected later are rows, and have none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cloister.hub.services.projecting.kinds import DIRECTIONS
from cloister.hub.services.projecting.orders import ACTION, Fit, made
from cloister.hub.services.projecting.orders import FIT as STORED
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Terms, Words
from cloister.hub.work.one_table import ReadyTable, ready_table
from cloister.hub.work.orders import OrderedWork, Product, job_of

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.work.attempts import AttemptSession
    from cloister.privacy import Guarantee
    from cloister.query import Session
    from cloister.session import Plan
    from cloister.tables import PrivateTable


class _Fitting(OrderedWork[Fit, ReadyTable[Fit]]):
    """Orders of directions."""

    job, title, action, release, stored = "projecting.fit", N_("Projection"), ACTION, DIRECTIONS, STORED
    extra = "learn"
    stages = {  # noqa: RUF012
        "preparing the tables": 0.1,
        "reserving the cost": 0.2,
        N_("fitting the directions"): 0.3,
        N_("keeping the projection"): 0.9,
    }
    words = Words(
        name="The projection",
        invalid=N_("The projection is invalid"),
        denied=N_("The projection was denied"),
        withheld=N_("The projection was not released"),
    )

    def about(self, order: Fit) -> dict[str, Any]:
        return {"table": order.table[:200], "method": order.method}

    def ready(self, *given: Any, **how: Any) -> ReadyTable[Fit]:
        order: Fit = given[3]

        def charge(session: Session, table: PrivateTable, budget: Guarantee) -> Guarantee:
            from cloister.compress.from_tables import check_labels
            from cloister.compress.scatter import bounds_of

            bounds_of(table, order.names)
            check_labels(table, order.names, [*filter(None, (order.utility, order.secret))])
            return _plan(session, order).cost

        names = (*order.names, *filter(None, (order.utility, order.secret)))
        terms = Terms(action=ACTION, purpose=order.purpose, project=order.project, method=order.method)
        how |= {"table": order.table, "columns": names, "terms": terms, "words": self.words}
        return ready_table(*given, **how, spend=order.spend, charge=charge)

    def run(self, hub: Hub, found: ReadyTable[Fit], session: Callable[[], AttemptSession]) -> Product:
        from cloister.compress import Scatter
        from cloister.compress.from_tables import columns_told, projection_told

        order = found.order
        labels = {"utility": order.utility or None, "private": order.secret or None}
        projection = made(order.method).set_params(n_components=int(order.dimensions))
        scatter = Scatter.measure(session(), order.table, spend=order.spend, columns=order.names, purpose=order.purpose, **labels)
        fitted = projection.fit_scatter(scatter)
        told = {"columns": columns_told(found.table, order.names), **projection_told(order.method, fitted)}
        details = {"table": order.table, "method": order.method, "columns": list(order.names)}
        assert scatter.cost is not None
        cost = dict.fromkeys(found.populations, scatter.cost)
        return Product(body=json.dumps(told, ensure_ascii=False).encode(), cost=cost, details=details)

    def written(self, found: ReadyTable[Fit]) -> dict[str, Any]:
        return {"method": found.order.method}


def _plan(session: Session, order: Fit) -> Plan:
    from cloister.compress.scatter import scatter_questions

    questions, shares = scatter_questions(order.table, order.names, order.utility or None, order.secret or None)
    return session.explain(questions, order.spend, shares=shares)


FITTING = _Fitting()
FIT = job_of(FITTING)
