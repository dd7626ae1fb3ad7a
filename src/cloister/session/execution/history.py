"""What was bought before: stored releases of the same questions, and what is left to buy of a spend.

The same question again is served from the ledger. Readings over declared keys are combined by inverse variance, so a larger
spend buys the difference. With undeclared keys two releases may show different groups and can't be combined: the best one is
served, or a new one bought. An answer from which a part of the rows is missing, since a site dropped out, stands alone: it is
combined with no other, and not served again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import compress
from operator import attrgetter

from cloister.ledger import Ledger
from cloister.privacy import Guarantee
from cloister.session.questions.spend import Spend, amount_of
from cloister.session.releases.store import Stored, from_bytes

_NUMBER = attrgetter("id")


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """A charge of the ledger that an answer stands on.

    >>> from cloister.privacy import PureDP
    >>> Purchase(id=3, who="ada", when=0.0, costs={"people": PureDP("0.1")}).costs["people"]
    PureDP(epsilon='0.1')
    """

    id: int
    who: str
    when: float
    costs: Mapping[str, Guarantee]


@dataclass(frozen=True)
class History:
    """Purchases of one digest with what they found, oldest first.

    >>> History().had("people"), History().missing({})
    (Fraction(0, 1), None)
    """

    purchases: tuple[Purchase, ...] = ()
    stored: tuple[Stored, ...] = ()
    combinable: bool = True
    seen: frozenset[int] | None = None
    """All releases that the ledger held when it was asked; None: it was not."""

    @classmethod
    def of(cls, ledger: Ledger, digest: str, populations: Sequence[str], *, combinable: bool) -> History:
        """What the ledger holds of all rows; of releases that can't be combined, the one that cost most."""
        purchases, stored, found = list[Purchase](), list[Stored](), ledger.find(digest, populations)
        for each in found:
            release = from_bytes(each.release)
            if not release.without:
                purchases.append(Purchase(id=each.id, who=each.who, when=each.when.timestamp(), costs=each.costs))
                stored.append(release)
        if not combinable and len(stored) > 1:
            best = max(range(len(stored)), key=lambda place: sum(amount_of(cost) for cost in purchases[place].costs.values()))
            purchases, stored = [purchases[best]], [stored[best]]
        return cls(tuple(purchases), tuple(stored), combinable, frozenset(map(_NUMBER, found)))

    def had(self, population: str) -> Fraction:
        """How much was spent on what can be used."""
        return sum([amount_of(purchase.costs[population]) for purchase in self.purchases], Fraction(0))

    def missing(self, spends: Mapping[str, Spend]) -> dict[str, Spend] | None:
        """What is still to buy in each population; None where all of it was bought."""
        missing = {}
        for population, spend in spends.items():
            rest = spend.amount - self.had(population) if self.purchases else spend.amount
            if rest > 0:
                missing[population] = Spend(spend.measure, rest if self.combinable else spend.amount, spend.delta)
        if not missing:
            return None
        return missing if len(missing) == len(spends) else dict(spends)

    def usable(self, fresh: bool) -> History:
        """What goes into an answer beside a fresh purchase: all of it, or nothing where readings can't be combined."""
        return replace(self, purchases=(), stored=()) if fresh and not self.combinable else self

    def only(self, which: Sequence[bool]) -> History:
        """The history of these purchases."""
        if all(which):
            return self
        return replace(self, purchases=tuple(compress(self.purchases, which)), stored=tuple(compress(self.stored, which)))

    def with_fresh(self, purchase: Purchase, stored: Stored) -> History:
        """The history, one purchase longer; that purchase alone where it is not of all rows."""
        if stored.without:
            return History((purchase,), (stored,), self.combinable)
        return History((*self.purchases, purchase), (*self.stored, stored), self.combinable)

    def paid_by_others(self, who: str) -> dict[str, Guarantee]:
        """What others paid for the releases that are used: their use is charged to this person's share, once."""
        return _summed([purchase.costs for purchase in self.purchases if purchase.who != who])

    def paid_by(self, who: str) -> dict[str, Guarantee]:
        """What somebody paid for the releases that are used."""
        return _summed([purchase.costs for purchase in self.purchases if purchase.who == who])

    def cost(self) -> dict[str, Guarantee]:
        """What all of it cost, by population."""
        return _summed([purchase.costs for purchase in self.purchases])


def _summed(costs: Iterable[Mapping[str, Guarantee]]) -> dict[str, Guarantee]:
    total: dict[str, Guarantee] = {}
    for each in costs:
        for population, cost in each.items():
            total[population] = total[population] + cost if population in total else cost
    return total
