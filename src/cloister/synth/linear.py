"""Real beside synthetic rows by linear methods: regressions of each ordered column on the others, and the first two principal
components. NOT PRIVATE: exact numbers of the real rows, for `comparing.py`.

Columns of numbers and days count by their states, in deviations of the real rows; a missing value counts as the mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cloister.synth.pieces import Floats, Integers
from cloister.synth.states import States
from cloister.tables import Boolean, Category

_MOST_REGRESSED = 20
_SHOWN = 400
_MOST_KINDS = 20


@dataclass(frozen=True, kw_only=True)
class Regression:
    """Least squares of a column on the other ordered ones, of real and of synthetic rows, in deviations of the real ones."""

    response: str
    real: Mapping[str, float]
    synthetic: Mapping[str, float]
    explained: tuple[float, float]
    """What share of the response's variance each explains."""

    @property
    def apart(self) -> tuple[str, float]:
        """The coefficient that differs most, and by how much."""
        name = max(self.real, key=lambda each: abs(self.real[each] - self.synthetic[each]))
        return name, self.synthetic[name] - self.real[name]


@dataclass(frozen=True, kw_only=True)
class Components:
    """Real and synthetic rows along the first two principal components of the real ones."""

    real: tuple[tuple[float, float], ...]
    synthetic: tuple[tuple[float, float], ...]
    shares: tuple[tuple[float, float], tuple[float, float]]
    """What share of the variance each component has, of real and of synthetic rows."""


def regressions(columns: Sequence[States], real: Integers, made: Integers) -> tuple[Regression, ...]:
    """One for each ordered column, where there are at least two.

    >>> from cloister.tables import Integer
    >>> columns = [States("a", Integer(0, 9)), States("b", Integer(0, 9))]
    >>> rows = np.arange(10)[:, None].repeat(2, axis=1)
    >>> [one] = [each for each in regressions(columns, rows, rows[::-1]) if each.response == "b"]
    >>> round(one.real["a"], 6), round(one.synthetic["a"], 6), round(one.explained[0], 6)
    (1.0, 1.0, 1.0)
    """
    places = [place for place, each in enumerate(columns) if _ordered(each)][:_MOST_REGRESSED]
    if len(places) < 2:
        return ()
    one, other = _scaled(columns, places, real, real), _scaled(columns, places, made, real)
    found = []
    for turn, place in enumerate(places):
        names = [columns[each].name for each in places if each != place]
        fits = [_fit(np.delete(rows, turn, axis=1), rows[:, turn]) for rows in (one, other)]
        real_part, made_part = (dict(zip(names, fit.tolist(), strict=True)) for fit, _ in fits)
        told = fits[0][1], fits[1][1]
        found.append(Regression(response=columns[place].name, real=real_part, synthetic=made_part, explained=told))
    return tuple(found)


def components(columns: Sequence[States], real: Integers, made: Integers) -> Components | None:
    """Some of the rows, from the first on; None where fewer than two things vary."""
    one, other = _indicated(columns, real, real), _indicated(columns, made, real)
    roots, axes = np.linalg.eigh(np.cov(one.T)) if one.shape[1] > 1 else (np.zeros(0), np.zeros((0, 0)))
    if (roots > 1e-9).sum() < 2:
        return None
    axes = axes[:, ::-1][:, :2]
    shares = [tuple((np.var(rows @ axes, axis=0) / max(float(rows.var(axis=0).sum()), 1e-12)).tolist()) for rows in (one, other)]
    points = [tuple((first, second) for first, second in (rows[:_SHOWN] @ axes).round(4).tolist()) for rows in (one, other)]
    return Components(real=points[0], synthetic=points[1], shares=(shares[0], shares[1]))


def _ordered(states: States) -> bool:
    return not isinstance(states.domain, Category | Boolean) and states.number > 1


def _scaled(columns: Sequence[States], places: Sequence[int], rows: Integers, real: Integers) -> Floats:
    found = []
    for place in places:
        missing = columns[place].number - 1 if columns[place].domain.nullable else -1
        own, known = rows[:, place].astype(np.float64), real[:, place][real[:, place] != missing]
        middle, width = (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
        found.append(np.where(rows[:, place] == missing, 0.0, (own - middle) / (width or 1.0)))
    return np.column_stack(found)


def _indicated(columns: Sequence[States], rows: Integers, real: Integers) -> Floats:
    """Ordered columns as they are, each state of another column of few as one that says whether a row has it."""
    ordered = [place for place, each in enumerate(columns) if _ordered(each)]
    found = [_scaled(columns, ordered, rows, real)] if ordered else [np.zeros((len(rows), 0))]
    for place, each in enumerate(columns):
        if place not in ordered and each.number <= _MOST_KINDS:
            found.append((rows[:, [place]] == np.arange(each.number)) - (real[:, [place]] == np.arange(each.number)).mean(axis=0))
    return np.column_stack(found)


def _fit(others: Floats, response: Floats) -> tuple[Floats, float]:
    """Coefficients by least squares, the shortest where they are not told, and the explained share."""
    centred, wanted = others - others.mean(axis=0), response - response.mean()
    found = np.linalg.lstsq(centred, wanted, rcond=None)[0]
    whole = float(wanted @ wanted)
    return np.asarray(found), 1 - float(np.sum((wanted - centred @ found) ** 2)) / whole if whole > 0 else 0.0
