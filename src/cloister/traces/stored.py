"""A counter that a ledger keeps: charged to a population when it opens, and resumed after its process has ended.

What a counter keeps of the data between steps, the exact sums of its bins, is a secret. It is encrypted under a key that
follows from the ledger's own, and committed with the line of the step and the number that is published, in one transaction.
"""

from __future__ import annotations

import json
from typing import Any

from cloister.crypto import Keyring, canonical_json
from cloister.errors import LedgerError, MissingBound
from cloister.ledger import Ledger
from cloister.ledger.measure import in_measure, kind_of
from cloister.noise import Random
from cloister.privacy.guarantee import ZCDP, Guarantee, PureDP
from cloister.privacy.rational import Exact
from cloister.traces.counter import Counter, Readings, _Kept
from cloister.traces.levels import Level, Protection, WindowLevel
from cloister.traces.step_lock import StepLock

_FORMAT = 1


class StoredCounter:
    """A `Counter` in a ledger, under a name that a population has once.

    Guarantee: that of `Counter`; the population is charged its line for a person, at the opening and for all steps. A step is
    drawn once: its noise, its release and the sealed state after it are committed together before the sum is returned, and a
    process that resumes begins with the step after the last one committed. Where a ledger was restored from a backup, steps
    that it does not know of may have been published; drawing them again would publish two noisy numbers of one exact one. So
    a counter that was opened before goes no further, and a new one is a new charge. Nor does one that was charged less than its
    line (`short_of`): every step of it would make worse what is promised already.

    >>> from cloister.privacy import ZCDP
    >>> ledger = Ledger()
    >>> _ = ledger.open("visitors", ZCDP(1), who="owner")
    >>> door = StoredCounter.open(ledger, "visitors", "door", who="ada", rho="0.02", steps=1000, most=5)
    >>> _ = door.step([1] * 30)
    >>> again = StoredCounter.resume(ledger, "visitors", "door")
    >>> again.taken, again.total == door.total, str(ledger.spent("visitors"))
    (1, True, 'ρ = 0.5')
    """

    def __init__(self, counter: Counter, ledger: Ledger, opening: int, name: str) -> None:
        """Use `open` or `resume`."""
        self.name = name
        self._counter, self._ledger, self._opening = counter, ledger, opening
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
        steps: int,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        bounds: tuple[Exact, Exact] = (0, 1),
        most: int | None = None,
        level: Level = "event",
        grid: Exact = 1,
        last: int | None = None,
        apart: int | None = None,
        random: Random | None = None,
    ) -> StoredCounter:
        """A new counter, with a charge of its own; the parameters are those of `Counter`."""
        counter = Counter(
            epsilon=epsilon,
            rho=rho,
            steps=steps,
            bounds=bounds,
            most=most,
            level=level,
            grid=grid,
            last=last,
            apart=apart,
            random=random,
        )
        cost = counter.person
        if cost is None:
            raise MissingBound(
                f"Counter {name!r} was refused",
                why="a population is charged what is promised to a person, and nothing bounds how many readings a person sends",
                instead="most=10, or level=WindowLevel(24)",
            )
        state = _sealed(_keys(ledger), counter.state(), name)
        opening = ledger.open_steps(
            population, cost, who=who, what=name, words="a counter", state=state, marked=counter.random.marked
        )
        return cls(counter, ledger, opening, name)

    @classmethod
    def resume(cls, ledger: Ledger, population: str, name: str, *, random: Random | None = None) -> StoredCounter:
        """The counter as its last step left it."""
        found = ledger.last_step(population, name)
        state = json.loads(_keys(ledger).unwrap(found.state, f"{name} {found.step}"))
        counter = Counter.from_state(state, random=random)
        if counter.random.marked and ledger.durable:
            raise LedgerError(
                f"Counter {name!r} was not resumed",
                why="its noise would come from a generator made for tests, which can be predicted",
                instead="StoredCounter.resume(ledger, population, name)",
            )
        resumed = cls(counter, ledger, found.opening, name)
        resumed._short = short_of(ledger, population, name, counter.protection, resumed.person)
        return resumed

    def step(self, value: Readings = None) -> float:
        """The running sum at the end of the next step; it is durable before it is returned. See `Counter.step`."""
        refuse_short(self.name, self._short, self.person)
        units = self._counter._units(value)
        return self._lock.take(lambda: self._counter._drawn(units), self._keep)

    def _keep(self, drawn: _Kept) -> float:
        release = canonical_json({"step": drawn.taken, "published": drawn.published, "total": drawn.total}).encode()
        sealed = _sealed(self._keys, self._counter._told(drawn), self.name)
        self._ledger.add_step(self._opening, drawn.taken, release, sealed)
        return self._counter._keep(drawn)

    def _refusal(self) -> LedgerError:
        return LedgerError(
            f"Counter {self.name!r} goes no further in this process",
            why="the ledger did not say whether it holds the last step",
            instead="StoredCounter.resume(ledger, population, name)",
        )

    @property
    def taken(self) -> int:
        """How many steps are released."""
        return self._counter.taken

    @property
    def total(self) -> float:
        """The running sum that was released last."""
        return self._counter.total

    @property
    def guarantee(self) -> PureDP | ZCDP:
        """What is promised at the level of the counter."""
        return self._counter.guarantee

    @property
    def person(self) -> PureDP | ZCDP:
        """What a person is promised: what the population is charged."""
        found = self._counter.person
        assert found is not None
        return found

    def margin(self, confidence: Exact = "0.95") -> float:
        """As that of `Counter`."""
        return self._counter.margin(confidence)

    def __str__(self) -> str:
        return f"{self.name}: {self._counter}"


def short_of(ledger: Ledger, population: str, name: str, protection: Protection, person: PureDP | ZCDP) -> Guarantee | None:
    """What a stream was charged, where that is less than its line for a person; None where it is enough.

    Earlier versions charged a window's guarantee as often as there were windows or readings of a person, whichever was less: too
    little where several readings of a person lie in one step. What was charged more stays charged.
    """
    if protection.most is None or not isinstance(protection.level, WindowLevel):
        return None
    charged = ledger.charges(population, what=name)[0].cost  # the opening: steps cost nothing
    assert charged is not None
    return None if in_measure(person, kind_of(charged)) <= charged else charged


def refuse_short(name: str, short: Guarantee | None, person: PureDP | ZCDP) -> None:
    """Refuse a further step of a stream that was charged too little."""
    if short is not None:
        raise LedgerError(
            f"{name!r} goes no further",
            why=f"it was charged {short}, and what a person is promised with so many readings is {person}",
            instead="open a new one under another name; where a person sends at most one reading a step, without most=",
        )


def _keys(ledger: Ledger) -> Keyring:
    return Keyring(ledger.derive("counters"), domain="traces")


def _sealed(keys: Keyring, state: dict[str, Any], name: str) -> bytes:
    """The state, encrypted and bound to the counter's name and step."""
    return keys.wrap(canonical_json({"format": _FORMAT, **state}).encode(), f"{name} {state['taken']}")
