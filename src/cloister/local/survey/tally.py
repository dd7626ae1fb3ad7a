"""What a collector keeps: counts for each question and level, which add up; not one report.

Reports may come one at a time or a million at once, on one server or many: tallies add. A report that can't be of this survey is
counted under the reason why, and never believed; nothing that is sent can stop a collector.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from cloister.errors import InvalidParameter
from cloister.local.survey.composed import Survey
from cloister.local.survey.counts import Counts, refused_tally
from cloister.local.survey.reports import fingerprint_of, read_report
from cloister.local.survey.tokens import hash_of

_CHUNK = 1 << 14


@dataclass(frozen=True, kw_only=True)
class Received:
    """What became of some reports.

    >>> Received(accepted=3, refused={"not JSON": 1}).to_dict()
    {'accepted': 3, 'refused': {'not JSON': 1}}
    """

    accepted: int
    refused: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"accepted": self.accepted, "refused": dict(self.refused)}


class Tally:
    """The counts of a survey's reports. Adding is thread-unsafe: one tally for each worker, and `+` at the end.

    `invited` are the hashes of the tokens that were sent out. Without them anybody may answer, and a token names nobody: only the
    very same report counts once however often it is sent.

    >>> from cloister.local.survey import Survey, YesNo, respond
    >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
    >>> tally = Tally(survey)
    >>> report = respond(survey, {"copied": True}, "careful")
    >>> tally.add([report, report, "garbage"]).to_dict()
    {'accepted': 1, 'refused': {'token used before': 1, 'not JSON': 1}}
    >>> Tally.from_json(survey, tally.to_json()).n
    1
    """

    def __init__(self, survey: Survey, *, invited: Collection[str] | None = None) -> None:
        if invited is not None and any(len(each) != 64 for each in invited):  # digits of `hash_of`
            why = "this is not a list of the hashes of tokens, so nobody's report would count"
            raise InvalidParameter("The invited are invalid", why=why, instead="the hashes that were made with the tokens")
        self.survey = survey
        self.invited = None if invited is None else frozenset(invited)
        self.refused: Counter[str] = Counter()
        self.used: set[str] = set()
        self._counts: dict[tuple[str, str], Counts] = {}

    @property
    def n(self) -> int:
        """How many reports count."""
        return sum(self.people(self.survey.questions[0].name).values())  # each report has one level for each question

    def people(self, question: str) -> dict[str, int]:
        """How many reports count at each level of a question."""
        return {level.name: self.counts(question, level.name).n for level in self.survey.levels}

    def counts(self, question: str, level: str) -> Counts:
        """The counts of one question at one level."""
        held = self._counts.get((question, level))
        if held is not None:
            return held
        return self.survey.channel(self.survey.question(question), self.survey.level(level)).count([])

    def add(self, reports: Iterable[Any]) -> Received:
        """Count reports: `Report`s, dicts, or JSON texts; anything else is garbage, and is counted as such."""
        before, refused = self.n, Counter[str]()
        rows: dict[tuple[str, str], list[Any]] = {}
        held = 0
        for said in reports:
            reason = self._take(said, rows)
            if reason:
                refused[reason] += 1
                continue
            held += 1
            if held % _CHUNK == 0:
                self._count(rows)
        self._count(rows)
        self.refused += refused
        return Received(accepted=self.n - before, refused=dict(refused))

    def _take(self, said: Any, rows: dict[tuple[str, str], list[Any]]) -> str:
        """Keep a report's values until they are counted; or say why not."""
        read = read_report(self.survey, said)
        if isinstance(read, str):
            return read
        report, values = read
        token = hash_of(report.token)
        if self.invited is not None and token not in self.invited:
            return "token not issued"
        key = token if self.invited is not None else fingerprint_of(report)
        if not self.used.isdisjoint((key, token)):  # a tally of an older version kept the tokens of open surveys
            return "token used before"
        self.used.add(key)
        for name, row in values.items():
            rows.setdefault((name, report.levels[name]), []).append(row)
        return ""

    def _count(self, rows: dict[tuple[str, str], list[Any]]) -> None:
        for (name, level), some in rows.items():
            counted = self.survey.channel(self.survey.question(name), self.survey.level(level)).count(some)
            held = self._counts.get((name, level))
            self._counts[name, level] = counted if held is None else held + counted
        rows.clear()

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if other.survey.version != self.survey.version or other.survey.id != self.survey.id:
            raise InvalidParameter(
                "Two tallies were not added", why="they are of different surveys or versions", instead="tallies of one survey"
            )
        _check_kind(self.invited is not None, other.invited is not None, "Two tallies were not added")
        if self.used & other.used:
            raise InvalidParameter(
                "Two tallies were not added",
                why="both count the same token, and a sum can't take a report out again",
                instead="one collector for each invitation, or all reports to one tally",
            )
        total = Tally(self.survey, invited=self.invited)
        total.refused = self.refused + other.refused
        total.used = self.used | other.used
        for key in self._counts.keys() | other._counts.keys():
            total._counts[key] = self.counts(*key) + other.counts(*key)
        return total

    def to_json(self) -> str:
        """The tally as plain JSON: counts, and hashes of the tokens that were used."""
        return json.dumps(
            {
                "survey": self.survey.id,
                "version": self.survey.version,
                "invited": self.invited is not None,
                "refused": dict(self.refused),
                "used": sorted(self.used),
                "counts": [
                    {"question": name, "level": level} | counts.to_dict()
                    for (name, level), counts in sorted(self._counts.items())
                ],
            }
        )

    @classmethod
    def from_json(cls, survey: Survey, text: str | bytes, *, invited: Collection[str] | None = None) -> Tally:
        """What `to_json` wrote, of the same survey and version, and with a list of the invited where it was kept with one."""
        tally = cls(survey, invited=invited)
        try:
            said = json.loads(text)
            if (said["survey"], said["version"]) != (survey.id, survey.version):
                raise refused_tally("it is of another survey or version")
            tally.refused = Counter({str(reason): int(count) for reason, count in said["refused"].items()})
            tally.used = {str(token) for token in said["used"]}
            kept = said.get("invited", tally.invited is not None and tally.used <= tally.invited)  # an older version didn't say
            _check_kind(bool(kept), tally.invited is not None, "A tally is invalid")
            read = {(each["question"], each["level"]): Counts.from_dict(each) for each in said["counts"]}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            if isinstance(error, InvalidParameter):
                raise
            raise refused_tally() from None
        known = {(question.name, level.name) for question in survey.questions for level in survey.levels}
        for key, counts in read.items():
            if key not in known or not counts.fits(tally.counts(*key)):
                raise refused_tally("it counts something that the survey does not ask")
            tally._counts[key] = counts
        return tally


def _check_kind(one: bool, other: bool, what: str) -> None:
    if one is not other:
        why = f"reports were counted with{'' if one else 'out'} a list of the invited, and would count again under the other rule"
        raise InvalidParameter(what, why=why, instead="all reports again, in a new tally")
