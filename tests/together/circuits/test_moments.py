"""Components and discriminants of sums of moments against numpy's and scipy's, the same in integers and in gates."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh

from cloister.compress import DCA, LDA
from cloister.errors import InvalidParameter
from cloister.together import Paillier
from cloister.together.circuits import BlindedSum, FixedPoint, Moments, Program, run_both


@cache
def program_of(features: int, classes: int, components: int = 0) -> tuple[Moments, Program]:
    how = Moments(features=features, rows=1000, classes=classes)
    kind = FixedPoint(bits=how.bits, shape=(how.length,))

    def work(a: Any, b: Any) -> Any:
        return how.components(a + b, components) if components else how.discriminants(a + b)

    return how, Program(work, garbler={"a": kind}, evaluator={"b": kind}, bits=256)


def drawn(features: int, classes: int, number: int = 600, seed: int = 1) -> tuple[Any, Any]:
    """Rows whose columns vary differently, about means of their own, on the grid of 12 bits."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, max(classes, 1), number)
    rows = generator.uniform(-0.5, 0.5, (number, features)) * np.linspace(0.3, 1, features)
    rows += generator.uniform(-0.4, 0.4, (max(classes, 1), features))[labels]
    return np.rint(rows * 4096) / 4096, labels


@pytest.mark.parametrize(("features", "classes"), [(4, 2), (3, 3), (8, 4)])
def test_discriminants_are_those_of_the_exact_scatters(features: int, classes: int) -> None:
    how, program = program_of(features, classes)
    rows, labels = drawn(features, classes)
    own = [how.of_rows(rows[part], -1, 1, labels[part]) for part in (slice(200), slice(200, None))]
    found = program.as_numbers(a=own[0], b=own[1])
    total = np.trace((rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)))
    for made in (DCA(rho=total / 64, rho_prime=0.0), LDA(rho=total / 64)):
        expected = made.fit(rows, labels).components_.T
        assert np.abs(np.abs((found * expected).sum(axis=0)) - 1).max() < 1e-6, type(made)
    assert np.abs(np.linalg.norm(found, axis=0) - 1).max() < 1e-6


def test_components_are_those_of_the_exact_scatter() -> None:
    how, program = program_of(6, 0, 2)
    rows, _ = drawn(6, 0)
    found = program.as_numbers(a=how.of_rows(rows[:300], -1, 1), b=how.of_rows(rows[300:], -1, 1))
    expected = eigh(np.cov(rows.T))[1][:, ::-1][:, :2]
    assert np.linalg.norm(found - expected @ (expected.T @ found), 2) < 1e-5


@given(data=st.data(), classes=st.sampled_from([0, 2, 3]))
@settings(max_examples=8, deadline=None)
def test_integers_and_gates_agree_to_the_last_bit(data: st.DataObject, classes: int) -> None:
    """Of sums of rows, of nothing, and of numbers that no rows have: a party that lies gets some result, and both the same."""
    how, program = program_of(2, classes, 0 if classes else 1)
    end = (1 << (how.bits - 1)) - 1
    numbers = st.lists(st.sampled_from([0, 1, -1, end, -end]) | st.integers(-end, end), min_size=how.length, max_size=how.length)
    a, b = (data.draw(numbers | st.just([0] * how.length)) for _ in "ab")
    assert np.array_equal(program.as_numbers(a=a, b=b), program.as_gates(a=a, b=b))


def test_a_class_that_an_owner_lacks_is_noughts_and_one_that_all_lack_changes_little() -> None:
    how, program = program_of(3, 3)
    rows, labels = drawn(3, 2)  # nobody has class 2
    mine = how.of_rows(rows[labels == 0], -1, 1, labels[labels == 0])
    assert mine[6 + 3 : 6 + 9].tolist() == [0] * 6
    assert mine[-2:].tolist() == [0, 0]
    found = program.as_numbers(a=mine, b=how.of_rows(rows[labels == 1], -1, 1, labels[labels == 1]))
    scatter = (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))
    expected = DCA(1, rho=np.trace(scatter) / 64, rho_prime=0.0).fit(rows, labels).components_[0]
    assert abs(abs(found[:, 0] @ expected) - 1) < 1e-6


def test_owners_send_once_encrypted_and_nobody_sees_the_sum() -> None:
    """Three owners with as many rows as one may have, an adder with the blinds, a key holder: the direction is of all rows."""
    how, keys = Moments(features=2, rows=100, classes=2), Paillier.generate(512, insecure=True)
    rows, labels = drawn(2, 2, 300)
    sent = [keys.public.encrypt(how.of_rows(rows[turn::3], -1, 1, labels[turn::3]), slots=how.slots(3)) for turn in range(3)]
    blinded, blinds = (sent[0] + sent[1] + sent[2]).blinded()
    sums = BlindedSum.of(blinded)
    program = sums.program(how.together(3).discriminants, bits=256)
    seen = keys.decrypt(blinded, exact=True)
    values = {"blinded": sums.residues(seen), "blinds": sums.residues(blinds)}
    garbler, found = run_both(program, values)
    assert garbler is None
    scatter = (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))
    expected = DCA(rho=np.trace(scatter) / 64, rho_prime=0.0).fit(rows, labels).components_[0]
    assert abs(abs(found[:, 0] @ expected) - 1) < 1e-6


def test_of_fifty_columns_the_forecast_is_below_the_published_times() -> None:
    how = Moments(features=50, rows=100_000, classes=3)
    kind = FixedPoint(bits=how.bits, shape=(how.length,))
    program = Program(lambda a, b: how.discriminants(a + b), garbler={"a": kind}, evaluator={"b": kind}, bits=256)
    assert program.gates < 100e6
    assert program.seconds < 30


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (lambda: Moments(features=1, rows=10), "from 2 to"),
        (lambda: Moments(features=2, rows=2**23).together(3), "at most 16777216 together"),
        (lambda: Moments(features=2, rows=10, classes=1), "nothing separates"),
        (lambda: Moments(features=2, rows=2).of_rows(np.zeros((3, 2)), 0, 1), "at most 2 rows"),
        (lambda: Moments(features=2, rows=9).of_rows([[0, np.nan]], 0, 1), "finite numbers"),
        (lambda: Moments(features=2, rows=9).of_rows("x", 0, 1), "finite numbers"),
        (lambda: Moments(features=2, rows=9).of_rows([["0", "1"]], 0, 1), "finite numbers"),
        (lambda: Moments(features=2, rows=9).of_rows([[0, 1], [2]], 0, 1), "finite numbers"),
        (lambda: Moments(features=2, rows=9).of_rows(3, 0, 1), "finite numbers"),
        (lambda: Moments(features=2, rows=9).of_rows(None, 0, 1), "finite numbers"),
        (lambda: Moments(features=2, rows=9, classes=2).of_rows([[0, 1]], 0, 1, ["x"]), "2 classes were declared"),
        (lambda: Moments(features=2, rows=9, classes=2).of_rows([[0, 1]], 0, 1, [0.5]), "2 classes were declared"),
        (lambda: Moments(features=2, rows=9, classes=2).of_rows([[0, 1]], 0, 1, [None]), "2 classes were declared"),
        (lambda: Moments(features=2, rows=9, classes=2).of_rows([[0, 1]], 0, 1, [np.nan]), "2 classes were declared"),
        (lambda: Moments(features=2, rows=9, classes=2).of_rows([[0, 1]], 0, 1), "2 classes were declared"),
        (lambda: Moments(features=2, rows=9, classes=2).of_rows([[0, 1]], 0, 1, [2]), "2 classes were declared"),
        (lambda: Moments(features=2, rows=9).discriminants(None), "no classes"),  # type: ignore[arg-type]
        (lambda: Moments(features=2, rows=9, classes=2).discriminants(None, ridge=Fraction(2)), "from 1/1024"),  # type: ignore[arg-type]
        (lambda: program_of(2, 0, 3), "the matrix has 2 columns"),
    ],
)
def test_bad_input(work: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        work()
