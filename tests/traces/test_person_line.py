"""What a person is charged is what is proved, no less and no more: the exact divergence of the two worst outputs, with readings
placed wherever a person may send them, and twins of the charge that are wrong either way."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.errors import LedgerError
from cloister.ledger import Ledger
from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.privacy import ZCDP, PureDP, for_groups
from cloister.traces import Counter, StoredCounter, StoredWindowStream, WindowLevel, WindowStream
from cloister.traces.policies import Policy, Sampled, Uniform

Line = Callable[[Any], Any]


def exactly(noise: Any, value: Any, *, random: Any = None) -> Any:
    return value


def published(declared: dict[str, Any], sent: list[int]) -> list[int]:
    """What a counter would publish of a person with so many readings in each step, without noise."""
    counter = Counter(**declared)
    found = []
    for readings in sent:
        counter.step([1] * readings)
        found.append(counter.published)
    return found


def proved(declared: dict[str, Any], sent: list[int], monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """The exact ε or ρ between the outputs with a person and without: of equal discrete noises at a distance."""
    noise: Any = Counter(**declared).noise
    with monkeypatch.context() as patch:
        for kind in (DiscreteGaussian, DiscreteLaplace):
            patch.setattr(kind, "release", exactly)
        moved = np.array(published(declared, sent), dtype=object) - published(declared, [0] * len(sent))
    if isinstance(noise, DiscreteLaplace):
        return Fraction(sum(abs(each) for each in moved) / noise.scale)
    return Fraction(sum(each**2 for each in moved) / (2 * noise.scale_squared))


def placements(steps: int, most: int | None) -> list[list[int]]:
    """Where a person's readings may lie: all in one step, in the first steps, spread out; without a number, one in each step."""
    if most is None:
        return [[1] * steps]
    even = [most // steps + (step < most % steps) for step in range(steps)]
    return [even, *([most * (step == which) for step in range(steps)] for which in {0, 1 % steps, steps // 2, steps - 1})]


def spent(guarantee: Any) -> Fraction:
    return Fraction(guarantee.epsilon if isinstance(guarantee, PureDP) else guarantee.rho)


def by_windows(counter: Any) -> Any:
    """BROKEN: the guarantee once for each window, or each reading where these are fewer."""
    level, most, steps = counter.protection.level, counter.protection.most, counter.protection.steps
    if isinstance(level, WindowLevel):
        windows = -(-steps // level.steps)
        return for_groups(counter.guarantee, windows if most is None else min(windows, most))
    return for_groups(counter.guarantee, most if level == "event" else 1)


def by_events(counter: Any) -> Any:
    """BROKEN: each reading for itself, as if noise hid one."""
    return for_groups(counter.guarantee, counter.protection.most or counter.protection.steps)


def verdict(declared: dict[str, Any], line: Line, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether a charge is what the worst placement is proved to cost. With one reading a step, noise in L2 leaves room: there it
    may be no more than what windows say."""
    charged = spent(line(Counter(**declared)))
    steps, most = declared["steps"], declared.get("most")
    worst = max(proved(declared, sent, monkeypatch) for sent in placements(steps, most))
    if charged < worst:
        return "too little"
    bound = worst if most is not None else spent(by_windows(Counter(**declared)))
    return "too much" if charged > bound else "right"


CASES = [
    (24, WindowLevel(24), 50, "too little"),
    (2, WindowLevel(2), 10, "too little"),
    (40, WindowLevel(10), 3, "too much"),
    (9, WindowLevel(30), 4, "too much"),
    (35, WindowLevel(10), 40, "right"),  # four windows, and 40 readings against noise for 10
    (35, WindowLevel(10), None, "right"),
    (40, WindowLevel(40), None, "right"),
    (12, "event", 5, "right"),
    (12, "user", 5, "right"),
]


@pytest.mark.parametrize("kind", ["rho", "epsilon"])
@pytest.mark.parametrize(("steps", "level", "most", "before"), CASES)
def test_a_counter_charges_what_is_proved(
    kind: str, steps: int, level: Any, most: int | None, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = {kind: "0.5", "steps": steps, "level": level, "most": most}
    assert verdict(declared, lambda counter: counter.person, monkeypatch) == "right"
    assert verdict(declared, by_windows, monkeypatch) == before


@pytest.mark.parametrize("kind", ["rho", "epsilon"])
def test_the_audit_catches_a_charge_for_events_and_one_of_a_part(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {kind: "0.5", "steps": 35, "level": WindowLevel(10), "most": 17}
    assert verdict(declared, by_events, monkeypatch) == "too much"
    for times, found in ((Fraction(99, 100), "too little"), (Fraction(1), "right"), (Fraction(101, 100), "too much")):

        def line(counter: Any, times: Fraction = times) -> Any:
            return type(counter.guarantee)(times * spent(counter.person))

        assert verdict(declared, line, monkeypatch) == found


def test_the_examples_of_the_report() -> None:
    """As they were charged: ρ = 0.5, ρ = 0.5 and 3ε."""
    assert Counter(rho="0.5", steps=24, level=WindowLevel(24), most=50).person == ZCDP(Fraction(625, 288))
    assert Counter(rho="0.5", steps=2, level=WindowLevel(2), most=10).person == ZCDP("12.5")
    assert Counter(epsilon=1, steps=40, level=WindowLevel(10), most=3).person == PureDP("0.3")


@pytest.mark.parametrize(("steps", "most"), [(35, None), (40, None), (7, None), (35, 2), (35, 50), (7, 3)])
@pytest.mark.parametrize("policy", [lambda: Sampled(10), Uniform])
def test_a_window_stream_charges_what_is_proved(
    policy: Callable[[], Policy], steps: int, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is published at each step is moved by the readings in it, against noise of the share that it had."""

    def loss(sent: list[int]) -> Fraction:
        stream, found = WindowStream(epsilon=1, window=10, steps=steps, most=most, policy=policy()), Fraction(0)
        with monkeypatch.context() as patch:
            patch.setattr(DiscreteLaplace, "release", exactly)
            for readings in sent:
                before = stream._last
                stream.step(readings)
                if stream._last is not before:
                    share = stream._publish_share
                    assert share is not None
                    found += int(stream._last[0]) * share
        return found

    worst = max(loss(sent) for sent in placements(steps, most))
    charged = WindowStream(epsilon=1, window=10, steps=steps, most=most).person.epsilon
    assert worst <= charged
    if isinstance(policy(), Sampled):
        assert worst == charged  # a policy may give all of ε to one step: less would be too little
    elif most == 50:
        assert charged > -(-steps // 10) > worst / 10


OLD = {
    StoredCounter: {"rho": "0.5", "steps": 24, "level": WindowLevel(24)},
    StoredWindowStream: {"epsilon": "0.5", "steps": 24, "window": 24},
}


@pytest.mark.parametrize("kind", [StoredCounter, StoredWindowStream])
@pytest.mark.parametrize(("most", "short"), [(50, True), (1, False), (None, False)])
def test_what_was_charged_too_little_is_read_and_goes_no_further(
    kind: Any, most: int | None, short: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened as earlier versions did; the other charges were enough, and stay."""
    with Ledger(tmp_path / "budget.db", key=bytes(range(32))) as ledger:
        ledger.open("visitors", PureDP(99) if kind is StoredWindowStream else ZCDP(99), who="owner")
        with monkeypatch.context() as patch:
            patch.setattr(Counter, "person", property(by_windows))
            patch.setattr(WindowStream, "person", property(by_windows))
            kind.open(ledger, "visitors", "door", who="ada", most=most, **OLD[kind]).step(3)
        charged = ledger.spent("visitors")
        found = kind.resume(ledger, "visitors", "door")
        assert found.taken == 1
        if short:
            with pytest.raises(LedgerError, match=r"charged .* = 0\.5, and what a person is promised"):
                found.step(3)
        else:
            found.step(3)
        assert found.taken == (1 if short else 2)
        assert ledger.spent("visitors") == charged
        kind.open(ledger, "visitors", "second", who="ada", most=most, **OLD[kind]).step(3)
        kind.resume(ledger, "visitors", "second").step(3)
