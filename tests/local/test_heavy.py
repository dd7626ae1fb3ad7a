"""Heavy hitters: texts and numbers are found, nothing else is, reports say nothing of the level, sketches, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local import HeavyHitters, Sketch
from cloister.local.frequency.blocks import Blocks, mixed
from cloister.noise import Random
from tests.local.words import Scripted
from tests.tiers import by_day_and_night, some_by_day

WORD = 1 << 64


def test_blocks_can_be_put_together_again() -> None:
    for length in (2, 3, 8, 16, 40):
        numbers, texts = Blocks(length=length, texts=False), Blocks(length=length, texts=True)
        assert sum(numbers.widths) == 8 * length
        assert max(numbers.widths) <= 14
        values = [0, 1, 258, (1 << 8 * length) - 1]
        assert [numbers.joined(path) for path in zip(*(block.tolist() for block in numbers.cut(values)), strict=True)] == values
        words = ["", "a", "é", "x" * length]
        assert [texts.joined(path) for path in zip(*(block.tolist() for block in texts.cut(words)), strict=True)] == words
    cut = [Blocks(length=8, texts=False).cut(np.array([7, 1 << 60], dtype=kind)) for kind in (np.int64, np.uint64)]
    assert all((left == right).all() for left, right in zip(*cut, strict=True))
    assert Blocks(length=2, texts=True).joined([0, 65]) is None  # a zero before a letter
    assert Blocks(length=2, texts=True).joined([255, 255]) is None  # no UTF-8


def mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def plain_places(number: int, widths: list[int]) -> list[int]:
    """Where a string is counted on each level, by the rule as it is written."""
    blocks, rest = [], sum(widths)
    for width in widths:
        rest -= width
        blocks.append(number >> rest & (1 << width) - 1)
    finger = 0xD1B54A32D192ED03
    for block in blocks:
        finger = mix(finger ^ (block + 1))
    places = [blocks[0] << 12 | finger >> 52]
    state = mix(0x9E3779B97F4A7C15 ^ places[0])
    for block in blocks[1:]:
        state = mix(state ^ (block + 1))
        places.append(state >> 44)
    return places


def test_reports_are_made_as_it_is_written() -> None:
    """A word for the level, then those of local hashing of the place."""
    heavy = HeavyHitters(2, length=6)
    client = json.loads(json.dumps(heavy.client))
    text = "zürich"[:5]
    places = plain_places(int.from_bytes(text.encode().ljust(6, b"\0"), "big"), client["widths"])
    for seed in range(20):
        words = Random.deterministic(seed).words(4).tolist()
        script = Scripted(words)
        report = int(heavy.randomize([text], random=script)[0])
        level = words[0] % heavy.levels
        assert len(script.words_used) == 4
        assert report // heavy._cells == level
        inner = heavy._hashing.randomize([places[level]], random=Scripted(words[1:]))
        assert report % heavy._cells == inner[0]


def test_the_level_and_the_function_say_nothing_of_the_string() -> None:
    heavy = HeavyHitters(1)
    some, others = (heavy.randomize(values, random=Random.deterministic(3)) for values in ([1] * 1000, range(1000)))
    assert (some // heavy._hashing.buckets == others // heavy._hashing.buckets).all()
    assert some.tolist() != others.tolist()


def people(n: int, names: int = 10, prefix: str = "") -> list[str]:
    """The k-th name is held by a share of 0.12/√k; everybody else holds a word of their own."""
    shares = [0.12 / k**0.5 for k in range(1, names + 1)]
    held = [f"{prefix}name {k}" for k, share in enumerate(shares, start=1) for _ in range(int(n * share))]
    return held + [f"{prefix}{mix(i):x}"[: 8 + len(prefix)] for i in range(n - len(held))]


@some_by_day("prefix", ["www.", "", "https://"], lambda prefix: prefix == "www.")
def test_frequent_texts_are_found_and_margins_cover(prefix: str) -> None:
    heavy = HeavyHitters(4, length=8 + len(prefix))
    told = people(60_000, prefix=prefix)
    found = heavy.find(heavy.aggregate(heavy.randomize(told, random=Random.deterministic(4))), most=20)
    truth = np.array([told.count(str(value)) for value in found.values])
    assert set(found.values) == {f"{prefix}name {k}" for k in range(1, 11)}
    assert (abs(found.counts - truth) < found.margin(0.9999)).all()
    assert sorted(found.counts.tolist(), reverse=True) == found.counts.tolist()


def test_texts_may_be_in_any_script() -> None:
    heavy = HeavyHitters(5, length=12)
    told = ["北京大学"] * 20_000 + ["Zürich"] * 15_000 + ["naïve"] * 15_000 + [""] * 10_000
    found = heavy.find(heavy.aggregate(heavy.randomize(told, random=Random.deterministic(6))))
    assert set(found.values) == {"北京大学", "Zürich", "naïve", ""}


def test_nothing_is_found_where_nothing_is_frequent() -> None:
    heavy = HeavyHitters(2, bits=32)
    for seed in range(2):
        values = mixed(np.arange(50_000, dtype=np.uint64) + np.uint64(seed << 32)) >> np.uint64(32)
        found = heavy.find(heavy.aggregate(heavy.randomize(values, random=Random.deterministic(seed))))
        assert len(found) <= 1  # a fifth of a false alarm is allowed for, on average
    empty = heavy.find(heavy.aggregate([]))
    assert (len(empty), empty.n, empty.margin(0.95).tolist()) == (0, 0, [])


@pytest.mark.slow
def test_the_top_twenty_of_a_zipf_law_on_64_bits() -> None:
    """A million people, ε = 4, exponent 1.1: at most two of the top twenty are wrong."""
    heavy = HeavyHitters(4, bits=64)
    ranks = np.arange(1, 200_001, dtype=np.float64)
    shares = ranks**-1.1 / 10.5844  # ζ(1.1): the rest is held by nobody else
    counts = np.floor(shares * 1_000_000).astype(np.int64)
    alone = 1_000_000 - int(counts.sum())
    values = mixed(np.concatenate([np.repeat(np.arange(1, 200_001), counts), np.arange(alone) + 10**9]).astype(np.uint64))
    top = set(mixed(np.arange(1, 21, dtype=np.uint64)).tolist())
    for seed in range(3):
        found = heavy.find(heavy.aggregate(heavy.randomize(values, random=Random.deterministic(seed))), most=20)
        assert len(found) == 20
        assert len(top - set(found.values)) <= 2


@by_day_and_night("bits", 16, 32)
def test_who_holds_a_string_with_enough_others_is_found(bits: int) -> None:
    heavy = HeavyHitters(4, bits=bits)
    n, held = 100_000, 123456789 % 2 ** (bits - 1)
    needed = int(heavy.least(n))
    assert 0 < needed < n / 20
    hits = 0
    for seed in range(4):
        others = mixed(np.arange(n - needed, dtype=np.uint64)) >> np.uint64(65 - bits)
        values = np.concatenate([np.full(needed, held), others.astype(np.int64)])
        found = heavy.find(heavy.aggregate(heavy.randomize(values, random=Random.deterministic(seed))))
        hits += held in found.values
    assert hits >= 3


def test_sketches_add_up_and_travel() -> None:
    heavy = HeavyHitters(4, bits=16)
    reports = heavy.randomize([513] * 3000, random=Random.deterministic(1))
    whole = heavy.aggregate(reports)
    assert heavy.aggregate(reports[:1000]) + heavy.aggregate(reports[1000:]) == whole
    assert Sketch.from_json(whole.to_json()) == whole
    assert heavy.find(whole).values[0] == 513
    with pytest.raises(InvalidParameter, match="of another length or ε"):
        HeavyHitters(4, bits=24).find(whole)


def test_bad_input_is_refused_with_its_own_message() -> None:
    words, numbers = HeavyHitters(1, length=4), HeavyHitters(1, bits=16)
    for text in ("fives", "a\0b", "ééé", 3, None, "\ud800"):
        with pytest.raises(InvalidParameter, match="longer than 4 bytes of UTF-8"):
            words.randomize([text])
    for number in (-1, 65536, 1.5, "7", True, None):
        with pytest.raises(InvalidParameter, match="not an integer from 0 to 2\\^16"):
            numbers.randomize([number])
    with pytest.raises(InvalidParameter, match="not an integer"):
        numbers.randomize(np.array([65536]))
    for values in ("text", 7):
        with pytest.raises(InvalidParameter, match="not a list of values"):
            words.randomize(values)
    for reports in ([-1], [10**9], [[1]], [0.5], ["a"]):
        with pytest.raises(InvalidParameter, match="The reports are invalid"):
            words.aggregate(reports)
    for bits in (7, 12, 2000, True):
        with pytest.raises(InvalidParameter, match="multiple of 8"):
            HeavyHitters(1, bits=bits)
    for length in (1, 1000, True):
        with pytest.raises(InvalidParameter, match="number of bytes"):
            HeavyHitters(1, length=length)
    with pytest.raises(InvalidParameter, match="length= is given, too"):
        HeavyHitters(1, bits=64, length=8)
    with pytest.raises(InvalidParameter, match="epsilon=0"):
        HeavyHitters(0)
