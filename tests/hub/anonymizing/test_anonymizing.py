"""Anonymised tables in the hub: a trial for the owner's eyes, a release by the marked door, a data set that inherits."""

from __future__ import annotations

import csv
import io
import re
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.platform.catalogue.managing import delete
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.services.anonymizing.trying import levels_in_words
from tests.hub.anonymizing.ordering import ORDER, RELEASE, get, post, run
from tests.hub.anonymizing.rows import varied
from tests.hub.house import READS, House, Visitor


def test_a_trial_shows_risk_against_loss_and_nothing_leaves(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised/trials", {**ORDER, "search": "optimal"})
    assert told["state"] == "done", told["problem"]
    number = told["result"]["href"].rpartition("/")[2]
    found = get(house, owner, f"/anonymised/trials/{number}").json()
    points = [each for each in found["points"] if each["of"] == "k" and "loss" in each]
    assert len(points) >= 4
    assert all(each["prosecutor"] <= 1 / each["k"] for each in points)
    assert [each["loss"] for each in points] == sorted(each["loss"] for each in points)
    assert found["before"] == {"prosecutor": 0.01, "marketer": 0.01, "alone": 0, "rows": 300, "classes": 3}
    assert set(found["trees"]) == {"age", "sex"}
    assert found["trees"]["sex"]["tree"][0]["label"] == "*"
    assert not house.hub.ledger.unbounded("people")
    with house.hub.database.reading() as db:
        assert b"points" not in db.scalars(select(OwnerView.wrapped)).one()
    delete(house.hub, owner.caller, "people", "people")
    assert get(house, owner, f"/anonymised/trials/{number}").status_code == 404
    with house.hub.database.reading() as db:
        assert db.scalars(select(OwnerView.id)).all() == []


def test_a_release_is_marked_attacked_and_becomes_a_data_set(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised", RELEASE)
    assert told["state"] == "done", told["problem"]
    assert house.hub.ledger.unbounded("people")
    number = told["result"]["href"].rpartition("/")[2]
    table = get(house, owner, f"/anonymised/{number}").json()
    assert table["certificate"]["holds"]
    assert table["report"]["risk"]["k"] >= 5
    assert {each["name"] for each in table["certificate"]["attacks"]} >= {"linkage", "homogeneity"}
    assert "NOT differentially private" in table["report"]["not_private"]
    rows = list(csv.DictReader(io.StringIO(get(house, owner, f"/anonymised/{number}/download").text)))
    assert len(rows) == table["report"]["rows"] - table["report"]["suppressed"]
    sizes: dict[tuple[str, str], int] = {}
    for row in rows:
        sizes[row["age"], row["sex"]] = sizes.get((row["age"], row["sex"]), 0) + 1
    assert min(sizes.values()) >= 5
    assert get(house, owner, "/anonymised").json()["tables"][0]["title"] == "People, safe to publish"
    page = owner.client.get(f"/anonymised/{number}").text
    for word in ("People, safe to publish", "Attack results", "Not differentially private", "people_public"):
        assert word in page, word
    certificate = owner.client.get(f"/anonymised/{number}/certificate")
    assert "attachment" in certificate.headers["content-disposition"]
    assert "Signature" in certificate.text
    assert owner.client.get("/datasets/people_public").status_code == 200
    assert owner.client.get(f"/anonymised/{number}/anything").status_code == 404


def test_only_the_owner_may(house: House, owner: Visitor) -> None:
    other = house.person("owner", "analyst", email="bob@example.org")
    with house.hub.database.reading() as db:
        people = db.query(DataSet).filter_by(name="people").one()
    house.grant(people, other, by=owner, actions=("dataset.see", "anonymize.run", "question.ask"))
    assert post(house, other, "/anonymised/trials", ORDER).status_code == 404
    told = run(house, owner, "/anonymised/trials", ORDER)
    number = told["result"]["href"].rpartition("/")[2]
    assert get(house, other, f"/anonymised/trials/{number}").status_code == 404
    assert other.client.get(f"/anonymise/trials/{number}").status_code == 404
    assert "people" not in re.sub(r"<nav.*?</nav>", "", other.client.get("/anonymise").text, flags=re.S)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"understood": False}, "spending reads “not covered by the budget”"),
        ({"name": "SELECT"}, "not an SQL keyword"),
        ({"parts": {"pay": "sensitive"}}, "no column is one that others may know"),
        ({"parts": {"age": "quasi", "nose": "quasi"}}, "declares none of that name"),
        ({"parts": {"age": "secret"}}, "an unknown role"),
        ({"parts": {"age": "quasi"}, "l": 2}, "no column is that"),
        ({"t": "often"}, "it is not a number from 0 to 1"),
        ({"hierarchies": {"age": "1;a\n1;b"}}, "stands there twice"),
        ({"search": "magic"}, "unknown search, metric"),
    ],
)
def test_what_is_refused(house: House, owner: Visitor, changed: dict[str, Any], words: str) -> None:
    answer = post(house, owner, "/anonymised", {**RELEASE, **changed})
    assert answer.status_code in (403, 422), answer.text
    assert words in answer.text
    assert not house.hub.ledger.unbounded("people")


def test_twenty_rows_are_seen_before_and_after_by_the_owner_alone(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised/trials", {**ORDER, "k": 101, "search": "optimal", "suppression": "0.4"})
    where = told["result"]["href"]
    page = owner.client.get(where).text
    assert "Rows before and after" in page
    part = page[page.index("Rows before and after") :]
    bodies = re.findall(r"<tbody>(.*?)</tbody>", part[: part.index("Release it")], re.S)
    assert len(bodies) > 3
    lines = [re.findall(r"<td[^>]*>(.*?)</td>", each, re.S) for body in bodies for each in body.split("</tr>")[:-1]]
    assert len(lines) == 20 * len(bodies)
    clear = [[re.sub(r"<[^>]+>", "", cell).strip() for cell in line] for line in lines]
    assert {line[0] for line in clear} <= {"30", "40", "50"}, "as it is"
    assert all(len(line) in (6, 4) for line in clear)
    assert any(line[:3] != line[3:] for line in clear), "as it would leave"
    assert "age" in re.sub(r"<[^>]+>", " ", page[page.index("Level of each column") :])
    other = house.person("owner")
    assert other.client.get(where).status_code == 404


def test_what_cannot_be_met_is_told_to_the_owner_and_marked(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised", {**RELEASE, "k": 90_000})
    assert told["state"] == "failed"
    assert house.hub.ledger.unbounded("people")


def test_levels_are_offered_of_which_none_other_has_less_risk_and_less_loss(house: House, owner: Visitor) -> None:
    house.sample_data_set("varied", owner=owner, rows=varied(600))
    order = {**ORDER, "table": "varied", "search": "optimal"}
    found = tried(house, owner, order)
    offered = [each for each in found["points"] if each["of"] == "levels"]
    assert len(offered) >= 2
    for one in offered:
        assert one["k"] == 5
        assert one["prosecutor"] <= 1 / 5
        assert not any(other["loss"] <= one["loss"] and other["marketer"] < one["marketer"] for other in offered)
    last = offered[-1]
    wanted = {**RELEASE, **order, "levels": last["levels"], "name": "varied_public"}
    told = run(house, owner, "/anonymised", wanted)
    assert told["state"] == "done", told["problem"]
    number = told["result"]["href"].rpartition("/")[2]
    table = get(house, owner, f"/anonymised/{number}").json()
    assert table["report"]["levels"] == last["levels"]
    assert (table["report"]["classes"], table["report"]["suppressed"]) == (last["classes"], last["suppressed"])
    assert table["report"]["utility"]["loss"]["after"] == pytest.approx(last["loss"])


def tried(house: House, who: Visitor, order: dict[str, Any]) -> dict[str, Any]:
    told = run(house, who, "/anonymised/trials", order)
    assert told["state"] == "done", told["problem"]
    found: dict[str, Any] = get(house, who, f"/anonymised/trials/{told['result']['href'].rpartition('/')[2]}").json()
    return found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"k": 301}, "300"),
        ({"l": 4, "parts": {"age": "quasi", "sex": "sensitive"}}, "different"),
        ({"hierarchies": {"age": "30;a;*\n40;a;*"}}, "it has no line for the value 50"),
    ],
)
def test_a_trial_of_what_cannot_be_says_why_and_what_would_do(
    house: House, owner: Visitor, changed: dict[str, Any], words: str
) -> None:
    found = tried(house, owner, {**ORDER, "search": "optimal", **changed})
    assert words in found["refused"]["why"], found["refused"]
    assert found["refused"]["instead"]
    assert not house.hub.ledger.unbounded("people")


def test_missing_values_are_what_the_owner_says(house: House, owner: Visitor) -> None:
    columns = {
        "age": {"kind": "integer", "low": 17, "high": 90, "nullable": True},
        "sex": {"kind": "category", "values": ["F", "M"]},
        "pay": {"kind": "real", "low": 0, "high": 100, "step": 0.5},
    }
    rows = varied(300)
    rows["age"] = [None if place < 6 else 30 for place in range(300)]
    house.sample_data_set("gaps", owner=owner, rows=rows, declaration={"columns": columns, "size": 300})
    order = {**ORDER, "table": "gaps", "search": "optimal", "parts": {"age": "quasi"}, "k": 2}
    own = next(each for each in tried(house, owner, order)["points"] if each["k"] == 2)
    assert (own["classes"], own["suppressed"]) == (2, 0)
    out = next(each for each in tried(house, owner, {**order, "missing": "suppress"})["points"] if each["k"] == 2)
    assert (out["classes"], out["suppressed"]) == (1, 6)
    assert "missing" in tried(house, owner, {**order, "missing": "refuse"})["refused"]["why"]
    answer = post(house, owner, "/anonymised/trials", {**order, "missing": "guess"})
    assert answer.status_code == 422


def test_a_release_that_is_cancelled_leaves_nothing_but_its_mark(
    house: House, owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cloister.anonymize import Anonymizer

    answer = post(house, owner, "/anonymised", RELEASE)
    number = answer.json()["job"]
    whole = Anonymizer.recode

    def cancelled(self: Anonymizer, table: Any) -> Any:
        assert post(house, owner, f"/jobs/{number}/cancel", {}).status_code < 300
        return whole(self, table)

    monkeypatch.setattr(Anonymizer, "recode", cancelled)
    house.clock.move(seconds=5)
    Workers(house.hub, 0).run_one()
    assert get(house, owner, f"/jobs/{number}").json()["state"] == "cancelled"
    assert get(house, owner, "/anonymised").json()["tables"] == []
    assert house.client().get("/api/v1/datasets/people_public", headers=owner.bearer).status_code == 404
    assert house.hub.ledger.unbounded("people")


def test_a_name_that_is_taken_is_refused_before_anything_is_marked(house: House, owner: Visitor) -> None:
    answer = post(house, owner, "/anonymised", {**RELEASE, "name": "people"})
    assert answer.status_code == 409
    assert "people_2" in answer.text
    assert not house.hub.ledger.unbounded("people")


def test_rows_come_as_parquet_too(house: House, owner: Visitor) -> None:
    import polars as pl

    told = run(house, owner, "/anonymised", RELEASE)
    number = told["result"]["href"].rpartition("/")[2]
    rows = pl.read_parquet(io.BytesIO(get(house, owner, f"/anonymised/{number}/download?form=parquet").content))
    text = get(house, owner, f"/anonymised/{number}/download").text
    assert rows.columns == text.splitlines()[0].split(",")
    assert rows.height == len(text.splitlines()) - 1
    assert get(house, owner, f"/anonymised/{number}/download?form=exe").status_code == 422


@pytest.mark.parametrize("part", ["quasi", "kept"])
def test_a_data_set_with_places_is_tried_released_and_downloaded(house: House, owner: Visitor, part: str) -> None:
    rows = {"age": [30, 31] * 20, "x": [4.3, 4.4, 4.3, 9.9] * 10, "y": [52.0] * 40}
    home = {"kind": "place", "box": ["4.2", "51.9", "4.5", "52.1"], "longitude": "x", "latitude": "y"}
    declaration = {"columns": {"age": {"kind": "integer", "low": 0, "high": 120}, "home": home}}
    house.sample_data_set("homes", owner=owner, rows=rows, declaration=declaration)
    parts = {"age": "quasi", "home": part}
    told = run(house, owner, "/anonymised/trials", {**ORDER, "table": "homes", "parts": parts})
    assert told["state"] == "done", told["problem"]
    told = run(house, owner, "/anonymised", {**RELEASE, "table": "homes", "parts": parts, "name": "homes_public"})
    assert told["state"] == "done", told["problem"]
    number = told["result"]["href"].rpartition("/")[2]
    read = get(house, owner, f"/anonymised/{number}/download").text
    assert "outside" in read
    assert "4.300000 52.000000" in read
    assert get(house, owner, f"/anonymised/{number}").json()["certificate"]["risk"]["digest"]


def key_of(page: str) -> str:
    found = re.search(r'name="key" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_the_pages_from_the_first_to_the_release(house: House, owner: Visitor) -> None:
    client = owner.client
    page = client.get("/anonymise?about=people").text
    names = re.findall(r'<select name="(part_\d+)" aria-label="Role of (\w+)"', page)
    parts = {field: ORDER["parts"].get(name, "identifying") for field, name in names}
    token = owner.csrf()["X-CSRF-Token"]
    filled = {"form_token": token, "key": key_of(page), "table": "people", "k": "5", "suppression": "0.05", **parts}
    sent = client.post("/anonymise/trials", data=filled)
    assert sent.status_code == 303, sent.text
    assert Workers(house.hub, 0).run_one()
    [where] = set(re.findall(r'href="(/anonymise/trials/[^"]+)"', client.get(sent.headers["location"]).text))
    trial = client.get(where).text
    for word in (
        "Only you see this",
        "Most exposed person",
        "data:image/svg+xml",
        "This is not differential privacy",
        "Risk report",
    ):
        assert word in trial, word
    number = where.rpartition("/")[2]
    risk = client.get(f"{where}/risk")
    assert "attachment" in risk.headers["content-disposition"]
    assert "Is this table anonymous?" in risk.text
    release = {
        "form_token": token,
        "key": key_of(trial),
        "trial": number,
        "choice": "2",
        "title": "People",
        "name": "people_open",
    }
    refused = client.post("/anonymise", data=release)
    assert refused.status_code == 422
    assert "not covered by the budget" in refused.text
    assert 'value="people_open"' in refused.text
    release["key"] = key_of(refused.text)
    unchosen = client.post("/anonymise", data={**release, "choice": "99", "understood": "yes"})
    assert unchosen.status_code == 422
    assert "no table was chosen" in unchosen.text
    done = client.post("/anonymise", data={**release, "understood": "yes"})
    assert done.status_code == 303, done.text
    assert Workers(house.hub, 0).run_one()
    assert "People" in client.get("/anonymised").text


def test_a_hierarchy_is_written_out_changed_sent_and_seen(house: House, owner: Visitor) -> None:
    client = owner.client
    told = run(house, owner, "/anonymised/trials", {**ORDER, "search": "optimal"})
    number = told["result"]["href"].rpartition("/")[2]
    page = client.get(f"/anonymise?trial={number}&edit=age").text
    assert re.search(r"<textarea[^>]*autofocus[^>]*>\s*30;", page)
    filled = {"form_token": owner.csrf()["X-CSRF-Token"], "key": key_of(page), "table": "people", "trial": number, "k": "5"}
    lines = "30;young;*\n40;old;*\n50;old;*"
    drawn = client.post("/anonymise/hierarchies", data={**filled, "lines_0": lines})
    assert drawn.status_code == 200
    assert "<summary>old" in drawn.text
    wrong = client.post("/anonymise/hierarchies", data={**filled, "lines_0": "30;young\n30;old"})
    assert wrong.status_code == 422
    assert "stands there twice" in wrong.text
    sent = client.post(
        "/anonymise/hierarchies", data={**filled, "file_column": "0"}, files={"file": ("ages.csv", lines.encode(), "text/csv")}
    )
    assert "30;young;*" in sent.text
    assert "<summary>old" in sent.text
    noise = client.post(
        "/anonymise/hierarchies", data={**filled, "file_column": "0"}, files={"file": ("ages.csv", b"\xff\xfe\x00a", "text/csv")}
    )
    assert noise.status_code == 422
    assert "not UTF-8 text" in noise.text


def test_what_is_made_inherits_and_is_read_by_whom_it_is_granted(house: House, owner: Visitor) -> None:
    with house.hub.database.begin() as db:
        people = db.query(DataSet).filter_by(name="people").one()
        people.metadata_ = {"policy": {"purposes": ["teaching"]}}
    told = run(house, owner, "/anonymised", RELEASE)
    assert told["state"] == "done", told["problem"]
    number = told["result"]["href"].rpartition("/")[2]
    with house.hub.database.reading() as db:
        made = db.query(DataSet).filter_by(name="people_public").one()
    assert made.metadata_["policy"]["purposes"] == ["teaching"]
    ana, bob, cy = (house.person("analyst", email=f"{name}@example.org") for name in ("ana", "bob", "cy"))
    house.grant(made, ana, by=owner, actions=(*READS, "release.download"))
    house.grant(made, bob, by=owner)
    for who, status in ((ana, 200), (bob, 403), (cy, 404)):
        answer = get(house, who, f"/anonymised/{number}/download")
        assert answer.status_code == status, answer.text
        assert who.client.get(f"/anonymised/{number}/certificate").status_code == status
    assert len(get(house, ana, f"/anonymised/{number}/download").text.splitlines()) > 250
    assert [each["id"] for each in get(house, ana, "/anonymised").json()["tables"]] == [number]
    assert "People, safe to publish" in bob.client.get(f"/anonymised/{number}").text
    assert get(house, cy, "/anonymised").json()["tables"] == []
    assert get(house, cy, "/datasets/people_public").status_code == 404
    assert get(house, ana, "/datasets/people_public").status_code == 200
    for who in (ana, bob):
        assert get(house, who, "/anonymised/trials/anything").status_code in (403, 404)


def test_a_part_of_what_was_made_opens_none_of_it(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised", RELEASE)
    number = told["result"]["href"].rpartition("/")[2]
    with house.hub.database.reading() as db:
        made = db.query(DataSet).filter_by(name="people_public").one()
    ana = house.person("analyst", email="ana@example.org")
    house.grant(made, ana, by=owner, actions=(*READS, "release.download"), columns=["age"])
    assert get(house, ana, f"/anonymised/{number}").status_code == 404


def test_a_trial_says_that_the_data_set_has_other_rows_by_now(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised/trials", ORDER)
    number = told["result"]["href"].rpartition("/")[2]
    found = get(house, owner, f"/anonymised/trials/{number}").json()
    assert (found["version"], found["newest"]) == (1, 1)
    said = "The data set has other rows now"
    assert said not in owner.client.get(f"/anonymise/trials/{number}").text
    sent = house.client().post(
        "/api/v1/uploads",
        content=b"age,sex,pay\n" + b"40,F,7\n41,M,7\n" * 50,
        headers={**owner.bearer, "Content-Type": "text/csv"},
    )
    assert post(house, owner, "/datasets/people/versions", {"upload": sent.json()["id"]}).status_code == 201
    found = get(house, owner, f"/anonymised/trials/{number}").json()
    assert (found["version"], found["newest"]) == (1, 2)
    assert said in owner.client.get(f"/anonymise/trials/{number}").text
    again = run(house, owner, "/anonymised/trials", ORDER)["result"]["href"].rpartition("/")[2]
    assert said not in owner.client.get(f"/anonymise/trials/{again}").text


def test_rows_that_lack_something_are_left_out_of_every_choice(house: House, owner: Visitor) -> None:
    columns = {
        "age": {"kind": "integer", "low": 17, "high": 90, "nullable": True},
        "sex": {"kind": "category", "values": ["F", "M"]},
        "pay": {"kind": "real", "low": 0, "high": 100, "step": 0.5},
    }
    rows = varied(600)
    rows["age"] = [None if place < 6 else age for place, age in enumerate(rows["age"])]
    house.sample_data_set("gaps", owner=owner, rows=rows, declaration={"columns": columns, "size": 600})
    points = tried(house, owner, {**ORDER, "table": "gaps", "search": "optimal", "missing": "suppress"})["points"]
    assert {each["of"] for each in points} == {"k", "levels"}
    assert all(each["suppressed"] >= 6 for each in points if "why" not in each)


def test_a_table_of_which_nothing_is_left_is_no_release(house: House, owner: Visitor) -> None:
    house.sample_data_set("varied", owner=owner, rows=varied(60))
    order = {**ORDER, "table": "varied", "search": "optimal", "t": "0", "suppression": "1"}
    found = tried(house, owner, order)
    assert all(each["what"] == "No row is left of the table" for each in found["points"] if each["of"] == "k")
    assert found["refused"] is not None
    told = run(house, owner, "/anonymised", {**RELEASE, **order})
    assert told["state"] == "failed"
    assert "a trial shows why" in told["problem"]["detail"]
    assert get(house, owner, "/anonymised").json()["tables"] == []
    assert house.hub.ledger.unbounded("varied")


def test_a_column_of_missing_values_alone_has_levels_without_a_label() -> None:
    ladder = SimpleNamespace(height=2, labels=[[], ["*"]])
    assert levels_in_words({"town": ladder}) == {"town": ["", "*"]}  # type: ignore[dict-item]
