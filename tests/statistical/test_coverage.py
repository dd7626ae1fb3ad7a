"""Every margin that leaves covers as often as it says: at 90, 95, 99 and 99.9 %, the smallest groups first.

A case makes numbers whose truth is known, many times. What is counted is how many lie within their margin. It fails where so few
would do with a probability below 1e-9 if the margin were right (each number by itself, by the binomial law); there are fewer than
1,000 such counts, so all together raise a false alarm with a probability below 1e-6. The generators are fixed besides.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

import cloister as cl
from cloister import local
from cloister.learn import GaussianNB, LinearRegression, accuracy
from cloister.learn.bayesian.naive_bayes import CategoricalNB
from cloister.learn.frame.examples import Threshold
from cloister.learn.linear_models.linear import Ridge
from cloister.noise import Random
from cloister.session import Release

pytestmark = pytest.mark.statistical

Floats = npt.NDArray[np.float64]
CONFIDENCES = (0.9, 0.95, 0.99, 0.999)
FALSE_ALARM = 1e-9
SIZES = (1, 2, 3, 5, 8, 30)
VALUES = (3, 7, 40, 41, 80, 2, 55, 97, 60, 13)


@dataclass(frozen=True)
class Told:
    """Numbers of one kind: how far each is off, and their margins by confidence."""

    name: str
    off: Floats
    margin: Callable[[float], Floats]


Case = Callable[[Random, int], Iterator[Told]]


def check(told: Told) -> None:
    for confidence in CONFIDENCES:
        margin = np.broadcast_to(np.asarray(told.margin(confidence), dtype=np.float64), told.off.shape)
        inside = int((told.off <= margin * (1 + 1e-9) + 1e-9).sum())
        assert binom.cdf(inside, told.off.size, confidence) > FALSE_ALARM, (
            f"{told.name}: {inside / told.off.size:.4f} of {told.off.size} at {confidence}"
        )


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────


def groups(cells: int, *, key: str = "listed", each: int | None = None) -> tuple[cl.PrivateTable, npt.NDArray[np.int64]]:
    """Groups of the sizes in turn, all with the first of the same values; and how many rows each has."""
    sizes = np.array([each or SIZES[cell % len(SIZES)] for cell in range(cells)])
    names = [f"k{cell:05d}" for cell in range(cells)]
    place = np.concatenate([np.arange(size) for size in sizes])
    x = np.array(VALUES)[place % len(VALUES)]
    cell = np.repeat(np.arange(cells), sizes)
    columns: dict[str, Any] = {"x": cl.Integer(0, 100), "z": cl.Integer(0, 5000)}
    if key == "listed":
        columns |= {"k": cl.Integer(0, cells - 1), "half": cl.Integer(0, 1)}
        rows = {"k": cell, "half": cell % 2}
    else:
        columns["k"] = cl.Text()
        rows = {"k": np.array(names)[cell]}
    return cl.PrivateTable({**rows, "x": x, "z": x * 50}, columns=columns), sizes


def from_release(release: Release, truths: dict[str, Floats], about: str) -> Iterator[Told]:
    values = release.table
    for name, truth in truths.items():
        off = np.abs(values[name].astype(np.float64) - truth)
        off = np.where(np.isnan(off), 0.0, off)  # a quotient by 0 has no truth, and its margin no end
        yield Told(f"{name}, {about}", off, lambda confidence, name=name: release.margin(confidence)[name])


BUDGETS = {"Laplace": cl.PureDP(1000), "Gaussian": cl.ZCDP(1000)}
SQL = {
    "sums": "COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS a, SUM(x) * 2 - COUNT(*) AS w, SUM(x) / COUNT(*) AS r",
    "moments": "VARIANCE(x) AS v, STDDEV_POP(x) AS d, AVG(x) AS a, COUNT(*) AS n",
    "ranks": "MEDIAN(x) AS m, COUNT(*) AS n",
    "rank of many": "QUANTILE_DISC(z, 0.5) AS m",
}


def truths_of(sizes: npt.NDArray[np.int64]) -> dict[str, Floats]:
    rows = [np.array([VALUES[place % len(VALUES)] for place in range(size)], dtype=float) for size in sizes]
    n, s = sizes.astype(float), np.array([each.sum() for each in rows])
    median = np.array([np.sort(each)[(len(each) + 1) // 2 - 1] for each in rows])  # the first that half of the rows reach
    spread = np.array([each.var(ddof=1) if len(each) > 1 else np.nan for each in rows])
    found = {"n": n, "c": n, "s": s, "a": s / n, "w": 2 * s - n, "r": s / n, "m": median, "v": spread}
    return {**found, "d": np.array([each.std() for each in rows])}


def of_statistics(law: str, what: str, spend: str) -> Case:
    def case(random: Random, scale: int) -> Iterator[Told]:
        table, sizes = groups(900 * scale)
        known = truths_of(sizes)
        if what == "rank of many":
            known["m"] = known["m"] * 50
        with cl.Session({"t": table}, budget=BUDGETS[law], random=random) as session:
            answer = session.sql(f"SELECT k, {SQL[what]} FROM t GROUP BY k ORDER BY k", spend=spend)
        yield from from_release(answer, {name: known[name] for name in answer.statistics()}, f"{law} at {spend}")

    return case


def of_several_purchases(random: Random, scale: int) -> Iterator[Told]:
    """Bought twice and combined; sums of finer groups; rolled up and rounded together."""
    table, sizes = groups(600 * scale)
    known = truths_of(sizes)
    with cl.Session({"t": table}, budget=cl.PureDP(1000), random=random) as session:
        session.sql("SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k ORDER BY k", spend="0.5")
        twice = session.sql("SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k ORDER BY k", spend=2)
    yield from from_release(twice, {name: known[name] for name in "ns"}, "bought twice")
    offs: dict[str, list[float]] = {}
    margins: dict[str, dict[float, list[float]]] = {}
    for _ in range(60 * scale):
        table, sizes = groups(4, each=2)
        with cl.Session({"t": table}, budget=cl.PureDP(1000), random=random) as session:
            session.sql("SELECT half, k, COUNT(*) AS n FROM t GROUP BY half, k", spend=1)
            finer = session.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k", spend=1)
            rolled = session.sql("SELECT half, COUNT(*) AS n FROM t GROUP BY ROLLUP (half)", spend=1)
        for name, answer, truth in (("finer", finer, 2.0), ("rolled up", rolled, None)):
            place = 0 if truth is not None else int(np.argmax(answer.table["n"]))
            offs.setdefault(name, []).append(abs(float(answer.table["n"][place]) - (truth or 8.0)))
            for confidence in CONFIDENCES:
                wide = float(answer.margin(confidence)["n"][place])
                margins.setdefault(name, {}).setdefault(confidence, []).append(wide)
    for name, off in offs.items():
        yield Told(name, np.array(off), lambda confidence, name=name: np.array(margins[name][confidence]))


def of_undeclared_keys(budget: Any, spend: str, *, unit: bool) -> Case:
    """Groups about the threshold: what is counted is those that are shown, as its reader does."""

    def case(random: Random, scale: int) -> Iterator[Told]:
        counts = "COUNT(DISTINCT p) AS n, COUNT(DISTINCT p) * 3 AS t" if unit else "COUNT(*) AS n, COUNT(*) * 3 AS t"
        sql = f"SELECT k, {counts}, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY k"
        for each in (1, 2, 4, 6, 7, 8, 9, 10, 12, 20):
            cells = 1500 * scale
            key = np.repeat([f"k{cell:05d}" for cell in range(cells)], each)
            rows = {"k": key, "x": np.tile(np.array(VALUES)[np.arange(each) % 10], cells), "p": np.arange(cells * each)}
            of_whom: dict[str, Any] = {"unit": "p", "max_rows": 1} if unit else {}
            table = cl.PrivateTable(rows, columns={"k": cl.Text(), "x": cl.Integer(0, 100)}, **of_whom)
            with cl.Session({"t": table}, budget=budget, random=random) as session:
                answer = session.sql(sql, spend=spend)
            if not answer.num_rows:
                continue
            total = float(sum(VALUES[place % 10] for place in range(each)))
            truths = {"n": each, "t": 3 * each, "s": total, "a": total / each}
            shown = {name: np.full(answer.num_rows, float(truth)) for name, truth in truths.items()}
            yield from from_release(answer, shown, f"undeclared, {each} persons, {budget}")

    return case


def of_joint_margins(random: Random, scale: int) -> Iterator[Told]:
    """All cells of a release at once: off by as many margins as the worst of them."""
    table, _ = groups(12 * 250 * scale, each=3)
    with cl.Session({"t": table}, budget=cl.PureDP(1000), random=random) as session:
        answer = replace(session.sql("SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k ORDER BY k", spend=1), cells=12)
    off = {"n": np.abs(answer.table["n"] - 3.0), "s": np.abs(answer.table["s"] - float(sum(VALUES[:3])))}

    def ratio(confidence: float) -> Floats:
        wide = answer.margin(confidence, joint=True)
        worst = np.max([off[name] / wide[name] for name in off], axis=0)
        return np.asarray(2 - worst.reshape(-1, 12).max(axis=1))  # 1 or more where all are inside

    yield Told("all cells at once", np.ones(250 * scale), ratio)


# ── models and scores ────────────────────────────────────────────────────────────────────────────


def many(runs: int, made: Callable[[], dict[str, tuple[Any, Callable[[float], Any]]]], about: str) -> Iterator[Told]:
    """The same thing made many times: off and margins of each number, the first of an array."""
    offs: dict[str, list[Any]] = {}
    margins: dict[str, dict[float, list[Any]]] = {}
    for _ in range(runs):
        for name, (off, margin) in made().items():
            offs.setdefault(name, []).append(np.ravel(off))
            for confidence in CONFIDENCES:
                wide = np.broadcast_to(margin(confidence), np.shape(off))
                margins.setdefault(name, {}).setdefault(confidence, []).append(np.ravel(wide))
    for name, off in offs.items():
        for place in range(min(len(off[0]), 2)):  # numbers of one release go together, so each has a count of its own
            yield Told(
                f"{name}[{place}], {about}",
                np.array([each[place] for each in off]),
                lambda confidence, name=name, place=place: np.array([each[place] for each in margins[name][confidence]]),
            )


def of_naive_bayes(rows: int, delta: str | None, runs: int) -> Case:
    def case(random: Random, scale: int) -> Iterator[Told]:
        grid = (np.arange(rows) + 0.5) / rows
        X = np.concatenate([0.4 * grid, 0.5 + 0.5 * grid, 0.5 + 0.5 * grid])[:, None]
        y = np.repeat([0, 1], [rows, 2 * rows])
        theta, var = (np.array([[f(X[y == label])] for label in (0, 1)]) for f in (np.mean, np.var))

        def made() -> dict[str, Any]:
            model = GaussianNB(epsilon=1, delta=delta, bounds=(0, 1), random=random).fit(X, y)
            off = {"class_count": model.class_count_ - [rows, 2 * rows], "theta": model.theta_ - theta, "var": model.var_ - var}
            return {
                name: (np.abs(each), lambda confidence, name=name: model.margin(confidence)[name]) for name, each in off.items()
            }

        yield from many(runs * scale, made, f"GaussianNB, {rows} rows, δ = {delta}")

    return case


def of_class_counts(epsilon: str, features: int) -> Case:
    def case(random: Random, scale: int) -> Iterator[Told]:
        X, y = np.array([[row % 2] * features for row in range(12)]), np.repeat([0, 1], [4, 8])

        def made() -> dict[str, Any]:
            model = CategoricalNB(epsilon=epsilon, categories=[2] * features, random=random).fit(X, y)
            return {"class_count": (np.abs(model.class_count_ - [4, 8]), lambda c: model.margin(c)["class_count"])}

        yield from many(400 * scale, made, f"CategoricalNB, ε = {epsilon}, {features} features")

    return case


def of_scores(rows: int, delta: str | None) -> Case:
    def case(random: Random, scale: int) -> Iterator[Told]:
        X = ((np.arange(rows) + 0.5) / rows)[:, None]
        y = (X[:, 0] > 0.5).astype(int)
        model = Threshold(bounds=(0, 1), at="0.3", privacy=None).fit(X, y)
        exact = float((model.predict(X) == y).mean())

        def made() -> dict[str, Any]:
            score = accuracy(model, X, y, epsilon=1, delta=delta, random=random)
            return {"accuracy": (abs(score.value - exact), score.margin)}

        yield from many(400 * scale, made, f"{rows} rows, δ = {delta}")

    return case


# ── local reports ────────────────────────────────────────────────────────────────────────────────


def of_lines(kind: Any, rows: int, features: int, delta: str | None, runs: int) -> Case:
    """Against the same model without noise. Where nothing is known margins have no end; with many rows they must have one."""

    def case(random: Random, scale: int) -> Iterator[Told]:
        place = np.arange(rows)[:, None]
        X = (0.5 + place * (0.618034, 0.414214, 0.732051)[:features]) % 1
        y = 0.2 + 0.5 * X[:, 0] + 0.1 * X[:, -1] + 0.1 * np.sin(np.arange(rows))
        given: dict[str, Any] = {"bounds": (0, 1), "bounds_y": (0, 1)}
        exact = kind(privacy=None, **given).fit(X, y)

        def made() -> dict[str, Any]:
            model = kind(epsilon=2, delta=delta, random=random, **given).fit(X, y)
            if rows >= 10_000:
                assert max(*model.margin(0.95)["coef"], model.margin(0.95)["intercept"]) < 0.25
            return {
                "coef": (np.abs(model.coef_ - exact.coef_), lambda c: model.margin(c)["coef"]),
                "intercept": (abs(model.intercept_ - exact.intercept_), lambda c: model.margin(c)["intercept"]),
            }

        yield from many(runs * scale, made, f"{kind.__name__}, {rows} rows, {features} features, δ = {delta}")

    return case


def of_lines_from_tables(rows: int) -> Case:
    def case(random: Random, scale: int) -> Iterator[Told]:
        a, b = (7 * np.arange(rows)) % 101, (3 * np.arange(rows)) % 11
        y = np.clip(a // 3 + 2 * b + np.arange(rows) % 5, 0, 60)
        columns = {"a": cl.Integer(0, 100), "b": cl.Integer(0, 10), "y": cl.Integer(0, 60)}
        table = cl.PrivateTable({"a": a, "b": b, "y": y}, columns=columns)
        exact = LinearRegression(privacy=None, bounds=([0, 0], [100, 10]), bounds_y=(0, 60)).fit(np.stack([a, b], axis=1), y)
        with cl.Session({"t": table}, budget=cl.PureDP(10**6), random=random) as session:

            def made() -> dict[str, Any]:
                model = LinearRegression().fit_table(session, "t", features=["a", "b"], target="y", spend=1)
                return {
                    "coef": (np.abs(model.coef_ - exact.coef_), lambda c: model.margin(c)["coef"]),
                    "intercept": (abs(model.intercept_ - exact.intercept_), lambda c: model.margin(c)["intercept"]),
                }

            yield from many(30 * scale, made, f"from a table of {rows} rows")

    return case


def of_oracle(name: str, oracle: Any, people: int) -> Case:
    """A value that some hold, one that nobody holds; and the same after counts were made consistent."""

    def case(random: Random, scale: int) -> Iterator[Told]:
        values = [0] * (people // 2) + [1] * (people - people // 2)
        truth = np.array([people // 2, 0.0])

        def made() -> dict[str, Any]:
            found = oracle.estimate(oracle.aggregate(oracle.randomize(values, random=random)))
            fit = found.consistent()
            return {
                "count": (np.abs(found.counts[[0, 3]] - truth), lambda c: found.margin(c)[[0, 3]]),
                "consistent": (np.abs(fit.counts[[0, 3]] - truth), lambda c: fit.margin(c)[[0, 3]]),
            }

        yield from many(300 * scale, made, f"{name}, {people} people")

    return case


def of_number(name: str, mechanism: Any, people: int) -> Case:
    def case(random: Random, scale: int) -> Iterator[Told]:
        values = 10 * ((np.arange(people) + 0.5) / people) ** 3

        def made() -> dict[str, Any]:
            mean = mechanism.mean(mechanism.randomize(values, random=random))
            return {"mean": (abs(mean.value - values.mean()), mean.margin)}

        yield from many(300 * scale, made, f"{name}, {people} people")

    return case


def oracles(epsilon: Any) -> dict[str, Any]:
    domain = list(range(6))
    return {
        "direct": local.DirectEncoding(domain, epsilon=epsilon),
        "unary": local.UnaryEncoding(domain, epsilon=epsilon, optimized=True),
        "histogram": local.HistogramEncoding(domain, epsilon=epsilon),
        "hashing": local.LocalHashing(domain, epsilon=epsilon),
        "Hadamard": local.HadamardResponse(domain, epsilon=epsilon),
        "subset": local.SubsetSelection(domain, epsilon=epsilon),
    }


def mechanisms(epsilon: Any) -> dict[str, Any]:
    made = (local.LocalLaplace, local.Duchi, local.Piecewise, local.Hybrid, local.SquareWave, local.OptimalPiecewise)
    return {each.__name__: each(0, 10, epsilon) for each in made}


QUICK: dict[str, Case] = {
    **{f"{what}, {law}": of_statistics(law, what, "1") for what in ("sums", "ranks") for law in BUDGETS},
    "moments": of_statistics("Laplace", "moments", "4"),
    "a rank of many values": of_statistics("Gaussian", "rank of many", "4"),
    "several purchases": of_several_purchases,
    "joint": of_joint_margins,
    "undeclared keys": of_undeclared_keys(cl.ApproxDP(50, "0.1"), "2", unit=False),
    "undeclared keys, Gaussian": of_undeclared_keys(cl.ZCDP(50, delta="0.1"), "0.3", unit=True),
    "naive Bayes": of_naive_bayes(20, None, 250),
    "class counts": of_class_counts("1", 1),
    "scores": of_scores(40, None),
    **{f"a line of {rows}": of_lines(LinearRegression, rows, 2, None, 60) for rows in (5, 100, 1000, 20_000)},
    **{f"{name} of few": of_oracle(name, oracle, 10) for name, oracle in oracles(3).items() if name in ("direct", "unary")},
    "Hadamard of few": of_oracle("Hadamard", oracles(1)["Hadamard"], 40),
    **{
        f"{name} of one": of_number(name, each, 1)
        for name, each in mechanisms(1).items()
        if name in ("LocalLaplace", "Duchi", "Piecewise", "SquareWave")
    },
}

SLOW: dict[str, Case] = {
    **{
        f"{what}, {law} at {spend}": of_statistics(law, what, spend)
        for what in SQL
        for law in BUDGETS
        for spend in ("0.1", "1", "4", "10")
    },
    "several purchases": of_several_purchases,
    "joint": of_joint_margins,
    **{
        f"undeclared keys, {budget} at {spend}, {unit}": of_undeclared_keys(budget, spend, unit=unit)
        for budget, spends in ((cl.ApproxDP(50, "0.1"), ("1", "2", "4")), (cl.ZCDP(50, delta="0.1"), ("0.1", "0.3", "2")))
        for spend in spends
        for unit in (False, True)
    },
    **{f"naive Bayes, {rows}, {delta}": of_naive_bayes(rows, delta, 300) for rows in (5, 20, 200) for delta in (None, "1e-5")},
    **{f"class counts, {e}, {d}": of_class_counts(e, d) for e in ("0.3", "1", "3") for d in (1, 3)},
    **{f"scores, {rows}, {delta}": of_scores(rows, delta) for rows in (10, 40, 400) for delta in (None, "1e-5")},
    **{
        f"{kind.__name__}, {rows}, {features}, {delta}": of_lines(kind, rows, features, delta, 60)
        for kind in (LinearRegression, Ridge)
        for rows in (5, 20, 100, 1000, 10_000)
        for features in (1, 2, 3)
        for delta in (None, "1e-5")
    },
    **{f"a line from a table of {rows}": of_lines_from_tables(rows) for rows in (5, 100, 1000, 10_000)},
    **{
        f"{name}, {e}, {n}": of_oracle(name, oracle, n)
        for e in ("0.5", "1", "3")
        for name, oracle in oracles(e).items()
        for n in (1, 2, 4, 10, 40, 400)
    },
    **{
        f"{name}, {e}, {n}": of_number(name, each, n)
        for e in ("0.5", "1", "4")
        for name, each in mechanisms(e).items()
        for n in (1, 2, 4, 10, 30, 300)
    },
}


@pytest.mark.parametrize("name", QUICK)
def test_margins_cover_as_often_as_they_say(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for told in QUICK[name](Random.deterministic(31), 1):
            check(told)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # some make thousands of models or scores, on machines that do other things besides
@pytest.mark.parametrize("name", SLOW)
def test_margins_cover_as_often_as_they_say_everywhere(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for told in SLOW[name](Random.deterministic(32), 5):
            check(told)


def test_a_margin_that_is_too_narrow_is_found() -> None:
    """Normal numbers with the margins of a deviation that is 15 % too small; margins of another law in the tail alone."""
    uniform = (Random.deterministic(3).words(4000) >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    off = -np.log(uniform)  # the sizes of Laplace numbers
    check(Told("right", off, lambda confidence: np.array(-np.log1p(-confidence))))
    for narrow in (lambda c: -0.85 * np.log1p(-c), lambda c: min(-np.log1p(-c), 5.0)):
        with pytest.raises(AssertionError, match="wrong"):
            check(Told("wrong", off, lambda confidence, narrow=narrow: np.array(narrow(confidence))))
