"""The values of a column as a few states: one for each category, truth value, number or day; bins where these are many; and one
for rows without a value, where the column declares that there are such.

States follow from declarations, or from what was released (`discretizing.py`), so they are public. Inside a bin every value is as
likely as every other, unless a released shape says otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.session import Series, unknown_column
from cloister.synth.pieces import Floats, Integers, Pieces, Shape
from cloister.tables import Binned, Boolean, Category, Date, Domain, Integer, Key, Real, Runs, Strided, Text
from cloister.tables.declaring.plain import domain_of
from cloister.tables.sourcing.reading import read_number

MOST_STATES = 100
"""Numbers and days with more values are put into so many bins of equal width; a percentage, 0 to 100, has a state for each."""
_MOST_CATEGORIES = 1_000
"""Categories with more declared values are fitted as runs of neighbours, where their cuts are bought."""
_MOST_LISTED = 100_000
_MOST_IN_ALL = 4_000


@dataclass(frozen=True)
class QuantileBins:
    """A number, a day or a category in bins of about as many rows each: cuts and inner shape are bought (`discretizing.py`).
    A column of no more values than that has a state for each as before, and nothing is bought.

    >>> QuantileBins("pay")
    QuantileBins(name='pay', bins=50)
    """

    name: str
    bins: int = 50

    def __post_init__(self) -> None:
        if isinstance(self.bins, bool) or not isinstance(self.bins, int) or not 2 <= self.bins <= _MOST_CATEGORIES:
            raise InvalidParameter(
                f"bins={self.bins!r} is invalid",
                why=f"it is a whole number from 2 to {_MOST_CATEGORIES:,}",
                instead=f'cl.synth.QuantileBins("{self.name}", 50)',
            )


@dataclass(frozen=True)
class Calendar:
    """A day whose weekday and month are kept: their table is bought (`discretizing.py`).

    >>> Calendar("admitted")
    Calendar(name='admitted')
    """

    name: str


Asked: TypeAlias = str | Binned | QuantileBins | Calendar


@dataclass(frozen=True)
class States:
    """One column: what was declared of it, and its bins (None: a state for each value).

    >>> states = States("age", Integer(17, 90, nullable=True), Strided("age", 10))
    >>> states.number, states.words()
    (9, 'age: 8 bins and missing')
    """

    name: str
    domain: Domain
    bins: Binned | Strided | Runs | None = None
    shape: Shape | None = None
    light: bool = False
    """Whether tables that hold it take less of the spend than others."""

    @property
    def key(self) -> str | Key:
        """What the door groups by."""
        return self.name if self.bins is None else self.bins

    @cached_property
    def starts(self) -> Integers:
        """The first code of each state of a value, and one past the last."""
        if self.bins is not None:
            return np.array(self.bins.starts(self.domain), dtype=np.int64)
        return np.arange(self.domain.low_code, self.domain.high_code + 2, dtype=np.int64)

    @property
    def number(self) -> int:
        """How many states there are, that of a missing value included."""
        return len(self.starts) - 1 + self.domain.nullable

    @cached_property
    def pieces(self) -> Pieces:
        """All codes; a missing value has one of its own."""
        return self._pieces([(self.domain.low_code, self.domain.high_code)], missing=self.domain.nullable)

    def placed(self, codes: Integers) -> Integers:
        """The state of each code; -1 for none.

        >>> States("age", Integer(17, 90), Strided("age", 10)).placed(np.array([17, 27, 90, 91])).tolist()
        [0, 1, 7, -1]
        """
        found = np.clip(np.searchsorted(self.starts, codes, side="right") - 1, 0, len(self.starts) - 2)
        found[codes == self.domain.null_code] = self.number - 1 if self.domain.nullable else -1
        return np.asarray(found, dtype=np.int64)

    def words(self) -> str:
        """The states in words."""
        what = "value" if self.bins is None else "bin"
        number = len(self.starts) - 1
        return f"{self.name}: {number:,} {what}{'s' * (number != 1)}" + (" and missing" if self.domain.nullable else "")

    def series(self, codes: Integers) -> Series:
        """Codes as the column's own values, in the column's own type."""
        first, last = self.domain.low_code, self.domain.null_code
        if self.domain.nullable and last - first < len(codes):  # an object is made for each value, not for each row
            every = self._series(np.arange(first, last + 1))
            return Series(every.kind, every.values[codes - first])
        return self._series(codes)

    def _series(self, codes: Integers) -> Series:
        domain, kind = self.domain, self.domain.kind
        values: npt.NDArray[Any] = codes
        if isinstance(domain, Date):
            values = np.datetime64("1970-01-01") + codes.astype("timedelta64[D]")
        elif isinstance(domain, Real):
            origin, step = domain.origin, domain.step  # one division of whole numbers, so that each value is the nearest float
            top, times = origin.numerator * step.denominator, step.numerator * origin.denominator
            under = origin.denominator * step.denominator
            exact = max(abs(domain.low_code), abs(domain.high_code)) * abs(times) + abs(top) < 2**53 and under < 2**53
            values = (top + codes * times) / under if exact else np.array([domain.decode(int(code)) for code in codes], float)
        elif isinstance(domain, Boolean):
            values = codes == 1
        elif isinstance(domain, Category):
            options = domain.values()
            kind = {str: "text", int: "integer", bool: "boolean"}[type(options[0])]
            table = np.array([*options, options[0]], dtype=object if kind == "text" else None)  # the last one for missing
            values = table[codes]
        if domain.nullable or kind in ("text", "date"):
            values = values.astype(object)
            values[codes == domain.null_code] = None
        return Series(kind, values)  # type: ignore[arg-type]

    def plain(self) -> dict[str, Any]:
        """As a model's file has it."""
        bins: dict[str, Any] | None = None
        if isinstance(self.bins, Strided):
            bins = {"stride": self.bins.stride}
        elif isinstance(self.bins, Runs):
            bins = {"starts": list(self.bins.codes)}
        elif self.bins is not None:
            bins = {"edges": [str(edge) for edge in self.bins.edges]}
        found = {"name": self.name, "declared": self.domain.describe(), "bins": bins}
        if self.shape is not None:
            found["shape"] = self.shape.plain()
        return found

    def given(self, wanted: Any) -> Pieces:
        """The codes that a condition allows: a value, a list of them, a pair (low, high) of numbers or days; None is missing."""
        domain, runs, missing = self.domain, [], False
        if isinstance(wanted, tuple):
            if len(wanted) != 2 or isinstance(domain, Category | Boolean):
                raise self._refused(wanted, "a pair is the least and the largest of a number or a day")
            low, high = (self._code(each, clamp=True) for each in wanted)
            runs.append((low, high))
        else:
            for each in wanted if isinstance(wanted, list | set | frozenset | range) else [wanted]:
                if each is None:
                    missing = True
                else:
                    runs.append((self._code(each), self._code(each)))
        if missing and not domain.nullable:
            raise self._refused(wanted, "the column declares no missing values")
        if not missing and not any(low <= high for low, high in runs):
            raise self._refused(wanted, "no value is left")
        return self._pieces(sorted(set(runs)), missing=missing)

    def _code(self, value: Any, *, clamp: bool = False) -> int:
        code = self.domain.encode(value)
        if code is None or not self._declared(value, code, clamp):
            raise self._refused(value, "the column declares no such value")
        return code

    def _declared(self, value: Any, code: int, clamp: bool) -> bool:
        """Whether a value is whole where it has to be, and lies within its bounds: encoding rounds it and moves it into them."""
        if isinstance(self.domain, Integer | Real):
            number = read_number(value) or 0.0
            ends = self.domain.decode(self.domain.low_code), self.domain.decode(self.domain.high_code)
            return (clamp or ends[0] <= number <= ends[1]) and not (isinstance(self.domain, Integer) and number % 1)
        return clamp or not isinstance(self.domain, Date) or str(value)[:10] == self.domain.decode(code).isoformat()

    def _refused(self, wanted: Any, why: str) -> InvalidParameter:
        example = repr(self.domain.decode(self.domain.low_code))
        return InvalidParameter(
            f"given={{{self.name!r}: {wanted!r}}} is invalid", why=why, instead=f"given={{{self.name!r}: {example}}}"
        )

    def _pieces(self, runs: Sequence[tuple[int, int]], *, missing: bool) -> Pieces:
        """Runs of codes cut where a state ends; overlapping ones count once."""
        found: list[tuple[int, int, int]] = []
        reached = self.domain.low_code - 1
        for low, high in runs:
            low = max(low, reached + 1)
            if low > high:
                continue
            reached = high
            first, last = (int(np.searchsorted(self.starts, code, side="right")) - 1 for code in (low, high))
            found += [(s, max(low, int(self.starts[s])), min(high, int(self.starts[s + 1]) - 1)) for s in range(first, last + 1)]
        if missing:
            found.append((len(self.starts) - 1, self.domain.null_code, self.domain.null_code))
        state, lows, highs = np.array(found, dtype=np.int64).reshape(-1, 3).T
        if self.shape is None:
            return Pieces(state, lows, highs)
        cuts = np.array(self.shape.starts[1:-1], dtype=np.int64)
        begin, end = np.searchsorted(cuts, lows, side="right"), np.searchsorted(cuts, highs, side="right")
        number = end - begin + 1
        place = np.repeat(np.arange(len(lows)), number)  # a run is cut where the shape changes
        turn = np.arange(len(place)) - np.repeat(np.cumsum(number) - number, number)
        edges = np.append(cuts, self.domain.null_code + 1)
        starts = np.where(turn == 0, lows[place], edges[begin[place] + turn - 1])
        ends = np.where(turn == number[place] - 1, highs[place], edges[np.minimum(begin[place] + turn, len(cuts))] - 1)
        return Pieces(state[place], starts, ends, self.weight(starts, ends))

    def weight(self, low: Integers, high: Integers) -> Floats:
        """How much of its state each run of codes has, beside others of that state."""
        missing = low == self.domain.null_code
        if self.shape is None:
            return (high - low + 1).astype(np.float64)
        return np.asarray(np.where(missing, 1.0, self.shape.weight(low, high)))

    def middle(self, low: Integers, high: Integers) -> Floats:
        """The mean code of each run."""
        if self.shape is None:
            return (low + high) / 2
        return np.asarray(np.where(low == self.domain.null_code, low, self.shape.middle(low, high)))


def states_from(told: Mapping[str, Any]) -> States:
    """The column that `plain` described."""
    name, bins, shape = str(told["name"]), told["bins"], told.get("shape")
    domain = domain_of(name, told["declared"], table="the model")
    if bins is None:
        return States(name, domain)
    kind = next(iter(bins))
    ways: dict[str, Any] = {"stride": Strided, "edges": Binned, "starts": Runs}
    found = States(name, domain, ways[kind](name, bins[kind]))
    _ = found.starts
    return found if shape is None else replace(found, shape=Shape.of(shape, found.domain.low_code, found.domain.high_code))


def states_of(
    declared: Mapping[str, Domain], columns: Sequence[Asked] | None, *, table: str, bought: bool = False, said: str = "columns"
) -> list[States]:
    """The states of the chosen columns, by their names or as `cl.Binned(name, edges)`; None: all that are declared. Where
    cuts may be `bought`, as they are before that. `said` is what the caller calls them.

    >>> [each.words() for each in states_of({"age": Integer(17, 90), "pay": Real(0, 500)}, None, table="people")]
    ['age: 74 values', 'pay: 100 bins']
    """
    chosen = list(declared) if columns is None else list(columns) if isinstance(columns, Iterable) else []
    kinds = (str, Binned, QuantileBins, Calendar)
    if columns is not None and (isinstance(columns, kinds) or not chosen or not all(isinstance(each, kinds) for each in chosen)):
        raise InvalidParameter(
            f"{said}={columns!r} is invalid",
            why="it is a list of columns, at least one",
            instead=f"{said}={list(declared)[:2]!r}",
        )
    names = [each if isinstance(each, str) else each.name for each in chosen]
    if len(set(names)) < len(names):
        raise InvalidParameter(
            f"{said} is invalid", why="a column is named twice", instead=f"{said}={list(dict.fromkeys(names))!r}"
        )
    if not bought and (bare := [each for each in chosen if isinstance(each, QuantileBins | Calendar)]):
        raise InvalidParameter(
            f"{bare[0]!r} is invalid", why="cuts are measured for one table alone", instead=f'"{bare[0].name}", or cl.synth.fit'
        )
    unknown = [name for name in names if name not in declared]
    if unknown:
        raise unknown_column(unknown[0], table, list(declared))
    found = [
        _states(name, declared[name], None if isinstance(each, str) else each, names)
        for name, each in zip(names, chosen, strict=True)
    ]
    whole = sum(each.number for each in found)
    if whole > _MOST_IN_ALL:
        raise UnsupportedQuery(
            "These columns are not supported together",
            why=f"they have {whole:,} values and bins, and at most {_MOST_IN_ALL:,} are fitted",
            instead=f"columns={names[: max(len(names) // 2, 1)]!r}",
        )
    return found


def _states(name: str, domain: Domain, bins: Binned | QuantileBins | Calendar | None, names: Sequence[str]) -> States:
    others = [each for each in names if each != name]
    if not isinstance(domain, Integer | Real | Category | Date | Boolean):
        raise UnsupportedQuery(
            f"The column {name!r} is not supported",
            why="it is free text, whose values are private"
            if isinstance(domain, Text)
            else f"it is declared as {domain.kind}, and models are fitted to numbers, categories, days and truth values",
            instead=_without(others),
        )
    if isinstance(bins, Binned):
        starts = bins.starts(domain)
        if starts[0] > domain.low_code or starts[-1] <= domain.high_code or any(low >= high for low, high in pairwise(starts)):
            low, high = domain.decode(domain.low_code), domain.decode(domain.high_code)
            raise InvalidParameter(
                f"The bins of {name!r} are invalid",
                why="each has to hold a value, and together all declared ones",
                instead=f"cl.Binned({name!r}, [{low}, …, {high}])",
            )
        return States(name, domain, bins)
    size = domain.high_code - domain.low_code + 1
    most_categories = _MOST_LISTED if isinstance(bins, QuantileBins) else _MOST_CATEGORIES
    if isinstance(domain, Category) and size > most_categories:
        raise UnsupportedQuery(
            f"The column {name!r} is not supported",
            why=f"it has {size:,} categories, and at most {most_categories:,} are fitted",
            instead=f'cl.synth.QuantileBins("{name}") in its place, which puts rare neighbours together'
            if size <= _MOST_LISTED
            else f"{_without(others)}, and in its place a column of groups, such as regions of towns",
        )
    if isinstance(bins, Calendar) and not isinstance(domain, Date):
        raise UnsupportedQuery(
            f"A calendar of {name!r} is not supported", why="the column holds no days", instead=f'columns=["{name}", …]'
        )
    if size >= 2**62:
        raise UnsupportedQuery(
            f"The column {name!r} is not supported",
            why="its declared bounds lie further apart than 2^62 steps",
            instead=f"narrower bounds, or a larger step, of {name!r}; or {_without(others)}",
        )
    most = bins.bins if isinstance(bins, QuantileBins) else _MOST_CATEGORIES if isinstance(domain, Category) else MOST_STATES + 1
    few = size <= most
    if isinstance(domain, Boolean) or few:
        return States(name, domain)
    if isinstance(domain, Category):  # until they are cut, runs of neighbours in the declared order
        stride, last = -(-size // MOST_STATES), domain.high_code + 1
        return States(name, domain, Runs(name, (*range(domain.low_code, last, stride), last)))
    return States(name, domain, Strided(name, -(-size // (bins.bins if isinstance(bins, QuantileBins) else MOST_STATES))))


def _without(others: Sequence[str]) -> str:
    return f"columns={list(others)!r}" if others else "another column: of numbers, categories, days or truth values"


def counted(places: Sequence[Integers] | Integers, sizes: Sequence[int], kept: Sequence[int]) -> Integers:
    """The exact table of some columns, from the state of each row in all columns; a row without a state there is in no cell.

    >>> counted([np.array([0, 1, -1]), np.array([1, 1, 0])], (2, 2), (0, 1)).tolist()
    [[0, 1], [0, 1]]
    """
    shape = [sizes[place] for place in kept]
    flat = np.zeros(len(places[0]), dtype=np.int64)
    inside = np.ones(len(flat), dtype=bool)
    for place, size in zip(kept, shape, strict=True):
        flat = flat * size + places[place]
        inside &= places[place] >= 0
    return np.bincount(flat[inside], minlength=int(np.prod(shape))).reshape(shape).astype(np.int64)
