"""What a ledger does, in memory, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cloister.errors import BudgetExceeded, InvalidParameter, LedgerError, NotConvertible
from cloister.ledger import Bound, Ledger
from cloister.privacy import ZCDP, ApproxDP, PureDP

TENTH = PureDP("0.1")


@pytest.fixture
def people(ledger):
    ledger.open("people", PureDP(1), who="owner")
    return ledger


def charge(ledger, cost=TENTH, *, who="ada", what="plan", population="people", **options):
    return ledger.reserve({population: cost}, who=who, what=what, **options)


class TestBudgets:
    def test_a_budget_is_written_when_first_opened(self, ledger):
        assert ledger.open("people", PureDP(1), who="owner") == PureDP(1)
        assert ledger.open("people", None, who="ada") == PureDP(1)
        assert ledger.open("people", PureDP("1.0"), who="ada") == PureDP(1)
        assert ledger.populations() == ["people"]

    @pytest.mark.parametrize("other", [PureDP(2), PureDP("0.5"), ApproxDP(1, 0), ApproxDP(1, "1e-6"), ZCDP("0.5")])
    def test_only_raise_budget_changes_it(self, people, other):
        with pytest.raises(LedgerError, match="only raise_budget"):
            people.open("people", other, who="owner")
        assert people.budget("people") == PureDP(1)

    def test_a_population_without_a_budget_is_not_opened(self, ledger):
        with pytest.raises(LedgerError, match="not found"):
            ledger.open("people", None, who="ada")
        with pytest.raises(LedgerError, match="not found"):
            charge(ledger)
        assert ledger.populations() == []

    def test_it_is_raised_in_its_own_measure_and_only_up(self, people):
        charge(people, PureDP(1))
        for wrong in (PureDP("0.5"), ApproxDP(2, 0), ZCDP(10)):
            with pytest.raises(LedgerError, match="only ever raised"):
                people.raise_budget("people", wrong, who="owner", why="a study")
        assert people.raise_budget("people", PureDP("1.1"), who="owner", why="a study") == PureDP("1.1")
        assert people.remaining("people") == TENTH
        charge(people, what="another plan")
        assert [line.payload["why"] for line in people.lines() if line.kind == "raised"] == ["a study"]

    def test_raising_both_parameters_must_not_lower_one(self, ledger):
        ledger.open("people", ApproxDP(1, "1e-6"), who="owner")
        with pytest.raises(LedgerError, match="only ever raised"):
            ledger.raise_budget("people", ApproxDP(2, "1e-7"), who="owner", why="a study")


class TestCharges:
    def test_a_tenth_ten_times_is_exactly_one(self, people):
        for number in range(10):
            charge(people, PureDP(0.1), what=f"plan {number}")
        assert people.spent("people") == PureDP(1)
        assert people.remaining("people") == PureDP(0)
        with pytest.raises(BudgetExceeded):
            charge(people, PureDP(Fraction(1, 10**200)), what="one more")

    def test_a_third_three_times_is_exactly_one(self, people):
        for number in range(3):
            charge(people, PureDP("1/3"), what=f"plan {number}")
        assert people.remaining("people") == PureDP(0)

    def test_finer_than_a_unit_rounds_up(self, people):
        charge(people, PureDP(Fraction(1, 10**200)))
        assert PureDP(Fraction(1, 10**200)) <= people.spent("people") <= PureDP(Fraction(1, 10**97))
        assert people.verify() is True

    def test_a_refusal_names_population_cost_and_remaining(self, people):
        charge(people, PureDP("0.7"))
        head = people.head
        with pytest.raises(BudgetExceeded) as refusal:
            charge(people, PureDP("0.4"), what="another plan")
        assert "'people'" in str(refusal.value)
        assert "ε = 0.4" in str(refusal.value)
        assert "ε = 0.3" in str(refusal.value)
        assert people.head == head

    def test_several_populations_are_charged_together_or_not_at_all(self, people):
        people.open("places", PureDP("0.1"), who="owner")
        both = {"people": PureDP("0.2"), "places": PureDP("0.2")}
        head = people.head
        with pytest.raises(BudgetExceeded, match="'places'"):
            people.reserve(both, who="ada", what="plan")
        assert people.head == head
        assert people.spent("people") == PureDP(0)
        people.reserve({"people": PureDP("0.2"), "places": TENTH}, who="ada", what="plan")
        assert (people.spent("people"), people.spent("places")) == (PureDP("0.2"), TENTH)

    def test_each_measure_adds_in_its_own_way(self, ledger):
        ledger.open("pure", PureDP(1), who="owner")
        ledger.open("approx", ApproxDP(1, "1e-5"), who="owner")
        ledger.open("zcdp", ZCDP(1, "1e-5"), who="owner")
        for number in range(2):
            charge(ledger, ApproxDP("0.25", 0), population="pure", what=f"{number}")
            charge(ledger, ApproxDP("0.25", "1e-6"), population="approx", what=f"{number}")
            charge(ledger, PureDP("0.25"), population="approx", what=f"p{number}")
            charge(ledger, ZCDP("0.1", "1e-6"), population="zcdp", what=f"{number}")
            charge(ledger, PureDP("0.2"), population="zcdp", what=f"p{number}")
        assert ledger.spent("pure") == PureDP("0.5")
        assert ledger.spent("approx") == ApproxDP(1, "2e-6")
        assert ledger.spent("zcdp") == ZCDP("0.24", "2e-6")
        assert [found.cost for found in ledger.charges("zcdp")][1] == ZCDP("0.02")
        assert ledger.verify() is True

    def test_either_parameter_can_be_short(self, ledger):
        ledger.open("people", ApproxDP(10, "1e-6"), who="owner")
        charge(ledger, ApproxDP(1, "1e-6"))
        with pytest.raises(BudgetExceeded):
            charge(ledger, ApproxDP(1, "1e-9"), what="another plan")
        charge(ledger, PureDP(1), what="a third")

    def test_a_cost_in_another_measure_is_refused_before_anything_is_written(self, people):
        head = people.head
        for cost in (ZCDP("0.1"), ApproxDP("0.1", "1e-9")):
            with pytest.raises(NotConvertible):
                charge(people, cost)
        assert people.head == head

    def test_the_account_says_who_what_when_cost_state_and_purpose(self, place):
        with place.open(clock=lambda: 1_700_000_000.25) as ledger:
            ledger.open("people", PureDP(1), who="owner")
            charge(ledger, purpose="a thesis")
            (row,) = ledger.charges("people")
        assert (row.who, row.what, row.cost, row.state, row.purpose, row.attempt) == (
            "ada",
            "plan",
            TENTH,
            "reserved",
            "a thesis",
            1,
        )
        assert row.when.isoformat() == "2023-11-14T22:13:20.250000+00:00"

    def test_a_clock_that_goes_backwards_changes_no_order(self, place):
        times = iter([100.0, 90.0, 80.0, 120.0, 60.0, 50.0])
        with place.open(clock=lambda: next(times)) as ledger:
            ledger.open("people", PureDP(1), who="owner")
            for number in range(4):
                charge(ledger, what=f"plan {number}")
            moments = [found.when.timestamp() for found in ledger.charges("people")]
            assert moments == [100.0, 120.0, 120.0, 120.0]
            assert ledger.verify() is True


class TestSettling:
    def test_a_release_is_stored_with_its_charge(self, people):
        reservation = charge(people)
        assert people.find("plan", ["people"]) == []
        people.settle(reservation, b"\x00answer\xff")
        (found,) = people.find("plan", ["people"])
        assert (found.release, found.costs, found.who, found.id) == (b"\x00answer\xff", {"people": TENTH}, "ada", reservation.id)
        assert [row.state for row in people.charges("people")] == ["settled"]
        assert people.verify() is True

    def test_only_one_settle_succeeds(self, people):
        reservation = charge(people)
        people.settle(reservation, b"first")
        with pytest.raises(LedgerError, match="which is settled"):
            people.settle(reservation, b"second")
        assert [found.release for found in people.find("plan", ["people"])] == [b"first"]

    def test_releases_are_found_by_plan_and_exact_populations(self, people):
        people.open("places", PureDP(1), who="owner")
        people.settle(people.reserve({"people": TENTH, "places": TENTH}, who="ada", what="plan"), b"both")
        people.settle(charge(people), b"one")
        people.settle(charge(people, PureDP("0.2"), who="bob"), b"more")
        assert [found.release for found in people.find("plan", ["people"])] == [b"one", b"more"]
        assert [found.release for found in people.find("plan", ["places", "people"])] == [b"both"]
        assert people.find("plan", ["places"]) == []
        assert people.find("another plan", ["people"]) == []

    def test_a_reservation_of_another_ledger_is_refused(self, people):
        with Ledger() as other:
            other.open("strangers", PureDP(1), who="owner")
            reservation = charge(other, population="strangers")
        with pytest.raises(LedgerError, match="no such reservation"):
            people.settle(reservation, b"answer")
        with pytest.raises(LedgerError, match="no such reservation"):
            people.void(reservation)

    def test_what_a_test_generator_made_stays_in_memory(self, people, place):
        reservation = charge(people)
        if not place.durable:
            people.settle(reservation, b"answer", marked=True)
            return
        with pytest.raises(LedgerError, match="made for tests"):
            people.settle(reservation, b"answer", marked=True)
        assert people.find("plan", ["people"]) == []
        assert people.spent("people") == TENTH

    @pytest.mark.parametrize("wrong", ["text", None, bytearray(b"answer")])
    def test_a_release_is_bytes(self, people, wrong):
        with pytest.raises(InvalidParameter, match="bytes"):
            people.settle(charge(people), wrong)


class TestVoiding:
    def test_it_gives_the_charge_back_and_keeps_the_row(self, people):
        people.allot("people", "ada", PureDP("0.5"), who="owner")
        reservation = charge(people, PureDP("0.5"))
        people.void(reservation)
        assert people.spent("people") == PureDP(0)
        assert people.allotment("people", "ada") == (PureDP("0.5"), PureDP("0.5"))
        assert [row.state for row in people.charges("people")] == ["voided"]
        assert people.verify() is True

    def test_it_happens_once_and_not_after_settling(self, people):
        reservation = charge(people)
        people.void(reservation)
        with pytest.raises(LedgerError, match="which is voided"):
            people.void(reservation)
        with pytest.raises(LedgerError, match="which is voided"):
            people.settle(reservation, b"answer")
        settled = charge(people, what="another plan")
        people.settle(settled, b"answer")
        with pytest.raises(LedgerError, match="which is settled"):
            people.void(settled)

    def test_a_voided_reservation_is_not_taken_over(self, people):
        people.void(charge(people))
        again = charge(people)
        assert again.attempt == 1
        assert people.spent("people") == TENTH

    def test_once_taken_over_nobody_voids(self, people):
        first = charge(people)
        second = charge(people)
        for attempt in (first, second):
            with pytest.raises(LedgerError, match="the charge stands"):
                people.void(attempt)
        people.settle(second, b"answer")
        assert people.spent("people") == TENTH


class TestSecondAttempts:
    def test_an_unsettled_first_attempt_runs_once_more_under_its_own_charge(self, people):
        first = charge(people)
        second = charge(people)
        assert (second.id, second.attempt) == (first.id, 2)
        assert people.spent("people") == TENTH
        third = charge(people)
        assert third.id != first.id
        assert third.attempt == 1
        assert people.spent("people") == PureDP("0.2")
        assert people.verify() is True

    @pytest.mark.parametrize("winner", [0, 1])
    def test_whichever_attempt_settles_first_wins(self, people, winner):
        attempts = [charge(people), charge(people)]
        people.settle(attempts[winner], b"answer")
        with pytest.raises(LedgerError, match="another attempt"):
            people.settle(attempts[1 - winner], b"another answer")
        assert [found.release for found in people.find("plan", ["people"])] == [b"answer"]
        assert [(row.state, row.attempt) for row in people.charges("people")] == [("settled", 2)]

    def test_the_charges_of_one_plan(self, people):
        first, _, again = charge(people), charge(people, what="another plan"), charge(people)
        people.settle(again, b"answer")
        [found] = people.charges("people", what="plan")
        assert (found.id, found.state, found.attempt) == (first.id, "settled", 2)
        assert people.charges("people", what="no plan") == []
        assert len(people.charges("people")) == 2

    def test_settling_the_second_attempt_leaves_a_later_reservation_waiting(self, people):
        charge(people)
        second = charge(people)
        third = charge(people)
        people.settle(second, b"answer")
        fourth = charge(people)
        assert (fourth.id, fourth.attempt) == (third.id, 2)
        assert people.verify() is True

    def test_a_settled_one_is_not_taken_over(self, people):
        people.settle(charge(people), b"answer")
        assert charge(people).attempt == 1
        assert people.spent("people") == PureDP("0.2")

    @pytest.mark.parametrize("other", [{"who": "bob"}, {"what": "another plan"}, {"cost": PureDP("0.2")}])
    def test_another_person_plan_or_cost_is_another_charge(self, people, other):
        first = charge(people)
        second = charge(people, **{"cost": TENTH} | other)
        assert second.id != first.id
        assert second.attempt == 1

    def test_rerun_false_takes_none_over_and_leaves_none(self, people):
        charge(people)
        fresh = charge(people, rerun=False)
        assert fresh.attempt == 1
        assert people.spent("people") == PureDP("0.2")
        assert charge(people).attempt == 2  # the first one
        assert charge(people).attempt == 1  # nothing is left to take over
        assert people.verify() is True

    def test_a_claim_needs_no_budget(self, people):
        charge(people, PureDP(1))
        assert charge(people, PureDP(1)).attempt == 2


class TestAllotments:
    def test_a_share_caps_one_person(self, people):
        people.allot("people", "ada", PureDP("0.3"), who="owner")
        charge(people, PureDP("0.3"))
        with pytest.raises(BudgetExceeded, match="share of 'ada'"):
            charge(people, what="another plan")
        charge(people, PureDP("0.7"), who="bob")
        assert people.allotment("people", "ada") == (PureDP("0.3"), PureDP(0))
        assert people.allotment("people", "bob") is None

    def test_what_was_spent_before_counts(self, people):
        charge(people, PureDP("0.25"))
        people.allot("people", "ada", PureDP("0.3"), who="owner")
        assert people.allotment("people", "ada") == (PureDP("0.3"), PureDP("0.05"))
        people.allot("people", "ada", PureDP("0.2"), who="owner")
        assert people.allotment("people", "ada") == (PureDP("0.2"), PureDP(0))
        people.allot("people", "ada", PureDP("0.5"), who="owner")
        assert people.allotment("people", "ada") == (PureDP("0.5"), PureDP("0.25"))

    def test_another_persons_hit_debits_the_share_not_the_population(self, people):
        people.allot("people", "bob", PureDP("0.3"), who="owner")
        people.settle(charge(people, PureDP("0.2")), b"answer")
        people.charge_allotment({"people": PureDP("0.2")}, who="bob", what="plan")
        assert people.spent("people") == PureDP("0.2")
        assert people.allotment("people", "bob") == (PureDP("0.3"), PureDP("0.1"))
        head = people.head
        with pytest.raises(BudgetExceeded, match="share of 'bob'"):
            people.charge_allotment({"people": PureDP("0.2")}, who="bob", what="plan")
        assert people.head == head
        assert [(line.kind, line.payload["who"]) for line in people.lines(after=people.head[0] - 1)] == [("drawn", "bob")]
        assert people.verify() is True

    def test_debits_named_in_all_are_made_once(self, people):
        people.allot("people", "bob", PureDP("0.3"), who="owner")
        for whole, left in (("0.1", "0.2"), ("0.1", "0.2"), ("0.25", "0.05"), ("0.2", "0.05")):
            people.charge_allotment({"people": PureDP(whole)}, who="bob", what="plan", in_all=True)
            assert people.allotment("people", "bob") == (PureDP("0.3"), PureDP(left))
        assert people.drawn("people", "bob", "plan") == PureDP("0.25")
        with pytest.raises(BudgetExceeded, match="share of 'bob'"):
            people.charge_allotment({"people": PureDP("0.4")}, who="bob", what="plan", in_all=True)
        assert people.drawn("people", "bob", "plan") == PureDP("0.25")
        assert people.verify() is True

    def test_a_debit_and_a_charge_stand_or_fall_together(self, people):
        people.allot("people", "bob", PureDP("0.3"), who="owner")
        head = people.head
        with pytest.raises(BudgetExceeded, match="a charge to the share for stored answers"):
            people.reserve({"people": PureDP("0.2")}, who="bob", what="plan", drawn={"people": PureDP("0.2")})
        assert people.head == head
        first = people.reserve({"people": PureDP("0.1")}, who="bob", what="plan", drawn={"people": PureDP("0.2")})
        assert people.allotment("people", "bob") == (PureDP("0.3"), PureDP(0))
        assert (people.spent("people"), people.drawn("people", "bob", "plan")) == (PureDP("0.1"), PureDP("0.2"))
        again = people.reserve({"people": PureDP("0.1")}, who="bob", what="plan", drawn={"people": PureDP("0.2")})
        assert (first.id, again.attempt) == (again.id, 2), "a second attempt, and no second debit"
        assert people.spent("people") == PureDP("0.1")
        assert people.verify() is True

    def test_a_share_is_in_the_budgets_measure(self, people):
        with pytest.raises(NotConvertible):
            people.allot("people", "ada", ZCDP("0.1"), who="owner")


def test_what_is_not_private_makes_spending_unbounded(people):
    charge(people)
    assert not people.unbounded("people")
    people.note_not_private("people", who="owner", what="an anonymised table")
    assert people.unbounded("people")
    row = people.charges("people")[-1]
    assert (row.state, row.cost, row.what) == ("not private", None, "an anonymised table")
    assert people.spent("people") == TENTH
    assert people.verify() is True


def test_an_account_survives_its_process(durable):
    with durable.open() as ledger:
        ledger.open("people", PureDP(1), who="owner")
        ledger.allot("people", "ada", PureDP("0.5"), who="owner")
        ledger.settle(charge(ledger), b"answer")
        charge(ledger, what="another plan")
        head = ledger.head
    with durable.open() as ledger:
        assert ledger.frozen is None
        assert ledger.head == head
        assert ledger.spent("people") == PureDP("0.2")
        assert ledger.allotment("people", "ada") == (PureDP("0.5"), PureDP("0.3"))
        assert ledger.find("plan", ["people"])[0].release == b"answer"
        assert charge(ledger, what="another plan").attempt == 2
        assert ledger.verify() is True


@pytest.mark.parametrize("wrong", ["", "a\nb", "x" * 1001, None, 5, "nul\x00"])
def test_names_are_printable_text(people, wrong):
    with pytest.raises(InvalidParameter, match="printable"):
        charge(people, who=wrong)
    with pytest.raises(InvalidParameter, match="printable"):
        charge(people, what=wrong)
    with pytest.raises(InvalidParameter, match="printable"):
        people.open(wrong, PureDP(1), who="owner")


def test_names_may_be_of_any_alphabet(people):
    people.open("людзі 'quoted\" -- ¿?", PureDP(1), who="Ωwner")
    charge(people, population="людзі 'quoted\" -- ¿?", who="Ωwner")
    assert people.charges("людзі 'quoted\" -- ¿?")[0].who == "Ωwner"
    assert people.verify() is True


def test_a_charge_names_a_population_and_a_guarantee(people):
    with pytest.raises(InvalidParameter, match="at least one population"):
        people.reserve({}, who="ada", what="plan")
    with pytest.raises(InvalidParameter, match="PureDP"):
        people.reserve({"people": 0.1}, who="ada", what="plan")


def test_a_closed_ledger_says_so(place):
    ledger = place.open()
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.populations()
    with pytest.raises(LedgerError, match="closed"):
        ledger.open("people", PureDP(1), who="owner")


def test_an_address_of_no_known_kind_is_refused():
    with pytest.raises(InvalidParameter, match="postgresql"):
        Ledger("mysql://host/db")


class TestSources:
    def test_a_source_belongs_to_one_population_for_good(self, people: Ledger) -> None:
        people.open("patients", PureDP(1), who="owner")
        people.bind("5f3a", "people", who="owner")
        lines = people.head[0]
        people.bind("5f3a", "people", who="owner")
        assert people.head[0] == lines
        assert people.bound("5f3a") == "people"
        assert people.bound("77aa") is None
        with pytest.raises(LedgerError, match="people"):
            people.bind("5f3a", "patients", who="owner")
        with pytest.raises(LedgerError, match="nobody"):
            people.bind("77aa", "nobody", who="owner")
        assert people.verify() is True

    def test_what_was_drawn_is_remembered_by_person_and_plan(self, people: Ledger) -> None:
        assert people.drawn("people", "bob", "plan") == PureDP(0)
        people.charge_allotment({"people": PureDP("0.2")}, who="bob", what="plan")
        people.charge_allotment({"people": PureDP("0.1")}, who="bob", what="plan")
        people.charge_allotment({"people": PureDP("0.1")}, who="bob", what="other")
        assert people.drawn("people", "bob", "plan") == PureDP("0.3")
        assert people.drawn("people", "ann", "plan") == PureDP(0)
        assert people.verify() is True

    def test_secrets_follow_from_the_key_and_the_parts(self, people: Ledger) -> None:
        assert people.derive("order", "a", "b") == people.derive("order", "a", "b")
        assert len({people.derive(*parts) for parts in (("a", "b"), ("ab",), ("b", "a"), ("a", "b", ""))}) == 4


def bound(amount, **more):
    return {"people": [Bound(most=amount, why="the ceiling is lower", **more)]}


def test_a_bound_from_outside_is_kept_to_the_last_unit(place):
    with place.open() as ledger:
        ledger.open("people", PureDP(10), who="owner")
        ledger.reserve({"people": PureDP("0.6")}, who="ada", what="one", at_most=bound(PureDP(1)))
        with pytest.raises(BudgetExceeded, match="the ceiling is lower") as refused:
            ledger.reserve({"people": PureDP("0.41")}, who="bob", what="two", at_most=bound(PureDP(1), rule="mandatory:m1"))
        assert refused.value.rule == "mandatory:m1"
        ledger.reserve({"people": PureDP("0.4")}, who="bob", what="two", at_most=bound(PureDP(1)))
        assert ledger.spent("people") == PureDP(1)
        assert ledger.verify() is True


def test_a_bound_on_delta_is_kept(place):
    with place.open() as ledger:
        ledger.open("people", ApproxDP(10, "1e-5"), who="owner")
        ledger.reserve({"people": ApproxDP(1, "1e-7")}, who="ada", what="one", at_most=bound(ApproxDP(10, "1e-6")))
        with pytest.raises(BudgetExceeded, match="the ceiling is lower"):
            ledger.reserve({"people": ApproxDP(1, "1e-6")}, who="ada", what="two", at_most=bound(ApproxDP(10, "1e-6")))


def test_a_bound_on_a_share_counts_what_one_person_drew_and_no_other(place):
    with place.open() as ledger:
        ledger.open("people", PureDP(10), who="owner")
        ledger.reserve({"people": PureDP(5)}, who="bob", what="his", share_at_most=bound(PureDP(5)))
        ledger.charge_allotment({"people": PureDP("0.6")}, who="ada", what="his", share_at_most=bound(PureDP(1)))
        with pytest.raises(BudgetExceeded, match="the ceiling is lower"):
            ledger.charge_allotment({"people": PureDP("0.6")}, who="ada", what="more", share_at_most=bound(PureDP(1)))
        with pytest.raises(BudgetExceeded, match="the ceiling is lower"):
            ledger.reserve({"people": PureDP("0.6")}, who="ada", what="hers", share_at_most=bound(PureDP(1)))
        assert ledger.spent_by("people", "ada") == PureDP("0.6")
        ledger.allot("people", "ada", PureDP(9), who="owner")
        with pytest.raises(BudgetExceeded, match="the ceiling is lower"):
            ledger.reserve({"people": PureDP("0.6")}, who="ada", what="hers", share_at_most=bound(PureDP(1)))


def test_an_attempt_that_is_taken_over_was_charged_already_and_passes_no_bound(place):
    with place.open() as ledger:
        ledger.open("people", PureDP(10), who="owner")
        ledger.reserve({"people": PureDP(1)}, who="ada", what="one", at_most=bound(PureDP(1)))
        assert ledger.reserve({"people": PureDP(1)}, who="ada", what="one", at_most=bound(PureDP(1))).attempt == 2


def test_what_a_ledger_is_asked_in_the_wrong_kind_is_refused_in_words(ledger, people):
    """A lone half of a character, costs that are none, and what is no reservation ended in raw errors."""
    for read in (ledger.spent, ledger.charges, ledger.budget, ledger.remaining, ledger.unbounded):
        with pytest.raises(InvalidParameter, match="printable"):
            read("\ud800")
    for read in (ledger.allotment, ledger.spent_by):
        with pytest.raises(InvalidParameter, match="printable"):
            read("people", "\ud800")
    for costs in (3, [TENTH], "people"):
        with pytest.raises(InvalidParameter, match="costs"):
            ledger.reserve(costs, who="ada", what="plan")
    with pytest.raises(InvalidParameter, match="purpose"):
        ledger.reserve({"people": TENTH}, who="ada", what="plan", purpose=None)
    for end in (ledger.void, lambda none: ledger.settle(none, b"answer")):
        with pytest.raises(LedgerError, match="not what reserve returned"):
            end(None)
    assert ledger.spent("people") == PureDP(0)
