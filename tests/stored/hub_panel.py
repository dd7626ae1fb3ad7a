"""What a hub stores of one act of each kind: digests of requests, jobs, the audit log's entries, purposes of keys, columns.

    python -m tests.stored.hub_panel

An older version ran this, in its own working tree, and its output is `hub_names.json`; `panel.py` does the same for the library.
`test_hub_names.py` makes it again today and wants the same. Everything is asked over HTTP, as people ask it.
"""

from __future__ import annotations

import html
import io
import json
import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import select

from cloister.hub import problems
from cloister.hub.database import Base
from cloister.hub.decisions.policy.actions import actions
from cloister.hub.platform.jobs import Timing, Workers
from cloister.hub.platform.trail.words import _EVENTS as TITLES
from cloister.hub.platform.trail.words import KINDS
from cloister.hub.records.asking import Idempotency
from cloister.hub.records.jobs import Job
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.learning import fitting
from cloister.hub.settings import Settings, load
from cloister.ledger import Ledger
from tests.hub.anonymizing.ordering import ORDER as TABLE
from tests.hub.anonymizing.ordering import RELEASE
from tests.hub.anonymizing.rows import varied
from tests.hub.house import PEOPLE, READS, Clock, House, Visitor
from tests.hub.learning.conftest import MAY, ORDER
from tests.hub.test_routes import routes

HERE = Path(__file__).parent
QUESTION = {"sql": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "spend": "0.0625", "purpose": "a look"}
WANTED = {"sql": "SELECT COUNT(*) AS n FROM people", "within": 40, "pilot": "0.01", "confidence": 0.9}
WORKLOAD = {"questions": [QUESTION["sql"], "SELECT COUNT(*) AS n FROM people"], "spend": "0.0625"}
PARAMETERS = {"var_smoothing": 1e-6}


def names() -> dict[str, Any]:
    """All of it."""
    with tempfile.TemporaryDirectory() as scratch, unharried():
        first = House(Path(scratch) / "first", Clock())
        keys = type(first.hub.keys)
        first.close()
        kept: dict[str, set[str]] = {"purposes": set(), "bound": set(), "of the ledger": set()}
        with watched(keys, kept):
            house = House(Path(scratch) / "hub", Clock())
            try:
                found: dict[str, Any] = {"requests": asked(house), "jobs": jobs(house), "audit log": entries(house)}
                found["listed"] = listed(house)
            finally:
                house.close()
        found["keys"] = {name: sorted(each) for name, each in kept.items()}
        found["files"] = sorted(
            path.name for path in (Path(scratch) / "hub").iterdir() if not path.name.endswith(("-wal", "-shm"))
        )
    found["settings"] = settings()
    return found


def listed(house: House) -> dict[str, list[str]]:
    """Names of which there may be more one day, and never fewer: somebody's database, program or rule says them."""
    api = house.client().get("/api/v1/openapi.json").json()
    return {
        "columns": sorted(f"{name}.{each.name}" for name, table in Base.metadata.tables.items() for each in table.columns),
        "actions": sorted(actions()),
        "events": sorted(TITLES),
        "kinds": sorted(KINDS),
        "jobs": sorted(house.hub.jobs),
        "problems": sorted({code for _, _, code in problems._STATUS}),
        "metrics": sorted(set(re.findall(r"# TYPE (\w+)", house.hub.meter.text().decode()))),
        "fields": sorted(fields(api)),
        "addresses": sorted(routes(house.app)),
    }


def fields(api: dict[str, Any]) -> Iterator[str]:
    """The fields of what each route takes and gives, whatever the shapes that hold them are called."""
    shapes = api["components"]["schemas"]

    def within(shape: dict[str, Any], seen: tuple[str, ...] = ()) -> Iterator[str]:
        name = shape.get("$ref", "").rpartition("/")[2]
        if name in seen:
            return
        shape = shapes[name] if name else shape
        for each, inner in shape.get("properties", {}).items():
            yield each
            yield from (f"{each}.{deep}" for deep in within(inner, (*seen, name)))
        for inner in [shape.get("items"), shape.get("additionalProperties"), *shape.get("anyOf", ()), *shape.get("oneOf", ())]:
            if isinstance(inner, dict):
                yield from within(inner, (*seen, name))

    for path, methods in api["paths"].items():
        for method, told in methods.items():
            bodies = {"takes": told.get("requestBody", {}), **{f"gives {each}": of for each, of in told["responses"].items()}}
            for way, body in bodies.items():
                for content in body.get("content", {}).values():
                    found = sorted(set(within(content.get("schema", {}))))
                    yield f"{method.upper()} {path} {way}: {' '.join(found)}"


@contextmanager
def unharried() -> Iterator[None]:
    """Without the attack on a model and its curve, which take their time and are not stored by name."""
    with patch.object(fitting, "attacked", lambda *_: None), patch.object(fitting, "lost", lambda *_: None):
        yield


@contextmanager
def watched(keys: Any, kept: dict[str, set[str]]) -> Iterator[None]:
    """For which purposes keys are derived, and what wrapped secrets are bound to, without the ids in it."""
    derive, wrap = keys.derive, keys.wrap

    def derived(self: Any, purpose: str) -> bytes:
        kept["purposes"].add(purpose)
        return derive(self, purpose)  # type: ignore[no-any-return]

    def wrapped(self: Any, secret: bytes, about: str) -> bytes:
        kept["bound"].add(re.sub(r"(?<!\S)([0-9A-Za-z_-]{20,}|[0-9]+)(?!\S)", "#", about))
        return wrap(self, secret, about)  # type: ignore[no-any-return]

    def of_ledger(self: Any, *parts: str) -> bytes:
        kept["of the ledger"].add(parts[0])
        return from_ledger(self, *parts)

    from_ledger = Ledger.derive
    with patch.object(keys, "derive", derived), patch.object(keys, "wrap", wrapped), patch.object(Ledger, "derive", of_ledger):
        yield


def asked(house: House) -> dict[str, str]:
    """Ask for one thing of each kind, by API and by form, each under a key of its own: the digests that know them again."""
    owner, ana = house.person("owner", email="olga@example.org"), house.person("analyst", email="ana@example.org")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, ana, by=owner, actions=(*READS, *MAY))
    house.sample_data_set("crowd", owner=owner, rows=varied(60), declaration={**PEOPLE, "size": 60})

    def post(who: Visitor, name: str, path: str, body: Any, **headers: str) -> None:
        answer = house.client().post(f"/api/v1{path}", json=body, headers={**who.bearer, "Idempotency-Key": name, **headers})
        assert answer.is_success, (path, answer.text)

    post(ana, "question", "/questions", QUESTION)
    post(ana, "question within", "/questions", WANTED)
    post(ana, "question later", "/questions", {**QUESTION, "spend": "0.03125"}, Prefer="respond-async")
    post(ana, "workload", "/questions/workload", WORKLOAD)
    post(ana, "model", "/models", {**ORDER, "spend": "0.125", "parameters": PARAMETERS, "title": "Sex", "purpose": "a study"})
    post(owner, "trial", "/anonymised/trials", {**TABLE, "table": "crowd", "hierarchies": {"sex": "F;*\nM;*"}})
    post(owner, "table", "/anonymised", {**RELEASE, "table": "crowd", "name": "crowd_public"})
    fields = {"sql": QUESTION["sql"], "spend": "0.03125", "confidence": "0.95", "purpose": "a form"}
    sent(ana, "/ask", "/ask", fields)
    method = {"table": "people", "method": "GaussianNB", "features": ["age"], "target": "sex", "spend": "0.0625"}
    sent(ana, "/learn?about=people", "/learn", {**method, "title": "Sex by age"})
    parts = {"part_0": "quasi", "part_1": "quasi", "part_2": "sensitive", "lines_1": "F;*\nM;*"}
    sent(owner, "/anonymise?about=crowd", "/anonymise/trials", {"table": "crowd", "k": "5", "suppression": "0.05", **parts})
    with house.hub.database.reading() as db:
        return {row.key: row.request for row in db.scalars(select(Idempotency))}


def sent(who: Visitor, page: str, path: str, fields: dict[str, Any]) -> None:
    """Send a form as a page made it, but under a key of ours."""
    made = re.search(r'name="key" value="([^"]+)"', who.client.get(page).text)
    assert made is not None, page
    assert html.unescape(made[1])
    token = who.csrf()["X-CSRF-Token"]
    answer = who.client.post(path, data={"form_token": token, "key": f"of {path}", **fields})
    assert answer.status_code == 303, (path, answer.text)


def jobs(house: House) -> list[Any]:
    """What each job was given, wrote down and came to; how its asker came, and ids, by name alone."""
    hub, found = house.hub, []
    with hub.database.reading() as db:
        secrets = {row.id: hub.keys.unwrap(row.secret, row.about) for row in db.scalars(select(Job)) if row.secret is not None}
    while Workers(hub, 0, Timing(lost=0)).run_one():
        pass
    with hub.database.reading() as db:
        for row in db.scalars(select(Job).order_by(Job.id)):
            assert row.state == "done", (row.kind, row.problem)
            found.append(
                {
                    "kind": row.kind,
                    "payload": {**row.payload, "came": sorted(row.payload["came"])},
                    "secret": json.loads(secrets[row.id]) if row.id in secrets else None,
                    "notes": sorted({name for note in row.notes for name in note}),
                    "result": sorted(row.result),
                }
            )
    return sorted(found, key=json.dumps)


def entries(house: House) -> list[str]:
    """What the audit log says, without what was in it: act, object, outcome, the names of the details."""
    ana = house.person("analyst", email="eve@example.org")
    refused = house.client().post("/api/v1/questions", json=QUESTION, headers=ana.bearer)
    assert refused.is_error
    with house.hub.database.reading() as db:
        lines = db.scalars(select(AuditLine).order_by(AuditLine.number)).all()
        return sorted({f"{row.action} {row.kind} {row.outcome}: {', '.join(sorted(row.details))}" for row in lines})


def settings() -> dict[str, str]:
    """Every setting, as `hub.toml` beside this file sets it."""
    found = load(Path("/nowhere"), file=HERE / "hub.toml").shown()
    assert set(found) == set(Settings(data=Path("/nowhere")).shown())
    return {name: value for name, value in found.items() if name != "data"}


def downloads(folder: Path) -> dict[str, str]:
    """The files of the answer that an older version's folder holds (`hub.tar.xz`)."""
    said, house = unpacked(folder, Clock())
    try:
        return {form: text_of(form, file(house, said, form)) for form in ("json", "readable", "csv")}
    finally:
        house.close()


def extract(folder: Path) -> None:
    """The folder of an older version's hub. Debian's Python 3.11.2 has no filters of archives, and this one is ours."""
    with tarfile.open(HERE / "hub.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)


def unpacked(folder: Path, clock: Clock) -> tuple[dict[str, Any], House]:
    """An older version's hub, and what that said of it."""
    extract(folder)
    said = json.loads((folder / "hub" / "said.json").read_text(encoding="utf-8"))
    clock.move(hours=1)
    return said, House(folder / "hub", clock)


def file(house: House, said: Any, form: str) -> bytes:
    """One of them."""
    headers = {"Authorization": f"Bearer {said['tokens']['ana']}"}
    answer = house.client().get(f"/api/v1/releases/{said['answer']['id']}/download/{form}", headers=headers)
    assert answer.is_success, answer.text
    return answer.content


def text_of(form: str, body: bytes) -> str:
    """What is in it."""
    if form != "csv":
        return body.decode()
    with zipfile.ZipFile(io.BytesIO(body)) as whole:
        return "\n".join(f"{name}\n{whole.read(name).decode()}" for name in sorted(whole.namelist()))


def main() -> None:
    """Write them."""
    with tempfile.TemporaryDirectory() as scratch:
        made = {**names(), "downloads": downloads(Path(scratch))}
    (HERE / "hub_names.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
