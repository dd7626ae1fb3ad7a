"""Vectors of a gamma-distributed length in a uniform direction, in sixty digits, rounded to whole steps.

For mechanisms that promise a pure ε: what the computation may be off by is so little (2⁻⁹⁰ of the length) that the chance of
landing in another step than the exact draw is far below anything that could be told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.noise.mechanism import narrowed
from cloister.privacy.precision import context, real

if TYPE_CHECKING:
    from fractions import Fraction

    from cloister.noise.random import Random

RELATIVE_ERROR = 2.0**-90
"""How far a coordinate may be from its real value, relatively to the vector's length, but with probability `MISSED`."""
MISSED = 2.0**-80
_BITS = 192


def ball_in_steps(dimension: int, scale: Fraction, random: Random) -> npt.NDArray[Any]:
    """One draw of density ∝ exp(−‖b‖₂/scale), each coordinate rounded to the nearest whole number.

    Normal numbers give the direction (Box & Muller 1958), a sum of d exponential ones the length. A uniform number is the middle
    of one of 2¹⁹² cells. Within a cell a logarithm moves by 2⁻¹⁹³/u, which is below 2⁻¹⁰² unless u < 2⁻⁹⁰; a radius √(−2 ln u) by
    2⁻¹⁹³/radius, below 2⁻¹⁰⁰ unless it is below 2⁻⁹². The length, a sum of d such logarithms, is about d and off by at most
    2⁻¹⁰²d; with two hundred bits of arithmetic a coordinate stays within `RELATIVE_ERROR`.

    >>> from fractions import Fraction
    >>> from cloister.noise.random import Random
    >>> ball_in_steps(3, Fraction(1000), Random.deterministic(1)).dtype
    dtype('int64')
    """
    number = context()
    half = (dimension + 1) // 2
    drawn = iter(_uniforms(2 * half + dimension, random))
    directions = []
    for _ in range(half):
        radius, angle = number.sqrt(-2 * number.ln(next(drawn))), 2 * number.pi * next(drawn)
        directions += [radius * number.cos(angle), radius * number.sin(angle)]
    del directions[dimension:]
    length = -number.fsum(number.ln(each) for each in drawn)
    norm = number.sqrt(number.fsum(each * each for each in directions))
    factor = real(scale) * length / norm
    steps = [int(number.nint(each * factor)) for each in directions]
    return narrowed(np.array(steps, dtype=object))


def _uniforms(n: int, random: Random) -> list[Any]:
    number, size = context(), _BITS // 8
    text = random.bytes(n * size)
    whole = (int.from_bytes(text[place : place + size], "little") for place in range(0, n * size, size))
    return [number.ldexp(2 * each + 1, -_BITS - 1) for each in whole]
