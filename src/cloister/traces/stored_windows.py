"""A window stream that a ledger keeps: charged to a population when it opens, and resumed after its process has ended.

A window stream keeps nothing exact between two steps: what its policy and its estimator remember, and what the window was
charged, follows from what was published, but for a noisy threshold. It is sealed, and committed with the line and the release
of its step in one transaction.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.crypto import Keyring, canonical_json
from cloister.errors import InvalidParameter, LedgerError
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.privacy.guarantee import Guarantee, PureDP
from cloister.privacy.rational import Exact, exact, text_of
from cloister.traces import policies
from cloister.traces.averaging import ModelAverage
from cloister.traces.policies import Policy, Values
from cloister.traces.step_lock import StepLock
from cloister.traces.stored import refuse_short, short_of
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


class StoredWindowStream:
    """A `WindowStream` in a ledger, under a name that a population has once.

    Guarantee: that of `WindowStream`; the population is charged its line for a person (`levels.py`) at the opening, for all
    steps. A step is drawn once: its release and the sealed state after it are committed together before the table is
    returned, and a process that resumes begins with the step after the last one committed; of a step that was broken off nothing
    has left. Where a ledger was restored from a backup, steps that it does not know of may have been published, so a stream that
    was opened before goes no further, and a new one is a new charge. Nor does one that was charged less than its line
    (`short_of`).

    >>> from cloister.privacy import PureDP
    >>> ledger = Ledger()
    >>> _ = ledger.open("visitors", PureDP(10), who="owner")
    >>> rooms = StoredWindowStream.open(ledger, "visitors", "rooms", who="ada", epsilon="0.5", window=24, steps=48, cells=2)
    >>> table = rooms.step([30, 12])
    >>> again = StoredWindowStream.resume(ledger, "visitors", "rooms")
    >>> again.taken, (again.last == table).all(), str(ledger.spent("visitors"))
    (1, np.True_, 'ε = 1')
    """

    def __init__(self, stream: WindowStream, ledger: Ledger, opening: int, name: str) -> None:
        """Use `open` or `resume`."""
        self.name = name
        self.last: Values | None = None
        """The table that was released last."""
        self._stream, self._ledger, self._opening = stream, ledger, opening
        self._keys = _keys(ledger)
        self._lock = StepLock(self._refusal)
        self._short: Guarantee | None = None

    @classmethod
    def open(
        cls,
        ledger: Ledger,
        population: str,
        name: str,
        *,
        who: str,
        epsilon: Exact,
        window: int,
        steps: int,
        cells: int = 1,
        reach: int = 1,
        most: int | None = None,
        policy: Policy | None = None,
        estimator: Estimator | None = None,
        random: Random | None = None,
    ) -> StoredWindowStream:
        """A new stream, with a charge of its own; the parameters are those of `WindowStream`. Policy and estimator are of this
        library: of others nobody knows how they are kept."""
        stream = WindowStream(
            epsilon=epsilon,
            window=window,
            steps=steps,
            cells=cells,
            reach=reach,
            most=most,
            policy=policy,
            estimator=estimator,
            random=random,
        )
        sealed = _sealed(_keys(ledger), stream, name, None)
        opening = ledger.open_steps(
            population, stream.person, who=who, what=name, words="a window stream", state=sealed, marked=stream.random.marked
        )
        return cls(stream, ledger, opening, name)

    @classmethod
    def resume(cls, ledger: Ledger, population: str, name: str, *, random: Random | None = None) -> StoredWindowStream:
        """The stream as its last step left it."""
        found = ledger.last_step(population, name)
        state = json.loads(_keys(ledger).unwrap(found.state, f"{name} {found.step}"))
        declared = dict(state["declared"])
        cells = declared["cells"]
        made = {
            "policy": _made(_POLICIES, declared.pop("policy")),
            "estimator": _made(_ESTIMATORS, declared.pop("estimator"), cells),
        }
        stream = WindowStream(**declared, **made, random=random)
        if stream.random.marked and ledger.durable:
            raise LedgerError(
                f"Window stream {name!r} was not resumed",
                why="its noise would come from a generator made for tests, which can be predicted",
                instead="StoredWindowStream.resume(ledger, population, name)",
            )
        stream.restore(state["stream"])
        resumed = cls(stream, ledger, found.opening, name)
        resumed.last = None if state["last"] is None else np.array(state["last"])
        resumed._short = short_of(ledger, population, name, stream.protection, stream.person)
        return resumed

    def step(self, totals: Any) -> Values:
        """The table of the next step; it is durable before it is returned. See `WindowStream.step`."""
        refuse_short(self.name, self._short, self.person)
        counts = self._stream._counts(totals)
        return self._lock.take(self._stream._shared_out, lambda spending: self._released(counts, spending))

    def _released(self, counts: npt.NDArray[Any], spending: tuple[Fraction, Fraction, Fraction, Fraction]) -> Values:
        table = np.array(self._stream._released(counts, spending))
        release = canonical_json({"step": self.taken, "table": table.tolist()}).encode()
        self._ledger.add_step(self._opening, self.taken, release, _sealed(self._keys, self._stream, self.name, table))
        self.last = table
        return table

    def _refusal(self) -> LedgerError:
        return LedgerError(
            f"Window stream {self.name!r} goes no further in this process",
            why="the ledger did not say whether it holds the last step",
            instead="StoredWindowStream.resume(ledger, population, name)",
        )

    @property
    def taken(self) -> int:
        """How many steps are released."""
        return self._stream.taken

    @property
    def guarantee(self) -> PureDP:
        """What is promised for w steps in a row."""
        return self._stream.guarantee

    @property
    def person(self) -> PureDP:
        """What a person is promised: what the population is charged."""
        return self._stream.person

    def margin(self, confidence: Exact = "0.95") -> float:
        """As that of `WindowStream`."""
        return self._stream.margin(confidence)

    def __str__(self) -> str:
        return f"{self.name}: {self._stream}"


def _keys(ledger: Ledger) -> Keyring:
    return Keyring(ledger.derive("window streams"), domain="traces")


def _sealed(keys: Keyring, stream: WindowStream, name: str, last: npt.NDArray[np.float64] | None) -> bytes:
    """The state with its declarations, encrypted and bound to the stream's name and step."""
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
    told = {"format": _FORMAT, "declared": declared, "stream": stream.state(), "last": None if last is None else last.tolist()}
    return keys.wrap(json.dumps(told).encode(), f"{name} {stream.taken}")


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
