"""Rows from one Gaussian for each group: microaggregation whose groups are public, and whose means and covariances are noisy.

*Groups* are those of declared columns: classes, categories, bins of one's own. The published form clusters records and features
by looking at the rows, which costs nothing there and promises nothing: here nothing is looked at before it is paid.

*Measured*, under one charge: for 4/5 of the spend the number of rows and the mean of each column in each group, for the rest the
variances and covariances of all rows. Guarantee: that of the door's questions (`session/planning/moments.py` has the sensitivity
of a block of moments); all else is post-processing. One covariance serves all groups: what all rows have less what the groups'
means have. Of groups with fewer rows each covariance would be lost in the noise, and a classifier that is trained on the rows
needs the means.

*Mended*: a covariance between two columns is shrunk by what of its square is noise (its margin is public), and the matrix gets no
direction narrower than a hundredth of the declared range. Draws are rounded to declared steps and stay within declared bounds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.noise import Random, default_random
from cloister.privacy import Guarantee
from cloister.privacy.plain import guarantee_from_plain, guarantee_to_plain
from cloister.session import Frame, Measurer
from cloister.session.questions.question import Count, Covariance, Mean, Question, Statistic, Variance
from cloister.session.questions.spend import Spending
from cloister.session.releases.release import Release
from cloister.synth.drawing import checked_number
from cloister.synth.measuring import Floats, declared_rows
from cloister.synth.states import States, states_from, states_of, uniform
from cloister.tables import Binned, Integer, Real

_MEANS = Fraction(4, 5)
_MOST_GROUPS, _MOST_COLUMNS = 1_000, 50
_NARROWEST = 0.01
"""The least variance of any direction, where columns are scaled to [−1, 1]."""
_LEAST_TOLD = 2
"""How many deviations of its noise a group's number of rows must be for its mean to tell anything."""
_KIND = "synthetic Gaussians"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GaussianModel:
    """What `cl.synth.fit_gaussians` gives. Numbers are on the scale where each column's declared bounds are −1 and 1."""

    table: str
    by: tuple[States, ...]
    columns: tuple[States, ...]
    counts: Floats
    """The noisy number of rows of each group, and its 95 % margin in deviations of normal noise."""
    means: Floats
    covariance: Floats
    cost: Guarantee
    population: str
    charges: tuple[int | str, ...]
    marked: bool = False

    @cached_property
    def silent(self) -> int:
        """How many groups the noise hides: of their rows it tells nothing, and none is drawn."""
        return int((self.counts[:, 0] < _LEAST_TOLD * self.counts[:, 1]).sum())

    @cached_property
    def weights(self) -> Floats:
        """The share of each group among the rows that are drawn; where the noise hides them all, they are alike."""
        told = np.where(self.counts[:, 0] < _LEAST_TOLD * self.counts[:, 1], 0.0, self.counts[:, 0])
        return told / told.sum() if told.any() else np.full(len(told), 1 / len(told))

    def sample(self, n: int | None = None, *, random: Random | None = None) -> Frame:
        """So many rows, without missing values; None: as many as there are, by the noisy counts."""
        from scipy.special import ndtri

        random = default_random() if random is None else random
        wanted = checked_number(max(round(self.counts[:, 0].sum()), 1) if n is None else n)
        group = np.searchsorted(np.cumsum(self.weights), uniform(wanted, random) * (1 - 1e-12), side="right")
        group = np.minimum(group, len(self.weights) - 1)
        roots, axes = np.linalg.eigh(self.covariance)
        widths = uniform(len(group) * len(roots), random).reshape(len(group), len(roots))
        drawn = self.means[group] + ndtri(np.clip(widths, 1e-12, 1 - 1e-12)) * np.sqrt(roots) @ axes.T
        found, places = {}, np.unravel_index(group, [each.number for each in self.by])
        for each, place in zip(self.by, places, strict=True):
            found[each.name] = each.series(each.pieces.at(place, each.number, uniform(len(group), random)))
        for each, values in zip(self.columns, drawn.T, strict=True):
            low, high = each.domain.low_code, each.domain.high_code
            codes = np.rint(low + (np.clip(values, -1, 1) + 1) * (high - low) / 2).astype(np.int64)
            found[each.name] = each.series(np.clip(codes, low, high))
        return Frame(found)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; `GaussianModel.load` reads it."""
        numbers = {name: getattr(self, name).tolist() for name in ("counts", "means", "covariance")}
        document = {
            "format": 1,
            "kind": _KIND,
            **{name: getattr(self, name) for name in ("table", "population", "marked")},
            **{name: [each.plain() for each in getattr(self, name)] for name in ("by", "columns")},
            **numbers,
            "cost": guarantee_to_plain(self.cost),
            "charges": list(self.charges),
        }
        Path(path).write_text(json.dumps(document, ensure_ascii=False, allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> GaussianModel:
        """The model of a file that `save` wrote. Only what this library knows is made: no code runs."""
        try:
            told = json.loads(Path(path).read_text(encoding="utf-8"))
            by, columns = (tuple(states_from(each) for each in told[name]) for name in ("by", "columns"))
            cost, (groups, width) = guarantee_from_plain(told["cost"]), (_groups(by), len(columns))
            shapes = {"counts": (groups, 2), "means": (groups, width), "covariance": (width, width)}
            numbers: Any = {name: np.array(told[name], dtype=np.float64).reshape(shape) for name, shape in shapes.items()}
            fine = all(np.isfinite(each).all() for each in numbers.values()) and np.abs(numbers["means"]).max(initial=0) <= 1
            if told["kind"] != _KIND or told["format"] != 1 or cost is None or not fine or (numbers["counts"][:, 1] < 0).any():
                raise ValueError
            numbers["covariance"] = _wide(numbers["covariance"])
            return cls(
                table=str(told["table"]),
                by=by,
                columns=columns,
                cost=cost,
                population=str(told["population"]),
                charges=tuple(told["charges"]),
                marked=bool(told["marked"]),
                **numbers,
            )
        except (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
            raise InvalidParameter(
                "The model is invalid",
                why=f"{str(path)!r} is no file that save() wrote",
                instead='GaussianModel.load("model.json")',
            ) from None

    def __repr__(self) -> str:
        told = len(self.counts) - self.silent
        return (
            f"synthetic Gaussians of {self.table!r}: {len(self.counts)} groups by {', '.join(each.name for each in self.by)}, "
            f"{len(self.columns)} columns\n"
            f"  the noise leaves {told} of the groups to be seen" + ("" if told else ": rows drawn tell nothing") + "\n"
            f"  cost: {self.cost} of population {self.population!r}; rows drawn from it cost nothing more"
            + ("\n  MARKED: the noise came from a test's generator and protects nobody" if self.marked else "")
        )


def fit_gaussians(
    session: Measurer,
    table: str,
    *,
    spend: Spending,
    by: Sequence[str | Binned],
    columns: Sequence[str] | None = None,
    purpose: str = "synthetic table",
) -> GaussianModel:
    """Rows of numbers from one Gaussian for each public group, for one charge: for small tables that a classifier is trained on.

    Parameters
    ----------
    by
        The groups: declared columns of few values, such as the class to predict, or `cl.Binned(name, edges)`.
    columns
        Numbers with declared bounds; None: all that are declared beside those of the groups.

    >>> from cloister.privacy import PureDP
    >>> from cloister.session import Door
    >>> from cloister.tables import Category, PrivateTable
    >>> rows = {"ill": [0, 1] * 500, "weight": [60, 80] * 500}
    >>> people = PrivateTable(rows, {"ill": Category([0, 1]), "weight": Integer(40, 120)})
    >>> with Door({"people": people}, budget=PureDP(1)) as door:
    ...     model = fit_gaussians(door, "people", spend=1, by=["ill"])
    >>> model.sample(50).column_names, model.silent
    (['ill', 'weight'], 0)
    """
    _, known = declared_rows(session, table)
    groups = tuple(states_of(known, by, table=table))
    taken = {each.name for each in groups}
    chosen = [name for name, domain in known.items() if name not in taken and isinstance(domain, Integer | Real)]
    numbers = tuple(states_of(known, chosen if columns is None else columns, table=table))
    for each in numbers:
        if not isinstance(each.domain, Integer | Real) or each.name in taken:
            raise UnsupportedQuery(
                f"The column {each.name!r} is not supported",
                why="it is no number beside the groups",
                instead=f'by=[…, "{each.name}"]',
            )
    if _groups(groups) > _MOST_GROUPS or len(numbers) > _MOST_COLUMNS:
        raise UnsupportedQuery(
            "These groups and columns are not supported",
            why=f"at most {_MOST_GROUPS:,} groups and {_MOST_COLUMNS} columns are measured",
            instead="fewer of them, or cl.synth.fit",
        )
    names = [each.name for each in numbers]
    first: tuple[Statistic, ...] = (Count(), *(Mean(column=name) for name in names))
    pairs = combinations(names, 2)
    second: tuple[Statistic, ...] = (*(Variance(column=name) for name in names), *(Covariance(x=x, y=y) for x, y in pairs))
    questions = [
        Question(table=table, by=tuple(each.key for each in groups), statistics=first),
        Question(table=table, statistics=second),
    ]
    inside, whole = session.measure_all(questions, spend, purpose=purpose, shares=[_MEANS, 1 - _MEANS])
    counts, means = _means(inside, numbers)
    told = inside.provenance
    return GaussianModel(
        table=table,
        by=groups,
        columns=numbers,
        counts=counts,
        means=means,
        covariance=_covariance(whole, numbers, counts, means),
        cost=inside.spent_by[told.population],
        population=told.population,
        charges=told.charges,
        marked=inside.marked or whole.marked,
    )


def _columns_of(release: Release) -> tuple[list[Any], list[Any]]:
    return list(release.to_pydict().values()), list(release.margin().to_pydict().values())


def _means(release: Release, columns: Sequence[States]) -> tuple[Floats, Floats]:
    """The number of rows of each group with its noise, and the scaled means: those of all rows where a group has none."""
    values, margins = (each[-1 - len(columns) :] for each in _columns_of(release))
    counts = np.column_stack([_floats(values[0], 0.0), _floats(margins[0], 0.0) / 1.96])
    scaled = np.column_stack([_scaled(each, _floats(column, np.nan)) for each, column in zip(columns, values[1:], strict=True)])
    weights = np.maximum(counts[:, :1], 0.0) * np.isfinite(scaled)
    middle = (weights * np.nan_to_num(scaled)).sum(axis=0) / np.maximum(weights.sum(axis=0), 1.0)
    return counts, np.clip(np.where(np.isfinite(scaled), scaled, middle), -1, 1)


def _covariance(release: Release, columns: Sequence[States], counts: Floats, means: Floats) -> Floats:
    """Within groups, on the scale of the means."""
    values, margins = ([float(_floats(column, 0.0)[0]) for column in each] for each in _columns_of(release))
    widths = np.array([float(each.domain.step) * (each.domain.high_code - each.domain.low_code) / 2 or 1.0 for each in columns])
    places = [(place, place) for place in range(len(columns))] + list(combinations(range(len(columns)), 2))
    found = np.zeros((len(columns), len(columns)))
    for (one, other), value, margin in zip(places, values, margins, strict=True):
        scale = widths[one] * widths[other]
        kept = 1.0 if one == other else max(1 - (margin / 1.96) ** 2 / max(value**2, 1e-300), 0.0)
        found[one, other] = found[other, one] = value * kept / scale
    weights = np.maximum(counts[:, 0], 0.0)
    weights = weights / weights.sum() if weights.any() else weights
    away = means - weights @ means
    return _wide(found - (away * weights[:, None]).T @ away)


def _wide(covariance: Floats) -> Floats:
    """A covariance with no direction too narrow or too wide."""
    roots, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((axes * np.clip(roots, _NARROWEST, 1.0)) @ axes.T)


def _scaled(states: States, values: Floats) -> Floats:
    domain = states.domain
    low, high = (float(domain.origin + code * domain.step) for code in (domain.low_code, domain.high_code))
    return (values - low) * 2 / (high - low) - 1 if high > low else np.zeros_like(values)


def _floats(column: Any, missing: float) -> Floats:
    return np.array([missing if each is None or not isfinite(each) else float(each) for each in column])


def _groups(by: Sequence[States]) -> int:
    return int(np.prod([each.number for each in by]))
