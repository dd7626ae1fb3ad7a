"""A plan in words, for the owner of a site: what is counted of which rows, as the hub signed it.

The words are made of the request's canonical form, which was read and written again by the site, and whose columns it knows: so
they say what is computed, and nothing else. Columns that the owner declared stand by their names. What a hub may call as it
likes, a computed column, a renamed one, a public table, a text, is quoted wherever it stands, with quotes inside it escaped: no
name can end early and go on as words of the plan. Rows that are made in several steps are numbered, each step once, so that the
words grow with the request and not with how often a column is used.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

from cloister.printable import shown
from cloister.privacy.rational import legible
from cloister.tables.engines.row_sums import RowSums
from cloister.together.plan import shapes_of
from cloister.together.reading_relations import PARTS
from cloister.together.site import Asked

Named: TypeAlias = Callable[[str], str]
_SHOWN = 8
"""Of edges and groups that are named one by one."""
_KINDS = {"rows": "rows", "units": "people", "values": "values of {}", "sum": "the sum of {}"}
_BETWEEN = {"add": "+", "subtract": "−", "multiply": "×", "divide": "/", "modulo": "modulo"}


def words_of(asked: Asked) -> str:
    """A plan in words, for its owner.

    >>> from cloister.noise import DiscreteLaplace
    >>> from cloister.privacy import PureDP
    >>> from cloister.tables import Aggregation, Column, Compare, Literal
    >>> from cloister.tables.engines.noised import Cells, Combination, Integers, NoisedRequest
    >>> rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    >>> old = Aggregation(None, where=Compare(">", Column("age"), Literal(40)))
    >>> request = NoisedRequest(table="people", aggregations=(old,), integers=(rows,), cells=Cells())
    >>> print(words_of(Asked(table="north", cost=PureDP("0.1"), request=request, purpose="a report", who="ada")))
    for 'ada', for the purpose 'a report': 1 number with noise, at a cost of ε = 0.1 to each person here
    counts rows, where age > 40
    """
    request = asked.request
    who, cost = repr(asked.who) if asked.who else "a person who is not named", legible(asked.cost)
    if asked.looks_up:
        of = f" of the table {asked.label!r}" if asked.label else ""
        about = (
            f"for {who}, for the purpose {asked.purpose!r}: opens the public table {asked.looks_up!r}, to look rows{of} up in it"
        )
        told = "tells the hub whether its rows are the hub's; a yes holds for all such plans until it is denied, at no cost"
        return shown(f"{about}\n{told}", lines=True)
    if request.fit is not None:
        return shown("\n".join(_learned(asked, who)), lines=True)
    numbers = sum(prod(shape) for shape in shapes_of(request))
    kind = f"{'number' if numbers == 1 else 'numbers'} with noise{f' of the table {asked.label!r}' if asked.label else ''}"
    lines = [f"for {who}, for the purpose {asked.purpose!r}: {numbers:,} {kind}, at a cost of {cost} to each person here"]
    name: Named = str
    over, steps = "", list[str]()
    if not isinstance(request.table, str):
        name = repr
        over = f", of {_rows(request.table.describe(), steps)}"
        lines += steps
    for each in request.asked:
        told = each.describe()
        counted = sorted({_counted(*aggregate, name=name) for aggregate in told["aggregates"]})
        line = f"counts {', '.join(counted)}"
        if told["keys"]:
            line += f", for each group of {', '.join(_key(key, name) for key in told['keys'])}"
        if told.get("max_rows") is not None:
            line += f", at most {told['max_rows']} rows of a person"
        if told["where"] is not None:
            line += f", where {_condition(told['where'], name)}"
        lines.append(line + over)
    for place, key in enumerate(request.cells.keys if request.cells is not None else (), 1):
        if key.kept is not None:
            lines.append(f"of group {place} {len(key.kept):,} of {key.whole:,} alone: numbers {_some(key.kept)}")
    return shown("\n".join(dict.fromkeys(lines)), lines=True)


_STAGES = {
    "classes": "how many rows each class has",
    "counts": "how many rows there are, and the sum of their counts",
    "lengths": "how many rows are how far from their middle",
    "level": "the mean level of the rows",
    "centre": "the middle of the rows",
    "gradient": "in which direction a step would fit the rows better",
}


def _learned(asked: Asked, who: str) -> Iterable[str]:
    """A step of a descent over rows: what is learned in all, since that is what a yes is for, and what is added up now."""
    fit = asked.request.fit
    assert fit is not None
    names, whole = ", ".join(name for name, _ in fit.features), legible(asked.whole)
    classes, counts = f"tell the {fit.classes} classes of {fit.target}", f"foretell {fit.target}, a count up to {fit.highest:g},"
    yield f"for {who}, for the purpose {asked.purpose!r}: learns, in steps, to {counts if fit.highest else classes}"
    kind, by = ("Poisson", "by") if fit.highest else ("logistic", "apart by")
    yield f"{by} {names}: a {kind} regression of the rows of {f'the table {asked.label!r}' if asked.label else 'this table'}"
    yield f"each step adds up one vector of bounded length for each row, with noise: all steps cost at most {whole} to each"
    yield "person here, and a yes is for all of them under one charge of the hub; the numbers that a step is told change no cost"
    for each in asked.request.integers:
        assert isinstance(each.map, RowSums)
        step = f", step {each.map.step} of {each.map.steps}" if each.map.steps else ""
        yield f"this one{step}: {_STAGES[each.map.stage]}, at a cost of {legible(asked.cost)}"


def _key(key: Sequence[Any], name: Named) -> str:
    """A key in words: a column, or its bins with where they begin."""
    kind, column, *how = key
    if not how:
        return name(column)
    return f"{name(column)} ({kind}: {shown(_some(how[0] if isinstance(how[0], list | tuple) else how))})"


def _some(found: Sequence[Any]) -> str:
    """The first ones by name."""
    return f"{', '.join(map(str, found[:_SHOWN]))}{', …' if len(found) > _SHOWN else ''}"


def _counted(_: str, kind: str, factors: Iterable[Any], present: Iterable[str] = (), *, name: Named) -> str:
    found = _KINDS.get(kind, kind).format(" × ".join(f"({name(each)} − {by})" if by else name(each) for each, by in factors))
    return f"{found} where {' and '.join(map(name, present))} has a value" if present else found


# ── rows that are made of the table's ────────────────────────────────────────────────────────────


def _rows(told: Any, steps: list[str]) -> str:
    """What these rows are called, after the lines that say how they are made."""
    kind, *parts = told
    if kind == "table":
        return "the rows of this table"
    sources = 2 if kind == "joined" else 1
    of = [_rows(each, steps) for each in (parts[0] if kind == "stacked" else parts[:sources])]
    words = f"{' and '.join(of)}, all of them one under another" if kind == "stacked" else _STEPS[kind](*of, *parts[sources:])
    place = f"step {len(steps) + 1}"
    steps.append(f"{place}: {words}")
    return place


def _joined(left: str, right: str, on: Any, outer: Any) -> str:
    return f"{left}, each with those of {right} of the same person{_on(on)}{', and those without any' if outer else ''}"


def _numbered(of: str, kind: str, keys: Any, by: Any, number: str) -> str:
    among = f" with the same {', '.join(map(repr, keys))}" if keys else ""
    order = ", ".join(f"{name!r}{' descending' if down else ''}{', missing first' if first else ''}" for name, down, first in by)
    order = f" by {order}" if by else ""
    return f"{of}, with {number!r} = the {kind} of each among those of its person{among}{order}"


def _followed(of: str, by: str, number: str, previous: Any, rows: int) -> str:
    told = f"{of}, the first {rows} of each person by {by!r}, with their number {number!r}"
    return f"{told} and, of the row before, {_as(previous)}" if previous else told


def _per_unit(of: str, keys: Any, aggregates: Any) -> str:
    told = f"one row for each {' and '.join(['person', *map(repr, keys)])} of {of}"
    made = [f"{name!r} = the {kind}{'' if column is None else f' of {column!r}'}" for name, kind, column in aggregates]
    return f"{told}, with {', '.join(made)}" if made else told


def _looked_up(of: str, name: str, _: str, on: Any, taken: Any, outer: Any) -> str:
    told = f"{of}, each looked up in the public table {name!r}{_on(on)}"
    return f"{told}{f', with {_as(taken)}' if taken else ''}{', and those that are not in it' if outer else ''}"


_STEPS: dict[str, Callable[..., str]] = {
    "extended": lambda of, columns: f"{of}, with {', '.join(f'{name!r} = {_scalar(each)}' for name, each in columns)}",
    "filtered": lambda of, where: f"{of}, those where {_condition(where, repr)}",
    "projected": lambda of, names: f"{of}, as {_as(names)}" if names else f"{of}, without columns",
    "capped": lambda of, rows: f"{of}, at most {rows} of each person",
    "joined": _joined,
    "numbered": _numbered,
    "followed": _followed,
    "per unit": _per_unit,
    "looked up": _looked_up,
}
"""The words of a step, given what the rows are called that it is made of."""


def _on(pairs: Iterable[tuple[str, str]]) -> str:
    found = " and ".join(f"{one!r} = its {other!r}" for one, other in pairs)
    return f" where {found}" if found else ""


def _as(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(repr(old) if new == old else f"{new!r} = its {old!r}" for new, old in pairs)


# ── computed columns and conditions ──────────────────────────────────────────────────────────────


def _scalar(told: Any) -> str:
    """A computed column as a formula, from its canonical form."""
    kind, *parts = told
    if kind == "ref":
        return repr(parts[0])
    if kind == "const":
        return repr(parts[1]) if parts[0] == "text" else _plain(parts[1])
    if kind in _BETWEEN:
        return f" {_BETWEEN[kind]} ".join(f"({_scalar(each)})" if each[0] in _BETWEEN else _scalar(each) for each in parts)
    if kind == "case":
        branches = " ".join(f"when {_condition(where, repr)} then {_scalar(value)}" for where, value in parts[0])
        return f"(case {branches} else {'nothing' if parts[1] is None else _scalar(parts[1])} end)"
    found: list[str] = []
    for part, each in zip(PARTS[kind][1], parts, strict=True):
        if part == "condition":
            found.append(_condition(each, repr))
        elif part == "scalars":
            found += map(_scalar, each)
        else:
            found.append(_scalar(each) if part == "scalar" else repr(each) if part == "text" else _plain(each))
    return f"{kind}({', '.join(found)})"


def _condition(told: Any, name: Named) -> str:
    """A condition as somebody would say it, from its canonical form."""
    kind, *parts = told
    if kind in ("and", "or"):
        return f" {kind} ".join(
            f"({_condition(each, name)})" if each[0] in ("and", "or") else _condition(each, name) for each in parts
        )
    if kind == "compare":
        return f"{_condition(parts[1], name)} {parts[0]} {_condition(parts[2], name)}"
    if kind == "not":
        return f"not ({_condition(parts[0], name)})"
    if kind == "in":
        return f"{name(parts[0])} is one of {', '.join(_condition(each, name) for each in parts[1])}"
    if kind == "null":
        return f"{name(parts[0])} is missing"
    if kind == "like":
        return f"{name(parts[0])} is like {parts[1]!r}"
    return name(parts[0]) if kind == "column" else repr(parts[1]) if parts[0] == "str" else _plain(parts[1])


def _plain(value: Any) -> str:
    """A number, a day or a truth value, which nobody can write words into."""
    return "nothing" if value is None else str(value)
