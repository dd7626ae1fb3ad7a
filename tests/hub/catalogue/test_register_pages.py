"""The guided way, as a browser without scripts goes it."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from cloister.hub.platform.catalogue.typed import declared_places, typed_of
from cloister.hub.records.catalogue import Arrival, DataSet, Population
from cloister.hub.records.declarations import check_declaration
from cloister.hub.records.trail import AuditLine
from cloister.hub.storage import HeaderColumn
from tests.hub.accounts.world import Clock
from tests.hub.catalogue.world import CANARY, FORM, PEOPLE, VISITS, Sender, World, text_of
from tests.hub.storage.test_foreign import xlsx


def test_from_a_file_to_a_data_set_that_answers(world: World, ada: Sender) -> None:
    number = ada.arrival()
    page = ada.get(f"/register/{number}")
    assert page.status_code == 200
    assert CANARY not in page.text
    assert "A bound that is copied from the data is a leak" in page.text
    usual = text_of(page.text).replace("\xa0", " ")
    assert "Attacker's best chance of a right guess: a value" in usual
    assert "which of two values you have counts ε twice" in usual
    assert ada.declare(number, **FORM).headers["location"] == f"/register/{number}/review"
    review = text_of(ada.get(f"/register/{number}/review").text)
    values = ("(say, which of two diagnoses) with at most 98.3 % success", "all four, at most 99.99999 %")
    for said in ("ε = 2", "at most 88.1 %", "at most 99.97 %", *values, "17 to 90", "the register takes adults", "Dropped town"):
        assert said in review.replace("\xa0", " "), said
    answer = ada.post(f"/register/{number}/open", f"/register/{number}/review")
    assert answer.headers["location"] == "/datasets/people/manage"
    assert ada.get("/datasets/people/manage").status_code == 200
    asked = ada.api("POST", "/questions", json={"sql": "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "spend": "1"})
    assert asked.status_code == 201, asked.text
    assert sum(asked.json()["columns"]["n"]) == pytest.approx(400, abs=60)
    row = world.rows(DataSet)[0]
    assert row.declaration["reasons"] == {
        "age": "the register takes adults",
        "sex": "the register's two codes",
        "pay": "wages by the published scale",
    }
    assert "town" not in row.declaration["columns"]
    population = world.rows(Population)[0]
    assert (population.name, population.people, population.unit) == ("townspeople", 400, "person")
    assert world.rows(Arrival) == []
    page = ada.get("/datasets/people").text
    assert "ε" in page
    assert CANARY not in page


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"c0_high": ""}, "a bound is missing"),
        ({"c0_reason": ""}, "a bound that is copied from the data is a leak"),
        ({"c1_reason": ""}, "their public reason is missing"),
        ({"c0_low": "91"}, "the lower bound is above the upper"),
        ({"c1_values": ""}, "it lists no category"),
        ({"c3_step": "0.7"}, "the step does not divide the range"),
        ({"c0_kind": "", "c1_kind": "", "c3_kind": ""}, "every column is left out"),
        ({"c0_kind": "secret"}, "has no kind among"),
        ({"title": ""}, "The title is invalid"),
        ({"understood": ""}, "the last box is not ticked"),
        ({"epsilon": ""}, "ε or ρ is missing"),
        ({"epsilon": "much"}, "is invalid"),
        ({"epsilon": "0"}, "with 0 nothing can be asked"),
        ({"measure": "approx"}, "its δ is missing"),
        ({"measure": "rho"}, "ε or ρ is missing"),
        ({"rows_are": "column"}, "no column is chosen"),
        ({"rows_are": "column", "unit_column": "0"}, "the number of rows of one person that count is missing"),
        ({"rows_are": "column", "unit_column": "77"}, "no column is chosen"),
        ({"size": "many"}, "it is not a whole number"),
        ({"size": "2,5"}, "it is not a whole number"),
        ({"retention": "soon"}, "it is not a date"),
        ({"sensitivity": "very"}, "it is not one of the levels"),
        ({"combinable_with": "nothing_here"}, "There is no such data set"),
        ({"every": "year", "window": "2026-Q1"}, "its name is not that of a year"),
        ({"every": "week", "window": "2026"}, "there are no windows of that length"),
    ],
)
def test_what_is_wrong_stands_beside_the_form_and_what_was_typed_stays(
    world: World, ada: Sender, change: dict[str, str], said: str
) -> None:
    number = ada.arrival()
    answer = ada.declare(number, **{**FORM, "about": "typed by hand", **change})
    assert answer.status_code in (404, 422)
    assert said in text_of(answer.text)
    assert "Instead" in answer.text
    for text in (answer.text, ada.get(f"/register/{number}").text):
        assert "typed by hand" in text
        assert "townspeople" in text
    assert CANARY not in answer.text
    assert world.left()[1:4] == (0, 0, 0)
    assert world.hub.ledger.populations() == []
    assert ada.get(f"/register/{number}/review").status_code in (404, 422)
    assert ada.post(f"/register/{number}/open", "/register").status_code in (404, 422)
    assert world.left()[1:4] == (0, 0, 0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": "select"}, "is not an SQL keyword"),
        ({"name": "People"}, "lower-case letters"),
        ({"name": "a" * 64}, "lower-case letters"),
        ({"name": "people; DROP TABLE person"}, "lower-case letters"),
        ({"population_new": ""}, "The population is invalid"),
        ({"population_new": "../x"}, "The population is invalid"),
        ({"title": "a\x07b"}, "The title is invalid"),
    ],
)
def test_what_is_refused_at_the_end_leaves_nothing_but_the_form(
    world: World, ada: Sender, change: dict[str, str], said: str
) -> None:
    number = ada.arrival()
    ada.declare(number, **{**FORM, **change})
    answer = ada.post(f"/register/{number}/open", "/register")
    assert answer.status_code == 422, answer.text
    assert said in text_of(answer.text)
    assert world.left() == (1, 0, 0, 0, [f"uploads/{number}"])
    assert world.hub.ledger.populations() == []
    ada.declare(number, **FORM)
    assert ada.post(f"/register/{number}/open", "/register").status_code == 303


def test_a_workbook_and_latin_letters_become_a_table(world: World, ada: Sender) -> None:
    book = xlsx({"codes": [["a"], [1]], "people": [["name", "age", ""], ["Zoë", 39]]})
    asked = ada.send(book, "study.xlsx")
    assert asked.status_code == 422
    assert "Its sheets: codes, people" in text_of(asked.text)
    assert world.left()[4] == []  # nothing of it stays
    number = ada.send(book, "study.xlsx", sheet="people").headers["location"].rpartition("/")[2]
    page = ada.post(f"/register/{number}/rows", f"/register/{number}").text
    assert "study.xlsx · people" in text_of(page)
    assert "<td>Zoë</td><td>39</td>" in page
    latin = ada.arrival("name,town,\nZoë,Köln,\n".encode("latin-1"), "old.csv")
    page = ada.post(f"/register/{latin}/rows", f"/register/{latin}").text
    assert "old.csv · Windows-1252" in text_of(page)
    assert "<td>Zoë</td><td>Köln</td>" in page
    headers = {"Content-Type": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
    sent = ada.api("POST", "/uploads?sheet=people", content=book, headers=headers)
    assert [each["name"] for each in sent.json()["columns"]] == ["name", "age"]
    refused = ada.api("POST", "/uploads", content=book, headers=headers).json()
    assert refused["detail"].startswith("it has several sheets")


def test_events_are_not_opened_as_persons_without_a_word(world: World, ada: Sender) -> None:
    """A column is an identifier, and each row is said to be one person: the page names the column and asks."""
    number = ada.arrival()
    form = {**FORM, "c2_kind": "identifier"}
    asked = ada.declare(number, **form)
    assert asked.status_code == 422
    assert "'town' may name events" in text_of(asked.text)
    assert 'name="row_is_person"' in asked.text
    assert ada.post(f"/register/{number}/open", "/register").status_code == 422
    assert world.hub.ledger.populations() == []
    assert ada.declare(number, **{**form, "row_is_person": "yes"}).headers["location"] == f"/register/{number}/review"
    assert "checked" in ada.get(f"/register/{number}").text.partition('name="row_is_person"')[2][:80]
    assert ada.post(f"/register/{number}/open", "/register").status_code == 303
    opened = next(line for line in world.rows(AuditLine) if line.action == "dataset.register")
    assert opened.details["row_is_person"] is True
    other = ada.arrival()
    several = {**FORM, "name": "visits", "population": "townspeople", "population_new": "", "epsilon": "", "rows_are": "column"}
    answer = ada.declare(other, **{**several, "unit_column": "2", "max_rows": "3"})
    assert "may name events" not in answer.text


def test_the_api_asks_for_the_same_word(world: World, ada: Sender) -> None:
    columns = {"town": {"kind": "identifier"}, "sex": {"kind": "category", "values": ["F", "M"], "reason": "two codes"}}
    body = {"name": "people", "title": "People", "columns": columns, "population": "people", "budget": {"epsilon": "1"}}
    refused = ada.api("POST", "/datasets", json={**body, "upload": ada.arrival()})
    assert refused.status_code == 422, refused.text
    assert "'town' may name events" in refused.text
    assert world.hub.ledger.populations() == []
    opened = ada.api("POST", "/datasets", json={**body, "upload": ada.arrival(), "row_is_person": True})
    assert opened.status_code == 201, opened.text


def test_a_name_that_is_taken_is_a_conflict_and_can_be_mended(world: World, ada: Sender) -> None:
    world.register()
    number = ada.arrival()
    ada.declare(number, **FORM)
    answer = ada.post(f"/register/{number}/open", "/register")
    assert answer.status_code == 409
    assert "a data set has that name, or had it until it was deleted" in answer.text
    ada.declare(number, **{**FORM, "name": "people_2", "population": "people"})
    assert ada.post(f"/register/{number}/open", "/register").status_code == 303


def test_rows_are_shown_when_asked_for_and_the_trail_knows(world: World, ada: Sender) -> None:
    number = ada.arrival()
    answer = ada.post(f"/register/{number}/rows", f"/register/{number}", **{**FORM, "title": "Half typed"})
    assert CANARY in answer.text
    assert "Half typed" in answer.text
    assert answer.text.count(CANARY) == 10
    assert [action for action, _, _ in world.trail()].count("dataset.look") == 1
    assert CANARY not in ada.get(f"/register/{number}").text
    eve = world.owner("eve@example.org")
    assert eve.post(f"/register/{number}/rows", "/register").status_code == 404


def test_a_table_of_visits_has_a_unit_and_a_cap(world: World, ada: Sender) -> None:
    number = ada.arrival(VISITS, "visits.csv")
    form = {
        **{name: text for name, text in FORM.items() if not name.startswith("c")},
        "name": "visits",
        "rows_are": "column",
        "unit_column": "0",
        "max_rows": "3",
        "unit": "household",
        "c1_kind": "integer",
        "c1_low": "0",
        "c1_high": "100",
        "c1_reason": "the price list",
        "c1_labels": "finance",
        "c1_sensitivity": "confidential",
    }
    assert ada.declare(number, **form).status_code == 303
    assert ada.post(f"/register/{number}/open", "/register").status_code == 303
    row = world.rows(DataSet)[0]
    assert (row.declaration["unit"], row.declaration["max_rows"]) == ("patient", 3)
    assert row.metadata_["columns"] == {"cost": {"labels": ["finance"], "sensitivity": "confidential"}}
    assert world.rows(Population)[0].unit == "household"


def test_policies_are_kept_in_their_one_form(world: World, ada: Sender) -> None:
    other = world.register(name="towns", public=True)
    number = ada.arrival()
    policy = {"purposes": "research, care", "consent": "broad", "sensitivity": "special", "retention": "2030-12-31"}
    ada.declare(number, **FORM, **policy, labels="clinical", combinable_with="towns", listed="yes")
    assert ada.post(f"/register/{number}/open", "/register").status_code == 303
    row = next(each for each in world.rows(DataSet) if each.name == "people")
    assert row.metadata_["policy"] == {
        "purposes": ["care", "research"],
        "consent": ["broad"],
        "sensitivity": "special",
        "retention": "2031-01-01T00:00:00Z",
        "labels": ["clinical"],
        "combinable_with": [other.id],
    }
    page = ada.get("/datasets/people/manage").text
    assert 'value="2030-12-31"' in page
    assert 'value="towns"' in page


def test_delta_and_rho_and_their_warnings(world: World, ada: Sender) -> None:
    number = ada.arrival()
    ada.declare(number, **{**FORM, "measure": "approx", "epsilon": "1", "delta": "0.001"})
    review = ada.get(f"/register/{number}/review").text
    assert "δ is too large for so few people" in review
    assert "δ is larger than this hub lets a release have" in review
    ada.declare(number, **{**FORM, "measure": "rho", "rho": "0.1"})
    review = ada.get(f"/register/{number}/review").text
    assert "δ is too large" not in review
    assert "ρ\xa0=\xa01.6" in review


def test_a_public_table_needs_no_declaration(world: World, ada: Sender) -> None:
    number = ada.arrival(b"town,people\nDelft,106000\n", "towns.csv")
    form = {"title": "Towns", "name": "towns", "public": "yes", "understood": "yes", "epsilon": "1", "measure": "epsilon"}
    assert ada.declare(number, **form).status_code == 303
    assert "read every row" in ada.get(f"/register/{number}/review").text
    assert ada.post(f"/register/{number}/open", "/register").status_code == 303
    assert world.hub.ledger.populations() == []
    bob = world.somebody("bob@example.org", "analyst")
    assert "public table" in bob.get("/datasets").text
    assert bob.get("/datasets/towns").status_code == 200


def test_a_connection_where_none_is_allowed(world: World, ada: Sender) -> None:
    assert "allows no connections" in ada.get("/register").text
    answer = ada.post("/register/connection", "/register", address="postgresql://a:pw-canary@127.0.0.1/x::t")
    assert answer.status_code == 422
    assert "allows no connection" in answer.text
    assert world.left()[0] == 0


def test_a_connection_to_a_place_that_is_not_on_the_list(world: World, clock: Clock, ada: Sender) -> None:
    opened = world.again(sources="db.example.org:5432")
    sender = Sender(opened)
    sender.log_in("ada@example.org")
    addresses = (
        "postgresql://a:pw-canary@169.254.169.254/x::t",
        "postgresql://a:pw-canary@localhost:22/x::t",
        "postgresql:///x?host=/var/run::t",
        "file:///etc/passwd",
    )
    for address in addresses:
        answer = sender.post("/register/connection", "/register", address=address)
        assert answer.status_code in (403, 422), answer.status_code
        assert sender.api("POST", "/connections", json={"address": address}).status_code in (403, 422)
        assert "pw-canary" not in answer.text
    assert opened.left()[0] == 0
    opened.close()


def test_a_very_wide_table_can_be_declared(world: World, ada: Sender) -> None:
    names = [f"q{n}" for n in range(300)]
    number = ada.arrival((",".join(names) + "\n" + ",".join("1" for _ in names) + "\n").encode())
    columns = {f"c{n}_{field}": "" for n in range(300) for field in ("low", "high", "step", "values", "labels", "purposes")}
    kinds = {f"c{n}_kind": "boolean" for n in range(300)}
    form = {name: text for name, text in FORM.items() if not name.startswith("c")}
    assert ada.declare(number, **form, **columns, **kinds).status_code == 303
    assert ada.post(f"/register/{number}/open", "/register").status_code == 303
    assert len(world.rows(DataSet)[0].declaration["columns"]) == 300


def test_names_of_any_letters_are_text_and_never_markup(world: World, ada: Sender) -> None:
    evil = "<script>alert(1)</script>"
    number = ada.arrival(f'"🏔 height","{evil}"\n1,2\n'.encode())
    form = {name: text for name, text in FORM.items() if not name.startswith("c")}
    form |= {"title": evil, "about": evil, "labels": evil, "purposes": evil, "population_new": "hikers", "listed": "yes"}
    columns = {"c0_kind": "category", "c0_values": f"{evil}\n🏔", "c0_reason": evil, "c1_kind": "text", "c1_labels": evil}
    assert ada.declare(number, **form, **columns).status_code == 303
    pages = [ada.get(f"/register/{number}").text, ada.get(f"/register/{number}/review").text]
    assert ada.post(f"/register/{number}/open", "/register").status_code == 303
    paths = ("/datasets", "/datasets/people", "/datasets/people/manage", "/datasets/people/version", "/populations", "/")
    pages += [ada.get(path).text for path in paths]
    for page in pages:
        assert evil not in page
    assert "🏔 height" in pages[3]
    assert "&lt;script&gt;" in pages[3]


def test_a_file_name_is_text(world: World, ada: Sender) -> None:
    number = ada.arrival(PEOPLE, "../../<b>x</b>.csv")
    assert world.rows(Arrival)[0].shown == "b>.csv"
    assert "<b>" not in ada.get(f"/register/{number}").text.replace("<b>ε", "")


TRIPS = b"lon,lat,at,to_lon,to_lat\n" + b"".join(
    f"4.{20 + n % 30},52.0,2026-03-{1 + n % 28:02d}T{n % 24:02d}:30:00,4.31,51.95\n".encode() for n in range(300)
)
RING = [[4.3, 51.9], [4.5, 51.9], [4.5, 52.1], [4.3, 52.1], [4.3, 51.9]]
AREA = {"type": "Feature", "properties": {"district": "East"}, "geometry": {"type": "Polygon", "coordinates": [RING]}}
DISTRICTS = {"type": "FeatureCollection", "features": [AREA]}
JOURNEYS = {
    **{name: text for name, text in FORM.items() if not name.startswith("c")},
    "name": "trips",
    "rows_are": "units",
    "epsilon": "1000",
    "c2_kind": "moment",
    "c2_low": "2026-03-01",
    "c2_high": "2026-03-31",
    "c2_reason": "the month of the survey",
    "p0_name": "home",
    "p0_longitude": "0",
    "p0_latitude": "1",
    "p0_within": "4.2, 51.9 4.5 52.1",
    "p0_reason": "the town",
    "p1_name": "goal",
    "p1_longitude": "3",
    "p1_latitude": "4",
    "p1_within": json.dumps(DISTRICTS),
    "p1_property": "district",
    "p1_reason": "the town's districts",
    "p1_nullable": "yes",
}


def test_a_box_stands_between_commas_of_either_kind() -> None:
    columns = [HeaderColumn(name=name, kind="text", suggested="") for name in ("lon", "lat", "at", "to_lon", "to_lat")]
    found, _ = declared_places({**JOURNEYS, "p0_within": "4.2，51.9, 4.5\n52.1"}, columns)
    assert found["home"]["box"] == ["4.2", "51.9", "4.5", "52.1"]


def test_places_and_moments_are_declared_asked_about_and_declared_again(world: World, ada: Sender) -> None:
    number = ada.arrival(TRIPS, "trips.csv")
    assert ada.declare(number, **JOURNEYS).headers["location"] == f"/register/{number}/review"
    page = ada.get(f"/register/{number}").text
    assert 'value="home"' in page
    saved = ada.get(f"/register/{number}/declaration.toml").text
    assert 'home = { kind = "place", box = ["4.2", "51.9", "4.5", "52.1"], longitude = "lon", latitude = "lat" }' in saved
    review = text_of(ada.get(f"/register/{number}/review").text)
    assert "in the box 4.2, 51.9, 4.5, 52.1 · lon, lat" in review
    assert "1 region · to_lon, to_lat" in review
    assert "Dropped" not in review
    ada.post(f"/register/{number}/open", f"/register/{number}/review")
    sql = "SELECT region(goal) AS r, hour(at) AS h, COUNT(*) AS n FROM trips GROUP BY r, h"
    asked = ada.api("POST", "/questions", json={"sql": sql, "spend": "500"}).json()
    assert [sum(asked["columns"]["n"]), len(asked["columns"]["n"])] == [300, 3 * 24]
    for path in ("/datasets/trips", "/ask/build?about=trips", "/datasets/trips/declaration"):
        assert ada.get(path).status_code == 200, path
    form = {"table": "trips", "count": "yes", "by-0": "home", "width-0": "5000", "by-1": "at", "period-1": "hour", "spend": "1"}
    written = ada.post("/ask/sql", "/ask/build?about=trips", **form).text
    assert "GRID(home, 5000) AS home_cell, EXTRACT(HOUR FROM at) AS at_hour" in text_of(written)
    declared = world.rows(DataSet)[0].declaration
    assert typed_of(declared, [HeaderColumn(name=name, kind="text", suggested="") for name in ("lon", "lat", "at")])[
        "p0_within"
    ] == ("4.2, 51.9, 4.5, 52.1")
    again = check_declaration("trips", declared)
    assert again["columns"] == declared["columns"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"p0_longitude": ""}, "the column of its longitude or latitude is not chosen"),
        ({"p0_within": ""}, "bounds are declared, never looked up"),
        ({"p0_within": "4.5 51.9 4.2 52.1"}, "west is not less than east"),
        ({"p0_name": "at"}, "another column has its name"),
        ({"p0_reason": ""}, "their public reason is missing"),
        ({"p1_property": "name"}, "no property 'name' that names it"),
        ({"p1_within": "/etc/passwd"}, "a box is four numbers"),
        ({"c2_low": "noon"}, "low is not a moment"),
    ],
)
def test_what_is_wrong_with_a_place_stands_beside_it(world: World, ada: Sender, change: dict[str, str], said: str) -> None:
    number = ada.arrival(TRIPS, "trips.csv")
    answer = ada.declare(number, **{**JOURNEYS, **change})
    assert answer.status_code == 422
    assert said in text_of(answer.text)
    assert world.rows(DataSet) == []


def test_the_api_takes_places_and_reads_no_file_of_the_hub(world: World, ada: Sender) -> None:
    place = {"kind": "place", "longitude": "lon", "latitude": "lat", "reason": "the town"}
    body = {"name": "trips", "title": "Trips", "population": "people", "budget": {"epsilon": "1"}}
    for given in ({"regions": "/etc/passwd"}, {"regions": [["x", "/etc/passwd"]]}, {"box": [4, 51]}, {}):
        wrong = {**body, "upload": ada.arrival(TRIPS), "columns": {"home": {**place, **given}}}
        assert ada.api("POST", "/datasets", json=wrong).status_code == 422, given
    good = {**body, "upload": ada.arrival(TRIPS), "columns": {"home": {**place, "regions": DISTRICTS, "name": "district"}}}
    opened = ada.api("POST", "/datasets", json=good)
    assert opened.status_code == 201, opened.text
    sql = "SELECT COUNT(*) AS n FROM trips WHERE ST_Within(home, 'East')"
    asked = ada.api("POST", "/questions", json={"sql": sql, "spend": "0.1"})
    assert asked.status_code == 201, asked.text
    sql = "SELECT region(home) AS r, COUNT(*) AS n FROM trips GROUP BY r"
    mapped = ada.api("POST", "/questions", json={"sql": sql, "spend": "0.5"}).json()
    page = ada.get(f"/releases/{mapped['id']}").text
    drawing = re.search(r'<svg class="map".*?</svg>', page, re.DOTALL)
    assert drawing is not None
    titles = [str(each.text) for each in ElementTree.fromstring(drawing[0]).iter() if each.tag == "title"]
    assert [title.split(":")[0] for title in titles] == ["East"]
    assert "the table has the same numbers" in page
    assert "http" not in drawing[0]
    assert 'class="map"' not in ada.get(f"/releases/{asked.json()['id']}").text


def test_a_third_place_stays_when_the_form_has_room_for_two(world: World, ada: Sender) -> None:
    box = {"kind": "place", "longitude": "lon", "latitude": "lat", "box": ["4.2", "51.9", "4.5", "52.1"], "reason": "the town"}
    columns = {"home": box, "goal": {**box, "longitude": "to_lon", "latitude": "to_lat"}, "shop": {**box, "nullable": True}}
    body = {"name": "trips", "title": "Trips", "population": "people", "budget": {"epsilon": "1"}, "upload": ada.arrival(TRIPS)}
    assert ada.api("POST", "/datasets", json={**body, "columns": columns}).status_code == 201
    before = world.rows(DataSet)[0].declaration
    path = "/datasets/trips/declaration"
    typed = {"p1_within": JOURNEYS["p0_within"], "p1_nullable": "", "p0_reason": "the whole town"}
    form = {name: text for name, text in {**JOURNEYS, **typed}.items() if name[0] in "cp" and name[1].isdigit()}
    assert ada.post(path, path, rows_are="units", **form).status_code == 303
    after = world.rows(DataSet)[0].declaration
    assert sorted(after["columns"]) == ["at", "goal", "home", "shop"]
    assert (after["columns"]["shop"], after["reasons"]["shop"]) == (before["columns"]["shop"], "the town")
    assert after["reasons"]["home"] == "the whole town"
