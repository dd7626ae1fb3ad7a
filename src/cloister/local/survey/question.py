"""What every question of a survey has; and the kind whose answer is one of a list."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from cloister.errors import InvalidParameter
from cloister.printable import is_text
from cloister.stored import Stored

NO_ANSWER = "no answer"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
MOST_OPTIONS = 4096


@dataclass(frozen=True)
class Question(ABC):
    """What every question has: a name for programs, a text for people, and whether it may be left unanswered."""

    name: str
    text: str
    no_answer: bool = True

    kind: ClassVar[str]
    """What a stored survey calls it; like the names below it stays, whatever class and fields are called."""
    stored: ClassVar[tuple[str | tuple[str, str], ...]] = ("name", "text", "no_answer")
    """What a stored survey calls its fields (`cloister.stored`)."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidParameter(
                "The name of a question is invalid",
                why="it is not 1 to 40 small letters, digits, - and _, the first of them a letter",
                instead='YesNo("copied", "Have you ever copied?")',
            )
        if not is_text(self.text, 500, lines=True):
            raise self.refusal("its text has not 1 to 500 printable characters", f'YesNo("{self.name}", "Have you ever copied?")')
        if not isinstance(self.no_answer, bool):
            raise self.refusal("no_answer= is neither True nor False", "no_answer=True")
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Refuse parameters that make no question."""

    @abstractmethod
    def place(self, answer: Any) -> Any:
        """Where an answer stands; None stands for no answer. An answer that is not among those that there are is refused."""

    def to_dict(self) -> dict[str, Any]:
        """The question as plain JSON."""
        told = form_of(type(self)).told(self)
        return {"kind": self.kind} | {name: list(part) if isinstance(part, tuple) else part for name, part in told.items()}

    def refusal(self, why: str, instead: str) -> InvalidParameter:
        """Why the question can't be asked."""
        return InvalidParameter(f'The question "{self.name}" is invalid', why=why, instead=instead)

    def no_such(self, instead: str, why: str = "it is not among the answers that there are") -> InvalidParameter:
        """The refusal of an answer that there is not; it does not repeat it."""
        return InvalidParameter(f'The answer to "{self.name}" is invalid', why=why, instead=instead)

    def unanswered(self) -> InvalidParameter:
        """The refusal of no answer."""
        return InvalidParameter(
            f'"{self.name}" was not answered', why="it may not be left out", instead="an answer, or no_answer=True in the survey"
        )


@dataclass(frozen=True)
class OneOf(Question):
    """A question whose answer is one of a list: what yes/no, a choice, a scale and a map's cell have in common."""

    @property
    @abstractmethod
    def answers(self) -> tuple[str, ...]:
        """The answers in their order, without "no answer"."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The answers with "no answer" as the last one, where it may be given."""
        return (*self.answers, NO_ANSWER) if self.no_answer else self.answers

    def place(self, answer: Any) -> int:
        """The number of an answer in `labels`.

        >>> from cloister.local.survey import Choice
        >>> Choice("pet", "Which pet?", ("cat", "dog")).place("dog"), Choice("pet", "Which pet?", ("cat", "dog")).place(None)
        (1, 2)
        """
        if answer is None:
            if not self.no_answer:
                raise self.unanswered()
            return len(self.answers)
        if not isinstance(answer, str) or answer not in self.answers:
            listed = ", ".join((*self.answers[:20], "…")[: len(self.answers)])
            raise self.no_such(f"one of {listed}, or None")
        return self.answers.index(answer)


@cache
def form_of(kind: type[Question]) -> Stored[Question]:
    """How questions of a kind are stored.

    >>> from cloister.local.survey import YesNo
    >>> form_of(YesNo).told(YesNo("copied", "Have you ever copied?"))
    {'name': 'copied', 'text': 'Have you ever copied?', 'no_answer': True}
    """
    return Stored(kind, kind.kind, *kind.stored)


def set_fields(question: Any, **values: Any) -> None:
    """Set the fields of a frozen question, and check it."""
    for name, value in values.items():
        object.__setattr__(question, name, value)
    question.__post_init__()


def texts_of(given: Any) -> tuple[str, ...]:
    """A list of texts as a tuple; a text alone is none."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidParameter("A question is invalid", why="its options are not a list of texts", instead='["cat", "dog"]')
    return tuple(given)


def check_options(question: Question, options: tuple[Any, ...], part: str) -> None:
    """Refuse options that are no texts, twice the same, too few or too many."""
    if not all(is_text(each, 200) for each in options):
        raise question.refusal(f"its {part} are not texts of 1 to 200 printable characters", f'{part}=["cat", "dog"]')
    if len(set(options)) != len(options):
        raise question.refusal(f"some of its {part} are listed twice", "each once")
    if NO_ANSWER in options:
        raise question.refusal(f'"{NO_ANSWER}" is among its {part}', "no_answer=True")
    if not 2 <= len(options) <= MOST_OPTIONS:
        raise question.refusal(f"it has fewer than 2 or more than {MOST_OPTIONS:,} {part}", f'{part}=["cat", "dog"]')
