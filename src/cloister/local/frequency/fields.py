"""Finite fields and the functions that hash a place of a domain: whole numbers read as digits, and their inner products.

A place is a number of m digits in GF(g), and so is a seed. A function is known by its seed a: it takes x to ⟨a, x⟩ = Σ aᵢ·xᵢ.
Multiples of a seed tell the same places apart, so one of each line through 0 is enough: the one whose first digit that is
not 0 is a 1. There are (gᵐ − 1)/(g − 1) of these, and for any x ≠ y, exactly (gᵐ⁻¹ − 1)/(g − 1) of them have
⟨a, x − y⟩ = 0: no family of hash functions has fewer collisions.

g is a prime, or a power of two: then digits are added by exclusive or, and multiplied as polynomials of bits.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Numbers = npt.NDArray[np.int64]

_POLYNOMIALS = {2: 3, 4: 7, 8: 11, 16: 19, 32: 37, 64: 67, 128: 131, 256: 285, 512: 529, 1024: 1033, 2048: 2053, 4096: 4179}
"""For each power of two, the polynomial that products are reduced by: primitive, so that powers of 2 are all but 0."""


@dataclass(frozen=True, kw_only=True)
class Field:
    """GF(size), where size is a prime, or a power of two with its `polynomial`.

    >>> int(field_of(7).times(np.array([3]), 5)[0]), int(field_of(4).times(np.array([2]), 3)[0])
    (1, 1)
    """

    size: int
    polynomial: int = 0
    """0: a prime field."""

    @property
    def bits(self) -> int:
        """How many bits a digit has, where the size is a power of two.

        >>> field_of(8).bits
        3
        """
        return self.size.bit_length() - 1

    def times(self, left: Numbers, right: Numbers | int) -> Numbers:
        """Products of digits."""
        if not self.polynomial:
            return np.asarray(left * right % self.size, dtype=np.int64)
        logs, powers = self._tables
        products: Numbers = powers[logs[left] + logs[right]]
        return products

    def inner(self, left: Numbers, right: Numbers, digits: int) -> Numbers:
        """⟨left, right⟩ of numbers of so many digits.

        >>> field_of(3).inner(np.array([5]), np.array([7]), 2).tolist()  # 12 and 21 in base 3: 1·2 + 2·1 = 4 ≡ 1
        [1]
        """
        if self.size == 2:
            return np.asarray(np.bitwise_count(left & right) & 1, dtype=np.int64)
        result = np.zeros(len(left), dtype=np.int64)
        if self.polynomial:
            for place in range(digits):
                shift, mask = place * self.bits, self.size - 1
                result ^= self.times(left >> shift & mask, right >> shift & mask)
            return result
        for _ in range(digits):
            left, a = np.divmod(left, self.size)
            right, x = np.divmod(right, self.size)
            result += a * x % self.size
        return result % self.size

    def scaled(self, numbers: Numbers, factor: Numbers, digits: int) -> Numbers:
        """Numbers whose digits are all multiplied by a factor.

        >>> field_of(3).scaled(np.array([5]), np.array([2]), 2).tolist()  # 12 in base 3 becomes 21
        [7]
        """
        result: Numbers = np.zeros(np.broadcast_shapes(numbers.shape, factor.shape), dtype=np.int64)
        power = 1
        for _ in range(digits):
            numbers, digit = np.divmod(numbers, self.size)
            result += self.times(digit, factor) * power
            power *= self.size
        return result

    def traced(self, numbers: Numbers, digits: int) -> Numbers:
        """Of a power of two: numbers y with parity(a & y) = the trace of ⟨a, x⟩ for every a. Bit r of a digit of y is the trace
        of 2ʳ times the digit of x."""
        table = np.zeros(self.size, dtype=np.int64)
        every = np.arange(self.size, dtype=np.int64)
        for place in range(self.bits):
            table |= self.traces[self.times(every, 1 << place)] << place
        result = np.zeros(len(numbers), dtype=np.int64)
        for place in range(digits):
            result |= table[numbers >> (place * self.bits) & (self.size - 1)] << (place * self.bits)
        return result

    @cached_property
    def traces(self) -> Numbers:
        """Of a power of two: z + z² + z⁴ + …, which is 0 or 1, for each digit z.

        >>> field_of(4).traces.tolist()
        [0, 0, 1, 1]
        """
        power = np.arange(self.size, dtype=np.int64)
        total = power.copy()
        for _ in range(self.bits - 1):
            power = self.times(power, power)
            total ^= power
        return total

    @cached_property
    def _tables(self) -> tuple[Numbers, Numbers]:
        """Logarithms to base 2, and powers of 2. The logarithm of 0 is so large that any sum with it leads to a 0."""
        order = self.size - 1
        powers = np.zeros(4 * order + 1, dtype=np.int64)
        logs = np.full(self.size, 2 * order, dtype=np.int64)
        value = 1
        for exponent in range(order):
            powers[exponent] = powers[exponent + order] = value
            logs[value] = exponent
            value <<= 1
            if value & self.size:
                value ^= self.polynomial
        return logs, powers


@dataclass(frozen=True, kw_only=True)
class Lines:
    """The hash functions of numbers of `digits` digits: one for each line through 0.

    Function number s has 1 as its first digit that is not 0, then the digits of s − (gʲ − 1)/(g − 1), where j is how many
    digits follow: the largest for which that is not below 0.

    >>> lines = Lines(field=field_of(3), digits=2)
    >>> len(lines), lines.vectors(np.arange(4)).tolist(), str(lines.collisions)
    (4, [1, 3, 4, 5], '0.25')
    """

    field: Field
    digits: int

    def __len__(self) -> int:
        return int((self.field.size**self.digits - 1) // (self.field.size - 1))

    @property
    def collisions(self) -> float:
        """The share of functions that take two different numbers to the same value."""
        return (len(self) - 1) // self.field.size / len(self)

    @property
    def cells(self) -> int:
        """How many pairs of a function and a value there are."""
        return len(self) * self.field.size

    @cached_property
    def firsts(self) -> Numbers:
        """The numbers of the functions with 0, 1, 2, … digits after the first 1."""
        size = self.field.size
        return np.array([(size**j - 1) // (size - 1) for j in range(self.digits)], dtype=np.int64)

    def vectors(self, functions: Numbers) -> Numbers:
        """Each function's digits, as a number."""
        powers = np.array([self.field.size**j for j in range(self.digits)], dtype=np.int64)
        group = np.searchsorted(self.firsts, functions, side="right") - 1
        return np.asarray(functions + (powers - self.firsts)[group], dtype=np.int64)

    def hashed(self, functions: Numbers, places: Numbers) -> Numbers:
        """Function by function, the value of a place."""
        if self.digits == 1:
            return places.copy()
        return self.field.inner(self.vectors(functions), places, self.digits)


@lru_cache(maxsize=256)
def field_of(size: int) -> Field:
    """The field of this size.

    >>> field_of(6)
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: A field of 6 is invalid: it is neither a prime nor a power of two up to 4096.
      Instead: 5 or 7
    """
    if size in _POLYNOMIALS:
        return Field(size=size, polynomial=_POLYNOMIALS[size])
    if not is_prime(size):
        below = (each for each in range(size - 1, 1, -1) if each in _POLYNOMIALS or is_prime(each))
        nearest = f"{next(below)} or {next_field(size)}" if size > 2 else "2"
        raise InvalidParameter(
            f"A field of {size} is invalid", why="it is neither a prime nor a power of two up to 4096", instead=nearest
        )
    return Field(size=size)


@lru_cache(maxsize=1024)
def is_prime(number: int) -> bool:
    """Whether a number below 2⁴⁰ is a prime.

    >>> [number for number in range(20) if is_prime(number)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    if number < 4 or number % 2 == 0:
        return number in (2, 3)
    return bool(all(number % factor for factor in range(3, int(number**0.5) + 2, 2)))


def next_field(least: int) -> int:
    """The smallest size of a field that is not below `least`.

    >>> next_field(14), next_field(24), next_field(60)
    (16, 29, 61)
    """
    size = max(2, least)
    while not (size in _POLYNOMIALS or is_prime(size)):
        size += 1
    return size
