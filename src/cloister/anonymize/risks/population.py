"""The table against a table of the population: how many people each row could be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.encoded import tally_of
from cloister.anonymize.frames import Frame, check_columns, need_polars
from cloister.errors import InvalidParameter


@dataclass(frozen=True, eq=False, kw_only=True)
class Matched:
    """For each class of the table, how many people of the population look like it."""

    sizes: npt.NDArray[np.int64]
    """Rows of each class of the table."""
    people: npt.NDArray[np.int64]
    """People of the population who look like it; never fewer than its rows, who are people as well."""
    outside: int
    """Rows in classes that the population's table has fewer of than the table: so it does not hold the whole population."""
    uniques: int
    """How many people of the population are the only ones of their kind."""
    population: int

    @property
    def journalist(self) -> float:
        """The largest chance that a row is who it is taken for."""
        return float((1 / self.people).max()) if len(self.people) else 0.0

    @property
    def marketer(self) -> float:
        """The share of rows that are told right when each is taken for one who looks like it."""
        return float((self.sizes / self.people).sum() / max(int(self.sizes.sum()), 1))


def _whole_as_text(series: Any) -> Any:
    """Numbers and truth values as texts, whole ones to the last digit: doubles would make one person of neighbours."""
    if series.dtype.is_integer():
        return series.cast(need_polars().String)
    number = series.cast(need_polars().Float64)
    whole = number.cast(need_polars().Int64, strict=False)
    same = whole.cast(need_polars().Float64) == number
    return whole.cast(need_polars().String).zip_with(same.fill_null(value=False), number.cast(need_polars().String))


def match(table: Frame, population: Frame, quasi: Sequence[str]) -> Matched:
    """Classes of the table and of the population, side by side. Both have to name their values alike."""
    check_columns(population, list(quasi), "population's")
    pl = need_polars()
    columns, widths = [], []
    for name in quasi:
        ours, theirs = (  # NaN is a missing value, as it is to whoever counts the classes
            each.fill_nan(None) if each.dtype.is_float() else each for each in (table.data[name], population.data[name])
        )
        kinds = ours.dtype, theirs.dtype
        if ours.dtype != theirs.dtype:
            if all(kind.is_numeric() or kind == pl.Boolean for kind in kinds):
                ours, theirs = _whole_as_text(ours), _whole_as_text(theirs)
            else:  # a day is the first moment of it
                common = pl.Datetime("us", "UTC") if all(kind in (pl.Date, pl.Datetime) for kind in kinds) else pl.String
                ours, theirs = ours.cast(common), theirs.cast(common)
        ranks = pl.concat([ours.rename("value"), theirs.rename("value")]).rank("dense").cast(pl.Int64)
        codes = ranks.fill_null(0).to_numpy()
        columns.append(codes)
        widths.append(int(codes.max(initial=0)) + 1)
    ids, count = alike(columns, widths)
    inside = tally_of(ids[: table.rows], count, table.weights)
    everybody = tally_of(ids[table.rows :], count, population.weights)
    there = inside > 0
    if table.rows and not everybody[there].any():
        raise InvalidParameter(
            "The population's table is invalid",
            why="no row of the table looks like anybody in it",
            instead="a table of the population that is generalised as the table is: anonymizer.recode(…) says how",
        )
    sizes, people = inside[there], everybody[there]
    return Matched(
        sizes=sizes.astype(np.int64),
        people=np.maximum(sizes, people).astype(np.int64),
        outside=int(sizes[people < sizes].sum()),
        uniques=int((everybody == 1).sum()),
        population=population.stands_for(np.ones(population.rows, dtype=bool)),
    )
