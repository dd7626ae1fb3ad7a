"""What is asked of a ledger: a charge, with everything computed that needs no transaction."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from cloister.ledger.measure import Price, price
from cloister.ledger.records import Bound
from cloister.privacy.guarantee import Guarantee

Bounds: TypeAlias = Mapping[str, Sequence[Bound]]
"""By population, what rules outside of the ledger allow to be charged in all."""


class Request(NamedTuple):
    """A reservation that is asked for, with everything computed that needs no transaction."""

    costs: Mapping[str, Guarantee]
    prices: Mapping[str, Price]
    who: str
    what: str
    purpose: str
    rerun: bool
    at_most: Bounds
    share_at_most: Bounds
    drawn: Mapping[str, Guarantee]
    """What the person's shares are charged in all for the plan's releases that others bought, in the same step."""
    seen: Container[int] | None
    """The plan's releases that are known: another one of the same person at the same cost is not charged again."""

    @classmethod
    def of(
        cls,
        costs: Mapping[str, Guarantee],
        who: str,
        what: str,
        purpose: str,
        *,
        rerun: bool,
        at_most: Bounds | None = None,
        share_at_most: Bounds | None = None,
        drawn: Mapping[str, Guarantee] | None = None,
        seen: Container[int] | None = None,
    ) -> Request:
        """The request, in the order in which it will be written."""
        ordered = dict(sorted(costs.items())) if len(costs) > 1 else dict(costs)
        prices = {name: price(cost) for name, cost in ordered.items()}
        return cls(ordered, prices, who, what, purpose, rerun, at_most or {}, share_at_most or {}, drawn or {}, seen)

    @property
    def encoded(self) -> dict[str, list[str]]:
        """The costs as they stand in a line."""
        return {name: found.texts for name, found in self.prices.items()}
