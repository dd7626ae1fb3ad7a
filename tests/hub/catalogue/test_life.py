"""What becomes of a data set: versions, windows, closing, integrity, retention, deletion; every process sees it at once."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from cloister.errors import CloisterError
from cloister.hub.hub import Hub
from cloister.hub.platform.catalogue import expire, live_of, managing
from cloister.hub.platform.catalogue.registering import Wanted, registered
from cloister.hub.records.accounts import Attempts, SignOn, WebSession
from cloister.hub.records.catalogue import Arrival, DataSet, DataSetVersion
from cloister.hub.services.asking import QuestionRequest, ask
from cloister.privacy import PureDP
from tests.hub.catalogue.world import CANARY, DECLARED, PEOPLE, SERVICES, Sender, World, rows_of

NEW = PEOPLE + PEOPLE.split(b"\n", 1)[1]
COUNT = "SELECT COUNT(*) AS n FROM people"


def count(browser: Sender, spend: str = "0.5", sql: str = COUNT) -> Any:
    answer = browser.api("POST", "/questions", json={"sql": sql, "spend": spend})
    return answer.json()["columns"]["n"][0] if answer.status_code == 201 else answer.json()["code"]


def test_a_new_version_is_read_at_once_under_the_same_budget(world: World, ada: Sender) -> None:
    world.register(budget=PureDP(20))
    assert count(ada, "5") == pytest.approx(400, abs=10)
    answer = ada.send(NEW, path="/uploads/versions/people", page="/datasets/people/version")
    assert answer.headers["location"] == "/datasets/people/manage"
    assert count(ada, "5") == pytest.approx(800, abs=10)
    assert world.hub.ledger.spent("people") == PureDP(10)
    assert world.rows(DataSet)[0].version == 2
    versions = ada.api("GET", "/datasets/people/versions").json()["items"]
    assert [(each["number"], each["destroyed"]) for each in versions] == [(2, None), (1, None)]
    number = ada.upload(PEOPLE).json()["id"]
    assert ada.api("POST", "/datasets/people/versions", json={"upload": number}).json()["number"] == 3
    assert count(ada, "5") == pytest.approx(400, abs=10)
    assert world.rows(Arrival) == []


@pytest.mark.parametrize("content", [b"age,sex\n3,F\n", b"", b"\xff\xfe", b"age,sex,town,wage\n1,F,x,2\n"])
def test_a_version_that_does_not_fit_leaves_everything_as_it_was(world: World, ada: Sender, content: bytes) -> None:
    world.register()
    before = world.left()
    answer = ada.send(content, path="/uploads/versions/people", page="/datasets/people/version")
    assert answer.status_code in (404, 422)
    assert "Instead" in answer.text
    assert world.left() == before
    assert count(ada) == pytest.approx(400, abs=60)


def test_the_second_of_two_deletions_at_once_is_told_that_it_is_gone(
    world: World, ada: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.register()
    alone = managing.delete

    def behind_another(*given: Any) -> None:
        alone(*given)
        alone(*given)

    monkeypatch.setattr(managing, "delete", behind_another)
    assert ada.api("DELETE", "/datasets/people").status_code == 404


def test_an_old_version_is_destroyed_and_the_present_one_is_not(world: World, ada: Sender) -> None:
    world.register()
    ada.send(NEW, path="/uploads/versions/people", page="/datasets/people/version")
    manage = "/datasets/people/manage"
    assert ada.post("/datasets/people/versions/2/destroy", manage).status_code == 409
    assert ada.post("/datasets/people/versions/9/destroy", manage).status_code == 404
    assert ada.post("/datasets/people/versions/1/destroy", manage).status_code == 303
    assert ada.api("DELETE", "/datasets/people/versions/1").status_code == 404
    old = next(each for each in world.rows(DataSetVersion) if each.number == 1)
    assert old.key is None
    assert old.destroyed is not None
    assert len(world.left()[4]) == 1
    assert "key destroyed" in ada.get(manage).text
    assert count(ada) == pytest.approx(800, abs=60)


def test_closing_and_opening(world: World, ada: Sender) -> None:
    world.register()
    assert ada.post("/datasets/people/close", "/datasets/people/manage").status_code == 303
    assert count(ada) == "unknown-table"
    assert "Queries are closed" in ada.get("/datasets/people").text
    assert ada.api("POST", "/datasets/people/open").json()["state"] == "open"
    assert isinstance(count(ada), int)
    assert world.hub.ledger.spent("people") == PureDP("0.5")


def test_deleting_destroys_the_keys(world: World, ada: Sender) -> None:
    world.register()
    ada.send(NEW, path="/uploads/versions/people", page="/datasets/people/version")
    assert isinstance(count(ada), int)
    files = {name: world.settings.path("vault").joinpath(name).read_bytes() for name in world.left()[4]}
    assert len(files) == 2
    wrong = ada.post("/datasets/people/delete", "/datasets/people/manage", confirmed="yes")
    assert wrong.status_code == 422
    assert len(world.left()[4]) == 2
    answer = ada.post("/datasets/people/delete", "/datasets/people/manage", confirmed="people")
    assert answer.headers["location"] == "/datasets"
    assert [row.key for row in world.rows(DataSetVersion)] == [None, None]
    assert world.left()[4] == []
    for name, content in files.items():
        world.settings.path("vault").joinpath(name).write_bytes(content)
    row, version = world.rows(DataSet)[0], world.rows(DataSetVersion)[0]
    from cloister.hub.platform.catalogue.sources import source_of

    with pytest.raises(CloisterError, match="its key was destroyed"):
        source_of(world.hub, row, version)
    assert count(ada) == "unknown-table"
    assert ada.get("/datasets/people").status_code == 404
    assert ada.get("/datasets/people/manage").status_code == 404
    assert world.hub.ledger.spent("people") == PureDP("0.5")
    world.register(name="again", population="people", budget=None)
    assert count(ada, "1.5", "SELECT COUNT(*) AS n FROM again") == pytest.approx(400, abs=60)
    assert count(ada, "0.5", "SELECT AVG(age) AS n FROM again") == "budget-exceeded"


def test_a_damaged_file_closes_its_own_data_set_and_tells_its_owner(world: World, ada: Sender) -> None:
    world.register()
    world.register(name="other")
    row = next(each for each in world.rows(DataSetVersion) if each.data_set == world.rows(DataSet)[0].id)
    path = world.settings.path("vault") / "tables" / row.file
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    name = next(each.name for each in world.rows(DataSet) if each.id == row.data_set)
    other = {"people": "other", "other": "people"}[name]
    page = ada.get(f"/datasets/{name}/manage").text
    assert "its file is not what was stored" in page
    assert "from a backup" in page
    assert "not readable" in ada.get("/").text
    assert count(ada, "0.5", f"SELECT COUNT(*) AS n FROM {other}") == pytest.approx(400, abs=60)
    assert count(ada, "0.5", f"SELECT COUNT(*) AS n FROM {name}") == "engine"
    checked = ada.post(f"/datasets/{name}/check", f"/datasets/{name}/manage")
    assert checked.status_code == 502
    assert ada.post(f"/datasets/{other}/check", f"/datasets/{other}/manage").status_code == 303
    assert ("dataset.check", world.find("ada@example.org").id, "failed") in world.trail()
    assert CANARY not in page + checked.text
    ada.send(PEOPLE, path=f"/uploads/versions/{name}", page=f"/datasets/{name}/version")
    assert count(ada, "0.5", f"SELECT COUNT(*) AS n FROM {name}") == pytest.approx(400, abs=60)


def test_what_is_over_is_closed_and_destroyed(world: World, ada: Sender) -> None:
    world.register(metadata={"policy": {"retention": "2026-06-30"}})
    world.register(name="stays")
    assert expire(world.hub) == []
    world.clock.move(days=364)
    ada.log_in("ada@example.org")
    assert count(ada) == "access-denied"
    assert expire(world.hub) == ["people"]
    assert expire(world.hub) == []
    row = next(each for each in world.rows(DataSet) if each.name == "people")
    assert row.state == "closed"
    assert [each.key for each in world.rows(DataSetVersion) if each.data_set == row.id] == [None]
    assert len(world.left()[4]) == 1
    assert ("dataset.expire", "", "done") in world.trail()
    answer = ada.post("/datasets/people/open", "/datasets/people/manage")
    assert answer.status_code == 409
    assert "the key of its rows was destroyed" in answer.text
    late = ada.api("POST", "/datasets/people/versions", json={"upload": ada.upload().json()["id"]})
    assert (late.status_code, "the last day of its data is over" in late.text) == (409, True), late.text
    assert "the last day of its data is over" in ada.get("/datasets/people/version").text
    assert isinstance(count(ada, "0.5", "SELECT COUNT(*) AS n FROM stays"), int)


def test_the_keeper_makes_a_job_of_the_owner(world: World, ada: Sender) -> None:
    from cloister.hub.platform import jobs
    from cloister.hub.platform.catalogue.retention import Keeper
    from cloister.hub.records.jobs import Job

    world.register(metadata={"policy": {"retention": "2026-06-30"}})
    other = Hub(world.settings, [each.SERVICE for each in (*SERVICES, jobs)], clock=world.clock)
    keeper = other.parts["catalogue keeper"]
    assert isinstance(keeper, Keeper)
    try:
        keeper.look()
        assert world.rows(Job) == []
        world.clock.move(days=364)
        keeper.look()
        keeper.look()
        assert [(job.kind, job.person) for job in world.rows(Job)] == [("catalogue.expire", world.find("ada@example.org").id)]
        assert other.parts["jobs"].run_one()
        assert [(job.state, job.result) for job in world.rows(Job)] == [("done", {"closed": ["people"]})]
        keeper.look()
        assert len(world.rows(Job)) == 1
    finally:
        other.close()
    assert world.rows(DataSet)[0].state == "closed"


def test_the_keeper_forgets_visits_sessions_and_attempts_that_are_long_over(world: World, ada: Sender) -> None:
    def held() -> list[int]:
        with world.hub.database.reading() as db:
            return [db.scalar(select(func.count()).select_from(each)) or 0 for each in (WebSession, Attempts, SignOn)]

    with world.hub.database.begin() as db:
        soon = world.hub.now() + timedelta(minutes=10)
        db.add(SignOn(digest="d", browser="b", nonce="n", verifier="v", expires=soon))
        db.add(Attempts(subject="s", failures=1, last=world.hub.now()))
    before, keeper = held(), world.hub.parts["catalogue keeper"]
    assert min(before) > 0
    keeper.look()
    assert held() == before
    world.clock.move(days=60)
    keeper.look()
    assert held() == [0, 0, 0]


def test_windows_have_budgets_of_their_own(world: World, ada: Sender) -> None:
    number = ada.upload().json()["id"]
    columns = {"sex": {"kind": "category", "values": ["F", "M"], "reason": "codes"}}
    body = {"upload": number, "name": "visits", "title": "Visits", "columns": columns, "population": "patients"}
    body |= {"budget": {"epsilon": "1"}, "every": "quarter", "window": "2026-Q4", "listed": True}
    first = ada.api("POST", "/datasets", json=body)
    assert first.status_code == 201, first.text
    assert (first.json()["name"], first.json()["population"]) == ("visits_2026_q4", "patients 2026-Q4")
    page = "/datasets/visits_2026_q4/version"
    assert 'value="2027-Q1"' in ada.get(page).text
    answer = ada.send(NEW, path="/uploads/windows/visits_2026_q4", page=page, window="2027-Q1")
    assert answer.status_code == 303, answer.text
    again = ada.api("POST", "/datasets/visits_2026_q4/windows", json={"upload": ada.upload().json()["id"]})
    assert (again.status_code, again.json()["instead"]) == (422, 'population = "patients 2026-Q4"'), "another window, other rows"
    more = ada.upload(rows_of("next")).json()["id"]
    third = ada.api("POST", "/datasets/visits_2026_q4/windows", json={"upload": more}).json()
    assert (third["name"], third["title"], third["budget"]) == ("visits_2027_q2", "Visits 2027-Q2", {"epsilon": "1"})
    for window, size in (("2026_q4", 400), ("2027_q1", 800), ("2027_q2", 400)):
        assert count(ada, "1", f"SELECT COUNT(*) AS n FROM visits_{window}") == pytest.approx(size, abs=40)
    assert world.hub.ledger.spent("patients 2027-Q1") == PureDP(1)
    told = ada.get("/datasets/visits_2026_q4").text.replace("\xa0", " ")
    assert "The guarantee is for each person and window" in told
    assert "ε = 3" in told
    assert ada.get("/populations/patients%202027-Q1").status_code == 200
    again = ada.upload().json()["id"]
    refused = ada.api("POST", "/datasets/visits_2026_q4/windows", json={"upload": again, "window": "2027-Q2"})
    assert refused.status_code == 409
    for wrong in ("2027", "2027-Q9", "../x"):
        answer = ada.api("POST", "/datasets/visits_2026_q4/windows", json={"upload": again, "window": wrong})
        assert answer.status_code == 422
    world.register(source=[rows_of("last")])
    assert ada.api("POST", "/datasets/people/windows", json={"upload": again}).status_code == 422


def test_two_processes_see_a_change_at_once(world: World, ada: Sender) -> None:
    world.register(budget=PureDP(30))
    caller = world.caller("ada@example.org")
    other = Hub(world.settings, [each.SERVICE for each in SERVICES], clock=world.clock)
    try:

        def asked(sql: str = COUNT) -> int:
            return int(ask(other, caller, QuestionRequest(sql=sql, spend="5")).release.to_pydict()["n"][0])

        assert asked() == pytest.approx(400, abs=10)
        ada.send(NEW, path="/uploads/versions/people", page="/datasets/people/version")
        assert asked() == pytest.approx(800, abs=10)
        world.register(name="more", budget=PureDP(9))
        assert asked("SELECT COUNT(*) AS n FROM more") == pytest.approx(400, abs=10)
        ada.post("/datasets/people/close", "/datasets/people/manage")
        with pytest.raises(CloisterError, match="people"):
            asked("SELECT COUNT(*) AS n FROM people WHERE age > 30")
        ada.api("DELETE", "/datasets/more")
        with pytest.raises(CloisterError):
            asked("SELECT COUNT(*) AS n FROM more WHERE age > 30")
        with other.database.reading() as db:
            live_of(other).renew(db)
        assert live_of(other).closed_for == {}
    finally:
        other.close()


def test_a_failure_at_the_last_moment_leaves_the_upload_and_nothing_else(
    world: World, ada: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cloister.errors import LedgerUnavailable
    from cloister.hub.platform.catalogue import registering

    number = ada.upload().json()["id"]
    caller = world.caller("ada@example.org")
    wanted = Wanted(name="people", title="People", declaration=DECLARED, population="people", budget=PureDP(1))

    def away(*_: object) -> None:
        raise LedgerUnavailable("The ledger is away", why="its disk is full", instead="try again")

    with monkeypatch.context() as patched:
        patched.setattr(registering, "open_table", away)
        with pytest.raises(LedgerUnavailable):
            registered(world.hub, caller, number, wanted)
    arrivals, data_sets, versions, populations, files = world.left()
    assert (arrivals, data_sets, versions, populations, len(files)) == (1, 0, 0, 0, 1)
    assert world.hub.ledger.populations() == []
    assert registered(world.hub, caller, number, wanted).name == "people"
    assert count(ada) == pytest.approx(400, abs=60)
    assert world.left()[:4] == (0, 1, 1, 1)


def test_parquet_and_paths(world: World, ada: Sender, tmp_path: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table({"age": [30, 40] * 200, "sex": ["F", "M"] * 200, "pay": [1.0, 2.0] * 200}), file)
    path = tmp_path / "people.parquet"
    path.write_bytes(file.getvalue())
    world.register(source=path, kind="parquet")
    assert count(ada) == pytest.approx(400, abs=60)
    row = world.rows(DataSetVersion)[0]
    assert (row.format, row.kind) == ("parquet", "stored")


def test_what_travels_with_a_release(world: World, ada: Sender) -> None:
    world.register(metadata={"policy": {"labels": ["clinical"]}, "columns": {"age": {"sensitivity": "special"}}})
    asked = ada.api("POST", "/questions", json={"sql": "SELECT AVG(age) AS a FROM people", "spend": "1", "purpose": "care"})
    assert asked.json()["policy"]["labels"] == ["clinical"]
    assert asked.json()["policy"]["sensitivity"] == "special"
    page = ada.get("/datasets/people/manage").text
    assert "Query run" in page
    assert "care" in page


def test_two_who_want_the_same_name_at_the_same_moment(world: World, ada: Sender) -> None:
    from concurrent.futures import ThreadPoolExecutor

    numbers = [ada.upload().json()["id"] for _ in range(4)]
    caller = world.caller("ada@example.org")
    wanted = Wanted(name="people", title="People", declaration=DECLARED, population="people", budget=PureDP(1))

    def register(number: str) -> str:
        try:
            return registered(world.hub, caller, number, wanted).id
        except CloisterError as error:
            return type(error).__name__

    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(register, numbers))
    assert sorted(each for each in ended if len(each) < 22) == ["Conflict"] * 3, ended
    arrivals, data_sets, versions, populations, files = world.left()
    assert (arrivals, data_sets, versions, populations, len(files)) == (3, 1, 1, 1, 4)
    assert count(ada) == pytest.approx(400, abs=60)
    for number in numbers:
        ada.api("DELETE", f"/uploads/{number}")
    assert len(world.left()[4]) == 1
