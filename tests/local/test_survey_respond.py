"""One person's report: what it holds, what it does not, and which answers are refused."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from cloister.attacks import audit_channel
from cloister.errors import InvalidParameter
from cloister.local.survey import (
    Choice,
    Number,
    Several,
    Survey,
    Tally,
    Word,
    YesNo,
    hash_of,
    issue_tokens,
    read_report,
    respond,
    send_again,
)
from cloister.local.survey.ticks import Ticks, odds_of_ticks
from cloister.noise import Random
from scripts.local_vectors import everything
from tests.local.words import Scripted

TOKEN = "0123456789abcdef" * 2
ANSWERS = [
    {"choice": "red"},
    {"choice": "other", "yes-no": True, "several": ["a", "d"], "scale": "never", "number": 0, "spread": -0.5, "word": "bern"},
    {
        "choice": "blue",
        "yes-no": "no",
        "several": [],
        "scale": "often",
        "number": 40,
        "spread": 1,
        "place": "0,0",
        "long": "option 3",
    },
]


def test_a_report_holds_randomised_values_and_nothing_else() -> None:
    made = everything()
    report = respond(made, ANSWERS[1], "open", token=TOKEN)
    assert set(json.loads(report.to_json())) == {"format", "survey", "version", "levels", "token", "values"}
    assert set(report.values) == {question.name for question in made.questions}
    assert isinstance(read_report(made, report.to_json()), tuple)


def test_the_number_of_words_and_the_form_of_a_report_say_nothing_of_the_answers() -> None:
    made = everything()
    mixed = {name: ("careful", "open")[place % 2] for place, name in enumerate(_names(made))}
    forms = set()
    for answers in ANSWERS:
        for level in ("careful", "open", mixed):
            random = Scripted.recording(Random.deterministic(3))
            report = respond(made, answers, level, token=TOKEN, random=random)
            forms.add((str(level), len(random.words_used), json.dumps(_form(report.to_dict()))))
    assert len(forms) == 3, "one form for each choice of levels"


def _form(said: Any) -> Any:
    """What is left of a report when every value is struck out."""
    if isinstance(said, dict):
        return {name: _form(each) for name, each in said.items()}
    return [_form(each) for each in said] if isinstance(said, list) else type(said).__name__


def test_two_answers_make_the_same_reports_with_the_chances_that_are_promised() -> None:
    """Every report that one answer can make, every other answer makes too: so a report is no proof of anything. Counted over
    4,000 draws of each; each of the 3 reports is missed with a probability below 0.8^4000."""
    survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
    random = Random.deterministic(1)
    made = {
        answer: Counter(respond(survey, {"copied": answer}, "careful", token=TOKEN, random=random).to_json() for _ in range(4000))
        for answer in (True, False, None)
    }
    assert set(made[True]) == set(made[False]) == set(made[None])
    assert len(made[True]) == 3


def test_the_same_words_and_the_opposite_coin_make_the_same_text() -> None:
    survey = Survey("exam", "Exams", [YesNo("copied", "Have you?", no_answer=False)], levels={"careful": 1})
    truth, lie = Scripted([0, 7, 9]), Scripted([2**64 - 1, 7, 9])
    said = respond(survey, {"copied": True}, "careful", random=truth).to_json()
    assert said == respond(survey, {"copied": False}, "careful", random=lie).to_json()


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"choice": "purple"}, "not among the answers"),
        ({"choice": 3}, "not among the answers"),
        ({}, "may not be left out"),
        ({"choice": None}, "may not be left out"),
        ({"choice": "red", "other": 1}, "does not ask"),
        ({"choice": "red", "yes-no": "perhaps"}, "not among the answers"),
        ({"choice": "red", "yes-no": 1}, "not among the answers"),
        ({"choice": "red", "several": ["a", "b", "c"]}, "not among the answers"),
        ({"choice": "red", "several": "a"}, "not among the answers"),
        ({"choice": "red", "several": [["a"]]}, "not among the answers"),
        ({"choice": "red", "number": float("nan")}, "NaN is not a number"),
        ({"choice": "red", "number": 41}, "outside the bounds"),
        ({"choice": "red", "number": float("inf")}, "outside the bounds"),
        ({"choice": "red", "number": 10**400}, "outside the bounds"),
        ({"choice": "red", "number": True}, "not among the answers"),
        ({"choice": "red", "number": "12"}, "not among the answers"),
        ({"choice": "red", "place": (0, 0)}, "not among the answers"),
        ({"choice": "red", "place": (float("nan"), 8.5)}, "not among the answers"),
        ({"choice": "red", "place": ("a", 8.5)}, "not among the answers"),
        ({"choice": "red", "word": 3}, "not among the answers"),
        ({"choice": "red", "word": "\ud800"}, "not among the answers"),
        ("red", "not a value for each name"),
    ],
)
def test_an_answer_that_there_is_not_is_refused_and_not_repeated(answers: Any, why: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        respond(everything(), answers, "open")
    assert why in str(refused.value)
    assert "purple" not in str(refused.value)
    assert "41" not in str(refused.value)


def _names(survey: Survey) -> list[str]:
    return [question.name for question in survey.questions]


def test_levels_and_tokens_are_checked() -> None:
    made = everything()
    for levels, token, why in (
        ("reckless", None, "does not offer"),
        (None, None, "name of one level nor one for each"),
        ({"yes-no": "open"}, None, '"choice" has none'),
        (dict.fromkeys(_names(made), "open") | {"elsewhere": "open"}, None, "does not ask"),
        (dict.fromkeys(_names(made), "open") | {"choice": "reckless"}, None, "does not offer"),
        (dict.fromkeys(_names(made), "open") | {"choice": ["open"]}, None, "does not offer"),
        ("open", "abc", "32 hexadecimal"),
    ):
        with pytest.raises(InvalidParameter, match=why):
            respond(made, ANSWERS[0], levels, token=token)  # type: ignore[arg-type]


def test_tokens_are_fresh_and_their_hashes_hide_them() -> None:
    tokens, hashes = issue_tokens(100)
    assert len(set(tokens)) == 100
    assert hashes == sorted(hash_of(token) for token in tokens)
    assert not set(tokens) & set(hashes)
    with pytest.raises(InvalidParameter, match="number of invitations"):
        issue_tokens(0)


def test_a_survey_that_comes_back_hears_the_same_report_again() -> None:
    made = everything()
    first = respond(made, ANSWERS[1], "careful")
    second = send_again(first, token=TOKEN)
    assert second.to_dict() == first.to_dict() | {"token": TOKEN}
    assert Tally(made).add([first, first, second]).to_dict() == {"accepted": 2, "refused": {"token used before": 1}}
    with pytest.raises(InvalidParameter, match="32 hexadecimal"):
        send_again(first, token="x")


@pytest.mark.parametrize(("most", "epsilon"), [(1, "1"), (3, "1"), (30, "8")])
def test_ticks_have_the_variance_that_is_said(most: int, epsilon: str) -> None:
    """60,000 independent cells: their mean squared error has a standard deviation of 0.6 %, so 3 % is passed once in 10⁶ runs."""
    ticks, random = Ticks(30, most=most, epsilon=epsilon), Random.deterministic(most)
    trials, people = 2000, 20
    rows = ticks.randomize([frozenset()] * (trials * people), random=random).reshape(trials, people, 1)
    found = np.array([ticks.estimate(ticks.count(each), people) for each in rows])
    assert np.mean(found**2) == pytest.approx(ticks.variance(people), rel=0.03)
    assert abs(np.mean(found)) < 6 * (ticks.variance(people) / found.size) ** 0.5


@pytest.mark.parametrize(("size", "most"), [(2, 1), (3, 1), (3, 3), (4, 2), (5, 2), (6, 3)])
@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_ticks_are_as_private_as_is_said_exactly(size: int, most: int, epsilon: str) -> None:
    ticks = Ticks(size, most=most, epsilon=epsilon)
    found = audit_channel(ticks.channel()).epsilon
    assert found <= float(ticks.epsilon)
    stay, rise = (int(ticks.client[name], 16) for name in ("stay", "rise"))
    assert found == pytest.approx(math.log(odds_of_ticks(size, most, stay, rise)))
    assert found > 0.6 * float(ticks.epsilon)


def test_ticks_with_epsilon_for_each_option_by_itself_are_caught() -> None:
    """The broken twin: each of three bits gets the whole ε, so the list gets three times as much."""
    broken = Ticks(3, most=3, epsilon=3)
    assert audit_channel(broken.channel()).epsilon > 2.9
    assert audit_channel(Ticks(3, most=3, epsilon=1).channel()).epsilon <= 1


def test_answers_find_their_places() -> None:
    assert Word("a", "A?").place("\x00\x02 Basel\tLand\x85") == "basel land"
    assert Word("a", "A?", length=2).place("中") == Word("a", "A?").place(" \x00") == ""
    for blank in ("", "  ", "\x00", "中"):
        with pytest.raises(InvalidParameter, match="was not answered"):
            Word("a", "A?", length=2, no_answer=False).place(blank)
    assert Choice("a", "A?", ["x", "y"]).place("y") == 1
    assert Several("a", "A?", ["x", "y"]).place(["y", "y"]) == {1}
    assert Number("a", "A?", low="0.1", high="0.3").place(0.3) <= 0.3
    assert Number("a", "A?", low=0, high=1).place(None) is None
