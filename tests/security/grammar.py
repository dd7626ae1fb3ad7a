"""Random SQL over any declaration: expressions, conditions and keys by type, all aggregates, questions within questions."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.security.schemas import Column, Schema


class Grammar:
    """Draws questions about one table. Each method draws one construct; `deep` says how far it may nest."""

    def __init__(self, schema: Schema, draw: random.Random) -> None:
        self.draw, self.unit = draw, schema.unit
        self.columns = {kind: [each for each in schema.columns if each.kind == kind] for kind in _KINDS}
        self.source = "t"

    def question(self) -> str:
        """A whole question."""
        one, outer = self.draw.random, self.source
        before = ""
        if self.unit and one() < 0.2:
            self.source = self._per_person()
        elif one() < 0.1:
            before, self.source = f"WITH c AS (SELECT * FROM t WHERE {self.condition(1)}) ", "c"
        elif self.unit and one() < 0.1:
            self.source = "t AS a JOIN t AS b USING (who)"
        elif one() < 0.08:
            self.source = f"(SELECT * FROM t WHERE {self.condition(1)} UNION ALL SELECT * FROM t) AS u"
        text = before + self._select()
        self.source = outer
        return text

    def _select(self) -> str:
        draw = self.draw
        keys = [self.key() for _ in range(draw.choice([0, 0, 1, 1, 2]))]
        shown = [f"{key} AS k{place}" for place, key in enumerate(keys)]
        shown += [f"{self.aggregate()} AS a{place}" for place in range(draw.choice([1, 1, 2, 3]))]
        text = f"SELECT {', '.join(shown)} FROM {self.source}"
        if draw.random() < 0.5:
            text += f" WHERE {self.condition(2)}"
        if keys:
            text += " GROUP BY " + self._grouped([str(place + 1) for place in range(len(keys))], keys)
        if draw.random() < 0.15:
            most = draw.choice([-(10**6), 0, 3, 10**6])
            text += f" HAVING {draw.choice(['COUNT(*)', 'a0'])} {draw.choice(['>', '<=', '<>'])} {most}"
        if draw.random() < 0.2:
            text += f" ORDER BY a0 {draw.choice(['', 'DESC', 'NULLS FIRST'])}"
        if draw.random() < 0.1:
            text += f" LIMIT {draw.choice([0, 1, 5])}"
        return text

    def _per_person(self) -> str:
        number, shown = self.number(1), self.draw.choice(["SUM({x})", "MAX({x})", "AVG({x})", "COUNT({x})", "MIN({x})"])
        inner = f"SELECT who, {shown.format(x=number)} AS v, COUNT(*) AS n FROM t GROUP BY who"
        self.columns = {kind: [] for kind in _KINDS} | {"integer": [_named("v"), _named("n")]}
        return f"({inner}) AS p"

    def _grouped(self, places: Sequence[str], keys: Sequence[str]) -> str:
        kind = self.draw.random()
        if kind < 0.1:
            return f"ROLLUP ({', '.join(keys)})"
        if kind < 0.2:
            return f"CUBE ({', '.join(keys)})"
        if kind < 0.25:
            return f"GROUPING SETS (({', '.join(keys)}), ())"
        return ", ".join(places if kind < 0.6 else keys)

    def aggregate(self) -> str:
        """Something that is one number a group."""
        draw = self.draw
        x, y, c = self.number(2), self.number(1), self.condition(1)
        persons = ["COUNT(DISTINCT who)"] if self.unit else []
        if draw.random() < 0.08:
            return f"{self.aggregate()} {draw.choice(['+', '-', '*', '/'])} {draw.choice([self.aggregate(), '2', '0', '0.5'])}"
        return draw.choice(
            [
                "COUNT(*)", "COUNT(*)", f"COUNT({x})", f"SUM({x})", f"SUM({x})", f"AVG({x})", f"AVG({x})", f"MEDIAN({x})",
                f"MIN({x})", f"MAX({x})", f"STDDEV({x})", f"VAR_POP({x})", f"QUANTILE_CONT({x}, 0.9)", f"COUNT_IF({c})",
                f"SUM({x}) FILTER (WHERE {c})", f"CORR({x}, {y})", f"REGR_SLOPE({x}, {y})", f"COVAR_SAMP({x}, {y})",
                f"COUNT(DISTINCT {self.key()})", f"MODE({self.key()})", f"ROUND(AVG({x}), 1)", f"SUM({x}) / COUNT(*)", *persons,
            ]
        )  # fmt: skip

    def key(self) -> str:
        """Something that rows are grouped by."""
        draw, c = self.draw, self.columns
        plain = [each.sql for kind in ("category", "boolean", "text") for each in c[kind]]
        numbers = [f"FLOOR({each.sql} / {draw.choice([1, 2, 10])})" for each in c["integer"]]
        dates = [
            form.format(d=each.sql) for each in c["date"] for form in ("EXTRACT(MONTH FROM {d})", "DATE_TRUNC('month', {d})")
        ]
        cases = [f"CASE WHEN {self.condition(1)} THEN 'yes' ELSE 'no' END", f"SIGN({self.number(0)})"]
        return draw.choice([*plain, *plain, *numbers, *dates, *cases])

    def number(self, deep: int) -> str:
        """An expression that is a number."""
        draw = self.draw
        atoms = [each.sql for kind in ("integer", "real") for each in self.columns[kind]]
        if deep <= 0 or draw.random() < 0.3:
            return draw.choice([*atoms, *atoms, str(draw.choice([0, 1, -3, 0.5, 10**9]))])
        x, y = self.number(deep - 1), self.number(deep - 1)
        return draw.choice(
            [
                f"({x} + {y})", f"({x} - {y})", f"({x} * {y})", f"CLAMP({x} / ({y}), -5, 5)", f"({x} % 7)", f"ABS({x})",
                f"-({x})", f"ROUND({x})", f"FLOOR({x})", f"CEIL({x})", f"COALESCE({x}, 3)", f"NULLIF({x}, 0)", f"LEAST({x}, 10)",
                f"GREATEST({x}, {y})", f"CLAMP({x}, -2, 7)", f"CAST({x} AS INTEGER)",
                f"CASE WHEN {self.condition(0)} THEN {x} END",
                f"CLAMP(SQRT({x}), 0, 9)", f"CLAMP(LN({x}), -3, 3)", f"POWER({x}, 2)", f"SIGN({x})",
            ]
        )  # fmt: skip

    def condition(self, deep: int) -> str:
        """Something that is true of a row, or not, or unknown."""
        draw, c = self.draw, self.columns
        x, y = self.number(deep - 1), self.number(0)
        found = [
            f"{x} {draw.choice(['<', '<=', '=', '<>', '>'])} {y}",
            f"{x} BETWEEN 0 AND 40",
            f"{x} IS NULL",
            f"{x} IN (0, 1, 17)",
        ]
        for each in c["category"]:
            value = draw.choice([*each.domain.values(), "nobody", "' OR 1=1"])
            found += [
                f"{each.sql} = '{value.replace(chr(39), chr(39) * 2)}'",
                f"{each.sql} LIKE '%a%'",
                f"{each.sql} IS NOT NULL",
            ]
        for each in c["text"]:
            found += [f"{each.sql} = 'u'", f"{each.sql} LIKE 'w%'", f"{each.sql} IN ('u', 'zz')"]
        found += [each.sql for each in c["boolean"]] + [f"{each.sql} >= DATE '2024-02-15'" for each in c["date"]]
        if deep > 0 and draw.random() < 0.5:
            return (
                f"({self.condition(deep - 1)} {draw.choice(['AND', 'OR'])} {draw.choice(['', 'NOT '])}{self.condition(deep - 1)})"
            )
        return draw.choice(found)


_KINDS = ("integer", "real", "category", "boolean", "date", "text")


def _named(name: str) -> Column:
    return Column(name=name, kind="integer", domain=None, usual=lambda _: None, odd=[])
