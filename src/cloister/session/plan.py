"""A plan says everything about an answer before a row is read: what is measured, with which noise, at which cost, with which
error.

It is computed from declarations alone, so it spends nothing and shows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from cloister.errors import UnsupportedQuery
from cloister.privacy import ApproxDP, Guarantee, Sensitivity, text_of, zero_of
from cloister.session.formulas import Linear, Ratio, Reading, combined, ordered
from cloister.session.frames import Frame, Series, text_table
from cloister.session.history import History
from cloister.session.shape import Shape, digest_of
from cloister.session.spend import Spend, shares
from cloister.session.threshold import Threshold, threshold_for
from cloister.session.uncertainty import Noise, Term, Terms, check_confidence, half_width, in_words, scaled


@dataclass(frozen=True, kw_only=True)
class Part:
    """One question with its noise: the shape, the noise of each raw, the threshold for undeclared keys, and the cost.

    >>> from cloister.session.examples import small_plan
    >>> part: Part = small_plan().parts[0]
    >>> part.mechanism(), part.sensitivity("rows").l1
    (('rows: DiscreteLaplace of scale 2, for 0.5',), Fraction(1, 1))
    """

    shape: Shape
    noises: Mapping[str, Noise]
    amounts: Mapping[str, Fraction]
    threshold: Threshold | None
    cost: Guarantee
    earlier: tuple[Mapping[str, Terms], ...] = ()
    """The noises of readings that were bought before and will be combined with these."""
    repeated: bool = False
    """Whether all of the spend was bought before: then nothing is measured."""

    def sensitivity(self, block_name: str) -> Sensitivity:
        """How far one unit moves a block, in units of its raws' widths."""
        block = next(block for block in self.shape.blocks if block.name == block_name)
        groups = min(self.shape.max_rows, self.shape.grid.cells) if self.shape.grid.declared else self.shape.max_rows
        return Sensitivity(l1=block.l1, l2_squared=block.l2_squared, l0=groups, linf=block.l1)

    def mechanism(self) -> tuple[str, ...]:
        """One line for each measured number."""
        return tuple(
            f"{raw.name}: {in_words(self.noises[raw.name])}, for {text_of(self.amounts[block.name])}"
            for block in self.shape.blocks
            for raw in block.raws
        )

    def sharpness(self) -> dict[str, Reading]:
        """Readings without values: what is known of the noise before anything is measured."""
        nothing = np.zeros(1)
        fresh = [] if self.repeated else [{name: (Term(1.0, noise),) for name, noise in self.noises.items()}]
        return {name: combined([Reading(nothing, terms[name]) for terms in (*self.earlier, *fresh)]) for name in self.noises}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What would be measured, charged and known. `str(plan)` says it in words.

    >>> from cloister.session.examples import small_plan
    >>> plan: Plan = small_plan()
    >>> str(plan.cost), plan.margin(confidence=0.95)["count"].tolist()
    ('ε = 0.5', [6.0])
    """

    parts: tuple[Part, ...]
    costs: Mapping[str, Guarantee]
    names: Mapping[str, str] = field(default_factory=dict)
    """Output column → statistic, where the asker gave other names."""
    notes: tuple[str, ...] = ()
    """What else is to be known beforehand."""

    @property
    def cost(self) -> Guarantee:
        """The charge; with several populations the largest."""
        from cloister.session.spend import amount_of

        return max(self.costs.values(), key=amount_of)

    @property
    def digest(self) -> str:
        """Equal for the same questions, whatever is spent on them."""
        return digest_of([part.shape for part in self.parts])

    @property
    def repeated(self) -> bool:
        """Whether it was all bought before."""
        return all(part.repeated for part in self.parts)

    def margin(self, confidence: float = 0.95, *, group_size: float | None = None) -> Frame:
        """The half-width to expect of each statistic in one group, before anything is spent.

        Exact for counts and sums. The error of a mean depends on how many rows its group has, which is private: it is worked
        out for `group_size` rows, or from the owner's public `size=` spread evenly over the groups, and for a value in the
        middle of the range; without either it is the whole range.
        """
        check_confidence(confidence)
        columns = {}
        for part in self.parts:
            readings = part.sharpness()
            for formula in part.shape.formulas:
                name = formula.name if formula.name not in columns else f"{part.shape.question.table}.{formula.name}"
                if isinstance(formula, Linear):
                    width = half_width(ordered(formula.terms(readings)), confidence, formula.kind == "integer")
                else:
                    width = _margin_of_mean(formula, readings, confidence, group_size or _expected_group(part.shape))
                columns[name] = Series("real", np.array([width]))
        if self.names:
            return Frame({out: columns[source] for out, source in self.names.items() if source in columns})
        return Frame(columns)

    def __str__(self) -> str:
        lines = []
        for part in self.parts:
            lines += [*_words(part), ""]
        lines.append("cost: " + "; ".join(f"{cost} of population {population!r}" for population, cost in self.costs.items()))
        expected = self.margin()
        rows = [[name, f"± {series.values[0]:,.4g}"] for name, series in expected.columns.items()]
        lines.append("expected error in each group (95 %):\n" + text_table(["statistic", "margin"], rows))
        if any(isinstance(formula, Ratio) for part in self.parts for formula in part.shape.formulas):
            lines.append(_about_means(self.parts))
        lines += [*self.notes, "nothing was spent and no row was read"]
        return "\n".join(lines)

    __repr__ = __str__


def price(shapes: Sequence[Shape], spends: Mapping[str, Spend]) -> Plan:
    """Noise and costs for shapes: within each population the spend is split over all blocks so that the total error is least."""
    parts: list[Part | None] = [None] * len(shapes)
    costs: dict[str, Guarantee] = {}
    for population in dict.fromkeys(shape.population for shape in shapes):
        spend = spends[population]
        mine = [(place, shape) for place, shape in enumerate(shapes) if shape.population == population]
        blocks = [(place, block) for place, shape in mine for block in shape.blocks]
        norms = [block.l2_squared**0.5 if spend.measure == "zcdp" else block.l1 for _, block in blocks]
        amounts = [spend.amount * share for share in shares(norms, spend.measure)]
        open_keys = [place for place, shape in mine if not shape.grid.declared]
        delta = _delta_each(spend, len(open_keys))
        for place, shape in mine:
            own = {block.name: amount for (where, block), amount in zip(blocks, amounts, strict=True) if where == place}
            noises: dict[str, Noise] = {}
            for block in shape.blocks:
                drawn = block.gaussian(own[block.name]) if spend.measure == "zcdp" else block.laplace(own[block.name])
                noises.update(zip((raw.name for raw in block.raws), drawn, strict=True))
            needs = place in open_keys
            parts[place] = Part(
                shape=shape,
                noises=noises,
                amounts=own,
                threshold=threshold_for(noises["units"], shape.max_rows, delta) if needs else None,
                cost=spend.guarantee(sum(own.values(), Fraction(0)), delta if needs else Fraction(0)),
            )
        costs[population] = spend.guarantee(spend.amount, delta * len(open_keys))
    return Plan(parts=tuple(part for part in parts if part is not None), costs=costs)


def following(plan: Plan, history: History, *, missing: bool) -> Plan:
    """The plan with what was bought before in view: its noises, and where nothing is missing no cost."""
    parts = tuple(
        replace(
            part,
            earlier=tuple(
                {name: reading.terms for name, reading in stored.parts[place].readings.items()} for stored in history.stored
            ),
            threshold=history.stored[-1].parts[place].threshold if history.stored and not missing else part.threshold,
            repeated=not missing,
        )
        for place, part in enumerate(plan.parts)
    )
    costs = plan.costs if missing else {population: zero_of(cost) for population, cost in plan.costs.items()}
    return replace(plan, parts=parts, costs=costs)


def _delta_each(spend: Spend, open_questions: int) -> Fraction:
    if not open_questions:
        return Fraction(0)
    if spend.measure == "pure" or spend.delta == 0:
        why = "their names are private, and showing those that occur needs a δ greater than 0"
        better = 'budget=cl.ZCDP("0.5", delta="1e-6")' if spend.measure == "zcdp" else 'budget=cl.ApproxDP(1, "1e-6")'
        raise UnsupportedQuery("Undeclared keys were refused", why=why, instead=f"columns={{…: cl.Category([…])}} or {better}")
    return spend.delta / open_questions


def _expected_group(shape: Shape) -> float | None:
    return None if shape.declaration.size is None else shape.declaration.size / max(shape.grid.cells, 1)


def _margin_of_mean(formula: Ratio, readings: Mapping[str, Reading], confidence: float, rows: float | None) -> float:
    if rows is None:
        return formula.width
    above, below = readings[formula.above].terms, readings[formula.below].terms
    width = half_width(ordered(scaled(above, 0.5) + scaled(below, -0.5)), confidence) / (rows * formula.codes)
    return min(width, 1.0) * formula.width


def _words(part: Part) -> list[str]:
    shape = part.shape
    question = shape.question
    lines = [f"table {question.table!r}, population {shape.population!r}, version {shape.version}"]
    lines.append(f"  groups: {shape.grid.words()}")
    if question.where is not None:
        lines.append(f"  where: {question.where}")
    unit = shape.declaration.unit
    lines.append(
        "  protects: a row (each row is one person)"
        if unit is None
        else f"  protects: all rows of one {unit!r}, of which at most {shape.max_rows} count"
    )
    for block in shape.blocks:
        names = ", ".join(f"{raw.name} ±{raw.width:,}" for raw in block.raws)
        lines.append(
            f"  measures {names} a row; one unit: L1 ≤ {block.l1:,}, L2² ≤ {block.l2_squared:,} widths;"
            f" spends {text_of(part.amounts[block.name])}"
        )
    if part.repeated:
        lines.append("  answered before: nothing is measured, and nothing is to pay")
    elif part.earlier:
        lines.append(
            f"  bought before: {len(part.earlier)} reading{'s' if len(part.earlier) > 1 else ''}, combined with this one"
        )
    lines += [f"  noise of {raw.name}: {in_words(part.noises[raw.name])}" for block in shape.blocks for raw in block.raws]
    if part.threshold is not None:
        lines.append(f"  {part.threshold.sentence()}")
    if isinstance(part.cost, ApproxDP) and part.cost.delta and shape.declaration.size:
        size = shape.declaration.size
        if part.cost.delta > Fraction(1, size * size):
            lines.append(f"  warning: δ is above 1/n² for the declared n = {size:,}")
    return lines


def _about_means(parts: Sequence[Part]) -> str:
    if all(part.shape.declaration.size is not None for part in parts):
        return "the error of a mean is for groups of equal size, from the owner's public size="
    return "the error of a mean depends on the private size of its group: plan.margin(group_size=1000)"
