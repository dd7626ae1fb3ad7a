"""The mean error of everyday statistics beside OpenDP and SmartNoise SQL, at equal ε, neighbours, bounds and keys.

Each cell is a statistic in groups of so many rows at one ε: every group is a draw of its own. Ours come from `session.sql`, with
their margins; a peer is asked for the number alone, with all of ε. A cell keeps the promise where the upper 95 % limit of the
ratio of mean errors is at most 1.05, or where even the upper limit of their difference is below half a step of the answer; it
breaks it where the lower limits say so; otherwise so many draws don't tell. Arguments name the statistics: all where there are
none.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
DRAWS = 8000 if QUICK else 20_000
SIZES = (100,) if QUICK else (100, 1000, 100_000)
EPSILONS = (0.1, 1.0) if QUICK else (0.01, 0.1, 1.0, 10.0)
MOST_ROWS, MOST_GROUPS, FEWEST = 2_000_000, 2000, 1000
LOW, HIGH, TOWNS, TOP = 17, 90, 12, 3
LIMIT, SURE = 1.05, 1.645
VARIABLE = "CLOISTER_PEER_SMARTNOISE"


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


@dataclass(frozen=True)
class Statistic:
    """Its SQL, the step of its answer, its exact values, and whether SmartNoise can be asked for it."""

    sql: str
    step: float
    truth: Callable[[World], Floats]
    smartnoise: bool = False


def alone(statistic: str, step: float, exact: Callable[[Whole], float], *, smartnoise: bool = False) -> Statistic:
    """One number a group."""
    truth = lambda world: np.array([exact(values) for values in world.ages])  # noqa: E731
    return Statistic(f"SELECT g, {statistic} AS x FROM t GROUP BY g", step, truth, smartnoise)


def at(share: float) -> Callable[[Whole], float]:
    """The least value that a share of the rows does not exceed."""
    return lambda values: float(np.sort(values)[max(math.ceil(share * len(values) - 1e-9) - 1, 0)])


def tallies(world: World) -> Whole:
    """The exact histogram of each group."""
    return np.array([np.bincount(each, minlength=TOWNS) for each in world.towns])


AVG = alone("AVG(age)", 0.01, lambda values: float(values.mean()), smartnoise=True)
ASKED = {
    "COUNT": alone("COUNT(*)", 1, len, smartnoise=True),
    "SUM": alone("SUM(age)", 1, lambda values: float(values.sum()), smartnoise=True),
    "AVG": AVG,
    "AVG beside": replace(AVG, sql="SELECT g, COUNT(*) AS n, AVG(age) AS x FROM t GROUP BY g", smartnoise=False),
    "VARIANCE": alone("VAR_POP(age)", 0.01, lambda values: float(values.var()), smartnoise=True),
    "median": alone("MEDIAN(age)", 1, at(0.5)),
    "quantile 0.9": alone("QUANTILE(age, 0.9)", 1, at(0.9)),
    "COUNT(DISTINCT)": alone("COUNT(DISTINCT age)", 1, lambda values: float(len(np.unique(values)))),
    "histogram": Statistic(
        "SELECT g, town, COUNT(*) AS x FROM t GROUP BY g, town", 1, lambda world: tallies(world).ravel().astype(np.float64)
    ),
}


@dataclass(frozen=True)
class Cell:
    """One comparison: the ratio of mean errors with its 95 % limits, each to one side."""

    where: str
    words: str
    lower: float
    upper: float

    @property
    def holds(self) -> bool:
        """Whether the promise is shown to be kept; neither this nor `breaks`: so many draws don't tell."""
        return self.upper <= LIMIT

    @property
    def breaks(self) -> bool:
        """Whether it is shown to be broken."""
        return self.lower > LIMIT

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "DOES NOT HOLD" if self.breaks else "not told by so many draws"
        return f"{self.where}: {self.words}: {verdict}"


def main() -> None:
    """Every cell is printed; what is reported of a statistic is its worst cell of those that the draws tell."""
    wanted = [each for each in sys.argv[1:] if not each.startswith("-")]
    cells: dict[tuple[str, str], list[Cell]] = {}

    def kept(name: str, peer: str, where: str, mine: Floats, theirs: Floats, step: float) -> None:
        cells.setdefault((name, peer), []).append(cell := compared(where, mine, theirs, step))
        print(f"{name} beside {peer}, {cell}", flush=True)

    asked = {name: how for name, how in ASKED.items() if not wanted or name in wanted}
    for rows in SIZES:
        world = World.of(rows)
        table, groups = world.table(), len(world.ages)
        runs = -(-max(DRAWS, groups) // groups) if rows <= 1000 else -(-min(DRAWS, FEWEST) // groups)
        truth = {name: how.truth(world) for name, how in asked.items()}
        for epsilon in EPSILONS:
            where = f"groups of {rows:,}, ε = {epsilon:g}"
            mine = [ours(table, epsilon, asked) for _ in range(runs)]
            for name, how in asked.items():
                exact, found = truth[name], np.concatenate([run[name] for run in mine])
                theirs, repeated = opendp(name, world, epsilon, runs), np.tile(exact, runs)
                errors = np.abs(found - repeated)
                kept(name, "OpenDP", where, errors, np.abs(theirs - repeated), how.step)
                if how.smartnoise and rows <= 1000:
                    for peer, others in smartnoise(name, world, epsilon, exact).items():
                        kept(name, peer, where, errors, others, how.step)
                if name == "histogram":
                    tall = np.tile(tallies(world), (runs, 1))
                    kept("top 3", "OpenDP", where, *(lost(each.reshape(tall.shape), tall) for each in (found, theirs)), 1.0)
    for (name, peer), found in cells.items():
        clear = [each for each in found if each.breaks] or [each for each in found if each.holds]
        if clear:
            worst, broken = max(clear, key=lambda each: each.upper), clear[0].breaks
            limit, value = ("lower", worst.lower) if broken else ("upper", worst.upper)
            counts = [sum(holds) for holds in zip(*((each.holds, each.breaks) for each in found), strict=True)]
            told = f"of {len(found)} cells {counts[0]} hold, {counts[1]} don't, {len(found) - sum(counts)} are not told"
            detail = f"{told}; {worst.where}: {worst.words}"
            report(f"mean error beside {peer}, {name}, {limit} limit of the ratio", value, LIMIT, detail, most=True)


def compared(where: str, mine: Floats, theirs: Floats, step: float) -> Cell:
    """The limits of the ratio of mean errors; at most 1 where the difference is below half a step."""
    ours, peer = float(mine.mean()), float(theirs.mean())
    one, other = float(mine.std()) / math.sqrt(len(mine)), float(theirs.std()) / math.sqrt(len(theirs))
    words = f"mean error {ours:.4g} against {peer:.4g}"
    more, sure = ours - peer, SURE * math.hypot(one, other)
    if more + sure < step / 2:
        ratio = min(1.0, ours / peer if peer else 1.0)
        return Cell(where, f"{words}, less than half a step more", ratio, ratio)
    if not ours or not peer:
        return Cell(where, words, 0.0, math.inf)
    factor = math.exp(SURE * math.hypot(one / ours, other / peer))
    lower, upper = ours / peer / factor, ours / peer * factor
    if more - sure < step / 2:  # it may be less than half a step
        lower = min(lower, 1.0)
    return Cell(where, f"{words}, a ratio between {ours / peer / factor:.3f} and {upper:.3f}", lower, upper)


def ours(table: cl.PrivateTable, epsilon: float, asked: Mapping[str, Statistic]) -> dict[str, Floats]:
    """The released numbers of all groups, each question with all of ε."""
    with cl.Session({"t": table}, budget=cl.PureDP(1000)) as session:
        answers = {name: session.sql(how.sql, spend=str(epsilon)).to_pandas() for name, how in asked.items()}
    return {name: np.asarray(answer["x"], dtype=np.float64) for name, answer in answers.items()}


def lost(noisy: Floats, exact: Whole) -> Floats:
    """How many rows fewer the three largest towns by the noisy histogram have than the three largest."""
    chosen = np.take_along_axis(exact, np.argsort(-noisy, axis=1, kind="stable")[:, :TOP], axis=1)
    return (np.sort(exact, axis=1)[:, -TOP:].sum(axis=1) - chosen.sum(axis=1)).astype(np.float64)


def opendp(name: str, world: World, epsilon: float, runs: int) -> Floats:
    """The same numbers by its own measurements."""
    rows = (world.towns if name == "histogram" else world.ages).astype(np.int32)
    found = [_opendp(name, epsilon)(values) for _ in range(runs) for values in rows]
    return np.array(found, dtype=np.float64).ravel()


@cache
def _opendp(name: str, epsilon: float) -> Callable[[npt.NDArray[np.int32]], Any]:
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

    def variance(values: npt.NDArray[np.int32]) -> float:
        count = max(number(values), 1)
        centre = min(max(total(values) / count, LOW), HIGH)
        return min(max(squares(values**2) / count - centre**2, 0.0), ((HIGH - LOW) / 2) ** 2)

    return variance


def smartnoise(name: str, world: World, epsilon: float, exact: Floats) -> dict[str, Floats]:
    """The errors of its answers, by its own interpreter; none where there is no such."""
    interpreter = os.environ.get(VARIABLE)
    if not interpreter:
        _absent()
        return {}
    sql = ASKED[name].sql.replace("VAR_POP", "VARIANCE").replace("FROM t", "FROM s.t")
    ages, runs = world.ages[:FEWEST].tolist(), -(-DRAWS // 2 // FEWEST)
    order = {"sql": sql, "epsilon": epsilon, "ages": ages, "bounds": [LOW, HIGH], "runs": runs}
    server = Path(__file__).with_name("_smartnoise_server.py")
    done = subprocess.run([interpreter, str(server)], input=json.dumps(order), capture_output=True, text=True, check=True)
    answers = np.array(json.loads(done.stdout.splitlines()[-1]), dtype=np.float64)
    if name in ("AVG", "VARIANCE"):  # public post-processing, as for the others
        answers = np.clip(np.nan_to_num(answers, nan=LOW), *((LOW, HIGH) if name == "AVG" else (0, ((HIGH - LOW) / 2) ** 2)))
    return {"SmartNoise SQL": np.abs(answers - np.tile(exact[: len(ages)], runs))}


@cache
def _absent() -> None:
    print(f"*** SmartNoise SQL IS NOT COMPARED WITH: {VARIABLE} names no interpreter that has it ***", flush=True)


if __name__ == "__main__":
    main()
