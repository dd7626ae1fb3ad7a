"""Streams from the opening to the end: one charge, keys and quotas, steps by the clock, subscribers, the live page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any
from unittest.mock import patch

import pytest
from playwright.sync_api import expect
from sqlalchemy import func, select, update

from cloister.errors import CloisterError, LedgerError
from cloister.hub.database import Base
from cloister.hub.ids import digest
from cloister.hub.platform.accounts.sessions import cookie_name
from cloister.hub.records.accounts import ApiToken, Person
from cloister.hub.records.streams import HeldStream, StreamBatch, StreamDevice
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.streams import api, intake, release_due, releasing
from cloister.ledger import operations
from tests.hub.house import Clock, House, Visitor
from tests.hub.web.browser import accessible, browser, serve, visit

__all__ = ["browser", "serve", "visit"]

HOUSE = {
    "title": "People in the house",
    "sql": "SELECT room, COUNT(*) AS n FROM readings GROUP BY room",
    "columns": {"room": {"kind": "category", "values": ["hall", "attic"]}},
    "every": "1 hour",
    "since": "2026-03-02T09:00:00Z",  # when the clock of the house begins
    "until": "2026-03-02T14:00:00Z",
    "most": 20,
    "hourly": 12,
    "rho": "1000000",
}


@dataclass
class Play:
    """A house, the owner of streams, and somebody who may see what is shown."""

    house: House
    ada: Visitor
    bob: Visitor

    def api(self, method: str, path: str, body: Any = None, who: Visitor | None = None, **headers: str) -> Any:
        bearer = {} if headers else (who or self.ada).bearer
        return self.house.client().request(method, f"/api/v1/streams{path}", json=body, headers={**bearer, **headers})

    def stream(self, **more: Any) -> tuple[str, str]:
        """A stream with a device: its id and the key."""
        opened = self.api("POST", "", HOUSE | {"since": self.house.hub.now().isoformat()} | more)
        assert opened.status_code == 201, opened.text
        number = opened.json()["id"]
        return number, self.api("POST", f"/{number}/devices", {"name": "badge 17"}).json()["key"]

    def send(self, number: str, key: str, *readings: Any) -> Any:
        told = [{"at": each, "room": "hall"} if isinstance(each, str) else each for each in readings]
        return self.api("POST", f"/{number}/readings", {"readings": told}, **{"Device-Key": key})

    def counts(self, number: str) -> list[list[int]]:
        return [each["table"]["n"] for each in self.api("GET", f"/{number}/steps").json()["steps"]]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    house = House(tmp_path_factory.mktemp("streams") / "hub", Clock())
    yield Play(house, house.person("owner"), house.person("analyst"))
    house.close()


def test_from_the_first_reading_to_the_last_step(play: Play) -> None:
    clock, hub = play.house.clock, play.house.hub
    number, key = play.stream(until="2026-03-02T14:00:00Z", shown=True)
    assert str(hub.ledger.spent(f"stream {number}")) == "ρ = 1000000"
    first = play.send(number, key, "2026-03-02T09:10:00Z", {"at": "2026-03-02T10:10Z", "room": "attic", "id": 1}, "noon")
    assert (first.status_code, first.json()) == (202, {"waiting": 2, "late": 0, "outside": 1})
    play.send(number, key, {"at": "2026-03-02T10:10Z", "room": "attic", "id": 1}, {"at": float(2**60), "room": None})  # repeated
    with hub.database.reading() as db:
        assert all(b"attic" not in row.body for row in db.scalars(select(StreamBatch)))
    assert release_due(hub) == 0
    clock.move(hours=1, seconds=5)
    assert release_due(hub) == 0  # the step still takes readings
    clock.move(seconds=5)
    assert (release_due(hub), release_due(hub)) == (1, 0)
    assert play.send(number, key, "2026-03-02T09:59:59Z").json()["late"] == 1
    clock.move(hours=2)
    assert release_due(hub) == 2
    assert play.counts(number) == [[1, 0], [0, 1], [0, 0]]
    with hub.database.reading() as db:
        assert db.scalar(select(func.count()).select_from(StreamBatch).where(StreamBatch.stream == number)) == 0
    told = play.api("GET", f"/{number}/steps.csv", who=play.bob).text.splitlines()
    assert told[0] == "step,begins,ends,room,n,n_margin,n_so_far"
    assert len(told) == 7
    events = play.api("GET", f"/{number}/events?after=1&seconds=0", who=play.bob).text
    assert events.startswith("id: 2\nevent: step\ndata: {")
    assert events.count("event: step") == 2
    assert str(hub.ledger.spent(f"stream {number}")) == "ρ = 1000000"
    assert hub.ledger.verify() is True
    assert play.api("POST", f"/{number}/close").json()["state"] == "closed"


def test_a_process_that_ends_before_a_step_is_shown_draws_it_once(play: Play) -> None:
    clock, hub = play.house.clock, play.house.hub
    number, key = play.stream(rho="0.001", until=_later(play, 4))
    play.send(number, key, hub.now().isoformat())
    clock.move(hours=1, seconds=10)

    class Ended(Exception):
        pass

    with patch.object(releasing, "_show", side_effect=Ended), pytest.raises(Ended):
        release_due(hub)
    assert play.counts(number) == []
    assert release_due(hub) == 1
    with hub.database.reading() as db:
        assert db.get_one(HeldStream, number).taken == 1
    assert len(hub.ledger.charges(f"stream {number}")) == 2


def test_a_batch_that_is_being_taken_in_is_counted(play: Play) -> None:
    clock, hub = play.house.clock, play.house.hub
    number, key = play.stream(until=_later(play, 4))
    now, begun, go, made = hub.now().isoformat(), Event(), Event(), intake.new_id

    def slowly() -> str:
        begun.set()
        go.wait(60)
        return made()

    with patch.object(intake, "new_id", slowly):
        sending = Thread(target=play.send, args=(number, key, now))
        sending.start()
        assert begun.wait(60)
        clock.move(hours=1, seconds=10)
        Timer(0.3, go.set).start()
        release_due(hub)
        sending.join()
    assert play.counts(number) == [[1, 0]]


def test_a_stream_that_is_closed_while_steps_are_due_releases_no_other(play: Play) -> None:
    clock, hub = play.house.clock, play.house.hub
    number, key = play.stream(until=_later(play, 4))
    for hour in range(3):
        play.send(number, key, (hub.now() + timedelta(hours=hour)).isoformat())
    clock.move(hours=3, seconds=10)
    read = releasing.waiting_of

    def closing(hub: Any, db: Any, which: str, step: int) -> Any:
        if step == 2 and which == number:
            assert play.api("POST", f"/{number}/close").json()["state"] == "closed"
        return read(hub, db, which, step)

    with patch.object(releasing, "waiting_of", closing):
        release_due(hub)
    assert play.counts(number) == [[1, 0]]
    assert release_due(hub) == 0
    assert play.counts(number) == [[1, 0]]


def test_late_readings_are_counted_in_the_next_step_where_that_is_declared(play: Play) -> None:
    clock, hub = play.house.clock, play.house.hub
    number, key = play.stream(until=_later(play, 3), late="next")
    early = hub.now().isoformat()
    clock.move(hours=1, seconds=10)
    release_due(hub)
    assert play.send(number, key, early, early).json() == {"waiting": 2, "late": 0, "outside": 0}
    clock.move(hours=1)
    with (
        patch.object(releasing, "_show", side_effect=KeyError),
        pytest.raises(KeyError),
    ):  # ends after the step, before it is shown
        release_due(hub)
    clock.move(hours=1)
    release_due(hub)
    assert play.send(number, key, early).json()["late"] == 1  # there is no next step
    assert play.counts(number) == [[0, 0], [2, 0], [0, 0]]


def test_devices_of_one_person_share_what_counts(play: Play) -> None:
    number, _ = play.stream(until=_later(play, 2), most=3, rho="1000000000")
    keys = [
        play.api("POST", f"/{number}/devices", {"name": name, "person": person}).json()["key"]
        for name, person in (("phone", "Vis\u00edtor 4"), ("new phone", " visi\u0301tor  4"), ("watch", "visitor 5"))
    ]
    for key in keys:
        play.send(number, key, *[play.house.hub.now().isoformat()] * 2)
    play.house.clock.move(hours=1, seconds=10)
    release_due(play.house.hub)
    assert play.counts(number) == [[5, 0]]


def test_whose_a_device_is_stands_nowhere_in_the_database(play: Play) -> None:
    number, _ = play.stream(until=_later(play, 2))
    other, _ = play.stream(until=_later(play, 2))
    for which, name in ((number, "phone"), (number, "watch"), (other, "phone")):
        assert play.api("POST", f"/{which}/devices", {"name": name, "person": "Zoe Quixote"}).status_code == 201
    with play.house.hub.database.begin() as db:
        ours = select(StreamDevice.person).where(StreamDevice.stream.in_([number, other]), StreamDevice.person != "")
        known = set(db.scalars(ours))
        lines = [str(list(row)) for table in Base.metadata.sorted_tables for row in db.execute(select(table))]
        assert len(known) == 2  # one person a stream; that it is one over both, nobody reads there
        assert not [line for line in lines if "Quixote" in line]


def test_a_name_that_an_earlier_version_wrote_goes_on_as_one_person(play: Play) -> None:
    number, hub = play.stream(until=_later(play, 2))[0], play.house.hub
    with hub.database.begin() as db:
        said = {"name": "old", "person": "person Zoe", "digest": "0", "created": hub.now()}
        db.add(StreamDevice(id="0" * 32, stream=number, **said))
    assert play.api("POST", f"/{number}/devices", {"name": "new", "person": "Zoe"}).status_code == 201
    with hub.database.begin() as db:
        ours = select(StreamDevice.person).where(StreamDevice.stream == number, StreamDevice.person != "")
        assert list(db.scalars(ours)) == ["person Zoe"] * 2


def test_a_key_that_a_spreadsheet_would_compute_stays_a_text_in_the_file(play: Play) -> None:
    number, _ = play.stream(columns={"room": {"kind": "category", "values": ["=1+1", "@x"]}}, until=_later(play, 2), rho="0.1")
    play.house.clock.move(hours=1, seconds=10)
    release_due(play.house.hub)
    told = play.api("GET", f"/{number}/steps.csv").text.splitlines()
    assert [line.split(",")[3] for line in told[1:]] == ["'=1+1", "'@x"]


def test_a_stream_that_goes_no_further_does_not_hold_up_others(play: Play) -> None:
    stuck, _ = play.stream(until=_later(play, 2))
    number, _ = play.stream(until=_later(play, 2))
    play.house.clock.move(hours=1, seconds=10)
    known = releasing.watching

    def restored(hub: Any, which: str, *given: Any, **more: Any) -> Any:
        if which == stuck:
            raise LedgerError("It goes no further", why="the ledger was restored", instead="a new one")
        return known(hub, which, *given, **more)

    with patch.object(releasing, "watching", restored):
        release_due(play.house.hub)
    assert (len(play.counts(stuck)), len(play.counts(number))) == (0, 1)


def test_a_stream_that_cannot_be_read_does_not_hold_up_the_readings_of_others(play: Play) -> None:
    """Messages of all devices are taken in together, and those that came with one of it would be tried again for ever."""
    (broken, hers), (number, key) = (play.stream(until=_later(play, 5)) for _ in range(2))
    with play.house.hub.database.begin() as db:
        declared = dict(db.get_one(HeldStream, broken).declared)
        db.execute(update(HeldStream).where(HeldStream.id == broken).values(declared={"later": "version"}))
    read = [{"at": play.house.hub.now().isoformat(), "room": "hall"}]
    batches = [intake.Sent(broken, hers, read), intake.Sent(number, key, read)]
    try:
        refused, taken = intake.receive_all(play.house.hub, batches)
        assert play.send(broken, hers, *read).status_code == 409
    finally:
        with play.house.hub.database.begin() as db:
            db.execute(update(HeldStream).where(HeldStream.id == broken).values(declared=declared))
    assert isinstance(refused, CloisterError)
    assert taken == {"waiting": 1, "late": 0, "outside": 0}


def test_a_stream_of_before_a_restore_is_closed_and_what_waits_for_it_goes(play: Play) -> None:
    """It stayed open for ever: devices sent readings of people that no step would count."""
    number, key = play.stream(until=_later(play, 3))
    assert play.send(number, key, play.house.hub.now().isoformat()).json()["waiting"] == 1
    with patch.object(operations, "restored_since", lambda *_: True):
        play.house.clock.move(hours=1, seconds=10)
        release_due(play.house.hub)
    with play.house.hub.database.reading() as db:
        assert db.get_one(HeldStream, number).state == "closed"
        assert db.scalars(select(StreamBatch).where(StreamBatch.stream == number)).all() == []
        closed = select(AuditLine.person).where(AuditLine.action == "stream.close", AuditLine.object == number)
        assert db.scalars(closed).all() == [""]
    assert play.send(number, key, play.house.hub.now().isoformat()).status_code == 409


def test_keys_that_are_numbers_and_days_and_means_are_shown(play: Play) -> None:
    floor, day = {"kind": "integer", "low": 0, "high": 1}, {"kind": "date", "low": "2026-03-02", "high": "2026-03-03"}
    columns = {"floor": floor, "day": day, "x": {"kind": "real", "low": 0, "high": 5}}
    sql = "SELECT floor, day, AVG(x) AS mean FROM readings GROUP BY floor, day"
    number, _ = play.stream(sql=sql, columns=columns, until=_later(play, 2), rho="0.1")
    play.house.clock.move(hours=1, seconds=10)
    release_due(play.house.hub)
    told = play.api("GET", f"/{number}/steps.csv").text.splitlines()
    assert told[0] == "step,begins,ends,floor,day,mean,mean_margin,mean_so_far"
    assert ",0,2026-03-02," in told[1]
    play.house.awake(play.ada)
    assert play.ada.client.get(f"/streams/{number}").status_code == 200


def test_who_is_blocked_gets_no_further_step(play: Play) -> None:
    number, _ = play.stream(until=_later(play, 3), shown=True)
    eve = play.house.person("analyst")

    async def block(seconds: float) -> None:
        play.house.clock.move(hours=1, seconds=10)
        assert release_due(play.house.hub) >= 1
        with play.house.hub.database.begin() as db:
            for row in db.scalars(select(ApiToken).where(ApiToken.digest == digest(eve.bearer["Authorization"].split()[1]))):
                row.revoked = play.house.hub.now()

    with patch.object(api.asyncio, "sleep", block):
        assert play.api("GET", f"/{number}/events?seconds=2", who=eve).text == ""
    assert len(play.counts(number)) == 1


def test_devices_are_known_held_within_their_quota_and_speak_for_themselves(play: Play) -> None:
    number, key = play.stream(until=_later(play, 4))
    other, _ = play.stream(until=_later(play, 4))
    now = play.house.hub.now().isoformat()
    assert play.send(number, "device_wrong", now).status_code == 401
    assert play.send(other, key, now).status_code == 401
    forged = play.send(number, key, {"at": now, "room": "hall", "device": "badge 18"})
    assert (forged.status_code, "for itself" in forged.text) == (403, True)
    assert play.send(number, key, *[now] * 12).status_code == 202
    never = play.send(number, key, *[now] * 13)  # to come again with it would be in vain
    assert (never.status_code, "at most 12 in an hour" in never.text) == (422, True)
    flooded = play.send(number, key, now)
    assert (flooded.status_code, int(flooded.headers["Retry-After"]) > 0) == (429, True)
    play.house.clock.move(hours=1)
    assert play.send(number, key, now).status_code == 202
    [device] = play.api("GET", f"/{number}/devices").json()["devices"]
    with play.house.hub.database.reading() as db:
        assert key not in str(db.get_one(StreamDevice, device["id"]).digest)
    assert play.api("DELETE", f"/{number}/devices/{device['id']}").status_code == 204
    assert play.send(number, key, now).status_code == 401
    assert play.api("GET", f"/{number}", who=play.bob).status_code == 404
    assert play.api("POST", f"/{number}/close").json()["state"] == "closed"


def _later(play: Play, hours: int) -> str:
    return (play.house.hub.now() + timedelta(hours=hours)).isoformat()


def _room(name: str, sql: str) -> dict[str, Any]:
    return {"sql": sql, "columns": {name: {"kind": "category", "values": ["hall", "attic"]}}}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"rho": ""}, "either rho or epsilon"),
        ({"late": "never"}, "late"),
        ({"every": "soon"}, "soon"),
        ({"sql": "no question"}, ""),
        ({"columns": {"key": {"kind": "text"}}}, "the hub's own"),
        ({"title": " "}, "title"),
        ({"since": "2026-01-01T09:00:00Z", "until": "2026-01-01T14:00:00Z"}, "it is over"),
        (_room("room", "SELECT room AS N, COUNT(*) AS n FROM readings GROUP BY room"), "are called n:"),
        (_room("room", "SELECT room, COUNT(*) AS begins FROM readings GROUP BY room"), "are called begins:"),
        (_room("room", "SELECT COUNT(*) AS n, COUNT(room) AS N_margin FROM readings"), "are called n_margin:"),
        (_room("step", "SELECT step, COUNT(*) AS n FROM readings GROUP BY step"), "are called step:"),
    ],
)
def test_what_is_declared_wrongly_is_refused_before_any_charge(play: Play, wrong: dict[str, Any], why: str) -> None:
    before = play.house.hub.ledger.populations()
    refused = play.api("POST", "", HOUSE | {"since": play.house.hub.now().isoformat(), "until": _later(play, 4)} | wrong)
    assert refused.status_code == 422, refused.text
    assert why in refused.text
    assert play.house.hub.ledger.populations() == before


def test_the_live_page_in_a_browser(play: Play, serve: Any, visit: Any) -> None:
    def looks(name: str = "") -> None:
        """Narrow, and wide."""
        for width in (1200, 390):
            page.set_viewport_size({"width": width, "height": 900})
            accessible(page)
            if name and (folder := os.environ.get("CLOISTER_PICTURES")):
                Path(folder).mkdir(exist_ok=True)
                page.screenshot(path=f"{folder}/{name}-{width}.png", full_page=True)

    address = serve(play.house.app)
    guarded = visit(address, width=390)
    name = cookie_name(play.house.hub.settings)
    play.house.awake(play.ada)
    guarded.context.add_cookies([{"name": name, "value": play.ada.client.cookies[name], "url": address}])
    page = guarded.page("/streams")
    page.get_by_label("Title").fill("House 390")
    page.get_by_label("The first step begins").fill(play.house.hub.now().isoformat())
    page.get_by_label("The last step ends").fill(_later(play, 4))
    looks()
    page.get_by_role("button", name="Open the stream").click()
    page.get_by_label("Name of a new device").fill("badge 17")
    page.get_by_role("button", name="Add the device").click()
    key = page.locator("#key").inner_text().strip()
    number = page.url.split("/")[-2] if page.url.endswith("devices") else page.url.split("/")[-1]
    assert play.send(number, key, play.house.hub.now().isoformat()).status_code == 202
    guarded.context.unroute_all()  # a request that is looked at on its way is not an event stream any more
    page = guarded.page(f"/streams/{number}")
    expect(page.locator("main")).to_contain_text("No step is over yet")
    for _ in range(2):
        play.house.time_passes(play.ada, hours=1, seconds=10)
        assert release_due(play.house.hub) >= 1
    expect(page.locator("main")).to_contain_text("Step 2", timeout=15_000)  # by itself
    expect(page.locator("img.chart")).to_be_visible()
    looks("stream")


def test_what_is_computed_of_a_reading_and_where_it_is(play: Play) -> None:
    """Places are sent as their two numbers; each step is released by a session of its own, which goes on with the same watch."""
    spot = {"kind": "place", "box": [4.28, 51.97, 4.42, 52.05], "longitude": "lon", "latitude": "lat"}
    columns = {"spot": spot, "seen": {"kind": "moment", "low": "2026-03-01", "high": "2026-04-01"}}
    now = play.house.hub.now()
    until = (now + timedelta(hours=3)).isoformat()
    sent = {"lon": 4.30, "lat": 52.0, "seen": "2026-03-02T07:30:00"}
    found = {}
    for key, sql in (
        ("grid", "SELECT grid(spot, 5000) AS c, COUNT(*) AS n FROM readings GROUP BY c"),
        ("hour", "SELECT hour(seen) AS h, COUNT(*) AS n FROM readings GROUP BY h"),
    ):
        found[key] = play.stream(sql=sql, columns=columns, until=until)
        number, device = found[key]
        moments = [(now + timedelta(minutes=minutes)).isoformat() for minutes in (5, 65)]
        assert (
            play.send(number, device, *[sent | {"at": at} for at in moments], {"at": moments[0], "lon": 0, "lat": 0}).status_code
            == 202
        )
    play.house.clock.move(hours=2, seconds=10)
    play.house.awake(play.ada)
    release_due(play.house.hub)
    grid, hours = (play.counts(found[key][0]) for key in ("grid", "hour"))
    assert (
        [sum(step) for step in grid] == [sum(step) for step in hours] == [1, 1]
    )  # 0/0 is no place, and had no moment to be seen
    assert [step[7] for step in hours] == [1, 1]
    for names in ({"longitude": "at"}, {"latitude": "device"}):
        refused = play.api("POST", "", HOUSE | {"columns": {"spot": spot | names}, "since": now.isoformat(), "until": until})
        assert (refused.status_code, refused.json()["detail"]) == (422, "at, device and key are the hub's own")


def test_a_stream_takes_nothing_while_its_owner_is_blocked(play: Play) -> None:
    number, key = play.stream(until=(play.house.hub.now() + timedelta(hours=1)).isoformat())
    for blocked, status in ((True, 409), (False, 202)):
        with play.house.hub.database.begin() as db:
            db.execute(update(Person).where(Person.id == play.ada.id).values(blocked=blocked))
        assert play.send(number, key, play.house.hub.now().isoformat()).status_code == status
