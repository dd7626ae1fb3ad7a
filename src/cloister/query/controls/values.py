"""The numbers of an admitted set, with the controls that change numbers: sample, perturbation, rounding, ranges, substitutes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cloister.crypto import PseudoRandomFunction
from cloister.query.controls.answer import Reported
from cloister.query.controls.masks import Mask, digest_of_set
from cloister.query.controls.policy import Controls
from cloister.query.controls.recoding import recoded
from cloister.query.controls.records import Codes, Records

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

    def count(self, mask: Mask, *, persons: bool = False) -> int:
        """How many records, or people."""
        number = self._counted(mask, persons=persons)
        rounding = self._controls.rounding
        if rounding is None:
            return number
        return int(rounding.rounded(Fraction(number), Fraction(rounding.base), self._keyed, "count", digest_of_set(mask)))

    def unrounded(self, mask: Mask) -> int:
        """A count before it is rounded: for a table that is rounded as a whole."""
        return self._counted(mask, persons=False)

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

    def _counted(self, mask: Mask, *, persons: bool) -> int:
        inside = self._sampled(mask)
        number = int(np.count_nonzero(self._records.persons_in(inside) if persons else inside))
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
