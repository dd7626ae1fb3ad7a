"""A collection's records in batches of masked cells: asked like a table, each record once, and no more after it is gone."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.learn import GaussianNB
from cloister.noise import Random
from cloister.together import Journal, KeyHolder, Marginal, MaskedFormat, Sealer, apply_difference, renewed
from cloister.together.plan import Plan
from cloister.together.sealed.batches import Batch, pad_sums
from cloister.together.sealed.holder import SealedPlan
from cloister.together.sealed.renewing import MARK
from cloister.vault.errors import Conflict
from cloister.vault.masking import Masked, Masker
from cloister.vault.state import State
from tests.session.test_parts import NONE
from tests.vault.conftest import Place
from tests.vault.test_lifecycle import Killed, killed, killed_after

FIELDS = {"sex": cl.vault.Equal(), "age": cl.vault.Sum(), "note": cl.vault.Random()}
COLUMNS = {"sex": cl.Category(["F", "M"]), "age": cl.Integer(0, 100)}
FORM = MaskedFormat(columns=COLUMNS, marginals=[Marginal(by=["sex"], squares=["age"])], population="patients", pad_to=16)
MUCH = cl.PureDP(10**6 * NONE)


class Uploads:
    """A collection, its batches as the hub has them, and a key holder."""

    def __init__(self, place: Place, form: MaskedFormat = FORM, **how: Any) -> None:
        self.place, self.folder = place, place.folder / "batches"
        self.people = place.store.collection("people", how.pop("fields", FIELDS), **how)
        self.holder = KeyHolder(budgets={"patients": MUCH})
        self.sealer = Sealer(form, self.holder.public)

    def mask(self) -> Masked:
        return self.people.mask(self.sealer, self.folder)

    def asked(self, holder: KeyHolder | None = None, folder: Path | None = None) -> dict[str, list[Any]]:
        with cl.Session({"people": cl.SealedTable(folder or self.folder, holder or self.holder)}, budget=MUCH) as session:
            return session.sql("SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY sex", spend=NONE).to_pydict()


@pytest.fixture
def uploads(place: Place) -> Uploads:
    made = Uploads(place)
    rows = [{"_id": n, "sex": "FM"[n % 2], "age": n, "note": f"canary-{n}"} for n in range(10)]
    made.people.insert_many(rows)
    return made


def test_each_record_counts_once_as_it_is_now(uploads: Uploads) -> None:
    people = uploads.people
    assert (uploads.mask().added, uploads.mask().path) == (10, None)
    assert uploads.asked() == {"sex": ["F", "M"], "n": [5, 5], "s": [20, 25]}
    people.update_one({"_id": 1}, {"$set": {"age": 51}})
    people.update_one({"_id": 2}, {"$set": {"note": "not in the format"}})
    people.delete_one({"_id": 3})
    people.insert_one({"_id": 10, "sex": "F", "age": 100})
    found = uploads.mask()
    assert (found.added, found.withdrawn) == (2, 2)
    assert uploads.asked() == {"sex": ["F", "M"], "n": [6, 4], "s": [120, 72]}
    assert uploads.place.store.rotate()
    assert uploads.mask().path is None, "other ciphertexts of the same values"
    people.delete_many({"sex": "F"})
    found = uploads.mask()
    assert (found.added, found.withdrawn) == (3, 9), "the first batch was more than half empty, and is withdrawn whole"
    uploads.place.restart()
    uploads.people = uploads.place.store.collection("people")
    assert uploads.mask().path is None
    assert uploads.asked() == {"sex": ["F", "M"], "n": [0, 4], "s": [0, 72]}
    with cl.Session({"people": cl.SealedTable(uploads.folder, uploads.holder)}, budget=MUCH) as session:
        model = GaussianNB(epsilon=1).fit_table(session, "people", features=["age"], target="sex", spend=NONE)
        assert model.theta_[1][0] == pytest.approx(18)
        with pytest.raises(cl.UnsupportedQuery, match=r"Marginal\(by=\['age'\]\)"):
            session.sql("SELECT COUNT(*) AS n FROM people WHERE age > 40", spend=1)
    for path in [*uploads.folder.iterdir(), *uploads.place.folder.glob("*.db*")]:
        assert b"canary" not in path.read_bytes()


def plan(rows: dict[str, Any]) -> bytes:
    from cloister.noise import DiscreteLaplace
    from cloister.tables import Aggregation
    from cloister.tables.engines.noised import Cells, Combination, Integers, NoisedRequest

    count = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    request = NoisedRequest(table="people", aggregations=(Aggregation(None),), integers=(count,), cells=Cells())
    return SealedPlan(plan=Plan(request=request.canonical(), token="t"), rows=tuple(rows.items())).text


def test_an_old_row_and_the_one_in_its_place_are_never_in_one_sum(uploads: Uploads) -> None:
    """Whichever batches a hub shows: it must show those before, and so what they withdraw."""
    first, _ = uploads.mask(), uploads.people.update_one({"_id": 1}, {"$set": {"age": 51}})
    second, _ = uploads.mask(), uploads.people.update_one({"_id": 1}, {"$set": {"age": 52}})
    third = uploads.mask()
    heads = [Batch(each.path).head for each in (first, second, third) if each.path]
    other = KeyHolder(budgets={"patients": MUCH}, key=b"1" * 32, journal=_journal(uploads))
    with pytest.raises(cl.UnsupportedQuery, match="not known here"):
        uploads.holder.accept(heads[2].data)
    for each in heads:
        uploads.holder.accept(each.data)
    assert other.public != uploads.holder.public
    [(batch, ((place, after),))] = heads[1].withdrawn.items()
    assert (batch, after) == (heads[0].id, place + 1)
    whole = ((0, heads[0].rows),)
    with pytest.raises(cl.UnsupportedQuery, match="owner withdrew"):
        uploads.holder.agreed(plan({heads[0].id: whole, heads[2].id: ((0, heads[2].rows),)}))
    uploads.holder.agreed(plan({heads[0].id: tuple(r for r in ((0, place), (after, heads[0].rows)) if r[0] < r[1])}))
    forked = Batch(_sealed(uploads, after=heads[0].id))
    with pytest.raises(cl.UnsupportedQuery, match="another batch follows"):
        uploads.holder.accept(forked.head.data)
    with pytest.raises(cl.InvalidDeclaration, match="two follow the same"):
        cl.SealedTable(uploads.folder, uploads.holder)
    forked.path.unlink()
    assert first.path is not None
    first.path.unlink()
    with pytest.raises(cl.InvalidDeclaration, match="missing"):
        cl.SealedTable(uploads.folder, uploads.holder)


def _journal(uploads: Uploads) -> Journal:
    return Journal(uploads.place.folder / "journal")


def _sealed(uploads: Uploads, after: str) -> Path:
    path = uploads.folder / "forked.masked"
    uploads.sealer.add({"sex": ["F"], "age": [1]}, path, after=after)
    return path


def test_a_key_holder_that_starts_again_knows_what_was_withdrawn(uploads: Uploads) -> None:
    holders = [KeyHolder(budgets={"patients": MUCH}, key=b"1" * 32, journal=_journal(uploads)) for _ in range(2)]
    uploads.sealer = Sealer(FORM, holders[0].public)
    uploads.mask()
    uploads.people.delete_one({"_id": 1})
    uploads.mask()
    assert uploads.asked(holders[0])["n"] == [5, 4]
    first = min(uploads.folder.glob("*.masked"))
    with pytest.raises(cl.UnsupportedQuery, match="owner withdrew"):
        holders[1].agreed(plan({Batch(first).head.id: ((0, 16),)}))


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_loses_and_doubles_nothing(uploads: Uploads, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "keep_cells", killed_after(State.keep_cells) if after else killed)
    with pytest.raises(Killed):
        uploads.mask()
    monkeypatch.undo()
    assert not [*uploads.folder.glob("*.masked")]
    assert uploads.mask().added == (0 if after else 10)
    assert uploads.asked()["n"] == [5, 5]
    uploads.people.reader.state.drop_cells(uploads.people.reader.table, uploads.sealer.name)
    with pytest.raises(cl.InvalidParameter, match="batch of this number"):
        uploads.mask()
    assert uploads.people.mask(uploads.sealer, uploads.place.folder / "other", restart=True).added == 10


def test_rows_that_were_sealed_again_or_renewed_twice_are_in_no_sum_twice(uploads: Uploads) -> None:
    """A hub that put both in one sum would have twice of each person for one charge."""
    other, holder = uploads.place.folder / "other", uploads.holder
    paths = [uploads.mask().path]
    with pytest.raises(cl.InvalidParameter, match="batch of this number"):
        uploads.people.mask(uploads.sealer, uploads.folder, restart=True)
    assert uploads.mask().path is None, "what was refused forgot nothing"
    paths.append(uploads.people.mask(uploads.sealer, other, restart=True).path)
    uploads.people.update_one({"_id": 1}, {"$set": {"age": 51}})
    paths.append(uploads.people.mask(uploads.sealer, other).path)
    batches = {holder.accept(each.head.data): each for each in (Batch(path) for path in paths if path)}
    first, again, more = batches
    for one, both in ((first, again), (first, more)):
        holder.agreed(plan({one: ((0, 16),)}))
        with pytest.raises(cl.UnsupportedQuery, match=r"same rows twice|withdrew"):
            holder.agreed(plan({one: ((0, 16),), both: ((0, 16),)}))
    [(_, gone)] = batches[more].head.withdrawn.items()
    made: dict[str, list[str]] = {each: [] for each in batches}
    for written in [renewed(holder, holder.public, uploads.place.folder / each) for each in ("once", "twice")]:
        for difference in written:
            old = difference.read_bytes()[len(MARK) :][:32].hex()
            batch = Batch(difference.with_suffix(".masked"))
            made[old].append(holder.accept(apply_difference(batches[old].path, difference, batch.path).data))
            if old == again:
                opened = batch.sums(0, gone) - pad_sums(holder.key_of(batch.head), FORM, 0, gone)
                assert (np.abs(opened.view(np.int64)) > 2**20).all(), "of what was withdrawn, new keys open nothing"
    holder.agreed(plan({made[first][0]: ((0, 16),)}))
    for one, both in ((first, made[first][0]), made[first], (made[first][0], made[more][1]), (made[more][0], made[more][1])):
        with pytest.raises(cl.UnsupportedQuery, match="same rows twice"):
            holder.agreed(plan({one: ((0, 16),), both: ((0, 16),)}))


def test_of_two_that_mask_at_once_one_goes_on_from_the_other(uploads: Uploads) -> None:
    masker = Masker(uploads.people.reader, FIELDS, None, uploads.sealer, uploads.folder)
    state, table = uploads.people.reader.state, uploads.people.reader.table
    with ThreadPoolExecutor(2) as threads:
        found = [each.result().added for each in [threads.submit(masker.write) for _ in range(2)]]
    assert sorted(found) == [0, 10]
    with pytest.raises(Conflict, match="another process"):
        state.keep_cells(table, uploads.sealer.name, None, {}, [], before=0)
    assert uploads.asked()["n"] == [5, 5]


def test_of_a_person_no_more_rows_count_than_declared_and_forgetting_takes_the_cells(place: Place) -> None:
    fields = {"who": cl.vault.Equal(), "cost": cl.vault.Sum()}
    columns = {"cost": cl.Integer(0, 9)}
    form = MaskedFormat(
        columns=columns, marginals=[Marginal(sums=["cost"])], population="patients", unit="who", max_rows=2, pad_to=8
    )
    uploads = Uploads(place, form, fields=fields, person="who")
    uploads.people.insert_many({"_id": n, "who": "aab"[n % 3], "cost": 1} for n in range(9))

    def counted() -> list[Any]:
        with cl.Session({"people": cl.SealedTable(uploads.folder, uploads.holder)}, budget=MUCH) as session:
            return session.sql("SELECT COUNT(*) AS n, SUM(cost) AS s FROM people", spend=NONE).to_pydict()["n"]

    found = uploads.mask()
    assert (found.added, found.waiting, counted()) == (4, 5, [4])
    sealed = uploads.people.reader.state.cells(uploads.people.reader.table, uploads.sealer.name)
    one = next(iter(sealed))
    row = uploads.people.reader.known([one])[0][0]
    identity = uploads.people._sealer.opened(row)["_id"]
    uploads.people.update_one({"_id": identity}, {"$set": {"cost": 2}})
    found = uploads.mask()
    assert (found.added, found.withdrawn, counted()) == (1, 1, [4])
    place.store.forget("a")
    uploads.mask()
    heads = [Batch(path).head for path in sorted(uploads.folder.glob("*.masked"))]
    gone = heads[2].withdrawn
    assert counted() == [2]
    for path, head in zip(sorted(uploads.folder.glob("*.masked")), heads, strict=True):
        Batch(path).erase(gone.get(head.id, ()))
        assert not Batch(path).sums(0, gone.get(head.id, ())).any()
    assert counted() == [2]
    other = MaskedFormat(columns=columns, marginals=[Marginal(sums=["cost"])], population="patients")
    with pytest.raises(cl.InvalidDeclaration, match="unit='who'"):
        uploads.people.mask(Sealer(other, uploads.holder.public), uploads.folder)
    unknown = MaskedFormat(columns={"pay": cl.Integer(0, 9)}, marginals=[Marginal(sums=["pay"])], population="patients")
    with pytest.raises(cl.UnknownColumn, match="'pay'"):
        uploads.people.mask(Sealer(unknown, uploads.holder.public), uploads.folder)


def test_after_a_key_was_copied_new_pads_go_over_the_same_cells(uploads: Uploads) -> None:
    uploads.mask()
    uploads.people.update_one({"_id": 1}, {"$set": {"age": 51}})
    uploads.mask()
    expected = uploads.asked()
    new = KeyHolder(budgets={"patients": MUCH}, random=Random.deterministic(4))
    differences = renewed(uploads.holder, new.public, uploads.place.folder / "differences")
    batches, out = sorted(uploads.folder.glob("*.masked")), uploads.place.folder / "renewed"
    out.mkdir()
    with pytest.raises(cl.InvalidDeclaration, match="not that of this batch"):
        apply_difference(batches[1], differences[0], out / "x.masked")
    for batch, difference in zip(batches, differences, strict=True):
        apply_difference(batch, difference, out / batch.name)
    budget = cl.PureDP(10 * NONE)
    with cl.Session({"people": cl.SealedTable(out, new)}, budget=budget) as session:
        again = session.sql("SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY sex", spend=NONE).to_pydict()
    assert again == expected
    before, after = Batch(batches[0]), Batch(out / batches[0].name)
    whole = ((0, 16),)
    old_key = uploads.holder.key_of(before.head)
    opened = [each.sums(0, whole) - pad_sums(old_key, FORM, 0, whole) for each in (before, after)]
    assert opened[0][0] == 5
    assert (np.abs(opened[1].view(np.int64)) > 2**20).all(), "of 12 uniform words of 64 bits, none is small but once in 10¹²"
    with pytest.raises(cl.UnsupportedQuery, match="not known here"):
        new.agreed(plan({before.head.id: whole}))
    with pytest.raises(cl.AccessDenied, match="renewed for another key holder"):
        uploads.asked()  # with the old cells and the old key holder: a second budget for the same rows
    shorter = differences[0].read_bytes()[:-8]
    differences[0].write_bytes(shorter)
    with pytest.raises(cl.InvalidDeclaration, match="not whole"):
        apply_difference(batches[0], differences[0], out / "x.masked")


def test_the_state_has_no_value_of_a_cell(uploads: Uploads) -> None:
    uploads.mask()
    state = uploads.place.keys_file.with_name("owner.keys.state")
    with sqlite3.connect(state) as connection:
        assert connection.execute("SELECT count(*) FROM cells").fetchone() == (10,)
    connection.close()
    assert b"canary" not in state.read_bytes()
