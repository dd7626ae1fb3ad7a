"""Views by person and purpose, joined over collections: what they show, and that a filter probes nothing else."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

import cloister as cl
from cloister.vault import Equal, Random, Range, View, Views
from tests.vault.conftest import Place

DOCTORS = ["ana", "bo"]
VIEW: dict[str, Any] = {
    "collections": {"visits": ["day", "ward"], "patients": ["town"]},
    "on": {"visits": "patient", "patients": "_id"},
    "where": {"doctor": "$person"},
    "people": DOCTORS,
    "purposes": ["care"],
}


@pytest.fixture
def store(place: Place) -> cl.vault.Vault:
    patients = place.store.collection("patients", {"town": Equal(), "name": Random()})
    patients.insert_many({"_id": n, "town": ["Basel", "Bern"][n % 2], "name": f"canary-{n}"} for n in range(6))
    fields = {"patient": Equal(), "doctor": Equal(), "day": Range(0, 31), "ward": Equal(), "note": Random()}
    visits = place.store.collection("visits", fields)
    visits.insert_many(
        {"_id": n, "patient": n % 7, "doctor": DOCTORS[n % 2], "day": n % 30, "ward": "ab"[n % 2], "note": f"canary {n}"}
        for n in range(20)
    )
    return place.store


def joined(person: str, low: int = 0) -> list[dict[str, Any]]:
    """A plain join of the same documents."""
    return [
        {"visits": {"day": n % 30, "ward": "ab"[n % 2]}, "patients": {"town": ["Basel", "Bern"][n % 7 % 2]}}
        for n in range(20)
        if DOCTORS[n % 2] == person and n % 7 < 6 and n % 30 >= low
    ]


def key(row: dict[str, Any]) -> str:
    return repr(row)


def test_a_view_is_the_join_of_what_each_person_may_see(store: cl.vault.Vault) -> None:
    views = Views(store, {"own": View(**VIEW)})
    for person in DOCTORS:
        assert sorted(views.read("own", person=person, purpose="care"), key=key) == sorted(joined(person), key=key)
        found = views.read("own", person=person, purpose="care", filter={"day": {"$gte": 5}})
        assert sorted(found, key=key) == sorted(joined(person, 5), key=key)
    assert "canary" not in repr(views.read("own", person="ana", purpose="care"))


@pytest.mark.parametrize(
    ("name", "person", "purpose", "why"),
    [
        ("own", "ana", "marketing", "its purposes are: care"),
        ("own", "ana", "", "its purposes are: care"),
        ("own", "eve", "care", "not for this person"),
        ("own", "$person", "care", "not for this person"),
        ("other", "ana", "care", "no such view"),
    ],
)
def test_who_may_not_is_denied(store: cl.vault.Vault, name: str, person: str, purpose: str, why: str) -> None:
    with pytest.raises(cl.AccessDenied, match=why):
        Views(store, {"own": View(**VIEW)}).read(name, person=person, purpose=purpose)


@pytest.mark.parametrize("probe", [{"doctor": "bo"}, {"note": "canary 1"}, {"patient": 1}, {"$or": [{"patient": 1}, {"day": 1}]}])
def test_a_filter_compares_no_field_that_is_not_shown(store: cl.vault.Vault, probe: dict[str, Any]) -> None:
    """The broken twin reads the filter against all fields: whether something is found tells the hidden value."""
    views = Views(store, {"own": View(**VIEW)})
    with pytest.raises(cl.UnknownColumn) as caught:
        views.read("own", person="ana", purpose="care", filter=probe)
    assert "canary" not in str(caught.value)
    if probe == {"patient": 1}:
        own, others = (store.collection("visits").find({"doctor": "ana", "patient": n}) for n in (1, 7))
        assert bool(own) != bool(others), "which would tell whose visit it is"


def test_what_is_no_field_shown_is_not_asked_by_id_either(store: cl.vault.Vault) -> None:
    views = Views(store, {"own": View(**VIEW)})
    for probe in ({"_id": 2}, {"$or": [{"_id": 2}, {"day": 1}]}):
        with pytest.raises(cl.AccessDenied, match="_id"):
            views.read("own", person="ana", purpose="care", filter=probe)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"on": {}}, "joined on a field of each"),
        ({"on": {"visits": "note", "patients": "_id"}}, "found by equality"),
        ({"on": {"visits": "nothing", "patients": "_id"}}, "not declared"),
        ({"collections": {"visits": ["colour"]}, "on": {}}, "not declared"),
        ({"people": "ana"}, "lists of names"),
        ({"purposes": []}, "lists of names"),
        ({"collections": {}}, "lists of names"),
    ],
)
def test_a_view_that_could_not_be_read_is_refused(store: cl.vault.Vault, change: dict[str, Any], why: str) -> None:
    with pytest.raises(cl.InvalidDeclaration, match=why):
        Views(store, {"own": View(**(VIEW | change))})
    with pytest.raises(cl.UnknownColumn):
        Views(store, {"own": View(**(VIEW | {"where": {"colour": "red"}}))})


def test_a_token_is_a_persons_and_its_hash_is_what_is_kept(store: cl.vault.Vault) -> None:
    views = Views(store, {"own": View(**VIEW)}, {"ana": hashlib.sha256(b"secret").hexdigest()})
    assert (views.person("secret"), views.person("other"), views.person("")) == ("ana", "", "")
