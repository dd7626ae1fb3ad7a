"""Questions about public tables alone: the front gives no rows of them, and says how such a table is used."""

from __future__ import annotations

from collections.abc import Collection

from cloister.hub.postgres.backend import Tables
from cloister.hub.postgres.failures import Refused
from cloister.tables import PrivateTable, PublicTable


def check_not_public_alone(named: Collection[str], tables: Tables) -> None:
    """Refuse a question that names public tables and no private one, with the line of a join in its place.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"town": ["Delft"]}, columns={"town": cl.Category(["Delft"])})
    >>> tables = {"people": people, "towns": cl.PublicTable({"town": ["Delft"], "river": ["Schie"]})}
    >>> check_not_public_alone(["people", "towns"], tables)
    >>> check_not_public_alone(["towns"], tables)
    Traceback (most recent call last):
    cloister.hub.postgres.failures.Refused: The rows of the public table 'towns' were not given: ...
      Instead: SELECT towns.river, COUNT(*) AS n FROM people JOIN towns ON people.town = towns.town GROUP BY towns.river
    """
    found = [name for name in sorted(tables) if name.lower() in named]
    publics = {name: table.names for name in found if isinstance(table := tables[name], PublicTable)}
    if not found or len(publics) < len(found):
        return
    name = found[0]
    raise Refused(
        f"The rows of the public table {name!r} were not given",
        why="what leaves here are answers about persons, which may join public tables",
        instead=_join(name, publics[name], tables),
    )


def _join(public: str, names: Collection[str], tables: Tables) -> str:
    """A question that uses a public table: by a column that a private table has too, where there is one."""
    private = {name: table for name, table in tables.items() if isinstance(table, PrivateTable)}
    ways = [(name, column) for name, table in private.items() for column in table.columns if column in names]
    name, key = min(ways, default=(min(private, default="people"), ""))
    shown = min((each for each in names if each != key), default=key)
    tie = f"{name}.{key} = {public}.{key}" if key else f"{name}.… = {public}.…"
    return f"SELECT {public}.{shown}, COUNT(*) AS n FROM {name} JOIN {public} ON {tie} GROUP BY {public}.{shown}"  # noqa: S608
