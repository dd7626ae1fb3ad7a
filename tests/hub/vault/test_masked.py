"""Masked cells at a hub: from an owner's vault to an analyst's answer, with a key holder in between; and what the hub has."""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.hub.generation import bump
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.services.catalogue import key_of, sweep_masked
from cloister.together import KeyHolder, KeyHolderAgent, Marginal, MaskedFormat, Sealer, renewed
from cloister.together.messages import pack
from cloister.together.sealed.batches import Batch, withdrawn_by
from cloister.vault.masking import Masked
from tests.hub.house import House, Visitor, served
from tests.together.wired import running

FORM = MaskedFormat(
    columns={"sex": cl.Category(["F", "M"]), "age": cl.Integer(0, 100)},
    marginals=[Marginal(by=["sex"], sums=["age"])],
    population="patients",
    pad_to=16,
)
SPEND, MUCH = 1000, cl.PureDP(10**6)
SQL = "SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM patients GROUP BY sex"


class Story:
    """An owner with a vault and a key holder, and a hub."""

    def __init__(self, house: House, folder: Path) -> None:
        self.house, self.folder = house, folder
        self.owner, self.analyst = house.person("owner"), house.person("analyst", email="ana@example.org")
        self.holder = KeyHolder("keys", budgets={"patients": MUCH})
        store = cl.vault.Vault(f"sqlite:///{folder}/store.db", cl.vault.Keys.generate(folder / "owner.keys"))
        self.people = store.collection("people", {"sex": cl.vault.Equal(), "age": cl.vault.Sum(), "name": cl.vault.Random()})
        self.people.insert_many({"_id": n, "sex": "FM"[n % 2], "age": n, "name": f"canary-{n}"} for n in range(10))
        self.sealer = Sealer(FORM, self.holder.public)

    def mask(self) -> Masked:
        return self.people.mask(self.sealer, self.folder / "batches")

    def send(self, path: Path | None, who: Visitor | None = None) -> Any:
        assert path is not None
        sender = who or self.owner
        return sender.client.post("/api/v1/uploads/masked", content=path.read_bytes(), headers=sender.bearer)

    def register(self, upload: str, **other: Any) -> Any:
        told = {"upload": upload, "name": "patients", "title": "Patients", "reason": "the law", "population": "patients"}
        told |= {"holder": "keys", "key": self.holder.public.hex(), "epsilon": "1000000", **other}
        return self.owner.client.post("/api/v1/masked-datasets", json=told, headers=self.owner.bearer)

    def opened(self) -> None:
        sent = self.send(self.mask().path)
        assert sent.status_code == 201, sent.text
        made = self.register(sent.json()["upload"], layers=self.people.layers())
        assert made.status_code == 201, made.text
        with self.house.hub.database.reading() as db:
            [row] = db.query(DataSet).filter(DataSet.name == "patients")
        self.house.grant(row, self.analyst, by=self.owner)

    @contextmanager
    def asking(self, holder: KeyHolder) -> Iterator[cl.client.RemoteSession]:
        with (
            served(self.house.hub) as address,
            running([KeyHolderAgent(holder, key_of(self.house.hub).public)], address),
            cl.connect(address, token=self.analyst.token) as session,
        ):
            yield session

    def files(self) -> list[Path]:
        return sorted(self.house.settings.path("masked").iterdir())


@pytest.fixture
def story(house: House, tmp_path: Path) -> Story:
    return Story(house, tmp_path)


def test_from_a_vault_to_an_answer_and_on(story: Story) -> None:
    story.opened()
    with story.asking(story.holder) as session:
        first = session.sql(SQL, spend=SPEND, purpose="quality report").to_pydict()
        assert first == {"sex": ["F", "M"], "n": [5, 5], "s": [20, 25]}
        assert story.holder.spent("patients") == cl.PureDP(SPEND)
        [charge] = story.holder.ledger.charges("patients")
        assert charge.purpose == "quality report"
        story.people.delete_one({"_id": 9})
        sent = story.send(story.mask().path)
        assert (sent.json()["data_set"], sent.json()["version"]) == ("patients", 2)
        assert session.sql(SQL, spend=SPEND).to_pydict() == {"sex": ["F", "M"], "n": [5, 4], "s": [20, 16]}
        with pytest.raises(cl.UnsupportedQuery, match=r"Marginal\(by=\['age'\]\)"):
            session.sql("SELECT COUNT(*) AS n FROM patients WHERE age > 40", spend=1)
        with pytest.raises(cl.CloisterError, match="not supported"):
            session.sql("SELECT MAX(t.n) AS m FROM (SELECT age * 2 AS n FROM patients) t", spend=1)
    for path in ("/masked", "/masked/patients", "/datasets/patients", "/datasets/patients/manage"):
        page = story.owner.client.get(path)
        assert page.status_code == 200, path
        assert "canary" not in page.text
    detail = story.owner.client.get("/masked/patients").text
    assert "AES-GCM-SIV" in detail
    assert re.search(r"[0-9a-f]{16} [0-9a-f]{16}", detail)
    said = {"scores": {"age": "10 cells; guessed without looking: 10 %"}}
    kept = story.owner.client.put("/api/v1/masked-datasets/patients/scores", json=said, headers=story.owner.bearer)
    assert kept.status_code == 204
    assert "guessed without looking" in story.owner.client.get("/masked/patients").text
    assert "guessed without" not in story.analyst.client.get("/datasets/patients").text
    other = story.house.person("owner", email="other@example.org")
    assert other.client.get("/masked/patients").status_code == 404
    assert not other.client.get("/api/v1/masked-datasets", headers=other.bearer).json()["items"]
    listed = story.owner.client.get("/api/v1/masked-datasets", headers=story.owner.bearer).json()["items"]
    assert [(each["batches"], each["rows"]) for each in listed] == [(2, 31)]
    for path in story.house.settings.data.rglob("*"):
        assert not path.is_file() or b"canary" not in path.read_bytes(), path


def test_after_a_key_was_copied_the_hub_masks_anew_and_destroys_the_old_cells(story: Story) -> None:
    story.opened()
    with story.asking(story.holder) as session:
        expected = session.sql(SQL, spend=SPEND).to_pydict()
    old = story.files()
    new = KeyHolder("new keys", budgets={"patients": MUCH})
    differences = renewed(story.holder, new.public, story.folder / "differences")
    uploads = [story.send(path).json()["upload"] for path in differences]
    told = {"holder": "new keys", "key": new.public.hex(), "uploads": uploads}
    path = "/api/v1/masked-datasets/patients/pads"
    assert story.owner.client.post(path, json=told | {"uploads": []}, headers=story.owner.bearer).status_code == 422
    made = story.owner.client.post(path, json=told, headers=story.owner.bearer)
    assert (made.status_code, made.json()) == (200, {"version": 2})
    with story.asking(new) as session:
        assert session.sql(SQL, spend=SPEND, fresh=True).to_pydict() == expected
        assert new.spent("patients") == cl.PureDP(SPEND)
    _age(story)
    assert story.send(differences[0]).status_code == 201  # anything that is uploaded sweeps
    assert not {*old} & {*story.files()}


def _age(story: Story) -> None:
    for path in story.files():
        os.utime(path, (0, 0))


def test_a_version_that_cannot_be_read_keeps_nobody_of_another_one_out(story: Story) -> None:
    """Not its key holder, and not the sites, which are looked for at the same address."""
    story.opened()
    with story.house.hub.database.begin() as db:
        db.query(DataSetVersion).one().address = b"damaged"
        bump(db)
    poll = pack("poll", "", "keys", story.holder.signing, at=int(time.time()), roster="", answers="")
    signed = "Cloister " + base64.b64encode(poll).decode()
    assert story.house.client().post("/together/keys", headers={"authorization": signed}).status_code == 403


def test_what_is_withdrawn_is_overwritten_once_nobody_reads_it(story: Story) -> None:
    story.opened()
    with story.asking(story.holder) as session:
        for number in range(3):
            story.people.delete_one({"_id": number})
            assert story.send(story.mask().path).json()["version"] == number + 2
            story.house.clock.move(hours=2)
            story.house.awake(story.owner)
        assert session.sql(SQL, spend=SPEND).to_pydict() == {"sex": ["F", "M"], "n": [3, 4], "s": [18, 24]}
    batches = [Batch(path) for path in story.files()]
    gone = withdrawn_by([each.head for each in batches])
    first = next(each for each in batches if not each.head.after)
    assert [bool(first.sums(0, (one,)).any()) for one in ranges_of(first, batches)] == [False, False, True]
    assert sum(after - before for before, after in gone[first.head.id]) == 3
    story.house.clock.move(hours=2)
    sweep_masked(story.house.hub)
    assert not first.sums(0, gone[first.head.id]).any(), "also of the last batch, though none comes after it"


def ranges_of(first: Batch, batches: list[Batch]) -> list[tuple[int, int]]:
    """The places of a batch that were withdrawn, in that order."""
    found, last = [], first.head.id
    while follower := next((each.head for each in batches if each.head.after == last), None):
        found += follower.withdrawn[first.head.id]
        last = follower.id
    return found


WRONG = [
    ({"upload": "nowhere"}, 404, "no such upload"),
    ({"key": "00"}, 422, "128 digits"),
    ({"holder": "a/b"}, 422, "slash"),
    ({"reason": ""}, 422, "reason is missing"),
    ({"epsilon": ""}, 422, "budget"),
    ({"layers": {"a\x1b": ["b"]}}, 422, "layers"),
]


def test_what_is_wrong_is_said(story: Story) -> None:
    assert story.send(_written(story, b"no batch")).status_code == 422
    first = story.mask()
    upload = story.send(first.path).json()["upload"]
    assert story.owner.client.get("/masked").text.count(f'value="{upload}"') == 1
    for change, status, why in WRONG:
        given: dict[str, Any] = {"upload": upload, **change}
        found = story.register(given.pop("upload"), **given)
        assert (found.status_code, why in found.text) == (status, True), found.text
    assert story.register(upload).status_code == 201
    assert story.register(upload).status_code == 404
    again = story.send(first.path).json()["upload"]
    assert story.register(again, name="others", population="others").status_code == 409
    story.people.delete_one({"_id": 1})
    second = story.mask()
    story.people.delete_one({"_id": 3})
    third = story.mask()
    assert story.send(third.path).status_code == 409
    stranger = story.house.person("owner", email="stranger@example.org")
    assert story.send(second.path, stranger).status_code == 409
    assert story.send(second.path).json()["version"] == 2
    assert story.analyst.client.post("/api/v1/uploads/masked", content=b"", headers=story.analyst.bearer).status_code == 403


def _written(story: Story, text: bytes) -> Path:
    path = story.folder / "wrong"
    path.write_bytes(text)
    return path
