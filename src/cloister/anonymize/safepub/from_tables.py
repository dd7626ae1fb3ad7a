"""SafePub on a table of a session: rows come by the one door, and what they cost is charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cloister.anonymize.safepub.safepub import MOST_VALUES, SafelyPublished, SafePub
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from cloister.session import Door


@dataclass(frozen=True, eq=False, kw_only=True)
class SafeTable:
    """A released table: (ε, δ)-differentially private, like every other answer of the session."""

    table: Any
    """A polars frame."""
    released: SafelyPublished
    cost: Guarantee
    marked: bool
    """Whether a test's generator made it."""


def publish_safely(session: Door, table: str, method: SafePub, *, purpose: str = "") -> SafeTable:
    """Release rows of a table of a session, and charge (ε, δ).

    **Guarantee.** That of `method`, for one person more or less: a table of which a person may have several rows is refused.

    >>> import cloister as cl
    >>> from cloister.noise import Random
    >>> people = cl.PrivateTable({"age": [20, 30] * 2000}, columns={"age": cl.Integer(18, 90)})
    >>> method = SafePub(1, "1e-6", columns={"age": cl.Integer(18, 90)}, levels={"age": 0})
    >>> with cl.Session({"people": people}, budget=cl.ApproxDP(2, "1e-5"), random=Random.deterministic(1)) as session:
    ...     found = publish_safely(session, "people", method)
    ...     print(session.spent)
    ε = 1, δ = 1e-06
    >>> isinstance(found, SafeTable), isinstance(found.released, SafelyPublished)
    (True, True)
    >>> sorted(set(found.table["age"].to_list())), 2300 < found.released.rows < 2800
    ([20, 30], True)
    """
    if not hasattr(session, "run") or not hasattr(session, "tables"):
        raise InvalidParameter("The session is invalid", why="it hands rows to no method", instead="cl.Session({…}, budget=…)")
    rows = SafePubRows(method)
    rows.check(table, session.tables.get(table))
    outcome = session.run(rows, table, method.guarantee, purpose=purpose)
    released = SafelyPublished(
        levels=dict(outcome.values["levels"]),
        labels={
            name: [method.ladders[name].labels[outcome.values["levels"][name]][code] for code in codes]
            for name, codes in outcome.values["labels"].items()
        },
        counts=list(outcome.values["counts"]),
    )
    return SafeTable(table=method.frame_of(released), released=released, cost=outcome.cost, marked=outcome.marked)


@dataclass(frozen=True)
class SafePubRows:
    """The mechanism as a method that needs rows (`cloister.session.RowMethod`)."""

    stored: ClassVar[tuple[str, str]] = ("cloister.anonymize.safepub.from_tables", "SafePubRows")

    method: SafePub

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads."""
        return tuple(self.method.columns)

    def describe(self) -> dict[str, Any]:
        """For the plan's digest."""
        return self.method.describe()

    def check(self, name: str, declaration: Any) -> None:
        """One row a person, and the declared domains are those that the mechanism was made for."""
        if not isinstance(declaration, PrivateTable):
            return
        if declaration.unit is not None and declaration.max_rows != 1:
            raise InvalidParameter(
                f"The table {name!r} is invalid",
                why="a person may have several rows of it, and the promise is for one row",
                instead="a table with one row for each person, or max_rows=1",
            )
        for column, domain in self.method.columns.items():
            theirs = declaration.columns.get(column, domain)
            if theirs != domain:
                fits = type(theirs) is type(domain) and (theirs.size or MOST_VALUES + 1) <= MOST_VALUES
                told = f"columns={{{column!r}: cl.{(theirs if fits else domain)!r}}}"
                raise InvalidParameter(
                    f"The column {column!r} is invalid",
                    why="it is declared otherwise in the session than in `columns`",
                    instead=told if fits else f"cl.PrivateTable(…, {told})",
                )

    def guarantee(self, spend: Guarantee, declaration: PrivateTable) -> Guarantee:
        """The promise of the mechanism; a spend that is smaller does not buy it."""
        self.check("it", declaration)
        return self.method.guarantee

    def release(
        self, rows: Mapping[str, Any], declaration: PrivateTable, guarantee: Guarantee, random: Random
    ) -> Mapping[str, Any]:
        """Sample, generalise, leave out small classes: codes of labels and counts are all that leaves."""
        codes = []
        for name, domain in self.method.columns.items():
            given = np.asarray(rows[name], dtype=np.int64)
            missing = len(self.method.ladders[name].labels[0]) - 1
            codes.append(np.where(given == domain.null_code, missing, given - domain.low_code))
        found = self.method.release(codes, random)
        places = {
            name: {_key(label): code for code, label in enumerate(self.method.ladders[name].labels[level])}
            for name, level in found.levels.items()
        }
        return {
            "levels": found.levels,
            "labels": {name: [places[name][_key(label)] for label in labels] for name, labels in found.labels.items()},
            "counts": found.counts,
        }


def _key(label: Any) -> tuple[str, Any]:
    return (type(label).__name__, label)
