"""Write tests/local/vectors.json: the same words, the same place, the same report, for Python and for the browser's twin.

    python -m scripts.local_vectors

Python makes the reports, with a source that records the words that it hands out. The tests check that Python still makes them,
and that src/cloister/local/browser/cloister-local.js makes them too, in Node and in Chromium.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from cloister.local.frequency.direct import DirectEncoding, RandomizedResponse
from cloister.local.frequency.hadamard import HadamardResponse
from cloister.local.frequency.hashing import LocalHashing
from cloister.local.frequency.subset import SubsetSelection
from cloister.local.frequency.unary import UnaryEncoding
from cloister.local.numbers.duchi import Duchi
from cloister.local.numbers.hybrid import Hybrid
from cloister.local.numbers.piecewise import Piecewise, SquareWave
from cloister.local.survey.amounts import AmountChannel
from cloister.local.survey.channels import SeveralChannel, WordChannel
from cloister.local.survey.composed import Survey
from cloister.local.survey.one_of import OneOfChannel
from cloister.local.survey.promise import odds_of
from cloister.local.survey.questions import Choice, Number, Place, Scale, Several, Word, YesNo
from cloister.local.survey.reports import respond
from cloister.noise import Random
from tests.local.words import Scripted

FILE = Path(__file__).resolve().parent.parent / "tests" / "local" / "vectors.json"
EPSILONS = ("0.1", "1", "2.5")
LAST = (1 << 64) - 1


def oracles() -> Iterator[tuple[Any, list[Any]]]:
    """Channels and some of the places that their answers may have."""
    for epsilon in EPSILONS:
        yield one_of(RandomizedResponse(range(2), epsilon)), [0, 1]
        for size in (3, 4, 129):
            yield one_of(DirectEncoding(range(size), epsilon)), [0, size - 1]
        for size in (3, 64, 130):
            yield one_of(UnaryEncoding(range(size), epsilon)), [0, size - 1]
            yield one_of(UnaryEncoding(range(size), epsilon, optimized=False)), [size // 2]
            yield one_of(SubsetSelection(range(size), epsilon)), [0, size - 1]
            yield one_of(LocalHashing(range(size), epsilon)), [0, size - 1]
            yield one_of(LocalHashing(range(size), epsilon, optimized=False)), [size - 1]
            yield one_of(LocalHashing(range(size), epsilon, buckets=8)), [1, size - 1]
            yield one_of(LocalHashing(range(size), epsilon, buckets=7)), [1, size - 1]
            yield one_of(HadamardResponse(range(size), epsilon)), [0, size - 1]
        yield SeveralChannel("abc", epsilon, most=3), [[], [0, 2]]
        yield SeveralChannel([str(place) for place in range(70)], epsilon, most=2), [[3], [0, 69]]
        for kind in (Hybrid, Piecewise, Duchi, SquareWave):
            yield Plain(kind(-3, 7, epsilon)), [-3.0, 0.1, 7.0]
        for want in ("mean", "spread"):
            for no_answer in (True, False):
                values = [0.0, 12.34, 40.0, *([None] if no_answer else [])]
                yield AmountChannel(0, 40, epsilon, want=want, no_answer=no_answer), values
        yield WordChannel(Fraction(epsilon), length=8), ["", "basel", "zürich"]


class Plain:
    """A numeric mechanism by itself, as a channel."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism, self.client = mechanism, mechanism.client

    def report(self, place: float, random: Random) -> int:
        """One report."""
        return int(self.mechanism.randomize([place], random=random)[0])


def one_of(oracle: Any) -> OneOfChannel:
    """The channel of one oracle, whichever would have been best."""
    return OneOfChannel([str(place) for place in range(len(oracle.domain))], oracle.epsilon, oracle=oracle)


def vectors() -> dict[str, Any]:
    """Everything that the file holds."""
    cases = []
    for number, (channel, places) in enumerate(oracles()):
        for place in places:
            for seed in range(2):
                random = Scripted.recording(Random.deterministic(1000 * number + seed))
                cases.append(case(channel, place, random))
    direct = one_of(DirectEncoding(range(4), "1"))
    cases.append(case(direct, 2, Scripted([LAST, LAST, LAST, 5])))  # two words are thrown away by below(3)
    return {"reports": cases, "surveys": [survey_case(seed) for seed in range(6)], "sums": list(sums())}


def case(channel: Any, place: Any, random: Scripted) -> dict[str, Any]:
    """One report, and the words that it took."""
    made = channel.report(place, random)
    odds = odds_of(channel.client)
    return {
        "client": dict(channel.client),
        "place": place,
        "words": [hex(word) for word in random.words_used],
        "report": made,
        "odds": [hex(odds.numerator), hex(odds.denominator)],
    }


def everything() -> Survey:
    """A survey with every kind of question."""
    return Survey(
        "everything",
        "Everything",
        [
            YesNo("yes-no", "Yes or no?"),
            Choice("choice", "Which one?", ["red", "green", "blue", "other"], no_answer=False),
            Choice("long", "Which of many?", [f"option {place}" for place in range(40)]),
            Several("several", "Which ones?", ["a", "b", "c", "d"], most=2),
            Scale("scale", "How often?", ["never", "once", "often"]),
            Number("number", "How many?", low=0, high=40),
            Number("spread", "How much?", low="-1/2", high=1, want="spread"),
            Place("place", "Where?", south=47, west=8, north=48, east=9, rows=3, columns=4),
            Word("word", "Which town?", length=8),
        ],
        levels={"careful": "0.5", "open": 2},
        cap=20,
    )


def survey_case(seed: int) -> dict[str, Any]:
    """One whole report; for odd seeds mostly without answers; from 4 on at a level of its own for each question."""
    survey = everything()
    names = [level.name for level in survey.levels]
    mixed = {question.name: names[place % 2] for place, question in enumerate(survey.questions, seed)}
    levels = mixed if seed >= 4 else names[seed // 2]
    answers: dict[str, Any] = {"choice": "blue"}
    if seed % 2 == 0:
        answers |= {
            "yes-no": True,
            "long": "option 39",
            "several": ["d", "a"],
            "scale": "often",
            "number": 12.5,
            "spread": 0.25,
            "place": [47.5, 8.9],
            "word": "\u0002 Basel \u0007",
        }
    random = Scripted.recording(Random.deterministic(seed))
    report = respond(survey, answers, levels, random=random)
    return {
        "survey": {name: each for name, each in survey.to_dict().items() if name != "promises"},
        "answers": answers,
        "levels": levels,
        "words": [hex(word) for word in random.words_used],
        "report": report.to_dict(),
    }


def sums() -> Iterator[dict[str, Any]]:
    """What levels come to, exactly, around a cap: thirds and tenths, which no double holds."""
    questions = [YesNo(name, f"{name}?") for name in "abc"]
    survey = Survey("sums", "Sums", questions, levels={"third": "1/3", "tenth": "0.1", "one": 1}, cap=1)
    names = [level.name for level in survey.levels]
    asked = {"levels": survey.to_dict()["levels"], "cap": "1", "questions": [{"name": name} for name in "abc"]}
    for each in [*names, *(dict(zip("abc", some, strict=True)) for some in product(names, repeat=3))]:
        spent = survey.spent(each)
        told = {"epsilon": [hex(spent.numerator), hex(spent.denominator)], "allowed": spent <= survey.cap}
        yield {"survey": asked, "levels": each} | told


if __name__ == "__main__":
    FILE.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(FILE)
