"""The error to expect before anything is measured, of statistics whose error depends on private sizes.

It is the margin that the formula would give if a group had so many rows, with values spread evenly over the declared range
and, of two columns, independently: readings are made up from public facts and from the noise that is planned."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cloister.session.planning.shape import Shape
from cloister.session.planning.zoom import Zoom
from cloister.session.releases.formulas import Chosen, Formula, Ratio, Reading
from cloister.session.releases.uncertainty import half_width, scaled

ABOUT = "with values spread evenly over the declared range"


def expected(shape: Shape, blanks: Mapping[str, Reading], rows: float | None) -> dict[str, Reading]:
    """Readings of one group of so many rows (none: an empty group)."""
    found: dict[str, Reading] = {}
    for block in shape.blocks:
        leaves = block.leaves
        if leaves is not None:
            even = np.full((1, leaves.count), (rows or 0.0) / leaves.count)
            for name, values in leaves.sums(even).items():
                noise = blanks[name].terms[0].noise
                exact = noise.foreseen(values) if isinstance(noise, Zoom) else values
                found[name] = replace(blanks[name], values=exact)
        for raw in block.raws:
            if raw.name not in found:
                values = np.array([float(raw.middle) * (rows or 0.0)])
                found[raw.name] = replace(blanks[raw.name], values=values)
    return found


def chosen(units: Reading, least: int, confidence: float, rows: float | None) -> Chosen:
    """The noisy count of an undeclared group, shown because it reached `least`: of so many rows, or, where nothing is known of
    its size, the one whose margin is widest."""
    count = least + half_width(units.terms, confidence) if rows is None else max(rows, least)
    return Chosen(np.array([float(count)]), units.terms, least)


def expected_margin(formula: Formula, readings: Mapping[str, Reading], confidence: float, rows: float | None) -> float:
    """The margin of one formula: exact for counts and sums, for others at that size of the group."""
    if isinstance(formula, Ratio):
        return _of_mean(formula, readings, confidence, rows)
    return float(formula.margins(readings, confidence)[0])


def _of_mean(formula: Ratio, readings: Mapping[str, Reading], confidence: float, rows: float | None) -> float:
    """In the middle of the range; the whole range for a group of unknown size."""
    if not rows:
        return formula.width
    above, below = readings[formula.above].terms, readings[formula.below].terms
    width = half_width(scaled(above, 0.5) + scaled(below, -0.5), confidence) / (rows * formula.codes)
    return min(width, 1.0) * formula.width
