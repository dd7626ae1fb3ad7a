"""An engine of three parts, whose exact aggregates exist nowhere, answers what any engine answers: SQL, workloads and models.

The central engine is DuckDB with the same abilities, so that both plan the same. Where both draw from the same generator every
number is equal, so the linear maps are right; with noise in shares the numbers are equal where the noise is nil, and have the
stated law where it is not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.learn import PCA, GaussianNB, KMeans, LinearRegression
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random, SummedNoise
from cloister.privacy import Guarantee
from cloister.session import Count, Mean, Question, Release
from cloister.session.releases.wire import from_json, to_json
from cloister.tables import Abilities
from tests.session.parts_engine import InParts, Parties

ROWS = 240
NONE = 10**9
"""A spend for which noise is nil, but in sums of products: there a draw in some twenty is off by one, so seeds are chosen."""
COLUMNS = {
    "age": cl.Integer(17, 90),
    "sex": cl.Category(["F", "M"]),
    "pay": cl.Integer(0, 100),
    "wealth": cl.Integer(0, 4000),
    "height": cl.Integer(140, 210),
    "town": cl.Text(),
}
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT sex, COUNT(*) AS n, AVG(age) AS age, SUM(pay) AS pay FROM people WHERE height > 150 GROUP BY sex",
    "SELECT sex, VARIANCE(age) AS v, STDDEV(pay) AS d, CORR(age, pay) AS c FROM people GROUP BY sex",
    "SELECT REGR_SLOPE(pay, age) AS slope, COVAR_SAMP(pay, height) AS c FROM people",
    "SELECT MEDIAN(age) AS half, MIN(age) AS low, MAX(age) AS high, MODE(sex) AS most FROM people",
    "SELECT MEDIAN(wealth) AS half FROM people",
    "SELECT SUM(age * 2 + height) AS s FROM people WHERE pay BETWEEN 10 AND 80",
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP(sex)",
]
WIDE = QUESTIONS[2:4]
"""Products of values, whose noise has scales in the millions at an ordinary spend: in the tests the shares are drawn slowly."""
ABLE = Abilities(additive_noise_only=True, declared_keys_only=True, rows=False)


def rows() -> dict[str, list[Any]]:
    """People with some values missing or out of bounds."""
    ages = [17 + (7 * n * n) % 73 for n in range(ROWS)]
    pay: list[Any] = [age // 2 + (37 * n) % 40 for n, age in enumerate(ages)]
    pay[5], pay[17] = None, 10**6
    wealth = [20 * age + (37 * n) % 1500 for n, age in enumerate(ages)]
    height = [150 + (13 * n) % 50 + (n % 2) * 8 for n in range(ROWS)]
    sexes: list[Any] = ["FM"[n % 2] for n in range(ROWS)]
    sexes[9] = None
    return {"age": ages, "sex": sexes, "pay": pay, "wealth": wealth, "height": height, "town": ["Delft"] * ROWS}


def in_parts(parties: Parties | None = None) -> InParts:
    """The same rows in three parts of different sizes."""
    found = [[], [], []]  # type: list[list[int]]
    for place in range(ROWS):
        found[0 if place % 5 == 0 else 1 if place % 5 < 3 else 2].append(place)
    return InParts([{name: [values[place] for place in part] for name, values in rows().items()} for part in found], parties)


def session_of(source: Any, budget: Guarantee, seed: int = 1) -> cl.Session:
    table = cl.PrivateTable(source, columns=COLUMNS, size=ROWS)
    if not isinstance(source, InParts):
        table.source.able_as = ABLE
    return cl.Session({"people": table}, budget=budget, random=Random.deterministic(seed))


def counts(session: cl.Session, spend: Any) -> list[Any]:
    """What the panel's workload is answered."""
    return session.workload(
        ["SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "SELECT COUNT(*) AS n FROM people"]
        + [f"SELECT COUNT(*) AS n FROM people WHERE age < {age}" for age in (20, 30, 40, 50, 60)],
        spend=spend,
    )


def released(session: cl.Session, spend: Any, wide: Any = None) -> list[Any]:
    """The answers to the panel of questions; those whose numbers are wide for another spend."""
    return [session.sql(each, spend=wide if wide and each in WIDE else spend) for each in QUESTIONS] + counts(session, spend)


def answers(session: cl.Session, spend: Any) -> list[Any]:
    """What the panel of questions is answered, with margins."""
    return [(each.to_pydict(), each.margin().to_pydict()) for each in released(session, spend)]


def models(session: cl.Session, spend: Any) -> list[Any]:
    """What the panel of models learns."""
    bayes = GaussianNB(epsilon=1).fit_table(session, "people", features=["age", "height"], target="sex", spend=spend)
    line = LinearRegression(epsilon=1).fit_table(session, "people", features=["age", "height"], target="pay", spend=spend)
    axes = PCA(2, epsilon=1).fit_table(session, "people", features=["age", "height", "pay"], spend=spend)
    return [bayes.theta_, bayes.var_, bayes.class_count_, line.coef_, line.intercept_, axes.components_, axes.explained_variance_]


def centres(session: cl.Session, spend: Any) -> Any:
    found = KMeans(2, epsilon=1).fit_table(session, "people", features=["age", "height"], spend=spend)
    return found.cluster_centers_


def test_the_same_draws_give_the_same_answers_and_models() -> None:
    """At an ordinary spend, margins included: so every linear map of the parts adds up to that of all rows."""
    with (
        session_of(rows(), cl.PureDP(100)) as central,
        session_of(in_parts(Parties(parts=3, drawing="one")), cl.PureDP(100)) as parts,
    ):
        assert repr(answers(central, 1)) == repr(answers(parts, 1))
        for one, other in zip(models(central, 1), models(parts, 1), strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(centres(central, 1), centres(parts, 1))
        assert central.spent == parts.spent


@pytest.mark.parametrize("learnt", [answers, models])
def test_without_noise_shares_give_what_the_central_engine_gives(learnt: Callable[[cl.Session, Any], list[Any]]) -> None:
    with session_of(rows(), cl.PureDP(100 * NONE)) as central, session_of(in_parts(), cl.PureDP(100 * NONE)) as parts:
        assert repr(learnt(central, NONE)) == repr(learnt(parts, NONE))


def test_without_noise_the_plain_engine_gives_the_same() -> None:
    """The engine that may choose by exact counts plans otherwise for one quantile alone: of an even number of rows it may find
    any value in the middle."""
    plain = cl.PrivateTable(rows(), columns=COLUMNS)
    with (
        cl.Session({"people": plain}, budget=cl.PureDP(100 * NONE), random=Random.deterministic(1)) as central,
        session_of(in_parts(), cl.PureDP(100 * NONE)) as parts,
    ):
        assert any(block.share is not None for block in central.explain(QUESTIONS[5], 1).parts[0].shape.blocks)
        assert all(block.share is None for block in parts.explain(QUESTIONS[5], 1).parts[0].shape.blocks)
        for each in QUESTIONS[:5] + QUESTIONS[6:]:
            assert central.sql(each, spend=NONE).to_pydict() == parts.sql(each, spend=NONE).to_pydict()
        wealth = sorted(rows()["wealth"])
        for session in (central, parts):
            assert wealth[ROWS // 2 - 1] <= session.sql(QUESTIONS[5], spend=NONE).to_pydict()["half"][0] <= wealth[ROWS // 2]


def share_below(law: Any, at: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """P(noise ≤ at) by the law's probabilities, added up."""
    if isinstance(law, DiscreteLaplace):
        decay = math.exp(-1 / float(law.scale))
        below = np.where(at < 0, decay ** -np.minimum(at, 0).astype(float), 0.0) / (1 + decay)
        return np.where(at < 0, below, 1 - decay ** (np.maximum(at, 0) + 1.0) / (1 + decay))
    [(share, number)] = law.parts
    scale = math.sqrt(float(share.scale_squared * number))
    if scale > 1000:  # the steps are not felt
        return np.array([NormalDist(0, scale).cdf(float(place) + 0.5) for place in at])
    places = np.arange(-int(12 * scale) - 2, int(12 * scale) + 3)
    heights = np.exp(-((places / scale) ** 2) / 2)
    return (np.cumsum(heights) / heights.sum())[np.clip(at - places[0], 0, len(places) - 1).astype(int)]


@pytest.mark.parametrize(
    ("budget", "spend", "wide"), [(cl.PureDP(10**8), 2, 10**6), (cl.ZCDP(10), "0.01", "0.01")], ids=["laplace", "gaussian"]
)
def test_with_noise_the_numbers_have_the_law_that_was_asked_for(budget: Guarantee, spend: Any, wide: Any) -> None:
    """All noises of the panel, each taken to a uniform number by the distribution function of its law. False alarm: by the
    inequality of Dvoretzky, Kiefer & Wolfowitz with Massart's constant at most 2·exp(−2·n·x²) = 10⁻⁷ for each budget."""
    parties = Parties(parts=3)
    with session_of(in_parts(parties), budget) as session:
        released(session, spend, wide)
        models(session, wide)
        centres(session, wide)
    drawn = Random.deterministic(5)
    uniform = []
    for law, noise in parties.residuals:
        asked = law if isinstance(law, DiscreteLaplace) else law.parts[0][0]
        assert isinstance(asked, DiscreteLaplace) == isinstance(budget, cl.PureDP)
        below, above = share_below(law, noise - 1), share_below(law, noise)
        uniform.append(below + (above - below) * drawn.words(len(noise)).astype(np.float64) / 2.0**64)
    found = np.sort(np.concatenate(uniform))
    places = np.arange(1, len(found) + 1) / len(found)
    far = max(float((places - found).max()), float((found - places).max()) + 1 / len(found))
    assert len(found) > 4000
    assert far < math.sqrt(math.log(2 / 1e-7) / (2 * len(found)))
    for request, law in zip(
        itertools.chain.from_iterable([each.law for each in request.integers] for request in parties.requests),
        [law for law, _ in parties.residuals],
        strict=True,
    ):
        assert request.variance <= law.variance <= request.variance * (1 + 2e-6)


def test_more_noise_than_was_asked_for_is_said_kept_and_sent() -> None:
    """Shares for two of three, and all three take part: half as much again."""
    parties = Parties(parts=3, may_miss=1)
    with session_of(in_parts(parties), cl.PureDP(10)) as session:
        planned = session.explain(QUESTIONS[0], spend="0.1").margin()["n"][0]
        answer = session.sql(QUESTIONS[0], spend="0.1")
        again = session.sql(QUESTIONS[0], spend="0.1")
        assert again.cost == answer.cost
        assert str(session.spent) == "ε = 0.1"
    law = SummedNoise(parts=[(DiscreteLaplace(scale=10), "3/2")])
    assert answer.provenance.mechanism == ("rows: the sum of 1.5 × DiscreteLaplace of scale 10",)
    assert answer.readings["rows"].terms[0].noise == again.readings["rows"].terms[0].noise == law
    margin = answer.margin().to_pydict()["n"][0]
    assert planned < margin == again.margin().to_pydict()["n"][0]
    assert margin == least_margin(law, 0.95)
    copy = from_json(to_json(answer))
    assert to_json(copy) == to_json(answer)
    assert copy.margin().to_pydict() == answer.margin().to_pydict()


def least_margin(law: SummedNoise, confidence: float) -> int:
    """The least m with P(|noise| ≤ m) ≥ confidence, from the law's transform on a circle far longer than the noise."""
    size = 1 << 14
    turns = 2 * np.pi * np.arange(size) / size
    transform = np.ones(size)
    for part, number in law.parts:
        assert isinstance(part, DiscreteLaplace)
        transform *= (1 + (np.sin(turns / 2) / math.sinh(0.5 / float(part.scale))) ** 2) ** -float(number)
    chances = np.fft.fft(transform).real / size
    inside = chances[0] + 2 * np.cumsum(chances[1 : size // 2])
    return int(np.argmax(inside >= confidence)) + 1


def test_with_as_many_missing_as_may_be_the_noise_is_what_was_asked_for() -> None:
    parties = Parties(parts=3, may_miss=1, missing=1)
    with session_of(in_parts(parties), cl.PureDP(10)) as session:
        answer = session.sql(QUESTIONS[0], spend="0.1")
    assert answer.readings["rows"].terms[0].noise == DiscreteLaplace(scale=10)


def test_gaussian_noise_in_shares_is_combined_and_stored() -> None:
    parties = Parties(parts=3, may_miss=1)
    with session_of(in_parts(parties), cl.ZCDP(10)) as session:
        first = session.sql(QUESTIONS[1], spend="0.01")
        more = session.sql(QUESTIONS[1], spend="0.03")
        assert str(session.spent) == "ρ = 0.03"
    [law] = {term.noise for term in first.readings["nulls:age"].terms}
    assert isinstance(law, SummedNoise)
    [(share, number)] = law.parts
    assert isinstance(share, DiscreteGaussian)
    assert number == 3
    assert more.margin().to_pydict()["n"][0] < first.margin().to_pydict()["n"][0]


REFUSED = [
    ("SELECT town, COUNT(*) AS n FROM people GROUP BY town", "undeclared key 'town'"),
    ("SELECT COUNT(DISTINCT age) AS n FROM people", "different values of 'age'"),
]


@pytest.mark.parametrize(("sql", "words"), REFUSED)
def test_what_is_no_sum_is_refused_by_name_and_costs_nothing(sql: str, words: str) -> None:
    with session_of(in_parts(), cl.ApproxDP(10, "1e-6")) as session:
        for ask in (session.explain, session.sql):
            with pytest.raises(cl.UnsupportedQuery, match=words):
                ask(sql, spend=1)
        assert str(session.spent) == "ε = 0, δ = 0"


def test_the_line_instead_is_one_that_parts_answer() -> None:
    """They named a grouping that is refused in turn, and a declaration that nobody can write: of a column that is computed."""
    lines = {
        "SELECT COUNT(DISTINCT age) AS n FROM people": "SELECT age, COUNT(*) … GROUP BY age",
        "SELECT COUNT(DISTINCT town) AS n FROM people": 'columns={"town": cl.Category([…])}',
        "SELECT town, COUNT(*) AS n FROM people GROUP BY town": 'columns={"town": cl.Category([…])}',
        "SELECT CAST(town AS VARCHAR) AS t, COUNT(*) AS n FROM people GROUP BY t": "a column that is a category",
    }
    with session_of(in_parts(), cl.ApproxDP(10, "1e-6")) as session:
        for sql, instead in lines.items():
            with pytest.raises(cl.UnsupportedQuery) as refused:
                session.explain(sql, spend=1)
            assert refused.value.instead == instead


def test_rows_are_refused_by_name_and_cost_nothing() -> None:
    from cloister.learn import LogisticRegression

    with session_of(in_parts(), cl.PureDP(10)) as session:
        with pytest.raises(cl.UnsupportedQuery, match="rows of 'people' are not available"):
            LogisticRegression(epsilon=1).fit_table(session, "people", features=["age"], target="sex", spend=1)
        with pytest.raises(cl.UnsupportedQuery, match="rows of 'people' are not available"):
            session.row_access("people")
        assert str(session.spent) == "ε = 0"


def test_a_rehearsal_plans_as_the_real_rows_do() -> None:
    with session_of(in_parts(), cl.PureDP(10)) as session:
        assert session.sql(QUESTIONS[0], spend=1, rehearse=True).num_rows == 1
        with pytest.raises(cl.UnsupportedQuery, match="different values"):
            session.sql(REFUSED[1][0], spend=1, rehearse=True)


def test_persons_in_several_parts_cost_more_noise() -> None:
    """With rows in up to two parts, everything that a person moves is twice as much."""
    count = Question(table="people", statistics=(Count(), Mean(column="age")))
    with (
        session_of(in_parts(), cl.PureDP(10)) as alone,
        session_of(in_parts(Parties(parts=3, overlap=2)), cl.PureDP(10)) as shared,
    ):
        one, two = alone.explain(count, spend=1).parts[0], shared.explain(count, spend=1).parts[0]
        for name, noise in one.noises.items():
            assert two.noises[name].scale == 2 * noise.scale
        with pytest.raises(cl.UnsupportedQuery, match="computed from 'people'"):
            shared.sql(QUESTIONS[6], spend=1)


def test_people_in_several_parts_are_not_counted() -> None:
    visits = {"who": ["a", "a", "b", "c"], "cost": [1, 2, 3, 4]}
    source = InParts([visits, visits], Parties(parts=2, overlap=2))
    table = cl.PrivateTable(source, columns={"cost": cl.Integer(0, 9)}, unit="who", max_rows=2)
    with cl.Session({"visits": table}, budget=cl.PureDP(10)) as session:
        with pytest.raises(cl.UnsupportedQuery, match="number of people in 'visits'"):
            session.sql("SELECT COUNT(DISTINCT who) AS n FROM visits", spend=1)
        part = session.explain("SELECT COUNT(*) AS n FROM visits", spend=1).parts[0]
        assert part.sensitivity("rows").l1 == 4


def test_requests_are_plain_and_differ_by_charge_and_number() -> None:
    parties = Parties(parts=3)
    with session_of(in_parts(parties), cl.PureDP(100 * NONE)) as session:
        answers(session, NONE)
    texts = [request.canonical() for request in parties.requests]
    assert len(set(texts)) == len(texts)
    assert all('"charge":"' in text and "Delft" not in text for text in texts)


def test_answers_are_ordinary_releases() -> None:
    with session_of(in_parts(), cl.PureDP(10)) as session:
        answer = session.sql(QUESTIONS[1], spend=1)
        assert isinstance(answer, Release)
        assert [charge.state for charge in session.ledger.charges("people")] == ["settled"]
