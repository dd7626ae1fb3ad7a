"""The ledger in the words of `dp_accounting`, so that another accountant can have a second opinion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.errors import MissingDependency
from cloister.ledger.reading import charges, populations
from cloister.ledger.records import Charge
from cloister.ledger.store import Store
from cloister.privacy import ZCDP, float_up

if TYPE_CHECKING:
    from dp_accounting import dp_event


def events(store: Store, population: str | None) -> list[dp_event.DpEvent]:
    """One event for each charge that stands, in the order of the chain; parameters are rounded up to floats.

    - Pure ε is a `DiscreteLaplaceDpEvent` of sensitivity 1: its privacy loss is always ε or −ε, which is the loss of randomised
      response, and randomised response dominates every ε-DP mechanism (Kairouz, Oh & Viswanath 2015, Theorem 3.4).
    - (ε, δ) is that, composed with everything revealed with probability δ: the two together dominate every (ε, δ)-DP mechanism
      (their Theorem 3.3). It is written as a Poisson-sampled `NonPrivateDpEvent`, which accountants that can't bound it refuse.
    - ρ is a `ZCDpEvent`, with its δ as above. What is not private is a `NonPrivateDpEvent`: every accountant answers it with
      infinity.
    """
    try:
        from dp_accounting import dp_event  # noqa: F401
    except ImportError:
        raise MissingDependency(
            "Nothing was exported", why="dp-accounting is not installed", instead="pip install dp-accounting"
        ) from None
    names = populations(store) if population is None else [population]
    rows = sorted(
        (charge for name in names for charge in charges(store, name)), key=lambda charge: (charge.id, charge.population)
    )
    return [_event(charge) for charge in rows if charge.state != "voided"]


def _event(charge: Charge) -> dp_event.DpEvent:
    from dp_accounting import dp_event

    if charge.cost is None:
        return dp_event.NonPrivateDpEvent()
    event: dp_event.DpEvent
    if isinstance(charge.cost, ZCDP):
        event = dp_event.ZCDpEvent(float_up(charge.cost.rho))
    else:
        event = dp_event.DiscreteLaplaceDpEvent(float_up(charge.cost.epsilon), 1)
    if not charge.cost.delta:
        return event
    return dp_event.ComposedDpEvent(
        [event, dp_event.PoissonSampledDpEvent(float_up(charge.cost.delta), dp_event.NonPrivateDpEvent())]
    )
