"""Re-identification from a few things that are known of somebody: sparse ratings, visits to pharmacies, a loyalty card.

A file of records has no names: each record is a set of items (films, pharmacies, shops), each with a value (stars) and a time.
The attacker knows some items of one person, some of them wrong, and takes the record that fits best, if it stands out. This is
the *scoreboard* of Narayanan & Shmatikov (*Robust de-anonymization of large sparse datasets*, IEEE S&P 2008, section 5): each
known item adds e^(−|value − value'|/ρ₀) + e^(−|time − time'|/d₀) to a record that has it, weighted by how rare it is,
1/ln(how many records have it); a record is named if its score is more than `threshold` standard deviations above the second.

Two files about the same people link one another in the same way: visits seen at pharmacies name the patient of prescriptions
without names. Rounding and dropping columns make it slower and not safe: who is alone with four places is alone with five coarse
ones. What stops it is that no record leaves: counts of items at ε say of each person at most what ε allows.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cloister.errors import InvalidParameter

Known: TypeAlias = Mapping[Hashable, tuple[float, float]]
"""By item: its value and its time."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """The record that fits best."""

    record: int
    score: float
    eccentricity: float
    """How many standard deviations of all scores it is above the second best."""
    named: bool
    """Whether it stands out, so that the attacker believes it."""


@dataclass(frozen=True, kw_only=True)
class Scoreboard:
    """Records without names, ready to be searched; `value_scale` and `time_scale` are how far off a memory may be.

    >>> first, second = {"Brazil": (5, 10), "Alien": (4, 12)}, {"Alien": (4, 300), "Jaws": (1, 200)}
    >>> records = [first, second, {"Jaws": (2, 5), "Alien": (3, 90)}]
    >>> board = Scoreboard(records=records, value_scale=1, time_scale=10)
    >>> found = board.search({"Brazil": (5, 11), "Alien": (3, 14)})
    >>> found.record, found.named
    (0, True)
    """

    records: Sequence[Known]
    value_scale: float = 1.5
    time_scale: float = 30.0
    threshold: float = 1.5

    def __post_init__(self) -> None:
        if len(self.records) < 2:
            raise InvalidParameter("records= is invalid", why="fewer than two", instead="records=[{…}, {…}]")
        for name in ("value_scale", "time_scale", "threshold"):
            value = getattr(self, name)
            if not value > 0:
                raise InvalidParameter(f"{name}={value!r} is invalid", why="it must be above 0", instead=f"{name}=1.5")

    def search(self, known: Known) -> Candidate:
        """The best record for what is known of somebody."""
        scores = np.zeros(len(self.records))
        for item, (value, time) in known.items():
            having = [(place, record[item]) for place, record in enumerate(self.records) if item in record]
            weight = 1 / math.log(max(len(having), 2))
            for place, (there, when) in having:
                near = math.exp(-abs(value - there) / self.value_scale) + math.exp(-abs(time - when) / self.time_scale)
                scores[place] += weight * near
        best = int(scores.argmax())
        spread = float(scores.std())
        ahead = float(scores[best] - np.delete(scores, best).max())
        eccentricity = ahead / spread if spread else 0.0
        return Candidate(record=best, score=float(scores[best]), eccentricity=eccentricity, named=eccentricity > self.threshold)
