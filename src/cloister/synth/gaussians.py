"""Rows from one Gaussian for each group: microaggregation whose groups are public, and whose means and covariances are noisy.

*Groups* are those of declared columns: classes, categories, bins of one's own. The published form clusters records and features
by looking at the rows, which costs nothing there and promises nothing: here nothing is looked at before it is paid.

*Measured*, under one charge: for 19/20 of the spend the number of rows in each group, and there of each column the mean and the
variance (one block of moments has both for the price of a mean); for the rest the covariances of all rows. Guarantee: that of the
door's questions (`session/planning/moments.py` has the sensitivity of a block of moments); all else is post-processing. One
covariance serves all groups: of groups with fewer rows each would be lost in the noise, and a classifier that is trained on the
rows needs the means.

*Mended*, by the margins, which are known: how variances differ between columns is shrunk as far as it is noise, towards their
mean (Lindley 1962, after James & Stein 1961: of four numbers and more that errs less than the numbers themselves, whatever is
true). Means stay as they are: shrunk ones lie where no group is. Where what they differ by is all noise, by the same rule, the
model says so. A covariance between two columns is shrunk by what of its square is noise, and the matrix gets no direction
narrower than noise may make it. Draws are rounded to declared steps and stay within declared bounds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import isfinite, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.errors import InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.noise import Random, default_random
from cloister.privacy import Guarantee
from cloister.privacy.plain import guarantee_from_plain, guarantee_to_plain
from cloister.session import Count, Covariance, Frame, Mean, Measurer, Question, Release, Spending, Statistic, Variance
from cloister.synth.drawing import allowed_by, checked_number
from cloister.synth.measuring import Floats, Marginals, Noisy, check_spend, declared_rows
from cloister.synth.mixture import Mixture
from cloister.synth.pieces import Integers
from cloister.synth.states import Asked, States, states_from, states_of
from cloister.tables import Binned, Boolean, Category, Domain, Integer, Real, Text

if TYPE_CHECKING:
    from cloister.synth.answer import Answer
    from cloister.synth.report import PlainReport

_MEANS = Fraction(19, 20)
_MOST_GROUPS, _MOST_COLUMNS = 1_000, 50
_NARROWEST, _TINY = 0.01, 1e-9
"""The least variance of any direction, where columns are scaled to [−1, 1] and noise is wide; and where there is next to none."""
_LEAST_TOLD = 2
"""How many deviations of its noise a group's number of rows must be for its mean to tell anything."""
KIND = "synthetic Gaussians"
"""What a file says that it is."""
_APART = "by more than the noise of their means"
_ALIKE = "the noise hides how the numbers of groups differ: what a classifier learns of drawn rows may be noise"
_AT_ONCE, _LEAST_MET, _MOST_SHOWN = 100_000, 0.01, 100
_SEED = b"rows that show how many meet a condition"


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
    told_apart: float = 1.0
    """Which part of what the means of groups differ by is more than noise: 0 where no rule would keep any of it."""

    @cached_property
    def silent(self) -> int:
        """How many groups the noise hides: of their rows it tells nothing, and none is drawn."""
        return int((self.counts[:, 0] < _LEAST_TOLD * self.counts[:, 1]).sum())

    @cached_property
    def weights(self) -> Floats:
        """The share of each group among the rows that are drawn; where the noise hides them all, they are alike."""
        told = np.where(self.counts[:, 0] < _LEAST_TOLD * self.counts[:, 1], 0.0, self.counts[:, 0])
        return told / told.sum() if told.any() else np.full(len(told), 1 / len(told))

    def sample(self, n: int | None = None, *, given: Mapping[str, Any] | None = None, random: Random | None = None) -> Frame:
        """So many rows, without missing values; None: as many as there are, by the noisy counts.

        `given` has conditions as `SyntheticModel.sample` takes them. Rows that don't meet them are thrown away; where fewer than
        one in a hundred does, they are refused.
        """
        random = default_random() if random is None else random
        columns, met = (*self.by, *self.columns), 1.0
        allowed = allowed_by(columns, given or {}, self.table)
        if allowed:
            tried = self._kept(_AT_ONCE, allowed, Random.derived(_SEED))
            met = len(tried[0]) / _AT_ONCE
            if met < _LEAST_MET:
                raise InvalidParameter(
                    f"given={dict(given or {})!r} is invalid",
                    why=f"{met:.1%} of the rows of the model meet it, and at least {_LEAST_MET:.0%} have to",
                    instead="a wider condition",
                )
        wanted = checked_number(max(round(self.counts[:, 0].sum() * met), 1) if n is None else n)
        found = self._kept(wanted, allowed, random)
        while len(found[0]) < wanted:
            more = self._kept(min(int((wanted - len(found[0])) / met) + 100, 20 * _AT_ONCE), allowed, random)
            found = [np.concatenate(pair) for pair in zip(found, more, strict=True)]
        return Frame({each.name: each.series(codes[:wanted]) for each, codes in zip(columns, found, strict=True)})

    def _kept(self, n: int, allowed: Mapping[int, Any], random: Random) -> list[Integers]:
        """The codes of those of so many drawn rows that meet conditions on columns, by their places."""
        from scipy.special import ndtri

        group = np.searchsorted(np.cumsum(self.weights), random.uniform(n) * (1 - 1e-12), side="right")
        group = np.minimum(group, len(self.weights) - 1)
        roots, axes = np.linalg.eigh(self.covariance)
        widths = random.uniform(len(group) * len(roots)).reshape(len(group), len(roots))
        drawn = self.means[group] + ndtri(np.clip(widths, 1e-12, 1 - 1e-12)) * np.sqrt(roots) @ axes.T
        found, places = list[Integers](), np.unravel_index(group, [each.number for each in self.by])
        for each, place in zip(self.by, places, strict=True):
            found.append(each.pieces.at(place, each.number, random.uniform(len(group))))
        for each, values in zip(self.columns, drawn.T, strict=True):
            low, high = each.domain.low_code, each.domain.high_code
            codes = np.rint(low + (np.clip(values, -1, 1) + 1) * (high - low) / 2).astype(np.int64)
            found.append(np.clip(codes, low, high))
        met = np.logical_and.reduce([np.ones(n, dtype=bool), *(pieces.within(found[place]) for place, pieces in allowed.items())])
        return [codes[met] for codes in found]

    def answer(
        self,
        question: str | Question,
        *,
        confidence: float = 0.95,
        dialect: str | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Answer:
        """Counts of rows by the columns of the groups, from what was measured, each with a margin. Sums and means of the others
        have no margin here, and are refused: they are what rows are drawn for.

        Why the margin holds: a group's noise has a known 95 % margin m, of Laplace noise of scale m/ln 20 or of Gaussian noise of
        deviation m/1.96. It is read as of the larger variance of the two, with the fourth cumulant of the first, which is wider
        than either (`session/releases/spreads.py`).
        """
        from cloister.synth.answering import answered
        from cloister.synth.model import SyntheticModel

        sizes, margin = tuple(each.number for each in self.by), 1.96 * float(self.counts[:, 1].max())
        scale = margin / log(20)
        noisy = Noisy(self.counts[:, 0].reshape(sizes), (margin / 1.95) ** 2, True, fourth=12 * scale**4, largest=2 * scale**2)
        found = Marginals(sizes=sizes, tables={tuple(range(len(sizes))): noisy}, whole=True)
        chances = np.maximum(noisy.counts, 0.0).ravel()
        chances = chances / chances.sum() if chances.any() else np.full(len(chances), 1 / len(chances))
        states = np.unravel_index(np.arange(len(chances)), sizes)
        groups = SyntheticModel(
            table=self.table,
            method="histogram",
            why="",
            columns=self.by,
            mixture=Mixture(chances, tuple(np.eye(size)[state] for size, state in zip(sizes, states, strict=True))),
            rows=found.rows()[0],
            rows_error=found.rows()[1],
            measured=found,
            cost=self.cost,
            population=self.population,
            charges=self.charges,
            marked=self.marked,
        )
        try:
            return answered(groups, question, confidence, dialect)
        except UnknownColumn:
            raise UnsupportedQuery(
                "The query is not supported",
                why=f"a model of Gaussians answers counts of rows by {', '.join(each.name for each in self.by)}",
                instead="model.sample(), whose rows have the other columns, or a model of cl.synth.fit for margins of them",
            ) from None

    def report(self, *, progress: Callable[[str], None] = lambda _: None) -> PlainReport:
        """What was measured, with which margins, what it cost. `print` it, or `.save("report.html")`."""
        from cloister.synth.report import LIMITS, PlainReport

        progress("reporting")
        labels = [each.series(each.pieces.at(np.arange(each.number), each.number)).tolist() for each in self.by]
        names = [", ".join("missing" if value is None else str(value) for value in group) for group in product(*labels)]
        margin = 1.96 * float(self.counts[:, 1].max())
        marked = "MARKED: the noise came from a test's generator and protects nobody"
        return PlainReport(
            table=self.table,
            warned=(marked,) if self.marked else (),
            known=(
                ("method", "microaggregation: one Gaussian for each group, and one covariance for all of them"),
                ("groups", "; ".join(each.words() for each in self.by)),
                ("columns", "; ".join(each.name for each in self.columns)),
                ("hidden", f"the noise hides {self.silent} of {len(self.counts)} groups, of which no row is drawn"),
                ("how groups differ", _APART if self.told_apart else _ALIKE),
                ("expected error", "not known: no interval of the rows was tried for Gaussians"),
                ("cost", f"{self.cost}, of population {self.population}; rows and answers cost nothing more"),
            ),
            groups=tuple(zip(names[:_MOST_SHOWN], self.counts[:_MOST_SHOWN, 0].tolist(), strict=True)),
            margin=margin,
            limits=(*LIMITS, "Columns have one peak in each group, the same spread in all of them, and no missing values."),
            cost=self.cost,
        )

    def save(self, path: str | Path) -> None:
        """Write the model as JSON; `cl.synth.load` reads it."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    def to_json(self) -> str:
        """The model as JSON: plain numbers and texts, nothing that runs."""
        numbers = {name: getattr(self, name).tolist() for name in ("counts", "means", "covariance")}
        document = {
            "format": 1,
            "kind": KIND,
            **{name: getattr(self, name) for name in ("table", "population", "marked", "told_apart")},
            **{name: [each.plain() for each in getattr(self, name)] for name in ("by", "columns")},
            **numbers,
            "cost": guarantee_to_plain(self.cost),
            "charges": list(self.charges),
        }
        return json.dumps(document, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> GaussianModel:
        """The model of the text of a file that `save` wrote. Only what this library knows is made: no code runs."""
        try:
            told = json.loads(text)
            by, columns = (tuple(states_from(each) for each in told[name]) for name in ("by", "columns"))
            cost, (groups, width) = guarantee_from_plain(told["cost"]), (_groups(by), len(columns))
            shapes = {"counts": (groups, 2), "means": (groups, width), "covariance": (width, width)}
            numbers: Any = {name: np.array(told[name], dtype=np.float64).reshape(shape) for name, shape in shapes.items()}
            fine = all(np.isfinite(each).all() for each in numbers.values()) and np.abs(numbers["means"]).max(initial=0) <= 1
            if told["kind"] != KIND or told["format"] != 1 or cost is None or not fine or (numbers["counts"][:, 1] < 0).any():
                raise ValueError
            numbers["covariance"] = _wide(numbers["covariance"], _TINY)
            return cls(
                table=str(told["table"]),
                by=by,
                columns=columns,
                cost=cost,
                population=str(told["population"]),
                charges=tuple(told["charges"]),
                marked=bool(told["marked"]),
                told_apart=float(told.get("told_apart", 1.0)),
                **numbers,
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
            raise InvalidParameter(
                "The model is invalid", why="it is no file that save() wrote", instead='cl.synth.load("model.json")'
            ) from None

    def __repr__(self) -> str:
        told = len(self.counts) - self.silent
        return (
            f"synthetic Gaussians of {self.table!r}: {len(self.counts)} groups by {', '.join(each.name for each in self.by)}, "
            f"{len(self.columns)} columns\n"
            f"  the noise leaves {told} of the groups to be seen"
            + ("" if told else ": rows drawn tell nothing")
            + "\n"
            + ("" if self.told_apart else f"  {_ALIKE}\n")
            + f"  cost: {self.cost} of population {self.population!r}; rows drawn from it cost nothing more"
            + ("\n  MARKED: the noise came from a test's generator and protects nobody" if self.marked else "")
        )


def fit_gaussians(
    session: Measurer,
    table: str,
    *,
    spend: Spending,
    by: Sequence[str | Binned] | None = None,
    columns: Sequence[Asked] | None = None,
    purpose: str = "synthetic table",
) -> GaussianModel:
    """Rows of numbers from one Gaussian for each public group, for one charge: for small tables that a classifier is trained on.

    Parameters
    ----------
    by
        The groups: declared columns of few values, such as the class to predict, or `cl.Binned(name, edges)`. None: all
        categories and truth values among `columns`.
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
    declaration, known = declared_rows(session, table)
    if by is None:
        by, columns = _kinds(known, table, columns)
    groups = tuple(states_of(known, by, table=table, said="by"))
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
    check_spend(session, table, groups, spend, declaration.size)
    names = [each.name for each in numbers]
    spreads = (Variance(column=name, sample=False) for name in names)
    first: tuple[Statistic, ...] = (Count(), *(Mean(column=name) for name in names), *spreads)
    second: tuple[Statistic, ...] = tuple(Covariance(x=x, y=y) for x, y in combinations(names, 2))
    questions = [Question(table=table, by=tuple(each.key for each in groups), statistics=first, every_group=True)]
    questions += [Question(table=table, statistics=second)] if second else []
    shares = [_MEANS, 1 - _MEANS] if second else None
    inside, *whole = session.measure_all(questions, spend, purpose=purpose, shares=shares)
    counts, means, widths, told_apart = _moments(inside, numbers)
    told = inside.provenance
    return GaussianModel(
        table=table,
        by=groups,
        columns=numbers,
        counts=counts,
        means=means,
        covariance=_covariance(whole, numbers, counts, means, widths),
        told_apart=told_apart,
        cost=inside.spent_by[told.population],
        population=told.population,
        charges=told.charges,
        marked=any(each.marked for each in (inside, *whole)),
    )


def _kinds(
    known: Mapping[str, Domain], table: str, columns: Sequence[Asked] | None
) -> tuple[list[str | Binned], list[Asked] | None]:
    """The groups among the chosen columns, and the others."""
    chosen: Any = [name for name, domain in known.items() if not isinstance(domain, Text)] if columns is None else columns
    found = states_of(known, chosen, table=table)
    kinds = {each.name for each in found if isinstance(each.domain, Category | Boolean)}
    fine = [each.name for each in found if isinstance(each.domain, Category | Boolean | Integer | Real)]
    if odd := [each.name for each in found if each.name not in fine]:
        raise UnsupportedQuery(
            f"The column {odd[0]!r} is not supported",
            why="a Gaussian is of numbers, in groups of categories and truth values",
            instead=f'columns={fine!r}, or a method that keeps days: method="pairs"',
        )
    if not kinds:
        raise InvalidParameter(
            "The groups are not given", why="no column is a category or a truth value", instead='fit_gaussians(…, by=["ill"])'
        )
    if len(kinds) == len(found):
        raise UnsupportedQuery("These columns are not supported", why="none of them is a number", instead='method="pairs"')
    groups = [each for each, one in zip(chosen, found, strict=True) if one.name in kinds]
    return groups, None if columns is None else [each for each in columns if each not in groups]


def _moments(release: Release, columns: Sequence[States]) -> tuple[Floats, Floats, Floats, float]:
    """The number of rows of each group with its noise; scaled, the means of each group and the variances within groups; and which
    part of what the means of groups differ by is more than noise."""
    values, margins = ([*each.to_pydict().values()][-1 - 2 * len(columns) :] for each in (release, release.margin()))
    counts = np.column_stack([_floats(values[0], 0.0), _floats(margins[0], 0.0) / 1.96])
    middle, away = values[1 : 1 + len(columns)], margins[1 : 1 + len(columns)]
    scaled = np.column_stack([_scaled(each, _floats(column, np.nan)) for each, column in zip(columns, middle, strict=True)])
    halves = np.array([_half(each) for each in columns])
    noise = np.column_stack([_floats(each, np.inf) for each in away]) / 1.96 / halves
    known = np.isfinite(scaled) & np.isfinite(noise)
    weights = np.maximum(counts[:, :1], 0.0) * known
    whole = np.maximum(weights.sum(axis=0), 1.0)
    centre = (weights * np.nan_to_num(scaled)).sum(axis=0) / whole
    means = np.where(known, scaled, centre)
    left = _shrunk(((means - centre) / np.where(known & (noise > 0), noise, 1e-12))[known], len(columns))
    spread, doubt = (
        np.column_stack([_floats(each, missing) for each in told[1 + len(columns) :]]) / halves**2
        for told, missing in ((values, np.nan), (margins, np.inf))
    )
    seen = weights * np.isfinite(spread) * np.isfinite(doubt)
    parts = seen / np.maximum(seen.sum(axis=0), 1.0)
    widths = (parts * np.nan_to_num(spread, posinf=0.0)).sum(axis=0)
    doubts = np.sqrt(((parts * np.where(seen > 0, doubt, 0.0) / 1.96) ** 2).sum(axis=0))
    even = float(np.clip(widths.mean(), _NARROWEST, 1.0))
    kept = _shrunk((widths - even) / np.maximum(doubts, 1e-12), 1) if len(columns) > 1 else 1.0
    return counts, np.clip(means, -1, 1), even + kept * (widths - even), left


def _shrunk(deviations: Floats, centred: int) -> float:
    """What part of some deviations, over those of their noise, the rule of James and Stein leaves; so many went into the centre.

    >>> _shrunk(np.array([10.0, -10.0, 10.0, -10.0]), 1), _shrunk(np.array([0.5, -0.5, 0.4, -0.4]), 1)
    (0.9975, 0.0)
    """
    square = float((deviations**2).sum())
    return max(1 - max(len(deviations) - centred - 2, 0) / square, 0.0) if square > 0 else 0.0


def _covariance(whole: Sequence[Release], columns: Sequence[States], counts: Floats, means: Floats, widths: Floats) -> Floats:
    """Within groups, on the scale of the means: of all rows, less what the groups' means have."""
    found = np.diag(widths)
    weights = np.maximum(counts[:, 0], 0.0)
    weights = weights / weights.sum() if weights.any() else weights
    away = means - weights @ means
    between = (away * weights[:, None]).T @ away
    halves, noises = [_half(each) for each in columns], [0.0] if whole else [_NARROWEST]
    for release in whole:
        values, margins = (
            [float(_floats(column, 0.0)[0]) for column in each.to_pydict().values()] for each in (release, release.margin())
        )
        for (one, other), value, margin in zip(combinations(range(len(columns)), 2), values, margins, strict=True):
            scale = halves[one] * halves[other]
            inside, noise = value / scale - between[one, other], margin / 1.96 / scale
            noises.append(noise)
            kept = max(1 - noise**2 / max(inside**2, 1e-300), 0.0)
            most = sqrt(max(widths[one] * widths[other], 0.0))
            found[one, other] = found[other, one] = float(np.clip(inside * kept, -most, most))
    return _wide(found, float(np.clip(sqrt(len(columns)) * max(noises), _TINY, _NARROWEST)))


def _half(states: States) -> float:
    """Half of the declared range."""
    return float(states.domain.step) * (states.domain.high_code - states.domain.low_code) / 2 or 1.0


def _wide(covariance: Floats, least: float) -> Floats:
    """A covariance with no direction too narrow, as noise may make them, or too wide."""
    roots, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((axes * np.clip(roots, least, 1.0)) @ axes.T)


def _scaled(states: States, values: Floats) -> Floats:
    domain = states.domain
    low, high = (float(domain.origin + code * domain.step) for code in (domain.low_code, domain.high_code))
    return (values - low) * 2 / (high - low) - 1 if high > low else np.zeros_like(values)


def _floats(column: Any, missing: float) -> Floats:
    return np.array([missing if each is None or not isfinite(each) else float(each) for each in column])


def _groups(by: Sequence[States]) -> int:
    return int(np.prod([each.number for each in by]))
