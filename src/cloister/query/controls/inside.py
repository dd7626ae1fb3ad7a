"""Behind the second door: the records of a table, and answers to questions that may be admitted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from cloister.crypto import PseudoRandomFunction
from cloister.errors import AccessDenied
from cloister.query.controls.admission import Admission, Refusal, refused
from cloister.query.controls.answer import Reported
from cloister.query.controls.asked import Asked, reads_of
from cloister.query.controls.cells import Axis, Place, cells_of
from cloister.query.controls.history import AnsweredSet, SetHistory
from cloister.query.controls.masks import Mask, digest_of_set
from cloister.query.controls.policy import Controls
from cloister.query.controls.recoding import recoded
from cloister.query.controls.records import Codes, Records
from cloister.query.controls.rounding import controlled_rounding
from cloister.query.controls.suppression import intervals, suppressed
from cloister.tables import Expression, Prepared


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A question, by whom, and in words."""

    axes: tuple[Axis, ...]
    where: Expression | None
    who: str
    what: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Inside:
    """What may not leave, and what is made of it. Every method is called through `sealed`, by the second door alone."""

    controls: Controls
    keyed: PseudoRandomFunction
    history: SetHistory
    prepared: Prepared
    copy: Prepared | None
    records: Records
    admission: Admission
    refusals: list[Refusal] = field(default_factory=list)
    open_cells: dict[str, dict[Place, tuple[int, int | None]]] = field(default_factory=dict)

    @property
    def values(self) -> Values:
        """Numbers of sets."""
        return Values(self.records, self.controls, self.keyed)

    def grouped(self, asked: list[Asked], wanted: Wanted) -> tuple[list[tuple[Place, list[Reported]]], int]:
        """The statistics of each group, and the number of the last line of the history."""
        self._check_columns(asked, wanted)
        cells = cells_of(wanted.axes, self.records, self.records.chosen(wanted.where), totals=False)
        columns = sorted({each.column for each in asked if each.column != "*"})
        hidden = [self._hidden(mask, columns, grouped=bool(wanted.axes)) for _, mask in cells]
        shown = [mask for (_, mask), hide in zip(cells, hidden, strict=True) if not hide]
        last = self._admit([(each, mask) for mask in shown for each in asked], wanted)
        return [
            (place, [None if hide else self._valued(each, mask) for each in asked])
            for (place, mask), hide in zip(cells, hidden, strict=True)
        ], last

    def tabulated(self, wanted: Wanted, *, totals: bool) -> tuple[list[tuple[Place, int | None]], int]:
        """The cells of a frequency table, with or without totals, and the number of the last line of the history."""
        self._check_columns([Asked(kind="count")], wanted)
        chosen, least = self.records.chosen(wanted.where), self.controls.set_size
        if wanted.where is not None and least is not None and not size_allowed(self.records.people_in(chosen), least):
            raise too_small(least)
        cells = dict(cells_of(wanted.axes, self.records, chosen, totals=totals))
        lengths = tuple(len(axis.labels) for axis in wanted.axes)
        small = {place: self._small(mask, total=is_total(place, lengths)) for place, mask in cells.items()}
        if any(small.values()) and self.controls.suppress is None:
            assert least is not None
            raise too_small(least)
        counts = np.zeros(lengths, dtype=np.int64)
        for place, mask in cells.items():
            if not is_total(place, lengths):
                counts[place] = np.count_nonzero(mask)
        hidden = self._complemented(counts, small, wanted.what) if totals else small
        count = Asked(kind="count")
        last = self._admit([(count, mask) for place, mask in cells.items() if not hidden[place]], wanted)
        numbers = self._counted(cells, lengths)
        return [(place, None if hidden[place] else numbers[place]) for place in cells], last

    def _counted(self, cells: dict[Place, Mask], lengths: tuple[int, ...]) -> dict[Place, int]:
        rounding, values = self.controls.rounding, self.values
        if rounding is None or rounding.kind != "controlled":
            return {place: values.count(mask) for place, mask in cells.items()}
        counts = np.zeros(lengths, dtype=np.int64)
        for place, mask in cells.items():
            if not is_total(place, lengths):
                counts[place] = values.unrounded(mask)
        name = hashlib.sha256("".join(digest_of_set(mask) for mask in cells.values()).encode()).hexdigest()
        rounded = controlled_rounding(counts, rounding.base, self.keyed, name)
        lines = {
            place: tuple(slice(None) if at == length else at for at, length in zip(place, lengths, strict=True))
            for place in cells
        }
        return {place: int(rounded[line].sum()) for place, line in lines.items()}

    def _complemented(
        self, counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]], small: dict[Place, bool], what: str
    ) -> dict[Place, bool]:
        suppress = self.controls.suppress
        if suppress is None or not suppress.complementary or not any(small.values()):
            return small
        primary = np.zeros(tuple(length + 1 for length in counts.shape), dtype=bool)
        for place, hide in small.items():
            primary[place] = hide
        mask = suppressed(counts, primary, width=suppress.width)
        self.open_cells[what] = intervals(counts, mask)
        return {place: bool(mask[place]) for place in small}

    def _small(self, mask: Mask, *, total: bool) -> bool:
        """Whether a cell of a table is too small to show (a total may be of all people: it adds nothing to its cells)."""
        people = self.records.people_in(mask)
        number = int(np.count_nonzero(people))
        suppress, least = self.controls.suppress, self.controls.set_size
        if suppress is not None and bool(suppress.small(np.array([number]))[0]):
            return True
        if least is None:
            return False
        return number < least if total else not size_allowed(people, least)

    def _hidden(self, mask: Mask, columns: Sequence[str], *, grouped: bool) -> bool:
        """Whether a set must not be answered, or too few people in it have a value of a column: left out of a grouped answer
        where `suppress` is set, else the question is refused."""
        suppress, least = self.controls.suppress, self.controls.set_size
        people = self.records.people_in(mask)
        valued = (self.records.people_in(mask & self.records.present(column)) for column in columns)
        if least is not None and not (size_allowed(people, least) and all(np.count_nonzero(each) >= least for each in valued)):
            if grouped and suppress is not None:
                return True
            raise too_small(least)
        if suppress is not None and bool(suppress.small(np.array([np.count_nonzero(people)]))[0]):
            if grouped:
                return True
            raise too_small(suppress.threshold)
        return False

    def _check_columns(self, asked: list[Asked], wanted: Wanted) -> None:
        nobody = np.zeros(self.records.size, dtype=bool)
        with self.history.turn():
            self.admission.catch_up()
            self._raise(self.admission.mixed(_lines([(each, nobody) for each in asked], wanted)))

    def _admit(self, sets: list[tuple[Asked, Mask]], wanted: Wanted) -> int:
        lines = _lines(sets, wanted)
        with self.history.turn():
            self.admission.catch_up()
            self._raise(self.admission.check(lines))
            return self.admission.take(lines)

    def _raise(self, refusal: Refusal | None) -> None:
        if refusal is not None:
            self.refusals.append(refusal)
            raise refused(refusal, self.controls)

    def _valued(self, asked: Asked, mask: Mask) -> Reported:
        values = self.values
        if asked.kind == "sum":
            return values.total(asked.column, mask)
        if asked.kind == "mean":
            return values.mean(asked.column, mask)
        if asked.kind in ("maximum", "minimum"):
            return values.extreme(asked.column, mask, largest=asked.kind == "maximum")
        return values.count(mask, people=asked.kind == "persons")


def is_total(place: Place, lengths: tuple[int, ...]) -> bool:
    """Whether a place of a table with totals is one of these.

    >>> is_total((1, 2), (2, 2)), is_total((1, 1), (2, 2))
    (True, False)
    """
    return any(at == length for at, length in zip(place, lengths, strict=True))


def _lines(sets: list[tuple[Asked, Mask]], wanted: Wanted) -> list[AnsweredSet]:
    reads = reads_of(wanted.where, wanted.axes)
    return [
        AnsweredSet(statistic=each.kind, column=each.column, reads=reads, records=mask, who=wanted.who, what=wanted.what)
        for each, mask in sets
    ]


def size_allowed(people: Mask, least: int) -> bool:
    """Whether k ≤ |set| ≤ n − k.

    Query-set size: a statistic of too few people, or of all but too few, is refused.

    Not differential privacy. What it stops: asking about one person directly, or about everybody else. What it does not: the
    tracker (Denning, Denning & Schwartz 1979). With any set T between 2k and n − 2k, the forbidden count of C is count(C or T)
    + count(C or not T) − n, and all of these are allowed. And the refusal is not simulatable: it says that fewer than k people
    (or all but fewer) pass, which is a bit about the rows.

    >>> size_allowed(np.array([True, True, False, False]), 2), size_allowed(np.array([True, True, True, False]), 2)
    (True, False)
    """
    inside = int(np.count_nonzero(people))
    return least <= inside <= len(people) - least


def too_small(least: int) -> AccessDenied:
    """The refusal; one text, whichever side is too small."""
    return AccessDenied(
        "The query was refused",
        why=f"its set, what the set leaves out, or who in it has a value, are fewer than {least} people",
        instead="a wider condition",
    )


_INTEGERS_AT_MOST = 2**62


class Values:
    """Statistics of sets of records, as the controls let them out. Private until they have been admitted and marked.

    >>> from cloister.query.controls.rounding import Rounding
    >>> from cloister.tables import Integer, PrivateTable, prepare
    >>> with prepare(PrivateTable({"age": [51, 39, 60]}, columns={"age": Integer(0, 120)}), secret="0") as prepared:
    ...     values = Values(Records(prepared), Controls(rounding=Rounding(base=5)), PseudoRandomFunction(b"secret"))
    ...     values.count(np.array([True, True, True])), values.total("age", np.array([True, True, False]))
    (5, 90)
    """

    def __init__(self, records: Records, controls: Controls, keyed: PseudoRandomFunction) -> None:
        self._records = records
        self._controls = controls
        self._keyed = keyed

    def count(self, mask: Mask, *, people: bool = False) -> int:
        """How many records, or people."""
        number = self._counted(mask, people=people)
        rounding = self._controls.rounding
        if rounding is None:
            return number
        return int(rounding.rounded(Fraction(number), Fraction(rounding.base), self._keyed, "count", digest_of_set(mask)))

    def unrounded(self, mask: Mask) -> int:
        """A count before it is rounded: for a table that is rounded as a whole."""
        return self._counted(mask, people=False)

    def total(self, column: str, mask: Mask) -> Reported:
        """The sum of a column; a missing value counts as nothing."""
        return self._ranged(column, self._summed(column, mask))

    def mean(self, column: str, mask: Mask) -> Reported:
        """The controlled sum divided by the controlled number of values: it tells nothing that these two don't."""
        number = self.count(mask & self._records.present(column))
        return self._ranged(column, self._summed(column, mask) / number) if number else None

    def extreme(self, column: str, mask: Mask, *, largest: bool) -> Reported:
        """The maximum or minimum: as a range, or as a substitute that does not occur."""
        domain = self._records.domains[column]
        codes = self._codes(column, self._sampled(mask))
        if not len(codes):
            return None
        code = int(codes.max() if largest else codes.min())
        value = domain.origin + code * domain.step
        substitute = self._controls.substitute
        if substitute is not None and column in substitute.columns:
            everybody = self._codes(column, np.ones(self._records.size, dtype=bool))
            value = substitute.of(code, column, domain, everybody, self._keyed)
        return self._ranged(column, value)

    def _counted(self, mask: Mask, *, people: bool) -> int:
        inside = self._sampled(mask)
        number = int(np.count_nonzero(self._records.people_in(inside) if people else inside))
        if self._controls.sample is not None:
            number = round(number / self._controls.sample.share)
        if self._controls.output is not None:
            number = max(number + self._controls.output.of_count(mask, self._keyed), 0)
        return number

    def _summed(self, column: str, mask: Mask) -> Fraction:
        domain, controls = self._records.domains[column], self._controls
        codes = self._codes(column, self._sampled(mask))
        reach = max(abs(domain.low_code), abs(domain.high_code)) * max(len(codes), 1)
        whole = int(codes.sum()) if reach < _INTEGERS_AT_MOST else sum(int(code) for code in codes)
        value = domain.origin * len(codes) + domain.step * whole
        if controls.sample is not None:
            value = round(value / controls.sample.share / domain.step) * domain.step
        if controls.output is not None:
            value += controls.output.of_sum(column, domain.step, mask, self._keyed)
        if controls.rounding is not None:
            value = controls.rounding.of_sum(column, value, self._keyed, digest_of_set(mask))
        return value

    def _sampled(self, mask: Mask) -> Mask:
        return mask if self._controls.sample is None else self._controls.sample.of(mask, self._keyed)

    def _codes(self, column: str, mask: Mask) -> Codes:
        return self._records.codes[column][mask & self._records.present(column)].astype(np.int64)

    def _ranged(self, column: str, value: Fraction) -> Reported:
        width = self._controls.width(column)
        if width is not None:
            return recoded(value, width)
        return int(value) if value.denominator == 1 else value
