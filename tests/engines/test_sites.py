"""A site aggregates in the engine that holds its rows: DuckDB, PostgreSQL or Spark, beside sites of other engines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import cloister as cl
from cloister.together import MemoryJournal, Site, SiteAgent
from tests.engines.conftest import Loader
from tests.session.test_parts import NONE
from tests.together.joint_tables import MUCH
from tests.together.wired import COLUMNS, coordinator_of, key_of, running

TEXT = "SELECT sex, COUNT(*) AS n, SUM(age * 2) AS s FROM people WHERE age * 2 > 70 GROUP BY sex"


def rows_of(first: int, last: int) -> dict[str, list[Any]]:
    return {
        "age": [17 + place * 7 % 80 for place in range(first, last)],
        "sex": ["FM"[place % 3 % 2] for place in range(first, last)],
    }


def test_a_site_aggregates_where_its_rows_are(loader: Loader) -> None:
    """Over the wire, without noise: what one table of all rows gives; and only what a site charged was read."""
    held = {"a": rows_of(0, 90), "b": rows_of(90, 120), "c": rows_of(120, 200)}
    sources: dict[str, Any] = {**held, "a": loader.load(held["a"], {"age": "integer", "sex": "text"})}
    sites = [
        Site(name, cl.PrivateTable(source, columns=COLUMNS), budget=MUCH, key=key_of(name), journal=MemoryJournal())
        for name, source in sources.items()
    ]
    coordinator = coordinator_of("abc")
    with coordinator.serving() as hub, running([SiteAgent(site) for site in sites], hub):
        people = cl.JointTable(coordinator.sites, COLUMNS, overlap="none")
        with cl.Session({"people": people}, budget=cl.PureDP(NONE)) as session:
            found = session.sql(TEXT, spend=NONE).to_pydict()
    whole = [(min(age, 90), sex) for each in held.values() for age, sex in zip(each["age"], each["sex"], strict=True)]
    expected = Counter(sex for age, sex in whole if age > 35)
    sums = {sex: sum(2 * age for age, other in whole if age > 35 and other == sex) for sex in "FM"}
    assert dict(zip(found["sex"], found["n"], strict=True)) == expected
    assert dict(zip(found["sex"], found["s"], strict=True)) == sums
    assert len({repr(site.spent) for site in sites}) == 1
