"""Replacing the owner's key: killed at any write nothing is lost, and afterwards the old key reads nothing that is written."""

from __future__ import annotations

import hmac
import operator
import os
import shutil
import sqlite3
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli import cli
from cloister.crypto import Keyring, RandomizedCipher, WrongKey, canonical_json
from cloister.vault import Equal, Keys, Random, Tampered, Vault, Words
from cloister.vault import keys as module
from cloister.vault.database import Database
from cloister.vault.keys import DOMAIN
from cloister.vault.merkle import EMPTY
from tests.tiers import by_day_and_night

FIELDS = {"patient": Equal(), "note": Words(4)}
VISITS = [{"_id": n, "patient": f"p{n % 2}", "note": f"canary {n}"} for n in range(3)]
TOWNS = [{"_id": 1, "name": "canary-Basel"}]
LATER = {"_id": 99, "patient": "p1", "note": "canary later"}


class Killed(Exception):
    """The process ends here."""


class Writes:
    """Counts what is written, and ends the process before one of these."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int) -> None:
        self.done, self.at = 0, at
        for owner, name in ((Database, "run"), (Database, "run_many"), (module, "make_key_file"), (Path, "replace")):
            patch.setattr(owner, name, self.counted(getattr(owner, name)))

    def counted(self, act: Any) -> Any:
        def acting(*given: Any, **named: Any) -> Any:
            self.done += 1
            if self.done >= self.at:
                raise Killed
            return act(*given, **named)

        return acting


def store_of(folder: Path) -> str:
    return f"sqlite:///{folder}/sealed.db"


def filled(folder: Path) -> Path:
    """A folder with two collections, one of them about people, and a copy of its keys and state beside: the thief's."""
    folder.mkdir()
    keys = Keys.generate(folder / "owner.keys")
    with Vault(store_of(folder), keys) as store:
        store.collection("visits", FIELDS, person="patient").insert_many(map(dict, VISITS))
        store.collection("towns", {"name": Random()}).insert_many(map(dict, TOWNS))
    keys.close()
    thief = folder / "thief"
    thief.mkdir()
    for name in ("owner.keys", "owner.keys.state"):
        shutil.copy(folder / name, thief / name)
    return folder


def replaced(folder: Path) -> None:
    keys = Keys.replace(folder / "owner.keys")
    try:
        with Vault(store_of(folder), keys) as store:
            assert store.rotate()
    finally:
        keys.close()


def check(folder: Path, more: int = 0) -> None:
    """Everything is there, found by its words, and as it was written."""
    keys = Keys.load(folder / "owner.keys")
    with Vault(store_of(folder), keys) as store:
        visits = store.collection("visits", FIELDS, person="patient")
        assert sorted(visits.find(), key=operator.itemgetter("_id"))[:3] == VISITS
        assert visits.count_documents({}) == 3 + more
        assert {each["_id"] for each in visits.find({"patient": "p0"})} == {0, 2}
        assert store.collection("towns").find() == TOWNS
        assert store.verify()
    keys.close()


def old_master(folder: Path) -> Keyring:
    return Keyring(bytes.fromhex((folder / "thief" / "owner.keys").read_text(encoding="ascii").strip()), domain=DOMAIN)


def secrets_of(path: Path) -> list[bytes]:
    """Every binary value of a database."""
    with sqlite3.connect(path) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = [each for name in tables for row in connection.execute(f'SELECT * FROM "{name}"') for each in row]
    connection.close()
    return [each for each in found if isinstance(each, bytes)]


def opens(act: Any, blob: bytes, about: Any) -> bool:
    with suppress(WrongKey):
        return bool(act(blob, about)) or True
    return False


def check_thief(folder: Path) -> None:
    """Who has the old key and the state of then, and from now on the store and even the new state, opens nothing new: no key,
    no declaration; and a vault of the old key is refused, as is one that is made again from the store."""
    old, keys = old_master(folder), Keys.load(folder / "owner.keys")
    with Vault(store_of(folder), keys) as store:
        store.collection("visits", FIELDS, person="patient").insert_one(dict(LATER))
        store.collection("plans", {"canary": Random()}).insert_one({"_id": 1, "canary": "x"})
        inside, tables = store._keys, [store._keys.name("collection", each) for each in store.collections()]
        now, people = inside.epoch, [row[0] for row in inside.state.database.rows("SELECT pseudonym FROM people")]
    abouts = [canonical_json([kind, inside.id, now]) for kind in ("epoch", "index")]
    abouts += [canonical_json(["person", each.hex()]) for each in people]
    keys.close()
    blobs = secrets_of(folder / "sealed.db") + secrets_of(folder / "owner.keys.state")
    fixed = Keyring(old.derive(canonical_json(["data set", "default"])), domain=DOMAIN)
    ciphers = [(RandomizedCipher(fixed.derive(canonical_json(["declaration", each]))), each.encode()) for each in tables]
    assert not any(opens(old.unwrap, blob, about) for blob in blobs for about in abouts)
    assert not any(opens(cipher.decrypt, blob, bound) for blob in blobs for cipher, bound in ciphers)
    assert len(blobs) > 20
    for act in (Vault, Vault.restore):
        copy = folder / f"copy of {act.__name__}"
        shutil.copytree(folder / "thief", copy)
        stolen = Keys.load(copy / "owner.keys")
        shutil.copy(folder / "sealed.db", copy / "sealed.db")
        with pytest.raises(cl.CloisterError), act(store_of(copy), stolen) as store:
            store["visits"].find()
        stolen.close()


@by_day_and_night("apart", 3, 1)
def test_killed_at_any_write_nothing_is_lost_and_the_same_again_ends_it(tmp_path: Path, apart: int) -> None:
    """By day at every third."""
    first = filled(tmp_path / "first")
    killed = 0
    for at in count(1, apart):
        folder = tmp_path / str(at)
        shutil.copytree(first, folder)
        with pytest.MonkeyPatch.context() as patch:
            Writes(patch, at)
            try:
                replaced(folder)
            except Killed:
                killed += 1
            else:
                break
        check(folder)
        replaced(folder)
        check(folder)
        text = (folder / "owner.keys").read_text(encoding="ascii")
        assert "before" not in text
        assert not list(folder.glob("owner.keys.new"))
        check_thief(folder)
        check(folder, more=1)
        shutil.rmtree(folder)
    assert killed > 30 // apart


def test_one_data_set_that_is_left_keeps_the_old_key(tmp_path: Path) -> None:
    """Two stores of one owner: the key before is forgotten with the last of them."""
    folder, other = filled(tmp_path / "first"), f"sqlite:///{tmp_path}/other.db"
    keys = Keys.load(folder / "owner.keys")
    with Vault(other, keys, data_set="other") as store:
        store.collection("towns", {"name": Random()}).insert_many(map(dict, TOWNS))
    keys.close()
    replaced(folder)
    assert "before" in (folder / "owner.keys").read_text(encoding="ascii")
    check(folder)
    keys = Keys.replace(folder / "owner.keys")
    with Vault(other, keys, data_set="other") as store:
        assert store["towns"].find() == TOWNS
        assert store.rotate()
        assert not keys.replacing
        assert store["towns"].find() == TOWNS
    keys.close()
    assert "before" not in (folder / "owner.keys").read_text(encoding="ascii")
    check(folder)
    check_thief(folder)


def test_a_rotation_that_had_begun_is_not_taken_for_one_under_the_new_key(tmp_path: Path) -> None:
    folder = filled(tmp_path / "first")
    keys = Keys.load(folder / "owner.keys")
    with Vault(store_of(folder), keys) as store:
        assert not store.rotate(batches=0)
    keys.close()
    replaced(folder)
    check(folder)
    check_thief(folder)


def test_it_is_replaced_again_and_restored_from_the_store_alone(tmp_path: Path) -> None:
    folder = filled(tmp_path / "first")
    texts = []
    for _ in range(2):
        replaced(folder)
        texts.append((folder / "owner.keys").read_text(encoding="ascii").splitlines())
        check(folder)
    assert texts[0][0] != texts[1][0]
    assert texts[0][1] == texts[1][1], "names follow from the first"
    keys = Keys.load(folder / "owner.keys")
    keys.backup(folder / "copy.keys")
    keys.close()
    for name in folder.glob("owner.keys.state*"):
        name.unlink()
    keys = Keys.load(folder / "owner.keys")
    with Vault.restore(store_of(folder), keys, delete_people=True) as store:
        assert store["towns"].find() == TOWNS
    keys.close()
    for wrong in ("before", "names 00", "other " + "0" * 64, "names"):
        (folder / "wrong.keys").write_text(f"{texts[0][0]}\n{wrong}\n", encoding="ascii")
        with pytest.raises(cl.InvalidParameter, match="could not be read"):
            Keys.load(folder / "wrong.keys")


def test_who_has_the_old_key_makes_no_collection_that_a_restoration_takes(tmp_path: Path) -> None:
    """The store leaves a record out, and signs what is left as the thief can: the old key's, over the right root."""
    folder = filled(tmp_path / "first")
    replaced(folder)
    keys = Keys.load(folder / "owner.keys")
    with Vault(store_of(folder), keys) as store:
        table = store._keys.name("collection", "towns")
    keys.close()
    fixed = Keyring(old_master(folder).derive(canonical_json(["data set", "default"])), domain=DOMAIN)
    mac = hmac.digest(fixed.derive(canonical_json(["mark", table])), (99).to_bytes(8, "big") + EMPTY, "sha256")
    with sqlite3.connect(folder / "sealed.db") as connection:
        connection.execute(f'DELETE FROM "r_{table}"')
        connection.execute("UPDATE collections SET counter = 99, root = ?, mac = ? WHERE name = ?", [EMPTY, mac, table])
    connection.close()
    for path in folder.glob("owner.keys.state*"):
        path.unlink()
    keys = Keys.load(folder / "owner.keys")
    with pytest.raises(Tampered, match="not written by this owner"):
        Vault.restore(store_of(folder), keys)
    keys.close()


def test_a_collection_that_the_store_made_up_keeps_nobody_from_replacing(tmp_path: Path) -> None:
    folder = filled(tmp_path / "first")
    with sqlite3.connect(folder / "sealed.db") as connection:
        row = "SELECT 'aa', data_set, counter, root, mac, sealed FROM collections LIMIT 1"
        connection.execute(f"INSERT INTO collections {row}")
    connection.close()
    replaced(folder)
    assert "before" not in (folder / "owner.keys").read_text(encoding="ascii")


def test_the_command_replaces_the_key_while_no_proxy_runs(tmp_path: Path) -> None:
    from cloister.cli.vault import alone_at

    def said(*words: str) -> str:
        found = CliRunner().invoke(cli, ["vault", *words, "--data", str(tmp_path / "owner")])
        return found.output + str(found.exception or "")

    CliRunner().invoke(cli, ["vault", "init", str(tmp_path / "owner"), "--store", f"sqlite:///{tmp_path}/sealed.db"])
    before = (tmp_path / "owner" / "owner.keys").read_text(encoding="ascii")
    with alone_at(tmp_path / "owner"):
        assert "runs the one in owner already" in said("rotate", "--owner")
    assert (tmp_path / "owner" / "owner.keys").read_text(encoding="ascii") == before
    found = said("rotate", "--owner")
    after = (tmp_path / "owner" / "owner.keys").read_text(encoding="ascii")
    assert after.splitlines()[1] == f"names {before.strip()}"
    with suppress(StopIteration):
        owner = next(line for line in found.splitlines() if len(line.split(" ")[0]) == 64).split(" ")[0]
    assert f"owner {owner}" in said("show")
    assert "every record" in said("verify")


@pytest.mark.parametrize("turn", [1, 2])
def test_a_folder_whose_making_was_killed_is_made_by_the_same_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: int
) -> None:
    turns, link = count(1), os.link

    def dies(*how: Any) -> None:
        link(*how)
        if next(turns) == turn:
            raise RuntimeError

    command = ["vault", "init", str(tmp_path / "owner"), "--store", f"sqlite:///{tmp_path}/sealed.db"]
    with monkeypatch.context() as once:
        once.setattr(os, "link", dies)
        assert type(CliRunner().invoke(cli, command).exception) is RuntimeError
    CliRunner().invoke(cli, command)
    shown = CliRunner().invoke(cli, ["vault", "show", "--data", str(tmp_path / "owner")])
    assert shown.exit_code == 0, shown.exception
    assert CliRunner().invoke(cli, command).exit_code, "the keys that are there stay"
