"""The membership lines of a card: a bound that no test passes, an attack on made-up rows, and nothing of the data."""

from __future__ import annotations

import html
import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from cloister import attacks
from cloister.attacks import MembershipResult
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.learning.expected import LOST
from cloister.hub.services.learning.fitting import LINES, lines_of, most_found
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from tests.hub.house import people_rows
from tests.hub.learning.conftest import MAY, Stage
from tests.hub.learning.test_models import lines

NORMAL = NormalDist()
BLIND, BOUND, FOUND, ALARMS = LINES


def findings(stage: Stage, number: str) -> dict[str, str]:
    """What the card of a model says that was found out."""
    return dict(stage.get(f"/models/{number}").json()["card"]["findings"])


def interval(told: str) -> tuple[float, float]:
    """The ends of the interval behind a share."""
    low, high = told.partition("(")[2].removesuffix(" %)").split("–")
    return float(low) / 100, float(high) / 100


# ── the bound ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rho", ["0.001", "0.01", "0.1", "1", "3"])
@pytest.mark.parametrize("at", [Fraction(1, 1000), Fraction(1, 20)])
def test_the_bound_of_rho_holds_for_the_normal_law_and_is_near_it(rho: str, at: Fraction):
    """Noise of variance 1/(2ρ) on a number that one person moves by 1: the best test finds Φ(Φ⁻¹(f) + √(2ρ))."""
    best = NORMAL.cdf(NORMAL.inv_cdf(float(at)) + math.sqrt(2 * float(rho)))
    assert best <= most_found(ZCDP(rho), at) <= min(1.0, 5 * best)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_the_bound_of_epsilon_is_that_of_randomised_response(epsilon: str):
    """A coin that is right e^ε/(1 + e^ε) of the time reaches e^ε·f at f = 1/(1 + e^ε): no smaller bound would hold."""
    grown = math.exp(float(epsilon))
    at = Fraction(1 / (1 + grown))
    assert most_found(PureDP(epsilon), at) == pytest.approx(grown / (1 + grown))


def test_a_delta_is_added_and_little_promise_says_all():
    assert most_found(ApproxDP(1, "1e-4")) == pytest.approx(math.e / 1000 + 1e-4)
    assert most_found(ZCDP("0.1")) < most_found(ZCDP("0.1", "1e-4")) <= most_found(ZCDP("0.1")) + 2e-4
    assert most_found(ZCDP(100)) == 1.0
    assert most_found(PureDP(0)) == pytest.approx(0.001)
    found = [most_found(each) for each in (ZCDP("0.01"), ZCDP("0.1"), ZCDP(1), ZCDP(5))]
    assert found == sorted(found)


@pytest.mark.parametrize("promise", [PureDP(0), PureDP("0.25"), ApproxDP(1, "1e-6"), ZCDP("0.05"), PureDP(50)])
def test_what_is_shown_of_the_bound_is_never_less(promise: Guarantee):
    shown = lines_of(promise, None)[BOUND.removeprefix("membership inference: ")]
    assert 0 <= float(shown.removesuffix(" %")) / 100 - most_found(promise) <= most_found(promise) / 100 + 1e-12


# ── the card ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("method", ["GaussianNB", "LogisticRegression", "DecisionTreeClassifier"])
def test_the_card_says_both_on_the_page_and_in_the_file(stage: Stage, method: str):
    number = stage.learnt(method=method)
    told = findings(stage, number)
    assert (told[BLIND], told[BOUND]) == ("0.1 %", "0.129 %")
    least, most = interval(told[FOUND])[0], interval(told[ALARMS])[1]
    assert least <= math.exp(0.25) * most, "more than the guarantee allows was found"
    page = html.unescape(stage.ana.client.get(f"/models/{number}").text)
    for text in (*LINES, "0.129 %", told[FOUND], told[ALARMS]):
        assert text in page
    file = stage.ana.client.get(f"/models/{number}/card")
    assert file.headers["content-disposition"] == f'attachment; filename="card-{number}.md"'
    assert file.headers["content-type"].startswith("text/markdown")
    for text in (*LINES, "0.129 %", f"# {method}"):
        assert text in file.text
    assert [each["form"] for each in lines(stage, "release.download")] == ["card"]
    assert stage.spent == "ε = 0.25"


def test_the_card_tells_nothing_beyond_the_declarations(stage: Stage):
    rows = {name: [values[0]] * 300 for name, values in people_rows().items()}
    stage.house.sample_data_set("others", owner=stage.owner, rows=rows)  # the same declarations over other rows
    with stage.hub.database.reading() as db:
        others = db.scalars(select(DataSet).where(DataSet.name == "others")).one()
    stage.house.grant(others, stage.ana, by=stage.owner, actions=MAY)
    first = findings(stage, stage.learnt(method="DecisionTreeClassifier"))
    stage.hub.parts.pop("membership on made-up rows")
    again = findings(stage, stage.learnt(method="DecisionTreeClassifier", table="others"))
    assert [again[line] for line in LINES] == [first[line] for line in LINES]


@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("StandardScaler", [BLIND, BOUND]),
        ("KMeans", [LOST["captured"], *LINES]),
        ("PCA", [LOST["captured"], *LINES]),
        ("Ridge", [LOST["r2"], *LINES]),
    ],
)
def test_models_of_each_kind(stage: Stage, method: str, told: list[str]):
    """What only moves and stretches features says nothing of rows: for it there is the bound alone."""
    changed: dict[str, Any] = {"features": ["age"], "target": "pay"} if method == "Ridge" else {"target": ""}
    assert [*findings(stage, stage.learnt(method=method, **changed))] == told


def test_an_attack_that_fails_costs_nothing_and_no_model(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    def fails(*how: Any, **more: Any) -> Any:
        raise ValueError

    monkeypatch.setattr(attacks, "train_shadows", fails)
    assert [*findings(stage, stage.learnt())] == [LOST["accuracy"], BLIND, BOUND]


def test_an_attack_is_made_before_the_charge(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    spent: list[str] = []

    def attacked(*how: Any) -> MembershipResult:
        spent.append(stage.spent)
        return MembershipResult(attack="none", members=np.ones(9), others=np.zeros(9))

    monkeypatch.setattr("cloister.hub.services.learning.fitting.attacked", attacked)
    assert findings(stage, stage.learnt())[FOUND].startswith("100 % (")
    assert spent == ["ε = 0"]


def test_a_card_leaves_only_where_downloads_are_granted(stage: Stage):
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner, actions=("dataset.see", "learn.run", "release.see"))
    number = stage.learnt(bob)
    assert bob.client.get(f"/models/{number}").status_code == 200
    assert bob.client.get(f"/models/{number}/card").status_code == 403
    assert stage.ana.client.get(f"/models/{number}/card").status_code == 404
