"""Eigenvectors as a program: the same in integers and in gates, right for hostile matrices, refused before anything runs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import InvalidParameter
from cloister.together.circuits import FixedPoint, Program, leading_eigenvectors
from tests.tiers import some_by_day

Matrix = npt.NDArray[np.float64]
BITS = 36
END = 2 ** (BITS - 2) - 1
"""Two parties' halves add up to 35 bits and a sign."""
EXAMPLES = settings.default.max_examples
"""A hundred by day, more at night."""


@cache
def eigenvectors(side: int, components: int, bits: int = BITS) -> Program:
    kind = FixedPoint(bits=bits, shape=(side * (side + 1) // 2,))
    return Program(lambda a, b: leading_eigenvectors(a + b, components), garbler={"a": kind}, evaluator={"b": kind}, bits=128)


def halves(matrix: npt.ArrayLike) -> dict[str, Any]:
    """A matrix of whole numbers, as two parties bring it."""
    whole = np.asarray(matrix).astype(np.int64)
    triangle = whole[np.triu_indices(len(whole))]
    return {"a": (triangle // 2).tolist(), "b": (triangle - triangle // 2).tolist()}


def right(matrix: npt.ArrayLike, found: Matrix, least: float = 1e-5, name: str = "") -> None:
    """Orthonormal, turned into themselves by the matrix, and of the largest eigenvalues: said without dividing by a gap."""
    whole, (side, components) = np.asarray(matrix, dtype=float), found.shape
    inner = found.T @ whole @ found
    norm = np.linalg.norm(whole) or 1.0
    assert np.abs(found.T @ found - np.eye(components)).max() < least, name
    assert np.linalg.norm(whole @ found - found @ inner, 2) / norm < least, name
    assert (np.linalg.eigvalsh(whole)[side - components :].sum() - np.trace(inner)) / norm < least, name


def hostile(side: int) -> dict[str, Matrix]:
    ramp = np.arange(1.0, side + 1)
    generator = np.random.default_rng(7)
    basis = np.linalg.qr(generator.normal(size=(side, side)))[0]
    return {
        "zero": np.zeros((side, side)),
        "one step": np.eye(side)[:1].T @ np.eye(side)[:1],
        "identity": np.eye(side) * 12345,
        "rank one": np.outer(ramp, ramp) * 1000,
        "the ends": np.full((side, side), float(END)),
        "the other ends": np.full((side, side), -float(END)),
        "signs": END * np.where(np.add.outer(ramp, ramp) % 3 < 1, -1, 1),
        "two blocks": np.kron(np.eye(side)[:2, :2], np.ones((side, side)))[: 2 * side : 2, : 2 * side : 2] * 99999,
        "equal pairs": np.rint((basis * (ramp // 2)) @ basis.T * 1e8),
        "nearly equal": np.rint((basis * (1 + ramp * 1e-6)) @ basis.T * 1e9),
        "diagonal": np.diag(ramp[::-1]) * 4096,
        "halved where an eigenvalue is": np.diag(17 - ramp) * 2**20,
        "already three diagonals": np.diag(np.abs(ramp - ramp.mean())) * 1000
        + np.diag(np.full(side - 1, 1000), 1)
        + np.diag(np.full(side - 1, 1000), -1),
        "below zero": np.rint(-(basis * ramp) @ basis.T * 1e6),
        "far apart": np.rint((basis * 10.0**-ramp) @ basis.T * 1e10),
    }


@some_by_day("side, components", [(2, 2), (3, 1), (4, 4), (5, 2), (6, 3)], lambda case: case[0] < 5)
def test_hostile_matrices(side: int, components: int) -> None:
    program = eigenvectors(side, components)
    for name, matrix in hostile(side).items():
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
        values = halves(matrix)
        found = program.as_numbers(**values)
        right(matrix, found, name=name)
        if name in ("zero", "rank one", "the ends", "equal pairs"):
            assert np.array_equal(found, program.as_gates(**values)), name


@given(numbers=st.lists(st.integers(-END, END) | st.integers(-3, 3) | st.sampled_from([0, END, -END]), min_size=10, max_size=10))
@settings(max_examples=EXAMPLES // 20, deadline=None)
def test_any_matrix_is_the_same_in_integers_and_in_gates(numbers: list[int]) -> None:
    matrix = np.zeros((4, 4))
    matrix[np.triu_indices(4)] = numbers
    matrix = matrix + np.triu(matrix, 1).T
    program, values = eigenvectors(4, 2), halves(matrix)
    found = program.as_numbers(**values)
    assert np.array_equal(found, program.as_gates(**values))
    right(matrix, found)


@given(seed=st.integers(0, 2**32), rank=st.integers(1, 12), decay=st.floats(0, 3), scale=st.floats(0, 30))
@settings(max_examples=EXAMPLES // 10, deadline=None)
def test_the_bounds_that_are_proved_hold(seed: int, rank: int, decay: float, scale: float) -> None:
    """The reference refuses a number outside them: so these are matrices of any rank, decay and size."""
    generator = np.random.default_rng(seed)
    factor = generator.normal(size=(12, rank)) * np.arange(1, rank + 1) ** -decay
    matrix = np.rint(factor @ np.diag(generator.choice([-1, 1, 1], rank)) @ factor.T * 2**scale / 40)
    right(matrix, eigenvectors(12, 5).as_numbers(**halves(matrix)))


def test_fifty_features_and_fifteen_components() -> None:
    """The published size: its gates, and the subspace against numpy's."""
    program = eigenvectors(50, 15, 40)
    assert program.gates <= 400e6
    assert program.seconds <= 60
    generator = np.random.default_rng(20)
    mixed = np.linalg.qr(generator.normal(size=(50, 50)))[0] / np.arange(1, 51)[:, None] ** 0.7
    rows = generator.normal(size=(2000, 50)) @ mixed
    scatter = np.rint(rows.T @ rows * 1000)
    values, vectors = np.linalg.eigh(scatter)
    assert (values[35] - values[34]) / np.linalg.norm(scatter) < 5e-3  # a gap that is not generous
    found = program.as_numbers(**halves(scatter))
    kept = vectors[:, 35:]
    assert np.linalg.norm(found - kept @ (kept.T @ found), 2) < 1e-4
    assert np.abs(found.T @ found - np.eye(15)).max() < 1e-5


def test_narrow_programs_are_forecast_by_their_levels() -> None:
    """12 columns and 4 vectors: their gates alone take less than a third of what they cost."""
    program = eigenvectors(12, 4, 40)
    assert program.seconds > 3 * program.gates / 14e6
    assert program.seconds > program.levels * 75e-6


def test_generous_bounds_cost_no_accuracy() -> None:
    """A scatter far below its declared bounds is moved up first."""
    matrix = np.array([[3, 1, 0], [1, 2, 1], [0, 1, 1]])
    right(matrix, eigenvectors(3, 2, 56).as_numbers(**halves(matrix)), 1e-6)


@pytest.mark.parametrize(
    ("length", "components", "why"),
    [(6, 4, "has 3 columns"), (6, 0, "has 3 columns"), (6, True, "has 3 columns"), (7, 1, "entries"), (1, 1, "entries")],
)
def test_what_means_nothing_is_refused(length: int, components: int, why: str) -> None:
    kind = FixedPoint(bits=20, shape=(length,))
    with pytest.raises(InvalidParameter, match=why):
        Program(lambda a, b: leading_eigenvectors(a + b, components), garbler={"a": kind}, evaluator={"b": kind}, bits=128)


def test_overflow_is_refused_before_anything_runs() -> None:
    kind = FixedPoint(bits=40, shape=(6,))
    with pytest.raises(InvalidParameter, match="and the program allows 64"):
        Program(lambda a, b: leading_eigenvectors(a + b, 1), garbler={"a": kind}, evaluator={"b": kind})
    with pytest.raises(InvalidParameter, match="and the program allows 128"):
        eigenvectors(3, 1, 70)
