"""A small neural network, learnt by stochastic gradient descent with noise (DP-SGD).

Guarantee: the (ε, δ) that was given, for neighbours that differ by one person (one more or less). Each of `steps` steps takes
every row with probability `rate`, independently, by the injected source of randomness (a Poisson sample: no batch of fixed size,
no shuffling); clips each row's gradient to the length `clip`; sums them exactly in whole steps (`clipped_sum` proves the
sensitivity, rounding counted); adds Gaussian noise rounded to whole steps, which is post-processing of the textbook's; and moves
the weights. Assumptions: bounds and classes are declared; rate, noise, clip and the number of steps are public and fixed before.
Theorem: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016), Algorithm 1; its cost by the privacy loss distributions
of `accountant.py`. With rate=1 every row takes part in every step, μ² adds up (Dong, Roth & Su 2022), and ZCDP is kept, too.

How many rows there are is never used: the step's length is set by Adam (Kingma & Ba 2015), which divides a mean of the noisy sums
by a mean of their squares, so neither the real batch size nor an expected one enters. The weights that are kept are the mean of
the last quarter of the way. All that is post-processing of the noisy sums.

The network is written in numpy: one product of matrices gives a layer's clipped, summed gradient, since the length of a row's
gradient is known without making it. For a network of this size no other library is faster.

A network is a list of matrices; the last row of each is the bias. Between layers stands tanh, at the end softmax, and the loss is
the cross-entropy. A row's gradient for a layer is the outer product of what comes in, a, and what comes back, d: its length is
‖a‖·‖d‖, known before the product is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from threadpoolctl import threadpool_limits

from cloister.errors import InvalidParameter
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Box, Rows
from cloister.learn.frame.parameters import SIZE, Limit, Limits
from cloister.learn.networks.accountant import noise_for
from cloister.noise import Gaussian, Random, default_random
from cloister.noise.allowance import Allowance, Currency, without_delta
from cloister.privacy import ZCDP, ApproxDP, Exact, Guarantee, exact_positive, text_of
from cloister.tables.engines.row_sums import softmax

_LEAST_BITS = 12
_WIDE = 16  # noise of more than 2^16 gradients is drawn in coarser steps, so that doubles hold it exactly
_FIRST, _SECOND = 0.9, 0.999  # Adam's usual means
_KEPT = 4  # the last quarter of the way is averaged
_FARTHEST = 2.0**20  # no weight is larger: what is noised has to stay a number, however long the steps are


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralClassifier(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """A network of up to three hidden layers.

    `hidden`: how wide each is; () is softmax regression. `steps` and `rate`: how many steps, and which part of the rows a step
    takes; `batch_size` with the public hint `size` says the rate as their quotient. Larger rates and fewer steps do better where
    noise rules, smaller rates are quicker. `clip`: the length of a row's gradient from which on it is clipped. Clipped gradients
    lead elsewhere than the rows' own, at any budget: a rare class is told too rare. A larger `clip` mends that, and adds noise.
    Log loss of clip 1, 2, 4 at ε = 1: Adult .55, .47, .40; breast cancer .170, .168, .179; digits .36, .38, .43.
    The guarantee and its proof stand at the top of this module.

    References: Abadi et al. (2016), Deep learning with differential privacy. Zhu, Dong & Wang (2022), Optimal accounting of
    differential privacy via characteristic function. Kingma & Ba (2015), Adam.

    >>> X, y = [[0.1, 0.9], [0.9, 0.1]] * 300, [0, 1] * 300
    >>> model = NeuralClassifier(epsilon=1, delta="1e-6", bounds=(0, 1), hidden=(4,), steps=30).fit(X, y)
    >>> model.predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    >>> print(model.report())
    ε = 1, δ = 1e-06
      30 steps, each on 1/4 of the rows with noise of 6.081 gradients: ε = 1 (100.0%)
    """

    _stored: ClassVar[str] = "NeuralClassifier"
    learned_names: ClassVar[tuple[str, ...]] = ("classes_", "low_", "high_", "noise_", "weights_")
    limits: ClassVar[Limits] = {
        "steps": Limit(least=1, most=10**6, whole=True, instead=150),
        "clip": Limit(least=1e-9, most=1e9, exact=True, instead=2),
        "learning_rate": Limit(least=1e-9, most=1e9, exact=True, instead=0.03),
        "size": SIZE,
    }

    hidden: Sequence[int] = (32,)
    steps: int = 150
    rate: Exact | None = None
    batch_size: Exact | None = None
    size: Exact | None = None
    clip: float = 2.0
    learning_rate: float = 0.03
    classes: Any = None

    def predict_proba(self, X: Any) -> Floats:
        """How likely each class is, in the order of `classes_`."""
        asked = self._asked(X)
        return probabilities(list(self.weights_), Box(low=self.low_, high=self.high_).centred(asked))

    def predict(self, X: Any) -> Any:
        """The most likely class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]

    rehearsed = False

    def _currency_of(self, promised: Guarantee) -> Currency | None:
        """Full participation is counted in μ²; a sample has no μ², and its line says the ε of the whole run."""
        if self._sampling() == 1:
            return "mu_squared"
        if isinstance(promised, ZCDP):
            raise InvalidParameter(
                f"{promised!r} is invalid", why="what a sample of rows costs in ρ is not known well", instead="rate=1"
            )
        if not isinstance(promised, ApproxDP) or promised.delta == 0:
            raise without_delta(promised.epsilon)
        return "epsilon"

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        steps, rate = self.steps, self._sampling()
        clip, pace = (float(exact_positive(each, "clip")) for each in (self.clip, self.learning_rate))
        noise = None if allowance is None else _noise(allowance, rate, steps)
        random = self.random or (default_random() if allowance is not None else Random.deterministic(0))
        bits = BITS if noise is None else _bits(noise)
        source = None if noise is None else Gaussian(scale=noise * 2**bits, sensitivity=2**bits, step=1)
        X, y = rows.box.centred(rows.X), np.asarray(rows.y, dtype=np.int64)
        start = first_weights([X.shape[1], *self.hidden, len(self.classes_)], random)
        way = _Way(np.concatenate([one.ravel() for one in start]), pace, steps)
        with threadpool_limits(1, "blas"):  # the products are small: threads would wait for one another longer than they work
            for _ in range(steps):
                taken = _sample(len(X), rate, random)
                total = clipped_sum(unpacked(way.weights, start), X[taken], y[taken], clip, bits=bits)
                if source is not None:
                    total = total + source.sample(total.size, random=random).astype(np.int64)
                way.move(total / 2.0**bits)
        self.low_, self.high_ = rows.box.low, rows.box.high
        self.noise_ = 0.0 if noise is None else float(noise)
        self.weights_ = tuple(unpacked(way.mean, start))

    def check_parameters(self, allowance: Allowance | None = None) -> None:
        super().check_parameters(allowance)
        rate = self._sampling()
        if allowance is not None:  # a promise too small for any noise is known before it is charged
            tried = copy(allowance)
            tried.lines = []
            _bits(_noise(tried, rate, self.steps))
        if isinstance(self.hidden, str) or not isinstance(self.hidden, Sequence) or len(self.hidden) > 3:
            raise InvalidParameter(
                f"hidden={self.hidden!r} is invalid", why="it lists up to three widths", instead="hidden=(32,)"
            )
        for width in self.hidden:
            Limit(least=1, most=4096, whole=True, instead=(32,)).check("hidden", width)

    def _sampling(self) -> Fraction:
        """The probability with which a row takes part in a step."""
        if self.batch_size is None:
            rate = Fraction(1, 4) if self.rate is None else exact_positive(self.rate, "rate")
        elif self.rate is not None:
            raise InvalidParameter(
                "batch_size is invalid", why="rate says already how many rows a step takes", instead="batch_size=None"
            )
        elif self.size is None:
            raise InvalidParameter(
                "batch_size is invalid",
                why="which part of the rows it is depends on how many there are, and that is private",
                instead='size=10_000, a public hint, with it; or rate="0.1"',
            )
        else:
            rate = exact_positive(self.batch_size, "batch_size") / exact_positive(self.size, "size")
        if rate > 1:
            raise InvalidParameter(f"A rate of {text_of(rate)} is invalid", why="it is a probability", instead="rate=1")
        return rate


class _Way:
    """The weights on their way: Adam's two means, and the mean of the last quarter."""

    def __init__(self, weights: Floats, pace: float, steps: int) -> None:
        self.weights, self.mean = weights, np.zeros_like(weights)
        self._first, self._second = np.zeros_like(weights), np.zeros_like(weights)
        self._pace, self._last, self._turn = pace, max(1, steps // _KEPT), 0
        self._steps = steps

    def move(self, gradient: Floats) -> None:
        """One step down."""
        self._turn += 1
        self._first = _FIRST * self._first + (1 - _FIRST) * gradient
        self._second = _SECOND * self._second + (1 - _SECOND) * gradient**2
        first, second = self._first / (1 - _FIRST**self._turn), self._second / (1 - _SECOND**self._turn)
        self.weights = np.clip(self.weights - self._pace * first / (np.sqrt(second) + 1e-12), -_FARTHEST, _FARTHEST)
        if self._turn > self._steps - self._last:
            self.mean += self.weights / self._last


def _noise(allowance: Allowance, rate: Fraction, steps: int) -> Fraction:
    """The noise multiplier that the whole allowance buys, written down in one line."""
    if rate == 1:
        share = allowance.rest(f"{steps} steps, each on all rows")
        return share.scale(l1=steps, l2_squared=steps)
    whole = allowance.whole
    assert isinstance(whole, ApproxDP)
    # A person of m rows: each row is promised ε/m and the δ that m steps from neighbour to neighbour add up to (`for_groups`).
    delta = whole.delta
    if allowance.size < whole.epsilon:
        part = math.expm1(allowance.size) / math.expm1(whole.epsilon)
        delta *= Fraction(part * (1 - 2.0**-40))
    noise = noise_for(epsilon=allowance.size, delta=delta, rate=rate, steps=steps)
    allowance.rest(f"{steps} steps, each on {rate} of the rows with noise of {float(noise):.4g} gradients")
    return noise


def _bits(noise: Fraction) -> int:
    bits = BITS - max(0, math.ceil(math.log2(noise)) - _WIDE)
    if bits < _LEAST_BITS:
        raise InvalidParameter("The promise is invalid", why="its noise is too wide to be drawn", instead="epsilon=1")
    return bits


def _sample(n: int, rate: Fraction, random: Random) -> Any:
    """Which rows take part: each with probability `rate`, less at most 2⁻⁶⁴."""
    if rate == 1:
        return slice(None)
    return random.words(n) < np.uint64(math.floor(rate * 2**64))


Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

BITS = 30
"""The most bits of a row's gradient; fewer make coarser steps, for noise that is very wide."""

_IN = 10
_FINE, _EXACT = 22, 52
_ROWS = 2**16
_LESS = 1 - 2.0**-30


def first_weights(widths: list[int], random: Random) -> list[Floats]:
    """Weights to start from, drawn evenly from ±√(6/(in + out)), biases 0 (Glorot & Bengio 2010).

    >>> [one.shape for one in first_weights([4, 3, 2], Random.deterministic(1))]
    [(5, 3), (4, 2)]
    """
    found = []
    for width, after in pairwise(widths):
        reach = (6 / (width + after)) ** 0.5
        even = (random.below(2**52, width * after) + 0.5) / 2.0**51 - 1
        found.append(np.vstack([even.reshape(width, after) * reach, np.zeros(after)]))
    return found


def probabilities(weights: list[Floats], X: Floats) -> Floats:
    """Of the classes, for each row."""
    return softmax(_forward(weights, X)[-1])


def clipped_sum(weights: list[Floats], X: Floats, y: Integers, clip: float, *, bits: int = BITS) -> Integers:
    """The sum of the rows' gradients, each clipped to the length `clip`, in steps of clip·2^−bits; all layers in one list.

    Sensitivity, proved here: one row more or less moves `clipped_sum` by at most 2^bits in the L2 norm, exactly. The row's
    factors become whole numbers, rounded towards 0: A = a·2^10 and D = s·d·2^(bits − 10), where s = min(1/length, 1/clip),
    slightly less. So the square of the length of all its products, Σ‖A‖²‖D‖² over layers, is at most 4^bits·s²·Σ‖a‖²‖d‖² <=
    4^bits; the slight lessening, one part in 2^30, is more than the rounding of the squares that s is worked out from (fewer
    than 2^20 terms, one part in 2^53 each). A product of two such numbers is a whole one of at most 2^30, so a sum over 2^16
    rows stays below 2^53, where doubles add whole numbers exactly, in whatever order a matrix product adds them.

    What the others add stays as it was, bit for bit: a row's a and d follow from the row and the weights alone. For that,
    products on the way are of whole numbers, too (`_product`): those of floating point end in bits that depend on how many rows
    are multiplied at once, and one row more could move another across a whole number.

    >>> weights = first_weights([2, 2], Random.deterministic(1))
    >>> one = clipped_sum(weights, np.array([[0.5, -1.0]]), np.array([1]), 0.01)
    >>> one.shape, 0.99 < float(one @ one) ** 0.5 / 2**30 <= 1
    ((6,), True)
    """
    total = np.zeros(sum(one.size for one in weights), dtype=np.int64)
    for start in range(0, len(X), _ROWS):
        rows = slice(start, start + _ROWS)
        total += _clipped_part(weights, X[rows], y[rows], clip, bits)
    return total


def unpacked(flat: Floats, weights: list[Floats]) -> list[Floats]:
    """One list as matrices of the shapes of the weights."""
    ends = np.cumsum([one.size for one in weights])
    return [part.reshape(one.shape) for part, one in zip(np.split(flat, ends[:-1]), weights, strict=True)]


def _clipped_part(weights: list[Floats], X: Floats, y: Integers, clip: float, bits: int) -> Integers:
    values = _forward(weights, X)
    back = softmax(values[-1])
    back[np.arange(len(y)), y] -= 1
    arriving, returning, reach = [], [], 1.0
    for layer in range(len(weights) - 1, -1, -1):
        arriving.append(np.hstack([values[layer], np.ones((len(X), 1))]))
        returning.append(back)
        if layer:
            matrix = weights[layer][:-1].T
            back = _product(back, matrix, reach) * (1 - values[layer] ** 2)
            reach *= max(float(np.abs(matrix).sum(axis=0).max()), 1e-9)
    squares = sum((a * a).sum(axis=1) * (d * d).sum(axis=1) for a, d in zip(arriving, returning, strict=True))
    scale = _LESS / np.maximum(np.sqrt(squares), clip)
    products = [
        (np.trunc(a * 2.0**_IN).T @ np.trunc(d * scale[:, None] * 2.0 ** (bits - _IN))).ravel()
        for a, d in zip(arriving[::-1], returning[::-1], strict=True)
    ]
    return np.concatenate(products).astype(np.int64)


def _forward(weights: list[Floats], X: Floats) -> list[Floats]:
    """What each layer is given, and at last the scores of the classes."""
    values = [np.ascontiguousarray(X)]
    for layer, one in enumerate(weights):
        out = _product(values[-1], one[:-1], 1.0) + one[-1]
        values.append(out if layer == len(weights) - 1 else np.tanh(out))
    return values


def _product(values: Floats, matrix: Floats, reach: float) -> Floats:
    """values · matrix, where no value is larger than `reach`: each row by itself, the same in any company.

    Values are rounded to 22 bits and the matrix to so many that sums of their products are whole numbers up to 2^52: exact.
    """
    bits = _EXACT - _FINE - (len(matrix) - 1).bit_length()
    most = float(np.abs(matrix).max()) or 1.0
    whole = np.rint(np.clip(values / reach, -1.0, 1.0) * 2.0**_FINE)
    return np.asarray(whole @ np.rint(matrix / most * 2.0**bits) * (reach * most * 2.0 ** -(_FINE + bits)))
