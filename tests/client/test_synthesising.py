"""Synthetic tables that a hub makes for a session, over real connections."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister import errors
from cloister.hub.platform.jobs import Workers
from cloister.hub.services.synthesising.order import Synthesis
from cloister.session import Count, Question
from tests.client.test_transport import Scripted, problem
from tests.hub.house import Clock, House, served
from tests.hub.synthesising.conftest import MAY


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[House, str, str]]:
    """A hub that is served, with a worker, a data set and who may make synthetic tables of it: the hub, its address, a token."""
    house = House(tmp_path / "hub", Clock())
    owner, ana = house.person("owner"), house.person("analyst", email="ana@example.org")
    house.grant(house.sample_data_set("people", owner=owner), ana, by=owner, actions=MAY)
    workers, ended = Workers(house.hub, 0), threading.Event()

    def work() -> None:
        while not ended.is_set():
            if not workers.run_one():
                time.sleep(0.02)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    with served(house.hub) as url:
        yield house, url, ana.token
    ended.set()
    thread.join(timeout=30)
    house.close()


def test_the_model_comes_here_and_rows_cost_nothing(place: tuple[House, str, str]) -> None:
    house, url, token = place
    told: list[str] = []
    with cl.connect(url, token=token, purpose="teaching") as session:
        model = session.synthesise("people", spend="0.5", progress=told.append)
        rows = model.sample(500)
        assert rows.column_names == ["age", "sex", "pay"]
        assert set(rows["sex"]) <= {"F", "M"}
        assert (str(model.cost), str(house.hub.ledger.spent("people"))) == ("ε = 0.5", "ε = 0.5")
        assert session.synthesise("people", columns=["sex"], spend=0.25, method="independent").sample(3).column_names == ["sex"]
        with pytest.raises(errors.BudgetExceeded):
            session.synthesise("people", spend=3)
        with pytest.raises(errors.UnknownTable):
            session.synthesise("nobody", columns=["age"], spend=1)
        with pytest.raises(errors.InvalidParameter):
            session.synthesise("people", spend=1, method="k_anonymous")
    known = {"waiting", "running", "preparing the tables", "reserving the cost", "asking the engine", "settling the charge"}
    assert set(told) <= known | {"fitting the model", "keeping the table"}


def test_synth_fit_has_a_hub_make_the_table_as_it_has_a_session(place: tuple[House, str, str]) -> None:
    """`cl.synth.fit` over a connection ended in an AttributeError; as a model's `fit_table`, it orders a job there."""
    house, url, token = place
    with cl.connect(url, token=token, purpose="teaching") as session:
        how = {"columns": ["sex"], "method": "independent"}
        model = cl.synth.fit(session, "people", spend="0.5", **how)  # type: ignore[call-overload]
        assert model.sample(3).column_names == ["sex"]
        assert str(house.hub.ledger.spent("people")) == "ε = 0.5"
        with pytest.raises(errors.UnknownTable):
            cl.synth.fit(session, "nobody", spend=1, columns=["age"])  # type: ignore[call-overload]
        bins = [cl.Binned("age", [17, 40, 90]), cl.synth.QuantileBins("pay", 9)]
        binned = cl.synth.fit(session, "people", spend="0.5", columns=bins)  # type: ignore[call-overload]
        assert binned.columns[0].number == 2
        with pytest.raises(errors.UnsupportedQuery, match=r"declared\(\) is not supported") as refused:
            cl.synth.fit_gaussians(session, "people", spend=1, columns=["sex"])  # type: ignore[arg-type]
        assert "session.synthesise(…)" in refused.value.instead


def test_texts_of_several_lines_and_one_column_travel_as_the_library_takes_them() -> None:
    hub = Scripted(problem(404, "unknown-table"))
    how: dict[str, Any] = {
        "columns": ["sex", "age"],
        "about": "sex",
        "rules": ["age < 9\n=> sex = 'A  B'"],
        "earlier": ["SELECT\n1"],
    }
    with pytest.raises(errors.CloisterError):
        cl.synth.fit(hub.session(), "people", spend=1, **how)  # type: ignore[call-overload]
    order = json.loads(hub.seen[0].content)
    assert [order[name] for name in ("workload", "rules", "earlier")] == ["sex", "age < 9 => sex = 'A  B'", "SELECT 1"]


def test_columns_in_bins_travel_as_lines_that_a_hub_reads_as_the_same() -> None:
    hub = Scripted(problem(404, "unknown-table"))
    bins = [cl.Binned("a = b", [0, Fraction(1, 3), 0.5]), cl.Binned("born", [date(2020, 1, 1), "2026-01-01"]), "sex"]
    bins += [cl.synth.QuantileBins("pay"), cl.synth.Calendar("day")]
    with pytest.raises(errors.CloisterError):
        hub.session().synthesise("people", spend=1, columns=bins)
    order = json.loads(hub.seen[0].content)
    read = Synthesis(**{**order, "columns": tuple(order["columns"])}).binned
    assert [str(getattr(each, "describe", each.__repr__)()) for each in read] == [
        *("['binned', 'a = b', ['0', '1/3', '0.5']]", "['binned', 'born', ['2020-01-01', '2026-01-01']]", "'sex'"),
        *("QuantileBins(name='pay', bins=50)", "Calendar(name='day')"),
    ]
    with pytest.raises(errors.InvalidParameter, match="it is not a name"):
        hub.session().synthesise("people", spend=1, columns=["sex", 5])  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["rules", "earlier"])
@pytest.mark.parametrize("given", ["age < 9", [Question(table="people", statistics=(Count(name="n"),))]])
def test_what_is_no_list_of_texts_is_refused_in_words(name: str, given: Any) -> None:
    hub = Scripted()
    with pytest.raises(errors.InvalidParameter, match="a list of texts"):
        hub.session().synthesise("people", columns=["age"], spend=1, **{name: given})
    assert hub.seen == []
