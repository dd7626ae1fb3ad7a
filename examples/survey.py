"""A survey about copying in exams: nobody, not even who asks, learns who did, and yet the share comes out.

python examples/survey.py
"""

from __future__ import annotations

from cloister.local.survey import Number, Scale, Several, Survey, YesNo, collect, respond

PEOPLE = 3000


def main() -> None:
    """Compose, answer, collect."""
    survey = Survey(
        "exams-2026",
        "Exams",
        [
            YesNo("copied", "Have you ever copied in an exam?"),
            Several("why", "What makes it hard not to?", ["time", "grade", "others do it"], most=2),
            Scale("fear", "How much do you fear exams?", ["not at all", "a little", "a lot"]),
            Number("hours", "How many hours a week do you learn?", low=0, high=60),
        ],
        levels={"careful": "0.5", "open": 2},
    )
    for level in survey.levels:
        print(f"{level.name}: {survey.promise(survey.questions[0], level).text}")
    print()

    reports = [respond(survey, answers(person), levels_of(person)).to_json() for person in range(PEOPLE)]
    print("what leaves one respondent's machine:", reports[0], "\n", sep="\n")

    results = collect(survey, [*reports, reports[0], '{"survey": "exams-2026", "vote": "yes yes yes"}'])
    print(results.text())
    one_percent = results["copied"].shift(0.01)
    assert one_percent is not None
    print(f"\nif one respondent in a hundred sends made-up reports, the share moves by at most {100 * one_percent:.1f} points")


def answers(person: int) -> dict[str, object]:
    """Invented people: one in four has copied, one in ten says nothing of it."""
    said: dict[str, object] = {"why": ["time", "grade"][: person % 3], "fear": ["not at all", "a little", "a lot"][person % 3]}
    if person % 10:
        said["copied"] = person % 4 == 0
    return said | {"hours": 10 + person % 21}


def levels_of(person: int) -> dict[str, str]:
    """Two in seven are careful about the first question, chosen before anybody has seen it; all are open about the others."""
    return {"copied": "careful" if person % 7 < 2 else "open", "why": "open", "fear": "open", "hours": "open"}


if __name__ == "__main__":
    main()
