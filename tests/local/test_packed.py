"""Rows of bits: counting columns and setting bits, against the plain way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.local.frequency import packed
from cloister.local.frequency.packed import column_counts, fits, set_bits, unpacked
from cloister.local.protocols.coins import lanes_of


def rows_of(bits: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """The plain way: bit j of word i is column 64·i + j."""
    n, width = bits.shape
    rows = np.zeros((n, lanes_of(width)), dtype=np.uint64)
    for row, column in zip(*np.nonzero(bits), strict=True):
        rows[row, column // 64] |= np.uint64(1) << np.uint64(column % 64)
    return rows


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 70), width=st.integers(1, 200), seed=st.integers(0, 10**6), share=st.floats(0, 1))
def test_columns_are_counted_as_the_plain_way_counts_them(n: int, width: int, seed: int, share: float) -> None:
    bits = np.random.default_rng(seed).random((n, width)) < share
    rows = rows_of(bits)
    assert column_counts(rows, width).tolist() == bits.sum(axis=0).tolist()
    assert unpacked(rows, width).tolist() == bits.astype(int).tolist()
    assert fits(rows, width).all()


def test_many_rows_are_counted_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.random.default_rng(1).random((500, 70)) < 0.3
    monkeypatch.setattr(packed, "_CHUNK", 64)
    assert column_counts(rows_of(bits), 70).tolist() == bits.sum(axis=0).tolist()


def test_counts_far_above_a_byte_are_right() -> None:
    assert column_counts(np.full((100_003, 1), 0b101, dtype=np.uint64), 3).tolist() == [100_003, 0, 100_003]


@given(width=st.integers(1, 130), data=st.data())
def test_one_bit_is_set_or_cleared_and_no_other(width: int, data: st.DataObject) -> None:
    place, bit = data.draw(st.integers(0, width - 1)), data.draw(st.booleans())
    before = np.random.default_rng(width).random((1, width)) < 0.5
    rows = rows_of(before)
    set_bits(rows, np.array([place]), np.array([bit]))
    before[0, place] = bit
    assert unpacked(rows, width).tolist() == before.astype(int).tolist()


def test_bits_beyond_the_width_do_not_fit() -> None:
    top = np.array([[1 << 63]], dtype=np.uint64)
    assert [bool(fits(top, width)[0]) for width in (63, 64)] == [False, True]
    assert fits(np.array([[-1], [1]]), 3).tolist() == [False, True]
