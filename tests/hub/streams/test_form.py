"""The form of a new stream, and how its page says truth values."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest

from cloister.hub.records.streams import HeldStream
from cloister.hub.services.streams import opening, release_due
from cloister.hub.services.streams.opening import Declared, declared_of
from cloister.hub.web.render import ZONE_COOKIE
from tests.hub.house import House
from tests.hub.streams.test_rules import rule
from tests.hub.streams.test_streams import HOUSE, Play
from tests.hub.streams.test_streams import _later as later


@pytest.fixture
def play(house: House) -> Play:
    return Play(house, house.person("owner"), house.person("analyst"))


def typed(play: Play, rows: list[tuple[str, str, str]], **more: str) -> Any:
    """The answer to the form of a new stream whose columns are these rows."""
    token = play.ada.client.get("/streams").text.split('name="form_token" value="')[1].split('"')[0]
    names, kinds, values = zip(*rows, strict=True)
    told = {name: str(value) for name, value in HOUSE.items() if name != "columns"} | {"until": later(play, 4), "purpose": ""}
    told |= {"form_token": token, "since": play.house.hub.now().isoformat(), "columns": "", **more}
    columns = {"column-name": list(names), "column-kind": list(kinds), "column-values": list(values)}
    return play.ada.client.post("/streams", data=told | columns, follow_redirects=False)


def declared(play: Play, number: str) -> Declared:
    with play.house.hub.database.reading() as db:
        return declared_of(db.get_one(HeldStream, number))


def test_columns_are_declared_in_the_rows_of_the_form(play: Play) -> None:
    rows = [("room", "category", "hall, attic"), ("", "category", ""), ("warm", "boolean", ""), ("level", "integer", "0, 7")]
    rows += [("x", "real", " 0.5 , 9"), ("day", "date", "2026-03-01, 2026-04-01")]
    opened = typed(play, rows, columns='{"sort": {"kind": "category", "values": ["a"]}}')
    assert opened.status_code == 303, opened.text
    number = opened.headers["location"].split("/")[-1]
    assert declared(play, number).columns == {
        "sort": {"kind": "category", "values": ["a"]},
        "room": {"kind": "category", "values": ["hall", "attic"]},
        "warm": {"kind": "boolean"},
        "level": {"kind": "integer", "low": 0, "high": 7},
        "x": {"kind": "real", "low": 0.5, "high": 9.0},
        "day": {"kind": "date", "low": "2026-03-01", "high": "2026-04-01"},
    }


@pytest.mark.parametrize("values", ["大厅、阁楼", "大厅，阁楼", "大厅；阁楼", "大厅,阁楼", "大厅\n、阁楼、"])
def test_values_stand_between_commas_of_either_kind(play: Play, values: str) -> None:
    """What would be one value, "大厅、阁楼", is charged at once and cannot be changed any more."""
    opened = typed(play, [("room", "category", values)])
    assert opened.status_code == 303, opened.text
    columns = declared(play, opened.headers["location"].split("/")[-1]).columns
    assert columns == {"room": {"kind": "category", "values": ["大厅", "阁楼"]}}


def test_thousands_of_readings_are_read_as_people_write_them(play: Play) -> None:
    opened = typed(play, [("room", "category", "hall")], most="1,000", hourly="10 000")
    assert opened.status_code == 303, opened.text
    found = declared(play, opened.headers["location"].split("/")[-1])
    assert (found.most, found.hourly) == (1000, 10_000)


@pytest.mark.parametrize(
    ("row", "more", "why"),
    [
        (("", "category", "a, b"), {}, "it has no name"),
        (("room", "category", " , "), {}, "values, separated by commas"),
        (("level", "integer", "0"), {}, "lowest and highest value"),
        (("level", "integer", "0, high"), {}, "lowest and highest value"),
        (("x", "real", "1, 2, 3"), {}, "lowest and highest value"),
        (("room", "map", "a"), {}, "kind is not known"),
        (("room", "boolean", ""), {"columns": '{"room": {"kind": "boolean"}}'}, "another column has the same name"),
        (("room", "boolean", ""), {"columns": "[]"}, "not a JSON object"),
        (("room", "boolean", ""), {"columns": "[" * 15_000}, "not a JSON object"),
        (("room", "boolean", ""), {"most": "many"}, "not a whole number"),
    ],
)
def test_a_wrong_field_of_the_form_is_named(play: Play, row: tuple[str, str, str], more: dict[str, str], why: str) -> None:
    refused = typed(play, [row], **more)
    assert refused.status_code == 422
    assert why in refused.text
    assert f'value="{row[2]}"' in refused.text, "what was typed stays"


def test_a_refused_form_keeps_its_boxes(play: Play) -> None:
    page = typed(play, [("room", "boolean", "")], most="many", shown="yes", next="yes").text
    assert page.count('value="yes" checked') == 2
    assert "checked" not in typed(play, [("room", "boolean", "")], most="many").text


def test_a_stream_that_is_closed_takes_no_device_and_is_not_closed_twice(play: Play) -> None:
    number, _ = play.stream(until=later(play, 1))
    page = f"/streams/{number}"
    token = play.ada.client.get(page).text.split('name="form_token" value="')[1].split('"')[0]
    twice = play.ada.client.post(f"{page}/devices", data={"form_token": token, "name": "badge 17", "person": "visitor 4"})
    assert (twice.status_code, 'value="visitor 4"' in twice.text) == (409, True)
    before = play.ada.client.get(f"{page}/fresh").text
    assert ("<dd>0</dd>" in before, ">Ends<" in before) == (False, True)
    assert play.api("POST", f"/{number}/close").status_code == 200
    closed = play.ada.client.get(f"{page}/fresh").text
    assert ("<dt>Steps left</dt><dd>0</dd>" in closed, ">Ends<" in closed) == (True, False), "it releases nothing afterwards"
    for path, body in (("/close", None), ("/devices", {"name": "badge 18"})):
        refused = play.api("POST", f"/{number}{path}", body)
        assert (refused.status_code, refused.json()["detail"]) == (409, "it is closed")
    assert "Add the device" not in play.ada.client.get(page).text


def test_the_page_goes_by_the_readers_clock(play: Play) -> None:
    since = play.house.hub.now().replace(minute=0, second=0)
    number, _ = play.stream(since=since.isoformat(), until=(since + timedelta(hours=2)).isoformat())
    play.house.clock.move(hours=1, seconds=10)
    assert release_due(play.house.hub) == 1
    play.house.awake(play.ada)
    play.ada.client.cookies.set(ZONE_COOKIE, "Asia/Shanghai")
    page = play.ada.client.get(f"/streams/{number}").text
    [count, *_] = play.counts(number)
    assert f'<td class="n">{count[0]:,}</td>' in page, "a count is whole"
    assert f"Step 1, to {since + timedelta(hours=9):%-d %b %Y, %H:%M}<" in page
    assert f">{since + timedelta(hours=10):%-d %b %Y, %H:%M}</time>" in page


def test_truth_values_are_yes_and_no_on_the_page(play: Play) -> None:
    columns = {"warm": {"kind": "boolean"}}
    sql = "SELECT warm, COUNT(*) AS n FROM readings GROUP BY warm"
    number, key = play.stream(sql=sql, columns=columns, every="5 minutes", until=later(play, 1))
    for _ in range(2):
        play.send(number, key, {"at": play.house.hub.now().isoformat(), "warm": True})
        play.house.clock.move(minutes=5, seconds=10)
        release_due(play.house.hub)
    for language, no, yes in (("en", "no", "yes"), ("zh-CN", "否", "是")):
        page = unquote(play.ada.client.get(f"/streams/{number}/fresh", headers={"Accept-Language": language}).text)
        for word in (no, yes):
            assert f'<th scope="row">{word}</th>' in page
            assert f">{word}</text>" in page, "and in the picture"
        assert "True" not in page


def test_a_form_that_is_sent_twice_opens_one_stream(play: Play) -> None:
    key = play.ada.client.get("/streams").text.split('name="key" value="')[1].split('"')[0]
    first, again = (typed(play, [("room", "category", "hall, attic")], key=key) for _ in range(2))
    assert first.headers["location"] == again.headers["location"]
    body = HOUSE | {"since": play.house.hub.now().isoformat(), "until": later(play, 4)}
    sent = {"Idempotency-Key": "one stream", **play.ada.bearer}
    assert play.api("POST", "", body, **sent).json() == play.api("POST", "", body, **sent).json()
    assert play.api("POST", "", body | {"title": "Another"}, **sent).status_code == 409
    assert len(play.api("GET", "").json()["streams"]) == 2


def test_a_key_gives_no_stream_again_that_may_not_be_opened_now(play: Play) -> None:
    body = HOUSE | {"since": play.house.hub.now().isoformat(), "until": later(play, 4)}
    sent = {"Idempotency-Key": "again", **play.ada.bearer}
    assert play.api("POST", "", body, **sent).status_code == 201
    rule(play, actions=["stream.open"], deny=True)
    assert play.api("POST", "", body, **sent).status_code == 403


def test_what_died_behind_its_charge_is_opened_under_that_charge(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, body = play.house.hub.ledger, HOUSE | {"since": play.house.hub.now().isoformat(), "until": later(play, 4)}
    before, sent = len(ledger.populations()), {"Idempotency-Key": "dies", **play.ada.bearer}
    with monkeypatch.context() as here:
        here.setattr(opening, "Population", None)  # what follows the charge can't be done
        assert play.api("POST", "", body, **sent).status_code == 500
    opened = play.api("POST", "", body, **sent).json()["id"]
    assert len(ledger.populations()) == before + 1
    assert len(ledger.charges(f"stream {opened}")) == 1
    assert play.api("POST", "", body, **sent).json()["id"] == opened


def test_nobody_has_more_streams_than_may_be_though_two_are_opened_at_once(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    body, watching = HOUSE | {"since": play.house.hub.now().isoformat(), "until": later(play, 4)}, opening.watching
    codes = list[int]()

    def slowly(*given: Any, **how: Any) -> Any:
        monkeypatch.setattr(opening, "watching", watching)
        codes.append(play.api("POST", "", body).status_code)
        return watching(*given, **how)

    monkeypatch.setattr(opening, "watching", slowly)
    monkeypatch.setattr(opening, "_MOST_STREAMS", 1)
    refused = play.api("POST", "", body)
    assert (codes, refused.status_code) == ([201], 403)
    assert "the charge stands" in refused.text
    assert len(play.api("GET", "").json()["streams"]) == 1
