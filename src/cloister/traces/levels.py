"""What a stream's guarantee protects, an event, a window or a person, and what follows from it for a person.

A guarantee of a stream names its neighbours: two streams are neighbours

- at *event* level, if one reading was added or removed (Dwork, Naor, Pitassi & Rothblum 2010);
- at *window* level, if the readings that differ lie within w steps in a row, at most one a step (Kellaris, Papadopoulos, Xiao &
  Papadias 2014, who call it w-event privacy);
- at *user* level, if all readings of one person were added or removed.

The first two say nothing of a person who sends more. `Protection.person` says what does follow: the line that a population
is charged. A person with at most m readings is a group of m events, so mε or m²ρ; the readings of a person over T steps, at
most one a step, lie in ⌈T/w⌉ windows; the lesser counts. Without a declared m an event's guarantee bounds nothing for a
person.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from cloister.errors import InvalidParameter, MissingBound
from cloister.noise.mechanism import set_fields
from cloister.privacy.groups import for_groups
from cloister.privacy.guarantee import ZCDP, PureDP


@dataclass(frozen=True, slots=True, init=False)
class WindowLevel:
    """Protects what one person sends within any w steps in a row, at most one reading a step.

    >>> WindowLevel(24)
    WindowLevel(24)
    """

    steps: int

    def __init__(self, steps: int) -> None:
        set_fields(self, steps=_whole(steps, "steps"))

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
    ZCDP(rho='10')
    """

    level: Level
    most: int | None
    steps: int

    @classmethod
    def of(cls, level: Level, *, most: int | None, steps: int) -> Protection:
        """The checked protection; a user's needs the most readings of a person."""
        horizon = _whole(steps, "steps")
        readings = None if most is None else _whole(most, "most")
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

    @property
    def groups(self) -> int | None:
        """How many neighbours in a row lead from a stream with a person to the one without; None where nothing bounds it."""
        if isinstance(self.level, WindowLevel):
            windows = -(-self.steps // self.level.steps)
            return windows if self.most is None else min(windows, self.most)
        return self.most if self.level == "event" else 1

    def person(self, guarantee: PureDP | ZCDP) -> PureDP | ZCDP | None:
        """What a guarantee at this level says of a person; None where it says nothing."""
        if self.groups is None:
            return None
        found = for_groups(guarantee, self.groups)
        assert isinstance(found, PureDP | ZCDP)
        return found

    def sentence(self, guarantee: PureDP | ZCDP) -> str:
        """Both lines in words.

        >>> Protection.of("event", most=None, steps=9).sentence(PureDP(1))
        'ε = 1 an event: events only, unbounded for a person'
        >>> Protection.of(WindowLevel(3), most=None, steps=9).sentence(PureDP(1))
        'ε = 1 for 3 steps in a row; ε = 3 a person'
        """
        person = self.person(guarantee)
        if person is None:
            return f"{guarantee} an event: events only, unbounded for a person"
        if self.level == "user":
            return f"{person} a person with at most {self.most} readings"
        named = f"for {self.level.steps} steps in a row" if isinstance(self.level, WindowLevel) else "an event"
        whose = f" with at most {self.most} readings" if self.most is not None else ""
        return f"{guarantee} {named}; {person} a person{whose}"


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidParameter(
            f"{name}={value!r} is invalid", why="it must be a whole number of at least 1", instead=f"{name}=24"
        )
    return value
