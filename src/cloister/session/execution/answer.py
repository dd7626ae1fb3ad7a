"""From a plan to readings, and from readings to a release.

`measured` is the only function in which exact aggregates and noise meet: it takes the engine's integers and gives back noisy
ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session.execution.history import History
from cloister.session.planning.plan import Part, Plan
from cloister.session.planning.shape import Shape
from cloister.session.questions.declared import table_name
from cloister.session.questions.spend import amount_of
from cloister.session.questions.threshold import Threshold
from cloister.session.releases.formulas import Formula, Reading, combined, cut, reading_of
from cloister.session.releases.frames import Values
from cloister.session.releases.quantiles import Frequent, Ordered
from cloister.session.releases.release import Provenance, Release
from cloister.session.releases.store import Found
from cloister.session.releases.uncertainty import in_words
from cloister.tables import Aggregate, Aggregation, Groups, Prepared, Related, Strided
from cloister.tables.engines.compiler import CompiledQuery
from cloister.tables.engines.engine import joined, size_of
from cloister.tables.engines.workspace import Room

if TYPE_CHECKING:
    from cloister.session.execution.refinement import Refinement


FOLLOWS = "it follows from a finer answer that was charged before; fresh=True runs it again, with the margin that the spend gives"


def aggregations_of(shape: Shape, table: Any) -> tuple[Aggregation, ...]:
    """What the engine is asked: the aggregates of all blocks in one pass over the rows, and for each hierarchy the number of rows
    in each group and leaf."""
    found = [] if _only_leaves(shape) else [aggregation_of(shape, table)]
    for block in shape.blocks:
        if block.leaves is not None:
            leaf = block.leaves.column if block.leaves.stride == 1 else Strided(block.leaves.column, block.leaves.stride)
            keys = (*shape.question.by, leaf)
            found.append(replace(aggregation_of(shape, table), keys=keys, aggregates=(Aggregate("rows", "rows"),)))
    return tuple(found)


def aggregation_of(shape: Shape, table: Any) -> Aggregation:
    """The aggregates of all blocks that are made of aggregates; the rows alone where there are none."""
    aggregates = {aggregate.name: aggregate for block in shape.blocks for aggregate in block.aggregates}
    return Aggregation(
        table=table,
        where=shape.question.where,
        keys=shape.question.by,
        aggregates=tuple(aggregates.values()) or (Aggregate("rows", "rows"),),
        max_rows=shape.declaration.max_rows if isinstance(shape.question.table, str) else None,  # a relation holds its caps
        missing=shape.grid.declared,
    )


def cellwise(shape: Shape) -> bool:
    """Whether each raw is one number a group, so that raws of groups can be added up."""
    return all(block.leaves is None for block in shape.blocks)


def additive(shape: Shape) -> bool:
    """Whether a raw of a coarser group is the sum of those of its parts: not so for people who may be in several groups, and for
    numbers of different values."""
    names = [raw.name for block in shape.blocks for raw in block.raws]
    persons = shape.declaration.unit is not None and "units" in names
    return not persons and not any(name.startswith("distinct:") for name in names)


def _only_leaves(shape: Shape) -> bool:
    return not any(block.aggregates for block in shape.blocks)


Asked = tuple[Aggregation, CompiledQuery | None]
"""What the engine is asked, and how it was compiled where it was."""


def measured(part: Part, table: Prepared | Related, random: Random, asked: Sequence[Asked] | None = None) -> Found:
    """Exact aggregates in, noisy integers out. Noise is drawn for all groups of a raw at once."""
    asked = [(each, None) for each in aggregations_of(part.shape, table)] if asked is None else asked
    if _only_leaves(part.shape):
        return Found(None, _noised(part, _leaf_sums(part.shape, table, asked), random))
    (aggregation, compiled), *asked = asked
    if part.threshold is not None:
        return _of_undeclared(part, table, aggregation, compiled, random)
    groups = table.aggregate(aggregation, compiled)
    if part.shape.blocks[0].name == "over_cap":
        beyond = table.aggregate(replace(aggregation, max_rows=part.shape.max_rows + 1))
        return Found(None, _noised(part, {"rows": beyond.values["rows"] - groups.values["rows"]}, random))
    aggregates: Mapping[str, Values] = groups.values  # without keys there is one cell, and one row
    if part.shape.grid.axes:
        places = part.shape.grid.place(groups)
        aggregates = {name: part.shape.grid.spread(values, places) for name, values in groups.values.items()}
    return Found(None, _noised(part, {**aggregates, **_leaf_sums(part.shape, table, asked)}, random))


def _leaf_sums(shape: Shape, table: Prepared | Related, asked: Sequence[Asked]) -> dict[str, Values]:
    """The exact sums of all hierarchies, a row a group. Rows without a value are in no leaf."""
    found: dict[str, Values] = {}
    hierarchies = [block.leaves for block in shape.blocks if block.leaves is not None]
    for leaves, (aggregation, compiled) in zip(hierarchies, asked, strict=True):
        groups = table.aggregate(aggregation, compiled)
        cells = shape.grid.place(Groups(groups.keys[:-1], groups.values))
        leaf, rows = groups.keys[-1], groups.values["rows"]
        if leaves.stride == 1 and leaves.low:
            leaf = leaf - leaves.low
        domain = shape.declaration.columns[leaves.column]
        values = -(-(domain.high_code - domain.low_code + 1) // leaves.stride)
        outside = cells < 0
        outside |= leaf < 0
        outside |= leaf >= values  # after the last value the engine puts the rows without one
        counts = np.zeros(shape.grid.cells * leaves.count, dtype=np.int64)
        places = cells * leaves.count
        places += leaf
        if outside.any():
            places, rows = places[~outside], rows[~outside]
        counts[places] = rows
        found.update(leaves.sums(counts.reshape(shape.grid.cells, leaves.count)))
    return found


def _of_undeclared(
    part: Part, table: Prepared | Related, aggregation: Aggregation, compiled: CompiledQuery | None, random: Random
) -> Found:
    """Keys whose noisy number of units reaches the threshold, in the order of the keys; the other raws are noised for those
    alone. The engine tells the groups piece by piece, and of each only what is shown is kept."""
    assert part.threshold is not None
    shown: list[tuple[Groups, Values]] = []

    def take(groups: Groups, room: Room) -> None:
        # engines tell groups in whatever order their threads end; the same seed must give the same answer
        shown.append((groups, groups.values["units"]) if random.marked else _past_threshold(part, groups, random))
        room.take(sum(map(size_of, (*shown[-1][0].keys, *shown[-1][0].values.values()))))

    table.each(aggregation, compiled, take)
    groups, units = _together([each for each, _ in shown]), joined([each for _, each in shown])
    order = _order(groups.keys)
    groups, units = _taken(groups, order), units[order]
    if random.marked:
        groups, units = _past_threshold(part, groups, random)
    readings = _noised(part, groups.values, random, but="units")
    readings["units"] = reading_of(units, part.noises["units"])
    return Found(groups.keys, readings, part.threshold)


def _past_threshold(part: Part, groups: Groups, random: Random) -> tuple[Groups, Values]:
    """The groups whose noisy number of units reaches the threshold, with that number."""
    assert part.threshold is not None
    units = np.asarray(part.noises["units"].release(groups.values["units"], random=random))
    kept = np.flatnonzero(units >= part.threshold.least)
    return _taken(groups, kept), units[kept]


def _together(pieces: Sequence[Groups]) -> Groups:
    return Groups(
        tuple(joined(keys) for keys in zip(*(each.keys for each in pieces), strict=True)),
        {name: joined([each.values[name] for each in pieces]) for name in pieces[0].values},
    )


def _noised(part: Part, aggregates: Mapping[str, Values], random: Random, *, but: str = "") -> dict[str, Reading]:
    return {
        raw.name: reading_of(
            np.asarray(part.noises[raw.name].release(raw.exact(aggregates), random=random)), part.noises[raw.name]
        )
        for block in part.shape.blocks
        for raw in block.raws
        if raw.name != but
    }


def _order(keys: tuple[Values, ...]) -> Values:
    """Sorted by the first key, then the second; NULL last."""
    order = np.arange(len(keys[0]) if keys else 0)
    for key in reversed(keys):
        if key.dtype == object:  # not as an array of texts: there each would take the room of the longest
            texts = [(value is None, "" if value is None else value) for value in key[order]]
            order = order[sorted(range(len(order)), key=texts.__getitem__)]
        else:
            order = order[np.argsort(key[order], kind="stable")]
    return order


def _taken(groups: Groups, places: Values) -> Groups:
    return Groups(tuple(key[places] for key in groups.keys), {name: values[places] for name, values in groups.values.items()})


def assembled(plan: Plan, history: History, *, who: str) -> list[Release]:
    """The releases of all parts: readings of the same raw combined, costs added up."""
    total = history.cost()
    return [_released(part, place, history, total, who) for place, part in enumerate(plan.parts)]


def refined(how: Refinement, history: History, *, who: str) -> Release:
    """The answer that follows from a finer release: its readings are sums of that one's."""
    release = _release(_Answer(how.wanted, how.formulas, True), how.readings(history), None, None, history, history.cost(), who)
    return replace(release, notes=(*release.notes, FOLLOWS))


def released_from(
    shape: Shape, formulas: tuple[Formula, ...], readings: Mapping[str, Reading], history: History, *, who: str, repeated: bool
) -> Release:
    """The answer that follows from readings which were worked out from those of several measurements."""
    return _release(_Answer(shape, formulas, repeated), [readings], None, None, history, history.cost(), who)


def released_part(plan: Plan, place: int, history: History, *, who: str) -> Release:
    """The answer of one part of a plan."""
    return _released(plan.parts[place], place, history, history.cost(), who)


@dataclass(frozen=True)
class _Answer:
    """What a release is of: a shape, its formulas, and whether it was all bought before."""

    shape: Shape
    formulas: tuple[Formula, ...]
    repeated: bool


def _released(part: Part, place: int, history: History, total: Mapping[str, Guarantee], who: str) -> Release:
    found = [stored.parts[place] for stored in history.stored]
    answer = _Answer(part.shape, part.shape.formulas, part.repeated)
    readings = [dict(each.readings) for each in found]
    return _release(answer, readings, found[0].keys, found[0].threshold, history, total, who)


def _release(
    answer: _Answer,
    found: Sequence[Mapping[str, Reading]],
    keys: tuple[Values, ...] | None,
    threshold: Threshold | None,
    history: History,
    total: Mapping[str, Guarantee],
    who: str,
) -> Release:
    shape = answer.shape
    readings = {name: combined([each[name] for each in found]) for name in found[0]}
    visible = shape.grid.visible() if keys is None else None
    if visible is not None and len(visible) < shape.grid.cells:
        readings = {name: cut(reading, visible) for name, reading in readings.items()}
    labels = shape.grid.labels() if keys is None else shape.grid.labels_of(keys)
    notes = () if threshold is None else (threshold.sentence(),)
    return Release(
        groups=labels,
        formulas=answer.formulas,
        readings=readings,
        cost=max(total.values(), key=amount_of),
        spent_by=total,
        provenance=Provenance(
            digest=shape.digest,
            table=table_name(shape.question.table),
            population=shape.population,
            version=shape.version,
            who=who,
            when=max(purchase.when for purchase in history.purchases),
            charges=tuple(purchase.id for purchase in history.purchases),
            mechanism=tuple(f"{name}: {_words(reading)}" for name, reading in readings.items()),
            neighbours="unbounded: one unit's rows added or removed",
            marked=any(stored.marked for stored in history.stored),
            repeated=answer.repeated,
        ),
        threshold=threshold,
        cells=len(next(iter(readings.values())).values),
        names=_shown(shape, labels),
        notes=(*notes, *_about_modes(shape, answer.formulas, readings), *_about_extremes(shape, answer.formulas, readings)),
    )


def _shown(shape: Shape, labels: Mapping[str, Any]) -> dict[str, str]:
    """All columns, without the statistics that are measured for others alone; empty where none is hidden."""
    hidden = shape.question.hidden
    names = [*labels, *(formula.name for formula in shape.formulas)]
    return {name: name for name in names if name not in hidden} if hidden else {}


def _about_extremes(shape: Shape, formulas: Sequence[Formula], readings: Mapping[str, Reading]) -> tuple[str, ...]:
    """What MIN and MAX are: no answer can tell whether one person lies beyond a value."""
    extremes = [each for each in formulas if isinstance(each, Ordered) and each.share is None]
    return tuple(
        f"{each.name} is the value that {math.ceil(each.rank(readings[each.leaves.levels_name].terms)):,} rows reach"
        " (in a group of fewer than twice as many, its median); the noise hides fewer"
        for each in extremes
        if each.name not in shape.question.hidden
    )


def _rounded_down(share: float) -> int:
    """Whole percent, and never all of them: a noisy answer is not certain."""
    return min(int(100 * share), 99)


def _about_modes(shape: Shape, formulas: Sequence[Formula], readings: Mapping[str, Reading]) -> tuple[str, ...]:
    where = " in every group" if shape.grid.axes else ""
    modes = [each for each in formulas if isinstance(each, Frequent) and each.name not in shape.question.hidden]
    chances = [_rounded_down(float(mode.chances(readings).min(initial=1.0))) for mode in modes]
    return tuple(
        f"{mode.name} has no margin; it is right with at least {chance} % confidence{where}"
        for mode, chance in zip(modes, chances, strict=True)
    )


def _words(reading: Reading) -> str:
    """The noises that lie in a reading: their laws, scales and, where several were combined, weights."""
    several = len(reading.terms) > 1
    return " + ".join(f"{f'{term.weight:.4g} × ' if several else ''}{in_words(term.noise)}" for term in reading.terms)
