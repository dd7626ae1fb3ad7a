"""Tables: what their owners declare of them, and the engines that hold them (DuckDB, PostgreSQL, Spark).

    columns.py      what one column may hold: bounds, categories, steps, NULL
    reading.py      which values count as a number, a day or a truth value
    table.py        what is declared of a table: source, columns, unit, cap, population
    sources.py      where rows come from
    lines.py        CSV, one line one row
    expressions.py  conditions on rows, with one meaning on every engine
    scope.py        what a condition sees when it becomes SQL
    request.py      what is asked of an engine: exact integer aggregates by keys
    compiler.py     from a request to SQL
    preparation.py  from the source's values to integer codes
    order.py        which rows of a unit come first
    folder.py       where rows spill, and how nothing of them stays
    guard.py        failures without their history
    engine.py       what an engine is; duckdb.py, postgres.py, spark.py are three

Everything that comes out of `Prepared.aggregate` and `Prepared.rows` is exact and private: only a session may call them.
"""

from cloister.tables.columns import Boolean, Category, Date, Domain, Integer, Real, Text
from cloister.tables.compiler import check_aggregation
from cloister.tables.engine import Engine, PreparationReport, Prepared, engine_for, prepare
from cloister.tables.expressions import And, Between, Column, Compare, Expression, In, IsNull, Like, Literal, Not, Or
from cloister.tables.request import Aggregate, Aggregation, Binned, Groups, Key
from cloister.tables.table import PrivateTable, PublicTable

__all__ = [
    "Aggregate",
    "Aggregation",
    "And",
    "Between",
    "Binned",
    "Boolean",
    "Category",
    "Column",
    "Compare",
    "Date",
    "Domain",
    "Engine",
    "Expression",
    "Groups",
    "In",
    "Integer",
    "IsNull",
    "Key",
    "Like",
    "Literal",
    "Not",
    "Or",
    "PreparationReport",
    "Prepared",
    "PrivateTable",
    "PublicTable",
    "Real",
    "Text",
    "check_aggregation",
    "engine_for",
    "prepare",
]
