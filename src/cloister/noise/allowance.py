"""What one release may spend, and on what it spent it.

An `Allowance` is a whole guarantee that is drawn in named portions. Portions are counted in one currency: ε where the promise is
pure, and μ² of Gaussian noise (`cloister.privacy.gaussian`) or ρ where a δ is allowed; in each of the three, portions add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.noise.inversion import inversion
from cloister.noise.laplace import DiscreteLaplace
from cloister.noise.mechanism import release_integers
from cloister.noise.random import Random, default_random
from cloister.privacy import (
    ZCDP,
    ApproxDP,
    Exact,
    Guarantee,
    PureDP,
    exact_positive,
    mu_squared_of_gaussian,
    text_of,
    zcdp_within,
)
from cloister.privacy.rational import exact_square_root

Currency: TypeAlias = Literal["epsilon", "mu_squared", "rho"]
FLOAT_DELTA = Fraction(1, 10**12)
"""The most that computing the noise of one release under ε may add to δ = 0."""
_SIGNS = {"epsilon": "ε", "mu_squared": "μ²", "rho": "ρ"}


@dataclass(frozen=True, kw_only=True)
class Share:
    """A named portion of an allowance, as what it may pay for.

    >>> share = Allowance(PureDP(1)).share("counts", "0.25")
    >>> share.what, share.amount, str(share)
    ('counts', Fraction(1, 4), 'counts: ε = 0.25')
    """

    what: str
    currency: Currency
    amount: Fraction
    portion: Fraction
    """Of the whole allowance."""

    def __str__(self) -> str:
        return f"{self.what}: {_SIGNS[self.currency]} = {float(self.amount):.6g}"

    @property
    def epsilon(self) -> Fraction:
        """The portion as a pure ε: itself, or the ε of a choice among options that costs it (exponential mechanism).

        Under ρ, a pure ε costs ε²/2 (Bun & Steinke 2016, Proposition 1.4). μ² pays for Gaussian noise alone.
        """
        if self.currency == "epsilon":
            return self.amount
        if self.currency == "rho":
            return Fraction(math.floor(math.sqrt(2 * self.amount) * 2**40 * (1 - 2**-50)), 2**40)
        raise InvalidParameter(
            "A pure ε is invalid", why="this share is counted in μ², which is for Gaussian noise only", instead='currency="rho"'
        )

    @property
    def mu_squared(self) -> Fraction:
        """The portion as μ² = (Δ₂/σ)² of Gaussian noise: itself, or 2ρ."""
        if self.currency == "epsilon":
            raise without_delta(self.amount)
        return self.amount if self.currency == "mu_squared" else 2 * self.amount

    def part(self, portion: Fraction) -> Share:
        """A part of a share that was drawn already: what it pays for must be added up by whoever divides it.

        >>> Allowance(PureDP(1)).rest("rounds").part(Fraction(1, 4)).amount
        Fraction(1, 4)
        """
        return Share(what=self.what, currency=self.currency, amount=self.amount * portion, portion=self.portion * portion)

    def scale(self, *, l1: Exact, l2_squared: Exact) -> Fraction:
        """The scale of the noise of `add`: of Laplace noise under ε, else σ (rounded up)."""
        if self.currency == "epsilon":
            return exact_positive(l1, "l1") / self.amount
        square = exact_positive(l2_squared, "l2_squared") / self.mu_squared
        return exact_square_root(square)

    def variance(self, *, l1: Exact, l2_squared: Exact) -> float:
        """The variance of each number that `add` returns."""
        scale = float(self.scale(l1=l1, l2_squared=l2_squared))
        return 2 * scale**2 if self.currency == "epsilon" else scale**2 + 1 / 12

    def add(
        self, values: npt.NDArray[Any], *, l1: Exact, l2_squared: Exact, random: Random | None = None
    ) -> npt.NDArray[np.float64]:
        """Whole numbers with noise: discrete Laplace under ε, rounded Gaussian noise under μ² and ρ. The result is whole, too.

        Guarantee: what the portion says, for neighbours (one person more or less, or whichever `l1` and `l2_squared` were worked
        out for) whose values differ by at most `l1` in the sum of sizes and `l2_squared` in the sum of squares. Laplace: Ghosh,
        Roughgarden & Sundararajan (2009), scale l1/ε. Gaussian: σ² = l2²/μ²; the noise is a real normal number rounded to a whole
        one, which added to a whole number is the rounded textbook release, so post-processing of it: exactly μ-Gaussian private
        (Dong, Roth & Su 2022), and ρ = μ²/2.

        >>> share = Allowance(PureDP(1)).share("counts", 1)
        >>> share.add(np.array([100, 200]), l1=1, l2_squared=1, random=Random.deterministic(1)).round(0).shape
        (2,)
        """
        flat = np.asarray(values).ravel()
        if flat.dtype.kind not in "iu":
            raise InvalidParameter("The values are invalid", why="noise is added to whole numbers", instead="sums in steps")
        scale, source = self.scale(l1=l1, l2_squared=l2_squared), random or default_random()
        if self.currency == "epsilon":
            noisy = DiscreteLaplace(scale=scale, sensitivity=1).release(flat, random=source)
        else:  # whole numbers are added as such: a float would round both above 2⁵³, and by more than what was declared
            law = inversion(decay=1 / (2 * scale**2), power=2, grid="rounded")
            noisy = release_integers(flat, lambda n: law.draw(n, source))
        return np.asarray(noisy, dtype=np.float64).reshape(np.shape(values))


@dataclass
class Allowance:
    """A whole guarantee, drawn in portions that never sum to more.

    Guarantee: the portions together promise the whole. Pure ε adds (Dwork & Roth 2014, Theorem 3.16); μ² of Gaussian noise adds,
    also where a later release was chosen by earlier ones (Dong, Roth & Su 2022, Corollary 3.3, Theorem 3.2), and its (ε, δ) is
    the curve of Balle & Wang (2018); ρ adds (Bun & Steinke 2016).

    A portion, too, may be chosen by what was released before, as long as all sum to 1: for pure ε Rogers, Roth, Ullman & Vadhan
    (2016), for ρ Feldman & Zrnic (2021), for μ² Smith & Thakurta (2022). Proof for μ²: a release with μᵢ, which is fixed before
    it is made, adds μᵢZᵢ + μᵢ²/2 to the loss, Zᵢ a new normal number: a Brownian motion with drift, run on by μᵢ². Run to μ² in
    the end, whatever the pieces were, the loss is N(μ²/2, μ²), that of one release with all of μ².

    Where a person has up to m = `rows` rows, one row may be told ε/m, μ²/m² or ρ/m² (group privacy in each currency), and of a δ
    next to ε what `of_row` says.

    >>> allowance = Allowance(ApproxDP(1, "1e-5"))
    >>> first, rest = allowance.share("counts", "0.2"), allowance.rest("sums")
    >>> [str(line) for line in allowance.lines]
    ['counts: μ² = 0.0143703', 'sums: μ² = 0.0574811']
    >>> allowance.share("more", "0.1")
    Traceback (most recent call last):
    cloister.errors.BudgetExceeded: The share 'more' was refused: 0 of the allowance is left, and 0.1 was asked for...
    """

    whole: Guarantee
    currency: Currency = "epsilon"
    size: Fraction = Fraction(0)
    lines: list[Share] = field(default_factory=list)
    rows: int = 1
    marked: bool = False
    """Whether something that was bought with it had noise of a generator made for tests."""

    def __init__(self, whole: Guarantee, *, currency: Currency | None = None, rows: int = 1, marked: bool = False) -> None:
        self.whole, self.rows, self.marked = whole, rows, marked
        self.currency, size = _sized(whole, currency)
        self.size = size / rows if self.currency == "epsilon" else size / rows**2
        self.lines = []

    @property
    def left(self) -> Fraction:
        """The portion that was not drawn."""
        return 1 - sum((line.portion for line in self.lines), Fraction(0))

    def of_row(self, delta: Fraction) -> Fraction:
        """How much of a δ next to ε one row may take, if a person's m rows together are to take no more, rounded down.

        What is (ε/m, δ₁)-private for one row is (ε, δ₁·Σᵢ e^(iε/m))-private for m, i = 0 … m − 1, by going from row to row: so
        δ₁ = δ·(e^(ε/m) − 1)/(e^ε − 1).

        >>> promise = ApproxDP(1, "1e-5")
        >>> Allowance(promise).of_row(Fraction(1, 8)), Allowance(promise, rows=2).of_row(Fraction(1)) < 0.378
        (Fraction(1, 8), True)
        """
        if self.rows == 1:
            return delta
        epsilon = float(getattr(self.whole, "epsilon", 0))
        one = epsilon / self.rows
        part = math.exp(one - epsilon) * math.expm1(-one) / math.expm1(-epsilon) if epsilon else 1 / self.rows
        return delta * Fraction(part * (1 - 2.0**-40))

    @property
    def float_delta(self) -> float:
        """What the floating point of one release under ε may add to the δ of one row: 10⁻¹², or a quarter of the δ."""
        delta = Fraction(self.whole.delta)
        return float(self.of_row(min(FLOAT_DELTA, delta / 4) if delta else FLOAT_DELTA))

    def share(self, what: str, portion: Exact) -> Share:
        """A portion of the whole, between 0 and 1, written down as spent on `what`."""
        wanted = exact_positive(portion, "portion")
        if wanted > self.left:
            raise BudgetExceeded(
                f"The share {what!r} was refused",
                why=f"{text_of(self.left)} of the allowance is left, and {text_of(wanted)} was asked for",
                instead="smaller shares",
            )
        drawn = Share(what=what, currency=self.currency, amount=self.size * wanted, portion=wanted)
        self.lines.append(drawn)
        return drawn

    def rest(self, what: str) -> Share:
        """All that is left."""
        return self.share(what, self.left)


def without_delta(epsilon: Exact) -> InvalidParameter:
    """The refusal of a pure ε for Gaussian noise. Where a session pays, its budget alone says whether there is a δ.

    >>> without_delta(1).what
    'A pure ε = 1 is invalid'
    """
    return InvalidParameter(
        f"A pure ε = {text_of(exact_positive(epsilon, 'epsilon'))} is invalid",
        why="this method draws Gaussian noise, which is never pure: it needs a δ",
        instead='delta="1e-6" with the estimator; in a session, a budget of ε and δ',
    )


def _sized(whole: Guarantee, currency: Currency | None) -> tuple[Currency, Fraction]:
    if isinstance(whole, ApproxDP) and whole.delta == 0:
        whole = PureDP(whole.epsilon)
    if isinstance(whole, PureDP):
        if currency in (None, "epsilon"):
            return "epsilon", exact_positive(whole.epsilon, "epsilon")
        raise without_delta(whole.epsilon)
    if isinstance(whole, ZCDP):
        if whole.delta:
            raise InvalidParameter(
                f"{whole!r} is invalid", why="models are learnt under ρ without a δ", instead=f"cl.ZCDP({text_of(whole.rho)!r})"
            )
        rho = exact_positive(whole.rho, "rho")
        return ("mu_squared", 2 * rho) if currency == "mu_squared" else ("rho", rho)
    if currency == "epsilon":
        return "epsilon", exact_positive(whole.epsilon, "epsilon")
    if currency == "rho":
        return "rho", zcdp_within(epsilon=whole.epsilon, delta=whole.delta).rho
    return "mu_squared", mu_squared_of_gaussian(epsilon=whole.epsilon, delta=whole.delta)
