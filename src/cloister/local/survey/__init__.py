"""Surveys whose answers nobody can know: composed, answered where the person is, collected with margins.

    questions.py, several.py …   what may be asked: yes or no, a choice, several, a scale, a number, a place, a free word
    composed.py                  a survey: questions, levels, a cap; as JSON with everything that a browser needs; which level is
                                 chosen for each question, before it is seen, and what that comes to
    promise.py                   what is promised, from the integers alone, and in plain words
    reports.py, tokens.py        one person's report, and the invitation that it answers
    tally.py, findings.py, results.py   counts that add up, and what they say; alike.py: whether the levels answer alike
    anomalies.py, poisoning.py   reports that honest people would not send, and how far lies can move a result

>>> from cloister.local.survey import Choice, Survey, YesNo, collect, respond
>>> survey = Survey(
...     "exams-2026",
...     "Exams",
...     [YesNo("copied", "Have you ever copied?"), Choice("why", "Why?", ["time", "grade", "other"])],
...     levels={"careful": "0.5", "open": 2},
... )
>>> report = respond(survey, {"copied": True}, {"copied": "careful", "why": "open"})
>>> results = collect(survey, [report.to_json()])
>>> results.tally.people("why"), results["copied"].combined.estimate.n
({'careful': 0, 'open': 1}, 1)
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.local.survey.composed import Expected as Expected
    from cloister.local.survey.composed import Level as Level
    from cloister.local.survey.composed import Survey as Survey
    from cloister.local.survey.promise import Promise as Promise
    from cloister.local.survey.promise import odds_of as odds_of
    from cloister.local.survey.questions import Choice as Choice
    from cloister.local.survey.questions import Number as Number
    from cloister.local.survey.questions import Place as Place
    from cloister.local.survey.questions import Scale as Scale
    from cloister.local.survey.questions import Several as Several
    from cloister.local.survey.questions import Word as Word
    from cloister.local.survey.questions import YesNo as YesNo
    from cloister.local.survey.reports import Report as Report
    from cloister.local.survey.reports import read_report as read_report
    from cloister.local.survey.reports import respond as respond
    from cloister.local.survey.reports import send_again as send_again
    from cloister.local.survey.results import Results as Results
    from cloister.local.survey.results import collect as collect
    from cloister.local.survey.tally import Tally as Tally
    from cloister.local.survey.tokens import hash_of as hash_of
    from cloister.local.survey.tokens import issue_tokens as issue_tokens

__all__, __getattr__, __dir__ = Lazily(__name__).public
