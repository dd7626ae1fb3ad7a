"""Questions drawn at random, of every construct that is answered: joins, subqueries, sums per person, unions, grouping sets."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class From:
    """Where rows come from, and what can be said of them."""

    sql: str
    numbers: tuple[str, ...]
    keys: tuple[str, ...]
    conditions: tuple[str, ...]
    texts: tuple[str, ...] = ()
    """Keys that nobody declared."""
    unit: str | None = None
    dates: tuple[str, ...] = ()
    before: str = field(default="")
    """What stands before SELECT."""


FLAT = From(
    sql="flat",
    numbers=(
        "age",
        "pay",
        "smoker",
        "age * 2 - pay",
        "CLAMP(pay / (age - 20), -5, 5)",
        "CASE WHEN age > 30 THEN pay ELSE -3 END",
    ),
    keys=(
        "sex",
        "town",
        "smoker",
        "FLOOR(age / 20)",
        "CASE WHEN age < 40 THEN 'young' ELSE 'old' END",
        "EXTRACT(YEAR FROM born)",
    ),
    conditions=(
        "age >= 30",
        "sex = 'F'",
        "town IS NOT NULL",
        "pay BETWEEN 0 AND 40",
        "smoker",
        "town LIKE '%e%'",
        "born < DATE '1980-03-01'",
    ),
    texts=("street",),
    dates=("born", "DATE_TRUNC('month', born)"),
)
VISITS = From(
    sql="visits",
    numbers=("cost", "cost * cost", "cost + 7", "ABS(cost)", "CLAMP(SQRT(cost), 0, 4)", "COALESCE(cost, 5)", "cost % 4"),
    keys=("ward", "DATE_TRUNC('month', day)", "cost", "SIGN(cost)", "EXTRACT(DAY FROM day)"),
    conditions=(
        "cost > 2",
        "ward = 'heart'",
        "day >= DATE '2024-02-01'",
        "note LIKE 'o%'",
        "ward IN ('bones', 'eyes')",
        "NOT cost = 7",
    ),
    texts=("note", "visit"),
    unit="person",
    dates=("day",),
)
JOINED = From(
    sql="persons AS p JOIN visits AS v ON p.person = v.person",
    numbers=("cost", "age", "cost * age", "age - cost"),
    keys=("sex", "v.ward", "p.town", "CASE WHEN cost > 5 THEN sex END"),
    conditions=("age > 20", "cost > 2", "sex = 'F'"),
    texts=("note",),
    unit="p.person",
)
LEFT = From(
    sql="persons AS p LEFT JOIN visits AS v ON p.person = v.person",
    numbers=("cost", "age", "COALESCE(cost, 0)"),
    keys=("sex", "v.ward"),
    conditions=("age > 20", "cost IS NULL", "v.ward IS NULL"),
    texts=("note",),
    unit="p.person",
)
THROUGH = From(
    sql="visits AS v JOIN drugs AS d ON d.visit = v.visit",
    numbers=("dose", "cost", "dose * cost"),
    keys=("drug", "ward", "dose"),
    conditions=("dose > 1", "drug = 'x'", "cost < 10"),
    texts=("note",),
    unit="v.person",
)
STAR = From(
    sql="persons AS p JOIN visits AS v ON v.person = p.person JOIN drugs AS d ON d.visit = v.visit",
    numbers=("dose", "cost", "age"),
    keys=("drug", "sex", "v.ward"),
    conditions=("dose > 1", "age > 30"),
    unit="p.person",
)
SAME_DAY = From(
    sql="visits AS v JOIN tests AS t ON v.person = t.person AND v.day = t.day",
    numbers=("score", "cost", "score + cost"),
    keys=("t.ward", "v.ward"),
    conditions=("score > 1", "cost > 0"),
    texts=("note",),
    unit="v.person",
)
PUBLIC = From(
    sql="flat JOIN towns ON flat.town = towns.name",
    numbers=("people", "age", "age * people"),
    keys=("province", "sex"),
    conditions=("people > 60", "province = 'ZH'"),
)
PUBLIC_MANY = From(
    sql="visits AS v JOIN doctors AS d ON v.ward = d.ward",
    numbers=("fee", "cost", "fee * cost"),
    keys=("doctor", "v.ward"),
    conditions=("fee > 1",),
    texts=("note",),
    unit="person",
)
PUBLIC_LEFT = From(
    sql="tests AS t LEFT JOIN doctors AS d ON t.ward = d.ward",
    numbers=("fee", "score"),
    keys=("doctor", "t.ward"),
    conditions=("fee IS NULL OR fee > 1",),
    unit="person",
)
PER_PERSON = From(
    sql=(
        "(SELECT person, SUM(cost) AS total, COUNT(*) AS n, MAX(cost) AS top, AVG(cost) AS mean, MIN(day) AS first,"
        " COUNT(DISTINCT ward) AS wards FROM visits GROUP BY person) AS t"
    ),
    numbers=("total", "n", "top", "mean", "wards", "total * n"),
    keys=("n", "top", "wards", "CASE WHEN total > 10 THEN 'much' ELSE 'little' END"),
    conditions=("total > 3", "n >= 2", "mean < 8"),
    unit="person",
    dates=("first",),
)
PER_GROUP = From(
    sql=(
        "(SELECT person, ward, SUM(cost) AS total, COUNT(cost) AS n, AVG(cost) AS mean FROM visits WHERE cost < 15"
        " GROUP BY person, ward) AS t"
    ),
    numbers=("total", "n", "mean"),
    keys=("ward", "n"),
    conditions=("total > 0",),
    unit="person",
)
PER_NOTE = From(
    sql="(SELECT person, note, COUNT(*) AS n FROM visits GROUP BY person, note) AS t",
    numbers=("n",),
    keys=("n",),
    conditions=("n > 1",),
    texts=("note",),
    unit="person",
)
HAVING = From(
    sql=(
        "(SELECT person, MAX(age) AS age FROM persons GROUP BY person HAVING COUNT(*) > 0) AS a"
        " JOIN visits AS v ON a.person = v.person"
    ),
    numbers=("age", "cost"),
    keys=("v.ward",),
    conditions=("age > 20",),
    unit="a.person",
)
TWICE = From(
    sql=(
        "(SELECT person, ward, cost FROM visits WHERE cost > 0 UNION ALL"
        " SELECT person, ward, cost FROM visits WHERE cost < 9) AS u"
    ),
    numbers=("cost", "cost - 1"),
    keys=("ward", "cost"),
    conditions=("cost > 3",),
    unit="person",
)
STACKED = From(
    sql="(SELECT person, ward, cost AS x FROM visits UNION ALL SELECT person, ward, score AS x FROM tests) AS u",
    numbers=("x",),
    keys=("ward",),
    conditions=("x > 1",),
    unit="person",
)
FLAT_TWICE = From(
    sql="(SELECT sex, age FROM flat UNION ALL SELECT sex, age FROM flat WHERE age > 30) AS u",
    numbers=("age",),
    keys=("sex",),
    conditions=("age > 20",),
)
SEMI = From(
    sql="persons",
    numbers=("age",),
    keys=("sex", "town"),
    conditions=(
        "person IN (SELECT person FROM visits WHERE cost > 2)",
        "person NOT IN (SELECT person FROM tests)",
        "EXISTS (SELECT 1 FROM visits AS v WHERE v.person = persons.person AND v.ward = 'heart')",
        "town IN (SELECT name FROM towns WHERE province = 'ZH')",
    ),
    unit="person",
)
SELF = From(
    sql="visits AS a JOIN visits AS b ON a.person = b.person",
    numbers=("a.cost", "b.cost", "a.cost * b.cost"),
    keys=("a.ward", "b.ward"),
    conditions=("a.cost < b.cost",),
    unit="a.person",
)
WITH = From(
    before=(
        "WITH t AS (SELECT person, SUM(score) AS s FROM tests GROUP BY person),"
        " v AS (SELECT person, cost, ward FROM visits WHERE cost > 0) "
    ),
    sql="t JOIN v ON t.person = v.person",
    numbers=("s", "cost", "s - cost"),
    keys=("ward",),
    conditions=("s > 1",),
    unit="t.person",
)
NESTED = From(
    sql=(
        "(SELECT person, MAX(total) AS most, COUNT(*) AS days FROM (SELECT person, day, SUM(cost) AS total FROM visits"
        " GROUP BY person, day) AS d GROUP BY person) AS t"
    ),
    numbers=("most", "days", "most / days"),
    keys=("days", "SIGN(most)"),
    conditions=("most > 3", "days = 1"),
    unit="person",
)
DOSES = From(
    sql=(
        "(SELECT v.person, v.ward, SUM(d.dose) AS doses, COUNT(*) AS drugs FROM visits AS v JOIN drugs AS d ON d.visit = v.visit"
        " GROUP BY v.person, v.ward) AS t"
    ),
    numbers=("doses", "drugs", "doses - drugs"),
    keys=("drugs", "ward"),
    conditions=("doses > 1",),
    unit="person",
)
COMMA = From(
    sql="persons, visits, towns",
    numbers=("age", "cost", "people"),
    keys=("province", "sex"),
    conditions=("persons.person = visits.person AND persons.town = towns.name",),
    unit="persons.person",
)
USING = From(
    sql="persons JOIN visits USING (person) JOIN tests USING (person, ward)",
    numbers=("age", "cost", "score"),
    keys=("ward", "sex"),
    conditions=("cost > 0", "score < 4"),
    unit="person",
)

SOURCES = (
    FLAT, VISITS, JOINED, LEFT, THROUGH, STAR, SAME_DAY, PUBLIC, PUBLIC_MANY, PUBLIC_LEFT,
    PER_PERSON, PER_GROUP, PER_NOTE, HAVING, TWICE, STACKED, FLAT_TWICE, SEMI, SELF, WITH, NESTED, DOSES, COMMA, USING,
)  # fmt: skip
_ONE = (
    "COUNT({x})", "SUM({x})", "SUM({x})", "AVG({x})", "AVG({x})", "VAR_SAMP({x})", "STDDEV_POP({x})", "MEDIAN({x})",
    "MIN({x})", "MAX({x})",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {x})", "SUM({x}) / COUNT(*)", "SUM({x}) FILTER (WHERE {c})", "COUNT_IF({c})",
    "ROUND(AVG({x}), 1)", "SUM(CASE WHEN {c} THEN {x} ELSE 0 END)",
)  # fmt: skip
_TWO = ("CORR({x}, {y})", "COVAR_POP({x}, {y})", "REGR_SLOPE({y}, {x})", "REGR_R2({y}, {x})", "REGR_COUNT({y}, {x})")


def question(draw: random.Random, source: From | None = None) -> str:
    """A question about one of the sources."""
    source = source or draw.choice(SOURCES)
    if draw.random() < 0.08 and source is not COMMA:
        return bounded(draw, source)
    keys = (
        draw.sample(source.keys, draw.choice([0, 0, 1, 1, 2]))
        if len(source.keys) > 1
        else draw.sample(source.keys, draw.choice([0, 1]))
    )
    if source.texts and draw.random() < 0.2:
        keys = [*keys[:1], draw.choice(source.texts)]
    shown = [f"{key} AS k{place}" for place, key in enumerate(keys)]
    shown += [
        f"{_aggregate(draw, source, bool(source.texts) and bool(keys) and keys[-1] in source.texts)} AS a{place}"
        for place in range(draw.choice([1, 1, 2, 3]))
    ]
    where = draw.sample(source.conditions, draw.choice([0, 0, 1, min(2, len(source.conditions))]))
    text = f"{source.before}SELECT {_options(draw, source)}{', '.join(shown)} FROM {source.sql}"
    if source is COMMA:
        where = [*source.conditions]
    if where:
        text += " WHERE " + draw.choice([" AND ", " OR "]).join(where)
    if keys:
        text += " GROUP BY " + _grouped(draw, keys)
    return text


def bounded(draw: random.Random, source: From) -> str:
    """A question with bounds on what one person adds to one group, as ZetaSQL writes them."""
    keys = draw.sample(source.keys, draw.choice([0, 1, 1]))
    low, high = draw.choice([(0, 1), (0, 5), (-2, 3), (1, 4)])
    bounds = f"contribution_bounds_per_{draw.choice(['group', 'group', 'row'])} => ({low}, {high})"
    shown = [f"{key} AS k" for key in keys]
    shown.append(f"{draw.choice(['SUM', 'AVG'])}({draw.choice(source.numbers)}, {bounds}) AS a")
    shown.append(
        draw.choice(
            ["COUNT(*) AS n", "SUM(" + source.numbers[0] + ") AS n", "COUNT(*, contribution_bounds_per_group => (0, 2)) AS n"]
        )
    )
    options = draw.choice(["epsilon = 1, max_groups_contributed = 1", "epsilon = 1, max_groups_contributed = 2", "epsilon = 1"])
    grouped = f" GROUP BY {keys[0]}" if keys else ""
    return f"{source.before}SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) {', '.join(shown)} FROM {source.sql}{grouped}"


def _aggregate(draw: random.Random, source: From, undeclared: bool) -> str:
    kind = draw.random()
    x, y = draw.choice(source.numbers), draw.choice(source.numbers)
    if kind < 0.25:
        return "COUNT(*)" if source.unit is None or draw.random() < 0.5 else f"COUNT(DISTINCT {source.unit})"
    if kind < 0.35 and source.dates and not undeclared:
        return draw.choice(["MIN({d})", "MAX({d})", "COUNT({d})"]).format(d=draw.choice(source.dates))
    if kind < 0.45 and x != y:
        return draw.choice(_TWO).format(x=x, y=y)
    if kind < 0.5 and not undeclared:
        return f"MODE({draw.choice(source.keys)})"
    if kind < 0.55:
        return f"COUNT(DISTINCT {draw.choice([*source.keys, *source.texts, *source.numbers])})"
    return draw.choice(_ONE).format(x=x, c=draw.choice(source.conditions))


def _grouped(draw: random.Random, keys: list[str]) -> str:
    listed = ", ".join(keys)
    kind = draw.random()
    if kind < 0.15:
        return f"ROLLUP ({listed})"
    if kind < 0.3:
        return f"CUBE ({listed})"
    if kind < 0.4 and len(keys) > 1:
        return f"GROUPING SETS (({keys[0]}), ({listed}), ())"
    return listed


def _options(draw: random.Random, source: From) -> str:
    if source.unit is None or draw.random() > 0.15:
        return ""
    inner = draw.choice(["max_groups_contributed = 1", "max_groups_contributed = 2", "max_rows_contributed = 2"])
    return f"WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, {inner}) "
