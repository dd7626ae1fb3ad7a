"""A hub without an extra says so where somebody checks it, does not offer what needs it, and charges nothing for it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from click.testing import CliRunner

from cloister.cli.main import cli
from cloister.errors import MissingDependency
from cloister.hub.checking import unoffered
from cloister.hub.services.guests.reviewing import order_review
from cloister.installed import EXTRAS, install, lacking
from tests.hub.guests.test_running import ORDER, play_in
from tests.hub.house import Clock, House

OFFERED = ("anonymize", "files", "guests", "learn", "together")


def hide(monkeypatch: pytest.MonkeyPatch, extras: Iterable[str]) -> None:
    """As if these were not installed."""
    for extra in extras:
        for name in EXTRAS[extra]:
            monkeypatch.setitem(sys.modules, name, None)


def test_each_extra_that_is_missing_is_named_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "hub"
    data.mkdir(mode=0o700)
    assert unoffered() == []
    hide(monkeypatch, OFFERED)
    assert {each.name: each.instead for each in unoffered()} == {extra: install(extra) for extra in OFFERED}
    said = CliRunner().invoke(cli, ["hub", "check", "--data", str(data)])
    assert said.exit_code == 0, "a hub may do without"
    assert "nothing is wrong or weak" not in said.output
    assert [extra for extra in OFFERED if install(extra) not in said.output] == []
    told = json.loads(CliRunner().invoke(cli, ["hub", "check", "--data", str(data), "--json"]).output)
    assert {each["setting"] for each in told["weaknesses"]} == {*OFFERED}


def test_what_is_missing_is_not_in_the_menu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, OFFERED)
    house = House(tmp_path / "hub", Clock())
    owner = house.person("owner", "analyst", "administrator")
    house.sample_data_set(owner=owner)
    links = set(re.findall(r'<a href="([^"]+)"', owner.client.get("/").text))
    needing = {link.path for service in house.hub.services for link in service.links if lacking(link.extra)}
    assert needing == {"/learn", "/fit-projection", "/project-data", "/anonymise", "/run-algorithm", "/joint-surveys"}
    assert not needing & links
    assert {"/ask", "/synthesise", "/models"} <= links
    wrong = [path for path in links if path.startswith("/") and owner.client.get(path).status_code >= 400]
    assert not wrong, "whatever it offers is there"
    assert install("guests") in owner.client.get("/settings").text.replace("&#34;", '"')
    house.close()


def test_an_upload_offers_the_files_that_can_be_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = house.person("owner")
    house.sample_data_set(owner=owner)
    pages = ("/register", "/datasets/people/version")
    assert all(".xlsx," in owner.client.get(page).text for page in pages)
    assert "Excel" in owner.client.get("/register").text
    hide(monkeypatch, ["files"])
    for page in pages:
        shown = owner.client.get(page).text
        assert 'accept=".csv,.txt,.tsv,.parquet,.pq,.gz,.zip,text/csv"' in shown
        assert "Excel" not in shown


def test_an_algorithm_is_refused_before_its_charge(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    play = play_in(house)
    hide(monkeypatch, ["guests"])
    answer = play.post("/algorithm-runs", ORDER)
    assert (answer.status_code, answer.json()["code"]) == (501, "not-installed"), answer.text
    assert install("guests") in answer.json()["instead"]
    assert play.spent == "ε = 0"
    with pytest.raises(MissingDependency, match="review was not begun"):
        order_review(house.hub, play.owner.caller, "a1", "people")


def test_a_joint_survey_is_refused_before_anything_is_made(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    analyst = house.person("analyst")
    hide(monkeypatch, ["together"])
    answer = house.client().post("/api/v1/joint-surveys", json={"title": "Ways"}, headers=analyst.bearer)
    assert (answer.status_code, answer.json()["code"]) == (501, "not-installed"), answer.text
    assert install("together") in answer.json()["instead"]
    assert analyst.client.get("/joint-surveys").status_code == 200


LEARN = {"method": "GaussianNB", "features": ["age", "pay"], "target": "sex"}
PROJECT = {"columns": "age, pay", "method": "DCA", "utility": "sex", "dimensions": "1"}
JOURNEY = {"moment": "age", "x": "age", "y": "pay"}


@pytest.mark.parametrize(
    ("path", "order"),
    [
        ("/models", LEARN),
        ("/models/expected", LEARN),
        ("/projections", PROJECT),
        ("/projections/price", PROJECT),
        ("/journeys", JOURNEY),
    ],
)
def test_an_order_is_refused_before_its_charge(
    house: House, monkeypatch: pytest.MonkeyPatch, path: str, order: dict[str, object]
) -> None:
    owner = house.person("owner", "analyst")
    house.sample_data_set(owner=owner)
    hide(monkeypatch, ["learn"])
    body = {"table": "people", "spend": "0.1", "purpose": "care", **order}
    answer = house.client().post(f"/api/v1{path}", json=body, headers=owner.bearer)
    assert (answer.status_code, answer.json()["code"]) == (501, "not-installed"), answer.text
    assert install("learn") in answer.json()["instead"]
    assert str(house.hub.ledger.spent("people")) == "ε = 0"
