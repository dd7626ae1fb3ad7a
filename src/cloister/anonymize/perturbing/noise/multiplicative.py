"""Numbers multiplied by random factors near 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.anonymize.perturbing.columns import Columns, names_of
from cloister.anonymize.perturbing.noise.additive import Noised
from cloister.anonymize.perturbing.noise.laws import NoiseLaw
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.noise.random import default_random


@dataclass(frozen=True, kw_only=True)
class MultiplicativeNoise:
    """Multiply numbers by factors exp(e): large numbers get large noise, as incomes and turnovers need it.

    e is normal with standard deviation `scale` (0.1: some ten per cent) and mean −scale²/2, so that factors are 1 in the
    mean and totals are kept in expectation. Protects as `AdditiveNoise` does. Does not protect: zeros stay zero and signs
    stay; the largest value likely stays the largest; several columns multiplied by themselves still tell of one another. It
    is no differential privacy.

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
        source = random or default_random()
        columns, names = Columns.leaving(frame, source, shuffle=shuffle, keep_index=keep_index), names_of(self.columns)
        columns.check(names)
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
