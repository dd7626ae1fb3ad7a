"""A share bounds all that is measured through it, and its charges are ordinary ones."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.errors import LedgerError, NotConvertible
from cloister.learn import GaussianNB
from cloister.ledger import Bound
from cloister.noise import DiscreteLaplace, Random
from cloister.privacy import Guarantee
from cloister.session import Count, Door, Mean, Measurer, Question
from cloister.session.analyst import Bounds
from cloister.session.examples import small_door
from cloister.session.share import WithinShare
from cloister.tables import Column, Compare, Literal

COUNT = Question(table="people", statistics=(Count(),))
BY_SEX = Question(table="people", by=("sex",), statistics=(Count(),))
MEAN = Question(table="people", statistics=(Mean(column="age"),))


def younger(age: int) -> Question:
    return Question(table="people", statistics=(Count(),), where=Compare("<", Column("age"), Literal(age)))


class Noisy:
    """A method that needs rows."""

    columns = ("age",)

    def describe(self) -> dict[str, Any]:
        return {"name": "rows"}

    def guarantee(self, spend: Guarantee, declaration: cl.PrivateTable) -> Guarantee:
        return spend

    def release(
        self, rows: Mapping[str, Any], declaration: cl.PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        assert isinstance(guarantee, cl.PureDP)
        return {"rows": DiscreteLaplace(scale=1 / guarantee.epsilon).release(len(rows["age"]), random=random)}


def test_what_passes_the_share_is_refused_and_costs_nothing(door: Door) -> None:
    with door.within_share("0.5") as measurer:
        measurer.measure(COUNT, spend="0.2")
        measurer.measure_all([BY_SEX, MEAN], spend="0.2")
        assert measurer.remaining_by == {"people": cl.PureDP("0.1")}
        for refused in (
            lambda: measurer.measure(younger(30), spend="0.2"),
            lambda: measurer.measure_all([younger(40), younger(50)], spend="0.2"),
            lambda: measurer.run(Noisy(), "people", "0.2"),
        ):
            with pytest.raises(cl.BudgetExceeded, match=r"ε = 0\.1 of the share of ε = 0\.5 is left") as found:
                refused()
            assert "smaller spend" in found.value.instead
        measurer.run(Noisy(), "people", "0.1")
        assert measurer.remaining_by == {"people": cl.PureDP(0)}
    assert door.spent == cl.PureDP("0.5")
    assert [charge.who for charge in door.ledger.charges("people")] == ["owner"] * 3


def test_what_was_bought_is_had_again_when_the_share_is_used_up(door: Door) -> None:
    with door.within_share("0.2") as measurer:
        one, other = measurer.measure(COUNT, spend="0.2"), measurer.measure(COUNT, spend="0.2")
        assert one.to_pydict() == other.to_pydict()
        with pytest.raises(cl.BudgetExceeded, match="of the share"):
            measurer.measure(COUNT, spend="0.3")


def test_the_session_itself_is_not_bound(door: Door) -> None:
    with door.within_share("0.2"):
        door.measure(COUNT, spend=1)
    assert door.spent == cl.PureDP(1)


def test_a_share_begins_with_what_was_spent_before(door: Door) -> None:
    door.measure(COUNT, spend=3)
    with door.within_share("0.5") as measurer:
        measurer.measure(BY_SEX, spend="0.5")
    with door.within_share("0.5") as measurer:
        measurer.measure(MEAN, spend="0.5")
    assert door.spent == cl.PureDP(4)


def test_others_are_not_counted(door: Door) -> None:
    ana = door.on_behalf("ana")
    with door.within_share("0.5") as measurer:
        ana.measure(younger(30), spend=2)
        measurer.measure(COUNT, spend="0.5")


def test_the_use_of_what_others_paid_for_counts(door: Door) -> None:
    door.on_behalf("ana").measure(COUNT, spend=2)
    with door.within_share("0.5") as measurer:
        measurer.measure(COUNT, spend="0.4")
        assert measurer.remaining_by == {"people": cl.PureDP("0.1")}
        with pytest.raises(cl.BudgetExceeded):
            measurer.measure(BY_SEX, spend="0.2")
    assert door.spent == cl.PureDP(2)


def test_threads_together_spend_no_more_than_the_share(door: Door) -> None:
    with door.within_share("0.5") as measurer:

        def ask(age: int) -> bool:
            try:
                measurer.measure(younger(age), spend="0.1")
            except cl.BudgetExceeded:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            answered = list(pool.map(ask, range(20, 36)))
    assert sum(answered) == 5
    assert door.spent == cl.PureDP("0.5")


def test_bounds_of_the_session_hold_as_well(door: Door) -> None:
    door.keep_within(Bounds(ceilings={"people": [Bound(most=cl.PureDP("0.3"), why="the ceiling is ε = 0.3")]}))
    with door.within_share("0.5") as measurer, pytest.raises(cl.BudgetExceeded, match=r"the ceiling is ε = 0\.3"):
        measurer.measure(COUNT, spend="0.4")


def test_charges_are_told_as_those_of_the_session(door: Door) -> None:
    told: list[Any] = []
    door.tell_charges(lambda what, costs: told.append(dict(costs)))
    with door.within_share("0.5") as measurer:
        measurer.measure(COUNT, spend="0.4")
    assert told == [{"people": cl.PureDP("0.4")}]


def test_a_closed_share_measures_nothing(door: Door) -> None:
    with door.within_share("0.5") as measurer:
        pass
    with pytest.raises(cl.InvalidParameter, match="closed"):
        measurer.measure(COUNT, spend="0.1")
    assert door.spent == cl.PureDP(0)


def test_a_table_that_comes_later_is_bound_too(door: Door, people: cl.PrivateTable) -> None:
    with door.within_share("0.5") as measurer:
        visits = {"cost": [1, 2, 3]}
        door.add("visits", cl.PrivateTable(visits, columns={"cost": cl.Integer(0, 9)}), cl.PureDP(1))
        with pytest.raises(cl.BudgetExceeded, match="population 'visits'"):
            measurer.measure(Question(table="visits", statistics=(Count(),)), spend="0.6")
        assert set(measurer.remaining_by) == {"people", "visits"}


def test_a_table_that_comes_while_it_is_asked_about_is_not_measured_without_a_bound(door: Door) -> None:
    """Between the moment at which populations are bound and the question, another thread adds a table."""
    visits = cl.PrivateTable({"cost": [1, 2, 3]}, columns={"cost": cl.Integer(0, 9)})

    class Late(WithinShare):
        coming: list[cl.PrivateTable]

        def _bind(self) -> None:
            super()._bind()
            if getattr(self, "coming", []):
                door.add("visits", self.coming.pop(), cl.PureDP(1))

    with Late(door._light(door._analyst), Bounds(), "0.5", {}) as measurer:
        measurer.coming = [visits]
        with pytest.raises(cl.CloisterError):
            measurer.measure(Question(table="visits", statistics=(Count(),)), spend=1)
        assert door.ledger.spent("visits") == cl.PureDP(0)
        with pytest.raises(cl.BudgetExceeded, match="of the share"):
            measurer.measure(Question(table="visits", statistics=(Count(),)), spend=1)


def test_a_share_of_somebody_else_is_theirs(door: Door) -> None:
    """A session on somebody's behalf shares out what they draw, and neither it nor another session of theirs passes the share."""
    ana = door.on_behalf("ana")
    with ana.within_share("0.5") as measurer:
        door.on_behalf("ana").measure(younger(30), spend="0.4")
        with pytest.raises(cl.BudgetExceeded, match=r"ε = 0\.1 of the share"):
            measurer.measure(COUNT, spend="0.2")
        measurer.measure(COUNT, spend="0.1")


def test_shares_of_the_same_person_overlap_on_the_safe_side(door: Door) -> None:
    """What is measured through one counts against the other: each spends less than its share, never more."""
    with door.within_share("0.5") as outer, door.within_share("0.3") as inner:
        inner.measure(COUNT, spend="0.3")
        assert outer.remaining_by == {"people": cl.PureDP("0.2")}
        outer.measure(BY_SEX, spend="0.2")
        for measurer in (outer, inner):
            with pytest.raises(cl.BudgetExceeded, match="of the share"):
                measurer.measure(MEAN, spend="0.1")


def test_a_release_of_a_share_buys_nothing_beyond_it(door: Door) -> None:
    """What a release can buy afterwards (its bias) is charged within the share that it was measured in."""
    with door.within_share("0.5") as measurer:
        release = measurer.measure(MEAN, spend="0.4")
        with pytest.raises(cl.CloisterError):
            release.bias(spend="0.3")
    with pytest.raises(cl.CloisterError):
        release.bias(spend="0.3")
    assert door.spent <= cl.PureDP("0.5")


def test_another_ledger_is_for_who_holds_the_tables(door: Door) -> None:
    """Whoever asks on somebody's behalf can't charge a ledger that knows nothing of what was spent."""
    other = cl.Ledger()
    for light in (door.on_behalf("ana"), door.charging(other), door.through(door)):
        with pytest.raises(cl.AccessDenied):
            light.charging(other)
    with door.within_share("0.5") as measurer:
        assert not hasattr(measurer, "charging")
        assert not hasattr(measurer, "on_behalf")


def test_noise_made_for_tests_enters_no_durable_ledger(people: cl.PrivateTable, tmp_path: Path) -> None:
    """Not by way of another ledger, either."""
    with (
        Door({"people": people}, budget=cl.PureDP(1)) as kept,
        Door({"people": people}, budget=cl.PureDP(1), random=Random.deterministic(1)) as door,
        cl.Ledger(tmp_path / "budget.db") as durable,
    ):
        assert kept.marked is False
        durable.open("people", cl.PureDP(1), who="owner")
        with pytest.raises(LedgerError, match="can be foretold"):
            door.charging(durable)
        assert durable.spent("people") == cl.PureDP(0)


@pytest.mark.parametrize(
    ("budget", "share", "half"),
    [(cl.ApproxDP(4, "1e-6"), 1, "0.5"), (cl.ZCDP(4), "0.5", "0.25"), (cl.ZCDP(4), cl.ZCDP("0.5"), "0.25")],
)
def test_a_share_counts_in_the_measure_of_the_budget(people: cl.PrivateTable, budget: Guarantee, share: Any, half: str) -> None:
    with Door({"people": people}, budget=budget) as door, door.within_share(share) as measurer:
        measurer.measure(COUNT, spend=half)
        measurer.measure(BY_SEX, spend=half)
        with pytest.raises(cl.BudgetExceeded, match="of the share"):
            measurer.measure(MEAN, spend="0.01")


def test_a_share_of_another_measure_is_refused(door: Door) -> None:
    with pytest.raises(NotConvertible):
        door.within_share(cl.ZCDP("0.1"))


def test_a_model_learns_within_a_share(door: Door) -> None:
    with door.within_share(1) as measurer:
        taken: Measurer = measurer
        model = GaussianNB(epsilon=1).fit_table(taken, "people", features=["age"], target="sex", spend=1)
        assert model.classes_.tolist() == ["F", "M"]
        with pytest.raises(cl.BudgetExceeded, match="of the share"):
            GaussianNB(epsilon=1).fit_table(taken, "people", features=["pay"], target="sex", spend=1)
    assert door.spent == cl.PureDP(1)


def test_what_an_attempt_that_died_was_charged_is_gone_from_the_share() -> None:
    with small_door() as door:
        door.measure(COUNT, spend="0.3")
        with door.within_share("0.5", paid={"people": cl.PureDP("0.3")}) as share:
            assert share.remaining_by["people"] == cl.PureDP("0.2")
            share.measure(COUNT, spend="0.3")  # answered from the ledger
            with pytest.raises(cl.BudgetExceeded):
                share.measure(BY_SEX, spend="0.3")
        assert door.spent == cl.PureDP("0.3")
