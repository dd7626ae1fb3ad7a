"""Tables at several sites answer what any table answers: SQL, workloads, models and synthetic tables; each owner may say no."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import cloister as cl
from cloister import learn
from cloister.ledger import Ledger
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random, SummedNoise
from cloister.privacy import Guarantee
from cloister.session import Count, Question
from cloister.tables import Aggregation
from cloister.tables.engines.noised import Cells, Combination, Integers, NoisedRequest
from cloister.together import (
    Asked,
    JointTable,
    MemoryJournal,
    Roster,
    Round,
    RoundRefused,
    SignedRoster,
    Site,
    SitesMissing,
    cost_of,
)
from cloister.together.joint import AtSites
from cloister.together.journal import READING
from cloister.together.plan import Plan
from cloister.together.reading import request_from
from cloister.together.reading_relations import Over
from cloister.together.rounds import SiteRound
from cloister.together.site import SitePart
from tests.session.test_parts import (
    COLUMNS,
    NONE,
    QUESTIONS,
    REFUSED,
    ROWS,
    answers,
    centres,
    counts,
    least_margin,
    models,
    rows,
    share_below,
)
from tests.session.test_parts import session_of as central_session
from tests.together.joint_tables import joint_of, session_of, sites_of, watched

COUNT = QUESTIONS[0]
ALL = "SELECT COUNT(*) AS n FROM people WHERE height > 145"
"""All rows, in other words."""


def synthetic(session: cl.Session, spend: Any) -> Any:
    """What the model of a synthetic table is made of."""
    model = cl.synth.fit(session, "people", spend=spend, method="pairs", columns=["sex", "age"])
    return model.answer("SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex").to_pydict()


@pytest.mark.parametrize("learnt", [answers, models, synthetic])
def test_without_noise_sites_give_what_pooled_rows_give(learnt: Callable[[cl.Session, Any], Any]) -> None:
    budget = cl.PureDP(100 * NONE)
    with central_session(rows(), budget) as central, session_of(joint_of(sites_of()), budget) as joint:
        assert repr(learnt(central, NONE)) == repr(learnt(joint, NONE))
        assert central.spent == joint.spent


class Panel(NamedTuple):
    """What was seen of all questions and models that were asked once."""

    budget: Guarantee
    table: cl.PrivateTable
    rounds: list[tuple[NoisedRequest, Any, Mapping[str, Any]]]
    """Each request, what was answered, and the exact integers of all sites."""
    spent: list[tuple[Guarantee, set[Guarantee]]]
    """After each question: by the hub, and by the sites."""


@pytest.fixture(scope="module", params=[(cl.PureDP(10**8), 1), (cl.ZCDP(10), "0.01")], ids=["laplace", "gaussian"])
def panel(request: pytest.FixtureRequest) -> Panel:
    budget, spend = request.param
    sites, rounds, spent = sites_of(budget=budget), list[Any](), list[Any]()
    with pytest.MonkeyPatch.context() as patch, session_of(joint_of(sites), budget) as session:
        watched(patch, lambda *seen: rounds.append(seen))
        questions = [partial(session.sql, text, spend=spend) for text in QUESTIONS]
        for ask in (*questions, *(partial(each, session, spend) for each in (counts, models, centres, synthetic))):
            ask()
            spent.append((session.spent, {site.spent for site in sites}))
    return Panel(budget, sites[0].table, rounds, spent)


def test_with_noise_the_numbers_have_the_law_of_one_central_noise(panel: Panel) -> None:
    """All noises of the panel, each taken to a uniform number by the distribution function of the law that was asked for. False
    alarm: by the inequality of Dvoretzky, Kiefer & Wolfowitz with Massart's constant at most 10⁻⁷ for each budget."""
    drawn, uniform = Random.deterministic(5), []
    for request, found, exact in panel.rounds:
        for each in request.integers:
            law = found.laws[each.name]
            asked = law if isinstance(law, DiscreteLaplace) else law.parts[0][0]
            assert isinstance(asked, DiscreteLaplace) == isinstance(panel.budget, cl.PureDP)
            assert each.law.variance <= law.variance <= each.law.variance * (1 + 2e-6)
            noise = np.asarray(found.values[each.name] - exact[each.name], dtype=np.int64).ravel()
            below, above = share_below(law, noise - 1), share_below(law, noise)
            uniform.append(below + (above - below) * drawn.words(len(noise)).astype(np.float64) / 2.0**64)
    found = np.sort(np.concatenate(uniform))
    places = np.arange(1, len(found) + 1) / len(found)
    far = max(float((places - found).max()), float((found - places).max()) + 1 / len(found))
    assert len(found) > 4000
    assert far < math.sqrt(math.log(2 / 1e-7) / (2 * len(found)))


def test_each_site_works_out_by_itself_what_the_hub_charges(panel: Panel) -> None:
    """To the last digit, for every question and model of the panel."""
    assert all(sites == {hub} for hub, sites in panel.spent)
    assert len({hub for hub, _ in panel.spent}) == len(QUESTIONS) + 4


def test_every_request_of_the_panel_is_read_and_costs_the_same(panel: Panel) -> None:
    """Computed columns, which are relations, among them: each site reads what it is asked, here as elsewhere."""
    seen, over = [request for request, *_ in panel.rounds], Over(table=panel.table)
    assert len({isinstance(each.table, str) for each in seen}) == 2
    for request in seen:
        found = request_from(request.canonical(), COLUMNS, over)
        assert found.canonical() == request.canonical()
        declared = panel.table if isinstance(found.table, str) else found.table
        assert cost_of(found, declared) == cost_of(request, panel.table if isinstance(request.table, str) else request.table)
        if not isinstance(request.table, str):
            with pytest.raises(cl.UnsupportedQuery, match="about a relation"):
                request_from(request.canonical(), COLUMNS)


TENFOLD = " UNION ALL ".join(["SELECT age, sex, pay FROM people"] * 10)
"""Ten rows of each person."""


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COUNT(*) AS n FROM ({TENFOLD}) AS u",
        f"SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM ({TENFOLD}) AS u GROUP BY sex",
        f"SELECT MEDIAN(age) AS half FROM ({TENFOLD}) AS u",
        "SELECT SUM(pay) AS pay FROM (SELECT pay FROM people UNION ALL SELECT height FROM people) AS u",
        "SELECT COUNT(*) FILTER (WHERE age > 40) AS n, AVG(age * pay) AS p FROM people",
        "WITH older AS (SELECT age + 1 AS age FROM people WHERE age > 30) SELECT SUM(age) AS s FROM older",
    ],
)
def test_each_site_charges_for_all_rows_that_a_query_makes_of_one(sql: str) -> None:
    budget = cl.PureDP(10 * NONE)
    sites = sites_of(budget=budget)
    with session_of(joint_of(sites), budget) as session:
        session.sql(sql, spend=NONE)
        assert all(site.spent == session.spent for site in sites)


def test_more_noise_than_was_asked_for_is_in_the_margin() -> None:
    """Shares for three of five (four must be left, and one of them may collude), and all five take part."""
    with session_of(joint_of(sites_of(count=5), missing=1), cl.PureDP(10)) as session:
        planned = session.explain(COUNT, spend="0.1").margin()["n"][0]
        answer = session.sql(COUNT, spend="0.1")
    law = SummedNoise(parts=[(DiscreteLaplace(scale=10), "5/3")])
    assert answer.readings["rows"].terms[0].noise == law
    assert answer.margin().to_pydict()["n"][0] == least_margin(law, 0.95) == planned


@pytest.mark.parametrize("budget", [cl.PureDP(10), cl.ZCDP(10)])
@pytest.mark.parametrize("missing", [0, 1, 3])
def test_a_margin_that_is_asked_for_holds_with_the_surplus(budget: Guarantee, missing: int) -> None:
    with session_of(joint_of(sites_of(count=5), missing=missing), budget) as session:
        planned = session.explain(ALL, spend="0.01").margin()["n"][0]
        answer = session.sql(COUNT, within=40)
        assert 38 <= answer.margin().to_pydict()["n"][0] <= 40
        assert session.sql(ALL, spend="0.01").margin().to_pydict()["n"][0] == planned


def test_a_person_at_two_sites_has_twice_the_noise() -> None:
    sites = sites_of(budget=cl.PureDP(10))
    with session_of(joint_of(sites, overlap=2), cl.PureDP(10)) as session:
        answer = session.sql(COUNT, spend=1)
        assert answer.readings["rows"].terms[0].noise == DiscreteLaplace(scale=2, sensitivity=2)
        assert [str(site.spent) for site in sites] == ["ε = 0.5"] * 3  # each site charges for its own rows
        with pytest.raises(cl.UnsupportedQuery, match="computed from 'people'"):
            session.sql(QUESTIONS[6], spend=1)


def test_people_with_several_rows() -> None:
    visits = {"who": [f"p{n // 3}" for n in range(60)], "cost": [n % 10 for n in range(60)]}
    columns = {"cost": cl.Integer(0, 9)}
    sites = sites_of(visits, columns=columns, unit="who", max_rows=2)
    table = JointTable(sites, columns, unit="who", max_rows=2, overlap=3)
    with cl.Session({"visits": table}, budget=cl.PureDP(100 * NONE), random=Random.deterministic(1)) as session:
        found = session.sql("SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits", spend=NONE).to_pydict()
        assert 40 <= found["n"][0] <= 60
        with pytest.raises(cl.UnsupportedQuery, match="number of people"):
            session.sql("SELECT COUNT(DISTINCT who) AS n FROM visits", spend=1)


def test_texts_are_counted() -> None:
    """They have no codes, and none are needed."""
    sites, columns = [], {"town": cl.Text(nullable=True)}
    for place in range(3):
        table = cl.PrivateTable({"town": ["Graz", None, "Linz", "Wels"][: place + 2]}, columns=columns)
        sites.append(Site(f"site {place}", table, budget=cl.PureDP(100 * NONE)))
    with cl.Session({"people": JointTable(sites, columns, overlap="none")}, budget=cl.PureDP(100 * NONE)) as session:
        found = session.sql("SELECT COUNT(town) AS towns, COUNT(*) AS n FROM people", spend=NONE)
        assert found.to_pydict() == {"towns": [6], "n": [9]}


# ── what an owner decides ────────────────────────────────────────────────────────────────────────


def test_an_owner_denies_before_anything_is_charged() -> None:
    seen: list[Asked] = []

    def policy(asked: Asked) -> str | None:
        seen.append(asked)
        return "this owner shares no answer by sex" if "sex" in str(asked.request.plain()) else None

    sites = sites_of(budget=cl.PureDP(10), policy=policy)
    with session_of(joint_of(sites), cl.PureDP(10)) as session:
        with pytest.raises(cl.AccessDenied, match="'site 0' denied a request: this owner shares no answer by sex"):
            session.sql(QUESTIONS[1], spend=1)
        assert str(session.spent) == str(sites[0].spent) == "ε = 0"
        assert session.sql(COUNT, spend=1).num_rows == 1
    assert {str(asked.cost) for asked in seen} == {"ε = 1"}


def test_a_site_without_budget_says_so_before_the_hub_charges() -> None:
    sites = [*sites_of(count=2, budget=cl.PureDP(10)), sites_of(budget=cl.PureDP(1))[2]]
    with session_of(joint_of(sites), cl.PureDP(10)) as session:
        session.sql(COUNT, spend=1)
        with pytest.raises(cl.BudgetExceeded, match="'site 2' takes no part: the request costs ε = 1 there, and ε = 0"):
            session.sql(ALL, spend=1)
        assert str(session.spent) == "ε = 1"
        assert [str(site.spent) for site in sites] == ["ε = 1"] * 3


@pytest.mark.parametrize(("short", "enough"), [(cl.PureDP("0.9"), cl.PureDP(1)), (cl.ZCDP("0.24"), cl.ZCDP("0.25"))])
def test_a_site_that_could_pay_for_each_part_and_not_for_all_says_so_before_the_hub_charges(
    short: Guarantee, enough: Guarantee
) -> None:
    """Each part alone it can pay for; the sum is in the measure of its own budget."""
    parts = [Question(table="people", statistics=[Count()]), Question(table="people", by=("sex",), statistics=[Count()])]
    sites = [*sites_of(count=2, budget=enough), sites_of(budget=short)[2]]
    with session_of(joint_of(sites), cl.PureDP(10)) as session:
        with pytest.raises(cl.BudgetExceeded, match="'site 2' takes no part"):
            session.measure_all(parts, 1)
        assert session.spent == cl.PureDP(0)
        assert all(not site.ledger.charges(site.population) for site in sites)
    sites = sites_of(budget=enough)
    with session_of(joint_of(sites), cl.PureDP(10)) as session:
        assert len(session.measure_all(parts, 1)) == 2
    assert [site.spent for site in sites] == [enough] * 3


def test_a_budget_in_epsilon_takes_no_gaussian_noise() -> None:
    with (
        session_of(joint_of(sites_of(budget=cl.PureDP(100))), cl.ZCDP(10)) as session,
        pytest.raises(cl.BudgetExceeded, match="one in ρ takes Laplace and Gaussian noise"),
    ):
        session.sql(COUNT, spend="0.01")


class Stopped:
    """A site whose process ends in the middle of a round."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, names: str, kind: str) -> None:
        answer = SiteRound.answer

        def answered(site: SiteRound, data: bytes) -> bytes:
            if site.name in names and kind.encode() in data[:400]:
                raise RoundRefused("A step of the round was refused", why="the site was stopped", instead="a new round")
            return answer(site, data)

        monkeypatch.setattr(SiteRound, "answer", answered)


@pytest.mark.parametrize("step", ["begin", "all keys", "all shares"])
def test_who_drops_out_is_said_and_left_out(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sites = sites_of(count=5)
    table = joint_of(sites, missing=1)
    with session_of(table, cl.PureDP(100 * NONE)) as session:
        whole = session.sql(COUNT, spend=NONE).to_pydict()["n"][0]
        Stopped(monkeypatch, "site 3", f'"{step}"')
        with pytest.warns(SitesMissing, match="site 3 dropped out"):
            part = session.sql(ALL, spend=NONE)
    assert whole - part.to_pydict()["n"][0] == len([row for row in range(240) if row % 7 == 3])
    assert part.readings["rows"].terms[0].noise == SummedNoise(parts=[(DiscreteLaplace(scale=f"1/{NONE}"), "4/3")])
    assert [report.sites for report in table.source.rounds][-1] == ("site 0", "site 1", "site 2", "site 4")


def test_an_answer_without_a_site_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of four sites and of five, put together, would be true of nobody."""
    sites = sites_of(count=5)
    with session_of(joint_of(sites, missing=1), cl.PureDP(100 * NONE)) as session:
        with monkeypatch.context() as stopped:
            Stopped(stopped, "site 3", '"all keys"')
            with pytest.warns(SitesMissing, match="site 3 dropped out"):
                part = session.sql(COUNT, spend=NONE)
        assert any("site 3 dropped out" in note for note in part.notes)
        gone = len([row for row in range(ROWS) if row % 7 == 3])
        assert part.to_pydict()["n"] == [ROWS - gone]
        assert session.spent == cl.PureDP(NONE)
        whole = session.sql(COUNT, spend=NONE)  # not served, and charged anew
        assert whole.to_pydict()["n"] == [ROWS]
        assert session.spent == cl.PureDP(2 * NONE)
        assert not any("dropped out" in note for note in whole.notes)
        with monkeypatch.context() as stopped:
            Stopped(stopped, "site 3", '"all keys"')
            assert session.sql(COUNT, spend=NONE).to_pydict()["n"] == [ROWS]  # served: it was bought of all
            with pytest.warns(SitesMissing):
                again = session.sql(COUNT, spend=2 * NONE)  # the rest is bought, and is not of all
        assert again.to_pydict()["n"] == [ROWS - gone]
        assert len(again.provenance.charges) == 1
        assert session.sql(COUNT, spend=2 * NONE).to_pydict()["n"] == [ROWS]


def test_a_pilot_without_a_site_says_nothing_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with session_of(joint_of(sites_of(count=5), missing=1), cl.PureDP(100 * NONE)) as session:
        Stopped(monkeypatch, "site 3", '"all keys"')
        with pytest.warns(SitesMissing), pytest.raises(cl.EngineError, match="The pilot is not of all rows"):
            session.sql("SELECT AVG(age) AS a FROM people", within=1, pilot=NONE)


GROUPS = [f"SELECT {key}, COUNT(*) AS n FROM people GROUP BY {key}" for key in ("sex", "age", "sex, age")]


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.workload(GROUPS, spend=NONE),
        lambda session: session.measure_all(
            [Question(table="people", by=by, statistics=(Count(),)) for by in ((), ("sex",))], NONE
        ),
        lambda session: session.sql("SELECT sex, COUNT(*) AS n, MEDIAN(age) AS m FROM people GROUP BY ROLLUP (sex)", spend=NONE),
        lambda session: cl.synth.fit(session, "people", spend=NONE, method="pairs", columns=["sex", "age"]),
    ],
    ids=["workload", "questions", "rollup", "synthetic table"],
)
def test_parts_of_one_answer_are_of_the_same_sites(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site that answers the first part and not the second."""
    noised, asked = AtSites.noised, list[int]()

    def second(self: AtSites, request: Any, compiled: Any, random: Any) -> Any:
        asked.append(1)
        found = noised(self, request, compiled, random)
        return replace(found, without=("site 3",)) if len(asked) == 2 else found

    monkeypatch.setattr(AtSites, "noised", second)
    with session_of(joint_of(sites_of(count=5), missing=1), cl.PureDP(100 * NONE)) as session:
        with pytest.raises(cl.EngineError, match="they are about different rows"):
            ask(session)
        assert len(asked) > 1
        asked.extend([1, 1])
        ask(session)
        assert session.spent == cl.PureDP(2 * NONE)


@pytest.mark.parametrize("failure", [ValueError("age 39"), MemoryError(), cl.EngineError("age 39", why="a row", instead="b")])
def test_a_site_that_fails_says_nothing_of_why(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever an engine raises when it reads rows may be of a row: outside it looks alike, has no past, and stays charged."""

    def failing(self: SitePart, *_: Any) -> Any:
        raise failure

    sites = sites_of(budget=cl.PureDP(10))
    with session_of(joint_of(sites), cl.PureDP(10)) as session:
        monkeypatch.setattr(SitePart, "_added_up", failing)
        with pytest.raises(cl.EngineError, match="'site 0' dropped out: it could not read its rows") as seen:
            session.sql(COUNT, spend=1)
        assert "39" not in str(seen.value)
        assert seen.value.__context__ is None or "39" not in str(seen.value.__context__)
        assert str(session.spent) == "ε = 1"
        assert [str(site.spent) for site in sites] == ["ε = 1"] * 3


@pytest.mark.parametrize("step", ["begin", "all keys", "all shares", "survivors", "signatures"])
def test_a_round_below_the_quorum_stays_charged_everywhere(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sites = sites_of(count=5)
    with session_of(joint_of(sites, missing=1), cl.PureDP(10)) as session:
        Stopped(monkeypatch, "site 3 site 4", f'"{step}"')
        with pytest.raises(RoundRefused):
            session.sql(COUNT, spend=1)
        assert str(session.spent) == "ε = 1"
        assert [str(site.spent) for site in sites[:3]] == ["ρ = 0.5"] * 3


def test_every_round_is_charged_once_and_settled(tmp_path: Any) -> None:
    """Ledgers on disk, as owners have them, with the operating system's randomness."""
    sites = sites_of()
    for place, site in enumerate(sites):
        site.ledger, site.random = Ledger(tmp_path / f"{place}.db"), Random()
        site.ledger.open(site.population, cl.PureDP(5), who="owner")
    table = joint_of(sites)
    with cl.Session({"people": table}, budget=cl.PureDP(5), ledger=tmp_path / "hub.db") as session:
        session.sql(COUNT, spend=1)
        session.sql(COUNT, spend=1)  # stored: no round
        session.sql(QUESTIONS[1], spend=2)
    for place, site in enumerate(sites):
        site.ledger.close()
        with Ledger(tmp_path / f"{place}.db") as ledger:
            assert [(str(each.cost), each.state) for each in ledger.charges(site.population)] == [
                ("ε = 1", "settled"),
                ("ε = 2", "settled"),
            ]
            assert ledger.verify() is True


def test_questions_at_once_are_rounds_of_their_own() -> None:
    sites, found = sites_of(), []
    with session_of(joint_of(sites), cl.PureDP(100 * NONE)) as session:

        def ask(age: int) -> None:
            found.append(
                (age, session.sql(f"SELECT COUNT(*) AS n FROM people WHERE age < {age}", spend=NONE).to_pydict()["n"][0])
            )

        threads = [threading.Thread(target=ask, args=(age,)) for age in (20, 40, 60)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ages = rows()["age"]
    assert sorted(found) == [(limit, sum(age < limit for age in ages)) for limit in (20, 40, 60)]


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("sql", "words"), REFUSED)
def test_what_is_no_sum_is_refused_by_name_and_costs_nothing(sql: str, words: str) -> None:
    sites = sites_of()
    with session_of(joint_of(sites), cl.ApproxDP(10, "1e-6")) as session:
        for ask in (session.explain, session.sql):
            with pytest.raises(cl.UnsupportedQuery, match=words):
                ask(sql, spend=1)
        assert str(session.spent) == "ε = 0, δ = 0"
        assert str(sites[0].spent) == "ρ = 0"


def test_no_row_and_no_exact_value_leaves_a_site() -> None:
    from cloister.learn import GaussianNB, LinearSVC, evaluate_table, fit_and_score_table
    from cloister.tables import Aggregation, prepare

    table = joint_of(sites_of())
    with session_of(table, cl.PureDP(10)) as session:
        with pytest.raises(cl.UnsupportedQuery, match="rows of 'people' are not available"):
            LinearSVC(epsilon=1).fit_table(session, "people", features=["age"], target="sex", spend=1)
        with pytest.raises(cl.UnsupportedQuery, match="rows of 'people' are not available"):
            session.row_access("people")
        with pytest.raises(cl.UnsupportedQuery, match="A score by rows of 'people' is not supported"):
            fit_and_score_table(session, GaussianNB(epsilon=1), "people", features=["age"], target="sex", spend=1)
        model = GaussianNB(epsilon=1).fit_table(session, "people", features=["age"], target="sex", spend=1)
        with pytest.raises(cl.UnsupportedQuery, match="A score by rows of 'people' is not supported"):
            evaluate_table(session, model, "people", "sex", spend=1)
    with prepare(table) as prepared:
        for ask in (lambda: prepared.aggregate(Aggregation(table)), lambda: prepared.rows(["age"]), prepared.owner_report):
            with pytest.raises(cl.EngineError, match="only sums with noise leave them"):
                ask()


@pytest.mark.parametrize("overlap", [0, 1, 4, True, "all", None, "2"])
def test_overlap_is_said(overlap: Any) -> None:
    with pytest.raises(cl.InvalidDeclaration, match="at how many sites one person may have rows"):
        joint_of(sites_of(), overlap=overlap)


@pytest.mark.parametrize("words", [{"purpose": "  "}, {"who": "\u200d"}, {"who": ["ada"]}, {"purpose": "x" * 201}])
def test_words_that_no_plan_can_have_are_refused_with_the_table(words: Any) -> None:
    """Not with each question, after its charge."""
    with pytest.raises(cl.InvalidDeclaration, match=f'one text that can be shown.*\n.*{next(iter(words))}="'):
        joint_of(sites_of(), **words)


def test_a_purpose_that_begins_with_many_blanks_is_asked_with() -> None:
    """Cut to its first 200 characters it would be blanks, which no site takes, and refused after its charge."""
    with session_of(joint_of(sites_of(), columns=COLUMNS), cl.PureDP(100)) as session:
        session.sql("SELECT COUNT(*) AS n FROM people", spend=1, purpose=" " * 200 + "a study")


def test_overlap_has_no_default() -> None:
    with pytest.raises(TypeError, match="overlap"):
        JointTable(sites_of(), COLUMNS)  # type: ignore[call-arg]


def test_a_site_that_declares_otherwise_takes_no_part() -> None:
    other = {**COLUMNS, "age": cl.Integer(0, 120)}
    sites = [*sites_of(count=2), sites_of(columns=other)[2]]
    with (
        session_of(joint_of(sites), cl.PureDP(10)) as session,
        pytest.raises(cl.InvalidDeclaration, match="'site 2' takes no part: it declares the column 'age' as"),
    ):
        session.sql(COUNT, spend=1)


@pytest.mark.parametrize(("count", "missing"), [(3, 1), (4, 1), (6, 1), (7, 2)])
def test_an_owner_who_reads_the_answers_counts(count: int, missing: int) -> None:
    """It knows its own noise: that of the others is as much as was asked for."""
    sites = sites_of(count=count)
    roster = JointTable(sites, COLUMNS, overlap="none").source.roster.roster
    assert roster.missing == missing
    assert roster.honest <= roster.quorum - 1


def test_a_site_whose_person_is_another_column_takes_no_part() -> None:
    """Visits are no people: a person of many visits would be charged for one."""
    held = {"age": [50] * 9, "patient": ["x"] * 9, "visit": [str(place) for place in range(9)]}
    columns = {"age": cl.Integer(0, 99)}
    sites = [
        Site(name, cl.PrivateTable(held, columns=columns, unit=unit, max_rows=1), budget=cl.PureDP(1))
        for name, unit in (("a", "patient"), ("b", "visit"), ("c", "patient"))
    ]
    table = JointTable(sites, columns, unit="patient", max_rows=1, overlap="none")
    with (
        cl.Session({"t": table}, budget=cl.PureDP(1)) as session,
        pytest.raises(cl.InvalidDeclaration, match="'b' takes no part: it declares the unit as"),
    ):
        session.sql("SELECT COUNT(*) AS n FROM t", spend=1)
    through = cl.PrivateTable(held, columns=columns, unit="patient", max_rows=1, through="visits.visit")
    with pytest.raises(cl.InvalidDeclaration, match="through visits"):
        Site("d", through, budget=cl.PureDP(1)).part(table)


def test_sites_have_names_of_their_own_and_are_three_at_least() -> None:
    with pytest.raises(cl.InvalidDeclaration, match="each would see the other's"):
        joint_of(sites_of(count=2))
    with pytest.raises(cl.InvalidDeclaration, match="two have one name"):
        joint_of([*sites_of(), sites_of()[0]])


def test_a_share_that_is_too_narrow_is_refused_before_the_charge() -> None:
    with session_of(joint_of(sites_of(count=9)), cl.ZCDP(10)) as session:
        for ask, asked, spend in (
            (session.explain, COUNT, "0.5"),
            (session.sql, COUNT, "0.5"),
            (session.explain_workload, GROUPS, 5),
            (session.workload, GROUPS, 5),
        ):
            with pytest.raises(cl.InvalidParameter, match="at least 1 step"):
                ask(asked, spend=spend)
        assert str(session.spent) == "ρ = 0"


def test_three_sites_answer_at_a_tenth_of_rho() -> None:
    """Shares of one step and a half, a number for each of 10,000 groups: what is explained is what is asked."""
    columns = {"k": cl.Integer(0, 9_999)}
    with session_of(joint_of(sites_of({"k": [5]}, columns=columns), columns=columns, size=None), cl.ZCDP(10)) as session:
        for sql in ("SELECT COUNT(*) AS n FROM people", "SELECT k, COUNT(*) AS n FROM people GROUP BY k"):
            planned = session.explain(sql, spend="0.1").margin().to_pydict()["n"][0]
            answer = session.sql(sql, spend="0.1").to_pydict()["n"]
            assert 3 < planned < 8  # of one table: 5
            assert abs(sum(answer) - 3) < 7 * 2.74 * len(answer) ** 0.5  # seven σ
        assert session.spent == cl.ZCDP("0.2")


def test_gaussian_shares_are_of_one_promise() -> None:
    with session_of(joint_of(sites_of()), cl.ZCDP(10)) as session:
        answer = session.sql(COUNT, spend="0.01")
    law = answer.readings["rows"].terms[0].noise
    assert isinstance(law, SummedNoise)
    [(share, number)] = law.parts
    assert isinstance(share, DiscreteGaussian)
    assert number == 3


def test_a_site_takes_part_under_a_roster_that_it_joined_and_in_a_plan_of_the_request() -> None:
    """One site may be in several joint tables: each has a roster, and a key of its hub's."""
    sites = sites_of()
    one, other = joint_of(sites), joint_of(sites)
    with session_of(one, cl.PureDP(100 * NONE)) as first, session_of(other, cl.PureDP(100 * NONE)) as second:
        assert first.sql(COUNT, spend=NONE).to_pydict() == second.sql(COUNT, spend=NONE).to_pydict() == {"n": [240]}
    part = sites[0].part(one)
    asked = NoisedRequest(
        table="people",
        aggregations=(Aggregation(one),),
        integers=(Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=1)),),
        cells=Cells(),
    )
    signed = one.source.roster
    roster = signed.roster
    part.take_part(
        Round(signed=signed, plan=Plan(request=asked.under("1").canonical(), token="here").text, numbers=1), asked.under("1")
    )
    with pytest.raises(cl.InvalidDeclaration, match="the plan is about another request"):
        part.take_part(
            Round(signed=signed, plan=Plan(request=asked.under("1").canonical(), token="here").text, numbers=1), asked.under("2")
        )
    later = Roster(sites=roster.sites, hub=roster.hub, missing=roster.missing, epoch=2)
    agreed = SignedRoster(later, {site.name: site.sign(later) for site in sites})
    with pytest.raises(cl.InvalidDeclaration, match="did not join this roster"):
        part.take_part(Round(signed=agreed, plan=Plan(request=asked.canonical(), token="here").text, numbers=1), asked)


def test_an_old_round_is_not_begun_again() -> None:
    """In memory only the newest rounds are kept whole, and of those that never end no more than some hundreds."""
    journal = MemoryJournal()
    journal.of("first").put("all shares", b"the answer")
    for place in range(300):
        journal.of(f"round {place}").put("all shares", b"an answer")
    assert journal.of("first").get("all shares") is None
    assert journal.of("first").get(READING) is not None
    assert journal.of("round 299").get("all shares") == b"an answer"


# ── how much noise ───────────────────────────────────────────────────────────────────────────────

WIDE = {"k": cl.Integer(0, 29_999)}


@pytest.mark.parametrize(
    ("missing", "dropouts", "ratio"),
    [(1, None, Fraction(5, 3)), (1, 0, Fraction(5, 4)), (0, 1, Fraction(5, 4)), (0, 0, Fraction(1))],
)
def test_the_variance_is_that_of_one_noise_by_the_surplus(missing: int, dropouts: int | None, ratio: Fraction) -> None:
    """30,000 counts over five sites: the measured variance is N/(N − t) of one central noise within 5 %, and the margin says
    so, before and after; a whole noise at each site would have 5."""
    sites = sites_of({"k": [0]}, 5, columns=WIDE)
    sql = "SELECT k, COUNT(*) AS n FROM people WHERE k > 0 GROUP BY k"
    table = joint_of(sites, columns=WIDE, missing=missing, dropouts=dropouts, size=None)
    with session_of(table, cl.PureDP(100)) as session:
        answer = session.sql(sql, spend="0.01")
        planned = session.explain(sql, spend="0.01").margin().to_pydict()["n"]
    noise = np.array(answer.to_pydict()["n"], dtype=np.float64)
    central = DiscreteLaplace(scale=100)
    assert np.var(noise) / central.variance == pytest.approx(float(ratio), rel=0.05)
    [term] = next(each for each in answer.readings.values() if each.terms).terms
    assert term.noise.variance / central.variance == pytest.approx(float(ratio))
    assert {*answer.margin().to_pydict()["n"]} == {*planned}
    assert planned[0] >= central.margin(0.95)


def test_without_one_that_dropped_out_the_noise_is_that_of_one_table() -> None:
    """Five sites, none of which colludes and one may drop out: when it does, exactly what was asked for is left."""
    sites = sites_of({"k": [0]}, 5, columns=WIDE)
    table = joint_of(sites, columns=WIDE, missing=0, dropouts=1, size=None)
    sites[2].policy = lambda asked: "no" if asked.round else None
    with session_of(table, cl.PureDP(100)) as session, pytest.warns(SitesMissing, match="site 2 dropped out"):
        answer = session.sql("SELECT COUNT(*) AS n FROM people", spend="0.01")
    [term] = next(each for each in answer.readings.values() if each.terms).terms
    assert term.noise == DiscreteLaplace(scale=100)


def test_drop_outs_are_those_of_the_roster() -> None:
    with pytest.raises(cl.InvalidDeclaration, match="dropouts=3 is invalid: of 5 sites 4 have to agree on who is left"):
        joint_of(sites_of(count=5), missing=1, dropouts=3)


@pytest.mark.parametrize("spend", [5, 10**6])
def test_a_very_large_rho_is_refused_with_the_spend_that_would_do(spend: int) -> None:
    """Noise of less than a step can't be made in shares: nothing is charged, and what is said instead is taken."""
    with session_of(joint_of(sites_of(), columns=COLUMNS), cl.ZCDP(10**9)) as session:
        with pytest.raises(cl.InvalidParameter, match=r"a share of it has a scale of .* and needs at least 1 step") as error:
            session.sql("SELECT COUNT(*) AS n FROM people", spend=spend)
        factor = int(str(error.value).split("at most 1/")[1].split(" ")[0])
        assert session.spent == cl.ZCDP(0)
        session.sql("SELECT COUNT(*) AS n FROM people", spend=Fraction(spend, factor))
        assert isinstance(session.spent, cl.ZCDP)
        assert float(session.spent.rho) == pytest.approx(spend / factor)


@pytest.mark.slow
def test_a_million_groups_over_sites() -> None:
    """A number for each, and 8 bytes of each from a site: the counts of those who are there, and noise where nobody is."""
    columns = {"k": cl.Integer(0, 999_999)}
    sites = sites_of({"k": [7] * 50 + [999_999] * 30}, columns=columns)
    with session_of(joint_of(sites, columns=columns, size=None), cl.PureDP(10**6)) as session:
        found = session.sql("SELECT k, COUNT(*) AS n FROM people GROUP BY k", spend=50).to_pydict()
    assert found["k"] == list(range(10**6))
    assert (found["n"][7], found["n"][999_999]) == (50, 30)  # P(any noise at ε = 50) < 10⁻¹⁵
    assert sum(found["n"]) == 80


def test_models_that_ask_about_computed_columns_are_refused_where_a_person_may_be_at_two_sites() -> None:
    """As the page on sites says: these four, and naive Bayes and components work."""
    fits = {
        "linear": lambda session: learn.LinearRegression(epsilon=1).fit_table(
            session, "people", features=["age"], target="height"
        ),
        "ridge": lambda session: learn.Ridge(epsilon=1).fit_table(session, "people", features=["age"], target="height"),
        "discriminants": lambda session: learn.LinearDiscriminantAnalysis(epsilon=1).fit_table(
            session, "people", features=["age", "height"], target="sex"
        ),
        "k-means": lambda session: learn.KMeans(2, epsilon=1).fit_table(session, "people", features=["age", "height"]),
    }
    with session_of(joint_of(sites_of(), overlap=2), cl.PureDP(100)) as session:
        for fit in fits.values():
            with pytest.raises(cl.UnsupportedQuery, match="computed from 'people'"):
                fit(session)
        learn.GaussianNB(epsilon=1).fit_table(session, "people", features=["age", "height"], target="sex")
        learn.PCA(1, epsilon=1).fit_table(session, "people", features=["age", "height"])
