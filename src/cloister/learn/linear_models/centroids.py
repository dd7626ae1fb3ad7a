"""Classes told apart by where their middles lie: one noisy sum a class, shrunk as far as its noise asks for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.vectors import noisy_columns
from cloister.learn.linear_models.prepared import STEPS, Prepared
from cloister.noise import Random
from cloister.noise.allowance import Share

Floats = npt.NDArray[np.float64]


def centroids(prepared: Prepared, classes: int, share: Share, random: Random | None) -> Floats:
    """Weights of the discriminant of equally round classes around the noisy middles; two classes give one column.

    Guarantee: what the share says, for one person more or less: a person's row, at most 1 long, is in the sum of one class
    (`vectors.noisy_columns`). All else is made of that release and of the noisy class counts.

    Error: a middle is off by about d/(ε n_c), or √d/(μ n_c). It is drawn to the common middle by as much as its noise makes up of
    its distance (James & Stein 1961), and the noise counts as spread within the class: the less is known, the more the classes'
    sizes decide.
    """
    summed = np.stack([prepared.rows[prepared.classes == one].sum(axis=0) for one in range(classes)], axis=1)
    released = noisy_columns(summed.astype(np.int64), share, random, length=Fraction(STEPS)) / STEPS
    noisy, dimension = released[:-1], len(released) - 1
    scale = float(share.scale(l1=1, l2_squared=1))
    variance = (dimension + 2) * scale**2 if share.currency == "epsilon" else scale**2
    persons = _persons(prepared, released[-1] / prepared.constant, variance / prepared.constant**2)
    noise = dimension * variance
    middles = noisy / persons
    common = noisy.sum(axis=1) / persons.sum()
    apart = middles - common[:, None]
    off = noise / persons**2
    lengths = np.maximum((apart**2).sum(axis=0), 1e-12)
    kept = np.clip(1 - off / lengths, 0, 1)
    apart = apart * kept
    within = prepared.square - (common**2).sum() - float(persons @ (apart**2).sum(axis=0)) / persons.sum()
    spread = (max(within, 0.05) + float((off * kept).mean())) / dimension
    inner = apart / spread
    squares = _shrunk((apart**2).sum(axis=0), kept**4 * off * (4 * lengths + 2 * off) / dimension)
    constant = np.log(persons / persons.sum()) - squares / (2 * spread) - common @ inner
    weights = np.concatenate([inner, constant[None, :] / prepared.constant])
    return weights if classes > 2 else weights[:, 1:] - weights[:, :1]


def _persons(prepared: Prepared, seen: Floats, variance: float) -> Floats:
    """Persons a class, from the class counts and from the constant of the summed rows, each by how sure it is."""
    weight = variance / (variance + prepared.count_variance)
    return np.asarray(np.maximum(weight * prepared.counts + (1 - weight) * seen, 1.0))


def _shrunk(values: Floats, variances: Floats) -> Floats:
    """Numbers drawn to their mean by as much as noise makes up of their spread.

    >>> _shrunk(np.array([1.0, 3.0]), np.array([0.5, 0.5])).tolist()
    [1.5, 2.5]
    """
    mean = values.mean()
    kept = max(0.0, 1 - float(variances.mean()) / max(float(((values - mean) ** 2).mean()), 1e-300))
    return np.asarray(mean + kept * (values - mean))
