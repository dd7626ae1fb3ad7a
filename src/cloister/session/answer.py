"""From a plan to readings, and from readings to a release.

`measured` is the only function in which exact aggregates and noise meet: it takes the engine's integers and gives back noisy
ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session.formulas import Reading, combined, reading_of
from cloister.session.frames import Values
from cloister.session.history import History
from cloister.session.plan import Part, Plan
from cloister.session.release import Provenance, Release
from cloister.session.shape import Shape
from cloister.session.spend import amount_of
from cloister.session.store import Found
from cloister.session.uncertainty import in_words
from cloister.tables import Aggregation, Groups, Prepared


def aggregation_of(shape: Shape, table: Prepared | None) -> Aggregation:
    """What the engine is asked: the aggregates of all blocks, in one pass over the rows."""
    aggregates = {aggregate.name: aggregate for block in shape.blocks for aggregate in block.aggregates}
    return Aggregation(
        table=table,
        where=shape.question.where,
        keys=shape.question.by,
        aggregates=tuple(aggregates.values()),
        max_rows=shape.declaration.max_rows,
    )


def measured(part: Part, table: Prepared, random: Random) -> Found:
    """Exact aggregates in, noisy integers out. Noise is drawn for all groups of a raw at once."""
    aggregation = aggregation_of(part.shape, table)
    groups = table.aggregate(aggregation)
    if part.shape.blocks[0].name == "over_cap":
        beyond = table.aggregate(replace(aggregation, max_rows=part.shape.max_rows + 1))
        return Found(None, _noised(part, {"rows": beyond.values["rows"] - groups.values["rows"]}, random))
    if part.threshold is not None:
        return _of_undeclared(part, groups, random)
    places = part.shape.grid.place(groups)
    aggregates = {name: part.shape.grid.spread(values, places) for name, values in groups.values.items()}
    return Found(None, _noised(part, aggregates, random))


def _of_undeclared(part: Part, groups: Groups, random: Random) -> Found:
    """Keys whose noisy number of units reaches the threshold, in the order of the keys; the other raws are noised for those
    alone."""
    assert part.threshold is not None
    units = np.asarray(part.noises["units"].release(groups.values["units"], random=random))
    kept = np.flatnonzero(units >= part.threshold.least)
    kept = kept[_order(tuple(key[kept] for key in groups.keys))]
    readings = _noised(part, {name: values[kept] for name, values in groups.values.items()}, random, but="units")
    readings["units"] = reading_of(units[kept], part.noises["units"])
    return Found(tuple(key[kept] for key in groups.keys), readings, part.threshold)


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
    columns: list[Values] = []
    for key in reversed(keys):
        if key.dtype == object:
            missing = np.array([value is None for value in key], dtype=bool)
            columns += [np.array(["" if value is None else value for value in key], dtype=str), missing]
        else:
            columns.append(key)
    return np.lexsort(columns) if columns and len(columns[0]) else np.arange(len(keys[0]) if keys else 0)


def assembled(plan: Plan, history: History, *, who: str) -> list[Release]:
    """The releases of all parts: readings of the same raw combined, costs added up."""
    total = history.cost()
    return [_release(part, place, history, total, who) for place, part in enumerate(plan.parts)]


def _release(part: Part, place: int, history: History, total: Mapping[str, Guarantee], who: str) -> Release:
    shape = part.shape
    found = [stored.parts[place] for stored in history.stored]
    readings = {name: combined([each.readings[name] for each in found]) for name in found[0].readings}
    keys, threshold = found[0].keys, found[0].threshold
    return Release(
        groups=shape.grid.labels() if keys is None else shape.grid.labels_of(keys),
        formulas=shape.formulas,
        readings=readings,
        cost=max(total.values(), key=amount_of),
        spent_by=total,
        provenance=Provenance(
            digest=shape.digest,
            table=shape.question.table,
            population=shape.population,
            version=shape.version,
            who=who,
            when=max(purchase.when for purchase in history.purchases),
            charges=tuple(purchase.id for purchase in history.purchases),
            mechanism=tuple(f"{name}: {_words(reading)}" for name, reading in readings.items()),
            neighbours="unbounded: one unit's rows added or removed",
            marked=any(stored.marked for stored in history.stored),
            repeated=part.repeated,
        ),
        threshold=threshold,
        cells=len(next(iter(readings.values())).values),
        notes=() if threshold is None else (threshold.sentence(),),
    )


def _words(reading: Reading) -> str:
    """The noises that lie in a reading: their laws, scales and, where several were combined, weights."""
    several = len(reading.terms) > 1
    return " + ".join(f"{f'{term.weight:.4g} × ' if several else ''}{in_words(term.noise)}" for term in reading.terms)
