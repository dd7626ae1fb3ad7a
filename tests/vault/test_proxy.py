"""`cloister vault`: a folder of keys, the proxy as a process over a store that it does not trust, and its page."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

import cloister as cl
from cloister.cli import cli
from cloister.together import KeyHolder

DECLARED = """
[vault]
store = "sqlite:///{folder}/store/sealed.db"

[collections.people.fields]
name = {{}}
born = {{}}
town = {{ equal = true }}
age = {{ range = [0, 120], sum = true }}

[collections.people.masked]
key_holder = "{holder}"
population = "patients"
columns = {{ age = {{ kind = "integer", low = 0, high = 120 }} }}
marginals = [{{ sums = ["age"] }}]
"""


def said(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(cli, ["vault", *arguments])
    assert found.exit_code == code, (found.output, found.exception)
    return found.output


class Served:
    """A vault's folder, its proxy as a process, and what it printed."""

    def __init__(self, folder: Path, holder: KeyHolder) -> None:
        (folder / "store").mkdir()
        self.folder, self.data = folder, str(folder / "owner")
        said("init", self.data, "--store", f"sqlite:///{folder}/store/sealed.db")
        text = DECLARED.format(folder=folder, holder=holder.public.hex())
        (folder / "owner" / "vault.toml").write_text(text)
        self.token = json.loads(said("show", "--data", self.data, "--json"))["token"]
        command = [sys.executable, "-m", "cloister", "vault", "proxy", "--data", self.data, "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.address, self.page = (self.process.stdout.readline().split()[-1] for _ in range(2))

    def people(self) -> Any:
        return cl.vault.connect(self.address, token=self.token).collection("people")

    def stop(self) -> str:
        self.process.terminate()
        out, err = self.process.communicate(timeout=60)
        return out + err


@pytest.fixture(scope="module")
def holder() -> KeyHolder:
    return KeyHolder(budgets={"patients": cl.PureDP(10**6)})


@pytest.fixture
def proxy(tmp_path: Path, holder: KeyHolder) -> Iterator[Served]:
    made = Served(tmp_path, holder)
    yield made
    made.process.kill()
    made.process.communicate()


def test_programs_speak_documents_and_the_store_sees_none(proxy: Served, holder: KeyHolder) -> None:
    people = proxy.people()
    rows = [
        {"_id": 1, "name": "canary-Ada", "town": "canary-Basel", "age": 39, "born": date(1987, 5, 1)},
        {"_id": 2, "name": "canary-Bo", "town": "canary-Bern", "age": 52},
    ]
    assert people.insert_many(rows)["inserted_ids"] == [1, 2]
    assert people.find({"town": "canary-Basel"}) == rows[:1]
    assert people.find({"age": {"$gte": 40}}, ["name"]) == [{"_id": 2, "name": "canary-Bo"}]
    assert people.update_one({"_id": 2}, {"$inc": {"age": 1}}) == {"matched_count": 1, "modified_count": 1}
    assert people.aggregate([{"$group": {"_id": None, "age": {"$sum": "$age"}}}]) == [{"_id": None, "age": 92}]
    assert people.count_documents({}) == 2
    assert "1 word of 'town'" in people.explain({"town": "canary-Bern"})
    assert people.layers()["name"] == ["AES-GCM-SIV"]
    for act, kind in (
        (lambda: people.find({"name": {"$gt": ""}}), cl.UnsupportedQuery),
        (lambda: people.find({"name": {"$ne": "canary-x"}}), cl.UnsupportedQuery),
        (lambda: people.insert_one({"_id": 1}), cl.vault.DuplicateKey),
        (lambda: people.insert_one({"canary-unknown": 1}), cl.UnknownColumn),
        (lambda: people.insert_one(), cl.InvalidParameter),
        (lambda: people.insert_one({"name": {"$gt": "canary"}}), cl.InvalidParameter),
    ):
        with pytest.raises(kind) as caught:
            act()
        assert "canary" not in str(caught.value)
    with pytest.raises(cl.AccessDenied):
        cl.vault.connect(proxy.address, token="0" * 64).collection("people").find()
    with pytest.raises(AttributeError):
        people.leakage("age")
    with pytest.raises(cl.InvalidParameter, match="TLS"):
        cl.vault.connect("http://db.example.org", token="x")
    assert not cl.vault.connect("http://127.0.0.1:8766", token="x")._client.trust_env, "HTTP_PROXY would see documents"
    shown = httpx.get(proxy.page).text
    assert "canary-Ada" in shown
    body = sqlite3.connect(proxy.folder / "store" / "sealed.db").execute("SELECT name FROM sqlite_master").fetchall()
    table = next(name for (name,) in body if name.startswith("r_"))[2:]
    assert table in shown
    assert httpx.get(re.sub(r"/[0-9a-f]{64}$", "/" + "0" * 64, proxy.page)).status_code == 401
    assert httpx.get(proxy.page, headers={"host": "evil.example.org:80"}).status_code == 401
    assert (
        httpx.post(f"{proxy.address}/collections/people/drop", headers={"authorization": f"Bearer {proxy.token}"}).status_code
        == 400
    )
    printed = proxy.stop()
    said("mask", "people", "--data", proxy.data, "--out", str(proxy.folder / "batches"))
    for path in proxy.folder.rglob("*"):
        assert not path.is_file() or b"canary" not in path.read_bytes(), path
    assert "canary" not in printed
    with cl.Session({"p": cl.SealedTable(proxy.folder / "batches", holder)}, budget=cl.PureDP(10**6)) as session:
        assert session.sql("SELECT SUM(age) AS s FROM p", spend=10**5).to_pydict() == {"s": [92]}


def test_what_the_store_altered_is_refused_and_written_down(proxy: Served) -> None:
    people = proxy.people()
    people.insert_many([{"_id": n, "town": "canary-Basel", "age": n} for n in range(3)])
    with sqlite3.connect(proxy.folder / "store" / "sealed.db") as operator:
        table = next(name for (name,) in operator.execute("SELECT name FROM sqlite_master") if name.startswith("r_"))
        operator.execute(f'DELETE FROM "{table}" WHERE handle = (SELECT min(handle) FROM "{table}")')
    operator.close()
    with pytest.raises(cl.vault.Tampered, match="missing"):
        people.find({"town": "canary-Basel"})
    proxy.stop()
    assert "A record is missing" in said("verify", "--data", proxy.data, code=1)
    log = json.loads(said("show", "--data", proxy.data, "--json"))["log"]
    assert [each["event"] for each in log] == ["alert", "alert"]
    assert "canary" not in json.dumps(log)


def test_what_an_owner_does_with_a_folder(tmp_path: Path, holder: KeyHolder) -> None:
    (tmp_path / "store").mkdir()
    data = str(tmp_path / "owner")
    said("init", data, "--store", f"sqlite:///{tmp_path}/store/sealed.db")
    text = DECLARED.format(folder=tmp_path, holder=holder.public.hex()).replace(
        "[collections.people.fields]", "[collections.people]"
    )
    text = text.replace("name = {}", 'person = "name"\n[collections.people.fields]\nname = {}')
    (tmp_path / "owner" / "vault.toml").write_text(text)
    keys = cl.vault.Keys.load(tmp_path / "owner" / "owner.keys")
    said("rotate", "--data", data)
    people = cl.vault.Vault(f"sqlite:///{tmp_path}/store/sealed.db", keys).collection("people")
    people.insert_many([{"_id": n, "name": "ab"[n % 2], "town": "x", "age": n} for n in range(4)])
    said("backup", str(tmp_path / "monday.keys"), "--data", data)
    assert "2 records" in said("forget", "a", "--data", data)
    assert "every record" in said("verify", "--data", data)
    assert "frequency" in said("score", "people", "town", "--equal", "--data", data)
    assert "access pattern" in said("score", "people", "age", "--data", data)
    assert "bytes a row" in said("mask", "people", "--data", data, "--out", str(tmp_path / "b"), "--dry-run")
    keys.close()
    for path in (tmp_path / "owner").glob("*.state*"):
        path.unlink()
    assert "1 collections" in said("restore", "--data", data)
    events = [each["event"] for each in json.loads(said("show", "--data", data, "--json"))["log"]]
    assert events == ["rotated", "forgot", "restored"]
    for wrong, why in ((["--listen", "0.0.0.0:1"], "TLS"), (["--listen", "x"], "HOST:PORT")):
        found = CliRunner().invoke(cli, ["vault", "proxy", "--data", data, *wrong])
        assert why in str(found.exception)
    for part, why in (("equal = true", "other words"), ("[0, 120]", "two bounds")):
        (tmp_path / "owner" / "vault.toml").write_text(text.replace(part, "odd = 1" if part[0] == "e" else "[1]", 1))
        found = CliRunner().invoke(cli, ["vault", "verify", "--data", data])
        assert why in str(found.exception)
