"""Answers as a kind of release: what their page shows, what a program reads, their files.

A file of one has each value with its margin, and where it came from:

- *readable*: values, margins, question, purpose, policy and provenance as JSON, for people and for programs of any kind.
- *json*: the release as `Release.to_json` wrote it, byte for byte: `Release.from_json` gives it back, at any confidence.
- *parquet*: the columns, each measured one followed by its margin; the provenance is JSON in the file's own metadata, under
  "cloister".
- *csv*: a ZIP of release.csv and provenance.json. The table stands alone, so that every program reads it, and no comment line of
  it can be taken for a row, or a question's text in it for a formula. A text that a spreadsheet would compute gets an apostrophe.
- *svg*, *png*: the chart, whole; *map-svg*, *map-png*: the map, where there is one.
- *xlsx*: a workbook of two sheets, the table with its margins and, in the reader's language, where it came from.
"""

import io
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session as Db
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cloister.errors import CloisterError, EngineError, InvalidParameter
from cloister.hub.decisions.facts import facts_of
from cloister.hub.guidance import guidance_of
from cloister.hub.hub import Caller, Hub
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.derived import told_policy
from cloister.hub.releases.kinds import ANSWERS, File, FileKind, ReleaseKind, View
from cloister.hub.services.asking.charts import MOST_ROWS, alt_text, chart_file, chart_pages, fits_file, has_chart, has_hollow
from cloister.hub.services.asking.shapes import answer_bytes, plain
from cloister.hub.services.asking.showing import mechanism_words, name_of, shown
from cloister.hub.spreadsheets import csv_pieces
from cloister.hub.web.formats import guarantee
from cloister.hub.web.languages import N_
from cloister.hub.web.maps import map_of, map_svg, said_beside
from cloister.hub.web.render import is_open
from cloister.hub.work.authorise import sight
from cloister.hub.workbooks import MEDIA_TYPE, Sheet, workbook
from cloister.printable import finite, json_of
from cloister.query.words import statement
from cloister.session import Frame, Provenance, Release
from cloister.session.releases.drawing import svg_png
from cloister.session.releases.frames import Series, null_word
from cloister.session.releases.stored_kinds import BY_FIELDS
from cloister.tables import Place
from cloister.tables.declaring.plain import domain_of
from cloister.tables.engines.connection import connected
from cloister.tables.engines.folder import PrivateFolder
from cloister.tables.expression.names import literal

Form = Literal["csv", "xlsx", "parquet", "readable", "json"]
_FIRST = (1980, 1, 1, 0, 0, 0)
_NARROWEST, _WIDEST = 12, 60
"""Columns of a workbook, in characters."""
_NO_GUARANTEE = N_("none: the noise came from a test's generator")


def download(view: View, form: Form) -> File:
    """The file of a release."""
    row, release, number = view.row, unpacked(view.row), view.row.id
    if form == "json":
        return File(name=f"release-{number}.json", body=row.body)
    origin = provenance_of(row, release, view.confidence)
    if form == "readable":
        return File(name=f"release-{number}-readable.json", body=_readable(release, origin, view.confidence))
    if form == "xlsx":
        return File(name=f"release-{number}.xlsx", body=_workbook(view, release))
    told = json_of(origin, indent=2, sort_keys=True)
    table = with_margins(release, view.confidence)
    if form == "parquet":
        return File(name=f"release-{number}.parquet", body=_parquet(table, told, view.hub.settings.data))
    return File(name=f"release-{number}.zip", body=_zip({"release.csv": _csv(table), "provenance.json": told.encode()}))


def unpacked(row: StoredRelease) -> Release:
    """The release itself."""
    return Release.from_json(row.body.decode())


def with_margins(release: Release, confidence: float) -> Frame:
    """The table of a release, each measured column followed by its margin; an unknown one is not a number.

    >>> from cloister.session.examples import small_release
    >>> with_margins(small_release(), 0.95).column_names
    ['sex', 'count', 'count_margin']
    """
    values, margins, measured = release.table.columns, release.margin(confidence).columns, set(release.statistics())
    found: dict[str, Series] = {}
    for name, series in values.items():
        found[name] = series
        if name in measured:
            told = f"{name}_margin"
            while told in values or told in found:
                told += "_"
            found[told] = Series("real", np.asarray(margins[name].values, dtype=np.float64))
    return Frame(found)


def provenance_of(row: StoredRelease, release: Release, confidence: float) -> dict[str, Any]:
    """Where a release came from and under which promise, ready for JSON: public facts, and the analyst's own words."""
    return {
        **BY_FIELDS[Provenance].told(release.provenance),
        "charges": [str(each) for each in release.provenance.charges],
        "mechanism": list(release.provenance.mechanism),
        "when": datetime.fromtimestamp(release.provenance.when, UTC).isoformat(timespec="seconds"),
        "release": row.id,
        "question": row.sql,
        "purpose": row.purpose,
        "cost": dict(row.cost),
        "guarantee": str(release.cost),
        "confidence_of_margins": confidence,
        "notes": list(release.notes),
        "policy": told_policy(row.policy),
    }


def _readable(release: Release, origin: dict[str, Any], confidence: float) -> bytes:
    """The columns and their margins, and then where they came from; a number that JSON has not is null."""
    margins = release.margin(confidence)
    told = {
        "columns": plain(release.to_pydict()),
        "margins": {name: [finite(float(each)) for each in margins[name].tolist()] for name in release.statistics()},
        **origin,
    }
    return json_of(told, indent=2, allow_nan=False).encode()


def _workbook(view: View, release: Release) -> bytes:
    """Two sheets: the table, each measured column followed by its margin; and what a reader of it must know."""
    row, _, origin = view.row, view.language.gettext, release.provenance
    table, title = with_margins(release, view.confidence), title_of(row, release, _)
    facts = [
        (_("Title"), title),
        (_("Guarantee"), _(_NO_GUARANTEE) if release.marked else guarantee(release.cost).striptags()),
        (_("Margins of error"), _("{share} % confidence, of each cell by itself").format(share=f"{100 * view.confidence:g}")),
        *((_("Note"), _(each)) for each in release.notes),
        (_("Citation"), citation(view, release, title)),
        (_("Query"), row.sql),
        (_("Purpose"), row.purpose),
        (_("Asked by"), origin.who),
        (_("Answered"), datetime.fromtimestamp(origin.when, UTC).strftime("%Y-%m-%d %H:%M UTC")),
        (_("Table"), origin.table),
        (_("Version"), origin.version),
        *((_("Cost for {population}").format(population=name), cost) for name, cost in row.cost.items()),
        (_("Mechanism"), mechanism_words(origin.mechanism, _)),
        (_("Neighbouring relation"), _(origin.neighbours)),
        (_("Digest of the plan"), origin.digest),
        (_("Policy"), json_of(told_policy(row.policy), indent=2)),
    ]
    widths = {place: min(max(len(name) + 2, _NARROWEST), _WIDEST) for place, name in enumerate(table.column_names)}
    rows = _written(table)
    answer = Sheet(name=_("Answer"), head=table.column_names, rows=rows, widths=widths)
    return workbook([answer, Sheet(name=_("Provenance"), rows=[each for each in facts if each[1]], widths={0: 28, 1: 100})])


def _written(table: Frame) -> Iterator[list[Any]]:
    """The rows with a word for what is missing."""
    words = [null_word(series.tolist()) for series in table.columns.values()]
    return ([word if value is None else value for value, word in zip(line, words, strict=True)] for line in table)


def _csv(table: Frame) -> bytes:
    rows = ([None if value != value else value for value in line] for line in _written(table))
    return b"".join(csv_pieces(table.column_names, rows, "\r\n"))


def _zip(files: dict[str, bytes]) -> bytes:
    """The same files are the same bytes."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            entry = zipfile.ZipInfo(name, _FIRST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, body)
    return whole.getvalue()


def _parquet(table: Frame, told: str, folder: Path) -> bytes:
    import duckdb

    with PrivateFolder(folder) as place:
        path = place / "release.parquet"
        try:
            with connected() as connection:
                connection.register("released", table.to_arrow())
                connection.execute(
                    f"COPY released TO {literal(str(path))} (FORMAT parquet, KV_METADATA {{cloister: {literal(told)}}})"
                )
            return path.read_bytes()
        except (duckdb.Error, OSError):
            raise EngineError(
                "The file was not made", why="it could not be written", instead="try again, or the form json"
            ) from None


def map_file(view: View, form: Literal["svg", "png"]) -> File:
    """The map of an answer as a file, with what it does not show in words."""
    row, release, _ = view.row, unpacked(view.row), view.language.gettext
    drawn = map_of(release, view.confidence, _places(view, release))
    if drawn is None:
        why = "a map shows cells of a grid, or declared regions that you may see"
        raise InvalidParameter("The file was not made", why=why, instead="the form csv, which has every row")
    share, cost = f"{100 * view.confidence:g}", guarantee(release.cost).striptags()
    promise = _("Margins of error at {share} % confidence; {cost}.").format(share=share, cost=cost)
    below = [*said_beside(drawn, view.language), *([] if release.marked else [promise])]
    told = map_svg(drawn, title_of(row, release, _), below, view.language)
    return File(name=f"release-{row.id}-map.{form}", body=svg_png(told) if form == "png" else told.encode())


_TYPES: dict[Form, str] = {
    "csv": "application/zip",
    "xlsx": MEDIA_TYPE,
    "parquet": "application/vnd.apache.parquet",
    "readable": "application/json",
    "json": "application/json",
}
FILES: dict[str, FileKind] = {
    **{form: FileKind(media_type=kind, make=partial(download, form=form)) for form, kind in _TYPES.items()},
    "svg": FileKind(media_type="image/svg+xml", make=partial(chart_file, form="svg")),
    "png": FileKind(media_type="image/png", make=partial(chart_file, form="png")),
    "map-svg": FileKind(media_type="image/svg+xml", make=partial(map_file, form="svg")),
    "map-png": FileKind(media_type="image/png", make=partial(map_file, form="png")),
}


CONFIDENCES = ("0.9", "0.95", "0.99")


def confidences(_: Callable[[str], str]) -> list[tuple[str, str]]:
    """What a form offers: each as it is sent, and as it is read."""
    return [(each, _("{share} %").format(share=f"{100 * float(each):g}")) for each in CONFIDENCES]


def _shown(view: View) -> dict[str, Any]:
    """The table, the chart, the guarantee, where it came from."""
    row, release, _ = view.row, unpacked(view.row), view.language.gettext
    rows, name = shown(release, view.confidence, joint=view.joint), title_of(row, release, _)
    drawn = map_of(release, view.confidence, _places(view, release), joint=view.joint)
    return {
        "release": release,
        "rows": rows,
        "mechanism": mechanism_words(release.provenance.mechanism, _),
        "name": name,
        "citation": citation(view, release, name),
        "confidence": f"{view.confidence:g}",
        "confidences": confidences(_),
        "joint": view.joint,
        "chart": has_chart(release),
        "chart_pages": chart_pages(release),
        "chart_fits": fits_file(release),
        "most_rows": MOST_ROWS,
        "hollow": has_chart(release) and has_hollow(release, view.confidence),
        "alt": alt_text(release, view.confidence, _) if has_chart(release) else "",
        "map": drawn,
        "beside": [] if drawn is None else said_beside(drawn, view.language),
        "guidance": guidance_of(release.cost),
        "may_ask": is_open(view.caller, "question.explain"),
    }


def _places(view: View, release: Release) -> list[Place]:
    with view.hub.database.reading() as db:
        return places_of(view.hub, db, view.caller, release)


def places_of(hub: Hub, db: Db, caller: Caller, release: Release) -> list[Place]:
    """The regions of the tables that were asked, where this person may know of them; a declaration is public to those."""
    names = set(release.provenance.table.split(" and "))
    facts = facts_of(hub, db)
    sees = sight(hub, caller, facts)
    seen = [each.id for each in facts.data_sets.values() if each.name in names and sees(each)]
    declared = [row.declaration.get("columns") or {} for row in db.scalars(select(DataSet).where(DataSet.id.in_(seen)))]
    places = [each for columns in declared for each in columns.values() if each.get("kind") == "place" and each.get("regions")]
    return [domain for domain in (domain_of("place", each, table="the table") for each in places) if isinstance(domain, Place)]


def title_of(row: StoredRelease, release: Release, _: Callable[[str], str]) -> str:
    """What an answer is called: as its analyst named it, or by what was asked: the statistics, their keys, and a short
    condition."""
    return row.title or asked(row.sql, _) or name_of(release.provenance.table, shown(release, 0.95, rows=0).columns, _)


def citation(view: View, release: Release, title: str) -> str:
    """How a paper names an answer: who answered, when, what, under which promise, where it is. An answer without a promise has
    none."""
    if release.marked:
        return ""
    settings, _ = view.hub.settings, view.language.gettext
    told = _("{who} ({year}). {title}. Differentially private answer about {table}, {guarantee}, released on {day}. {address}")
    return told.format(
        who=settings.institution or settings.title,
        year=view.row.created.year,
        title=title,
        table=release.provenance.table,
        guarantee=guarantee(release.cost).striptags(),
        day=f"{view.row.created:%Y-%m-%d}",
        address=f"{settings.origin}/releases/{view.row.id}",
    )


ANSWER = ReleaseKind(
    name=ANSWERS,
    path="/releases",
    trail="release",
    missing=N_("There is no such release"),
    list_template="asking/releases.html",
    listed=lambda *_: {"asked": asked},
    template="asking/release.html",
    shown=_shown,
    told=lambda view: answer_bytes(view.row, unpacked(view.row), view.confidence),
    files=FILES,
)


_SHORT = 48
"""Signs of a condition that is shown whole."""
_FEW = 3
"""Statistics that are named."""
_OF_COLUMN: dict[type[exp.Expression], str] = {
    exp.Sum: N_("Sum of {name}"),
    exp.Avg: N_("Mean of {name}"),
    exp.Variance: N_("Variance of {name}"),
    exp.VariancePop: N_("Variance of {name}"),
    exp.Stddev: N_("Standard deviation of {name}"),
    exp.StddevSamp: N_("Standard deviation of {name}"),
    exp.StddevPop: N_("Standard deviation of {name}"),
    exp.Min: N_("Minimum of {name}"),
    exp.Max: N_("Maximum of {name}"),
    exp.Median: N_("Median of {name}"),
    exp.Quantile: N_("Quantile of {name}"),
    exp.ApproxQuantile: N_("Quantile of {name}"),
    exp.Mode: N_("Mode of {name}"),
}
_OF_TWO: dict[type[exp.Expression], str] = {
    exp.Corr: N_("Correlation of {first} and {second}"),
    exp.CovarPop: N_("Covariance of {first} and {second}"),
    exp.CovarSamp: N_("Covariance of {first} and {second}"),
}


def asked(sql: str, _: Callable[[str], str]) -> str:
    """A query in words, and nothing where it is of another form.

    >>> asked("SELECT sex, COUNT(*) AS n, AVG(age) FROM people WHERE age > 40 GROUP BY sex", str)
    'Count of people · Mean of age by sex, where age > 40'
    >>> asked("SELECT COUNT(DISTINCT town) FROM people", str), asked("SELECT 1 - AVG(paid) AS late FROM loans", str)
    ('Count of distinct town', 'late')
    >>> asked("SELECT region(place) AS r, COUNT(*) FROM trips GROUP BY r", str)
    'Count of trips by r'
    >>> asked("a table of a notebook", str)
    ''
    """
    try:
        tree, _options = statement(sql, None)
    except (CloisterError, SqlglotError):
        return ""
    if not isinstance(tree, exp.Select):
        return ""
    group = tree.args.get("group")
    grouped = {key.sql() for key in group.expressions} if group is not None else set()
    named = [each for each in tree.expressions if each.alias not in grouped and each.unalias().sql() not in grouped]
    measured = [each for each in named if each.find(exp.AggFunc, exp.WithinGroup, exp.Anonymous)]
    statistics = list(dict.fromkeys(_statistics(tree, measured, _)))
    if not statistics or not all(statistics):
        return ""
    title = " · ".join(statistics[:_FEW])
    if len(statistics) > _FEW:
        title = _("{statistics} and {count} more").format(statistics=title, count=len(statistics) - _FEW)
    keys = [each.alias_or_name or each.sql() for each in tree.expressions if each not in measured]
    if keys:
        title = _("{statistics} by {keys}").format(statistics=title, keys=", ".join(keys))
    where = tree.args.get("where")
    return _where(title, where, _) if where is not None else title


def _where(title: str, where: exp.Where, _: Callable[[str], str]) -> str:
    condition = where.this.sql()
    if len(condition) > _SHORT:
        return _("{statistics}, with a condition").format(statistics=title)
    return _("{statistics}, where {condition}").format(statistics=title, condition=condition)


def _statistics(tree: exp.Select, measured: list[exp.Expression], _: Callable[[str], str]) -> Iterator[str]:
    """Each statistic by what it is; by the name that the analyst gave it, where it is worked out from several."""
    for each in measured:
        found, only = each.unalias(), None
        if isinstance(found, exp.Filter):
            found, only = found.this, found.expression
        name = _statistic(tree, found, _) or each.alias
        yield _where(name, only, _) if name and only is not None else name


def _statistic(tree: exp.Select, found: exp.Expression, _: Callable[[str], str]) -> str:
    if isinstance(found, exp.Count):
        return _count(tree, found, _)
    if isinstance(found, exp.WithinGroup):
        column = found.expression.find(exp.Column)
        return _("Quantile of {name}").format(name=column.name) if column is not None else ""
    names = [each.name for each in (found.this, found.args.get("expression")) if isinstance(each, exp.Column)]
    if type(found) in _OF_COLUMN and names:
        return _(_OF_COLUMN[type(found)]).format(name=names[0])
    if type(found) in _OF_TWO and len(names) == 2:
        return _(_OF_TWO[type(found)]).format(first=names[0], second=names[1])
    return ""


def _count(tree: exp.Select, found: exp.Count, _: Callable[[str], str]) -> str:
    counted = found.this
    if isinstance(counted, exp.Distinct):
        names = [each.name for each in counted.expressions]
        return _("Count of distinct {name}").format(name=", ".join(names)) if all(names) else ""
    if isinstance(counted, exp.Column):
        return _("Count of {name}").format(name=counted.name)
    source = tree.args.get("from_") or tree.args.get("from")
    table = source.this if source is not None else None
    if isinstance(table, exp.Table) and not tree.args.get("joins"):
        return _("Count of {name}").format(name=table.name)
    return _("Count of rows")
