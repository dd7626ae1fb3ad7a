"""The model card: it says what it was told and what the model holds, and warns where it must."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.learn.assessment.curve import Curve, Point
from cloister.learn.assessment.evaluation import accuracy, confusion_matrix
from cloister.learn.frame.card import Card, CardLine
from cloister.learn.frame.examples import Threshold
from cloister.noise import Random
from cloister.privacy import PureDP

X = ((np.arange(2000) * 0.618034) % 1).reshape(-1, 1)
Y = (X[:, 0] > 0.5).astype(int)
CURVE = Curve(
    model="Threshold",
    measure="accuracy",
    rows="a public copy",
    delta=None,
    plain=Point(epsilon=None, values=(0.9, 0.9)),
    points=(Point(epsilon=Fraction(1, 10), values=(0.7, 0.7)), Point(epsilon=Fraction(1), values=(0.85, 0.85))),
)


@pytest.fixture
def model() -> Threshold:
    return Threshold(bounds=([0], [1]), epsilon="0.9").fit(X, Y)


def test_a_card_says_all_of_it(model: Threshold) -> None:
    score = accuracy(model, X, Y, epsilon="0.1")
    card = model.card(
        data="invented", date="2026-05-01", evaluation=score, expected=CURVE, membership={"advantage": 0.0123456, "tpr": "0.1 %"}
    )
    text = card.text()
    for part in (
        "invented",
        "2026-05-01",
        "ε = 0.9",
        "counts",
        "one of 0, 1",
        "0 to 1",
        "bought with ε = 0.1",
        "0.05 of accuracy at ε = 1 (from a public copy; 2 runs)",
        "membership inference: advantage",
        "0.01235",
        "0.1 %",
        "at",
    ):
        assert part in text, part
    assert card.warnings == ()
    assert card.guarantee == PureDP("0.9")
    assert sum(line.portion for line in card.spent) == 1


def test_a_card_is_frozen_and_comes_back(model: Threshold) -> None:
    card = model.card(data="invented", membership=0.02, expected="about two points")
    assert Card.from_json(card.to_json()) == card
    json.loads(card.to_json(), parse_constant=pytest.fail)
    with pytest.raises(dataclasses.FrozenInstanceError):
        card.data = "other"  # type: ignore[misc]
    for broken in ("", "{}", "[]", '{"format": 9}', card.to_json().replace('"features"', '"feature"')):
        with pytest.raises(InvalidParameter, match="not a card"):
            Card.from_json(broken)


def test_worse_than_silence_is_said() -> None:
    """The commonest class is nine in ten, and the model was told otherwise."""
    rare = (np.arange(2000) % 10 == 0).astype(int)
    model = Threshold(bounds=(0, 1), epsilon=100).fit(X, Y)
    found = confusion_matrix(model, X, rare, epsilon=10, random=Random.deterministic(1))
    card = model.card(evaluation=found)
    assert any("majority-class guess would be right 90." in each or "right 89." in each for each in card.warnings)
    assert any(each.endswith("this model is worse than silence") for each in card.warnings)
    good = confusion_matrix(model, X, Y, epsilon=10)
    assert model.card(evaluation=good).warnings == ()


def test_what_is_not_private_is_marked() -> None:
    plain = Threshold(bounds=(0, 1), privacy=None).fit(X, Y)
    assert any("NOT PRIVATE" in warning for warning in plain.card().warnings)
    seeded = Threshold(bounds=(0, 1), random=Random.deterministic(1)).fit(X, Y)
    assert any("foretold" in warning for warning in seeded.card().warnings)


def test_renderings_let_nothing_through(model: Threshold) -> None:
    hostile = "<script>alert(1)</script> | `x` *b* [a](javascript:1)"
    card = model.card(data=hostile, membership={hostile: hostile})
    assert "<script" not in card.fragment()
    assert "&lt;script" in card.fragment()
    assert "<script" not in card.markdown()
    assert "\\|" in card.markdown()
    assert card._repr_html_() == card.fragment()
    assert str(card) == card.text()


def test_every_section_is_in_every_rendering(model: Threshold) -> None:
    card = model.card(data="invented", membership=0.5)
    assert CardLine(what="membership inference", text="advantage 0.5") in card.findings
    for title, lines in card.sections():
        for rendering in (card.text(), card.markdown(), card.fragment()):
            assert title in rendering
            assert all(line.what in rendering for line in lines)


def test_a_model_that_was_better_than_without_noise_lost_nothing(model: Threshold) -> None:
    better = dataclasses.replace(CURVE, plain=Point(epsilon=None, values=(0.8, 0.8)))
    assert "-0.05 of accuracy at ε = 1" in model.card(expected=better).text()
    errors = dataclasses.replace(better, measure="mean_squared_error")
    assert "0.05 of mean_squared_error at ε = 1" in model.card(expected=errors).text()
    assert "-0.05" not in model.card(expected=errors).text()
