"""Other people: what is not theirs is missing, in the same words as what does not exist; and nobody sets what nobody offers."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cloister.hub.records.catalogue import DataSet, DataSetVersion, Population
from cloister.hub.web.forms import TOKEN_FIELD
from tests.hub.catalogue.world import CANARY, COLUMNS, PEOPLE, Sender, World, text_of


def body(upload: str, **more: Any) -> dict[str, Any]:
    columns = {name: {**declared, "reason": "published"} for name, declared in COLUMNS.items()}
    given = {"upload": upload, "name": "people", "title": "People", "columns": columns, "population": "town", "size": 400}
    return given | {"budget": {"epsilon": "2"}} | more


def test_a_data_set_of_somebody_else_is_missing(world: World, ada: Sender) -> None:
    world.register()
    for roles in (("owner",), ("analyst",), ("provider",), ("owner", "analyst")):
        eve = world.somebody(f"{'-'.join(roles)}@example.org", *roles)
        token = {TOKEN_FIELD: eve.token("/account")}
        assert "people" not in eve.api("GET", "/datasets").text
        for path in ("", "/manage", "/version"):
            hidden, none = eve.get(f"/datasets/people{path}"), eve.get(f"/datasets/nobody{path}")
            assert hidden.status_code == none.status_code in (403, 404)
            assert text_of(hidden.text).replace("people", "nobody") == text_of(none.text)
        for method, path in (
            ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("GET", "/versions"), ("POST", "/versions"), ("POST", "/windows"),
            ("POST", "/close"), ("POST", "/open"), ("DELETE", "/versions/1"),
        ):  # fmt: skip
            content = {"json": {"upload": "x"} if method == "POST" and path in ("/versions", "/windows") else {}}
            hidden = eve.api(method, f"/datasets/people{path}", **content)
            none = eve.api(method, f"/datasets/nobody{path}", **content)
            assert (hidden.status_code, hidden.text) == (none.status_code, none.text)
            assert hidden.status_code in (403, 404)
        for path in ("describe", "list", "close", "open", "check", "versions/1/destroy", "delete"):
            assert eve.client.post(f"/datasets/people/{path}", data=token).status_code in (403, 404)
        for path in ("/uploads/versions/people", "/uploads/windows/people"):
            sent = eve.client.post(path, data=token, files={"file": ("people.csv", PEOPLE)})
            assert sent.status_code in (403, 404)
        assert eve.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM people", "spend": "1"}).status_code >= 400
    assert len(world.rows(DataSetVersion)) == 1
    assert world.rows(DataSet)[0].state == "open"
    assert ada.get("/datasets/people").status_code == 200


def test_those_who_watch_over_data_see_the_catalogue_and_manage_nothing(world: World, ada: Sender) -> None:
    world.register()
    steward = world.somebody("steward@example.org", "steward", "owner")
    assert steward.get("/datasets/people").status_code == 200
    assert steward.get("/datasets/people/manage").status_code == 404
    assert steward.api("DELETE", "/datasets/people").status_code == 404


def test_what_is_listed_is_found_and_nothing_more(world: World, ada: Sender) -> None:
    world.register(listed=True)
    bob = world.somebody("bob@example.org", "analyst")
    page = bob.get("/datasets/people").text
    assert "17 to 90" in page
    assert "You may not query it yet" in page
    assert "spent" not in text_of(page).split("Budget of people")[1].split("Columns")[0].lower().replace("what is spent", "")
    told = bob.api("GET", "/datasets/people").json()
    assert (told["mine"], told["may_ask"], told["spent"], told["budget"]) == (False, False, None, {"epsilon": "2"})
    assert bob.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM people", "spend": "1"}).status_code == 403
    ada.post("/datasets/people/list", "/datasets/people/manage", listed="no")
    assert bob.get("/datasets/people").status_code == 404
    ada.post("/datasets/people/list", "/datasets/people/manage", listed="yes")
    assert bob.get("/datasets/people").status_code == 200


def test_uploads_are_their_senders(world: World, ada: Sender) -> None:
    number = ada.upload().json()["id"]
    eve = world.owner("eve@example.org")
    for path in ("", "/review"):
        assert eve.get(f"/register/{number}{path}").status_code == 404
        hidden, none = eve.get(f"/register/{number}{path}").text, eve.get(f"/register/{'x' * 22}{path}").text
        assert hidden.replace(number, "x" * 22) == none
    for path in ("", "/rows", "/open", "/discard"):
        assert eve.post(f"/register/{number}{path}", "/register").status_code == 404
    assert eve.api("DELETE", f"/uploads/{number}").status_code == 404
    assert eve.api("POST", "/datasets", json=body(number)).status_code == 404
    world.register("eve@example.org", "hers")
    assert eve.api("POST", "/datasets/hers/versions", json={"upload": number}).status_code == 404
    assert ada.api("POST", "/datasets", json=body(number)).status_code == 201


def test_a_population_is_its_owners(world: World, ada: Sender) -> None:
    world.register(population="patients")
    eve = world.owner("eve@example.org")
    answer = eve.api("POST", "/datasets", json=body(eve.upload().json()["id"], name="mine", population="patients", budget=None))
    assert (answer.status_code, answer.json()["detail"]) == (422, "it is another owner's")
    assert eve.get("/populations/patients").status_code == 404
    assert eve.get("/populations/patients").text == eve.get("/populations/nobody").text.replace("nobody", "patients")
    assert "patients" not in eve.get("/populations").text
    assert eve.api("GET", "/populations/patients").status_code == 404
    assert "patients" in ada.get("/populations").text
    assert ada.get("/populations/patients").status_code == 200
    assert len(world.rows(DataSet)) == 1


def test_tables_about_the_same_persons_share_one_budget(world: World, ada: Sender) -> None:
    world.register(population="patients")
    ada.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM people", "spend": "0.5"})
    number = ada.upload().json()["id"]
    other = ada.api("POST", "/datasets", json=body(number, name="other", population="patients", budget={"epsilon": "5"}))
    assert other.status_code == 422
    assert "has one already" in other.json()["detail"]
    other = ada.api("POST", "/datasets", json=body(number, name="other", population="patients", budget=None))
    assert other.json()["spent"] == {"epsilon": "0.5"}
    ada.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM other", "spend": "1"})
    assert ada.api("GET", "/populations/patients").json() | {"about": ""} == {
        "name": "patients", "unit": "person", "about": "", "people": None, "data_sets": ["other", "people"],
        "budget": {"epsilon": "2"}, "spent": {"epsilon": "1.5"}, "unbounded": False,
    }  # fmt: skip
    refused = ada.api("POST", "/questions", json={"sql": "SELECT AVG(age) AS a FROM other", "spend": "1"})
    assert (refused.status_code, refused.json()["code"]) == (409, "budget-exceeded")


@pytest.mark.parametrize(
    "more",
    [
        {"owner": "x"}, {"state": "open"}, {"version": 7}, {"id": "x"}, {"institution": "x"}, {"metadata_": {}}, {"window": 3},
        {"declaration": {}}, {"spent": {}},
        {"columns": {"age": {"kind": "integer", "low": 0, "high": 9, "reason": "x", "code": 1}}},
        {"columns": {}}, {"columns": {"age": {"kind": "integer", "low": 0, "high": 9}}},
        {"columns": {"nobody": {"kind": "text"}}},
        {"columns": {"age": {"kind": "integer", "reason": "x"}}}, {"budget": {"epsilon": "1", "rho": "1"}}, {"budget": {}},
        {"budget": {"epsilon": "-1"}}, {"budget": {"epsilon": 1}}, {"policy": {"purpose": ["x"]}}, {"column_policies": {"x": {}}},
        {"unit": "sex"}, {"unit": "nobody", "max_rows": 3}, {"max_rows": 3}, {"size": 0}, {"title": "a\x00b"}, {"name": "a b"},
        {"members": "village"}, {"every": "year"}, {"every": "year", "window": "2026-03"},
        {"population": ""}, {"population": "a/b"},
        {"upload": "../../etc/passwd"}, {"title": ""}, {"about": "\ud800"}, {"policy": {"retention": "9999-99-99"}},
    ],
)  # fmt: skip
def test_nothing_is_set_that_is_not_offered(world: World, ada: Sender, more: dict[str, Any]) -> None:
    import json

    number = ada.upload().json()["id"]
    content = json.dumps(body(number) | more)
    answer = ada.api("POST", "/datasets", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert world.left() == (1, 0, 0, 0, [f"uploads/{number}"])
    assert world.hub.ledger.populations() == []


def test_changes_take_what_is_offered(world: World, ada: Sender) -> None:
    world.register()
    for wrong in ({"owner": "x"}, {"declaration": {}}, {"population": "x"}, {"state": "deleted"}, {"title": 3}, {"budget": {}}):
        assert ada.api("PATCH", "/datasets/people", json=wrong).status_code == 422
    told = ada.api("PATCH", "/datasets/people", json={"title": "Townspeople", "policy": {"labels": ["clinical"]}, "listed": True})
    assert told.json()["title"] == "Townspeople"
    assert told.json()["policy"] == {"labels": ["clinical"]}
    form = {"title": "T", "about": "a", "owner": "x", "population": "y", "state": "deleted", "version": "9", "purposes": "care"}
    assert ada.post("/datasets/people/describe", "/datasets/people/manage", **form).status_code == 303
    row = world.rows(DataSet)[0]
    assert (row.title, row.population, row.state, row.version) == ("T", "people", "open", 1)
    assert row.metadata_["policy"] == {"purposes": ["care"]}
    refused = ada.post("/datasets/people/describe", "/datasets/people/manage", title="", about="")
    assert refused.status_code == 422
    assert "The title is invalid" in refused.text


def test_forms_need_their_token(world: World, ada: Sender) -> None:
    world.register()
    number = ada.arrival()
    for path in ("describe", "list", "close", "open", "check", "versions/1/destroy", "delete"):
        assert ada.client.post(f"/datasets/people/{path}", data={"confirmed": "people"}).status_code == 403
    for path in ("", "/rows", "/open", "/discard"):
        assert ada.client.post(f"/register/{number}{path}", data={"title": "x"}).status_code == 403
    assert ada.client.post("/register/connection", data={"address": "x"}).status_code == 403
    assert ada.client.post("/api/v1/datasets", json=body(number)).status_code == 403
    assert ada.client.delete("/api/v1/datasets/people").status_code == 403
    assert world.rows(DataSet)[0].state == "open"


def test_who_is_not_logged_in_sees_nothing(world: World, ada: Sender) -> None:
    world.register(listed=True)
    nobody = world.browser()
    for path in ("/datasets", "/datasets/people", "/datasets/people/manage", "/register", "/populations"):
        assert nobody.get(path).status_code in (303, 401)
    assert nobody.get("/api/v1/datasets/people").status_code == 401
    assert nobody.client.post("/api/v1/uploads", content=PEOPLE, headers={"Content-Type": "text/csv"}).status_code == 401


def test_search_and_pages(world: World, ada: Sender) -> None:
    for name in ("alpha", "beta", "gamma"):
        world.register(name=name, listed=True, metadata={"policy": {"labels": [f"label-{name}"]}})
    bob = world.somebody("bob@example.org", "analyst")
    assert [row["name"] for row in bob.api("GET", "/datasets?limit=2").json()["items"]] == ["alpha", "beta"]
    assert bob.api("GET", "/datasets?limit=2").json()["next"] == "beta"
    assert [row["name"] for row in bob.api("GET", "/datasets?after=beta").json()["items"]] == ["gamma"]
    for search, hits in (("LABEL-beta", ["beta"]), ("amm", ["gamma"]), ("pay", ["alpha", "beta", "gamma"]), ("%", [])):
        assert [row["name"] for row in bob.api("GET", "/datasets", params={"search": search}).json()["items"]] == hits
    assert bob.api("GET", "/datasets?mine=true").json()["items"] == []
    assert "gamma" in bob.get("/datasets?search=gamma").text
    assert "Nothing found" in bob.get("/datasets?search=nothing").text


def test_the_first_page_of_each(world: World, ada: Sender) -> None:
    world.register()
    assert "/datasets/people/manage" in ada.get("/").text
    bob = world.somebody("bob@example.org", "analyst")
    assert "Find one in the catalogue" in bob.get("/").text
    world.register(name="towns", public=True, source=[b"town\nDelft\n"])
    assert "/datasets/towns" in bob.get("/").text
    assert CANARY not in ada.get("/").text + bob.get("/").text


def test_institutions_stand_above_owners(world: World, ada: Sender) -> None:
    from cloister.hub.generation import bump
    from cloister.hub.records.access import InstitutionRule

    with world.hub.database.begin() as db:
        rule = {"epsilon_of_population": "1"}
        made = world.find("ada@example.org").id
        db.add(InstitutionRule(id="rule", title="Ceiling", rule=rule, made_by=made, created=world.hub.now()))
        bump(db)
    number = ada.upload().json()["id"]
    answer = ada.api("POST", "/datasets", json=body(number))
    assert (answer.status_code, answer.json()["rule"]) == (403, "mandatory:rule")
    assert world.left() == (1, 0, 0, 0, [f"uploads/{number}"])
    assert world.hub.ledger.populations() == []
    assert ada.api("POST", "/datasets", json=body(number, budget={"epsilon": "1"})).status_code == 201
    assert len(world.rows(Population)) == 1


def test_who_gave_the_data_is_a_provider(world: World, ada: Sender) -> None:
    world.somebody("pat@example.org", "provider")
    number = ada.upload().json()["id"]
    refused = ada.api("POST", "/datasets", json=body(number, provider="pat"))
    assert (refused.status_code, refused.json()["title"]) == (422, "The e-mail address is invalid")
    assert ada.api("POST", "/datasets", json=body(number, provider=" Pat@Example.org")).status_code == 201
    assert world.rows(DataSet)[0].provider == "pat@example.org"
    assert 'value="pat@example.org"' in ada.get("/datasets/people/manage").text
    with world.hub.database.begin() as db:
        row = db.get_one(DataSet, world.rows(DataSet)[0].id)
        row.metadata_ = {**row.metadata_, "contribution": {"prohibitions": ["learn.run"]}}
    assert ada.api("PATCH", "/datasets/people", json={"provider": ""}).status_code == 409
    assert ada.api("PATCH", "/datasets/people", json={"policy": {"labels": ["x"]}}).status_code == 200
    assert world.rows(DataSet)[0].metadata_["contribution"] == {"prohibitions": ["learn.run"]}


def test_naming_a_provider_tells_nobody_who_is_here(world: World, ada: Sender) -> None:
    pat = world.somebody("pat@example.org", "provider")
    bob = world.somebody("bob@example.org", "analyst")
    assert ada.api("POST", "/datasets", json=body(ada.upload().json()["id"])).status_code == 201
    told = set()
    for address in ("pat@example.org", "bob@example.org", "nobody@example.org"):
        answer = ada.api("PATCH", "/datasets/people", json={"provider": address})
        page = ada.get("/datasets/people/manage").text
        assert f'value="{address}"' in page
        assert ("/contributions/people" in pat.get("/contributions").text) == (address == "pat@example.org")
        assert bob.get("/contributions/people").status_code in (403, 404), "no data provider, whatever the owner says"
        told.add((answer.status_code, re.sub(r'"changed":"[^"]*"', "", answer.text.replace(address, "ADDRESS"))))
    assert len(told) == 1, told
    assert ada.api("PATCH", "/datasets/people", json={"provider": "later@example.org"}).status_code == 200
    later = world.somebody("later@example.org", "provider")
    assert "/contributions/people" in later.get("/contributions").text
    assert "/contributions/people" not in pat.get("/contributions").text


def test_that_a_name_is_taken_is_public_and_all_that_is_told(world: World, ada: Sender) -> None:
    world.register(listed=True)
    eve = world.somebody("eve@example.org", "owner")
    upload, told = eve.arrival(), set()
    page = text_of(eve.get(f"/register/{upload}").text)
    assert page.count("Names are public: anyone who tries this one learns that it is taken.") == 2
    assert "that its name is taken is public" in page
    for act in ({"listed": "yes"}, {"listed": "no"}, None):
        path = "close" if act is None else "list"
        ada.post(f"/datasets/people/{path}", "/datasets/people/manage", **(act or {}))
        answer = eve.api("POST", "/datasets", json=body(upload, population="eves"))
        told.add((answer.status_code, answer.text))
    ada.api("DELETE", "/datasets/people")
    answer = eve.api("POST", "/datasets", json=body(upload, population="eves"))
    told.add((answer.status_code, answer.text))
    [(status, said)] = told
    assert status == 409
    assert "a data set has that name, or had it until it was deleted" in said
    assert "ada" not in said
    taken = world.rows(Population)[0].name
    refused = eve.api("POST", "/datasets", json=body(upload, name="mine", population=taken))
    assert "another owner's" in refused.text
