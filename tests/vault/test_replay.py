"""A vault and a dict get the same operations in any order, with crashes, rotations and restarts in between, and stay equal."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import cloister as cl
from cloister.vault.state import State
from cloister.vault.store import Store
from cloister.vault.values import comparable
from tests.tiers import by_day_and_night
from tests.vault.conftest import Place
from tests.vault.test_lifecycle import Killed, killed, killed_after

FIELDS = {
    "age": cl.vault.Range(0, 15) | cl.vault.Sum(),
    "town": cl.vault.Equal(),
    "note": cl.vault.Random(pad=64),
    "tags": cl.vault.Words(3),
    "rank": cl.vault.OrderRevealing(0, 3),
}
IDS, AGES = st.integers(0, 12), st.one_of(st.none(), st.integers(0, 15))
TOWNS = st.sampled_from(["a", "b", "", None, 1, 1.0, True])
TAGS, RANKS = st.lists(st.sampled_from("abc"), max_size=3), st.sampled_from([None, 0, 0.5, 0.75, 2.25])
DOCUMENTS = st.fixed_dictionaries(
    {}, optional={"age": AGES, "town": TOWNS, "note": st.text(max_size=3), "tags": TAGS, "rank": RANKS}
)
CRASHES = [(Store, "write", False), (Store, "write", True), (State, "apply", False), (State, "apply", True)]


class Replay(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.place = self.made(Path(self.folder.name))
        self.plain: dict[int, dict[str, Any]] = {}
        self.people = self.place.store.collection("people", FIELDS)

    def made(self, folder: Path) -> Place:
        return Place(folder)

    def teardown(self) -> None:
        self.check()
        assert self.place.store.verify()
        self.place.store.close()
        self.place.keys.close()
        self.folder.cleanup()

    def check(self) -> None:
        assert {each["_id"]: each for each in self.people.find()} == self.plain

    def write(self, identity: int, document: dict[str, Any]) -> None:
        if identity in self.plain:
            self.people.replace_one({"_id": identity}, document)
        else:
            self.people.insert_one({"_id": identity} | document)

    @rule(identity=IDS, document=DOCUMENTS)
    def written(self, identity: int, document: dict[str, Any]) -> None:
        self.write(identity, document)
        self.plain[identity] = {"_id": identity} | document

    @rule(identity=IDS)
    def deleted(self, identity: int) -> None:
        assert self.people.delete_one({"_id": identity}).deleted_count == (self.plain.pop(identity, None) is not None)

    @rule(low=st.integers(0, 15), high=st.integers(0, 15), town=TOWNS)
    def moved(self, low: int, high: int, town: Any) -> None:
        self.people.update_many({"age": {"$gte": low, "$lte": high}}, {"$set": {"town": town}})
        for each in self.plain.values():
            if each.get("age") is not None and low <= each["age"] <= high:
                each["town"] = town

    @rule(low=st.integers(0, 15), high=st.integers(0, 15), town=TOWNS)
    def asked(self, low: int, high: int, town: Any) -> None:
        def equal(value: Any) -> bool:
            return bool(value == town and isinstance(value, bool) == isinstance(town, bool))

        found = {each["_id"] for each in self.people.find({"age": {"$gte": low, "$lt": high}})}
        assert found == {each["_id"] for each in self.plain.values() if each.get("age") is not None and low <= each["age"] < high}
        assert {each["_id"] for each in self.people.find({"town": town})} == {
            each["_id"] for each in self.plain.values() if equal(each.get("town"))
        }
        ages = [each["age"] for each in self.plain.values() if each.get("age") is not None]
        expected = [{"_id": None, "sum": sum(ages), "n": len(self.plain)}] if self.plain else []
        assert self.people.aggregate([{"$group": {"_id": None, "sum": {"$sum": "$age"}, "n": {"$count": {}}}}]) == expected

    @rule(
        way=st.sampled_from([1, -1]), limit=st.integers(1, 5), field=st.sampled_from(["age", "rank"]), tag=st.sampled_from("abc")
    )
    def ordered(self, way: int, limit: int, field: str, tag: str) -> None:
        values = [each.get(field) for each in self.plain.values()]
        values.sort(key=lambda value: (value is not None, value or 0), reverse=way == -1)
        assert [each.get(field) for each in self.people.find(sort=[(field, way)], limit=limit)] == values[:limit]
        above = [value for value in values if value is not None and value >= 0.5]
        assert [each[field] for each in self.people.find({field: {"$gte": 0.5}}, sort=[(field, way)], limit=limit)] == above[
            :limit
        ]
        assert self.people.count_documents({"tags": tag}) == sum(tag in each.get("tags", []) for each in self.plain.values())

    @rule(identity=IDS, document=DOCUMENTS, crash=st.sampled_from(CRASHES))
    def killed(self, identity: int, document: dict[str, Any], crash: tuple[type, str, bool]) -> None:
        kind, name, after = crash
        self.check()  # settles what an earlier crash left: the next one is to meet this change
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(kind, name, killed_after(getattr(kind, name)) if after else killed)
            try:
                self.write(identity, document)
                done = True  # nothing had to be written
            except Killed:
                done = kind is State
        self.restarted()
        if done:
            self.plain[identity] = {"_id": identity} | document

    @rule(low=st.integers(0, 15), by=st.sampled_from([1, -1, 0.5]))
    def added(self, low: int, by: float) -> None:
        wanted = [each for each in self.plain.values() if each.get("age") is not None and low <= each["age"] <= 14]
        if all(0 <= each["age"] + by <= 15 for each in wanted):
            found = self.people.update_many({"age": {"$gte": low, "$lte": 14}}, {"$inc": {"age": by}})
            assert found.matched_count == found.modified_count == len(wanted)
            for each in wanted:
                each["age"] += by

    @rule(town=TOWNS)
    def emptied(self, town: Any) -> None:
        gone = [identity for identity, each in self.plain.items() if comparable(each.get("town")) == comparable(town)]
        assert self.people.delete_many({"town": town}).deleted_count == len(gone)
        for identity in gone:
            del self.plain[identity]

    @rule()
    def counted(self) -> None:
        assert self.people.count_documents({}) == len(self.plain)

    @rule()
    def restarted(self) -> None:
        self.place.restart()
        self.people = self.place.store.collection("people", FIELDS)

    @rule(batches=st.integers(0, 2))
    def rotated(self, batches: int) -> None:
        self.place.store.rotate(batches=batches)
        self.check()


@pytest.mark.timeout(1800)  # every change waits for the disk twice, on machines that do other things besides
@by_day_and_night("examples", 6, 400)  # by night 10,000 operations
def test_a_vault_equals_a_plain_store(examples: int) -> None:
    chosen = settings(max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(Replay, settings=chosen)  # type: ignore[no-untyped-call]
