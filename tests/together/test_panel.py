"""What is asked of sites that are processes of their own: each kind of question, about narrow columns and wide ones, has the
answer and the margin of one table that holds all rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.learn import PCA, GaussianNB, KMeans, LinearDiscriminantAnalysis, LinearRegression, Ridge
from cloister.noise import Random
from tests.together.wired import asked, coordinator_of

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
    "product": sql("SELECT AVG(age * pay) AS x FROM people"),
    "FILTER": sql("SELECT COUNT(*) FILTER (WHERE pay > 50000) AS n, AVG(rent) FILTER (WHERE sex = 'F') AS x FROM people"),
    "CASE": sql("SELECT sex, SUM(CASE WHEN debt > 0 THEN debt ELSE 0 END) AS x FROM people GROUP BY sex"),
    "subquery": sql("SELECT AVG(x) AS x FROM (SELECT pay + debt AS x FROM people WHERE age > 35) AS t"),
    "WITH": sql("WITH t AS (SELECT sex, pay - rent AS x FROM people) SELECT sex, SUM(x) AS x FROM t GROUP BY sex"),
    "naive Bayes": fitted(GaussianNB(), WIDE, target="sex"),
    "linear regression": fitted(LinearRegression(), ["age", "pay", "rent"], target="debt"),
    "ridge": fitted(Ridge(alpha=1.0), ["steps", "pay"], target="rent"),
    "discriminants": fitted(LinearDiscriminantAnalysis(), ["age", "pay", "rent"], target="sex"),
    "PCA": fitted(PCA(n_components=2), WIDE),
    "k-means": fitted(KMeans(n_clusters=2), WIDE),
}


CONFIG = """
[site]
name = "{name}"
hub = "http://127.0.0.1:1"

[policy]
otherwise = "always"

[tables.people]
source = "people.csv"

[tables.people.columns]
age = {{ kind = "integer", low = 17, high = 90 }}
steps = {{ kind = "integer", low = 0, high = 2_500 }}
sex = {{ kind = "category", values = ["F", "M"] }}
pay = {{ kind = "integer", low = 0, high = 250_000 }}
debt = {{ kind = "integer", low = -3_000_000, high = 3_000_000 }}
rent = {{ kind = "real", low = 0, high = 500_000, step = "0.1" }}
born = {{ kind = "integer", low = 1_900_000, high = 1_999_999 }}

[budgets]
people = {{ rho = "1000000000000" }}
"""


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[cl.Session]:
    coordinator, folder = coordinator_of(SITES), tmp_path_factory.mktemp("panel")
    lines = [",".join(ROWS), *(",".join(map(str, row)) for row in zip(*ROWS.values(), strict=True))]
    with coordinator.serving() as hub, ExitStack() as ended:
        for name in SITES:
            (own := folder / name).mkdir()
            for file, text in (("site.toml", CONFIG.format(name=name)), ("site.key", (name.encode() * 32).hex())):
                (own / file).write_text(text, encoding="utf-8")
            (own / "people.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
            command = [sys.executable, "-m", "cloister", "site", "--data", str(own), "--hub", hub, "--with-parent"]
            process = ended.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL))
            ended.callback(process.kill)
        yield ended.enter_context(asked(coordinator, columns=COLUMNS))


@pytest.fixture(scope="module")
def pooled() -> Iterator[cl.Session]:
    """The rows of all sites in one table."""
    table = cl.PrivateTable({name: values * len(SITES) for name, values in ROWS.items()}, columns=COLUMNS)
    with cl.Session({"people": table}, budget=cl.PureDP(10**9), random=Random.deterministic(1)) as session:
        yield session


def learnt(model: Any) -> list[Any]:
    """The numbers of a model, in an order that chance does not change."""
    found = [np.asarray(getattr(model, name)) for name in ("coef_", "intercept_", "theta_", "var_") if hasattr(model, name)]
    if hasattr(model, "components_"):  # a component has no sign
        found += [np.abs(model.components_), model.explained_variance_]
    if hasattr(model, "cluster_centers_"):
        centers = np.asarray(model.cluster_centers_)
        apart = np.ptp(centers, axis=0).argmax()  # the column that tells centres apart; a centre stays whole
        found.append(centers[centers[:, apart].argsort()])
    return found


@pytest.mark.parametrize("question", PANEL)
def test_a_question_is_answered_and_charged_as_of_one_table(people: cl.Session, pooled: cl.Session, question: str) -> None:
    """At ε = 100,000: answers differ by less than eight margins each, which they do once in 10¹⁰, and models by a hundredth."""
    before = people.spent, pooled.spent
    ours, theirs = PANEL[question](people), PANEL[question](pooled)
    assert people.spent != before[0]
    assert (people.spent.epsilon - before[0].epsilon) == (pooled.spent.epsilon - before[1].epsilon)  # type: ignore[attr-defined]
    if not hasattr(ours, "to_pydict"):
        found = learnt(ours)
        assert found, "nothing was compared"
        for one, other in zip(found, learnt(theirs), strict=True):
            assert np.allclose(one, other, rtol=0.01, atol=0.01 * (np.abs(other).max() + 1e-9))
        return
    table, margins = ours.to_pydict(), ours.margin().to_pydict()
    for name, values in theirs.to_pydict().items():
        for place, value in enumerate(values):
            margin = None if isinstance(value, str) else margins[name][place]
            if margin is None:
                assert table[name][place] == value
            else:
                assert abs(table[name][place] - value) <= 16 * margin + 1e-9 * abs(value)
                if not question.startswith(("MEDIAN", "MIN", "MAX")):  # theirs are of the noisy counts beside
                    assert margin == pytest.approx(theirs.margin().to_pydict()[name][place], rel=0.01)
