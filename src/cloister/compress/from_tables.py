"""Projections of a session's table with what attackers make of them: by the marked door, for the owner.

A trade-off is counted on exact rows and directions are fitted to them, so neither is differentially private: from the first one
on the population's spending reads "unbounded" on every page (promise 1). The event is in the ledger before a row is read, and
stands whatever happens then (promise 2). Directions that are private are fitted to `Scatter.measure`.

Columns are scaled to [−1, 1] by their declared bounds, as `Scatter.measure` does, so that one form of a projection serves both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from cloister.compress.attackers import rows_rebuilt
from cloister.compress.comparison import MARK, TradeOff, asked_of, trade_off
from cloister.compress.drawing import normal, random_of
from cloister.compress.scatter import bounds_of
from cloister.errors import InvalidParameter
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.session import Door
from cloister.session.state.scrubbed import scrubbed
from cloister.tables import Boolean, Category, Prepared, PrivateTable
from cloister.tables.engines.row_sums import features_of

MOST_ROWS = 2_000
"""Of a table with more, so many are taken by chance: attackers learn in the square of them."""


@dataclass(frozen=True, kw_only=True)
class Projected:
    """What left: the trade-off, and each projection of it fitted to all rows. Not differentially private."""

    trade_off: TradeOff
    columns: tuple[dict[str, Any], ...]
    """Name, low and high of each."""
    projections: tuple[dict[str, Any], ...]
    pictures: dict[str, Any] | None = None
    """Of columns that are the pixels of pictures (`Grid`): what the best attacker takes two rows to be that it has not seen."""

    def to_json(self) -> str:
        """As JSON: z = (2 (x − low)/(high − low) − 1 − mean) · componentsᵀ."""
        told: dict[str, Any] = {"mark": MARK, "columns": self.columns, "projections": self.projections}
        told |= {"pictures": self.pictures} if self.pictures else {}
        return json.dumps({**told, "trade_off": json.loads(self.trade_off.to_json())}, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Grid:
    """Columns that are the pixels of pictures, by their names: a common word, the row and the column, each from 0.

    >>> Grid.of(["pixel_0_0", "pixel_0_1", "pixel_1_1", "pixel_1_0"])
    Grid(height=2, width=2, places=(0, 1, 3, 2))
    >>> Grid.of(["age", "pay"]), Grid.of(["pixel_0_0", "pixel_1_1"])
    (None, None)
    """

    height: int
    width: int
    places: tuple[int, ...]
    """Of each pixel, row by row, among the columns."""

    @classmethod
    def of(cls, names: Sequence[str]) -> Grid | None:
        """None where they are no whole picture of two rows and two columns, or more."""
        found = [re.fullmatch(r"(.*?)_?([0-9]{1,4})_([0-9]{1,4})", name) for name in names]
        if not found or None in found or len({each[1] for each in found if each}) > 1:
            return None
        at = {(int(each[2]), int(each[3])): place for place, each in enumerate(found) if each}
        height, width = (max(each[side] for each in at) + 1 for side in (0, 1))
        if len(at) != len(names) or len(at) != height * width or min(height, width) < 2:
            return None
        return cls(height, width, tuple(at[row, column] for row in range(height) for column in range(width)))


def columns_told(declared: PrivateTable, columns: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """The columns of a projection, and the bounds that scale them."""
    ends = zip(columns, *bounds_of(declared, columns), strict=True)
    return tuple({"name": name, "low": float(low), "high": float(high)} for name, low, high in ends)


def projection_told(method: str, fitted: Any) -> dict[str, Any]:
    """A linear projection as plain data."""
    found = {"mean": fitted.mean_.tolist(), "components": fitted.components_.tolist()}
    return {"method": method, "dimensions": len(fitted.components_), "promise": fitted.promise_, **found}


def publish_projections(
    session: Door,
    table: str,
    projections: Mapping[str, Any],
    *,
    columns: Sequence[str],
    utility: str,
    private: str,
    dimensions: Sequence[int],
) -> Projected:
    """Fit linear projections to a table of a session of the owner's, attack them, and let the result out.

    The words are those of `trade_off`; the labels are declared columns. Rows with a missing value are left out.

    >>> import cloister as cl
    >>> from cloister.compress import PCA
    >>> rows = {"age": [*range(60)], "pay": [x * 7 % 60 for x in range(60)], "ill": [0, 1] * 30, "sex": [0, 0, 1, 1] * 15}
    >>> kinds = {"age": cl.Integer(0, 60), "pay": cl.Integer(0, 60), "ill": cl.Category([0, 1]), "sex": cl.Category([0, 1])}
    >>> with cl.Session({"people": cl.PrivateTable(rows, kinds)}, budget=cl.PureDP(1)) as session:
    ...     how = {"columns": ["age", "pay"], "utility": "ill", "private": "sex", "dimensions": [1]}
    ...     found = publish_projections(session, "people", {"PCA": PCA()}, **how)
    ...     isinstance(found, Projected), found.projections[0]["promise"], session.ledger.charges("people")[0].state
    (True, 'not differentially private', 'not private')
    """
    if not hasattr(session, "prepared"):
        raise InvalidParameter(
            "The session is invalid", why="it hands rows to no method", instead="cl.Session({…}, budget=…), at the owner's"
        )
    access = session.row_access(table)
    check_projected(access.declaration, columns, utility, private)
    for count in asked_of(projections, dimensions):
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= len(columns):
            why = f"each is a whole number from 1 to {len(columns)}, the number of columns"
            raise InvalidParameter(f"dimensions={dimensions!r} is invalid", why=why, instead="dimensions=[1]")
    classes = [each.high_code - each.low_code + 1 for each in (access.declaration.columns[name] for name in (utility, private))]
    X = normal(2 * max(*classes, len(columns)) * len(columns), random_of(0)).reshape(-1, len(columns))
    use, secret = (np.arange(len(X)) % each for each in classes)
    for name, made in projections.items():  # what no rows of these declarations could be fitted to is refused before the event
        for count in dimensions:
            if not hasattr(clone(made).set_params(n_components=count).fit(X, use, secret), "components_"):
                raise InvalidParameter(f"{name!r} is invalid", why="it is not a linear projection", instead='{"PCA": PCA()}')
    how: dict[str, Any] = {"columns": columns, "utility": utility, "private": private, "dimensions": dimensions}
    return project_rows(access.prepare, access.population, session.ledger, table, projections, who=session.who, **how)


def project_rows(
    prepare: Callable[[], Prepared],
    population: str,
    ledger: Ledger,
    table: str,
    projections: Mapping[str, Any],
    *,
    columns: Sequence[str],
    utility: str,
    private: str,
    dimensions: Sequence[int],
    who: str,
    progress: Callable[[str], None] = lambda _: None,
    random: Random | None = None,
) -> Projected:
    """The same for who has decided already that the owner asks, and has checked the columns."""
    what = f"projections of {table}: {', '.join(projections)}"
    ledger.note_not_private(population, who=who, what=f"{what} (not differentially private, and neither is a refusal)")

    def found() -> Projected:
        prepared = prepare()
        X, use, secret, people = _rows(prepared, columns, utility, private, random or Random())
        traded = trade_off(X, use, secret, projections, dimensions=dimensions, persons=people, progress=progress)
        fitted = [
            projection_told(name, clone(made).set_params(n_components=count).fit(X, use, secret))
            for name, made in projections.items()
            for count in dimensions
        ]
        told = columns_told(prepared.declaration, columns)
        grid = Grid.of(columns)
        pictures = None if grid is None else _pictures(grid, X, use, secret, projections, traded)
        return Projected(trade_off=traded, columns=told, projections=tuple(fitted), pictures=pictures)

    return scrubbed(found)


def _pictures(grid: Grid, X: Any, use: Any, secret: Any, projections: Mapping[str, Any], traded: TradeOff) -> dict[str, Any]:
    """Two rows, of two classes of the use, as the best attacker of each point rebuilds them, who learns from all others; beside
    them the mean, which is what one guesses who has no number of them. The rows themselves stay here."""
    chosen = np.array([np.flatnonzero(use == each)[0] for each in np.unique(use)[:2]])
    known = np.setdiff1d(np.arange(len(X)), chosen)

    def grey(rows: Any) -> list[list[float]]:
        return np.clip((rows[:, grid.places] + 1) / 2, 0, 1).round(3).tolist()  # type: ignore[no-any-return]

    told = [{"method": "mean", "dimensions": 0, "grey": grey(np.tile(X[known].mean(axis=0), (len(chosen), 1)))}]
    for each in traded.points:
        made = clone(projections[each.method]).set_params(n_components=each.dimensions).fit(X[known], use[known], secret[known])
        inverse = getattr(made, "inverse_transform", None)
        guesses = rows_rebuilt(made.transform(X[known]), X[known], made.transform(X[chosen]), 0, inverse)
        told.append({"method": each.method, "dimensions": each.dimensions, "grey": grey(guesses[each.rebuilt_by])})
    return {"height": grid.height, "width": grid.width, "rebuilt": told}


def check_projected(declared: PrivateTable, columns: Sequence[str], utility: str, private: str) -> None:
    """Refuse columns without bounds, and labels without declared values; by declarations alone."""
    if not columns:
        raise InvalidParameter("columns= is invalid", why="it names no column", instead='columns=["age", "pay"]')
    bounds_of(declared, columns, [utility, private])
    check_labels(declared, columns, [utility, private])
    if declared.unit is not None and "unit" in (*columns, utility, private):
        raise InvalidParameter(
            "The column 'unit' is invalid", why="by this name it is known whose a row is", instead="another name for the column"
        )


def check_labels(declared: PrivateTable, columns: Sequence[str], labels: Sequence[str]) -> None:
    """The same of labels alone."""
    if len({*labels, *columns}) != len(labels) + len(columns):
        raise InvalidParameter(
            "The labels are invalid",
            why="the label of use, the secret and the projected columns are different columns",
            instead='columns=["age", "pay"], utility="ill", private="sex"',
        )
    for name in labels:
        if not isinstance(declared.columns.get(name), Category | Boolean):
            raise InvalidParameter(
                f"The column {name[:200]!r} is invalid", why="a label has declared values", instead="a column that is a category"
            )


def _rows(prepared: Prepared, columns: Sequence[str], utility: str, private: str, random: Random) -> tuple[Any, ...]:
    """Rows on the scale of [−1, 1], labels, and whose each is, where a person may have several: in an order of chance."""
    declared = prepared.declaration
    several = declared.unit is not None and declared.max_rows != 1
    names = [*columns, utility, private]
    codes = prepared.rows(names, unit=several)  # whether the unit is declared as a column or not
    said = np.ones(len(codes[names[0]]), dtype=bool)
    for name in names:
        said &= np.asarray(codes[name]) != declared.columns[name].null_code
    kept = np.flatnonzero(said)
    kept = kept[random.permutation(len(kept))[:MOST_ROWS]]
    low, high = bounds_of(declared, columns)
    values = np.column_stack([features_of(declared.columns[name], codes[name][kept]) for name in columns])
    labels = [np.unique(np.asarray(codes[name][kept]).astype(str), return_inverse=True)[1] for name in names[len(columns) :]]
    return (values - low) / (high - low) * 2 - 1, labels[0], labels[1], codes["unit"][kept] if several else None
