"""A small numeric language: vectors and matrices of fixed-point numbers, of which a circuit is made by calculating with them.

A program is a Python function of `SecretArray`s. What it does may depend on shapes and on public numbers, never on values: an
array has no truth value and can't be turned into a number. Each array has declared bounds, and each operation works out the
bounds of what it gives, in whole steps of 2^−fraction. The bits of a result follow from its bounds, so nothing overflows;
where that takes more bits than the program allows, it is refused before anything runs.

    + − unary −, abs, sum       exact
    * @ and dot                 exact products, summed exactly, then rounded down to the larger fraction of the two
    / divide                    rounded towards zero; the divisor's bounds must leave out 0 (see `clip`)
    sqrt                        rounded down; the bounds must not go below 0
    < <= > >= == !=             1 or 0; & | ^ ~ of such
    leading_zeros, ldexp        how far a number can move up; a number times a power of two, which may be secret
    negative, within            the sign, and bounds that were proved elsewhere: free
    select, clip, maximum, minimum, reshape, T, […], concatenate, minus_modulo

Public numbers are whole, or are rounded to the fraction of the array that they meet. The same function is carried out with
Python's integers, as the reference, and with gates: each operation stands here once, with both meanings side by side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.together.circuits import gates
from cloister.together.circuits.fixed_point import MOST_BITS, FixedPoint, behind_the_point, exact, integers, width_of
from cloister.together.circuits.machines import Machine, Wires

_AT_ONCE = 1 << 22
"""How many wires of products a sum of products holds at once."""


@dataclass
class Run:
    """One walk through a program: by gates where there is a machine, else by integers."""

    machine: Machine | None
    most: int
    trace: Any = field(default_factory=lambda: hashlib.sha256(b"cloister circuits program 1"))
    made: int = 0

    def array(self, data: Wires, kind: FixedPoint, *, believed: bool) -> SecretArray:
        """What a party brings. One who is not believed can enter whatever the bits hold, and a program would mean something
        else outside the declared bounds (a divisor of 0, say): such numbers are moved to the nearest declared one."""
        low, high = kind.bounds
        half = 1 << (kind.width - 1)
        least, most = (-half, half - 1) if low < 0 else (0, 2 * half - 1)
        if believed or (low, high) == (least, most):
            return self.make("input", (), data, kind.shape, low, high, kind.fraction)
        entered = self.make("an unchecked input", (), data, kind.shape, least, most, kind.fraction)
        return entered.clip(Fraction(low, 1 << kind.fraction), Fraction(high, 1 << kind.fraction))

    def make(
        self, what: str, parents: Sequence[SecretArray], data: Wires, shape: tuple[int, ...], low: int, high: int, fraction: int,
        extra: bytes = b"",
    ) -> SecretArray:  # fmt: skip
        """An array of these bounds, if it may have so many bits. All steps go into a hash, by which programs are compared."""
        if (width := width_of(low, high)) > self.most:
            raise InvalidParameter(
                f"The result of {what} does not fit",
                why=f"by its declared bounds it takes {width} bits, and the program allows {self.most}",
                instead=f"Program(…, bits={width}), narrower bounds, or .clip(low, high)",
            )
        if not prod(shape):
            raise InvalidParameter(
                f"The result of {what} is empty", why=f"its shape is {shape}", instead="an array of one number or more"
            )
        self.made += 1
        names = [parent.serial for parent in parents]
        self.trace.update(repr((what, names, shape, low, high, fraction, len(extra))).encode() + extra)
        return SecretArray(self, data, shape, low, high, fraction, self.made)

    def public(self, value: object, fraction: int) -> SecretArray:
        """A number or an array that everybody knows."""
        given = np.asarray(value, dtype=object)
        if not given.size:
            raise InvalidParameter("A public array is empty", why=f"its shape is {given.shape}", instead="a number")
        known = [exact(each) for each in given.ravel().tolist()]
        if any(each.denominator > 1 and not fraction for each in known):
            raise InvalidParameter(
                "A public number is invalid",
                why="it is not whole, and the array that it meets is",
                instead="FixedPoint(fraction=16, …)",
            )
        scale = 1 if all(each.denominator == 1 for each in known) else 1 << fraction
        steps = [round(each * scale) for each in known]
        low, high = min(steps), max(steps)
        data = integers(steps)[None, :, None]
        if self.machine is not None:
            columns = [self.machine.constant(each, width_of(low, high), 1) for each in steps]
            data = np.concatenate(columns, axis=1)
        shape, extra = given.shape, repr(steps).encode()
        return self.make("a public number", (), data, shape, low, high, 0 if scale == 1 else fraction, extra)


class SecretArray:
    """An array in a program, of values that the program doesn't see.

    >>> from cloister.together.circuits import Program
    >>> sizes = {"garbler": {"x": FixedPoint(bits=8, fraction=2)}, "evaluator": {"y": FixedPoint(bits=8, low=1)}}
    >>> program = Program(lambda x, y: (x / y, x < y), **sizes)
    >>> [float(each) for each in program.as_numbers(x=7.5, y=2)]
    [3.75, 0.0]
    """

    __array_ufunc__ = None  # numpy's arrays leave the operators to this class
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, run: Run, data: Wires, shape: tuple[int, ...], low: int, high: int, fraction: int, serial: int) -> None:
        self.run, self.data, self.shape = run, data, shape
        self.low, self.high, self.fraction, self.serial = low, high, fraction, serial

    def __bool__(self) -> bool:
        raise InvalidParameter(
            "A secret decides nothing",
            why="what a program does may not depend on values",
            instead="select(condition, one, other)",
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"SecretArray(shape={self.shape}, bits={self.width}, fraction={self.fraction})"

    @property
    def width(self) -> int:
        """Bits a number."""
        return width_of(self.low, self.high)

    @property
    def signed(self) -> bool:
        """Whether the highest bit is the sign."""
        return self.low < 0

    def wires(self, width: int | None = None) -> Wires:
        """As so many bits."""
        machine = self.run.machine
        assert machine is not None
        return gates.extended(machine, self.data, self.width if width is None else width, self.signed)

    # ── shapes ──

    def __getitem__(self, key: Any) -> SecretArray:
        return self._taken(self._places()[key])

    def reshape(self, *shape: int) -> SecretArray:
        """The same numbers in another shape."""
        return self._taken(self._places().reshape(*shape))

    @property
    def T(self) -> SecretArray:  # noqa: N802
        """The matrix turned round."""
        return self._taken(self._places().T)

    def _places(self) -> npt.NDArray[np.intp]:
        return np.arange(prod(self.shape), dtype=np.intp).reshape(self.shape)

    def _taken(self, places: npt.NDArray[np.intp] | np.intp) -> SecretArray:
        places = np.asarray(places)
        extra = hashlib.sha256(places.astype("<i8").tobytes()).digest()
        data = self.data[:, places.ravel()]
        return self.run.make("a choice of places", (self,), data, places.shape, self.low, self.high, self.fraction, extra)

    def _spread(self, shape: tuple[int, ...]) -> SecretArray:
        return self if self.shape == shape else self._taken(np.broadcast_to(self._places(), shape))

    def _bounded(self, low: int, high: int) -> SecretArray:
        """The same numbers, which are known to lie between these bounds."""
        width = width_of(low, high)
        data = self.data if self.run.machine is None else self.wires(width)
        return self.run.make("bounds", (self,), data, self.shape, low, high, self.fraction)

    def _shifted(self, fraction: int) -> SecretArray:
        """The same numbers with more bits behind the point, or rounded down to fewer. Costs nothing."""
        if (by := fraction - self.fraction) == 0:
            return self
        move: Callable[[Any], Any] = (lambda each: each << by) if by > 0 else (lambda each: each >> -by)
        low, high = move(self.low), move(self.high)
        if (machine := self.run.machine) is None:
            data = move(self.data)
        elif by > 0:
            data = np.concatenate([machine.zeros(by, self.data.shape[1]), self.data])
        else:
            data = gates.extended(machine, self.data, max(len(self.data), 1 - by), self.signed)[-by:]
            data = gates.extended(machine, data, width_of(low, high), low < 0)
        return self.run.make("a fraction", (self,), data, self.shape, low, high, fraction)

    def rounded(self, fraction: int) -> SecretArray:
        """With so many bits behind the point: rounded down where these are fewer."""
        return self._shifted(behind_the_point(fraction))

    def _met(self, other: object) -> tuple[SecretArray, SecretArray]:
        """Two arrays of one shape."""
        two = other if isinstance(other, SecretArray) else self.run.public(other, self.fraction)
        if two.run is not self.run:
            raise InvalidParameter(
                "The program is invalid", why="it keeps an array of another run", instead="what the function is given"
            )
        try:
            shape = np.broadcast_shapes(self.shape, two.shape)
        except ValueError:
            raise InvalidParameter(
                "The two arrays don't fit", why=f"their shapes are {self.shape} and {two.shape}", instead="equal shapes"
            ) from None
        return self._spread(shape), two._spread(shape)

    def _aligned(self, other: object) -> tuple[SecretArray, SecretArray, int]:
        one, two = self._met(other)
        fraction = max(one.fraction, two.fraction)
        return one._shifted(fraction), two._shifted(fraction), fraction

    # ── sums ──

    def __add__(self, other: object) -> SecretArray:
        one, two, fraction = self._aligned(other)
        low, high, width = one.low + two.low, one.high + two.high, width_of(one.low + two.low, one.high + two.high)
        if (machine := self.run.machine) is None:
            data = one.data + two.data
        else:
            data = gates.add(machine, one.wires(width), two.wires(width))
        return self.run.make("a sum", (one, two), data, one.shape, low, high, fraction)

    __radd__ = __add__

    def __sub__(self, other: object) -> SecretArray:
        one, two, fraction = self._aligned(other)
        low, high, width = one.low - two.high, one.high - two.low, width_of(one.low - two.high, one.high - two.low)
        if (machine := self.run.machine) is None:
            data = one.data - two.data
        else:
            data = gates.subtract(machine, one.wires(width), two.wires(width))
        return self.run.make("a difference", (one, two), data, one.shape, low, high, fraction)

    def __rsub__(self, other: object) -> SecretArray:
        return self.run.public(other, self.fraction) - self

    def __neg__(self) -> SecretArray:
        return 0 - self

    def __abs__(self) -> SecretArray:
        return select(self.negative(), -self, self)._bounded(max(0, self.low, -self.high), max(abs(self.low), abs(self.high)))

    def sum(self, axis: int | None = None) -> SecretArray:
        """The sum over one axis, or over all."""
        places = self._places().reshape(-1) if axis is None else np.moveaxis(self._places(), axis, 0)
        shape, left = places.shape[1:], self._taken(places.reshape(len(places), -1))
        odd: list[SecretArray] = []
        while len(left) > 1:  # a tree: half the terms are added to the other half
            half = len(left) // 2
            if len(left) % 2:
                odd.append(left[-1:])
            left = left[:half] + left[half : 2 * half]
        for each in reversed(odd):
            left = left + each
        return left.reshape(*shape) if shape else left.reshape(1)[0]

    # ── products ──

    def _product(self, other: SecretArray) -> SecretArray:
        """Exactly."""
        corners = [x * y for x in (self.low, self.high) for y in (other.low, other.high)]
        low, high = min(corners), max(corners)
        if self is other:  # a square
            low = 0 if self.low <= 0 <= self.high else min(self.low**2, self.high**2)
        if (machine := self.run.machine) is None:
            data = self.data * other.data
        else:
            signs = (self.signed, other.signed)
            data = gates.multiply(machine, self.wires(), other.wires(), width_of(low, high), signs)
        return self.run.make("a product", (self, other), data, self.shape, low, high, self.fraction + other.fraction)

    def multiply(self, other: object, *, fraction: int | None = None) -> SecretArray:
        """The product with so many bits behind the point (None: the more of the two), rounded down."""
        one, two = self._met(other)
        return one._product(two)._shifted(max(one.fraction, two.fraction) if fraction is None else behind_the_point(fraction))

    def __mul__(self, other: object) -> SecretArray:
        return self.multiply(other)

    __rmul__ = __mul__

    def dot(self, other: object, *, fraction: int | None = None) -> SecretArray:
        """The product of vectors or matrices: exact products, exact sums, rounded down at last."""
        other = other if isinstance(other, SecretArray) else self.run.public(other, self.fraction)
        if not {len(self.shape), len(other.shape)} <= {1, 2} or self.shape[-1] != other.shape[0]:
            raise InvalidParameter(
                "The two arrays have no product",
                why=f"their shapes are {self.shape} and {other.shape}",
                instead="(m, k) and (k, n)",
            )
        left = self if len(self.shape) == 2 else self.reshape(1, -1)
        right = other.T if len(other.shape) == 2 else other.reshape(1, -1)
        (rows, terms), columns = left.shape, right.shape[0]
        room = max(1, _AT_ONCE // (self.width + other.width))
        deep = min(terms, room)
        broad = min(columns, max(1, room // deep))
        high = min(rows, max(1, room // (deep * broad)))
        bands = []
        for row in range(0, rows, high):
            cells = []
            for column in range(0, columns, broad):
                total: SecretArray | None = None
                for at in range(0, terms, deep):
                    one, two = left[row : row + high, None, at : at + deep]._met(
                        right[None, column : column + broad, at : at + deep]
                    )
                    part = one._product(two).sum(-1)
                    total = part if total is None else total + part
                assert total is not None
                cells.append(total)
            bands.append(concatenate(cells, axis=1))
        shape, finer = self.shape[:-1] + other.shape[1:], max(self.fraction, other.fraction)
        found = concatenate(bands, axis=0)._shifted(finer if fraction is None else behind_the_point(fraction))
        return found._taken(found._places().reshape(shape))

    def __matmul__(self, other: object) -> SecretArray:
        return self.dot(other)

    def __rmatmul__(self, other: object) -> SecretArray:
        return self.run.public(other, self.fraction).dot(self)

    # ── quotients and roots ──

    def divide(self, other: object, *, fraction: int | None = None) -> SecretArray:
        """The quotient with so many bits behind the point (None: the more of the two), rounded towards zero."""
        one, two = self._met(other)
        if two.low <= 0 <= two.high:
            raise InvalidParameter(
                "The quotient can't be made", why="by its declared bounds the divisor may be 0", instead="divisor.clip(1, …)"
            )
        fraction = max(one.fraction, two.fraction) if fraction is None else behind_the_point(fraction)
        by = fraction + two.fraction - one.fraction  # one·2^by / two, in steps
        top, under = (one._shifted(one.fraction + by), two) if by >= 0 else (one, two._shifted(two.fraction - by))
        if under.high < 0:
            top, under = -top, -under
        # what is furthest below zero and above it is made by the smallest divisor, what is nearest to zero by the largest
        low = -(-top.low // under.low) if top.low < 0 else top.low // under.high
        high = top.high // under.low if top.high >= 0 else -(-top.high // under.high)
        largest = max(abs(top.low), abs(top.high))
        if (machine := self.run.machine) is None:
            signs = np.where(top.data < 0, -1, 1)
            data = signs * (abs(top.data) // under.data)
        else:
            width, digits = largest.bit_length() or 1, (largest // under.low).bit_length() or 1
            negative = top.data[-1:] if top.signed else machine.zeros(1, top.data.shape[1])
            size = top.wires(width + 1)
            size = gates.negate_if(machine, size, negative) if top.signed else size
            data = gates.extended(machine, gates.divide(machine, size[:width], under.wires(), digits), digits + 1, False)
            data = gates.negate_if(machine, data, negative) if top.signed else data
            data = gates.extended(machine, data, width_of(low, high), top.signed)
        return self.run.make("a quotient", (top, under), data, one.shape, low, high, fraction)

    def __truediv__(self, other: object) -> SecretArray:
        return self.divide(other)

    def __rtruediv__(self, other: object) -> SecretArray:
        return self.run.public(other, self.fraction).divide(self)

    def sqrt(self, *, fraction: int | None = None) -> SecretArray:
        """The square root with so many bits behind the point (None: as many as the number has), rounded down."""
        if self.low < 0:
            raise InvalidParameter(
                "The root can't be made", why="by its declared bounds the number may be below 0", instead=".clip(0, …)"
            )
        fraction = self.fraction if fraction is None else behind_the_point(fraction)
        square = self._shifted(2 * fraction)
        low, high = isqrt(square.low), isqrt(square.high)
        if (machine := self.run.machine) is None:
            data = integers([isqrt(each) for each in square.data.ravel().tolist()]).reshape(square.data.shape)
        else:
            data = gates.square_root(machine, square.wires(), high.bit_length() or 1)
        return self.run.make("a root", (square,), data, self.shape, low, high, fraction)

    # ── comparisons and choices ──

    def _compared(self, other: object, turned: bool) -> SecretArray:
        """self < other; turned: other < self."""
        one, two, _ = self._aligned(other)
        one, two = (two, one) if turned else (one, two)
        if (machine := self.run.machine) is None:
            data = integers([int(each) for each in (one.data < two.data).ravel()]).reshape(one.data.shape)
        else:
            signed = one.signed or two.signed
            width = width_of(min(one.low, two.low), max(one.high, two.high))
            data = gates.less(machine, one.wires(width), two.wires(width), signed)
        return self.run.make("a comparison", (one, two), data, one.shape, 0, 1, 0)

    def __lt__(self, other: object) -> SecretArray:
        return self._compared(other, False)

    def __gt__(self, other: object) -> SecretArray:
        return self._compared(other, True)

    def __le__(self, other: object) -> SecretArray:
        return ~self._compared(other, True)

    def __ge__(self, other: object) -> SecretArray:
        return ~self._compared(other, False)

    def negative(self) -> SecretArray:
        """1 where the number is below 0. Costs nothing, where `array < 0` compares."""
        if (machine := self.run.machine) is None:
            data = integers([int(each < 0) for each in self.data.ravel().tolist()]).reshape(self.data.shape)
        else:
            data = self.wires()[-1:] if self.signed else machine.zeros(1, self.data.shape[1])
        return self.run.make("a sign", (self,), data, self.shape, 0, int(self.signed), 0)

    def __eq__(self, other: object) -> SecretArray:  # type: ignore[override]
        one, two, _ = self._aligned(other)
        if (machine := self.run.machine) is None:
            data = integers([int(each) for each in (one.data == two.data).ravel()]).reshape(one.data.shape)
        else:
            width = width_of(min(one.low, two.low), max(one.high, two.high))
            data = gates.equal(machine, one.wires(width), two.wires(width))
        return self.run.make("an equality", (one, two), data, one.shape, 0, 1, 0)

    def __ne__(self, other: object) -> SecretArray:  # type: ignore[override]
        return ~(self == other)

    def _logical(self) -> SecretArray:
        if (self.low, self.high, self.fraction) not in ((0, 1, 0), (0, 0, 0), (1, 1, 0)):
            raise InvalidParameter("The array is no condition", why="it may hold more than 0 and 1", instead="array > 0")
        return self

    def __invert__(self) -> SecretArray:
        one = self._logical()
        data = 1 - one.data if self.run.machine is None else self.run.machine.opposite(one.data)
        return self.run.make("a NOT", (one,), data, one.shape, 0, 1, 0)

    def __xor__(self, other: object) -> SecretArray:
        one, two = (each._logical() for each in self._met(other))
        return self.run.make("an exclusive or", (one, two), one.data ^ two.data, one.shape, 0, 1, 0)

    def __and__(self, other: object) -> SecretArray:
        one, two = (each._logical() for each in self._met(other))
        machine = self.run.machine
        data = one.data & two.data if machine is None else machine.both(one.data, two.data)
        return self.run.make("an AND", (one, two), data, one.shape, 0, 1, 0)

    def __or__(self, other: object) -> SecretArray:
        one, two = (each._logical() for each in self._met(other))
        return ~(~one & ~two)

    def maximum(self, other: object) -> SecretArray:
        """The larger of two, number by number."""
        one, two, _ = self._aligned(other)
        return select(one < two, two, one)._bounded(max(one.low, two.low), max(one.high, two.high))

    def minimum(self, other: object) -> SecretArray:
        """The smaller of two, number by number."""
        one, two, _ = self._aligned(other)
        return select(two < one, two, one)._bounded(min(one.low, two.low), min(one.high, two.high))

    def clip(self, low: object, high: object) -> SecretArray:
        """Moved between two public numbers, or arrays of such, so that the bounds of what follows are narrower."""
        first, last = (self.run.public(each, self.fraction)._shifted(self.fraction) for each in (low, high))
        if (np.asarray(low, dtype=object) > np.asarray(high, dtype=object)).any():
            raise InvalidParameter(f"low={low}, high={high} are invalid", why="low is above high", instead="clip(0, 1)")
        found = self.maximum(first) if self.low < first.high else self
        return found.minimum(last) if found.high > last.low else found

    def within(self, low: object = None, high: object = None) -> SecretArray:
        """The same numbers, of which it is proved that they lie between two public ones. Costs nothing, where `clip` compares.

        Use it where interval by interval says less than a theorem does (a norm that a rotation keeps). The proof has to hold
        for all inputs that their declarations allow: gates cut off what is outside. The reference refuses it.
        """
        least, most = self._proved(self.low, self.high, low, high)
        self._must_hold(self.data, least, most)
        return self._bounded(least, most)

    def _proved(self, least: int, most: int, low: object, high: object) -> tuple[int, int]:
        """Bounds in steps, narrowed by numbers that somebody proved."""
        scale = 1 << self.fraction
        least = least if low is None else max(least, -int(-exact(low) * scale // 1))
        most = most if high is None else min(most, int(exact(high) * scale // 1))
        if least > most:
            raise InvalidParameter(
                f"low={low}, high={high} are invalid", why="no number of the array can lie there", instead="low=0, high=1"
            )
        return least, most

    def _must_hold(self, data: Wires, least: int, most: int) -> None:
        """Refuses numbers in the clear that are outside their bounds."""
        if self.run.machine is None and ((data < least) | (data > most)).any():
            raise InvalidParameter(
                "The program is invalid",
                why="a number lies outside the bounds that were given as proved",
                instead=".clip(low, high)",
            )

    # ── powers of two ──

    def leading_zeros(self, axis: int | None = None, *, bits: int | None = None, group: int = 1) -> SecretArray:
        """How many of so many highest bits (None: of the array) are 0 in each number or, along an axis, in all of them.

        Of a number below 0, bits that repeat the sign are counted, and the sign is not. group=2 counts pairs of bits: that
        many places a square moves, when its root moves by half.

        >>> from cloister.together.circuits import Program
        >>> kind = FixedPoint(bits=8, shape=(3,))
        >>> sizes = {"garbler": {"a": kind}, "evaluator": {"b": kind}}
        >>> program = Program(lambda a, b: ((a + b).leading_zeros(bits=8), b.leading_zeros(0)), **sizes)
        >>> [each.tolist() for each in program.as_gates(a=[1, -2, 0], b=[0, 0, 16])]
        [[7, 7, 3], 2]
        """
        own = self.width - self.signed
        bits = own if bits is None else bits
        if isinstance(group, bool) or not isinstance(group, int) or group < 1:
            raise InvalidParameter(f"group={group!r} is invalid", why="it is a whole number above 0", instead="group=1")
        if isinstance(bits, bool) or not isinstance(bits, int) or not own <= bits <= self.run.most or bits % group:
            raise InvalidParameter(
                f"bits={bits!r} is invalid",
                why=f"it is from {own} to {self.run.most}, in groups of {group}",
                instead=f"bits={-(-own // group) * group}",
            )
        places = self._places().reshape(-1, 1) if axis is None else np.moveaxis(self._places(), axis, -1)
        shape = self.shape if axis is None else places.shape[:-1]
        places = places.reshape(-1, places.shape[-1])
        high = bits // group
        if (machine := self.run.machine) is None:
            sizes = np.where(self.data < 0, -1 - self.data, self.data).ravel()[places]
            lengths = [max(each.bit_length() for each in row) for row in sizes.tolist()]
            data = integers([(bits - each) // group for each in lengths])[None, :, None]
        else:
            seen = self.data[:own] ^ self.data[own:] if self.signed else self.data[:own]
            seen = gates.extended(machine, seen, bits, False)[:, places]
            # what is joined by OR comes first: the bits of a group, the numbers along the axis
            seen = seen.reshape(high, group, *seen.shape[1:]).transpose(1, 3, 0, 2, 4)
            seen = seen.reshape(group * places.shape[1], high, *seen.shape[3:])
            while len(seen) > 1:
                half = len(seen) // 2
                flat = half * high, *seen.shape[2:]
                one, two = (machine.opposite(each).reshape(flat) for each in (seen[:half], seen[half : 2 * half]))
                joined = machine.opposite(machine.both(one, two)).reshape(half, *seen.shape[1:])
                seen = np.concatenate([joined, seen[2 * half :]])
            data = gates.leading_zeros(machine, seen[0], width_of(0, high))
        extra = repr((bits, group)).encode() + hashlib.sha256(places.astype("<i8").tobytes()).digest()
        return self.run.make("leading zeros", (self,), data, shape, 0, high, 0, extra)

    def ldexp(self, exponent: int | SecretArray, *, low: object = None, high: object = None) -> SecretArray:
        """The number times 2^exponent: free for a public exponent; for a secret one, from 0 on, a gate for each bit of both.

        low, high: where the result is proved to lie, as in `within`. Without them it may have as many bits more as the
        exponent allows.
        """
        secret = isinstance(exponent, SecretArray) and not exponent.fraction and exponent.low >= 0
        if not secret and (isinstance(exponent, bool) or not isinstance(exponent, int)):
            raise InvalidParameter(
                "The exponent is invalid", why="it is no whole number, or may be below 0", instead="array.leading_zeros()"
            )
        if (size := exponent.high if isinstance(exponent, SecretArray) else abs(exponent)) > MOST_BITS:
            raise InvalidParameter(
                "The exponent is invalid", why=f"it may be {size}, and no number has so many bits", instead="exponent.clip(0, 40)"
            )
        if isinstance(exponent, int):
            finer = self._shifted(max(self.fraction, exponent))
            fraction = behind_the_point(finer.fraction - exponent)
            moved = self.run.make("a power of two", (finer,), finer.data, self.shape, finer.low, finer.high, fraction)
            return moved if low is None and high is None else moved.within(low, high)
        one, by = self._met(exponent)
        ends = min(one.low, one.low << by.high), max(one.high, one.high << by.high)
        least, most = one._proved(*ends, low, high)
        if (machine := self.run.machine) is None:
            data = one.data << by.data
        else:
            data = gates.shift_up(machine, one.wires(width_of(least, most)), by.wires())
        one._must_hold(data, least, most)
        return self.run.make("a secret power of two", (one, by), data, one.shape, least, most, one.fraction)

    # ── blinds ──

    def minus_modulo(self, other: SecretArray, *, bits: int, fraction: int = 0) -> SecretArray:
        """(self − other) modulo 2^bits, read as a signed number: takes a blind off, whatever carries the two numbers had above.

        Both are whole numbers of so many bits, from 0 on.
        """
        one, two = self._met(other)
        fraction = behind_the_point(fraction)
        if any((each.low < 0) or each.width > bits or each.fraction for each in (one, two)):
            raise InvalidParameter(
                "The blinds can't be taken off",
                why=f"the two are whole numbers of {bits} bits, from 0 on",
                instead="FixedPoint(low=0)",
            )
        half = 1 << (bits - 1)
        if (machine := self.run.machine) is None:
            data = (one.data - two.data + half) % (2 * half) - half
        else:
            data = gates.subtract(machine, one.wires(bits), two.wires(bits))
        return self.run.make("a blind", (one, two), data, one.shape, -half, half - 1, fraction)


def select(condition: SecretArray, one: object, other: object) -> SecretArray:
    """One where the condition is 1, the other elsewhere.

    >>> from cloister.together.circuits import Program
    >>> larger = Program(lambda a, b: select(a > b, a, b), garbler={"a": FixedPoint()}, evaluator={"b": FixedPoint()})
    >>> int(larger.as_numbers(a=3, b=5)), larger.gates
    (5, 121)
    """
    if not isinstance(one, SecretArray):
        fraction = other.fraction if isinstance(other, SecretArray) else 0
        one = condition.run.public(one, fraction)
    one, two, fraction = one._aligned(other)
    one, chosen = one._met(condition._logical())
    two, _ = two._met(chosen)
    chosen = chosen._spread(one.shape)
    low, high = min(one.low, two.low), max(one.high, two.high)
    if (machine := condition.run.machine) is None:
        data = np.where(chosen.data == 1, one.data, two.data)
    else:
        width = width_of(low, high)
        data = gates.select(machine, chosen.data, one.wires(width), two.wires(width))
    return condition.run.make("a choice", (chosen, one, two), data, one.shape, low, high, fraction)


def concatenate(arrays: Sequence[SecretArray], axis: int = 0) -> SecretArray:
    """Arrays one after the other.

    >>> from cloister.together.circuits import Program
    >>> sizes = {"garbler": {"a": FixedPoint(shape=(2,))}, "evaluator": {"b": FixedPoint(shape=(1,))}}
    >>> Program(lambda a, b: concatenate([a, b]), **sizes).as_numbers(a=[1, 2], b=[3]).tolist()
    [1, 2, 3]
    """
    if len(arrays) == 1:
        return arrays[0]
    fraction = max(each.fraction for each in arrays)
    parts = [each._shifted(fraction) for each in arrays]
    low, high = min(each.low for each in parts), max(each.high for each in parts)
    run, sizes = parts[0].run, np.cumsum([0, *(prod(each.shape) for each in parts)])
    places = np.concatenate([each._places() + start for each, start in zip(parts, sizes, strict=False)], axis=axis)
    width = width_of(low, high)
    data = np.concatenate([each.data if run.machine is None else each.wires(width) for each in parts], axis=1)
    joined = run.make("several arrays", parts, data, (int(sizes[-1]),), low, high, fraction)
    return joined._taken(places)
