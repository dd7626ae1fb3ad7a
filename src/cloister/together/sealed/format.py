"""What owners upload of a row, declared in advance: it decides what can be asked later.

A *marginal* has a cell for each combination of the values of some columns, missing values included. Of a row, the cell that it
is in holds 1 and the row's own numbers (codes, squares, products), every other cell zeros: so sums over rows are the counts and
moments of the groups. All cells are masked (`batches.py`), so who stores them can't tell which is which. A number is counted
where all of its columns have a value: so `sums` holds, beside the sum, how many rows have one.

    by        groups, and conditions: whatever can be said by these columns
    sums      SUM, AVG of a column
    squares   and its variance, naive Bayes
    products  covariances, correlations, regression lines, principal components of columns that are named together
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.crypto import canonical_json
from cloister.errors import InvalidDeclaration
from cloister.tables import Aggregate, Domain, PrivateTable, Text
from cloister.tables.declaring.plain import domain_of

Statistic: TypeAlias = tuple[tuple[str, ...], tuple[int, ...]]
"""A number of a row: its columns, sorted, all of which have a value; and the power of each one's code less the lowest."""
_MOST_NUMBERS = 1 << 16
"""Of a marginal in each row: half a gigabyte of pads a page."""
MOST_COLUMNS = 3
"""In one product: its numbers are three to that power."""
_MOST_PLACES = 62
_LISTS = ("purposes", "prohibitions", "labels", "consent")
_POLICY = (*_LISTS, "sensitivity", "retention")
"""Parts of a policy that mean the same at every hub."""
ROWS: Statistic = ((), ())
CELL = "cell of the format"
"""What the cells are called beside the columns, wherever a question is asked about them."""


@dataclass(frozen=True, kw_only=True)
class Marginal:
    """Cells by some columns, and the numbers in each.

    >>> Marginal(by=["sex"], sums=["age"]).statistics
    (((), ()), (('age',), (0,)), (('age',), (1,)))
    """

    by: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    squares: tuple[str, ...] = ()
    products: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        for name in ("by", "sums", "squares"):
            object.__setattr__(self, name, _names(getattr(self, name), f'{name}=["age"]'))
        object.__setattr__(self, "products", tuple(_names(each, 'products=[("age", "pay")]') for each in self.products))
        if any(not 2 <= len(each) <= MOST_COLUMNS for each in self.products):
            raise _invalid(
                "a product is of two or three columns; a square has a line of its own",
                'products=[("age", "pay")], squares=["age"]',
            )

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """The numbers of a cell; the first is the count of rows."""
        found = [ROWS]
        found += [((name,), (power,)) for name in self.sums for power in range(2)]
        found += [((name,), (power,)) for name in self.squares for power in range(3)]
        for names in self.products:
            found += [(tuple(sorted(names)), powers) for powers in product(range(3), repeat=len(names))]
        return tuple(dict.fromkeys(found))

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "by": list(self.by),
            "sums": list(self.sums),
            "squares": list(self.squares),
            "products": list(map(list, self.products)),
        }


@dataclass(frozen=True, kw_only=True)
class MaskedFormat:
    """Which cells owners upload of each row, of which people, and who may count how often.

    `population` is whose budget the key holder charges. `unit` and `max_rows` are as of any private table; `overlap` is at how
    many owners one person may have rows. Batches are padded to a multiple of `pad_to` rows.

    `policy` is what the owners allow, in the words of a hub's policies, wherever the batches go. It is in the header to which
    the key of a batch is sealed, so a batch with another policy is one that no key holder opens. The key holder holds to
    `purposes` and `retention` itself; a hub holds to all of it, and nobody there can take it off. What is unknown is refused.

    >>> from cloister.tables import Category, Integer
    >>> columns = {"age": Integer(17, 90), "sex": Category(["F", "M"])}
    >>> format = MaskedFormat(columns=columns, marginals=[Marginal(by=["sex"], squares=["age"])], population="patients")
    >>> format.bytes_a_row, MaskedFormat.from_plain(format.plain()) == format
    (96, True)
    >>> print(format)
    by sex: 3 cells of 4 numbers, 96 bytes a row; counts, sums of age, squares of age
    """

    columns: Mapping[str, Domain]
    marginals: tuple[Marginal, ...]
    population: str
    unit: str | None = None
    max_rows: int | None = None
    overlap: int = 1
    pad_to: int = 1024
    policy: Mapping[str, Any] = field(default_factory=dict)
    table: PrivateTable = field(init=False, repr=False, compare=False)
    """The declaration alone: a table of no rows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", dict(self.columns))
        object.__setattr__(self, "marginals", tuple(self.marginals))
        names = dict.fromkeys([*self.columns, *([self.unit] if self.unit else [])])
        empty: dict[str, list[Any]] = {name: [] for name in names}
        table = PrivateTable(empty, self.columns, self.unit, self.max_rows, self.population, row_is_person=True)
        object.__setattr__(self, "table", table)
        for number, least in ((self.overlap, 1), (self.pad_to, 1)):
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise _invalid("overlap= and pad_to= are numbers from 1 on", "overlap=1, pad_to=1024")
        check_policy(self.policy)
        if CELL in self.columns:
            raise _invalid(f"{CELL!r} is what its cells are called, and no column", "another name of the column")
        if not self.marginals:
            raise _invalid("it has no marginal, so nothing could be asked", 'marginals=[Marginal(by=["sex"])]')
        for each in self.marginals:
            self._check(each)

    def _check(self, marginal: Marginal) -> None:
        for name in marginal.by:
            if self._domain(name).size is None:
                raise _invalid(f"the values of {name!r} are not declared, so it has no cells", "a column with declared values")
        for columns, powers in marginal.statistics:
            if any(isinstance(self._domain(name), Text) for name in columns):
                raise _invalid(f"a text among {', '.join(columns)} can't be added up", "columns of numbers")
            if prod(self.width(name) ** power for name, power in zip(columns, powers, strict=True)) >> _MOST_PLACES:
                raise _invalid(f"a product of {', '.join(columns)} has more than {_MOST_PLACES} bits", "a coarser step=")
        if self.numbers(marginal) > _MOST_NUMBERS:
            why = f"{self.cells(marginal):,} cells of {len(marginal.statistics)} numbers in each row"
            raise _invalid(why, f"at most {_MOST_NUMBERS:,} numbers: fewer columns, or bounds that are closer together")

    def _domain(self, name: str) -> Domain:
        if name not in self.columns:
            raise _invalid(f"{name!r} is no column of it", f"one of {', '.join(self.columns)}")
        return self.columns[name]

    def width(self, name: str) -> int:
        """How far apart the codes of a column are."""
        return self.columns[name].high_code - self.columns[name].low_code

    def sizes(self, marginal: Marginal) -> tuple[int, ...]:
        """How many values each of its columns has, with one for none."""
        return tuple((self._domain(name).size or 0) + 1 for name in marginal.by)

    def cells(self, marginal: Marginal) -> int:
        """How many cells it has."""
        return prod(self.sizes(marginal))

    def numbers(self, marginal: Marginal) -> int:
        """How many masked numbers it takes of a row."""
        return self.cells(marginal) * len(marginal.statistics)

    @property
    def bytes_a_row(self) -> int:
        """What a row takes at the hub."""
        return 8 * sum(map(self.numbers, self.marginals))

    def encoded(self, codes: Mapping[str, npt.NDArray[Any]], marginal: Marginal) -> npt.NDArray[np.int64]:
        """The cells of some rows, a row each, not masked yet: for their owner alone."""
        rows = len(next(iter(codes.values())))
        place = np.zeros(rows, dtype=np.int64)
        for name, size in zip(marginal.by, self.sizes(marginal), strict=True):
            place = place * size + (codes[name].astype(np.int64) - self.columns[name].low_code)  # the last is that of no value
        out = np.zeros((rows, self.cells(marginal), len(marginal.statistics)), dtype=np.int64)
        for at, (columns, powers) in enumerate(marginal.statistics):
            value = np.ones(rows, dtype=np.int64)
            for name, power in zip(columns, powers, strict=True):
                here = codes[name] != self.columns[name].null_code
                value *= np.where(here, codes[name].astype(np.int64) - self.columns[name].low_code, 0) ** power * here
            out[np.arange(rows), place, at] = value
        return out.reshape(rows, self.numbers(marginal))

    def adds(self, aggregate: Aggregate) -> bool:
        """Whether an aggregate is a sum of what each row has by itself."""
        return aggregate.kind in ("rows", "values", "sum") or (aggregate.kind == "units" and (self.max_rows or 1) == 1)

    def expressed(self, aggregate: Aggregate) -> dict[Statistic, int]:
        """A sum over rows as one of their numbers, each with its coefficient."""
        columns = tuple(sorted({*(name for name, _ in aggregate.factors), *aggregate.present}))
        terms = {(0,) * len(columns): 1}
        for name, offset in aggregate.factors if aggregate.kind == "sum" else ():
            at, shift = columns.index(name), self.columns[name].low_code - offset
            grown: dict[tuple[int, ...], int] = {}
            for powers, value in terms.items():
                raised = (*powers[:at], powers[at] + 1, *powers[at + 1 :])
                grown[raised] = grown.get(raised, 0) + value
                grown[powers] = grown.get(powers, 0) + value * shift
            terms = grown
        return {(columns, powers): value for powers, value in terms.items() if value}

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "columns": {name: domain.describe() for name, domain in self.columns.items()},
            "marginals": [each.plain() for each in self.marginals],
            "population": self.population,
            "unit": self.unit,
            "max_rows": self.max_rows,
            "overlap": self.overlap,
            "pad_to": self.pad_to,
            **({"policy": dict(self.policy)} if self.policy else {}),
        }

    @classmethod
    def from_plain(cls, told: Mapping[str, Any]) -> MaskedFormat:
        """Again from plain data; `InvalidDeclaration` where it is none."""
        check_policy(told.get("policy", {}) if isinstance(told, Mapping) else {})
        try:
            columns = {name: domain_of(name, kind, table="the format") for name, kind in told["columns"].items()}
            others = {
                name: told[name] for name in ("population", "unit", "max_rows", "overlap", "pad_to", "policy") if name in told
            }
            return cls(columns=columns, marginals=tuple(Marginal(**each) for each in told["marginals"]), **others)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise _invalid("it lacks a part, or has one of another form", "format.plain() as JSON") from None

    def refusal(self, purpose: str, today: date) -> str:
        """Why the policy denies a request, or nothing. A purpose that is not stated is none of those that it names."""
        purposes, last = self.policy.get("purposes"), self.policy.get("retention")
        if purposes is not None and purpose not in purposes:
            return f"the owners' policy allows these purposes: {', '.join(purposes) or 'none'}"
        return f"the owners' policy ended with {last}" if last is not None and today > date.fromisoformat(last) else ""

    @cached_property
    def text(self) -> str:
        """The one text of it."""
        return canonical_json(self.plain())

    def __str__(self) -> str:
        return "\n".join(map(self._line, self.marginals))

    def _line(self, marginal: Marginal) -> str:
        kept = ["counts"]
        kept += [f"sums of {', '.join(marginal.sums)}"] if marginal.sums else []
        kept += [f"sums of {name}, squares of {name}" for name in marginal.squares]
        kept += [f"products of {' and '.join(each)}" for each in marginal.products]
        cells, size = self.cells(marginal), len(marginal.statistics)
        by = f"by {', '.join(marginal.by)}" if marginal.by else "of all rows"
        word = "cell" if cells == 1 else "cells"
        return f"{by}: {cells} {word} of {size} numbers, {8 * cells * size} bytes a row; {', '.join(kept)}"


def check_policy(policy: object) -> None:
    """Refuses what no hub and no key holder would know."""
    if not isinstance(policy, Mapping) or policy.keys() - {*_POLICY}:
        raise _invalid(
            "its policy has a part that is not known, so nobody could hold to it", f"policy= with {', '.join(_POLICY)}"
        )
    for part, value in policy.items():
        words = value if isinstance(value, list | tuple) and part in _LISTS else [value]
        if not all(isinstance(each, str) and each for each in words) or (part in _LISTS and words == [value]):
            raise _invalid(
                f"the part {part!r} of its policy is invalid", 'policy={"purposes": ["research"], "retention": "2030-12-31"}'
            )
    try:
        date.fromisoformat(policy.get("retention", "2030-12-31"))
    except ValueError:
        raise _invalid("the last day of its policy is invalid", 'policy={"retention": "2030-12-31"}') from None


def _names(given: object, instead: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise _invalid("its columns are a list of names", instead)
    found = tuple(given)
    if len(set(found)) < len(found) or not all(isinstance(each, str) for each in found):
        raise _invalid("a column is named twice, or by no text", instead)
    return found


def _invalid(why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration("The format is invalid", why=why, instead=instead)
