"""Made-up rows to learn from: they follow the declarations, and a relation is put into them that can be found.

A rehearsal's rows know no relation between columns, so every method would be as good as a guess on them. Here the target follows
from a weighted sum of all features, with some chance besides: how well a method finds it again shows what its noise costs, for
this many rows, features and classes. Where there is no target, the rows lie in a few groups. Weights, groups and chance come from
a fixed seed: public, and the same each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.bounds import box_of
from cloister.noise import Random
from cloister.tables import Category

if TYPE_CHECKING:
    from cloister.learn.frame.base import PrivateModel
    from cloister.learn.frame.encoding import Encoder
    from cloister.privacy import Guarantee

_SEED = 20_260_102
_FINE = 2**20
_CHANCE = 0.5
"""Of the target's deviation, as a part of what the features make."""
_GROUPS, _TIGHT = 4, 0.75
_BY_ENGINE = ("engine", "moments")
"""Methods of `fit_table` alone."""


def made_up(model: PrivateModel, encoder: Encoder, rows: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any] | None]:
    """Features, and the target where the model learns one. The model's bounds and classes are those that are declared; one that
    takes categories by their numbers, and not as a 0 or 1 for each, gets them so, and is told how many there are; one that was to
    sum by the table's engine learns from these as from arrays.

    >>> from cloister.learn import GaussianNB
    >>> from cloister.learn.frame.encoding import Encoder
    >>> from cloister.tables import Integer
    >>> encoder = Encoder.of({"age": Integer(17, 90)}, ["age"])
    >>> X, y = made_up(GaussianNB(bounds=encoder.bounds, classes=["F", "M"]), encoder, 100)
    >>> X.shape, sorted(set(y.tolist())), float(X.min()) >= 17
    ((100, 1), ['F', 'M'], True)
    """
    if getattr(model, "method", "") in _BY_ENGINE:
        model.set_params(method="auto")
    random = Random.deterministic(_SEED)
    if model.target_kind == "none":
        codes = _grouped(encoder, rows, random)
    else:
        ends = {name: (domain.low_code, domain.high_code) for name, domain in encoder.columns}
        codes = {name: low + random.below(high - low + 1, rows).astype(np.int64) for name, (low, high) in ends.items()}
    X = encoder.codes(codes)
    centred = box_of(encoder.bounds, features=X.shape[1]).centred(X)
    if hasattr(model, "categories"):
        X = _numbered(model, encoder, codes)
    if model.target_kind == "none":
        return X, None
    score = centred @ (2 * _chances(centred.shape[1], random) - 1)
    chance = sum(_chances(rows, random) for _ in range(4)) - 2.0
    spread = float(score.std()) or 1.0
    score = (score - score.mean()) / spread + _CHANCE * chance / float(np.std(chance) or 1.0)
    if model.target_kind == "number":
        low, high = model.bounds_y
        return X, np.clip((low + high) / 2 + (high - low) / 6 * score, low, high)
    classes = np.asarray(model.classes)
    places = np.argsort(np.argsort(score, kind="stable"), kind="stable")
    return X, classes[places * len(classes) // max(rows, 1)]


def fit_within(model: PrivateModel, X: Any, y: Any, promise: Guarantee, *, rows: int = 1) -> PrivateModel:
    """The model, fitted to made-up arrays as a session fits it under that promise, for so many rows of one person."""
    return model._fitted(model._checked(X, y), model._allowance(promise, rows=rows))


def _numbered(model: Any, encoder: Encoder, codes: dict[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
    """Each category as its number, and the model told so."""
    parts: list[npt.NDArray[np.float64]] = []
    counts: list[int | None] = []
    low: list[float] = []
    high: list[float] = []
    for name, domain in encoder.columns:
        if isinstance(domain, Category):
            parts.append((codes[name] - domain.low_code).astype(np.float64))
            counts.append(len(domain.values()))
            low.append(0.0)
            high.append(len(domain.values()) - 1.0)
        else:
            alone = type(encoder)(columns=((name, domain),))
            parts.append(alone.codes(codes)[:, 0])
            counts.append(None)
            low += alone.bounds[0]
            high += alone.bounds[1]
    model.categories, model.bounds = counts, (low, high)
    if getattr(model, "groups", None):  # of the 0-or-1 features that these numbers stand in place of
        model.groups = None
    return np.stack(parts, axis=1)


def _grouped(encoder: Encoder, rows: int, random: Random) -> dict[str, npt.NDArray[np.int64]]:
    """Rows in groups: in each column, those of one group lie within a quarter of what is declared."""
    group = np.asarray(random.below(_GROUPS, rows)).astype(np.int64)
    found = {}
    for name, domain in encoder.columns:
        place = _TIGHT * _chances(_GROUPS, random)[group] + (1 - _TIGHT) * _chances(rows, random)
        found[name] = domain.low_code + (place * (domain.high_code - domain.low_code + 1)).astype(np.int64)
    return found


def _chances(count: int, random: Random) -> npt.NDArray[np.float64]:
    return np.asarray(random.below(_FINE, count), dtype=np.float64) / _FINE
