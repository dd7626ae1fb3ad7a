"""Perturbation: of the answers, or of a copy of the rows that is then asked in their place.

Both draw their noise from a secret and from the records concerned (keyed.py), so asking the same thing again, or in other words,
gives the same. Neither is differential privacy: the noise is bounded, nothing asks for its sensitivity, and averages over
*different* sets still win.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from cloister.crypto import PseudoRandomFunction
from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.privacy.rational import Exact, exact_positive, text_of
from cloister.query.controls.masks import Mask, digest_of_set
from cloister.query.controls.records import Records
from cloister.tables import Prepared, PrivateTable, prepare

Law = Literal["uniform", "triangular"]


@dataclass(frozen=True, init=False)
class OutputPerturbation:
    """Keyed whole-number noise on counts, and keyed noise on sums of the columns named. Not differential privacy.

    `counts=1` adds one of −1, 0, 1 to a count; `sums={"salary": 500}` adds a multiple of the column's step within ±500 to a sum
    of salaries. The law is uniform, or triangular (the sum of two uniform draws of half the reach).

    >>> noise = OutputPerturbation(counts=1, sums={"salary": 500})
    >>> print(noise)
    uniform keyed noise: counts ±1, sums of salary ±500
    >>> everybody = np.ones(900, dtype=bool)
    >>> noise.of_count(everybody, PseudoRandomFunction(b"secret")) in (-1, 0, 1)
    True
    """

    counts: int
    sums: tuple[tuple[str, Fraction], ...]
    law: Law

    def __init__(self, *, counts: int = 0, sums: Mapping[str, Exact] | None = None, law: Law = "uniform") -> None:
        if isinstance(counts, bool) or not isinstance(counts, int) or counts < 0:
            raise InvalidParameter(f"counts={counts!r} is invalid", why="it must be a whole number", instead="counts=1")
        if law not in ("uniform", "triangular"):
            raise InvalidParameter(f"law={law!r} is invalid", why="it is not known", instead='law="uniform"')
        reaches = tuple((name, exact_positive(reach, f"sums[{name!r}]")) for name, reach in sorted((sums or {}).items()))
        if not counts and not reaches:
            raise InvalidParameter(
                "OutputPerturbation() is invalid", why="it perturbs nothing", instead="OutputPerturbation(counts=1)"
            )
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "sums", reaches)
        object.__setattr__(self, "law", law)

    def of_count(self, mask: Mask, keyed: PseudoRandomFunction) -> int:
        """The noise of the number of these records."""
        return self._drawn(self.counts, keyed, "count", digest_of_set(mask))

    def of_sum(self, column: str, step: Fraction, mask: Mask, keyed: PseudoRandomFunction) -> Fraction:
        """The noise of the sum of a column over these records, a multiple of its step."""
        reach = dict(self.sums).get(column)
        return Fraction(0) if reach is None else self._drawn(int(reach / step), keyed, "sum", column, digest_of_set(mask)) * step

    def _drawn(self, reach: int, keyed: PseudoRandomFunction, *parts: str) -> int:
        if self.law == "uniform":
            return keyed.below(2 * reach + 1, "noise", *parts) - reach
        half, rest = reach // 2, reach - reach // 2
        first = keyed.below(2 * half + 1, "noise one", *parts) - half
        return first + keyed.below(2 * rest + 1, "noise two", *parts) - rest

    def __str__(self) -> str:
        parts = [f"counts ±{self.counts}"] if self.counts else []
        parts += [f"sums of {name} ±{text_of(reach)}" for name, reach in self.sums]
        return f"{self.law} keyed noise: {', '.join(parts)}"


@dataclass(frozen=True, init=False)
class InputPerturbation:
    """A copy of the rows is asked, in which each value of the columns named was moved once, by keyed uniform noise within ± the
    reach, and clamped to the declared bounds. Not differential privacy.

    >>> print(InputPerturbation({"salary": 2000}))
    a copy is asked in which values were moved: salary ±2000
    """

    reaches: tuple[tuple[str, Fraction], ...]

    def __init__(self, reaches: Mapping[str, Exact]) -> None:
        checked = tuple((name, exact_positive(reach, f"reaches[{name!r}]")) for name, reach in sorted(reaches.items()))
        if not checked:
            raise InvalidParameter(
                "InputPerturbation({}) is invalid", why="it moves nothing", instead='InputPerturbation({"salary": 2000})'
            )
        object.__setattr__(self, "reaches", checked)

    @property
    def columns(self) -> dict[str, Fraction]:
        """The reach by column."""
        return dict(self.reaches)

    def __str__(self) -> str:
        return "a copy is asked in which values were moved: " + ", ".join(f"{name} ±{text_of(r)}" for name, r in self.reaches)


def perturbed_copy(prepared: Prepared, noise: InputPerturbation, keyed: PseudoRandomFunction, secret: str) -> Prepared:
    """The perturbed copy of a prepared table, prepared in its turn: conditions and statistics alike see only moved values.

    The noise of a value follows from its record's place in the canonical order and from the column.

    >>> from cloister.tables import Integer
    >>> staff = prepare(PrivateTable({"age": [30, 40, 50]}, columns={"age": Integer(0, 120)}), secret="0")
    >>> copy = perturbed_copy(staff, InputPerturbation({"age": 2}), PseudoRandomFunction(b"secret"), "0")
    >>> all(abs(a - b) <= 2 for a, b in zip(Records(staff).codes["age"], Records(copy).codes["age"]))
    True
    """
    records, declaration = Records(prepared), prepared.declaration
    values: dict[str, list[object]] = {}
    for name, domain in declaration.columns.items():
        codes = records.codes[name]
        if domain.kind == "text":
            values[name] = codes.tolist()
            continue
        present = codes != domain.null_code
        if name in noise.columns:
            if domain.kind not in ("integer", "real"):
                raise UnsupportedQuery(
                    f"InputPerturbation of {name!r} is not supported", why=f"it is {domain.kind}", instead="a column of numbers"
                )
            reach = int(noise.columns[name] / domain.step)
            words = keyed.words("input", name, count=records.size)
            drawn = (words % np.uint64(2 * reach + 1)).astype(np.int64) - reach
            codes = np.where(present, np.clip(codes.astype(np.int64) + drawn, domain.low_code, domain.high_code), codes)
        values[name] = [
            domain.decode(code) if here else None for code, here in zip(codes.tolist(), present.tolist(), strict=True)
        ]
    unit = None
    if declaration.unit is not None:
        unit = declaration.unit if declaration.unit not in values else "unit of the copy"
        values[unit] = records.units.tolist()
    rows = declaration.max_rows
    copy = PrivateTable.declared(values, dict(declaration.columns), unit=unit, max_rows=rows, version="copy")
    return prepare(copy, secret=secret)
