"""Canaries: a data set whose every value can be recognised, secrets too, and everything that the hub says to anybody.

Rows are looked for in every page and answer of an analyst, in every error, in the log at its most talkative, in the metrics
and in the files. The hub is walked through once, and each test looks at the record. (A noisy count is nobody's value: what is
asked here has no bounds near a canary.)
"""

from __future__ import annotations

import io
import logging
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cloister.hub.ids import new_id
from tests.hub.house import Clock, House, Visitor, application
from tests.hub.security.test_injection import HTML, WORKED_OUT, written
from tests.hub.security.walk import FORM, addresses, body_of, form_token, places
from tests.hub.security.world import CANARIES, MAY, WORD, World, populated

QUESTIONS = (
    "SELECT COUNT(*) AS n FROM secrets_zqx WHERE nick = 'x'",
    "SELECT nick, COUNT(*) AS n FROM secrets_zqx GROUP BY nick",
    "SELECT * FROM secrets_zqx",
    "SELECT code FROM secrets_zqx LIMIT 1",
    "SELECT MAX(nick) FROM secrets_zqx",
    "SELECT COUNT(*) AS n FROM secrets_zqx WHERE CAST(nick AS INTEGER) > 1",
    "SELECT COUNT(*) AS n FROM secrets_zqx WHERE 1 / (code - 7310554016 - 1) > 0",
    "SELECT COUNT(*) AS n FROM secrets_zqx HAVING 1 / 0 > 1",
    "SELECT SUM(code * code * code) AS n FROM secrets_zqx",
    "SELECT COUNT(*) AS n FROM secrets_zqx AS a JOIN secrets_zqx AS b ON a.code = b.code",
    "SELECT COUNT(*) AS n FROM broken_zqx",
    "SELECT SUM(code) AS n FROM broken_zqx",
)
ASKING = ("/questions", "/questions/explain", "/questions/afford", "/questions/rehearse", "/questions/stored")


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was said to whom, while every question was asked and every page read, once."""

    world: World
    said: Mapping[str, list[str]]
    pages: Mapping[str, str]
    """What is shown in a browser, by who asked for it and its address."""
    log: io.StringIO


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory, empty_hub: Path) -> Iterator[Record]:
    """A hub of these tests' own, in which somebody wrote what is none of a page's business, that was walked through with the log
    at its most talkative."""
    folder = tmp_path_factory.mktemp("canaries") / "hub"
    shutil.copytree(empty_hub, folder)
    with talkative() as log:
        house = House(folder, Clock())
        world = populated(house)
        broken(world)
        said = {"a stranger": knocked(world), "questions": asked(world, world.analyst)}
        written(world)
        pages = dict[str, str]()
        for who in ("analyst", "administrator", "steward"):
            said[who] = everything(world, who, pages)
        everything(world, "owner", pages, programs=False)
        said["metrics"] = [house.client().get("/metrics").text]
    yield Record(world=world, said=said, pages=pages, log=log)
    house.close()


@contextmanager
def talkative() -> Iterator[io.StringIO]:
    """Every logger says all it has, also those of libraries, which look at their level once when they begin."""
    log, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(log), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield log
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@pytest.fixture
def world(record: Record) -> World:
    """Its hub, back in the one application."""
    application(record.world.house.hub)
    return record.world


def broken(world: World) -> None:
    """A data set whose rows contradict its declaration: what an engine says about it would quote them."""
    rows = {"code": [f"{WORD}-{each}" for each in range(40)]}
    declaration = {"columns": {"code": {"kind": "integer", "low": 0, "high": 10}}, "unit": None, "size": 40}
    made = world.house.sample_data_set("broken_zqx", owner=world.owner, rows=rows, declaration=declaration)
    world.house.grant(made, world.analyst, by=world.owner, actions=MAY)


def everything(world: World, who: str, pages: dict[str, str], *, programs: bool = True) -> list[str]:
    """What each page and each route for programs says to somebody, with the ids of things that are theirs."""
    said, visitor = [], getattr(world, who)
    for place in places(world.house.app):
        for address in () if place.writes or (place.api and not programs) else addresses(place, world.ids):
            answer = visitor.client.get(address)
            text = answer.content.decode("utf-8", "replace")
            assert answer.status_code < 500, (address, text[:300])
            said.append(f"{address}\n{answer.headers}\n{text}")
            if not place.api and answer.headers.get("content-type", "").startswith(("text/html", "image/svg")):
                pages[f"{who}: {address}"] = text
    return said


def asked(world: World, visitor: Visitor) -> list[str]:
    """What each question says, whatever becomes of it, through the API and on the page."""
    said, token = [], form_token(visitor)
    for sql in QUESTIONS:
        for path in ASKING:
            answer = visitor.client.post(f"/api/v1{path}", json={"sql": sql, "spend": "0.0001"}, headers={"X-CSRF-Token": token})
            assert answer.status_code < 500 or answer.json()["code"] == "engine", answer.text
            said.append(answer.text)
        page = visitor.client.post("/ask", data={"form_token": token, "sql": sql, "spend": "0.0001"})
        said.append(page.text)
    return said


def found(texts: list[str]) -> list[str]:
    """Which canaries sing where."""
    return [f"{each} in {text[:80]!r}" for text in texts for each in CANARIES if each in text]


def knocked(world: World) -> list[str]:
    """What a stranger is told who tries a token and a password."""
    client = world.house.client()
    said = [client.get("/api/v1/me", headers={"Authorization": "Bearer clo_CanaryToken"}).text]
    page = client.get("/login").text
    token = page.partition('name="form_token" value="')[2].partition('"')[0]
    form = {"form_token": token, "email": "ann@example.org", "password": "CanaryPassword1"}
    return [*said, page, client.post("/login", data=form).text]


def test_no_row_reaches_an_analyst_a_log_or_the_metrics(record: Record) -> None:
    said = [*record.said["questions"], *record.said["analyst"]]
    assert any('"n":' in text for text in said), "nothing was answered: the walk shows nothing"
    assert found(said) == []
    assert len(record.log.getvalue()) > 10_000, "the log says little: it shows nothing"
    assert found([record.log.getvalue()]) == []
    assert found(record.said["metrics"]) == []


def test_what_people_write_is_shown_as_text_on_every_page(record: Record) -> None:
    for who in ("analyst", "administrator", "steward", "owner"):
        shown = {address: page for address, page in record.pages.items() if address.startswith(f"{who}: ")}
        assert len(shown) > 100
    for address, page in record.pages.items():
        assert HTML not in page, address
        assert WORKED_OUT not in page, address
    assert sum("&lt;zqx" in page for page in record.pages.values()) > 5, "it was shown nowhere: the walk shows nothing"


@pytest.mark.parametrize("office", ["administrator", "steward"])
def test_no_office_sees_a_row(record: Record, office: str) -> None:
    assert len(record.said[office]) > 100
    assert found(record.said[office]) == []


def test_the_owner_sees_rows_of_the_owners_own_file_and_the_walk_finds_them(world: World) -> None:
    """What shows the rows of an upload to its sender is the one page that may; so the test of canaries can fail."""
    upload = world.house.client().post(
        "/api/v1/uploads",
        content=f"nick\n{WORD}-1\n".encode(),
        headers={**world.owner.bearer, "Content-Type": "text/csv"},
    )
    page = world.owner.client.post(f"/register/{upload.json()['id']}/rows", data={**FORM, "form_token": form_token(world.owner)})
    assert found([page.text]) != []


def test_no_row_and_no_secret_is_in_a_file(world: World) -> None:
    """Rows lie encrypted; of a token, a log-in or a link only the digest is kept."""
    secrets = [world.analyst.token, *world.analyst.client.cookies.values()]
    folder = world.house.settings.data
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "hub.db" for path in files)
    for path in files:
        held = path.read_bytes()
        assert not [each for each in CANARIES if each.encode() in held], path.name
        assert not [each for each in secrets if each.encode() in held], path.name


def test_no_secret_reaches_a_log_the_metrics_or_a_page(record: Record) -> None:
    house, analyst = record.world.house, record.world.analyst
    master = house.settings.path("master.key").read_text().strip()
    secrets = [analyst.token, *analyst.client.cookies.values(), master, "CanaryToken", "CanaryPassword1"]
    said = [*(text for texts in record.said.values() for text in texts), record.log.getvalue()]
    assert [each[:6] for each in secrets for text in said if each in text] == []


def test_what_nobody_foresaw_shows_nothing(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that quotes a row, from the deepest place there is, leaves as a reference, and the log says where and no more."""

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"could not convert {CANARIES[0]}")

    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr("cloister.hub.releases.api.releases_of", fails)
    client = world.house.client(raise_server_exceptions=False)
    answer = client.get("/api/v1/releases", headers=world.analyst.bearer)
    assert answer.status_code == 500
    assert answer.json()["code"] == "failed"
    assert found([answer.text, caplog.text]) == []
    assert "RuntimeError" in caplog.text
    assert answer.json()["detail"].rpartition(" ")[2] in caplog.text


def test_a_body_that_is_refused_is_not_repeated(world: World) -> None:
    """What is said of a wrong field names the field, not what stood in it: it may have been a row that was pasted."""
    openapi = world.house.app.openapi()
    for place in places(world.house.app):
        if not place.api or not place.writes or body_of(openapi, place) is None:
            continue
        address = place.at(**{name: new_id() for name in place.parameters})
        for body in ({CANARIES[0][:3]: 1, "title": {WORD: [WORD]}, "sql": [WORD]}, [WORD], WORD):
            answer = world.house.client().request(place.method, address, json=body, headers=world.owner.bearer)
            assert WORD not in answer.text, place
