"""Baskets from whatever a person has, and back in the same shape: lists, a long table of pairs, a wide table of yes and no.

A long table has a column that says which basket and one that says which item, a row for each pair; a wide one has a column for
each item and a row for each basket. Tables are pandas, polars or Arrow frames, or a dict of lists. A missing item is none; a
missing basket is refused, since nobody knows whose it is.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, UnknownColumn
from cloister.mining.baskets import Baskets
from cloister.session.releases.frames import Frame, Series

Shape = Literal["baskets", "lists", "long", "wide"]


@dataclass(frozen=True, kw_only=True)
class Read:
    """Baskets, and how they were written."""

    baskets: Baskets
    shape: Shape
    basket: str = "basket"
    item: str = "item"
    kind: str = ""
    """Whose frame it was."""

    def written(self, baskets: Baskets) -> Any:
        """Baskets in the shape in which these were read."""
        if self.shape == "baskets":
            return baskets
        if self.shape == "lists":
            return baskets.lists()
        frame = self._wide(baskets) if self.shape == "wide" else self._long(baskets)
        ways = {"pandas": frame.to_pandas, "polars": frame.to_polars, "dict": frame.to_pydict}
        return ways.get(self.kind, frame.to_arrow)()

    def _wide(self, baskets: Baskets) -> Frame:
        return Frame({str(item): Series("boolean", baskets.column(place)) for place, item in enumerate(baskets.items)})

    def _long(self, baskets: Baskets) -> Frame:
        empty = np.flatnonzero(baskets.sizes == 0)  # they count, too: a row without an item keeps them
        item = np.concatenate([baskets.item, np.full(len(empty), -1, np.int64)])
        basket = np.concatenate([baskets.basket, empty])
        order = np.lexsort((item, basket))
        names: list[Any] = list(baskets.names) if baskets.names is not None else list(range(len(baskets)))
        owners = [names[number] for number in basket[order].tolist()]
        held = [baskets.items[place] if place >= 0 else None for place in item[order].tolist()]
        return Frame({self.basket: _series(owners, names), self.item: _series(held, baskets.items)})


def read_baskets(source: Any, *, basket: str | None = None, item: str | None = None) -> Baskets:
    """Baskets from lists, a long table (`basket` and `item` name its columns) or a wide table of yes and no.

    >>> read_baskets({"basket": [1, 1, 2], "item": ["tea", "milk", "tea"]}).lists()
    [['tea', 'milk'], ['tea']]
    >>> read_baskets({"tea": [True, True], "milk": [1, 0]}).lists()
    [['tea', 'milk'], ['tea']]
    """
    return read_with_shape(source, basket=basket, item=item).baskets


def read_with_shape(source: Any, *, basket: str | None = None, item: str | None = None) -> Read:
    """The same, with the shape that it was in."""
    if isinstance(source, Read):
        return source
    if isinstance(source, Baskets):
        return Read(baskets=source, shape="baskets")
    columns, kind = _columns(source)
    if columns is None:
        if isinstance(source, str | bytes) or not isinstance(source, Iterable):
            raise _refused(f"a {type(source).__name__} holds no baskets")
        return Read(baskets=Baskets.of(source.to_pylist() if hasattr(source, "to_pylist") else source), shape="lists")
    if basket is not None or item is not None or {"basket", "item"} <= set(columns):
        one, other = "basket" if basket is None else basket, "item" if item is None else item
        for name in (one, other):
            if name not in list(columns):
                raise UnknownColumn(
                    f"The column {name!r} was not found",
                    why=f"the table has {', '.join(map(str, columns))}",
                    instead='basket="order", item="product"',
                )
        return Read(baskets=_from_long(columns[one], columns[other]), shape="long", basket=one, item=other, kind=kind)
    return Read(baskets=_from_wide(columns), shape="wide", kind=kind)


def _columns(source: Any) -> tuple[dict[str, npt.NDArray[Any]] | None, str]:
    """The columns of a table; None for anything else."""
    if isinstance(source, Frame):
        return {name: source[name] for name in source.column_names}, "arrow"
    if isinstance(source, Mapping):
        if len({str(name) for name in source}) < len(source):
            raise _refused("two columns have the same name")
        return {str(name): _objects(values) for name, values in source.items()}, "dict"
    module = type(source).__module__.partition(".")[0]
    if module in ("pandas", "polars") and hasattr(source, "shape") and hasattr(source, "columns"):
        names = list(source.columns)
        if len({str(name) for name in names}) < len(names):
            raise _refused("two columns have the same name")
        return {str(name): _held(source[name]) for name in names}, module
    if hasattr(source, "__arrow_c_stream__") and hasattr(source, "schema"):  # a series is a list of baskets
        from arro3.core import Table

        table = Table.from_arrow(source)
        return {name: _objects(table[name].to_pylist()) for name in table.column_names}, "arrow"
    return None, ""


def _held(series: Any) -> npt.NDArray[Any]:
    """A frame's column, not as NumPy would hold it beside missing values: whole numbers as floats, moments as numbers."""
    array = np.asarray(series.to_numpy())
    return array if array.dtype.kind in "biu" else _objects(series.to_list())


def _objects(values: Any) -> npt.NDArray[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise _refused("a column of a table is a list of values")
    values = list(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _from_long(owners: npt.NDArray[Any], held: npt.NDArray[Any]) -> Baskets:
    if len(owners) != len(held):
        raise _refused("its columns differ in length")
    baskets: dict[Hashable, int] = {}
    items: dict[Hashable, int] = {}
    places, numbers = np.empty(len(held), np.int64), np.empty(len(held), np.int64)
    for row, (owner, item) in enumerate(zip(owners.tolist(), held.tolist(), strict=True)):
        if _missing(owner):
            raise _refused(f"row {row + 1} does not say whose basket it is", instead="a basket in each row, or no such row")
        try:
            numbers[row] = baskets.setdefault(owner, len(baskets))
            places[row] = -1 if _missing(item) else items.setdefault(item, len(items))
        except TypeError:
            raise _refused(f"row {row + 1} holds a list where one item or one basket is expected") from None
    for names in (baskets, items):
        if len({str(name) for name in names}) < len(names):  # the changed baskets are written as texts, and the two would be one
            raise _refused("two baskets or two items are written alike, as 1 and '1' are", instead="texts throughout, or numbers")
    kept = places >= 0
    return Baskets.from_pairs(tuple(items), len(baskets), places[kept], numbers[kept], names=tuple(baskets))


def _from_wide(columns: Mapping[str, npt.NDArray[Any]]) -> Baskets:
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise _refused("its columns differ in length")
    items, baskets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for place, (name, values) in enumerate(columns.items()):
        found = np.flatnonzero(_yes(name, values))
        items.append(np.full(len(found), place, np.int64))
        baskets.append(found.astype(np.int64))
    return Baskets.from_pairs(tuple(columns), next(iter(lengths), 0), np.concatenate(items), np.concatenate(baskets))


def _yes(name: str, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    if values.dtype == np.bool_:
        return values
    plain = values.tolist()
    for row, value in enumerate(plain):
        if _missing(value) or value not in (0, 1):
            raise _refused(
                f"row {row + 1} of column {name!r} is neither yes nor no, and there are no columns 'basket' and 'item'",
                instead='basket="order", item="product", the names of the two columns of a long table',
            )
    return np.array([bool(value) for value in plain], dtype=np.bool_)


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NaTType", "NAType")


def _series(values: list[Any], all_values: Iterable[Any]) -> Series:
    """Whole numbers stay such; anything else is written as text."""
    whole = all(isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 for value in all_values)
    if whole and None not in values:
        return Series("integer", np.array(values, dtype=np.int64))
    array = np.empty(len(values), dtype=object)
    array[:] = values if whole else [None if value is None else str(value) for value in values]
    return Series("integer" if whole else "text", array)


def _refused(why: str, *, instead: str = '[["bread", "butter"], ["bread"]]') -> InvalidParameter:
    return InvalidParameter("The baskets are invalid", why=why, instead=instead)
