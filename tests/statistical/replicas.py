"""One question measured many times over: the exact integers once, the noise again and again, as if each were a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.noise import Random
from cloister.session import Door, Question
from cloister.session.execution.answer import aggregations_of
from cloister.session.planning.plan import Part
from cloister.session.releases.formulas import Formula, Reading, reading_of


@dataclass(frozen=True)
class Replicas:
    """Independent readings of the raws of a question without keys, and its formulas by name."""

    formulas: dict[str, Formula]
    readings: dict[str, Reading]
    part: Part

    def covered(self, name: str, truth: float, confidence: float = 0.95) -> float:
        """The share of the intervals that hold the truth."""
        values = as_numbers(self.formulas[name].series(self.readings).values)
        margins = self.formulas[name].margins(self.readings, confidence)
        return float(np.mean(np.abs(values - truth) <= margins * (1 + 1e-9) + 1e-9))

    def off(self, name: str, truth: float) -> np.ndarray[Any, Any]:
        """How far each replica is from the truth."""
        return np.abs(as_numbers(self.formulas[name].series(self.readings).values) - truth)

    def width(self, name: str, confidence: float = 0.95) -> float:
        """The median margin."""
        return float(np.median(self.formulas[name].margins(self.readings, confidence)))


def replicas(table: Any, question: Question, *, budget: Any, spend: Any, copies: int, seed: int) -> Replicas:
    """`copies` measurements of a question about one group."""
    random = Random.deterministic(seed)
    with Door({"t": table}, budget=budget, random=random) as door:
        part = door.explain(question, spend).parts[0]
        prepared = door.prepared("t")
        exact: dict[str, Any] = {}
        asked = list(aggregations_of(part.shape, prepared))
        if any(block.aggregates for block in part.shape.blocks):
            exact.update(prepared.aggregate(asked.pop(0)).values)
        for block in part.shape.blocks:
            if block.leaves is not None:
                groups = prepared.aggregate(asked.pop(0))
                counts = np.zeros((1, block.leaves.count), dtype=np.int64)
                leaf = groups.keys[-1] - (block.leaves.low if block.leaves.stride == 1 else 0)
                known = leaf < block.leaves.count
                counts[0, leaf[known]] = groups.values["rows"][known]
                exact.update(block.leaves.sums(counts))
    readings = {}
    for block in part.shape.blocks:
        for raw in block.raws:
            truth = np.asarray(raw.exact(exact))
            many = np.repeat(truth, copies, axis=0)
            readings[raw.name] = reading_of(np.asarray(part.noises[raw.name].release(many, random=random)), part.noises[raw.name])
    return Replicas({formula.name: formula for formula in part.shape.formulas}, readings, part)


def as_numbers(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Dates as days."""
    if values.dtype == object:
        return np.array([value.toordinal() for value in values], dtype=np.float64)
    return values.astype(np.float64)
