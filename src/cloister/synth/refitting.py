"""How far apart noise alone moves fits: models of redrawn noise, from which the report tells its expected error.

The model is taken for the truth: its own tables get fresh noise of the law that was measured with, and are fitted again, several
times. How far these fits lie from the model shows what noise does; what the model cannot express, or assumes, they don't show. So
nothing is told from them of tables whose columns were not measured together, and no interval of an answer is made from them.

Refits are post-processing of the release and cost nothing but time. Their noise comes from a fixed seed: it protects nobody, and
the same model gives the same report.
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

_REFITS = 8
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


def _redrawn(counts: Floats, table: Noisy, random: Random) -> Noisy:
    """Counts with noise of the law and size of a measured table's, from continuous laws: only its size matters here."""
    one, other = (random.uniform(counts.size) for _ in range(2))
    away = -np.log1p(-one)
    if table.laplace:
        noise = np.where(other < 0.5, away, -away) * np.sqrt(table.variance / 2)
    else:
        noise = np.sqrt(2 * away) * np.cos(2 * np.pi * other) * np.sqrt(table.variance)
    return Noisy(counts + np.rint(noise).reshape(counts.shape), table.variance, table.laplace)
