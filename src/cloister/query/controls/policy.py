"""A policy of controls: what an owner asks of every answer to trusted insiders, in one frozen object."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.crypto import PseudoRandomFunction
from cloister.errors import AccessDenied, InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.privacy.rational import Exact, exact_positive, text_of
from cloister.query.controls.perturbation import InputPerturbation, OutputPerturbation
from cloister.query.controls.rounding import Rounding
from cloister.query.controls.sampling import RandomSample
from cloister.query.controls.suppression import Suppression
from cloister.tables import Domain, PrivateTable


@dataclass(frozen=True, init=False)
class Substitution:
    """For each column, how far from the true maximum or minimum the substitute may lie. Not differential privacy.

    Substitution: where an answer is one record's own value, a value is given that no record has.

    A maximum is somebody's salary: who knows one salary recognises it. The value that is given instead lies near the true one
    and does not occur in the column, so no equality with a known value ever holds. Not differential privacy: the substitute
    tells about where the true value lies, and that this very value does not occur.

    >>> print(Substitution({"salary": 2000}))
    a maximum or minimum is replaced by a value that does not occur: salary within 2000
    """

    within: tuple[tuple[str, Fraction], ...]

    def __init__(self, within: Mapping[str, Exact]) -> None:
        checked = tuple((name, exact_positive(reach, f"within[{name!r}]")) for name, reach in sorted(within.items()))
        object.__setattr__(self, "within", checked)

    @property
    def columns(self) -> dict[str, Fraction]:
        """The reach by column."""
        return dict(self.within)

    def of(self, code: int, column: str, domain: Domain, codes: npt.NDArray[np.int64], keyed: PseudoRandomFunction) -> Fraction:
        """A value near that of `code` that no record has; the same each time. `codes` are those of all records.

        Refused where every value within reach occurs: the refusal tells that they do.

        >>> from cloister.tables import Integer
        >>> taken = np.array([10, 11, 13], dtype=np.int64)
        >>> Substitution({"age": 2}).of(13, "age", Integer(0, 14), taken, PseudoRandomFunction(b"secret")) in (12, 14)
        True
        """
        reach = int(self.columns[column] / domain.step)
        low, high = max(domain.low_code, code - reach), min(domain.high_code, code + reach)
        near = codes[(codes >= low) & (codes <= high)]
        occurring = set(np.unique(near).tolist())
        free = high - low + 1 - len(occurring)
        if free <= 0:
            raise AccessDenied(
                f"The answer about {column!r} was refused",
                why="no value near it is free to stand in its place",
                instead=f'Substitution({{"{column}": a longer reach}})',
            )
        place = keyed.below(free, "substitute", column, str(code))
        chosen = low
        for taken in [*sorted(occurring), high + 1]:  # the free values lie in the gaps between those that occur
            if place < taken - chosen:
                break
            place -= taken - chosen
            chosen = taken + 1
        return domain.origin + (chosen + place) * domain.step

    def __str__(self) -> str:
        reaches = ", ".join(f"{name} within {text_of(reach)}" for name, reach in self.within)
        return f"a maximum or minimum is replaced by a value that does not occur: {reaches}"


_MOST_ROWS_OF_ONE = 50


@dataclass(frozen=True, init=False)
class Controls:
    """Inference controls for a statistical database whose analysts are trusted. **Not differential privacy**: each control stops
    some attacks and leaves others; nothing bounds what all answers together tell.

    Parameters
    ----------
    set_size: k: a statistic of fewer than k people, or of all but fewer than k, is refused; so is one of a column of which fewer
        than k people have a value. The refusal is itself a bit.
    overlap: r: a set that has more than r people in common with an earlier one (about the same column) is refused. Also a bit.
    audit_sums: refuse a sum or mean with which the answered ones would fix one person's value; decided exactly, without looking
        at the values. A column is then either summed, or read by conditions, keys, maxima and minima, whichever came first.
    recode: for each column, the width of the ranges in which its sums, means, maxima and minima are given.
    rounding: `Rounding(…)` of counts and sums.
    suppress: `Suppression(…)` of small cells in tables.
    sample: `RandomSample(…)`: answer from a keyed sample of each set.
    output: `OutputPerturbation(…)`: keyed noise on answers.
    input: `InputPerturbation(…)`: ask a copy whose values were moved.
    substitute: `Substitution(…)`: a maximum or minimum is replaced by a value that does not occur.

    >>> print(Controls(set_size=5, recode={"salary": 1000}))
    not differential privacy, but these controls:
    - a set has at least 5 persons and leaves out at least 5
    - answered sums are audited exactly
    - answers about salary are ranges of width 1000
    """

    set_size: int | None
    overlap: int | None
    audit_sums: bool
    recode: tuple[tuple[str, Fraction], ...]
    rounding: Rounding | None
    suppress: Suppression | None
    sample: RandomSample | None
    output: OutputPerturbation | None
    input: InputPerturbation | None
    substitute: Substitution | None

    def __init__(
        self,
        *,
        set_size: int | None = 5,
        overlap: int | None = None,
        audit_sums: bool = True,
        recode: Mapping[str, Exact] | None = None,
        rounding: Rounding | None = None,
        suppress: Suppression | None = None,
        sample: RandomSample | None = None,
        output: OutputPerturbation | None = None,
        input: InputPerturbation | None = None,  # noqa: A002 - the four places to perturb are input, objective, gradient, output
        substitute: Substitution | None = None,
    ) -> None:
        parts = {
            "rounding": (rounding, Rounding),
            "suppress": (suppress, Suppression),
            "sample": (sample, RandomSample),
            "output": (output, OutputPerturbation),
            "input": (input, InputPerturbation),
            "substitute": (substitute, Substitution),
        }
        for name, (part, kind) in parts.items():
            if part is not None and not isinstance(part, kind):
                raise InvalidParameter(
                    f"{name}={part!r} is invalid", why=f"it is a {type(part).__name__}", instead=f"{name}={kind.__name__}(…)"
                )
            object.__setattr__(self, name, part)
        _whole(set_size, "set_size", least=1)
        _whole(overlap, "overlap", least=0)
        if not isinstance(audit_sums, bool):
            raise InvalidParameter(f"audit_sums={audit_sums!r} is invalid", why="it is True or False", instead="audit_sums=True")
        widths = tuple((name, exact_positive(width, f"recode[{name!r}]")) for name, width in sorted((recode or {}).items()))
        for name, value in (("set_size", set_size), ("overlap", overlap), ("audit_sums", audit_sums), ("recode", widths)):
            object.__setattr__(self, name, value)

    def width(self, column: str) -> Fraction | None:
        """The width of the ranges in which answers about a column are given."""
        return dict(self.recode).get(column)

    def check(self, declaration: PrivateTable) -> None:
        """Refuses, from declarations alone, controls that do not fit the table."""
        if "unit" in declaration.columns:
            raise UnsupportedQuery(
                "This table is not supported under controls",
                why="a column called 'unit' cannot be told from the records' people",
                instead="another name for the column",
            )
        for control, column, reach in self._columns():
            if column not in declaration.columns:
                raise UnknownColumn(
                    f"{control} of {column!r} is unknown",
                    why=f"declared are {', '.join(declaration.columns)}",
                    instead=f'"{next(iter(declaration.columns))}"',
                )
            domain = declaration.columns[column]
            if domain.kind not in ("integer", "real"):
                raise UnsupportedQuery(
                    f"{control} of {column!r} is not supported",
                    why=f"it is declared as {domain.kind}",
                    instead="a column of numbers",
                )
            if reach < domain.step:
                raise InvalidParameter(
                    f"{control} of {column!r} is invalid",
                    why="it is finer than the column's step, so it would do nothing",
                    instead=f'{{"{column}": "{text_of(domain.step)}"}} or more',
                )
        if self.audit_sums and (declaration.max_rows or 1) > _MOST_ROWS_OF_ONE:
            raise InvalidParameter(
                "audit_sums=True is invalid",
                why=f"it works for at most {_MOST_ROWS_OF_ONE} rows of one person",
                instead=f"max_rows={_MOST_ROWS_OF_ONE} or audit_sums=False",
            )

    def _columns(self) -> Iterable[tuple[str, str, Fraction]]:
        yield from (("recode", name, width) for name, width in self.recode)
        yield from (("Rounding", name, base) for name, base in (self.rounding.sums if self.rounding else ()))
        yield from (("OutputPerturbation", name, reach) for name, reach in (self.output.sums if self.output else ()))
        yield from (("InputPerturbation", name, reach) for name, reach in (self.input.reaches if self.input else ()))
        yield from (("Substitution", name, reach) for name, reach in (self.substitute.within if self.substitute else ()))

    def in_words(self) -> tuple[str, ...]:
        """What is asked of every answer, a line each."""
        lines = []
        if self.set_size is not None:
            lines.append(f"a set has at least {self.set_size} persons and leaves out at least {self.set_size}")
        if self.overlap is not None:
            lines.append(f"two sets have at most {self.overlap} people in common")
        if self.audit_sums:
            lines.append("answered sums are audited exactly")
        lines += [f"answers about {name} are ranges of width {text_of(width)}" for name, width in self.recode]
        parts = (self.input, self.sample, self.output, self.rounding, self.suppress, self.substitute)
        return (*lines, *(str(part) for part in parts if part is not None))

    def __str__(self) -> str:
        lines = self.in_words() or ("none at all",)
        return "\n".join(["not differential privacy, but these controls:", *(f"- {line}" for line in lines)])


def _whole(value: object, name: str, *, least: int) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise InvalidParameter(
            f"{name}={value!r} is invalid", why=f"it must be a whole number, at least {least}, or None", instead=f"{name}=5"
        )
