"""The peers' own tutorials in our SQL: how wide our answers are, against theirs, at equal ε, unit, bounds and declared keys.

Counts and sums are compared by their exact 95 % margins. A mean is compared by the 95 % quantile of its error over all groups:
ours over many sessions with fresh noise, the peers' by drawing noise of their scale on the exact totals. One line for each
tutorial and peer: the worst statistic, ours / theirs. `--table` prints the table of docs/how-to/compare-with-peers.md too.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from _peers import CONFIDENCE, PEERS, Groups, Statistic
from _report import report

import cloister as cl
from cloister.noise import Random

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ROUNDS = 20 if QUICK else 200
EXACT = 10**12  # a spend at which the noise is nil
DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
LIMIT = 1.01

Table = Callable[[], cl.PrivateTable]


@dataclass(frozen=True, kw_only=True)
class Tutorial:
    """What a peer's tutorial asks, as one SQL statement about the table `t`, and which statistics it has."""

    name: str
    table: Table
    sql: str
    statistics: tuple[Statistic, ...]
    rows: int = 1
    epsilon: int = 1
    needs: Path | None = None


def restaurant() -> cl.PrivateTable:
    """A week of visits to a restaurant, at most four of a visitor."""
    return cl.PrivateTable(
        DATA / "google_dp" / "restaurant_week.csv",
        columns={
            "Day": cl.Integer(1, 7),
            "Time spent (minutes)": cl.Integer(0, 60),
            "Money spent (euros)": cl.Integer(0, 60),
        },
        unit="VisitorId",
        max_rows=4,
    )


def library(members: int = 10_000) -> cl.PrivateTable:
    """Members of a library, invented by a seeded generator, one row a member."""
    draw = np.random.default_rng(5)
    levels = ["up-to-high-school", "high-school-diploma", "bachelors-associate", "masters-degree", "doctorate-professional"]
    ages = np.clip(np.round(draw.normal(38, 18, members)), 4, 100).astype(np.int64)
    return cl.PrivateTable(
        {
            "age": ages,
            "education_level": np.array(levels, dtype=object)[draw.choice(5, members, p=[0.2, 0.3, 0.3, 0.15, 0.05])],
            "books_borrowed": np.minimum(draw.geometric(0.07, members), 100),
        },
        columns={"age": cl.Integer(0, 100), "education_level": cl.Category(levels), "books_borrowed": cl.Integer(0, 100)},
    )


def pums(name: str, *, nulls: bool = False) -> Table:
    """The PUMS excerpt in which persons repeat, at most four rows of a person."""

    def table() -> cl.PrivateTable:
        return cl.PrivateTable(
            DATA / "census" / name,
            columns={
                "educ": cl.Integer(1, 16, nullable=nulls),
                "sex": cl.Integer(0, 1, nullable=nulls),
                "income": cl.Integer(0, 500_000, nullable=nulls),
            },
            unit="pid",
            max_rows=4,
        )

    return table


def adult() -> cl.PrivateTable:
    """The Adult data, one row a person."""
    columns = _adult()
    return cl.PrivateTable(
        {"sex": columns["sex"], "income": columns["income"], "age": columns["age"], "hours": columns["hours-per-week"]},
        columns={
            "sex": cl.Category(["Female", "Male"]),
            "income": cl.Category(["<=50K", ">50K"]),
            "age": cl.Integer(17, 90),
            "hours": cl.Integer(1, 99),
        },
    )


@cache
def _adult() -> dict[str, np.ndarray]:
    with gzip.open(DATA / "adult" / "adult.csv.gz", "rt", encoding="utf-8") as file:
        header, *lines = (line.strip().split(",") for line in file)
    columns = dict(zip(header, zip(*lines, strict=True), strict=True))
    numbers = {"age", "hours-per-week"}
    return {name: np.array(values, dtype=np.int64 if name in numbers else object) for name, values in columns.items()}


def _count(name: str = "n", column: str | None = None) -> Statistic:
    return Statistic(name=name, kind="count", column=column)


TUTORIALS = (
    Tutorial(
        name="restaurant, visits and money by day",
        table=restaurant,
        sql='SELECT "Day", COUNT(*) AS n, SUM("Money spent (euros)") AS money FROM t GROUP BY "Day"',
        statistics=(_count(), Statistic(name="money", kind="sum", high=60, column="money")),
        rows=4,
        needs=DATA / "google_dp" / "restaurant_week.csv",
    ),
    Tutorial(
        name="restaurant, visits and mean stay by day",
        table=restaurant,
        sql='SELECT "Day", COUNT(*) AS n, AVG("Time spent (minutes)") AS stay FROM t GROUP BY "Day"',
        statistics=(_count(), Statistic(name="stay", kind="mean", high=60, column="stay")),
        rows=4,
        needs=DATA / "google_dp" / "restaurant_week.csv",
    ),
    Tutorial(
        name="library, members by age",
        table=library,
        sql="SELECT FLOOR(age / 10) AS decade, COUNT(*) AS n FROM t GROUP BY FLOOR(age / 10)",
        statistics=(_count(),),
    ),
    Tutorial(
        name="library, members and mean loans by education",
        table=library,
        sql="SELECT education_level, COUNT(*) AS n, AVG(books_borrowed) AS books FROM t GROUP BY education_level",
        statistics=(_count(), Statistic(name="books", kind="mean", high=100, column="books")),
    ),
    Tutorial(
        name="PUMS, persons repeated, income by education and sex",
        table=pums("pums_dup.csv"),
        sql="SELECT educ, sex, COUNT(*) AS n, AVG(income) AS income FROM t GROUP BY educ, sex",
        statistics=(_count(), Statistic(name="income", kind="mean", high=500_000, column="income")),
        rows=4,
        needs=DATA / "census" / "pums_dup.csv",
    ),
    Tutorial(
        name="PUMS with missing values, income by sex",
        table=pums("pums_null.csv", nulls=True),
        sql="SELECT sex, COUNT(*) AS n, COUNT(income) AS known, AVG(income) AS income FROM t WHERE sex IS NOT NULL GROUP BY sex",
        statistics=(_count(), _count("known", "income"), Statistic(name="income", kind="mean", high=500_000, column="income")),
        rows=4,
        needs=DATA / "census" / "pums_null.csv",
    ),
    Tutorial(
        name="Adult, age and hours by sex and income",
        table=adult,
        sql="SELECT sex, income, COUNT(*) AS n, AVG(age) AS age, AVG(hours) AS hours FROM t GROUP BY sex, income",
        statistics=(
            _count(),
            Statistic(name="age", kind="mean", low=17, high=90, column="age"),
            Statistic(name="hours", kind="mean", low=1, high=99, column="hours"),
        ),
        needs=DATA / "adult" / "adult.csv.gz",
    ),
)


def main() -> None:
    """Each tutorial whose data are here, against each peer."""
    rows = []
    for tutorial in TUTORIALS:
        if tutorial.needs is not None and not tutorial.needs.exists():
            print(f"{tutorial.name}: skipped, its data are not here")
            continue
        ours, groups = answered(tutorial)
        all_theirs = {peer.name: peer.widths(tutorial.statistics, tutorial.epsilon, tutorial.rows, groups) for peer in PEERS}
        for peer in PEERS:
            theirs = all_theirs[peer.name]
            ratios = {name: ours[name] / theirs[name] for name in ours}
            worst = max(ratios, key=ratios.__getitem__)
            each = ", ".join(f"{name} {ours[name]:.3g} / {theirs[name]:.3g}" for name in ours)
            detail = f"worst: {worst}; half-widths at ε = {tutorial.epsilon}, ours / {peer.name} ({peer.words}): {each}"
            report(f"{tutorial.name}, against {peer.name}", ratios[worst], LIMIT, detail, most=True)
        for name, width in ours.items():
            every = (width, *(one[name] for one in all_theirs.values()))
            cells = [f"{each:.3g}" if each < 1000 else f"{each:,.0f}" for each in every]
            rows.append(f"| {tutorial.name} | {name} | {' | '.join(cells)} |")
    if "--table" in sys.argv:
        names = ["question", "number", "ours", *(peer.name for peer in PEERS)]
        print("\n".join([f"| {' | '.join(names)} |", f"|---|---|{'---:|' * (len(PEERS) + 1)}", *rows]))


def answered(tutorial: Tutorial) -> tuple[dict[str, float], dict[str, Groups]]:
    """Our half-widths, and the exact groups that the peers' means are drawn on."""
    means = [one.name for one in tutorial.statistics if one.kind == "mean"]
    rounds = ROUNDS if means else 1
    errors: dict[str, list[float]] = {name: [] for name in means}
    widths: dict[str, float] = {}
    groups: dict[str, Groups] = {}
    for place in range(rounds):
        random = Random.deterministic(place + 1)
        with cl.Session({"t": tutorial.table()}, budget=cl.PureDP(2 * EXACT), random=random) as session:
            release = session.sql(tutorial.sql, spend=tutorial.epsilon)
            exact = session.sql(tutorial.sql, spend=EXACT) if means else release
        for name in means:
            found = _groups(tutorial.statistics, name, exact)
            off = np.abs(np.array(release[name], dtype=float) - np.array(exact[name], dtype=float))
            errors[name] += off[found.count > 0].tolist()
            groups.setdefault(name, found.occupied())
        margins = release.margin(CONFIDENCE)
        widths = {one.name: max(map(float, margins[one.name])) for one in tutorial.statistics if one.kind != "mean"}
    widths |= {name: float(np.quantile(errors[name], CONFIDENCE)) for name in means}
    return {one.name: widths[one.name] for one in tutorial.statistics}, groups


def _groups(of: Sequence[Statistic], mean: str, exact: cl.Release) -> Groups:
    """The rows with a value in each group, and their total, from the counts and the mean that were asked."""
    column = next(one.column for one in of if one.name == mean)
    counted = next((one.name for one in of if one.kind == "count" and one.column == column), "n")
    count = np.round(np.array(exact[counted], dtype=float))
    return Groups(count=count, total=count * np.array(exact[mean], dtype=float))


if __name__ == "__main__":
    main()
