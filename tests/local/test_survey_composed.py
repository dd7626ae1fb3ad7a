"""Composing a survey: what is refused, what is chosen, what the file says."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest

from cloister.errors import BudgetExceeded, InvalidParameter
from cloister.local import DirectEncoding
from cloister.local.survey import Choice, Number, Place, Scale, Several, Survey, Word, YesNo, odds_of
from cloister.local.survey.one_of import best_oracle
from cloister.local.survey.ticks import odds_of_ticks
from scripts.local_vectors import everything

LEVELS = {"careful": "0.5", "open": 2}


def survey(*questions: Any, **given: Any) -> Survey:
    return Survey("exam", "Exams", questions or [YesNo("copied", "Have you copied?")], **({"levels": LEVELS} | given))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: YesNo("", "Have you?"), "small letters"),
        (lambda: YesNo("Copied", "Have you?"), "small letters"),
        (lambda: YesNo("copied", " "), "1 to 500 printable characters"),
        (lambda: YesNo("copied", "Have you?", no_answer=1), "neither True nor False"),  # type: ignore[arg-type]
        (lambda: Choice("pet", "Which?", []), "fewer than 2"),
        (lambda: Choice("pet", "Which?", ["cat"]), "fewer than 2"),
        (lambda: Choice("pet", "Which?", ["cat", "cat"]), "listed twice"),
        (lambda: Choice("pet", "Which?", "cat"), "not a list"),
        (lambda: Choice("pet", "Which?", ["cat", 3]), "texts of 1 to 200"),  # type: ignore[list-item]
        (lambda: Choice("pet", "Which?", ["cat", "no answer"]), "no answer"),
        (lambda: Choice("pet", "Which?", [str(number) for number in range(1_000_000)]), "more than 4,096"),
        (lambda: Scale("often", "How often?", ["never"]), "fewer than 2"),
        (lambda: Several("used", "Which?", ["a", "b"], most=3), "most="),
        (lambda: Number("hours", "How many?", low=3, high=3), "low is not below high"),
        (lambda: Number("hours", "How many?", low=float("nan"), high=3), "low"),
        (lambda: Number("hours", "How many?", low=0, high=3, want="median"), "neither mean nor spread"),
        (lambda: Place("home", "Where?", south=48, west=8, north=47, east=9, rows=2, columns=2), "box of degrees"),
        (lambda: Place("home", "Where?", south=-(10**400), west=8, north=48, east=9, rows=2, columns=2), "box of degrees"),
        (lambda: Place("home", "Where?", south=47, west=8, north=math.nan, east=9, rows=2, columns=2), "not numbers"),
        (lambda: Place("home", "Where?", south=47, west=8, north=48, east=9, rows=99, columns=99), "more than 4,096"),
        (lambda: Word("town", "Which?", length=1), "length="),
        (lambda: Survey("Exam!", "Exams", [YesNo("a", "A?")], levels=LEVELS), "its id"),
        (lambda: Survey("exam", "", [YesNo("a", "A?")], levels=LEVELS), "title"),
        (lambda: Survey("exam", "Exams", [], levels=LEVELS), "no question"),
        (lambda: Survey("exam", "Exams", ["a"], levels=LEVELS), "are none"),  # type: ignore[list-item]
        (lambda: survey(YesNo("a", "A?"), YesNo("a", "B?")), "same name"),
        (lambda: survey(YesNo("a", "A?"), YesNo("b", " a? ")), "asked twice"),
        (lambda: survey(levels={}), "no levels"),
        (lambda: survey(levels={"careful": 0}), "epsilon"),
        (lambda: survey(levels={"careful": -1}), "epsilon"),
        (lambda: survey(levels={"careful": "0.01"}), "outside"),
        (lambda: survey(levels={"careful": 11}), "outside"),
        (lambda: survey(levels={"a": 1, "b": "1.0"}), "same ε"),
        (
            lambda: survey(*[YesNo(f"q{n}", f"{n}?") for n in range(17)], cap=8),
            "17 questions at ε = 0.5, the most careful level",
        ),
        (lambda: survey(cap="0.4"), "come to 0.5, above 0.4"),
        (lambda: survey(revision=0), "revision"),
        (lambda: survey().expected(0), "n="),
    ],
)
def test_each_mistake_has_a_message_of_its_own(make: Any, why: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        make()
    assert why in str(refused.value)
    assert refused.value.instead


def test_a_survey_with_every_kind_comes_back_from_its_file() -> None:
    made = everything()
    again = Survey.from_json(made.to_json())
    assert again == made
    assert again.version == made.version
    assert again.to_json() == made.to_json()


def test_the_version_follows_whatever_is_asked() -> None:
    versions = {
        survey().version,
        survey(YesNo("copied", "Have you copied? ")).version,
        survey(YesNo("copied", "Have you copied?", no_answer=False)).version,
        survey(levels={"careful": "0.5", "open": "1.9"}).version,
        survey(cap=9).version,
        survey(revision=2).version,
    }
    assert len(versions) == 6
    assert survey(revision=2).version.startswith("2-")


@pytest.mark.parametrize("where", ["heads", "text", "version", "epsilon"])
def test_a_file_that_was_changed_by_hand_is_refused(where: str) -> None:
    said = json.loads(survey().to_json())
    if where == "heads":
        said["channels"]["copied"]["careful"]["heads"] = hex(2**64 - 1)
    elif where == "text":
        said["questions"][0]["text"] = "Have you ever?"
    elif where == "version":
        said["version"] = "1-000000000000"
    else:
        said["levels"][0]["epsilon"] = "0.6"
    with pytest.raises(InvalidParameter, match="changed after it was composed"):
        Survey.from_dict(said)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not what to_json wrote"),
        ('{"format": 3}', "another version of cloister"),
        ('{"format": 1, "survey": "a"}', "another version of cloister"),
        ('{"format": 2}', "missing"),
        ('{"format": 2, "survey": "a", "title": "a", "questions": [{"kind": "riddle"}], "levels": []}', "kind is unknown"),
        ('{"format": 2, "survey": "a", "title": "a", "questions": [{"kind": "yes-no", "x": 1}], "levels": []}', "not those of"),
        ('{"format": 2, "survey": "a", "title": "a", "questions": 3, "levels": []}', "missing or of another kind"),
    ],
)
def test_garbage_is_no_survey(text: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        Survey.from_json(text)


def test_promises_are_kept_and_nearly_tight_by_the_integers_of_the_file() -> None:
    """The odds of every channel, from its integers, against e^ε: at most, and (where whole coins allow) nearly."""
    made = everything()
    for level in made.levels:
        for question in made.questions:
            promise = made.promise(question, level)
            assert promise.epsilon <= float(level.epsilon) * (1 + 1e-12), question.name
            assert promise.epsilon > 0.9 * float(level.epsilon), question.name
            assert promise.odds_text in promise.text
            assert odds_of(made.to_dict()["channels"][question.name][level.name]) == promise.odds


def test_words_of_promises() -> None:
    made = everything()
    texts = {question.name: made.promise(question, made.level("careful")).text for question in made.questions}
    assert texts["yes-no"].startswith("Even if you answer “yes”, whoever sees your report can be at most 1.65 times surer")
    assert texts["several"].startswith("Even if you tick “a”")
    assert texts["word"].startswith("Whatever word you write")
    assert texts["place"].startswith("Whatever place you mark")
    assert texts["number"].startswith("Whatever number you give")
    assert "Nobody can see whether you answered" in texts["yes-no"]
    assert "Nobody can see whether" not in texts["choice"]
    with pytest.raises(InvalidParameter, match="protocol is unknown"):
        odds_of({"protocol": "plain"})


def test_half_letters_are_refused_and_not_written() -> None:
    for make in (
        lambda: Choice("pet", "Which?", ["cat", "\ud800"]),
        lambda: YesNo("copied", "Have you \udfff copied?"),
        lambda: survey(levels={"\ud800": 1}),
        lambda: Survey("exam", "\ud800", [YesNo("copied", "Have you copied?")], levels=LEVELS),
    ):
        with pytest.raises(InvalidParameter, match="is invalid"):
            make()


def test_the_promise_holds_for_coins_the_wrong_way_round() -> None:
    turned = {"protocol": "unary", "size": 3, "stay": hex(1 << 62), "rise": hex(3 << 62)}
    assert odds_of(turned) == 9
    assert odds_of({**turned, "protocol": "ticks", "most": 3}) == 27


def test_thousands_of_ticks_are_promised_from_the_two_ends_alone() -> None:
    stay, rise = (1 << 63) + (1 << 46), (1 << 63) - (1 << 46)
    for most in (1, 5, 9):
        a, b = Fraction(stay, rise), Fraction((1 << 64) - rise, (1 << 64) - stay)
        every = [a**u * b**v for u in range(most + 1) for v in range(most + 1) if u + v <= 9]
        assert odds_of_ticks(9, most, stay, rise + 1) <= odds_of_ticks(9, most, stay, rise) == max(every)
    client = {"protocol": "ticks", "size": 4096, "most": 4096, "stay": hex(stay), "rise": hex(rise)}
    assert odds_of(client) == Fraction(stay, rise) ** 4096


def test_the_oracle_of_least_error_is_chosen() -> None:
    for size in (2, 3, 5, 9, 20, 200):
        for epsilon in ("0.3", "1", "3"):
            chosen = best_oracle(size, epsilon)
            assert chosen.variance(1) <= 1.0101 * DirectEncoding(range(size), epsilon).variance(1)
            assert chosen.epsilon == Fraction(epsilon)
    assert best_oracle(4, 1).protocol == "direct"  # 4 < 3e + 2
    assert best_oracle(20, 1).protocol != "direct"


def test_expected_margins_are_those_of_the_formulas() -> None:
    told = {(each.question, each.level): each for each in survey(YesNo("a", "A?", no_answer=False)).expected(10_000)}
    odds, z = math.exp(2), 1.959964
    sigma, part = math.sqrt(odds / (odds - 1) ** 2 * 10_000), (odds + 1) / (odds - 1)
    few = part * (z**2 - 1) / 6 + part / 2 + part**2 / sigma * abs(z**3 - 3 * z) / 24  # `half_width`; the slope is 0 here
    assert told["a", "open"].rare == pytest.approx((z * sigma + few) / 10_000, rel=1e-6)
    assert told["a", "careful"].rare > told["a", "open"].rare
    assert "least" in survey(Word("w", "W?")).expected(100)[0].to_dict()


def test_levels_and_spending() -> None:
    made = survey(YesNo("a", "A?"), YesNo("b", "B?"), levels={"careful": "0.1", "open": "0.2", "third": "1/3"}, cap="0.3")
    assert made.spent("careful") == Fraction(1, 5)
    assert made.spent({"a": "careful", "b": "open"}) == Fraction(3, 10)
    assert [each.name for each in made.for_all] == ["careful"]
    assert {name: each.name for name, each in made.chosen({"b": "open", "a": "careful"}).items()} == {"a": "careful", "b": "open"}
    with pytest.raises(BudgetExceeded, match=r"lets nobody give more than ε = 0.3"):
        made.chosen({"a": "open", "b": "open"})
    with pytest.raises(InvalidParameter, match="does not offer"):
        made.level("reckless")
    with pytest.raises(InvalidParameter, match="does not ask it"):
        made.question("c")


def test_a_browser_can_hold_every_number_of_the_file() -> None:
    def numbers(said: Any) -> list[Any]:
        if isinstance(said, dict | list):
            return [each for inner in (said.values() if isinstance(said, dict) else said) for each in numbers(inner)]
        return [said] if isinstance(said, int | float) else []

    found = numbers(json.loads(everything().to_json()))
    assert len(found) > 100
    assert all(abs(each) < 2**53 for each in found)
