"""The table of columns filled in from elsewhere: from the columns' names, a codebook, another data set, or several at once.

Everything here goes from public to public: names of columns, what somebody wrote about them, declarations. What is filled in is
typed text like any other, and the owner looks at it, and signs that nothing of it was read from the rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue import reading
from cloister.hub.platform.catalogue.sources import table_store_of
from cloister.hub.platform.catalogue.typed import beginning, declared_places, lines_of, places_typed, values_of
from cloister.hub.records.catalogue import Arrival, DataSet, DataSetVersion
from cloister.hub.storage import STATISTICS, HeaderColumn, is_chinese, read_labels
from cloister.hub.web.forms import Form
from cloister.query.words import unheard
from cloister.tables.declaring.codebooks import read_codebook
from cloister.tables.declaring.draft import BOUNDED, Codebook, ColumnDraft, declaration_text, of_declaration
from cloister.tables.declaring.vocabulary import suggest
from cloister.tables.engines.guard import tried

DROP = "-"
"""In the line for several columns: drop them. Nothing there means: leave the kind as it is."""
LONGEST_PASTED = 200_000
_VERSION = " version "
_PARTS = ("kind", "low", "high", "step", "reason")
_REASONED = (*BOUNDED, "category")
_Translate = Callable[..., str]


@dataclass(frozen=True, kw_only=True)
class Filled:
    """What the form holds afterwards, and a sentence about it."""

    typed: dict[str, str]
    said: str


def suggested(columns: Sequence[HeaderColumn], _: _Translate) -> dict[int, ColumnDraft]:
    """What columns of these names usually hold, by their places. A postcode or a diagnosis is a text; a text whose name is not
    known is given to nobody, and stays dropped."""
    found = suggest(each.name for each in columns)
    drafts = {place: found[each.name] for place, each in enumerate(columns) if each.name in found}
    return {
        place: replace(draft, reason=_(draft.reason) if draft.reason else "", about=_(draft.about) if draft.about else "")
        for place, draft in drafts.items()
    }


def with_drafts(typed: Mapping[str, str], drafts: Mapping[int, ColumnDraft]) -> dict[str, str]:
    """The form with these drafts in it; what they do not say stays, where it belongs to the same kind.

    >>> with_drafts({"c0_kind": "integer", "c0_low": "1"}, {0: ColumnDraft(kind="category", values=("F", "M"))})
    {'c0_kind': 'category', 'c0_values': 'F\\nM'}
    """
    found = dict(typed)
    for place, draft in drafts.items():
        start = f"c{place}_"
        if draft.kind and draft.kind != found.get(start + "kind"):
            for part in ("low", "high", "step", "values"):
                found.pop(start + part, None)
        found |= {start + part: getattr(draft, part) for part in _PARTS if getattr(draft, part)}
        if draft.values:
            found[start + "values"] = lines_of(draft.values)
        if draft.nullable:
            found[start + "nullable"] = "yes"
    return found


def typed_so_far(arrival: Arrival, columns: Sequence[HeaderColumn], _: _Translate) -> dict[str, str]:
    """What the form of an upload holds: what was typed, and before that what the columns' names suggest."""
    return arrival.typed or with_drafts(beginning(columns, arrival.shown), suggested(columns, _))


def draft_of(typed: Mapping[str, str], place: int) -> ColumnDraft:
    """What is typed of the column at a place."""
    parts = {part: typed.get(f"c{place}_{part}", "") for part in _PARTS}
    values = tuple(values_of(typed.get(f"c{place}_values", "")))
    return ColumnDraft(**parts, values=values, nullable=typed.get(f"c{place}_nullable") == "yes")  # type: ignore[arg-type]


def declared_by(db: Db, caller: Caller) -> list[str]:
    """The caller's own data sets that declare columns, by name, and their earlier declarations, as `people version 1`: those that
    can be taken over.
    """
    own = select(DataSet).where(DataSet.owner == caller.id, DataSet.public.is_(False), DataSet.state != "deleted")
    rows = db.scalars(own.order_by(DataSet.name))
    named = {row.id: row.name for row in rows if row.declaration.get("columns")}
    wanted = select(DataSetVersion).where(DataSetVersion.data_set.in_(sorted(named))).order_by(DataSetVersion.number.desc())
    earlier = [each for each in db.scalars(wanted) if each.declaration.get("columns")]
    found = list[str]()
    for number, name in named.items():
        found += [name, *(f"{name}{_VERSION}{each.number}" for each in earlier if each.data_set == number)]
    return found


def declared_as(hub: Hub, db: Db, caller: Caller, name: str) -> Mapping[str, Any]:
    """The declaration of a data set that somebody sees, or of an earlier version of one of their own."""
    of, _, number = name.partition(_VERSION)
    if not number:
        return reading.seen(hub, db, caller, name).declaration
    row = reading.owned(hub, db, caller, of)
    wanted = select(DataSetVersion).where(DataSetVersion.data_set == row.id)
    wanted = wanted.where(DataSetVersion.number == (int(number[:9]) if number.isdecimal() else 0))
    version = db.scalar(wanted)
    if version is None or not version.declaration.get("columns"):
        raise InvalidParameter(
            "Nothing was filled in", why="this version has no declaration of its own", instead="a name from the list"
        )
    return version.declaration


def filled(
    hub: Hub, caller: Caller, typed: Mapping[str, str], columns: Sequence[HeaderColumn], form: Form, _: _Translate
) -> Filled:
    """What the button that was pressed fills in."""
    which = form.text("fill")
    if which == "several":
        return _several(typed, columns, form, _)
    if which == "names":
        empty = {place: each for place, each in suggested(columns, _).items() if not typed.get(f"c{place}_kind")}
        return _said(
            typed, {place: each for place, each in empty.items() if each.kind}, columns, _("the names of the columns"), _
        )
    if which == "data-set":
        name = form.text("fill_from", most=100)
        with hub.database.reading() as db:
            book = of_declaration(declared_as(hub, db, caller, name))
        return from_book(typed, columns, book, name, _)
    with unheard():
        book = read_codebook(form.text("codebook", most=LONGEST_PASTED), table=typed.get("name", ""))
    return from_book(typed, columns, book, "", _)


def from_file(
    hub: Hub, typed: Mapping[str, str], columns: Sequence[HeaderColumn], name: str, content: bytes, _: _Translate
) -> Filled:
    """What a codebook in a file fills in; that of a statistics package is read in a process of its own."""
    kind = name.lower().rpartition(".")[2]
    if kind in STATISTICS:
        text = read_labels(content, kind, table_store_of(hub).limits)
    else:
        letters = "gb18030" if is_chinese(content) else "cp1252"
        codes = ("utf-16",) if content.startswith((b"\xff\xfe", b"\xfe\xff")) else ("utf-8-sig", letters)
        texts = (tried(lambda code=code: content.decode(code), UnicodeError) for code in codes)  # type: ignore[misc]
        text = next((each for each in texts if each is not None), "")
    with unheard():
        book = read_codebook(text, table=typed.get("name", ""))
    return from_book(typed, columns, book, name, _)


def from_book(typed: Mapping[str, str], columns: Sequence[HeaderColumn], book: Codebook, source: str, _: _Translate) -> Filled:
    """What a codebook fills in; it is the reason of the bounds that it names no other for."""
    of = book.of(each.name for each in columns)
    because = _("the codebook %(name)s", name=source)[:500] if source else _("the codebook")
    drafts = {}
    for place, column in enumerate(columns):
        draft = of.get(column.name)
        if draft is not None:
            asked = draft.kind in _REASONED and not draft.reason
            drafts[place] = replace(draft, reason=because) if asked else draft
    found = _said(typed, drafts, columns, source or because, _)
    places = {each.name: str(place) for place, each in enumerate(columns)}
    rest = {"max_rows": book.max_rows and str(book.max_rows), "size": book.size and str(book.size)}
    if book.unit in places:
        rest |= {"rows_are": "column", "unit_column": places[book.unit]}
    rest |= places_typed({"columns": book.places, "reasons": {**dict.fromkeys(book.places, because), **book.reasons}}, places)
    missing = sorted({code for draft in of.values() for code in draft.missing})
    said = [found.said, *map(_, book.notes)]
    if missing:
        named = ", ".join(missing[:12])
        said.append(
            _(
                "It names missing values (%(values)s): say them when you upload the file, otherwise they count as values.",
                values=named,
            )
        )
    return Filled(typed=found.typed | {part: text for part, text in rest.items() if text}, said=" ".join(said))


def written(name: str, source: str, columns: Iterable[HeaderColumn], typed: Mapping[str, str]) -> str:
    """What is typed of the columns, as a declarations file; unfinished columns as lines to finish."""
    columns = list(columns)
    drafts = {each.name: draft_of(typed, place) for place, each in enumerate(columns)}
    by_column = typed.get("rows_are") == "column"
    chosen, most, size = (typed.get(part, "") for part in ("unit_column", "max_rows", "size"))
    places, reasons = declared_places(typed, columns)
    book = Codebook(
        columns=drafts,
        places=places,
        reasons=reasons,
        unit=columns[int(chosen)].name if by_column and chosen.isdecimal() and int(chosen) < len(columns) else "",
        max_rows=int(most) if by_column and most.isdecimal() else None,
        size=int(size) if size.isdecimal() else None,
    )
    return declaration_text(name or "people", source or "people.csv", {each.name: each.kind for each in columns}, book)


def _several(typed: Mapping[str, str], columns: Sequence[HeaderColumn], form: Form, _: _Translate) -> Filled:
    places = [place for place in range(len(columns)) if form.get(f"c{place}_tick")]
    if not places:
        raise InvalidParameter("Nothing was filled in", why="no column is ticked", instead="tick columns in the table")
    given = {
        name.removeprefix("all_"): text
        for name in form
        if name.startswith("all_") and (text := form.text(name, most=LONGEST_PASTED))
    }
    kind = given.get("kind", "")
    draft = draft_of({f"c0_{part}": text.replace("\r\n", "\n") for part, text in given.items()}, 0)
    if kind == DROP:
        dropped = {name: text for name, text in typed.items() if name not in {f"c{place}_kind" for place in places}}
        return Filled(typed=dropped, said=_("Filled in: %(count)s columns. Check each of them.", count=len(places)))
    if draft == ColumnDraft():
        raise InvalidParameter(
            "Nothing was filled in", why="the line for several columns is empty", instead="a kind, and its bounds"
        )
    made = with_drafts(typed, dict.fromkeys(places, draft))
    return Filled(typed=made, said=_("Filled in: %(count)s columns. Check each of them.", count=len(places)))


def _said(
    typed: Mapping[str, str], drafts: Mapping[int, ColumnDraft], columns: Sequence[HeaderColumn], source: str, _: _Translate
) -> Filled:
    if not drafts:
        raise InvalidParameter(
            "Nothing was filled in", why="none of these columns is described there", instead="a codebook of this table"
        )
    said = _(
        "Filled in from %(source)s: %(count)s of %(all)s columns. Check each of them.",
        source=source,
        count=len(drafts),
        all=len(columns),
    )
    return Filled(typed=with_drafts(typed, drafts), said=said)
