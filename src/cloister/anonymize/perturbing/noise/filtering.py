"""The attack on additive noise: where columns predict one another, most of the noise can be taken off again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.perturbing.columns import Columns, names_of
from cloister.errors import InvalidParameter, check_one_of

Floats = npt.NDArray[np.float64]

METHODS = ("bayes", "spectral")


@dataclass(frozen=True, eq=False, kw_only=True)
class Recovered:
    """What an attacker makes of noised columns."""

    values: Floats
    """One row a record, in the order of the columns."""
    noised: Floats
    directions: int
    """How many directions of the columns' space stand out of the noise."""

    def errors(self, original: npt.ArrayLike) -> tuple[Floats, Floats]:
        """For whoever has the original: the root mean squared error of each column before and after the attack."""
        truth = np.asarray(original, dtype=np.float64).reshape(self.values.shape)
        before = np.sqrt(np.mean((self.noised - truth) ** 2, axis=0))
        after = np.sqrt(np.mean((self.values - truth) ** 2, axis=0))
        return before, after


def remove_noise(noised: Any, columns: str | Sequence[str], covariance: npt.ArrayLike, *, method: str = "bayes") -> Recovered:
    """The original values as well as they can be told from noised ones and the noise's covariance, which is public.

    Run it on a table before the table is released: `errors` says what is left of the noise. "spectral" (Kargupta, Datta, Wang &
    Sivakumar 2003): eigenvalues of noise alone lie below (1 + √(columns/records))² (Marchenko & Pastur 1967); the directions
    above are kept, the others dropped. "bayes" (Huang, Du & Chen 2005): the conditional mean of normal data,
    μ + Σₓ(Σₓ + Σₑ)⁻¹(y − μ) with Σₓ = Σ_y − Σₑ. Where Σₑ is in proportion to Σₓ it only shrinks all numbers alike, so that
    correlated noise loses little to it.

    >>> from cloister.anonymize.perturbing import AdditiveNoise
    >>> from cloister.noise import Random
    >>> hours = np.linspace(10, 60, 500)
    >>> table = {f"pay{year}": hours * 20 + year for year in range(8)}        # eight columns that say the same
    >>> done = AdditiveNoise(columns=list(table), scale=100).apply(table, random=Random.deterministic(1), shuffle=False)
    >>> found = remove_noise(done.frame, list(table), done.covariance)
    >>> before, after = found.errors(np.column_stack(list(table.values())))
    >>> round(before.mean()), round(after.mean()), found.directions
    (98, 34, 1)
    """
    check_one_of(method, "method", METHODS, why='it is neither "bayes" nor "spectral"', instead='method="bayes"')
    opened, names = Columns.of(noised), names_of(columns)
    opened.check(names)
    for name in names:
        opened.refuse_missing(name, "columns without gaps")
    values = np.column_stack([opened.numbers(name) for name in names])
    noise = np.asarray(covariance, dtype=np.float64)
    if noise.shape != (len(names), len(names)) or not np.isfinite(noise).all() or not np.allclose(noise, noise.T):
        raise InvalidParameter(
            "covariance= is invalid",
            why="it is not a symmetric matrix with a row for each column",
            instead="the covariance of apply()",
        )
    if len(values) < 2:
        raise InvalidParameter("The table is invalid", why="a covariance needs two rows at least", instead="more rows")
    middle = values.mean(axis=0)
    seen = np.atleast_2d(np.cov(values, rowvar=False, bias=True))
    strengths, axes = np.linalg.eigh(noise)
    ranked = np.maximum(strengths, 1e-9 * max(float(strengths[-1]), 1e-300))  # noise may have less than full rank
    white, back = axes / np.sqrt(ranked), axes * np.sqrt(ranked)
    found, directions = np.linalg.eigh(white.T @ seen @ white)  # in these coordinates noise has variance 1 along each axis
    edge = (1 + np.sqrt(len(names) / len(values))) ** 2
    kept = found > edge
    gain = kept.astype(np.float64) if method == "spectral" else np.maximum(1 - 1 / np.maximum(found, 1e-300), 0.0)
    recovered = middle + (values - middle) @ white @ (directions * gain) @ directions.T @ back.T
    return Recovered(values=recovered, noised=values, directions=int(kept.sum()))
