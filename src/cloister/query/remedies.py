"""The line to write instead, in the analyst's own tables and columns.

Refusals are written where they are raised, about the tables of the SQL reference: `people` (age, sex, born, …) and `visits`,
whose unit is `patient`; `x` stands for any number. Before a refusal leaves, each of these names that the analyst does not have
becomes one of the same kind that the asked table declares. Where it declares none, the line is a question that it does answer.
Only declarations are read here, and they are public.

>>> import cloister as cl
>>> staff = cl.PrivateTable({"pay": [1], "rank": ["a"]}, {"pay": cl.Integer(0, 9), "rank": cl.Category(["a", "b"])})
>>> words = Words.of("SELECT rank FROM staff", {"staff": staff}, None)
>>> words.line("SUM(age) FILTER (WHERE sex = 'F')"), words.line("EXTRACT(MONTH FROM born)")
("SUM(pay) FILTER (WHERE rank = 'a')", 'SELECT rank, COUNT(*) AS n FROM staff GROUP BY rank')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from sqlglot import exp

from cloister.errors import CloisterError
from cloister.privacy import text_of
from cloister.query.dialect import DIALECTS, canonical, dialect_named
from cloister.query.refusals import EXAMPLE
from cloister.query.sources import Tables
from cloister.query.words import statement, unheard
from cloister.tables import Category, Date, Integer, PrivateTable, PublicTable, Real
from cloister.tables.expression.names import alias, needs_quotes

_NUMBERS = frozenset({"age", "pay", "cost", "fee", "hours", "x", "y", "column", "expression", "numerator", "divisor"})
_KEYS = frozenset({"sex", "educ", "ward", "town"})
_DATES = frozenset({"born", "later", "earlier"})
_ROLES = {
    **dict.fromkeys(_NUMBERS, "numbers"),
    **dict.fromkeys(_KEYS, "keys"),
    **dict.fromkeys(_DATES, "dates"),
    "smoker": "truths",
    "place": "places",
    "at": "moments",
    "patient": "units",
    "people": "table",
    "patients": "owned",
    "visits": "owned",
    "towns": "public",
}
_VALUES = {"low": "0", "high": "100"}
_PIECE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|(?<![\w.])cl\.\w+|\b[A-Za-z_]\w*\b(?!\s*\()|\b[A-Za-z_]\w*\b")
_PROSE = re.compile(r"\b(the|a|an|each|two|another|fewer|from|read|one|both|all|columns?) [a-z]+\b(?! *[(.])")
_OUTSIDE = re.compile(r"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`)|[^'\"`]+")
_WIDE = str.maketrans("（），；．＝＜＞＊＋－／％！　“”‘’０１２３４５６７８９", "(),;.=<>*+-/%! ''''0123456789")
_STATISTIC = re.compile(r"\b(Binned|Constant|Count|Mode|Named|Variance)\((?:column=)?\"?([^\"]*).*\)|kind='\w+'")
"""What the plan of a question calls a statistic or a key in Python."""
_MOST_GROUPS = 100
_MOST_BARE = 8


class _Lacking(Exception):
    """The asked table declares no column of a kind."""


def with_plain_signs(sql: str) -> str:
    """The query with the signs of SQL in place of those that a Chinese keyboard writes, outside of quotes.

    >>> with_plain_signs("SELECT sex，COUNT（*） FROM people WHERE town = “北京”；")
    "SELECT sex,COUNT(*) FROM people WHERE town = '北京';"
    """
    return _OUTSIDE.sub(lambda found: found[1] or found[0].translate(_WIDE), sql)


@dataclass(frozen=True, kw_only=True)
class Words:
    """What a line may be written with."""

    table: str | None = None
    columns: frozenset[str] = frozenset()
    """Everything that the asked tables call their own: it stays as it is."""
    owned: str | None = None
    """The table, where its rows belong to units."""
    shared: tuple[str, ...] = ()
    """The columns that the public table has, too."""
    other: Words | None = None
    """The same of another table that the text names, whose rows belong to units."""
    public: str | None = None
    units: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    truths: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    moments: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The texts that a key may be."""
    dialect: str | None = None

    @classmethod
    def of(cls, sql: str, tables: Tables, dialect: str | None) -> Words:
        """Those of the tables that a text names, or of the first private one."""
        written = sql.lower() if isinstance(sql, str) else ""
        named = [name for name in tables if re.search(rf"(?<!\w){re.escape(name.lower().rpartition('.')[2])}(?!\w)", written)]
        private = [name for name in (*named, *tables) if isinstance(tables[name], PrivateTable)]
        public = next((name for name in (*named, *tables) if isinstance(tables[name], PublicTable)), None)
        if not private:
            return cls(public=public, dialect=dialect)
        units = [each for each in dict.fromkeys(private) if each in named and getattr(tables[each], "unit", None) is not None]
        first = cls._about(private[0], tables, named, public, dialect)
        if not units or units[-1] == private[0]:
            return first
        return replace(first, other=cls._about(units[-1], tables, named, public, dialect))

    @classmethod
    def _about(cls, name: str, tables: Tables, named: Sequence[str], public: str | None, dialect: str | None) -> Words:
        table = tables[name]
        assert isinstance(table, PrivateTable)
        mine = {column: domain for column, domain in table.columns.items() if column != table.unit}
        kinds = {column: domain.kind for column, domain in mine.items()}
        short = [column for column, domain in mine.items() if domain.size is not None and domain.size <= _MOST_GROUPS]
        texts = {
            column: tuple(str(option) for option in domain.options)
            for column, domain in mine.items()
            if isinstance(domain, Category) and isinstance(domain.options[0], str)
        }
        own = frozenset(each for known in named for each in (known, *_names(tables[known]))) | {name, *_names(table)}
        return cls(
            table=name,
            columns=own,
            owned=name if table.unit is not None else None,
            public=public,
            shared=() if public is None else tuple(column for column in mine if column in _names(tables[public])),
            units=(table.unit,) if table.unit is not None else (),
            numbers=tuple(column for column, kind in kinds.items() if kind in ("integer", "real")),
            keys=(*texts, *(column for column in short if column not in texts)),
            dates=tuple(column for column, kind in kinds.items() if kind == "date"),
            truths=tuple(column for column, kind in kinds.items() if kind == "boolean"),
            places=tuple(column for column, kind in kinds.items() if kind == "place"),
            moments=tuple(column for column, kind in kinds.items() if kind == "moment"),
            options=texts,
            dialect=dialect,
        )

    def example(self) -> str:
        """A question that the asked table answers."""
        if self.table is None:
            instead = "a question about a private table"
            return instead  # noqa: RET504  (by this name it is found among the texts to translate)
        key = self._spelled(self.keys[0]) if self.keys else ""
        grouped = f" GROUP BY {key}" if key else ""
        count = f"COUNT(*) AS {alias('n', self.columns)}"
        return f"SELECT {f'{key}, ' if key else ''}{count} FROM {self._spelled(self.table)}{grouped}"  # noqa: S608

    def line(self, remedy: str) -> str:
        """The remedy with the analyst's names instead of ours."""
        if remedy == EXAMPLE:
            return self.example()
        if _PROSE.search(remedy) or "cl." in remedy:
            return remedy
        if self.other is not None and re.search(r"\bvisits\b", remedy):
            return self.other.line(remedy)
        taken: dict[str, str] = {}
        last = ""

        def put(found: re.Match[str]) -> str:
            nonlocal last
            piece = found[0]
            if piece[0] == "'":
                return self._value(piece, last)
            if piece[0] == '"' and (name := piece[1:-1].replace('""', '"')) in self.columns:
                return str(exp.to_identifier(name, quoted=True).sql(dialect=dialect_named(self.dialect)))
            if piece in self.columns or piece not in _ROLES or re.match(r"\s*\(", remedy[found.end() :]):
                last = piece if piece in self.columns else last
                return _VALUES.get(piece, piece) if piece not in self.columns else piece
            with_public = "JOIN" in remedy or "FROM towns" in remedy
            role = "shared" if piece in _KEYS and with_public else _ROLES[piece]
            taken[piece] = last = taken.get(piece) or self._name(role, taken.values())
            return self._spelled(last)

        try:
            return _PIECE.sub(put, remedy)
        except _Lacking:
            return self.example()

    def _name(self, role: str, taken: Iterable[str]) -> str:
        """A name of that kind, another than those that are in the line where there is one."""
        found = getattr(self, role)
        names = (found,) if isinstance(found, str) else found or ()
        if not names:
            raise _Lacking
        used = set(taken)
        return next((name for name in names if name not in used), names[0])

    def _value(self, text: str, column: str) -> str:
        """A constant beside a key of ours: a text that this key may be."""
        options = self.options.get(column)
        if column not in self.keys or text[1:-1] not in ("F", "M", "D%", "d%", "A%"):
            return text
        if options is None:
            raise _Lacking
        chosen = options[1] if text == "'M'" and len(options) > 1 else options[0]
        if text.endswith("%'"):
            chosen = f"{chosen[:1].lower() if text[1] == 'd' else chosen[:1]}%"
        return str(exp.Literal.string(chosen).sql(dialect=dialect_named(self.dialect)))

    def _spelled(self, name: str) -> str:
        dialect = dialect_named(self.dialect)
        parts = name.split(".") if name == self.table or name in (self.owned, self.public) else [name]
        return ".".join(
            exp.to_identifier(part, quoted=needs_quotes(part, canonical(self.dialect) or "")).sql(dialect=dialect)
            for part in parts
        )


def _names(table: PrivateTable | PublicTable) -> tuple[str, ...]:
    if isinstance(table, PublicTable):
        return table.names
    return (*table.columns, *(() if table.unit is None else (table.unit,)))


def without_quotes(
    sql: str, tables: Tables, dialect: str | None, reads: Callable[[str, Tables, str | None], bool] | None = None
) -> list[str]:
    """Declared columns that stand in a text without the quotes that they need: with these it can be read, as `reads` says.

    >>> import cloister as cl
    >>> staff = cl.PrivateTable({"Alter": [1]}, {"Alter": cl.Integer(0, 9)})
    >>> without_quotes("SELECT AVG(Alter) FROM staff", {"staff": staff}, None)
    ['Alter']
    """
    if not isinstance(sql, str) or (canonical(dialect) or "ansi") not in DIALECTS:
        return []
    declared = {name for table in tables.values() for name in _names(table)}
    known = {each.lower(): each for each in declared if needs_quotes(each.lower(), canonical(dialect) or "")}
    longest_first = sorted(known.values(), key=len, reverse=True)
    for flags in (0, re.IGNORECASE) if known else ():  # first as declared: a keyword that is one often has other letters
        bare = re.compile(rf"'[^']*'|\"[^\"]*\"|`[^`]*`|(?<!\w)({'|'.join(map(re.escape, longest_first))})(?!\w)", flags)
        found = list(dict.fromkeys(known[each.lower()] for each in bare.findall(sql) if each))[:_MOST_BARE]
        for names in [*([each] for each in found), found, [each for each in found if not each.isidentifier()]]:
            put = partial(_with_quotes, known, names, dialect)
            if names and (reads or _can_be_read)(bare.sub(put, sql), tables, dialect):
                return names
    return []


def _with_quotes(known: Mapping[str, str], names: Sequence[str], dialect: str | None, found: re.Match[str]) -> str:
    name = known[found[1].lower()] if found[1] else ""
    return str(exp.to_identifier(name, quoted=True).sql(dialect=dialect_named(dialect))) if name in names else found[0]


def _can_be_read(sql: str, _: Tables, dialect: str | None) -> bool:
    try:
        with unheard():
            return statement(sql, dialect) is not None
    except Exception:  # sqlglot fails in many ways on text that is no SQL
        return False


def in_words_of(refusal: CloisterError, sql: str, tables: Tables, dialect: str | None) -> CloisterError:
    """The refusal with its line in the words of the tables that were asked."""
    try:
        line = Words.of(sql, tables, dialect).line(refusal.instead)
    except CloisterError:  # a dialect that is not known
        line = Words.of(sql, tables, None).line(refusal.instead)
    return type(refusal)(refusal.what, why=refusal.why, instead=line)


def in_sql(refusal: CloisterError, texts: Sequence[str], tables: Tables, dialect: str | None) -> CloisterError:
    """The refusal of a plan, whose line names a statistic as Python does, with a line of SQL about the table that was asked; of
    several texts, the first whose table has the column.

    >>> import cloister as cl
    >>> staff = cl.PrivateTable({"rank": ["a"]}, {"rank": cl.Category(["a", "b"])})
    >>> refusal = CloisterError("The sum of 'rank' is not supported", instead='Count(column="rank")')
    >>> in_sql(refusal, ["SELECT SUM(rank) FROM staff"], {"staff": staff}, None).instead
    'SELECT COUNT(rank) FROM staff'
    """
    found = _STATISTIC.search(refusal.instead)
    if found is None:
        return refusal
    name, column = found.groups()
    declared = {each: table.columns for each, table in tables.items() if isinstance(table, PrivateTable)}
    read = [Words.of(sql, tables, dialect) for sql in texts]
    words = next((each for each in read if column in declared.get(each.table or "", ())), read[0])
    line, domain = words.example(), declared.get(words.table or "", {}).get(column)
    if words.table is not None and domain is not None:
        shown, source, key = words._spelled(column), words._spelled(words.table), ""
        if isinstance(domain, Integer | Real):
            key = f"WIDTH_BUCKET({shown}, {text_of(Fraction(domain.low))}, {text_of(Fraction(domain.high))}, 10)"
        elif isinstance(domain, Date):
            key = f"EXTRACT(YEAR FROM {shown})"
        if name != "Binned":
            line = f"SELECT {name.upper()}({shown}) FROM {source}"  # noqa: S608
        elif key:
            line = f"SELECT {key} AS bucket, COUNT(*) AS n FROM {source} GROUP BY bucket"  # noqa: S608
    return type(refusal)(refusal.what, why=refusal.why, instead=line)
