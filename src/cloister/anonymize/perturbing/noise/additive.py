"""Noise added to columns of numbers: to each by itself, or with the columns' own correlations."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.perturbing.columns import Columns, names_of
from cloister.anonymize.perturbing.noise.laws import NoiseLaw, normals
from cloister.errors import InvalidParameter, check_one_of
from cloister.noise import Random

Floats = npt.NDArray[np.float64]

KINDS = ("independent", "correlated", "kim")


@dataclass(frozen=True, eq=False, kw_only=True)
class Noised:
    """A table with noised columns, and what an analyst needs to know of the noise."""

    frame: Any
    laws: Mapping[str, NoiseLaw]
    """The law of each column's noise, for `reconstruct`."""
    covariance: Floats
    """Of the noise, in the order of the columns; with "kim", of the noise before the shrinking."""
    looked_up: bool
    """Whether the size of the noise was worked out from the rows, so that it tells their standard deviations."""


@dataclass(frozen=True, kw_only=True)
class AdditiveNoise:
    """Add random numbers to columns: x + e.

    Protects: exact values; somebody who knows a person's income does not find that number in the table. Does not protect:
    against approximate matches (an outlier stays one); a column that several others predict (`remove_noise` takes most of
    independent noise off correlated columns); many releases of the same rows, whose noise averages out. It is not
    differentially private: bounds are not declared and the noise is not calibrated to one person's effect. For that, take
    `cloister.local` (each value noised with an ε) or `cloister.noise`.

    `scale` is the noise's standard deviation in each column's unit (one number, or one for each column): you say it, so that it
    tells nothing. `ratio` is its share of the column's own standard deviation, which is looked up. `law` is "normal", "laplace"
    or "uniform".
    `kind`: "independent"; "correlated" (the noise has the columns' own correlations: `remove_noise` gains nothing, and
    covariances of the result are (1 + ratio²) times the old ones; Tendick 1991); "kim" (the same, and then shrunk to the
    mean so that means and covariances are kept in expectation; Kim 1986). The last two need `ratio` and normal noise, and look
    up all moments.
    Columns of whole numbers are rounded (not with `rounded=False`), and nothing is clipped: a noised age may be −3. Clipping
    would bias what is read of it. Missing values are refused, or with `missing="keep"` stay empty.

    >>> table = {"pay": [1800, 2500, 2100, 4000], "town": ["Ghent", "Bruges", "Ghent", "Ypres"]}
    >>> done = AdditiveNoise(columns="pay", scale=200).apply(table, random=Random.deterministic(1))
    >>> done.frame["pay"], done.laws["pay"]
    ([2496, 4157, 2370, 1790], NoiseLaw(shape='normal', scale=200.0, mean=0.0, step=1.0))
    """

    columns: str | Sequence[str]
    scale: float | Mapping[str, float] | None = None
    ratio: float | None = None
    law: str = "normal"
    kind: str = "independent"
    rounded: bool = True
    missing: str = "refuse"

    def __post_init__(self) -> None:
        NoiseLaw(shape=self.law)
        check_one_of(self.kind, "kind", KINDS, instead='kind="independent"')
        if (self.scale is None) == (self.ratio is None):
            raise InvalidParameter(
                "scale= and ratio= are invalid", why="one of the two says how much noise, and not both", instead="scale=200"
            )
        if self.ratio is not None and not (math.isfinite(self.ratio) and self.ratio > 0):
            raise InvalidParameter(f"ratio={self.ratio} is invalid", why="it is a number above 0", instead="ratio=0.3")
        if self.kind != "independent" and (self.ratio is None or self.law != "normal"):
            raise InvalidParameter(
                f"kind={self.kind!r} is invalid",
                why="noise with the columns' correlations is normal, and in proportion to them",
                instead=f'AdditiveNoise(columns=…, kind="{self.kind}", ratio=0.3)',
            )

    def apply(self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False) -> Noised:
        """The table with noised columns, in the kind of frame that came in."""
        columns, names, source = Columns.leaving(frame, self.columns, random, shuffle=shuffle, keep_index=keep_index)
        there = np.column_stack([columns.without_missing(name, self.missing) for name in names])
        values = np.column_stack([columns.numbers(name) for name in names])
        if self.kind == "independent":
            scales = [self._scale(name, values[:, place]) for place, name in enumerate(names)]
            covariance = np.diag(np.square(scales))
            fresh = values + np.column_stack([NoiseLaw(shape=self.law, scale=each).draw(columns.rows, source) for each in scales])
        else:
            fresh, covariance = self._together(values, there, source)
            scales = [float(scale) for scale in np.sqrt(np.diag(covariance))]
        steps = [1.0 if self.rounded and columns.whole(name) else 0.0 for name in names]
        out = {
            name: columns.fitting(name, np.rint(fresh[:, place]) if steps[place] else fresh[:, place])
            for place, name in enumerate(names)
        }
        laws = {
            name: NoiseLaw(shape=self.law, scale=scale, step=step) for name, scale, step in zip(names, scales, steps, strict=True)
        }
        looked_up = self.ratio is not None
        return Noised(frame=columns.replaced(out), laws=laws, covariance=covariance, looked_up=looked_up)

    def _scale(self, name: str, values: Floats) -> float:
        if self.ratio is None:
            if isinstance(self.scale, Mapping):
                if name not in self.scale:
                    raise InvalidParameter(
                        "scale= is invalid", why=f"it says nothing of {name!r}", instead=f"scale={{{name!r}: 10, …}}"
                    )
                return NoiseLaw(scale=float(self.scale[name])).scale
            return NoiseLaw(scale=float(self.scale or 0.0)).scale
        known = values[~np.isnan(values)]
        spread = float(known.std()) if known.size else 0.0
        return NoiseLaw(scale=self.ratio * _spread(name, spread)).scale

    def _together(self, values: Floats, there: npt.NDArray[np.bool_], random: Random) -> tuple[Floats, Floats]:
        """Normal noise with the covariance of the columns, and with "kim" shrunk to their means."""
        if not there.all():
            raise InvalidParameter(
                f"kind={self.kind!r} is invalid",
                why="rows with missing values have no covariance",
                instead='kind="independent", or a table without those rows',
            )
        ratio = float(self.ratio or 0.0)
        if len(values) < 2:
            raise InvalidParameter(
                f"kind={self.kind!r} is invalid",
                why="a covariance needs two rows at least",
                instead='kind="independent" with scale=',
            )
        middle = values.mean(axis=0)
        covariance = ratio**2 * np.atleast_2d(np.cov(values, rowvar=False, bias=True))
        strengths, axes = np.linalg.eigh(covariance)
        draws = normals(values.size, random).reshape(values.shape)
        noise = draws * np.sqrt(np.maximum(strengths, 0.0)) @ axes.T
        for name, spread in zip(names_of(self.columns), np.sqrt(np.diag(covariance)), strict=True):
            _spread(name, float(spread))
        if self.kind == "correlated":
            return values + noise, covariance
        return middle + (values - middle + noise) / math.sqrt(1 + ratio**2), covariance


def _spread(name: str, spread: float) -> float:
    if not spread > 0:
        raise InvalidParameter(
            f"The column {name!r} is invalid",
            why="all of its values are equal (or it has none), so that a share of their spread is not noise",
            instead="scale=, in the unit of the column",
        )
    return spread


@dataclass(frozen=True, kw_only=True)
class MultiplicativeNoise:
    """Multiply numbers by factors exp(e): large numbers get large noise, as incomes and turnovers need it.

    e is normal with standard deviation `scale` (0.1: some ten per cent) and mean −scale²/2, so that factors are 1 in the
    mean and totals are kept in expectation. Protects as `AdditiveNoise` does. Does not protect: zeros stay zero and signs
    stay; the largest value likely stays the largest; several columns, each multiplied by its own noise, still predict one
    another. It is not differentially private.

    The law that comes back is that of e: `reconstruct(…, multiplicative=True)` goes through logarithms.
    Whole numbers are not rounded: log(0) would be in the way. Missing values are refused, or with `missing="keep"` stay empty.

    >>> done = MultiplicativeNoise(columns="pay", scale=0.1).apply({"pay": [2000.0, 0.0, -10.0]}, random=Random.deterministic(1))
    >>> [round(each) for each in done.frame["pay"]]
    [0, -10, 1640]
    """

    columns: str | Sequence[str]
    scale: float
    missing: str = "refuse"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and 0 < self.scale <= 5):
            raise InvalidParameter(
                f"scale={self.scale} is invalid",
                why="it is the standard deviation of a factor's logarithm, between 0 and 5",
                instead="scale=0.1",
            )

    def apply(self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False) -> Noised:
        """The table with the columns multiplied, in the kind of frame that came in."""
        columns, names, source = Columns.leaving(frame, self.columns, random, shuffle=shuffle, keep_index=keep_index)
        law = NoiseLaw(scale=float(self.scale), mean=-(float(self.scale) ** 2) / 2)
        fresh = {}
        for name in names:
            columns.without_missing(name, self.missing)
            fresh[name] = columns.numbers(name) * np.exp(law.draw(columns.rows, source))
        return Noised(
            frame=columns.replaced(fresh),
            laws=dict.fromkeys(names, law),
            covariance=np.eye(len(names)) * law.scale**2,
            looked_up=False,
        )
