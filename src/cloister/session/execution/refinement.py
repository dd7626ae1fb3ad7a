"""Answers that follow from releases that were paid for: a coarser grouping is the sum of finer groups, a condition on a key is
a choice among them.

It is post-processing of noisy numbers, so it costs nothing. It is offered where it is *the same number with noise*: the finer
question was about the same rows of the same version, its dropped keys put every row in exactly one group (rows without a value
have a group of their own, which is measured and not shown), and the raws that are added up are additive over groups: rows,
values and sums, and units where a row is a unit.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cloister.session.execution.answer import FOLLOWS, additive, cellwise
from cloister.session.execution.history import History
from cloister.session.planning.grid import Axis, Grid
from cloister.session.planning.plan import Plan
from cloister.session.planning.shape import Shape
from cloister.session.questions.question import Combined, Statistic, key_name
from cloister.session.releases.formulas import Formula, Reading
from cloister.session.releases.uncertainty import Terms
from cloister.session.workloads.marginal_terms import Copies, gathered
from cloister.tables import Expression
from cloister.tables.expression.evaluate import holds

_MOST_KEPT = 64


@dataclass(frozen=True)
class Refinement:
    """How the answer to `wanted` is read off a release of `finer`: which of its cells add up to which group."""

    wanted: Shape
    finer: Shape
    places: npt.NDArray[np.int64]
    """For each cell of the finer grid the cell of the wanted one; -1 where the wanted condition leaves it out."""
    formulas: tuple[Formula, ...]
    cells: int
    """How many finer cells make up one wanted cell: equally many everywhere."""

    def readings(self, found: History) -> list[dict[str, Reading]]:
        """The raws of the wanted groups, one dictionary a purchase."""
        return [{name: self._reading(reading) for name, reading in stored.parts[0].readings.items()} for stored in found.stored]

    def _reading(self, reading: Reading) -> Reading:
        inside = self.places >= 0
        kind = object if reading.values.dtype == object else reading.values.dtype
        values = np.zeros(self.wanted.grid.cells, dtype=kind)
        np.add.at(values, self.places[inside], reading.values[inside])
        return Reading(values, self.summed(reading.terms))

    def summed(self, terms: Terms) -> Terms:
        """The noises of a wanted group, given those of a finer one."""
        return gathered([Copies(term, self.cells) for term in terms])


def subject(shape: Shape) -> tuple[str, str, str]:
    """What a question is about: only questions about the same rows can follow from one another."""
    return shape.population, shape.version, shape.fingerprint


def refinement(wanted: Shape, finer: Shape) -> Refinement | None:
    """How the wanted answer follows from the finer one; None where it does not."""
    if subject(wanted) != subject(finer) or not wanted.grid.declared or not finer.grid.declared or not cellwise(finer):
        return None
    if not {axis.name for axis in wanted.grid.axes} <= {axis.name for axis in finer.grid.axes}:
        return None
    formulas = _formulas(wanted.question.statistics, finer)
    places = None if formulas is None else _places(wanted, finer)
    if formulas is None or places is None:
        return None
    counts = np.bincount(places[places >= 0], minlength=wanted.grid.cells)
    if len(set(counts.tolist())) != 1 or counts[0] == 0 or (counts[0] > 1 and not additive(finer)):
        return None
    return Refinement(wanted, finer, places, formulas, int(counts[0]))


class Kept:
    """The shapes that one session bought, of each table the latest: what else it asks may follow from them."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, str, str], OrderedDict[str, Shape]] = {}

    def add(self, shape: Shape) -> None:
        """One was bought."""
        kept = self._shapes.setdefault(subject(shape), OrderedDict())
        kept[shape.digest] = shape
        kept.move_to_end(shape.digest)
        while len(kept) > _MOST_KEPT:
            kept.popitem(last=False)

    def refinements(self, wanted: Shape) -> Iterator[Refinement]:
        """How it follows from each that is finer, the latest first; from none where it was bought itself."""
        kept = self._shapes.get(subject(wanted))
        if kept and wanted.digest not in kept:
            for finer in reversed(list(kept.values())):
                how = refinement(wanted, finer)
                if how is not None:
                    yield how


def foreseen(how: Refinement, plan: Plan) -> Plan:
    """The plan of an answer that follows: nothing is measured and nothing is to pay, and the error is that of the sums of the
    finer groups. `plan` is the finer question's, of which everything was bought."""
    [part] = plan.parts
    earlier = tuple({name: how.summed(terms) for name, terms in bought.items()} for bought in part.earlier)
    shape = replace(how.wanted, blocks=how.finer.blocks, formulas=how.formulas)
    return replace(plan, parts=(replace(part, shape=shape, earlier=earlier),), notes=(FOLLOWS,))


def _formulas(statistics: Sequence[Statistic], finer: Shape) -> tuple[Formula, ...] | None:
    known = {
        replace(statistic, name=""): formula for statistic, formula in zip(finer.question.statistics, finer.formulas, strict=True)
    }
    mine = {statistic.name: statistic for statistic in statistics}
    theirs = {statistic.name: statistic for statistic in finer.question.statistics}
    found = []
    for statistic in statistics:
        formula = known.get(replace(statistic, name=""))
        names = statistic.expression.names() if isinstance(statistic, Combined) else ()
        if formula is None or any(mine.get(name) != theirs.get(name) for name in names):
            return None  # arithmetic names other statistics: under other names it means something else
        found.append(replace(formula, name=statistic.name))
    return tuple(found)


def _places(wanted: Shape, finer: Shape) -> npt.NDArray[np.int64] | None:
    """The wanted cell of each finer cell."""
    extra = _extra(wanted, finer)
    if extra is None:
        return None
    chosen = {_described(axis): axis for axis in wanted.grid.axes}
    order = [_described(axis) for axis in wanted.grid.axes]
    if not set(order) <= {_described(axis) for axis in finer.grid.axes}:
        return None
    told = {column for condition in extra for column in condition.columns()}
    parts: dict[str, npt.NDArray[np.int64]] = {}
    inside = np.ones(finer.grid.cells, dtype=bool)
    cells = np.arange(finer.grid.cells, dtype=np.int64)
    for axis in reversed(finer.grid.axes):
        cells, place = np.divmod(cells, axis.size or 1)
        name = _described(axis)
        if axis.name in told:
            allowed = _allowed(axis, extra, finer)
            if allowed is None:
                return None
            inside &= allowed[place]
            told -= {axis.name}
        if name in chosen:
            parts[name] = _translated(axis, chosen[name])[place]
            inside &= parts[name] >= 0
        elif not axis.complete:
            return None
    if told:
        return None
    places = np.zeros(finer.grid.cells, dtype=np.int64)
    for name in order:
        places = places * (chosen[name].size or 1) + parts[name]
    return np.where(inside, places, -1)


def _extra(wanted: Shape, finer: Shape) -> list[Expression] | None:
    """What the wanted condition asks beyond the finer one."""
    if not finer.conditions.keys() <= wanted.conditions.keys():
        return None
    extra = [each for text, each in wanted.conditions.items() if text not in finer.conditions]
    return extra if all(each.columns() for each in extra) else None  # FALSE is of no key, and leaves none of the rows


def _allowed(axis: Axis, extra: Sequence[Expression], finer: Shape) -> npt.NDArray[np.bool_] | None:
    """Which places of a key pass the conditions on it; None where a condition reads more than the key, or the key is in bins."""
    mine = [each for each in extra if axis.name in each.columns()]
    if not isinstance(axis.key, str) or any(each.columns() != {axis.name} for each in mine):
        return None
    codes = np.empty(axis.whole or 0, dtype=object)
    codes[:-1] = range(axis.first, axis.first + len(codes) - 1)
    allowed = np.ones(len(codes), dtype=bool)
    for each in mine:
        allowed &= holds(each, finer.declaration.columns, {axis.name: codes})
    return allowed if axis.kept is None else allowed[list(axis.kept)]


def _translated(finer: Axis, wanted: Axis) -> npt.NDArray[np.int64]:
    """The place among the wanted key's groups of each of the finer key's, by their codes; -1 for those that are not wanted."""
    whole = np.arange(finer.whole or 0, dtype=np.int64)
    mine = whole if finer.kept is None else whole[list(finer.kept)]
    return wanted.place(mine + wanted.first)


@lru_cache(maxsize=4096)
def _described(axis: Axis) -> str:
    return str((key_name(axis.key), Grid((replace(axis, kept=None),)).describe()))
