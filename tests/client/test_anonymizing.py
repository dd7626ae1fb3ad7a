"""Tables that a hub anonymises for a session: over real connections, and against a script."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

import cloister as cl
from cloister import errors
from cloister.anonymize import (
    AlphaKAnonymity,
    Anonymizer,
    BetaLikeness,
    DeltaDisclosure,
    Hierarchy,
    KAnonymity,
    KMap,
    LDiversity,
    TCloseness,
)
from cloister.client.anonymizing import order_of
from cloister.hub.platform.jobs import Workers
from cloister.hub.services.anonymizing.order import Anonymizing
from cloister.privacy.rational import exact
from tests.client.test_transport import Scripted, answered
from tests.hub.house import Clock, House, Visitor, served

WANTED: dict[str, Any] = {"quasi": ["age", "sex"], "sensitive": ["pay"], "models": [KAnonymity(5), LDiversity(1)]}
NAMED: dict[str, Any] = {"name": "people_open", "title": "People, for teaching", "understood": True}


@pytest.fixture
def served_house(tmp_path: Path) -> Iterator[tuple[House, Visitor, str]]:
    house = House(tmp_path / "hub", Clock())
    owner = house.person("owner", email="olga@example.org")
    house.sample_data_set("people", owner=owner)
    workers, ended = Workers(house.hub, 0), threading.Event()

    def work() -> None:
        while not ended.is_set():
            if not workers.run_one():
                time.sleep(0.02)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    with served(house.hub) as url:
        yield house, owner, url
    ended.set()
    thread.join(timeout=30)
    house.close()


def test_from_the_trial_to_the_frame(served_house: tuple[House, Visitor, str]) -> None:
    house, owner, url = served_house
    told: list[str] = []
    with cl.connect(url, token=owner.token, purpose="a course") as session:
        found = session.try_anonymizing(Anonymizer(**WANTED), "people", progress=told.append)
        assert found["refused"] is None
        point = next(each for each in found["points"] if each["k"] == 5 and "loss" in each)
        assert not house.hub.ledger.unbounded("people")
        with pytest.raises(errors.InvalidParameter, match="The release is invalid"):
            session.anonymize(Anonymizer(**WANTED), "people", **{**NAMED, "understood": False})
        table = session.anonymize(Anonymizer(**WANTED), "people", levels=point["levels"], **NAMED)
        assert house.hub.ledger.unbounded("people")
        assert table.purpose == "a course"
        assert table.report["levels"] == point["levels"]
        assert table.certificate["holds"]
        rows = table.to_pandas()
        assert len(rows) == table.to_polars().height == table.to_arrow().num_rows == 300
        assert rows.groupby(["age", "sex"]).size().min() >= 5
        assert [each.id for each in session.anonymized()] == [table.id]
    assert set(told) <= {"waiting", "running", "reading the rows", "comparing risk and information loss", "comparing levels"}


def test_what_an_anonymizer_wants_travels_whole() -> None:
    models = [KAnonymity(3), LDiversity(2), TCloseness("0.2"), BetaLikeness(1)]
    pets = Hierarchy.of({"cat": ["mammal", "*"], "owl": ["bird", "*"]})
    wanted = Anonymizer(
        quasi=["pet", "age"], sensitive=["ill"], models=models, hierarchies={"pet": pets}, suppression=0.05, missing="suppress"
    )
    order = order_of(wanted, "people", kept=["town"], purpose="p")
    assert order == {
        "table": "people", "parts": {"pet": "quasi", "age": "quasi", "ill": "sensitive", "town": "kept"},
        "k": 3, "l": 2, "t": "1/5", "beta": "1", "search": "optimal", "metric": "loss", "suppression": "1/20",
        "missing": "suppress", "hierarchies": {"pet": "cat;mammal;*\nowl;bird;*\n"}, "purpose": "p",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("models", "told"),
    [
        ([LDiversity(2.5, kind="entropy")], {"k": 1, "l": 2.5, "diversity": "entropy"}),
        ([LDiversity(3, kind="recursive", c="0.5")], {"k": 1, "l": 3, "diversity": "recursive", "c": "1/2"}),
        ([TCloseness("0.2", distance="ordered")], {"k": 1, "t": "1/5", "distance": "ordered"}),
        ([TCloseness("0.2", distance="total variation")], {"k": 1, "t": "1/5", "distance": "equal"}),
        ([BetaLikeness(2, enhanced=True)], {"k": 1, "beta": "2", "likeness": "enhanced"}),
        ([DeltaDisclosure("1.5")], {"k": 1, "delta": "3/2"}),
        ([AlphaKAnonymity("1/3", 4)], {"k": 4, "alpha": "1/3"}),
    ],
)
def test_every_kind_of_model_travels_and_is_the_same_at_the_hub(models: list[Any], told: dict[str, Any]) -> None:
    order = order_of(Anonymizer(**{**WANTED, "models": models}), "people", kept=[], purpose="")
    models_told = {name: order[name] for name in order if name in Anonymizing.__dataclass_fields__ and name in _MODELS}
    assert models_told == told
    there = TypeAdapter(Anonymizing).validate_json(json.dumps(order)).models()
    (model,) = models
    assert there[0] == KAnonymity(told["k"])
    (made,) = [each for each in there if type(each) is type(model)]
    numbers = ("l", "kind", "c", "t", "beta", "enhanced", "delta", "alpha", "k")
    for name in numbers:
        if getattr(model, name, None) is not None:
            ours, theirs = getattr(model, name), getattr(made, name)
            assert ours == theirs or exact(ours) == exact(theirs), name


_MODELS = ("k", "l", "diversity", "c", "t", "distance", "beta", "likeness", "delta", "alpha")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"weights": {"age": 2.0}}, "weights="),
        ({"suppressed": "star"}, "suppressed='star'"),
        ({"shuffle": False}, "shuffle="),
        ({"seconds": 5}, "seconds="),
        ({"keep_index": True}, "keep_index="),
        ({"search": "microaggregation"}, "microaggregation"),
        ({"models": [DeltaDisclosure(1, column="pay")]}, "disclosure"),
        ({"models": [LDiversity(2, kind="entropy", column="pay")]}, "diversity"),
        ({"models": [KMap(3)]}, "3-map"),
        ({"models": [KAnonymity(3), AlphaKAnonymity("0.5", 4)]}, "another k"),
        ({"models": [KAnonymity(2), KAnonymity(3)]}, "models="),
        ({"hierarchies": {"age": Hierarchy.intervals(10)}}, "the hierarchy of 'age'"),
    ],
)
def test_what_a_hub_does_not_take_is_refused_and_not_left_out(changed: dict[str, Any], words: str) -> None:
    hub = Scripted()
    with pytest.raises(errors.InvalidParameter, match="a hub does not take it") as caught:
        hub.session().anonymize(Anonymizer(**{**WANTED, **changed}), "people", **NAMED)
    assert words in caught.value.what
    assert hub.seen == []


@pytest.mark.parametrize(("changed", "kept"), [({}, ["age"]), ({"sensitive": ["age"]}, []), ({"quasi": "age"}, []), ({}, "pay")])
def test_a_column_has_one_role_and_roles_are_lists(changed: dict[str, Any], kept: Any) -> None:
    """The last role that a column had won: one that others may know, and that was also kept, left as it was, row by row."""
    hub = Scripted()
    with pytest.raises(errors.InvalidParameter, match=r"two roles|a list is expected"):
        hub.session().anonymize(Anonymizer(**{**WANTED, **changed}), "people", kept=kept, **NAMED)
    assert hub.seen == []


def test_a_cancelled_release_is_said() -> None:
    def job(state: str, **more: object) -> Any:
        return lambda request: answered(request).__class__(200, json={"id": "j", "state": state, "stage": "", **more})

    hub = Scripted(job("waiting", job="j1"), job("cancelled"))
    with pytest.raises(errors.InvalidParameter, match="cancelled at the hub"):
        hub.session().anonymize(Anonymizer(**WANTED), "people", **NAMED)
    assert json.loads(hub.seen[0].content)["name"] == "people_open"
    assert hub.seen[0].headers["idempotency-key"]
