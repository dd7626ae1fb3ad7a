"""Pseudonyms: stable, apart by purpose, known vectors of HMAC-SHA-256, and what a dictionary finds with and without a key."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

pytest.importorskip("polars")
import pandas as pd
import polars as pl

from cloister.anonymize.perturbing import Pseudonyms, dictionary_attack
from cloister.errors import InvalidParameter, UnknownColumn
from cloister.noise import Random

KEY = bytes(range(32))
NAMES = ["Ann", "Bob", "Ümit", "🦆", "'; DROP TABLE people; --", "", "a" * 10_000, "\x00"]
DIRECTORY = [f"person {number}" for number in range(2000)] + NAMES


def unkeyed(name: Any) -> str:
    """The broken twin: what many call anonymised."""
    return base64.b32encode(hashlib.sha256(str(name).encode()).digest()).decode().lower()[:16]


def test_a_dictionary_undoes_the_hash_without_a_key_and_finds_nobody_in_ours() -> None:
    assert dictionary_attack([unkeyed(name) for name in NAMES], DIRECTORY, unkeyed) == {unkeyed(name): name for name in NAMES}
    ours = Pseudonyms.with_new_key()
    published = [ours.of(name) for name in NAMES]
    assert dictionary_attack(published, DIRECTORY, unkeyed) == {}
    assert dictionary_attack(published, DIRECTORY, Pseudonyms.with_new_key().of) == {}
    assert len(dictionary_attack(published, DIRECTORY, ours.of)) == len(NAMES)  # who has the key has everybody


def test_it_is_hmac_as_others_compute_it() -> None:
    message = b"cloister pseudonym " + (5).to_bytes(8, "big") + b"study" + b"Ann"
    expected = base64.b32encode(hmac.digest(KEY, message, "sha256")).decode().lower()
    assert Pseudonyms(key=KEY, purpose="study", length=52).of("Ann") == expected[:52]


def test_stable_across_tables_and_kinds_apart_by_purpose() -> None:
    work = Pseudonyms(key=KEY)
    plain = work.apply({"id": [7, 8, None], "x": [1, 2, 3]}, columns="id", shuffle=False)
    assert plain["x"] == [1, 2, 3]
    texts = work.apply({"id": ["8", "7", None]}, columns="id", shuffle=False)["id"]
    assert [texts[1], texts[0], None] == plain["id"]
    assert work.apply(pd.DataFrame({"id": [7.0, 8.0, None]}), columns="id", shuffle=False)["id"].tolist()[:2] == plain["id"][:2]
    assert work.apply(pl.DataFrame({"id": [7, 8, None]}), columns="id", shuffle=False)["id"].to_list() == plain["id"]
    assert Pseudonyms(key=KEY, purpose="a").of("b") != Pseudonyms(key=KEY, purpose="").of("ab")
    assert Pseudonyms(key=KEY, purpose="a").of(7) != Pseudonyms(key=KEY, purpose="b").of(7)
    assert work.of("é") == work.of("e\u0301")


def test_collisions_are_refused_and_bounded() -> None:
    short = Pseudonyms(key=KEY, length=1)
    with pytest.raises(InvalidParameter, match="length=9"):
        short.apply({"id": list(range(40))}, columns="id", shuffle=False)
    assert short.collision(1) == 0
    assert short.collision(2) == 1 / 32
    assert Pseudonyms(key=KEY, length=52).collision(10**9) < 1e-59


def test_the_key_does_not_show() -> None:
    work = Pseudonyms.with_new_key(random=Random.deterministic(1))
    assert "key" not in repr(work)
    assert work == Pseudonyms.with_new_key(random=Random.deterministic(1))


@pytest.mark.parametrize(
    "options",
    [{"key": b"short"}, {"key": "text" * 9}, {"key": KEY, "length": 0}, {"key": KEY, "length": 53}, {"key": KEY, "length": True}],
)
def test_refusals(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="is invalid"):
        Pseudonyms(**options)


def test_empty_all_missing_and_no_such_column() -> None:
    work = Pseudonyms(key=KEY)
    assert work.apply({"id": []}, columns="id", shuffle=False) == {"id": []}
    assert work.apply({"id": [None, None]}, columns="id", shuffle=False) == {"id": [None, None]}
    with pytest.raises(UnknownColumn, match="'x'"):
        work.apply({"id": [1]}, columns="x", shuffle=False)


def test_a_pseudonym_follows_from_its_identifier_alone() -> None:
    """Whatever other people are called, and whatever a program may take for the same number or for missing."""
    work = Pseudonyms(key=KEY)
    names = ["12E4", "120E3", "120000", "Ann", "Ann ", "NA", "", "1234567890123456.5", "1234567890123456.25", "none"]
    together = work.apply({"id": names}, columns="id", shuffle=False)["id"]
    assert together == [work.of(name) for name in names]
    assert len(set(together)) == len(names)
    short = Pseudonyms(key=KEY, length=3)  # 32,768: some read as numbers, as "2e3" does
    many = [str(number) for number in range(150)]
    made = [short.of(name) for name in many]
    if len(set(made)) == len(made):
        assert short.apply({"id": many}, columns="id", shuffle=False)["id"] == made
    with pytest.raises(InvalidParameter, match="missing one"):
        work.of(None)
