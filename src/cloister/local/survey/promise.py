"""What is promised to a respondent, from the integers of a channel alone, and in plain words.

`odds_of` reads what `client` says, not what its author says of it: the browser's twin does the same (`odds` in
browser/cloister-local.js), so that a page can show the promise without believing anybody.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cloister.errors import InvalidParameter
from cloister.local.protocols.coins import WORD, least_epsilon
from cloister.local.survey.question import OneOf, Question
from cloister.local.survey.questions import Several, Word
from cloister.local.survey.ticks import odds_of_ticks

Client = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """The promise of one question at one level.

    >>> Promise(odds=Fraction(3), text="…").odds_text, round(Promise(odds=Fraction(3), text="…").epsilon, 4)
    ('3', 1.0986)
    """

    odds: Fraction
    """Whoever sees the report can raise the odds of any answer by at most this factor."""
    text: str
    lie: int | None = None
    """In how many of 100 reports another answer is told; None where a report is no answer."""

    @property
    def epsilon(self) -> float:
        """ln of the odds, rounded up."""
        return least_epsilon(self.odds)

    @property
    def odds_text(self) -> str:
        """The odds rounded up to two decimals."""
        return f"{math.ceil(self.odds * 100) / 100:.2f}".rstrip("0").rstrip(".")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, for a page."""
        return {"odds": self.odds_text, "epsilon": round(self.epsilon, 6), "lie": self.lie, "text": self.text}


def odds_of(client: Client) -> Fraction:
    """The largest ratio of a report's probabilities under two answers: exact, from the integers.

    >>> odds_of({"protocol": "response", "size": 2, "heads": hex(3 << 62)})
    Fraction(3, 1)
    """
    kind = _ODDS.get(client.get("protocol", ""))
    if kind is None:
        raise InvalidParameter(
            "The promise was not worked out", why="the protocol is unknown", instead=f"one of {', '.join(_ODDS)}"
        )
    return kind(client)


def promise_of(question: Question, client: Client) -> Promise:
    """The promise of one question in plain words.

    >>> from cloister.local.survey import YesNo
    >>> question = YesNo("copied", "Have you copied?", no_answer=False)
    >>> print(promise_of(question, {"protocol": "response", "size": 2, "heads": hex(3 << 62)}).text)
    Even if you answer “yes”, whoever sees your report can be at most 3 times surer of it than before. The report differs from
    your answer with a chance of 25 in 100.
    """
    odds = odds_of(client)
    shown = Promise(odds=odds, text="").odds_text
    answer = _answer(question)
    words = f"{answer}, whoever sees your report can be at most {shown} times surer of it than before."
    if question.no_answer:
        words += " Nobody can see whether you answered, either."
    lie = _lie(client)
    if lie is not None:
        words += f" The report differs from your answer with a chance of {lie} in 100."
    return Promise(odds=odds, text=words, lie=lie)


def _answer(question: Question) -> str:
    if isinstance(question, Several):
        return f"Even if you tick “{question.options[0]}”"
    if isinstance(question, Word):
        return "Whatever word you write"
    if question.kind == "yes-no":
        return "Even if you answer “yes”"
    if isinstance(question, OneOf) and question.kind != "place":
        return f"Even if you answer “{question.answers[-1]}”"
    return "Whatever place you mark" if question.kind == "place" else "Whatever number you give"


def _lie(client: Client) -> int | None:
    """In how many of 100 reports, rounded down, another answer is told, where a report is an answer at all."""
    if client["protocol"] not in ("response", "direct"):
        return None
    return math.floor(100 * (1 - Fraction(_heads(client), WORD)))


def _heads(client: Client, name: str = "heads") -> int:
    return int(client[name], 16)


def _either(odds: Fraction) -> Fraction:
    return max(odds, 1 / odds)


def _odds(heads: int, part: int, whole: int) -> Fraction:
    """Of a coin that says whether a report is one of so many of all outcomes, or one of the others; each kind is alike."""
    return _either(Fraction(heads * (whole - part), (WORD - heads) * part))


def _hadamard(client: Client) -> Fraction:
    columns = -(-client["size"] // (client["order"] - 1)) * client["order"]
    return _odds(_heads(client), client["order"] // 2, columns)


def _unary(client: Client) -> Fraction:
    stay, rise = _heads(client, "stay"), _heads(client, "rise")
    return _either(Fraction(stay, rise) * Fraction(WORD - rise, WORD - stay))


def _window(client: Client) -> Fraction:
    _one_dimension(client)
    return _odds(_heads(client), client["width"], client["outputs"])


def _sign(client: Client) -> Fraction:
    _one_dimension(client)
    return _odds(_heads(client), 1, 2)


def _hybrid(client: Client) -> Fraction:
    """The choice between the two is no part of the truth, so the odds are those of the worse one that is ever chosen."""
    _one_dimension(client)
    choice = _heads(client, "choice")
    told = [_odds(_heads(client, "sign"), 1, 2)] if choice < WORD else []
    return max(told + ([_window(client)] if choice else []))


def _one_dimension(client: Client) -> None:
    if client["dimensions"] != 1:
        raise InvalidParameter("The promise was not worked out", why="it has several dimensions", instead="one number a question")


_ODDS: dict[str, Callable[[Client], Fraction]] = {
    "response": lambda client: _odds(_heads(client), 1, 2),
    "direct": lambda client: _odds(_heads(client), 1, client["size"]),
    "unary": _unary,
    "subset": lambda client: _odds(_heads(client, "inside"), client["picks"], client["size"]),
    "hadamard": _hadamard,
    # direct encoding of a hash whose function is drawn without a look at the answer
    "hashing": lambda client: _odds(_heads(client), 1, client["field"]),
    "ticks": lambda client: odds_of_ticks(client["size"], client["most"], _heads(client, "stay"), _heads(client, "rise")),
    "window": _window,
    "sign": _sign,
    "hybrid": _hybrid,
    # a number and whether there is one: two reports, whose odds multiply
    "number": lambda client: odds_of(client["value"]) * odds_of(client["answered"]),
    # local hashing of a place; which prefix is reported is drawn without a look at the word
    "heavy": lambda client: odds_of(client["hashing"]),
}
