"""What can be wrong with a guest in the hub, who is told, and in which words: those whom it concerns alone, and never a row."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

from cloister.hub.platform.access import grant
from cloister.hub.records.trail import AuditLine
from cloister.hub.services.guests.settings import guest_of
from tests.hub.guests.test_running import A1, ORDER, Play, let, play_in, register
from tests.hub.house import Clock, House


@dataclass(frozen=True)
class Runs:
    """What a guest does near rows that its author did not see on made-up ones."""

    code: str
    seconds: float = 0.02


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Any:
    house = House(tmp_path_factory.mktemp("bad") / "hub", Clock())
    yield play_in(house)
    house.close()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"code": "def f(rows:\n    return [1]"}, "line 1: .*never closed"),
        ({"code": "x = 1"}, "no function of that name: it has none"),
        ({"code": "def g(rows): return [1]", "entry": "f"}, "no function of that name: it has 'g'"),
        ({"low": [5], "high": [1]}, "from a number to a larger one"),
        ({"low": [0, 0], "high": [1]}, "the same length"),
        ({"seconds": "fast"}, "seconds is a number"),
        ({"low": [0] * 5000, "high": [1] * 5000}, "1 to 4096 numbers|at most|too many"),
        ({"packages": ["numpy"], "environment": "nowhere"}, "no environment of that name"),
        ({"packages": ["not a module"]}, "names of modules"),
        ({"way": ["blocks"]}, "way is blocks, ask or declared"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_author_is_told_as_it_is_registered(play: Play, changed: dict[str, Any], says: str) -> None:
    answer = register(play.provider, "wrong", {**A1, **changed})
    assert answer.status_code == 422, answer.text
    assert re.search(says, json.dumps(answer.json(), ensure_ascii=False)), answer.text


@pytest.mark.parametrize(("low", "high"), [("10", "99"), (10, 99)])
def test_a_bound_that_stands_alone_is_one_number(low: object, high: object) -> None:
    """And not each of its digits: 1 and 0, below 9 and 9."""
    declared = {"code": "def f(rows): return [50]", "inputs": ["age"], "low": low, "high": high, "blocks": 50}
    assert guest_of("one", declared).output.bounds == ((10.0, 99.0),)


NEAR_ROWS = {
    "loops": Runs("def f(rows):\n    while True: pass"),
    "many": Runs("def f(rows):\n    return [rows['age'][0]] * 10**6"),
    "shape": Runs("def f(rows):\n    return rows"),
    "fails": Runs("def f(rows):\n    raise ValueError(rows['age'])"),
    "unknown": Runs("def f(rows):\n    import numpy\n    return [1]"),
    "prints": Runs("def f(rows):\n    print(rows)\n    return [1]"),
}


@pytest.mark.parametrize("what", NEAR_ROWS)
def test_near_rows_nobody_is_told_and_no_row_is_anywhere(play: Play, what: str) -> None:
    """The run is done, for its charge: whoever asked gets numbers, the author that it ran, and neither why."""
    guest = NEAR_ROWS[what]
    made = register(play.provider, what, {**A1, "code": guest.code, "seconds": guest.seconds, "blocks": 5})
    assert made.status_code == 201, made.text
    let(play.provider, what, play.owner, actions=["algorithm.see"])
    let(play.provider, what, play.u3, only_with=["people"])
    rules = {"actions": ["algorithm.run", "release.see"], "algorithms": [what]}
    grant(play.house.hub, play.owner.caller, data_set="people", role=what, members={"people": [play.u3.id]}, rules=rules)
    told = play.run(algorithm=what, spend="0.01")
    assert told["state"] == "done", told
    number = told["result"]["guest"]
    seen = [json.dumps(told), play.get(f"/releases/{number}").text]
    seen += [play.u3.client.get(f"/algorithm-results/{number}").text.split("<main")[1]]
    seen += [who.client.get(f"/algorithm-runs/{number}").text.split("<main")[1] for who in (play.provider, play.owner)]
    with play.house.hub.database.reading() as db:
        seen += [json.dumps(line.details) for line in db.query(AuditLine).all()]
    for each in seen:
        assert not [word for word in ("ValueError", "Traceback", "ran out of", "MiB", "not a list", "numpy") if word in each]


def test_who_asks_is_told_of_another_version_and_of_one_that_was_taken_away(play: Play) -> None:
    body = {"name": "a1-2", "title": "A1", "service": "guests", "settings": {**A1, "blocks": 12}, "version_of": "a1"}
    assert play.provider.client.post("/api/v1/algorithms", json=body, headers=play.provider.bearer).status_code == 201
    let(play.provider, "a1-2", play.u3, only_with=["people"])
    other = play.post("/algorithm-runs", {**ORDER, "algorithm": "a1-2", "spend": "0.01"})
    assert other.status_code == 403  # the owner's grant names the first one
    play.provider.client.delete("/api/v1/algorithms/a1-2", headers=play.provider.bearer)
    gone = play.post("/algorithm-runs", {**ORDER, "algorithm": "a1-2", "spend": "0.01"})
    assert gone.status_code == 404
    assert "no such algorithm" in gone.text
