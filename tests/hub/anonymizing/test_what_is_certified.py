"""Report and certificate are about the rows that were released: no others stand under them, and the digest is the file's."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import select, update

from cloister.hub.generation import bump
from cloister.hub.platform.catalogue import versions
from cloister.hub.records.catalogue import Arrival, DataSet, DataSetVersion
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.anonymizing import releasing
from cloister.hub.web.forms import TOKEN_FIELD
from tests.hub.anonymizing.ordering import RELEASE, get, post, run
from tests.hub.house import READS, House, Visitor

KINDS: dict[str, Any] = {
    "columns": {
        "age": {"kind": "integer", "low": 0, "high": 120},
        "ok": {"kind": "boolean"},
        "pay": {"kind": "real", "low": 0, "high": 10_000, "step": 0.25},
        "ill": {"kind": "category", "values": ["=cmd", "+b", "c"]},
        "born": {"kind": "date", "low": "1990-01-01", "high": "1999-12-31"},
    },
    "size": 60,
}
ROWS: dict[str, list[Any]] = {
    "age": [20, 21, 22] * 20,
    "ok": [True, False, None] * 20,
    "pay": [1.5, 2.0, 1000.25, 0.0] * 15,
    "ill": ["=cmd", "+b", "c"] * 20,
    "born": ["1990-01-01", "1995-06-30"] * 30,
}
OTHER = "age,sex,pay\n" + "".join(f"2{each},F,{each}\n" for each in range(9))


@pytest.fixture
def made(house: House, owner: Visitor) -> str:
    """Where a released table is read."""
    told = run(house, owner, "/anonymised", RELEASE)
    assert told["state"] == "done", told
    href: str = told["result"]["href"]
    return href


def _other_rows(house: House, owner: Visitor) -> str:
    """Rows of the same columns as the released table has, uploaded."""
    with house.hub.database.reading() as db:
        columns = db.scalars(select(DataSet).where(DataSet.name == "people_public")).one().declaration["columns"]
    values: dict[str, list[Any]] = {
        "integer": list(range(9)),
        "float": [0.5] * 9,
        "decimal": [0.5] * 9,
        "text": [f"NAMED PERSON {each}" for each in range(9)],
    }
    body = io.BytesIO()
    pl.DataFrame({name: values[each["kind"]] for name, each in columns.items()}).write_parquet(body)
    headers = {**owner.bearer, "Content-Type": "application/vnd.apache.parquet"}
    answer = house.client().post("/api/v1/uploads", content=body.getvalue(), headers=headers)
    assert answer.status_code == 201, answer.text
    number: str = answer.json()["id"]
    return number


def test_no_other_rows_come_under_a_certificate(house: House, owner: Visitor, made: str) -> None:
    before = get(house, owner, f"{made}/download").content
    refused = post(house, owner, "/datasets/people_public/versions", {"upload": _other_rows(house, owner)})
    assert refused.status_code == 409, refused.text
    assert "report and certificate are about these rows" in refused.json()["detail"]
    page = owner.client.get("/datasets/people_public/version")
    assert page.status_code == 409
    assert "report and certificate are about these rows" in page.text
    assert 'type="file"' not in page.text
    assert "/datasets/people_public/version" not in owner.client.get("/datasets/people_public/manage").text
    assert "/datasets/people/version" in owner.client.get("/datasets/people/manage").text
    with house.hub.database.reading() as db:
        there = db.scalars(select(Arrival)).all()
    sent = owner.client.post(
        "/uploads/versions/people_public",
        data={TOKEN_FIELD: owner.csrf()["X-CSRF-Token"]},
        files={"file": ("other.csv", OTHER.encode(), "text/csv")},
    )
    assert sent.status_code == 409, sent.text
    with house.hub.database.reading() as db:
        assert len(db.scalars(select(Arrival)).all()) == len(there)
    assert get(house, owner, f"{made}/download").content == before


def test_what_is_read_is_the_version_that_was_certified(
    house: House, owner: Visitor, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = get(house, owner, f"{made}/download").content
    with monkeypatch.context() as here:  # as a hub might hold it that took another version once
        here.setattr(versions, "check_open", lambda row: None)
        added = post(house, owner, "/datasets/people_public/versions", {"upload": _other_rows(house, owner)})
        assert added.status_code == 201, added.text
    for path in (f"/api/v1{made}", made):
        answer = owner.client.get(f"{path}/download", headers=owner.bearer if path.startswith("/api") else {})
        assert answer.content == before
    with house.hub.database.begin() as db:  # another file in the place of the one that was certified
        newest = db.scalars(select(DataSetVersion).where(DataSetVersion.number == 2)).one()
        row = db.scalars(select(StoredRelease)).one()
        row.details = {**row.details, "version": newest.id}
    refused = get(house, owner, f"{made}/download")
    assert refused.status_code == 409, refused.text
    assert "not those that the certificate is about" in refused.json()["detail"]


@pytest.mark.parametrize(
    "parts",
    [
        {"age": "quasi", "ok": "kept", "pay": "kept", "ill": "kept", "born": "kept"},
        {"age": "quasi", "ok": "quasi", "born": "quasi", "ill": "sensitive", "pay": "sensitive"},
    ],
)
def test_the_digest_is_that_of_the_file_that_is_downloaded(house: House, owner: Visitor, parts: dict[str, str]) -> None:
    house.sample_data_set("kinds", owner=owner, rows=ROWS, declaration=KINDS)
    told = run(house, owner, "/anonymised", {**RELEASE, "table": "kinds", "parts": parts, "k": 3})
    assert told["state"] == "done", told
    href = told["result"]["href"]
    file = get(house, owner, f"{href}/download").content
    assert b"'=cmd" in file
    assert b"True" not in file
    certificate = get(house, owner, href).json()["certificate"]
    digest = hashlib.sha256(file).hexdigest()
    assert (certificate["digest"], certificate["risk"]["digest"]) == (digest, digest)
    assert digest in owner.client.get(f"{href}/certificate").text
    assert hashlib.sha256(owner.client.get(f"{href}/download").content).hexdigest() == digest


def test_what_binds_the_source_now_binds_everybody(house: House, owner: Visitor, made: str) -> None:
    with house.hub.database.reading() as db:
        data_set = db.scalars(select(DataSet).where(DataSet.name == "people_public")).one()
    bob = house.person("analyst", email="bob@example.org")
    house.grant(data_set, bob, by=owner, actions=(*READS, "release.download"))

    def looked(who: Visitor) -> list[int]:
        pages = [who.client.get(f"{made}{path}").status_code for path in ("", "/download", "/report", "/certificate")]
        return [get(house, who, f"{made}/download").status_code, *pages]

    narrowed, given_away = {"metadata_": {"policy": {"purposes": ["care"]}}}, {"owner": house.person("owner").id}
    for change, before in ((narrowed, {"metadata_": {}}), (given_away, {"owner": owner.id})):
        for values, seen in ((before, [200] * 5), (change, [403, 200, 403, 403, 403]), (before, [200] * 5)):
            with house.hub.database.begin() as db:
                db.execute(update(DataSet).where(DataSet.name == "people").values(**values))
                bump(db)
            assert looked(owner) == looked(bob) == seen, values


def test_a_release_reads_the_version_that_it_names(house: House, owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    new = house.client().post(
        "/api/v1/uploads",
        content=("age,sex,pay\n" + "40,F,7\n41,M,7\n" * 50).encode(),
        headers={**owner.bearer, "Content-Type": "text/csv"},
    )
    decided = []
    ready = releasing.ready

    def between(*given: Any, **how: Any) -> Any:
        found = ready(*given, **how)
        decided.append(next(iter(found.policy.sources)).version)
        if len(decided) == 1:  # as soon as it is decided, the rows are others, and somebody has asked about them
            assert post(house, owner, "/datasets/people/versions", {"upload": new.json()["id"]}).status_code == 201
            assert owner.client.get("/datasets/people/manage").status_code == 200
        return found

    monkeypatch.setattr(releasing, "ready", between)
    told = run(house, owner, "/anonymised", RELEASE)
    assert told["state"] == "done", told
    assert len(set(decided)) == 2
    told = get(house, owner, told["result"]["href"]).json()
    assert told["report"]["rows"] == 100
    with house.hub.database.reading() as db:
        about = db.scalars(select(DataSet.about).where(DataSet.name == "people_public")).one()
        policy = db.scalars(select(StoredRelease.policy)).one()
    assert {each["version"] for each in policy["sources"]} == {decided[-1]}
    assert "version 2" in about
    assert house.hub.ledger.charges("people")[0].state == "not private"
    assert len(house.hub.ledger.charges("people")) == 1


def test_the_table_store_knows_nothing_else_by_that_name(house: House, owner: Visitor, made: str) -> None:
    with house.hub.database.reading() as db:
        row, version = db.scalars(select(StoredRelease)).one(), db.scalars(select(DataSetVersion)).all()[-1]
    assert (row.details["version"], row.digest) == (version.id, version.digest)
    file = next(each for each in Path(house.settings.path("vault")).rglob(version.file) if each.is_file())
    *kept, last = file.read_bytes()
    file.write_bytes(bytes([*kept, last ^ 1]))
    assert get(house, owner, f"{made}/download").status_code >= 400
