"""One person's report: made where the person is, and read where reports are collected.

A report holds the survey's id and version, a level and a randomised value for each question, and a one-time token; nothing
else. No time, no device, no order of answering, and nothing whose presence or length depends on an answer. The levels are sent
as they were chosen.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cloister.errors import InvalidParameter
from cloister.local.survey.composed import FORMAT, Chosen, Level, Survey
from cloister.local.survey.tokens import hash_of, new_token
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.printable import json_of

MOST_LETTERS = 1 << 20
"""A longer text is no report."""

_FIELDS = frozenset({"format", "survey", "version", "levels", "token", "values"})
_OF_ANY_FORMAT = frozenset({"survey", "version", "token", "values"})
_TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What leaves a person's machine.

    >>> report = Report(survey="s", version="1-a", levels={"copied": "open"}, token="00" * 16, values={"copied": 1})
    >>> report.to_dict()["levels"], report.to_dict()["values"]
    ({'copied': 'open'}, {'copied': 1})
    """

    survey: str
    version: str
    levels: Mapping[str, str]
    """The level that was chosen for each question, in clear."""
    token: str
    values: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "format": FORMAT,
            "survey": self.survey,
            "version": self.version,
            "levels": dict(self.levels),
            "token": self.token,
            "values": dict(self.values),
        }

    def to_json(self) -> str:
        """The same as text: exactly what is sent."""
        return json_of(self.to_dict(), separators=(",", ":"))


def respond(
    survey: Survey, answers: Mapping[str, Any], levels: Chosen, *, token: str | None = None, random: Random | None = None
) -> Report:
    """Randomise one person's answers: to run where the person is.

    `answers` has a value for each question's name; what is left out, or is None, is "no answer". `levels` is the name of a
    level for all questions, or a name for each question; what they come to is at most the survey's cap. They are sent as they
    are, so choose them before the questions are seen. `token` is that of the invitation; without one, a fresh token makes sure
    only that the same report, sent twice, counts once.

    Words are used up question by question in the survey's order; then two for a fresh token.

    >>> from cloister.local.survey import Survey, YesNo
    >>> asked = [YesNo("copied", "Have you?"), YesNo("lent", "Did you?")]
    >>> survey = Survey("exam", "Exams", asked, levels={"careful": 1, "open": 3})
    >>> report = respond(survey, {"copied": True}, {"copied": "careful", "lent": "open"})
    >>> report.values["copied"] in (0, 1, 2), sorted(report.to_dict())
    (True, ['format', 'levels', 'survey', 'token', 'values', 'version'])
    >>> sorted(set(respond(survey, {"copied": True}, "open").levels.values()))
    ['open']
    """
    chosen = survey.chosen(levels)
    if not isinstance(answers, Mapping):
        raise InvalidParameter("answers are invalid", why="they are not a value for each name", instead='{"copied": True}')
    unknown = set(answers) - {question.name for question in survey.questions}
    if unknown:
        raise InvalidParameter(
            "answers are invalid",
            why="some are to questions that the survey does not ask",
            instead=", ".join(question.name for question in survey.questions),
        )
    _check_token(token)
    places = [question.place(answers.get(question.name)) for question in survey.questions]
    drawn = source(random)
    values = {
        question.name: survey.channel(question, chosen[question.name]).report(place, drawn)
        for question, place in zip(survey.questions, places, strict=True)
    }
    return Report(
        survey=survey.id,
        version=survey.version,
        levels={name: level.name for name, level in chosen.items()},
        token=new_token(drawn) if token is None else token,
        values=values,
    )


def fingerprint_of(report: Report) -> str:
    """What is kept of a report to an open survey, so that the same one, sent again, counts once: a hash of all of it.

    Its token alone would not do. Anybody can choose one, so whoever sent a link with a token in it would silence everybody who
    answers through that link but the first. Reports that differ in anything are those of different people, or of somebody who
    could as well have drawn another token.

    >>> first = Report(survey="s", version="1-a", levels={"copied": "open"}, token="00" * 16, values={"copied": 1})
    >>> fingerprint_of(first) == fingerprint_of(replace(first)), fingerprint_of(first) == fingerprint_of(send_again(first))
    (True, False)
    """
    return hash_of(json.dumps(report.to_dict(), sort_keys=True))


def send_again(report: Report, *, token: str | None = None, random: Random | None = None) -> Report:
    """The report for the next wave of a survey that comes back: the same levels and randomised values under another token.

    Guarantee: all waves together tell what the first report told, and no more: the others are copies of it. So a person's own
    machine keeps its report, and an answer that has changed since is not heard. (Randomising again would add ε for each wave;
    randomising again only where the answer has changed would show that it has.)

    >>> first = Report(survey="s", version="1-a", levels={"copied": "open"}, token="00" * 16, values={"copied": 1})
    >>> second = send_again(first)
    >>> second.values == first.values, second.token == first.token
    (True, False)
    """
    _check_token(token)
    return replace(report, token=new_token(source(random)) if token is None else token)


def read_report(survey: Survey, said: Any) -> tuple[Report, dict[str, Any]] | str:
    """A report and its values, ready to be counted; or, for garbage, why it is none: one of a few fixed texts. Never raises, and
    believes nothing: every field and value is checked against the survey.

    >>> from cloister.local.survey import Survey, YesNo
    >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
    >>> read_report(survey, "{"), read_report(survey, {"survey": "other"})
    ('not JSON', 'not a report')
    """
    if isinstance(said, Report):
        said = said.to_dict()
    if isinstance(said, str | bytes):
        if len(said) > MOST_LETTERS:
            return "too long"
        try:
            said = json.loads(said)
        except (ValueError, RecursionError):
            return "not JSON"
    if isinstance(said, dict) and said.get("format") != FORMAT and set(said) >= _OF_ANY_FORMAT:
        return "of another format"
    if not isinstance(said, dict) or set(said) != _FIELDS or not isinstance(said["values"], dict):
        return "not a report"
    if said["survey"] != survey.id:
        return "of another survey"
    if said["version"] != survey.version:
        return "of another version"
    if not isinstance(said["token"], str) or not _TOKEN.fullmatch(said["token"]):
        return "without a token"
    names = {question.name for question in survey.questions}
    if set(said["values"]) != names:
        return "other questions"
    levels = _levels_of(survey, said["levels"])
    if levels is None:
        return "of an unknown level"
    if sum(level.epsilon for level in levels.values()) > survey.cap:
        return "over the cap"
    rows = {}
    for question in survey.questions:
        row = survey.channel(question, levels[question.name]).read(said["values"][question.name])
        if row is None:
            return "impossible values"
        rows[question.name] = row
    return Report(**{name: value for name, value in said.items() if name != "format"}), rows


def _levels_of(survey: Survey, said: Any) -> dict[str, Level] | None:
    """The level of each question; None where it is not such a choice."""
    if not isinstance(said, dict) or set(said) != {question.name for question in survey.questions}:
        return None
    offered = {level.name: level for level in survey.levels}
    if not all(isinstance(name, str) and name in offered for name in said.values()):
        return None
    return {question: offered[name] for question, name in said.items()}


def _check_token(token: str | None) -> None:
    if token is not None and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
        raise InvalidParameter("token= is invalid", why="it is not 32 hexadecimal digits", instead="the invitation's token")
