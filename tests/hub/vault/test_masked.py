"""Masked cells at a hub: from an owner's vault to an analyst's answer, with a key holder in between; and what the hub has."""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli import cli
from cloister.crypto import SigningKey, WrongKey
from cloister.hub.database import DatabaseUnavailable
from cloister.hub.generation import bump
from cloister.hub.platform.catalogue import key_of, sweep_masked
from cloister.hub.platform.catalogue.masked import batch_file, masked_in
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.services.vault import keeping
from cloister.together import KeyHolder, KeyHolderAgent, Marginal, MaskedFormat, Sealer, renewed
from cloister.together.messages import pack
from cloister.together.sealed.batches import Batch, withdrawn_by
from cloister.vault.masking import Masked
from tests.hub.house import Clock, House, Visitor, served
from tests.together.wired import running

FORM = MaskedFormat(
    columns={"sex": cl.Category(["F", "M"]), "age": cl.Integer(0, 100)},
    marginals=[Marginal(by=["sex"], sums=["age"])],
    population="patients",
    pad_to=16,
)
OWNER = SigningKey(b"o" * 32)
SPEND, MUCH = 1000, cl.PureDP(10**6)
SQL = "SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM patients GROUP BY sex"


class Story:
    """An owner with a vault and a key holder, and a hub."""

    def __init__(self, house: House, folder: Path, people: tuple[Visitor, Visitor] | None = None) -> None:
        self.house, self.folder = house, folder
        self.owner, self.analyst = people or (house.person("owner"), house.person("analyst", email="ana@example.org"))
        self.holder = KeyHolder("keys", budgets={"patients": MUCH}, owners={"patients": [OWNER.public]})
        store = cl.vault.Vault(f"sqlite:///{folder}/store.db", cl.vault.Keys.generate(folder / "owner.keys"))
        self.people = store.collection("people", {"sex": cl.vault.Equal(), "age": cl.vault.Sum(), "name": cl.vault.Random()})
        self.people.insert_many({"_id": n, "sex": "FM"[n % 2], "age": n, "name": f"canary-{n}"} for n in range(10))
        self.sealer = Sealer(FORM, self.holder.public, owner=OWNER)

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

    def opened(self, **other: str) -> None:
        sent = self.send(self.mask().path)
        assert sent.status_code == 201, sent.text
        made = self.register(sent.json()["upload"], layers=self.people.layers(), **other)
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
    shown = story.analyst.client.get("/datasets/patients").text
    assert "masked cells, which it cannot read" in shown
    assert "trusts the hub to compute with them" not in shown
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
    said = {"verified": {"problems": [], "changes": 7, "epoch": 3}}
    put = story.owner.client.put("/api/v1/masked-datasets/patients/scores", json=said, headers=story.owner.bearer)
    assert put.status_code == 204
    page = story.owner.client.get("/masked/patients").text
    assert "guessed without looking" in page, "what is not said stays"
    assert "everything is as it was written" in page
    said = {"verified": {"problems": ["people: A record is missing"], "changes": 0, "epoch": 3}}
    story.owner.client.put("/api/v1/masked-datasets/patients/scores", json=said, headers=story.owner.bearer)
    assert "A record is missing" in story.owner.client.get("/masked/patients").text
    wrong = story.owner.client.put("/api/v1/masked-datasets/patients/scores", json={}, headers=story.owner.bearer)
    assert wrong.status_code == 422
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
    new = KeyHolder("new keys", budgets={"patients": MUCH}, owners={"patients": [OWNER.public, story.holder.signing.public]})
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


class Exchange:
    """A story in which the key is about to be replaced."""

    def __init__(self, story: Story) -> None:
        self.story = story
        story.opened()
        with story.asking(story.holder) as session:  # which the key holder learns of the batch by
            session.sql(SQL, spend=SPEND)
        owners = {"patients": [OWNER.public, story.holder.signing.public]}
        self.new = KeyHolder("new keys", budgets={"patients": MUCH}, owners=owners)
        differences = renewed(story.holder, self.new.public, story.folder / "differences")
        self.uploads = [story.send(path).json()["upload"] for path in differences]

    def pads(self) -> Any:
        told = {"holder": "new keys", "key": self.new.public.hex(), "uploads": self.uploads}
        client = self.story.house.client(raise_server_exceptions=False)
        return client.post("/api/v1/masked-datasets/patients/pads", json=told, headers=self.story.owner.bearer)

    def versions(self) -> list[bool]:
        """Whether each is destroyed."""
        with self.story.house.hub.database.reading() as db:
            return [each.destroyed is not None for each in db.query(DataSetVersion).order_by(DataSetVersion.number)]


def test_a_batch_that_is_sent_twice_is_here_already(story: Story) -> None:
    story.opened()
    story.people.delete_one({"_id": 9})
    second = story.mask().path
    assert story.send(second).json()["version"] == 2
    again = story.send(second)
    assert again.status_code == 409
    assert "it is here already" in again.text
    assert len(story.files()) == 2


def test_a_batch_that_comes_while_pads_are_exchanged_is_not_undone(story: Story) -> None:
    exchange, real, sent = Exchange(story), keeping.apply_difference, list[int]()
    for number in (1, 3, 5, 7, 9):
        story.people.delete_one({"_id": number})
    batch = story.mask().path

    def slowly(*given: Any) -> Any:
        sent.append(story.send(batch).status_code)
        return real(*given)

    with patch.object(keeping, "apply_difference", slowly):
        refused = exchange.pads()
    assert sent == [201]
    assert (refused.status_code, "another came at the same moment" in refused.text) == (409, True)
    assert exchange.versions() == [False, False]
    story.people.insert_one({"_id": 100, "sex": "F", "age": 1, "name": "late"})
    assert story.send(story.mask().path).status_code == 201


def test_cells_under_a_copied_key_go_in_the_moment_in_which_others_come(story: Story) -> None:
    exchange = Exchange(story)
    with patch.object(keeping, "sweep_masked", side_effect=OSError):
        assert exchange.pads().status_code == 500
    assert exchange.versions() == [True, False]
    with story.asking(exchange.new) as session:
        assert session.sql(SQL, spend=SPEND).to_pydict()["n"] == [5, 5]


def test_an_exchange_that_takes_minutes_loses_no_batch_to_another_owners_upload(story: Story) -> None:
    exchange, real, add = Exchange(story), keeping.apply_difference, keeping.add_masked

    def slowly(batch: Path, difference: Path, out: Path) -> Any:
        made = real(batch, difference, out)
        os.utime(out, (time.time() - 3600, time.time() - 3600))
        return made

    def meanwhile(*given: Any, **more: Any) -> int:
        sweep_masked(story.house.hub)
        return add(*given, **more)

    with patch.object(keeping, "apply_difference", slowly), patch.object(keeping, "add_masked", meanwhile):
        assert exchange.pads().status_code == 200
    with story.asking(exchange.new) as session:
        assert session.sql(SQL, spend=SPEND).to_pydict()["n"] == [5, 5]


def test_a_version_that_cannot_be_read_keeps_nobody_of_another_one_out(story: Story) -> None:
    """Not its key holder, and not the sites, which are looked for at the same address."""
    story.opened()
    with story.house.hub.database.begin() as db:
        db.query(DataSetVersion).one().address = b"damaged"
        bump(db)
    poll = pack("poll", "", "keys", story.holder.signing, at=int(time.time()), roster="", answers="")
    signed = "Cloister " + base64.b64encode(poll).decode()
    assert story.house.client().post("/together/keys", headers={"authorization": signed}).status_code == 403
    unread = {*story.files()}
    for path in unread:
        os.utime(path, (0, 0))
    rows = [{"sex": "F", "age": 20}]
    Sealer(FORM, story.holder.public, owner=OWNER).seal(
        {name: [row[name] for row in rows] for name in rows[0]}, story.folder / "other.masked"
    )
    upload = story.send(story.folder / "other.masked").json()["upload"]
    assert story.register(upload, name="others", population="others").status_code == 201, "registered beside it"
    assert unread <= {*story.files()}, "and nothing of what can't be read today was swept away"
    assert story.owner.client.get("/masked").status_code == 200


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


def test_a_version_whose_commit_was_not_confirmed_keeps_its_cells(story: Story) -> None:
    """The database went away behind its commit: the batch lost its name, and the version that names it was unreadable."""
    story.opened()
    story.people.delete_one({"_id": 1})
    batch, add = story.mask().path, keeping.add_masked

    def unconfirmed(*given: Any) -> int:
        add(*given)
        raise DatabaseUnavailable("The hub's database did not answer", why="it is away", instead="try again")

    with patch.object(keeping, "add_masked", unconfirmed):
        assert story.send(batch).status_code == 503
    with story.asking(story.holder) as session:
        assert session.sql(SQL, spend=SPEND).to_pydict()["n"] == [5, 4]
    _age(story)
    sweep_masked(story.house.hub)
    assert [path.suffix for path in story.files()] == [".masked"] * 2


def test_cells_are_on_the_disk_before_a_version_names_them(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an exchange of pads, too, which destroys the old ones: a power cut left a version without its cells."""
    fsync, add, flushed, missing = os.fsync, keeping.add_masked, set[int](), list[list[str]]()

    def noted(file: int) -> None:
        fsync(file)
        flushed.add(os.fstat(file).st_ino)

    def looks(hub: Any, caller: Any, number: str, masked: Any, *more: Any, **how: Any) -> int:
        named = [batch_file(hub, masked.batches[-1]), hub.settings.path("masked")]
        missing.append([path.name for path in named if path.stat().st_ino not in flushed])
        flushed.clear()
        return add(hub, caller, number, masked, *more, **how)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(keeping, "add_masked", looks)
    story.opened()
    story.people.delete_one({"_id": 1})
    batch = story.mask().path
    flushed.clear()
    assert story.send(batch).json()["version"] == 2
    with patch.object(story, "opened"):
        exchange = Exchange(story)
    flushed.clear()
    assert exchange.pads().json() == {"version": 3}
    assert missing == [[], []]


@pytest.mark.parametrize("withdrawn", [{"0" * 64: ((0, 1),)}, {"": ((0, 99),)}], ids=["of an unknown batch", "beyond its batch"])
def test_a_batch_that_withdraws_what_is_not_there_stops_nobody(story: Story, withdrawn: dict[str, Any], tmp_path: Path) -> None:
    """It is refused; one that an earlier version took is left alone by the sweep, which goes on with the others."""
    story.opened()
    [first] = [Batch(path) for path in story.files()]
    about = {batch or first.head.id: ranges for batch, ranges in withdrawn.items()}
    story.sealer.add({"sex": ["F"], "age": [1]}, tmp_path / "bad.masked", after=first.head.id, withdrawn=about)
    sent = story.send(tmp_path / "bad.masked")
    assert sent.status_code == 422, sent.text
    assert "withdraws rows that no batch before it has" in sent.text
    bad = Batch(tmp_path / "bad.masked")
    shutil.copy(bad.path, story.files()[0].with_name(f"{bad.head.id}.masked"))
    held = masked_in

    def with_it(hub: Any, version: Any) -> Any:
        found = held(hub, version)
        return replace(found, batches=(*found.batches, bad.head.id))

    story.house.clock.move(hours=2)
    with patch("cloister.hub.platform.catalogue.masked.masked_in", with_it):
        sweep_masked(story.house.hub)
    story.house.awake(story.owner)
    story.people.delete_one({"_id": 1})
    assert story.send(story.mask().path).status_code in (200, 201)


def ranges_of(first: Batch, batches: list[Batch]) -> list[tuple[int, int]]:
    """The places of a batch that were withdrawn, in that order."""
    found, last = [], first.head.id
    while follower := next((each.head for each in batches if each.head.after == last), None):
        found += follower.withdrawn[first.head.id]
        last = follower.id
    return found


POLICY = {"purposes": ["research"], "retention": "2099-12-31", "prohibitions": ["synthesise.run"]}


def test_a_policy_travels_with_the_cells_and_binds_hub_and_key_holder(story: Story) -> None:
    """At any hub that the batch is brought to: who analyses, the owner of the data set there, and a hub that lies."""
    strict = replace(FORM, policy=POLICY)
    story.sealer = Sealer(strict, story.holder.public, owner=OWNER)
    story.opened()
    with story.asking(story.holder) as session:
        for purpose in ("", "marketing"):
            with pytest.raises(cl.AccessDenied, match="research"):
                session.sql(SQL, spend=SPEND, purpose=purpose)
        assert session.sql(SQL, spend=SPEND, purpose="research").num_rows == 2
    told = {"policy": {"purposes": ["marketing"]}}
    owner = story.owner
    owner.client.patch("/api/v1/datasets/patients", json=told, headers=owner.bearer)
    with story.house.hub.database.reading() as db:
        [row] = db.query(DataSet).filter(DataSet.name == "patients")
        given = row.metadata_["contribution"]
        assert (given["purposes"], given["prohibitions"]) == (["research"], ["synthesise.run"]), (
            "who owns the data set at this hub can't take it off"
        )
    [batch] = story.files()
    head = Batch(batch).head
    assert strict.refusal("research", date(2099, 12, 31)) == ""
    assert "2099-12-31" in strict.refusal("research", date(2100, 1, 1))
    other = head.data.replace(b'"research"', b'"anything"')
    assert other != head.data
    with pytest.raises(WrongKey):
        story.holder.accept(other)


def test_a_hub_that_states_another_purpose_is_denied_by_the_key_holder(tmp_path: Path) -> None:
    holder = KeyHolder(budgets={"patients": MUCH})
    strict = replace(FORM, policy={"purposes": ["research"]})
    Sealer(strict, holder.public, owner=OWNER).seal({"sex": ["F", "M"], "age": [1, 2]}, tmp_path / "a.masked")
    for purpose, allowed in (("marketing", False), ("", False), ("research", True)):
        table = cl.SealedTable(tmp_path, holder, purpose=purpose)
        with cl.Session({"patients": table}, budget=MUCH) as session:
            if allowed:
                session.sql(SQL, spend=SPEND)
            else:
                with pytest.raises(cl.AccessDenied, match="allows these purposes: research"):
                    session.sql(SQL, spend=SPEND)
    assert holder.spent("patients") == cl.PureDP(SPEND)


def test_a_policy_binds_at_a_second_hub_too(story: Story, tmp_path: Path, empty_hub: Path, clock: Clock) -> None:
    """The same cells at another institution: its hub takes the policy over, its owner can't take it off, one budget counts."""
    story.sealer = Sealer(replace(FORM, policy=POLICY), story.holder.public, owner=OWNER)
    story.opened()
    shutil.copytree(empty_hub, tmp_path / "second")
    house = House(tmp_path / "second", clock)
    try:
        there = copy(story)
        there.house = house
        there.owner, there.analyst = house.person("owner"), house.person("analyst", email="ana@example.org")
        [batch] = (story.folder / "batches").glob("*.masked")
        made = there.register(there.send(batch).json()["upload"])
        assert made.status_code == 201, made.text
        with house.hub.database.reading() as db:
            [row] = db.query(DataSet).filter(DataSet.name == "patients")
        house.grant(row, there.analyst, by=there.owner)
        told = {"policy": {"purposes": ["research", "marketing"], "retention": "2199-01-01"}}
        there.owner.client.patch("/api/v1/datasets/patients", json=told, headers=there.owner.bearer)
        for each in (story, there):
            with each.asking(story.holder) as session:
                for purpose in ("", "marketing"):
                    with pytest.raises(cl.AccessDenied, match="research"):
                        session.sql(SQL, spend=SPEND, purpose=purpose)
                assert session.sql(SQL, spend=SPEND, purpose="research").num_rows == 2
        assert story.holder.spent("patients") == cl.PureDP(2 * SPEND), "one budget at the key holder, whoever asks"
    finally:
        house.close()


def test_what_an_owners_own_tool_found_is_sent_by_it(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    story.opened()
    data = story.folder / "folder"
    run = CliRunner()
    assert run.invoke(cli, ["vault", "init", str(data), "--store", f"sqlite:///{story.folder}/own.db"]).exit_code == 0
    with (data / "vault.toml").open("a") as settings:
        settings.write("[collections.people.fields]\nage = { paillier_sum = [0, 120] }\nnote = { words = 4, pad = 64 }\n")
    report = ["vault", "report", "people", "--data-set", "patients", "--data", str(data)]
    monkeypatch.setenv("CLOISTER_TOKEN", story.owner.token)
    with served(story.house.hub) as address:
        assert "0 scores" in run.invoke(cli, [*report, "--hub", address]).output
        keys = cl.vault.Keys.load(data / "owner.keys")
        with cl.vault.Vault(f"sqlite:///{story.folder}/own.db", keys) as store:
            store["people"].insert_many({"_id": n, "age": n, "note": f"canary {n}"} for n in range(10))
        keys.close()
        sent = run.invoke(cli, [*report, "--hub", address])
        assert "2 fields, 2 scores" in sent.output, (sent.output, sent.exception)
        page = story.owner.client.get("/masked/patients").text
        for said in ("Paillier cells", "word index of 5 entries", "AES-GCM-SIV, 64 bytes", "guessed without looking: 10 %"):
            assert said in page
        assert "everything is as it was written" in page
        assert "canary" not in page
        refused = run.invoke(cli, [*report[:4], "nowhere", *report[5:], "--hub", address])
        assert isinstance(refused.exception, cl.CloisterError)
        assert "no such data set" in str(refused.exception)
    log = json.loads(run.invoke(cli, ["vault", "show", "--data", str(data), "--json"]).output)["log"]
    assert log == []


def test_a_policy_that_is_not_known_is_refused_by_name(story: Story) -> None:
    for wrong in ({"colour": "red"}, {"purposes": "research"}, {"retention": "soon"}, {"purposes": [1]}, ["purposes"]):
        with pytest.raises(cl.InvalidDeclaration, match="policy"):
            replace(FORM, policy=wrong)  # type: ignore[arg-type]
    path = Sealer(replace(FORM, policy={"consent": ["broad"]}), story.holder.public, owner=OWNER)
    path.seal({"sex": ["F"], "age": [1]}, story.folder / "known.masked")
    data = (story.folder / "known.masked").read_bytes()
    sent = story.send(_written(story, data.replace(b'"consent"', b'"consenz"')))
    assert (sent.status_code, "policy" in sent.text) == (422, True), sent.text


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


def test_a_full_disk_is_said_and_leaves_nothing(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(keeping, "run_in_threadpool", full)
    client = story.house.client(raise_server_exceptions=False)
    told = client.post("/api/v1/uploads/masked", content=b"cells", headers=story.owner.bearer)
    assert (told.status_code, told.json()["detail"]) == (502, "the hub's disk is full, or cannot be written to")
    assert story.files() == []
