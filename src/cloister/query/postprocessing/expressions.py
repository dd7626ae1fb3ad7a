"""Expressions over answers: the SQL that the engine runs, and beside it the SQL of what is known of the result (`values.py`)."""

# ruff: noqa: S608 - this file writes SQL: names are ours, values were read against a list

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlglot import exp

from cloister.query.constants import NUMBERS, between_words
from cloister.query.postprocessing.allowed import AGGREGATES, WINDOWS, check, named
from cloister.query.postprocessing.values import NEVER, Value, folded, follows, number, truth, uncertain
from cloister.query.refusals import refused, shown

_MOST_TEXT, _DEEPEST = 40_000, 40
"""The engine's time to read a rule grows with the square of how deep it stands in others."""
LONGEST_TEXT = 1_000
"""The most bytes of a text that is made of others."""
LONGEST_LIST = 20_000
"""The most bytes of a text that STRING_AGG makes of a group: all groups together are no longer than their rows."""
_LONGEST_SEPARATOR = 20
TOO_LONG = "error('a text is too long')"
_SYNTAX = (exp.Literal, exp.Null, exp.Boolean, exp.Var, exp.DataType, exp.Interval, exp.Identifier, exp.Star)
_REALS = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
_MONOTONE = (exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Sign)
_ARITHMETIC: dict[type[exp.Expression], str] = {exp.Add: "i_add", exp.Sub: "i_sub", exp.Mul: "i_mul", exp.Div: "i_div"}
_OF_ONE: dict[type[exp.Expression], str] = {
    exp.Neg: "i_neg",
    exp.Abs: "i_abs",
    exp.Sqrt: "i_sqrt",
    exp.Ln: "i_ln",
    exp.Exp: "i_exp",
}
_UNDEFINED = (exp.Sqrt, exp.Ln, exp.Log, exp.Exp, exp.Pow)
"""What the engine answers with an infinity or NaN where SQL has no answer: NULL."""
_OVERFLOWING = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.DateAdd, exp.DateSub)
"""What has no answer where the numbers are too large. Where it is shown it is NULL, since what was asked is charged by then."""
_COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "t_eq({a}, {b})",
    exp.NEQ: "t_not(t_eq({a}, {b}))",
    exp.LT: "t_lt({a}, {b})",
    exp.GT: "t_lt({b}, {a})",
    exp.LTE: "t_not(t_lt({b}, {a}))",
    exp.GTE: "t_not(t_lt({a}, {b}))",
}
_PICKED = frozenset({"first_value", "last_value", "nth_value"})
_TEXTS = (exp.DPipe, exp.Concat, exp.ConcatWs, exp.Replace, exp.Upper, exp.Lower, exp.Substring, exp.Trim)
_IN_ORDER = frozenset({"first_value", "last_value", "nth_value", "lag", "lead"})
_OF_PEERS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)
_RANKS = frozenset({"row_number", "rank", "dense_rank"})
_MONOTONE_AGGREGATES = frozenset({"sum", "avg", "min", "max", "median", "quantile_cont", "quantile_disc"})


def _is_shown(tree: exp.Expression) -> bool:
    """Whether its values are those of the answer: a sum, a condition or a key would be another without those that are too large.
    The engine takes no aggregate within TRY."""
    while tree.parent is not None and not isinstance(tree.parent, exp.Query | exp.AggFunc | exp.Window):
        tree = tree.parent
    query = tree.parent
    if not isinstance(query, exp.Select) or query.parent is not None or tree.arg_key != "expressions":
        return False
    chosen = any(query.args.get(part) for part in ("group", "distinct", "limit", "offset", "qualify"))
    return not chosen and tree.find(exp.AggFunc, exp.Window, exp.Query, exp.Exists) is None


class Names(Protocol):
    """What an expression needs to know of the query that it stands in."""

    @property
    def sunday(self) -> int:
        """What DAYOFWEEK counts a Sunday as."""

    def column(self, tree: exp.Column) -> Value:
        """What a name means."""

    def scalar(self, query: exp.Expression) -> Value:
        """The one value of a query."""

    def members(self, query: exp.Expression) -> tuple[str, bool]:
        """The rows of a query, as SQL, and whether they would be the same without noise."""


@dataclass(kw_only=True)
class Rows:
    """The rows that aggregates and windows of a query look at."""

    loose: bool = False
    """Whether there might be other rows without noise."""
    after: bool = False
    """The same of the rows that windows look at: those that WHERE has left, or groups."""
    where: Value | None = None
    """The condition on them, where it reads released numbers: it stands in a FILTER, so that rows near to it are not lost."""
    windows: dict[str, exp.Expression] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    """The keys of groups with released numbers in them: of the value of such a group nothing is known but that it is its key."""
    places: str = "z"
    """What tells the rows of a window apart: where groups are made, those."""
    one_by_one: str = "z"
    """What tells the rows apart that aggregates look at."""


@dataclass(kw_only=True)
class Expressions:
    """Reads the expressions of one query."""

    names: Names
    rows: Rows
    grouped: bool = False
    """Whether a plain aggregate is one over the rows of a group."""
    depth: int = 0

    def read(self, tree: exp.Expression) -> Value:
        """An expression."""
        if self.depth >= _DEEPEST:
            raise refused(
                "An expression is not supported", f"it is nested deeper than {_DEEPEST}", "two steps, one in a subquery"
            )
        self.depth += 1
        try:
            found = self._read(tree)
        finally:
            self.depth -= 1
        if len(found.sql) + len(found.bound) > _MOST_TEXT:
            raise refused("The query is not supported", "what stands above the aggregates is too long", "fewer parts")
        return uncertain(found.sql) if self.grouped and not found.certain and found.sql in self.rows.keys else found

    def _read(self, tree: exp.Expression) -> Value:
        check(tree)
        if isinstance(tree, exp.Paren):
            return self.read(tree.this)
        if isinstance(tree, exp.Column):
            return self.names.column(tree)
        if isinstance(tree, exp.Literal | exp.Null | exp.Boolean):
            return Value(_atom(tree.sql(dialect="duckdb")))
        if isinstance(tree, exp.Subquery):
            return self.names.scalar(tree.this)
        if isinstance(tree, exp.Window):
            return self._window(tree)
        if isinstance(tree, exp.Filter | exp.WithinGroup) or type(tree) in AGGREGATES:
            return self._aggregate(tree)
        if type(tree) in WINDOWS:
            raise refused(f"{shown(tree)} is not supported", "it needs OVER", "RANK() OVER (ORDER BY n)")
        if isinstance(tree, exp.Exists) or (isinstance(tree, exp.In) and tree.args.get("query") is not None):
            return self._membership(tree)
        if isinstance(tree, exp.Case | exp.If):
            return self._case(tree)
        if isinstance(tree, exp.Grouping):
            return self._grouping(tree)
        if isinstance(tree, exp.DPipe):  # one text of all its parts: the length of each is asked for once
            parts = [self.read(each) for each in tree.flatten()]
            sql = _short(tree, parts, f"({' || '.join(part.sql for part in parts)})")
            return Value(sql) if all(part.certain for part in parts) else follows(sql, parts)
        if isinstance(tree, exp.And | exp.Or | exp.Not):
            for each in (tree.this, tree.args.get("expression")):
                if isinstance(each, exp.Literal) or (isinstance(each, exp.Expression) and type(each.unnest()) in _TEXTS):
                    raise refused(f"{shown(tree)} is not supported", f"{shown(each)} is not a condition", "a = b OR c = d")
        parts, sql = self._parts(tree)
        if all(part.certain for part in parts):
            return Value(sql)
        return self._known(tree, parts, sql) or follows(sql, parts)

    def _parts(self, tree: exp.Expression) -> tuple[list[Value], str]:
        """The values of what it is made of, and its SQL with theirs in it."""
        parts: list[Value] = []

        def put(child: Any) -> Any:
            if isinstance(child, list):
                return [put(each) for each in child]
            if not isinstance(child, exp.Expression) or isinstance(child, _SYNTAX):
                if isinstance(child, exp.Expression):
                    for node in child.walk():
                        check(node)
                    if isinstance(child, exp.Literal | exp.Null | exp.Boolean):
                        parts.append(Value(_atom(child.sql(dialect="duckdb"))))
                return child
            parts.append(self.read(child))
            return exp.Var(this=parts[-1].sql)

        args = {name: put(value) for name, value in tree.args.items()}
        return parts, self._rendered(tree, args, parts)

    def _rendered(self, tree: exp.Expression, args: dict[str, Any], parts: Sequence[Value]) -> str:
        if isinstance(tree, exp.Cast | exp.TryCast):
            return f"TRY_CAST({parts[0].sql} AS {tree.to.sql(dialect='duckdb')})"
        if isinstance(tree, exp.Div | exp.Mod | exp.IntDiv):
            operator = {exp.Div: "/", exp.Mod: "%", exp.IntDiv: "//"}[type(tree)]
            return f"({parts[0].sql} {operator} NULLIF({parts[1].sql}, 0))"
        if isinstance(tree, exp.Initcap):
            return _capitals(parts[0].sql, between_words(tree))
        sql = _atom(type(tree)(**args).sql(dialect="duckdb"))
        if isinstance(tree, exp.DPipe | exp.Concat | exp.ConcatWs | exp.Replace):
            return _short(tree, parts, sql)
        if isinstance(tree, exp.DateTrunc | exp.TimestampTrunc | exp.DateAdd | exp.DateSub):
            sql = f"CAST({sql} AS DATE)"
        if isinstance(tree, exp.DayOfWeek) or (isinstance(tree, exp.Extract) and tree.name.lower() == "dayofweek"):
            sql = f"({sql} + {self.names.sunday})"  # the engine counts it as 0
        if isinstance(tree, _OVERFLOWING) and _is_shown(tree):
            sql = f"TRY({sql})"
        return f"v_finite({sql})" if isinstance(tree, _UNDEFINED) else sql

    def _known(self, tree: exp.Expression, parts: list[Value], sql: str) -> Value | None:
        """What is known of a value with released numbers in it, by the rule for its kind; None where there is no rule."""
        kind = type(tree)
        if kind in _ARITHMETIC and len(parts) < 2:  # a day and an interval of time
            return None
        if kind in _ARITHMETIC:
            return number(sql, f"{_ARITHMETIC[kind]}({parts[0].interval}, {parts[1].interval})")
        if kind in _OF_ONE:
            return number(sql, f"{_OF_ONE[kind]}({parts[0].interval})")
        if kind in _MONOTONE and all(part.certain for part in parts[1:]):
            return number(sql, self._moved(tree, parts))
        if isinstance(tree, exp.Pow) and parts[1].certain:
            return number(sql, f"i_pow({parts[0].interval}, TRY_CAST({parts[1].sql} AS DOUBLE))")
        if isinstance(tree, exp.Log) and (len(parts) == 1 or parts[0].certain):
            base = "10" if len(parts) == 1 else parts[0].sql
            return number(sql, f"i_log({parts[-1].interval}, TRY_CAST({base} AS DOUBLE))")
        if isinstance(tree, exp.Greatest | exp.Least):
            self._few(parts)
            rule = "i_greatest" if isinstance(tree, exp.Greatest) else "i_least"
            return number(sql, folded(rule, [part.interval for part in parts]))
        if isinstance(tree, exp.Coalesce):
            self._few(parts)
            return number(sql, self._coalesced(parts))
        if isinstance(tree, exp.Nullif):
            return number(sql, f"i_unless({parts[0].interval}, t_eq({parts[0].interval}, {parts[1].interval}))")
        if isinstance(tree, exp.Cast | exp.TryCast) and tree.to.this in NUMBERS and not tree.to.expressions:
            return number(sql, self._cast(tree, parts[0]))
        if kind in _COMPARISONS:
            return self._compared(tree, parts, sql)
        if isinstance(tree, exp.Between):
            low = _COMPARISONS[exp.GTE].format(a=parts[0].interval, b=parts[1].interval)
            high = _COMPARISONS[exp.LTE].format(a=parts[0].interval, b=parts[2].interval)
            return truth(sql, f"t_and({low}, {high})")
        if isinstance(tree, exp.And | exp.Or):
            return truth(sql, f"{'t_and' if isinstance(tree, exp.And) else 't_or'}({parts[0].truth}, {parts[1].truth})")
        if isinstance(tree, exp.Not):
            return truth(sql, f"t_not({parts[0].truth})")
        if isinstance(tree, exp.Is):
            return self._is(tree, parts[0], sql)
        return None

    @staticmethod
    def _few(parts: Sequence[Value]) -> None:
        """Each part is a rule within the rule before it."""
        if len(parts) > 2 * _DEEPEST:
            raise refused(
                "An expression is not supported", f"it has more than {2 * _DEEPEST} parts", "a join with a public table"
            )

    @staticmethod
    def _moved(tree: exp.Expression, parts: Sequence[Value]) -> str:
        """A function that never falls, at both ends; each also where the other arithmetic would have it."""
        ends = []
        rounds = isinstance(tree, exp.Round)
        for end, sign, pick in (("l", "-", "least"), ("h", "+", "greatest")):
            args = {name: value for name, value in tree.args.items() if name not in ("this", "decimals")}
            args["this"] = exp.Var(this=f"x.a.{end}")
            if tree.args.get("decimals") is not None:
                args["decimals"] = exp.Var(this="x.b")
            plain = type(tree)(**args).sql(dialect="duckdb")
            near = f"x.a.{end} {sign} 1e-12 * (1 + abs(x.a.{end}))" if rounds else f"v_whole(x.a.{end})"
            args["this"] = exp.Var(this=f"({near})")
            ends.append(f"{pick}({plain}, {type(tree)(**args).sql(dialect='duckdb')})")
        given = parts[1].sql if len(parts) > 1 else "0"
        return (
            f"list_transform([struct_pack(a := {parts[0].interval}, b := CAST({given} AS INTEGER))],"
            f" lambda x: i_of({ends[0]}, {ends[1]}))[1]"
        )

    @staticmethod
    def _cast(tree: exp.Cast | exp.TryCast, part: Value) -> str:
        to = tree.to.sql(dialect="duckdb")
        near = "" if tree.to.this in _REALS else " {} 1e-12 * (1 + abs(x.{}))"
        ends = ", ".join(f"TRY_CAST(x.{end}{near.format(sign, end)} AS {to})" for end, sign in (("l", "-"), ("h", "+")))
        return f"list_transform([{part.interval}], lambda x: i_of({ends}))[1]"

    @staticmethod
    def _coalesced(parts: Sequence[Value]) -> str:
        """The first that is there: a number whose interval is known is there."""
        found = parts[-1].interval
        for part in reversed(parts[:-1]):
            if part.certain:
                found = f"CASE WHEN {part.sql} IS NULL THEN {found} ELSE {part.interval} END"
            elif part.kind == "exact" and part.bound != NEVER:
                found = f"CASE WHEN NOT {part.bound} THEN NULL WHEN {part.sql} IS NULL THEN {found} ELSE {part.interval} END"
            else:
                found = part.interval
        return found

    @staticmethod
    def _compared(tree: exp.Expression, parts: Sequence[Value], sql: str) -> Value:
        if any(part.kind == "number" for part in parts[:2]):
            return truth(sql, _COMPARISONS[type(tree)].format(a=parts[0].interval, b=parts[1].interval))
        found = follows(sql, parts)
        return truth(sql, found.truth)

    @staticmethod
    def _is(tree: exp.Is, part: Value, sql: str) -> Value | None:
        other = tree.expression
        if isinstance(other, exp.Null):
            if part.kind == "number":  # where its interval is known it is there
                return Value(sql, "exact", f"({part.bound} IS NOT NULL)")
            return truth(sql, f"t_is_null({part.truth})") if part.kind == "truth" else None
        if isinstance(other, exp.Boolean):
            known = part.truth if other.this else f"t_not({part.truth})"
            return truth(sql, f"t_is({known})")
        return None

    def _case(self, tree: exp.Case | exp.If) -> Value:
        """The first branch whose condition is true. Where conditions may go either way, what all the branches allow."""
        if isinstance(tree, exp.If):
            pairs, default = [(tree.this, tree.args["true"])], tree.args.get("false")
        else:
            pairs, default = [(each.this, each.args["true"]) for each in tree.args["ifs"]], tree.args.get("default")
        subject = tree.this if isinstance(tree, exp.Case) else None
        conditions = [self.read(exp.EQ(this=subject.copy(), expression=each.copy()) if subject else each) for each, _ in pairs]
        branches = [self.read(each) for _, each in pairs]
        last = self.read(default) if default is not None else Value("NULL")
        cases = " ".join(f"WHEN {when.sql} THEN {then.sql}" for when, then in zip(conditions, branches, strict=True))
        sql = f"(CASE {cases} ELSE {last.sql} END)"
        everything = [*conditions, *branches, last]
        if all(each.certain for each in everything):
            return Value(sql)
        self._few(everything)
        trees = [each for _, each in pairs] + ([default] if default is not None else [])
        numeric = all(
            part.kind == "number" or isinstance(each, exp.Null) or _is_number(each)
            for part, each in zip([*branches, last], [*trees, exp.Null()][: len(branches) + 1], strict=True)
        )
        known = last.interval if numeric else last.exact
        for when, then in zip(reversed(conditions), reversed(branches), strict=True):
            known = f"{'i_if' if numeric else 'x_if'}({when.truth}, {then.interval if numeric else then.exact}, {known})"
        return number(sql, known) if numeric else Value(sql, "exact", known)

    def _membership(self, tree: exp.In | exp.Exists) -> Value:
        query = tree.this if isinstance(tree, exp.Exists) else tree.args["query"]
        query = query.this if isinstance(query, exp.Subquery) else query
        rows, same = self.names.members(query)
        if isinstance(tree, exp.Exists):
            sql, parts = f"EXISTS (SELECT 1 FROM {rows})", []
        else:
            parts = [self.read(tree.this)]
            sql = f"({parts[0].sql} IN (SELECT c0 FROM {rows}))"
        return follows(sql, parts) if same else uncertain(sql)

    def _grouping(self, tree: exp.Grouping) -> Value:
        parts = [self.read(each) for each in tree.expressions]
        return Value(f"grouping({', '.join(each.sql for each in parts)})")

    # aggregates

    def _aggregate(self, tree: exp.Expression) -> Value:
        if not self.grouped:
            raise refused(f"{shown(tree)} is not supported", "an aggregate does not stand here", "HAVING COUNT(*) > 10")
        return self._over_rows(tree, None)

    def _over_rows(self, tree: exp.Expression, over: str | None) -> Value:
        """An aggregate over the rows of a group, or with OVER over those of a window."""
        condition: exp.Expression | None = None
        if isinstance(tree, exp.Filter):
            tree, condition = tree.this, tree.expression.this
            check(tree)
        extra, descending = "", False
        listed = tree.this if isinstance(tree, exp.WithinGroup) else tree
        if isinstance(listed, exp.GroupConcat):
            if over is not None:
                raise refused(
                    f"{shown(listed)} OVER is not supported", "it would be as long for each row", "STRING_AGG(region, ', ')"
                )
            return self._list(listed, tree.expression if isinstance(tree, exp.WithinGroup) else None, condition)
        if isinstance(tree, exp.WithinGroup):
            ordered = tree.expression.expressions
            if not isinstance(tree.this, exp.PercentileCont | exp.PercentileDisc) or len(ordered) != 1:
                raise refused(f"{shown(tree)} is not supported", "it orders by more than one value", "MEDIAN(n)")
            target, share, descending = ordered[0].this, tree.this.this, bool(ordered[0].args.get("desc"))
            extra = f", {self._share(share, descending)}"
            tree = tree.this
            check(tree)
        elif isinstance(tree, exp.Quantile | exp.PercentileCont | exp.PercentileDisc):
            target, extra = tree.this, f", {self._share(tree.args.get('quantile') or tree.expression, False)}"
        else:
            target = tree.this
        if type(tree) not in AGGREGATES:
            raise refused(f"{named(tree)} is not supported", "it is not on the list of aggregates over answers", "SUM(n)")
        inner = Expressions(names=self.names, rows=self.rows, grouped=self.grouped and over is not None)
        given = None if condition is None else inner.read(condition)
        return _Aggregate(
            function=AGGREGATES[type(tree)],
            parts=self._arguments(tree, target, inner),
            distinct=isinstance(target, exp.Distinct),
            extra=extra,
            over=over,
            filters=[each for each in (given, self.rows.where if over is None else None) if each is not None],
            loose=self.rows.loose if over is None else self.rows.after,
        ).value()

    def _list(self, tree: exp.GroupConcat, order: exp.Expression | None, condition: exp.Expression | None) -> Value:
        """STRING_AGG: the texts of a group in an order, or in that of the rows. What is known of it is that of all its parts."""
        check(tree)
        target, separator = tree.this, tree.args.get("separator")
        if isinstance(target, exp.Order):
            target, order = target.this, target
        distinct = isinstance(target, exp.Distinct)
        wanted = target.expressions if isinstance(target, exp.Distinct) else [target]
        sign = separator.this if isinstance(separator, exp.Literal) and separator.is_string else None
        if len(wanted) != 1 or sign is None or len(sign) > _LONGEST_SEPARATOR:
            raise refused(
                f"{shown(tree)} is not supported",
                f"it needs one value and a separator of at most {_LONGEST_SEPARATOR} signs that is written out",
                "STRING_AGG(region, ', ' ORDER BY region)",
            )
        inner = Expressions(names=self.names, rows=self.rows)
        part = inner.read(wanted[0])
        sorted_by = [(inner.read(each.this), each) for each in (order.expressions if order is not None else ())]
        conditions = [] if condition is None else [inner.read(condition)]
        conditions += [] if self.rows.where is None else [self.rows.where]
        text = f"CAST({part.sql} AS VARCHAR)"
        if distinct and any(value.sql != part.sql for value, _ in sorted_by):
            raise refused(f"{shown(tree)} is not supported", "it orders different values by another", "STRING_AGG(region, ', ')")
        if distinct:
            ordering = f"{text}{direction(sorted_by[0][1]) if sorted_by else ''}"
        else:
            ordering = ", ".join([*(f"{value.sql}{direction(each)}" for value, each in sorted_by), self.rows.one_by_one])
        rows = f" FILTER (WHERE {' AND '.join(each.sql for each in conditions)})" if conditions else ""
        made = (
            f"string_agg({'DISTINCT ' if distinct else ''}{text}, {exp.Literal.string(sign).sql(dialect='duckdb')}"
            f" ORDER BY {ordering}){rows}"
        )
        size = f"coalesce(sum(strlen({text}) + {len(sign.encode())}){rows}, 0) > {LONGEST_LIST}"
        sql = f"(CASE WHEN {size} THEN {TOO_LONG} ELSE {made} END)"
        if self.rows.loose or not all(each.certain for each in (*conditions, *(value for value, _ in sorted_by))):
            return uncertain(sql)
        return Value(sql) if part.certain else Value(sql, "exact", f"coalesce(bool_and({part.exact}){rows}, TRUE)")

    @staticmethod
    def _arguments(tree: exp.Expression, target: Any, inner: Expressions) -> list[Value]:
        if isinstance(tree, exp.Count) and isinstance(target, exp.Star):
            return []
        if not isinstance(target, exp.Expression):
            raise refused(f"{shown(tree)} is not supported", "it is an aggregate of nothing", "COUNT(*)")
        trees = target.expressions if isinstance(target, exp.Distinct) else [target]
        if isinstance(target, exp.Distinct):
            check(target)
        if isinstance(tree.args.get("expression"), exp.Expression) and not isinstance(
            tree, exp.PercentileCont | exp.PercentileDisc
        ):
            trees = [*trees, tree.expression]
        return [inner.read(each) for each in trees]

    @staticmethod
    def _share(tree: exp.Expression, descending: bool) -> str:
        if not isinstance(tree, exp.Literal) or tree.is_string:
            raise refused(f"The share {shown(tree)} is not supported", "it is not a constant from 0 to 1", "QUANTILE(n, 0.25)")
        if not descending:
            return str(tree.this)
        return "1" if float(tree.this) == 0 else f"-{tree.this}"  # a share below 0 counts from the largest

    # windows

    def _window(self, tree: exp.Window) -> Value:
        function = tree.this
        over, order, sorted_by = self._over(tree, type(function) in WINDOWS and type(function) not in _OF_PEERS)
        if type(function) not in WINDOWS:
            inner = function.this if isinstance(function, exp.Filter) else function
            if type(inner) not in AGGREGATES:
                raise refused(f"{shown(tree)} is not supported", "it is not a function of a window", "SUM(n) OVER ()")
            found = self._over_rows(function, over)
            return found if order is None else uncertain(found.sql)
        check(function)
        name = WINDOWS[type(function)]
        arguments = [
            self.read(function.args[part]) for part in ("this", "offset", "default") if function.args.get(part) is not None
        ]
        sql = f"{name}({', '.join(each.sql for each in arguments)}) OVER ({over})"
        named = tree.args.get("alias")
        window = self.rows.windows.get(named.name.lower(), tree) if isinstance(named, exp.Expression) else tree
        spec = window.args.get("spec")
        tied = name in _PICKED and spec is not None and str(spec.args.get("kind")).upper() != "ROWS"
        if self.rows.after or tied:  # among equal rows the engine picks any, and noise may have ordered them
            return uncertain(_atom(sql))
        if order is None:
            if not arguments or arguments[0].certain:
                return follows(_atom(sql), arguments)
            if name in _IN_ORDER and arguments[0].kind == "number":
                others = [arguments[1].sql] if len(arguments) > 1 else []
                rest = "".join(f", {each}" for each in (*others, *(each.interval for each in arguments[2:])))
                default = function.args.get("default")  # the engine casts it to the type of the first
                alike = default is None or default == function.this or _is_whole(default)
                if alike and all(each.certain for each in arguments[1:2]):
                    return number(_atom(sql), f"({name}({arguments[0].interval}{rest}) OVER ({over}))")
            return uncertain(_atom(sql))
        if name in _RANKS and order.kind == "number" and sorted_by is not None:
            return number(_atom(sql), self._rank(order, name, *sorted_by))
        return uncertain(_atom(sql))

    def _over(self, tree: exp.Window, one_by_one: bool) -> tuple[str, Value | None, tuple[str, bool] | None]:
        """The SQL of a window; the first value that it is ordered by, where any of them reads released numbers; and of that
        the SQL of the partition and whether the largest comes first. A noisy partition makes everything unknown: it is marked
        as an order that no rule knows."""
        named_window = tree.args.get("alias")
        if isinstance(named_window, exp.Expression):
            known = self.rows.windows.get(named_window.name.lower())
            if known is None or any(tree.args.get(part) for part in ("partition_by", "order", "spec")):
                raise refused(
                    f"The window {named_window.name!r} is not supported", "it is not defined by WINDOW", "OVER (ORDER BY n)"
                )
            tree = known
        check(exp.Window(**{**tree.args, "this": exp.RowNumber()}))
        partition = [self.read(each) for each in tree.args.get("partition_by") or ()]
        order = tree.args.get("order")
        ordered = [(self.read(each.this), each) for each in (order.expressions if order is not None else ())]
        parts, by = [], ""
        if partition:
            by = f"PARTITION BY {', '.join(each.sql for each in partition)}"
            parts.append(by)
        spec = tree.args.get("spec")
        one_by_one = one_by_one or (spec is not None and str(spec.args.get("kind")).upper() == "ROWS")
        by_range = spec is not None and str(spec.args.get("kind")).upper() != "ROWS"
        sorting = [f"{value.sql}{direction(each)}" for value, each in ordered]
        if one_by_one and not by_range:  # ties stand in one order each time
            sorting.append(self.rows.places)
        if sorting:
            parts.append("ORDER BY " + ", ".join(sorting))
        if spec is not None:
            check(spec)
            parts.append(spec.sql(dialect="duckdb"))
        over = " ".join(parts)
        if any(not each.certain for each in partition):
            return over, uncertain("NULL"), None
        noisy = next((value for value, _ in ordered if not value.certain), None)
        if noisy is None:
            return over, None, None
        first, written = ordered[0]
        return over, first if not first.certain else uncertain("NULL"), (by, bool(written.args.get("desc")))

    @staticmethod
    def _rank(order: Value, name: str, by: str, descending: bool) -> str:
        """Between 1 + those that stand before it for sure, and all but those that stand behind it for sure. Of the rows in
        order of one end, those beyond the other end of this row's interval are counted by a frame; what lies on the end is not
        counted, so that ties count for neither."""
        window = f"{by} " if by else ""
        interval = order.interval

        def beyond(end: str, far: str, side: str) -> str:
            start = "UNBOUNDED PRECEDING AND width PRECEDING" if side == "below" else "width FOLLOWING AND UNBOUNDED FOLLOWING"
            width = f"(({interval}).h - ({interval}).l) * (1 + 1e-9) + 1e-9 * (1 + abs(({interval}).{far}))"
            return f"(count(*) OVER ({window}ORDER BY ({interval}).{end} RANGE BETWEEN {start.replace('width', width)}))"

        above, below = beyond("l", "h", "above"), beyond("h", "l", "below")
        before, behind = (above, below) if descending else (below, above)
        everything = f"(count(*) OVER ({by}))" if by else "(count(*) OVER ())"
        known = f"(count({interval}) OVER ({by}))" if by else f"(count({interval}) OVER ())"
        first = "1" if name == "dense_rank" else f"1 + {before}"
        return f"CASE WHEN {everything} = {known} THEN i_of({first}, {everything} - {behind}) END"


@dataclass(frozen=True, kw_only=True)
class _Aggregate:
    """An aggregate over the rows of a group or of a window."""

    function: str
    parts: list[Value]
    distinct: bool
    extra: str
    over: str | None
    filters: list[Value]
    loose: bool

    def value(self) -> Value:
        """It, with what is known of it."""
        arguments = ", ".join(part.sql for part in self.parts) or "*"
        if self.function in ("median", "quantile_cont") and self.parts[0].kind == "number" and not self.distinct:
            arguments = f"CAST({arguments} AS DOUBLE)"  # between two decimals there may be none of as many places
        wanted = " AND ".join(each.sql for each in self.filters)
        sql = _atom(self._call(f"{'DISTINCT ' if self.distinct else ''}{arguments}{self.extra}", wanted))
        if self.function == "count_if" and not self.distinct:
            sql = _atom(self._counted(arguments, wanted))
        if self.loose:
            return uncertain(sql)
        noisy = [each for each in self.filters if not each.certain]
        if not noisy and all(part.certain for part in self.parts):
            return Value(sql)
        if self.distinct or len(self.parts) > 1:
            return uncertain(sql) if noisy else self._flagged(sql, wanted)
        if noisy:
            return self._near_the_condition(sql)
        return self._of_all(sql, wanted)

    def _call(self, arguments: str, wanted: str, function: str | None = None) -> str:
        filtered = f" FILTER (WHERE {wanted})" if wanted else ""
        over = "" if self.over is None else f" OVER ({self.over})"
        return f"{function or self.function}({arguments}){filtered}{over}"

    def _counted(self, condition: str, wanted: str) -> str:
        """COUNT_IF: of no rows it is 0, where the engine's own is NULL."""
        return self._call(f"CASE WHEN {condition} THEN 1 END", wanted, "count")

    def _flagged(self, sql: str, wanted: str) -> Value:
        flags = " AND ".join(part.exact for part in self.parts if not part.certain)
        return Value(sql, "exact", f"coalesce({self._call(flags, wanted, 'bool_and')}, TRUE)")

    def _of_all(self, sql: str, wanted: str) -> Value:
        """Over rows that are sure: the aggregate of the lower ends, and of the upper ones. Each of them never falls where a value
        grows."""
        (part,) = self.parts
        if self.function in ("bool_and", "bool_or", "count_if"):
            if self.function == "count_if":
                low, high = (f"t_sure({part.truth})", f"({part.truth}).t")
                ends = [self._counted(each, wanted) for each in (low, high)]
                return number(sql, f"i_of({ends[0]}, {ends[1]})")
            return self._flagged(sql, wanted)
        known = part.interval
        there = f"{self._call('*', wanted, 'count')} = {self._call(known, wanted, 'count')}"
        if self.function == "count":
            return number(sql, f"CASE WHEN {there} THEN i_point({sql}) END")
        if self.function not in _MONOTONE_AGGREGATES:
            return self._flagged(sql, wanted)
        ends = [self._call(f"({known}).{end}{self.extra}", wanted) for end in ("l", "h")]
        return number(sql, f"CASE WHEN {there} THEN i_of({ends[0]}, {ends[1]}) END")

    def _near_the_condition(self, sql: str) -> Value:
        """Over rows of which some are sure, and some may or may not be counted."""
        condition = folded("t_and", [each.truth for each in self.filters])
        sure, may = f"t_sure({condition})", f"({condition}).t"
        if self.function in ("count", "count_if"):
            if self.function == "count_if":
                sure, may = (
                    f"t_sure(t_and({condition}, {self.parts[0].truth}))",
                    f"(t_and({condition}, {self.parts[0].truth})).t",
                )
            elif self.parts and self.parts[0].certain:
                sure, may = f"{sure} AND {self.parts[0].sql} IS NOT NULL", f"{may} AND {self.parts[0].sql} IS NOT NULL"
            elif self.parts:
                return uncertain(sql)
            return number(sql, f"i_of({self._call('*', sure, 'count')}, {self._call('*', may, 'count')})")
        if self.function not in _MONOTONE_AGGREGATES:
            return uncertain(sql)
        known = self.parts[0].interval
        low, high = f"({known}).l", f"({known}).h"
        if self.function == "sum":
            ends = (
                self._call(f"CASE WHEN {sure} THEN {low} ELSE least({low}, 0) END", may),
                self._call(f"CASE WHEN {sure} THEN {high} ELSE greatest({high}, 0) END", may),
            )
        elif self.function == "min":
            ends = (self._call(low, may), self._call(high, sure))
        elif self.function == "max":
            ends = (self._call(low, sure), self._call(high, may))
        else:
            ends = (self._call(low, may, "min"), self._call(high, may, "max"))
        there = f"{self._call('*', may, 'count')} = {self._call(known, may, 'count')} AND {self._call('*', sure, 'count')} > 0"
        return number(sql, f"CASE WHEN {there} THEN i_of({ends[0]}, {ends[1]}) END")


def direction(ordered: exp.Ordered) -> str:
    """DESC and NULLS, as they are meant in the dialect.

    >>> import sqlglot
    >>> direction(sqlglot.parse_one("SELECT 1 ORDER BY n DESC").args["order"].expressions[0])
    ' DESC NULLS LAST'
    """
    check(ordered)
    return f"{' DESC' if ordered.args.get('desc') else ''} NULLS {'FIRST' if ordered.args.get('nulls_first') else 'LAST'}"


def _capitals(sql: str, between: str | None) -> str:
    """INITCAP, which the engine has not: each word with a capital."""
    other, word = (r"[^\p{L}\p{N}]", r"[\p{L}\p{N}]") if between is None else (f"[{between}]", f"[^{between}]")
    pattern = exp.Literal.string(f"{word}+|{other}+").sql(dialect="duckdb")
    return f"array_to_string(list_transform(regexp_extract_all({sql}, {pattern}), lambda w: upper(w[1]) || lower(w[2:])), '')"


def _short(tree: exp.Expression, parts: Sequence[Value], sql: str) -> str:
    """A text that is made of others, where it stays short: how long it would become is asked for before it is made, since the
    engine counts no text towards its memory while it works on it."""
    sizes = [f"strlen(CAST({part.sql} AS VARCHAR))" for part in parts]
    if isinstance(tree, exp.Replace):
        text, old = sizes[0], f"greatest({sizes[1]}, 1)"
        size = f"{text} * greatest({old}, {sizes[2]}) > {LONGEST_TEXT} * {old}" if len(sizes) > 2 else "FALSE"
    else:
        size = " + ".join(f"coalesce({each}, 0)" for each in sizes)
        if isinstance(tree, exp.ConcatWs):
            size += f" + {len(sizes)} * coalesce({sizes[0]}, 0)"
        size += f" > {LONGEST_TEXT}"
    return f"(CASE WHEN {size} THEN {TOO_LONG} ELSE {sql} END)"


def _atom(sql: str) -> str:
    """In parentheses, so that nothing around it can part it."""
    plain = sql.replace("_", "").replace(".", "").isalnum() and sql.isascii()
    return sql if plain else f"({sql})"


def _is_whole(tree: exp.Expression) -> bool:
    return isinstance(tree, exp.Null) or (_is_number(tree) and tree.name.isdigit())


def _is_number(tree: exp.Expression) -> bool:
    inner = tree.this if isinstance(tree, exp.Neg) else tree
    return isinstance(inner, exp.Literal) and not inner.is_string
