"""The ledger as another accountant's events: what that accountant computes agrees with ours."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from cloister.ledger import Ledger
from cloister.privacy import ZCDP, ApproxDP, PureDP, float_up

dp_accounting = pytest.importorskip("dp_accounting")


def composed(events):
    return dp_accounting.ComposedDpEvent(events)


def test_pure_charges_compose_to_no_more_than_their_sum():
    with Ledger() as ledger:
        ledger.open("people", PureDP(3), who="owner")
        for number in range(20):
            ledger.reserve({"people": PureDP("0.1")}, who="ada", what=f"plan {number}")
        ledger.void(ledger.reserve({"people": PureDP("0.5")}, who="ada", what="a plan that failed"))
        events = ledger.export()
        spent = ledger.spent("people")
    assert len(events) == 20
    accountant = dp_accounting.pld.PLDAccountant()
    accountant.compose(composed(events))
    pure, approximate = accountant.get_epsilon(0), accountant.get_epsilon(1e-6)
    assert pure == pytest.approx(float(spent.epsilon), rel=0.01)
    assert approximate < pure


def test_a_pure_event_dominates_laplace_noise_of_the_same_epsilon():
    with Ledger() as ledger:
        ledger.open("people", PureDP(1), who="owner")
        ledger.reserve({"people": PureDP(1)}, who="ada", what="plan")
        ours = dp_accounting.pld.PLDAccountant().compose(ledger.export()[0])
    laplace = dp_accounting.pld.PLDAccountant().compose(dp_accounting.LaplaceDpEvent(1))
    for epsilon in (0.1, 0.5, 0.9):
        assert ours.get_delta(epsilon) >= laplace.get_delta(epsilon)


def test_zcdp_charges_are_zcdp_events():
    with Ledger() as ledger:
        ledger.open("people", ZCDP(1), who="owner")
        ledger.reserve({"people": ZCDP("0.25")}, who="ada", what="plan")
        ledger.reserve({"people": PureDP("0.5")}, who="ada", what="another plan")
        assert ledger.export("people") == [dp_accounting.ZCDpEvent(0.25), dp_accounting.ZCDpEvent(0.125)]


def test_a_delta_is_a_chance_that_all_is_revealed():
    with Ledger() as ledger:
        ledger.open("people", ApproxDP(1, "1e-5"), who="owner")
        ledger.reserve({"people": ApproxDP("0.5", "1e-6")}, who="ada", what="plan")
        (event,) = ledger.export("people")
    assert event == composed(
        [
            dp_accounting.dp_event.DiscreteLaplaceDpEvent(0.5, 1),
            dp_accounting.PoissonSampledDpEvent(float_up(Fraction(1, 10**6)), dp_accounting.NonPrivateDpEvent()),
        ]
    )


def test_what_is_not_private_has_no_bound():
    with Ledger() as ledger:
        ledger.open("people", PureDP(1), who="owner")
        ledger.note_not_private("people", who="owner", what="a table")
        accountant = dp_accounting.pld.PLDAccountant().compose(composed(ledger.export("people")))
    assert accountant.get_epsilon(1e-6) == math.inf


def test_one_population_or_all():
    with Ledger() as ledger:
        for name in ("people", "places"):
            ledger.open(name, PureDP(1), who="owner")
        ledger.reserve({"people": PureDP("0.1"), "places": PureDP("0.2")}, who="ada", what="plan")
        assert len(ledger.export()) == 2
        assert len(ledger.export("places")) == 1
