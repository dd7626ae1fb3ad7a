"""What must hold of a release that was read from a text, before anything is worked out from it.

Types follow from the annotations of the dataclasses themselves. Beyond them: every column has one length, every formula finds its
readings in the shape that it reads, and no number makes a later computation far larger than the text was.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.session.planning.leaves import MOST_LEAVES
from cloister.session.planning.zoom import Zoom, height_of
from cloister.session.questions.threshold import Threshold
from cloister.session.releases.combined import Calculated
from cloister.session.releases.formulas import Formula, Linear, Ratio, Reading
from cloister.session.releases.frames import Series
from cloister.session.releases.moment_formulas import Moment
from cloister.session.releases.postprocessed import LEVELS, Postprocessed
from cloister.session.releases.quantiles import OfLeaves
from cloister.session.releases.release import Provenance, Release
from cloister.session.releases.zoomed import Zoomed
from cloister.session.workloads.sheets import Sheets

MOST_TERMS = 10_000
"""How many noises a reading may hold: it holds one for each purchase of the same question."""
_MOST_LOOKED_AT = 500_000
"""How many noises all columns together may stand on: their margins look at each."""
_LARGEST = 1e100
"""The largest number that anything may be: none overflows in what is worked out from it."""
_LATEST = 253_402_300_799.0  # the last second of the year 9999
_TRIED = 3
_MOST_DEGREE = 8
_KINDS_OF_ARRAY = {"integer": "iO", "real": "fO", "text": "O", "date": "O", "boolean": "bO"}
_IN_OBJECTS: Mapping[str, set[type]] = {"integer": {int}, "real": {float, int}, "text": {str}, "date": {date}, "boolean": {bool}}


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def check_types(kind: type, given: Mapping[str, Any]) -> None:
    """Refuses fields that are not of the types that a dataclass declares.

    >>> from cloister.session.releases.uncertainty import Term
    >>> check_types(Threshold, {"least": "3", "delta": 0})
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The text is invalid: 'least' of a Threshold in it is of another type.
      Instead: what release.to_json() wrote
    """
    hints = _hints(kind)
    for name, value in given.items():
        if not _fits(value, hints[name]):
            raise refused(f"{name!r} of a {kind.__name__} in it is of another type")


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is typing.Literal:
        return any(value == part and type(value) is type(part) for part in parts)
    if origin is tuple:
        if len(parts) == 2 and parts[1] is Ellipsis:
            return isinstance(value, tuple) and all(_fits(each, parts[0]) for each in value)
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(_fits, value, parts))
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(isinstance(name, str) and _fits(each, parts[1]) for name, each in value.items())
    if hint is float:
        return type(value) in (float, int)
    if hint in (int, bool, str):
        return type(value) is hint
    if hint is type(None) or hint is None:
        return value is None
    return isinstance(hint, type) and isinstance(value, hint)


def check_release(release: Release) -> None:
    """Refuses a release whose parts don't belong together."""
    _check_fields(release)
    lengths = {len(each.values) for each in release.groups.values()} | {len(each.values) for each in release.readings.values()}
    if len(lengths) > 1 or not release.readings:
        raise refused("its columns are of several lengths")
    _check_keys(release)
    for reading in release.readings.values():
        _check_reading(reading)
    names = [formula.name for formula in release.formulas]
    if len(set(names)) < len(names) or set(names) & release.groups.keys():
        raise refused("two of its columns bear one name")
    if not set(release.names.values()) <= {*names, *release.groups}:
        raise refused("it shows a column that it does not have")
    for formula in release.formulas:
        _check_numbers(formula)
        _check_formula(formula, release.readings)
    looked_at = sum(len(release.readings[raw].terms) for formula in release.formulas for raw in formula.raws)
    if looked_at > _MOST_LOOKED_AT:
        raise refused("its columns stand on more noises than any question buys")
    if release.num_rows > release.cells:
        raise refused("it has more rows than there were groups")
    _check_answers(release)


def _check_answers(release: Release) -> None:
    """Works out the first rows: numbers that fit one by one may still not fit together."""
    few = release.take(range(min(_TRIED, release.num_rows)))
    with np.errstate(all="ignore"):
        few.margin()
        if len(few.table) != few.num_rows or not few.text():
            raise refused("its columns are of several lengths")


def check_sheets(release: Sheets) -> None:
    """The same for several releases as one table, each of which was looked at."""
    _check_fields(release)
    columns = [part.column_names for part in release.parts]
    if not columns or release.groups or release.formulas or release.readings or any(each != columns[0] for each in columns):
        raise refused("its parts have not the same columns")
    if not set(release.names.values()) <= set(columns[0]) or not _fits(release.places, tuple[tuple[int, int], ...]):
        raise refused("it shows a column that it does not have")
    if not all(0 <= part < len(columns) and 0 <= row < release.parts[part].num_rows for part, row in release.places):
        raise refused("it shows a row that it does not have")


def check_postprocessed(release: Postprocessed) -> None:
    """The same for a table that was worked out from releases: its columns, and a margin for each cell at each confidence."""
    _check_fields(release)
    lengths = {len(each.values) for each in release.groups.values()}
    if len(lengths) != 1 or release.formulas or release.readings or release.threshold is not None:
        raise refused("its columns are of several lengths")
    _check_keys(release)
    if not set(release.names.values()) <= set(release.groups):
        raise refused("it shows a column that it does not have")
    if not _fits(release.measured, tuple[str, ...]) or len(set(release.measured)) < len(release.measured):
        raise refused("a column in it is measured twice")
    if not set(release.measured) <= set(release.groups) or not _fits(release.margins, Mapping[str, np.ndarray]):
        raise refused("a column that it does not have is measured")
    shape = (len(LEVELS), release.num_rows)
    if set(release.margins) != set(release.measured):
        raise refused("it has not the margins of its columns")
    for table in release.margins.values():
        if table.shape != shape or table.dtype.kind != "f" or bool(np.any(table < 0)):
            raise refused("its margins are not numbers, one for each cell and confidence")
    _check_answers(release)


def _check_keys(release: Release) -> None:
    for series in release.groups.values():
        odd = series.values.dtype == object and set(map(type, series.values)) - {type(None), *_IN_OBJECTS[series.kind]}
        if odd or series.values.ndim != 1 or series.values.dtype.kind not in _KINDS_OF_ARRAY[series.kind]:
            raise refused("a key in it is not of its kind")


def _check_fields(release: Release) -> None:
    for name, hint in _release_hints().items():
        if not _fits(getattr(release, name), hint):
            raise refused(f"its {name!r} are of another type")
    if not 0 <= release.cells < 2**62:
        raise refused("it has no number of cells")
    if not 0 <= release.provenance.when <= _LATEST:
        raise refused("it is of no day")
    for guarantee in (release.cost, *release.spent_by.values()):
        _check_numbers(guarantee)
    _check_numbers(release.threshold)


def _release_hints() -> dict[str, Any]:
    from cloister.privacy import Guarantee

    return {
        "groups": Mapping[str, Series],
        "formulas": tuple[Formula, ...],
        "readings": Mapping[str, Reading],
        "cost": Guarantee,
        "spent_by": Mapping[str, Guarantee],
        "provenance": Provenance,
        "notes": tuple[str, ...],
        "threshold": Threshold | None,
        "cells": int,
        "names": Mapping[str, str],
    }


def _check_reading(reading: Reading) -> None:
    whole = reading.values.dtype.kind in "if" or all(type(each) in (int, float) for each in reading.values.ravel())
    if not whole or not reading.terms or len(reading.terms) > MOST_TERMS:
        raise refused("a reading in it holds no numbers, or no noise")
    if not _in_range(reading.values):
        raise refused("a reading in it holds a number that is no quantity")
    if not any(term.weight for term in reading.terms):  # some may be 0: of raws that a sum from 0 does not need
        raise refused("a reading in it holds no noise")
    for term in reading.terms:
        weight, scale = abs(term.weight), float(term.noise.scale)
        in_range = weight == 0 or 1 / _LARGEST <= weight <= _LARGEST
        if not in_range or not 1 / _LARGEST <= scale <= _LARGEST:
            raise refused("a noise in it is none, or without end")
        if isinstance(term.noise, Zoom) and not 2 <= term.noise.leaves <= MOST_LEAVES:
            raise refused("a noise in it is of more values than there are")
        if isinstance(term.noise, Zoom) and not 0 < term.noise.ladder < 1:
            raise refused("a noise in it is none, or without end")


def _in_range(values: np.ndarray[Any, Any]) -> bool:
    """Whether all numbers are finite and none is so large that a sum or a square of it overflows."""
    if values.dtype.kind == "f":
        return bool(np.all(np.abs(values) <= _LARGEST))
    return values.dtype.kind == "i" or all(abs(each) <= _LARGEST for each in values.ravel())


def _check_numbers(value: Any) -> None:
    """The same of every number in a formula, however deep it lies."""
    if isinstance(value, tuple):
        for each in value:
            _check_numbers(each)
    elif isinstance(value, Fraction | int | float):
        if not abs(float(value)) <= _LARGEST:  # or an error of Python's, which refuses it as well
            raise refused("a number in it is too large, or none")
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            _check_numbers(getattr(value, each.name))


def _check_formula(formula: Formula, readings: Mapping[str, Reading]) -> None:
    if isinstance(formula, Ratio) and (formula.width <= 0 or formula.codes <= 0):
        raise refused("a mean in it is of no range")
    if isinstance(formula, Moment):
        sides = formula.moments.sides
        if not 1 <= len(sides) <= 2 or len(formula.lows) != len(sides) or len(formula.widths) != len(sides):
            raise refused("a moment in it is of no column, or of several")
        if any(width <= 0 for width in formula.widths):
            raise refused("a moment in it is of no range")
        if len(formula.tops) < len(sides) or not all(1 <= side.degree <= _MOST_DEGREE and side.width > 0 for side in sides):
            raise refused("a moment in it is of no degree")
    if isinstance(formula, OfLeaves):
        _check_leaves(formula, readings)
    if isinstance(formula, Linear) and not formula.coefficients:
        raise refused("a sum in it adds nothing")
    if isinstance(formula, Calculated):
        if not set(formula.expression.names()) <= {part.name for part in formula.parts}:
            raise refused("an expression in it names a statistic that it lacks")
        for part in formula.parts:
            _check_formula(part, readings)
    for raw in formula.raws:
        if raw not in readings:
            raise refused("a column in it has no reading")
        if not isinstance(formula, OfLeaves) and readings[raw].values.ndim != 1 and not isinstance(formula, Calculated):
            raise refused("a reading in it has another shape")


def _check_leaves(formula: OfLeaves, readings: Mapping[str, Reading]) -> None:
    leaves = formula.leaves
    sound = leaves.size > 0 and leaves.stride > 0 and leaves.count <= MOST_LEAVES and leaves.branching >= 2
    sound = sound and 0 < len(leaves.weights) <= 64 and all(weight >= 0 for weight in leaves.weights) and any(leaves.weights)
    if not sound or formula.domain.size is None or not 0 <= formula.domain.high_code - leaves.low < leaves.size:
        raise refused("a column in it is read off more values than there are")
    found = readings.get(leaves.levels_name)
    if isinstance(formula, Zoomed):
        width, zooms = (
            2 * height_of(leaves.count) + 2,
            all(isinstance(each.noise, Zoom) for each in found.terms) if found else False,
        )
        fits = found is not None and zooms and found.values.ndim in (2, 3) and found.values.shape[-1] == width
        fits = fits and (found is None or found.values.ndim == 2 or found.values.shape[1] == len(found.terms))
    else:
        count = sum(blocks for weight, blocks in zip(leaves.weights, leaves.blocks, strict=True) if weight) - leaves.total
        fits = found is not None and found.values.ndim == 2 and found.values.shape[1] == count
    if not fits:
        raise refused("a reading in it has another shape")


def refused(why: str) -> InvalidParameter:
    """The refusal of a text.

    >>> print(refused("it holds no release"))
    The text is invalid: it holds no release.
      Instead: what release.to_json() wrote
    """
    return InvalidParameter("The text is invalid", why=why, instead="what release.to_json() wrote")
