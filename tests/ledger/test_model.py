"""Whatever sequence of acts: the ledger agrees with a model of ten lines, and verifies."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from cloister.errors import BudgetExceeded, LedgerError
from cloister.ledger import Ledger
from cloister.privacy import PureDP

POPULATIONS = ("people", "places")
PEOPLE = ("ada", "bob")
COSTS = st.sampled_from(["0.1", "1/3", "0.25", "0", "1/7"]).map(Fraction)


class Model(RuleBasedStateMachine):
    """Budgets of 2 each; charges that stand, by reservation."""

    reservations = Bundle("reservations")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.budget = dict.fromkeys(POPULATIONS, Fraction(2))
        for name in POPULATIONS:
            self.ledger.open(name, PureDP(2), who="owner")
        self.standing: dict[int, tuple[str, dict[str, Fraction]]] = {}
        self.state: dict[int, tuple[str, int]] = {}
        self.shares: dict[tuple[str, str], Fraction] = {}
        self.drawn: dict[tuple[str, str], Fraction] = {}
        self.asked: dict[int, tuple[str, str, dict[str, Fraction], bool]] = {}

    def teardown(self) -> None:
        self.ledger.close()

    def spent(self, population: str, who: str | None = None) -> Fraction:
        total = sum(
            (costs.get(population, Fraction(0)) for by, costs in self.standing.values() if who in (None, by)), Fraction(0)
        )
        return total + (self.drawn.get((population, who), Fraction(0)) if who is not None else 0)

    def fits(self, who: str, costs: dict[str, Fraction], *, populations: bool = True) -> bool:
        return all(
            (not populations or self.spent(name) + cost <= self.budget[name])
            and ((name, who) not in self.shares or self.spent(name, who) + cost <= self.shares[name, who])
            for name, cost in costs.items()
        )

    @rule(
        target=reservations,
        who=st.sampled_from(PEOPLE),
        what=st.sampled_from(["plan 1", "plan 2"]),
        costs=st.dictionaries(st.sampled_from(POPULATIONS), COSTS, min_size=1),
        rerun=st.booleans(),
    )
    def reserve(self, who, what, costs, rerun):
        asked = {name: PureDP(cost) for name, cost in costs.items()}
        earlier = self.earlier(who, what, costs) if rerun else []
        if earlier:
            reservation = self.ledger.reserve(asked, who=who, what=what)
            assert (reservation.id, reservation.attempt) == (earlier[0], 2)
            self.state[earlier[0]] = ("reserved", 2)
            return reservation
        try:
            reservation = self.ledger.reserve(asked, who=who, what=what, rerun=rerun)
        except BudgetExceeded:
            assert not self.fits(who, costs)
            return None
        assert self.fits(who, costs)
        assert reservation.attempt == 1
        self.standing[reservation.id] = (who, costs)
        self.state[reservation.id] = ("reserved", 1)
        self.asked[reservation.id] = (who, what, costs, rerun)
        return reservation

    def earlier(self, who, what, costs):
        """The first attempts at the same that wait, among the eight newest charges of that plan to the first population."""
        plan = [number for number, (_, asked, to, _) in self.asked.items() if asked == what and min(costs) in to]
        newest = sorted(plan)[-8:]
        return [one for one in newest if self.asked[one] == (who, what, costs, True) and self.state[one] == ("reserved", 1)]

    @rule(reservation=reservations)
    def settle(self, reservation):
        if reservation is None:
            return
        state, attempt = self.state[reservation.id]
        try:
            self.ledger.settle(reservation, b"answer")
        except LedgerError:
            assert state != "reserved"
            return
        assert state == "reserved"
        self.state[reservation.id] = ("settled", attempt)

    @rule(reservation=consumes(reservations))
    def void(self, reservation):
        if reservation is None:
            return
        allowed = self.state[reservation.id] == ("reserved", 1)
        try:
            self.ledger.void(reservation)
        except LedgerError:
            assert not allowed
            return
        assert allowed
        self.state[reservation.id] = ("voided", 1)
        del self.standing[reservation.id]

    @rule(population=st.sampled_from(POPULATIONS), who=st.sampled_from(PEOPLE), share=COSTS)
    def allot(self, population, who, share):
        self.ledger.allot(population, who, PureDP(share), who="owner")
        self.shares[population, who] = share

    @rule(population=st.sampled_from(POPULATIONS), who=st.sampled_from(PEOPLE), cost=COSTS)
    def draw(self, population, who, cost):
        try:
            self.ledger.charge_allotment({population: PureDP(cost)}, who=who, what="plan 1")
        except BudgetExceeded:
            assert not self.fits(who, {population: cost}, populations=False)
            return
        assert self.fits(who, {population: cost}, populations=False)
        self.drawn[population, who] = self.drawn.get((population, who), Fraction(0)) + cost

    @rule(population=st.sampled_from(POPULATIONS), more=COSTS)
    def raise_budget(self, population, more):
        self.budget[population] += more
        self.ledger.raise_budget(population, PureDP(self.budget[population]), who="owner", why="a study")

    @invariant()
    def sums_agree(self):
        for name in POPULATIONS:
            assert self.ledger.spent(name) == PureDP(self.spent(name))
            assert self.ledger.remaining(name) == PureDP(self.budget[name] - self.spent(name))
            for who in PEOPLE:
                if (name, who) in self.shares:
                    left = max(self.shares[name, who] - self.spent(name, who), Fraction(0))
                    assert self.ledger.allotment(name, who) == (PureDP(self.shares[name, who]), PureDP(left))

    @invariant()
    @precondition(lambda self: self.ledger.head[0] % 5 == 0)
    def states_agree_and_the_chain_verifies(self):
        rows = [row for name in POPULATIONS for row in self.ledger.charges(name)]
        assert {row.id: (row.state, row.attempt) for row in rows} == self.state
        assert self.ledger.verify() is True


TestModel = Model.TestCase
TestModel.settings = settings(stateful_step_count=40)
