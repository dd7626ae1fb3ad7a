"""Sensitivities: what is given, what follows, what stays unknown."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.errors import InvalidParameter, MissingBound
from cloister.privacy import Neighbours, Sensitivity

vectors = st.lists(st.integers(-20, 20), min_size=1, max_size=6)


def norms(vector: list[int]) -> dict[str, Fraction]:
    return {
        "l0": Fraction(sum(x != 0 for x in vector)),
        "l1": Fraction(sum(abs(x) for x in vector)),
        "l2_squared": Fraction(sum(x * x for x in vector)),
        "linf": Fraction(max(abs(x) for x in vector)),
    }


@given(vectors, st.sets(st.sampled_from(["l0", "l1", "l2_squared", "linf"]), min_size=1))
def test_what_follows_from_the_given_norms_is_never_too_small(vector: list[int], given_norms: set[str]) -> None:
    true = norms(vector)
    found = Sensitivity(**{name: true[name] for name in given_norms})  # type: ignore[arg-type]
    for name, value in true.items():
        if found.knows(name):
            assert getattr(found, name) >= value


@given(vectors)
def test_given_all_norms_none_grows(vector: list[int]) -> None:
    true = norms(vector)
    found = Sensitivity(**true)  # type: ignore[arg-type]
    assert {name: getattr(found, name) for name in true} == true


def test_l2_alone_says_nothing_of_l1() -> None:
    lonely = Sensitivity(l2=3)
    assert (lonely.l2_squared, lonely.linf) == (9, 3)
    with pytest.raises(MissingBound, match="l1"):
        _ = lonely.l1
    with pytest.raises(MissingBound, match="l0"):
        _ = lonely.l0


def test_roots_that_are_not_rational_are_rounded_up() -> None:
    found = Sensitivity(l2_squared=2, l0=2)
    assert found.linf**2 >= 2
    assert found.linf == pytest.approx(math.sqrt(2), rel=1e-14)
    assert found.l1 == 2  # √(2·2), exactly
    tiny = Sensitivity(l2_squared=Fraction(2, 10**60))
    assert tiny.linf**2 >= Fraction(2, 10**60)
    assert float(tiny.linf) == pytest.approx(math.sqrt(2) * 1e-30, rel=1e-12)


def test_rows_and_groups() -> None:
    total = Sensitivity.of_rows(3, "2.5")
    assert (total.l0, total.l1, total.l2_squared, total.linf) == (1, Fraction(15, 2), Fraction(225, 4), Fraction(15, 2))
    spread = Sensitivity.of_rows(5, 1, max_groups=2)
    assert (spread.l0, spread.l1, spread.l2_squared, spread.linf) == (2, 5, 25, 5)
    capped = Sensitivity.of_groups(4, 1)
    assert (capped.l0, capped.l1, capped.l2_squared, capped.linf) == (4, 4, 4, 1)


def test_scaling_and_laying_end_to_end() -> None:
    one = Sensitivity(l0=2, linf=3)
    assert one.scaled("-1/3").l2_squared == 2
    assert one.scaled(0).l0 == 0
    both = one + Sensitivity(l1=1)
    assert (both.l1, both.l2_squared, both.linf) == (7, 19, 3)
    assert not both.knows("l0")


@given(vectors, vectors)
def test_a_replaced_unit_is_covered(left: list[int], right: list[int]) -> None:
    size = max(len(left), len(right))
    left, right = left + [0] * (size - len(left)), right + [0] * (size - len(right))
    biggest = {name: max(norms(left)[name], norms(right)[name]) for name in norms(left)}
    bounded = Sensitivity(**biggest).to_bounded()  # type: ignore[arg-type]
    for name, value in norms([a - b for a, b in zip(left, right, strict=True)]).items():
        assert getattr(bounded, name) >= value
    up, down = [abs(a) for a in left], [abs(b) for b in right]
    counting = Sensitivity(**biggest).to_bounded(nonnegative=True)  # type: ignore[arg-type]
    for name, value in norms([a - b for a, b in zip(up, down, strict=True)]).items():
        assert getattr(counting, name) >= value


@pytest.mark.parametrize(
    "wrong",
    [{}, {"l1": -1}, {"l1": "nan"}, {"l0": "1.5"}, {"l2": 1, "l2_squared": 1}, {"l1": True}, {"linf": math.inf}, {"l1": ""}],
)
def test_what_is_no_sensitivity_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Sensitivity(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [0, -1, "1.5", math.nan, True])
def test_a_row_cap_is_a_whole_number(rows: int) -> None:
    with pytest.raises(InvalidParameter):
        Sensitivity.of_rows(rows, 1)
    with pytest.raises(InvalidParameter):
        Sensitivity.of_groups(rows, 1)


def test_a_norm_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        Sensitivity(l1=1).knows("l3")


def test_neighbours_are_text() -> None:
    assert [str(kind) for kind in Neighbours] == ["unbounded", "bounded"]
