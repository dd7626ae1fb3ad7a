"""A declared table with a row for each item of a basket: which columns those are, and which rows say both."""

from typing import Any

import numpy as np

from cloister.errors import InvalidParameter, UnknownColumn
from cloister.tables import Boolean, Category, Date, Domain, Integer, PrivateTable, Real, Text

MOST_VALUES = 100_000


def check_columns(declaration: PrivateTable, basket: str, item: str, call: str) -> None:
    """Refuse columns that the table does not declare, or one for both; `call` is what to write instead."""
    for column in (basket, item):
        if column not in list(declaration.columns):
            raise UnknownColumn(
                f"The column {column!r} was not found",
                why=f"declared are {', '.join(declaration.columns)}",
                instead=f'{call}(…, basket="order", item="product")',
            )
    if item == basket:
        raise InvalidParameter(f"item={item!r} is invalid", why="it is the basket column, too", instead='item="product"')


def listed(domain: Domain) -> tuple[Any, ...] | None:
    """The items that a column declares, whether anybody holds them or not; None where it declares none, or too many to list."""
    few = isinstance(domain, Category | Integer | Boolean | Real | Date) and (domain.size or MOST_VALUES + 1) <= MOST_VALUES
    return domain.values() if few else None


def known(domain: Domain, codes: Any) -> Any:
    """Which rows say anything in a column."""
    if isinstance(domain, Text):
        return np.array([each is not None for each in codes], dtype=bool)
    return np.asarray(codes) != domain.null_code


def numbered(domain: Domain, codes: Any) -> tuple[Any, Any]:
    """What occurs, in an order that says nothing of the rows', and each row's place among it."""
    return np.unique(np.asarray(codes, dtype=object) if isinstance(domain, Text) else codes, return_inverse=True)
