"""How far a model's cells typically lie from the truth where no table holds them: by fits to redrawn noise.

The model is taken for the truth: its own tables get fresh noise of the law that was measured with, and are fitted again,
several times. How far these fits lie from the model shows what noise does; what the model cannot express they don't show. So the
spread is doubled, and one row is added:

    half-width = 2 · 1.96 · (root mean square of refit − model) + 1.

The factor and the row were chosen by trial on scikit-learn's breast cancer, diabetes and digits tables. On made-up tables, on
wine and on Adult the interval then held for 93 % and more of the cells of three columns, in each class of model counts below 1,
to 10, to 100 and above (`tests/synth/test_typical.py`). It is an average over many cells: nothing is promised for a single one.
It is claimed

- for cells of exactly three columns all of whose pairs were measured: no more columns, and no sums over a column's values, unless
  the model says that more than `MANY` rows are in them, and more than the noise of one cell;
- where the tables were not chosen by looking : redrawn noise would choose others;
- where all rows are at least `LEAST_SIGNAL` times the noise of a cell: below that, small cells hold what noise hid altogether.

Refits are post-processing of the release and cost nothing but time. Their noise comes from a fixed seed: it protects nobody, and
the same model gives the same interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from cloister.noise import Random
from cloister.synth.measuring import Floats, Marginals, Noisy
from cloister.synth.mixture import Mixture, refitted

LEAST_SIGNAL = 20
MANY = 100
_REFITS = 8
_FACTOR = 2.0
_ROWS = 1.0
_SEED = b"noise of the refits behind typical margins"
_KNOWN: WeakKeyDictionary[Any, list[tuple[float, Mixture]]] = WeakKeyDictionary()


def refits(found: Marginals, mixture: Mixture, progress: Callable[[str], None]) -> list[tuple[float, Mixture]]:
    """Models of redrawn noise, each with its number of rows: worked out once for as long as the model lives."""
    if mixture not in _KNOWN:
        random, rows, made = Random.derived(_SEED), max(found.rows()[0], 1.0), []
        for number in range(_REFITS):
            progress(f"fitting to redrawn noise, {number + 1} of {_REFITS}")
            tables = {kept: _redrawn(rows * mixture.marginal(kept), table, random) for kept, table in found.tables.items()}
            again = replace(found, tables=tables, rounds=())
            made.append((max(again.rows()[0], 1.0), refitted(again, random)))
        _KNOWN[mixture] = made
    return _KNOWN[mixture]


def half_widths(value: Floats, others: list[Floats]) -> Floats:
    """Of each cell, from the cells of the refits.

    >>> half_widths(np.array([10.0]), [np.array([12.0]), np.array([8.0])]).tolist()
    [8.84]
    """
    spread = np.sqrt(np.mean([(other - value) ** 2 for other in others], axis=0))
    return np.asarray(_FACTOR * 1.96 * spread + _ROWS)


def _redrawn(counts: Floats, table: Noisy, random: Random) -> Noisy:
    """Counts with noise of the law and size of a measured table's, from continuous laws: only its size matters here."""
    one, other = (random.uniform(counts.size) for _ in range(2))
    away = -np.log1p(-one)
    if table.laplace:
        noise = np.where(other < 0.5, away, -away) * np.sqrt(table.variance / 2)
    else:
        noise = np.sqrt(2 * away) * np.cos(2 * np.pi * other) * np.sqrt(table.variance)
    return Noisy(counts + np.rint(noise).reshape(counts.shape), table.variance, table.laplace)
