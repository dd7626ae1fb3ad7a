"""The trail in a browser and through the API: who sees which lines, filters, files, verifying, alerts."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest

from cloister.hub.hub import Caller
from cloister.hub.platform import access, accounts, trail
from cloister.hub.platform.trail import write_alone
from cloister.hub.platform.trail.alerts import Notice, _keep
from cloister.hub.platform.trail.profiles import Question
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.trail import AuditLine
from tests.hub.trail.browsing import Visitor


@pytest.fixture
def hub(opens):
    return opens((trail.SERVICE, accounts.SERVICE, access.SERVICE))


@pytest.fixture
def people(hub, clock):
    """A steward, an owner with a data set, an analyst; and what they did."""
    ada, olga, sue = (Caller(id=name, via="session") for name in ("ada", "olga", "sue"))
    ask = {"kind": "release", "object_id": "r1", "purpose": "=cmd|' /C calc'!A0", "cost": {"people": "ε = 0.1"}}
    write_alone(hub, ada, "question.ask", **ask, data_sets=["d1"], columns=["people.age"], sql="SELECT 1")
    write_alone(hub, ada, "question.ask", outcome="denied", data_sets=["d2"])
    clock.now += timedelta(days=1)
    write_alone(hub, olga, "dataset.grant", kind="data-set", object_id="d1", to="ada")
    write_alone(hub, sue, "people.invite", kind="person", object_id="zoe")
    found = {name: Visitor(hub, name, role) for name, role in (("sue", "steward"), ("olga", "owner"), ("ada", "analyst"))}
    now = hub.now()
    with hub.database.begin() as db:
        db.add(DataSet(id="d1", name="people", title="People", owner="olga", declaration={}, created=now, changed=now))
    return found


def numbers(visitor, path) -> list[int]:
    answer = visitor.api("GET", path)
    assert answer.status_code == 200, answer.text
    return [line["number"] for line in answer.json()["lines"]]


class TestWhoSees:
    def test_nobody(self, hub):
        assert Visitor(hub).get("/trail").headers["location"].startswith("/login")
        assert Visitor(hub).api("GET", "/trail").status_code == 401

    def test_an_analyst_sees_only_their_own(self, people):
        ada = people["ada"]
        for path in ("/trail", "/trail/export/csv", "/trail/people/olga", "/trail/alerts"):
            assert ada.get(path).status_code == 403, path
        for path in ("/trail", "/trail/verify", "/trail/alerts", "/trail/export/csv"):
            assert ada.api("GET", path).status_code == 403, path
        assert numbers(ada, "/trail/mine") == [2, 1]
        assert numbers(ada, "/trail/uses") == []
        assert numbers(ada, "/trail/mine?person=olga") == []
        page = ada.get("/trail/mine").text
        assert "SELECT 1" in page
        assert "people.age" in page
        assert "ε = 0.1" in page

    def test_an_owner_sees_what_is_about_their_data(self, people):
        olga = people["olga"]
        assert numbers(olga, "/trail/uses") == [3, 1]
        assert numbers(olga, "/trail/uses?object=d2") == []
        page = olga.get("/trail/uses").text
        assert "SELECT 1" in page
        assert "zoe" not in page
        assert len(olga.get("/trail/uses/export/jsonl").text.splitlines()) == 2

    def test_a_steward_sees_everything(self, people):
        assert numbers(people["sue"], "/trail") == [4, 3, 2, 1]
        assert people["sue"].get("/trail/people/ada").status_code == 200
        assert people["sue"].get("/trail/people/nobody").status_code == 404

    def test_profiles(self, people):
        own = people["ada"].api("GET", "/trail/mine/profile").json()
        assert own["total"] == 1
        assert own["columns"] == [{"name": "people.age", "questions": 1}]
        assert own["spend"] == [{"population": "people", "spent": "ε = 0.1"}]
        assert own["hours"][:2] == [{"hour": 0, "questions": 0}, {"hour": 1, "questions": 0}]
        assert [set(each) for each in own["days"]] == [{"day", "questions"}] * len(own["days"])
        assert people["sue"].api("GET", "/trail/people/ada").json() == own
        assert people["olga"].api("GET", "/trail/people/ada").status_code == 403
        assert people["sue"].api("GET", "/trail/people/none").status_code == 404


class TestFilters:
    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("person=ada", [2, 1]),
            ("person=OLGA@example", [3]),
            ("person=%25", []),
            ("action=question", [2, 1]),
            ("action=question.ask", [2, 1]),
            ("action=quest", []),
            ("object=people", [3, 1]),
            ("object=d1", [3, 1]),
            ("object=data-set:d1", [3, 1]),
            ("object=population:people", []),
            ("purpose=/C calc", [1]),
            ("purpose=CMD", [1]),
            ("purpose=%25", []),
            ("purpose=_", []),
            ("purpose=care", []),
            ("purpose=calc&outcome=denied", []),
            ("outcome=denied", [2]),
            ("since=2026-03-03", [4, 3]),
            ("until=2026-03-02", [2, 1]),
            ("until=20260302", [2, 1]),
            ("until=2026-03-02T08:00:00", []),
            ("person=ada&outcome=done&object=r1", [1]),
        ],
    )
    def test_each(self, people, query, expected):
        assert numbers(people["sue"], f"/trail?{query}") == expected
        page = people["sue"].get(f"/trail?{query}")
        assert page.status_code == 200
        assert ("No matching entries" in page.text) == (expected == [])

    @pytest.mark.parametrize(
        "query", ["outcome=odd", "since=yesterday", "until=9999-99-99", "before=-1", "limit=0", "person=%00", "purpose=%00"]
    )
    def test_what_is_none_is_refused(self, people, query):
        answer = people["sue"].api("GET", f"/trail?{query}")
        assert answer.status_code == 422, answer.text
        assert answer.headers["content-type"] == "application/problem+json"

    def test_the_ends_of_time_are_days_too(self, people):
        assert numbers(people["sue"], "/trail?since=0001-01-01&until=9999-12-31") == [4, 3, 2, 1]
        assert people["sue"].get("/trail?since=0001-01-01&until=9999-12-31").status_code == 200

    def test_pages(self, hub, people):
        for _ in range(120):
            write_alone(hub, people["ada"].caller, "dataset.see", object_id="x")
        assert numbers(people["sue"], "/trail?object=x&limit=3") == [124, 123, 122]
        assert numbers(people["sue"], "/trail?object=x&limit=2&before=7") == [6, 5]
        assert people["sue"].api("GET", "/trail?object=x&limit=2&before=7").json()["older"] is None
        first = people["sue"].get("/trail?object=x").text
        assert "before=75" in first
        second = people["sue"].get("/trail?object=x&before=75").text
        assert "after=74" in second
        back = people["sue"].get("/trail?object=x&after=74").text
        assert ">124<" in back
        assert ">74<" not in back


class TestFiles:
    def test_a_spreadsheet_computes_nothing(self, people):
        answer = people["sue"].get("/trail/export/csv?action=question")
        assert answer.headers["content-disposition"].startswith("attachment")
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert [row["number"] for row in rows] == ["1", "2"]
        assert rows[0]["purpose"] == "'=cmd|' /C calc'!A0"
        assert json.loads(rows[0]["cost"]) == {"people": "ε = 0.1"}

    @pytest.mark.parametrize("which", ["", "/mine", "/uses"])
    def test_a_purpose_is_looked_for_in_each_part_and_its_file(self, people, which):
        who = people[{"": "sue", "/mine": "ada", "/uses": "olga"}[which]]
        page = who.get(f"/trail{which}?purpose=CALC").text
        assert 'name="purpose"' in page
        assert 'value="CALC"' in page
        assert f"/trail{which}/export/csv?purpose=CALC" in page
        assert "No matching entries" in who.get(f"/trail{which}?purpose=care").text
        for purpose, expected in (("CALC", ["1"]), ("care", [])):
            rows = csv.DictReader(io.StringIO(who.get(f"/trail{which}/export/csv?purpose={purpose}").text))
            assert [row["number"] for row in rows] == expected
            assert numbers(who, f"/trail{which}?purpose={purpose}") == [int(each) for each in expected]

    def test_an_export_of_the_api_keeps_to_a_purpose_and_its_line_says_so(self, hub, people):
        lines = people["sue"].api("GET", "/trail/export/jsonl?purpose=calc").text.splitlines()
        assert [json.loads(line)["number"] for line in lines] == [1]
        with hub.database.reading() as db:
            line = db.query(AuditLine).order_by(AuditLine.number.desc()).first()
            assert line.details["filters"] == "purpose=calc"

    def test_lines_for_programs(self, hub, people, monkeypatch):
        monkeypatch.setattr("cloister.hub.platform.trail.reading._BATCH", 2)
        lines = [json.loads(line) for line in people["sue"].api("GET", "/trail/export/jsonl").text.splitlines()]
        assert [line["number"] for line in lines] == [1, 2, 3, 4, 5]
        assert lines[-1]["action"] == "trail.export"
        assert lines[0]["purpose"].startswith("=cmd")

    def test_an_export_is_a_line(self, hub, people):
        people["sue"].get("/trail/export/csv?action=question")
        with hub.database.reading() as db:
            line = db.query(AuditLine).order_by(AuditLine.number.desc()).first()
            assert (line.action, line.person, line.details["filters"]) == ("trail.export", "sue", "action=question")


class TestVerifying:
    def test_it_says_what_it_found(self, hub, people):
        sue = people["sue"]
        assert sue.api("GET", "/trail/verify").json()["holds"] is True
        assert sue.post("/trail/verify", "/trail").headers["location"] == "/trail"
        assert "none was changed" in sue.get("/trail").text
        from sqlalchemy import text

        with hub.database.begin() as db:
            db.execute(text("UPDATE trail SET person = 'olga' WHERE number = 2"))
        found = sue.api("GET", "/trail/verify").json()
        assert (found["holds"], found["line"]) == (False, 2)
        sue.post("/trail/verify", "/trail")
        assert "The audit log is broken: line 2" in sue.get("/trail").text

    def test_a_form_of_another_site_is_refused(self, people):
        assert people["sue"].client.post("/trail/verify").status_code == 403


class TestAlerts:
    @pytest.fixture
    def alert(self, hub, people) -> str:
        with hub.database.begin() as db:
            notice = Notice(kind="columns", about={"columns": ["people.<b>pay</b>"]})
            return _keep(hub, db, "ada", [(1, Question(when=hub.now()), notice)])

    def test_a_steward_looks(self, hub, people, alert):
        sue = people["sue"]
        page = sue.get("/trail/alerts").text
        assert "Columns never touched before" in page
        assert "people.&lt;b&gt;pay&lt;/b&gt;" in page
        assert sue.post(f"/trail/alerts/{alert}/seen", "/trail/alerts").status_code == 303
        assert "Columns never touched" not in sue.get("/trail/alerts").text
        assert "acknowledged by Sue" in sue.get("/trail/alerts?seen=yes").text
        with hub.database.reading() as db:
            assert db.query(AuditLine).order_by(AuditLine.number.desc()).first().action == "alert.see"

    def test_programs_look(self, people, alert):
        sue = people["sue"]
        (found,) = sue.api("GET", "/trail/alerts?seen=false").json()
        assert (found["id"], found["person"], found["seen_by"]) == (alert, "ada", "")
        assert sue.api("POST", f"/trail/alerts/{alert}/seen").status_code == 204
        assert sue.api("GET", "/trail/alerts?seen=true").json()[0]["seen_by"] == "sue"
        assert sue.api("POST", "/trail/alerts/none/seen").status_code == 404
        assert sue.api("POST", "/trail/alerts/%00/seen").status_code == 422
        assert people["ada"].api("POST", f"/trail/alerts/{alert}/seen").status_code == 403

    def test_the_first_page_says_how_many_wait(self, people, alert):
        assert "/trail/alerts" in people["sue"].get("/").text
        assert "/trail/alerts" not in people["ada"].get("/").text
