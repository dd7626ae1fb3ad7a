"""Streams that a ledger keeps: charged to a population when they open, and resumed after their process has ended.

What a stream keeps of the data between steps, such as the exact sums of a counter's bins, is a secret. It is encrypted under a
key that follows from the ledger's own, and committed with the line of the step and what is published, in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Generic, Required, Self, TypedDict, TypeVar, Unpack

import numpy as np
import numpy.typing as npt

from cloister.crypto import Keyring, canonical_json
from cloister.errors import InvalidParameter, LedgerError, MissingBound
from cloister.ledger import Ledger
from cloister.ledger.measure import in_measure, kind_of
from cloister.noise import Random
from cloister.privacy import ZCDP, Exact, Guarantee, PureDP, exact, text_of
from cloister.traces import policies
from cloister.traces.averaging import ModelAverage
from cloister.traces.counter import Counter, Readings, _Mechanism
from cloister.traces.levels import Level, WindowLevel
from cloister.traces.policies import Policy, Values
from cloister.traces.step_lock import StepLock
from cloister.traces.window_stream import Estimator, GroupMean, LastRelease, LocalLevel, WindowStream

_FORMAT = 1
_POLICIES: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "uniform": (policies.Uniform, ()),
    "sampled": (policies.Sampled, ("every",)),
    "decreasing": (policies.Decreasing, ("factor",)),
    "increasing": (policies.Increasing, ("factor",)),
    "threshold": (policies.Threshold, ("above", "most")),
    "changes": (policies.Changes, ("most", "above", "looking")),
    "distribution": (policies.Distribution, ()),
    "absorption": (policies.Absorption, ()),
    "adaptive": (policies.Adaptive, ("memories",)),
}
_ESTIMATORS: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "last": (LastRelease, ()),
    "level": (LocalLevel, ("memories",)),
    "mean": (GroupMean, ("width",)),
    "average": (ModelAverage, ()),
}


class SealedStates:
    """Where the states of one stream are kept: each is encrypted, and bound to the stream's name and its step.

    >>> states = SealedStates(Ledger(), "counters", "door")
    >>> b"17" in states.seal({"sum": 17}, taken=3)
    False
    """

    def __init__(self, ledger: Ledger, purpose: str, name: str) -> None:
        self._ledger, self._name = ledger, name
        self._keys = Keyring(ledger.derive(purpose), domain="traces")

    def seal(self, state: Mapping[str, Any], taken: int) -> bytes:
        """The state after so many steps, as the ledger holds it."""
        return self._keys.wrap(json.dumps({"format": _FORMAT, **state}).encode(), f"{self._name} {taken}")

    def last(self, population: str) -> tuple[int, int, dict[str, Any]]:
        """The line of the opening, how many steps were taken, and the state after them."""
        found = self._ledger.last_step(population, self._name)
        return found.opening, found.step, json.loads(self._keys.unwrap(found.state, f"{self._name} {found.step}"))


Of = TypeVar("Of", Counter, WindowStream)


class StoredStream(Generic[Of]):
    """A stream in a ledger, under a name that a population has once.

    Guarantee: that of the stream; the population is charged its line for a person (`levels.py`), at the opening and for all
    steps. A step is drawn once: its release and the sealed state after it are committed together before it is returned, and a
    process that resumes begins with the step after the last one committed; of a step that was broken off nothing has left. Where
    a ledger was restored from a backup, steps that it does not know of may have been published; drawing them again would
    publish two noisy numbers of one exact one. So a stream that was opened before goes no further, and a new one is a new charge.
    Nor does one that was charged less than its line (`_short_of`): every step of it would make worse what is promised already.
    """

    kind: ClassVar[str]
    """What it is called where it is charged or refused; keys are of its plural."""

    def __init__(self, stream: Of, ledger: Ledger, opening: int, name: str) -> None:
        """Use `open` or `resume`."""
        self.name = name
        self._stream: Of = stream
        self._ledger, self._opening = ledger, opening
        self._states = SealedStates(ledger, f"{self.kind}s", name)
        self._lock = StepLock(
            f"{self.kind.capitalize()} {name!r} goes no further in this process",
            error=LedgerError,
            why="the ledger did not say whether it holds the last step",
            instead=f"{type(self).__name__}.resume(ledger, population, name)",
        )
        self._short: Guarantee | None = None

    @classmethod
    def _opened(cls, stream: Of, ledger: Ledger, population: str, name: str, who: str) -> Self:
        """A new stream, with a charge of its own."""
        if stream.person is None:
            raise MissingBound(
                f"{cls.kind.capitalize()} {name!r} was refused",
                why="a population is charged what is promised to a person, and nothing bounds how many readings a person sends",
                instead="most=10, or level=WindowLevel(24)",
            )
        made = cls(stream, ledger, 0, name)
        state = made._states.seal(made._state(), 0)
        made._opening = ledger.open_steps(
            population, stream.person, who=who, what=name, words=f"a {cls.kind}", state=state, marked=stream.random.marked
        )
        return made

    @classmethod
    def resume(cls, ledger: Ledger, population: str, name: str, *, random: Random | None = None) -> Self:
        """The stream as its last step left it."""
        opening, _, state = SealedStates(ledger, f"{cls.kind}s", name).last(population)
        stream = cls._read(state, random)
        if stream.random.marked and ledger.durable:
            raise LedgerError(
                f"{cls.kind.capitalize()} {name!r} was not resumed",
                why="its noise would come from a generator made for tests, which can be predicted",
                instead=f"{cls.__name__}.resume(ledger, population, name)",
            )
        resumed = cls(stream, ledger, opening, name)
        resumed._short = resumed._short_of(population)
        resumed._go_on(state)
        return resumed

    def _state(self) -> dict[str, Any]:
        """All that the next step needs, declarations included, as plain JSON."""
        raise NotImplementedError

    @classmethod
    def _read(cls, state: dict[str, Any], random: Random | None) -> Of:
        """The stream that a state is of."""
        raise NotImplementedError

    def _go_on(self, state: Mapping[str, Any]) -> None:
        """What else a state tells."""

    def _add(self, taken: int, release: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Commit a step, before it leaves."""
        told = canonical_json({"step": taken, **release}).encode()
        self._ledger.add_step(self._opening, taken, told, self._states.seal(state, taken))

    def _short_of(self, population: str) -> Guarantee | None:
        """What was charged, where that is less than the line for a person; None where it is enough.

        Earlier versions charged a window's guarantee as often as there were windows or readings of a person, whichever was less:
        too little where several readings of a person lie in one step. What was charged more stays charged.
        """
        protection = self._stream.protection
        if protection.most is None or not isinstance(protection.level, WindowLevel):
            return None
        charged = self._ledger.charges(population, what=self.name)[0].cost  # the opening: steps cost nothing
        assert charged is not None
        return None if in_measure(self.person, kind_of(charged)) <= charged else charged

    def _refuse_short(self) -> None:
        """Refuse a further step of a stream that was charged too little."""
        if self._short is not None:
            raise LedgerError(
                f"{self.name!r} goes no further",
                why=f"it was charged {self._short}, and what a person is promised with so many readings is {self.person}",
                instead="open a new one under another name; where a person sends at most one reading a step, without most=",
            )

    @property
    def taken(self) -> int:
        """How many steps are released."""
        return self._stream.taken

    @property
    def guarantee(self) -> PureDP | ZCDP:
        """What is promised at the level of the stream."""
        return self._stream.guarantee

    @property
    def person(self) -> PureDP | ZCDP:
        """What a person is promised: what the population is charged."""
        found = self._stream.person
        assert found is not None
        return found

    def margin(self, confidence: Exact = "0.95") -> float:
        """As that of the stream."""
        return self._stream.margin(confidence)

    def __str__(self) -> str:
        return f"{self.name}: {self._stream}"


class CounterTerms(TypedDict, total=False):
    """The parameters of `Counter`."""

    epsilon: Exact | None
    rho: Exact | None
    steps: Required[int]
    bounds: tuple[Exact, Exact]
    most: int | None
    level: Level
    grid: Exact
    last: int | None
    apart: int | None
    random: Random | None


class StoredCounter(StoredStream[Counter]):
    """A `Counter` in a ledger, under a name that a population has once; its guarantee is in `StoredStream`.

    >>> from cloister.privacy import ZCDP
    >>> ledger = Ledger()
    >>> _ = ledger.open("visitors", ZCDP(1), who="owner")
    >>> door = StoredCounter.open(ledger, "visitors", "door", who="ada", rho="0.02", steps=1000, most=5)
    >>> _ = door.step([1] * 30)
    >>> again = StoredCounter.resume(ledger, "visitors", "door")
    >>> again.taken, again.total == door.total, str(ledger.spent("visitors"))
    (1, True, 'ρ = 0.5')
    """

    kind = "counter"

    @classmethod
    def open(cls, ledger: Ledger, population: str, name: str, *, who: str, **declared: Unpack[CounterTerms]) -> StoredCounter:
        """A new counter, with a charge of its own; the parameters are those of `Counter`."""
        return cls._opened(Counter(**declared), ledger, population, name, who)

    @classmethod
    def _read(cls, state: dict[str, Any], random: Random | None) -> Counter:
        return Counter.from_state(state, random=random)

    @property
    def _counter(self) -> Counter:
        return self._stream

    def step(self, value: Readings = None) -> float:
        """The running sum at the end of the next step; it is durable before it is returned. See `Counter.step`."""
        self._refuse_short()
        units = self._counter._units(value)
        return self._lock.take(lambda: self._counter._drawn(units), self._keep)

    def _keep(self, drawn: _Mechanism) -> float:
        self._add(drawn.taken, {"published": drawn.published, "total": drawn.total}, self._counter._told(drawn))
        return self._counter._keep(drawn)

    def _state(self) -> dict[str, Any]:
        return self._counter.state()

    @property
    def total(self) -> float:
        """The running sum that was released last."""
        return self._counter.total


class WindowStreamTerms(TypedDict, total=False):
    """The parameters of `WindowStream`."""

    epsilon: Required[Exact]
    window: Required[int]
    steps: Required[int]
    cells: int
    reach: int
    most: int | None
    policy: Policy | None
    estimator: Estimator | None
    random: Random | None


class StoredWindowStream(StoredStream[WindowStream]):
    """A `WindowStream` in a ledger, under a name that a population has once; its guarantee is in `StoredStream`. It keeps nothing
    exact between two steps: what its policy and its estimator remember, and what the window was charged, follows from what was
    published, but for a noisy threshold.

    >>> from cloister.privacy import PureDP
    >>> ledger = Ledger()
    >>> _ = ledger.open("visitors", PureDP(10), who="owner")
    >>> rooms = StoredWindowStream.open(ledger, "visitors", "rooms", who="ada", epsilon="0.5", window=24, steps=48, cells=2)
    >>> table = rooms.step([30, 12])
    >>> again = StoredWindowStream.resume(ledger, "visitors", "rooms")
    >>> again.taken, (again.last == table).all(), str(ledger.spent("visitors"))
    (1, np.True_, 'ε = 1')
    """

    kind = "window stream"
    last: Values | None = None
    """The table that was released last."""

    @classmethod
    def open(
        cls, ledger: Ledger, population: str, name: str, *, who: str, **declared: Unpack[WindowStreamTerms]
    ) -> StoredWindowStream:
        """A new stream, with a charge of its own; the parameters are those of `WindowStream`. Policy and estimator are of this
        library: of others nobody knows how they are kept."""
        return cls._opened(WindowStream(**declared), ledger, population, name, who)

    @classmethod
    def _read(cls, state: dict[str, Any], random: Random | None) -> WindowStream:
        declared = dict(state["declared"])
        policy = _made(_POLICIES, declared.pop("policy"))
        estimator = _made(_ESTIMATORS, declared.pop("estimator"), declared["cells"])
        stream = WindowStream(**declared, policy=policy, estimator=estimator, random=random)
        stream.restore(state["stream"])
        return stream

    def _go_on(self, state: Mapping[str, Any]) -> None:
        self.last = None if state["last"] is None else np.array(state["last"])

    def step(self, totals: Any) -> Values:
        """The table of the next step; it is durable before it is returned. See `WindowStream.step`."""
        self._refuse_short()
        counts = self._stream._counts(totals)
        return self._lock.take(self._stream._shared_out, lambda spending: self._released(counts, spending))

    def _released(self, counts: npt.NDArray[Any], spending: tuple[Fraction, Fraction, Fraction, Fraction]) -> Values:
        table = np.array(self._stream._released(counts, spending))
        self._add(self.taken, {"table": table.tolist()}, self._state(table))
        self.last = table
        return table

    def _state(self, last: Values | None = None) -> dict[str, Any]:
        stream = self._stream
        declared = {
            "epsilon": text_of(stream.guarantee.epsilon),
            "window": stream.window,
            "steps": stream.protection.steps,
            "cells": stream.cells,
            "reach": stream.reach,
            "most": stream.protection.most,
            "policy": _told(_POLICIES, stream.policy),
            "estimator": _told(_ESTIMATORS, stream.estimator),
        }
        return {"declared": declared, "stream": stream.state(), "last": None if last is None else last.tolist()}


def _told(kinds: dict[str, tuple[type[Any], tuple[str, ...]]], made: Any) -> list[Any]:
    for name, (kind, parameters) in kinds.items():
        if type(made) is kind:
            return [name, [_plain(getattr(made, each)) for each in parameters]]
    raise InvalidParameter(
        f"A {type(made).__name__} is invalid",
        why="only policies and estimators of this library can be kept in a ledger",
        instead="policy=Adaptive(), estimator=LocalLevel(cells)",
    )


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    return list(value) if isinstance(value, tuple) else text_of(exact(value))


def _made(kinds: dict[str, tuple[type[Any], tuple[str, ...]]], told: list[Any], *given: int) -> Any:
    name, values = told
    kind, parameters = kinds[name]
    options = {each: tuple(value) if isinstance(value, list) else value for each, value in zip(parameters, values, strict=True)}
    return kind(*given, **options)
