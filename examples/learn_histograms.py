"""Three histograms: ages by decade and players by position (sensitivity 1), symptoms with up to seven answers a person (7).

python examples/learn_histograms.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cloister as cl
from cloister.noise import Random
from cloister.session import Persons, Question, histogram, marginal

AGES = {17: 1657, 25: 8054, 35: 8613, 45: 7175, 50: 602, 55: 3816, 65: 2015, 75: 508, 85: 78, 90: 43}
SQUADS = {"goalkeeper": 61, "defender": 187, "midfielder": 204, "forward": 148}
SYMPTOMS = {"fever": 82, "cough": 71, "fatigue": 60, "headache": 48, "loss of smell": 37, "sore throat": 26, "short breath": 14}


def main() -> None:
    """Print each with its margins."""
    ages = cl.PrivateTable({"age": repeated(AGES)}, columns={"age": cl.Integer(10, 99)})
    players = cl.PrivateTable({"position": repeated(SQUADS)}, columns={"position": cl.Category(list(SQUADS))})
    with cl.Session({"adult": ages, "players": players}, budget=cl.PureDP(1)) as session:
        print("Adult training rows by decade, ε = 0.1:")
        print(session.measure(histogram("adult", "age", [*range(10, 100, 10), 99]), spend="0.1").text())
        print("\nfootball players by position, ε = 0.5:")
        print(session.measure(marginal("players", ["position"]), spend="0.5").text())

    ticks = ticked(2_000)
    for answers, budget in ((1, cl.PureDP("0.5")), (7, cl.PureDP("0.5")), (7, cl.ZCDP("0.125"))):
        table = cl.PrivateTable(ticks, columns={"symptom": cl.Category(list(SYMPTOMS))}, unit="person", max_rows=answers)
        with cl.Session({"ticks": table}, budget=budget) as session:
            release = session.measure(Question(table="ticks", by=("symptom",), statistics=(Persons(),)), spend=budget)
        print(f"\npatients by symptom, at most {answers} of their answers, {release.cost}:\n{release.text()}")


def repeated(counts: Mapping[Any, int]) -> list[object]:
    """Each value as often as it is counted."""
    return [value for value, times in counts.items() for _ in range(times)]


def ticked(persons: int) -> dict[str, list[object]]:
    """A row for each symptom that a person ticks; the shares are those of SYMPTOMS, in hundredths."""
    random = Random.deterministic(19)  # makes the rows, not the noise
    drawn = {symptom: random.below(100, persons) < share for symptom, share in SYMPTOMS.items()}
    pairs = [(person, symptom) for person in range(persons) for symptom in SYMPTOMS if drawn[symptom][person]]
    return {"person": [person for person, _ in pairs], "symptom": [symptom for _, symptom in pairs]}


if __name__ == "__main__":
    main()
