"""A small neural network, learnt by stochastic gradient descent with noise (DP-SGD).

Guarantee: the (ε, δ) that was given, for neighbours that differ by one person (one more or less). Each of `steps` steps takes
every row with probability `rate`, independently, by the injected source of randomness (a Poisson sample: no batch of fixed size,
no shuffling); clips each row's gradient to the length `clip`; sums them exactly in whole steps (`gradients.py`, which proves the
sensitivity, rounding counted); adds Gaussian noise rounded to whole steps, which is post-processing of the textbook's; and moves
the weights. Assumptions: bounds and classes are declared; rate, noise, clip and the number of steps are public and fixed before.
Theorem: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar & Zhang (2016), Algorithm 1; its cost by the privacy loss distributions
of `accountant.py`. With rate=1 every row takes part in every step, μ² adds up (Dong, Roth & Su 2022), and ZCDP is kept, too.

How many rows there are is never used: the step's length is set by Adam (Kingma & Ba 2015), which divides a mean of the noisy sums
by a mean of their squares, so neither the real batch size nor an expected one enters. The weights that are kept are the mean of
the last quarter of the way. All that is post-processing of the noisy sums.

The network is written in numpy: one product of matrices gives a layer's clipped, summed gradient, since the length of a row's
gradient is known without making it. For a network of this size no other library is faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from cloister.errors import InvalidParameter
from cloister.learn.frame.base import PrivateModel, Rows
from cloister.learn.frame.bounds import Box
from cloister.learn.networks.accountant import noise_for
from cloister.learn.networks.gradients import BITS, Floats, clipped_sum, first_weights, probabilities, unpacked
from cloister.noise import Gaussian, Random, default_random
from cloister.noise.allowance import Allowance, Currency
from cloister.privacy import ZCDP, ApproxDP, Exact, Guarantee, exact_positive, text_of

_LEAST_BITS = 12
_WIDE = 16  # noise of more than 2^16 gradients is drawn in coarser steps, so that doubles hold it exactly
_FIRST, _SECOND = 0.9, 0.999  # Adam's usual means
_KEPT = 4  # the last quarter of the way is averaged
_FARTHEST = 2.0**20  # no weight is larger: what is noised has to stay a number, however long the steps are


class NeuralClassifier(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """A network of up to three hidden layers.

    `hidden`: how wide each is; () is softmax regression. `steps` and `rate`: how many steps, and which part of the rows a step
    takes; `batch_size` with the public hint `size` says the rate as their quotient. Larger rates and fewer steps do better where
    noise rules, smaller rates are quicker. `clip`: the length of a row's gradient from which on it is clipped. The guarantee and
    its proof stand at the top of this module.

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
    _learned: ClassVar[tuple[str, ...]] = ("classes_", "low_", "high_", "noise_", "weights_")

    def __init__(
        self,
        *,
        epsilon: Exact = 1,
        delta: Exact | None = None,
        bounds: Any = None,
        hidden: Sequence[int] = (32,),
        steps: int = 150,
        rate: Exact | None = None,
        batch_size: Exact | None = None,
        size: Exact | None = None,
        clip: float = 1.0,
        learning_rate: float = 0.03,
        classes: Any = None,
        privacy: str | None = "central",
        random: Random | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.hidden = hidden
        self.steps = steps
        self.rate = rate
        self.batch_size = batch_size
        self.size = size
        self.clip = clip
        self.learning_rate = learning_rate
        self.classes = classes
        self.privacy = privacy
        self.random = random

    def predict_proba(self, X: Any) -> Floats:
        """How likely each class is, in the order of `classes_`."""
        asked = self._asked(X)
        return probabilities(list(self.weights_), Box(low=self.low_, high=self.high_).centred(asked))

    def predict(self, X: Any) -> Any:
        """The most likely class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]

    def _currency_of(self, promised: Guarantee) -> Currency | None:
        """Full participation is counted in μ²; a sample has no μ², and its line says the ε of the whole run."""
        if self._sampling() == 1:
            return "mu_squared"
        if isinstance(promised, ZCDP):
            raise InvalidParameter(
                f"{promised!r} is invalid", why="what a sample of rows costs in ρ is not known well", instead="rate=1"
            )
        if not isinstance(promised, ApproxDP) or promised.delta == 0:
            raise InvalidParameter(
                f"A pure ε = {text_of(promised.epsilon)} is invalid",
                why="this method draws Gaussian noise, which is never pure: it needs a δ",
                instead='delta="1e-6" with the estimator',
            )
        return "epsilon"

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        steps, rate = _whole(self.steps, "steps", 1, 10**6), self._sampling()
        clip, pace = _moderate(self.clip, "clip"), _moderate(self.learning_rate, "learning_rate")
        noise = None if allowance is None else _noise(allowance, rate, steps)
        random = self.random or (default_random() if allowance is not None else Random.deterministic(0))
        bits = BITS if noise is None else _bits(noise)
        source = None if noise is None else Gaussian(scale=noise * 2**bits, sensitivity=2**bits, step=1)
        X, y = rows.box.centred(rows.X), np.asarray(rows.y, dtype=np.int64)
        start = first_weights([X.shape[1], *self._widths(), len(self.classes_)], random)
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

    def _widths(self) -> list[int]:
        if isinstance(self.hidden, str) or not isinstance(self.hidden, Sequence) or len(self.hidden) > 3:
            raise InvalidParameter(
                f"hidden={self.hidden!r} is invalid", why="it lists up to three widths", instead="hidden=(32,)"
            )
        return [_whole(width, "hidden", 1, 4096) for width in self.hidden]


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


def _moderate(value: Exact, name: str) -> float:
    number = exact_positive(value, name)
    if not Fraction(1, 10**9) <= number <= 10**9:
        raise InvalidParameter(f"{name} is invalid", why="it lies between 1e-9 and 1e9", instead=f"{name}=1")
    return float(number)


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InvalidParameter(
            f"{name}={value!r} is invalid",
            why=f"it is a whole number from {least} to {most}",
            instead=f"{name}={max(least, 32)}",
        )
    return int(value)
