"""How the cells of an upload are written: what its owner says of them after a trial reading, and what that form begins with.

What is said is of one upload, encrypted beside it, and gone with it. When the table opens, its rows are stored again as they are
read so: the declaration has nothing of what was said, nor has anything else that somebody reads.

A guess is made of the cells that the trial reading shows to its owner and of the declaration, which is public, and of nothing
else. It is text in a form: nothing is read by it before the owner sends that form.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue.arrivals import stored, table_in
from cloister.hub.platform.catalogue.sources import table_store_of
from cloister.hub.records.catalogue import Arrival
from cloister.hub.records.owner_views import OwnerView, found_in, view_of
from cloister.hub.storage import DATES, NUMBERS, Reading, missing_in, reader_of
from cloister.hub.web.forms import Form
from cloister.tables.sourcing.preparation import LONGEST_OFFENDER
from cloister.tables.sourcing.reading import read_days, read_number, read_seconds

CELLS = "cells"
"""The kind of the view that holds what was said."""
_BETWEEN = {"numbers": "", "units": ", ", "dates": "", "pivot": "", "missing": ", ", "spellings": "\n"}
"""What may be said of a column, and what stands between two things of a list."""
_ASKED = {
    **dict.fromkeys(("integer", "real"), ("numbers", "units", "missing")),
    **dict.fromkeys(("date", "moment"), ("dates", "pivot", "missing")),
    **dict.fromkeys(("category", "boolean"), ("spellings", "missing")),
}
_MISSING = frozenset(
    """
    na n.a. n/a #n/a nan null nil none - -- --- – — . .. ? missing unknown notknown notavailable noanswer unbekannt fehlt fehlend
    k.a. keineangabe inconnu manquant desconocido sconosciuto onbekend okänd ukendt 未知 不详 无 缺失 空
    """.split()  # noqa: SIM905  (a list of words, to read)
)
_CODES = ("-9", "-99", "-999", "-9999")
_TRUTH = {"true": "ja wahr oui vrai si sí sim tak 是 对", "false": "nein falsch non faux não nie 否 错"}
_UNIT = r"((?:[^\W\d_]|[%‰°$£¥€])(?:[^\W\d_]|[/²³]){0,11})?"
_MEASURED = re.compile(rf"{_UNIT}\s*[+-]?[0-9][0-9., ]*?\s*{_UNIT}")
_MULTIPLES = frozenset("e k tsd mio mrd mln bn thousand million billion 千 万 亿".split())  # noqa: SIM905  (the same)
_APART = re.compile(r"[\s._-]+")


def reading_of(said: Mapping[str, str], start: str = "") -> Reading:
    """How values are written by what is said in fields whose names begin so.

    >>> reading_of({"c0_numbers": "comma", "c0_missing": "NA, -"}, "c0_").missing
    ('NA', '-')
    """
    numbers, dates, pivot, missing, units, spellings = (
        said.get(start + part, "").strip() for part in ("numbers", "dates", "pivot", "missing", "units", "spellings")
    )
    if pivot and not re.fullmatch("[0-9]{1,2}", pivot):
        raise InvalidParameter(
            "The upload is invalid", why="the last two-digit year of the 2000s is not a number from 0 to 99", instead="30"
        )
    pairs = [[part.strip() for part in line.rpartition("=")[::2]] for line in spellings.splitlines() if line.strip()]
    if not all(written and meant for written, meant in pairs):
        raise InvalidParameter(
            "The spellings are invalid",
            why="each line is a text of the file, an equals sign and the declared value",
            instead="f = Female",
        )
    return Reading(
        numbers=numbers if numbers in NUMBERS else "",
        dates=dates if dates in DATES else "",
        pivot=int(pivot) if pivot else None,
        missing=missing_in(missing),
        units=missing_in(units),
        spellings=dict(pairs),
    )


def readings_of(said: Mapping[str, str], columns: Sequence[Sequence[str]]) -> dict[str, Reading]:
    """By column, where something is said of it."""
    starts = {name: f"c{place}_" for place, (name, *_) in enumerate(columns)}
    return {name: reading_of(said, start) for name, start in starts.items() if any(said.get(start + part) for part in _BETWEEN)}


def cells_typed(form: Form, columns: int) -> dict[str, str]:
    """What a form says of so many columns."""
    names = [f"c{place}_{part}" for place in range(columns) for part in _BETWEEN]
    return {name: text.replace("\r\n", "\n") for name in names if (text := form.text(name))}


def cells_said(hub: Hub, db: Db, number: str) -> tuple[str, dict[str, str]]:
    """What is said of the cells of an upload; and a text that is another once something else is said."""
    view = db.scalar(select(OwnerView).where(OwnerView.data_set == number, OwnerView.kind == CELLS))
    return ("", {}) if view is None else (view.id, found_in(hub, view))


def say_cells(hub: Hub, db: Db, caller: Caller, arrival: Arrival, said: Mapping[str, str]) -> None:
    """Keep it, in the place of what was said before; what is wrong with it is told where the cells are read."""
    db.execute(delete(OwnerView).where(OwnerView.data_set == arrival.id, OwnerView.kind == CELLS))
    db.add(view_of(hub, caller.id, arrival.id, CELLS, {}, said))


def cleaned(hub: Hub, arrival: Arrival) -> Arrival:
    """An upload as a table whose rows are as was said; from then on nothing is left to say of it."""
    stored(hub, arrival)
    with hub.database.reading() as db:
        view, said = cells_said(hub, db, arrival.id)
        arrival = db.get(Arrival, arrival.id) or arrival
    table = table_in(arrival)
    if table is None or not view:
        return arrival
    made = table_store_of(hub).respelled(table, readings_of(said, arrival.columns), about=f"arrival {arrival.id}")
    with hub.database.begin() as db:
        found = db.get(Arrival, arrival.id, with_for_update=True)
        mine = found is not None and cells_said(hub, db, arrival.id)[0] == view
        if found is not None and mine:
            found.file, found.key, found.file_digest, found.file_length = made.file, made.wrapped_key, made.digest, made.length
            db.execute(delete(OwnerView).where(OwnerView.id == view))
    table_store_of(hub).destroy(table if mine else made, lambda: None)
    return arrival if found is None else found if mine else cleaned(hub, found)  # each cell is read once, whoever came first


def cells_asked(
    found: Mapping[str, Any],
    declaration: Mapping[str, Any],
    columns: Sequence[Sequence[str]],
    said: Mapping[str, str],
    *,
    stale: bool,
) -> dict[int, dict[str, str]]:
    """What the form asks: by the place of each column of texts that does not fit or of which something is said, what stands in
    its fields: what is said, and a guess of the rest, unless something else was said since."""
    asked: dict[int, dict[str, str]] = {}
    undated = (declaration.get("during") or ("",))[0] if found["rows_undated"] else None
    for place, (name, kind, *_) in enumerate(columns):
        declared, each = declaration["columns"].get(name, {}), found["columns"].get(name)
        parts = _ASKED.get(declared.get("kind", ""), ())
        before = {part: said.get(f"c{place}_{part}", "") for part in parts}
        if kind != "text" or not parts or each is None:
            continue
        if not (each["misfits"] or each.get("doubtful") or any(before.values()) or name == undated):
            continue
        guess = {} if stale else guessed(declared, each)
        for part, text in before.items():
            both = [each for each in (text, guess.get(part, "")) if each]
            before[part] = _BETWEEN[part].join(both) if _BETWEEN[part] else "".join(both[:1])
        asked[place] = before
    return asked


def guessed(declared: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, str]:
    """What a column's cells that do not fit look like. A cell that is cut, or that holds what is not printable, is no hint; where
    two readings differ and nothing tells them apart, none is guessed.

    >>> guessed({"kind": "real", "low": "0", "high": "100"}, {"nulled_values": [["3,5", 2], ["n/a", 1]], "clamped_values": []})
    {'numbers': 'comma', 'missing': 'n/a'}
    >>> female = {"kind": "category", "values": ["Female", "Male"]}
    >>> guessed(female, {"nulled_values": [["f", 2], ["F ", 1], ["x", 1]], "clamped_values": []})
    {'spellings': 'f = Female\\nF = Female'}
    """
    cells = [each.strip() for each, _ in found["nulled_values"] if len(each) <= LONGEST_OFFENDER and "⟨U+" not in each]
    values = _TRUTH if declared["kind"] == "boolean" else {str(each): "" for each in declared.get("values", ())}
    spellings = {each: meant for each in cells if "=" not in each and (meant := _meant(each, values))}
    missing = [each for each in cells if each not in spellings and (not each or "".join(each.casefold().split()) in _MISSING)]
    guess = {"spellings": "\n".join(f"{each} = {meant}" for each, meant in spellings.items())}
    if "low" in declared:
        guess |= _most_likely(declared, [each for each in cells if each not in missing])
        missing += [each for each, _ in found["clamped_values"] if each in _CODES]
    guess["missing"] = ", ".join(dict.fromkeys(each or '""' for each in missing))
    return {part: text for part, text in guess.items() if text}


def _most_likely(declared: Mapping[str, Any], cells: list[str]) -> dict[str, str]:
    """The way of writing that brings most cells within the bounds, the first of those that read the same; where several read
    something else, none but that of a unit alone."""
    kind, low, high = declared["kind"], str(declared["low"]), str(declared["high"])
    if kind in ("integer", "real"):
        named = {
            unit.casefold(): unit for each in reversed(cells) if (found := _MEASURED.fullmatch(each)) for unit in found.groups("")
        }
        named.pop("", None)
        unit = {"units": min(named.values())} if len(named) == 1 and not _MULTIPLES & named.keys() else {}  # two are two measures
        ways = [unit, *({**unit, "numbers": form} for form in NUMBERS[:0:-1])]
        read: Callable[[str], float | None] = read_number
        first, last = float(Fraction(low)), float(Fraction(high))
    else:
        dotted = all("." in each for each in cells if each[:1].isdigit())  # before a point no month comes first
        orders = [{"dates": order} for order in DATES[1:] if order != "mdy" or not dotted]
        first, last = (read_days(end[:10]) or 0 for end in (low, high))
        pivot = {"pivot": high[2:4]} if high.startswith("20") else {}
        ways = [{}, *orders, *({**order, **pivot} for order in orders)]
        read = read_days if kind == "date" else lambda text: None if read_seconds(text) is None else read_days(text)
    results = []
    for way in ways:
        numbers = [read(reader_of(reading_of(way))(each)) for each in cells]
        results.append([number if number is not None and first <= number <= last else None for number in numbers])
    counts = [len(cells) - found.count(None) for found in results]
    best = [place for place, count in enumerate(counts) if count == max(counts)]
    chosen = best[0] if all(results[place] == results[best[0]] for place in best) else 0
    return ways[chosen] if counts[chosen] else {}


def _meant(cell: str, values: Mapping[str, str]) -> str:
    """The one declared value that a cell spells in other capitals, with other blanks, or by its first letters."""
    key = _folded(cell)
    same = [value for value, others in values.items() if key and key in (_folded(value), *others.split())]
    same = same or [value for value in values if key.isalpha() and _folded(value).startswith(key)]
    return same[0] if len(same) == 1 and "\n" not in same[0] and "=" not in same[0] else ""


def _folded(text: str) -> str:
    return _APART.sub("", unicodedata.normalize("NFKC", text).casefold())
