"""A table in a PostgreSQL database becomes a data set; its address is kept wrapped and shown nowhere."""

from __future__ import annotations

import pytest

from cloister.hub.records.catalogue import Arrival, DataSetVersion
from cloister.hub.records.trail import AuditLine
from tests.hub.catalogue.world import FORM, Sender, World

pytestmark = pytest.mark.postgres
PASSWORD = "pw-canary-5512"
MADE = f"""
CREATE TABLE people AS SELECT 20 + n % 60 AS age, 'F'::text AS sex FROM generate_series(1, 400) n;
GRANT SELECT ON people TO reader;
ALTER ROLE reader PASSWORD '{PASSWORD}';
"""


def test_a_table_elsewhere_is_declared_and_asked(world: World, ada: Sender, place: str) -> None:
    opened = world.again(sources=place.partition("/")[0])
    try:
        sender = Sender(opened)
        sender.log_in("ada@example.org")
        answer = sender.post(
            "/register/connection", "/register", address=f"postgresql://reader:{PASSWORD}@{place}::public.people"
        )
        assert answer.status_code == 303, answer.text
        number = answer.headers["location"].removeprefix("/register/")
        page = sender.get(f"/register/{number}").text
        assert "public.people" in page
        form = {name: text for name, text in FORM.items() if not name.startswith("c3")}
        assert sender.declare(number, **form).status_code == 303
        refused = sender.post(f"/register/{number}/rows", f"/register/{number}", **form)
        assert refused.status_code == 422
        assert sender.post(f"/register/{number}/open", f"/register/{number}/review").status_code == 303
        asked = sender.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM people", "spend": "1"})
        assert asked.status_code == 201, asked.text
        assert asked.json()["columns"]["n"][0] == pytest.approx(400, abs=40)
        version = opened.rows(DataSetVersion)[0]
        assert (version.kind, version.file, version.key) == ("connection", "", None)
        again = sender.api(
            "POST", "/connections", json={"address": f"postgresql://reader:{PASSWORD}@{place}::public.people"}
        ).json()
        columns = {"age": {"kind": "integer", "low": 17, "high": 90, "reason": "x"}}
        body = {"upload": again["id"], "name": "again", "title": "Again", "columns": columns, "population": "other"}
        twice = sender.api("POST", "/datasets", json=body | {"budget": {"epsilon": "9"}})
        assert twice.status_code == 422, "the same rows spend the same budget, under whatever name"
        assert "has its budget" in twice.json()["detail"]
        assert twice.json()["instead"].startswith("population = ")
        shown = page + sender.get("/datasets/people/manage").text + sender.get("/register").text + twice.text
        kept = str([[each.details, each.object] for each in opened.rows(AuditLine)])
        assert PASSWORD not in shown + kept
        assert "The import report prepares them in advance" in shown
        assert "The first query prepares them" in sender.get("/datasets/people").text
        assert PASSWORD.encode() not in opened.rows(Arrival)[0].wrapped + (version.address or b"")
        assert PASSWORD.encode() not in opened.settings.path("hub.db").read_bytes()
    finally:
        opened.close()
