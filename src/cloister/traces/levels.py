"""What a stream's guarantee protects, an event, a window or a person, and what follows from it for a person.

A guarantee of a stream names its neighbours: two streams are neighbours

- at *event* level, if one reading was added or removed (Dwork, Naor, Pitassi & Rothblum 2010);
- at *window* level, if the readings that differ lie within w steps in a row, at most one a step (Kellaris, Papadopoulos, Xiao &
  Papadias 2014, who call it w-event privacy);
- at *user* level, if all readings of one person were added or removed.

The first two say nothing of a person who sends more. What does follow is the line that a population is charged. A person sends
at most m readings in all, of which any number may fall in one step, where the owner declares m (`most`); where a window is
protected and no m is declared, at most one in each of the T steps, as the level has it, which the owner answers for as well.

*Noise that hides readings wherever they lie* (`person`), as a counter's does. Claim: noise for R readings gives a person with n
readings, n = m, or T where none is declared, (n/R)ε or (n/R)²ρ. Proof: the noise is scaled to R·c, with c the most that one
reading moves what is published, in L1 (ε) or L2 (ρ): at event level R = 1, at window level min(w, T), at user level m. By the
triangle inequality n readings move it by at most n·c. Discrete Laplace noise that gives ε at R·c gives (n/R)ε at n·c (its loss is
at most distance/scale), discrete Gaussian noise (n/R)²ρ (its divergence is at most α·distance²/2σ²: Canonne, Kamath & Steinke
2020, Theorem 14), and on every path of an adaptive stream these are the sums that its filter bounds. ∎ It is tight: n readings
in the first step of all move every number by n times what one does. For n ≤ R it is less than the guarantee; and it is never
more than the ⌈T/w⌉ windows in which one reading a step lies, since T/min(w, T) ≤ ⌈T/w⌉, so these need not be counted.

*Shares that are dealt out over a window* (`over_windows`), as a window stream's are. A step may have the whole ε, so nothing is
gained from readings that are few. Claim: a person with m declared readings is promised mε; one with at most one a step ⌈T/w⌉ε.
Proof: add the readings one by one, or window by window: each leads to a neighbour. ∎ Both are tight where a step in w has all
of ε: with all m readings in it, or with one in each. Windows say nothing of m readings, since these may lie in one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from cloister.errors import BudgetExceeded, InvalidParameter, MissingBound
from cloister.noise._checks import whole
from cloister.noise.mechanism import set_fields
from cloister.privacy.guarantee import ZCDP, PureDP


@dataclass(frozen=True, slots=True, init=False)
class WindowLevel:
    """Protects what one person sends within any w steps in a row, at most one reading a step.

    >>> WindowLevel(24)
    WindowLevel(24)
    """

    steps: int

    def __init__(self, steps: int) -> None:
        set_fields(self, steps=whole(steps, "steps", least=1))

    def __repr__(self) -> str:
        return f"WindowLevel({self.steps})"


Level: TypeAlias = Literal["event", "user"] | WindowLevel
"""What is protected: "event", "user", or a window."""


@dataclass(frozen=True, slots=True)
class Protection:
    """A level, the most readings of a person where they are declared, and the number of steps of the stream.

    >>> protection = Protection.of("event", most=3, steps=100)
    >>> protection.readings, protection.person(PureDP("0.1"))
    (1, PureDP(epsilon='0.3'))
    >>> Protection.of(WindowLevel(10), most=None, steps=95).person(ZCDP("0.1"))
    ZCDP(rho='9.025')
    """

    level: Level
    most: int | None
    steps: int

    @classmethod
    def of(cls, level: Level, *, most: int | None, steps: int) -> Protection:
        """The checked protection; a user's needs the most readings of a person."""
        horizon = whole(steps, "steps", least=1)
        readings = None if most is None else whole(most, "most", least=1)
        if not isinstance(level, WindowLevel) and level not in ("event", "user"):
            raise InvalidParameter(
                "level is invalid", why="it is 'event', 'user' or a window", instead='level="event" or level=WindowLevel(24)'
            )
        if level == "user" and readings is None:
            raise MissingBound(
                "A counter at user level was refused",
                why="its noise depends on how many readings one person sends, and that was not declared",
                instead='Counter(…, level="user", most=10)',
            )
        return cls(level, readings, horizon)

    @property
    def readings(self) -> int:
        """How many readings neighbours differ in at most: what the noise has to hide."""
        if isinstance(self.level, WindowLevel):
            return min(self.level.steps, self.steps)
        return 1 if self.level == "event" or self.most is None else self.most

    def person(self, guarantee: PureDP | ZCDP) -> PureDP | ZCDP | None:
        """What a person is promised by noise for `readings` readings; None where nothing bounds how many a person sends."""
        sent = self.steps if self.most is None and isinstance(self.level, WindowLevel) else self.most
        if sent is None:
            return None
        times = Fraction(sent, self.readings)
        return PureDP(times * guarantee.epsilon) if isinstance(guarantee, PureDP) else ZCDP(times**2 * guarantee.rho)

    def over_windows(self, guarantee: PureDP) -> PureDP:
        """What a person is promised by shares of ε that are dealt out over each window.

        >>> Protection.of(WindowLevel(10), most=None, steps=95).over_windows(PureDP("0.1"))
        PureDP(epsilon='1')
        """
        assert isinstance(self.level, WindowLevel)
        return PureDP((self.most or -(-self.steps // self.level.steps)) * guarantee.epsilon)

    def refuse_beyond(self, taken: int, what: str, instead: str) -> None:
        """Refuse a step after the last; `what` was promised of so many."""
        if taken >= self.steps:
            why = f"{what} for {taken} steps, and all of them are released"
            raise BudgetExceeded("The step was refused", why=why, instead=instead)

    def sentence(self, guarantee: PureDP | ZCDP, person: PureDP | ZCDP | None) -> str:
        """Both lines in words.

        >>> Protection.of("event", most=None, steps=9).sentence(PureDP(1), None)
        'ε = 1 an event: events only, unbounded for a person'
        >>> Protection.of(WindowLevel(3), most=None, steps=9).sentence(PureDP(1), PureDP(3))
        'ε = 1 for 3 steps in a row; ε = 3 a person with at most one reading a step'
        """
        if person is None:
            return f"{guarantee} an event: events only, unbounded for a person"
        if self.level == "user":
            return f"{person} a person with at most {self.most} readings"
        named = f"for {self.level.steps} steps in a row" if isinstance(self.level, WindowLevel) else "an event"
        whose = "one reading a step" if self.most is None else f"{self.most} readings"
        return f"{guarantee} {named}; {person} a person with at most {whose}"
