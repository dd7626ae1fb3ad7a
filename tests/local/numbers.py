"""The numeric mechanisms, and what their tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.local import CircularPiecewise, Duchi, Hybrid, LocalLaplace, NumericMechanism, Piecewise, SquareWave

LINEAR: tuple[type[NumericMechanism], ...] = (LocalLaplace, Duchi, Piecewise, Hybrid, SquareWave)
"""Those with unbiased means on a line."""
ALL = (*LINEAR, CircularPiecewise)
MANY: tuple[type[NumericMechanism], ...] = (LocalLaplace, Duchi, Piecewise, Hybrid)
"""Those for several dimensions."""


def parts(mechanism: NumericMechanism, reports: Any) -> npt.NDArray[np.float64]:
    """What each report adds to a mean: the mean of it alone."""
    found, which = np.unique(reports, return_inverse=True)
    return np.array([mechanism.mean([report]).value for report in found])[which]
