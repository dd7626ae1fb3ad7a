"""Two tables of one population: people, and what each of them has several of, such as patients and their visits.

*Measured*, under one charge: pairs of columns of people, with how many rows each has in the other table; and pairs of columns of
those rows, each beside the columns of its person. Guarantee: that of `measuring.py`. A person is one row of the first relation
and at most m rows of the second (`max_rows` of the other table, or fewer where `rows=` caps them), since both are joins inside
one unit (`tables/relations`), so each table of counts has its sensitivity, 1 or m, and its noise follows.

*Drawn*: people with their number first, then so many rows for each, given the columns of the person. In a mixture of products
the component of a row has P(k | x) ∝ w_k Π_c p_kc(x_c) given some of its columns, and the others are independent within it. So
every key is a person's, and the number of rows is what the person says. Rows of one person are independent given the person's
columns: what they have in common beyond these (the same ward each time) is lost, unless they have an `order`. Then each row is
measured beside its number among the rows of its person and beside the row before it (`tables/relations/numbered.py`, at most m
rows of a person as before), and drawn given these: what leads from one row to the next stays. The column that gives the order is
sorted within each person at last.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise import Random, default_random
from cloister.privacy import Guarantee
from cloister.session import Frame, Measurer, Series, Spending
from cloister.synth.fitting import modelled
from cloister.synth.measuring import Floats, Part, check_spend, measure_all
from cloister.synth.mixture import Mixture
from cloister.synth.model import SyntheticModel
from cloister.synth.pieces import Integers
from cloister.synth.rules import Rules
from cloister.synth.states import States, states_of
from cloister.tables import Base, Binned, Capped, Followed, PerUnit, PrivateTable, Projected, Relation, UnitAggregate, UnitJoined

KIND = "related synthetic models"
IN_ORDER = "related synthetic models in order"
NUMBER = "row_number"
_BEFORE = "previous_"
_AT_ONCE = 5_000
"""People whose rows are drawn together."""


@dataclass(frozen=True, kw_only=True, repr=False)
class RelatedModel:
    """What `cl.synth.fit_related` gives: people, and their rows in another table.

    Each of the two is a synthetic model of its own: `people.answer` knows `number_of_visits` beside the columns of a person,
    `events.answer` the columns of a visit beside those of its person.
    """

    people: SyntheticModel
    events: SyntheticModel
    unit: str
    """The column that names a person, in both tables of `sample`."""
    order: str | None = None
    """The column by which the rows of a person follow one another."""

    @property
    def cost(self) -> Guarantee:
        """What was spent on both: all that ever will be."""
        return self.people.cost

    def sample(self, n: int | None = None, *, random: Random | None = None) -> dict[str, Frame]:
        """So many people with their rows in both tables, joined by a made-up key; None: as many as there are, by the noisy
        count."""
        random = default_random() if random is None else random
        *codes, times = self.people.codes(n, {}, random)
        *own, number = self.people.columns
        times = np.where(times == number.domain.null_code, 0, times)  # missing: no row there
        keys = np.arange(len(times))
        placed = [each.placed(column) for each, column in zip(own, codes, strict=True)]
        drawn = self._in_order if self.order else self._apart
        rows, kept = drawn(placed, times, random)
        named = {self.unit: Series("integer", keys)}
        named |= {each.name: each.series(column) for each, column in zip(own, codes, strict=True)}
        held = {self.unit: Series("integer", np.repeat(keys, times))}
        held |= {each.name: each.series(column) for each, column in zip(kept, rows, strict=True)}
        return {self.people.table: Frame(named), self.events.table: Frame(held)}

    def _apart(self, placed: list[Integers], times: Integers, random: Random) -> tuple[list[Integers], Sequence[States]]:
        """Rows that are independent given the person; their columns."""
        columns = self.events.columns
        return _rows_given(self.events.mixture, placed, times, columns, random), columns[len(placed) :]

    def _in_order(self, placed: list[Integers], times: Integers, random: Random) -> tuple[list[Integers], Sequence[States]]:
        """First rows, then the second of all who have one, given the first, and so on."""
        columns, own = self.events.columns, len(placed)
        half = (len(columns) - own) // 2
        number, before, kept = columns[own], columns[own + 1 : own + half], columns[own + half :]
        owners, found = [], []
        last = [np.full(len(times), each.domain.null_code) for each in kept]
        for turn in range(1, int(times.max(initial=0)) + 1):
            who = np.flatnonzero(times >= turn)
            told = {f"{_BEFORE}{each.name}": codes[who] for each, codes in zip(kept, last, strict=True)}
            known = [each[who] for each in placed]
            known.append(number.placed(np.full(len(who), number.domain.low_code + turn - 1)))
            known += [each.placed(np.full(len(who), each.domain.null_code) if turn == 1 else told[each.name]) for each in before]
            drawn = _rows_given(self.events.mixture, known, np.ones_like(who), columns, random)
            for codes, new in zip(last, drawn, strict=True):
                codes[who] = new
            owners.append(who)
            found.append(drawn)
        if not found:
            return [np.zeros(0, dtype=np.int64) for _ in kept], kept
        owner = np.concatenate(owners)
        rows = [np.concatenate(each) for each in zip(*found, strict=True)]
        by_person = np.argsort(owner, kind="stable")
        rows = [each[by_person] for each in rows]
        place = [each.name for each in kept].index(str(self.order))
        rows[place] = rows[place][np.lexsort((rows[place], owner[by_person]))]
        return rows, kept

    def save(self, path: str | Path) -> None:
        """Write both models as one JSON file; `RelatedModel.load` reads it."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    def to_json(self) -> str:
        """Both models as JSON: plain numbers and texts, nothing that runs."""
        parts = {"people": json.loads(self.people.to_json()), "events": json.loads(self.events.to_json())}
        kind = {"kind": IN_ORDER, "order": self.order} if self.order else {"kind": KIND}
        return json.dumps({"format": 1, **kind, "unit": self.unit, **parts}, ensure_ascii=False, allow_nan=False)

    @classmethod
    def load(cls, path: str | Path) -> RelatedModel:
        """The models of a file that `save` wrote. Only what this library knows is made: no code runs."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8-sig"))
            if document["kind"] not in (KIND, IN_ORDER):
                raise ValueError
            order = str(document["order"]) if document["kind"] == IN_ORDER else None
            people, events = (SyntheticModel.from_json(json.dumps(document[name])) for name in ("people", "events"))
            return cls.of(people, events, unit=str(document["unit"]), order=order)
        except (OSError, KeyError, TypeError, ValueError, RecursionError):
            raise _refused(f"{str(path)!r} is no file of related models") from None

    @classmethod
    def of(cls, people: SyntheticModel, events: SyntheticModel, unit: str, order: str | None = None) -> RelatedModel:
        """Two models of which the second begins with the columns of the first, but for its number of rows; in an order, with the
        number of each row and the columns of the row before it after them."""
        shared = [each.name for each in people.columns[:-1]]
        names = [each.name for each in events.columns]
        rest = names[len(shared) :]
        if order is not None:
            others = len(rest) // 2  # number, what stood before in all others, these, and the order anywhere among them
            told, rest = rest[:others], rest[others:]
            before = [f"{_BEFORE}{name}" for name in rest if name != order]
            if told != [NUMBER, *before] or order not in rest:
                raise _refused("its rows have no order")
        if not shared or names[: len(shared)] != shared or not rest:
            raise _refused("its two parts don't belong together")
        return cls(people=people, events=events, unit=unit, order=order)

    def __repr__(self) -> str:
        return f"{self.people}\n{self.events}\njoined by {self.unit!r}, for one charge"


def fit_related(
    session: Measurer,
    people: str,
    events: str,
    *,
    spend: Spending,
    columns: Mapping[str, Sequence[str | Binned]] | None = None,
    rows: int | None = None,
    order: str | None = None,
    purpose: str = "synthetic tables",
    progress: Callable[[str], None] = lambda _: None,
) -> RelatedModel:
    """A synthetic model of people and of another table with several rows of each, for one charge.

    Guarantee: what is measured is counts, by the door, for `spend` and no more; the rest is post-processing of that release.

    Parameters
    ----------
    people
        A table with a unit and one row of each (`unit=`, `max_rows=1`).
    events
        A table of the same population with the same unit, and at most `max_rows` rows of each.
    columns
        By table, names or `cl.Binned(name, edges)`; None: all that are declared, but the one that names people.
    rows
        At most so many rows of each person: fewer than `max_rows` leave rows out, and need less noise.
    order
        A column of `events`, of days or numbers, by which the rows of a person follow one another: then each row depends on the
        one before it, and `rows=` keeps the first. It takes more tables, so more noise in each.

    >>> from cloister.session import Door
    >>> from cloister.privacy import PureDP
    >>> from cloister.tables import Category, Integer
    >>> who = list(range(200))
    >>> patients = {"who": who, "sex": ["F", "M"] * 100}
    >>> visits = {"who": who[::2] * 2, "cost": [3] * 100 + [7] * 100}
    >>> tables = {
    ...     "patients": PrivateTable(patients, {"sex": Category(["F", "M"])}, unit="who", max_rows=1, population="p"),
    ...     "visits": PrivateTable(visits, {"cost": Integer(0, 9)}, unit="who", max_rows=2, population="p"),
    ... }
    >>> with Door(tables, budget=PureDP(1)) as door:
    ...     model = fit_related(door, "patients", "visits", spend=1)
    >>> made = model.sample(100)
    >>> len(made["patients"]), set(made["visits"]["who"].tolist()) <= set(range(100))
    (100, True)
    """
    if people == events:
        raise InvalidParameter(f"events={events!r} is invalid", why="it is the table of people", instead="another table")
    tables = [_declared(session, name) for name in (people, events)]
    if tables[0].max_rows != 1:
        why = f"each person may have {tables[0].max_rows} rows in {people!r}"
        raise InvalidParameter(f"people={people!r} is invalid", why=why, instead="a table with max_rows=1")
    left: Relation = Base(name=people, table=tables[0])
    right = Base(name=events, table=tables[1])
    own, other = _chosen_columns(columns or {}, dict(zip((people, events), tables, strict=True)))
    several: Relation = right if rows is None else Capped(source=right, rows=rows)
    if order is not None:
        several, other = _ordered(right, order, other, tables[1].max_rows if rows is None else rows)
    if left.columns.keys() & several.columns.keys():  # what is drawn of them bears different names
        names = [[each if isinstance(each, str) else each.name for each in chosen] for chosen in (own, other)]
        left, several = (
            Projected(source=side, names=tuple((each, each) for each in kept))
            for side, kept in zip((left, several), names, strict=True)
        )
    number = f"number_of_{events}"
    counted = PerUnit(source=several, aggregates=(UnitAggregate(name=number, kind="count"),))
    persons, rows_of = UnitJoined(left=left, right=counted, outer=True), UnitJoined(left=left, right=several)
    parts = [
        Part(persons, states_of(persons.columns, [*own, number], table=people), "pairs"),
        Part(rows_of, states_of(rows_of.columns, [*own, *other], table=events), "pairs"),
    ]
    for part, table in zip(parts, tables, strict=True):
        check_spend(session, part.table, part.states, spend, table.size)
    progress("measuring")
    found, origin = measure_all(session, parts, spend, purpose=purpose)
    one, each_row = (
        modelled(name, part.method, Rules((), tuple(part.states)), marginals, origin, progress=progress)
        for name, part, marginals in zip((people, events), parts, found, strict=True)
    )
    return RelatedModel.of(one, each_row, unit=str(tables[0].unit), order=order)


def _refused(why: str) -> InvalidParameter:
    return InvalidParameter("The models are invalid", why=why, instead="RelatedModel.load(path) of a file that save(path) wrote")


def _ordered(
    events: Relation, order: str, columns: Sequence[str | Binned], rows: int | None
) -> tuple[Relation, list[str | Binned]]:
    """Each row beside its number and the row before it; these and its own columns."""
    by_name = {each if isinstance(each, str) else each.name: each for each in columns}
    if order not in by_name:
        why, instead = "it is none of the columns that are drawn", f"order={min(by_name)!r}"
        raise InvalidParameter(f"order={order!r} is invalid", why=why, instead=instead)
    previous = {f"{_BEFORE}{name}": name for name in by_name if name != order}
    followed = Followed(
        source=events, by=order, number=NUMBER, previous=tuple(previous.items()), rows=1 if rows is None else rows
    )
    before = [Binned(new, each.edges) if isinstance(each := by_name[old], Binned) else new for new, old in previous.items()]
    return followed, [NUMBER, *before, *columns]


def _chosen_columns(
    columns: Mapping[str, Sequence[str | Binned]], tables: Mapping[str, PrivateTable]
) -> Iterator[list[str | Binned]]:
    """Those of each table, or all that are declared: at least one of each, and none that says whose row a row is."""
    units, asked = {table.unit for table in tables.values()}, f'columns={{"{min(tables)}": […]}}'
    for name in columns:
        if name not in tables or isinstance(columns[name], str):
            why = "it takes a list of columns" if name in tables else f"the tables are {' and '.join(tables)}"
            raise InvalidParameter(f"columns= is invalid for {name!r}", why=why, instead=asked)
    taken: set[str] = set()
    for name, table in tables.items():
        chosen = list(columns.get(name) or [each for each in table.columns if each not in units])
        names = {each if isinstance(each, str) else each.name for each in chosen}
        if units & names:
            raise InvalidParameter(f"The columns of {name!r} are invalid", why="keys are made up, not drawn", instead=asked)
        if twice := sorted(taken & names):
            why = f"both tables have a column {twice[0]!r}, and rows are drawn of it in one"
            rest = [each for each in table.columns if each not in units | taken]
            raise InvalidParameter(
                f"The columns of {name!r} are invalid", why=why, instead=f"columns={{{name!r}: {rest or ['…']!r}}}"
            )
        taken |= names
        if not chosen:
            why = "it has no column beside the one that says whose row a row is"
            raise InvalidParameter(f"The table {name!r} is invalid", why=why, instead="a table with another column")
        yield chosen


def _declared(session: Measurer, name: str) -> PrivateTable:
    table = session.declared(name)
    if isinstance(table, PrivateTable) and table.unit is not None:
        return table
    raise InvalidParameter(
        f"{name!r} is invalid",
        why="no column of it says whose row a row is",
        instead='cl.PrivateTable(…, unit="patient", max_rows=…)',
    )


def _rows_given(
    mixture: Mixture, placed: Sequence[Integers], times: Integers, columns: Sequence[States], random: Random
) -> list[Integers]:
    """For each person, of whom the first columns are known by their states, so many rows: the codes of the other columns."""
    known, rest = len(placed), range(len(placed), len(columns))
    found: list[list[Integers]] = [[] for _ in rest]
    logs = [np.log(np.maximum(column, 1e-30)).T for column in mixture.columns[:known]]
    for first in range(0, max(len(times), 1), _AT_ONCE):
        here = slice(first, first + _AT_ONCE)
        scores = np.log(np.maximum(mixture.weights, 1e-30)) + sum(log[one[here]] for log, one in zip(logs, placed, strict=True))
        ends = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf)).cumsum(axis=1)
        owner = np.repeat(np.arange(len(ends)), times[here])
        component = (ends[owner] < (random.uniform(len(owner)) * ends[owner, -1])[:, None]).sum(axis=1)
        for place, codes in zip(rest, found, strict=True):
            chosen = _chosen(mixture.columns[place], component, random)
            one = columns[place].pieces
            codes.append(one.at(chosen, columns[place].number, None if one.single else random.uniform(len(chosen))))
    return [np.concatenate(codes) for codes in found]


def _chosen(shares: Floats, component: Integers, random: Random) -> Integers:
    """A state for each row, by the shares of its component."""
    ends = np.cumsum(shares, axis=1)
    ends = ends / ends[:, -1:] + np.arange(len(shares))[:, None]
    place = np.searchsorted(ends.ravel(), component + random.uniform(len(component)), side="right")
    return np.asarray(np.clip(place - component * shares.shape[1], 0, shares.shape[1] - 1))
