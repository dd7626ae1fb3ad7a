"""What work costs a population, and what is left of its budget and of one's own share of it, before and after: for the page that
asks whether to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.hub.policy import Decision, Object
from cloister.hub.services.budgets import sees_budget
from cloister.hub.work.bounds import own_share
from cloister.privacy import Guarantee, zero_of
from cloister.session.questions.spend import amount_of, less

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub


@dataclass(frozen=True, kw_only=True)
class Left:
    """What work costs one population, and what is left of a budget or of a share of it, before and after."""

    population: str
    of_share: bool
    whole: Guarantee
    before: Guarantee
    cost: Guarantee
    frozen: bool = False
    """Whether the ledger charges nothing: then nothing is left, whatever the sums would say, and what costs nothing is given."""

    @classmethod
    def of_budget(cls, hub: Hub, population: str, cost: Guarantee) -> Left:
        """Of all that a population may spend."""
        whole, frozen = hub.ledger.budget(population), hub.ledger.frozen is not None
        rest = less(whole, hub.ledger.spent(population)) if frozen else hub.ledger.remaining(population)
        before = zero_of(whole) if rest is None else rest
        return cls(population=population, of_share=False, whole=whole, before=before, cost=cost, frozen=frozen)

    @property
    def enough(self) -> bool:
        """Whether it may be charged.

        >>> from cloister.privacy import PureDP
        >>> left = Left(population="people", of_share=False, whole=PureDP(1), before=PureDP("0.2"), cost=PureDP("0.3"))
        >>> left.enough, left.after
        (False, None)
        """
        return amount_of(self.cost) == 0 if self.frozen else bool(self.cost <= self.before)

    @property
    def after(self) -> Guarantee | None:
        """What is left then; None for nothing."""
        return less(self.before, self.cost) if self.enough and not self.frozen else None

    @property
    def spent(self) -> Guarantee | None:
        """What was spent before."""
        return less(self.whole, self.before)


def left_of(
    hub: Hub,
    db: Db,
    caller: Caller,
    who: str,
    objects: Sequence[Object],
    decisions: Mapping[str, Decision],
    costs: Mapping[str, Guarantee],
) -> tuple[Left, ...]:
    """By population: of one's own share to everybody; of a budget to those who may see it."""
    found, frozen = [], hub.ledger.frozen is not None
    for population, cost in costs.items():
        if sees_budget(hub, db, caller, population):
            found.append(Left.of_budget(hub, population, cost))
        share = own_share(hub, population, who, objects, decisions)
        if share is not None:
            found.append(Left(population=population, of_share=True, whole=share[0], before=share[1], cost=cost, frozen=frozen))
    return tuple(found)
