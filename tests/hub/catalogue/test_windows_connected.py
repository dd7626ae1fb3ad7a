"""Windows over one table of a PostgreSQL database: each reads the rows of its own days, and nobody has the table twice."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.privacy import PureDP
from tests.hub.catalogue.growing import COLUMNS, body, count, read, window
from tests.hub.catalogue.world import Sender

pytestmark = pytest.mark.postgres
MADE = """
SET timezone = 'UTC';
CREATE TABLE visits AS
SELECT 'p' || n % 100 AS who, CAST(day AS date) AS day, day AS seen, CAST(n % 90 AS integer) AS cost
FROM generate_series(1, 300) AS n,
     unnest(ARRAY['2028-01-31 23:59:59.999999+00', '2028-02-01 00:00+00', '2028-02-29 23:59:59.999999+00', '2028-03-01 00:00+00',
                  NULL]::timestamptz[]) AS day;
GRANT SELECT ON visits TO reader;
ALTER ROLE reader SET timezone = 'Asia/Tokyo';
"""
"""Moments around a leap year's February. The days are cut off in UTC; the reader's time zone is far from it."""


@pytest.fixture
def ada(owner_beside: Sender) -> Sender:
    return owner_beside


def connected(sender: Sender, place: str) -> str:
    address = f"postgresql://reader:reader@{place}::public.visits"
    return str(sender.api("POST", "/connections", json={"address": address}).json()["id"])


def first(sender: Sender, place: str, column: str, **more: Any) -> Any:
    columns = {column: {"kind": "date"}, "cost": COLUMNS["cost"]}
    said = {"columns": columns, "every": "month", "window": "2028-02", "date_column": column}
    return sender.api("POST", "/datasets", json=body(connected(sender, place), **said | more))


@pytest.mark.parametrize("column", ["day", "seen"])
def test_each_window_reads_its_own_days(ada: Sender, place: str, column: str) -> None:
    """A leap day's last microsecond is of February, whatever time zone the database speaks in."""
    made = first(ada, place, column)
    assert made.status_code == 201, made.text
    assert read(ada, "visits_2028_02") == (600, 300, 300, 300)
    assert window(ada, "visits_2028_02").json()["name"] == "visits_2028_03"
    assert window(ada, "visits_2028_02", window="2028-01").status_code == 201
    assert read(ada, "visits_2028_03")[0] == read(ada, "visits_2028_01")[0] == 300
    for name, size in (("visits_2028_02", 600), ("visits_2028_03", 300), ("visits_2028_01", 300)):
        assert count(ada, f"SELECT COUNT(*) AS n FROM {name}") == pytest.approx(size, abs=450)
    ledger = ada.world.hub.ledger
    assert [ledger.spent(f"patients 2028-0{month}") for month in (1, 2, 3)] == [PureDP(2)] * 3


def test_no_condition_reaches_into_another_window(ada: Sender, place: str) -> None:
    assert first(ada, place, "seen").status_code == 201
    for condition in ("seen > '2028-02-29'", "seen < '2028-02-01' OR seen IS NULL", "NOT (seen <= '2028-02-29')"):
        sql = f"SELECT COUNT(*) AS n FROM visits_2028_02 WHERE {condition}"
        assert count(ada, sql, spend="10") == pytest.approx(0, abs=90)  # scale 5; 300 rows and more lie there


def test_the_table_is_nobody_elses_and_no_other_cut_is_made_of_it(ada: Sender, place: str) -> None:
    assert first(ada, place, "day").status_code == 201
    assert window(ada, "visits_2028_02").status_code == 201
    span = {"kind": "date", "low": "2020-01-01", "high": "2030-12-31", "reason": "the study's years"}
    whole = {"every": "", "window": "", "date_column": "", "columns": {"day": span}}
    for more in (
        {"name": "again", "population": "others", **whole},
        {"name": "again", "population": "patients 2028-02", "budget": None, **whole},
        {"name": "again", "population": "others"},
        {"name": "again", "population": "others", "every": "year", "window": "2028"},
    ):
        answer = first(ada, place, "day", **more)
        assert answer.status_code == 422, answer.text
    bob = ada.world.somebody("bob@example.org", "owner")
    for more in ({"name": "mine", "population": "mine", **whole}, {"name": "mine", "population": "mine", "window": "2028-01"}):
        answer = first(bob, place, "day", **more)
        assert answer.status_code == 422, answer.text
    assert sorted(ada.world.hub.ledger.populations()) == ["patients 2028-02", "patients 2028-03"]


def test_a_table_that_was_registered_whole_is_not_cut_afterwards(ada: Sender, place: str) -> None:
    bob = ada.world.somebody("bob@example.org", "owner")
    span = {"kind": "date", "low": "2020-01-01", "high": "2030-12-31", "reason": "the study's years"}
    whole = {"every": "", "window": "", "date_column": "", "columns": {"day": span}}
    assert first(bob, place, "day", name="everything", population="bobs", **whole).status_code == 201
    answer = first(ada, place, "day")
    assert (answer.status_code, answer.json()["instead"]) == (422, "that data set, or another table")
    assert ada.world.hub.ledger.populations() == ["bobs"]
