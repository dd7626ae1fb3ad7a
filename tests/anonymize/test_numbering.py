"""The fast ways to number a column say what sorting its distinct values says, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from cloister.anonymize import encoded
from cloister.anonymize import encoded as numbering
from cloister.anonymize.encoded import encode, few_texts, near_numbers
from cloister.anonymize.frames import read_frame

WORDS = ["", "a", "aa", "B", "é", "東京", "🏠", "￿", "𐀀", "a longer text than fits beside its length", "?", "null"]


def plain(values: list[Any]) -> tuple[list[int], list[Any]]:
    """Codes and distinct values, a missing one last."""
    distinct = sorted({value for value in values if value is not None})
    place = {value: code for code, value in enumerate(distinct)} | {None: len(distinct)}
    return [place[value] for value in values], distinct


@pytest.mark.parametrize("seed", range(6))
def test_few_texts(seed: int) -> None:
    draw = np.random.default_rng(seed)
    known: list[Any] = [*WORDS, *(f"word {number}" for number in range(int(draw.integers(0, 300))))]
    values = [known[place] for place in draw.integers(0, len(known), 5000)]
    if seed % 2:
        values = [None if draw.random() < 0.1 else value for value in values]
    found = few_texts(pl.Series(values, dtype=pl.String))
    if found is not None:  # two of some hundreds of texts may share their bits
        assert (found[0].tolist(), found[1]) == plain(values)
    few = [value for value in values if value is None or value in WORDS[:4]]
    found = few_texts(pl.Series([*few, *["a"] * 5000], dtype=pl.String))
    assert found is not None
    assert (found[0].tolist(), found[1]) == plain([*few, *["a"] * 5000])


def test_texts_that_share_their_bits_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [WORDS[place] for place in np.random.default_rng(7).integers(0, len(WORDS), 4000)]
    series = pl.Series(values)
    assert few_texts(series) is not None
    monkeypatch.setattr(numbering, "_HASH_BITS", 2)
    assert few_texts(series) is None


def test_many_texts_and_few_rows_are_left_to_others() -> None:
    assert few_texts(pl.Series([f"row {number}" for number in range(3000)])) is None
    assert few_texts(pl.Series(["a", "b"])) is None


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt8, pl.Int32, pl.Int64, pl.UInt64])
def test_near_numbers(kind: Any) -> None:
    low = 0 if kind in (pl.UInt8, pl.UInt64) else -90
    values = np.random.default_rng(3).integers(low, 100, 700).tolist()
    found = near_numbers(pl.Series(values, dtype=kind))
    assert found is not None
    assert (found[0].tolist(), found[1]) == plain(values)


def test_numbers_far_apart_or_missing_are_left_to_others() -> None:
    assert near_numbers(pl.Series([0, 1 << 40])) is None
    assert near_numbers(pl.Series([(1 << 64) - 1, (1 << 64) - 2], dtype=pl.UInt64)) is None
    assert near_numbers(pl.Series([-(1 << 63), (1 << 63) - 1])) is None
    assert near_numbers(pl.Series([1, None])) is None
    assert near_numbers(pl.Series([], dtype=pl.Int64)) is None


@pytest.mark.parametrize("missing_values", [(), ("?", 3)])
def test_a_table_is_encoded_alike_with_and_without(missing_values: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(11)
    table: dict[str, list[Any]] = {
        "text": [WORDS[place] for place in draw.integers(0, len(WORDS), 3000)],
        "gaps": [None if place > 8 else WORDS[place] for place in draw.integers(0, 12, 3000)],
        "age": draw.integers(-3, 80, 3000).tolist(),
        "some": [None if age > 60 else age for age in draw.integers(0, 80, 3000).tolist()],
        "empty": [None] * 3000,
    }
    frame = read_frame(pl.DataFrame(table, schema_overrides={"empty": pl.String}))
    fast = encode(frame, list(table), missing_values=missing_values)
    for name in ("few_texts", "near_numbers"):
        monkeypatch.setattr(encoded, name, lambda series: None)
    slow = encode(frame, list(table), missing_values=missing_values)
    for name in table:
        one, other = fast.columns[name], slow.columns[name]
        assert (one.values, one.kind, one.missing) == (other.values, other.kind, other.missing)
        assert one.codes.dtype == other.codes.dtype
        assert (one.codes == other.codes).all()
