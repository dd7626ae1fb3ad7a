"""A joint table of five sites: a count beside each site's own, models and a synthetic table beside those of the pooled rows.

All sites are in one process and take turns. What each of them did is counted apart, in processor time, and in each step the
slowest counts: so it would be if each were a machine of its own. No wire is in it. Questions differ from round to round, so that
none is answered from what was stored.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _report import report

import cloister as cl
from cloister.learn import PCA, GaussianNB, KMeans, LinearRegression
from cloister.noise import DiscreteLaplace
from cloister.together import JointTable, Site, SiteRound
from cloister.together.messages import MAGIC
from cloister.together.site import SitePart

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
SITES, ROWS = 5, 20_000 if QUICK else 200_000
SITED = f"{SITES} sites of {ROWS:,} rows"
ROUNDS = 5 if QUICK else 15
COLUMNS = {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"]), "pay": cl.Integer(0, 1000), "height": cl.Integer(140, 210)}
BUDGET = cl.PureDP(10**6)


def rows(place: int) -> dict[str, Any]:
    """One site's."""
    words = np.random.default_rng(place).integers(0, 2**31, size=(4, ROWS))
    ages = 17 + words[0] % 74
    return {
        "age": ages,
        "sex": np.array(["F", "M"])[words[1] % 2],
        "pay": ages * 5 + words[2] % 500,
        "height": 150 + words[3] % 50,
    }


def main() -> None:
    """Measure, print for people, print for programs."""
    held = [rows(place) for place in range(SITES)]
    sites = [Site(f"site {place}", cl.PrivateTable(each, columns=COLUMNS), budget=BUDGET) for place, each in enumerate(held)]
    pooled = {name: np.concatenate([each[name] for each in held]) for name in COLUMNS}
    joint = cl.Session({"people": JointTable(sites, COLUMNS, overlap="none", missing=1)}, budget=BUDGET)
    central = cl.Session({"people": cl.PrivateTable(pooled, columns=COLUMNS)}, budget=BUDGET)
    alone = cl.Session({"people": cl.PrivateTable(held[0], columns=COLUMNS)}, budget=BUDGET)
    together, own, apart = compared(counting(joint), counting(alone), ROUNDS)
    detail = f"{1000 * together:.0f} ms ({1000 * apart:.0f} ms one after another), and {1000 * own:.0f} ms at one site; {SITED}"
    report("a count over 5 sites, milliseconds over one site's own", 1000 * (together - own), 150, detail, most=True)
    crafts(joint, central)
    spread(joint)


class Apart:
    """Processor time of each step of each site, while it is entered."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, ...], list[float]] = defaultdict(list)

    def __enter__(self) -> Apart:
        self._kept = SiteRound.answer, SitePart.compiled
        answer, compiled = self._kept
        SiteRound.answer = self._timed(answer, lambda site, data: (site.round.id, _kind_of(data)))  # type: ignore[method-assign]
        SitePart.compiled = self._timed(compiled, lambda part, request: ("compiled", str(id(request))))  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        SiteRound.answer, SitePart.compiled = self._kept  # type: ignore[method-assign]

    def _timed(self, work: Callable[..., Any], key: Callable[..., tuple[str, ...]]) -> Any:
        def timed(one: Any, other: Any, *more: Any) -> Any:
            begun = time.process_time()
            try:
                return work(one, other, *more)
            finally:
                self.seconds[key(one, other)].append(time.process_time() - begun)

        return timed

    @property
    def waited(self) -> float:
        """What the others of each step took beside its slowest."""
        return sum(sum(each) - max(each) for each in self.seconds.values())


def _kind_of(message: bytes) -> str:
    length = int.from_bytes(message[len(MAGIC) : len(MAGIC) + 4], "big")
    return str(json.loads(message[len(MAGIC) + 4 : len(MAGIC) + 4 + length])["kind"])


def compared(joint: Callable[[int], object], other: Callable[[int], object], rounds: int) -> tuple[float, float, float]:
    """Median processor seconds: of the joint one with its sites at once, of the other, and of the joint one in one process."""
    found: list[tuple[float, float, float]] = []
    for place in range(rounds + 1):
        with Apart() as apart:
            begun = time.process_time()
            joint(place)
            whole = time.process_time() - begun
        begun = time.process_time()
        other(place)
        found.append((whole - apart.waited, time.process_time() - begun, whole))
    medians = [statistics.median(column) for column in zip(*found[1:], strict=True)]
    return medians[0], medians[1], medians[2]


def counting(session: cl.Session) -> Callable[[int], object]:
    """A count that was not asked before."""
    return lambda place: session.sql(f"SELECT COUNT(*) AS n FROM people WHERE pay < {100 + place}", spend="0.5")


def crafts(joint: cl.Session, central: cl.Session) -> None:
    """Models and a synthetic table, each fitted anew in every round."""
    two, three = ["age", "height"], ["age", "height", "pay"]
    fits: dict[str, Callable[[cl.Session, int], object]] = {
        "linear regression": lambda s, e: LinearRegression(epsilon=1).fit_table(s, "people", features=two, target="pay", spend=e),
        "naive Bayes": lambda s, e: GaussianNB(epsilon=1).fit_table(s, "people", features=two, target="sex", spend=e),
        "principal components": lambda s, e: PCA(2, epsilon=1).fit_table(s, "people", features=three, spend=e),
        "k-means": lambda s, e: KMeans(2, epsilon=1).fit_table(s, "people", features=two, spend=e),
        "a synthetic table": lambda s, e: cl.synth.fit(s, "people", spend=e, method="pairs"),
    }
    for name, fit in fits.items():
        both, one, whole = compared(partial(_fitted, fit, joint), partial(_fitted, fit, central), 3)
        detail = f"{both:.2f} s ({whole:.2f} s one after another), and {one:.2f} s of the pooled rows; {SITED}"
        report(f"{name} over 5 sites, times the pooled one", both / one, 3, detail, most=True)


def _fitted(fit: Callable[[cl.Session, int], object], session: cl.Session, place: int) -> object:
    return fit(session, place + 1)


def spread(joint: cl.Session) -> None:
    """The variance of a count over 5 sites of which one may be missing, over that of one central noise."""
    found: dict[str, list[int]] = {"F": [], "M": []}
    for place in range(40 if QUICK else 150):
        text = f"SELECT sex, COUNT(*) AS n FROM people WHERE height < {1000 + place} GROUP BY sex"  # all rows, in other words
        answer = joint.sql(text, spend="0.1").to_pydict()
        for sex, count in zip(answer["sex"], answer["n"], strict=True):
            found[sex].append(count)
    measured = statistics.fmean(statistics.variance(counts) for counts in found.values())
    central = DiscreteLaplace(scale=10).variance
    detail = f"over N/(quorum − t) = 5/3 of a central variance, against 5 for noise at each site; {2 * len(found['F'])} counts"
    report("noise of a count over 5 sites of which one may be missing", measured / central / (5 / 3), 1.3, detail, most=True)


if __name__ == "__main__":
    main()
