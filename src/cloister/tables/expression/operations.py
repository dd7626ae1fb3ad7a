"""The few operations that computed columns are made of, spelled for each engine so that none can fail and all agree.

Whole numbers are 64 bits wide, or 38 decimal digits where the declared bounds could pass 2^62; the caller knows which from the
bounds and says so. Engines divide in their own ways (truncated, rounded, as doubles), so there is one division here, of a number
that is not negative by one that is positive, and it is exact. Doubles are used for roots and logarithms only, always on arguments
that were made valid first: an engine may evaluate a branch of a CASE that it does not need.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from cloister.tables.engines.ibis_compilers import ibis

WIDE = "decimal(38, 0)"
_DIVISION = {"duckdb": "divide", "postgres": "int8div", "pyspark": "div"}
_WIDE_DIVISION = {"duckdb": "divide", "postgres": "div", "pyspark": "div"}


class Operations:
    """Operations on Ibis expressions of one dialect."""

    shortens = True
    """Whether it has whole numbers of 32 bits."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect

    def whole(self, number: int, *, wide: bool = False) -> Any:
        """A whole number, typed: two short literals multiplied would be multiplied in 32 bits."""
        if wide:
            return ibis.literal(decimal.Decimal(number), WIDE)
        if abs(number) < 2**31:
            return ibis.literal(number, "int32").cast("int64")
        return ibis.literal(number, "int64")

    def short(self, number: int) -> Any:
        """A whole number in 32 bits."""
        return ibis.literal(number, "int32")

    def shortened(self, x: Any) -> Any:
        """A number that fits, in 32 bits."""
        return x.cast("int32")

    def nothing(self, *, wide: bool = False) -> Any:
        """NULL among whole numbers."""
        return ibis.null(WIDE if wide else "int64")

    def fitted(self, x: Any, *, wide: bool) -> Any:
        """The number in 64 bits, or in 38 digits."""
        return x.cast(WIDE if wide else "int64")

    def quotient(self, x: Any, y: Any, *, wide: bool) -> Any:
        """x / y without its fraction, for x >= 0 and y > 0; the result fits 64 bits, whatever x and y need."""
        if not wide:
            return engine_function(_DIVISION[self.dialect], ("int64", "int64"), "int64")(x, y)
        if self.dialect == "duckdb":  # whose decimals divide as doubles, and whose factorial(0) is a 1 of 128 bits
            one = engine_function("factorial", ("int32",), WIDE)(0)
            to = engine_function("cast_to_type", (WIDE, WIDE), WIDE)
            x, y = to(x, one), to(y, one)
        # a cast to a type that Ibis does not expect of the function, so that it is always written out
        return engine_function(_WIDE_DIVISION[self.dialect], (WIDE, WIDE), WIDE)(x, y).cast("int64")

    def remainder(self, x: Any, y: Any) -> Any:
        """What the truncated division leaves: it has the sign of x."""
        return x % y

    def chosen(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        """The value of the first branch whose condition is true."""
        return ibis.cases(*branches, else_=otherwise)

    def first(self, parts: Sequence[Any]) -> Any:
        """The first that is not NULL."""
        return ibis.coalesce(*parts)

    def least(self, parts: Sequence[Any]) -> Any:
        """The least that is not NULL."""
        return ibis.least(*parts)

    def greatest(self, parts: Sequence[Any]) -> Any:
        """The greatest that is not NULL."""
        return ibis.greatest(*parts)

    def truth(self, condition: Any) -> Any:
        """1, 0 or NULL."""
        return condition.cast("int32").cast("int64")

    def double(self, x: Any) -> Any:
        """A 64-bit whole number as the nearest double."""
        return x.cast("float64")

    def floor(self, x: Any) -> Any:
        """The double rounded down, as a 64-bit whole number."""
        return x.floor().cast("int64")

    def sqrt(self, x: Any) -> Any:
        """The square root of a double that is not negative."""
        return x.sqrt()

    def ln(self, x: Any) -> Any:
        """The natural logarithm of a double greater than 0."""
        return x.ln()

    def exp(self, x: Any) -> Any:
        """The exponential of a double within ±700."""
        return x.exp()

    def year(self, days: Any) -> Any:
        """The year of a day, given in days since 1970-01-01."""
        return self._date(days).year().cast("int64")

    def month(self, days: Any) -> Any:
        """The month of a day."""
        return self._date(days).month().cast("int64")

    def day(self, days: Any) -> Any:
        """The day of the month."""
        return self._date(days).day().cast("int64")

    def words(self, text: str) -> Any:
        """A text."""
        return ibis.literal(text, "string")

    def no_words(self) -> Any:
        """NULL among texts."""
        return ibis.null("string")

    def length(self, text: Any) -> Any:
        """How many characters (code points) a text has."""
        return text.length().cast("int64")

    def part(self, text: Any, start: int, length: int) -> Any:
        """At most so many characters from a place, counted from 0."""
        return text.substr(start, length)

    def _date(self, days: Any) -> Any:
        number = days.cast("int32")
        if self.dialect == "postgres":
            return engine_function("date_pli", ("date", "int32"), "date")(ibis.date(1970, 1, 1), number)
        name = "make_date" if self.dialect == "duckdb" else "date_from_unix_date"
        return engine_function(name, ("int32",), "date")(number)


@cache
def engine_function(name: str, takes: tuple[str, ...], gives: str) -> Callable[..., Any]:
    """A function that the engine has and Ibis has not."""

    def one(x: Any) -> None: ...

    def two(x: Any, y: Any) -> None: ...

    made: Callable[..., Any] = ibis.udf.scalar.builtin(one if len(takes) == 1 else two, name=name, signature=(takes, gives))
    return made
