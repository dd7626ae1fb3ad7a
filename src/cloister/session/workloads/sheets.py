"""One table out of several releases: the answers of GROUPING SETS one under another, each row with the error of its own
release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.session.releases.frames import Frame, Series, Values
from cloister.session.releases.release import Release
from cloister.session.releases.uncertainty import check_confidence


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Sheets(Release):
    """Rows of several releases with the same columns, in any order.

    >>> from cloister.session.examples import small_release
    >>> one = small_release()
    >>> both = sheets([one, one], [(0, 0), (0, 1), (1, 0)])
    >>> both.num_rows, both.column_names, both.margin()["count"].tolist()
    (3, ['sex', 'count'], [6.0, 6.0, 6.0])
    """

    parts: tuple[Release, ...]
    places: tuple[tuple[int, int], ...]
    """For each row the release and the row there."""

    @property
    def num_rows(self) -> int:
        """As many as were put together."""
        return len(self.places)

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> Sheets:
        """Some of the rows, in the order given."""
        return replace(self, places=tuple(self.places[int(row)] for row in rows))

    def bounds(self, name: str) -> tuple[float, float]:
        """As each part's."""
        return self.parts[0].bounds(self._names.get(name, name))

    def statistics(self) -> list[str]:
        """The output columns that are measured."""
        measured = set(self.parts[0].statistics())
        return [out for out, source in self._names.items() if source in measured]

    def margin(self, confidence: float = 0.95, *, joint: bool = False) -> Frame:
        """Of each cell, by the release that it comes from; jointly: each release gets its share of the failures by its cells."""
        check_confidence(confidence)
        cells = sum(part.cells for part in self.parts)
        each = [1 - (1 - confidence) * part.cells / cells if joint else confidence for part in self.parts]
        found = [part.margin(share, joint=joint) for part, share in zip(self.parts, each, strict=True)]
        return Frame({out: self._gathered([frame.columns[source] for frame in found]) for out, source in self._names.items()})

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return self.names or {name: name for name in self.parts[0].column_names}

    def _series(self, name: str) -> Series:
        return self._gathered([part.table.columns[name] for part in self.parts])

    def _gathered(self, columns: Sequence[Series]) -> Series:
        kind = columns[0].kind
        plain = all(column.values.dtype != object for column in columns)
        values: Values = np.empty(
            len(self.places), dtype=np.result_type(*(column.values for column in columns)) if plain else object
        )
        for row, (part, place) in enumerate(self.places):
            values[row] = columns[part].values[place]
        return Series(kind, values)


def sheets(parts: Sequence[Release], places: Sequence[tuple[int, int]]) -> Sheets:
    """The rows of several releases of one charge as one table."""
    first = parts[0]
    return Sheets(
        groups={},
        formulas=(),
        readings={},
        cost=first.cost,
        spent_by=first.spent_by,
        provenance=first.provenance,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        cells=sum(part.cells for part in parts),
        parts=tuple(parts),
        places=tuple(places),
    )
