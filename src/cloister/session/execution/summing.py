"""Sums over rows for a method that goes down step by step, where an engine hands out no rows: each step is a request of its own.

Guarantee: all steps together cost a person at most the ρ that was reserved before the first. *Proof.* A step is a sum that one
row moves by `RowSums.length` in L2 (`cloister.tables.engines.row_sums`), a person with m rows by m times that, and a person with
rows in k parts of the engine by k times that; Gaussian noise of variance σ² makes it ρ = (k·m·length)²/2σ² (Canonne, Kamath &
Steinke 2020, Theorem 14), also where the public numbers of the step were chosen by what earlier steps released (Bun & Steinke
2016, adaptive composition). `RowSummer` adds these up and refuses the step that would pass what was reserved, before it is asked.
∎ What the law in the sum is beyond the noise that was asked for, is more noise.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import BudgetExceeded
from cloister.noise import DiscreteGaussian, Random
from cloister.tables.engines.engine import Compiled, Prepared
from cloister.tables.engines.noised import Cells, Integers, NoisedRequest
from cloister.tables.engines.row_sums import RowSums

_PARTS = 1 << 10
"""Of a variance."""


@dataclass
class RowSummer:
    """The steps of one method under one charge."""

    prepared: Prepared
    table: str
    rows: int
    """Of a person, in all parts of the engine."""
    most: Fraction
    """The ρ that was reserved."""
    random: Random
    who: str = ""
    purpose: str = ""
    charge: str = ""
    spent: Fraction = Fraction(0)
    asked: int = 0
    compiled: Compiled | None = field(default=None, repr=False)

    def request(self, sums: RowSums, law: DiscreteGaussian) -> NoisedRequest:
        """One step, as the engine is asked it."""
        integers = Integers(sums.stage, sums, law)
        about: dict[str, Any] = {"who": self.who, "purpose": self.purpose, "charge": self.charge, "number": self.asked}
        return NoisedRequest(table=self.table, aggregations=(), integers=(integers,), cells=Cells(), **about)

    def law(self, sums: RowSums, rho: Fraction) -> DiscreteGaussian:
        """The noise of a step that costs one row so much, or a little less: σ² is rounded up to what is quick to draw."""
        square = Fraction(sums.length) ** 2
        variance = Fraction(math.ceil(square / (2 * rho) * _PARTS), _PARTS)
        return DiscreteGaussian(scale_squared=variance, sensitivity_squared=square * self.rows**2)

    def noisy(self, sums: RowSums, rho: Fraction) -> npt.NDArray[Any]:
        """The noisy numbers of a step."""
        law = self.law(sums, rho)
        if self.spent + law.guarantee.rho > self.most:
            raise BudgetExceeded(
                "A step was refused", why="all steps together would cost more than was reserved", instead="a larger spend="
            )
        request = self.request(sums, law)
        if self.compiled is None:
            self.compiled = self.prepared.compiled(request)
        self.spent, self.asked = self.spent + law.guarantee.rho, self.asked + 1
        return np.asarray(self.prepared.noised(request, self.compiled, self.random).values[sums.stage])
