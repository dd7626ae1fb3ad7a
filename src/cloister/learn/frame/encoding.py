"""From declared columns to numbers: a category becomes one 0-or-1 feature for each value, everything else one feature.

What a feature is called and what it may hold follow from the declaration alone, so the same encoder serves the rows that a model
learns from and those that it predicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, MissingBound, UnknownColumn
from cloister.tables import Boolean, Category, Date, Domain, Integer, Real
from cloister.tables.engines.row_sums import bounds_of, features_of


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """Columns with their domains, as a matrix of features.

    >>> encoder = Encoder.of({"age": Integer(17, 90), "sex": Category(["F", "M"])}, ["age", "sex"])
    >>> encoder.names, encoder.bounds
    (('age', 'sex=F', 'sex=M'), ([17.0, 0.0, 0.0], [90.0, 1.0, 1.0]))
    >>> encoder.transform({"age": [30, 95], "sex": ["M", "F"]}).tolist()
    [[30.0, 0.0, 1.0], [90.0, 1.0, 0.0]]
    """

    columns: tuple[tuple[str, Domain], ...]

    @classmethod
    def of(cls, declared: Mapping[str, Domain], features: Sequence[str]) -> Encoder:
        """Of those columns of a declaration; a column without bounds is refused by its name."""
        if isinstance(features, str) or not features or len(set(features)) != len(features):
            raise InvalidParameter(
                f"features={features!r} is invalid",
                why="they are a list of different columns, at least one",
                instead=f"features={list(declared)[:2]!r}",
            )
        chosen = []
        for name in features:
            if name not in declared:
                raise UnknownColumn(
                    f"The feature {name!r} is unknown",
                    why=f"declared are {', '.join(declared)}",
                    instead=f"{next(iter(declared))!r}",
                )
            domain = declared[name]
            if not isinstance(domain, Integer | Real | Category | Date | Boolean):
                raise MissingBound(
                    f"The feature {name!r} needs bounds",
                    why="its values are not declared, and a model learns from bounds or categories",
                    instead=f'columns={{"{name}": cl.Category([…])}}',
                )
            chosen.append((name, domain))
        return cls(columns=tuple(chosen))

    @property
    def names(self) -> tuple[str, ...]:
        """What each feature is called."""
        return tuple(name for column, domain in self.columns for name in _names(column, domain))

    @property
    def bounds(self) -> tuple[list[float], list[float]]:
        """The lowest and the highest value of each feature."""
        pairs = [pair for _, domain in self.columns for pair in bounds_of(domain)]
        return [low for low, _ in pairs], [high for _, high in pairs]

    @property
    def groups(self) -> list[list[int]]:
        """The places of each category's features.

        >>> Encoder.of({"age": Integer(17, 90), "sex": Category(["F", "M"])}, ["sex", "age"]).groups
        [[0, 1]]
        """
        places = iter(range(len(self.names)))
        runs = [(domain, [next(places) for _ in _names(column, domain)]) for column, domain in self.columns]
        return [run for domain, run in runs if isinstance(domain, Category)]

    def codes(self, rows: Mapping[str, npt.NDArray[np.int64]]) -> npt.NDArray[np.float64]:
        """Features from a table's codes; NULL becomes NaN."""
        parts = [features_of(domain, np.asarray(rows[name])) for name, domain in self.columns]
        return np.concatenate(parts, axis=1) if parts else np.empty((0, 0))

    def transform(self, frame: Any) -> npt.NDArray[np.float64]:
        """Features from values: a mapping of lists, or of the values of one row, or a pandas, polars or Arrow frame. What is not
        declared becomes NaN."""
        rows, instead = {}, f"X = frame[{[str(name) for name, _ in self.columns]!r:.199}]"
        named = [*getattr(frame, "column_names", getattr(frame, "columns", ()))]
        for name, domain in self.columns:
            many = named.count(name) if named else 1
            if many > 1:
                raise InvalidParameter(f"The column {name!r} is invalid", why="more than one has this name", instead=instead)
            try:
                values = frame[name] if many else None
            except (KeyError, IndexError, TypeError):
                many = 0
            if not many:
                raise UnknownColumn(f"The column {name!r} is missing", why="the model learnt from it", instead=instead)
            rows[name] = _coded(domain, values if hasattr(values, "__iter__") and not isinstance(values, str) else [values])
        if len({len(codes) for codes in rows.values()}) > 1:
            raise InvalidParameter("The rows are invalid", why="their columns are of different lengths", instead="equal lengths")
        return self.codes(rows)


def _coded(domain: Domain, values: Any) -> npt.NDArray[np.int64]:
    """The codes of a column's values, as a table's preparation gives them; numbers all at once, anything else by its value."""
    column = np.asarray(values)
    if isinstance(domain, Integer) and column.dtype.kind == "i":
        return np.clip(column.astype(np.int64), domain.low, domain.high)
    if isinstance(domain, Integer | Real) and column.dtype.kind == "f":
        low, high = (float(domain.origin + code * domain.step) for code in (domain.low_code, domain.high_code))
        known = np.isfinite(column)
        numbers = np.clip(np.where(known, column.astype(np.float64), low), low, high) - float(domain.origin)
        steps = np.floor(numbers * float(domain.step.denominator) / float(domain.step.numerator) + 0.5)
        codes = np.clip(steps.astype(np.int64), domain.low_code, domain.high_code)
        return np.where(known, codes, domain.null_code)
    found: dict[Any, int] = {}

    def code_of(value: Any) -> int:
        if (type(value), value) not in found:
            code = domain.encode(value)
            found[type(value), value] = domain.null_code if code is None else code
        return found[type(value), value]

    cells = values.to_pylist() if hasattr(values, "to_pylist") else list(values)  # Arrow's own cells are not values
    return np.fromiter(map(code_of, cells), dtype=np.int64)


def _names(column: str, domain: Domain) -> list[str]:
    return [f"{column}={value}" for value in domain.values()] if isinstance(domain, Category) else [column]
