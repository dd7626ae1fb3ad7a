"""Tables: what their owners declare of them, and the engines that hold them (DuckDB, PostgreSQL, Spark).

    declaring/   what an owner declares: a table, its columns (bounds, categories, steps, NULL), what names something, which days
    expression/  conditions and computed columns: one small typed language with one meaning on every engine
    relations/   what is made of tables and still has a unit: joins, lookups, one row a person, rows one under another
    sourcing/    where rows come from: files (also encrypted), frames, databases; and how their values become codes
    engines/     what aggregates exactly, and what it can be asked; requests, the compiler, memory, the order of rows

Everything that comes out of `Prepared.aggregate` and `Prepared.rows` is exact and private: only a session may call them. It asks
for integers with noise (`engines/noised.py`).
"""

from cloister.tables.declaring.columns import Boolean, Category, Date, Domain, Identifier, Integer, Real, Text
from cloister.tables.declaring.during import During
from cloister.tables.declaring.moments import Moment
from cloister.tables.declaring.places import Place
from cloister.tables.declaring.table import PrivateTable, PublicTable
from cloister.tables.engines.abilities import Abilities
from cloister.tables.engines.compiler import check_aggregation
from cloister.tables.engines.engine import Answering, Engine, Offenders, PreparationReport, Prepared, engine_for, prepare
from cloister.tables.engines.request import Aggregate, Aggregation, Binned, Groups, Key, Runs, Strided
from cloister.tables.engines.workspace import MemoryExceeded, Workspace
from cloister.tables.expression.expressions import And, Between, Column, Compare, Expression, In, IsNull, Like, Literal, Not, Or
from cloister.tables.relations.joins import KeyJoined, UnitJoined
from cloister.tables.relations.numbered import Followed, Numbered
from cloister.tables.relations.perunit import PerUnit, UnitAggregate
from cloister.tables.relations.public import PublicJoined
from cloister.tables.relations.related import Related, relate
from cloister.tables.relations.relation import Base, Capped, Extended, Filtered, Projected, Relation, Stacked

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
    "Followed",
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
    "Moment",
    "Not",
    "Numbered",
    "Offenders",
    "Or",
    "PerUnit",
    "Place",
    "PreparationReport",
    "Prepared",
    "PrivateTable",
    "Projected",
    "PublicJoined",
    "PublicTable",
    "Real",
    "Related",
    "Relation",
    "Runs",
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
