"""Layers that show equality or order: right on every pair, by name alone, and what attackers make of them."""

from __future__ import annotations

import hmac
import json
import random
from itertools import pairwise

import pytest

import cloister as cl
from cloister.vault import Deterministic, Equal, OrderRevealing, Range, Sum, leakage
from cloister.vault.weak import ordered
from tests.tiers import by_day_and_night
from tests.vault.conftest import Place

KEY = bytes(range(32))
FIELDS = {"town": Deterministic(), "age": OrderRevealing(0, 120) | Sum(), "note": cl.vault.Random()}
ROWS = [{"_id": n, "town": ["Basel", "Bern", None][n % 3], "age": n * 7 % 121, "note": "x"} for n in range(40)]


@by_day_and_night("bits", 12, 16)
def test_the_order_of_all_numbers_of_so_many_bits_is_that_of_their_tokens(bits: int) -> None:
    """65,536 tokens that rise from each to the next are right on all 2,147,450,880 pairs, since bytes compare transitively. By
    day every sixteenth."""
    tokens = [ordered(KEY, number, 16) for number in range(0, 1 << 16, 1 << 16 - bits)]
    assert all(one < other for one, other in pairwise(tokens))
    assert {len(each) for each in tokens} == {64}


def test_digits_of_one_byte_modulo_256_are_wrong_once_in_256() -> None:
    """The broken twin: what this scheme is when it is taken modulo the size of its digits."""

    def twin(number: int) -> bytes:
        drawn = (hmac.digest(KEY, b"%d:%d" % (left, number >> (left + 1)), "sha256")[0] for left in range(15, -1, -1))
        return bytes((each + (number >> left & 1)) % 256 for each, left in zip(drawn, range(15, -1, -1), strict=True))

    tokens = [twin(number) for number in range(1 << 12)]
    wrong = sum(one > other for one, other in pairwise(tokens))
    assert 0 < wrong < 64, "some 16 of 4,095 neighbours"


def test_two_tokens_tell_their_order_and_where_they_differ_and_no_more() -> None:
    """Of pairs whose first different bit is the same, digits are the same to it, one apart at it, and unrelated after it."""
    for one, other in ((0b1010_0000, 0b1011_1111), (0b0010, 0b0011), (7, 8)):
        digits = [
            [int.from_bytes(each[at : at + 4], "big") for at in range(0, 32, 4)]
            for each in (ordered(KEY, n, 8) for n in (one, other))
        ]
        differs = next(at for at in range(8) if one >> (7 - at) != other >> (7 - at))
        assert digits[0][:differs] == digits[1][:differs]
        assert digits[1][differs] - digits[0][differs] == 1
        assert not {*digits[0][differs + 1 :]} & {*digits[1][differs + 1 :]}


def test_a_store_finds_and_sorts_by_itself_and_answers_as_a_plain_one(place: Place) -> None:
    people = place.store.collection("people", FIELDS)
    people.insert_many(ROWS)
    ages = {row["_id"]: row["age"] for row in ROWS}
    assert sorted(each["_id"] for each in people.find({"town": "Bern"})) == [row["_id"] for row in ROWS if row["town"] == "Bern"]
    assert sorted(each["_id"] for each in people.find({"town": {"$in": [None, "Basel"]}})) == [
        row["_id"] for row in ROWS if row["town"] in (None, "Basel")
    ]
    for low, high in ((0, 120), (39, 60), (50, 50), (121, 200), (60, 39)):
        found = {each["_id"] for each in people.find({"age": {"$gte": low, "$lt": high}})}
        assert found == {key for key, age in ages.items() if low <= age < high}
    for way in (1, -1):
        found = [each["age"] for each in people.find(sort=[("age", way)], skip=3, limit=5)]
        assert found == sorted(ages.values(), reverse=way == -1)[3:8]
    people.update_one({"_id": 0}, {"$unset": {"age": 1}})
    assert [each["_id"] for each in people.find(sort=[("age", 1)], limit=1)] == [0], "a missing value comes first"
    [group] = people.aggregate([{"$match": {"town": "Bern"}}, {"$group": {"_id": "$town", "n": {"$count": {}}}}])
    assert group == {"_id": "Bern", "n": sum(row["town"] == "Bern" for row in ROWS)}


def test_a_sort_with_a_limit_reads_no_more_than_it_returns(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    people = place.store.collection("people", FIELDS)
    people.insert_many(ROWS)
    read: list[int] = []
    kept = people.reader.store.records

    def counted(name: str, handles: list[bytes] | None = None) -> object:
        read.append(len(handles or []))
        return kept(name, handles)

    monkeypatch.setattr(people.reader.store, "records", counted)
    assert len(people.find(sort=[("age", -1)], limit=4)) == 4
    assert read == [4]


def test_tokens_live_through_a_rotation_and_show_nothing_across_it(place: Place) -> None:
    people = place.store.collection("people", FIELDS)
    people.insert_many(ROWS)
    before = _tokens(place)
    place.store.rotate(batches=0)
    people.insert_one({"_id": 100, "town": "Bern", "age": 3, "note": ""})
    assert len(people.find({"town": "Bern"})) == 14
    assert [each["age"] for each in people.find(sort=[("age", 1)], limit=3)] == [0, 3, 3], "of both epochs"
    assert place.store.rotate()
    assert not before & _tokens(place)
    assert len(people.find({"town": "Bern"})) == 14
    assert place.store.verify()


def _tokens(place: Place) -> set[bytes]:
    reader = place.store.collection("people").reader
    return {token for _, _, token, _ in reader.store.tokens(reader.table)}


def test_a_changed_token_falsifies_nothing_and_a_left_out_record_is_noticed_by_verify_alone(place: Place) -> None:
    people = place.store.collection("people", FIELDS)
    people.insert_many(ROWS)
    table, (called, _) = people.reader.table, people.reader.sealer.tokens["town"]
    bern, basel = (people.reader.sealer.token(1, "town", town) for town in ("Bern", "Basel"))
    victim = people.reader.keys.handle(table, 0)
    place.sql(f"UPDATE t_{table} SET token = ? WHERE field = ? AND handle = ?", bern, called, victim)
    assert 0 not in {each["_id"] for each in people.find({"town": "Bern"})}, "the client compares what it decrypted"
    assert 0 not in {each["_id"] for each in people.find({"town": "Basel"})}, "left out, and not missed on reading"
    assert "verify() alone" in str(people.explain({"town": "Basel"})), "which explain() says"
    assert "tokens were changed" in str(place.store.verify())
    place.sql(f"UPDATE t_{table} SET token = ? WHERE field = ? AND handle = ?", basel, called, victim)
    assert place.store.verify()


def test_they_are_had_by_name_and_said(place: Place) -> None:
    said = str(place.store.collection("people", FIELDS).explain({"_id": 1}))
    assert "which values of 'town' are equal" in said
    assert "the order of the values of 'age'" in said
    assert all(not field.exposed for field in (Equal(), Range(0, 9), Equal() | Range(0, 9), Sum()))
    with pytest.raises(cl.InvalidDeclaration, match="one of the two"):
        Range(0, 9) | OrderRevealing(0, 9)
    again = place.vault().collection("people")
    assert {name: field.told() for name, field in again.fields.items()} == {name: field.told() for name, field in FIELDS.items()}


def test_attackers_get_from_the_file_what_they_get_of_others_after_every_query() -> None:
    draw = random.Random(5)
    towns = draw.choices(["a", "b", "c", "d"], [50, 25, 15, 10], k=500)
    assert leakage(towns, Deterministic()).worst == leakage(towns, Equal()).worst > leakage(towns, cl.vault.Random()).worst
    ages = [draw.randrange(60) for _ in range(2000)]
    found = leakage(ages, OrderRevealing(0, 59))
    assert found.worst == 1.0, "every value occurs, so sorting recovers all"
    assert any(each.saw == "the store's file was seen" and each.recovered == 1.0 for each in found.attacks)


def test_who_has_the_file_sees_equal_values_of_these_fields_and_of_no_others(place: Place) -> None:
    fields = {"weak": Deterministic(), "strong": Equal()}
    people = place.store.collection("people", fields)
    people.insert_many({"_id": n, "weak": "same", "strong": "same"} for n in range(10))
    reader = people.reader
    tokens = [token for _, _, token, _ in reader.store.tokens(reader.table)]
    assert (len(tokens), len({*tokens})) == (10, 1)
    cells = [cell for (body,) in place.sql("SELECT body FROM {R}") for cell in json.loads(body).values()]
    contents = [content for (content,) in place.sql("SELECT content FROM {I}")]
    assert (len({*cells}), len({*contents})) == (len(cells), len(contents)) == (30, 10)
