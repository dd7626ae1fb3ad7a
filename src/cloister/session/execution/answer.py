"""From a plan to readings, and from readings to a release.

`request_of` says which integers an engine is asked for and with which noise, and `measured` takes the noisy ones from it. Exact
aggregates and noise meet in the engine (`Answering.noised`), in a call that this file alone makes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session.execution.history import History
from cloister.session.planning.blocks import BEYOND
from cloister.session.planning.leaves import Leaves
from cloister.session.planning.plan import Part, Plan
from cloister.session.planning.shape import Shape
from cloister.session.questions.declared import table_name
from cloister.session.questions.spend import amount_of
from cloister.session.questions.threshold import Threshold
from cloister.session.releases.formulas import Formula, Reading, cut, reading_of, together
from cloister.session.releases.frames import Values
from cloister.session.releases.quantiles import Frequent, Ordered
from cloister.session.releases.release import Provenance, Release
from cloister.session.releases.store import Found
from cloister.session.releases.uncertainty import in_words
from cloister.tables import Aggregate, Aggregation, Answering, Strided
from cloister.tables.engines.engine import Compiled
from cloister.tables.engines.noised import Hierarchy, Integers, LevelSums, NoisedRequest

if TYPE_CHECKING:
    from cloister.session.execution.refinement import Refinement


FOLLOWS = "it follows from a finer answer that was charged before; fresh=True runs it again, with the margin that the spend gives"


def aggregations_of(shape: Shape, table: Any) -> tuple[Aggregation, ...]:
    """What the engine is asked: the aggregates of all blocks in one pass over the rows, and for each hierarchy the number of rows
    in each group and leaf."""
    whole = aggregation_of(shape, table)
    found, needed = [whole], False
    for block in shape.blocks:
        needed = needed or bool(block.aggregates)
        if block.leaves is not None:
            leaf = block.leaves.column if block.leaves.stride == 1 else Strided(block.leaves.column, block.leaves.stride)
            found.append(replace(whole, keys=(*shape.question.by, leaf), aggregates=(Aggregate("rows", "rows"),)))
        elif block.name == "over_cap":
            found.append(replace(whole, aggregates=(BEYOND,), max_rows=(shape.declaration.max_rows or 0) + 1))
    return tuple(found) if needed else tuple(found[1:])


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


def request_of(part: Part, number: int, table: Any = None) -> NoisedRequest:
    """What the engine is asked for one part of a plan: its integers with noise. The charge is not known yet."""
    shape, threshold = part.shape, part.threshold
    aggregations, hierarchies, integers = aggregations_of(shape, table), list[Hierarchy](), list[Integers]()
    plain = len(aggregations)
    for block in shape.blocks:
        leaves = block.leaves
        if leaves is None:
            integers += [Integers(raw.name, raw.map, part.noises[raw.name]) for raw in block.raws]
            continue
        if not hierarchies:
            plain -= sum(each.leaves is not None for each in shape.blocks)
        place = len(hierarchies)
        hierarchies.append(_hierarchy(leaves, aggregations[plain + place], shape))
        for raw in block.raws:
            of_leaves = raw.name in (leaves.levels_name, leaves.total_name)
            sums = LevelSums(place, leaves.total, raw.name == leaves.total_name) if of_leaves else raw.map
            integers.append(Integers(raw.name, sums, part.noises[raw.name]))
    return NoisedRequest(
        table=shape.question.table,
        aggregations=aggregations[:plain],
        integers=tuple(integers),
        cells=shape.grid.asked,
        hierarchies=tuple(hierarchies),
        threshold=None if threshold is None else ("units", threshold.least),
        number=number,
    )


def _hierarchy(leaves: Leaves, aggregation: Aggregation, shape: Shape) -> Hierarchy:
    domain = shape.declaration.columns[leaves.column]
    return Hierarchy(
        aggregation=aggregation,
        first=leaves.low if leaves.stride == 1 else 0,
        values=-(-(domain.high_code - domain.low_code + 1) // leaves.stride),
        leaves=leaves.count,
        branching=leaves.branching,
        weights=leaves.weights,
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


Asked = tuple[NoisedRequest, Compiled]
"""What the engine is asked, and what it has made of that before the charge."""


def measured(part: Part, table: Answering, random: Random, asked: Asked, charge: int | str) -> Found:
    """Noisy integers from the engine under a charge that stands, each with the law of the noise that is really in it."""
    request, compiled = asked
    answer = table.noised(request.under(charge), compiled, random)
    readings = {name: reading_of(values, answer.laws[name]) for name, values in answer.values.items()}
    return Found(answer.keys, readings, part.threshold, answer.without)


def assembled(plan: Plan, history: History, *, who: str) -> list[Release]:
    """The releases of all parts: readings of the same raw combined, costs added up."""
    total = history.cost()
    return [_released(part, place, history, total, who) for place, part in enumerate(plan.parts)]


def refined(how: Refinement, history: History, *, who: str) -> Release:
    """The answer that follows from a finer release: its readings are sums of that one's."""
    release = released_from(how.wanted, how.formulas, together(how.readings(history)), history, who=who, repeated=True)
    return replace(release, notes=(*release.notes, FOLLOWS))


def released_from(
    shape: Shape, formulas: tuple[Formula, ...], readings: Mapping[str, Reading], history: History, *, who: str, repeated: bool
) -> Release:
    """The answer that follows from readings which were worked out from those of several measurements."""
    return _release(_Answer(shape, formulas, repeated), readings, None, None, history, history.cost(), who)


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
    first, *others = [stored.parts[place] for stored in history.stored]
    answer = _Answer(part.shape, part.shape.formulas, part.repeated)
    readings = together([each.readings for each in (first, *others)]) if others else first.readings
    return _release(answer, readings, first.keys, first.threshold, history, total, who)


def _release(
    answer: _Answer,
    readings: Mapping[str, Reading],
    keys: tuple[Values, ...] | None,
    threshold: Threshold | None,
    history: History,
    total: Mapping[str, Guarantee],
    who: str,
) -> Release:
    shape = answer.shape
    visible = shape.grid.visible() if keys is None else None
    if visible is not None and len(visible) < shape.grid.cells:
        readings = {name: cut(reading, visible) for name, reading in readings.items()}
    labels = shape.grid.labels() if keys is None else shape.grid.labels_of(keys)
    notes: tuple[str, ...] = () if threshold is None else (threshold.sentence(),)
    without = sorted({name for stored in history.stored for name in stored.without})
    notes += (f"{', '.join(without)} dropped out: the answer is about the rows of the others",) if without else ()
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
            when=max([purchase.when for purchase in history.purchases]),
            charges=tuple([purchase.id for purchase in history.purchases]),
            mechanism=tuple([f"{name}: {_words(reading)}" for name, reading in readings.items()]),
            neighbours="unbounded: one unit's rows added or removed",
            marked=any(stored.marked for stored in history.stored),
            repeated=answer.repeated,
        ),
        threshold=threshold,
        cells=len(next(iter(readings.values())).values),
        names=_shown(shape, labels),
        notes=(*notes, *_about_chosen(shape, answer.formulas, readings)),
    )


def _shown(shape: Shape, labels: Mapping[str, Any]) -> dict[str, str]:
    """All columns, without the statistics that are measured for others alone; empty where none is hidden."""
    hidden = shape.question.hidden
    if not hidden:
        return {}
    return {name: name for name in [*labels, *(formula.name for formula in shape.formulas)] if name not in hidden}


def _about_chosen(shape: Shape, formulas: Sequence[Formula], readings: Mapping[str, Reading]) -> list[str]:
    """How sure the most frequent values are; and what MIN and MAX are: no answer can tell whether one person lies beyond one."""
    where = " in every group" if shape.grid.axes else ""
    modes, extremes = [], []
    for each in formulas:
        if each.name in shape.question.hidden:
            continue
        if isinstance(each, Frequent):
            chance = min(int(100 * float(each.chances(readings).min(initial=1.0))), 99)  # a noisy answer is not certain
            modes.append(f"{each.name} has no margin; it is right with at least {chance} % confidence{where}")
        elif isinstance(each, Ordered) and each.share is None:
            extremes.append(
                f"{each.name} is the value that {math.ceil(each.rank(readings[each.leaves.levels_name].terms)):,} rows reach"
                " (in a group of fewer than twice as many, its median); the noise hides fewer"
            )
    return [*modes, *extremes]


def _words(reading: Reading) -> str:
    """The noises that lie in a reading: their laws, scales and, where several were combined, weights."""
    several = len(reading.terms) > 1
    return " + ".join([f"{f'{term.weight:.4g} × ' if several else ''}{in_words(term.noise)}" for term in reading.terms])
