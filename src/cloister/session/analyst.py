"""Somebody who asks: who they are, what they see of which tables, within which bounds, and their account in the ledger.

The rule. Whoever asks for a spend of s gets what is stored where that cost s or more, as sharp as it is, and pays for s: of what
others paid, so much is charged to the share that it makes s together with what this person was charged before for the same
question; never more than others paid. Where less than s was spent, the rest is bought in the same step: both are charged, or
neither. So nobody's share loses more than what that person named, however much others paid.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field

from cloister.ledger import Bound, Ledger, Reservation
from cloister.privacy import Guarantee
from cloister.session.execution.history import History
from cloister.session.execution.kinds import of_one_kind
from cloister.session.planning.shape import Shape, digest_of, populations_of
from cloister.session.questions.spend import Spend, Spending, amount_of, least, less, spend_of
from cloister.session.state.table_registry import TableRegistry
from cloister.session.state.view import View


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """By population, the most that may be charged of it in all (`ceilings`), and to this person (`shares`), by rules that are
    kept outside of the ledger.
    """

    ceilings: Mapping[str, Sequence[Bound]] = field(default_factory=dict)
    shares: Mapping[str, Sequence[Bound]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Analyst:
    """Never changes: within other bounds it is another one.

    >>> from cloister.session.examples import small_door
    >>> with small_door() as door:
    ...     Analyst(who="ana", registry=door.registry, ledger=door.ledger, progress=print).bounds
    Bounds(ceilings={}, shares={})
    """

    who: str
    registry: TableRegistry
    ledger: Ledger
    progress: Callable[[str], None]
    view: View = field(default_factory=View)
    time_limit: float | None = None
    bounds: Bounds = field(default_factory=Bounds)
    about_to_charge: Callable[[str, Mapping[str, Guarantee]], None] | None = None

    def spends(self, shapes: Sequence[Shape], spend: Spending) -> dict[str, Spend]:
        """What a spend means under the budget of each population that is asked about."""
        return {each: spend_of(spend, self.ledger.budget(each)) for each in populations_of(shapes)}

    def history(self, shapes: Sequence[Shape]) -> History:
        """What was bought before of the same questions and can be combined, whoever bought it."""
        combinable = all(shape.grid.declared for shape in shapes)
        history = History.of(self.ledger, digest_of(shapes), populations_of(shapes), combinable=combinable)
        return of_one_kind(shapes, history) if len(history.stored) > 1 else history

    def owed(self, history: History, spends: Mapping[str, Spend]) -> dict[str, Guarantee]:
        """What this person's share is charged in all for the use of what others paid, by the rule above."""
        if not history.purchases:
            return {}
        own, found = history.paid_by(self.who), {}
        for population, cost in history.paid_by_others(self.who).items():
            named = spends[population].whole()
            rest = less(named, own[population]) if population in own else named
            if rest is not None:
                found[population] = least(cost, rest)
        return found

    def still_owed(self, history: History, spends: Mapping[str, Spend], digest: str) -> dict[str, Guarantee]:
        """That, without what the share was charged for it before."""
        owed, drawn = self.owed(history, spends).items(), self.ledger.drawn
        return {each: rest for each, cost in owed if (rest := less(cost, drawn(each, self.who, digest))) is not None}

    def owed_for_all(self, history: History, digest: str) -> dict[str, Guarantee]:
        """The same where no spend was named: all that others paid, but where this person was charged before for what is
        stored. They were given it, and get it again for nothing."""
        own, drawn = history.paid_by(self.who), self.ledger.drawn
        owed = history.paid_by_others(self.who).items()
        return {each: cost for each, cost in owed if each not in own and not amount_of(drawn(each, self.who, digest))}

    def reserve(
        self,
        costs: Mapping[str, Guarantee],
        digest: str,
        purpose: str,
        drawn: Mapping[str, Guarantee] | None = None,
        seen: Container[int] | None = None,
    ) -> Reservation:
        """Charge, before the engine reads a row; with it goes what the share is charged for the use of what others paid. What
        this person bought for the same cost beside the releases `seen` is not bought twice."""
        if self.about_to_charge is not None:
            self.about_to_charge(digest, costs)
        ceilings, shares = self.bounds.ceilings, self.bounds.shares
        return self.ledger.reserve(
            costs, who=self.who, what=digest, purpose=purpose, at_most=ceilings, share_at_most=shares, drawn=drawn, seen=seen
        )

    def earlier(self, costs: Mapping[str, Guarantee], digest: str) -> str:
        """The charge of an attempt that was stopped and that `reserve` would take over: parties who keep ledgers of their own are
        asked under it, since they were charged, too. Empty where there is none."""
        return str(self.ledger.waiting(costs, who=self.who, what=digest) or "")

    def open_steps(self, population: str, cost: Guarantee, what: str, words: str, state: bytes) -> int:
        """Charge for all steps of a series, before the first row is read; the number of the opening."""
        if self.about_to_charge is not None:
            self.about_to_charge(what, {population: cost})
        return self.ledger.open_steps(
            population,
            cost,
            who=self.who,
            what=what,
            words=words,
            state=state,
            marked=self.registry.random.marked,
            at_most=self.bounds.ceilings,
            share_at_most=self.bounds.shares,
        )

    def charge_share(self, owed: Mapping[str, Guarantee], digest: str, purpose: str) -> None:
        """Charge the share so much in all: what it was charged for this question before is taken off in the ledger's own step."""
        if owed:
            shares = self.bounds.shares
            self.ledger.charge_allotment(owed, who=self.who, what=digest, purpose=purpose, share_at_most=shares, in_all=True)
