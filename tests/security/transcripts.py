"""Everything that somebody sees of a session, in two neighbouring worlds that release the same noisy numbers.

The first world is *recorded*: its mechanisms draw as ever, and each draw is kept with the mechanism that made it and the exact
value that went in. The second world is *replayed*: its mechanisms give back what the first released. Neighbouring worlds that
release the same numbers must look the same to the letter: texts, types, order, refusals, charges, log lines. What is left of
the difference is what the mechanisms themselves give away, and that follows from their own laws and the two exact values:
|Δ|/scale for Laplace noise, Δ²/2σ² for Gaussian noise, the largest shift of a utility for a choice. It may not pass what the
ledger was charged. Nothing here knows a sensitivity: a bound that is too small shows as a loss that is too large.

Groups of undeclared keys whose exact count of persons is at most 1 are kept under the threshold in both worlds: that they may
show is what the threshold's δ pays, which its own tests hold.
"""

from __future__ import annotations

import copy
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.errors import EngineError
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Exponential, PermuteAndFlip, Random
from cloister.tables.engines import noised

_SELECTIONS = (Exponential, PermuteAndFlip)


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One call of a mechanism: which, what went in, what came out; for undeclared keys, whose the numbers are."""

    mechanism: Any
    value: Any
    out: Any
    keys: tuple[Any, ...] | None = None


@dataclass
class Tape:
    """The draws of one world, in their order; a second world plays the first one's back."""

    plays: Tape | None = None
    draws: list[Draw] = field(default_factory=list)
    keys: tuple[Any, ...] | None = None
    """The groups that the next draw counts persons of."""
    least: int = 0

    def release(self, mechanism: Any, value: Any, draw: Callable[[], Any]) -> Any:
        """What the mechanism releases in this world."""
        keys, self.keys = self.keys, None
        other = None if self.plays is None else self.plays.draws[len(self.draws)]
        if other is not None:
            assert mechanism == other.mechanism, f"the noise differs: {mechanism} against {other.mechanism}"
        if keys is not None:
            out = self._keyed(keys, value, other, draw)
        else:
            out = draw() if other is None else copy.deepcopy(other.out)
            assert np.shape(out) == np.shape(draw()), "a released array has another shape"
        self.draws.append(Draw(mechanism=mechanism, value=copy.deepcopy(value), out=out, keys=keys))
        return copy.deepcopy(out)

    def _keyed(self, keys: tuple[Any, ...], value: Any, other: Draw | None, draw: Callable[[], Any]) -> Any:
        out = np.asarray(draw()).copy()
        if other is not None:
            assert other.keys is not None
            known = dict(zip(other.keys, other.out, strict=True))
            for place, key in enumerate(keys):
                out[place] = known.get(key, self.least - 1)
            gone = set(other.keys) - set(keys)
            assert all(known[key] < self.least for key in gone), "a group that was shown is missing in the other world"
        out[np.asarray(value) <= 1] = self.least - 1
        return out


@contextmanager
def on(tape: Tape) -> Iterator[None]:
    """All mechanisms of the session write on this tape, or play from it."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (DiscreteLaplace, DiscreteGaussian, *_SELECTIONS):
            patch.setattr(kind, "release", _taped(kind.release, tape))  # type: ignore[attr-defined]
        patch.setattr(PermuteAndFlip, "release_each", _taped(PermuteAndFlip.release_each, tape))
        inner = noised._past_threshold

        def undeclared(units_of: Any, least: int, groups: Any, random: Random) -> Any:
            tape.keys, tape.least = tuple(zip(*(key.tolist() for key in groups.keys), strict=True)), least
            return inner(units_of, least, groups, random)

        patch.setattr(noised, "_past_threshold", undeclared)
        yield


def _taped(release: Callable[..., Any], tape: Tape) -> Callable[..., Any]:
    def taped(self: Any, value: Any, *, random: Random | None = None) -> Any:
        return tape.release(self, value, lambda: release(self, value, random=random))

    return taped


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What the draws of a question give away: in ε where the noise is Laplace's, in ρ where it is Gaussian."""

    epsilon: Fraction
    rho: Fraction

    def within(self, charged: Any) -> bool:
        """Whether a charge covers it."""
        if isinstance(charged, cl.ZCDP):
            return self.epsilon**2 / 2 + self.rho <= charged.rho
        if isinstance(charged, cl.PureDP):
            return self.rho == 0 and self.epsilon <= charged.epsilon
        if self.rho == 0:
            return bool(self.epsilon <= charged.epsilon)
        spent = cl.ZCDP(self.epsilon**2 / 2 + self.rho)
        return bool(spent.to_approx(charged.delta).epsilon <= charged.epsilon)


def loss(ours: list[Draw], theirs: list[Draw]) -> Loss:
    """The loss of the same draws over two worlds' exact values."""
    assert len(ours) == len(theirs), "one world draws more often than the other"
    epsilon = rho = Fraction(0)
    for mine, other in zip(ours, theirs, strict=True):
        law = mine.mechanism
        change = _change(mine, other)
        if isinstance(law, _SELECTIONS):
            candidates = np.shape(mine.value)[-1]
            each_choice = [change[first : first + candidates] for first in range(0, len(change), candidates)]
            losses = [Fraction(law.epsilon) * max(map(abs, shifts)) / Fraction(law.sensitivity) for shifts in each_choice]
            if any(isinstance(each.mechanism, DiscreteGaussian) for each in ours):
                rho += sum((once**2 for once in losses), Fraction(0)) / 8  # a bounded range: Cesar & Rogers 2021
            else:
                epsilon += sum(losses, Fraction(0))
        elif isinstance(law, DiscreteGaussian):
            rho += Fraction(sum(each**2 for each in change)) / (2 * Fraction(law.scale_squared))
        else:
            epsilon += Fraction(sum(map(abs, change))) / Fraction(law.scale)
    return Loss(epsilon=epsilon, rho=rho)


def _change(mine: Draw, other: Draw) -> list[int]:
    left, right = (_numbers(each) for each in (mine, other))
    return [left.get(place, 0) - right.get(place, 0) for place in {**left, **right}]


def _numbers(draw: Draw) -> dict[Any, int]:
    """The exact numbers that went in, by place, or by key."""
    flat = [int(each) for each in np.ravel(np.array(draw.value, dtype=object)).tolist()]
    return dict(enumerate(flat)) if draw.keys is None else dict(zip(draw.keys, flat, strict=True))


def lone(ours: list[Draw], theirs: list[Draw]) -> list[list[int]]:
    """For each count of undeclared keys, how many persons the groups have that only one world knows."""
    found = []
    for mine, other in zip(ours, theirs, strict=True):
        if mine.keys is not None:
            left, right = _numbers(mine), _numbers(other)
            found.append([{**left, **right}[key] for key in set(left) ^ set(right)])
    return found


@dataclass(frozen=True, kw_only=True)
class Seen:
    """All that somebody sees of one question, its secret-free parts by name; and the draws behind it."""

    parts: dict[str, Any]
    draws: list[Draw]
    charged: dict[str, Any]
    """What the ledger was charged, by population."""

    @property
    def answered(self) -> bool:
        """Whether there is an answer."""
        return "answer" in self.parts


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(level=0)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.levelname} {record.getMessage()}")


Question = dict[str, Any]
"""What `Session.sql` takes."""


def watched(session: cl.Session, tape: Tape, stages: list[str], question: Question, *, pictured: bool) -> Seen:
    """Ask, and write down everything that shows: the plan, the answer in all its forms, or the refusal; stages, log lines,
    warnings; what the ledger says afterwards. The page for a notebook takes long to draw, and is made where `pictured`."""
    heard, before, drawn = _Heard(), _charges(session), len(tape.draws)
    stages.clear()
    root = logging.getLogger()
    root.addHandler(heard)
    parts: dict[str, Any] = {}
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            how = {name: value for name, value in question.items() if name in ("spend", "dialect")}
            parts["plan"] = _told(lambda: str(session.explain(question["sql"], **how)))
            try:
                release = session.sql(**question)
            except EngineError as failure:
                raise AssertionError(f"the engine failed: {question}") from failure
            except cl.CloisterError as refusal:
                parts["refusal"] = f"{type(refusal).__name__}: {refusal}"
            else:
                parts.update(_shown(release, pictured=pictured))
            parts["warnings"] = [str(each.message) for each in warned if not issubclass(each.category, ResourceWarning)]
    finally:
        root.removeHandler(heard)
    after = _charges(session)
    parts |= {"stages": list(stages), "log": heard.lines, "remaining": str(session.remaining), "charges": after}
    charged: dict[str, Any] = {}
    for population, _, _, cost, *_ in after[len(before) :]:
        charged[population] = cost if population not in charged else charged[population] + cost
    return Seen(parts=parts, draws=tape.draws[drawn:], charged=charged)


def _told(tell: Callable[[], str]) -> str:
    try:
        return tell()
    except cl.CloisterError as refusal:
        return f"{type(refusal).__name__}: {refusal}"


def _shown(release: Any, *, pictured: bool) -> dict[str, Any]:
    stored = json.loads(release.to_json(), object_hook=lambda part: {name: part[name] for name in part if name != "when"})
    return {
        "answer": str(release),
        "json": stored,
        "schema": str(release.to_arrow().schema),
        "margin": str(release.margin().to_pydict()),
        "joint": _told(lambda: str(release.margin(joint=True).to_pydict())),
        "cost": str(release.cost),
        "html": release._repr_html_() if pictured else "",
    }


def _charges(session: cl.Session) -> list[tuple[Any, ...]]:
    ledger = session.ledger
    return [
        (each.population, each.who, each.what, each.cost, each.state, each.purpose, each.attempt)
        for population in ledger.populations()
        for each in ledger.charges(population)
    ]
