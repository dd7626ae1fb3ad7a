"""Differencing and trackers: what one person's value is, from answers about many.

Schlörer (1975) and Denning, Denning & Schwartz (*The tracker: a threat to statistical database security*, ACM TODS 4(1), 1979)
showed that a rule against small sets of people protects nobody: a sum over a set that may not be asked about follows from sums
over large ones. With a *tracker* T, any set that may be asked about together with its complement, and a condition C that names
the victim,

    sum(C) = sum(C or T) + sum(C or not T) − sum(T) − sum(not T).

Here the attacks are written against anything that answers a condition with a number, so that the same lines can be turned on
raw answers, on rounded ones and on differentially private ones.
"""

from collections.abc import Callable
from typing import TypeAlias

Ask: TypeAlias = Callable[[str], float]
"""What answers a condition in SQL with a sum or a count of the rows that pass it."""


def differenced(ask: Ask, group: str, victim: str) -> float:
    """The victim's value as the group's answer less that of the group without the victim: both are of many people.

    >>> pay = {"ann": 3, "bob": 4, "eve": 9}
    >>> answers = {"(office)": 16, "(office) AND NOT (name = 'eve')": 7}
    >>> differenced(answers.__getitem__, "office", "name = 'eve'")
    9
    """
    return ask(f"({group})") - ask(f"({group}) AND NOT ({victim})")


def tracked(ask: Ask, victim: str, tracker: str) -> float:
    """The victim's value through a general tracker: four answers, none of them about few people.

    >>> asked = []
    >>> tracked(lambda condition: asked.append(condition) or 0, "name = 'eve'", "sex = 'F'")
    0
    >>> asked[0], asked[3]
    ("(name = 'eve') OR (sex = 'F')", "NOT (sex = 'F')")
    """
    both = ask(f"({victim}) OR ({tracker})") + ask(f"({victim}) OR NOT ({tracker})")
    return both - ask(f"({tracker})") - ask(f"NOT ({tracker})")
