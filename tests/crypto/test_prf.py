"""Draws that follow from a secret: the same for the same words, apart for others, uniform to the last value."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from cloister.crypto import PseudoRandomFunction

KEYED = PseudoRandomFunction(b"secret")


def test_it_is_a_function_and_words_that_differ_are_apart() -> None:
    calls = [("a", "b"), ("ab",), ("a", "", "b"), ('a", "b',), ()]
    drawn = {KEYED.below(2**200, *parts) for parts in calls}
    assert len(drawn) == len(calls)
    assert drawn == {PseudoRandomFunction(b"secret").below(2**200, *parts) for parts in calls}
    assert not drawn & {PseudoRandomFunction(b"Secret").below(2**200, *parts) for parts in calls}


def test_the_first_words_stay_when_there_are_more() -> None:
    few, many = KEYED.words("sample", count=5), KEYED.words("sample", count=5_000)
    assert (few == many[:5]).all()
    assert len(np.unique(many)) == len(many)
    assert not np.isin(many, KEYED.words("other", count=5_000)).any()


@pytest.mark.parametrize("bound", [1, 2, 7, 256])
def test_a_draw_is_uniform(bound: int) -> None:
    """The secret is fixed, so this holds or does not, for ever: chi-square within six of its own deviations."""
    n = 4_000
    found = Counter(KEYED.below(bound, str(number)) for number in range(n))
    assert set(found) <= set(range(bound))
    statistic = sum((found[value] - n / bound) ** 2 for value in range(bound)) / (n / bound)
    assert abs(statistic - (bound - 1)) <= 6 * (2 * bound) ** 0.5


def test_what_would_favour_a_value_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest multiple of three that 256 bits hold is 2**256 - 1: that one alone is too much."""
    answers = iter([b"\xff" * 32, b"\xff" * 31 + b"\xfd"])
    monkeypatch.setattr(PseudoRandomFunction, "_digest", lambda *_: next(answers))
    assert KEYED.below(3, "x") == (2**256 - 3) % 3
    assert next(answers, None) is None
