"""An anonymised table of a session: by the marked door, for the owner.

An anonymised table is not differentially private, so from the first one on the population's spending reads "unbounded" on every
page (promise 1). The event is in the ledger before a row is read, and stands whatever happens then (promise 2). Rows come as the
declaration has them: clamped to its bounds, what it does not list missing, a place as the text of its two numbers; in an order
that says nothing of the order they had.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.anonymize.anonymizer import Anonymizer
from cloister.anonymize.frames import Frame, need_polars
from cloister.anonymize.report import Report
from cloister.errors import InvalidParameter
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.session import Door
from cloister.session.state.scrubbed import scrubbed
from cloister.tables import Domain, Place, Prepared, PrivateTable, Text


@dataclass(frozen=True, eq=False, kw_only=True)
class Published:
    """What left: the table (a polars frame) and the report. Not differentially private."""

    table: Any
    report: Report


def publish_table(session: Door, name: str, anonymizer: Anonymizer, *, random: Random | None = None) -> Published:
    """Anonymise a table of a session of the owner's.

    A table of which a person may have several rows is refused: k rows that look alike could all be one person's.

    >>> import cloister as cl
    >>> from cloister.anonymize import Anonymizer, KAnonymity
    >>> people = cl.PrivateTable({"age": [30, 31, 60, 61]}, columns={"age": cl.Integer(0, 120)})
    >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
    ...     published = publish_table(session, "people", Anonymizer(quasi=["age"], models=[KAnonymity(2)]))
    ...     isinstance(published, Published), published.report.models[0].reached, session.ledger.charges("people")[0].state
    (True, 'k = 2', 'not private')
    """
    rows = session.row_access(name)
    how: Any = {"who": session.who, "random": random}
    return publish_rows(rows.prepare, rows.declaration, rows.population, session.ledger, name, anonymizer, **how)


def publish_rows(
    prepare: Callable[[], Prepared],
    declaration: PrivateTable,
    population: str,
    ledger: Ledger,
    name: str,
    anonymizer: Anonymizer,
    *,
    who: str,
    random: Random | None = None,
) -> Published:
    """The same for who has decided already that the owner asks: how rows are prepared, and the ledger of their population."""
    check_one_row_each(name, declaration)
    if not isinstance(anonymizer, Anonymizer):
        raise InvalidParameter("anonymizer= is invalid", why="it is not an Anonymizer", instead='Anonymizer(quasi=["age"])')
    anonymizer.check(Frame(need_polars().DataFrame({each: [] for each in declaration.columns}), "polars"))
    what = f"anonymised table of {name}: {', '.join(model.name for model in anonymizer.models)}"
    # first of all: a search and its progress see rows, and an interruption leaves no time to write anything down
    ledger.note_not_private(population, who=who, what=f"{what} (not differentially private, and neither is a refusal)")
    return scrubbed(lambda: _published(prepare(), anonymizer, random or Random()))


def check_one_row_each(name: str, declaration: PrivateTable) -> None:
    """Refuse a table of which a person may have several rows."""
    if declaration.unit is not None and declaration.max_rows != 1:
        raise InvalidParameter(
            f"Anonymising {name!r} is invalid",
            why="a person may have several rows of it, and k rows that look alike could all be one person's",
            instead="a table with one row a person (max_rows=1)",
        )


def frame_of(prepared: Prepared, random: Random) -> Frame:
    """The rows as the declaration has them, in an order of chance: private, for the inside of the door and for their owner."""
    columns = prepared.declaration.columns
    rows = prepared.rows([*columns])
    order = random.permutation(len(rows[next(iter(columns))]))
    pl = need_polars()
    return Frame(pl.DataFrame([_decoded(name, domain, rows[name][order]) for name, domain in columns.items()]), "polars")


def _published(prepared: Prepared, anonymizer: Anonymizer, random: Random) -> Published:
    table = anonymizer.fit_transform(frame_of(prepared, random))
    return Published(table=table, report=anonymizer.report_)


def _decoded(name: str, domain: Domain, codes: Any) -> Any:
    pl = need_polars()
    if isinstance(domain, Text):
        return pl.Series(name, codes.tolist(), dtype=pl.String)
    distinct, places = np.unique(codes, return_inverse=True)
    values = [None if code == domain.null_code else domain.decode(code) for code in distinct.tolist()]
    if isinstance(domain, Place):  # a list of pairs and "outside" is no column, and a list within a file is read by few
        values = [f"{each[0]:.6f} {each[1]:.6f}" if isinstance(each, tuple) else each for each in values]
    return pl.Series(name, values).gather(places.astype(np.uint32))
