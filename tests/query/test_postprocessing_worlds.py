"""The intervals above the cut hold: whatever each released number is within its own interval, the same SQL over it gives what
the interval of each result allows."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from cloister.query import parse
from cloister.query.postprocessing.program import Program
from cloister.session.releases.frames import Frame, Series
from cloister.session.releases.postprocessed import _half_widths
from tests.query.hospital import TOWNS, rows, tables
from tests.tiers import some_by_day

T = "(SELECT town, COUNT(*) AS n, SUM(age) AS m FROM people GROUP BY town)"
G = "(SELECT sex, town, COUNT(*) AS n, SUM(pay) AS s FROM people GROUP BY sex, town)"
QUESTIONS = (
    # decimals: the engine's arithmetic is not that of the intervals
    f"SELECT CAST(n * 0.5 AS INTEGER), FLOOR(n * 0.29), CEIL(n * 0.07), ROUND(n * 0.25, 1), TRUNC(-n * 0.29) FROM {T} AS t",
    f"SELECT n * 0.1 > 0.3, n * 0.1 = 0.3, n * 0.7 <= 2.1, SIGN(n * 0.1 - 0.3), 1 / (n * 0.1 - 0.3) FROM {T} AS t",
    f"SELECT SUM(n) FILTER (WHERE n * 0.1 > 0.7), COUNT_IF(n * 0.1 >= 0.7), ROUND(SUM(n) * 1.005, 2) FROM {G} AS t",
    f"SELECT MEDIAN(n * 0.5), QUANTILE_CONT(n * 0.5, 0.25) FROM {T} AS t WHERE town <> 'Gouda'",
    f"SELECT town, LAG(n, 1, n * 0.5) OVER (ORDER BY town), LEAD(n, 1, 0.5) OVER (ORDER BY town) >= 1 FROM {T} AS t",
    # rows that noise chose
    f"SELECT COUNT(*), SUM(n), MIN(m), MAX(m), AVG(m), COUNT_IF(m > 20) FROM {T} AS t WHERE n > 12",
    f"SELECT MAX(town = 'Leiden'), MIN(LENGTH(town)), MAX(town), BOOL_OR(m > 9) FROM {T} AS t WHERE n > 12",
    f"SELECT town, MAX(sex), MAX(s), COUNT_IF(s > 5) FILTER (WHERE s < 10) FROM {G} AS t WHERE n > 12 GROUP BY town",
    f"SELECT t.town, a.n, COALESCE(a.n, 0) FROM towns t LEFT JOIN (SELECT * FROM {T} u WHERE n > 12) a ON a.town = t.town",
    f"SELECT t.town, a.n, b.n - a.n FROM towns t LEFT JOIN {T} a ON a.town = t.town LEFT JOIN {T} b ON b.town = t.town",
    f"SELECT SUM(n), MAX(n) FROM (SELECT town, n FROM {T} AS t ORDER BY n DESC LIMIT 2) AS u",
    f"SELECT COUNT(*), SUM(n) FROM (SELECT n FROM {T} AS t WHERE town IN (SELECT town FROM {G} AS g WHERE sex = 'F')) AS u",
    # orders, windows, sets
    "SELECT town, ROW_NUMBER() OVER () AS x FROM (SELECT town, COUNT(*) AS n FROM people GROUP BY town ORDER BY n) AS t",
    f"SELECT town, RANK() OVER (ORDER BY n DESC), ROW_NUMBER() OVER (ORDER BY m), DENSE_RANK() OVER (ORDER BY n) FROM {T} AS t",
    f"SELECT town, SUM(n) OVER (PARTITION BY town ORDER BY sex), LAG(n, 1, 0) OVER (ORDER BY sex, town) FROM {G} AS t",
    f"SELECT town, n FROM {T} AS t UNION ALL SELECT sex, s FROM {G} AS g",
    f"SELECT town, n > 10 FROM {T} AS t EXCEPT SELECT town, n > 12 FROM {G} AS g",
    f"SELECT n > 10, COUNT(*), SUM(m) FROM {T} AS t GROUP BY n > 10",
    # branches and what is missing
    f"SELECT CASE WHEN n > m THEN n WHEN n > 5 THEN m ELSE 3 END, NULLIF(n, m), GREATEST(n, m, 10), (n > m) IS NULL FROM {T} t",
    f"SELECT town, n / (SELECT SUM(n) FROM {T} AS u), n IN (SELECT n FROM {G} AS g), n BETWEEN m AND 20 FROM {T} AS t",
    f"SELECT (SELECT n > 5 FROM {T} AS u WHERE town = 'Utrecht') AS x, MEDIAN(n), QUANTILE_CONT(n, 0.25) FROM {T} AS t",
)


def drawn(random_: random.Random, names: Sequence[str], count: int) -> dict[str, tuple[list[int], list[int]]]:
    """Released numbers and their margins."""
    found = {}
    for name in names:
        widest = random_.choice([1, 2, 3, 6])
        values = [random_.randint(0, random_.choice([8, 20])) for _ in range(count)]
        found[name] = values, [random_.choice([0, widest, widest]) for _ in range(count)]
    return found


def moved(random_: random.Random, given: dict[str, tuple[list[int], list[int]]]) -> dict[str, tuple[list[int], list[int]]]:
    """Each number anywhere in its interval, or at an end."""
    found = {}
    for name, (values, margins) in given.items():
        ends = random_.random() < 0.5
        steps = [random_.choice([-each, each]) if ends else random_.randint(-each, each) for each in margins]
        found[name] = [value + step for value, step in zip(values, steps, strict=True)], [0] * len(values)
    return found


def inputs(program: Program, worlds: dict[tuple[str, ...], dict[str, tuple[list[int], list[int]]]]) -> list[Any]:
    """The answers of the parts as the program takes them."""
    found = []
    for part in program.parts:
        names = tuple(column.name for column in part.columns)
        given = worlds[names]
        columns = {name: Series("text", np.array(keys_of(names, name), dtype=object)) for name in names if name not in given}
        columns |= {name: Series("integer", np.array(values, dtype=np.int64)) for name, (values, _) in given.items()}
        order = np.argsort(columns["n"].values) if part.parsed.layout.order else np.arange(len(columns["town"].values))
        table = Frame({name: Series(columns[name].kind, columns[name].values[order]) for name in names})
        ends = {}
        for name, (values, margins) in given.items():
            middle, wide = np.array(values, dtype=float)[order], np.array(margins, dtype=float)[order]
            ends[name] = middle - wide, middle + wide
        found.append((table, ends))
    return found


def keys_of(names: Sequence[str], name: str) -> list[str]:
    if name == "sex":
        return ["F"] * len(TOWNS) + ["M"] * len(TOWNS)
    return TOWNS * 2 if "sex" in names else TOWNS


@some_by_day(
    "sql,seed",
    [(sql, 0) for sql in QUESTIONS] + [(sql, seed) for sql in QUESTIONS[:5] for seed in (1, 2)],
    day=lambda case: case[1] == 0,
)
def test_no_number_within_its_interval_leads_out_of_an_interval_of_the_result(sql: str, seed: int) -> None:
    random_ = random.Random(f"{sql} {seed}")
    program = parse(sql, tables(rows())).above
    assert program is not None
    shapes = {tuple(column.name for column in part.columns): part for part in program.parts}
    worlds = {
        names: drawn(random_, [each for each in names if each not in ("sex", "town")], 6 if "sex" in names else 3)
        for names in shapes
    }
    told = program.described([{n: s.kind for n, s in table.columns.items()} for table, _ in inputs(program, worlds)])
    values, bounds, places = program._table(inputs(program, worlds), told)
    widths = {name: _half_widths(values.columns[name], *ends) for name, ends in bounds.items()}
    mine = names_of(program, values, places, told)
    for _ in range(3):
        others, _, found = program._table(inputs(program, {each: moved(random_, worlds[each]) for each in worlds}), told)
        theirs = names_of(program, others, found, told)
        if not program.last.loose:
            assert sorted(mine) == sorted(theirs)
        for row, which in enumerate(mine):
            if mine.count(which) != 1 or theirs.count(which) != 1:  # noise has chosen it, or nothing tells it apart
                continue
            for name, _, noisy in told:
                one, other = values[name].tolist()[row], others[name].tolist()[theirs.index(which)]
                if not noisy:
                    assert one == other, name
                elif not np.isnan(widths[name][row]):
                    check(one, other, widths[name][row], name)


def names_of(program: Program, table: Frame, places: Sequence[Any], told: Sequence[tuple[str, Any, bool]]) -> list[str]:
    """What tells the rows apart: where they came from; of rows that noise chose, what no noise is in."""
    if not program.last.loose:
        return [str(each) for each in places]
    certain = [table[name].tolist() for name, _, noisy in told if not noisy]
    return [str(each) for each in zip(*certain, strict=True)] or [""] * len(places)


def check(one: Any, other: Any, width: float, name: str) -> None:
    if isinstance(one, bool | str | None) or isinstance(other, bool | str | None):
        assert one == other, name
    elif not (width == 0 and math.isnan(one) and math.isnan(other)):
        assert abs(one - other) <= width * (1 + 1e-9) + 1e-9 * (1 + abs(one)), name
