"""A synthetic table as work of the frame (`hub/work/orders.py`): what its order touches and costs, how it is made, what is kept.

The door measures the counts and charges them; the model that is fitted to them, and all rows that are drawn from it later, are
post-processing of that release. What was measured before is not charged again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.hub import Hub
from cloister.hub.services.synthesising.order import ACTION, ORDER, Synthesis
from cloister.hub.services.synthesising.tables import SYNTHETIC, kept
from cloister.hub.web.languages import N_
from cloister.hub.work.attempts import AttemptSession
from cloister.hub.work.authorise import Words
from cloister.hub.work.one_table import ReadyTable, ready_table
from cloister.hub.work.orders import FREE, OrderedWork, Product, job_of
from cloister.privacy import Guarantee, text_of, zero_of
from cloister.session.questions.spend import spend_of
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from cloister.query import Session
    from cloister.synth import SyntheticModel
    from cloister.synth.explaining import Explained

_TIMES = (Fraction(1, 16), Fraction(1, 4), Fraction(1), Fraction(4))


class _Synthesising(OrderedWork[Synthesis, ReadyTable[Synthesis]]):
    """Orders of synthetic tables."""

    job, title, action, release, stored = "synthesising.make", N_("Synthetic table"), ACTION, SYNTHETIC, ORDER
    audited = ("method",)
    stages = FREE | {N_("fitting the model"): 0.3, "keeping the table": 0.9}
    words = Words(
        name="The synthetic table",
        invalid=N_("The synthetic table is invalid"),
        denied=N_("The synthetic table was denied"),
        withheld=N_("The synthetic table was not released"),
    )

    def ready(self, *given: Any, **how: Any) -> ReadyTable[Synthesis]:
        order: Synthesis = given[3]

        def charge(session: Session, _: PrivateTable, budget: Guarantee) -> Guarantee:
            try:
                return _first(session, order).cost if order.spending else zero_of(budget)
            except CloisterError:  # what is wrong with the columns is told where it is rehearsed
                return spend_of(order.spending, budget).whole()

        how |= {"columns": order.columns, "charge": charge, "method": order.way, "spend": order.spending}
        return ready_table(self, *given, **how)

    def rehearse(self, found: ReadyTable[Synthesis]) -> None:
        """Refuse columns that cannot be fitted, and rules that cannot be obeyed; that follows from their declarations."""
        with found.held.pinned():
            if found.order.spending:
                _first(found.session, found.order)
            else:
                _free(found.session, found.order)

    def run(self, hub: Hub, found: ReadyTable[Synthesis], session: Callable[[], AttemptSession]) -> Product:
        from cloister.synth import fit

        order = found.order
        how = {"purpose": order.purpose, **_how(found.session, order)}
        model = fit(session(), order.table, spend=order.spending, **how) if order.spending else _free(found.session, order)
        body, details = kept(model, order.title)
        details["version"] = str(getattr(found.table, "version", ""))
        return Product(body=body, cost=dict.fromkeys(found.populations, model.cost), details=details)


SYNTHESISING = _Synthesising()
MAKE = job_of(SYNTHESISING)


def expected(_: Hub, found: ReadyTable[Synthesis]) -> list[dict[str, Any]]:
    """Margins of error to expect of counts of one, two and three columns: for the spend of an order, for four times as
    much, and for less, as far as anything can be measured. They follow from declarations."""
    amount, table = found.order.spending, []
    SYNTHESISING.rehearse(found)
    if not amount:  # nothing is measured, and so nothing has a margin
        return []
    with found.held.pinned():
        for times in _TIMES:
            order = replace(found.order, spend=text_of(amount * times))
            try:
                margins = _first(found.session, order).margins
            except CloisterError:  # such a spend is beyond the budget, or too small
                continue
            table.append({"spend": order.spend, **dict(zip(("one", "two", "three"), margins, strict=True))})
    return table


def doubt(found: ReadyTable[Synthesis], errors: Sequence[Mapping[str, Any]]) -> CloisterError | None:
    """That the rows would be noise alone: a margin of error is as large as the table, by its public size."""
    size, amount = found.table.size, text_of(found.order.spending)
    margins = [each[width] for each in errors if each["spend"] == amount for width in ("one", "two", "three") if each[width]]
    if size is None or not margins or max(margins) < size:
        return None
    margin, rows = f"{max(margins):,.0f}", f"{size:,}"
    return InvalidParameter(
        "The order was not confirmed",
        why=f"the expected error, ± {margin} rows, is larger than the table, which has about {rows}",
        instead=N_("fewer columns or a larger spend; or tick the box that confirms it"),
    )


def _how(session: Session, order: Synthesis) -> dict[str, Any]:
    """The arguments of `fit`; queries of the workload as the columns that they read, which a job's own session does not tell."""
    from cloister.synth.workload import about_of

    columns = list(order.columns)
    sets = about_of(session, order.table, columns, order.about)
    about = [[columns[place] for place in kept] for kept in sets] or None
    return {"method": order.way, "columns": order.binned, "rules": order.conditions, "about": about, "earlier": order.answered}


def _free(session: Session, order: Synthesis) -> SyntheticModel:
    """What is published for nothing: rows that follow the declarations and the rules, and tell nothing of the table."""
    from cloister.synth import fit

    model: SyntheticModel = fit(session, order.table, spend=0, **_how(session, order))
    return model


def _first(session: Session, order: Synthesis) -> Explained:
    """What it would be charged, and its margins."""
    from cloister.synth.explaining import explained

    return explained(session, order.table, spend=order.spending, **_how(session, order))
