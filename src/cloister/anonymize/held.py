"""What polars can hold, looked at before polars is asked: where it cannot, it raises what nobody foresees, or panics, and a panic
is no `Exception`, prints its own words, and may print values."""

import decimal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cloister.errors import CloisterError, InvalidParameter

_DIGITS = 38
"""Of a decimal of 128 bits."""


def too_long(name: str) -> InvalidParameter:
    """The refusal of whole numbers that no engine holds exactly."""
    return InvalidParameter(
        f"The column {name!r} is invalid", why="it holds whole numbers of more than 64 bits", instead="the same numbers as text"
    )


def infinite(name: str) -> InvalidParameter:
    """The refusal of numbers without an end."""
    return InvalidParameter(
        f"The column {name!r} is invalid", why="it holds infinite values", instead="finite numbers, or None where one is unknown"
    )


@contextmanager
def in_own_words(what: str, why: str, instead: str) -> Iterator[None]:
    """Whatever polars raises, or panics with, is refused in words of ours: its own may hold values.

    >>> with in_own_words("The table is invalid", "it is broken", "another"):
    ...     raise ValueError("a value of somebody")
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The table is invalid: it is broken.
      Instead: another
    """
    try:
        yield
    except (CloisterError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise  # an interruption
        raise InvalidParameter(what, why=why, instead=instead) from None


def without_nan(values: list[Any]) -> list[Any]:
    """A list in which a decimal that is not a number (quiet or signalling) is missing, as a float is.

    >>> without_nan([decimal.Decimal("NaN"), decimal.Decimal("1.5"), None])
    [None, Decimal('1.5'), None]
    """
    if decimal.Decimal not in set(map(type, values)):
        return values
    return [None if isinstance(value, decimal.Decimal) and value.is_nan() else value for value in values]


def check_held(name: str, values: Sequence[Any]) -> None:
    """Refuse what polars has no room for: numbers that are too long, infinite decimals, halves of characters.

    >>> check_held("n", [10**400])
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The column 'n' is invalid: it holds whole numbers of more than 64 bits.
      Instead: the same numbers as text
    """
    kinds = set(map(type, values))
    if any(issubclass(kind, int) for kind in kinds):
        whole = [value for value in values if isinstance(value, int)]
        if max(whole) >= 1 << 127 or min(whole) < -(1 << 127):
            raise too_long(name)
    if decimal.Decimal in kinds:
        _check_decimals(name, [value for value in values if isinstance(value, decimal.Decimal)])
    if any(issubclass(kind, str) for kind in kinds):
        try:
            for value in values:
                if isinstance(value, str):
                    value.encode()
        except UnicodeEncodeError:
            raise InvalidParameter(
                f"The column {name!r} is invalid",
                why="a text in it has half of a character (a lone surrogate), which no file can hold",
                instead=f'[text.encode("utf-8", "replace").decode() for text in table[{name!r}]]',
            ) from None


def _check_decimals(name: str, values: Sequence[decimal.Decimal]) -> None:
    if any(value.is_infinite() for value in values):
        raise infinite(name)
    after = max(max(-int(value.as_tuple().exponent), 0) for value in values)
    before = max(max(value.adjusted() + 1, 1) for value in values)
    if before + after > _DIGITS:
        raise InvalidParameter(
            f"The column {name!r} is invalid",
            why=f"its decimals need more than {_DIGITS} digits together",
            instead="the same numbers as floats, or as text",
        )
