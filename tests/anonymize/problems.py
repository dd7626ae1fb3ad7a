"""Small problems for the tests of searches and metrics, and the slow search that they are compared with."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cloister.anonymize.encoded import Encoded, encode
from cloister.anonymize.frames import read_frame
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.metrics import Metric, metric_of
from cloister.anonymize.models.base import PrivacyModel
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Recoded, RecodedColumn


def problem_of(
    table: Mapping[str, Sequence[Any]],
    levels: Mapping[str, Sequence[Sequence[Any]]],
    models: Sequence[PrivacyModel],
    *,
    metric: str | Metric = "loss",
    limit: int = 0,
    sensitive: Sequence[str] = (),
    **others: Any,
) -> Problem:
    """A problem from a table, and the labels of each column's values (in their order) on each level from 1 on."""
    encoded = encode(read_frame(dict(table)), list(table))
    ladders = {name: Ladder.of(name, encoded.columns[name].values, each) for name, each in levels.items()}
    return Problem(
        table=encoded,
        quasi=tuple(levels),
        ladders=ladders,
        models=tuple(models),
        metric=metric_of(metric),
        limit=limit,
        sensitive=tuple(sensitive),
        **others,
    )


def random_problem(seed: int, models: Sequence[PrivacyModel], *, rows: int = 40, **settings: Any) -> Problem:
    """Three columns of three, two and four levels, and a sensitive one that depends on the first."""
    draw = np.random.default_rng(seed)
    first = draw.integers(0, 9, rows)
    table = {
        "age": (first * 5).tolist(),
        "sex": [["F", "M", None][place] for place in draw.choice(3, rows, p=[0.5, 0.4, 0.1])],
        "town": draw.choice(list("ABCDEFGH"), rows).tolist(),
        "disease": [f"d{(one + other) % 4}" for one, other in zip(first, draw.integers(0, 2, rows), strict=True)],
    }
    encoded: Encoded = encode(read_frame(table), list(table))
    values = {name: column.values for name, column in encoded.columns.items()}
    levels: dict[str, list[list[Any]]] = {
        "age": [[f"{age // 10}x" for age in values["age"]], ["young" if age < 20 else "old" for age in values["age"]]],
        "sex": [["*" for _ in values["sex"]]],
        "town": [
            ["AB" if town in "AB" else "CD" if town in "CD" else town for town in values["town"]],
            ["west" if town in "ABCD" else "east" for town in values["town"]],
            ["*" for _ in values["town"]],
        ],
    }
    return problem_of(table, levels, models, sensitive=["disease"], **settings)


def recoded_at(problem: Problem, levels: Sequence[int]) -> Recoded:
    """A node, worked out from the rows."""
    columns = {
        name: RecodedColumn.at(problem.table.columns[name], problem.ladders[name], level)
        for name, level in zip(problem.quasi, levels, strict=True)
    }
    rows: dict[tuple[Any, ...], list[int]] = {}
    for row in range(problem.table.rows):
        rows.setdefault(tuple(int(column.codes[row]) for column in columns.values()), []).append(row)
    keep = np.ones(problem.table.rows, dtype=bool)
    whole = Recoded(columns=columns, suppressed=~keep, sensitive=problem.sensitive_columns, research=problem.research)
    met = problem.satisfied(whole.classes)
    for members in rows.values():
        keep[members] = met[whole.classes.of_row[members[0]]]
    return Recoded(
        columns=columns,
        suppressed=~keep,
        sensitive=problem.sensitive_columns,
        levels=dict(zip(problem.quasi, levels, strict=True)),
        research=problem.research,
    )


def every_node(problem: Problem) -> dict[tuple[int, ...], tuple[float, int]]:
    """Score and suppressed rows of each node that is allowed, by brute force."""
    heights = [problem.ladders[name].height for name in problem.quasi]
    found = {}
    for levels in itertools.product(*(range(height) for height in heights)):
        recoded = recoded_at(problem, levels)
        lost = int(np.count_nonzero(recoded.suppressed))
        if lost <= problem.limit:
            found[levels] = (problem.metric.score(problem, recoded), lost)
    return found
