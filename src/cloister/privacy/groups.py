"""What a promise for one unit says of several units, and of neighbours defined otherwise."""

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy.guarantee import ZCDP, ApproxDP, Guarantee, PureDP, guarantee_of
from cloister.privacy.precision import context, real, up
from cloister.privacy.rational import Exact, exact, text_of
from cloister.privacy.sensitivity import Neighbours


def for_groups(guarantee: Guarantee | Exact, size: int) -> Guarantee:
    """What a promise for one unit says of `size` units at once.

    Pure: kε. Zero-concentrated: k²ρ (Bun & Steinke 2016, Proposition 1.9). Approximate: kε and δ·(1 + e^ε + … + e^{(k−1)ε}),
    rounded up. Proof: walk from one table to the other unit by unit; P₀(S) ≤ e^ε·P₁(S) + δ ≤ e^{2ε}·P₂(S) + (1 + e^ε)·δ ≤ …
    The sum is at most k·e^{(k−1)ε}·δ, as books have it, and so below the k·e^{kε}·δ of Vadhan (2017), Lemma 2.2.

    >>> for_groups("0.1", 3), for_groups(ZCDP("0.1"), 2)
    (PureDP(epsilon='0.3'), ZCDP(rho='0.4'))
    """
    guarantee, units = guarantee_of(guarantee), exact(size, "size")
    if units < 1 or units.denominator != 1:
        raise InvalidParameter(f"size={text_of(units)} is invalid", why="a group has a whole number of units", instead="size=2")
    if isinstance(guarantee, PureDP):
        return PureDP(units * guarantee.epsilon)
    if isinstance(guarantee, ZCDP):
        if guarantee.delta and units > 1:
            raise NotConvertible(
                f"{guarantee} was not extended to groups",
                why="no such theorem is known for approximate ρ",
                instead='for_groups(guarantee.to_approx("1e-6"), 2)',
            )
        return ZCDP(units**2 * guarantee.rho, guarantee.delta)
    slack = guarantee.delta
    if slack and units > 1:
        if guarantee.epsilon == 0:
            slack *= units
        else:
            number = context()
            ratio = number.expm1(real(units * guarantee.epsilon)) / number.expm1(real(guarantee.epsilon))
            slack *= up(ratio)
    if slack >= 1:
        raise NotConvertible(
            f"{guarantee} was not extended to groups of {units}",
            why="δ would reach 1, which promises nothing",
            instead="a smaller group",
        )
    return ApproxDP(units * guarantee.epsilon, slack)


def to_bounded(guarantee: Guarantee | Exact) -> Guarantee:
    """What a promise for unbounded neighbours says of bounded ones: to replace a unit is to remove one and to add one.

    ε becomes 2ε, (ε, δ) becomes (2ε, (1 + e^ε)·δ), ρ becomes 4ρ.

    >>> to_bounded(PureDP("0.5")), to_bounded(ZCDP("0.1"))
    (PureDP(epsilon='1'), ZCDP(rho='0.4'))
    """
    return for_groups(guarantee, 2)


def between_neighbours(guarantee: Guarantee | Exact, *, source: Neighbours | str, target: Neighbours | str) -> Guarantee:
    """The same mechanism's promise for another relation of neighbours; from bounded to unbounded there is none.

    >>> between_neighbours(PureDP(1), source="unbounded", target="bounded")
    PureDP(epsilon='2')
    """
    guarantee, start, end = guarantee_of(guarantee), _neighbours(source, "source"), _neighbours(target, "target")
    if start == end:
        return guarantee
    if start is Neighbours.BOUNDED:
        raise NotConvertible(
            f"{guarantee} for bounded neighbours was not converted to unbounded ones",
            why="it may publish the number of units exactly, which tells tables of different sizes apart",
            instead='a guarantee proved for neighbours="unbounded"',
        )
    return to_bounded(guarantee)


def _neighbours(value: Neighbours | str, name: str) -> Neighbours:
    try:
        return Neighbours(value)
    except ValueError:
        raise InvalidParameter(
            f"{name}={value!r} is invalid", why="it is not a neighbour relation", instead=f'{name}="unbounded"'
        ) from None
