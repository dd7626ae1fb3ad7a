"""What a promise is: pure, approximate and zero-concentrated differential privacy, with exact parameters.

Neighbours are *unbounded* (one unit's rows added or removed) unless a sentence says otherwise.

- `PureDP(epsilon)`: for all sets S of outputs, P[M(x) ∈ S] ≤ e^ε · P[M(x′) ∈ S] (Dwork, McSherry, Nissim & Smith 2006).
- `ApproxDP(epsilon, delta)`: the same, plus δ (Dwork, Kenthapadi, McSherry, Mironov & Naor 2006).
- `ZCDP(rho, delta=0)`: the Rényi divergence of order α is at most ρα for every α > 1 (Bun & Steinke 2016, Definition 1.1);
  with δ > 0 the same holds after an event of probability at most δ is set aside (their Definition 8.1).

Arithmetic is exact. `+` is sequential composition, `*` that of so many alike, valid for adaptively chosen mechanisms; `<=` says
"implies": `a <= b` is True where everything that satisfies `a` satisfies `b`, by comparison of parameters of one kind or by the
exact implications pure ⇒ zCDP (ρ = ε²/2, Bun & Steinke Proposition 1.4) and pure ⇒ approximate. It is a preorder: reflexive and
transitive, and two promises that imply one another, such as `PureDP(1)` and `ApproxDP(1, 0)`, promise the same in other words.
An (ε, δ) promise with δ > 0 and a ρ do not add up without a choice of δ, so adding them is refused with the line that makes it.
A sum whose δ reaches 1 promises nothing; it keeps δ = 1, which no constructor accepts and no budget admits.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeVar

from cloister.errors import NotConvertible
from cloister.privacy.rational import Exact, exact_nonnegative, exact_probability, text_of, whole_number


@dataclass(frozen=True, slots=True, init=False)
class PureDP:
    """ε-differential privacy.

    >>> PureDP("0.1") + PureDP(0.2)
    PureDP(epsilon='0.3')
    >>> PureDP(1) <= PureDP(2), PureDP(1) <= ApproxDP(1, "1e-6"), PureDP(1) <= ZCDP("0.5")
    (True, True, True)
    >>> PureDP("0.1") * 10
    PureDP(epsilon='1')
    """

    epsilon: Fraction

    def __init__(self, epsilon: Exact) -> None:
        object.__setattr__(self, "epsilon", exact_nonnegative(epsilon, "epsilon"))

    @property
    def delta(self) -> Fraction:
        """Zero: nothing may go wrong."""
        return Fraction(0)

    def __add__(self, other: Guarantee) -> Guarantee:
        if isinstance(other, PureDP):
            return PureDP(self.epsilon + other.epsilon)
        if isinstance(other, ApproxDP):
            return ApproxDP(self.epsilon + other.epsilon, other.delta)
        return self.to_zcdp() + other if isinstance(other, ZCDP) else NotImplemented

    def __mul__(self, times: int) -> PureDP:
        return PureDP(_whole(times) * self.epsilon)

    def __le__(self, other: Guarantee) -> bool:
        if isinstance(other, ZCDP):
            return self.to_zcdp() <= other
        return self.epsilon <= other.epsilon if isinstance(other, PureDP | ApproxDP) else NotImplemented

    def to_approx(self, delta: Exact = 0) -> ApproxDP:
        """The same promise as (ε, δ); any δ holds.

        >>> PureDP(1).to_approx("1e-6")
        ApproxDP(epsilon='1', delta='0.000001')
        """
        return ApproxDP(self.epsilon, delta)

    def to_zcdp(self) -> ZCDP:
        """ε-DP implies (ε²/2)-zCDP (Bun & Steinke 2016, Proposition 1.4).

        >>> PureDP(1).to_zcdp()
        ZCDP(rho='0.5')
        """
        return ZCDP(self.epsilon**2 / 2)

    def __repr__(self) -> str:
        return f"PureDP(epsilon={text_of(self.epsilon)!r})"

    def __str__(self) -> str:
        return f"ε = {text_of(self.epsilon)}"


@dataclass(frozen=True, slots=True, init=False)
class ApproxDP:
    """(ε, δ)-differential privacy.

    >>> ApproxDP(1, "1e-6") + ApproxDP("0.5", "1e-6")
    ApproxDP(epsilon='1.5', delta='0.000002')
    >>> ApproxDP(1, 0) <= PureDP(1), ApproxDP(1, "1e-6") <= PureDP(1)
    (True, False)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Exact, delta: Exact) -> None:
        object.__setattr__(self, "epsilon", exact_nonnegative(epsilon, "epsilon"))
        object.__setattr__(self, "delta", exact_probability(delta, "delta"))

    def __add__(self, other: Guarantee) -> Guarantee:
        if isinstance(other, PureDP | ApproxDP):
            return _with_delta(ApproxDP(self.epsilon + other.epsilon, 0), self.delta + other.delta)
        if isinstance(other, ZCDP):
            raise _not_added(self, other)
        return NotImplemented

    def __mul__(self, times: int) -> ApproxDP:
        return _with_delta(ApproxDP(_whole(times) * self.epsilon, 0), _whole(times) * self.delta)

    def __le__(self, other: Guarantee) -> bool:
        if isinstance(other, PureDP | ApproxDP):
            return self.epsilon <= other.epsilon and self.delta <= other.delta
        if isinstance(other, ZCDP):
            return self.delta == 0 and PureDP(self.epsilon) <= other
        return NotImplemented

    def to_approx(self, delta: Exact | None = None) -> ApproxDP:
        """Itself, with a larger δ where one is asked for; a smaller one cannot be had from (ε, δ) alone.

        >>> ApproxDP(1, "1e-6").to_approx("1e-5")
        ApproxDP(epsilon='1', delta='0.00001')
        """
        if delta is None:
            return self
        wanted = exact_probability(delta, "delta")
        if wanted < self.delta:
            raise NotConvertible(
                f"{self} was not converted to δ = {text_of(wanted)}",
                why="an (ε, δ) guarantee says nothing of a smaller δ",
                instead=f'.to_approx("{text_of(self.delta)}")',
            )
        return ApproxDP(self.epsilon, wanted)

    def __repr__(self) -> str:
        return f"ApproxDP(epsilon={text_of(self.epsilon)!r}, delta={text_of(self.delta)!r})"

    def __str__(self) -> str:
        return f"ε = {text_of(self.epsilon)}, δ = {_small(self.delta)}"


@dataclass(frozen=True, slots=True, init=False)
class ZCDP:
    """ρ-zero-concentrated differential privacy; with δ > 0, its δ-approximate form.

    >>> ZCDP("0.01") + ZCDP("0.02")
    ZCDP(rho='0.03')
    >>> ZCDP("0.5").to_approx("1e-6").epsilon < 6
    True
    """

    rho: Fraction
    delta: Fraction

    def __init__(self, rho: Exact, delta: Exact = 0) -> None:
        object.__setattr__(self, "rho", exact_nonnegative(rho, "rho"))
        object.__setattr__(self, "delta", exact_probability(delta, "delta"))

    def __add__(self, other: Guarantee) -> Guarantee:
        if isinstance(other, PureDP):
            other = other.to_zcdp()
        if isinstance(other, ZCDP):
            return _with_delta(ZCDP(self.rho + other.rho), self.delta + other.delta)
        if isinstance(other, ApproxDP):
            raise _not_added(other, self)
        return NotImplemented

    def __mul__(self, times: int) -> ZCDP:
        return _with_delta(ZCDP(_whole(times) * self.rho), _whole(times) * self.delta)

    def __le__(self, other: Guarantee) -> bool:
        if isinstance(other, ZCDP):
            return self.rho <= other.rho and self.delta <= other.delta
        return self.rho == 0 and self.delta <= other.delta if isinstance(other, PureDP | ApproxDP) else NotImplemented

    def to_approx(self, delta: Exact) -> ApproxDP:
        """The least ε, rounded up, for which ρ-zCDP is known to imply (ε, δ): Canonne, Kamath & Steinke (2020), Corollary 13.

        The slack of an approximate ρ is taken out of the δ that is asked for.


        >>> float(ZCDP("0.1").to_approx("1e-6").epsilon) < 0.1 + 2 * (0.1 * 13.8156) ** 0.5
        True
        """
        from cloister.privacy.conversion import epsilon_of_zcdp

        wanted = exact_probability(delta, "delta")
        return ApproxDP(epsilon_of_zcdp(self, wanted), wanted)

    def __repr__(self) -> str:
        slack = f", delta={text_of(self.delta)!r}" if self.delta else ""
        return f"ZCDP(rho={text_of(self.rho)!r}{slack})"

    def __str__(self) -> str:
        return f"ρ = {text_of(self.rho)}" + (f", δ = {_small(self.delta)}" if self.delta else "")


Guarantee: TypeAlias = PureDP | ApproxDP | ZCDP
_Slack = TypeVar("_Slack", ApproxDP, ZCDP)


def guarantee_of(value: Guarantee | Exact) -> Guarantee:
    """A promise as it is; a number is the ε of a pure one.

    >>> guarantee_of("0.1"), guarantee_of(ZCDP(1))
    (PureDP(epsilon='0.1'), ZCDP(rho='1'))
    """
    return value if isinstance(value, PureDP | ApproxDP | ZCDP) else PureDP(value)


def pure_or_approx(value: Guarantee | Exact) -> PureDP | ApproxDP:
    """A promise of ε, or of ε and δ; a number is an ε. ρ is refused, with the line that makes an ε of it.

    >>> pure_or_approx(1)
    PureDP(epsilon='1')
    """
    found = guarantee_of(value)
    if isinstance(found, ZCDP):
        raise NotConvertible(
            f"{found} is invalid",
            why="the theorem is about ε, and what ρ says of ε depends on δ",
            instead=f"{found!r}.to_approx('1e-6')",
        )
    return found


def pure_of(value: Guarantee | Exact) -> PureDP:
    """A pure promise, (ε, 0) or a number; what has a δ is refused, since an ε alone would say too much of it.

    >>> pure_of(ApproxDP(1, 0)), pure_of("0.5")
    (PureDP(epsilon='1'), PureDP(epsilon='0.5'))
    """
    found = pure_or_approx(value)
    if found.delta:
        raise NotConvertible(
            f"{found} is invalid", why="what is asked for holds for δ = 0 alone", instead=f'PureDP("{text_of(found.epsilon)}")'
        )
    return PureDP(found.epsilon)


def zcdp_or_rho(value: Guarantee | Exact) -> ZCDP:
    """A promise of ρ; a number is a ρ, and what is pure has one (ε²/2). (ε, δ) is refused.

    >>> zcdp_or_rho("0.5"), zcdp_or_rho(PureDP(1))
    (ZCDP(rho='0.5'), ZCDP(rho='0.5'))
    """
    if isinstance(value, ApproxDP):
        raise NotConvertible(f"{value} is invalid", why="(ε, δ) says nothing of ρ", instead=f"zcdp_of_approx({value!r})")
    if isinstance(value, PureDP):
        return value.to_zcdp()
    return value if isinstance(value, ZCDP) else ZCDP(value)


def zero_of(guarantee: Guarantee) -> Guarantee:
    """The promise of the same kind that costs nothing.

    >>> zero_of(ApproxDP(1, "1e-6"))
    ApproxDP(epsilon='0', delta='0')
    """
    if isinstance(guarantee, PureDP):
        return PureDP(0)
    return ApproxDP(0, 0) if isinstance(guarantee, ApproxDP) else ZCDP(0)


def _with_delta(guarantee: _Slack, delta: Fraction) -> _Slack:
    object.__setattr__(guarantee, "delta", min(delta, Fraction(1)))
    return guarantee


def _whole(times: int) -> int:
    return whole_number(exact_nonnegative(times, "times"), "times", usual=2)


def _not_added(approx: ApproxDP, zcdp: ZCDP) -> NotConvertible:
    converted = f'ZCDP("{text_of(zcdp.rho)}").to_approx("1e-6")'
    return NotConvertible(
        f"{approx} was not added to {zcdp}",
        why="(ε, δ) says nothing of ρ, and what ρ says of ε depends on the δ that is chosen for it",
        instead=f'{converted} + ApproxDP("{text_of(approx.epsilon)}", "{text_of(approx.delta)}")',
    )


def _small(value: Fraction) -> str:
    text = text_of(value)
    return text if len(text) <= 6 else f"{float(value):.3g}"
