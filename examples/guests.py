"""Four guests near a made-up registry: a survival curve, a robust slope, words of notes, and a search that asks.

Each is written by somebody who never sees a row. By blocks a guest runs on disjoint parts of the people, and the mean of what it
says leaves with noise; by "ask" it gets private answers only.

python examples/guests.py
"""

from __future__ import annotations

from typing import Any

import cloister as cl
from cloister.guests import ask
from cloister.noise import Random

MONTHS = (12, 24, 36)
TOPICS = ("pain", "fever", "cough", "rash")
PEOPLE = 4000


@cl.guest(
    inputs=["months", "died"], output=cl.Vector([(0, 1)] * 3, names=[f"alive after {each} months" for each in MONTHS]), blocks=40
)
def kaplan_meier(rows: dict[str, list[Any]]) -> list[float]:
    """The share that survives so long, by the product-limit estimator: who left early counts until then."""
    curve = []
    for horizon in (12, 24, 36):
        alive = 1.0
        for moment in sorted(
            {month for month, died in zip(rows["months"], rows["died"], strict=True) if died and month <= horizon}
        ):
            there = sum(month >= moment for month in rows["months"])
            ends = sum(month == moment and died for month, died in zip(rows["months"], rows["died"], strict=True))
            alive *= 1 - ends / there
        curve.append(alive)
    return curve


@cl.guest(inputs=["age", "pressure"], output=cl.Vector([(-2, 2)], names=["mmHg a year"]), blocks=40, statistic="median")
def theil_sen(rows: dict[str, list[Any]]) -> list[float]:
    """The median slope over pairs of people."""
    pairs = list(zip(rows["age"], rows["pressure"], strict=True))
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(pairs, pairs[7:] + pairs[:7], strict=True) if a[0] != b[0])
    return [slopes[len(slopes) // 2]]


@cl.guest(inputs=["note"], output=cl.Vector([(0, 1)] * 4, names=TOPICS), blocks=40)
def topics(rows: dict[str, list[Any]]) -> list[float]:
    """How many notes speak of each topic."""
    import re

    words = [set(re.findall(r"\w+", note.lower())) for note in rows["note"]]
    return [sum(topic in each for each in words) / len(words) for topic in ("pain", "fever", "cough", "rash")]


@cl.guest(way="ask")
def youngest_tenth(about: dict[str, Any]) -> list[int]:
    """Between which ages the youngest tenth ends, in six questions that follow from one another."""
    count = "SELECT COUNT(*) AS n FROM registry"
    total = ask(count, "0.1")["columns"]["n"][0]
    low, high = 18, 90
    for _ in range(5):
        middle = (low + high) // 2
        younger = ask(f"{count} WHERE age <= {middle}", "0.1")["columns"]["n"][0]
        low, high = (low, middle) if younger > total / 10 else (middle, high)
    return [low, high]


def main() -> None:
    """Run all four under one budget."""
    with cl.Session({"registry": registry()}, budget=cl.PureDP(8)) as session:
        for guest in (kaplan_meier, theil_sen, topics):
            assert all(ran.done for ran in guest.rehearse(session, "registry")), "tried on made-up rows first"
            print(guest.run(session, "registry", 2))
        found = youngest_tenth.run(session, "registry", 1)
        print(f"{found.guest}: between {found.values} years, {len(found.asked)} questions, {found.cost}")
        print(f"left: {session.remaining}")


def registry() -> cl.PrivateTable:
    """One row a person."""
    random = Random.deterministic(21)
    age = [18 + int(each) for each in random.below(72, PEOPLE)]
    pressure = [90 + each // 2 + int(more) for each, more in zip(age, random.below(40, PEOPLE), strict=True)]
    months = [1 + int(each) for each in random.below(48, PEOPLE)]
    died = [bool(each < 3) for each in random.below(10, PEOPLE)]
    said = [int(each) for each in random.below(16, PEOPLE)]
    note = ["patient reports " + " and ".join(topic for bit, topic in enumerate(TOPICS) if each >> bit & 1) for each in said]
    rows = {"age": age, "pressure": pressure, "months": months, "died": died, "note": note}
    columns = {
        "age": cl.Integer(18, 90),
        "pressure": cl.Integer(60, 220),
        "months": cl.Integer(1, 48),
        "died": cl.Boolean(),
        "note": cl.Text(),
    }
    return cl.PrivateTable(rows, columns, size=PEOPLE)


if __name__ == "__main__":
    main()
