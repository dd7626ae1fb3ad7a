"""The floor on how small δ has to be: the setting `delta_floor`, one more rule of the institution over every population.

A δ adds up like an ε, so the floor is compared with what all releases of a population come to. Budgets and shares beyond it are
refused when they are written. A budget that is beyond it already stays as it is, and its releases are held to the floor: in the
ledger, through which every charge of every service goes.
"""

from collections.abc import Mapping
from fractions import Fraction

from cloister.errors import AccessDenied
from cloister.hub.decisions.policy.bounds import most_of
from cloister.ledger import Bound, Ledger
from cloister.ledger.request import Bounds
from cloister.privacy import Guarantee, PureDP, exact_probability, text_of

RULE = "delta-floor"
"""The name under which refusals quote it."""


def check_max_delta(max_delta: str, what: str, added: Guarantee | None, before: Guarantee | None = None) -> None:
    """Refuse what would bring δ above the floor; what adds no δ is never refused.

    >>> from cloister.privacy import ApproxDP
    >>> check_max_delta("1e-6", "The budget", ApproxDP(1, "1e-6"))
    >>> check_max_delta("1e-6", "The budget", ApproxDP(1, "1e-3"))
    Traceback (most recent call last):
    cloister.errors.AccessDenied: The budget was refused: its δ would come to 0.001, and δ may be at most 0.000001 here (rule
    delta-floor).
      Instead: δ = 0.000001 or less; the floor is a setting of the hub, above every owner
    """
    if added is None or not added.delta:
        return
    most, total = exact_probability(max_delta, "delta_floor"), added.delta + (Fraction(0) if before is None else before.delta)
    if total > most:
        raise AccessDenied(
            f"{what} was refused",
            why=f"its δ would come to {text_of(total)}, and δ may be at most {text_of(most)} here (rule {RULE})",
            instead=f"δ = {text_of(most)} or less; the floor is a setting of the hub, above every owner",
            rule=RULE,
        )


class MaxDeltaLedger(Ledger):
    """A ledger that takes no charge by which the releases of a population would come to more δ than the floor.

    >>> from cloister.privacy import ApproxDP
    >>> ledger = MaxDeltaLedger()
    >>> ledger.max_delta = "1e-6"
    >>> _ = ledger.open("people", ApproxDP(1, "1e-3"), who="owner")
    >>> ledger.reserve({"people": ApproxDP("0.1", "1e-6")}, who="ada", what="plan-1").attempt
    1
    >>> ledger.reserve({"people": ApproxDP("0.1", "1e-6")}, who="ada", what="plan-2")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    cloister.errors.BudgetExceeded: A charge of ... was refused: δ may be at most 0.000001 for all releases of a population...
    """

    max_delta = "1e-5"

    def _standing(self, costs: Mapping[str, Guarantee]) -> Bounds:
        """The floor, for those populations that are charged a δ."""
        bounds: dict[str, list[Bound]] = {}
        for population, cost in costs.items():
            if cost.delta and not isinstance(budget := self.budget(population), PureDP):
                bounds[population] = [self._bound(budget)]
        return bounds

    def _bound(self, budget: Guarantee) -> Bound:
        most = exact_probability(self.max_delta, "delta_floor")
        why = f"δ may be at most {text_of(most)} for all releases of a population together (rule {RULE})"
        return Bound(most=most_of(budget, None, most), why=why, rule=RULE)
