"""A session with a hub over real connections: what is asked there is what a session on this machine would answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import cloister as cl
from cloister import errors
from cloister.client import RemoteSession
from cloister.client.transport import Transport
from cloister.ledger.records import Freeze
from tests.hub.house import Clock, House, Visitor, served

SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex"
COUNT = "SELECT COUNT(*) AS n FROM people"


@dataclass
class Stage:
    """A hub that is served, with a data set and who may ask it."""

    house: House
    url: str
    ana: Visitor

    def session(self, **how: object) -> RemoteSession:
        return cl.connect(self.url, token=self.ana.token, **how)  # type: ignore[arg-type]

    @property
    def charges(self) -> int:
        return len(list(self.house.hub.ledger.charges("people")))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    house = House(tmp_path / "hub", Clock())
    ana = house.person("analyst", email="ana@example.org")
    house.sample_data_set("people", readers=[ana])
    with served(house.hub) as url:
        yield Stage(house, url, ana)
    house.close()


class Cut(httpx.HTTPTransport):
    """A connection that breaks after the hub has answered and before a byte of it arrives, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.bodies: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        body = response.read()
        self.bodies.append(body)
        if self.times:
            self.times -= 1
            raise httpx.ReadError("cut")
        return httpx.Response(response.status_code, headers=response.headers, content=body)


def test_a_release_comes_whole_and_is_charged_once(stage: Stage) -> None:
    with stage.session(purpose="a study") as session:
        answer = session.sql(SQL, spend="0.1")
        assert isinstance(answer, cl.Release)
        assert answer.column_names == ["sex", "n", "age"]
        assert answer.cost == cl.PureDP("0.1")
        assert (answer.margin(0.99)["n"] > answer.margin(0.9)["n"]).all()
        assert answer.provenance.who == "ana@example.org"
        assert session.who == "ana@example.org"
        again = session.sql(SQL, spend="0.1")
        assert again.provenance.repeated
        assert again.to_pydict() == answer.to_pydict()
        assert session.release(session.address_of(answer)).to_json() == answer.to_json()
        assert stage.charges == 1


def test_an_answer_that_is_lost_after_the_charge_comes_again_with_the_same_bytes(stage: Stage) -> None:
    cut = Cut(2)
    client = httpx.Client(base_url=stage.url, transport=cut, headers=stage.ana.bearer, timeout=120)
    session = RemoteSession(Transport(client, timeout=60, sleep=lambda _: None, now=lambda: 0.0))
    answer = session.sql(SQL, spend="0.1", fresh=True)
    assert len(cut.bodies) == 3
    assert len(set(cut.bodies)) == 1
    assert not answer.provenance.repeated
    assert stage.charges == 1
    assert stage.house.hub.ledger.spent("people") == cl.PureDP("0.1")


def test_explain_rehearse_and_afford_spend_nothing(stage: Stage) -> None:
    with stage.session(purpose="a study") as session:
        plan = session.explain(SQL, "0.1")
        assert plan.cost == cl.PureDP("0.1")
        assert plan.margin(0.99)["n"][0] > plan.margin(0.9)["n"][0] > 0
        assert "nothing was spent" in str(plan)
        assert plan.picture().startswith("<svg")
        assert "made-up" in "".join(session.sql(SQL, spend="0.1", rehearse=True).notes)
        widths = session.afford(COUNT, ["0.1", "1"]).to_pydict()["n"]
        assert widths[0] > widths[1]
        assert session.afford(COUNT).to_pydict()["n"][-1] == widths[1]
        assert session.stored(SQL) is None
        assert session.tables["people"].columns["age"] == cl.Integer(17, 90)
        assert session.remaining == cl.PureDP(1)
        answer = session.sql(SQL, spend=cl.PureDP("0.2"))
        assert answer.cost == cl.PureDP("0.2")
        bought = session.stored(SQL)
        assert bought is not None
        assert bought.to_pydict() == answer.to_pydict()
        assert session.remaining_by == {"people": cl.PureDP("0.8")}
        with pytest.raises(errors.NotConvertible):
            session.sql(SQL, spend=cl.ZCDP("0.2"))
        stage.house.hub.ledger._writer.freeze = Freeze(reason="its database was cut", count=1, hash="", losses={}, accounts={})
        assert session.remaining_by == {"people": cl.PureDP(0)}, "as on the hub's pages"
    assert stage.charges == 1


def test_a_workload_is_one_charge(stage: Stage) -> None:
    with stage.session() as session:
        by_sex, total = session.workload(["SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", COUNT], spend="0.2")
    assert (by_sex.num_rows, total.num_rows) == (2, 1)
    assert stage.house.hub.ledger.spent("people") == cl.PureDP("0.2")
    assert stage.charges == 1


@pytest.mark.parametrize(
    ("sql", "how", "kind"),
    [
        (COUNT, {"spend": "2"}, errors.BudgetExceeded),
        (COUNT, {"spend": "0"}, errors.InvalidParameter),
        (COUNT, {}, errors.InvalidParameter),
        (COUNT, {"spend": "0.1", "confidence": 2}, errors.InvalidParameter),
        ("SELECT COUNT(*) FROM elsewhere", {"spend": "0.1"}, errors.UnknownTable),
        ("SELECT COUNT(wealth) FROM people", {"spend": "0.1"}, errors.UnknownColumn),
        ("SELECT age FROM people", {"spend": "0.1"}, errors.UnsupportedQuery),
    ],
)
def test_refusals_are_those_of_a_session_on_this_machine(
    stage: Stage, sql: str, how: dict[str, object], kind: type[errors.CloisterError]
) -> None:
    with stage.session() as session, pytest.raises(kind) as refused:
        session.sql(sql, **how)  # type: ignore[arg-type]
    assert refused.value.what
    assert refused.value.instead
    assert stage.charges == 0


def test_a_token_that_is_revoked_or_lacks_a_scope_is_refused(stage: Stage) -> None:
    with cl.connect(stage.url, token="clo_unknown") as session, pytest.raises(errors.AccessDenied, match="is not valid"):
        session.sql(COUNT, spend="0.1")
    bob = stage.house.person("analyst")
    with cl.connect(stage.url, token=bob.token) as session, pytest.raises(errors.UnknownTable):
        session.sql(COUNT, spend="0.1")


def test_threads_share_a_session_and_its_connections(stage: Stage) -> None:
    found: list[object] = []
    with stage.session() as session:

        def ask(low: int) -> None:
            found.append(session.sql(f"SELECT COUNT(*) AS n FROM people WHERE age > {low}", spend="0.01").num_rows)

        threads = [threading.Thread(target=ask, args=(20 + each,)) for each in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [1] * 8
    assert stage.charges == 8
