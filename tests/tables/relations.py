"""What relations mean, in plain Python: rows are dictionaries of codes with `unit` and `place`; and random trees of relations."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from cloister.tables import (
    Base,
    Capped,
    Category,
    Column,
    Compare,
    Domain,
    Extended,
    Filtered,
    Followed,
    Identifier,
    Integer,
    KeyJoined,
    Literal,
    Numbered,
    PerUnit,
    PrivateTable,
    Projected,
    PublicJoined,
    PublicTable,
    Real,
    Related,
    Relation,
    Stacked,
    Text,
    UnitAggregate,
    UnitJoined,
)
from cloister.tables.engines.compiler import CompiledQuery
from cloister.tables.expression.scalar import Ref
from tests.engines import reference

Row = dict[str, Any]
SECRET = "5ec2e7"

VISITS: dict[str, Domain] = {
    "visit": Identifier(),
    "ward": Category(["A", "B"], nullable=True),
    "cost": Integer(-2, 5),
    "note": Text(),
}
TESTS: dict[str, Domain] = {"score": Integer(0, 3), "spot": Category(["B", "C", "A"]), "gain": Real(-1, 1, step="0.5")}
DRUGS: dict[str, Domain] = {"dose": Real("0.5", 2, step="0.5"), "kind": Category(["x", "y"])}
DECLARED: dict[str, tuple[dict[str, Domain], dict[str, Any]]] = {
    "visits": (VISITS, {"unit": "who", "max_rows": 2}),
    "tests": (TESTS, {"unit": "who", "max_rows": 3}),
    "drugs": (DRUGS, {"unit": "visit_of", "max_rows": 2, "through": "visits.visit"}),
}
WARDS = {"name": ["A", "B", "A", "Z", None], "beds": [3, 7, 4, 9, 1], "head": ["Ann", "Bo", None, "Cy", "Di"]}
Data = dict[str, list[Row]]


@st.composite
def data(draw: st.DrawFn) -> Data:
    """Few rows of few units: the names of `visits` are texts, those of `tests` are numbers."""
    keys = st.sampled_from(["v1", "v2", "7", None])
    visit = {
        "who": st.sampled_from(["a", "7", "8", None]),
        "visit": keys,
        "ward": st.sampled_from(["A", "B", "?", None]),
        "cost": st.sampled_from([-9, -2, 0, 1, 5, None]),
        "note": st.sampled_from(["n", "", None]),
    }
    test = {
        "who": st.sampled_from([7, 8, 9, None]),
        "score": st.sampled_from([0, 1, 3, 99, None]),
        "spot": st.sampled_from(["A", "B", "C", None]),
        "gain": st.sampled_from([-1.0, -0.5, 0.26, 1.0, None]),
    }
    drug = {"visit_of": keys, "dose": st.sampled_from([0.5, 1.0, 2.0, None]), "kind": st.sampled_from(["x", "y", None])}
    return {
        "visits": draw(st.lists(st.fixed_dictionaries(visit), max_size=9)),
        "tests": draw(st.lists(st.fixed_dictionaries(test), max_size=9)),
        "drugs": draw(st.lists(st.fixed_dictionaries(drug), max_size=7)),
    }


def columns_of(rows: Sequence[Row], name: str) -> dict[str, list[Any]]:
    """A table as columns, as a source takes it."""
    columns, unit = DECLARED[name]
    return {column: [row[column] for row in rows] for column in dict.fromkeys((unit["unit"], *columns))}


def tables_of(rows: Data) -> dict[str, PrivateTable]:
    """The declared tables."""
    return {name: PrivateTable(columns_of(rows[name], name), columns, **unit) for name, (columns, unit) in DECLARED.items()}


def without(rows: Data, unit: str) -> Data:
    """The neighbour without one unit: its rows, and of the drugs those whose visit nobody else has."""
    visits = [row for row in rows["visits"] if row["who"] != unit]
    others = {row["visit"] for row in visits if row["who"] is not None}
    own = {row["visit"] for row in rows["visits"] if row["who"] == unit}
    return {
        "visits": visits,
        "tests": [row for row in rows["tests"] if str(row["who"]) != unit],
        "drugs": [row for row in rows["drugs"] if row["visit_of"] in others or row["visit_of"] not in own],
    }


def prepared_rows(rows: Data) -> dict[str, list[Row]]:
    """What preparation makes of the rows, each unit by its text."""
    found = {}
    for name, (columns, unit) in DECLARED.items():
        each = reference.prepared(columns, columns_of(rows[name], name), unit["unit"], SECRET)
        found[name] = [{**row, "unit": str(row["unit"])} for row in each]
    return found


Recipe = Callable[[Mapping[str, PrivateTable]], Relation]


@st.composite
def recipes(draw: st.DrawFn, depth: int = 4) -> Recipe:
    """A random tree of relations whose units are persons, as a function of the tables that it stands on."""
    steps = _tree(draw, depth)
    return lambda tables: steps(tables)


def _tree(draw: st.DrawFn, depth: int) -> Recipe:
    if depth == 0 or draw(st.integers(0, 9)) == 0:
        name = draw(st.sampled_from(["visits", "tests"]))
        return lambda tables: Base(name=name, table=tables[name])
    kinds = [
        "filtered",
        "extended",
        "projected",
        "public",
        "joined",
        "through",
        "per unit",
        "capped",
        "followed",
        "numbered",
        "stacked",
    ]
    kind = draw(st.sampled_from(kinds))
    number, flag = draw(st.integers(0, 10**6)), draw(st.booleans())
    inner = _tree(draw, depth - 1)
    if kind == "joined":
        other = _tree(draw, depth - 1)
        return lambda tables: _joined(inner(tables), other(tables), number, flag)
    if kind == "stacked":
        other = _tree(draw, depth - 1)
        return lambda tables: _stacked(inner(tables), other(tables), number)
    if kind == "through":
        return lambda tables: _through(inner(tables), tables["drugs"], tables["visits"], number, flag)
    makers = {
        "filtered": _filtered,
        "extended": _extended,
        "projected": _projected,
        "public": _public,
        "per unit": _per_unit,
        "capped": _capped,
        "followed": _followed,
        "numbered": _numbered,
    }
    return lambda tables: makers[kind](inner(tables), number, flag)


def _fresh(relation: Relation, stem: str) -> str:
    return next(f"{stem}{i}" for i in range(10**6) if f"{stem}{i}" not in relation.columns)


def _pick(relation: Relation, number: int, *kinds: str) -> str | None:
    names = [name for name, domain in relation.columns.items() if not kinds or domain.kind in kinds]
    return names[number % len(names)] if names else None


def _filtered(source: Relation, number: int, flag: bool) -> Relation:
    name = _pick(source, number, "integer", "real")
    if name is None:
        return source
    middle = value_of(source.columns[name], (source.columns[name].low_code + source.columns[name].high_code) // 2)
    return Filtered(source=source, where=Compare("<=" if flag else ">", Column(name), Literal(middle)))


def _extended(source: Relation, number: int, flag: bool) -> Relation:
    name = _pick(source, number)
    return source if name is None else Extended(source=source, scalars=((_fresh(source, "e"), Ref(name)),))


def _projected(source: Relation, number: int, flag: bool) -> Relation:
    names = [name for i, name in enumerate(source.columns) if number >> (i % 20) & 1 or flag]
    return Projected(source=source, names=tuple((f"p{i}", name) for i, name in enumerate(reversed(names))))


def _public(source: Relation, number: int, flag: bool) -> Relation:
    name = _pick(source, number, "category")
    if name is None or (source.max_rows or 1) > 100:
        return source
    beds, head = _fresh(source, "beds"), _fresh(source, "head")
    return PublicJoined(
        source=source, name="wards", table=WARDS_TABLE, on=((name, "name"),), columns=((beds, "beds"), (head, "head")), outer=flag
    )


def _renamed(right: Relation, left: Relation) -> Relation:
    return Projected(source=right, names=tuple((_fresh(left, f"{name}_"), name) for name in list(right.columns)[:4]))


def _joined(left: Relation, right: Relation, number: int, flag: bool) -> Relation:
    right = _renamed(right, left)
    pairs = [
        (one, other)
        for one, mine in left.columns.items()
        for other, theirs in right.columns.items()
        if {mine.kind, theirs.kind} <= {"integer", "real"} or mine.kind == theirs.kind == "category"
    ]
    on = (pairs[number % len(pairs)],) if pairs and number % 3 else ()
    if (left.max_rows or 1) * (right.max_rows or 1) > 300:
        return left
    return UnitJoined(left=left, right=right, on=on, outer=flag, full=flag and number % 2 == 1)


def _through(right: Relation, drugs: PrivateTable, visits: PrivateTable, number: int, flag: bool) -> Relation:
    key = next((name for name, domain in right.columns.items() if isinstance(domain, Identifier)), None)
    if key is None:
        right, key = Base(name="visits", table=visits), "visit"
    left: Relation = Base(name="drugs", table=drugs)
    if number % 2:
        total = UnitAggregate(name="total", kind="sum", column="dose")
        left = PerUnit(source=left, keys=("kind",) if number % 4 == 1 else (), aggregates=(total,))
    left = _renamed(left, right)
    if (left.max_rows or 1) * (right.max_rows or 1) > 300:
        return right
    return KeyJoined(left=left, right=right, left_key="visit_of", right_key=key, outer=flag)


def _per_unit(source: Relation, number: int, flag: bool) -> Relation:
    keys = tuple(dict.fromkeys(name for name in (_pick(source, number), _pick(source, number // 7)) if name is not None))
    aggregates = [UnitAggregate(name=_fresh(source, "n"), kind="count")]
    numeric, any_ = _pick(source, number // 3, "integer", "real"), _pick(source, number // 5)
    if numeric is not None:
        aggregates += [
            UnitAggregate(name=_fresh(source, kind), kind=kind, column=numeric)  # type: ignore[arg-type]
            for kind in ("sum", "mean", "min", "max")
        ]
    if any_ is not None:
        aggregates += [
            UnitAggregate(name=_fresh(source, kind), kind=kind, column=any_)  # type: ignore[arg-type]
            for kind in ("values", "distinct")
        ]
    return PerUnit(source=source, keys=keys if flag else keys[: number % 2], aggregates=tuple(aggregates))


def _capped(source: Relation, number: int, flag: bool) -> Relation:
    return Capped(source=source, rows=1 + number % 3)


def _followed(source: Relation, number: int, flag: bool) -> Relation:
    by = _pick(source, number, "integer", "real", "date", "category")
    if by is None:
        return source
    previous = ((_fresh(source, "before"), by),) if flag else ()
    return Followed(source=source, by=by, number=_fresh(source, "number"), previous=previous, rows=1 + number % 4)


def _numbered(source: Relation, number: int, flag: bool) -> Relation:
    by, key = _pick(source, number, "integer", "real", "date", "category"), _pick(source, number // 3, "category")
    domain = None if by is None else source.columns[by]
    if by is None or source.unit is None or (isinstance(domain, Category) and list(domain.options) != sorted(domain.options)):
        return source  # such a list has another order than its texts, and is refused
    keys = (key,) if key is not None and number % 2 else ()
    kind: Any = ("row_number", "rank", "dense_rank")[number % 3]
    name = _fresh(source, "number")
    found = Numbered(source=source, by=((by, flag, not flag),), keys=keys, number=name, kind=kind)
    return found if number % 5 == 0 else Filtered(source=found, where=Compare("<=", Column(name), Literal(1 + number % 2)))


def _stacked(first: Relation, second: Relation, number: int) -> Relation:
    """Columns of like kind under one another, as many as there are."""
    pairs, used = [], set()
    for one, mine in first.columns.items():
        for other, theirs in second.columns.items():
            like = {mine.kind, theirs.kind} <= {"integer", "real"} or (mine.kind == theirs.kind and type(mine) is type(theirs))
            if like and other not in used:
                pairs.append((one, other))
                used.add(other)
                break
    one_side = Projected(source=first, names=tuple((f"s{i}", one) for i, (one, _) in enumerate(pairs)))
    other_side = Projected(source=second, names=tuple((f"s{i}", other) for i, (_, other) in reversed(list(enumerate(pairs)))))
    return Stacked(sources=(one_side, other_side) if number % 3 else (one_side, other_side, one_side))


WARDS_TABLE = PublicTable(WARDS)


def value_of(domain: Domain, code: Any) -> Any:
    """The exact value of a code."""
    if code is None or isinstance(domain, Text):
        return code
    return domain.origin + code * domain.step if domain.kind in ("integer", "real") else domain.decode(code)


def code_of(domain: Domain, value: Any) -> Any:
    """The code of an exact value of the domain."""
    if value is None or isinstance(domain, Text):
        return value
    if domain.kind in ("integer", "real"):
        code = (value - domain.origin) / domain.step
        assert code.denominator == 1
        assert domain.low_code <= code <= domain.high_code
        return int(code)
    code = domain.encode(value)
    assert code is not None
    return code


def meaning(relation: Relation, tables: Mapping[str, list[Row]]) -> list[Row]:
    """The rows of a relation."""
    match relation:
        case Base(name=name):
            return [row for row in tables[name] if relation.max_rows is None or row["place"] <= relation.max_rows]
        case Filtered(source=source, where=where):
            return [row for row in meaning(source, tables) if reference.truth(where, source.columns, row) is True]
        case Extended(source=source, scalars=scalars):
            return [{**row, **{name: row[scalar.name] for name, scalar in scalars}} for row in meaning(source, tables)]
        case Projected(source=source, names=names):
            return [{**_marks(row), **{new: row[old] for new, old in names}} for row in meaning(source, tables)]
        case Capped(source=source, rows=rows):
            found = []
            for its in by_unit(meaning(source, tables)).values():
                kept = sorted(its, key=lambda row: row["place"])[:rows]
                found += [{**row, "place": place} for place, row in enumerate(kept, start=1)]
            return found
        case Followed(source=source, by=by, number=number, previous=previous, rows=most):
            found = []
            for its in by_unit(meaning(source, tables)).values():
                placed = sorted(its, key=lambda row: (row[by] is None, 0 if row[by] is None else row[by], row["place"]))
                for place, (row, before) in enumerate(zip(placed[:most], [None, *placed], strict=False), start=1):
                    told = {new: None if before is None else before[old] for new, old in previous}
                    found.append({**row, number: code_of(relation.columns[number], Fraction(place)), **told, "place": place})
            return found
        case Numbered():
            return _numbers(relation, meaning(relation.source, tables))
        case Stacked(sources=sources):
            return [
                {
                    **{
                        name: code_of(domain, value_of(source.columns[name], row[name]))
                        for name, domain in relation.columns.items()
                    },
                    **_marks(row, lambda place, number=number: (place - 1) * len(sources) + number),
                }
                for number, source in enumerate(sources, start=1)
                for row in meaning(source, tables)
            ]
        case PerUnit():
            return _per_unit_rows(relation, meaning(relation.source, tables))
        case PublicJoined():
            return _looked_up(relation, meaning(relation.source, tables))
        case UnitJoined(left=left, right=right, on=on, outer=outer, full=full):
            mine_, rows = meaning(left, tables), meaning(right, tables)

            def fits(mine: Row, theirs: Row) -> bool:
                pairs = [(value_of(left.columns[a], mine[a]), value_of(right.columns[b], theirs[b])) for a, b in on]
                return mine["unit"] == theirs["unit"] and all(a is not None and a == b for a, b in pairs)

            behind = left.span * right.span
            alone = [each for each in rows if full and not any(fits(mine, each) for mine in mine_)]
            return _paired(mine_, rows, fits, right, outer) + [
                {**dict.fromkeys(left.columns), **each, "place": behind + each["place"]} for each in alone
            ]
        case KeyJoined(left=left, right=right, right_key=key, outer=outer):
            return _paired(
                meaning(right, tables), meaning(left, tables), lambda mine, theirs: mine[key] == theirs["unit"], left, outer
            )
    raise AssertionError(relation)


def _numbers(relation: Numbered, rows: list[Row]) -> list[Row]:
    def before(one: Row, other: Row) -> bool:
        """Whether `one` comes before `other` in the order, places left aside."""
        for name, down, first in relation.by:
            mine, theirs = one[name], other[name]
            if mine == theirs:
                continue
            if mine is None or theirs is None:
                return (mine is None) == first
            return bool(mine > theirs) if down else bool(mine < theirs)
        return False

    found = []
    for its in by_unit(rows).values():
        for row in its:
            alike = [each for each in its if all(each[key] == row[key] for key in relation.keys)]
            earlier = [each for each in alike if before(each, row)]
            number = 1 + len(earlier)
            if relation.kind == "row_number":
                number += sum(not before(row, each) and not before(each, row) and each["place"] < row["place"] for each in alike)
            if relation.kind == "dense_rank":
                number = 1 + len({tuple(each[name] for name, _, _ in relation.by) for each in earlier})
            found.append({**row, relation.number: code_of(relation.columns[relation.number], Fraction(number))})
    return found


def _marks(row: Row, place: Callable[[int], int] = lambda place: place) -> Row:
    return {"unit": row["unit"], "place": place(row["place"])} if "unit" in row else {}


def by_unit(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each unit."""
    found = defaultdict(list)
    for row in rows:
        found[row["unit"]].append(row)
    return dict(found)


def _paired(rows: list[Row], others: list[Row], fits: Callable[[Row, Row], bool], other: Relation, outer: bool) -> list[Row]:
    found = []
    for row in rows:
        partners = [each for each in others if fits(row, each)]
        if not partners and outer:
            partners = [{**dict.fromkeys(other.columns), "unit": None, "place": 1}]
        found += [{**each, **row, "place": (row["place"] - 1) * other.span + each["place"]} for each in partners]
    return found


def _looked_up(relation: PublicJoined, rows: list[Row]) -> list[Row]:
    [(name, key)], found = relation.on, []
    for row in rows:
        value = value_of(relation.source.columns[name], row[name])
        places = [i for i, other in enumerate(WARDS[key]) if value is not None and other == value]
        taken = [
            {new: code_of(relation.columns[new], WARDS[public][i]) for new, public in relation.taken} | {"n": n}
            for n, i in enumerate(places, start=1)
        ]
        if not taken and relation.outer:
            taken = [{**{new: None for new, _ in relation.taken}, "n": 1}]
        for each in taken:
            joined = {**row, **{new: each[new] for new, _ in relation.taken}}
            found.append({**joined, **_marks(row, lambda place, n=each["n"]: (place - 1) * relation.codes.multiplicity + n)})
    return found


def _per_unit_rows(relation: PerUnit, rows: list[Row]) -> list[Row]:
    groups = defaultdict(list)
    for row in rows:
        if all(row[name] is not None or relation.source.columns[name].nullable for name in relation.keys):
            groups[(row["unit"], *(row[name] for name in relation.keys))].append(row)
    found = []
    for (unit, *keys), its in groups.items():
        place = min(row["place"] for row in its) if relation.max_rows > 1 else 1
        derived = {"unit": unit, "place": place, **dict(zip(relation.keys, keys, strict=True))}
        for each in relation.aggregates:
            derived[each.name] = _aggregate(each, its, relation)
        found.append(derived)
    return found


def _aggregate(each: UnitAggregate, rows: list[Row], relation: PerUnit) -> Any:
    target = relation.columns[each.name]
    if each.column is None:
        return code_of(target, Fraction(len(rows)))
    domain = relation.source.columns[each.column]
    values = [value_of(domain, row[each.column]) for row in rows if row[each.column] is not None]
    if each.kind == "values":
        return code_of(target, Fraction(len(values)))
    if each.kind == "distinct":
        return code_of(target, Fraction(len(set(values))))
    if not values:
        return None
    if each.kind == "mean":
        mean = Fraction(sum(values), 1) / len(values)
        return math.floor((mean - target.origin) / target.step + Fraction(1, 2))
    return code_of(target, {"sum": sum, "min": min, "max": max}[each.kind](values))


def everything(related: Related) -> list[Row]:
    """Every row with all of its columns, its unit and its place, as the engine has them."""
    names = list(related.declaration.columns)
    table = related.layout.rows(related.dialect)
    wanted = [f"c{i}" for i in range(len(names))] + (["unit", "place"] if related.declaration.unit is not None else [])
    chosen = table.select(*wanted) if wanted else table
    found = related._fetch(CompiledQuery(related.layout.written(chosen, related.dialect), ()))
    keys = [*names, "unit", "place"][: len(wanted)]
    return [dict(zip(keys, map(plain, row), strict=False)) for row in zip(*(items(column) for column in found), strict=True)]


def items(column: Any) -> Sequence[Any]:
    return column.tolist() if hasattr(column, "tolist") else column


def plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value


def as_bag(rows: Sequence[Row]) -> list[str]:
    """Rows in an order of their own, so that two lists of the same rows are equal."""
    return sorted(repr(sorted({**row, "unit": str(row["unit"])}.items() if "unit" in row else row.items())) for row in rows)


def check_bounds(relation: Relation, rows: Sequence[Row]) -> None:
    """What the noise relies on: how many rows, which places, which codes."""
    names = list(relation.columns)
    chosen_ones = [(), *((name,) for name in names), *itertools.combinations(names[:4], 2), tuple(names)]
    varieties = {chosen: relation.variety(frozenset(chosen)) for chosen in chosen_ones}
    apart = [chosen for chosen in chosen_ones if relation.tells_apart(frozenset(chosen))]
    for its in by_unit([{**row, "unit": str(row["unit"])} for row in rows]).values():
        assert len(its) <= (relation.max_rows or 1)
        places = [row["place"] for row in its]
        assert len(set(places)) == len(places)
        assert 1 <= min(places) <= max(places) <= relation.span
        for chosen, most in varieties.items():
            assert len({tuple(row[name] for name in chosen) for row in its}) <= most, chosen
        for chosen in apart:
            full = [tuple(row[name] for name in chosen) for row in its if all(row[name] is not None for name in chosen)]
            assert len(set(full)) == len(full), chosen
        for number, (keys, low, high) in relation.numbered().items():
            assert len({tuple(row[name] for name in (number, *keys)) for row in its}) == len(its), number
            assert all(row[number] is not None and low <= row[number] <= high for row in its), number
    for name, domain in relation.columns.items():
        for row in rows:
            if row[name] is not None and not isinstance(domain, Text):
                assert domain.low_code <= row[name] <= domain.high_code, name
