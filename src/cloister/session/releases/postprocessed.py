"""A table that was worked out from released ones: its values, and the intervals that follow from theirs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import CloisterError
from cloister.privacy import Guarantee
from cloister.session.releases.frames import Frame, Series
from cloister.session.releases.release import Provenance, Release
from cloister.session.releases.uncertainty import check_confidence

Bounds = Mapping[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]]
"""For each column the lower and the upper ends of the intervals of its cells; NaN where nothing is known."""
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)
"""The confidences whose margins a text of it holds. Between two, the wider margin is taken; beyond the last, none is known."""
_FIRST, _SECONDS = 0.95, 5.0
JOINT = "worked out from released numbers, at no cost: its margins hold for all cells at once"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Postprocessed(Release):
    """Columns that were worked out from releases; `groups` holds all of them.

    >>> from cloister.session.examples import small_release
    >>> one = small_release()
    >>> double = one["count"] * 2
    >>> table = Frame({"twice": Series("integer", double)})
    >>> made = Postprocessed.of(table, {"twice"}, lambda confidence: {"twice": (double - 12.0, double + 12.0)}, [one])
    >>> made.margin()["twice"].tolist(), made.statistics()
    ([12.0, 12.0], ['twice'])
    """

    measured: tuple[str, ...]
    """The columns with released numbers in them."""
    margins: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    """For each of them the margins at the confidences of `LEVELS`, one row each; empty while they can be worked out."""
    bounds_at: Callable[[float], Bounds] | None = field(default=None, compare=False)
    rows: tuple[int, ...] | None = field(default=None, compare=False)
    """Which rows of what is worked out are shown; None: all."""

    @classmethod
    def of(
        cls,
        table: Frame,
        measured: Collection[str],
        bounds_at: Callable[[float], Bounds],
        answers: Sequence[Release],
        first: Release | None = None,
    ) -> Postprocessed:
        """What was worked out from answers of one charge."""
        origin = answers[0] if first is None else first
        notes = dict.fromkeys(note for answer in answers for note in answer.notes)
        mechanism = dict.fromkeys(words for answer in answers for words in answer.provenance.mechanism)
        made = cls(
            groups=dict(table.columns),
            formulas=(),
            readings={},
            cost=origin.cost,
            spent_by=origin.spent_by,
            provenance=replace(origin.provenance, mechanism=tuple(mechanism)),
            notes=tuple(notes),
            cells=max(table.num_rows, 1),
            measured=tuple(name for name in table.column_names if name in measured),
            bounds_at=bounds_at,
        )
        return replace(made, notes=(*made.notes, *made._told()))

    @property
    def num_rows(self) -> int:
        """As many as were worked out."""
        return next((len(series.values) for series in self.groups.values()), 0)

    def take(self, rows: Sequence[int] | npt.NDArray[Any]) -> Postprocessed:
        """Some of the rows, in the order given."""
        places = np.asarray(rows, dtype=np.int64)
        known = range(self.num_rows) if self.rows is None else self.rows
        return replace(
            self,
            groups={name: Series(series.kind, series.values[places]) for name, series in self.groups.items()},
            margins={name: table[:, places] for name, table in self.margins.items()},
            rows=tuple(known[place] for place in places.tolist()),
        )

    def statistics(self) -> list[str]:
        """The output columns with released numbers in them."""
        return [out for out, source in self._names.items() if source in self.measured]

    def margin(self, confidence: float = 0.95, *, joint: bool = False) -> Frame:
        """The half-width of the interval around each cell; NaN where it is not known. All intervals hold at once with the
        confidence, with `joint` and without."""
        check_confidence(confidence)
        known = self._margins(confidence)
        return Frame({out: self._cells(source, known) for out, source in self._names.items()})

    def drowned(self, confidence: float = 0.95) -> Frame:
        """For each cell whether the noise may exceed the value; so it may where the margin is not known."""
        found, margins = dict(super().drowned(confidence).columns), self.margin(confidence)
        for name in self.statistics():
            unknown = np.isnan(margins[name])
            found[name] = Series("boolean", found[name].values.astype(bool) | unknown)
        return Frame(found)

    def at_levels(self) -> dict[str, npt.NDArray[np.float64]]:
        """The margins at the confidences of `LEVELS`. The answer is paid for, so it is told whatever becomes of them: where they
        cannot be worked out at a confidence, or in time, they are those of the next higher one, and none is known beyond."""
        if self.bounds_at is None:
            return dict(self.margins)
        began, found = time.monotonic(), {}
        for level in (_FIRST, *reversed(LEVELS)):
            if level in found or (level != _FIRST and time.monotonic() - began > _SECONDS):
                continue
            with suppress(CloisterError):
                found[level] = self._margins(level)
        nothing = dict.fromkeys(self.measured, np.full(self.num_rows, math.nan))
        each = [next((found[higher] for higher in LEVELS[place:] if higher in found), nothing) for place in range(len(LEVELS))]
        return {name: np.stack([level[name] for level in each]) for name in self.measured}

    def _cells(self, source: str, known: Mapping[str, npt.NDArray[np.float64]]) -> Series:
        return Series("real", known[source]) if source in self.measured else self.groups[source]

    def _margins(self, confidence: float) -> dict[str, npt.NDArray[np.float64]]:
        if self.bounds_at is None:
            level = next((place for place, each in enumerate(LEVELS) if each >= confidence), None)
            nothing = np.full(self.num_rows, math.nan)
            return {name: nothing if level is None else self.margins[name][level] for name in self.measured}
        bounds = self.bounds_at(confidence)
        places = slice(None) if self.rows is None else np.asarray(self.rows, dtype=np.int64)
        found = {}
        for name in self.measured:
            low, high = (np.asarray(end, dtype=np.float64)[places] for end in bounds[name])
            found[name] = _half_widths(self.groups[name], low, high)
        return found

    def _told(self) -> list[str]:
        """What its reader should know of its margins."""
        if not self.measured:
            return []
        known = self._margins(0.95)
        found = [JOINT]
        for name in self.measured:
            missing = int(np.isnan(known[name]).sum())
            if missing:
                where = "" if missing == self.num_rows else f" in {missing:,} of {self.num_rows:,} rows"
                found.append(f"{name}: its margin is not known{where}")
        return found


def _half_widths(series: Series, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The longer way from a value to an end."""
    if series.kind not in ("integer", "real"):
        return np.where(low == high, 0.0, math.nan)
    values = np.array([math.nan if value is None else float(value) for value in series.tolist()], dtype=np.float64)
    with np.errstate(invalid="ignore"):
        widths: npt.NDArray[np.float64] = np.maximum(np.maximum(values - low, high - values), 0.0)
    return np.where(np.isfinite(widths), widths, math.nan)


def public_release(tables: Sequence[str], text: str, who: str, nothing: Guarantee) -> Release:
    """What is said of an answer that public tables or declarations alone give: nobody was charged for it.

    >>> from cloister.privacy import PureDP
    >>> str(public_release(["towns"], "SELECT 1", "ana", PureDP(0)).cost)
    'ε = 0'
    """
    origin = Provenance(
        digest=sha256(text.encode()).hexdigest(),
        table=", ".join(tables),
        population="",
        version="",
        who=who,
        when=time.time(),
        charges=(),
        mechanism=(),
        neighbours="none: no private row is read",
        repeated=True,
    )
    return Release(groups={}, formulas=(), readings={}, cost=nothing, spent_by={}, provenance=origin)
