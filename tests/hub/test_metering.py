"""What a hub says of itself: counts by route and outcome, and of no person, no data set, no value and no secret."""

from __future__ import annotations

import logging

import pytest

from tests.hub.house import House, Visitor

CANARIES = {
    "e-mail": "canary.person@example.org",
    "name": "Canary Byron",
    "data set": "canary_table",
    "column": "canary_column",
    "value": "canary-value-4711",
    "purpose": "canary purpose",
    "SQL": "canary_alias",
}


@pytest.fixture
def canary(house: House) -> Visitor:
    """Somebody who did everything once, with words that must not be seen elsewhere."""
    ana = house.person("analyst", email=CANARIES["e-mail"], name=CANARIES["name"])
    declaration = {
        "columns": {
            "canary_column": {"kind": "category", "values": ["a", CANARIES["value"]]},
            "n": {"kind": "integer", "low": 0, "high": 9},
        },
        "size": 300,
    }
    rows = {"canary_column": ["a", CANARIES["value"]] * 150, "n": [1, 2] * 150}
    house.sample_data_set(CANARIES["data set"], rows=rows, declaration=declaration, readers=[ana])
    return ana


def everything(house: House, who: Visitor) -> None:
    client = house.client()
    good = "SELECT canary_column, COUNT(*) AS canary_alias FROM canary_table GROUP BY canary_column"
    for sql, spend in [(good, "0.1"), (good, "9"), ("SELECT canary_column FROM canary_table", "0.1"), ("canary_alias(", "0.1")]:
        body = {"sql": sql, "spend": spend, "purpose": CANARIES["purpose"]}
        for path in ("questions", "questions/explain", "questions/rehearse"):
            client.post(f"/api/v1/{path}", json=body, headers=who.bearer)
    client.get("/datasets/canary_table")
    client.get("/people/canary.person@example.org?search=canary-value-4711")
    client.get("/link/canary-value-4711")
    client.post("/api/v1/questions", json={"sql": "canary_alias"}, headers={"Authorization": "Bearer clo_canary-value-4711"})
    who.client.get("/datasets/canary_table")
    who.client.post("/login", data={"email": CANARIES["e-mail"], "password": "canary-value-4711"})
    client.get("/canary_table/canary.person@example.org")


def test_neither_metrics_nor_health_nor_logs_tell_of_anybody_or_anything(
    house: House, canary: Visitor, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        everything(house, canary)
    client = house.client()
    printed = capfd.readouterr()
    ours = "\n".join(record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore")))
    told = client.get("/metrics").text + client.get("/healthz").text + ours + printed.out + printed.err
    for what, word in CANARIES.items():
        assert word not in told, what
    for secret in (canary.token, canary.client.cookies.get("cloister") or "none", house.hub.secret("ledger").hex()):
        assert secret not in told


def test_requests_are_counted_by_the_template_of_their_address(house: House, canary: Visitor) -> None:
    everything(house, canary)
    text = house.client().get("/metrics").text
    assert 'cloister_requests_total{method="POST",route="/api/v1/questions",status="201"} 1.0' in text
    assert 'cloister_requests_total{method="GET",route="/datasets/{name}",status="200"} 1.0' in text
    assert 'route="/people/{person}"' in text
    assert 'route="(none)",status="404"' in text


def test_questions_are_counted_by_how_they_ended(house: House) -> None:
    ana = house.person("analyst")
    bob = house.person("analyst")
    house.sample_data_set(readers=[ana])
    sql = "SELECT COUNT(*) AS n FROM people"
    for text, spend in [(sql, "0.1"), (sql, "0.1"), (f"{sql} WHERE age > 30", "9"), ("SELECT age FROM people", "1")]:
        house.client().post("/api/v1/questions", json={"sql": text, "spend": spend, "purpose": "x"}, headers=ana.bearer)
    house.client().post("/api/v1/questions", json={"sql": sql, "spend": "0.1", "purpose": "x"}, headers=bob.bearer)
    text = house.client().get("/metrics").text
    for outcome in ("answered", "repeated", "over-budget"):
        assert f'cloister_questions_total{{outcome="{outcome}"}} 1.0' in text, outcome
    assert 'cloister_questions_total{outcome="refused"} 2.0' in text


def test_metrics_are_for_this_machine_or_for_who_has_the_token(house: House) -> None:
    assert house.client("127.0.0.1").get("/metrics").status_code == 200
    assert house.client("::1").get("/metrics").status_code == 200
    for address in ("192.0.2.7", "10.0.0.1", "2001:db8::1"):
        assert "cloister_requests" not in house.client(address).get("/metrics").text
    object.__setattr__(house.settings, "metrics_token", "a-long-metrics-token")
    assert "cloister_requests" not in house.client("127.0.0.1").get("/metrics").text
    for given, seen in [("a-long-metrics-token", True), ("a-long-metrics-tokem", False), ("", False)]:
        text = house.client("192.0.2.7").get("/metrics", headers={"Authorization": f"Bearer {given}"}).text
        assert ("cloister_requests" in text) is seen


def test_health_is_told_to_anybody_in_words_that_are_safe(house: House) -> None:
    client = house.client("192.0.2.7")
    assert client.get("/healthz").json() == {"status": "ok", "database": "ok", "ledger": "ok"}
    house.hub.database.engine.dispose()
    house.settings.path("hub.db").rename(house.settings.path("away.db"))
    house.settings.path("hub.db").mkdir()
    failing = client.get("/healthz")
    assert failing.status_code == 503
    assert failing.json()["database"] == "failing"
    house.settings.path("hub.db").rmdir()
    house.settings.path("away.db").rename(house.settings.path("hub.db"))
    assert client.get("/healthz").status_code == 200
