"""A window stream that a ledger keeps: charged to a population when it opens, and resumed after its process has ended.

A window stream keeps nothing exact between two steps: what its policy and its estimator remember, and what the window was
charged, follows from what was published, but for a noisy threshold. It is sealed, and committed with the line and the release
of its step in one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Required, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.privacy.rational import Exact, exact, text_of
from cloister.traces import policies
from cloister.traces.averaging import ModelAverage
from cloister.traces.policies import Policy, Values
from cloister.traces.stored import StoredStream
from cloister.traces.window_stream import Estimator, GroupMean, LastRelease, LocalLevel, WindowStream

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
    """A `WindowStream` in a ledger, under a name that a population has once; its guarantee is in `StoredStream`.

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
