"""What a synthetic table is for, as sets of columns, and which tables a method measures for it.

All of it follows from public facts: the declared states, the name of the method and what the analyst wrote.
"""

from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal, TypeAlias

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.session import unknown_column
from cloister.session.workloads.marginals import Marginal, cells

Fixed: TypeAlias = Literal["pairs", "triples", "independent", "histogram"]
"""Methods whose tables follow from public facts."""
Adaptive: TypeAlias = Literal["mst", "aim", "mwem", "privbayes"]
"""Methods that choose tables by looking, for a part of the spend (`choosing.py`)."""
Method: TypeAlias = Literal[Fixed, Adaptive]
About: TypeAlias = tuple[Marginal, ...]
"""Sets of columns by their places; one of a single column stands for that column beside each two others."""

MOST_CELLS = 10_000
_MOST_OF_ALL = 100_000
"""Cells of the one table of all columns that a histogram measures."""
_SINGLE = Fraction(5, 100)
"""What part of the spend the tables of one column take where others are measured: these give single columns, too."""
_ALONE = Fraction(30, 100)
"""What part they take at least, over the number of columns: of two or three columns too few pairs hold each."""
_BESIDE_ALL = Fraction(15, 100)
"""The same beside one table of all columns, which says little of a single one."""
_FEW, _SMALL, _EVEN = 8, 5_000, Fraction(1, 2)
"""Of up to so many columns, whose pairs have up to so many cells in all, what part of the spend of all tables of two is divided
evenly among them, and not by their cells."""
_LIGHT = Fraction(1, 3)
_MOST_TRIPLES = 100
_MOST_TIMES = 8
"""How many times its part a table that is asked for may take."""


def about_of(session: Any, table: str, names: Sequence[str], about: Any) -> About:
    """What was written as `about=`: columns, lists of columns, or questions in SQL, whose columns of the table are a set.

    >>> about_of(None, "people", ["age", "sex", "pay"], ["pay", ["sex", "age"]])
    ((2,), (0, 1))
    """
    if about is None:
        return ()
    written = [about] if isinstance(about, str) else about
    if not isinstance(written, Sequence) or not all(isinstance(each, str | Sequence) for each in written):
        raise _refused(about, "it is a list of columns, lists of columns and texts in SQL", names)
    found = []
    for each in written:
        if isinstance(each, str) and each not in names and len(each.split()) > 1:
            chosen = _read(session, table, each, names)
        else:
            chosen = [each] if isinstance(each, str) else list(each)
        unknown = [name for name in chosen if name not in names]
        if unknown:
            raise unknown_column(unknown[0], table, names)
        if not chosen:
            raise _refused(about, "one of its sets has no column", names)
        found.append(tuple(sorted({list(names).index(name) for name in chosen})))
    return tuple(dict.fromkeys(found))


def asked_for(sizes: Sequence[int], about: About) -> list[Marginal]:
    """The pairs and triples, of up to 10⁴ cells, that a workload needs: at most 100 triples, those of the fewest cells.

    >>> asked_for((2, 3, 4, 5000), ((0, 1), (2,)))
    [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    """
    every, found = range(len(sizes)), set()
    for kept in about:
        for order in (2, 3):
            tables = combinations(every, order) if len(kept) == 1 else combinations(kept, order)
            found |= {each for each in tables if set(kept) <= set(each) or len(kept) > 1}
    small = sorted((each for each in found if cells(sizes, each) <= MOST_CELLS), key=lambda each: (len(each), each))
    pairs, triples = ([each for each in small if len(each) == order] for order in (2, 3))
    return pairs + fewest(sizes, triples)


def parts_for(sizes: Sequence[int], method: Fixed, about: About = (), light: Collection[int] = ()) -> dict[Marginal, Fraction]:
    """The tables that a method measures, each with its part of the spend.

    Where there are others, those of one column take 5 % (7.5 % of four columns, 10 % of three, 15 % of two), all the same: each
    is read from all tables that hold its column. Of the rest, tables of two and of three columns have equal parts. Of up to
    eight columns, whose pairs have up to 5,000 cells in all, they have what falls to each: half of it evenly, half in proportion
    to cells^(2/3). With noise of deviation σ in each of c cells a table is off by some c·σ, and of all σ that cost the same ρ,
    Σ 1/σ² = const, those in proportion to c^(-1/3) make Σ c·σ least (Lagrange). The even half keeps every σ within √2 times what
    it would be at equal parts, under ε within twice.
    Large tables are mostly empty, and many columns help to fit each other's: by cells their pairs were no closer in trials, and
    their triples less so.
    Tables that hold a `light` column take a third of that: in trials with a difference of dates other pairs were then hardly off
    by more than without it, and it was as close.
    Tables that are asked for then take half of the spend together where they are few, and each at most eight times its part.

    >>> {kept: round(float(part), 3) for kept, part in parts_for((2, 16, 50), "pairs").items()}
    {(0,): 0.033, (1,): 0.033, (2,): 0.033, (0, 1): 0.188, (0, 2): 0.234, (1, 2): 0.478}
    >>> {kept: str(part) for kept, part in parts_for((2, 2, 2), "pairs", ((0, 1),)).items()}
    {(0,): '1/42', (1,): '1/42', (2,): '1/42', (0, 1): '1/2', (0, 2): '3/14', (1, 2): '3/14'}
    """
    every = range(len(sizes))
    tables: list[Marginal] = [(place,) for place in every]
    if method == "histogram" and len(sizes) > 1:
        if (number := cells(sizes, tuple(every))) > _MOST_OF_ALL:
            raise UnsupportedQuery(
                "The method 'histogram' is not supported for these columns",
                why=f"all of them together have {number:,} cells, and at most {_MOST_OF_ALL:,} are measured",
                instead='method="pairs", or fewer columns=',
            )
        return dict.fromkeys(tables, _BESIDE_ALL / len(sizes)) | {tuple(every): 1 - _BESIDE_ALL}
    if method != "independent":
        tables += [pair for pair in combinations(every, 2) if cells(sizes, pair) <= MOST_CELLS]
    asked = [] if method == "independent" else asked_for(sizes, about)
    tables += [each for each in asked if each not in tables]
    if method == "triples":
        rest = [each for each in combinations(every, 3) if cells(sizes, each) <= MOST_CELLS and each not in asked]
        tables += fewest(sizes, rest, max(_MOST_TRIPLES - sum(len(each) == 3 for each in asked), 0))
    parts = by_cells(sizes, tables)
    if light:
        less = {each: part * (_LIGHT if set(light) & set(each) else 1) for each, part in parts.items()}
        left = sum(less.values())
        parts = {each: part / left for each, part in less.items()}
    mine = sum((parts[each] for each in asked), Fraction(0))
    times = min(max((1 - mine) / mine, Fraction(1)), Fraction(_MOST_TIMES)) if asked else Fraction(1)
    whole = 1 + (times - 1) * mine
    return {each: (times if each in asked else 1) * part / whole for each, part in parts.items()}


def by_cells(sizes: Sequence[int], tables: Sequence[Marginal]) -> dict[Marginal, Fraction]:
    """The parts before anything is asked for."""
    singles = [each for each in tables if len(each) == 1]
    others, small = len(tables) - len(singles), sum(cells(sizes, each) for each in tables if len(each) == 2) <= _SMALL
    flat = _EVEN if len(sizes) <= _FEW and small else Fraction(1)
    single = max(_SINGLE, _ALONE / len(sizes))
    found: dict[Marginal, Fraction] = dict.fromkeys(singles, (single if others else Fraction(1)) / len(singles))
    for order in (2, 3):
        weights = {each: round(cells(sizes, each) ** (2 / 3)) for each in tables if len(each) == order}
        whole, even = sum(weights.values()), (1 - single) / max(others, 1)
        for each, weight in weights.items():
            found[each] = even * (flat + (1 - flat) * Fraction(weight * len(weights), whole))
    return found


def fewest(sizes: Sequence[int], tables: Sequence[Marginal], most: int = _MOST_TRIPLES) -> list[Marginal]:
    """So many of some tables: those of the fewest cells."""
    return sorted(sorted(tables, key=lambda each: cells(sizes, each))[:most])


def _read(session: Any, table: str, text: str, names: Sequence[str]) -> list[str]:
    """The columns of the table that a question in SQL reads."""
    if not hasattr(session, "sql"):
        raise _refused(text, "this session reads no SQL", names)
    touched = session.touched(text)
    if table not in touched:
        raise _refused(text, f"it asks nothing of {table!r}", names)
    return sorted(touched[table])


def _refused(about: Any, why: str, names: Sequence[str]) -> InvalidParameter:
    return InvalidParameter(f"about={about!r} is invalid", why=why, instead=f"about=[{list(names)[:2]!r}]")
