"""Tables: what their owners declare of them, and the engines that hold them (DuckDB, PostgreSQL, Spark).

    columns.py      what one column may hold: bounds, categories, steps, NULL
    reading.py      which values count as a number, a day or a truth value
    table.py        what is declared of a table: source, columns, unit, cap, population
    sources.py      where rows come from
    lines.py        CSV, one line one row
    encrypted.py    tables in encrypted files (`cloister.crypto` has the format)
    expressions.py  conditions on rows, with one meaning on every engine
    scope.py        what a condition sees when it becomes SQL
    request.py      what is asked of an engine: exact integer aggregates by keys
    compiler.py     from a request to SQL
    derived.py      derived tables, whose rows follow from one unit's rows each: what is common to them, and the proof
    relation.py     the simplest of them: a table, computed columns, conditions, names, caps
    joins.py        private tables joined within a unit; lookup.py joins public ones
    public.py       turns public tables into codes; public_values.py reads them
    perunit.py      one row for each unit and key; stacked.py puts relations under one another; unify.py makes codes comparable
    related.py      from a relation to answers
    identifier.py   columns that name something
    preparation.py  from the source's values to integer codes
    order.py        which rows of a unit come first
    workspace.py    what engines may take of a machine
    folder.py       where rows spill, and how nothing of them stays
    guard.py        failures without their history
    without_bar.py  connections that print nothing
    abilities.py    what an engine can be asked, known before anything is priced
    noised.py       integers with noise: one request to an engine, and its answer
    engine.py       what an engine is; duckdb.py, postgres.py (and postgres_spelling.py), spark.py are three

Everything that comes out of `Prepared.aggregate` and `Prepared.rows` is exact and private: only a session may call them.
"""

from cloister.tables.abilities import Abilities
from cloister.tables.declaring.columns import Boolean, Category, Date, Domain, Integer, Real, Text
from cloister.tables.declaring.during import During
from cloister.tables.declaring.identifier import Identifier
from cloister.tables.declaring.table import PrivateTable, PublicTable
from cloister.tables.engines.compiler import check_aggregation
from cloister.tables.engines.engine import Answering, Engine, PreparationReport, Prepared, engine_for, prepare
from cloister.tables.engines.request import Aggregate, Aggregation, Binned, Groups, Key, Strided
from cloister.tables.engines.workspace import MemoryExceeded, Workspace
from cloister.tables.expression.expressions import And, Between, Column, Compare, Expression, In, IsNull, Like, Literal, Not, Or
from cloister.tables.relations.joins import KeyJoined, UnitJoined
from cloister.tables.relations.lookup import PublicJoined
from cloister.tables.relations.perunit import PerUnit, UnitAggregate
from cloister.tables.relations.related import Related, relate
from cloister.tables.relations.relation import Base, Capped, Extended, Filtered, Projected, Relation
from cloister.tables.relations.stacked import Stacked

__all__ = [
    "Abilities",
    "Aggregate",
    "Aggregation",
    "And",
    "Answering",
    "Base",
    "Between",
    "Binned",
    "Boolean",
    "Capped",
    "Category",
    "Column",
    "Compare",
    "Date",
    "Domain",
    "During",
    "Engine",
    "Expression",
    "Extended",
    "Filtered",
    "Groups",
    "Identifier",
    "In",
    "Integer",
    "IsNull",
    "Key",
    "KeyJoined",
    "Like",
    "Literal",
    "MemoryExceeded",
    "Not",
    "Or",
    "PerUnit",
    "PreparationReport",
    "Prepared",
    "PrivateTable",
    "Projected",
    "PublicJoined",
    "PublicTable",
    "Real",
    "Related",
    "Relation",
    "Stacked",
    "Strided",
    "Text",
    "UnitAggregate",
    "UnitJoined",
    "Workspace",
    "check_aggregation",
    "engine_for",
    "prepare",
    "relate",
]
