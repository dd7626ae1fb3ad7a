"""The questions that a survey may ask, and where an answer stands among the answers that there are.

Everything here is public: it is the questionnaire. `place` turns one person's answer into what a protocol randomises: the number
of an option, a set of numbers, a number between bounds, a word. "No answer" is a private answer of its own: one more option,
which nobody can tell from the others.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from cloister.errors import InvalidParameter
from cloister.local.survey.question import MOST_OPTIONS, NO_ANSWER, OneOf, Question, check_options, form_of, set_fields, texts_of
from cloister.printable import UNPRINTABLE
from cloister.privacy.rational import exact, text_of


@dataclass(frozen=True)
class YesNo(OneOf):
    """Yes or no.

    >>> question = YesNo("copied", "Have you ever copied in an exam?")
    >>> question.place(True), question.labels
    (1, ('no', 'yes', 'no answer'))
    """

    kind: ClassVar[str] = "yes-no"

    def _check(self) -> None:
        """Nothing more."""

    @property
    def answers(self) -> tuple[str, ...]:
        return ("no", "yes")

    def place(self, answer: Any) -> int:
        """0 for no, 1 for yes (True and False, too), 2 for no answer."""
        return super().place(("no", "yes")[answer] if isinstance(answer, bool) else answer)


@dataclass(frozen=True)
class Choice(OneOf):
    """One of several options without an order."""

    options: tuple[str, ...] = ()
    kind: ClassVar[str] = "choice"
    stored = (*Question.stored, "options")

    def __init__(self, name: str, text: str, options: Iterable[str], *, no_answer: bool = True) -> None:
        set_fields(self, name=name, text=text, no_answer=no_answer, options=texts_of(options))

    def _check(self) -> None:
        check_options(self, self.options, "options")

    @property
    def answers(self) -> tuple[str, ...]:
        return self.options


@dataclass(frozen=True)
class Scale(OneOf):
    """One step of an ordered scale; its steps count 1, 2, 3 … in the mean.

    >>> Scale("often", "How often?", ("never", "once", "often")).place("often")
    2
    """

    steps: tuple[str, ...] = ()
    kind: ClassVar[str] = "scale"
    stored = (*Question.stored, "steps")

    def __init__(self, name: str, text: str, steps: Iterable[str], *, no_answer: bool = True) -> None:
        set_fields(self, name=name, text=text, no_answer=no_answer, steps=texts_of(steps))

    def _check(self) -> None:
        check_options(self, self.steps, "steps")

    @property
    def answers(self) -> tuple[str, ...]:
        return self.steps


@dataclass(frozen=True)
class Several(Question):
    """Any of several options, at most `most` of them.

    >>> question = Several("used", "Which have you used?", ("a", "b", "c"), most=2)
    >>> sorted(question.place(["c", "a"])), question.place(None)
    ([0, 2], frozenset({3}))
    """

    options: tuple[str, ...] = ()
    most: int = 1
    kind: ClassVar[str] = "several"
    stored = (*Question.stored, "options", "most")

    def __init__(self, name: str, text: str, options: Iterable[str], *, most: int | None = None, no_answer: bool = True) -> None:
        listed = texts_of(options)
        set_fields(self, name=name, text=text, no_answer=no_answer, options=listed, most=len(listed) if most is None else most)

    def _check(self) -> None:
        check_options(self, self.options, "options")
        if isinstance(self.most, bool) or not isinstance(self.most, int) or not 1 <= self.most <= len(self.options):
            raise self.refusal("most= is not a number from 1 to that of its options", "most=3")

    @property
    def labels(self) -> tuple[str, ...]:
        """The options, with "no answer" as the last one where it may be given."""
        return (*self.options, NO_ANSWER) if self.no_answer else self.options

    def place(self, answer: Any) -> frozenset[int]:
        """The numbers of the ticked options; an empty list says that none applies, None is no answer."""
        if answer is None:
            if not self.no_answer:
                raise self.unanswered()
            return frozenset((len(self.options),))
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise self.no_such(f'["{self.options[0]}"], or None')
        listed = list(answer)
        if any(not isinstance(each, str) or each not in self.options for each in listed) or len(set(listed)) > self.most:
            raise self.no_such(f"a list of at most {self.most} of the options, or None")
        return frozenset(self.options.index(each) for each in listed)


@dataclass(frozen=True)
class Number(Question):
    """A number between declared bounds.

    `want`: "mean" for the mean alone, with the least error; "spread" for the whole distribution.

    >>> Number("hours", "How many hours?", low=0, high=40).place(20)
    20.0
    """

    low: str = "0"
    high: str = "1"
    want: str = "mean"
    kind: ClassVar[str] = "number"
    stored = (*Question.stored, "low", "high", "want")

    def __init__(self, name: str, text: str, *, low: Any, high: Any, want: str = "mean", no_answer: bool = True) -> None:
        bounds = {"low": text_of(exact(low, "low")), "high": text_of(exact(high, "high"))}
        set_fields(self, name=name, text=text, no_answer=no_answer, want=want, **bounds)

    def _check(self) -> None:
        if not Fraction(self.low) < Fraction(self.high):
            raise self.refusal("low is not below high", "low=0, high=40")
        if self.want not in ("mean", "spread"):
            raise self.refusal("want= is neither mean nor spread", 'want="mean"')

    def place(self, answer: Any) -> float | None:
        """The number as a double; None for no answer."""
        if answer is None:
            if not self.no_answer:
                raise self.unanswered()
            return None
        if isinstance(answer, bool) or not isinstance(answer, int | float | Fraction):
            raise self.no_such(f"a number from {self.low} to {self.high}, or None")
        if answer != answer:
            raise self.no_such(f"a number from {self.low}, or None", why="NaN is not a number")
        low, high = float(Fraction(self.low)), float(Fraction(self.high))
        try:  # doubles, as in the browser: 0.1 is within "0.1"
            said = float(answer)
        except OverflowError:
            said = math.inf
        if not low <= said <= high:
            raise self.no_such(f"a number from {self.low} to {self.high}, or None", why="it is outside the bounds")
        return said


@dataclass(frozen=True)
class Place(OneOf):
    """A cell of a grid on a map, between two latitudes and two longitudes; rows are counted from the south.

    >>> question = Place("home", "Where?", south=47, west=8, north=48, east=9, rows=2, columns=3)
    >>> question.place((47.6, 8.1)), question.place({"row": 1, "column": 2}), len(question.labels)
    (3, 5, 7)
    """

    south: float = 0.0
    west: float = 0.0
    north: float = 1.0
    east: float = 1.0
    rows: int = 1
    columns: int = 1
    kind: ClassVar[str] = "place"
    stored = (*Question.stored, "south", "west", "north", "east", "rows", "columns")

    def __init__(
        self, name: str, text: str, *, south: float, west: float, north: float, east: float, rows: int, columns: int,
        no_answer: bool = True,
    ) -> None:  # fmt: skip
        sides = {"south": south, "west": west, "north": north, "east": east}
        set_fields(self, name=name, text=text, no_answer=no_answer, rows=rows, columns=columns, **sides)

    def _check(self) -> None:
        sides = (self.south, self.west, self.north, self.east)
        if any(isinstance(side, bool) or not isinstance(side, int | float) or not abs(side) < math.inf for side in sides):
            raise self.refusal("its sides are not numbers", "south=47, west=8, north=48, east=9")
        if not (-90 <= self.south < self.north <= 90 and -180 <= self.west < self.east <= 180):
            raise self.refusal("its sides are not a box of degrees", "south=47, west=8, north=48, east=9")
        whole = all(isinstance(count, int) and not isinstance(count, bool) and count >= 1 for count in (self.rows, self.columns))
        if not whole or not 2 <= self.rows * self.columns <= MOST_OPTIONS:
            raise self.refusal(f"its cells are fewer than 2 or more than {MOST_OPTIONS:,}", "rows=8, columns=8")

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(f"{row},{column}" for row in range(self.rows) for column in range(self.columns))

    def place(self, answer: Any) -> int:
        """The cell of a (latitude, longitude), of {"row": …, "column": …}, or of a text such as "1,2"."""
        if isinstance(answer, Mapping) and set(answer) == {"row", "column"}:
            return super().place(f"{answer['row']},{answer['column']}")
        if isinstance(answer, tuple | list) and len(answer) == 2:
            if any(isinstance(each, bool) or not isinstance(each, int | float) for each in answer):
                raise self.no_such("(latitude, longitude), or None")
            if not (self.south <= answer[0] <= self.north and self.west <= answer[1] <= self.east):
                raise self.no_such("a point of the map, or None")
            row: int = math.floor((answer[0] - self.south) / (self.north - self.south) * self.rows)
            column: int = math.floor((answer[1] - self.west) / (self.east - self.west) * self.columns)
            return min(row, self.rows - 1) * self.columns + min(column, self.columns - 1)
        return super().place(answer)


@dataclass(frozen=True)
class Word(Question):
    """A free word: only words that many people give are ever seen."""

    length: int = 12
    """In bytes of UTF-8: a Latin letter has one, a Chinese one three."""
    kind: ClassVar[str] = "word"
    stored = (*Question.stored, "length")

    def __init__(self, name: str, text: str, *, length: int = 12, no_answer: bool = True) -> None:
        set_fields(self, name=name, text=text, no_answer=no_answer, length=length)

    def _check(self) -> None:
        if isinstance(self.length, bool) or not isinstance(self.length, int) or not 2 <= self.length <= 64:
            raise self.refusal("length= is not a number of bytes from 2 to 64", "length=12")

    def place(self, answer: Any) -> str:
        """The word in small letters without what is not printable and spaces at its ends, cut where its bytes exceed `length`; no
        answer is the empty word.

        >>> Word("town", "Which town?").place("  Basel ")
        'basel'
        """
        if answer is None:
            if not self.no_answer:
                raise self.unanswered()
            return ""
        if not isinstance(answer, str):
            raise self.no_such("a text, or None")
        try:
            answer.encode()
            octets = UNPRINTABLE.sub(" ", answer).strip().lower().encode()
        except UnicodeEncodeError:
            raise self.no_such("a text of whole characters, or None") from None
        word = octets[: self.length].decode(errors="ignore")
        if not word and not self.no_answer:  # a blank is no answer, in every result
            raise self.unanswered()
        return word


KINDS: dict[str, type[Question]] = {each.kind: each for each in (YesNo, Choice, Scale, Several, Number, Place, Word)}


def question_of(said: Any) -> Question:
    """The question that `to_dict` wrote.

    >>> question_of(YesNo("copied", "Have you copied?").to_dict())
    YesNo(name='copied', text='Have you copied?', no_answer=True)
    """
    named = said.get("kind") if isinstance(said, Mapping) else None
    kind = KINDS.get(named) if isinstance(named, str) else None
    if kind is None:
        raise InvalidParameter("A question is invalid", why="its kind is unknown", instead=f'"kind": one of {", ".join(KINDS)}')
    given = {key: value for key, value in said.items() if key != "kind"}
    try:
        return form_of(kind).made(given)
    except (KeyError, TypeError):
        raise InvalidParameter(
            f'A question of kind "{kind.kind}" is invalid',
            why="its fields are not those of its kind",
            instead=", ".join(form_of(kind).attributes),
        ) from None
