"""Released steps of a stream answer SQL at no cost: in the API, the workbench and PostgreSQL clients, with their margins."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

import cloister as cl
from cloister.hub.platform.accounts.tokens import make_token
from cloister.hub.records.streams import HeldStream, StreamStep
from cloister.hub.services.asking.pg import HubSession
from cloister.hub.services.streams import opening, pages, release_due
from cloister.hub.services.streams.showing import name_of
from cloister.hub.services.streams.tables import _answered
from cloister.pgwire import Asking
from tests.hub.house import House, Visitor, served
from tests.hub.streams.test_streams import HOUSE, Play


@pytest.fixture
def play(house: House) -> Play:
    """A stream that is shown, with two released steps, and one that is not."""
    return Play(house, house.person("owner"), house.person("analyst"))


def released(play: Play, **more: Any) -> tuple[str, str]:
    """A stream with two steps: its id, and its name in queries."""
    number, key = play.stream(until="2026-03-02T14:00:00Z", shown=True, **more)
    play.send(number, key, "2026-03-02T09:10:00Z", {"at": "2026-03-02T10:10Z", "room": "attic"})
    play.house.clock.move(hours=2, seconds=10)
    assert release_due(play.house.hub) == 2
    with play.house.hub.database.reading() as db:
        return number, name_of(db.get_one(HeldStream, number))


def answer(play: Play, sql: str, who: Visitor, **more: Any) -> Any:
    return play.house.client().post("/api/v1/releases/answer", json={"sql": sql, **more}, headers=who.bearer)


def test_steps_are_a_table_that_costs_nothing_and_keeps_margins(play: Play) -> None:
    number, name = released(play)
    assert name.startswith("people_in_the_house_stream_")
    told = answer(play, f"SELECT step, room, n FROM {name} WHERE n > 0 ORDER BY step", play.bob).json()
    assert told["columns"]["room"] == ["hall", "attic"]
    assert told["columns"]["n"] == [1.0, 1.0]
    assert told["columns"]["n_kind"] == ["measured"] * 2
    assert all(low <= 1 <= high for low, high in zip(told["columns"]["n_low"], told["columns"]["n_high"], strict=True))
    assert told["cost"] == {f"stream {number}": "ρ = 1000000"}
    sums = answer(play, f"SELECT room, SUM(n) AS all_of_it FROM {name} GROUP BY room ORDER BY room", play.bob).json()
    assert sums["columns"] == {"room": ["attic", "hall"], "all_of_it": [1.0, 1.0]}
    assert str(play.house.hub.ledger.spent(f"stream {number}")) == "ρ = 1000000"
    assert (
        name in play.house.person("analyst", email="new@example.org").client.get("/ask").text
    )  # bob has been signed out meanwhile


def test_margins_grow_with_the_confidence_that_is_asked_for(play: Play) -> None:
    _, name = released(play, rho="0.1")
    near, far = (
        answer(play, f"SELECT n, n_margin FROM {name}", play.bob, confidence=share).json()["columns"] for share in (0.95, 0.99)
    )
    widths = [[(high - low) / 2 for low, high in zip(each["n_low"], each["n_high"], strict=True)] for each in (near, far)]
    assert widths[0] == pytest.approx(near["n_margin"])
    assert widths[1] == pytest.approx([1.3142 * each for each in near["n_margin"]], rel=1e-3)


@pytest.mark.parametrize(
    ("select", "label"),
    [
        ("N, step FROM {t} WHERE room = 'hall'", "N"),
        ("step, N AS Many FROM {t}", "Many"),
        ("n FROM {t} WHERE step = (SELECT MAX(step) FROM {t})", "n"),
        ("n FROM {t} QUALIFY ROW_NUMBER() OVER (PARTITION BY room ORDER BY step DESC) = 1", "n"),
        ("n FROM {t} AS t WHERE n >= (SELECT AVG(n) FROM {t})", "n"),
    ],
)
def test_a_number_keeps_its_margin_however_it_is_spelt_and_whichever_its_rows(select: str, label: str) -> None:
    columns = _answer_here(f"SELECT {select}")
    assert [*columns][[*columns].index(label) :][:4] == [label, f"{label}_low", f"{label}_high", f"{label}_kind"]
    for value, low, high in zip(*(columns[f"{label}{end}"] for end in ("", "_low", "_high")), strict=True):
        assert (value - low, high - value) == pytest.approx((value, value)), "each its own: its margin is as large as itself"


@pytest.mark.parametrize("select", ["n, step AS n_low", "N, step AS n_HIGH", "n AS m, room AS m_kind", "n, step AS n__margin"])
def test_what_is_called_as_a_margin_is_refused_beside_its_number(select: str) -> None:
    with pytest.raises(cl.InvalidParameter, match="two columns would have one name"):
        _answer_here(f"SELECT {select} FROM {{t}}")
    assert [*_answer_here("SELECT step AS n_low, n + 0 AS n FROM {t}")] == ["n_low", "n"], "no margin stands beside that one"


def test_a_column_that_is_only_called_as_a_number_has_no_margin() -> None:
    assert [*_answer_here("SELECT n FROM {t} AS x (n, a, b, c, d, n_margin, f)")] == ["n"]


def _answer_here(sql: str) -> dict[str, list[Any]]:
    """What a table with a number `n`, whose margin is as large as itself, answers to a query of `{t}`."""
    numbers = [1.0, 2.0, 3.0, 4.0]
    keys = {"step": [1, 1, 2, 2], "begins": ["a"] * 4, "ends": ["b"] * 4, "room": ["hall", "attic"] * 2}
    table = cl.PublicTable({**keys, "n": numbers, "n_margin": numbers, "n_so_far": numbers})
    found: dict[str, list[Any]] = _answered("t", table, ["n"], False, sql.format(t="t"), 0.95, None).table.to_pydict()
    return found


def test_a_stream_of_before_whose_steps_are_no_table_takes_no_table_from_the_others(play: Play) -> None:
    number, name = released(play)
    with play.house.hub.database.begin() as db:
        for step in db.scalars(select(StreamStep).where(StreamStep.stream == number)):
            step.body = json.loads(json.dumps(step.body).replace('"n": ', '"begins": '))
    seen = play.house.person("analyst", email="new@example.org").client.get("/ask")  # bob has been signed out meanwhile
    assert seen.status_code == 200
    assert name not in seen.text


def test_margins_of_laplace_noise_grow_by_its_own_tail(play: Play) -> None:
    _, name = released(play, rho="", epsilon="0.1")
    widths = {}
    for share in (0.5, 0.95, 0.999):
        told = answer(play, f"SELECT n FROM {name}", play.bob, confidence=share).json()["columns"]
        widths[share] = (told["n_high"][0] - told["n_low"][0]) / 2
    assert widths[0.999] / widths[0.95] == pytest.approx(math.log(1000) / math.log(20)), "2.31, where a normal law has 1.68"
    assert widths[0.5] / widths[0.95] > math.log(2) / math.log(20)


def test_the_workbench_and_a_client_of_postgresql_read_the_same(play: Play) -> None:
    number, name = released(play)
    sql = f"SELECT step, room, n FROM {name}"
    client = play.house.person("analyst", email="new@example.org").client
    form = client.get(f"/ask?about={name}").text
    assert f'<a href="/streams/{number}">About {name}</a>' in form
    token = form.split('name="form_token" value="')[1].split('"')[0]
    page = client.post("/ask/explain", data={"form_token": token, "sql": sql, "confidence": "0.95"}).text
    assert "holds what was released already" in page
    session = HubSession(play.house.hub, play.bob.caller.email, play.bob.token, "127.0.0.1")
    assert name in session.tables()
    how = Asking(confidence=0.95)
    found = session.ask(sql, how)
    assert [each.name for each in session.shape(sql, how)] == found.table.column_names
    assert found.table["n"].tolist() == [1.0, 0.0, 0.0, 1.0]
    session.check(sql, how)
    with pytest.raises(cl.UnsupportedQuery, match="at no cost"):
        session.explain(sql, how)
    with served(play.house.hub) as url, cl.connect(url, token=play.bob.token) as remote:
        assert remote.answer(sql)["room"] == ["hall", "attic"] * 2


def test_what_is_not_shown_or_not_released_is_no_table(play: Play) -> None:
    number, _ = play.stream(until="2026-03-02T14:00:00Z")
    with play.house.hub.database.reading() as db:
        name = name_of(db.get_one(HeldStream, number))
    assert answer(play, f"SELECT n FROM {name}", play.ada).status_code == 404  # no step yet
    play.house.clock.move(hours=1, seconds=10)
    release_due(play.house.hub)
    assert answer(play, f"SELECT step FROM {name}", play.ada).status_code == 200
    assert answer(play, f"SELECT step FROM {name}", play.bob).status_code == 404
    refused = answer(play, f"SELECT nothing FROM {name}", play.ada)
    assert refused.status_code == 422, refused.text
    assert HOUSE["title"] not in answer(play, f"SELECT step FROM {name}", play.bob).text


def test_a_token_that_may_see_no_stream_sees_no_table_of_one(play: Play) -> None:
    number, name = released(play)
    found = {}
    for scopes in (["question.ask"], ["question.ask", "stream.see"]):
        with play.house.hub.database.begin() as db:
            _, token = make_token(play.house.hub, db, play.bob.caller, name=f"of {len(scopes)}", scopes=scopes)
        headers = {"Authorization": f"Bearer {token}"}
        page = play.house.client().get(f"/api/v1/streams/{number}", headers=headers)
        steps = play.house.client().post("/api/v1/releases/answer", json={"sql": f"SELECT n FROM {name}"}, headers=headers)
        found[len(scopes)] = (page.status_code, steps.status_code == 200)
    assert found == {1: (403, False), 2: (200, True)}


def test_lists_go_on_and_have_ones_own_before_those_that_are_shown(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hundred newer ones of others may not push a person's own out of the list, the API and SQL."""
    play = Play(house, house.person("owner"), house.person("owner", email="bob@example.org"))
    mine, _ = play.stream(title="Mine", until="2026-03-02T14:00:00Z")
    house.clock.move(hours=1, seconds=10)
    assert release_due(house.hub) == 1
    house.awake(play.ada)
    with house.hub.database.begin() as db:
        row = db.get_one(HeldStream, mine)
        for number in range(7):
            how = {"owner": play.bob.caller.id, "title": f"Of others {number}", "declared": row.declared, "shown": number != 3}
            db.add(HeldStream(id=f"other{number}", created=row.created + timedelta(hours=1 + number), **how))
    monkeypatch.setattr(opening, "_AT_ONCE", 2)
    monkeypatch.setattr(pages, "_PAGE", 4)
    whole = ["Mine", *(f"Of others {number}" for number in (6, 5, 4, 2, 1, 0))]
    for limit in (1, 3, 7):
        found, after = list[str](), ""
        while after is not None:
            told = play.api("GET", f"?limit={limit}&after={after}").json()
            found, after = found + [each["title"] for each in told["streams"]], told["next"]
        assert found == whole, limit
    first = play.ada.client.get("/streams").text
    assert [title in first for title in whole] == [True] * 4 + [False] * 3
    second = play.ada.client.get(first.split('rel="next" href="')[1].split('"')[0]).text
    assert [title in second for title in whole] == [False] * 4 + [True] * 3
    assert play.api("GET", "?after=other3").status_code == 422, "it is not shown"
    with house.hub.database.reading() as db:
        name = name_of(db.get_one(HeldStream, mine))
    asked = house.client().post("/api/v1/releases/answer", json={"sql": f"SELECT n FROM {name}"}, headers=play.ada.bearer)
    assert (asked.status_code, asked.json()["columns"]["n"]) == (200, [0.0, 0.0])
