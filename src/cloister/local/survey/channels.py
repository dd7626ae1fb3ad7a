"""Which channel a question gets at a level: chosen when the survey is composed, by the least error, and written into it."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from cloister.errors import InvalidParameter
from cloister.local.survey.amounts import AmountChannel
from cloister.local.survey.channel import Channel
from cloister.local.survey.one_of import OneOfChannel
from cloister.local.survey.question import OneOf, Question
from cloister.local.survey.questions import Number, Scale, Several, Word
from cloister.local.survey.several import SeveralChannel
from cloister.local.survey.words import WordChannel


@lru_cache(maxsize=1024)
def channel_of(question: Question, epsilon: Fraction) -> Channel:
    """The channel of a question at an ε.

    >>> from cloister.local.survey import YesNo
    >>> channel_of(YesNo("copied", "Have you copied?"), Fraction(1)).client["protocol"]
    'direct'
    """
    if isinstance(question, Several):
        return SeveralChannel(question.labels, epsilon, most=question.most)
    if isinstance(question, Number):
        return AmountChannel(question.low, question.high, epsilon, want=question.want, no_answer=question.no_answer)
    if isinstance(question, Word):
        return WordChannel(epsilon, length=question.length)
    if isinstance(question, OneOf):
        steps = range(1, len(question.answers) + 1) if isinstance(question, Scale) else ()
        scores = [*map(float, steps), *([None] if question.no_answer and steps else [])]
        return OneOfChannel(question.labels, epsilon, scores=scores)
    raise InvalidParameter(
        f'"{question.name}" has no channel',
        why=f"{type(question).__name__} is not a kind of question",
        instead="Choice, YesNo, …",
    )
