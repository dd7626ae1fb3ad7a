"""The noisy power method: a subspace is multiplied by the second moments again and again, each time with noise."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.learn.clustering.starts import frame
from cloister.noise import Random, Share
from cloister.privacy.rational import exact_square_root

Floats = npt.NDArray[np.float64]

_SPARE = 10
_BITS = 10
"""Of the subspace; with 2^12 steps a row, products of 2^28 rows stay within 63 bits."""


def powered_subspace(
    moments: npt.NDArray[np.int64], *, components: int, reach_squared: Fraction, shares: Sequence[Share], random: Random | None
) -> Floats:
    """Orthonormal columns after as many noisy products M·X as there are shares (Hardt & Price 2014).

    Guarantee: all shares together, for one row z more or less with ‖z‖² ≤ B² = `reach_squared`, M the sum of zzᵀ. Proof: X is
    random or released, in whole steps; M·X changes by z(zᵀX), whose length (Frobenius) is ‖z‖·‖Xᵀz‖ ≤ B²‖X‖, with ‖X‖ the
    greatest singular value, some 2^10 steps. The noise is Gaussian on whole numbers (`Share.add`); rounds compose adaptively.
    A wider subspace than is wanted costs nothing more, as the length does not grow with its columns; the widest directions of the
    last product are kept.
    """
    features = moments.shape[0]
    wide = min(features, 2 * components + _SPARE)
    steps, noisy = np.rint(frame(wide, features, random)[:, :wide] * 2.0**_BITS).astype(np.int64), np.empty((features, wide))
    for share in shares:
        stretch = Fraction(float(np.linalg.norm(steps.astype(np.float64), 2))) * (1 + Fraction(1, 2**30))
        moved = reach_squared * stretch
        product = _product(moments, steps)
        noisy = share.add(product, l1=moved * exact_square_root(Fraction(steps.size)), l2_squared=moved**2, random=random)
        steps = np.rint(np.linalg.qr(noisy)[0] * 2.0**_BITS).astype(np.int64)
    return np.asarray(np.linalg.svd(noisy, full_matrices=False)[0][:, :components])


def _product(moments: npt.NDArray[np.int64], steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Exact: the moments in two halves of 26 bits, each of whose products is exact in floating point."""
    high, low = moments >> 26, moments & ((1 << 26) - 1)
    plain = steps.astype(np.float64)
    return (high.astype(np.float64) @ plain).astype(np.int64) * (1 << 26) + (low.astype(np.float64) @ plain).astype(np.int64)
