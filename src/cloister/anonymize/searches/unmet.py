"""What to say where nothing meets the models: which column is in the way, and what would do; in advance where that is known."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from cloister.anonymize.classes import Classes, alike
from cloister.anonymize.hierarchies.ladder import STAR
from cloister.anonymize.models.base import attained_by
from cloister.anonymize.models.presence import DeltaPresence
from cloister.anonymize.problem import Problem
from cloister.errors import CloisterError, InvalidParameter
from cloister.privacy.rational import exact


def unmet(problem: Problem) -> CloisterError:
    """The refusal, worked out from the table on the highest levels.

    It speaks of the owner's own table, in the owner's own process.
    """
    names = list(problem.quasi)
    lost = lost_on_top(problem, names)
    total = problem.table.total
    everything = _classes(problem, [])
    missing = [each for each in attained_by(problem.models, everything) if not each.holds]
    if missing:
        return InvalidParameter(
            "The models are invalid",
            why=f"the whole table as one class does not meet them: {missing[0]}",
            instead=f"a model that the table can meet ({missing[0].reached}), or suppression={_share(total, total)}",
        )
    for name in names:
        if lost_on_top(problem, [other for other in names if other != name]) <= problem.limit:
            labels = _top_labels(problem, name)
            return InvalidParameter(
                "The models are invalid",
                why=f"{name!r} is in the way: even with every column on its highest level {lost} of {total} rows would have to "
                f"be suppressed, and {problem.limit} may be; without {name!r} the models are met. Its highest level has "
                f"{labels} labels",
                instead=f"a level of {name!r} on which every value is {STAR!r}; or leave {name!r} out; or {_allow(lost, total)}",
            )
    blocking = _blocking(problem, names)
    told = ", ".join(f"{name!r} ({_top_labels(problem, name)} labels)" for name in blocking)
    return InvalidParameter(
        "The models are invalid",
        why=f"several columns are in the way together: even on the highest level of each {lost} of {total} rows would have to be "
        f"suppressed, and {problem.limit} may be: {told}",
        instead=f"a level {STAR!r} for each of these columns; or {_allow(lost, total)}",
    )


def check_presence(problem: Problem) -> None:
    """Raise, before anything is searched for, where no recoding could meet δ-presence.

    The share of the research table among all that is published is a mean of the shares of the classes. So it lies between the
    bounds where every class does, and rows may be suppressed to get there.
    """
    if problem.research is None:
        return
    there = problem.research if problem.table.weights is None else problem.table.weights[problem.research]
    total, most = problem.table.total, problem.limit
    inside = int(there.sum())
    for model in problem.models:
        if not isinstance(model, DeltaPresence) or total == 0:
            continue
        low, high = exact(model.low), exact(model.high)
        fewest, largest = max(inside - most, 0), total - most
        above = fewest > 0 and fewest > high * (fewest + total - inside)
        below = largest > 0 and inside < low * max(largest, inside)
        if above or below:
            bound = f"more than {model.high}" if above else f"less than {model.low}"
            share = Fraction(inside, total)
            fit = np.ceil(float(share) * 1000) / 1000 if above else np.floor(float(share) * 1000) / 1000
            bounds = f'{model.low!r}, "{fit:g}"' if above else f'"{fit:g}", {model.high!r}'
            raise InvalidParameter(
                f"{model.name} is invalid",
                why=f"{inside:,} of {total:,} rows of the public list are in the research table, which is {bound} even with the "
                f"{most:,} rows suppressed that may be: in some class the share is no better than in all",
                instead=f"DeltaPresence({bounds}), or a list with "
                + ("more people who are not in the table" if above else "fewer people who are not in the table"),
            )


def interrupted(problem: Problem) -> CloisterError:
    """The search was ended before it had found anything."""
    return CloisterError(
        "The search was ended",
        why="it had not yet found a recoding that meets the models",
        instead='a larger seconds=, or search="mondrian"',
    )


def lost_on_top(problem: Problem, names: Sequence[str]) -> int:
    """Rows to be suppressed with these columns on their highest level, and the others left out."""
    classes = _classes(problem, names)
    return problem.table.total - int(classes.sizes[problem.satisfied(classes)].sum())


def _classes(problem: Problem, names: Sequence[str]) -> Classes:
    columns = [np.zeros(problem.table.rows, dtype=np.int32)]
    sizes = [1]
    for name in names:
        ladder = problem.ladders[name]
        columns.append(ladder.codes[-1][problem.table.columns[name].codes])
        sizes.append(len(ladder.labels[-1]))
    ids, count = alike(columns, sizes)
    return Classes.of(ids, count, sensitive=problem.sensitive_columns, research=problem.research, weights=problem.table.weights)


def _blocking(problem: Problem, names: Sequence[str]) -> list[str]:
    """Columns to leave out, the one that helps most first, until the models are met."""
    left = list(names)
    found: list[str] = []
    while left and lost_on_top(problem, left) > problem.limit:
        worst = min(left, key=lambda name: lost_on_top(problem, [other for other in left if other != name]))
        left.remove(worst)
        found.append(worst)
    return found


def _top_labels(problem: Problem, name: str) -> int:
    return len(problem.ladders[name].labels[-1])


def _allow(lost: int, total: int) -> str:
    return f"suppression={_share(lost, total)}"


def _share(lost: int, total: int) -> str:
    """The least share of four digits that allows so many rows."""
    return f'"{np.ceil(lost / max(total, 1) * 10_000) / 10_000:.4f}"'
