"""The whole way of a question with the noise left out, in two neighbouring worlds; and what the plan's noise then gives away.

For each block of each part: how far the raws moved, in widths, against the l1 and the l2 that the block declares. For the whole
plan: Σ |Δ| / scale of all raws, which is the privacy loss of Laplace noise at its worst, against the ε that is charged; under
zCDP Σ Δ² / 2σ² against ρ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

import cloister as cl
from cloister.noise import DiscreteGaussian, Random
from cloister.session import Part, Plan
from cloister.session.execution.answer import request_of
from cloister.session.planning.zoom import Zoom
from cloister.session.questions.threshold import Threshold


@dataclass(frozen=True)
class Silent:
    """A noise that adds nothing, of the true one's scale."""

    scale: Any = 1

    def release(self, values: Any, *, random: Any = None) -> Any:
        """The values."""
        return np.asarray(values)


@dataclass(frozen=True, kw_only=True)
class Moved:
    """How far one block moved, in widths, and how far it may."""

    block: str
    l1: Fraction
    most_l1: int
    l2_squared: Fraction
    most_l2_squared: int

    @property
    def breaks(self) -> bool:
        """Whether the declared sensitivity is wrong."""
        return self.l1 > self.most_l1 or self.l2_squared > self.most_l2_squared

    @property
    def share(self) -> float:
        """How much of the L1 bound was used."""
        return float(self.l1 / self.most_l1)


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What one question gives away of the ghost."""

    moved: tuple[Moved, ...]
    loss: Fraction
    charged: Fraction
    keys_alone: int
    """Groups that only one of the worlds has: of undeclared keys."""
    most_keys: int

    @property
    def breaks(self) -> bool:
        """Whether something is larger than what is declared or charged."""
        return any(each.breaks for each in self.moved) or self.loss > self.charged or self.keys_alone > self.most_keys


def exact_raws(session: cl.Session, part: Part) -> dict[str, dict[Any, Any]]:
    """Each raw as it would be noised, by its group: the very code of the door, with silent noise."""
    noises: Any = {name: Silent() for name in part.noises}
    silent = replace(
        part,
        noises=noises,
        threshold=None if part.threshold is None else Threshold(least=0, delta=part.threshold.delta),
    )
    table = session.registry.snapshot.rows_of(part.shape.question.table)
    request = request_of(silent, 0, table)
    found = table.noised(request, table.compiled(request), Random.deterministic(0))
    raws: dict[str, dict[Any, Any]] = {}
    for name, values in found.values.items():
        if found.keys is None:
            groups: list[Any] = list(range(len(values)))
        else:
            groups = list(zip(*(key.tolist() for key in found.keys), strict=True))
        raws[name] = dict(zip(groups, values, strict=True))
    return raws


def loss_of(sql: str, left: cl.Session, right: cl.Session, *, spend: object = 1) -> Loss:
    """What moves between the two worlds when this question is answered in both."""
    moved: list[Moved] = []
    loss, alone, most = Fraction(0), 0, 0
    plan, other = (session.explain(sql, spend=spend) for session in (left, right))  # type: ignore[arg-type]
    for part, twin in zip(plan.parts, other.parts, strict=True):
        assert part.noises == twin.noises
        ours, theirs = exact_raws(left, part), exact_raws(right, twin)
        for block in part.shape.blocks:
            l1 = l2_squared = Fraction(0)
            for raw in block.raws:
                change = _change(ours[raw.name], theirs[raw.name])
                first, second = sum(map(abs, change)), sum(each * each for each in change)
                l1 += Fraction(first, raw.width)
                l2_squared += Fraction(second, raw.width**2)
                loss += _loss(part.noises[raw.name], first, second, ours[raw.name], theirs[raw.name])
            moved.append(
                Moved(block=block.name, l1=l1, most_l1=block.l1, l2_squared=l2_squared, most_l2_squared=block.l2_squared)
            )
        if part.threshold is not None:
            lone = set(ours["units"]) ^ set(theirs["units"])
            assert all({**ours["units"], **theirs["units"]}[group] == 1 for group in lone)
            alone += len(lone)
            most += part.shape.max_rows
    cost = plan.cost
    charged = _worth(plan, cost)
    return Loss(moved=tuple(moved), loss=loss, charged=charged, keys_alone=alone, most_keys=most)


def _additive(noise: Any) -> Any:
    return noise.noise if isinstance(noise, Zoom) else noise


def _loss(noise: Any, first: int, second: int, ours: dict[Any, Any], theirs: dict[Any, Any]) -> Fraction:
    """What a raw gives away that moved by so much in L1 and in squared L2. A quantile is chosen first, and that costs too."""
    once = _additive(noise)
    gaussian = isinstance(once, DiscreteGaussian)
    loss = second / (2 * Fraction(once.scale_squared)) if gaussian else first / Fraction(once.scale)
    if not isinstance(noise, Zoom):
        return loss
    shifts = [
        int(np.abs(noise.utilities(np.asarray(ours[group])[None]) - noise.utilities(np.asarray(theirs[group])[None])).max())
        for group in ours
    ]
    selection = noise.selection
    epsilon, most = Fraction(selection.epsilon), Fraction(selection.sensitivity)
    chosen = [epsilon * shift / most for shift in shifts]
    return loss + (sum((each**2 for each in chosen), Fraction(0)) / 8 if gaussian else sum(chosen, Fraction(0)))


def _worth(plan: Plan, cost: Any) -> Fraction:
    """What is charged, in the measure of the noise: ρ for Gaussian noise, which under (ε, δ) is what the parts say."""
    if isinstance(cost, cl.ZCDP):
        return Fraction(cost.rho)
    if any(isinstance(_additive(noise), DiscreteGaussian) for part in plan.parts for noise in part.noises.values()):
        rho = sum((amount for part in plan.parts for amount in part.amounts.values()), Fraction(0))
        assert cl.ZCDP(rho).to_approx(cost.delta).epsilon <= cost.epsilon
        return rho
    return Fraction(cost.epsilon)


def _change(ours: dict[Any, Any], theirs: dict[Any, Any]) -> list[int]:
    change: list[int] = []
    for group in {**ours, **theirs}:
        mine, other = (np.ravel(np.array(side.get(group, 0), dtype=object)).tolist() for side in (ours, theirs))
        length = max(len(mine), len(other))  # a group that one world lacks is all zeros there
        pairs = zip((*mine, *[0] * (length - len(mine))), (*other, *[0] * (length - len(other))), strict=True)
        change += [int(one) - int(two) for one, two in pairs]
    return change
