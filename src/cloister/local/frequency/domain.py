"""The values that a question may have, in their order: public, declared, never looked up."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Indices = npt.NDArray[np.int64]

_LARGEST = 1 << 31


class Domain:
    """Values and their places. A `range` is kept as it is, so that a domain of millions costs nothing.

    >>> domain = Domain(["red", "green", "blue"])
    >>> len(domain), domain.places(["blue", "red"]).tolist(), domain.values[1]
    (3, [2, 0], 'green')
    """

    __slots__ = ("_numbers", "_order", "_places", "values")

    values: Sequence[Any]

    def __init__(self, values: Iterable[Hashable]) -> None:
        if isinstance(values, str | bytes):
            raise _refused("a text is not a list of values", 'domain=["yes", "no"]')
        try:
            self.values = (
                values if isinstance(values, range) else tuple(values.tolist() if isinstance(values, np.ndarray) else values)
            )
        except TypeError:
            raise _refused("it is not a list of values", 'domain=["yes", "no"]') from None
        self._places: dict[Any, int] | None = None
        self._numbers: npt.NDArray[Any] | None = None
        self._order: Indices | None = None
        try:
            size = len(self.values)
        except OverflowError:  # a range of more than any list has
            size = _LARGEST + 1
        if size < 2:
            raise _refused("it has fewer than two values, so an answer would tell nothing", 'domain=["yes", "no"]')
        if size > _LARGEST:
            raise _refused("it has more than 2³¹ values", "cloister.local.HeavyHitters, for texts of any length")
        if isinstance(self.values, range):
            if not all(-(1 << 62) < end < 1 << 62 for end in (self.values.start, self.values.stop, self.values.step)):
                raise _refused("its numbers take more than 62 bits", "smaller numbers, or texts")
            return
        try:
            self._places = {value: place for place, value in enumerate(self.values)}
        except TypeError:
            raise _refused("some of its values are lists or dicts", "texts, numbers or tuples as values") from None
        if any(value != value for value in self.values):  # NaN, the only value that is not itself
            raise _refused("NaN is not a value", 'a text for no answer, such as "none"')
        if len(self._places) != size:
            raise _refused("some values are listed twice", "each value once")
        if all(isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 for value in self.values):
            numbers = np.array(self.values, dtype=np.int64)
            self._order = np.argsort(numbers, kind="stable").astype(np.int64)
            self._numbers = numbers[self._order]

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and list(self.values) == list(other.values)

    def __hash__(self) -> int:
        return hash(tuple(self.values[:100]))

    def __repr__(self) -> str:
        return f"Domain({len(self)} values)"

    def places(self, values: Any) -> Indices:
        """Where each value is in the domain; a value outside of it is refused, and the message doesn't repeat it.

        >>> Domain(range(17, 91)).places(np.array([17, 90])).tolist()
        [0, 73]
        """
        values = values.to_pylist() if hasattr(values, "to_pylist") else values  # Arrow's scalars equal no text
        array = values if isinstance(values, np.ndarray) else None
        if array is not None and array.ndim != 1:
            raise InvalidParameter("values are invalid", why="they are not a flat list", instead="values.ravel()")
        if array is None and (isinstance(values, str | bytes) or not isinstance(values, Iterable)):
            raise InvalidParameter("values are invalid", why="they are not a list of values", instead="randomize([value])")
        if isinstance(self.values, range) or self._numbers is not None:
            numbers = array if array is not None else _numbers(values)
            if numbers is not None and numbers.dtype.kind in "iu":
                return self._of_numbers(numbers)
        listed = array.tolist() if array is not None else values
        return self._of_values(listed)

    def _of_numbers(self, numbers: npt.NDArray[Any]) -> Indices:
        if numbers.dtype.kind == "u" and bool((numbers > np.iinfo(np.int64).max).any()):
            raise _outside()  # as signed numbers, they would be others
        if isinstance(self.values, range):
            shift = numbers.astype(np.int64) - self.values.start
            found, rest = (shift, 0) if self.values.step == 1 else np.divmod(shift, self.values.step)
            if bool(((found < 0) | (found >= len(self.values)) | (np.asarray(rest) != 0)).any()):
                raise _outside()
            return found
        assert self._numbers is not None
        assert self._order is not None
        near = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        if bool((self._numbers[near] != numbers).any()):
            raise _outside()
        return self._order[near]

    def _of_values(self, values: Iterable[Any]) -> Indices:
        place = self._in_range if self._places is None else self._places.__getitem__
        try:
            return np.fromiter(map(place, values), dtype=np.int64)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise _outside() from None

    def _in_range(self, value: Any) -> int:
        whole = int(value)
        if whole != value:
            raise _outside()
        return self.values.index(whole)


def domain_of(values: Any) -> Domain:
    """`values` as a domain, where it is not one yet.

    >>> len(domain_of(range(10)))
    10
    """
    return values if isinstance(values, Domain) else Domain(values)


def _numbers(values: Any) -> npt.NDArray[Any] | None:
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        return None
    return array if array.ndim == 1 and array.size else None


def _refused(why: str, instead: str) -> InvalidParameter:
    return InvalidParameter("The domain is invalid", why=why, instead=instead)


def _outside() -> InvalidParameter:
    return InvalidParameter(
        "A value is invalid",
        why="it is outside the domain (NaN and None are, too)",
        instead='a domain with a value for it, such as "other" or "no answer"',
    )
