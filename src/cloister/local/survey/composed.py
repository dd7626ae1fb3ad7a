"""A survey: its questions, the levels that it offers, and everything that a browser needs, as JSON with a version."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.local.protocols.coins import check_epsilon
from cloister.local.survey.channel import Channel
from cloister.local.survey.channels import channel_of
from cloister.local.survey.promise import Promise, promise_of
from cloister.local.survey.question import Question
from cloister.local.survey.questions import question_of
from cloister.printable import is_text, json_of, kept
from cloister.privacy.rational import Exact, exact_positive, text_of

FORMAT = 2
"""Of surveys and of reports to them, as JSON. In format 1 one level held for a whole report."""
Chosen = str | Mapping[str, str]
"""The name of one level for all questions, or that of a level for each question's name."""
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LEAST, _MOST = Fraction(1, 20), Fraction(10)
_MOST_QUESTIONS = 200


@dataclass(frozen=True)
class Level:
    """How much is told at most by each answer: a plain name and an ε.

    >>> Level("careful", Fraction(1, 2)).epsilon
    Fraction(1, 2)
    """

    name: str
    epsilon: Fraction


@dataclass(frozen=True, kw_only=True)
class Expected:
    """How exact the results of one question will be at one level.

    >>> Expected(question="copied", level="careful", n=1000, rare=0.05, half=0.06).to_dict()["rare"]
    0.05
    """

    question: str
    level: str
    n: int
    rare: float
    """The margin of the share of an answer that next to nobody gives; of a mean, the largest margin, where all answer."""
    half: float
    """The same of an answer that half of all people give."""
    least: float | None = None
    """Of free words: the share of people who must give a word for it to be found."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"question": self.question, "level": self.level, "n": self.n, "rare": self.rare, "half": self.half} | (
            {} if self.least is None else {"least": self.least}
        )


@dataclass(frozen=True, init=False)
class Survey:
    """Questions, and the levels of privacy among which a respondent chooses, for each question, before the questions are seen.

    Guarantee: a report to one question at a level of ε is ε-locally private, and a whole report (Σε)-locally private, the sum
    being over the levels that its sender chose, by composition; no report counts whose sum is above `cap`. The levels
    themselves are sent in clear, and no ε bounds what they tell: so they are chosen before anybody knows what is asked, for then
    they can't depend on an answer.

    >>> from cloister.local.survey import YesNo
    >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": "0.5", "open": 2}, cap=2)
    >>> survey.version, Survey.from_json(survey.to_json()) == survey
    ('1-...', True)
    """

    id: str
    title: str
    questions: tuple[Question, ...]
    levels: tuple[Level, ...]
    cap: Fraction
    revision: int = 1

    def __init__(
        self,
        id: str,  # noqa: A002
        title: str,
        questions: Iterable[Question],
        *,
        levels: Mapping[str, Exact],
        cap: Exact = 8,
        revision: int = 1,
    ) -> None:
        values = {
            "id": id,
            "title": title,
            "questions": tuple(questions),
            "levels": checked_levels(levels),
            "cap": exact_positive(cap, "cap"),
            "revision": revision,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise _refused("its id is not 1 to 64 small letters, digits, - and _", 'Survey("exams-2026", …)')
        if not is_text(self.title, 200):
            raise _refused("its title has not 1 to 200 printable characters", 'Survey("exams-2026", "Exams", …)')
        if isinstance(self.revision, bool) or not isinstance(self.revision, int) or self.revision < 1:
            raise _refused("its revision is not a whole number from 1 on", "revision=2")
        if not 1 <= len(self.questions) <= _MOST_QUESTIONS:
            raise _refused(f"it has no question, or more than {_MOST_QUESTIONS}", 'questions=[YesNo("copied", "…")]')
        if not all(isinstance(each, Question) for each in self.questions):
            raise _refused("some of its questions are none", 'questions=[YesNo("copied", "…")]')
        names = [each.name for each in self.questions]
        if len(set(names)) != len(names):
            raise _refused("two questions have the same name", "a name of its own for each question")
        texts = [each.text.strip().lower() for each in self.questions]
        if len(set(texts)) != len(texts):
            raise _refused(
                "the same question is asked twice, and two reports of one answer tell more than one", "each question once"
            )
        least = min(level.epsilon for level in self.levels)
        if len(self.questions) * least > self.cap:
            most = int(self.cap / least)
            raise InvalidParameter(
                "The survey has too many questions for its cap",
                why=f"{len(self.questions)} questions at ε = {text_of(least)}, the most careful level, come to "
                f"{text_of(len(self.questions) * least)}, above {text_of(self.cap)}",
                instead=f"at most {most} questions, smaller levels, or a larger cap=" if most else "smaller levels",
            )

    @cached_property
    def version(self) -> str:
        """The revision, and a fingerprint of all that is asked and how it is randomised: reports of another one don't count."""
        told = json.dumps(self._body(), sort_keys=True, ensure_ascii=False)
        return f"{self.revision}-{hashlib.sha256(told.encode(errors='surrogatepass')).hexdigest()[:12]}"

    def level(self, name: str) -> Level:
        """The level of this name."""
        for level in self.levels:
            if level.name == name:
                return level
        raise InvalidParameter(
            "The level is invalid", why="the survey does not offer it", instead=", ".join(each.name for each in self.levels)
        )

    def question(self, name: str) -> Question:
        """The question of this name."""
        for question in self.questions:
            if question.name == name:
                return question
        raise InvalidParameter(
            "The question is invalid",
            why="the survey does not ask it",
            instead=", ".join(question.name for question in self.questions),
        )

    def channel(self, question: Question, level: Level) -> Channel:
        """What randomises a question at a level."""
        return channel_of(question, level.epsilon)

    def promise(self, question: Question, level: Level) -> Promise:
        """What is promised about one answer."""
        return promise_of(question, self.channel(question, level).client)

    def chosen(self, levels: Chosen) -> dict[str, Level]:
        """The level of each question: `levels` is one name for all, or a name for each question. What comes to more than the
        cap is refused.

        >>> from cloister.local.survey import YesNo
        >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you?")], levels={"careful": 1, "open": 3})
        >>> survey.chosen({"copied": "open"})["copied"].epsilon
        Fraction(3, 1)
        """
        found, total = self._chosen(levels), self.spent(levels)
        if total > self.cap:
            raise BudgetExceeded(
                f"ε = {text_of(total)} in all was refused",
                why=f"this survey lets nobody give more than ε = {text_of(self.cap)}",
                instead="a more careful level for some of the questions",
            )
        return found

    def spent(self, levels: Chosen) -> Fraction:
        """The sum of ε over all questions at such levels, whether the cap allows it or not.

        >>> from cloister.local.survey import YesNo
        >>> survey = Survey("exam", "Exams", [YesNo("a", "A?"), YesNo("b", "B?")], levels={"careful": "0.1", "open": 3}, cap=4)
        >>> survey.spent("careful"), survey.spent({"a": "careful", "b": "open"}), [each.name for each in survey.for_all]
        (Fraction(1, 5), Fraction(31, 10), ['careful'])
        """
        return sum((level.epsilon for level in self._chosen(levels).values()), Fraction(0))

    def _chosen(self, levels: Chosen) -> dict[str, Level]:
        """In the survey's order. Every question needs one: no answer is an answer like others."""
        names = [question.name for question in self.questions]
        if isinstance(levels, str):
            return dict.fromkeys(names, self.level(levels))
        if not isinstance(levels, Mapping):
            raise self._not_chosen("they are neither the name of one level nor one for each question")
        if set(levels) - set(names):
            raise self._not_chosen("some are for questions that the survey does not ask")
        missing = [name for name in names if name not in levels]
        if missing:
            raise self._not_chosen(f'"{missing[0]}" has none; it takes one also where it is left unanswered')
        return {name: self.level(levels[name]) for name in names}

    def _not_chosen(self, why: str) -> InvalidParameter:
        instead = f'"{self.levels[0].name}", or {{"{self.questions[0].name}": "{self.levels[0].name}", …}}'
        return InvalidParameter("The levels are invalid", why=why, instead=instead)

    @property
    def for_all(self) -> tuple[Level, ...]:
        """The levels that may be chosen for all questions at once; others are too much for that."""
        return tuple(level for level in self.levels if len(self.questions) * level.epsilon <= self.cap)

    def expected(self, n: int, *, confidence: Exact = 0.95) -> list[Expected]:
        """How exact the results of each question will be with n respondents who all chose one level: half-widths of shares (or
        means).

        >>> from cloister.local.survey import YesNo
        >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
        >>> round(survey.expected(10_000)[0].rare, 3)
        0.022
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidParameter("n= is invalid", why="it is not a whole number from 1 on", instead="survey.expected(1000)")
        return [
            Expected(
                question=question.name,
                level=level.name,
                n=n,
                rare=self.channel(question, level).margin(n, 0.0, confidence),
                half=self.channel(question, level).margin(n, 0.5, confidence),
                least=self.channel(question, level).least(n),
            )
            for question in self.questions
            for level in self.levels
        ]

    def to_dict(self) -> dict[str, Any]:
        """The survey as plain JSON: questions, levels, the integers of every channel, the promises in words."""
        return self._body() | {
            "version": self.version,
            "promises": {
                question.name: {level.name: self.promise(question, level).to_dict() for level in self.levels}
                for question in self.questions
            },
        }

    def to_json(self) -> str:
        """The same as text."""
        return json_of(self.to_dict(), indent=1)

    @classmethod
    def from_dict(cls, said: Any) -> Survey:
        """What `to_dict` wrote. The channels are worked out again; where the file says others, it is refused."""
        if not isinstance(said, Mapping) or "format" not in said:
            raise _refused("it is not what to_json wrote", "survey.to_json()")
        if said["format"] != FORMAT:
            raise _refused(f"its format is not {FORMAT}: another version of cloister wrote it", "the version that wrote it")
        try:
            with kept():
                survey = cls(
                    said["survey"],
                    said["title"],
                    [question_of(each) for each in said["questions"]],
                    levels={each["name"]: each["epsilon"] for each in said["levels"]},
                    cap=said["cap"],
                    revision=said["revision"],
                )
        except (KeyError, TypeError):
            raise _refused("some of its fields are missing or of another kind", "survey.to_json()") from None
        body = survey._body()  # to the letter: the browser reads "1/2" as this does, and would not read "-5/-1" so
        if said.get("version") != survey.version or any(said.get(name) != each for name, each in body.items()):
            raise _refused("it was changed after it was composed", "a survey composed again, with revision= one higher")
        return survey

    @classmethod
    def from_json(cls, text: str | bytes) -> Survey:
        """What `to_json` wrote."""
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            raise _refused("it is not JSON", "survey.to_json()") from None
        return cls.from_dict(said)

    def _body(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "survey": self.id,
            "revision": self.revision,
            "title": self.title,
            "cap": text_of(self.cap),
            "levels": [{"name": each.name, "epsilon": text_of(each.epsilon)} for each in self.levels],
            "questions": [each.to_dict() for each in self.questions],
            "channels": {
                question.name: {level.name: dict(self.channel(question, level).client) for level in self.levels}
                for question in self.questions
            },
        }


def checked_levels(given: Mapping[str, Exact]) -> tuple[Level, ...]:
    """Levels by their names; refused where a survey can't offer them.

    >>> checked_levels({"careful": "0.5"})
    (Level(name='careful', epsilon=Fraction(1, 2)),)
    """
    if not isinstance(given, Mapping) or not 1 <= len(given) <= 8:
        raise _refused("it offers no levels, or more than 8", 'levels={"careful": "0.5", "open": 2}')
    levels = []
    for name, epsilon in given.items():
        if not is_text(name, 40):
            raise _refused("the name of a level has not 1 to 40 printable characters", 'levels={"careful": "0.5"}')
        number = check_epsilon(epsilon)
        if not _LEAST <= number <= _MOST:
            raise _refused(f"a level's ε lies outside {text_of(_LEAST)} to {_MOST}", 'levels={"careful": "0.5"}')
        levels.append(Level(name, number))
    if len({level.epsilon for level in levels}) != len(levels):
        raise _refused("two levels have the same ε", 'levels={"careful": "0.5", "open": 2}')
    return tuple(levels)


def _refused(why: str, instead: str) -> InvalidParameter:
    return InvalidParameter("The survey is invalid", why=why, instead=instead)
