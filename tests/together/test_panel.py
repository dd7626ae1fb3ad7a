"""What is asked of sites that call over HTTP: each kind of question, about narrow columns and wide ones, is answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import cloister as cl
from cloister.learn import PCA, GaussianNB, KMeans, LinearRegression
from cloister.together import MemoryJournal, Site, SiteAgent
from tests.together.wired import MUCH, asked, coordinator_of, key_of, running

SITES = "abc"
COLUMNS = {
    "age": cl.Integer(17, 90),
    "steps": cl.Integer(0, 2_500),
    "sex": cl.Category(["F", "M"]),
    "pay": cl.Integer(0, 250_000),
    "debt": cl.Integer(-3_000_000, 3_000_000),
    "rent": cl.Real(0, 500_000, step="0.1"),
    "born": cl.Integer(1_900_000, 1_999_999),
}
ROWS = {
    "age": [30, 41, 52, 63] * 10,
    "steps": [0, 100, 1_200, 2_400] * 10,
    "sex": ["F", "M"] * 20,
    "pay": [20_000, 60_000, 110_000, 240_000] * 10,
    "debt": [-20_000, 60_000, 1_100_000, 0] * 10,
    "rent": [2_000.5, 6_000.2, 110_000.0, 400_000.0] * 10,
    "born": [1_950_101, 1_960_203, 1_970_305, 1_980_407] * 10,
}
WIDE = ["steps", "pay", "debt", "rent", "born"]
SPEND = 100_000


def sql(question: str) -> Callable[[cl.Session], Any]:
    return lambda session: session.sql(question, spend=SPEND)


def fitted(model: Any, features: list[str], **more: Any) -> Callable[[cl.Session], Any]:
    return lambda session: model.fit_table(session, "people", features=features, spend=SPEND, **more)


ONE = ("SUM({})", "AVG({})", "VAR_SAMP({})", "STDDEV({})", "MEDIAN({})", "MIN({})", "MAX({})")
TWO = ("COVAR_SAMP({}, {})", "CORR({}, {})", "REGR_SLOPE({}, {})")
PANEL: dict[str, Callable[[cl.Session], Any]] = {
    "COUNT": sql("SELECT COUNT(*) AS n FROM people"),
    **{f"{form} {name}": sql(f"SELECT {form.format(name)} AS x FROM people") for name in ("age", *WIDE) for form in ONE},
    **{
        f"{form} {one} {two}": sql(f"SELECT {form.format(one, two)} AS x FROM people")
        for one, two in (("age", "pay"), ("pay", "debt"), ("rent", "born"), ("steps", "rent"))
        for form in TWO
    },
    **{f"grouped {name}": sql(f"SELECT sex, COUNT(*), AVG({name}), STDDEV({name}) FROM people GROUP BY sex") for name in WIDE},
    "computed": sql("SELECT AVG(pay + rent) AS x, VAR_SAMP(pay - debt) AS y FROM people"),
    "naive Bayes": fitted(GaussianNB(), WIDE, target="sex"),
    "linear regression": fitted(LinearRegression(), ["age", "pay", "rent"], target="debt"),
    "PCA": fitted(PCA(n_components=2), WIDE),
    "k-means": fitted(KMeans(n_clusters=2), WIDE),
}


@pytest.fixture(scope="module")
def people() -> Iterator[cl.Session]:
    agents = [
        SiteAgent(Site(name, cl.PrivateTable(ROWS, columns=COLUMNS), budget=MUCH, key=key_of(name), journal=MemoryJournal()))
        for name in SITES
    ]
    coordinator = coordinator_of(SITES)
    with coordinator.serving() as hub, running(agents, hub), asked(coordinator, columns=COLUMNS) as session:
        yield session


@pytest.mark.parametrize("question", PANEL)
def test_a_question_is_answered_and_charged(people: cl.Session, question: str) -> None:
    before = people.spent
    assert PANEL[question](people) is not None
    assert people.spent != before
