"""Linear reconstruction: from many noisy sums over random subsets back to everybody's secret bit.

Dinur & Nissim (*Revealing information while preserving privacy*, PODS 2003) showed that n secret bits can be recovered from
O(n) subset sums whenever the error of each is o(√n), however the errors came about. The attack: least squares within the cube
[0, 1]ⁿ, which is the linear programme of Dwork, McSherry & Talwar (*The price of privacy and the limits of LP decoding*, STOC
2007) with squares for absolute values; then the bits are rounded, and single bits and pairs of bits are changed for as long as
that brings the sums closer to the answers.

What it says of noise. With m sums over random halves of n people, least squares leaves an error of variance about 4σ²/(m − n)
in each bit. So noise of standard deviation σ protects from this attack only when σ is about √m or larger: a fixed noise of b = 1
on each answer protects nobody, whereas noise that pays for all m answers from one budget has σ = √2·m/ε, and leaves each bit
nearly as unknown as before. Whatever the attack, ε-differential privacy bounds what can be recovered: a bit that was a fair coin
is guessed right with probability at most e^ε/(1 + e^ε).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, check_whole
from cloister.noise import Random, default_random

Bits = npt.NDArray[np.int64]
_STEPS = 2_000
_ROUNDS = 200


def subsets_of(persons: int, number: int, *, random: Random | None = None) -> Bits:
    """Random subsets, one a row: each person is in each with probability one half.

    >>> from cloister.noise import Random
    >>> subsets_of(4, 2, random=Random.deterministic(1)).shape
    (2, 4)
    """
    for name, value in (("persons", persons), ("number", number)):
        check_whole(value, name, 1, why="it must be a whole number above 0", instead=f"{name}=64")
    drawn = (random or default_random()).below(2, persons * number)
    return drawn.astype(np.int64).reshape(number, persons)


def reconstruct(subsets: npt.NDArray[Any], answers: npt.NDArray[Any]) -> Bits:
    """The bits that explain the noisy sums best.

    >>> import numpy as np
    >>> from cloister.noise import DiscreteLaplace, Random
    >>> random = Random.deterministic(7)
    >>> secret = random.below(2, 32).astype(np.int64)
    >>> subsets = subsets_of(32, 128, random=random)
    >>> noisy = DiscreteLaplace(scale=1).release(subsets @ secret, random=random)
    >>> int((reconstruct(subsets, noisy) == secret).sum())
    32
    """
    matrix, target = np.asarray(subsets, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    if matrix.ndim != 2 or target.shape != matrix.shape[:1]:
        raise InvalidParameter(
            "The answers are invalid",
            why="there is not one for each subset",
            instead="reconstruct(subsets, answers) with a row of subsets for each answer",
        )
    bits = (_least_squares(matrix, target) > 0.5).astype(np.int64)
    return _improved(matrix, target, bits)


def _least_squares(matrix: npt.NDArray[np.float64], target: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Projected gradient descent within the cube, with a step that cannot overshoot."""
    step = 1 / float(np.linalg.norm(matrix, ord=2)) ** 2 if matrix.any() else 0.0
    found = np.full(matrix.shape[1], 0.5)
    for _ in range(_STEPS):
        found = np.clip(found - step * (matrix.T @ (matrix @ found - target)), 0.0, 1.0)
    return found


def _improved(matrix: npt.NDArray[np.float64], target: npt.NDArray[np.float64], bits: Bits) -> Bits:
    """Changes the one bit, or the two bits, that lower the sum of squares most, until none does."""
    gram = matrix.T @ matrix
    for _ in range(_ROUNDS):
        turn = 1.0 - 2.0 * bits  # what a change of each bit adds to it
        slope = matrix.T @ (target - matrix @ bits)
        single = np.diag(gram) - 2 * turn * slope
        pair = single[:, None] + single[None, :] + 2 * np.outer(turn, turn) * gram
        np.fill_diagonal(pair, single)
        first, second = np.unravel_index(int(pair.argmin()), pair.shape)
        if pair[first, second] >= -1e-9:
            break
        bits = bits.copy()
        for place in {int(first), int(second)}:
            bits[place] = 1 - bits[place]
    return bits
