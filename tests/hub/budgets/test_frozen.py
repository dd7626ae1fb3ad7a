"""Of a ledger that is frozen nothing is left to spend, on every page and in the API: whatever its sums would say."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from cloister.hub.platform.budgets.reading import budget_events
from cloister.ledger.records import Freeze
from cloister.privacy import PureDP
from tests.hub.house import Clock, House


def test_sums_that_were_changed_while_the_hub_was_down_leave_nothing_to_spend(tmp_path: Path) -> None:
    house = House(tmp_path, Clock())
    owner = house.person("owner", email="ada@example.org")
    house.sample_data_set(owner=owner, readers=[owner])
    sql = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.75"}
    assert owner.client.post("/api/v1/questions", json=sql, headers=owner.bearer).status_code == 201
    house.close()
    with sqlite3.connect(tmp_path / "ledger.db") as ledger:
        ledger.execute("UPDATE accounts SET spent = '0'")
    ledger.close()
    again = House(tmp_path, house.clock)
    try:
        client = again.client()
        asked = client.post("/api/v1/questions", json=sql | {"sql": sql["sql"] + " WHERE age > 20"}, headers=owner.bearer)
        assert asked.status_code == 503 or asked.json()["code"] in ("frozen", "ledger-frozen"), asked.text
        told = client.get("/api/v1/budgets/people", headers=owner.bearer).json()
        assert (told["frozen"], told["remaining"]) == (True, {"epsilon": "0"})
        client.cookies.update(owner.client.cookies)
        for path in ("/", "/budgets", "/budgets/people", "/datasets/people/manage", "/populations", "/populations/people"):
            page = client.get(path)
            assert page.status_code == 200, path
            assert "1 left of" not in page.text, path
            if path != "/":
                assert "rozen" in page.text, path
        ledger = again.hub.ledger
        assert ledger.frozen is not None
        assert ledger.frozen.losses == {"people": PureDP("0.75")}
        ledger.restore(ledger.frozen.losses, who="ada@example.org", why="somebody wrote to its tables")
        told = client.get("/api/v1/budgets/people", headers=owner.bearer).json()
        assert (told["frozen"], told["remaining"]) == (False, {"epsilon": "0.25"})
        assert asked.status_code >= 400
    finally:
        again.close()


def test_a_budget_that_a_backup_did_not_have_is_in_the_history_as_it_was_restored(tmp_path: Path) -> None:
    House(tmp_path, Clock()).close()
    backup = (tmp_path / "ledger.db").read_bytes()
    house = House(tmp_path, Clock())
    house.sample_data_set(owner=house.person("owner", email="ada@example.org"))
    house.close()
    for each in tmp_path.glob("ledger.db-*"):
        each.unlink()
    (tmp_path / "ledger.db").write_bytes(backup)
    again = House(tmp_path, house.clock)
    try:
        ledger = again.hub.ledger
        assert ledger.frozen is not None
        ledger.restore(ledger.frozen.losses, who="ada@example.org", why="the disk was lost")
        [event] = budget_events(again.hub, "people")
        assert (event.budget, event.why) == (PureDP(1), "the disk was lost")
    finally:
        again.close()


def test_what_is_said_before_a_question_is_asked_says_so_too(house: House) -> None:
    """A ledger that froze while the hub was running: in the previews nothing is left either, and no bar shows a rest."""
    owner = house.person("owner", email="ada@example.org")
    house.sample_data_set(owner=owner, readers=[owner])
    sql = {"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.25"}
    [left] = owner.client.post("/api/v1/questions/explain", json=sql, headers=owner.bearer).json()["left"]
    assert (left["before"], left["after"]) == ("ε = 1", "ε = 0.75")
    writer = house.hub.ledger._writer
    writer.freeze = Freeze(reason="its database was cut", count=1, hash="", losses={}, accounts={})
    explained = owner.client.post("/api/v1/questions/explain", json=sql, headers=owner.bearer)
    assert explained.status_code == 200, explained.text
    assert explained.json()["left"] == [{"population": "people", "of_share": False, "before": "nothing", "after": None}]
    model = {"table": "people", "method": "GaussianNB", "features": "pay", "target": "sex", "spend": "0.25"}
    for page, step, form in (("/ask", "explain", sql), ("/learn", "expected", model)):
        token = re.search(r'name="form_token" value="([^"]+)"', owner.client.get(page).text)[1]  # type: ignore[index]
        sent = {"form_token": token, **form}
        shown = owner.client.post(f"{page}/{step}", data=sent).text
        assert ("with this" in shown, "frozen" in shown, "left of" in shown, " left<" in shown) == (True, True, False, False), (
            shown
        )
