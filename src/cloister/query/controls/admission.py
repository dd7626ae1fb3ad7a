"""What may be answered after what was answered: overlap and audit, over the questions of all analysts and all processes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from cloister.crypto import PseudoRandomFunction
from cloister.errors import AccessDenied, UnsupportedQuery
from cloister.query.controls.history import AnsweredSet, SetHistory
from cloister.query.controls.masks import Mask
from cloister.query.controls.policy import Controls
from cloister.query.controls.records import Records
from cloister.query.controls.sampling import RandomSample
from cloister.query.controls.sums import Audit, Witness

_SUMS = ("sum", "mean")


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """For the owner: what was refused to whom, why, and for an audited sum the combination that would have told."""

    who: str
    what: str
    why: str
    kind: Literal["set", "columns", "overlap", "audit"] = "set"
    witness: Witness | None = None
    questions: tuple[str, ...] = ()
    """The questions whose answers the witness combines, in its order; the refused one is the last."""

    def __str__(self) -> str:
        text = f"{self.who}: {self.what}: {self.why}"
        return text if self.witness is None else f"{text}\n  {self.witness}\n  " + "\n  ".join(self.questions)


class Admission:
    """One table's answered sets, and the decisions that rest on them. Not differential privacy."""

    def __init__(
        self, *, controls: Controls, records: Records, keyed: PseudoRandomFunction, history: SetHistory, place: str, state: str
    ) -> None:
        self._controls, self._records, self._keyed = controls, records, keyed
        self._history, self._place, self._state = history, place, state
        self._seen = 0
        self._lines: dict[str, list[str]] = {}
        self._overlaps: dict[str, Overlaps] = {}
        self._audits: dict[str, Audit] = {}
        self._read: set[str] = set()
        self._earlier = 0

    def catch_up(self) -> None:
        """Take in what was answered elsewhere since; in a turn of the history."""
        for line in self._history.lines(self._place, self._state, self._earlier):
            self._take(line)
        self._earlier = self._history.count(self._place)

    def check(self, wanted: list[AnsweredSet]) -> Refusal | None:
        """Why these may not be answered, all of them together; None where they may. In a turn, after `catch_up`."""
        mixed = self.mixed(wanted)  # by what was answered since it was first looked at: by now records decide too
        return replace(mixed, kind="set") if mixed else self._overlapping(wanted) or self._telling(wanted)

    def take(self, wanted: list[AnsweredSet]) -> int:
        """Write the answered sets down; the number of the last line. In a turn, after `check`."""
        self._history.append(self._place, self._state, wanted)
        return self._history.count(self._place)

    def mixed(self, wanted: list[AnsweredSet]) -> Refusal | None:
        """A column whose sums are audited is not read by conditions: its values would make the sets.

        It follows from the questions alone, and comes before anything that depends on records: else the size of a set that an
        audited column makes would say something about its values.
        """
        if not self._controls.audit_sums:
            return None
        summed = set(self._audits) | {line.column for line in wanted if line.statistic in _SUMS}
        read = self._read | {name for line in wanted for name in _read_by(line)}
        both = sorted(summed & read)
        if not both:
            return None
        first = wanted[0]
        return Refusal(
            who=first.who, what=first.what, why=f"{both[0]!r} would be both summed and read by conditions", kind="columns"
        )

    def _overlapping(self, wanted: list[AnsweredSet]) -> Refusal | None:
        most = self._controls.overlap
        if most is None:
            return None
        for line in wanted:
            known = self._overlaps.get(line.column)
            if known is not None and known.largest(self._records.people_in(line.records)) > most:
                return Refusal(
                    who=line.who, what=line.what, why=f"it shares more than {most} people with an answered set", kind="overlap"
                )
        return None

    def _telling(self, wanted: list[AnsweredSet]) -> Refusal | None:
        sums = [line for line in wanted if line.statistic in _SUMS] if self._controls.audit_sums else []
        trials: dict[str, Audit] = {}
        for place, line in enumerate(sums):
            audit = trials.get(line.column) or self._audits.get(line.column) or Audit(self._records.units)
            verdict = audit.examine(self._summed(line.records))
            if not verdict:
                assert verdict.witness is not None
                before = [each.what for each in sums[:place] if each.column == line.column]
                asked = [*self._lines.get(line.column, []), *before, line.what]
                questions = tuple(f"answer {number}: {asked[number]}" for number, _ in verdict.witness.answers)
                why = "with the answered ones it would fix one person's value"
                return Refusal(who=line.who, what=line.what, why=why, kind="audit", witness=verdict.witness, questions=questions)
            if place < len(sums) - 1:  # what is answered together is examined one upon the other
                if line.column not in trials:
                    trials[line.column] = audit.copy()
                trials[line.column].add(self._summed(line.records))
        return None

    def _take(self, line: AnsweredSet) -> None:
        if self._controls.overlap is not None:
            overlaps = self._overlaps.setdefault(line.column, Overlaps(self._records.people))
            overlaps.add(self._records.people_in(line.records))
        if self._controls.audit_sums and line.statistic in _SUMS:
            self._audits.setdefault(line.column, Audit(self._records.units)).add(self._summed(line.records))
            self._lines.setdefault(line.column, []).append(line.what)
        self._read |= set(_read_by(line))

    def _summed(self, records: Mask) -> Mask:
        """The records that the sum is really of: those in the sample, where there is one."""
        sample: RandomSample | None = self._controls.sample
        return records if sample is None else sample.of(records, self._keyed)


def refused(refusal: Refusal, controls: Controls) -> AccessDenied | UnsupportedQuery:
    """A refusal in the words for the analyst: nothing of the witness."""
    if refusal.kind == "audit":
        return AccessDenied(
            "The query was refused",
            why="its answer, together with those that were given, would fix one person's value",
            instead="a query about another set, or session.table(by=…)",
        )
    if refusal.kind == "overlap" and controls.overlap is not None:
        return too_alike(controls.overlap)
    return UnsupportedQuery(
        "The query is not supported",
        why=f"under audit_sums a column is either summed, or read by conditions and extremes: {refusal.why}",
        instead="a condition on other columns",
    )


def _read_by(line: AnsweredSet) -> Iterable[str]:
    """The columns of which a statistic tells by other ways than sums."""
    yield from line.reads
    if line.statistic in ("maximum", "minimum"):
        yield line.column


class Overlaps:
    """The sets that were answered about one column.

    >>> overlaps = Overlaps(4)
    >>> overlaps.add(np.array([True, True, True, False]))
    >>> overlaps.largest(np.array([False, True, True, True])), overlaps.largest(np.array([True, True, True, False]))
    (2, 0)
    """

    def __init__(self, people: int) -> None:
        self._sets: npt.NDArray[np.uint8] = np.zeros((0, (people + 7) // 8), dtype=np.uint8)

    def add(self, people: Mask) -> None:
        """Take note of an answered set."""
        packed = np.packbits(people)
        if not (self._sets == packed).all(axis=1).any():
            self._sets = np.concatenate([self._sets, packed[None, :]])

    def largest(self, people: Mask) -> int:
        """The most people that the set has in common with an earlier one that is not the same."""
        packed = np.packbits(people)
        if not len(self._sets) or (self._sets == packed).all(axis=1).any():
            return 0
        return int(np.bitwise_count(self._sets & packed).sum(axis=1, dtype=np.int64).max())


def too_alike(most: int) -> AccessDenied:
    """The refusal; it does not say with which earlier set.

    Query-set overlap: a set that has much in common with an earlier one, about the same column, is refused.

    Not differential privacy. With sets of at least k people, no two of which share more than r, anyone who knows none of the
    values needs at least 1 + (k − 1)/r sums to work out one of them (Dobkin, Jones & Lipton 1979). What it does not stop:
    asking that many; and few questions are answered at all. Its refusal is not simulatable: it is a bit about who is in which
    set. The very same set is answered again."""
    return AccessDenied(
        "The query was refused",
        why=f"its set has more than {most} people in common with one that was answered",
        instead="the query that was answered, or one about other people",
    )
