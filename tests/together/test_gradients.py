"""Logistic and Poisson regression over sites: sums of cut gradients, each a round, under one charge and one yes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import audit
from cloister.errors import InvalidParameter
from cloister.learn import KernelClassifier, LinearSVC, LogisticRegression, PoissonRegressor
from cloister.learn.frame.encoding import Encoder
from cloister.learn.linear_models import descent, prepared
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.noise.allowance import Share
from cloister.tables import Aggregate, Aggregation, Base, Column, Compare, Filtered, Literal, prepare
from cloister.tables.engines import row_sums
from cloister.tables.engines.noised import Cells, Combination, Integers, NoisedRequest
from cloister.tables.engines.row_sums import STEPS, FeatureRows, Fit, RowSums
from cloister.together import JointTable, MemoryJournal, Site, cost_of
from cloister.together.checking import check_request
from cloister.together.joint import AtSites
from cloister.together.owner import OwnersPolicy, Rule
from cloister.together.plan import words_of
from cloister.together.reading import request_from
from cloister.together.site import SitePart
from tests.tiers import by_day_and_night
from tests.together.joint_tables import session_of
from tests.together.wired import coordinator_of, key_of, running

COLUMNS = {"age": cl.Integer(17, 90), "hours": cl.Real(0, 100, step=1), "sex": cl.Category(["F", "M"]), "rich": cl.Boolean()}
FEATURES = ["age", "hours", "sex"]
MUCH = cl.ZCDP(10**6)
FIT = Fit.of(COLUMNS, tuple(FEATURES), "rich", slope=0.7, most=Fraction(1, 2))
COUNTS = replace(FIT, classes=1, highest=9.0)
DOWN = descent.Descent(rounds=4, step=4.0, momentum=0.8)


def people(n: int = 400, seed: int = 1) -> dict[str, list[Any]]:
    draw = np.random.default_rng(seed)
    age, hours, sex = draw.integers(17, 91, n), draw.integers(0, 101, n), draw.integers(0, 2, n)
    rich = age / 73 + hours / 100 + 0.3 * sex + draw.normal(0, 0.2, n) > 1.2
    found: dict[str, list[Any]] = {"age": age.tolist(), "hours": hours.tolist(), "sex": ["FM"[one] for one in sex]}
    found["age"][0], found["rich"] = None, rich.tolist()
    return found


def sites_of(rows: dict[str, list[Any]], count: int = 3, **other: Any) -> list[Site]:
    given = {"budget": MUCH, **other}
    declared = {name: given.pop(name) for name in ("unit", "max_rows") if name in given}
    parts = [{name: values[place::count] for name, values in rows.items()} for place in range(count)]
    tables = [cl.PrivateTable(part, columns=COLUMNS, **declared) for part in parts]
    return [Site(f"site {at}", table, random=Random.deterministic(at + 1), **given) for at, table in enumerate(tables)]


def joint_of(sites: list[Site], **other: Any) -> JointTable:
    return JointTable(sites, COLUMNS, **{"overlap": "none", "missing": 0, **other})


def learnt(session: cl.Session, model: Any = None, spend: Any = "0.5") -> Any:
    return (model or LogisticRegression()).fit_table(session, "people", features=FEATURES, target="rich", spend=spend)


def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four steps, whatever there would be."""
    monkeypatch.setattr(descent, "plan", lambda **_: DOWN)


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    monkeypatch.setattr(DiscreteGaussian, "sample", lambda law, n, random=None: np.zeros(n, dtype=np.int64))
    monkeypatch.setattr(Share, "add", lambda share, values, **_: np.asarray(values, dtype=np.float64))


# ── what one row changes ─────────────────────────────────────────────────────────────────────────


def gradient_of(random: np.random.Generator, fit: Fit = FIT, **change: Any) -> RowSums:
    numbers = fit.dimension * fit.columns
    weights = tuple((random.normal(size=numbers) * 10.0 ** random.integers(-2, 9)).tolist())
    centre = tuple(random.uniform(-1, 1, fit.dimension - 1).tolist())
    given = {"centre": centre, "radius": float(10.0 ** random.integers(-9, 2)), "clip": float(random.uniform(0.01, 2))}
    return RowSums(fit=fit, stage="gradient", weights=weights, step=1, steps=4, **{**given, **change})


ODD: list[dict[str, Any]] = [{"radius": 5e-324}, {"radius": 1e-300}, {"clip": 5e-324}, {"centre": (2.0**30,) * 4}]
"""Numbers that pass as public ones, and that no descent would ask."""


def rows_at(random: np.random.Generator, fit: Fit, n: int = 40) -> FeatureRows:
    X = np.where(random.uniform(size=(n, fit.dimension - 1)) < 0.3, 1.0, random.uniform(-1, 1, (n, fit.dimension - 1)))
    X[0], X[1] = 0.0, -1.0
    return FeatureRows(X, random.integers(0, int(fit.highest) + 1 if fit.highest else fit.classes, n))


def worst(seeds: int) -> float:
    """How far a row moves a sum at most, over what its noise is made for."""
    found = 0.0
    three = replace(FIT, classes=3)
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        for fit in (FIT, three, COUNTS):
            asked = [gradient_of(random, fit, **(ODD[seed % len(ODD)] if seed % 3 == 0 else {}))]
            radius = float(10.0 ** random.integers(-9, 2))
            asked += [RowSums(fit=fit, stage=stage, radius=radius) for stage in ("level", "centre")]
            asked += [RowSums(fit=fit, stage=fit.first), RowSums(fit=fit, stage="lengths", centre=asked[0].centre)]
            rows = rows_at(random, fit)
            for sums in asked:
                assert not sums.why_not({**COLUMNS, "rich": cl.Integer(0, int(fit.highest) or fit.classes - 1)})
                whole = sums.exact(rows)
                for row in range(len(rows.y)):
                    kept = np.arange(len(rows.y)) != row
                    moved = whole - sums.exact(FeatureRows(rows.X[kept], rows.y[kept]))
                    found = max(found, float(np.linalg.norm(moved.astype(np.float64))) / sums.length)
    return found


def test_no_row_moves_a_sum_farther_than_its_noise_is_for() -> None:
    """Whatever public numbers the hub sends: those of a descent, and absurd ones that floating point can't hold."""
    assert 0.9 < worst(12) <= 1


def test_rows_that_are_rounded_up_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """BROKEN ON PURPOSE: rounding to the nearest step, which its growth of Δ₂ was not charged for, and no check of lengths."""
    monkeypatch.setattr(np, "trunc", np.rint)
    monkeypatch.setattr(row_sums, "_inside", lambda vectors, length: vectors)
    assert worst(12) > 1


def test_a_row_of_no_length_that_is_one_counts_for_nothing() -> None:
    kept = row_sums._inside(np.array([[3, 4], [3, 5], [-(2**63), 0]]), 5)
    assert kept.tolist() == [[3, 4], [0, 0], [0, 0]]


def test_sums_of_many_rows_are_exact() -> None:
    """More than one piece, and more than 2^53 in all."""
    n = 3 * (1 << 16) + 5
    rows = np.full((n, 2), float(STEPS))
    residuals = np.full((n, 1), 8191 * (1 << 22), dtype=np.int64)
    assert row_sums.gradient_sum(rows[:, :1], residuals >> 22).tolist() == [[n * STEPS * 8191]]


# ── the same as one table ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", ["rich", "hand", "visits", "seldom"])
def test_without_noise_sites_give_what_one_table_gives(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit: two classes, and three; counts, and some that are never 0."""
    without_noise(monkeypatch)
    for module in (descent, prepared):
        monkeypatch.setattr(module, "noisy_vector", lambda values, *_, **__: values.astype(np.float64))
    rows = {**people(), "hand": [place % 3 for place in range(400)], "visits": [place % 7 for place in range(400)]}
    rows["seldom"] = [each + 2 for each in rows["hand"]]
    columns = {**COLUMNS, "hand": cl.Integer(0, 2), "visits": cl.Integer(0, 9), "seldom": cl.Integer(2, 5)}
    tables = [cl.PrivateTable({name: values[at::3] for name, values in rows.items()}, columns=columns) for at in range(3)]
    sites = [Site(f"site {at}", table, budget=MUCH) for at, table in enumerate(tables)]
    joint = JointTable(sites, columns, overlap="none", missing=0)
    found = []
    for table in (joint, cl.PrivateTable(rows, columns=columns)):
        with cl.Session({"people": table}, budget=cl.ZCDP(1), random=Random.deterministic(1)) as session:
            model: Any = PoissonRegressor() if target in ("visits", "seldom") else LogisticRegression(method="gradient")
            model.fit_table(session, "people", features=FEATURES, target=target, spend="0.5")
            found.append((model.coef_.tolist(), np.asarray(model.intercept_).tolist(), str(session.spent)))
    assert found[0] == found[1]
    assert found[0][2] == "ρ = 0.5"


def wide() -> tuple[Fit, JointTable, RowSums]:
    """Sums of 2,020 numbers."""
    columns: dict[str, Any] = {f"x{at}": cl.Integer(0, 9) for at in range(19)} | {"y": cl.Integer(0, 99)}
    draw = np.random.default_rng(1)
    rows = {name: draw.integers(0, domain.high + 1, 60).tolist() for name, domain in columns.items()}
    parts = [cl.PrivateTable({name: values[at::3] for name, values in rows.items()}, columns=columns) for at in range(3)]
    sites = [Site(f"site {at}", part, budget=MUCH, random=Random.deterministic(at + 1)) for at, part in enumerate(parts)]
    fit = Fit.of(columns, tuple(columns)[:-1], "y", slope=1.0, most=Fraction(10**5))
    return fit, JointTable(sites, columns, overlap="none", missing=1, dropouts=0), gradient_of(draw, fit, clip=1.0, radius=1.0)


@pytest.mark.statistical
def test_the_noise_of_a_step_has_the_law_of_the_honest_sites() -> None:
    """Variance 3/2 of one noise, where one of three sites may collude: 8,080 numbers, a deviation of 1.6 % of the variance, so
    that 9 % is wrong once in 10^7; and the shape by Dvoretzky, Kiefer and Wolfowitz."""
    fit, table, sums = wide()
    law = DiscreteGaussian(scale_squared=10**12, sensitivity_squared=sums.length**2)
    request = NoisedRequest(table="t", aggregations=(), integers=(Integers("g", sums, law),), cells=Cells(), charge="1")
    workspace = cl.tables.Workspace.of()
    ready, exact, found = prepare(table, workspace=workspace), 0, []
    for part in ready.parts.parts:  # type: ignore[attr-defined]
        exact = exact + sums.exact(part.features(fit))
    for number in range(4):
        again = replace(request, number=number)
        answer = ready.noised(again, ready.compiled(again), Random.deterministic(9))
        assert abs(answer.laws["g"].variance / (1.5 * 10**12) - 1) < 1e-5
        found.append((answer.values["g"] - exact).ravel())
    noise = np.sort(np.concatenate(found).astype(np.float64)) / np.sqrt(1.5e12)
    assert abs(noise.var() - 1) < 0.09
    from scipy.stats import norm

    places = np.arange(1, len(noise) + 1) / len(noise)
    assert np.abs(norm.cdf(noise) - places).max() < np.sqrt(np.log(2e7) / 2 / len(noise)) + 1 / len(noise)


def test_it_learns_and_every_ledger_errs_upward() -> None:
    sites = sites_of(people(3000))
    with session_of(joint_of(sites, dropouts=0), cl.ZCDP(1)) as session:
        model = learnt(session, LogisticRegression(delta="1e-6"))
        assert session.spent == cl.ZCDP("0.5")
    assert model.method_ == "gradient"
    fresh = people(500, seed=2)
    fresh["age"][0] = 40
    right = model.predict(Encoder.of(COLUMNS, FEATURES).transform(fresh)) == np.array(fresh["rich"])
    assert right.mean() > 0.8
    for site in sites:
        assert Fraction("0.499") < site.spent.rho <= Fraction("0.5")  # type: ignore[union-attr]
        assert all(each.state == "settled" for each in site.ledger.charges(site.population))


def test_a_count_is_learned_over_sites_as_it_is_at_one() -> None:
    """As good as at scikit-learn, from sums alone."""
    from sklearn.linear_model import PoissonRegressor as Theirs

    rows = people(4000)
    rows["age"][0] = 40
    X = Encoder.of(COLUMNS, FEATURES).transform(rows)
    visits = np.minimum(np.random.default_rng(3).poisson(np.exp(X[:, 0] / 60 - X[:, 1] / 100)), 12)
    columns, rows = {**COLUMNS, "visits": cl.Integer(0, 12)}, {**rows, "visits": visits.tolist()}
    parts = [cl.PrivateTable({name: values[at::3] for name, values in rows.items()}, columns=columns) for at in range(3)]
    sites = [Site(f"site {at}", part, budget=MUCH, random=Random.deterministic(at + 1)) for at, part in enumerate(parts)]
    with session_of(JointTable(sites, columns, overlap="none", missing=0, dropouts=0), cl.ZCDP(1)) as session:
        model = PoissonRegressor().fit_table(session, "people", features=FEATURES, target="visits", spend="0.5")
        assert session.spent == cl.ZCDP("0.5")
    assert (model.bounds_y_, str(model.guarantee_)) == ((0, 12), "ρ = 0.5")
    assert model.score(X, visits) > 0.9 * Theirs(alpha=0).fit(X, visits).score(X, visits) > 0.1
    assert all(Fraction("0.499") < site.spent.rho <= Fraction("0.5") for site in sites)  # type: ignore[union-attr]


@pytest.mark.parametrize(("overlap", "max_rows"), [(2, None), ("none", 3)])
def test_rows_of_one_person_add_up(overlap: Any, max_rows: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    laws: list[Any] = []
    answered = AtSites.noised

    def noised(self: AtSites, request: Any, *rest: Any) -> Any:
        laws.extend((each.map.length, each.law.scale_squared) for each in request.integers)
        return answered(self, request, *rest)

    monkeypatch.setattr(AtSites, "noised", noised)
    unit = None if max_rows is None else "who"
    rows = people() | ({} if unit is None else {"who": [place // 2 for place in range(400)]})
    sites = sites_of(rows, unit=unit, max_rows=max_rows)
    with session_of(joint_of(sites, overlap=overlap, unit=unit, max_rows=max_rows), cl.ZCDP(1)) as session:
        learnt(session)
    times = Fraction(overlap if max_rows is None else max_rows)
    assert abs(sum(length**2 * times**2 / square / 2 for length, square in laws) - Fraction(1, 2)) < Fraction(1, 1000)
    at_site = Fraction(1, 2) / (overlap**2 if max_rows is None else 1)
    for site in sites:
        assert at_site * Fraction("0.99") < site.spent.rho <= at_site  # type: ignore[union-attr]


# ── an audit ─────────────────────────────────────────────────────────────────────────────────────

PROMISE = cl.ZCDP("0.5")


def one_step(times: int = 1) -> Callable[[int, int, Random], Any]:
    """A mechanism for the auditor: the sum of a step along the direction that one row moves most, without or with that row."""
    columns = {"x": cl.Integer(0, 1), "y": cl.Boolean()}
    fit = Fit.of(columns, ("x",), "y", slope=1.0, most=Fraction(1, 2))
    sums = RowSums(fit=fit, stage="gradient", centre=(-1.0,), radius=0.1, weights=(100.0, 100.0), clip=1.0, step=1, steps=1)
    row = sums.exact(FeatureRows(np.array([[1.0]]), np.array([0]))).ravel()
    assert float(np.linalg.norm(row)) > 0.99 * sums.length
    law = DiscreteGaussian(scale_squared=Fraction(sums.length, times) ** 2, sensitivity_squared=sums.length**2)

    def mechanism(held: int, n: int, random: Random) -> Any:
        noise = [law.sample(n, random=random) for _ in row]
        return sum(axis * (held * axis + drawn) for axis, drawn in zip(row.astype(np.float64), noise, strict=True)) / 2.0**40

    return mechanism


@by_day_and_night("runs", 20_000, 200_000)
def test_a_step_keeps_its_rho(runs: int) -> None:
    result = audit(one_step(), 1, 0, runs=runs, against=PROMISE, random=Random.deterministic(71))
    assert not result.contradicts(PROMISE), result


@by_day_and_night("runs", 20_000, 200_000)
def test_a_step_with_noise_for_half_a_row_is_caught(runs: int) -> None:
    """BROKEN ON PURPOSE: half the sensitivity."""
    result = audit(one_step(2), 1, 0, runs=runs, against=PROMISE, random=Random.deterministic(72))
    assert result.contradicts(PROMISE), result


# ── what a site takes ────────────────────────────────────────────────────────────────────────────

TABLE = cl.PrivateTable(people(20), columns=COLUMNS)
STEP = gradient_of(np.random.default_rng(1), radius=1.0, clip=0.7)
LAW = DiscreteGaussian(scale_squared=STEP.length**2)


def request_of(sums: RowSums = STEP, law: Any = LAW, **change: Any) -> NoisedRequest:
    given: dict[str, Any] = {"aggregations": (), "integers": (Integers("g", sums, law),), "cells": Cells(), "charge": "1"}
    return NoisedRequest(table="people", **{**given, **change})


def changed(**change: Any) -> NoisedRequest:
    return request_of(replace(STEP, **change))


def about(**change: Any) -> NoisedRequest:
    return changed(fit=replace(FIT, **change))


BESIDE = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
COUNTED = (Aggregation(None, aggregates=(Aggregate("rows", "rows"),)),)
BAD = {
    "a stage": changed(stage="rows"),
    "no number": changed(weights=(float("nan"), *STEP.weights[1:])),
    "too large": changed(weights=(2.0**31, *STEP.weights[1:])),
    "weights": changed(weights=STEP.weights[1:]),
    "a centre": changed(centre=STEP.centre[1:]),
    "no radius": changed(radius=0.0),
    "below zero": changed(radius=-1.0),
    "not cut": changed(clip=3.0),
    "cut to nothing": changed(clip=0.0),
    "a step": changed(step=5),
    "steps": changed(step=1, steps=10**6),
    "a radius of classes": changed(stage="classes", centre=(), weights=(), clip=0.0, step=0, steps=0),
    "columns": about(features=(("age", 1), ("hours", 1), ("town", 2))),
    "twice": about(features=(("age", 1), ("age", 1), ("sex", 2))),
    "the target": about(features=(("age", 1), ("rich", 1), ("sex", 2))),
    "sizes": about(features=(("age", 1), ("hours", 2), ("sex", 1))),
    "classes": about(classes=3),
    "a slope": about(slope=2.0),
    "no cost": about(most=Fraction(0)),
    "too many counts": about(classes=1, highest=2.0),
    "counts and classes": about(highest=1.0),
    "no highest count": about(classes=1, highest=float("nan")),
    "counts below zero": about(classes=1, highest=-1.0),
    "counts of a category": about(classes=1, highest=1.0, target="sex", features=(("age", 1),)),
    "counts where classes are": changed(stage="counts", centre=(), radius=0.0, weights=(), clip=0.0, step=0, steps=0),
    "classes where counts are": request_of(RowSums(fit=replace(FIT, classes=1, highest=1.0), stage="classes")),
    "a law": request_of(law=DiscreteLaplace(scale=10)),
    "beside": request_of(integers=(Integers("g", STEP, LAW), BESIDE), aggregations=COUNTED),
    "twice the step": request_of(integers=(Integers("g", STEP, LAW), Integers("h", STEP, LAW))),
    "counted": request_of(aggregations=COUNTED),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_step_is_refused(name: str) -> None:
    text = BAD[name].canonical()
    with pytest.raises(cl.UnsupportedQuery, match=r"A request .*refused|not read|can't be read"):
        check_request(request_from(text, COLUMNS), TABLE)


def test_a_step_is_read_from_its_text_and_charged_by_its_own_length() -> None:
    found = request_from(request_of().canonical(), COLUMNS)
    assert found == request_of()
    assert cost_of(found, TABLE) == cl.ZCDP("0.5")
    told = request_of(law=replace(LAW, sensitivity_squared=Fraction(1, 10**9)))  # what a hub says of it does not matter
    assert cost_of(request_from(told.canonical(), COLUMNS), TABLE) == cl.ZCDP("0.5")
    assert words_of(found, 20, COLUMNS) * 64 > STEP.length.bit_length() + 41  # room for 2^40 rows: nothing wraps around
    assert "highest" not in str(found.plain())  # the text that owners said yes to before counts were learned
    counts = about(classes=1, highest=1.0)
    assert request_from(counts.canonical(), COLUMNS) == counts
    check_request(counts, TABLE)
    assert cost_of(counts, TABLE) == cl.ZCDP("0.5")


def test_a_step_of_what_is_made_of_the_rows_is_refused() -> None:
    old = Filtered(source=Base(name="people", table=TABLE), where=Compare(">", Column("age"), Literal(40)))
    with pytest.raises(cl.UnsupportedQuery, match="the rows of a table"):
        check_request(replace(request_of(), table=old), old)


def test_an_owner_says_yes_once_and_sees_what_to(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    policy = OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal())
    sites = sites_of(people())
    sites[1].policy = policy
    with session_of(joint_of(sites, who="ada", purpose="study"), cl.ZCDP(1)) as session:
        with pytest.raises(cl.AccessDenied, match="its owner is asked"):
            learnt(session)
        assert session.spent == sites[0].spent == cl.ZCDP(0)  # before anything was charged
        [plan] = policy.plans("waiting")
        for words in ("'ada'", "'study'", "the 2 classes of rich", "age, hours, sex", "at most ρ = 0.5", "for all of them"):
            assert words in plan["words"]
        policy.decide(plan["plan"], "allowed")
        learnt(session)
        assert len(policy.plans("used")) == 1
        [steps] = (json.loads(policy._begun.get(name) or b"") for name in policy._begun.names())
        assert len(steps) == 4 + len(DOWN.__dataclass_fields__)
        assert sum(map(Fraction, steps.values())) == sites[1].spent.rho  # type: ignore[union-attr]
        with pytest.raises(cl.AccessDenied, match="its owner is asked"):  # a yes is for one charge
            learnt(session, LogisticRegression(method="gradient"))


def test_an_owner_sees_that_a_count_is_learned() -> None:
    policy = OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal())
    sites = sites_of(people(30))
    sites[1].policy = policy
    with session_of(joint_of(sites, who="ada", purpose="study"), cl.ZCDP(1)) as session:
        with pytest.raises(cl.AccessDenied, match="its owner is asked"):
            learnt(session, PoissonRegressor())
        assert session.spent == cl.ZCDP(0)
    [plan] = policy.plans("waiting")
    for words in (
        "foretell rich, a count up to 1,",
        "a Poisson regression",
        "how many rows there are, and the sum of their counts",
    ):
        assert words in plan["words"]
    assert "classes" not in plan["words"]


def step_of(part: SitePart, number: int, law: Any = LAW, charge: str = "1", most: Fraction = Fraction(1, 2)) -> Any:
    """What a site says to one more step of a hub that asks what it likes."""
    sums = replace(STEP, fit=replace(FIT, most=most), weights=tuple(float(number) for _ in STEP.weights))
    from cloister.together.plan import Plan

    plan = Plan(request=request_of(sums, law, charge=charge, number=number).canonical(), token="7", purpose="study", who="ada")
    return part._agreed(part.read(plan), plan, f"round {number}")


def test_a_hub_that_asks_more_steps_than_were_said_is_denied() -> None:
    """Two of ρ = 1/4 are what was agreed to: a third is not, nor the next under another charge, nor one that costs more."""
    policy = OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal())
    part = Site("north", TABLE, budget=MUCH, policy=policy).part(TABLE)
    quarter = replace(LAW, scale_squared=2 * LAW.scale_squared)
    with pytest.raises(cl.AccessDenied):
        step_of(part, 0, quarter)
    policy.decide(policy.plans("waiting")[0]["plan"], "allowed")
    for number in (1, 2, 1):  # a step that comes again is the same
        assert step_of(part, number, quarter) == cl.ZCDP("0.25")
    with pytest.raises(cl.AccessDenied, match="its owner is asked"):
        step_of(part, 3, quarter)
    policy.decide(policy.plans("waiting")[0]["plan"], "allowed")
    step_of(part, 4, quarter, charge="2")
    with pytest.raises(cl.AccessDenied, match="its owner is asked"):
        step_of(part, 5, quarter, charge="3")
    with pytest.raises(cl.InvalidDeclaration, match=r"all of them are said to cost ρ = 0\.1"):
        step_of(part, 6, most=Fraction(1, 10))


def test_another_order_alike_stops_no_descent_and_takes_no_yes_from_it() -> None:
    policy = OwnersPolicy([Rule(answer="ask me")], journal=MemoryJournal())
    part = Site("north", TABLE, budget=MUCH, policy=policy).part(TABLE)
    eighth = replace(LAW, scale_squared=4 * LAW.scale_squared)
    with pytest.raises(cl.AccessDenied):
        step_of(part, 0, eighth)
    policy.decide(policy.plans("waiting")[0]["plan"], "allowed")
    step_of(part, 1, eighth)
    with pytest.raises(cl.AccessDenied):
        step_of(part, 2, eighth, charge="2")  # the other order: its owner is asked
    step_of(part, 3, eighth)
    policy.decide(policy.plans("waiting")[0]["plan"], "allowed")
    step_of(part, 4, eighth)
    step_of(part, 5, eighth, charge="2")
    policy.decide(policy.plans("used")[0]["plan"], "denied")
    with pytest.raises(cl.AccessDenied, match="its owner denied"):
        step_of(part, 6, eighth)


def test_a_site_that_could_not_pay_to_the_end_does_not_begin() -> None:
    sites = sites_of(people())
    sites[2] = Site("site 2", sites[2].table, budget=cl.ZCDP("0.4"))
    with session_of(joint_of(sites), cl.ZCDP(1)) as session:
        with pytest.raises(cl.BudgetExceeded, match=r"'site 2' takes no part: the request costs ρ = 0.5 there, and ρ = 0.4"):
            learnt(session)
        assert session.spent == sites[0].spent == cl.ZCDP(0)


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (LinearSVC(), cl.UnsupportedQuery, "hands no rows to a method"),
        (LogisticRegression(method="objective"), cl.UnsupportedQuery, "hands no rows to a method"),
        (LogisticRegression(method="newton"), cl.UnsupportedQuery, "hands no rows to a method"),
        (KernelClassifier(), cl.UnsupportedQuery, "hands no rows to a method"),
        (LogisticRegression(method="best"), InvalidParameter, "known are"),
    ],
    ids=["svm", "objective", "newton", "kernel", "best"],
)
def test_what_needs_rows_is_refused_by_name(model: Any, error: Any, words: str) -> None:
    with session_of(joint_of(sites_of(people(30))), cl.ZCDP(1)) as session:
        with pytest.raises(error, match=words):
            learnt(session, model)
        assert session.spent == cl.ZCDP(0)


def test_a_pure_budget_is_refused_with_what_would_do() -> None:
    with session_of(joint_of(sites_of(people(30))), cl.PureDP(1)) as session:
        with pytest.raises(InvalidParameter, match="draws Gaussian noise"):
            learnt(session)
        assert session.spent == cl.PureDP(0)


def test_a_part_of_the_rows_is_refused() -> None:
    with session_of(joint_of(sites_of(people(30))), cl.ZCDP(1)) as session:
        part = session.on_behalf("ana", rows={"people": Compare(">", Column("age"), Literal(40))})
        with pytest.raises(cl.UnsupportedQuery, match="Learning from a part of the rows of 'people'"):
            learnt(part)
        assert session.spent == cl.ZCDP(0)


def test_a_site_that_stops_answering_is_left_out_and_below_the_quorum_it_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    numbers = SitePart._numbers

    def failing(self: SitePart, round_: Any, request: Any, compiled: Any) -> Any:
        if request.number >= 5 and self.site.name == "site 1":
            raise RuntimeError("41 years")
        return numbers(self, round_, request, compiled)

    monkeypatch.setattr(SitePart, "_numbers", failing)
    sites = sites_of(people())
    with session_of(joint_of(sites, dropouts=0), cl.ZCDP(1)) as session:
        with pytest.raises(cl.CloisterError) as caught:
            learnt(session)
        assert "41" not in f"{caught.value!r}{caught.value.__cause__!r}"
        assert session.spent == cl.ZCDP("0.5")


def test_sites_elsewhere_learn_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    few(monkeypatch)
    rows = people(90)
    held = [cl.PrivateTable({name: values[at::3] for name, values in rows.items()}, columns=COLUMNS) for at in range(3)]
    from cloister.together import SiteAgent

    sites = [
        Site(name, table, budget=MUCH, key=key_of(name), journal=MemoryJournal()) for name, table in zip("abc", held, strict=True)
    ]
    coordinator = coordinator_of("abc")
    with coordinator.serving() as hub, running([SiteAgent(site) for site in sites], hub):
        table = JointTable(coordinator.sites, COLUMNS, overlap="none")
        with cl.Session({"people": table}, budget=cl.ZCDP(1)) as session:
            model = learnt(session)
    assert model.coef_.shape == (1, 4)
    assert all(Fraction("0.49") < site.spent.rho <= Fraction("0.5") for site in sites)  # type: ignore[union-attr]
