"""What a question touches: which declared columns it reads, and of which tables it puts rows beside those of others.

It is worked out from the question alone, so it spends nothing and reads no row. A column is read where a key, a statistic, a
condition, a join or a computed column stands on it; a column that is only carried along, as by `SELECT *`, is not. The unit is
not among the columns where it does nothing but say whose row a row is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from cloister.session.questions.question import (
    Combined,
    Correlation,
    Count,
    Covariance,
    OverCap,
    Persons,
    Question,
    Regression,
    Statistic,
    key_name,
)
from cloister.tables import Base, Extended, Filtered, KeyJoined, PerUnit, Projected, PublicJoined, Relation, Stacked, UnitJoined


class Touched(Mapping[str, frozenset[str]]):
    """The columns read of each table, private and public; `joined` names those whose rows stand beside another table's.

    >>> touched = Touched({"people": {"age"}, "towns": {"town"}}, joined={"people", "towns"})
    >>> sorted(touched["people"]), sorted(touched.joined), touched
    (['age'], ['people', 'towns'], <people: age; towns: town; joined: people, towns>)
    """

    def __init__(self, columns: Mapping[str, Iterable[str]], joined: Iterable[str] = ()) -> None:
        self._columns = {name: frozenset(columns[name]) for name in sorted(columns)}
        self.joined = frozenset(joined)

    def __getitem__(self, name: str) -> frozenset[str]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __or__(self, other: Touched) -> Touched:
        """What two questions touch."""
        nothing: frozenset[str] = frozenset()
        both = {name: self.get(name, nothing) | other.get(name, nothing) for name in (*self, *other)}
        return Touched(both, self.joined | other.joined)

    def __repr__(self) -> str:
        parts = [f"{name}: {', '.join(sorted(columns)) or 'rows alone'}" for name, columns in self.items()]
        parts += ["joined: " + ", ".join(sorted(self.joined))] if self.joined else []
        return f"<{'; '.join(parts)}>"


def touched_by(question: Question) -> Touched:
    """What one question touches.

    >>> from cloister.session import Mean
    >>> touched_by(Question(table="people", by=("sex",), statistics=(Mean(column="age"),)))
    <people: age, sex>
    """
    read = columns_read(question)
    if isinstance(question.table, str):
        return Touched({question.table: read})
    found: dict[str, set[str]] = defaultdict(set)
    joined: set[str] = set()
    _walk(question.table, read, found, joined)
    return Touched(found, joined)


def columns_read(question: Question) -> frozenset[str]:
    """The columns of its table, or of its relation, that a question itself names.

    >>> from cloister.session import Sum
    >>> sorted(columns_read(Question(table="people", by=("sex",), statistics=(Sum(column="pay"),))))
    ['pay', 'sex']
    """
    found = {key_name(key) for key in question.by}
    for statistic in question.statistics:
        found.update(_of_statistic(statistic))
    return frozenset(found if question.where is None else found | question.where.columns())


def _of_statistic(statistic: Statistic) -> tuple[str, ...]:
    if isinstance(statistic, Persons | OverCap | Combined):
        return ()
    if isinstance(statistic, Covariance | Correlation | Regression):
        return statistic.x, statistic.y
    if isinstance(statistic, Count):
        return () if statistic.column is None else (statistic.column,)
    return (statistic.column,)


def _walk(relation: Relation, read: Iterable[str], found: dict[str, set[str]], joined: set[str]) -> None:
    """Notes what is read of each table when these columns of a relation are."""
    names = set(read)
    if isinstance(relation, Base):
        found[relation.name] |= names
    elif isinstance(relation, Stacked):
        _stacked(relation, names, found, joined)
    elif isinstance(relation, UnitJoined | KeyJoined | PublicJoined):
        _beside(relation, names, found, joined)
    else:
        for part in relation.parts:
            _walk(part, _below(relation, names), found, joined)


def _below(relation: Relation, names: set[str]) -> set[str]:
    """What is read of the source of a relation that is made of one other; a computed column is read, since somebody wrote it."""
    if isinstance(relation, Extended):
        computed = dict(relation.scalars)
        return (names - computed.keys()).union(*(scalar.columns() for scalar in computed.values()))
    if isinstance(relation, Filtered):
        return names | relation.where.columns()
    if isinstance(relation, Projected):
        return {old for new, old in relation.names if new in names}
    if isinstance(relation, PerUnit):
        keys = {key for key in relation.keys if key in names or not _names_unit(relation.source, key)}
        return keys | {each.column for each in relation.aggregates if each.column is not None}
    return names


def _names_unit(relation: Relation, column: str) -> bool:
    """Whether a column is the declared one that says whose row a row is."""
    units = {f"{name}.{table.unit}" for name, table in relation.tables().items() if table.unit is not None}
    return relation.origins(column) <= units


def _beside(
    relation: UnitJoined | KeyJoined | PublicJoined, names: set[str], found: dict[str, set[str]], joined: set[str]
) -> None:
    joined.update(relation.bases(), relation.publics())
    if isinstance(relation, PublicJoined):
        own = {name for name in names if name in relation.source.columns}
        _walk(relation.source, own | {column for column, _ in relation.on}, found, joined)
        found[relation.name] |= {public for _, public in relation.on} | {public for _, public in relation.taken}
        return
    left = {name for name in names if name in relation.left.columns}
    right = names - left
    if isinstance(relation, KeyJoined):
        right.add(relation.right_key)
    else:
        left.update(mine for mine, _ in relation.on)
        right.update(theirs for _, theirs in relation.on)
    _walk(relation.left, left, found, joined)
    _walk(relation.right, right, found, joined)


def _stacked(relation: Stacked, names: set[str], found: dict[str, set[str]], joined: set[str]) -> None:
    """Parts about different tables must agree in every column, so each of these counts."""
    several = len({part.bases() for part in relation.sources}) > 1
    if several:
        joined.update(relation.bases(), relation.publics())
    for part in relation.sources:
        _walk(part, relation.columns if several else names, found, joined)
