"""Public tables, and joins with them: their rows are read here, in plain Python, and matched with the domains of private columns.

A public table is no secret, so its rows may be counted: how many of them have one key bounds what a join makes of a row. A
value that is not exactly a value of the private column's domain matches nothing: 400 among ages declared 0 to 120 is not 120.
"""

import datetime
import hashlib
import json
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.tables.declaring.columns import Domain, Identifier, Text
from cloister.tables.declaring.table import PublicTable
from cloister.tables.engines.compiler import storage
from cloister.tables.engines.ibis_compilers import ibis
from cloister.tables.expression.names import quoted_path
from cloister.tables.expression.unify import NUMERIC, with_nullable
from cloister.tables.relations.derived import OfOne, Relation, bounded, known, packed, unique
from cloister.tables.relations.public_values import domain_of, number_of, read
from cloister.tables.sourcing.reading import EPOCH, read_days, representable, spelled


@dataclass(frozen=True, eq=False)
class PublicCodes:
    """The matching rows of a public table: codes of the keys, codes of what is looked up, and the number of the row in its key.

    Columns are numpy arrays of codes with `null_code` for NULL, or lists of texts with None.
    """

    keys: tuple[Any, ...]
    payload: tuple[Any, ...]
    order: np.ndarray[Any, Any]
    key_domains: tuple[Domain, ...]
    domains: tuple[Domain, ...]
    multiplicity: int
    digest: str

    def schema(self) -> dict[str, str]:
        """Ibis types by name: k0, k1, … for the keys, p0, p1, … for the rest, n for the number."""
        types = {f"k{i}": storage(domain) for i, domain in enumerate(self.key_domains)}
        return {**types, **{f"p{i}": storage(domain) for i, domain in enumerate(self.domains)}, "n": "int64"}

    def columns(self) -> dict[str, tuple[Any, Domain | None]]:
        """The columns by the same names, each with its domain."""
        named: dict[str, tuple[Any, Domain | None]] = {
            f"k{i}": each for i, each in enumerate(zip(self.keys, self.key_domains, strict=True))
        }
        named |= {f"p{i}": each for i, each in enumerate(zip(self.payload, self.domains, strict=True))}
        return {**named, "n": (self.order, None)}

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as Python values, None for NULL."""
        lists = []
        for column, domain in self.columns().values():
            values = column.tolist() if isinstance(column, np.ndarray) else column
            null = None if domain is None or isinstance(domain, Text) else domain.null_code
            lists.append(values if null is None else [None if value == null else value for value in values])
        return list(zip(*lists, strict=True))


_MOST_KNOWN = 512
"""Forms of one public table that are kept: of more the oldest goes."""
_KNOWN: weakref.WeakKeyDictionary[PublicTable, dict[Any, PublicCodes]] = weakref.WeakKeyDictionary()
_LOCK = threading.RLock()


def public_codes(name: str, table: PublicTable, on: Sequence[tuple[Domain, str]], columns: Sequence[str]) -> PublicCodes:
    """The codes of a public table, for keys of the given domains; read once for each table and each set of keys and columns.

    >>> from cloister.tables import Category
    >>> towns = PublicTable({"town": ["Delft", "Gouda", "Delft"], "people": [106_000, 76_000, 1]})
    >>> found = public_codes("towns", towns, [(Category(["Gouda", "Delft"]), "town")], ["people"])
    >>> found.keys[0].tolist(), found.domains[0], found.multiplicity
    ([1, 0, 1], Integer(low=1, high=106000, nullable=False), 2)
    """
    for column in (*(key for _, key in on), *columns):
        if column not in table.names:
            raise UnknownColumn(
                f"The column {column!r} is not known",
                why=f"the public table {name!r} has {', '.join(map(repr, table.names))}",
                instead="one of these names",
            )
    wanted = (tuple((json.dumps(domain.describe()), column) for domain, column in on), tuple(columns))
    with _LOCK:
        known = _KNOWN.setdefault(table, {})
        if wanted not in known:
            if len(known) >= _MOST_KNOWN:
                del known[next(iter(known))]
            known[wanted] = _encode(name, table, on, columns)
        return known[wanted]


def _encode(name: str, table: PublicTable, on: Sequence[tuple[Domain, str]], columns: Sequence[str]) -> PublicCodes:
    needed = list(dict.fromkeys((*(column for _, column in on), *columns)))
    values = dict(zip(needed, read(name, table.source, needed), strict=True))
    texts = bool(table.source.delimiters)
    domains = tuple(
        table.columns[column] if table.columns is not None else domain_of(name, column, values[column], texts=texts)
        for column in columns
    )
    keys = [_mapped(values[column], exact_code, domain) for domain, column in on]
    kept = [place for place, key in enumerate(zip(*keys, strict=True)) if None not in key]
    seen: dict[tuple[Any, ...], int] = {}
    order = np.ones(len(kept), dtype=np.int64)
    for i, place in enumerate(kept):
        key = tuple(column[place] for column in keys)
        order[i] = seen[key] = seen.get(key, 0) + 1
    packed_keys = tuple(_packed(column, kept, domain) for column, (domain, _) in zip(keys, on, strict=True))
    payload = tuple(
        _packed(_mapped(values[column], _code, domain), kept, domain) for column, domain in zip(columns, domains, strict=True)
    )
    key_domains = tuple(domain for domain, _ in on)
    return PublicCodes(
        keys=packed_keys,
        payload=payload,
        order=order,
        key_domains=key_domains,
        domains=domains,
        multiplicity=max(1, int(order.max(initial=0))),
        digest=_digest(packed_keys, payload, (*key_domains, *domains)),
    )


def exact_code(domain: Domain, value: Any) -> Any:
    """The code of the value (the text itself, of a text column) where it is exactly a value of the domain; else None.

    >>> from cloister.tables import Integer, Real
    >>> exact_code(Integer(0, 120), 400), exact_code(Integer(0, 120), "40"), exact_code(Real(0, 1, step="0.1"), 0.3)
    (None, 40, 3)
    """
    if value is None:
        return None
    if isinstance(domain, Text):
        return _code(domain, value)
    code = domain.encode(value)
    if code is None:
        return None
    if domain.kind in NUMERIC:
        number = number_of(value)
        return code if number is not None and domain.origin + code * domain.step == number else None
    if domain.kind == "date":
        days = read_days(value)
        return code if days is not None and domain.decode(code) == EPOCH + datetime.timedelta(days=days) else None
    return code


def _code(domain: Domain, value: Any) -> Any:
    if not isinstance(domain, Text):
        return domain.encode(value)
    if isinstance(domain, Identifier) and isinstance(value, int | float) and not isinstance(value, bool):
        value = spelled(value)
    return value if isinstance(value, str) and representable(value) else None


def _mapped(values: Sequence[Any], code: Callable[[Domain, Any], Any], domain: Domain) -> list[Any]:
    memory: dict[Any, Any] = {}
    found = []
    for value in values:
        key = (type(value), value)
        if key not in memory:
            memory[key] = code(domain, value)
        found.append(memory[key])
    return found


def _packed(codes: Sequence[Any], kept: Sequence[int], domain: Domain) -> Any:
    if isinstance(domain, Text):
        return [codes[place] for place in kept]
    return np.array([domain.null_code if codes[place] is None else codes[place] for place in kept], dtype=np.int64)


def _digest(keys: Sequence[Any], payload: Sequence[Any], domains: Sequence[Domain]) -> str:
    """Of the rows, of what their codes mean, and of which columns are keys."""
    whole = hashlib.sha256(json.dumps([len(keys), [domain.describe() for domain in domains]], default=str).encode())
    for column in (*keys, *payload):
        whole.update(column.tobytes() if isinstance(column, np.ndarray) else json.dumps(column).encode())
    return whole.hexdigest()


def checked(name: str, table: object) -> PublicTable:
    """The table, refused where it is none."""
    if not isinstance(table, PublicTable):
        raise InvalidParameter(
            f"The public table {name!r} is invalid", why=f"it is a {type(table).__name__}", instead="cl.PublicTable(source)"
        )
    return table


@dataclass(frozen=True, init=False)
class PublicJoined(OfOne):
    """Each row with the rows of a public table that have equal values in the pairs of `on` (column, public column).

    `columns` says what is taken from the public table: pairs of (new name, public column). NULL equals nothing; nor does a public
    value that is not exactly a value of the private column's domain.

    Rows of a unit: its rows, each with public rows that follow from it, since the public table is the same in both neighbours: at
    most μ for each, μ being the most public rows of one key, which is public. So at most μ · max_rows; in a table without a unit,
    at most μ rows of one person. With `outer` a row without a partner stays, with NULL in what is looked up: still at most μ, as
    μ is at least 1. The place is (place - 1) · μ + the number of the public row among those of its key.

    >>> from cloister.tables import Base, Category, PrivateTable
    >>> people = Base(name="people", table=PrivateTable({"town": ["Delft"]}, {"town": Category(["Delft", "Gouda"])}))
    >>> towns = PublicTable({"name": ["Delft", "Gouda"], "province": ["ZH", "ZH"]})
    >>> joined = PublicJoined(
    ...     source=people, name="towns", table=towns, on=(("town", "name"),), columns=(("province", "province"),)
    ... )
    >>> joined.column("province"), joined.max_rows
    (Category(['ZH']), None)
    """

    source: Relation
    name: str
    table: PublicTable
    on: tuple[tuple[str, str], ...]
    taken: tuple[tuple[str, str], ...]
    outer: bool

    def __init__(
        self,
        *,
        source: Relation,
        name: str,
        table: PublicTable,
        on: tuple[tuple[str, str], ...],
        columns: tuple[tuple[str, str], ...],
        outer: bool = False,
    ) -> None:
        values = (source, name, checked(name, table), tuple(map(tuple, on)), tuple(map(tuple, columns)), outer)
        for field, value in zip(("source", "name", "table", "on", "taken", "outer"), values, strict=True):
            object.__setattr__(self, field, value)
        if not self.on:
            raise UnsupportedQuery(
                f"The join with {name!r} is not supported",
                why="no column of both is compared",
                instead=f"JOIN {quoted_path(name)} ON town = {quoted_path(name)}.town",
            )
        for column, _ in self.on:
            known(source, column)
        unique([*source.columns, *(new for new, _ in self.taken)])
        bounded(f"The join with {name!r}", self.max_rows or 1, self.span)
        self._check_extent()

    @cached_property
    def codes(self) -> PublicCodes:
        """The public rows in codes: read when they are first needed, once for each public table."""
        keys = [(self.source.columns[column], public) for column, public in self.on]
        return public_codes(self.name, self.table, keys, [public for _, public in self.taken])

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """Those of the source, then what is looked up; this has a group of NULL in an outer join."""
        found = zip(self.taken, self.codes.domains, strict=True)
        return MappingProxyType(
            {**self.source.columns, **{new: with_nullable(domain, self.outer or domain.nullable) for (new, _), domain in found}}
        )

    @cached_property
    def max_rows(self) -> int | None:
        """μ times that of the source; None where a row stays a person."""
        if self.source.max_rows is None:
            return self.codes.multiplicity if self.codes.multiplicity > 1 else None
        return self.source.max_rows * self.codes.multiplicity

    @property
    def span(self) -> int:
        """μ times that of the source."""
        return self.source.span * self.codes.multiplicity

    @property
    def size(self) -> int | None:
        """That of the source, where every row finds one at most and stays."""
        return self.source.size if self.outer and self.codes.multiplicity == 1 else None

    def _variety(self, names: frozenset[str]) -> int:
        """What is looked up follows from what is compared, but for which of the μ public rows of one key it is; NULL throughout
        where there is none."""
        own = names & self.source.columns.keys()
        if own == names:
            return self.source.variety(names)
        return self.source.variety(own | {column for column, _ in self.on}) * self.codes.multiplicity

    def publics(self) -> tuple[str, ...]:
        """This one and those of the source."""
        return tuple(sorted({self.name, *self.source.publics()}))

    def describe(self) -> Any:
        """The source, the public table with a digest of its rows, and what is compared and taken."""
        pairs = [[list(pair) for pair in self.on], [list(pair) for pair in self.taken]]
        return ["looked up", self.source.describe(), self.name, self.codes.digest, *pairs, self.outer]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A join on the codes of the keys."""
        rows, public = self.source.build(sources, dialect).view(), sources["public", self.codes.digest].view()
        names = list(self.source.columns)
        conditions = [rows[f"c{names.index(column)}"] == public[f"k{i}"] for i, (column, _) in enumerate(self.on)]
        joined = (rows.left_join if self.outer else rows.inner_join)(public, conditions)
        codes = {f"c{i}": joined[f"c{i}"] for i in range(len(names))}
        codes |= {f"c{len(names) + i}": joined[f"p{i}"] for i in range(len(self.taken))}
        if self.unit is None:
            return packed(joined, codes, unit=False)
        number = ibis.coalesce(joined.n, 1) if self.outer else joined.n
        return joined.select(**codes, unit=joined.unit, place=(joined.place - 1) * self.codes.multiplicity + number)
