"""The mean error of everyday statistics beside OpenDP and SmartNoise SQL, at equal ε, neighbours, bounds and keys.

Each cell is a statistic in groups of so many rows at one ε: every group is a draw of its own. Ours come from `session.sql`, with
their margins; a peer is asked for the number alone, with all of ε. A cell keeps the promise where the upper 95 % limit of the
ratio of mean errors is at most 1.05, or where even the upper limit of their difference is below half a step of the answer.

OpenDP runs here: a mean is a noisy sum over a noisy count, a variance has the squares too, a quantile is its exponential
mechanism on the declared values, the largest groups follow from its histogram. SmartNoise needs other releases than ours: its
interpreter is named by CLOISTER_PEER_SMARTNOISE (an environment with `pip install smartnoise-sql==1.0.10`), and it has no
quantiles. It is given such an ε for each number that its own account of the query is ε.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import opendp.prelude as dp
from _report import report

import cloister as cl

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK")) or "--quick" in sys.argv
DRAWS = 200 if QUICK else 8000
SIZES = (100, 1000) if QUICK else (100, 1000, 100_000)
EPSILONS = (0.1, 1.0) if QUICK else (0.01, 0.1, 1.0, 10.0)
MOST_ROWS, MOST_GROUPS, FEWEST = 2_000_000, 2000, 1000
LOW, HIGH, TOWNS, TOP = 17, 90, 12, 3
LIMIT, SURE = 1.05, 1.645
VARIABLE = "CLOISTER_PEER_SMARTNOISE"


@dataclass(frozen=True)
class Statistic:
    """Its SQL, its step, and the peers that can be asked for it."""

    name: str
    sql: str
    step: float
    exact: Callable[[Whole], float]
    smartnoise: bool = False


def at(share: float) -> Callable[[Whole], float]:
    """The least value that a share of the rows does not exceed."""
    return lambda values: float(np.sort(values)[max(math.ceil(share * len(values) - 1e-9) - 1, 0)])


STATISTICS = (
    Statistic("COUNT", "COUNT(*)", 1, len, True),
    Statistic("SUM", "SUM(age)", 1, lambda values: float(values.sum()), True),
    Statistic("AVG", "AVG(age)", 0.01, lambda values: float(values.mean()), True),
    Statistic("VARIANCE", "VAR_POP(age)", 0.01, lambda values: float(values.var()), True),
    Statistic("median", "MEDIAN(age)", 1, at(0.5)),
    Statistic("quantile 0.9", "QUANTILE(age, 0.9)", 1, at(0.9)),
    Statistic("COUNT(DISTINCT)", "COUNT(DISTINCT age)", 1, lambda values: float(len(np.unique(values)))),
)


@dataclass(frozen=True)
class World:
    """Groups of equally many rows: ages and towns, a row a group."""

    ages: Whole
    towns: Whole

    @classmethod
    def of(cls, rows: int) -> World:
        """As many groups as the limits allow."""
        draw, groups = np.random.default_rng(rows), min(MOST_GROUPS, MOST_ROWS // rows, DRAWS)
        ages = np.clip(np.round(draw.gamma(7.5, 5.3, (groups, rows))), LOW, HIGH).astype(np.int64)
        return cls(ages, np.minimum(draw.geometric(0.25, (groups, rows)) - 1, TOWNS - 1))

    def table(self) -> cl.PrivateTable:
        """Declared: a row is a person."""
        groups, rows = self.ages.shape
        data = {"g": np.repeat(np.arange(groups), rows), "age": self.ages.ravel(), "town": self.towns.ravel()}
        columns = {"g": cl.Integer(0, groups - 1), "age": cl.Integer(LOW, HIGH), "town": cl.Integer(0, TOWNS - 1)}
        return cl.PrivateTable(data, columns=columns)


def main() -> None:
    """Every cell is printed; each statistic's worst is what is promised."""
    worst: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for rows in SIZES:
        world = World.of(rows)
        table, groups = world.table(), len(world.ages)
        runs = -(-max(DRAWS, groups) // groups) if rows <= 1000 else -(-min(DRAWS, FEWEST) // groups)
        for epsilon in EPSILONS:
            mine = [ours(table, epsilon) for _ in range(runs)]
            truth = {each.name: np.array([each.exact(values) for values in world.ages]) for each in STATISTICS}
            truth["AVG beside"] = truth["AVG"]
            truth["histogram"] = tallies(world).ravel().astype(float)
            for name, exact in truth.items():
                found = np.concatenate([np.abs(run[name] - exact) for run in mine])
                step = next((each.step for each in STATISTICS if each.name == name), 0.01 if name == "AVG beside" else 1.0)
                peers = {"OpenDP": np.abs(opendp(name, world, epsilon, runs) - np.tile(exact, runs))}
                if any(each.name == name and each.smartnoise for each in STATISTICS) and rows <= 1000:
                    peers |= smartnoise(name, world, epsilon, exact)
                for peer, errors in peers.items():
                    upper, line = compared(found, errors, step)
                    print(f"{name}, groups of {rows:,}, ε = {epsilon:g}, beside {peer}: {line}", flush=True)
                    worst.setdefault((name, peer), []).append((upper, f"groups of {rows:,} at ε = {epsilon:g}: {line}"))
            theirs = opendp("histogram", world, epsilon, runs).reshape(runs, *tallies(world).shape)
            both = [np.concatenate([lost(run["histogram"].reshape(theirs[0].shape), tallies(world)) for run in mine])]
            both.append(np.concatenate([lost(each, tallies(world)) for each in theirs]))
            upper, line = compared(*both, 1.0)
            worst.setdefault(("top 3", "OpenDP"), []).append((upper, f"groups of {rows:,} at ε = {epsilon:g}: {line}"))
            print(f"top 3, groups of {rows:,}, ε = {epsilon:g}, beside OpenDP: {line}", flush=True)
    for (name, peer), cells in worst.items():
        upper, line = max(cells)
        kept = sum(each <= LIMIT for each, _ in cells)
        detail = f"the worst of {len(cells)} cells, of which {kept} hold; {line}"
        report(f"mean error beside {peer}, {name}, upper limit of the ratio", upper, LIMIT, detail, most=True)


def compared(mine: Floats, theirs: Floats, step: float) -> tuple[float, str]:
    """The upper limit of the ratio of mean errors, 1 where the difference is below half a step; and both in words."""
    ours, peer = float(mine.mean()), float(theirs.mean())
    one, other = float(mine.std()) / math.sqrt(len(mine)), float(theirs.std()) / math.sqrt(len(theirs))
    words = f"mean error {ours:.4g} against {peer:.4g}"
    if ours - peer + SURE * math.hypot(one, other) < step / 2:
        return min(1.0, ours / peer if peer else 1.0), f"{words}, less than half a step more"
    if not ours or not peer:
        return (0.0 if not ours else math.inf), words
    upper = ours / peer * math.exp(SURE * math.hypot(one / ours, other / peer))
    return upper, f"{words}, a ratio of at most {upper:.3f}"


def ours(table: cl.PrivateTable, epsilon: float) -> dict[str, Floats]:
    """The released numbers of all groups, each question with all of ε."""
    found: dict[str, Floats] = {}
    with cl.Session({"t": table}, budget=cl.PureDP(1000)) as session:

        def asked(sql: str, column: str = "x") -> Floats:
            return np.asarray(session.sql(sql, spend=str(epsilon)).to_pandas()[column], dtype=np.float64)

        for each in STATISTICS:
            found[each.name] = asked(f"SELECT g, {each.sql} AS x FROM t GROUP BY g")
        found["AVG beside"] = asked("SELECT g, COUNT(*) AS n, AVG(age) AS x FROM t GROUP BY g")
        found["histogram"] = asked("SELECT g, town, COUNT(*) AS x FROM t GROUP BY g, town")
    return found


def tallies(world: World) -> Whole:
    """The exact histogram of each group."""
    return np.array([np.bincount(each, minlength=TOWNS) for each in world.towns])


def lost(noisy: Floats, exact: Whole) -> Floats:
    """How many rows fewer the three largest towns by the noisy histogram have than the three largest."""
    chosen = np.take_along_axis(exact, np.argsort(-noisy, axis=1, kind="stable")[:, :TOP], axis=1)
    return (np.sort(exact, axis=1)[:, -TOP:].sum(axis=1) - chosen.sum(axis=1)).astype(np.float64)


def opendp(name: str, world: World, epsilon: float, runs: int) -> Floats:
    """The same numbers by its own measurements."""
    rows = (world.towns if name == "histogram" else world.ages).tolist()
    found = [_opendp(name, epsilon)(values) for _ in range(runs) for values in rows]
    return np.array(found, dtype=np.float64).ravel()


@cache
def _opendp(name: str, epsilon: float) -> Callable[[list[int]], Any]:
    dp.enable_features("contrib")
    space = (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())

    def noisy(chain: Any, part: float) -> Any:
        return dp.binary_search_chain(lambda scale: chain >> dp.m.then_laplace(scale), d_in=1, d_out=part, T=float)

    def summed(low: int, high: int, part: float) -> Any:
        return noisy(space >> dp.t.then_clamp((low, high)) >> dp.t.then_sum(), part)

    if name in ("median", "quantile 0.9"):
        scores: Any = space >> dp.t.then_quantile_score_candidates(
            list(range(LOW, HIGH + 1)), alpha=0.5 if name == "median" else 0.9
        )
        choice = dp.binary_search_chain(
            lambda scale: scores >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True), d_in=1, d_out=epsilon, T=float
        )
        return lambda values: LOW + choice(values)
    if name == "histogram":
        towns = list(range(TOWNS))
        count = space >> dp.t.then_count_by_categories(categories=towns, null_category=False)
        return noisy(count, epsilon)  # type: ignore[no-any-return]
    if name == "COUNT(DISTINCT)":
        return noisy(space >> dp.t.then_count_distinct(), epsilon)  # type: ignore[no-any-return]
    if name == "COUNT":
        return noisy(space >> dp.t.then_count(), epsilon)  # type: ignore[no-any-return]
    if name == "SUM":
        return summed(LOW, HIGH, epsilon)  # type: ignore[no-any-return]
    parts = 3 if name == "VARIANCE" else 2
    number, total = noisy(space >> dp.t.then_count(), epsilon / parts), summed(LOW, HIGH, epsilon / parts)
    mean = lambda values: min(max(total(values) / max(number(values), 1), LOW), HIGH)  # noqa: E731
    if name != "VARIANCE":
        return mean
    squares = summed(LOW**2, HIGH**2, epsilon / parts)

    def variance(values: list[int]) -> float:
        count = max(number(values), 1)
        centre = min(max(total(values) / count, LOW), HIGH)
        return min(max(squares([value**2 for value in values]) / count - centre**2, 0.0), ((HIGH - LOW) / 2) ** 2)

    return variance


def smartnoise(name: str, world: World, epsilon: float, exact: Floats) -> dict[str, Floats]:
    """The errors of its answers, by its own interpreter; none where there is no such."""
    interpreter = os.environ.get(VARIABLE)
    if not interpreter:
        _absent()
        return {}
    sql = next(each.sql for each in STATISTICS if each.name == name).replace("VAR_POP", "VARIANCE")
    order = {"sql": sql, "epsilon": epsilon, "ages": world.ages[:FEWEST].tolist(), "bounds": [LOW, HIGH]}
    server = Path(__file__).with_name("_smartnoise_server.py")
    done = subprocess.run([interpreter, str(server)], input=json.dumps(order), capture_output=True, text=True, check=True)
    answers = np.array(json.loads(done.stdout.splitlines()[-1]), dtype=np.float64)
    if name in ("AVG", "VARIANCE"):  # public post-processing, as for the others
        answers = np.clip(np.nan_to_num(answers, nan=LOW), *((LOW, HIGH) if name == "AVG" else (0, ((HIGH - LOW) / 2) ** 2)))
    return {"SmartNoise SQL": np.abs(answers - exact[: len(answers)])}


@cache
def _absent() -> None:
    print(f"*** SmartNoise SQL IS NOT COMPARED WITH: {VARIABLE} names no interpreter that has it ***", flush=True)


if __name__ == "__main__":
    main()
