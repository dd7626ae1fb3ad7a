"""`cloister vault`: a folder of keys, the proxy as a process over a store that it does not trust, and its page."""

from __future__ import annotations

import json
import re
import shutil
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
from cloister.vault.results import Deleted, Updated
from tests.certificates import certificate

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

[people]
{person}

[views.towns]
collections = {{ people = ["town", "age"] }}
where = {{ age = {{ "$gte" = 18 }} }}
people = ["ana"]
purposes = ["care"]
"""


def said(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(cli, ["vault", *arguments])
    assert found.exit_code == code, (found.output, found.exception)
    return found.output


class Served:
    """A vault's folder, its proxy as a process, and what it printed."""

    def __init__(self, folder: Path, holder: KeyHolder, *more: str) -> None:
        (folder / "store").mkdir()
        self.folder, self.data = folder, str(folder / "owner")
        said("init", self.data, "--store", f"sqlite:///{folder}/store/sealed.db")
        made = said("person", "ana").split("\n")
        self.person = made[0].removeprefix("token ")
        text = DECLARED.format(folder=folder, holder=holder.public.hex(), person=made[2])
        (folder / "owner" / "vault.toml").write_text(text)
        self.token = json.loads(said("show", "--data", self.data, "--json"))["token"]
        command = [sys.executable, "-m", "cloister", "vault", "proxy", "--data", self.data, "--listen", "127.0.0.1:0"]
        command += more
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.address, self.page = (self.process.stdout.readline().split()[-1] for _ in range(2))

    def people(self) -> Any:
        return cl.vault.connect(self.address, token=self.token)["people"]

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


def test_a_port_that_is_taken_or_none_is_refused(proxy: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(proxy.folder / "owner", other / "owner", ignore=shutil.ignore_patterns("*.lock"))
    for port in (proxy.address.rpartition(":")[2], "99999"):
        words = ["vault", "proxy", "--data", str(other / "owner"), "--listen", f"127.0.0.1:{port}"]
        refused = CliRunner().invoke(cli, words)
        assert (refused.exit_code, "is taken, or may not be listened on" in str(refused.exception)) == (1, True)


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:80a", "https://proxy.example.org:99999", "https://\x7f", None])
def test_an_address_that_is_none_is_refused_in_words(url: Any) -> None:
    with pytest.raises(cl.InvalidParameter, match=r"The address is invalid"):
        cl.vault.connect(url, token="t")


def test_programs_speak_documents_and_the_store_sees_none(proxy: Served, holder: KeyHolder) -> None:
    people = proxy.people()
    rows = [
        {"_id": 1, "name": "canary-Ada", "town": "canary-Basel", "age": 39, "born": date(1987, 5, 1)},
        {"_id": 2, "name": "canary-Bo", "town": "canary-Bern", "age": 52},
    ]
    assert people.insert_many(rows).inserted_ids == [1, 2]
    assert people.find({"town": "canary-Basel"}) == rows[:1]
    assert people.find({"age": {"$gte": 40}}, ["name"]) == [{"_id": 2, "name": "canary-Bo"}]
    assert people.update_one({"_id": 2}, {"$inc": {"age": 1}}) == Updated(1, 1)
    assert people.update_one({"_id": 9}, {"$set": {"age": 2}}, upsert=True).upserted_id == 9
    assert people.delete_one({"_id": 9}) == Deleted(1)
    assert (people.insert_one({"_id": 9}).inserted_id, people.delete_many({"_id": 9}).acknowledged) == (9, True)
    assert people.find({}, ["_id"]).sort("age", -1).limit(1) == [{"_id": 2}] == people.find({}, ["_id"], [("age", -1)], 0, 1)
    assert people.find().sort([("age", -1)]).skip(1) == rows[:1]
    assert people.find_one(sort=[("age", 1)]) == rows[0]
    assert people.aggregate([{"$group": {"_id": None, "age": {"$sum": "$age"}}}]) == [{"_id": None, "age": 92}]
    assert people.count_documents({}) == 2
    assert people.explain({"town": "canary-Bern"}).found_by == ("1 word of 'town'",)
    assert "until there are 2 records" in str(people.explain({}, sort=[("age", 1)], limit=2))
    assert people.layers()["name"] == ["AES-GCM-SIV"]
    assert people.create_index("town") == "town_1"
    for act, kind in (
        (lambda: people.find({"name": {"$gt": ""}}), cl.UnsupportedQuery),
        (lambda: people.find({"name": {"$ne": "canary-x"}}), cl.UnsupportedQuery),
        (lambda: people.insert_one({"_id": 1}), cl.vault.DuplicateKey),
        (lambda: people.insert_one({"canary-unknown": 1}), cl.UnknownColumn),
        (lambda: people.insert_one(), cl.InvalidParameter),
        (lambda: people.delete_one({}, "canary"), cl.InvalidParameter),
        (lambda: people.create_index("town", unique=True), cl.UnsupportedQuery),
        (lambda: people.find({"town.canary": 1}), cl.UnsupportedQuery),
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
    shown = httpx.get(proxy.page, timeout=120).text
    assert "canary-Ada" in shown
    body = sqlite3.connect(proxy.folder / "store" / "sealed.db").execute("SELECT name FROM sqlite_master").fetchall()
    table = next(name for (name,) in body if name.startswith("r_"))[2:]
    assert table in shown
    assert httpx.get(re.sub(r"/[0-9a-f]{64}$", "/" + "0" * 64, proxy.page), timeout=120).status_code == 401
    assert httpx.get(proxy.page, headers={"host": "evil.example.org:80"}, timeout=120).status_code == 401
    assert (
        httpx.post(
            f"{proxy.address}/collections/people/drop", headers={"authorization": f"Bearer {proxy.token}"}, timeout=120
        ).status_code
        == 400
    )
    printed = proxy.stop()
    said("mask", "people", "--data", proxy.data, "--out", str(proxy.folder / "batches"))
    for path in proxy.folder.rglob("*"):
        assert not path.is_file() or b"canary" not in path.read_bytes(), path
    assert "canary" not in printed
    with cl.Session({"p": cl.SealedTable(proxy.folder / "batches", holder)}, budget=cl.PureDP(10**6)) as session:
        assert session.sql("SELECT SUM(age) AS s FROM p", spend=10**5).to_pydict() == {"s": [92]}


def test_a_proxy_with_a_certificate_is_asked_over_tls_alone(tmp_path: Path, holder: KeyHolder) -> None:
    """A program that knows its authority is answered, one that does not is not, and plain text gets nothing."""
    key, found = certificate(tmp_path / "tls", "localhost")
    made = Served(tmp_path, holder, "--listen", "localhost:0", "--certificate", str(found), "--certificate-key", str(key))
    try:
        assert made.address.startswith("https://localhost:")
        with cl.vault.connect(made.address, token=made.token, authority=found) as store:
            assert store["people"].insert_one({"_id": 1, "town": "canary-Basel"}).inserted_id == 1
            assert store["people"].find({"town": "canary-Basel"}) == [{"_id": 1, "town": "canary-Basel"}]
        other = certificate(tmp_path / "other", "localhost")[1]
        for authority in (None, other):
            with pytest.raises(cl.EngineError, match="out of reach"):
                cl.vault.connect(made.address, token=made.token, authority=authority)["people"].find()
        with pytest.raises(httpx.HTTPError):
            httpx.post(made.address.replace("https", "http") + "/collections/people/find", timeout=60)
        assert "canary" not in made.stop()
    finally:
        made.process.kill()
        made.process.communicate()


def test_a_person_reads_a_view_for_its_purpose_and_nothing_else(proxy: Served) -> None:
    rows = [{"_id": n, "name": "canary-Ada", "town": "Basel", "age": 10 + 5 * n} for n in range(4)]
    proxy.people().insert_many(rows)
    with cl.vault.connect(proxy.address, token=proxy.person) as ana, cl.vault.connect(proxy.address, token=proxy.token) as owner:
        found = ana.view("towns", purpose="care", filter={"town": "Basel"})
        assert found == [{"people": {"town": "Basel", "age": age}} for age in (20, 25)] or len(found) == 2
        for act in (
            lambda: ana.view("towns", purpose="marketing"),
            lambda: ana.view("others", purpose="care"),
            lambda: owner.view("towns", purpose="care"),
            lambda: ana.collection("people").find(),
        ):
            with pytest.raises(cl.AccessDenied):
                act()
        with pytest.raises(cl.UnknownColumn):
            ana.view("towns", purpose="care", filter={"name": "canary-Ada"})
    log = json.loads(said("show", "--data", proxy.data, "--json"))["log"]
    events = [each["event"] for each in log]
    assert (events.count("viewed"), events.count("denied"), events.count("refused")) == (1, 2, 1)
    assert "Basel" not in json.dumps(log)


def test_a_view_that_is_asked_for_without_end_fills_no_log(proxy: Served) -> None:
    log = proxy.folder / "owner" / "audit-log.jsonl"
    for number in range(20):
        told, headers = {"purpose": "x" * 100_000 + str(number)}, {"authorization": f"Bearer {number}"}
        assert httpx.post(f"{proxy.address}/views/towns", json=told, headers=headers).status_code == 401
    headers = {"authorization": f"Bearer {proxy.person}"}
    assert httpx.post(f"{proxy.address}/views/towns", json={"purpose": "x" * 100_000}, headers=headers).status_code == 401
    assert log.stat().st_size < 10_000


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


def test_forgetting_that_stops_half_way_says_that_the_key_is_gone(tmp_path: Path) -> None:
    """The store altered an entry, then it is mended: what the log says is what was done."""
    data, file = str(tmp_path / "owner"), tmp_path / "sealed.db"
    said("init", data, "--store", f"sqlite:///{file}")
    (tmp_path / "owner" / "vault.toml").write_text(
        f'[vault]\nstore = "sqlite:///{file}"\n[collections.people]\nperson = "name"\n'
        "[collections.people.fields]\nname = { equal = true }\n"
    )
    said("show", "--data", data)
    keys = cl.vault.Keys.load(tmp_path / "owner" / "owner.keys")
    with cl.vault.Vault(f"sqlite:///{file}", keys) as store:
        store.collection("people").insert_many([{"_id": n, "name": "ab"[n % 2]} for n in range(4)])
    with sqlite3.connect(file) as operator:
        table = next(name for (name,) in operator.execute("SELECT name FROM sqlite_master") if name.startswith("i_"))
        operator.execute(f'UPDATE "{table}" SET content = zeroblob(length(content))')
    operator.close()
    stopped = CliRunner().invoke(cli, ["vault", "forget", "a", "--data", data])
    assert isinstance(stopped.exception, cl.vault.Tampered)
    assert "the key is gone" in stopped.output
    assert "0 records are gone, and the key" in said("forget", "a", "--data", data)
    again = CliRunner().invoke(cli, ["vault", "forget", "a", "--data", data]).exception
    assert "no key is left of this person" in str(again)
    log = json.loads(said("show", "--data", data, "--json"))["log"]
    assert [(each["event"], each["records"]) for each in log] == [("forgot", "the key alone"), ("forgot", "0")]


def test_a_key_that_stays_is_not_said_to_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, file = str(tmp_path / "owner"), tmp_path / "sealed.db"
    said("init", data, "--store", f"sqlite:///{file}")
    (tmp_path / "owner" / "vault.toml").write_text(
        f'[vault]\nstore = "sqlite:///{file}"\n[collections.people]\nperson = "name"\n'
        "[collections.people.fields]\nname = { equal = true }\n"
    )
    said("show", "--data", data)
    keys = cl.vault.Keys.load(tmp_path / "owner" / "owner.keys")
    with cl.vault.Vault(f"sqlite:///{file}", keys) as store:
        store.collection("people").insert_many([{"_id": n, "name": "ab"[n % 2]} for n in range(4)])

    def full(*given: object, **how: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("cloister.vault.keys.DataSetKeys.forget", full)
        stopped = CliRunner().invoke(cli, ["vault", "forget", "a", "--data", data])
    assert isinstance(stopped.exception, OSError)
    assert "the key is gone" not in stopped.output
    assert json.loads(said("show", "--data", data, "--json"))["log"] == []
    assert "and the key" in said("forget", "a", "--data", data)


def test_what_an_owner_does_with_a_folder(tmp_path: Path, holder: KeyHolder) -> None:
    (tmp_path / "store").mkdir()
    data = str(tmp_path / "owner")
    said("init", data, "--store", f"sqlite:///{tmp_path}/store/sealed.db")
    text = DECLARED.format(folder=tmp_path, holder=holder.public.hex(), person="").replace(
        "[collections.people.fields]", "[collections.people]"
    )
    text = text.replace("name = {}", 'person = "name"\n[collections.people.fields]\nname = {}')
    (tmp_path / "owner" / "vault.toml").write_text(text)
    keys = cl.vault.Keys.load(tmp_path / "owner" / "owner.keys")
    said("rotate", "--data", data)
    people = cl.vault.Vault(f"sqlite:///{tmp_path}/store/sealed.db", keys).collection("people")
    people.insert_many([{"_id": n, "name": "ab"[n % 2], "town": "x", "age": n} for n in range(4)])
    said("backup", str(tmp_path / "monday.keys"), "--data", data)
    refused = CliRunner().invoke(cli, ["vault", "forget", "A", "--data", data]).exception
    assert isinstance(refused, cl.CloisterError)
    assert "no key is left of this person" in str(refused)
    assert "2 records" in said("forget", "a", "--data", data)
    assert "every record" in said("verify", "--data", data)
    assert "frequency" in said("score", "people", "town", "--equal", "--data", data)
    assert "access pattern" in said("score", "people", "age", "--data", data)
    for given, told in (
        (["town", "--deterministic"], "the store's file was seen"),
        (["age", "--order-revealing", "0:120"], "cumulative: 100 %, after the store's file was seen"),
        (["age", "--range", "-0.5:99.5:0.5"], "volume"),
        (["town", "--words", "3", "--pad", "64"], "words"),
    ):
        assert told in said("score", "people", *given, "--data", data)
    for wrong in ("0", "0:x", "0:1:2:3", "nan:1"):
        found = CliRunner().invoke(cli, ["vault", "score", "people", "age", "--range", wrong, "--data", data])
        assert "two numbers" in str(found.exception) or "Range is invalid" in str(found.exception)
    assert "bytes a row" in said("mask", "people", "--data", data, "--out", str(tmp_path / "b"), "--dry-run")
    keys.close()
    for path in (tmp_path / "owner").glob("*.state*"):
        path.unlink()
    refused = str(CliRunner().invoke(cli, ["vault", "restore", "--data", data]).exception)
    assert "whose keys are not in the client's state would be deleted" in refused
    assert "1 collections" in said("restore", "--delete-people", "--data", data)
    events = [each["event"] for each in json.loads(said("show", "--data", data, "--json"))["log"]]
    assert events == ["rotated", "forgot", "restored"]
    for wrong, why in ((["--listen", "0.0.0.0:1"], "TLS"), (["--listen", "x"], "HOST:PORT")):
        found = CliRunner().invoke(cli, ["vault", "proxy", "--data", data, *wrong])
        assert why in str(found.exception)
    apart = text.replace("[collections.people.masked]", "[other]")
    for wrong, why in (
        (text.replace("[{ sums", "{ sums").replace('["age"] }]', '["age"] }'), "marginals are not a list of tables"),
        (apart.replace("[collections.people]", "[collections.people]\nmasked = 1"), "says nothing of masked cells"),
    ):
        assert wrong != text
        (tmp_path / "owner" / "vault.toml").write_text(wrong)
        found = CliRunner().invoke(cli, ["vault", "mask", "people", "--data", data, "--out", str(tmp_path / "b"), "--dry-run"])
        assert why in str(found.exception)
    for part, wrong, why in (
        ("equal = true", "odd = 1", "other words"),
        ("[0, 120]", "[1]", "two bounds"),
        ("person = ", "persn = ", "'persn' is not one of the words of [collections.people]"),
        ("store = ", "data_sets = 'x'\nstore = ", "'data_sets' is not one of the words of [vault]"),
    ):
        assert part in text
        (tmp_path / "owner" / "vault.toml").write_text(text.replace(part, wrong, 1))
        found = CliRunner().invoke(cli, ["vault", "verify", "--data", data])
        assert why in str(found.exception)
