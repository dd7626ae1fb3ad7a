"""The least that hiding can cost: integer programming over all changes of the space, with a proof or a gap.

**What is optimised.** First the number of lost rules, |R̃_s(D) ∖ R̃_s(D′)|, over all D′ that hide every sensitive rule and that
arise from D by the changes that `program.py` states. Then, among those with as few lost rules, the number of entries changed.
Ghost rules are not part of it; they are reported.

**How.** All counts are linear in how many baskets of each kind are changed in which way. A program with every rule would be
too large, so rules are modelled when they are needed (after Menon, Sarkar & Mukherjee 2005, and Gkoulalas-Divanis & Verykios
2006, 2009, who write hiding as a constraint program over the revised border): solve with those that the heuristics lost, count
exactly what that answer loses, add it, and solve again. The optimum of each part is a lower bound of the whole; each answer that
hides is an upper bound, and so are the heuristics'. Where the two meet, the answer is proved; where time ends first, the gap is
told.

**Exact arithmetic.** HiGHS works in floating point. Whether an answer hides and what it loses is counted again in whole numbers,
and an answer that does not hide is thrown away; the lower bound is HiGHS's own, less 10⁻⁶, rounded up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.mining.program import Modelled, Program
from cloister.mining.sensitive import Problem

Columns = dict[int, npt.NDArray[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What is known of the least number of lost rules.

    >>> print(Proof(lost=3, bound=3, bound_taking_out=3, entries=7, fewest=False, seconds=0.1))
    3 rules lost, and no answer loses fewer (proved); 7 entries changed
    >>> Proof(lost=5, bound=3, bound_taking_out=3, entries=7, fewest=False, seconds=60.0).gap
    2
    """

    lost: int
    bound: int
    """No answer of the space that was asked for loses fewer."""
    bound_taking_out: int
    """No answer that only takes entries out loses fewer."""
    entries: int
    fewest: bool
    """Whether no answer that only takes entries out, with as few lost rules, changes fewer entries."""
    seconds: float

    @property
    def optimal(self) -> bool:
        """Whether the number of lost rules is proved to be the least."""
        return self.bound >= self.lost

    @property
    def gap(self) -> int:
        """How many fewer lost rules are not ruled out."""
        return max(0, self.lost - self.bound)

    def __str__(self) -> str:
        told = f"{self.lost:,} rules lost"
        if self.optimal:
            told += ", and no answer loses fewer (proved)"
        else:
            if self.bound_taking_out >= self.lost:
                told += ", and no answer that only takes entries out loses fewer (proved)"
            told += f"; any answer loses at least {self.bound:,}: the gap of {self.gap:,} was not closed in {self.seconds:.0f} s"
        told += f"; {self.entries:,} entries changed"
        return f"{told}, and no answer with as few lost rules changes fewer (proved)" if self.fewest else told


def hide_exactly(
    problem: Problem,
    starts: Sequence[Columns],
    *,
    insertions: bool,
    seconds: float,
    progress: Callable[[str], None] = lambda stage: None,
) -> tuple[Columns, Proof]:
    """The best answer, from those of heuristics on, and what is proved of it.

    Answers that only take entries out come first, being fewer; then, where asked for, those that put some in.
    """
    begun = time.monotonic()
    if not problem.sensitive:  # nothing is found that would have to be hidden
        return {}, Proof(lost=0, bound=0, bound_taking_out=0, entries=0, fewest=True, seconds=0.0)
    search = _Search(problem, starts)
    taking_out = Program(problem=problem, rules=search.rules, insertions=False)
    bound = without = search.fewest_lost(taking_out, begun + (0.4 if insertions else 0.75) * seconds, progress)
    if insertions:
        both = Program(problem=problem, rules=search.rules, insertions=True)
        bound = search.fewest_lost(both, begun + 0.75 * seconds, progress)
    fewest = without >= search.best.lost and search.fewest_entries(taking_out, begun + seconds, progress)
    return search.best.columns, Proof(
        lost=search.best.lost,
        bound=min(bound, search.best.lost),
        bound_taking_out=without,
        entries=search.best.entries,
        fewest=fewest,
        seconds=time.monotonic() - begun,
    )


def _rules_at_risk(problem: Problem) -> tuple[tuple[int, int], ...]:
    """Those with a sensitive item in their whole set: of no other can a count move."""
    changing, sets = set(problem.items), problem.found.mined.sets
    moving = [bool(changing.intersection(each)) for each in sets]
    sensitive = {(rule.antecedent, rule.whole) for rule in problem.sensitive}
    pairs = zip(problem.found.whole.tolist(), problem.found.left.tolist(), strict=True)
    return tuple((whole, left) for whole, left in pairs if moving[whole] and (sets[left], sets[whole]) not in sensitive)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Answer:
    """An answer that hides, with what it loses: sets that fall, and rules (by number) whose sets stay."""

    columns: Columns
    fallen: tuple[int, ...]
    unsure: tuple[int, ...]
    lost: int
    entries: int


class _Search:
    """The best answer so far, and what of it has to be modelled."""

    def __init__(self, problem: Problem, starts: Sequence[Columns]) -> None:
        self.problem, self.rules, self.modelled = problem, _rules_at_risk(problem), Modelled()
        answers = [answer for answer in map(self._counted, starts) if answer is not None]
        self.best = min(answers, key=lambda answer: (answer.lost, answer.entries))
        self._model(self.best)

    def fewest_lost(self, program: Program, deadline: float, progress: Callable[[str], None]) -> int:
        """Raise the bound and lower the answer until they meet, or time is up; the bound."""
        bound = 0
        while bound < self.best.lost and (left := deadline - time.monotonic()) > 0:
            progress(f"exact: at least {bound:,} rules lost, at most {self.best.lost:,}; {self.modelled.size:,} modelled")
            solved = program.solve(self.modelled, left)
            bound = max(bound, math.ceil(solved.bound - 1e-6))
            answer = None if solved.columns is None else self._offered(solved.columns)
            if answer is None or not solved.proved or not self._model(answer):
                break
        return bound

    def fewest_entries(self, program: Program, deadline: float, progress: Callable[[str], None]) -> bool:
        """With the number of lost rules proved, the fewest entries; whether that is proved, too."""
        while (left := deadline - time.monotonic()) > 0:
            progress(f"exact: {self.best.lost:,} rules lost is the least; {self.best.entries:,} entries changed")
            solved = program.solve(self.modelled, left, at_most=self.best.lost)
            answer = None if solved.columns is None else self._offered(solved.columns)
            if answer is None or not solved.proved:
                return False
            if answer.lost <= self.best.lost:
                return True
            if not self._model(answer):
                return False
        return False

    def _model(self, answer: _Answer) -> bool:
        """Model what an answer lost, as far as it is not modelled; whether there was such."""
        before = self.modelled.size
        self.modelled.sets |= dict.fromkeys(answer.fallen)
        self.modelled.rules |= dict.fromkeys(answer.unsure)
        return self.modelled.size > before

    def _offered(self, columns: Columns) -> _Answer | None:
        answer = self._counted(columns)
        if answer is not None and (answer.lost, answer.entries) < (self.best.lost, self.best.entries):
            self.best = answer
        return answer

    def _counted(self, columns: Columns) -> _Answer | None:
        """An answer counted in whole numbers; None where it does not hide."""
        baskets = self.problem.baskets.with_columns(columns)
        thresholds, mined = self.problem.thresholds, self.problem.found.mined
        counts: dict[int, int] = {}

        def count(place: int) -> int:
            if place not in counts:
                counts[place] = int(baskets.holding(mined.sets[place]).sum())
            return counts[place]

        if any(thresholds.there(count(mined.index[r.whole]), count(mined.index[r.antecedent])) for r in self.problem.sensitive):
            return None
        pairs = enumerate(self.rules)
        lost = [(number, whole) for number, (whole, left) in pairs if not thresholds.there(count(whole), count(left))]
        fallen = {whole: None for _, whole in lost if count(whole) < thresholds.least}
        return _Answer(
            columns=columns,
            fallen=tuple(fallen),
            unsure=tuple(number for number, whole in lost if whole not in fallen),
            lost=len(lost),
            entries=sum(int((columns[place] != self.problem.baskets.column(place)).sum()) for place in self.problem.items),
        )
