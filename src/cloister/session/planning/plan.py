"""A plan says everything about an answer before a row is read: what is measured, with which noise, at which cost, with which
error.

It is computed from declarations alone, so it spends nothing and shows nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.noise import DiscreteGaussian
from cloister.printable import finite, places_of, rounded_up
from cloister.privacy import ApproxDP, Guarantee, PureDP, Sensitivity, text_of, zero_of
from cloister.session.execution.history import History
from cloister.session.planning.choice import choice_of
from cloister.session.planning.expectation import ABOUT, chosen, expected, expected_margin
from cloister.session.planning.shape import Shape, digest_of, populations_of
from cloister.session.planning.zoom import HALF
from cloister.session.questions.declared import table_name
from cloister.session.questions.limits import limit_of
from cloister.session.questions.spend import Spend, shares
from cloister.session.questions.threshold import Threshold, threshold_for
from cloister.session.releases.formulas import Formula, Linear, Reading, Rounded, combined
from cloister.session.releases.frames import Frame, Series, text_table
from cloister.session.releases.quantiles import Ordered
from cloister.session.releases.uncertainty import Planned, Term, Terms, check_confidence, half_width, in_words
from cloister.tables import Expression
from cloister.tables.expression import wording

_ADD_UP = "whole numbers are rounded so that they add up, which may make a margin wider, mostly by 1"

_MOST_PRICED = 64
"""Spends for which the price of one shape is kept."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One question with its noise: the shape, the noise of each raw, the threshold for undeclared keys, and the cost.

    >>> from cloister.session.examples import small_plan
    >>> part: Part = small_plan().parts[0]
    >>> part.mechanism(), part.sensitivity("rows").l1
    (('rows: DiscreteLaplace of scale 2, for 0.5',), Fraction(1, 1))
    """

    shape: Shape
    noises: Mapping[str, Planned]
    amounts: Mapping[str, Fraction]
    threshold: Threshold | None
    cost: Guarantee
    earlier: tuple[Mapping[str, Terms], ...] = ()
    """The noises of readings that were bought before and will be combined with these."""
    repeated: bool = False
    """Whether all of the spend was bought before: then nothing is measured."""
    told: Expression | None = None
    """The condition as the analyst wrote it, where the part is `narrowed`."""
    narrowed: bool = False
    """Whether a view keeps some of the rows from the analyst: by a condition that is not told."""

    def sensitivity(self, block_name: str) -> Sensitivity:
        """How far one unit moves a block, in units of its raws' widths."""
        block = next(block for block in self.shape.blocks if block.name == block_name)
        groups = min(self.shape.max_rows, self.shape.grid.cells) if self.shape.grid.declared else self.shape.max_rows
        return Sensitivity(l1=block.l1, l2_squared=block.l2_squared, l0=groups, linf=block.l1)

    def mechanism(self) -> tuple[str, ...]:
        """One line for each measured number."""
        return tuple(
            f"{raw.name}: {in_words(self.noises[raw.name])}, for {_amount(self, block.name)}"
            for block in self.shape.blocks
            for raw in block.raws
        )

    def blanks(self) -> dict[str, Reading]:
        """Readings without values: what is known of the noise before anything is measured."""
        nothing, able = np.zeros(1), self.shape.declaration.abilities
        fresh = [] if self.repeated else [{name: (Term(1.0, able.noise_of(noise)),) for name, noise in self.noises.items()}]
        return {name: combined([Reading(nothing, terms[name]) for terms in (*self.earlier, *fresh)]) for name in self.noises}


@dataclass(frozen=True, kw_only=True)
class Together:
    """A question that is worked out together with others: its words, and what its answer is made of, without values."""

    words: str
    shape: Shape
    formulas: tuple[Formula, ...]
    readings: Mapping[str, Reading]


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
    owed: Mapping[str, Guarantee] = field(default_factory=dict)
    """By population, what this person's share would be charged beside it, for the use of what others paid."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Output column → statistic, where the analyst gave other names."""
    notes: tuple[str, ...] = ()
    """What else is to be known in advance."""
    together: tuple[Together, ...] = ()
    """The questions that are worked out together, from the first parts: from all but the last `alone`."""
    alone: int = 0

    @property
    def wanted(self) -> tuple[tuple[str, Mapping[str, float]], ...]:
        """For questions that are worked out together: each, and the margin of its counts and sums at 95 %."""
        return tuple(
            (each.words, {of.name: float(of.margins(each.readings, 0.95)[0]) for of in each.formulas if isinstance(of, Linear)})
            for each in self.together
        )

    @property
    def cost(self) -> Guarantee:
        """The charge; with several populations the largest, and nothing where no private table is read."""
        from cloister.session.questions.spend import amount_of

        return max(self.costs.values(), key=amount_of, default=PureDP(0))

    @property
    def digest(self) -> str:
        """Equal for the same questions, whatever is spent on them."""
        return digest_of([part.shape for part in self.parts])

    @cached_property
    def time_limit(self) -> float:
        """How many seconds the engine may work: from public facts alone."""
        seconds = 0.0
        for part in self.parts:
            passes = 1 + sum([block.leaves is not None for block in part.shape.blocks])
            seconds += limit_of(passes, part.shape.declaration.size)
        return seconds

    @cached_property
    def repeated(self) -> bool:
        """Whether it was all bought before."""
        return all(part.repeated for part in self.parts)

    def check_noise(self) -> None:
        """Refuse noise that an engine can't make."""
        for part in self.parts:
            for law in () if part.repeated else part.noises.values():
                part.shape.declaration.abilities.check_noise(law)

    def margin(self, confidence: float = 0.95, *, group_size: float | None = None) -> Frame:
        """The half-width to expect of each statistic in one group, before anything is spent; of several groupings the widest.

        Exact for counts and sums; but whole numbers that are worked out together are rounded so that they add up, which may make
        one wider, mostly by 1. A count that decides whether its undeclared group is shown may belong to a group of any size while
        it is not far above the threshold; without a size it is the widest such margin. Every other error depends on how many rows
        its group has, which is private: it is worked out for `group_size` rows, or from the owner's public `size=` spread evenly
        over the groups, and for values spread evenly over the declared range (a mean: in the middle of it); without either it is
        that of an empty group.
        """
        check_confidence(confidence)
        if group_size is not None:
            number = not isinstance(group_size, bool) and isinstance(group_size, Real)
            if not number or not 0 <= group_size <= 2**62:
                raise InvalidParameter("group_size= is invalid", why="it is not a number of rows", instead="group_size=1000")
        alone = self.parts[len(self.parts) - self.alone :] if self.together else self.parts
        asked: list[tuple[Shape, tuple[Formula, ...], Mapping[str, Reading], Threshold | None]]
        asked = [(each.shape, each.formulas, each.readings, None) for each in self.together]
        asked += [(part.shape, part.shape.formulas, part.blanks(), part.threshold) for part in alone]
        widest: dict[str, float] = {}
        first: dict[str, str] = {}  # the table whose statistic has the bare name
        for shape, formulas, blanks, threshold in asked:
            size = shape.declaration.size
            rows = group_size if group_size is not None or size is None else size / max(shape.grid.cells, 1)
            readings = {**blanks, **expected(shape, blanks, rows)}
            if threshold is not None:
                readings["units"] = chosen(readings["units"], threshold.least, confidence, rows)
            table = table_name(shape.question.table)
            for formula in formulas:
                if formula.name not in shape.question.hidden:
                    name = formula.name if first.setdefault(formula.name, table) == table else f"{table}.{formula.name}"
                    width = expected_margin(formula, readings, confidence, rows)
                    widest[name] = float(np.maximum(widest.get(name, width), width))  # one that is not known is the widest
        columns = {name: Series("real", np.array([width])) for name, width in widest.items()}
        if self.names:
            return Frame({out: columns[source] for out, source in self.names.items() if source in columns})
        return Frame(columns)

    def __str__(self) -> str:
        lines = []
        for part in self.parts:
            lines += [*_words(part), ""]
        costs = "; ".join(f"{cost} of population {population!r}" for population, cost in self.costs.items())
        lines.append(f"cost: {costs or 'nothing, since no private table is read'}")
        expected = self.margin()
        rows = [[name, _told(series.values[0])] for name, series in expected.columns.items()]
        if rows:
            where = "of the widest group" if self.together or len(self.parts) > 1 else "in each group"
            lines.append(f"expected error {where} (95 %):\n" + text_table(["statistic", "margin"], rows))
        if self.wanted:
            lines.append("questions that are worked out together from these, and the margins (95 %) of their counts and sums:")
            known = list(dict.fromkeys(name for _, margins in self.wanted for name in margins))
            shown = [
                [words, *(_told(margins[name]) if name in margins else "" for name in known)] for words, margins in self.wanted
            ]
            rounded = any(isinstance(of, Rounded) for each in self.together for of in each.formulas)
            lines += [text_table(["question", *known], shown), *([_ADD_UP] if rounded else [])]
        lines += [_about_small(part) for part in self.parts if part.threshold is not None]
        if any(not isinstance(formula, Linear) for part in self.parts for formula in part.shape.formulas):
            lines.append(_about_sizes(self.parts))
        lines += [*self.notes, "nothing was spent and no row was read"]
        return "\n".join(lines)

    __repr__ = __str__

    def picture(self) -> str:
        """The plan as a picture, in SVG: rows, what is measured, noise, answer."""
        from cloister.session.planning.picture import picture

        return picture(self)

    def summary(self, confidence: float = 0.95, *, group_size: float | None = None) -> dict[str, Any]:
        """Cost, costs by population, digest, expected margins, names, notes, text and picture (SVG), all ready for JSON.

        Money travels as exact texts, never as floats. A margin of which nothing is known, or that has no bound, is None.

        >>> from cloister.session.examples import small_plan
        >>> told = small_plan().summary()
        >>> told["cost"]["epsilon"], told["margins"], told["picture"][:4]
        ('0.5', {'count': 6.0}, '<svg')
        """
        margins = self.margin(confidence, group_size=group_size)
        return {
            "cost": guarantee_as_data(self.cost),
            "costs": {population: guarantee_as_data(cost) for population, cost in self.costs.items()},
            "digest": self.digest,
            "repeated": self.repeated,
            "confidence": confidence,
            "margins": {name: finite(float(series.values[0])) for name, series in margins.columns.items()},
            "together": [{"question": words, "margins": finite(known)} for words, known in self.wanted],
            "names": dict(self.names),
            "notes": list(self.notes),
            "time_limit": self.time_limit,
            "text": str(self),
            "picture": self.picture(),
        }

    def _repr_html_(self) -> str:
        from cloister.printable import escape

        return f"{self.picture()}<pre>{escape(str(self))}</pre>"


def _told(margin: float) -> str:
    return f"± {rounded_up(margin, places_of(margin, 4)):,.4g}"


def price(shapes: Sequence[Shape], spends: Mapping[str, Spend], weights: Sequence[Fraction] | None = None) -> Plan:
    """Noise and costs for shapes: within each population the spend is split over all blocks so that the total error is least;
    with `weights` each shape takes its part of the spend (a workload is of one population)."""
    if len(shapes) == 1 and weights is None:
        return _priced_alone(shapes[0], spends[shapes[0].population])
    return _priced(shapes, spends, weights)


def _priced_alone(shape: Shape, spend: Spend) -> Plan:
    """The same for one shape: shapes that differ only in their conditions (`shape.redirected`) have the very same blocks, and so
    the same noise at the same cost, which is worked out once."""
    known = shape.priced.get(spend)
    if known is None or known[0] is not shape.blocks or known[1] is not shape.grid:
        plan = _priced([shape], {shape.population: spend}, None)
        if len(shape.priced) < _MOST_PRICED:
            shape.priced[spend] = (shape.blocks, shape.grid, plan)
        return plan
    plan = known[2]
    [part] = plan.parts
    part = Part(shape=shape, noises=part.noises, amounts=part.amounts, threshold=part.threshold, cost=part.cost)
    return Plan(parts=(part,), costs=plan.costs)


def _priced(shapes: Sequence[Shape], spends: Mapping[str, Spend], weights: Sequence[Fraction] | None) -> Plan:
    parts: list[Part | None] = [None] * len(shapes)
    costs: dict[str, Guarantee] = {}
    for population in dict.fromkeys(shape.population for shape in shapes):
        spend = spends[population]
        mine = [(place, shape) for place, shape in enumerate(shapes) if shape.population == population]
        blocks = [(place, block) for place, shape in mine for block in shape.blocks]
        open_keys = [place for place, shape in mine if not shape.grid.declared]
        choice = choice_of(
            spend, [block for _, block in blocks], open_keys=bool(open_keys), weights=_by_block(mine, weights, spend)
        )
        delta = _delta_each(spend, choice.key_delta, [shapes[place] for place in open_keys])
        whole = sum(choice.amounts, Fraction(0))
        for place, shape in mine:
            own = {block.name: amount for (where, block), amount in zip(blocks, choice.amounts, strict=True) if where == place}
            noises: dict[str, Planned] = {}
            for block in shape.blocks:
                noises.update(zip((raw.name for raw in block.raws), choice.noises(block, own[block.name]), strict=True))
            needs = place in open_keys
            taken = spend.amount * sum(own.values(), Fraction(0)) / whole
            parts[place] = Part(
                shape=shape,
                noises=noises,
                amounts=own,
                threshold=threshold_for(noises["units"], shape.max_rows, delta) if needs else None,
                cost=spend.guarantee(taken, choice.noise_delta + (delta if needs else Fraction(0))),
            )
        cost = spend.guarantee(spend.amount, choice.noise_delta + delta * len(open_keys))
        for name in populations_of([shape for _, shape in mine]):  # several of them may share a population that is charged along
            costs[name] = costs[name] + cost if name in costs else cost
    return Plan(parts=tuple(part for part in parts if part is not None), costs=costs)


def _by_block(
    shapes: Sequence[tuple[int, Shape]], weights: Sequence[Fraction] | None, spend: Spend
) -> tuple[Fraction, ...] | None:
    """The part of the spend that each block takes, where each shape's is given."""
    if weights is None:
        return None
    whole = sum((weights[place] for place, _ in shapes), Fraction(0))
    found: list[Fraction] = []
    for place, shape in shapes:
        norms = [block.split_l2_squared**0.5 if spend.measure == "zcdp" else block.split_l1 for block in shape.blocks]
        found += [share * weights[place] / whole for share in shares(norms, spend.measure)]
    return tuple(found)


def following(plan: Plan, history: History, *, missing: bool) -> Plan:
    """The plan with what was bought before in view: its noises, and where nothing is missing no cost."""
    if missing and not history.stored:
        return plan
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


def _delta_each(spend: Spend, delta: Fraction, shapes: Sequence[Shape]) -> Fraction:
    if not shapes:
        return Fraction(0)
    if spend.measure == "pure" or spend.delta == 0:
        why = "their names are private, and showing those that occur needs a δ greater than 0"
        better = 'budget=cl.ZCDP("0.5", delta="1e-6")' if spend.measure == "zcdp" else 'budget=cl.ApproxDP(1, "1e-6")'
        key = next(axis.key for axis in shapes[0].grid.axes if axis.size is None)
        named = f'"{key}"' if isinstance(key, str) and '"' not in key else "…"
        raise UnsupportedQuery(
            "Undeclared keys are not supported", why=why, instead=f"columns={{{named}: cl.Category([…])}} or {better}"
        )
    return delta / len(shapes)


def _words(part: Part) -> list[str]:
    shape = part.shape
    question = shape.question
    lines = [f"table {table_name(question.table)!r}, population {shape.population!r}, version {shape.version}"]
    lines.append(f"  groups: {shape.grid.words()}")
    told = part.told if part.narrowed else question.where
    if part.narrowed:
        lines.append("  rows: those that your view shows")
    if told is not None:
        lines.append(f"  where: {wording.in_words(told)}")
    unit = shape.declaration.unit
    lines.append(
        _about_one_row(shape)
        if unit is None
        else f"  protects: all rows of one {unit!r}, of which at most {shape.max_rows} count"
    )
    if unit is not None and shape.max_rows > 1:
        lines.append(_about_bounds(shape))
    for block in shape.blocks:
        names = ", ".join(f"{raw.name} ±{raw.width:,}" for raw in block.raws)
        halves = ""
        if block.share is not None:
            parts = ["half" if part == HALF else str(part) for part in (1 - block.ladder, block.ladder)]
            halves = f" ({parts[0]} for a choice by rank, {parts[1]} for counts around it)"
        lines.append(
            f"  measures {names} a row; one unit: L1 ≤ {block.l1:,}, L2² ≤ {block.l2_squared:,} widths;"
            f" spends {_amount(part, block.name)}{halves}"
        )
    if part.repeated:
        lines.append("  answered before: nothing is measured, and nothing is to pay")
    elif part.earlier:
        lines.append(
            f"  bought before: {len(part.earlier)} reading{'s' if len(part.earlier) > 1 else ''}, combined with this one"
        )
    lines += _about_leaves(part)
    lines += [f"  noise of {raw.name}: {in_words(part.noises[raw.name])}" for block in shape.blocks for raw in block.raws]
    if part.threshold is not None:
        lines.append(f"  {part.threshold.sentence()}")
    if isinstance(part.cost, ApproxDP) and part.cost.delta and shape.declaration.size:
        size = shape.declaration.size
        if part.cost.delta > Fraction(1, size * size):
            lines.append(f"  warning: δ is above 1/n² for the declared n = {size:,}")
    return lines


def _about_one_row(shape: Shape) -> str:
    if shape.max_rows == 1:
        return "  protects: a row (each row is one person)"
    return f"  protects: a person, who may have a row in each of up to {shape.max_rows} parts"


def _amount(part: Part, block_name: str) -> str:
    """What a block spends, as ρ where Gaussian noise was chosen under (ε, δ)."""
    gaussian = any(isinstance(noise, DiscreteGaussian) for noise in part.noises.values())
    if gaussian and isinstance(part.cost, ApproxDP):
        return f"ρ = {float(part.amounts[block_name]):.4g} of what (ε, δ) is worth"
    return text_of(part.amounts[block_name])


def _about_bounds(shape: Shape) -> str:
    """By rows or by groups, whichever loses less, and why."""
    names = {raw.name for block in shape.blocks for raw in block.raws}
    groups = min(shape.max_rows, shape.grid.cells) if shape.grid.declared else shape.max_rows
    by_groups = f"persons are bounded by groups: one counts once in each of at most {groups}, however many rows it has there"
    by_rows = (
        f"rows and sums are bounded by rows: one has at most {shape.max_rows} in all groups together,"
        " which is less than so many in each of several groups"
    )
    told = [*([by_groups] if "units" in names else []), *([by_rows] if names - {"units"} else [])]
    return "  " + "; ".join(told)


def _about_leaves(part: Part) -> list[str]:
    """The resolution of each hierarchy and of each choice, and the rank of each extreme: public facts."""
    lines = []
    for block in part.shape.blocks:
        if block.leaves is not None:
            step = part.shape.declaration.columns[block.leaves.column].step
            found = f"{block.leaves.count:,} leaves (resolution {float(block.leaves.stride * step):,.6g})"
            how = f"branching {block.leaves.branching}" if block.share is None else "of which one is chosen"
            lines.append(f"  {'hierarchy' if block.share is None else 'values'} of {block.leaves.column}: {found}, {how}")
    blanks = part.blanks()
    for formula in part.shape.formulas:
        if isinstance(formula, Ordered) and formula.share is None:
            rank = formula.rank(blanks[formula.leaves.levels_name].terms)
            lines.append(f"  {formula.name}: the value that {rank:,.0f} rows reach or pass; fewer than that the noise could hide")
    return lines


def _about_small(part: Part) -> str:
    assert part.threshold is not None
    width = half_width(part.blanks()["units"].terms, 0.95)
    near = part.threshold.least + width
    return (
        f"a number of persons up to {near:,.0f} may be that of any smaller group, and its margin reaches down to 1; above that it"
        f" is ± {width:,.4g}"
    )


def _about_sizes(parts: Sequence[Part]) -> str:
    what = "the error of anything but a count and a sum"
    if all(part.shape.declaration.size is not None for part in parts):
        return f"{what} is for groups of equal size, from the owner's public size=, {ABOUT}"
    return f"{what} depends on the private size of its group: plan.margin(group_size=1000), {ABOUT}"


def guarantee_as_data(guarantee: Guarantee) -> dict[str, str]:
    """A guarantee as texts: its kind, how it is written, and its exact numbers.

    >>> from cloister.privacy import PureDP
    >>> guarantee_as_data(PureDP("0.1"))
    {'kind': 'PureDP', 'text': 'ε = 0.1', 'epsilon': '0.1'}
    """
    from cloister.session.releases.stored_kinds import BY_FIELDS

    form = BY_FIELDS[type(guarantee)]
    numbers = {name: text_of(amount) for name, amount in form.told(guarantee).items()}
    return {"kind": form.name, "text": str(guarantee), **numbers}
