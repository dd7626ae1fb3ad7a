"""Windows of time cut by a date column: a row is one window's, whatever the file holds and whatever is asked."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.hub.platform.catalogue import expire
from cloister.hub.records.catalogue import DataSet, DataSetVersion, Population
from cloister.privacy import PureDP
from tests.hub.catalogue.growing import COLUMNS, EDGES, MANY, body, count, opened, read, rows, window
from tests.hub.catalogue.world import CANARY, Sender, World, rows_of, text_of

Q1, Q2 = "visits_2026_q1", "visits_2026_q2"
SPAN = {"kind": "date", "low": "2020-01-01", "high": "2030-12-31", "reason": "the study's years"}
WIDE = 450
"""Beyond this a count with noise of scale 25 lies with a probability below e^-18."""


def test_a_window_reads_the_rows_of_its_own_days(world: World, ada: Sender) -> None:
    content = rows("2025-12-31", *EDGES, "2026-04-01") + b"p1,,5\np2,never,5\n,2026-02-02,5\n"
    made = opened(ada, content)
    declared = made["declaration"]
    assert declared["columns"]["day"] == {"kind": "date", "low": "2026-01-01", "high": "2026-03-31", "nullable": False}
    assert (declared["during"], declared["reasons"]["day"]) == (["day", *EDGES], "the days of the window 2026-Q1")
    assert made["window"] == {"every": "quarter", "window": "2026-Q1", "of": "visits", "column": "day"}
    assert read(ada, Q1) == (2 * MANY + 1, MANY, MANY, 2)
    assert count(ada, f"SELECT COUNT(*) AS n FROM {Q1}") == pytest.approx(2 * MANY, abs=WIDE)
    page = text_of(ada.get(f"/datasets/{Q1}/reading").text)
    assert f"Rows of the days from 2026-01-01 to 2026-03-31 {2 * MANY + 1}" in page
    assert f"Rows of earlier days {MANY} Rows of later days {MANY} Rows without a date 2" in page
    assert "is in no window" in page


def test_nobody_but_the_owner_is_told_what_lies_outside(world: World, ada: Sender) -> None:
    opened(ada, rows("2025-12-31", *EDGES, each=37), listed=True)
    told = f"{37} "
    for role in ("analyst", "steward", "administrator", "owner"):
        other = world.somebody(f"{role}@example.org", role)
        assert other.api("GET", f"/datasets/{Q1}/reading").status_code in (403, 404)
        for path in (f"/datasets/{Q1}", f"/datasets/{Q1}/reading", f"/datasets/{Q1}/manage"):
            assert told not in text_of(other.get(path).text)


def test_the_row_cap_holds_per_window(world: World, ada: Sender) -> None:
    """Somebody with very many rows in one window keeps all of theirs in another."""
    content = rows("2026-02-01", each=100) + rows(*(f"2026-05-{day:02}" for day in range(1, 29))).partition(b"\n")[2]
    opened(ada, content, max_rows=1)
    assert read(ada, Q1)[0] == 100
    told = ada.api("GET", f"/datasets/{Q1}/reading").json()
    assert (told["units_over_cap"], told["rows_over_cap"]) == (0, 0)
    assert window(ada).status_code == 201
    assert ada.api("GET", f"/datasets/{Q2}/reading").json()["units_over_cap"] == 100


def test_the_next_window_takes_one_act_and_no_file(world: World, ada: Sender) -> None:
    opened(ada, rows(*EDGES, "2026-04-01", "2026-06-30", "2026-07-01"))
    files = world.left()[4]
    second = window(ada)
    assert second.status_code == 201, second.text
    assert (second.json()["name"], second.json()["population"]) == (Q2, "patients 2026-Q2")
    assert second.json()["declaration"]["columns"]["day"]["low"] == "2026-04-01"
    assert world.left()[4] == files, "served from the file that is there"
    assert read(ada, Q2) == (2 * MANY, 2 * MANY, MANY, 0)
    third = window(ada, Q2).json()
    assert third["name"] == "visits_2026_q3"
    assert read(ada, "visits_2026_q3")[0] == MANY
    earlier = window(ada, window="2025-Q4").json()
    assert (earlier["name"], read(ada, "visits_2025_q4")[0]) == ("visits_2025_q4", 0)
    for name, size in ((Q1, 2 * MANY), (Q2, 2 * MANY), ("visits_2026_q3", MANY), ("visits_2025_q4", 0)):
        assert count(ada, f"SELECT COUNT(*) AS n FROM {name}") == pytest.approx(size, abs=WIDE)
    assert {each.name: world.hub.ledger.spent(each.name) for each in world.rows(Population)} == {
        f"patients {label}": PureDP(2) for label in ("2025-Q4", "2026-Q1", "2026-Q2", "2026-Q3")
    }


def test_the_next_window_is_of_the_same_data_provider(world: World, ada: Sender) -> None:
    """Their policy binds its rows from the first moment, so they see the window, and can change the policy there."""
    pat = world.somebody("pat@example.org", "provider")
    opened(ada, rows(*EDGES), provider="pat@example.org")
    assert pat.post(f"/contributions/{Q1}", purposes="research").status_code == 303
    assert window(ada).status_code == 201
    assert pat.get(f"/contributions/{Q2}").status_code == 200
    assert pat.post(f"/contributions/{Q2}", purposes="teaching").status_code == 303
    kept = {row.name: row.metadata_["contribution"]["purposes"] for row in world.rows(DataSet)}
    assert kept == {Q1: ["research"], Q2: ["teaching"]}


def test_one_growing_file_renews_every_open_window_under_its_own_budget(world: World, ada: Sender) -> None:
    opened(ada, rows(EDGES[0], "2026-04-01", each=100))
    window(ada)
    for name in (Q1, Q2):
        count(ada, f"SELECT COUNT(*) AS n FROM {name}")
    closed = window(ada, window="2026-Q3").json()["name"]
    ada.api("POST", f"/datasets/{closed}/close")
    grown = rows(*EDGES, "2026-04-01", "2026-05-01", "2026-05-02", each=100)
    page = f"/datasets/{Q2}/version"
    assert "For the other open windows too" in text_of(ada.get(page).text)
    answer = ada.send(grown, path=f"/uploads/versions/{Q2}", page=page, others="yes")
    assert answer.status_code == 303, answer.text
    assert {row.name: row.version for row in world.rows(DataSet)} == {Q1: 2, Q2: 2, closed: 1}
    assert (read(ada, Q1)[0], read(ada, Q2)[0]) == (200, 300)
    assert len(world.left()[4]) == 2, "two files for five versions"
    assert world.hub.ledger.spent("patients 2026-Q1") == PureDP(2), "nobody has a fresh budget"
    assert world.hub.ledger.budget("patients 2026-Q1") == PureDP(50)
    alone = ada.upload(rows("2026-06-30", each=10)).json()["id"]
    assert ada.api("POST", f"/datasets/{Q2}/versions", json={"upload": alone}).json()["number"] == 3
    assert (read(ada, Q1)[0], read(ada, Q2)[0]) == (200, 10)
    every = ada.upload(rows(*EDGES, each=1)).json()["id"]
    assert ada.api("POST", f"/datasets/{Q1}/versions", json={"upload": every, "windows": "all"}).json()["number"] == 3
    assert (read(ada, Q1)[0], read(ada, Q2)[0]) == (2, 0)
    assert len({row.population for row in world.rows(DataSet)}) == len(world.rows(Population)) == 3


def test_a_file_that_does_not_fit_changes_no_window(world: World, ada: Sender) -> None:
    opened(ada, rows(*EDGES))
    window(ada)
    before = world.left()
    answer = ada.send(b"who,cost\np1,5\n", path=f"/uploads/versions/{Q1}", page=f"/datasets/{Q1}/version", others="yes")
    assert answer.status_code == 422
    assert world.left() == before
    assert {row.version for row in world.rows(DataSet)} == {1}


ATTACKS = (
    f"SELECT COUNT(*) AS n FROM {Q1} WHERE day >= '2026-04-01'",
    f"SELECT COUNT(*) AS n FROM {Q1} WHERE day = '2026-05-05' OR day > '2026-03-31'",
    f"SELECT COUNT(*) AS n FROM {Q1} WHERE NOT (day <= '2026-03-31')",
    f"SELECT COUNT(*) AS n FROM {Q1} WHERE day IS NULL",
    f"SELECT COUNT(*) AS n FROM {Q1} WHERE EXTRACT(month FROM day) > 3",
    f"SELECT COUNT(*) AS n FROM {Q1} WHERE day + INTERVAL '1 day' > '2026-04-01'",
    f"WITH t AS (SELECT * FROM {Q1}) SELECT COUNT(*) AS n FROM t WHERE day > '2026-03-31'",
    f"SELECT COUNT(*) AS n FROM (SELECT day FROM {Q1} UNION ALL SELECT day FROM {Q1}) AS t WHERE day > '2026-03-31'",
    f"SELECT COUNT(*) AS n FROM {Q1} a JOIN {Q1} b ON a.who = b.who WHERE a.day > '2026-03-31' OR b.day > '2026-03-31'",
    f"SELECT COUNT(*) AS n FROM (SELECT who, MAX(day) AS last FROM {Q1} GROUP BY who) AS t WHERE last > '2026-03-31'",
)


def test_no_question_to_one_window_reads_the_rows_of_another(world: World, ada: Sender) -> None:
    """Ten thousand rows of May stand in the very file that the first window is served from. An answer that read them would be
    far off nothing; a refusal is fine too, and most of these are answered."""
    opened(ada, rows(EDGES[0], each=100) + rows("2026-05-05", each=10_000).partition(b"\n")[2] + b"p1,,5\n" * 5000)
    window(ada)
    answered = 0
    for sql in ATTACKS:
        answer = ada.api("POST", "/questions", json={"sql": sql, "spend": "2"})
        if answer.status_code == 201:
            answered += 1
            reach = 100_000 if " JOIN " in sql else 1500  # of a self-join 250,000 pairs of rows of May would count
            assert int(answer.json()["columns"]["n"][0]) == pytest.approx(0, abs=reach), sql
        else:
            assert answer.status_code == 422, (sql, answer.text)
    assert answered >= 6
    by = ada.api(
        "POST",
        "/questions",
        json={"sql": f"SELECT day, COUNT(*) AS n FROM {Q1} GROUP BY day HAVING COUNT(*) > 3000", "spend": "2"},
    )
    assert by.status_code == 422 or not by.json()["columns"]["n"]
    assert count(ada, f"SELECT COUNT(*) AS n FROM {Q1}") == pytest.approx(100, abs=WIDE)
    assert count(ada, f"SELECT COUNT(*) AS n FROM {Q2}") > 3000, "they are there, for the window that they are of"
    assert world.hub.ledger.spent("patients 2026-Q2") == PureDP(2), "and nothing above was charged to it"


def test_a_row_view_of_a_grant_reaches_no_other_window(world: World, ada: Sender) -> None:
    opened(ada, rows(EDGES[0], each=100) + rows("2026-05-05", each=10_000).partition(b"\n")[2])
    bob = world.somebody("bob@example.org", "analyst")
    rules = {"actions": ["dataset.see", "question.ask", "question.explain"], "rows": "day > '2026-03-31'"}
    granted = ada.api(
        "POST", "/grants", json={"data_set": Q1, "role": "analyst", "members": {"people": ["bob@example.org"]}, "rules": rules}
    )
    assert granted.status_code == 201, granted.text
    assert count(bob, f"SELECT COUNT(*) AS n FROM {Q1}") == pytest.approx(0, abs=WIDE)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) AS n FROM (SELECT cost FROM {Q1} UNION ALL SELECT cost FROM {Q2}) AS t",
        f"SELECT COUNT(*) AS n FROM {Q1} a JOIN {Q2} b ON a.who = b.who",
        f"SELECT COUNT(*) AS n FROM {Q1} WHERE who IN (SELECT who FROM {Q2})",
        f"SELECT COUNT(*) AS n FROM {Q1} WHERE EXISTS (SELECT 1 FROM {Q2} b WHERE b.who = {Q1}.who)",
        f"WITH t AS (SELECT * FROM {Q2}) SELECT COUNT(*) AS n FROM {Q1} JOIN t ON {Q1}.who = t.who",
    ],
)
def test_two_windows_in_one_question_are_refused_with_what_to_do(world: World, ada: Sender, sql: str) -> None:
    opened(ada, rows(*EDGES, "2026-05-05"))
    window(ada)
    answer = ada.api("POST", "/questions", json={"sql": sql, "spend": "1"})
    assert answer.status_code == 422
    assert "two windows of time" in answer.json()["detail"]
    assert answer.json()["instead"] == "one query for each table, whose answers you add up yourself"
    assert "One query reads one window" in text_of(ada.get(f"/datasets/{Q1}").text)
    assert world.hub.ledger.spent("patients 2026-Q1") == world.hub.ledger.spent("patients 2026-Q2") == PureDP(0)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"every": "month", "window": "2026-05"}, "of one quarter each"),
        ({"every": "year", "window": "2026"}, "of one quarter each"),
        ({"window": "2026-Q2", "date_column": ""}, "along the dates in 'day'"),
        ({"window": "2026-Q2", "date_column": "seen"}, "along the dates in 'day'"),
        ({"window": "2026-Q2", "population": "others"}, "of the population 'patients'"),
    ],
)
def test_column_and_length_stay_once_the_first_window_is_open(
    world: World, ada: Sender, changed: dict[str, Any], why: str
) -> None:
    def again() -> Any:
        upload = ada.upload(b"who,day,cost,seen\np1,2026-05-05,3,2026-05-05\n").json()["id"]
        return ada.api("POST", "/datasets", json=body(upload, columns={**COLUMNS, "day": SPAN, "seen": SPAN}, **changed))

    opened(ada, rows(*EDGES))
    answer = again()
    assert answer.status_code == 422, answer.text
    assert "The window of 'visits' is invalid" in answer.json()["title"]
    assert why in answer.json()["detail"]
    assert 'every = "quarter"' in answer.json()["instead"]
    assert ada.api("DELETE", f"/datasets/{Q1}").status_code == 204
    assert again().status_code == 422, "what its people have spent is spent"
    assert [each.name for each in world.rows(Population)] == ["patients 2026-Q1"]


def test_windows_of_one_population_are_of_one_length(world: World, ada: Sender) -> None:
    """Another table of the same patients may be cut along a column of its own, in the same windows."""
    opened(ada, rows(*EDGES))
    other = ada.upload(rows(*EDGES, each=5)).json()["id"]
    monthly = ada.api("POST", "/datasets", json=body(other, name="samples", every="month", window="2026-03"))
    assert (monthly.status_code, monthly.json()["instead"]) == (422, 'every = "quarter", or another population')
    same = ada.api("POST", "/datasets", json=body(other, name="samples", budget=None))
    assert same.status_code == 201, same.text
    assert same.json()["population"] == "patients 2026-Q1"


def test_the_same_file_is_refused_where_its_rows_could_be_of_two(world: World, ada: Sender) -> None:
    content = rows(*EDGES, "2026-05-05")
    opened(ada, content)
    for more in (
        {"name": "again", "population": "others"},
        {"name": "again", "population": "others", "every": "month", "window": "2026-02"},
        {
            "name": "again",
            "population": "others",
            "every": "",
            "window": "",
            "date_column": "",
            "columns": {**COLUMNS, "day": SPAN},
        },
    ):
        answer = ada.api("POST", "/datasets", json=body(ada.upload(content).json()["id"], **more))
        assert answer.status_code == 422, answer.text
        assert answer.json()["instead"] == 'population = "patients 2026-Q1"'
    assert window(ada, upload=ada.upload(content).json()["id"]).status_code == 201, "its own windows share it"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"date_column": "who"}, "no column of that name is declared as a date"),
        ({"date_column": "nothing"}, "no column of that name is declared as a date"),
        ({"every": "", "window": ""}, "no length of windows is chosen"),
        ({"window": "0000-Q1"}, "its name is not that of a quarter"),
        ({"columns": {**COLUMNS, "day": {**SPAN, "low": "2026-02-01"}}}, "the days of 2026-Q1 are 2026-01-01 to 2026-03-31"),
        ({"columns": {**COLUMNS, "day": {"kind": "date", "low": "2020-01-01"}}}, "high"),
    ],
)
def test_what_cannot_be_cut_is_refused(world: World, ada: Sender, more: dict[str, Any], says: str) -> None:
    answer = ada.api("POST", "/datasets", json=body(ada.upload(rows(*EDGES)).json()["id"], **more))
    assert answer.status_code == 422
    assert says in answer.text
    assert world.rows(DataSet) == []


def test_bounds_that_hold_the_window_are_narrowed_to_it(world: World, ada: Sender) -> None:
    made = opened(ada, rows(*EDGES), columns={**COLUMNS, "day": SPAN})
    assert made["declaration"]["columns"]["day"]["high"] == "2026-03-31"


def test_without_a_column_a_window_needs_a_file_of_its_own(world: World, ada: Sender) -> None:
    opened(ada, rows(*EDGES), date_column="", columns={**COLUMNS, "day": SPAN})
    answer = window(ada)
    assert (answer.status_code, "no date column" in answer.json()["detail"]) == (422, True)
    many = ada.upload(rows("2026-05-05")).json()["id"]
    refused = ada.api("POST", f"/datasets/{Q1}/versions", json={"upload": many, "windows": "all"})
    assert (refused.status_code, refused.json()["instead"]) == (422, "a file for each window")
    assert "the owner splits the files by hand" in text_of(ada.get(f"/datasets/{Q1}").text)
    world.register(source=[rows_of("last")])
    assert window(ada, "people").status_code == 422


def test_a_file_goes_with_the_last_window_that_is_served_from_it(world: World, ada: Sender) -> None:
    opened(ada, rows(*EDGES, "2026-05-05"))
    window(ada)
    manage = text_of(ada.get(f"/datasets/{Q1}/manage").text)
    assert f"The file of {Q2}, with keys of its own, also holds these rows" in manage
    [file] = world.left()[4]
    assert ada.api("DELETE", f"/datasets/{Q1}").status_code == 204
    assert world.left()[4] == [file]
    assert read(ada, Q2)[0] == MANY
    [gone, kept] = sorted(world.rows(DataSetVersion), key=lambda each: each.key is not None)
    assert (gone.key, gone.destroyed is not None) == (None, True)
    assert (kept.file, kept.destroyed) == (gone.file, None)
    assert "also holds these rows" not in text_of(ada.get(f"/datasets/{Q2}/manage").text)
    assert window(ada, Q2, window="2026-Q1").status_code == 409, "its name, its days and what they have spent stay"
    assert ada.api("DELETE", f"/datasets/{Q2}").status_code == 204
    assert world.left()[4] == []


def test_a_window_whose_retention_is_over_is_not_served_again(world: World, ada: Sender) -> None:
    opened(ada, rows(*EDGES, "2026-05-05"))
    window(ada)
    last = world.hub.now().date().isoformat()
    assert ada.api("PATCH", f"/datasets/{Q1}", json={"policy": {"retention": last}}).status_code == 200
    world.clock.move(days=2)
    assert expire(world.hub) == [Q1]
    ada.log_in("ada@example.org")
    assert read(ada, Q2)[0] == MANY, "another window keeps its key"
    every = ada.upload(rows(*EDGES, "2026-05-05", each=3)).json()["id"]
    assert ada.api("POST", f"/datasets/{Q2}/versions", json={"upload": every, "windows": "all"}).status_code == 201
    assert {row.name: (row.state, row.version) for row in world.rows(DataSet)} == {Q1: ("closed", 1), Q2: ("open", 2)}


def test_only_the_owner_opens_windows_and_renews_others(world: World, ada: Sender) -> None:
    opened(ada, rows(*EDGES), listed=True)
    window(ada)
    bob = world.somebody("bob@example.org", "owner")
    assert window(bob).status_code == 404
    number = bob.upload(rows("2026-02-02", each=3)).json()["id"]
    assert bob.api("POST", f"/datasets/{Q1}/versions", json={"upload": number, "windows": "all"}).status_code == 404


FORM = {
    "title": "Visits",
    "name": "visits",
    "rows_are": "column",
    "unit_column": "0",
    "max_rows": "50",
    "population_new": "patients",
    "measure": "epsilon",
    "epsilon": "2",
    "understood": "yes",
    "c1_kind": "date",
    "c2_kind": "integer",
    "c2_low": "0",
    "c2_high": "90",
    "c2_reason": "the price list",
    "every": "month",
    "window": "2028-02",
    "date_column": "1",
}


def test_the_pages_from_the_form_to_the_next_window(world: World, ada: Sender) -> None:
    """A leap year's February; the date column needs no bounds, and says so nowhere but in the review."""
    number = ada.arrival(rows("2028-02-01", "2028-02-29", "2028-03-01", "2028-03-31"), "visits.csv")
    assert "Date column" in text_of(ada.get(f"/register/{number}").text)
    assert ada.declare(number, **FORM).status_code == 303
    review = text_of(ada.get(f"/register/{number}/review").text)
    assert "contains its date (column day): here from 2028-02-01 to 2028-02-29. No other rows are read." in review
    assert ada.post(f"/register/{number}/open", f"/register/{number}/review").status_code == 303
    assert read(ada, "visits_2028_02") == (2 * MANY, 0, 2 * MANY, 0)
    page = ada.get("/datasets/visits_2028_02/version").text
    assert "Without a file, the new window reads the rows of this one" in text_of(page)
    answer = ada.send(b"", "", path="/uploads/windows/visits_2028_02", page="/datasets/visits_2028_02/version", window="2028-03")
    assert answer.status_code == 303, answer.text
    assert read(ada, "visits_2028_03") == (2 * MANY, 2 * MANY, 0, 0)
    shown = text_of(ada.get("/datasets/visits_2028_03").text).replace("\xa0", " ")
    assert "ε = 4" in shown
    assert "The row cap applies to each window separately" in shown
    assert CANARY not in shown


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [("every", "", "no length of windows"), ("date_column", "0", "declared as a date"), ("window", "2028-13", "a month")],
)
def test_what_is_wrong_stands_beside_its_field(world: World, ada: Sender, field: str, value: str, says: str) -> None:
    number = ada.arrival(rows("2028-02-01"), "visits.csv")
    answer = ada.declare(number, **FORM | {field: value})
    assert answer.status_code == 422
    assert says in text_of(answer.text)
