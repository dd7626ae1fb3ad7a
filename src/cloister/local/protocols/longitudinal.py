"""Asked again and again: one randomisation for each person and question is kept and sent again: repeats tell nothing new."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.local.frequency.oracle import FrequencyOracle, Reports
from cloister.noise import Random
from cloister.printable import is_text
from cloister.privacy import PureDP, exact_positive, text_of

_TYPES = {name: np.dtype(name) for name in ("bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)))}


@dataclass
class _Kept:
    key: str
    epsilon: Fraction
    reports: dict[int, Reports] = field(default_factory=dict)


class LocalMemory:
    """What a person's own machine remembers of a survey that comes back: which report it sent to which question.

    A question is answered by one report in each wave; a wave is a public date (a year, a visit), never a change of the answer.
    Asked again in the same wave, the machine sends the same report, whatever the answer is by then.

    Guarantee: for any two histories of answers that a person might have, all reports about a question together are
    waves·ε-locally private (`guarantee`: over all questions asked so far). Proof: within a wave all reports are copies of one,
    which is ε-locally private in the answer that it was made of; when it was made depends on the asking alone, which is
    public; waves and questions add up (sequential composition). Keeping a report for each *value* instead would show when
    a value changes: two histories would then differ in something that no ε bounds.

    What it costs: within a wave, a later answer is not heard. With k waves, each has ε of its own out of k·ε.

    >>> from cloister.local import DirectEncoding
    >>> from cloister.noise import Random
    >>> oracle, memory = DirectEncoding(["never", "once", "often"], epsilon="0.5"), LocalMemory(waves=2)
    >>> first = memory.report("flu", oracle, "never")
    >>> memory.report("flu", oracle, "often").tolist() == first.tolist()
    True
    >>> _ = memory.report("flu", oracle, "often", wave=1)
    >>> str(memory.guarantee), str(memory.promised({"flu": oracle, "asthma": oracle}))
    ('ε = 1', 'ε = 2')
    """

    def __init__(self, *, waves: int = 1) -> None:
        if isinstance(waves, bool) or not isinstance(waves, int) or not 1 <= waves <= 10_000:
            raise InvalidParameter("waves is invalid", why="it is a whole number from 1 to 10000", instead="LocalMemory(waves=1)")
        self.waves = waves
        self._kept: dict[str, _Kept] = {}

    def report(
        self, question: str, oracle: FrequencyOracle, value: Any, *, wave: int = 0, random: Random | None = None
    ) -> Reports:
        """The report of this question and wave, as an array of one report: made of `value` when it is asked for first, and the
        same ever after."""
        if not is_text(
            question, 1000
        ):  # JSON would give another name back, and what was kept under this one would be drawn again
            raise InvalidParameter("question is invalid", why="it is not a printable text", instead='report("flu", …)')
        if isinstance(wave, bool) or not isinstance(wave, int) or wave < 0:
            raise InvalidParameter("wave is invalid", why="it is a whole number from 0 on", instead="wave=0")
        if wave >= self.waves:
            raise BudgetExceeded(
                f"Wave {wave} was refused",
                why=f"{self.waves} were promised, and each costs ε again",
                instead="the report of an earlier wave, or more waves in the promise from the start",
            )
        kept = self._kept.get(question)
        if kept is None:  # kept by one call, as the report of a wave below: of two threads, both report what the first one drew
            first = _Kept(oracle.key, oracle.epsilon, {wave: oracle.randomize([value], random=random)})
            kept = self._kept.setdefault(question, first)
        if (kept.key, kept.epsilon) != (oracle.key, oracle.epsilon):
            raise InvalidParameter(
                "The question is invalid",
                why="it was answered by another protocol, domain or ε before, and a second report would tell more",
                instead="the same oracle; or another name, for a question that is asked again",
            )
        if wave not in kept.reports:
            kept.reports.setdefault(wave, oracle.randomize([value], random=random))
        return kept.reports[wave].copy()

    @property
    def guarantee(self) -> PureDP:
        """The promise of all reports that were made so far, however often they were sent."""
        return PureDP(sum((each.epsilon * len(each.reports) for each in self._kept.values()), Fraction(0)))

    def promised(self, oracles: Mapping[str, FrequencyOracle]) -> PureDP:
        """The promise of a whole survey, all its waves included."""
        return PureDP(sum((oracle.epsilon for oracle in oracles.values()), Fraction(0)) * self.waves)

    def to_json(self) -> str:
        """All of it as JSON, to keep on the person's own machine. It holds reports alone, no answers.

        >>> LocalMemory.from_json(LocalMemory(waves=3).to_json()).waves
        3
        """
        questions = {
            name: {
                "key": kept.key,
                "epsilon": text_of(kept.epsilon),
                "type": next(iter(kept.reports.values())).dtype.name,
                "reports": {str(wave): report.tolist() for wave, report in kept.reports.items()},
            }
            for name, kept in self._kept.items()
        }
        return json.dumps({"version": 1, "waves": self.waves, "questions": questions})

    @classmethod
    def from_json(cls, text: str) -> LocalMemory:
        """What `to_json` wrote."""
        try:
            read = json.loads(text)
            memory = cls(waves=read["waves"])
            for name, each in read["questions"].items():
                kind = _TYPES[each["type"]]
                reports = {int(wave): np.array(report, dtype=kind) for wave, report in each["reports"].items()}
                kept = _Kept(str(each["key"]), exact_positive(each["epsilon"], "epsilon"), reports)
                if not reports or any(wave not in range(memory.waves) or len(report) != 1 for wave, report in reports.items()):
                    raise ValueError(name)
                memory._kept[name] = kept
            sound = read["version"] == 1
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            sound = False
        if not sound:
            raise InvalidParameter("The memory is invalid", why="it is not what to_json wrote", instead="memory.to_json()")
        return memory
