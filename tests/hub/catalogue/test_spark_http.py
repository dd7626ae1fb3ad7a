"""A table of a Spark becomes a data set, by page and by API; its token is kept wrapped and shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from cloister.hub.platform.catalogue.origins import content_of
from cloister.hub.records.catalogue import Arrival, DataSetVersion
from cloister.hub.records.trail import AuditLine
from scripts import spark
from tests.hub.catalogue.world import FORM, Sender, World
from tests.spark_proxy import behind_nginx

pytestmark = pytest.mark.spark
COLUMNS = {"age": {"kind": "integer", "low": 17, "high": 90, "reason": "the register takes adults"}}


@pytest.fixture
def opened(world: World, ada: Sender, spark_connect: spark.Server) -> World:
    """A hub that may reach the server, and whose owner ada is."""
    found = world.again(sources=f"127.0.0.1:{spark_connect.port}")
    yield found
    found.close()


@pytest.fixture
def sender(opened: World) -> Sender:
    found = Sender(opened)
    found.log_in("ada@example.org")
    return found


def address(server: spark.Server, table: str = "default.people") -> str:
    return f"{server.url}::{table}"


def test_a_table_of_a_spark_is_declared_by_page_and_asked(opened: World, sender: Sender, spark_connect: spark.Server) -> None:
    answer = sender.post("/register/connection", "/register", address=address(spark_connect, "People"))
    assert answer.status_code == 303, answer.text
    number = answer.headers["location"].removeprefix("/register/")
    page = sender.get(f"/register/{number}").text
    assert f"sc://127.0.0.1:{spark_connect.port}::spark_catalog.default.People" in page
    assert "copied from the data is a leak" in page
    form = {name: text for name, text in FORM.items() if not name.startswith("c3")}
    assert sender.declare(number, **form).status_code == 303
    assert sender.post(f"/register/{number}/rows", f"/register/{number}", **form).status_code == 422, "rows are shown to nobody"
    assert sender.post(f"/register/{number}/open", f"/register/{number}/review").status_code == 303
    asked = sender.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM people", "spend": "1"})
    assert asked.status_code == 201, asked.text
    assert asked.json()["columns"]["n"][0] == pytest.approx(400, abs=40)
    assert sender.api("GET", "/datasets/people").json()["spent"] == {"epsilon": "1"}
    read = sender.api("GET", "/datasets/people/reading").json()
    assert (read["rows"], read["columns"]["age"]["given"]) == (400, 400)
    too_much = sender.api("POST", "/questions", json={"sql": "SELECT AVG(age) AS a FROM people", "spend": "5"})
    assert too_much.status_code in (402, 403, 409, 422), too_much.text
    [version] = opened.rows(DataSetVersion)
    assert (version.kind, version.file, version.key) == ("connection", "", None)
    again = sender.api("POST", "/connections", json={"address": address(spark_connect, "spark_catalog.DEFAULT.people")}).json()
    body = {"upload": again["id"], "name": "again", "title": "Again", "columns": COLUMNS, "population": "other"}
    twice = sender.api("POST", "/datasets", json=body | {"budget": {"epsilon": "9"}})
    assert twice.status_code == 422, "the same rows spend the same budget, under whatever name"
    assert "has its budget" in twice.json()["detail"]
    newer = sender.api("POST", "/datasets/people/versions", json={"upload": again["id"]})
    assert newer.status_code == 201, newer.text
    asked = sender.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM people WHERE age < 50", "spend": "1/2"})
    assert asked.status_code == 201, asked.text
    assert asked.json()["columns"]["n"][0] == pytest.approx(200, abs=80)
    shown = page + sender.get("/datasets/people/manage").text + sender.get("/register").text + twice.text + answer.text
    kept = str([[each.details, each.object] for each in opened.rows(AuditLine)])
    assert spark_connect.token not in shown + kept
    assert spark_connect.token.encode() not in b"".join(each.address or b"" for each in opened.rows(DataSetVersion))
    assert spark_connect.token.encode() not in opened.settings.path("hub.db").read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("::default.people", "::default.nothing_here"), "none of this name"),
        (("token=", "token=x"), "does not take this token"),
        (("127.0.0.1", "localhost"), "not among the databases"),
        (("127.0.0.1", "169.254.169.254"), "not among the databases"),
        (("token=", "session_id=1;token="), "session_id= is not taken"),
        (("/;token=", "/;use_ssl=true;token="), "could not be reached"),
        (("::default.people", "::csv.`/etc/passwd`"), "table is not a name"),
    ],
)
def test_what_is_refused_is_told_and_nothing_is_kept(
    opened: World, sender: Sender, spark_connect: spark.Server, change: tuple[str, str], said: str
) -> None:
    told = address(spark_connect).replace(*change)
    by_api = sender.api("POST", "/connections", json={"address": told})
    by_page = sender.post("/register/connection", "/register", address=told)
    assert by_api.status_code >= 400
    assert said in by_api.json()["detail"] + by_api.json()["title"]
    assert by_api.json()["instead"]
    assert spark_connect.token not in by_api.text + by_page.text
    assert opened.rows(Arrival) == []


def test_by_tls_its_certificate_is_vouched_for_by_those_of_the_settings(
    world: World, ada: Sender, spark_connect: spark.Server, tmp_path: Path
) -> None:
    with behind_nginx(spark_connect, tmp_path / "nginx", "localhost") as (port, authority):
        told = f"sc://localhost:{port}/;use_ssl=true;token={spark_connect.token}::people"
        for authorities, taken in (("", False), (str(authority), True)):
            opened = world.again(sources=f"localhost:{port}", source_authorities=authorities)
            try:
                sender = Sender(opened)
                sender.log_in("ada@example.org")
                answer = sender.api("POST", "/connections", json={"address": told})
                assert (answer.status_code == 201) is taken, answer.text
            finally:
                opened.close()


def test_a_spark_that_went_away_closes_its_data_set_alone(opened: World, sender: Sender, spark_connect: spark.Server) -> None:
    opened.register("ada@example.org", name="here")
    upload = sender.api("POST", "/connections", json={"address": address(spark_connect)}).json()["id"]
    body = {"upload": upload, "name": "there", "title": "There", "columns": COLUMNS, "population": "there"}
    assert sender.api("POST", "/datasets", json=body | {"budget": {"epsilon": "1"}}).status_code == 201
    again = opened.again(sources="")  # as when the administrator takes it off the list
    try:
        sender = Sender(again)
        sender.log_in("ada@example.org")
        refused = sender.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM there", "spend": "0.1"})
        assert refused.status_code == 403, refused.text
        assert "administrator" in refused.text
        assert sender.api("GET", "/datasets/there").json()["spent"] == {"epsilon": "0"}
        asked = sender.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM here", "spend": "0.1"})
        assert asked.status_code == 201, asked.text
    finally:
        again.close()


def test_the_same_table_is_the_same_rows_however_it_is_written() -> None:
    whole = content_of("connection", "", "sc://spark.example.org:15002::spark_catalog.default.people")
    assert whole == content_of("connection", "", "sc://spark.example.org:15002::spark_catalog.default.People")
    assert whole != content_of("connection", "", "sc://spark.example.org:15002::spark_catalog.default.others")
